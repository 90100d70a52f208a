"""Averages over the unknown prior variance of one panel or many.

The model is `t_j ~ N(theta_j, c v_j)`, `theta_j ~ N(centre_j, tau2)`, where the centres are linear in a few unknown
numbers with a flat prior (one common mean, one mean for each group, a regression), `p(tau2)` falls like `1 / (tau2 +
v0)` and c, the factor by which the variances may be wrong, takes a few equally likely values.

With `s = tau2 / c` and `w_j = 1 / (v_j + s)` everything that takes a sum over questions depends on s alone:

    log L(s, c) = 1/2 sum log w - 1/2 log det(Z' W Z) - rss_w / (2 c) - (m - r)/2 log c

with r the number of unknown numbers. So does the shrinkage `B_j = v_j w_j`: the double integral over tau2 and c is a
single one over s, with weights that are sums over c. It is taken in log s by the trapezoidal rule, on a range that is
narrowed to where the density is.

Everything here is in units of a panel: relative to the median of its aggregates, and divided by the square root of
`v0`, the harmonic mean of its variances. Hence a change of the unit of the answers changes nothing.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from trueup.core.arrays import expand, offsets, rectangles
from trueup.errors import TrueupError
from trueup.shrinkage.contract import Posterior

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from trueup.core.arrays import Bools, Floats, Ints

POINTS = 40  # of the grid in log s
LOWEST, HIGHEST = 1e-3, 1e4  # ends of the grid, relative to v0 and to the spread of the aggregates
DEPTH = 14.0  # log units below the peak at which the density counts as nothing
ENOUGH = 10  # points above that depth which resolve the density
NARROWINGS = 5
LEVELS = 7  # values of c
EXACT = 300.0  # degrees of freedom from which a variance counts as known
FLOOR = 1e-9  # smallest variance, relative to the median of the panel
FAR = 1e70  # aggregates so many standard errors apart are not moved by any digit
CELLS = 1 << 17  # numbers in a temporary array: they stay in the cache
SEVERAL = 32  # tiles from which on threads are worth their start
CROWD = 4  # threads at most: more of them wait for the interpreter

#: Numbers of some panels, and where their questions stand.
Tile: TypeAlias = "tuple[Ints, Ints | slice]"
#: Mean, variance and shrinkage of questions, panels x questions, given the numbers of the panels, where the questions
#: stand, x and v.
Read: TypeAlias = "Callable[[Ints, Ints | slice, Floats, Floats], tuple[Floats, Floats, Floats]]"
#: Sums over questions at values of s (panels x points): log likelihood without rss, rss, and what else is wanted later.
Sums: TypeAlias = "Callable[[Floats], tuple[Floats, Floats, tuple[Floats, ...]]]"


@dataclass(frozen=True, eq=False)
class PanelUnits:
    """The units of some panels, one number each: `t = (x - centre) / unit`, `u = max(v, floor) / unit^2`.

    `usable` is False for panels that stay as they are: with up to three questions, without any variance, or with
    aggregates further apart than any variance reaches.
    """

    centre: Floats
    unit: Floats
    floor: Floats
    usable: Bools

    def rows(self, panels: Ints) -> PanelUnits:
        """Return the units of some of the panels."""
        parts = (self.centre[panels], self.unit[panels], self.floor[panels], self.usable[panels])
        return PanelUnits(*parts)

    def place(self, x: Floats) -> Floats:
        """Return aggregates, panels x questions, in units of their panel."""
        t: Floats = (x - self.centre[:, None]) / self.unit[:, None]
        return t

    def spread(self, v: Floats) -> Floats:
        """Return variances, panels x questions, in units of their panel."""
        u: Floats = np.maximum(v, self.floor[:, None]) / self.unit[:, None] / self.unit[:, None]
        return u

    @classmethod
    def ragged(
        cls, x: Floats, v: Floats, panels: Ints, *, least: int = 4, floor: float = FLOOR
    ) -> PanelUnits:
        """Find the units of panels of any size."""
        count = len(panels) - 1
        found = cls(np.zeros(count), np.ones(count), np.zeros(count), np.zeros(count, dtype=bool))
        room = max(CELLS, int(np.diff(panels).max(initial=0)))
        for rows, pick in tiles(panels, room):
            shape = len(rows), -1
            here = cls.of(x[pick].reshape(shape), v[pick].reshape(shape), least=least, floor=floor)
            found.centre[rows], found.unit[rows] = here.centre, here.unit
            found.floor[rows], found.usable[rows] = here.floor, here.usable
        return found

    @classmethod
    def of(cls, x: Floats, v: Floats, *, least: int = 4, floor: float = FLOOR) -> PanelUnits:
        """Find the units of panels x questions."""
        centre = np.median(x, axis=1)
        largest = v.max(axis=1)
        usable = (largest > 0) & (x.shape[1] >= least)
        # Relative to the largest, so that the reciprocals of tiny variances stay finite.
        relative = v / np.where(usable, largest, 1.0)[:, None]
        typical = np.median(relative, axis=1)
        for row in np.flatnonzero(usable & (typical == 0)):
            # More than half of the questions are known exactly; the others say what a variance is.
            typical[row] = np.median(relative[row][relative[row] > 0])
        lowest = np.where(usable, floor * typical, 1.0)
        # Below the smallest number there is no floor to be had.
        lowest = np.maximum(lowest, np.finfo(float).tiny)
        v0 = 1.0 / np.mean(1.0 / np.maximum(relative, lowest[:, None]), axis=1)
        # The roots are taken apart, since a product of small numbers may vanish.
        unit = np.where(usable, np.sqrt(v0) * np.sqrt(largest), 1.0)
        unit = np.maximum(unit, np.sqrt(np.finfo(float).tiny))
        with np.errstate(over="ignore"):
            away = np.abs((x - centre[:, None]) / unit[:, None]).max(axis=1)
        usable &= away < FAR
        return cls(centre, unit, lowest * np.where(usable, largest, 0.0), usable)


def levels(nu: Floats) -> Floats:
    """Return equally likely values of c for each panel, `nu / chi2` with nu + 4 degrees of freedom.

    The four degrees more give the classical factor `nu / (nu + 2)` of an estimated variance. All are 1 from `EXACT`
    degrees of freedom on; if that holds for every panel there is one value only.
    """
    estimated = nu <= EXACT
    if not estimated.any():
        return np.ones((len(nu), 1))
    from scipy.special import gammaincinv

    middle = (np.arange(LEVELS) + 0.5) / LEVELS
    some = np.where(estimated, nu, 1.0)[:, None]
    c = some / (2.0 * gammaincinv(some / 2.0 + 2.0, middle))
    return np.where(estimated[:, None], c, 1.0)


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

    def rows(self, panels: Ints) -> Nodes:
        """Return the points of some of the panels."""
        return Nodes(self.s[panels], self.weight[panels], self.c[panels])


def integrate(
    sums: Sums, *, free: float | Floats, power: float, high: Floats, c: Floats
) -> tuple[Nodes, tuple[Floats, ...]]:
    """Return the points of the quadrature for each panel and what `sums` has to say at them.

    Parameters
    ----------
    sums : function
        See `Sums`.
    free : float or array
        Questions less unknown numbers of the centre, m - r.
    power : float
        Of the prior `(tau2 + v0)^-power`.
    high : array
        Upper end of the grid of each panel.
    c : array
        Equally likely values, panels x values.
    """
    low, high = np.full(len(high), np.log(LOWEST)), np.log(high)
    steps = np.linspace(0.0, 1.0, POINTS)
    touches = np.ones(len(high), dtype=bool)
    narrow = np.ones(len(high), dtype=bool)
    for turn in range(NARROWINGS):
        at = low[:, None] + (high - low)[:, None] * steps
        s = np.exp(at)
        fit, rss, more = sums(s)
        density, c_mean = _density(fit, rss, at, s, free, power, c)
        inside = density > -DEPTH
        first = inside.argmax(axis=1)
        last = POINTS - 1 - inside[:, ::-1].argmax(axis=1)
        touches &= (first == 0) | ~narrow
        narrow = last - first + 1 < ENOUGH if turn else narrow
        if not narrow.any() or turn == NARROWINGS - 1:
            break
        step = (high - low) / (POINTS - 1)
        begin = low + step * np.maximum(first - 1, 0)
        high = np.where(narrow, low + step * np.minimum(last + 1, POINTS - 1), high)
        low = np.where(narrow, begin, low)
    weight = np.exp(density) * ((high - low) / (POINTS - 1))[:, None]
    weight[:, [0, -1]] *= 0.5
    # Toward tau2 = 0 the density in log s falls like s itself: what lies below the grid is its first value.
    weight[:, 0] += np.where(touches, np.exp(density[:, 0]), 0.0)
    weight /= weight.sum(axis=1, keepdims=True)
    return Nodes(s, weight, c_mean), more


def _density(
    fit: Floats,
    rss: Floats,
    at: Floats,
    s: Floats,
    free: float | Floats,
    power: float,
    c: Floats,
) -> tuple[Floats, Floats]:
    """Return the logarithm of the density in log s, relative to its peak, and the mean of c."""
    free = np.broadcast_to(np.asarray(free, dtype=np.float64), (len(s),))
    if c.shape[1] == 1:
        density = fit - 0.5 * rss / c - power * np.log(c * s + 1.0) + at
        return density - density.max(axis=1, keepdims=True), np.broadcast_to(c, s.shape)
    by = c[:, None, :]
    each = (fit + at)[..., None] - (0.5 * rss)[..., None] / by
    each -= (0.5 * free[:, None] - 1.0)[..., None] * np.log(by)
    each -= power * np.log(by * s[..., None] + 1.0)
    peak = each.max(axis=-1)
    each -= peak[..., None]
    np.exp(each, out=each)
    total = each.sum(axis=-1)
    density = peak + np.log(total)
    c_mean = np.einsum("pgc,pc->pg", each, c) / total
    return density - density.max(axis=1, keepdims=True), c_mean


def read_nodes(
    scale: PanelUnits, nodes: Nodes, x: Floats, v: Floats, centre: Floats, behind: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return mean, variance and shrinkage of questions, panels x questions.

    Parameters
    ----------
    scale, nodes
        Units and points of these panels.
    x, v : arrays
        Aggregates and variances, panels x questions.
    centre, behind : arrays
        What the prior expects of each question at each point, and the variance of that relative to c: panels x points x
        questions, or with one question that stands for all.
    """
    s, p, c = nodes.s[:, :, None], nodes.weight[:, None, :], nodes.c[:, None, :]
    t, u = scale.place(x), scale.spread(v)
    w = u[:, None, :] + s
    np.divide(1.0, w, out=w)
    e = s * t[:, None, :]
    e += centre * u[:, None, :]
    # Both terms have the sign of what they weigh: nothing cancels, however far an aggregate lies out.
    e *= w
    mean = (p @ e)[:, 0]
    e -= mean[:, None, :]
    e *= e
    sums = np.concatenate([p, p * c * nodes.s[:, None, :]], axis=1) @ w
    variance = u * sums[:, 1] + (p @ e)[:, 0]
    # Squared as a share: u itself may be too large for a square.
    w *= u[:, None, :]
    w *= w
    w *= behind
    variance += ((p * c) @ w)[:, 0]
    unit = scale.unit[:, None]
    shrinkage = np.minimum(u * sums[:, 0], 1.0)
    return scale.centre[:, None] + unit * mean, variance * unit * unit, shrinkage


def tiles(
    panels: Ints, entries: int, usable: Bools | None = None
) -> Iterator[tuple[Ints, Ints | slice]]:
    """Yield panels of equal size together, as `rectangles` does, and long ones in pieces.

    What comes with the numbers of the panels picks their questions, panels x questions when shaped so: a rectangle of
    positions, or a slice of a panel that has more than `entries` questions. Panels that are not `usable` are left out.
    """
    sizes = np.diff(panels)
    if usable is not None:
        sizes = np.where(usable, sizes, 0)
    for row in np.flatnonzero(sizes > entries):
        for start in range(panels[row], panels[row + 1], entries):
            yield np.array([row]), slice(start, min(start + entries, int(panels[row + 1])))
    short = np.flatnonzero((sizes > 0) & (sizes <= entries))
    if len(short) == 0:
        return
    positions = None if len(short) == len(sizes) else expand(panels[short], sizes[short])
    for part, rectangle in rectangles(offsets(sizes[short]), entries):
        yield short[part], rectangle if positions is None else positions[rectangle]


def posterior(
    read: Read,
    careful: Read | None,
    x: Floats,
    v: Floats,
    v_interval: Floats,
    panels: Ints,
    *,
    usable: Bools,
    caution: float = 1.0,
    entries: int = CELLS // POINTS,
) -> Posterior:
    """Read a prior at all questions, tile by tile.

    Parameters
    ----------
    read, careful : functions
        Mean, variance and shrinkage of questions, panels x questions, of some panels. The careful one gives the
        variance, with `v_interval`, to which the squared distance of its mean from the one returned is added; None: it
        is the same.
    usable : array
        Panels that have a prior. The others stay as they are.
    caution : float
        Share of the step that is taken.
    entries : int
        Questions to read at a time.
    """
    mean, variance, shrinkage = x.copy(), v_interval.copy(), np.zeros(len(x))
    same = careful is None and v_interval is v

    def move(tile: tuple[Ints, Ints | slice]) -> None:
        rows, at = tile
        here = x[at].reshape(len(rows), -1)
        e, around, b = read(rows, at, here, v[at].reshape(len(rows), -1))
        other = e
        if not same:
            wide = v_interval[at].reshape(len(rows), -1)
            other, around, _ = (careful or read)(rows, at, here, wide)
        moved = (1.0 - caution) * here + caution * e if caution < 1.0 else e
        shape = mean[at].shape
        mean[at] = moved.reshape(shape)
        variance[at] = (around + (moved - other) ** 2).reshape(shape)
        shrinkage[at] = (caution * b).reshape(shape)

    side_by_side(move, tiles(panels, max(entries, 1), usable), len(x) // max(entries, 1))
    return Posterior(mean, variance, shrinkage)


def side_by_side(do: Callable[[Tile], None], parts: Iterable[Tile], about: int) -> None:
    """Do all parts, on all processors where there are many of them; each writes a place of its own."""
    if about < SEVERAL:
        for part in parts:
            do(part)
        return
    with ThreadPoolExecutor(processors()) as pool:
        list(pool.map(do, parts))


def processors() -> int:
    """Return the number of processors to use."""
    mine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(mine or 1, CROWD)


def interval_variance(v: Floats, v_interval: object) -> Floats:
    """Return the variances for intervals, nowhere below `v`; `v` itself where there are no others."""
    if v_interval is None:
        return v
    careful = np.broadcast_to(np.asarray(v_interval, dtype=np.float64), v.shape)
    if not (np.isfinite(careful) & (careful >= 0)).all():
        raise TrueupError("v_interval: variances must be finite and not negative.")
    return v if (careful <= v).all() else np.maximum(v, careful)


def per_panel(value: object, count: int, name: str) -> Floats:
    """Return one positive number for each panel."""
    numbers = np.asarray(value, dtype=np.float64)
    if numbers.ndim > 1 or numbers.size not in (1, count):
        raise TrueupError(f"{name}: found {numbers.size} numbers for {count} panels.")
    if not (numbers > 0).all():
        raise TrueupError(f"{name}: must be positive.")
    return np.broadcast_to(numbers, (count,))
