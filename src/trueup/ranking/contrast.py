"""A mean or a difference with its interval, on whatever it rests: labels, these judges, or judges like these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from trueup.ranking.labels import LabelledMean
    from trueup.ranking.pair import MeanDifference

#: What a number rests on.
LABELS, THESE, LIKE_THESE = "labels", "these judges", "judges like these"


@dataclass(frozen=True)
class Contrast:
    """A mean of a system, or a difference of two.

    Attributes
    ----------
    judged : MeanDifference
        What the judges say.
    labelled : LabelledMean or None
        What the labels say; None where there are too few.
    fixed : bool
        Whether it is about these judges rather than about judges like these.
    level : float
        Level of the interval.
    """

    judged: MeanDifference
    labelled: LabelledMean | None
    fixed: bool
    level: float

    @property
    def basis(self) -> str:
        """What the number rests on."""
        if self.labelled is not None:
            return LABELS
        return THESE if self.about_these else LIKE_THESE

    @property
    def about_these(self) -> bool:
        """Whether it is about these judges: asked for, or nothing is known about others."""
        return self.fixed or not self.judged.knows_judges

    @property
    def value(self) -> float:
        """The mean, or the difference; NaN where nothing is known."""
        return self.judged.value if self.labelled is None else self.labelled.value

    @property
    def std_error(self) -> float:
        """Its standard error; NaN where it is unknown."""
        if self.labelled is not None:
            return self.labelled.std_error
        return self.judged.std_error(fixed=self.about_these)

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of its interval; NaN where they are unknown."""
        if self.labelled is not None:
            return self.labelled.interval(self.level)
        return self.judged.interval(self.level, fixed=self.about_these)

    @property
    def half_width(self) -> float:
        """Half the width of the interval."""
        low, high = self.interval
        return (high - low) / 2

    @property
    def known(self) -> bool:
        """Whether there is an interval: otherwise nothing can be compared."""
        return bool(np.isfinite(self.std_error))

    def p_value(self, *, margin: float = 0.0, side: int = 0) -> float:
        """Return the probability of such a value if the mean were `margin`; see `MeanDifference.p_value`."""
        if self.labelled is not None:
            return self.labelled.p_value(margin=margin, side=side)
        return self.judged.p_value(fixed=self.about_these, margin=margin, side=side)
