"""The scale on which answers are combined, and the way back to the scale of the answers.

Prices, populations and counts are combined better as logarithms, probabilities as log-odds.
Estimates and interval ends are carried back by the inverse, so that an interval keeps its coverage;
bounds then keep them inside what is possible.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from trueup.errors import AnswersError, option, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trueup.answers.block import Block
    from trueup.core.arrays import Bools, Floats, Ints

TRANSFORMS = ("log", "log1p", "logit", "proportional")
#: Those that combine logarithms.
LOGARITHMS = ("log", "proportional")


@dataclass(frozen=True)
class Scale:
    """A transformation of the answers and the bounds of the truth.

    Parameters
    ----------
    transform : {"log", "log1p", "logit", "proportional"}, optional
        `log` and `proportional` need answers above 0, `log1p` above -1, `logit` strictly between the bounds (0 and 1
        if no bounds are given). `log` estimates what the typical worker would say (a geometric mean), `proportional`
        combines the same logarithms and estimates what the average worker would say.
    bounds : (float, float), optional
        Lowest and highest possible truth; use `-inf` or `inf` for an open end.
    shift : float
        For `proportional`: logarithm of the average worker over the typical one, added on the way back.

    Examples
    --------
    >>> scale = Scale("log", bounds=(0, 100))
    >>> scale.backward(scale.forward(np.array([5.0, 50.0]))).round(6).tolist()
    [5.0, 50.0]
    """

    transform: str | None = None
    bounds: tuple[float, float] | None = None
    shift: float = 0.0

    def __post_init__(self) -> None:
        known = self.transform is None or isinstance(self.transform, str)
        if not known or self.transform not in (None, *TRANSFORMS):
            names = ", ".join(f'"{name}"' for name in TRANSFORMS)
            raise AnswersError(
                f"{quoted(self.transform)} is not known.",
                argument="transform",
                remedy=f"Use one of {names}.",
            )
        if self.bounds is not None:
            try:
                low, high = map(float, self.bounds)
            except (TypeError, ValueError):
                low = high = np.nan
            if not low < high:  # also catches NaN
                raise AnswersError(
                    f"found {quoted(self.bounds)}.",
                    argument="bounds",
                    remedy="Give (low, high) with low below high.",
                )
        low, high = self._ends
        if self.transform == "logit" and not np.isfinite(high - low):
            raise AnswersError(
                "logit needs two finite bounds, or none for 0 and 1.", argument="bounds"
            )

    @property
    def _ends(self) -> tuple[float, float]:
        low, high = (0.0, 1.0) if self.bounds is None else self.bounds
        return float(low), float(high)

    def outside(self, answers: Floats) -> Bools:
        """Return whether the transformation cannot take an answer."""
        if self.transform in LOGARITHMS:
            return answers <= 0
        if self.transform == "log1p":
            return answers <= -1
        if self.transform == "logit":
            low, high = self._ends
            return (answers <= low) | (answers >= high)
        return np.zeros(len(answers), dtype=bool)

    @property
    def domain(self) -> str:
        """The answers that the transformation takes, in words."""
        low, high = self._ends
        return {
            "log": "above 0 (log1p takes 0)",
            "proportional": "above 0 (log1p takes 0)",
            "log1p": "above -1",
            "logit": f"strictly between {low:g} and {high:g}",
        }.get(self.transform or "", "any number")

    def forward(self, answers: Floats) -> Floats:
        """Carry answers to the scale on which they are combined."""
        if self.transform in LOGARITHMS:
            return np.log(answers)
        if self.transform == "log1p":
            return np.log1p(answers)
        if self.transform == "logit":
            low, high = self._ends
            return np.log(answers - low) - np.log(high - answers)
        return answers

    def forward_truths(self, truths: Floats) -> Floats:
        """Carry truths to the scale: undo `inverse`."""
        values = self.forward(truths)
        return values - self.shift if self.shift else values

    def inverse(self, values: Floats) -> Floats:
        """Carry estimates back to the scale of the answers."""
        # exp of a huge value is infinite: held by the bound, or seen by the caller
        with np.errstate(over="ignore"):
            if self.transform in LOGARITHMS:
                return np.exp(values + self.shift)
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
        if self.transform in LOGARITHMS or self.transform == "log1p":
            with np.errstate(over="ignore"):  # the caller says that it is too large
                return np.exp(values + self.shift)
        if self.transform == "logit":
            low, high = self._ends
            small = np.exp(-np.abs(values))  # the slope is the same on both sides of 0
            return (high - low) * small / (1.0 + small) ** 2
        return np.ones(len(values))

    def distance_in_words(self, distance: float) -> str:
        """Write a distance on this scale; between logarithms it is a factor between answers."""
        if self.transform in LOGARITHMS:
            return f"a factor of {np.exp(min(distance, 700.0)):.3g}"
        own = "" if self.transform is None else f" on the scale of {self.transform}"
        return f"{distance:.3g}{own}"

    def unfit_truths(self, truths: Floats) -> Bools:
        """Return whether a known truth is impossible: outside the transformation or the bounds. NaN is unknown."""
        unfit = ~np.isnan(truths) & self.outside(truths)
        if self.bounds is None:
            return unfit
        low, high = self._ends
        return unfit | (truths < low) | (truths > high)


def unfit_truth(
    question: object, truth: float, scale: Scale, argument: str = "gold"
) -> AnswersError:
    """Build the error for an impossible truth."""
    rule = f"{scale.transform} needs truths {scale.domain}"
    if not scale.outside(np.array([truth])).any():
        low, high = map(float, scale.bounds or (-np.inf, np.inf))
        rule = f"the bounds are {low:g} and {high:g}"
    return AnswersError(
        f"question {quoted(question)} has the truth {truth:g}, but {rule}.",
        argument=argument,
        remedy="Fix or remove it, or change "
        + option("transform", None)
        + " or "
        + option("bounds", None)
        + ".",
    )


def check_truths(
    truths: Floats, scale: Scale, name_of: Callable[[int], object], argument: str = "gold"
) -> None:
    """Check that known truths, in answer units and NaN where unknown, are possible on a scale.

    `name_of` returns the id of a question, given its number; `argument` is what the message calls the truths.
    """
    unfit = scale.unfit_truths(truths)
    if unfit.any():
        first = int(np.argmax(unfit))
        raise unfit_truth(name_of(first), float(truths[first]), scale, argument)


@dataclass(frozen=True, eq=False)
class PanelScales:
    """The scale of each panel, as a view on blocks of answers.

    Attributes
    ----------
    scales : sequence of Scale
        The different scales.
    number : array or None
        Which of them each panel has; None: all have the first.
    """

    scales: Sequence[Scale]
    number: Ints | None = None

    @property
    def transforms(self) -> bool:
        """Whether any scale differs from that of the answers."""
        return any(scale.transform is not None for scale in self.scales)

    @property
    def first(self) -> Scale:
        """The scale of the first panel, that of a single problem."""
        return self.scales[0 if self.number is None else int(self.number[0])]

    def shifted(self, shift: Floats) -> PanelScales:
        """Return the scales with the shift of each panel, see `Scale.shift`."""
        of_panel = np.zeros(len(shift), dtype=np.int64) if self.number is None else self.number
        scales = [
            replace(self.scales[number], shift=float(value))
            for number, value in zip(of_panel, shift, strict=True)
        ]
        return PanelScales(scales, np.arange(len(scales)))

    def forward(self, block: Block, answers: Floats) -> Floats:
        """Carry an answer of each question to the scale of its panel."""
        return self._each(block, answers, Scale.forward)

    def forward_truths(self, block: Block, truths: Floats) -> Floats:
        """Carry the truth of each question to the scale of its panel."""
        return self._each(block, truths, Scale.forward_truths)

    def backward(self, block: Block, truths: Floats) -> Floats:
        """Carry a number of each question back, inside the bounds."""
        return self._each(block, truths, Scale.backward)

    def slope(self, block: Block, truths: Floats) -> Floats:
        """Return the slope of `backward` at a number of each question."""
        return self._each(block, truths, Scale.slope)

    def outside(self, block: Block) -> Bools:
        """Return whether the scale cannot take an answer, for each answer of a block."""
        return self._each(block, block.answers, Scale.outside) > 0

    def unfit_truths(self, block: Block, truths: Floats) -> Bools:
        """Return whether the known truth of a question is impossible on the scale of its panel."""
        return self._each(block, truths, Scale.unfit_truths) > 0

    def number_of(self, block: Block) -> Ints:
        """Return the number of the scale of each question."""
        if self.number is None:
            return np.zeros(block.n_questions, dtype=np.int64)
        return block.of_panel(self.number)

    def precision_factor(self, block: Block) -> Floats:
        """Return what the precision of each answer is multiplied by: to first order, the slope squared."""
        values = self._each(block, block.answers, Scale.forward)
        return self._each(block, values, Scale.slope) ** 2

    def view(self, block: Block, unit: float = 1.0) -> Block:
        """Return a block on the scale: values `t(answer) - t(centre)`, precisions times slope squared over `unit`.

        Transformations are increasing, so that the lower median of the answers stays the centre.
        """
        centre = self.forward(block, block.centre)
        values = self._each(block, block.answers, Scale.forward)
        precision = block.precision
        if precision is not None:
            precision = precision * self._each(block, values, Scale.slope) ** 2 / unit
        return replace(
            block,
            values=values - block.spread(centre),
            centre=centre,
            precision=precision,
            given=None,
        )

    def _each(
        self, block: Block, numbers: Floats, function: Callable[[Scale, Floats], Floats | Bools]
    ) -> Floats:
        """Apply a function of each panel's own scale to numbers per question, or per answer."""
        if len(self.scales) == 1:
            return np.asarray(function(self.scales[0], numbers), dtype=np.float64)
        borders = block.panel_questions
        if len(numbers) != block.n_questions:
            borders = block.indptr[borders].astype(np.int64)
        number = (
            np.zeros(1, dtype=np.int64) if self.number is None else self.number[block.panel_slice]
        )
        result = np.empty(len(numbers))
        for begin, end, which in zip(borders[:-1], borders[1:], number, strict=True):
            result[begin:end] = function(self.scales[which], numbers[begin:end])
        return result
