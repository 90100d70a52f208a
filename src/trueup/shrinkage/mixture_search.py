"""Which mixture of normal priors the aggregates of a panel prefer.

Location mixtures of 2, 3, ... components with a common variance, and a scale mixture of two components with a common
mean, are fitted by maximum likelihood (`expectation`). The one with the smallest

    -2 log L + q (log m + 1.5),   q = 2 K (location), 4 (scale), 2 (one normal prior)

is preferred: Schwarz's criterion (Annals of Statistics 1978) with an additional penalty for each parameter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trueup.shrinkage.clusters import line_clusters
from trueup.shrinkage.condense import condense
from trueup.shrinkage.expectation import Components, fit_location, fit_one, fit_scale
from trueup.shrinkage.tiles import CELLS, uncut_tiles
from trueup.shrinkage.units import PanelUnits

if TYPE_CHECKING:
    from trueup.core.arrays import Floats, Ints
    from trueup.shrinkage.panel_data import PanelData

LEAST = 8  # questions that a mixture can be fitted on
MOST_COMPONENTS = 8
QUESTIONS_EACH = 4  # at least, for each component
PENALTY = 1.5  # for each parameter, in addition to log m
PATIENCE = 2  # numbers of components without improvement after which the search ends
FLOOR = 1e-6  # smallest variance, relative to the median of the panel
ONE_NORMAL, SCALE_MIXTURE = 0, 1  # kinds besides the number of components of a location mixture
SCALE_START = ((0.8, 0.2), (0.25, 6.0))  # shares and variances of a narrow and a wide component


@dataclass(frozen=True, eq=False)
class PreferredMixtures:
    """The prior that the criterion prefers for each panel, in units of the panel.

    Attributes
    ----------
    kind : array
        `ONE_NORMAL` prior, `SCALE_MIXTURE`, or the number of components of a location mixture.
    components : Components
        Panels x `MOST_COMPONENTS`, of which the first ones are in use.
    units : PanelUnits
        The units.
    """

    kind: Ints
    components: Components
    units: PanelUnits

    def of(self, rows: Ints) -> tuple[PanelUnits, Components]:
        """Return units and components of panels that have the same kind of mixture."""
        used = max(int(self.kind[rows[0]]), 2)
        some = self.components.rows(rows)
        cut = Components(some.pi[:, :used], some.mu[:, :used], some.tau2[:, :used], some.fit)
        return self.units.rows(rows), cut

    def by_kind(self, rows: Ints) -> list[Ints]:
        """Return those of the panels that have a mixture, one array for each kind."""
        kinds = self.kind[rows]
        return [rows[kinds == kind] for kind in np.unique(kinds) if kind != ONE_NORMAL]


def choose(data: PanelData, only: int | None = None) -> PreferredMixtures:
    """Find the preferred prior of each panel, or fit only one kind.

    Fits of different kinds are independent: a kind fitted alone equals the one that a search would have found.
    """
    x, v, starts = data.x, data.v, data.starts
    count = len(starts) - 1
    kind = np.full(count, ONE_NORMAL)
    components = Components.empty(count, MOST_COMPONENTS)
    units = PanelUnits.fit(x, v, starts, least=LEAST, floor=FLOOR)
    for rows, positions in uncut_tiles(starts, CELLS // 4, units.usable):
        t, u = units.standardise(rows, x[positions], v[positions])
        order = np.argsort(t, axis=1, kind="stable")
        t, u = np.take_along_axis(t, order, axis=1), np.take_along_axis(u, order, axis=1)
        kind[rows], best = _search(t, u) if only is None else _fit_only(t, u, only)
        components.put(rows, best)
    return PreferredMixtures(kind, components, units)


def _search(t: Floats, u: Floats) -> tuple[Ints, Components]:
    """Return the preferred kind of each row and its components; aggregates are sorted in each row."""
    count, questions = t.shape
    penalty = np.log(questions) + PENALTY
    # Starts are found with all questions.
    points, variances, number = condense(t, u)
    criterion = -2.0 * fit_one(points, variances, number) + 2.0 * penalty
    path, fails = criterion.copy(), np.zeros(count, dtype=np.int64)
    kind = np.full(count, ONE_NORMAL)
    best = Components.empty(count, MOST_COMPONENTS)

    def compare(rows: Ints, which: int, fitted: Components, parameters: int) -> Floats:
        value: Floats = -2.0 * fitted.fit + parameters * penalty
        better = value < criterion[rows]
        criterion[rows[better]], kind[rows[better]] = value[better], which
        best.put(rows[better], fitted.rows(better))
        return value

    most = min(MOST_COMPONENTS, questions // QUESTIONS_EACH)
    rows, ahead = np.arange(count), 2
    starts: list[Ints] = []
    for k in range(2, most + 1):
        if k - ahead >= len(starts):
            # A few at a time: most panels need no more.
            ahead, starts = k, line_clusters(t[rows], min(k + 1, most))[k - 2 :]
        start = _cluster_start(t[rows], u[rows], starts[k - ahead])
        needed = 0.5 * (2 * k * penalty - path[rows])
        some = None if number is None else number[rows]
        fitted = fit_location(points[rows], variances[rows], start, needed, some)
        value = compare(rows, k, fitted, 2 * k)
        improved = value < path[rows]
        path[rows] = np.minimum(value, path[rows])
        fails[rows] = np.where(improved, 0, fails[rows] + 1)
        go = fails[rows] < PATIENCE
        rows, starts = rows[go], [begins[go] for begins in starts]
        if len(rows) == 0:
            break
    needed = 0.5 * (4.0 * penalty - criterion)
    fitted = fit_scale(points, variances, _scale_start(t, u), needed, number)
    compare(np.arange(count), SCALE_MIXTURE, fitted, 4)
    return kind, best


def _fit_only(t: Floats, u: Floats, kind: int) -> tuple[Ints, Components]:
    """Return one kind for each row and its components, as `_search` would have fitted them."""
    count, questions = t.shape
    if kind == ONE_NORMAL or kind > min(MOST_COMPONENTS, questions // QUESTIONS_EACH):
        return np.full(count, ONE_NORMAL), Components.empty(count, MOST_COMPONENTS)
    points, variances, number = condense(t, u)
    if kind == SCALE_MIXTURE:
        start = _scale_start(t, u)
        return np.full(count, kind), fit_scale(points, variances, start, number=number)
    start = _cluster_start(t, u, line_clusters(t, kind)[-1])
    return np.full(count, kind), fit_location(points, variances, start, number=number)


def _cluster_start(t: Floats, u: Floats, begins: Ints) -> Components:
    """Start from clusters: their shares, their precision-weighted means, and the spread within them."""
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
