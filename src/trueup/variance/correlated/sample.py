"""A sample of the questions, where there are very many.

With more than two million answers or fifty thousand questions a sample of the questions is looked at, with about a
hundred answers of each worker: two who copy are seen in a hundred shared questions as well as in a thousand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trueup.core.arrays import expand
from trueup.core.sampling import sample_of
from trueup.variance.correlated.shared_questions import FEWEST

if TYPE_CHECKING:
    from trueup.answers.answers import Answers
    from trueup.core.arrays import Ints

#: Answers, or questions, above which a sample of the questions is looked at; how many answers of each worker that has,
#: and between which limits of all.
MANY, MANY_QUESTIONS = 2_000_000, 50_000
EACH, ENOUGH, MOST_ANSWERS = 100, 300_000, 1_000_000


def sample_size(n_answers: int, n_questions: int, n_workers: int) -> int:
    """Return how many questions of so large a problem are looked at."""
    if n_answers <= MANY and n_questions <= MANY_QUESTIONS:
        return n_questions
    wanted = min(max(EACH * n_workers, ENOUGH), MOST_ANSWERS)
    return min(max(n_questions * wanted // n_answers, FEWEST), n_questions)


def note(looked_at: int, n_questions: int) -> str:
    """Say that it is a sample, where it is one."""
    if looked_at == n_questions:
        return ""
    return f"A sample of {looked_at:,} of {n_questions:,} questions was looked at."


@dataclass(frozen=True, eq=False)
class Looked:
    """A sample of the questions of a large problem.

    Attributes
    ----------
    whole, answers : Answers
        All answers, and those of the sample.
    workers : array
        Number that each worker of the sample has among all.
    """

    whole: Answers
    answers: Answers
    workers: Ints

    @classmethod
    def of(cls, data: Answers, seed: int = 0) -> Looked | None:
        """Draw a sample; None where there are not that many answers."""
        size = sample_size(data.n_answers, data.n_questions, data.n_workers)
        questions = sample_of(data, seed, size)
        if questions is None:
            return None
        present = np.zeros(data.n_workers, dtype=bool)
        present[data.workers[expand(data.indptr[questions], data.counts[questions])]] = True
        return cls(data, data.subset(questions), np.flatnonzero(present))

    @property
    def note(self) -> str:
        """Say that it is a sample."""
        return note(self.answers.n_questions, self.whole.n_questions)
