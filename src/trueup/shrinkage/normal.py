"""A normal prior, averaged over its unknown mean and variance.

    t_j ~ N(theta_j, c v_j),  theta_j ~ N(mu, tau2),  mu flat,  p(tau2) ~ 1 / (tau2 + v0)

with `v0` the harmonic mean of the variances and `c = nu / chi2` for variances that are estimates themselves. With
`w_j = 1 / (c v_j + tau2)`, `mu = sum w t / sum w` and `B_j = c v_j w_j`,

    log L(tau2, c) = 1/2 sum log w_j - 1/2 log sum w_j - 1/2 sum w_j (t_j - mu)^2
    e_j   = E[ mu + (1 - B_j)(t_j - mu) ]
    var_j = E[ c v_j (1 - B_j) + B_j^2 / sum w ] + Var[ mu + (1 - B_j)(t_j - mu) ]

where the expectations are over tau2 and c. There is no positive part to take, unequal variances need no special case,
and intervals include the uncertainty of the prior. With known equal variances this is minimax from five questions on
(Strawderman, Annals of Mathematical Statistics 1971; Berger and Strawderman, Annals of Statistics 1996); four
questions need the slower fall `(tau2 + v0)^-1/2`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.core.parameters import SMALLEST, number
from trueup.shrinkage.condense import condense
from trueup.shrinkage.contract import Panels, ShrinkRule
from trueup.shrinkage.panel_data import degrees_of_freedom, interval_variance
from trueup.shrinkage.quadrature import HIGHEST, PanelGrid, fit_grids, integrate, read_posterior
from trueup.shrinkage.tiles import CELLS
from trueup.shrinkage.units import PanelUnits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.core.arrays import Bools, Floats, Ints
    from trueup.shrinkage.contract import Posterior
    from trueup.shrinkage.quadrature import Integral, Moved, Sums
    from trueup.shrinkage.tiles import Positions

CAUTION = 1.0
LEAST = 4  # questions that a prior can be fitted on


@dataclass(frozen=True, eq=False)
class QuadraturePrior:
    """A normal prior for each panel, averaged over its unknown mean and variance.

    Attributes
    ----------
    grid, careful : PanelGrid
        For the estimates and for their variances, see `fit_grids`.
    caution : float
        Share of the step that is taken.
    """

    grid: PanelGrid
    careful: PanelGrid
    caution: float

    @property
    def usable(self) -> Bools:
        """Whether a panel is moved at all."""
        return self.grid.units.usable

    @property
    def mu(self) -> Floats:
        """Mean of the prior of each panel."""
        units = self.grid.units
        mean: Floats = (self.grid.nodes.weight * self.grid.beta).sum(axis=1)
        return units.centre + units.unit * mean

    @property
    def tau2(self) -> Floats:
        """Variance of the prior of each panel, its posterior mean."""
        return self.grid.units.unit**2 * self.grid.nodes.tau2

    @property
    def model(self) -> NDArray[np.str_]:
        """The prior of each panel: "normal", or "none" where the panel stays as it is."""
        return np.where(self.usable, "normal", "none")

    def posterior(
        self, x: Floats, v: Floats, *, panels: Ints | None = None, **extra: Any
    ) -> Posterior:
        """Move the aggregates.

        The variance is that of the careful grid, plus the squared distance of its estimate from the one returned.
        """
        grids, units = (self.grid, self.careful), self.grid.units
        return read_posterior(_read, grids, units, x, v, panels, extra, caution=self.caution)


def _read(grid: PanelGrid, rows: Ints, _: Positions, x: Floats, v: Floats) -> Moved:
    """Apply the grid to questions of some panels, panels x questions."""
    return grid.read(rows, x, v, grid.beta[rows, :, None], 1.0 / grid.precision[rows, :, None])


@dataclass(frozen=True)
class CautiousRule(ShrinkRule):
    """A rule that takes a share of the step of the normal prior."""

    caution: float = CAUTION

    def __post_init__(self) -> None:
        number("caution", self.caution, SMALLEST, 1.0)


@dataclass(frozen=True)
class Normal(CautiousRule):
    """A normal prior, averaged over its unknown mean and variance.

    Panels of up to three questions or without any variance stay as they are.

    Parameters
    ----------
    caution : float
        Share of the step that is taken, above 0 and up to 1. The target of an estimate, see `trueup.estimate`, takes
        less of it where crowds are known to have shrunk their answers already.
    """

    name = "normal"
    variance = "moderated"

    def fit(
        self, x: Floats, v: Floats, *, panels: Ints | None = None, **extra: Any
    ) -> QuadraturePrior:
        by_panel, x, v = Panels.of(x, v, panels)
        starts = by_panel.starts
        nu = degrees_of_freedom(extra.get("nu"), len(starts) - 1)

        def fit(v: Floats, c: Floats) -> PanelGrid:
            units = PanelUnits.fit(x, v, starts, least=LEAST)
            return PanelGrid.fit(
                lambda rows, _, t, u: _fit_tile(t, u, c[rows]),
                x,
                v,
                starts,
                units,
                fit_alike=lambda rows, _, t, u: _fit_alike(t, u[:, 0], c[rows]),
            )

        v_interval = interval_variance(v, extra.get("v_interval"))
        return QuadraturePrior(*fit_grids(fit, v, v_interval, nu), float(self.caution))


def _fit_tile(t: Floats, u: Floats, c: Floats) -> Integral:
    """Fit panels x questions in units of the panel; return the points, mu and the sum of w at each."""
    questions = t.shape[1]
    flat = 1.0 / u
    total = flat.sum(axis=1)
    middle = (flat * t).sum(axis=1) / total
    spread = (flat * (t - middle[:, None]) ** 2).sum(axis=1) / total
    points, variances, number = condense(t, u)
    sums = partial(_sums, points, variances, np.ones_like(t) if number is None else number)
    return _integrate(sums, questions, spread, np.median(u, axis=1), c)


def _fit_alike(t: Floats, u: Floats, c: Floats) -> Integral:
    """Fit panels of which each has one variance: mean and spread of its aggregates are all that counts."""
    questions = t.shape[1]
    middle = t.mean(axis=1, keepdims=True)
    rss = ((t - middle) ** 2).sum(axis=1, keepdims=True)

    def sums(s: Floats) -> tuple[Floats, Floats, tuple[Floats, ...]]:
        w = u[:, None] + s
        logs = np.log(w)
        np.divide(1.0, w, out=w)
        fit = -0.5 * ((questions - 1.0) * logs + np.log(questions))
        return fit, rss * w, (np.broadcast_to(middle, s.shape), questions * w)

    return _integrate(sums, questions, rss[:, 0] / questions, u, c)


def _integrate(sums: Sums, questions: int, spread: Floats, typical: Floats, c: Floats) -> Integral:
    """Integrate over the variance of the prior; `spread` is that of the aggregates, `typical` is a variance."""
    return integrate(
        sums,
        free=questions - 1.0,
        power=0.5 if questions == LEAST else 1.0,
        high=HIGHEST * np.maximum(spread, typical),
        c=c,
    )


def _sums(
    t: Floats, u: Floats, number: Floats, s: Floats
) -> tuple[Floats, Floats, tuple[Floats, ...]]:
    """Return the log likelihood without rss, rss, and mu and the sum of w, at each s of each panel.

    `number` is the number of questions that each stands for.
    """
    count, questions = t.shape
    fit, rss, mu, total = (np.empty(s.shape) for _ in range(4))
    at_once = max(1, CELLS // (count * questions))
    both = np.stack([number, number * t], axis=2)
    ones = number[:, :, None]
    w, r = (np.empty((count, min(at_once, s.shape[1]), questions)) for _ in range(2))
    for start in range(0, s.shape[1], at_once):
        here = slice(start, min(start + at_once, s.shape[1]))
        w, r = w[:, : here.stop - start], r[:, : here.stop - start]
        np.add(u[:, None, :], s[:, here, None], out=w)
        np.log(w, out=r)
        logs = (r @ ones)[..., 0]
        np.divide(1.0, w, out=w)
        sums = w @ both
        total[:, here] = sums[..., 0]
        mu[:, here] = sums[..., 1] / sums[..., 0]
        fit[:, here] = -0.5 * (logs + np.log(sums[..., 0]))
        # Around mu, since expanding the square loses digits if one question is known much better than the rest.
        np.subtract(t[:, None, :], mu[:, here, None], out=r)
        r *= r
        r *= w
        rss[:, here] = (r @ ones)[..., 0]
    return fit, rss, (mu, total)
