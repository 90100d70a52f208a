"""A sample of the questions, where there are very many.

With more than two million answers or fifty thousand questions a sample of the questions is looked at, with about a
hundred answers of each worker: two who copy are seen in a hundred shared questions as well as in a thousand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trueup.arrays import expand
from trueup.draws import sample_of
from trueup.together.shared import FEWEST

if TYPE_CHECKING:
    from trueup.answers import Answers
    from trueup.arrays import Floats, Ints

#: Answers, or questions, above which a sample of the questions is looked at; how many answers of each worker that has,
#: and between which limits of all.
MANY, MANY_QUESTIONS = 2_000_000, 50_000
EACH, ENOUGH, MOST_ANSWERS = 100, 300_000, 1_000_000


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
        if data.n_answers <= MANY and data.n_questions <= MANY_QUESTIONS:
            return None
        wanted = min(max(EACH * data.n_workers, ENOUGH), MOST_ANSWERS)
        questions = sample_of(data, seed, max(data.n_questions * wanted // data.n_answers, FEWEST))
        if questions is None:
            return None
        present = np.zeros(data.n_workers, dtype=bool)
        present[data.workers[expand(data.indptr[questions], data.counts[questions])]] = True
        return cls(data, data.subset(questions), np.flatnonzero(present))

    def spread(self, each: Floats, empty: float) -> Floats:
        """Return numbers of the workers of the sample as numbers of all, `empty` for the others."""
        result = np.full(self.whole.n_workers, empty)
        result[self.workers] = each
        return result

    @property
    def note(self) -> str:
        """Say that it is a sample."""
        return f"A sample of {self.answers.n_questions:,} of {self.whole.n_questions:,} questions was looked at."
