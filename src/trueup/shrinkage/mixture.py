"""A mixture of normal priors: true values in a few clusters, or most of them alike and some far out.

Location mixtures of 2, 3, ... components with a common variance, and a scale mixture of two components with a common
mean, are fitted by maximum likelihood (`expectation`). The one with the smallest

    -2 log L + q (log m + 1.5),   q = 2 K (location), 4 (scale), 2 (one normal prior)

is taken: Schwarz's criterion (Annals of Statistics 1978) with some more for each number fitted. The weights `R_jk`
with which a question belongs to each component are a soft partition of the questions.

A location mixture that is taken is averaged over its common variance as the normal prior is, with the means fitted anew
at each value of it and the REML term `-1/2 sum_k log sum_j R_jk w_j`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.core.arrays import expand, offsets
from trueup.shrinkage.adaptive_prior import AdaptivePrior, Part
from trueup.shrinkage.clusters import line_clusters
from trueup.shrinkage.contract import Panels, Posterior, ShrinkRule
from trueup.shrinkage.expectation import (
    LONGEST,
    PIECE,
    TINY,
    Components,
    fit_location,
    fit_one,
    fit_scale,
    pieces_of,
    responsibilities,
    threads,
    unscaled,
)
from trueup.shrinkage.normal import CAUTION, Normal, check_caution
from trueup.shrinkage.quadrature import (
    CELLS,
    Nodes,
    PanelUnits,
    Sums,
    integrate,
    interval_variance,
    posterior,
    tiles,
)

if TYPE_CHECKING:
    from trueup.core.arrays import Bools, Floats, Ints
    from trueup.shrinkage.expectation import Crew, Piece

LEAST = 8  # questions that a mixture can be fitted on
MOST_COMPONENTS = 8  # components
QUESTIONS_EACH = 4  # at least, for each component
PENALTY = 1.5  # for each number fitted, besides log m
PATIENCE = 2  # numbers of components without improvement after which the search ends
FLOOR = 1e-6  # smallest variance, relative to the median of the panel
HIGHEST = 1e2  # end of the grid of tau2, relative to the spread around the nearest mean
INNER_ROUNDS = 2  # in which the means are fitted anew at each value of tau2
NARROW = 0.1  # standard deviation of log tau2 below which a few points are as good as the grid
FEW = 6  # points then
NEGLIGIBLE = 1e-12  # weight of a point of the grid that is not read
REACH = 3  # points to each side of where the density was before that are looked at first
NOTHING = 35.0  # log units below the peak at which a density has no digit left to add
ONE, SCALE = 0, 1  # kinds besides the number of components of a location mixture
SCALE_START = ((0.8, 0.2), (0.25, 6.0))


@dataclass(frozen=True, eq=False)
class Chosen:
    """The prior that the criterion prefers for each panel, in units of the panel.

    Attributes
    ----------
    kind : array
        `ONE` normal prior, `SCALE` mixture, or the number of components of a location mixture.
    components : Components
        Panels x `MOST_COMPONENTS`, of which the first ones are in use.
    scale : PanelUnits
        The units.
    """

    kind: Ints
    components: Components
    scale: PanelUnits

    def of(self, rows: Ints) -> tuple[PanelUnits, Components]:
        """Return units and components of panels that have the same kind of mixture."""
        used = max(int(self.kind[rows[0]]), 2)
        each = self.components.rows(rows)
        cut = Components(each.pi[:, :used], each.mu[:, :used], each.tau2[:, :used], each.fit)
        return self.scale.rows(rows), cut

    def alike(self, rows: Ints) -> list[Ints]:
        """Return those of the panels that have a mixture, those of one kind together."""
        kinds = self.kind[rows]
        return [rows[kinds == kind] for kind in np.unique(kinds) if kind != ONE]


def choose(x: Floats, v: Floats, panels: Ints, only: int | None = None) -> Chosen:
    """Find the preferred prior of each panel; `only` is a kind that is fitted without comparing it with others.

    Fits of one kind do not depend on those of others: what is fitted alone is what a search would have found.
    """
    count = len(panels) - 1
    kind = np.full(count, ONE)
    kept = Components.empty(count, MOST_COMPONENTS)
    scale = PanelUnits.ragged(x, v, panels, least=LEAST, floor=FLOOR)
    room = max(CELLS // 4, int(np.diff(panels).max(initial=0)))
    for rows, at in tiles(panels, room, scale.usable):
        here, shape = scale.rows(rows), (len(rows), -1)
        t, u = here.place(x[at].reshape(shape)), here.spread(v[at].reshape(shape))
        order = np.argsort(t, axis=1, kind="stable")
        t, u = np.take_along_axis(t, order, axis=1), np.take_along_axis(u, order, axis=1)
        kind[rows], best = _search(t, u) if only is None else _fit_only(t, u, only)
        kept.pi[rows], kept.mu[rows], kept.tau2[rows] = best.pi, best.mu, best.tau2
        kept.fit[rows] = best.fit
    return Chosen(kind, kept, scale)


def _search(t: Floats, u: Floats) -> tuple[Ints, Components]:
    """Return the preferred kind of each row and its components; aggregates are sorted in each row."""
    count, questions = t.shape
    each = np.log(questions) + PENALTY
    criterion = -2.0 * fit_one(t, u) + 2.0 * each
    path, fails = criterion.copy(), np.zeros(count, dtype=np.int64)
    kind = np.full(count, ONE)
    best = Components.empty(count, MOST_COMPONENTS)

    def compare(rows: Ints, which: int, found: Components, numbers: int) -> Floats:
        value: Floats = -2.0 * found.fit + numbers * each
        better = value < criterion[rows]
        at, used = rows[better], found.pi.shape[1]
        criterion[at], kind[at], best.fit[at] = value[better], which, found.fit[better]
        for to, new in ((best.pi, found.pi), (best.mu, found.mu), (best.tau2, found.tau2)):
            to[at, :used] = new[better]
        return value

    most = min(MOST_COMPONENTS, questions // QUESTIONS_EACH)
    rows, ahead = np.arange(count), 2
    starts: list[Ints] = []
    for k in range(2, most + 1):
        if k - ahead >= len(starts):
            # A few at a time: most panels need no more than that.
            ahead, starts = k, line_clusters(t[rows], min(k + 1, most))[k - 2 :]
        here = t[rows], u[rows]
        start = _cluster_start(*here, starts[k - ahead])
        found = fit_location(*here, start, 0.5 * (2 * k * each - path[rows]))
        value = compare(rows, k, found, 2 * k)
        improved = value < path[rows]
        path[rows] = np.minimum(value, path[rows])
        fails[rows] = np.where(improved, 0, fails[rows] + 1)
        go = fails[rows] < PATIENCE
        rows, starts = rows[go], [begin[go] for begin in starts]
        if len(rows) == 0:
            break
    found = fit_scale(t, u, _scale_start(t, u), 0.5 * (4.0 * each - criterion))
    compare(np.arange(count), SCALE, found, 4)
    return kind, best


def _fit_only(t: Floats, u: Floats, which: int) -> tuple[Ints, Components]:
    """Return the kind of each row and its components, where the kind is known; as `_search` would."""
    count, questions = t.shape
    best = Components.empty(count, MOST_COMPONENTS)
    if which == ONE or which > min(MOST_COMPONENTS, questions // QUESTIONS_EACH):
        return np.full(count, ONE), best
    if which == SCALE:
        found = fit_scale(t, u, _scale_start(t, u))
    else:
        found = fit_location(t, u, _cluster_start(t, u, line_clusters(t, which)[-1]))
    used = found.pi.shape[1]
    best.pi[:, :used], best.mu[:, :used], best.tau2[:, :used] = found.pi, found.mu, found.tau2
    best.fit[:] = found.fit
    return np.full(count, which), best


def _cluster_start(t: Floats, u: Floats, begins: Ints) -> Components:
    """Start from clusters: their shares, precision-weighted means, and what spread they leave."""
    count, questions = t.shape
    row = np.arange(count)[:, None]
    label = np.zeros((count, questions), dtype=np.int64)
    np.add.at(label, (np.broadcast_to(row, begins[:, 1:].shape), begins[:, 1:]), 1)
    label = np.cumsum(label, axis=1)
    # The clusters are runs, so that one pass over the runs of all rows gives their sums.
    flat = (begins + row * questions).ravel()
    w = 1.0 / u
    shape = begins.shape
    total = np.add.reduceat(w.ravel(), flat).reshape(shape)
    mu = np.add.reduceat((w * t).ravel(), flat).reshape(shape) / total
    pi = np.diff(begins, axis=1, append=questions) / questions
    away = (t - np.take_along_axis(mu, label, axis=1)) ** 2 - u
    tau2 = np.maximum(away.mean(axis=1), 0.1 * u.mean(axis=1))
    return Components(pi, mu, np.repeat(tau2[:, None], shape[1], axis=1), np.zeros(count))


def _scale_start(t: Floats, u: Floats) -> Components:
    """Start from a narrow component with most of the questions and a wide one."""
    count = len(t)
    noise = u.mean(axis=1)
    spread = np.maximum(t.var(axis=1) - noise, 0.05 * noise)
    share, times = (np.array(part) for part in SCALE_START)
    middle = np.repeat(np.median(t, axis=1)[:, None], len(share), axis=1)
    pi = np.broadcast_to(share, middle.shape)
    return Components(pi, middle, spread[:, None] * times, np.zeros(count))


@dataclass(frozen=True, eq=False)
class LocationMixture:
    """Location mixtures with the same number of components, averaged over their common variance.

    Attributes
    ----------
    scale : PanelUnits
        Units of each panel.
    nodes : Nodes
        Values of tau2 and their weights, panels x points.
    mu, precision : arrays
        Means at each value, panels x points x components, and the sum of `R w` behind them.
    pi : array
        Shares, panels x components.
    """

    scale: PanelUnits
    nodes: Nodes
    mu: Floats
    precision: Floats
    pi: Floats

    @classmethod
    def fit(
        cls,
        x: Floats,
        v: Floats,
        panels: Ints,
        scale: PanelUnits,
        start: Components,
        around: float | None = None,
    ) -> LocationMixture:
        """Average over the variance, from mixtures fitted with expectation maximisation.

        `around` is `log_tau2` of nearly the same questions, near which the variance is looked for first.
        """
        count = len(panels) - 1
        nodes, mu, precision = [], [], []
        order = []
        room = max(CELLS // 8, int(np.diff(panels).max(initial=0)))
        for rows, pick in tiles(panels, room):
            units, begin = scale.rows(rows), start.rows(rows)
            t = units.place(x[pick].reshape(len(rows), -1))
            u = units.spread(v[pick].reshape(len(rows), -1))
            found, (means, behind) = _average(t, u, begin, around)
            order.append(rows)
            nodes.append(found)
            mu.append(means)
            precision.append(behind)
        back = np.empty(count, dtype=np.int64)
        back[np.concatenate(order)] = np.arange(count)
        joined = Nodes(
            *(
                np.concatenate([getattr(part, field) for part in nodes])[back]
                for field in ("s", "weight", "c")
            )
        )
        return cls(
            scale, joined, np.concatenate(mu)[back], np.concatenate(precision)[back], start.pi
        )

    @property
    def log_tau2(self) -> float:
        """Mean of log tau2 of the first panel, in its units."""
        return float(self.nodes.weight[0] @ np.log(self.nodes.s[0]))

    def read(
        self, rows: Ints, at: Ints | slice, x: Floats, v: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Return mean, variance and shrinkage of questions, panels x questions."""
        scale = self.scale.rows(rows)
        t, u = scale.place(x), scale.spread(v)
        log_pi = np.log(np.maximum(self.pi[rows], TINY))
        mean, within, between, shrinkage = (np.zeros(t.shape) for _ in range(4))
        so_far = np.zeros((len(rows), 1))
        for g in self._points(rows):
            p, s = self.nodes.weight[rows, g][:, None], self.nodes.s[rows, g][:, None]
            mu, behind = self.mu[rows, g], self.precision[rows, g]
            w = 1.0 / (u + s)
            r, total, _, apart = unscaled(t, w, log_pi, mu)
            b = u * w
            sums = np.stack([mu, 1.0 / behind], axis=1) @ r
            sums /= total[:, None]
            # How far apart the components are that a question may belong to, around its own mean.
            np.subtract(mu[:, :, None], sums[:, :1], out=apart)
            apart *= apart
            apart *= r
            within += p * (b * s + b * b * (sums[:, 1] + apart.sum(axis=1) / total))
            shrinkage += p * b
            e = s * w * t + b * sums[:, 0]
            so_far += p
            step = e - mean
            mean += step * p / np.maximum(so_far, NEGLIGIBLE)
            # Both have the same sign, but for rounding where components are very far apart.
            between += p * np.maximum(step * (e - mean), 0.0)
        unit = scale.unit[:, None]
        variance = (within + between) * unit * unit
        return scale.centre[:, None] + unit * mean, variance, np.minimum(shrinkage, 1.0)

    def belongs(self, rows: Ints, x: Floats, v: Floats) -> Floats:
        """Return the soft partition, panels x components x questions."""
        scale = self.scale.rows(rows)
        t, u = scale.place(x), scale.spread(v)
        result = np.zeros((len(rows), self.pi.shape[1], t.shape[1]))
        total = np.zeros((len(rows), 1, 1))
        log_pi = np.log(np.maximum(self.pi[rows], TINY))
        for g in self._points(rows):
            w = 1.0 / (u + self.nodes.s[rows, g][:, None])
            p = self.nodes.weight[rows, g][:, None, None]
            r, whole, *_ = unscaled(t, w, log_pi, self.mu[rows, g])
            result += p / whole[:, None] * r
            total += p
        return result / total

    def _points(self, rows: Ints) -> Ints:
        """Return the points of the grid that matter."""
        return np.flatnonzero(self.nodes.weight[rows].max(axis=0) > NEGLIGIBLE)

    @property
    def entries(self) -> int:
        """Questions to read at a time."""
        return min(PIECE // int(self.pi.shape[1]), LONGEST)

    def posterior(
        self, x: Floats, v: Floats, *, panels: Ints | None = None, **known: Any
    ) -> Posterior:
        return _posterior(self, x, v, panels, known)


def _average(
    t: Floats, u: Floats, start: Components, around: float | None
) -> tuple[Nodes, tuple[Floats, ...]]:
    """Integrate a location mixture of each row over its variance."""
    count, questions = t.shape
    parts = start.pi.shape[1]
    at_once = max(1, CELLS // (count * questions * parts))
    log_pi = np.log(np.maximum(start.pi, TINY))
    nearest = np.full(t.shape, np.inf)
    for k in range(parts):
        np.minimum(nearest, (t - start.mu[:, k : k + 1]) ** 2, out=nearest)

    def sums(s: Floats) -> tuple[Floats, Floats, tuple[Floats, ...]]:
        points = s.shape[1]
        fit, mu, behind = (
            np.empty(s.shape),
            np.empty((*s.shape, parts)),
            np.empty((*s.shape, parts)),
        )
        with threads() as crew:
            for begin in range(0, points, at_once):
                here = slice(begin, min(begin + at_once, points))
                some = here.stop - begin
                # Each panel at each value of s is a row of its own.
                w = (1.0 / (u[:, None, :] + s[:, here, None])).reshape(-1, questions)
                placed, means, shares = (
                    part if some == 1 else np.repeat(part, some, axis=0)
                    for part in (t, start.mu, log_pi)
                )
                for turn in range(INNER_ROUNDS + 1):
                    each, total = _weigh(placed, w, shares, means, crew)
                    weight = np.maximum(total[..., 0], np.finfo(float).tiny)
                    if turn < INNER_ROUNDS:
                        means = np.where(total[..., 0] > 0, total[..., 1] / weight, means)
                fit[:, here] = (each - 0.5 * np.log(weight).sum(axis=1)).reshape(-1, some)
                mu[:, here] = means.reshape(-1, some, parts)
                behind[:, here] = weight.reshape(-1, some, parts)
        return fit, np.zeros(s.shape), (mu, behind)

    high = HIGHEST * np.maximum(nearest.mean(axis=1), 1.0)
    look = sums if around is None or count > 1 else partial(_near, sums, around)
    nodes, more = integrate(look, free=2.0, power=1.0, high=high, c=np.ones((count, 1)))
    return _fewer(nodes, more, sums)


def _near(sums: Sums, around: float, s: Floats) -> tuple[Floats, Floats, tuple[Floats, ...]]:
    """Return the sums of a single panel at those points of the grid where its density has not vanished.

    They are looked for around where it was before. The grid stays as it is, and so does the result.
    """
    at, points = np.log(s[0]), s.shape[1]
    fit = np.full(s.shape, -np.inf)
    more: tuple[Floats, ...] = ()

    def look(begin: int, end: int) -> None:
        nonlocal more
        fit[:, begin:end], _, found = sums(s[:, begin:end])
        more = more or tuple(np.ones((1, points, *part.shape[2:])) for part in found)
        for whole, part in zip(more, found, strict=True):
            whole[:, begin:end] = part

    middle = int(np.abs(at - around).argmin())
    begin, end = max(middle - REACH, 0), min(middle + REACH + 1, points)
    look(begin, end)
    while True:
        least = fit.max() - NOTHING
        below, above = begin > 0 and fit[0, begin] > least, end < points and fit[0, end - 1] > least
        if below:
            begin, last = max(begin - REACH, 0), begin
            look(begin, last)
        if above:
            first, end = end, min(end + REACH, points)
            look(first, end)
        if not below and not above:
            return fit, np.zeros(s.shape), more


def _fewer(nodes: Nodes, more: tuple[Floats, ...], sums: Sums) -> tuple[Nodes, tuple[Floats, ...]]:
    """Take a few points of Gauss instead of the grid where the density in log s is narrow.

    They integrate all polynomials that so many points can (Golub and Welsch, Mathematics of Computation 1969), and
    over so small a range nothing differs from one by more than rounding. The other points get no weight.
    """
    at = np.log(nodes.s)
    middle = (nodes.weight * at).sum(axis=1, keepdims=True)
    spread = np.sqrt((nodes.weight * (at - middle) ** 2).sum(axis=1, keepdims=True))
    rows = np.flatnonzero(spread < NARROW)
    if len(rows) == 0:
        return nodes, more
    s, weight = nodes.s[:, :FEW].copy(), nodes.weight.copy()
    weight[rows] = 0.0
    for row in rows:
        z = (at[row] - middle[row]) / spread[row]
        basis = np.sqrt(nodes.weight[row])[None]
        for _ in range(FEW - 1):
            new = z * basis[-1]
            for _ in range(2):  # once more, for what rounding left
                new -= (basis @ new) @ basis
            basis = np.vstack([basis, new / np.sqrt(new @ new)])
        place, vector = np.linalg.eigh((basis * z) @ basis.T)
        s[row], weight[row, :FEW] = np.exp(middle[row] + spread[row] * place), vector[0] ** 2
    points, found = nodes.s.copy(), sums(s)[2]
    points[:, :FEW] = s
    for old, new in zip(more, found, strict=True):
        old[rows, :FEW] = new[rows]
    return Nodes(points, weight, nodes.c), more


def _weigh(t: Floats, w: Floats, log_pi: Floats, mu: Floats, crew: Crew) -> tuple[Floats, Floats]:
    """Return the log likelihood of rows of questions, up to a constant, and sums of `R w` and `R w t`."""

    def look(piece: Piece) -> tuple[Floats, Floats]:
        rows, at = piece
        here, precision = t[rows, at], w[rows, at]
        r, total, each, _ = unscaled(here, precision, log_pi[rows], mu[rows])
        by = precision / total
        return each.sum(axis=1), r @ np.stack([by, by * here], axis=2)

    fit, sums = np.zeros(len(t)), np.zeros((*mu.shape, 2))
    pieces = pieces_of(len(t), t.shape[1], mu.shape[1])
    for (rows, _), (each, more) in zip(pieces, crew(look, pieces), strict=True):
        fit[rows] += each
        sums[rows] += more
    return fit, sums


@dataclass(frozen=True, eq=False)
class ScaleMixture:
    """PanelUnits mixtures as fitted: a common mean and two variances."""

    scale: PanelUnits
    components: Components

    def read(
        self, rows: Ints, at: Ints | slice, x: Floats, v: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Return mean, variance and shrinkage of questions, panels x questions."""
        scale, parts = self.scale.rows(rows), self.components.rows(rows)
        t, u = scale.place(x), scale.spread(v)
        r, w = self._belongs(t, u, parts)
        b = u[:, None, :] * w
        keep = parts.tau2[:, :, None] * w
        mu = parts.mu[:, :1]
        e = keep * t[:, None, :] + b * mu[:, :, None]
        mean = (r * e).sum(axis=1)
        variance = (r * (u[:, None, :] * keep + (e - mean[:, None, :]) ** 2)).sum(axis=1)
        shrinkage = np.minimum((r * b).sum(axis=1), 1.0)
        unit = scale.unit[:, None]
        return scale.centre[:, None] + unit * mean, variance * unit * unit, shrinkage

    def belongs(self, rows: Ints, x: Floats, v: Floats) -> Floats:
        """Return the soft partition, panels x components x questions."""
        scale = self.scale.rows(rows)
        return self._belongs(scale.place(x), scale.spread(v), self.components.rows(rows))[0]

    @staticmethod
    def _belongs(t: Floats, u: Floats, parts: Components) -> tuple[Floats, Floats]:
        w = 1.0 / (u[:, None, :] + parts.tau2[:, :, None])
        square = np.repeat(((t - parts.mu[:, :1]) ** 2)[:, None, :], w.shape[1], axis=1)
        return responsibilities(square, w, parts.pi)[0], w

    @property
    def entries(self) -> int:
        """Questions to read at a time."""
        return CELLS // int(self.components.pi.shape[1])

    def posterior(
        self, x: Floats, v: Floats, *, panels: Ints | None = None, **known: Any
    ) -> Posterior:
        return _posterior(self, x, v, panels, known)


def _posterior(
    prior: LocationMixture | ScaleMixture,
    x: Floats,
    v: Floats,
    panels: Ints | None,
    known: dict[str, Any],
) -> Posterior:
    by_panel, x, v = Panels.of(x, v, panels)
    usable: Bools = np.ones(len(by_panel.sizes), dtype=bool)
    v_interval = interval_variance(v, known.get("v_interval"))
    return posterior(
        prior.read, None, x, v, v_interval, by_panel.starts, usable=usable, entries=prior.entries
    )


def fit_mixture(
    x: Floats, v: Floats, panels: Ints, chosen: Chosen, rows: Ints, around: float | None = None
) -> LocationMixture | ScaleMixture:
    """Return the prior of panels `rows`, which have the same kind of mixture."""
    scale, parts = chosen.of(rows)
    if chosen.kind[rows[0]] == SCALE:
        return ScaleMixture(scale, parts)
    sizes = np.diff(panels)[rows]
    at = expand(panels[rows], sizes)
    return LocationMixture.fit(x[at], v[at], offsets(sizes), scale, parts, around)


def plug_in(t: Floats, u: Floats, parts: Components, *, shared_location: bool) -> Floats:
    """Return posterior means of panels x questions by mixtures taken as known, in units of the panels."""
    w = 1.0 / (u[:, None, :] + parts.tau2[:, :, None])
    mu = parts.mu[:, :, None]
    square = t[:, None, :] - mu
    square *= square
    r, _ = responsibilities(square, w if shared_location else w[:, :1], parts.pi)
    e = w * (parts.tau2[:, :, None] * t[:, None, :] + u[:, None, :] * mu)
    mean: Floats = (r * e).sum(axis=1)
    return mean


def named_mixtures(
    x: Floats, v: Floats, panels: Ints, chosen: Chosen, rows: Ints, around: float | None = None
) -> list[tuple[str, Part]]:
    """Fit the mixtures of some panels, those of one kind together, and name them."""
    return [
        (
            "scale mixture" if chosen.kind[mine[0]] == SCALE else "mixture",
            Part(mine, fit_mixture(x, v, panels, chosen, mine, around)),
        )
        for mine in chosen.alike(rows)
    ]


@dataclass(frozen=True)
class Mixture(ShrinkRule):
    """A mixture where the criterion prefers one, the normal prior elsewhere.

    Nothing is held out to see whether the mixture helps; `Adaptive` does that.

    Parameters
    ----------
    caution : float
        Of the normal prior, see `Normal`.
    """

    caution: float = CAUTION

    name = "mixture"
    variance = "moderated"

    def __post_init__(self) -> None:
        check_caution(self.caution)

    def fit(
        self, x: Floats, v: Floats, *, panels: Ints | None = None, **known: Any
    ) -> AdaptivePrior:
        by_panel, x, v = Panels.of(x, v, panels)
        normal = Normal(self.caution).fit(x, v, panels=by_panel.starts, **known)
        model = normal.model.astype("<U16")
        untried = np.full(len(model), np.nan)
        chosen = choose(x, v, by_panel.starts)
        parts = []
        for name, part in named_mixtures(x, v, by_panel.starts, chosen, np.arange(len(model))):
            model[part.rows] = name
            parts.append(part)
        return AdaptivePrior(normal, parts, model, untried, untried)
