"""All systems and their differences: order, adjusted p-values, ranks, and who cannot be told apart."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from trueup.ranking.components import Components, Crossed, pool
from trueup.ranking.contrast import Contrast
from trueup.ranking.pair import holm

if TYPE_CHECKING:
    from trueup.core.arrays import Floats, Ints
    from trueup.ranking.pair import MeanDifference
    from trueup.ranking.scores import Scores

#: Systems up to which all pairs are compared; of more, the neighbours in rank.
ALL_PAIRS = 50
BETTER, WORSE, UNCLEAR, UNKNOWN = "better", "worse", "not clear", "cannot be compared"


@dataclass(frozen=True, eq=False)
class Standings:
    """Systems compared.

    Attributes
    ----------
    scores : Scores
        What the judges said.
    level : float
        Level of the intervals; "clearly" means an adjusted p-value of at most one minus it.
    fixed : bool
        Whether intervals are about these judges rather than about judges like these.
    sign : int
        1 where higher is better, else -1.
    run_variance, runs : float
        Variance between runs of a judge, and the mean number of runs.
    """

    scores: Scores
    level: float
    fixed: bool
    sign: int
    run_variance: float
    runs: float
    _pairs: dict[tuple[int, int], Contrast] = field(default_factory=dict)

    def difference(self, first: int, second: int) -> Contrast:
        """Compare two systems by number."""
        if (first, second) not in self._pairs:
            judged = self._judged.get((first, second))
            if judged is None:
                judged = self.scores.difference(first, second)
            if judged.knows_judges:
                between, noise = self._between_judges
                if between > judged.judge_variance:
                    freedom = judged.judge_df * max(self.scores.n_systems - 1, 1)
                    judged = replace(
                        judged, judge_variance=between, judge_noise=noise, judge_df=freedom
                    )
            self._pairs[first, second] = Contrast(
                judged,
                self.scores.labelled_difference(first, second),
                self.fixed,
                self.level,
            )
        return self._pairs[first, second]

    @cached_property
    def _judged(self) -> dict[tuple[int, int], MeanDifference]:
        """What the judges alone say of each pair."""
        return {pair: self.scores.difference(*pair) for pair in self.pairs}

    @cached_property
    def _between_judges(self) -> tuple[float, float]:
        """Mean variance from the choice of the judges over all pairs, and the sum behind its degrees of freedom.

        No pair gets less: few judges agree about some of many pairs by chance, and these would look certain.
        """
        known = [
            (each.judge_variance, each.judge_noise)
            for each in self._judged.values()
            if each.knows_judges
        ]
        if not known:
            return 0.0, 0.0
        between, noise = np.mean(known, axis=0).tolist()
        return between, noise

    @cached_property
    def means(self) -> list[Contrast]:
        """The mean of each system, by number."""
        return [
            Contrast(self.scores.mean(s), self.scores.labelled_mean(s), self.fixed, self.level)
            for s in range(self.scores.n_systems)
        ]

    @cached_property
    def order(self) -> Ints:
        """The systems by number, the best first; those without a mean last.

        Where some systems have no labels, the judges put them in order: means on two scales have none.
        """
        labelled = all(mean.labelled is not None for mean in self.means)
        value = np.array([mean.value if labelled else mean.judged.value for mean in self.means])
        order: Ints = np.argsort(
            np.where(np.isnan(value), np.inf, -self.sign * value), kind="stable"
        )
        return order

    @property
    def complete(self) -> bool:
        """Whether all pairs are compared."""
        return self.scores.n_systems <= ALL_PAIRS

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """The pairs that are compared, by number, the better mean first."""
        order = self.order.tolist()
        if not self.complete:
            return list(pairwise(order))
        return [(one, two) for k, one in enumerate(order) for two in order[k + 1 :]]

    @cached_property
    def p_values(self) -> Floats:
        """p-value of each pair; NaN where it cannot be compared."""
        return np.array([self.difference(*pair).p_value() for pair in self.pairs])

    @cached_property
    def adjusted(self) -> Floats:
        """The same, adjusted for all pairs by Holm's method."""
        return holm(self.p_values)

    @cached_property
    def verdicts(self) -> list[str]:
        """Whether the first of each pair is clearly better, worse, neither, or cannot be compared."""
        words = []
        for pair, p in zip(self.pairs, self.adjusted.tolist(), strict=True):
            if np.isnan(p):
                words.append(UNKNOWN)
            elif p <= self.alpha:
                words.append(BETTER if self.sign * self.difference(*pair).value > 0 else WORSE)
            else:
                words.append(UNCLEAR)
        return words

    @property
    def alpha(self) -> float:
        """Largest adjusted p-value of a clear difference, free of what subtraction leaves behind."""
        return round(1.0 - self.level, 12)

    @cached_property
    def clearly_better(self) -> list[tuple[int, int]]:
        """All pairs of systems of which the first is clearly better than the second."""
        found = []
        for (one, two), word in zip(self.pairs, self.verdicts, strict=True):
            if word in (BETTER, WORSE):
                found.append((one, two) if word == BETTER else (two, one))
        return found

    @cached_property
    def ranks(self) -> tuple[Ints, Ints]:
        """Best and worst rank of each system that the clear differences leave open, by number."""
        n = self.scores.n_systems
        low, high = np.ones(n, dtype=np.int64), np.full(n, n, dtype=np.int64)
        for better, worse in self.clearly_better:
            low[worse] += 1
            high[better] -= 1
        return low, high

    @cached_property
    def components(self) -> Components:
        """Where the variance of scores comes from."""
        items_by_systems, judges_by_systems, rest = self.of_differences
        items = judges = judges_by_items = np.nan
        means = self._means_over_systems()
        if means is not None:
            n = self.scores.n_systems
            items = means[0] - items_by_systems / n
            judges = means[1] - judges_by_systems / n
            judges_by_items = means[2] - rest / n
        rest -= self.run_variance / self.runs
        values = (items, items_by_systems, judges, judges_by_systems, judges_by_items, rest)
        return Components(*map(_not_negative, (*values, self.run_variance)))

    @cached_property
    def of_differences(self) -> tuple[float, float, float]:
        """Variances of items x systems, of judges x systems and of the rest with the runs; they may be negative."""
        found = [self._of_pair(pair) for pair in self.pairs]
        parts, sizes = [each[0] for each in found], [each[1] for each in found]
        items, judges, rest = (pool(parts, sizes) / 2).tolist()
        return items, judges, rest

    def _of_pair(self, pair: tuple[int, int]) -> tuple[tuple[float, float, float] | None, int, int]:
        """Return the components of the differences of two systems, in either order, their number and that of items."""
        one, two = sorted(pair)
        known = self.scores.found
        if (one, two) not in known:
            places, value = self.scores.of_pair(one, two)
            table = places.table
            known[one, two] = table.components(value), len(value), len(table.in_row)
        return known[one, two]

    def _means_over_systems(self) -> tuple[float, float, float] | None:
        """Return the components of means over systems, where a judge scored all of them on an item."""
        scores = self.scores
        n, group = len(scores.weight), scores.group[scores.judge]
        cells = (scores.system * scores.n_items + scores.item) * n + group
        value = scores.value
        if scores.pools:
            cells, at = np.unique(cells, return_inverse=True)
            value = np.bincount(at, value) / np.bincount(at)
        pair = cells % (scores.n_items * n)
        keys, where = np.unique(pair, return_inverse=True)
        full = np.bincount(where) == scores.n_systems
        mean = np.bincount(where, value)[full] / scores.n_systems
        return Crossed.of(keys[full] // n, keys[full] % n).components(mean)

    @cached_property
    def typical_items(self) -> float:
        """Median number of items that two systems share."""
        counts = [self._of_pair(pair)[2] for pair in self.pairs]
        return float(np.median(counts)) if counts else 0.0


def balanced(scores: Scores) -> Scores:
    """Return the scores with weights for averages over many items.

    The first step weighs judges by the noise of single scores, which more items average out; how a judge favours
    systems they do not. With `v_js` the variance of the latter, `v` that of what is left of a score and P items, a
    judge of weight w (1 on average) has the variance `v_js + v/(w P)` in a mean, and counts by its inverse.
    """
    before = Standings(scores, 0.95, fixed=False, sign=1, run_variance=0.0, runs=1.0)
    _, judges_by_systems, rest = before.of_differences
    positive = scores.weight > 0
    if not judges_by_systems > 0 or np.isnan(rest) or not positive.any():
        return scores
    weight = scores.weight / scores.weight[positive].mean()
    noise = max(rest, 0.0) / (np.maximum(weight, 1e-12) * before.typical_items)
    return replace(scores, weight=np.where(positive, 1.0 / (judges_by_systems + noise), 0.0))


def _not_negative(value: float) -> float:
    return value if np.isnan(value) else max(value, 0.0)
