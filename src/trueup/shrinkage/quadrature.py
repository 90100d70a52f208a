"""Averages over the unknown prior variance of one panel or many.

The model is `t_j ~ N(theta_j, c v_j)`, `theta_j ~ N(centre_j, tau2)`, where the centres are linear in a few unknown
coefficients `beta` with a flat prior (one common mean, one mean for each group, a regression), `p(tau2)` falls like
`1 / (tau2 + v0)`, and c, the factor by which the variances may be wrong, takes a few equally likely values.

With `s = tau2 / c` and `w_j = 1 / (v_j + s)` every sum over questions depends on s alone:

    log L(s, c) = 1/2 sum log w - 1/2 log det(Z' W Z) - rss_w / (2 c) - (m - r)/2 log c

with r the number of coefficients. So does the shrinkage `B_j = v_j w_j`: the double integral over tau2 and c is a
single one over s, with weights that are sums over c. It is taken in log s by the trapezoidal rule, on a range narrowed
to where the density is.

All numbers here are in the units of a panel, see `PanelUnits`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from trueup.core.interpolation import Interpolant
from trueup.shrinkage.contract import Panels, Posterior
from trueup.shrinkage.panel_data import interval_variance
from trueup.shrinkage.tiles import CELLS, alike, side_by_side, tiles, uncut_tiles

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trueup.core.arrays import Floats, Ints
    from trueup.shrinkage.tiles import Positions, Tile
    from trueup.shrinkage.units import PanelUnits

POINTS = 40  # of the grid in log s
LOWEST, HIGHEST = 1e-3, 1e4  # ends of the grid, relative to v0 and to the spread of the aggregates
DEPTH = 14.0  # log units below the peak at which the density is negligible
ENOUGH = 10  # points above that depth which resolve the density
NARROWINGS = 5
LEVELS = 7  # values of c
INTERPOLATED, DEGREE = 64, 20  # panels from which on these values are interpolated, and the degree
ALIKE = CELLS // 8  # questions in a tile of panels in which all variances are equal
EXACT = 300.0  # degrees of freedom from which on a variance counts as known

Fitted = TypeVar("Fitted")
#: Mean, variance and shrinkage of questions, panels x questions.
Moved: TypeAlias = "tuple[Floats, Floats, Floats]"
#: Applies something fitted to a tile: the numbers of its panels, the positions of its questions, and their x and v.
Read: TypeAlias = "Callable[[Fitted, Ints, Positions, Floats, Floats], Moved]"
#: Sums over questions at values of s (panels x points): log likelihood without rss, rss, and what was fitted there.
Sums: TypeAlias = "Callable[[Floats], tuple[Floats, Floats, tuple[Floats, ...]]]"
#: The points of some panels, and what was fitted at them.
Integral: TypeAlias = "tuple[Nodes, tuple[Floats, ...]]"


def levels(nu: Floats) -> Floats:
    """Return equally likely values of c for each panel, `nu / chi2` with nu + 4 degrees of freedom.

    The four additional degrees give the classical factor `nu / (nu + 2)` of an estimated variance. All values are 1
    above `EXACT` degrees of freedom; if that holds for every panel there is only one value.
    """
    estimated = nu <= EXACT
    if not estimated.any():
        return np.ones((len(nu), 1))
    some = np.where(estimated, nu, 1.0)
    interpolated = len(nu) > INTERPOLATED and some.min() >= 1.0
    c = _levels()((some + 4.0) ** -0.5) if interpolated else _exact_levels(some)
    return np.where(estimated[:, None], c, 1.0)


def _exact_levels(nu: Floats) -> Floats:
    from scipy.special import gammaincinv

    middle = (np.arange(LEVELS) + 0.5) / LEVELS
    c: Floats = nu[:, None] / (2.0 * gammaincinv(nu[:, None] / 2.0 + 2.0, middle))
    return c


@lru_cache(maxsize=1)
def _levels() -> Interpolant:
    """Return the values of c as functions of `(nu + 4)^-1/2`, in whose powers quantiles of chi2 can be written."""
    low, high = (EXACT + 4.0) ** -0.5, (1.0 + 4.0) ** -0.5
    return Interpolant.of(lambda x: _exact_levels(x**-2.0 - 4.0), low, high, DEGREE)


@dataclass(frozen=True, eq=False)
class Nodes:
    """The points of the quadrature, panels x points.

    Attributes
    ----------
    s : array
        Prior variance relative to c.
    weight : array
        Posterior probability, sums to 1 over the points.
    c : array
        Expectation of c given s.
    """

    s: Floats
    weight: Floats
    c: Floats

    @property
    def tau2(self) -> Floats:
        """Posterior mean of the prior variance of each panel."""
        mean: Floats = (self.weight * self.s * self.c).sum(axis=1)
        return mean


@dataclass(frozen=True, eq=False)
class PanelGrid:
    """The quadrature of each panel, with the centre of the prior fitted at each point.

    Attributes
    ----------
    units : PanelUnits
        Units of each panel.
    nodes : Nodes
        Points and weights, panels x points.
    beta : array
        Coefficients of the centre, panels x points (x coefficients) or groups x points.
    precision : array
        The sum of `w` behind each; for a regression the inverse of the Cholesky factor of `Z'WZ`.
    """

    units: PanelUnits
    nodes: Nodes
    beta: Floats
    precision: Floats

    @classmethod
    def empty(cls, units: PanelUnits, *shapes: tuple[int, ...]) -> PanelGrid:
        """Return a grid to be filled, with the shapes of `beta` and `precision`."""
        nodes = Nodes(*(np.zeros((len(units.centre), POINTS)) for _ in range(3)))
        return cls(units, nodes, *(np.zeros(shape) for shape in shapes))

    def put(self, panels: Ints, rows: Ints, integral: Integral) -> None:
        """Fill in the points of some panels, and what was fitted there in some rows of `beta` and `precision`."""
        nodes, (self.beta[rows], self.precision[rows]) = integral
        self.nodes.s[panels], self.nodes.weight[panels] = nodes.s, nodes.weight
        self.nodes.c[panels] = nodes.c

    @classmethod
    def fit(
        cls,
        fit: Callable[[Ints, Positions, Floats, Floats], Integral],
        x: Floats,
        v: Floats,
        starts: Ints,
        units: PanelUnits,
        *,
        beta: tuple[int, ...] = (),
        precision: tuple[int, ...] = (),
        entries: int = CELLS // POINTS,
        fit_alike: Callable[[Ints, Positions, Floats, Floats], Integral] | None = None,
    ) -> PanelGrid:
        """Fit all usable panels tile by tile.

        Parameters
        ----------
        fit : function
            Fits a tile: the numbers of its panels, the positions of its questions, and their aggregates and variances
            in units, panels x questions.
        fit_alike : function, optional
            The same for panels in which all variances are equal, where that is quicker.
        beta, precision : tuples of int
            Shapes of the arrays fitted at each point.
        entries : int
            Questions in a tile.
        """
        shape = len(starts) - 1, POINTS
        grid = cls.empty(units, (*shape, *beta), (*shape, *precision))
        parts = [(fit, entries, units.usable)]
        if fit_alike is not None:
            one = alike(v, starts)
            parts = [
                (fit, entries, units.usable & ~one),
                (fit_alike, ALIKE, units.usable & one),
            ]
        for fit_tile, size, mine in parts:
            for rows, positions in uncut_tiles(starts, size, mine):
                t, u = units.standardise(rows, x[positions], v[positions])
                grid.put(rows, rows, fit_tile(rows, positions, t, u))
        return grid

    def read(
        self, rows: Ints, x: Floats, v: Floats, centre: Floats, centre_variance: Floats
    ) -> Moved:
        """Return mean, variance and shrinkage of questions, panels x questions.

        Parameters
        ----------
        rows : array
            Numbers of the panels.
        x, v : arrays
            Aggregates and variances, panels x questions.
        centre, centre_variance : arrays
            What the prior expects of each question at each point, and the variance of that relative to c: panels x
            points x questions, or with one question that stands for all.
        """
        nodes = self.nodes
        s, p, c = nodes.s[rows, :, None], nodes.weight[rows, None], nodes.c[rows, None]
        t, u = self.units.standardise(rows, x, v)
        if centre.shape[2] == 1 and (u == u[:, :1]).all():
            moved = self._read_alike(rows, t, u[:, :1], centre[..., 0], centre_variance[..., 0])
            return *self.units.restore(rows, *moved[:2]), moved[2]
        w = u[:, None, :] + s
        np.divide(1.0, w, out=w)
        e = s * t[:, None, :]
        e += centre * u[:, None, :]
        # Both terms have the sign of what they weigh: nothing cancels, however far out an aggregate lies.
        e *= w
        mean = (p @ e)[:, 0]
        e -= mean[:, None, :]
        e *= e
        sums = np.concatenate([p, p * c * nodes.s[rows, None]], axis=1) @ w
        variance = u * sums[:, 1] + (p @ e)[:, 0]
        # A share is squared, since u itself may be too large for a square.
        w *= u[:, None, :]
        w *= w
        w *= centre_variance
        variance += ((p * c) @ w)[:, 0]
        return *self.units.restore(rows, mean, variance), np.minimum(u * sums[:, 0], 1.0)

    def _read_alike(
        self, rows: Ints, t: Floats, u: Floats, centre: Floats, centre_variance: Floats
    ) -> Moved:
        """Return the same in units, where each panel has one variance: sums over points serve all of its questions."""
        nodes = self.nodes
        s, p, c = nodes.s[rows], nodes.weight[rows], nodes.c[rows]
        w = 1.0 / (u + s)
        b, kept = u * w, s * w

        def expected(values: Floats) -> Floats:
            mean: Floats = np.einsum("pg,pg->p", p, values)[:, None]
            return mean

        # At each point a question moves to `kept t + from_centre`.
        from_centre = b * centre
        slope, level = expected(kept), expected(from_centre)
        kept -= slope
        from_centre -= level
        variance = u * expected(c * s * w) + expected(c * b * b * centre_variance)
        around = t * (t * expected(kept * kept) + 2.0 * expected(kept * from_centre))
        around += expected(from_centre * from_centre)
        shrinkage = np.broadcast_to(np.minimum(expected(b), 1.0), t.shape)
        return slope * t + level, variance + np.maximum(around, 0.0), shrinkage


def fit_grids(
    fit: Callable[[Floats, Floats], PanelGrid], v: Floats, v_interval: Floats, nu: Floats
) -> tuple[PanelGrid, PanelGrid]:
    """Return a grid for estimates and one for intervals; the same one where nothing differs.

    `fit` takes variances and values of c. The grid for estimates is fitted with `v` and, where these are estimates, all
    values of c; the one for intervals with `v_interval` taken as known.
    """
    c = levels(nu)
    grid = fit(v, c)
    if v_interval is v and c.shape[1] == 1:
        return grid, grid
    return grid, fit(v_interval, np.ones((len(nu), 1)))


def integrate(
    sums: Sums, *, free: float | Floats, power: float, high: Floats, c: Floats
) -> Integral:
    """Return the points of the quadrature for each panel and what `sums` fitted at them.

    Parameters
    ----------
    sums : function
        See `Sums`.
    free : float or array
        Questions less coefficients, m - r.
    power : float
        Power of the prior `(tau2 + v0)^-power`.
    high : array
        Upper end of the grid of each panel.
    c : array
        Equally likely values, panels x values.
    """
    low, high = np.full(len(high), np.log(LOWEST)), np.log(high)
    steps = np.linspace(0.0, 1.0, POINTS)
    at_zero = np.ones(len(high), dtype=bool)
    narrow = np.ones(len(high), dtype=bool)
    for turn in range(NARROWINGS):
        log_s = low[:, None] + (high - low)[:, None] * steps
        s = np.exp(log_s)
        fit, rss, fitted = sums(s)
        density, c_mean = _density(fit, rss, log_s, s, free, power, c)
        inside = density > -DEPTH
        first = inside.argmax(axis=1)
        last = POINTS - 1 - inside[:, ::-1].argmax(axis=1)
        at_zero &= (first == 0) | ~narrow
        narrow = last - first + 1 < ENOUGH if turn else narrow
        if not narrow.any() or turn == NARROWINGS - 1:
            break
        step = (high - low) / (POINTS - 1)
        begin = low + step * np.maximum(first - 1, 0)
        high = np.where(narrow, low + step * np.minimum(last + 1, POINTS - 1), high)
        low = np.where(narrow, begin, low)
    weight = np.exp(density) * ((high - low) / (POINTS - 1))[:, None]
    weight[:, [0, -1]] *= 0.5
    # Toward tau2 = 0 the density in log s falls like s itself: the integral below the grid is its first value.
    weight[:, 0] += np.where(at_zero, np.exp(density[:, 0]), 0.0)
    weight /= weight.sum(axis=1, keepdims=True)
    return Nodes(s, weight, c_mean), fitted


def at_each_point(fit_point: Callable[[Floats], tuple[Floats, ...]]) -> Sums:
    """Return the sums at all points from a function of one value of s for each panel.

    It returns log likelihood without rss, rss, and what was fitted.
    """

    def sums(s: Floats) -> tuple[Floats, Floats, tuple[Floats, ...]]:
        points = zip(*(fit_point(column) for column in s.T), strict=True)
        fit, rss, *fitted = (np.stack(part, axis=1) for part in points)
        return fit, rss, tuple(fitted)

    return sums


def _density(
    fit: Floats,
    rss: Floats,
    log_s: Floats,
    s: Floats,
    free: float | Floats,
    power: float,
    c: Floats,
) -> tuple[Floats, Floats]:
    """Return the logarithm of the density in log s, relative to its peak, and the mean of c."""
    free = np.broadcast_to(np.asarray(free, dtype=np.float64), (len(s),))
    if c.shape[1] == 1:
        density = fit - 0.5 * rss / c - power * np.log(c * s + 1.0) + log_s
        return density - density.max(axis=1, keepdims=True), np.broadcast_to(c, s.shape)
    # Values of c come first: sums over the last and shortest side of an array are slow.
    by = c.T[:, :, None]
    each = rss * (-0.5 / by)
    each -= (0.5 * free[:, None] - 1.0) * np.log(by)
    peak = each.max(axis=0)
    each -= peak
    np.exp(each, out=each)
    # The prior of tau2 as a factor, which needs no logarithm.
    each /= (by * s + 1.0) ** power
    total = each.sum(axis=0)
    density = peak + np.log(total) + fit + log_s
    c_mean = (each * by).sum(axis=0) / total
    return density - density.max(axis=1, keepdims=True), c_mean


def read_posterior(
    read: Read[Fitted],
    grids: tuple[Fitted, Fitted],
    units: PanelUnits,
    x: Floats,
    v: Floats,
    panels: Ints | None,
    extra: Mapping[str, Any],
    *,
    caution: float = 1.0,
    entries: int = CELLS // POINTS,
) -> Posterior:
    """Apply a prior to all questions, tile by tile.

    Parameters
    ----------
    read : function
        Applies either of the grids to a tile, see `Read`.
    grids : pair
        For estimates and for intervals. The second gives the variance, with `v_interval`, to which the squared distance
        of its mean from the one returned is added.
    units : PanelUnits
        Tell which panels are usable. The others stay as they are.
    x, v, panels, extra
        As in `Prior.posterior`.
    caution : float
        Share of the step that is taken.
    entries : int
        Questions in a tile.
    """
    grid, careful = grids
    by_panel, x, v = Panels.of(x, v, panels, fitted_on=len(units.usable))
    v_interval = interval_variance(v, extra.get("v_interval"))
    mean, variance, shrinkage = x.copy(), v_interval.copy(), np.zeros(len(x))
    same = careful is grid and v_interval is v

    def move(tile: Tile) -> None:
        rows, positions = tile
        old = x[positions].reshape(len(rows), -1)
        new, around, b = read(grid, rows, positions, old, v[positions].reshape(len(rows), -1))
        centre = new
        if not same:
            wide = v_interval[positions].reshape(len(rows), -1)
            centre, around, _ = read(careful, rows, positions, old, wide)
        if caution < 1.0:
            new = (1.0 - caution) * old + caution * new
        shape = mean[positions].shape
        mean[positions] = new.reshape(shape)
        variance[positions] = (around + (new - centre) ** 2).reshape(shape)
        shrinkage[positions] = (caution * b).reshape(shape)

    starts, usable = by_panel.starts, units.usable
    one = alike(v, starts) & alike(v_interval, starts)
    entries = max(entries, 1)
    parts = chain(
        tiles(starts, max(entries, ALIKE), usable & one), tiles(starts, entries, usable & ~one)
    )
    side_by_side(move, parts, len(x) // entries)
    return Posterior(mean, variance, shrinkage)
