"""A plain function as a first step: from the answers to one question to one number, the same for every question."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.algorithms.contract import Algorithm, Kind
from trueup.errors import TrueupError, listing, quoted

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.algorithms.contract import State
    from trueup.answers.block import Block
    from trueup.core.arrays import Floats

#: Answers that a message shows.
SHOWN = 5


@dataclass(frozen=True)
class QuestionRule(Algorithm):
    """A function of the answers to one question; all workers count alike, and nothing is learned about them.

    Parameters
    ----------
    function : callable
        Takes the answers to one question, an array of one or more numbers in no particular order, and returns a finite
        number. Variances of the truths come from the delete-group jackknife.

    Examples
    --------
    >>> import trueup
    >>> answers = [[10.0, 4.0], [11.0, 5.0], [16.0, 1.0]]
    >>> est = trueup.estimate(answers, method=lambda values: np.percentile(values, 40), shrink="none")
    >>> est.estimate.round(1).tolist()
    [10.8, 3.4]
    """

    function: Callable[[Floats], Any]

    name = "function"

    @property
    def kind(self) -> Kind:
        """Truths need not be weighted means."""
        return "robust"

    def truths(self, block: Block, state: State) -> Floats:
        """Call the function for each question."""
        if block.precision is not None:
            raise TrueupError(
                "a function as method sees the answers alone, and not their variances.",
                argument="answer_variance",
                remedy="Leave it out, or write an Algorithm.",
            )
        answers, ends = block.answers, block.indptr.tolist()
        found = [
            self._truth(answers[first:stop].copy()) for first, stop in itertools.pairwise(ends)
        ]
        return np.array(found, dtype=np.float64) - block.centre

    def _truth(self, answers: Floats) -> float:
        given = f"for the answers {listing(answers.tolist(), SHOWN)}"
        try:
            value = self.function(answers)
        except Exception as error:  # the caller's own function may raise anything
            text = f"{type(error).__name__}: {error}"
            raise TrueupError(
                f"the function raised {quoted(text, 200)} {given}.", argument="method"
            ) from error
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = np.nan
        if not np.isfinite(number):
            raise TrueupError(
                f"the function returned {quoted(value)} {given}, must be one finite number.",
                argument="method",
            )
        return number
