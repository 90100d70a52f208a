"""Priors for questions in known groups.

    group priors   theta_j ~ N(mu_g, tau2_g)   for each group with at least `LEAST` questions
    group means    theta_j ~ N(mu_g, tau2)     a mean for each group, flat; one variance for all

The first is the normal prior, group by group. The second is averaged over tau2 as the normal prior is, with

    log L(tau2) = 1/2 sum_j log w_j - 1/2 sum_g log sum_{j in g} w_j - 1/2 sum_j w_j (t_j - mu_g)^2

so that there may be many groups of few questions each: a question alone in its group stays where it is, and pairs still
show how far apart the members of a group are. Questions without a group, or of a group that was absent when the prior
was fitted, get the common prior.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.core.arrays import expand, offsets
from trueup.shrinkage.contract import Panels
from trueup.shrinkage.normal import Normal
from trueup.shrinkage.panel_data import interval_variance
from trueup.shrinkage.quadrature import (
    HIGHEST,
    POINTS,
    PanelGrid,
    at_each_point,
    fit_grids,
    integrate,
    read_posterior,
)
from trueup.shrinkage.tiles import CELLS
from trueup.shrinkage.units import PanelUnits

if TYPE_CHECKING:
    from trueup.core.arrays import Bools, Floats, Ints
    from trueup.shrinkage.contract import Posterior
    from trueup.shrinkage.normal import QuadraturePrior
    from trueup.shrinkage.panel_data import PanelData
    from trueup.shrinkage.quadrature import Integral, Moved
    from trueup.shrinkage.tiles import Positions

LEAST = 8  # questions of a group that has a prior of its own
LEAST_FREE = 4  # questions less groups, for a common variance


@dataclass(frozen=True, eq=False)
class GroupIndex:
    """The groups of each panel that have a prior, numbered panel by panel.

    Attributes
    ----------
    labels : array
        The labels in use, sorted.
    keys : array
        `panel * len(labels) + place of the label` of these groups, sorted.
    """

    labels: Ints
    keys: Ints

    @classmethod
    def of(cls, groups: Ints, starts: Ints, least: int = 1) -> GroupIndex:
        """Find the groups with at least `least` questions."""
        labels = np.unique(groups[groups >= 0])
        keys, counts = np.unique(cls._keys(labels, groups, starts), return_counts=True)
        return cls(labels, keys[(keys >= 0) & (counts >= least)])

    @staticmethod
    def _keys(labels: Ints, groups: Ints, starts: Ints) -> Ints:
        place = _place(labels, groups)
        panel = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        return np.where(place >= 0, panel * len(labels) + place, -1)

    def find(self, groups: Ints, starts: Ints) -> Ints:
        """Return the number of the group of each question, -1 for one without a prior."""
        return _place(self.keys, self._keys(self.labels, groups, starts))

    def collect(self, groups: Ints, starts: Ints) -> tuple[Ints, Ints]:
        """Return the questions that have a group, ordered by it, and where each group begins."""
        number = self.find(groups, starts)
        some = np.flatnonzero(number >= 0)
        order = some[np.argsort(number[some], kind="stable")]
        return order, offsets(np.bincount(number[some], minlength=len(self.keys)))

    @property
    def panel(self) -> Ints:
        """The panel of each group."""
        return self.keys // max(len(self.labels), 1)


def _place(ordered: Ints, values: Ints) -> Ints:
    """Return where each value stands among sorted ones, -1 where it does not."""
    place = np.searchsorted(ordered, values)
    there = place < len(ordered)
    there[there] = ordered[place[there]] == values[there]
    return np.where(there, place, -1)


@dataclass(frozen=True, eq=False)
class GroupPriors:
    """A normal prior for each large group of each panel."""

    index: GroupIndex
    prior: QuadraturePrior

    @classmethod
    def fit(cls, data: PanelData) -> GroupPriors | None:
        """Fit; return None if no group is large enough."""
        if data.groups is None:
            return None
        index = GroupIndex.of(data.groups, data.starts, LEAST)
        if len(index.keys) == 0:
            return None
        own = data.take(*index.collect(data.groups, data.starts), data.nu[index.panel])
        normal = Normal(caution=1.0)
        return cls(
            index,
            normal.fit(own.x, own.v, panels=own.starts, nu=own.nu, v_interval=own.v_interval),
        )

    def posterior(
        self, x: Floats, v: Floats, *, panels: Ints | None = None, **extra: Any
    ) -> Posterior:
        """Move the aggregates; `common` is the posterior of questions without a prior of their own."""
        by_panel, x, v = Panels.of(x, v, panels)
        order, starts = self.index.collect(extra["groups"], by_panel.starts)
        v_interval = interval_variance(v, extra.get("v_interval"))[order]
        own = self.prior.posterior(x[order], v[order], panels=starts, v_interval=v_interval)
        common: Posterior = extra["common"]
        return common.replaced(order, own)


@dataclass(frozen=True, eq=False)
class GroupMeans:
    """A mean for each group of each panel, and a common variance."""

    index: GroupIndex
    grid: PanelGrid
    careful: PanelGrid

    @classmethod
    def fit(cls, data: PanelData) -> GroupMeans | None:
        """Fit; return None if no panel has enough questions for its groups."""
        if data.groups is None:
            return None
        count = len(data.starts) - 1
        index = GroupIndex.of(data.groups, data.starts)
        panel = index.panel
        order, starts = index.collect(data.groups, data.starts)
        free = np.bincount(panel, np.diff(starts) - 1.0, minlength=count)
        # With a single group this is the common prior.
        enough = (free >= LEAST_FREE) & (np.bincount(panel, minlength=count) > 1)
        if not enough.any():
            return None
        own = data.take(order, starts, data.nu[panel])

        def fit(v: Floats, c: Floats) -> PanelGrid:
            return _fit_grid(own.x, v, starts, panel, enough, c)

        return cls(index, *fit_grids(fit, own.v, own.v_interval, data.nu))

    def posterior(
        self, x: Floats, v: Floats, *, panels: Ints | None = None, **extra: Any
    ) -> Posterior:
        """Move the aggregates; `common` is the posterior of questions without a group."""
        by_panel, x, v = Panels.of(x, v, panels)
        units = self.grid.units
        number = self.index.find(extra["groups"], by_panel.starts)
        grouped = np.flatnonzero((number >= 0) & by_panel.repeat(units.usable))
        number = number[grouped]
        sizes = np.bincount(self.index.panel[number], minlength=len(units.usable))

        def read(grid: PanelGrid, rows: Ints, positions: Positions, x: Floats, v: Floats) -> Moved:
            group = number[positions].reshape(len(rows), -1)
            mu, behind = (
                np.moveaxis(part[group], 2, 1) for part in (grid.beta, 1.0 / grid.precision)
            )
            return grid.read(rows, x, v, mu, behind)

        wide = {"v_interval": interval_variance(v, extra.get("v_interval"))[grouped]}
        grids = self.grid, self.careful
        own = read_posterior(read, grids, units, x[grouped], v[grouped], offsets(sizes), wide)
        common: Posterior = extra["common"]
        return common.replaced(grouped, own)


def _fit_grid(
    x: Floats, v: Floats, starts: Ints, panel: Ints, enough: Bools, c: Floats
) -> PanelGrid:
    """Fit to questions ordered by group, of which group g begins at `starts[g]` and is in panel `panel[g]`."""
    firsts = np.searchsorted(panel, np.arange(len(enough) + 1))
    units = PanelUnits.fit(x, v, starts[firsts])
    units = replace(units, usable=units.usable & enough)
    shape = len(panel), POINTS
    grid = PanelGrid.empty(units, shape, shape)
    grid.precision[:] = 1.0
    usable, group_counts = np.flatnonzero(units.usable), np.diff(firsts)
    # As many panels at a time as stay in the cache.
    batch = np.cumsum(np.diff(starts[firsts])[usable]) // (CELLS // 4)
    for rows in np.split(usable, np.flatnonzero(np.diff(batch)) + 1):
        if len(rows):
            groups = expand(firsts[rows], group_counts[rows])
            sizes = np.diff(starts)[groups]
            questions = expand(starts[groups], sizes)
            integral = _fit_panels(
                units.rows(rows),
                x[questions],
                v[questions],
                offsets(sizes),
                group_counts[rows],
                c[rows],
            )
            grid.put(rows, groups, integral)
    return grid


def _fit_panels(
    units: PanelUnits, x: Floats, v: Floats, starts: Ints, group_counts: Ints, c: Floats
) -> Integral:
    """Integrate over tau2 for panels with so many groups each, one panel after another."""
    first = offsets(group_counts)
    panel_starts = starts[first]
    size, panel_size = np.diff(starts), np.diff(panel_starts)
    centre, unit, floor = (
        np.repeat(part, panel_size) for part in (units.centre, units.unit, units.floor)
    )
    t, u = (x - centre) / unit, np.maximum(v, floor) / unit / unit

    def around(w: Floats) -> tuple[Floats, Floats, Floats]:
        total = np.add.reduceat(w, starts[:-1])
        mu = np.add.reduceat(w * t, starts[:-1]) / total
        rss = np.add.reduceat(w * (t - np.repeat(mu, size)) ** 2, panel_starts[:-1])
        return total, mu, rss

    def fit_point(s: Floats) -> tuple[Floats, ...]:
        w = 1.0 / (u + np.repeat(s, panel_size))
        total, mu, rss = around(w)
        logs = np.add.reduceat(np.log(w), panel_starts[:-1])
        return 0.5 * (logs - np.add.reduceat(np.log(total), first[:-1])), rss, mu, total

    flat = 1.0 / u
    spread = around(flat)[2] / np.add.reduceat(flat, panel_starts[:-1])
    return integrate(
        at_each_point(fit_point),
        free=(panel_size - group_counts).astype(np.float64),
        power=1.0,
        high=HIGHEST * np.maximum(spread, 1.0),
        c=c,
    )
