"""Results of the theory functions: a number with its error, or a verdict with both sides of an inequality."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from trueup.core.arrays import Floats


class Measured(NamedTuple):
    """A mean over samples, and its Monte Carlo standard error.

    Attributes
    ----------
    value : float
        The estimate.
    std_error : float
        Error due to the finite number of samples only.
    """

    value: float
    std_error: float

    def __str__(self) -> str:
        return f"{self.value:.6g} ± {self.std_error:.2g}"

    @classmethod
    def mean(cls, values: Floats) -> Measured:
        """Measure the mean of independent values."""
        return cls(float(values.mean()), float(values.std(ddof=1) / len(values) ** 0.5))


@dataclass(frozen=True)
class Verdict:
    """Whether a condition holds, and by how much.

    Attributes
    ----------
    holds : bool
        Whether `left` and `right` satisfy the relation (and the case is not degenerate, see the function).
    left, right : float
        Both sides of the inequality.
    relation : str
        "<" or "<=".
    exact : bool
        True if the condition is also necessary: without it, the second step does not help. False if it is only
        sufficient (or, for a wrongly printed statement, not even that): without it nothing is known.
    text : str
        What was compared, and what follows.
    std_error : float or None
        Monte Carlo standard error of `left - right`; None if both sides are exact.
    """

    holds: bool
    left: float
    right: float
    relation: Literal["<", "<="]
    exact: bool
    text: str
    std_error: float | None = None

    def __str__(self) -> str:
        error = "" if self.std_error is None else f" (difference ± {self.std_error:.2g})"
        answer = "holds" if self.holds else "does not hold"
        return f"{answer}: {self.left:.6g} {self.relation} {self.right:.6g}{error}. {self.text}"
