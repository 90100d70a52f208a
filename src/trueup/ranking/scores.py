"""Scores of judges, by system: what means, differences and components are computed from.

Everything is kept in one order, by system, item and judge, so that two systems are joined on their common pairs of item
and judge by a search in sorted keys. Judges who err together count as one: the mean of their scores, or of their
differences, is one score.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from trueup.ranking.components import Crossed
from trueup.ranking.labels import labelled_mean
from trueup.ranking.pair import FULL, Shares, numbered

if TYPE_CHECKING:
    from typing import Self

    from trueup.core.arrays import Floats, Ints
    from trueup.ranking.labels import LabelledMean
    from trueup.ranking.pair import MeanDifference


@dataclass(frozen=True, eq=False)
class Places:
    """Items and judges of the scores of a system, or of those that two systems share, without the scores.

    Attributes
    ----------
    item, group : arrays
        Number of the item and of the group of judges of each score.
    at, size : arrays or None
        Which of these each judge's own score belongs to, and how many do; None where no judges count as one.
    weight, cluster
        Those of `Scores`.
    """

    item: Ints
    group: Ints
    at: Ints | None
    size: Ints | None
    weight: Floats
    cluster: Ints | None

    def joined(self, value: Floats) -> Floats:
        """Average over judges who count as one."""
        if self.at is None or self.size is None:
            return value
        return np.bincount(self.at, value, minlength=len(self.size)) / self.size

    @cached_property
    def shares(self) -> Shares:
        """What each judge counts at each item."""
        return Shares.of(self.item, self.group, self.weight, self.cluster)

    @cached_property
    def table(self) -> Crossed:
        """The table of items and judges."""
        return Crossed.of(self.item, self.group)


@dataclass(frozen=True, eq=False)
class Scores:
    """One score per system, item and judge, in this order.

    Attributes
    ----------
    system, item, judge : arrays
        Numbers of the system, item and judge of each score.
    value : array
        The scores, runs averaged.
    n_systems, n_items, n_judges : int
        How many there are.
    group : array
        Group of each judge; judges who err together share one.
    weight : array
        Weight of each group.
    bias : array
        Bias of each judge.
    cluster : array or None
        Cluster of each item.
    labelled, label : arrays
        Pairs of system and item with a known value, as `system * n_items + item` in rising order, and these values.
    found : dict
        Of the pairs of systems compared so far what does not depend on weights: variance components, number of
        differences, number of items.
    """

    system: Ints
    item: Ints
    judge: Ints
    value: Floats
    n_systems: int
    n_items: int
    n_judges: int
    group: Ints
    weight: Floats
    bias: Floats
    cluster: Ints | None
    labelled: Ints
    label: Floats
    found: dict[tuple[int, int], tuple[tuple[float, float, float] | None, int, int]] = field(
        default_factory=dict, repr=False
    )
    _places: dict[int, Places] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(
        cls,
        system: Ints,
        item: Ints,
        judge: Ints,
        value: Floats,
        *,
        group: Ints,
        weight: Floats,
        bias: Floats,
        cluster: Ints | None = None,
        labels: tuple[Ints, Ints, Floats] | None = None,
    ) -> Self:
        """Sort scores and labels (system, item and value); numbers of systems and items are all in use."""
        sizes = [int(codes.max(initial=-1)) + 1 for codes in (system, item)]
        order = _order(system, item, judge, (sizes[0], sizes[1], len(bias)))
        codes = [np.asarray(each, dtype=np.int64)[order] for each in (system, item, judge)]
        labelled, label = np.zeros(0, dtype=np.int64), np.zeros(0)
        if labels is not None:
            labelled = labels[0] * sizes[1] + labels[1]
            rising = np.argsort(labelled)
            labelled, label = labelled[rising], labels[2][rising]
        return cls(
            codes[0], codes[1], codes[2], value[order], sizes[0], sizes[1], len(bias), group,
            weight, bias, cluster, labelled, label,
        )  # fmt: skip

    @cached_property
    def _starts(self) -> Ints:
        return np.searchsorted(self.system, np.arange(self.n_systems + 1))

    @cached_property
    def _keys(self) -> Ints:
        return self.item * self.n_judges + self.judge

    @cached_property
    def pools(self) -> bool:
        """Whether some judges count as one."""
        return len(self.weight) < self.n_judges

    @cached_property
    def _alike(self) -> list[int]:
        """For each system the first one that has scores of the same judges on the same items."""
        first: dict[bytes, int] = {}
        return [
            first.setdefault(self._keys[self._rows(s)].tobytes(), s) for s in range(self.n_systems)
        ]

    @cached_property
    def _row_of(self) -> Ints | None:
        """Row of each system, item and judge, -1 where there is no score; None where most would be."""
        shape = self.n_systems, self.n_items * self.n_judges
        if shape[0] * shape[1] > FULL * len(self.value):
            return None
        rows = np.full(shape, -1)
        rows[self.system, self._keys] = np.arange(len(self.value))
        return rows

    def _rows(self, system: int) -> slice:
        return slice(self._starts[system], self._starts[system + 1])

    def _placed(self, item: Ints, judge: Ints) -> Places:
        group, n = self.group[judge], len(self.weight)
        if not self.pools:
            return Places(item, group, None, None, self.weight, self.cluster)
        key, at = np.unique(item * n + group, return_inverse=True)
        return Places(key // n, key % n, at, np.bincount(at), self.weight, self.cluster)

    @property
    def units(self) -> str:
        """What systems must share two of to be compared."""
        return "items" if self.cluster is None else "clusters of items"

    def of_system(self, system: int) -> tuple[Places, Floats]:
        """Return the scores of a system without the biases of the judges, and their places."""
        rows, first = self._rows(system), self._alike[system]
        if first not in self._places:
            self._places[first] = self._placed(self.item[rows], self.judge[rows])
        places = self._places[first]
        return places, places.joined(self.value[rows] - self.bias[self.judge[rows]])

    def of_pair(self, first: int, second: int) -> tuple[Places, Floats]:
        """Return the differences of all judges who scored both systems on an item, and their places."""
        one, two = self._rows(first), self._rows(second)
        if self._alike[first] == self._alike[second]:  # as in a complete panel
            places, _ = self.of_system(first)
            return places, places.joined(self.value[one] - self.value[two])
        keys = self._keys[one]
        if self._row_of is not None:
            match = self._row_of[second, keys]
            both = match >= 0
        else:
            others = self._keys[two]
            place = np.minimum(np.searchsorted(others, keys), len(others) - 1)
            both = others[place] == keys
            match = place + two.start
        places = self._placed(self.item[one][both], self.judge[one][both])
        return places, places.joined(self.value[one][both] - self.value[match[both]])

    def mean(self, system: int) -> MeanDifference:
        """Return the mean of a system over its items."""
        places, value = self.of_system(system)
        return places.shares.mean(value)

    def difference(self, first: int, second: int) -> MeanDifference:
        """Return the mean difference of two systems over the items that both have."""
        places, value = self.of_pair(first, second)
        return places.shares.mean(value)

    def labels(self, system: int, items: Ints) -> Floats:
        """Return the known values of a system on items, NaN where there is none."""
        if not len(self.labelled):
            return np.full(len(items), np.nan)
        keys = system * self.n_items + items
        place = np.minimum(np.searchsorted(self.labelled, keys), len(self.labelled) - 1)
        return np.where(self.labelled[place] == keys, self.label[place], np.nan)

    def labelled_mean(self, system: int) -> LabelledMean | None:
        """Return the mean of a system on the scale of the labels; None where there are too few."""
        if not len(self.labelled):
            return None
        places, value = self.of_system(system)
        label = self.labels(system, places.shares.items)
        return labelled_mean(label, places.shares.over_judges(value))

    def labelled_difference(self, first: int, second: int) -> LabelledMean | None:
        """Return the mean difference of two systems on the scale of the labels; None where there are too few."""
        if not len(self.labelled):
            return None
        places, value = self.of_pair(first, second)
        items = places.shares.items
        label = self.labels(first, items) - self.labels(second, items)
        return labelled_mean(label, places.shares.over_judges(value))

    @cached_property
    def counts(self) -> Ints:
        """Number of scores of each system."""
        return np.diff(self._starts)

    @cached_property
    def share(self) -> Floats:
        """Share of the weight of each group, averaged over systems and items."""
        key = self.system * self.n_items + self.item
        n = len(self.weight)
        cells = key * n + self.group[self.judge]
        if self.pools:
            cells = np.unique(cells)
        key, group = cells // n, cells % n
        _, where = numbered(key)
        total = np.bincount(where, self.weight[group])
        known = total > 0
        part = np.divide(
            self.weight[group], total[where], out=np.zeros(len(group)), where=known[where]
        )
        count = max(int(known.sum()), 1)
        return np.bincount(group, part, minlength=n) / count

    @property
    def effective_judges(self) -> float:
        """Number of equal, independent judges who would count as much."""
        size = float(self.share @ self.share)
        return 1.0 / size if size > 0 else 0.0

    @cached_property
    def without_weight(self) -> int:
        """Number of pairs of system and item that no judge with weight has scored."""
        key = self.system * self.n_items + self.item
        some, _ = numbered(key[self.weight[self.group[self.judge]] > 0])
        return len(numbered(key)[0]) - len(some)


def _order(system: Ints, item: Ints, judge: Ints, sizes: tuple[int, int, int]) -> Ints:
    """Return the order by system, item and judge; no three of them occur twice."""
    cells = sizes[0] * sizes[1] * sizes[2]
    if cells > FULL * len(system):
        return np.lexsort((judge, item, system))
    row = np.full(cells, -1)
    row[(system * sizes[1] + item) * sizes[2] + judge] = np.arange(len(system))
    return row[row >= 0]
