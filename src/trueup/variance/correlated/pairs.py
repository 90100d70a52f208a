"""Pairs of correlated workers, and how many independent workers all of them are worth.

With R the correlations of the pairs found, and 0 elsewhere, n workers are worth `n / (1 + (n - 1) mean R)` independent
ones (Kish, Survey Sampling 1965).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from trueup.core.arrays import Bools, Floats, Ints
    from trueup.variance.correlated.sample import AnswerSample

NO_ERRORS = "Correlated errors cannot be detected: that takes four workers and questions with three answers."


@dataclass(frozen=True, eq=False)
class CorrelatedPairs:
    """Pairs of workers whose errors correlate or whose answers are identical, the clearest first.

    Attributes
    ----------
    n_all : int
        Number of all workers.
    first, second : arrays
        Numbers of the two workers of each pair found.
    shared : array
        Questions that both answered.
    correlation, z : arrays
        Correlation of their errors, and its distance from independence in standard errors; NaN where unknown.
    identical, expected : arrays
        Share of identical answers, and the share that ties explain.
    p_value : array
        The smaller one of the two tests.
    copies : array
        Whether identical answers were found.
    n_workers, n_pairs, n_questions : int
        Numbers of workers, pairs and questions that were compared.
    effective : float
        How many independent workers they are worth.
    notes : tuple of str
        What was not compared.
    """

    n_all: int
    first: Ints
    second: Ints
    shared: Ints
    correlation: Floats
    z: Floats
    identical: Floats
    expected: Floats
    p_value: Floats
    copies: Bools
    n_workers: int
    n_pairs: int
    n_questions: int
    effective: float
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.first)

    def in_all(self, sample: AnswerSample) -> CorrelatedPairs:
        """Return the pairs found in a sample with the numbers of their workers among all workers."""
        return replace(
            self,
            n_all=sample.n_workers,
            first=sample.workers[self.first],
            second=sample.workers[self.second],
            notes=(*self.notes, sample.note) if sample.note else self.notes,
        )

    @property
    def partner(self) -> Ints:
        """Number of the worker with whom each worker is most clearly correlated, -1 where there is none."""
        partner = np.full(self.n_all, -1)
        for a, b in ((self.first, self.second), (self.second, self.first)):
            for worker, other in zip(a[::-1].tolist(), b[::-1].tolist(), strict=True):
                partner[worker] = other
        return partner

    @property
    def copier(self) -> Bools:
        """Whether each worker is in a pair with identical answers."""
        copier = np.zeros(self.n_all, dtype=bool)
        copier[self.first[self.copies]] = copier[self.second[self.copies]] = True
        return copier
