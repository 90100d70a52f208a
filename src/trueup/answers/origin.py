"""Where answers came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trueup.errors import counted, quoted
from trueup.io.rejects import Rejects

if TYPE_CHECKING:
    from trueup.io.table import Ids


@dataclass(frozen=True)
class Origin:
    """Where the answers came from: ids of questions and workers, and what was dropped.

    Attributes
    ----------
    rejects
        Rows that were set aside because they cannot be used.
    doubtful
        Marks such as "-" that were taken for "no answer", and how often they were there.
    unanswered
        Number of questions that have rows but no answer.
    """

    question_ids: Ids
    worker_ids: Ids
    panel_ids: Ids | None = None
    kind: str = "array"
    n_rows: int = 0
    n_missing: int = 0
    n_duplicates: int = 0
    rejects: Rejects = field(default_factory=Rejects)
    doubtful: tuple[tuple[str, int], ...] = ()
    unanswered: int = 0

    @property
    def account(self) -> list[str]:
        """What was set aside, and which marks were taken for "no answer" that may have been meant otherwise."""
        lines = [self.rejects.account(self.n_rows)] if len(self.rejects) else []
        if self.doubtful:
            marks = ", ".join(f"{quoted(text)} ({count:,})" for text, count in self.doubtful)
            lines.append(f"taken for no answer: {marks}")
        if self.unanswered:
            has = "has" if self.unanswered == 1 else "have"
            questions = counted(self.unanswered, "question")
            lines.append(f"{questions} without any answer {has} no estimate")
        return lines
