"""Where answers came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trueup.io.table import Ids


@dataclass(frozen=True)
class Origin:
    """Where the answers came from: ids of questions and workers, and what was dropped."""

    question_ids: Ids
    worker_ids: Ids
    panel_ids: Ids | None = None
    kind: str = "array"
    n_rows: int = 0
    n_missing: int = 0
    n_duplicates: int = 0
