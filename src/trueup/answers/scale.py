"""The scale on which answers are combined, and the way back to the scale of the answers.

Prices, populations and counts are combined better as logarithms, probabilities as log-odds.
Estimates and interval ends are carried back by the inverse, so that an interval keeps its coverage;
bounds then keep them inside what is possible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trueup.errors import AnswersError, quoted

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.core.arrays import Bools, Floats

TRANSFORMS = ("log", "log1p", "logit")


@dataclass(frozen=True)
class Scale:
    """A transformation of the answers and the bounds of the truth.

    Parameters
    ----------
    transform : {"log", "log1p", "logit"}, optional
        `log` needs answers above 0, `log1p` above -1, `logit` strictly between the bounds (0 and 1
        if no bounds are given).
    bounds : (float, float), optional
        Lowest and highest possible truth; use `-inf` or `inf` for an open end.

    Examples
    --------
    >>> scale = Scale("log", bounds=(0, 100))
    >>> scale.backward(scale.forward(np.array([5.0, 50.0]))).round(6).tolist()
    [5.0, 50.0]
    """

    transform: str | None = None
    bounds: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        known = self.transform is None or isinstance(self.transform, str)
        if not known or self.transform not in (None, *TRANSFORMS):
            names = ", ".join(f'"{name}"' for name in TRANSFORMS)
            raise AnswersError(
                f"transform: {quoted(self.transform)} is not known. Use one of {names}."
            )
        if self.bounds is not None:
            try:
                low, high = map(float, self.bounds)
            except (TypeError, ValueError):
                low = high = np.nan
            if not low < high:  # also catches NaN
                raise AnswersError(
                    f"bounds: found {quoted(self.bounds)}. Give (low, high) with low below high."
                )
        low, high = self._ends
        if self.transform == "logit" and not np.isfinite(high - low):
            raise AnswersError("bounds: logit needs two finite bounds, or none for 0 and 1.")

    @property
    def _ends(self) -> tuple[float, float]:
        low, high = (0.0, 1.0) if self.bounds is None else self.bounds
        return float(low), float(high)

    def outside(self, answers: Floats) -> Bools:
        """Tell which answers the transformation cannot take."""
        if self.transform == "log":
            return answers <= 0
        if self.transform == "log1p":
            return answers <= -1
        if self.transform == "logit":
            low, high = self._ends
            return (answers <= low) | (answers >= high)
        return np.zeros(len(answers), dtype=bool)

    @property
    def domain(self) -> str:
        """What `outside` asks for, in words."""
        low, high = self._ends
        return {
            "log": "above 0 (log1p takes 0)",
            "log1p": "above -1",
            "logit": f"strictly between {low:g} and {high:g}",
        }.get(self.transform or "", "any number")

    def forward(self, answers: Floats) -> Floats:
        """Carry answers to the scale on which they are combined."""
        if self.transform == "log":
            return np.log(answers)
        if self.transform == "log1p":
            return np.log1p(answers)
        if self.transform == "logit":
            low, high = self._ends
            return np.log(answers - low) - np.log(high - answers)
        return answers

    def inverse(self, values: Floats) -> Floats:
        """Undo `forward`."""
        # exp of a huge value is infinite: held by the bound, or seen by the caller
        with np.errstate(over="ignore"):
            if self.transform == "log":
                return np.exp(values)
            if self.transform == "log1p":
                return np.expm1(values)
            if self.transform == "logit":
                low, high = self._ends
                return low + (high - low) / (1.0 + np.exp(-values))
        return values

    def backward(self, values: Floats) -> Floats:
        """Carry estimates or interval ends back to the scale of the answers, inside the bounds."""
        values = self.inverse(values)
        return values if self.bounds is None else np.clip(values, *self._ends)

    def slope(self, values: Floats) -> Floats:
        """Return d backward / d value: it carries a standard error back, to first order."""
        if self.transform in ("log", "log1p"):
            return np.exp(values)
        if self.transform == "logit":
            low, high = self._ends
            small = np.exp(-np.abs(values))  # the slope is the same on both sides of 0
            return (high - low) * small / (1.0 + small) ** 2
        return np.ones(len(values))


def unfit_truths(truth: Floats, scale: Scale) -> tuple[Bools, str]:
    """Tell which known truths are impossible on a scale, and which rule they break; NaN is unknown."""
    unfit = ~np.isnan(truth) & scale.outside(truth)
    if unfit.any() or scale.bounds is None:
        return unfit, f"{scale.transform} needs truths {scale.domain}"
    low, high = map(float, scale.bounds)
    return (truth < low) | (truth > high), f"the bounds are {low:g} and {high:g}"


def unfit_truth(question: object, truth: float, rule: str, argument: str = "gold") -> AnswersError:
    """Build the error for an impossible truth."""
    return AnswersError(
        f"{argument}: question {quoted(question)} has the truth {truth:g}, but {rule}. "
        "Mend or remove it, or change transform= or bounds=."
    )


def check_truths(
    truth: Floats, scale: Scale, name_of: Callable[[int], object], argument: str = "gold"
) -> None:
    """Check that known truths, in the unit of the answers, are possible on a scale.

    Parameters
    ----------
    truth : array
        One number per question, NaN where unknown.
    scale : Scale
        Scale of the answers.
    name_of : callable
        Given the number of a question, returns its id.
    argument : str
        What the message calls the truths.
    """
    unfit, rule = unfit_truths(truth, scale)
    if unfit.any():
        first = int(np.argmax(unfit))
        raise unfit_truth(name_of(first), float(truth[first]), rule, argument)
