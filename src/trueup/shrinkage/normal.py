"""A normal prior, averaged over what is not known of it.

    t_j ~ N(theta_j, c v_j),  theta_j ~ N(mu, tau2),  mu flat,  p(tau2) ~ 1 / (tau2 + v0)

with `v0` the harmonic mean of the variances and `c = nu / chi2` for variances that are estimates themselves. With
`w_j = 1 / (c v_j + tau2)`, `mu = sum w t / sum w` and `B_j = c v_j w_j`,

    log L(tau2, c) = 1/2 sum log w_j - 1/2 log sum w_j - 1/2 sum w_j (t_j - mu)^2
    e_j   = E[ mu + (1 - B_j)(t_j - mu) ]
    var_j = E[ c v_j (1 - B_j) + B_j^2 / sum w ] + Var[ mu + (1 - B_j)(t_j - mu) ]

where the expectations are over tau2 and c. There is no positive part to take, unequal variances need nothing special,
and the interval knows that the prior was estimated. With known equal variances this is minimax from five questions on
(Strawderman, Annals of Mathematical Statistics 1971; Berger and Strawderman, Annals of Statistics 1996); four
questions need the slower fall `(tau2 + v0)^-1/2`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import TrueupError, quoted
from trueup.shrinkage.contract import Panels, Posterior, ShrinkRule
from trueup.shrinkage.quadrature import (
    CELLS,
    HIGHEST,
    POINTS,
    Nodes,
    PanelUnits,
    integrate,
    interval_variance,
    levels,
    per_panel,
    posterior,
    read_nodes,
    tiles,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.core.arrays import Bools, Floats, Ints

CAUTION = 0.8
LEAST = 4  # questions that a prior can be fitted on


@dataclass(frozen=True, eq=False)
class Grid:
    """The quadrature of each panel, in the units of the panel.

    Attributes
    ----------
    scale : PanelUnits
        The units.
    nodes : Nodes
        Points and weights, panels x points.
    mu, precision : arrays
        Mean of the prior at each point, and the sum of `w` behind it.
    """

    scale: PanelUnits
    nodes: Nodes
    mu: Floats
    precision: Floats

    @classmethod
    def fit(cls, x: Floats, v: Floats, panels: Ints, c: Floats) -> Grid:
        """Fit all panels."""
        count = len(panels) - 1
        scale = PanelUnits.ragged(x, v, panels, least=LEAST)
        s, weight, c_mean, mu, precision = (np.zeros((count, POINTS)) for _ in range(5))
        room = max(CELLS // POINTS, int(np.diff(panels).max(initial=0)))
        for rows, at in tiles(panels, room, scale.usable):
            here, shape = scale.rows(rows), (len(rows), -1)
            nodes, (mu[rows], precision[rows]) = fit_normal(
                here.place(x[at].reshape(shape)), here.spread(v[at].reshape(shape)), c[rows]
            )
            s[rows], weight[rows], c_mean[rows] = nodes.s, nodes.weight, nodes.c
        return cls(scale, Nodes(s, weight, c_mean), mu, precision)

    def read(
        self, rows: Ints, at: Ints | slice, x: Floats, v: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Return mean, variance and shrinkage of questions, panels x questions, of some usable panels."""
        scale, nodes = self.scale.rows(rows), self.nodes.rows(rows)
        mu, behind = self.mu[rows, :, None], 1.0 / self.precision[rows, :, None]
        return read_nodes(scale, nodes, x, v, mu, behind)


def fit_normal(t: Floats, u: Floats, c: Floats) -> tuple[Nodes, tuple[Floats, ...]]:
    """Fit panels x questions in units of the panel; returns the nodes, mu and the sum of w at each."""
    questions = t.shape[1]
    flat = 1.0 / u
    total = flat.sum(axis=1)
    middle = (flat * t).sum(axis=1) / total
    spread = (flat * (t - middle[:, None]) ** 2).sum(axis=1) / total

    def sums(s: Floats) -> tuple[Floats, Floats, tuple[Floats, ...]]:
        return normal_sums(t, u, s)

    return integrate(
        sums,
        free=questions - 1.0,
        power=0.5 if questions == LEAST else 1.0,
        high=HIGHEST * np.maximum(spread, np.median(u, axis=1)),
        c=c,
    )


def normal_sums(t: Floats, u: Floats, s: Floats) -> tuple[Floats, Floats, tuple[Floats, ...]]:
    """Return the log likelihood without rss, rss, and mu and the sum of w, at each s of each panel."""
    count, questions = t.shape
    fit, rss, mu, total = (np.empty(s.shape) for _ in range(4))
    at_once = max(1, CELLS // (count * questions))
    both = np.stack([np.ones_like(t), t], axis=2)
    ones = np.ones(questions)
    w, r = (np.empty((count, min(at_once, s.shape[1]), questions)) for _ in range(2))
    for start in range(0, s.shape[1], at_once):
        here = slice(start, min(start + at_once, s.shape[1]))
        w, r = w[:, : here.stop - start], r[:, : here.stop - start]
        np.add(u[:, None, :], s[:, here, None], out=w)
        np.log(w, out=r)
        logs = r @ ones
        np.divide(1.0, w, out=w)
        sums = w @ both
        total[:, here] = sums[..., 0]
        mu[:, here] = sums[..., 1] / sums[..., 0]
        fit[:, here] = -0.5 * (logs + np.log(sums[..., 0]))
        # Around mu and not by expanding the square: one question known much better than the rest costs no digits.
        np.subtract(t[:, None, :], mu[:, here, None], out=r)
        r *= r
        r *= w
        rss[:, here] = r @ ones
    return fit, rss, (mu, total)


@dataclass(frozen=True, eq=False)
class QuadraturePrior:
    """A normal prior for each panel, averaged over its unknown mean and variance.

    Attributes
    ----------
    grid : Grid
        For the estimates, fitted with `v` and, where these are estimates, all values of c.
    careful : Grid
        For the variances, fitted with `v_interval` taken as known. The same grid where nothing differs.
    caution : float
        Share of the step that is taken.
    size : array
        Questions the prior was fitted on.
    """

    grid: Grid
    careful: Grid
    caution: float
    size: Floats

    @property
    def usable(self) -> Bools:
        """Whether a panel is moved at all."""
        return self.grid.scale.usable

    @property
    def mu(self) -> Floats:
        """Mean of the prior of each panel."""
        scale = self.grid.scale
        mean: Floats = (self.grid.nodes.weight * self.grid.mu).sum(axis=1)
        return scale.centre + scale.unit * mean

    @property
    def tau2(self) -> Floats:
        """Variance of the prior of each panel, its posterior mean."""
        nodes = self.grid.nodes
        mean: Floats = (nodes.weight * nodes.s * nodes.c).sum(axis=1)
        return self.grid.scale.unit**2 * mean

    @property
    def model(self) -> NDArray[np.str_]:
        """What became of each panel: "normal", or "none" where it stays as it is."""
        return np.where(self.usable, "normal", "none")

    def posterior(
        self, x: Floats, v: Floats, *, panels: Ints | None = None, **known: Any
    ) -> Posterior:
        """Move the aggregates.

        The variance is that of the careful grid, plus the squared distance of its estimate from the one returned.
        """
        by_panel, x, v = Panels.of(x, v, panels)
        if len(self.size) != len(by_panel.sizes):
            raise TrueupError(
                f"panels: found {len(by_panel.sizes)}, the prior was fitted on {len(self.size)}."
            )
        v_interval = interval_variance(v, known.get("v_interval"))
        careful = None if self.careful is self.grid else self.careful.read
        return posterior(
            self.grid.read,
            careful,
            x,
            v,
            v_interval,
            by_panel.starts,
            usable=self.usable,
            caution=self.caution,
        )


@dataclass(frozen=True)
class Normal(ShrinkRule):
    """A normal prior, averaged over its unknown mean and variance.

    Panels of up to three questions or without any variance stay as they are.

    Parameters
    ----------
    caution : float
        Share of the step that is taken, above 0 and up to 1. Workers who all see
        differences too small cannot be found out from their answers, and then every step does harm; 0.8 keeps 96 % of
        the gain where the full step is right.
    """

    caution: float = CAUTION

    name = "normal"
    variance = "moderated"

    def __post_init__(self) -> None:
        check_caution(self.caution)

    def fit(
        self, x: Floats, v: Floats, *, panels: Ints | None = None, **known: Any
    ) -> QuadraturePrior:
        by_panel, x, v = Panels.of(x, v, panels)
        count = len(by_panel.sizes)
        nu = known.get("nu")
        c = levels(per_panel(np.inf if nu is None else nu, count, "nu"))
        v_interval = interval_variance(v, known.get("v_interval"))
        grid = Grid.fit(x, v, by_panel.starts, c)
        careful = grid
        if v_interval is not v or c.shape[1] > 1:
            careful = Grid.fit(x, v_interval, by_panel.starts, np.ones((count, 1)))
        return QuadraturePrior(grid, careful, float(self.caution), by_panel.sizes)


def check_caution(caution: float) -> None:
    """Refuse a share that is not in (0, 1]."""
    if not isinstance(caution, int | float | np.number) or not 0.0 < caution <= 1.0:
        raise TrueupError(f"caution: found {quoted(caution)}, must be above 0 and at most 1.")
