"""The second step of the paper: EBE, Stein, EB^alpha and MEBE, each plain or with positive part.

All move every aggregate by the same share b of its distance from a centre; `SS` is the sum of squares of the aggregates
around their mean, `s2` their common variance:

========  =======================  ==============================
rule      centre                   b
========  =======================  ==============================
EBE       mean                     (m - 3) s2 / SS
EB^alpha  mean                     alpha s2 / SS
Stein     0                        (m - 2) s2 / sum x^2
MEBE      mean                     s2 / (s02 + s2), s02 = max(SS/m - s2, 0)
========  =======================  ==============================

Plain, b may exceed 1 and reverse the order of the questions; the positive part stops at 1 and is never worse for a
known variance. Ben Shabat, Meir and Azriel, Empirical Bayes approach to Truth Discovery problems (arXiv 2206.04816);
Efron and Morris, JASA 1973; James and Stein 1961.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.core.parameters import LARGEST, number, yes_or_no
from trueup.shrinkage.contract import Panels, Posterior, ShrinkRule

if TYPE_CHECKING:
    from trueup.core.arrays import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class LinearPrior:
    """A centre and a share for each panel: `x -> centre + (1 - b)(x - centre)`.

    Attributes
    ----------
    centre, b : arrays
        One number per panel.
    size : array
        Number of questions the prior was fitted on.
    normal : bool
        Whether b is the shrinkage of a normal prior, so that a posterior variance can be given.
    """

    centre: Floats
    b: Floats
    size: Floats
    normal: bool

    def posterior(
        self, x: Floats, v: Floats, *, panels: Ints | None = None, **extra: Any
    ) -> Posterior:
        """Move the aggregates.

        The variance is Morris' (1983) for a normal prior with estimated mean and variance,
        `v (1 - b (m-1)/m) + 2 b^2 (x - centre)^2 / (m - 3)`.
        """
        by_panel, x, v = Panels.of(x, v, panels, fitted_on=len(self.b))
        b, centre = by_panel.repeat(self.b), by_panel.repeat(self.centre)
        # From the aggregate, so that b = 0 leaves it untouched to the last digit.
        mean = np.where(b == 1.0, centre, x - b * (x - centre))
        v_interval = extra.get("v_interval")
        unmoved = v if v_interval is None else np.broadcast_to(v_interval, v.shape)
        if not self.normal:
            return Posterior(mean, np.where(b == 0.0, unmoved, np.nan), b)
        size = np.maximum(by_panel.repeat(self.size), 4.0)
        variance = v * (1.0 - b * (size - 1.0) / size)
        variance += 2.0 * b**2 * (x - centre) ** 2 / (size - 3.0)
        return Posterior(mean, np.where(b == 0.0, unmoved, variance), b)


@dataclass(frozen=True)
class Identity(ShrinkRule):
    """No second step."""

    name = "none"

    def fit(self, x: Floats, v: Floats, *, panels: Ints | None = None, **extra: Any) -> LinearPrior:
        by_panel, x, _ = Panels.of(x, v, panels)
        return LinearPrior(
            by_panel.mean(x), np.zeros(len(by_panel.sizes)), by_panel.sizes, normal=False
        )


@dataclass(frozen=True)
class EBE(ShrinkRule):
    """The empirical-Bayes estimator of the paper, eq. (1), or EB^alpha.

    Panels of up to three questions, with equal aggregates or with variance 0, stay as they are. Unequal variances are
    replaced by their mean.

    Parameters
    ----------
    alpha : float, optional
        Default: m - 3.
    positive : bool
        Take the positive part: never move an aggregate past the mean. False is faithful to the paper.
    """

    alpha: float | None = None
    positive: bool = False

    name = "paper"
    variance = "paper"

    def __post_init__(self) -> None:
        if self.alpha is not None:
            number("alpha", self.alpha, -LARGEST)
        yes_or_no("positive", self.positive)

    def fit(self, x: Floats, v: Floats, *, panels: Ints | None = None, **extra: Any) -> LinearPrior:
        by_panel, x, v = Panels.of(x, v, panels)
        size = by_panel.sizes
        mean, ss = by_panel.centre(x)
        alpha = size - 3.0 if self.alpha is None else np.full(len(size), self.alpha)
        b = _share(alpha * by_panel.mean(v), ss, size > 3, self.positive)
        return LinearPrior(mean, b, size, normal=self.positive and self.alpha is None)


@dataclass(frozen=True)
class Stein(ShrinkRule):
    """James and Stein's estimator: toward 0, for more than two questions."""

    positive: bool = False

    name = "stein"
    variance = "paper"

    def __post_init__(self) -> None:
        yes_or_no("positive", self.positive)

    def fit(self, x: Floats, v: Floats, *, panels: Ints | None = None, **extra: Any) -> LinearPrior:
        by_panel, x, v = Panels.of(x, v, panels)
        size = by_panel.sizes
        b = _share((size - 2.0) * by_panel.mean(v), by_panel.sum(x**2), size > 2, self.positive)
        return LinearPrior(np.zeros(len(size)), b, size, normal=False)


@dataclass(frozen=True)
class MEBE(ShrinkRule):
    """The variant with a moment estimate of the prior variance: `b = min(1, m s2 / SS)`.

    It equals the positive part of EB^alpha with alpha = m and shrinks too much if there are few questions.
    """

    name = "mebe"
    variance = "paper"

    def fit(self, x: Floats, v: Floats, *, panels: Ints | None = None, **extra: Any) -> LinearPrior:
        by_panel, x, v = Panels.of(x, v, panels)
        size = by_panel.sizes
        mean, ss = by_panel.centre(x)
        b = _share(size * by_panel.mean(v), ss, size > 3, positive=True)
        return LinearPrior(mean, b, size, normal=False)


def _share(above: Floats, below: Floats, enough: Bools, positive: bool) -> Floats:
    """Return `above / below`, 0 where a panel has too few questions or no spread."""
    usable = enough & (below > 0) & (above != 0)
    with np.errstate(over="ignore"):
        b = np.divide(above, below, out=np.zeros(len(below)), where=usable)
    b = np.where(np.isfinite(b), b, 1.0)  # the spread is negligible
    return np.minimum(b, 1.0) if positive else b
