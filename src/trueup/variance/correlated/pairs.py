"""What was found: pairs of workers, and how many independent workers they are worth.

With R the correlations of the pairs found, and 0 elsewhere, n workers are worth `n / (1 + (n - 1) mean R)` independent
ones (Kish, Survey Sampling 1965).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import counted, quoted
from trueup.io.frames_out import make_frame
from trueup.variance.correlated.discoveries import MATTERS
from trueup.variance.correlated.shared_questions import FEWEST

if TYPE_CHECKING:
    from trueup.answers.answers import Answers
    from trueup.core.arrays import Bools, Floats, Ints
    from trueup.variance.correlated.sample import Looked

SHOWN = 10

NO_ERRORS = "Whether errors are correlated cannot be told: it takes four workers, and questions with three answers."
UNSEEN = "An error that all workers share cannot be seen in the answers."


@dataclass(frozen=True, eq=False)
class Together:
    """Pairs of workers who err together or give identical answers, the clearest first.

    Attributes
    ----------
    answers : Answers
    first, second : arrays
        Numbers of the two workers of each pair found.
    shared : array
        Questions that both answered.
    correlation, z : arrays
        Correlation of their errors, and how many standard errors that is from independence; NaN where the questions
        show nothing of it.
    identical, expected : arrays
        Share of identical answers, and what ties explain of it.
    p_value : array
        The smaller one of the two tests.
    copies : array
        Whether identical answers were found.
    n_workers, n_pairs, n_questions : int
        How many were looked at.
    effective : float
        How many independent workers they are worth.
    notes : tuple of str
        What was not looked at.
    """

    answers: Answers
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

    def among(self, looked: Looked) -> Together:
        """Return what was found in a sample, with the numbers that workers have among all answers."""
        first, second = looked.workers[self.first], looked.workers[self.second]
        notes = (*self.notes, looked.note)
        return replace(self, answers=looked.whole, first=first, second=second, notes=notes)

    @property
    def pairs(self) -> Any:
        """Frame with a row per pair found."""
        ids = self.answers.worker_ids
        columns: dict[str, Any] = {
            "worker": ids.take(self.first),
            "other": ids.take(self.second),
            "shared": self.shared,
            "correlation": self.correlation,
            "z": self.z,
            "identical": self.identical,
            "identical_expected": self.expected,
            "p_value": self.p_value,
        }
        return make_frame(
            self.answers.origin.kind, columns, null_columns=("correlation", "z", "p_value")
        )

    @property
    def partner(self) -> Ints:
        """Number of the worker with whom each one is most clearly tied, -1 where there is none."""
        partner = np.full(self.answers.n_workers, -1)
        for a, b in ((self.first, self.second), (self.second, self.first)):
            for mine, other in zip(a[::-1].tolist(), b[::-1].tolist(), strict=True):
                partner[mine] = other
        return partner

    @property
    def copier(self) -> Bools:
        """Whether each worker is in a pair with identical answers."""
        found = np.zeros(self.answers.n_workers, dtype=bool)
        found[self.first[self.copies]] = found[self.second[self.copies]] = True
        return found

    @property
    def summary(self) -> str:
        """What was found, in one sentence."""
        if self.n_pairs == 0:
            return f"No two workers share {FEWEST} questions: whether some err together cannot be told."
        looked = f"{counted(self.n_pairs, 'pair')} of {counted(self.n_workers, 'worker')} looked at"
        if len(self) == 0:
            if NO_ERRORS in self.notes:
                return f"No two workers give identical answers more often than ties explain ({looked})."
            return f"No two workers err together or copy each other ({looked})."
        verb = "errs" if len(self) == 1 else "err"
        gives = "gives" if len(self) == 1 else "give"
        return (
            f"{counted(len(self), 'pair')} of workers {verb} together or {gives} identical answers ({looked}): "
            f"{counted(self.n_workers, 'worker')} are worth {self.effective:.1f} independent ones."
        )

    def describe(self, number: int) -> str:
        """Return a sentence on one of the pairs."""
        ids = self.answers.worker_ids
        one, other = (
            quoted(str(ids.tolist(each[number : number + 1])[0])).strip('"')
            for each in (self.first, self.second)
        )
        parts = []
        if not np.isnan(self.correlation[number]) and self.correlation[number] >= MATTERS:
            parts.append(f"errors correlate {self.correlation[number]:.2f}")
        if self.copies[number]:
            parts.append(
                f"{self.identical[number]:.0%} of answers identical, {self.expected[number]:.0%} expected"
            )
        return f"{one} and {other}: {'; '.join(parts)} ({counted(int(self.shared[number]), 'shared question')})"

    def __str__(self) -> str:
        return "\n".join(self.lines(SHOWN))

    def lines(self, most: int) -> list[str]:
        """Return it in words, with so many pairs."""
        lines = [self.summary]
        lines += [f"  {self.describe(number)}" for number in range(min(most, len(self)))]
        if len(self) > most:
            lines.append(f"  ... and {len(self) - most:,} more")
        return [*lines, *self.notes, UNSEEN]
