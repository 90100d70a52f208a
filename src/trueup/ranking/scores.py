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

from trueup.ranking.labels import labelled_mean
from trueup.ranking.pair import mean_over_items, numbered

if TYPE_CHECKING:
    from typing import Self

    from trueup.core.arrays import Floats, Ints
    from trueup.ranking.labels import LabelledMean
    from trueup.ranking.pair import MeanDifference


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
        order = np.lexsort((judge, item, system))
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

    def of_system(self, system: int) -> tuple[Ints, Ints, Floats]:
        """Return item, group and score without the bias of the judge, for all scores of a system."""
        rows = slice(self._starts[system], self._starts[system + 1])
        judge = self.judge[rows]
        return self._joined(self.item[rows], judge, self.value[rows] - self.bias[judge])

    def of_pair(self, first: int, second: int) -> tuple[Ints, Ints, Floats]:
        """Return item, group and difference for all judges who scored both systems on an item."""
        one, two = (slice(self._starts[s], self._starts[s + 1]) for s in (first, second))
        keys, others = self._keys[one], self._keys[two]
        if not len(keys) or not len(others):
            none = np.zeros(0, dtype=np.int64)
            return none, none, np.zeros(0)
        if np.array_equal(keys, others):  # as in a complete panel
            difference = self.value[one] - self.value[two]
            return self._joined(self.item[one], self.judge[one], difference)
        place = np.minimum(np.searchsorted(others, keys), len(others) - 1)
        both = others[place] == keys
        difference = self.value[one][both] - self.value[two][place[both]]
        return self._joined(self.item[one][both], self.judge[one][both], difference)

    def _joined(self, item: Ints, judge: Ints, value: Floats) -> tuple[Ints, Ints, Floats]:
        """Average over judges who count as one."""
        group = self.group[judge]
        if not self.pools:
            return item, group, value
        n = len(self.weight)
        key, at = np.unique(item * n + group, return_inverse=True)
        return key // n, key % n, np.bincount(at, value) / np.bincount(at)

    def mean(self, system: int) -> MeanDifference:
        """Return the mean of a system over its items."""
        return mean_over_items(*self.of_system(system), self.weight, self.cluster)

    def difference(self, first: int, second: int) -> MeanDifference:
        """Return the mean difference of two systems over the items that both have."""
        return mean_over_items(*self.of_pair(first, second), self.weight, self.cluster)

    def panel(self, item: Ints, group: Ints, value: Floats) -> tuple[Ints, Floats]:
        """Return the items, and the panel's mean for each of them."""
        weight = self.weight[group]
        used = weight > 0
        items, at = numbered(item[used])
        total = np.bincount(at, weight[used], minlength=len(items))
        return items, np.bincount(at, weight[used] * value[used], minlength=len(items)) / total

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
        items, score = self.panel(*self.of_system(system))
        return labelled_mean(self.labels(system, items), score)

    def labelled_difference(self, first: int, second: int) -> LabelledMean | None:
        """Return the mean difference of two systems on the scale of the labels; None where there are too few."""
        if not len(self.labelled):
            return None
        items, score = self.panel(*self.of_pair(first, second))
        return labelled_mean(self.labels(first, items) - self.labels(second, items), score)

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
