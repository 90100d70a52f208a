"""Where answers came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trueup.io.columns import PLAIN_NAMES, IdNames

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trueup.io.table import Ids


@dataclass(frozen=True)
class Origin:
    """Where the answers came from: ids of questions and workers, what was dropped, and what columns are called.

    `names` are those of the columns of ids, `unanswered` the questions of a table that nobody answered, and `suggested`
    the columns that may hold systems, runs or known truths and were not used.
    """

    question_ids: Ids
    worker_ids: Ids
    panel_ids: Ids | None = None
    kind: str = "array"
    n_rows: int = 0
    n_missing: int = 0
    n_duplicates: int = 0
    names: IdNames = PLAIN_NAMES
    unanswered: Ids | None = None
    suggested: Mapping[str, str] = field(default_factory=dict)
