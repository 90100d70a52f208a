"""What is told of a run whose answers are not in memory: all that is small."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trueup.errors import counted

if TYPE_CHECKING:
    from trueup.pipeline.solve import Solution
    from trueup.result.estimate import Diagnosis


@dataclass(frozen=True, eq=False, kw_only=True)
class Outcome:
    """What came out, apart from the questions and workers themselves.

    Attributes
    ----------
    diagnosis : Diagnosis
        What was chosen and why, what the second step did, warnings.
    level : float
        Level of the intervals.
    n_questions, n_workers, n_answers : int
        How many there are.
    n_rows, n_missing, n_duplicates, n_malformed : int
        Rows read, rows without an answer, answers that repeat a worker on a question, rows that could not be used.
    malformed : tuple of str
        The first rows that could not be used, and why.
    """

    diagnosis: Diagnosis
    level: float
    n_questions: int
    n_workers: int
    n_answers: int
    n_rows: int
    n_missing: int
    n_duplicates: int
    n_malformed: int = 0
    malformed: tuple[str, ...] = ()

    @staticmethod
    def told(solution: Solution) -> dict[str, Any]:
        """Return what a solution and its problem tell."""
        problem = solution.root.problem
        return {
            "diagnosis": solution.diagnosis,
            "level": solution.plan.level,
            "n_questions": problem.n_questions,
            "n_workers": problem.n_workers,
            "n_answers": problem.n_answers,
            "n_rows": problem.n_rows,
            "n_missing": problem.n_missing,
            "n_duplicates": problem.n_duplicates,
        }

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        people, asked = counted(self.n_workers, "worker"), counted(self.n_questions, "question")
        lines = [f"{counted(self.n_answers, 'answer')} of {people} to {asked}"]
        if self.n_missing:
            lines.append(f"{self.n_missing:,} of {self.n_rows:,} rows dropped: no answer in them")
        if self.n_duplicates:
            lines.append(f"{counted(self.n_duplicates, 'repeated answer')} merged")
        if self.n_malformed:
            lines.append(f"{counted(self.n_malformed, 'row')} could not be used")
        return "\n".join([*lines, str(self.diagnosis)])
