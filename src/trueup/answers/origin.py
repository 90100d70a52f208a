"""Where answers came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trueup.errors import MOST_NAMES, counted, listing, quoted
from trueup.io.columns import PLAIN_NAMES, IdNames
from trueup.io.rejects import Rejects

if TYPE_CHECKING:
    from trueup.io.table import Ids


@dataclass(frozen=True)
class Origin:
    """Where the answers came from: ids of questions and workers, what was dropped, and what columns are called.

    Attributes
    ----------
    names
        Names of the columns of ids.
    unanswered
        Questions of a wide table that nobody answered.
    gold_column
        Column that may hold known truths and was not used; empty where there is none.
    rejects
        Rows that were set aside because they cannot be used.
    doubtful
        Marks such as "-" that were taken for "no answer", and how often they were there.
    dropped_questions
        Number of questions of a long table that have rows but no answer.
    dropped_workers
        Workers that have rows or a column but no answer; None for one whose name is not told.
    repeat_squares, repeat_degrees
        Sum of squares of repeated answers around their means, where these were taken, and its degrees of freedom.
    unit
        The unit that was stripped from the answers; empty where they have none.
    told
        What was set aside of answers that come from a saved state, in words.
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
    gold_column: str = ""
    rejects: Rejects = field(default_factory=Rejects)
    doubtful: tuple[tuple[str, int], ...] = ()
    dropped_questions: int = 0
    repeat_squares: float = 0.0
    repeat_degrees: int = 0
    dropped_workers: tuple[object, ...] = ()
    told: tuple[str, ...] = ()
    unit: str = ""

    @property
    def account(self) -> list[str]:
        """What was set aside, and which marks were taken for "no answer" that may have been meant otherwise."""
        lines = [*self.told]
        if len(self.rejects):
            lines.append(self.rejects.account(self.n_rows))
        if self.doubtful:
            marks = ", ".join(f"{quoted(text)} ({count:,})" for text, count in self.doubtful)
            lines.append(f"taken for no answer: {marks}")
        if self.dropped_questions:
            has = "has" if self.dropped_questions == 1 else "have"
            questions = counted(self.dropped_questions, "question")
            lines.append(f"{questions} without any answer {has} no estimate")
        if self.dropped_workers:
            are = "is" if len(self.dropped_workers) == 1 else "are"
            workers = counted(len(self.dropped_workers), "worker")
            named = [name for name in self.dropped_workers if name is not None]
            names = f": {listing(named, MOST_NAMES)}" if named else ""
            lines.append(f"{workers} without any answer {are} left out{names}")
        return lines
