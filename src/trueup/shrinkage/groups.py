"""Priors for questions in known groups.

    own priors   theta_j ~ N(mu_g, tau2_g)   every group with at least `LEAST` questions by itself
    own means    theta_j ~ N(mu_g, tau2)     a mean for each group, flat; one variance for all

The first is the normal prior, group by group. The second is averaged over tau2 as the normal prior is, with

    log L(tau2) = 1/2 sum_j log w_j - 1/2 sum_g log sum_{j in g} w_j - 1/2 sum_j w_j (t_j - mu_g)^2

so that it may have many groups of few questions each: a question alone in its group stays where it is, and pairs still
say how far apart the members of a group are. Questions without a group, or of a group that was not there when the
prior was fitted, have the common prior.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.core.arrays import expand, offsets
from trueup.shrinkage.contract import Panels, Posterior
from trueup.shrinkage.normal import Normal, QuadraturePrior
from trueup.shrinkage.quadrature import (
    CELLS,
    HIGHEST,
    POINTS,
    Nodes,
    PanelUnits,
    integrate,
    interval_variance,
    levels,
    posterior,
    read_nodes,
)

if TYPE_CHECKING:
    from trueup.core.arrays import Bools, Floats, Ints

LEAST = 8  # questions of a group that has a prior of its own
LEAST_FREE = 4  # questions less groups, for a common variance


@dataclass(frozen=True, eq=False)
class Members:
    """Which group of which panel a question belongs to.

    Attributes
    ----------
    labels : array
        The labels in use, sorted.
    keys : array
        `panel * len(labels) + place of the label` of the groups that have a prior, sorted.
    """

    labels: Ints
    keys: Ints

    @classmethod
    def of(cls, groups: Ints, panels: Ints, least: int = 1) -> tuple[Members, Ints]:
        """Find the groups with at least `least` questions, and the group of each question, -1 for none."""
        labels = np.unique(groups[groups >= 0])
        keys, counts = np.unique(cls._keys(labels, groups, panels), return_counts=True)
        members = cls(labels, keys[(keys >= 0) & (counts >= least)])
        return members, members.find(groups, panels)

    @staticmethod
    def _keys(labels: Ints, groups: Ints, panels: Ints) -> Ints:
        place = np.searchsorted(labels, groups)
        known = place < len(labels)
        known[known] = labels[place[known]] == groups[known]
        panel = np.repeat(np.arange(len(panels) - 1), np.diff(panels))
        return np.where(known, panel * len(labels) + place, -1)

    def find(self, groups: Ints, panels: Ints) -> Ints:
        """Return the number of the group of each question, -1 for one without a prior."""
        keys = self._keys(self.labels, groups, panels)
        place = np.searchsorted(self.keys, keys)
        found = place < len(self.keys)
        found[found] = self.keys[place[found]] == keys[found]
        return np.where(found, place, -1)

    @property
    def panel(self) -> Ints:
        """The panel of each group."""
        return self.keys // max(len(self.labels), 1)


def _collect(group: Ints, count: int) -> tuple[Ints, Ints]:
    """Return the questions that have a group, ordered by it, and where each group begins."""
    some = np.flatnonzero(group >= 0)
    order = some[np.argsort(group[some], kind="stable")]
    return order, offsets(np.bincount(group[some], minlength=count))


def _where(common: Posterior, at: Ints, own: Posterior) -> Posterior:
    """Put the posterior of some questions in place of the common one."""
    parts = []
    for kept, new in zip(_parts(common), _parts(own), strict=True):
        whole = kept.copy()
        whole[at] = new
        parts.append(whole)
    return Posterior(*parts)


def _parts(of: Posterior) -> tuple[Floats, Floats, Floats]:
    return of.mean, of.variance, of.shrinkage


@dataclass(frozen=True, eq=False)
class OwnPriors:
    """A normal prior for each large group of each panel."""

    members: Members
    prior: QuadraturePrior

    @classmethod
    def fit(
        cls,
        x: Floats,
        v: Floats,
        panels: Ints,
        groups: Ints,
        *,
        nu: Floats | None = None,
        v_interval: Floats | None = None,
    ) -> OwnPriors | None:
        """Fit; None if no group is large enough."""
        members, group = Members.of(groups, panels, LEAST)
        if len(members.keys) == 0:
            return None
        at, starts = _collect(group, len(members.keys))
        prior = Normal(caution=1.0).fit(
            x[at],
            v[at],
            panels=starts,
            nu=None if nu is None else nu[members.panel],
            v_interval=None if v_interval is None else v_interval[at],
        )
        return cls(members, prior)

    def posterior(
        self, x: Floats, v: Floats, *, panels: Ints | None = None, **known: Any
    ) -> Posterior:
        """Move the aggregates; `common` is the posterior of questions without a prior of their own."""
        by_panel, x, v = Panels.of(x, v, panels)
        group = self.members.find(known["groups"], by_panel.starts)
        at, starts = _collect(group, len(self.members.keys))
        v_interval = interval_variance(v, known.get("v_interval"))[at]
        own = self.prior.posterior(x[at], v[at], panels=starts, v_interval=v_interval)
        return _where(known["common"], at, own)


@dataclass(frozen=True, eq=False)
class MeansGrid:
    """The quadrature of each panel, with a mean for each group at each point, groups x points."""

    scale: PanelUnits
    nodes: Nodes
    mu: Floats
    precision: Floats

    @classmethod
    def fit(
        cls, x: Floats, v: Floats, starts: Ints, panel: Ints, enough: Bools, c: Floats
    ) -> MeansGrid:
        """Fit to questions ordered by group, of which group g begins at `starts[g]` and is of panel `panel[g]`."""
        firsts = np.searchsorted(panel, np.arange(len(enough) + 1))
        scale = PanelUnits.ragged(x, v, starts[firsts])
        scale = PanelUnits(scale.centre, scale.unit, scale.floor, scale.usable & enough)
        s, weight, c_mean = (np.zeros((len(enough), POINTS)) for _ in range(3))
        mu, precision = np.zeros((len(panel), POINTS)), np.ones((len(panel), POINTS))
        usable = np.flatnonzero(scale.usable)
        many = np.diff(firsts)
        # As many panels at a time as stay in the cache.
        batch = np.cumsum(np.diff(starts[firsts])[usable]) // (CELLS // 4)
        for rows in np.split(usable, np.flatnonzero(np.diff(batch)) + 1):
            if len(rows) == 0:
                continue
            here = expand(firsts[rows], many[rows])
            sizes = np.diff(starts)[here]
            question = expand(starts[here], sizes)
            nodes, (mu[here], precision[here]) = _fit_means(
                scale.rows(rows), x[question], v[question], offsets(sizes), many[rows], c[rows]
            )
            s[rows], weight[rows], c_mean[rows] = nodes.s, nodes.weight, nodes.c
        return cls(scale, Nodes(s, weight, c_mean), mu, precision)

    def read(self, rows: Ints, x: Floats, v: Floats, group: Ints) -> tuple[Floats, Floats, Floats]:
        """Return mean, variance and shrinkage of questions, panels x questions, with the number of their group."""
        mu, behind = (np.moveaxis(part[group], 2, 1) for part in (self.mu, 1.0 / self.precision))
        return read_nodes(self.scale.rows(rows), self.nodes.rows(rows), x, v, mu, behind)


def _fit_means(
    scale: PanelUnits, x: Floats, v: Floats, starts: Ints, many: Ints, c: Floats
) -> tuple[Nodes, tuple[Floats, ...]]:
    """Integrate over tau2; `many` groups belong to each panel, one panel after another."""
    first = offsets(many)
    panel_starts = starts[first]
    size, panel_size = np.diff(starts), np.diff(panel_starts)
    centre, unit, floor = (
        np.repeat(part, panel_size) for part in (scale.centre, scale.unit, scale.floor)
    )
    t, u = (x - centre) / unit, np.maximum(v, floor) / unit / unit

    def around(w: Floats) -> tuple[Floats, Floats, Floats]:
        total = np.add.reduceat(w, starts[:-1])
        mu = np.add.reduceat(w * t, starts[:-1]) / total
        rss = np.add.reduceat(w * (t - np.repeat(mu, size)) ** 2, panel_starts[:-1])
        return total, mu, rss

    def sums(s: Floats) -> tuple[Floats, Floats, tuple[Floats, ...]]:
        fit, rss = np.empty(s.shape), np.empty(s.shape)
        mu, total = (np.empty((len(size), s.shape[1])) for _ in range(2))
        for g in range(s.shape[1]):
            w = 1.0 / (u + np.repeat(s[:, g], panel_size))
            total[:, g], mu[:, g], rss[:, g] = around(w)
            logs = np.add.reduceat(np.log(w), panel_starts[:-1])
            fit[:, g] = 0.5 * (logs - np.add.reduceat(np.log(total[:, g]), first[:-1]))
        return fit, rss, (mu, total)

    flat = 1.0 / u
    spread = around(flat)[2] / np.add.reduceat(flat, panel_starts[:-1])
    return integrate(
        sums,
        free=(panel_size - many).astype(np.float64),
        power=1.0,
        high=HIGHEST * np.maximum(spread, 1.0),
        c=c,
    )


@dataclass(frozen=True, eq=False)
class OwnMeans:
    """A mean for each group of each panel, and a common variance."""

    members: Members
    grid: MeansGrid
    careful: MeansGrid

    @classmethod
    def fit(
        cls,
        x: Floats,
        v: Floats,
        panels: Ints,
        groups: Ints,
        *,
        nu: Floats | None = None,
        v_interval: Floats | None = None,
    ) -> OwnMeans | None:
        """Fit; None if no panel has enough questions for its groups."""
        count = len(panels) - 1
        members, group = Members.of(groups, panels)
        at, starts = _collect(group, len(members.keys))
        panel = members.panel
        free = np.bincount(panel, np.diff(starts) - 1.0, minlength=count)
        # With one group only this is the common prior.
        enough = (free >= LEAST_FREE) & (np.bincount(panel, minlength=count) > 1)
        if not enough.any():
            return None
        c = levels(np.full(count, np.inf) if nu is None else nu)
        grid = MeansGrid.fit(x[at], v[at], starts, panel, enough, c)
        careful = grid
        if v_interval is not None or c.shape[1] > 1:
            wide = v if v_interval is None else v_interval
            careful = MeansGrid.fit(x[at], wide[at], starts, panel, enough, np.ones((count, 1)))
        return cls(members, grid, careful)

    def posterior(
        self, x: Floats, v: Floats, *, panels: Ints | None = None, **known: Any
    ) -> Posterior:
        """Move the aggregates; `common` is the posterior of questions without a group."""
        by_panel, x, v = Panels.of(x, v, panels)
        group = self.members.find(known["groups"], by_panel.starts)
        usable = self.grid.scale.usable
        group = np.where(np.repeat(usable, np.diff(by_panel.starts)), group, -1)
        at = np.flatnonzero(group >= 0)
        mine = group[at]
        sizes = np.bincount(self.members.panel[mine], minlength=len(usable))

        def reader(grid: MeansGrid) -> Any:
            def read(
                rows: Ints, where: Ints | slice, x: Floats, v: Floats
            ) -> tuple[Floats, Floats, Floats]:
                return grid.read(rows, x, v, mine[where].reshape(len(rows), -1))

            return read

        v_interval = interval_variance(v, known.get("v_interval"))
        x_own, v_own = x[at], v[at]
        own = posterior(
            reader(self.grid),
            None if self.careful is self.grid else reader(self.careful),
            x_own,
            v_own,
            v_own if v_interval is v else v_interval[at],
            offsets(sizes),
            usable=usable,
        )
        return _where(known["common"], at, own)
