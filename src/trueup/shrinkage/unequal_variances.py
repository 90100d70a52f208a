"""Shrinkage of aggregates with unequal variances: Morris, and Stein's unbiased risk estimate.

On sparse data, questions with few answers have larger variances and are moved further. Both rules use a normal prior
`N(mu, tau2)` and move an aggregate by `B_j = v_j / (v_j + tau2)`, up to a correction; they find tau2 differently.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.shrinkage.contract import Panels, Posterior, ShrinkRule

if TYPE_CHECKING:
    from trueup.core.arrays import Floats, Ints

ROUNDS = 500
TOLERANCE = 1e-13
GRID = 33  # candidates of tau2 in each refinement of the search
REFINEMENTS = 4
BISECTIONS = 60
NEARLY_ONE = 1.0 - 1e-9
LEAST = 1e-290  # a smaller variance has no inverse that can be added up


@dataclass(frozen=True, eq=False)
class NormalPrior:
    """A normal prior for each panel.

    Attributes
    ----------
    mu, tau2 : arrays
        Mean and variance of the true values of each panel.
    factor : array
        Factor on the shrinkage `v / (v + tau2)` that corrects for having estimated tau2; 0 for a panel that stays.
    size : array
        Number of questions the prior was fitted on.
    precision : array
        Sum of `1 / (v + tau2)` over these questions: how well mu is known.
    """

    mu: Floats
    tau2: Floats
    factor: Floats
    size: Floats
    precision: Floats

    def posterior(
        self, x: Floats, v: Floats, *, panels: Ints | None = None, **extra: Any
    ) -> Posterior:
        """Move the aggregates.

        Variance: `v (1 - B)`, plus two terms for the uncertainty of mu and of tau2 (Morris 1983),
        `B^2 / sum 1/(v+tau2)` and `2 B^2 (x - mu)^2 / (m - 3)`.
        """
        by_panel, x, v = Panels.of(x, v, panels, fitted_on=len(self.mu))
        mu, factor = by_panel.repeat(self.mu), by_panel.repeat(self.factor)
        total = v + by_panel.repeat(self.tau2)
        b = factor * np.divide(v, total, out=np.zeros(len(v)), where=total > 0)
        mean = x - b * (x - mu)
        size = np.maximum(by_panel.repeat(self.size), 4.0)
        certain = np.maximum(by_panel.repeat(self.precision), np.finfo(float).tiny)
        variance = v * (1.0 - b) + b**2 / certain + 2.0 * b**2 * (x - mu) ** 2 / (size - 3.0)
        return Posterior(mean, np.where(b == 0.0, v, variance), b)


@dataclass(frozen=True)
class Morris(ShrinkRule):
    """Morris' empirical-Bayes estimator for unequal variances (JASA 1983).

    Iterated to convergence, with `W_j = 1 / (v_j + tau2)`:

        mu   = sum W x / sum W
        tau2 = max(0, sum_j W_j ( m/(m-1) (x_j - mu)^2 - v_j ) / sum W_j)
        b_j  = (m-3)/(m-1) * v_j / (v_j + tau2)

    With equal variances and SS >= (m-1) v it is eq. (1) of the paper.
    """

    name = "morris"

    def fit(self, x: Floats, v: Floats, *, panels: Ints | None = None, **extra: Any) -> NormalPrior:
        by_panel, x, v = Panels.of(x, v, panels)
        size = by_panel.sizes
        mean, ss = by_panel.centre(x)
        usable = (size > 3) & (ss > 0) & (by_panel.sum(v) > 0)
        more = size / np.maximum(size - 1.0, 1.0)
        tau2 = np.maximum(ss / np.maximum(size - 1.0, 1.0) - by_panel.mean(v), 0.0)
        mu = mean
        # Variances of 0 with tau2 = 0 would have infinite weight.
        floor = by_panel.repeat(np.where(usable, 1e-12 * by_panel.mean(v), 1.0))
        going = usable.copy()
        for _ in range(ROUNDS):
            w = 1.0 / np.maximum(v + by_panel.repeat(tau2), floor)
            total = np.maximum(by_panel.sum(w), np.finfo(float).tiny)
            mu = np.where(going, by_panel.sum(w * x) / total, mu)
            error = by_panel.repeat(more) * (x - by_panel.repeat(mu)) ** 2 - v
            new = np.maximum(by_panel.sum(w * error) / total, 0.0)
            moved = np.abs(new - tau2) > TOLERANCE * (new + by_panel.mean(v))
            tau2 = np.where(going, new, tau2)
            going &= moved
            if not going.any():
                break
        factor = np.where(usable, (size - 3.0) / np.maximum(size - 1.0, 1.0), 0.0)
        w = 1.0 / np.maximum(v + by_panel.repeat(tau2), floor)
        return NormalPrior(mu, tau2, factor, size, by_panel.sum(w))


@dataclass(frozen=True)
class Sure(ShrinkRule):
    """The prior variance that minimises Stein's unbiased estimate of the risk.

    Xie, Kou and Brown, SURE estimates for a heteroscedastic hierarchical model (JASA 2012), shrinking toward the plain
    mean: `SURE(tau2) = sum_j [ b_j^2 (x_j - mean)^2 + v_j (1 - 2 (1 - 1/m) b_j) ]`, `b_j = v_j / (v_j + tau2)`.
    """

    name = "sure"

    def fit(self, x: Floats, v: Floats, *, panels: Ints | None = None, **extra: Any) -> NormalPrior:
        by_panel, x, v = Panels.of(x, v, panels)
        size = by_panel.sizes
        mean, ss = by_panel.centre(x)
        typical = by_panel.mean(v)
        usable = (size > 3) & (ss > 0) & (typical > 0)
        unit = np.where(usable, typical, 1.0)
        with np.errstate(over="ignore"):  # a candidate far above the largest variances is none
            tau2 = unit * self._search(by_panel, x - by_panel.repeat(mean), v, unit)
        tau2 = np.where(usable, tau2, 0.0)
        total = np.maximum(
            v + by_panel.repeat(tau2), np.maximum(1e-12 * by_panel.repeat(unit), LEAST)
        )
        return NormalPrior(mean, tau2, usable.astype(np.float64), size, by_panel.sum(1.0 / total))

    @staticmethod
    def _search(by_panel: Panels, away: Floats, v: Floats, unit: Floats) -> Floats:
        """Find the best `tau2 / unit` of each panel on a grid that is refined around its best point.

        In `s = t / (1 + t)` with `t = tau2 / unit`, which runs from 0 (all the way to the mean) to 1 (no shrinkage).
        """
        shrink = 1.0 - 1.0 / np.maximum(by_panel.sizes, 1.0)

        def risk(s: Floats) -> Floats:
            tau2 = by_panel.repeat(unit * s / np.maximum(1.0 - s, 1e-15))
            total = v + tau2
            b = np.divide(v, total, out=np.zeros(len(v)), where=total > 0)
            return by_panel.sum(b * b * away**2 + v * (1.0 - 2.0 * by_panel.repeat(shrink) * b))

        def slope(s: Floats) -> Floats:
            """Return the derivative of the risk by tau2, in some unit: at a flat minimum its sign is more accurate."""
            total = v + by_panel.repeat(unit * s / (1.0 - s))
            b = np.divide(v, total, out=np.zeros(len(v)), where=total > 0)
            # Only its sign counts, so that each part is taken as a share: the inverse of a small variance need not be
            # a number, nor its product with a large square.
            gain = by_panel.repeat(shrink) * v - b * away**2
            size = by_panel.sum(np.abs(gain))
            gain /= by_panel.repeat(np.where(size > 0, size, 1.0))
            total /= by_panel.repeat(unit)
            return by_panel.sum(b * np.divide(gain, total, out=np.zeros(len(v)), where=total > 0))

        low, high = np.zeros(len(unit)), np.full(len(unit), NEARLY_ONE)
        best, column = low, np.arange(len(unit))
        for _ in range(REFINEMENTS):
            grid = low + (high - low) * np.linspace(0.0, 1.0, GRID)[:, None]
            lowest = np.argmin(np.stack([risk(s) for s in grid]), axis=0)
            best = grid[lowest, column]
            low = grid[np.maximum(lowest - 1, 0), column]
            high = grid[np.minimum(lowest + 1, GRID - 1), column]
        inside = (slope(low) < 0) & (slope(high) > 0)
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            falling = slope(middle) < 0
            low, high = np.where(falling, middle, low), np.where(falling, high, middle)
        best = np.where(inside, 0.5 * (low + high), best)
        return best / (1.0 - best)
