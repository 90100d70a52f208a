"""The judges: how much each of them counts, and which systems they favour.

Weights are those of the first step over all pairs of item and system, without the second step: averages of shrunk
questions are pulled toward each other, and differences of systems would come out too small. `balanced` then makes them
weights for averages over many items.

A judge favours a system by how much its scores exceed those of the other judges, relative to what the same judge does
on the other systems of the same item: a strict judge, and a judge who is strict on one item, favours nobody. Effects
are shrunk by their own variance. A judge who favours a system makes all others look as if they marked it down a little,
and itself as if it marked down the other systems, so only effects near the largest of a judge and of a system
are named.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtr

from trueup.algorithms.driver import run
from trueup.pipeline.first_step import choose_first_step
from trueup.pipeline.pooling import find_pooling
from trueup.ranking.pair import holm, numbered
from trueup.variance.bias import estimate_biases
from trueup.variance.worker_noise import worker_noise

if TYPE_CHECKING:
    from trueup.core.arrays import Bools, Floats, Ints
    from trueup.core.progress import Progress
    from trueup.engines.protocol import Engine
    from trueup.ranking.scores import Scores
    from trueup.request import Plan

#: Standard errors, and share of the largest effect on a system, beyond which a judge is named.
CLEAR, NEAR = 2.0, 0.6
#: Judges from which on it can be told who favours a system: of two, each differs from the other alike.
FEWEST = 3


@dataclass(frozen=True, eq=False)
class JudgeWeights:
    """How much each judge counts.

    Attributes
    ----------
    group : array
        Group of each judge: judges who err together share one.
    weight : array
        Weight of each group.
    variance, bias : arrays
        Noise variance and bias of each judge.
    method : str
        The first step.
    pooled : str
        Which judges count as one, in words; empty: none.
    """

    group: Ints
    weight: Floats
    variance: Floats
    bias: Floats
    method: str
    pooled: str = ""

    @property
    def each(self) -> Floats:
        """Weight of each judge; judges of a group share its weight."""
        return self.weight[self.group] / np.bincount(self.group)[self.group]


def judge_weights(engine: Engine, plan: Plan, bar: Progress) -> JudgeWeights:
    """Run the first step, with judges who err together as one whatever the method is."""
    first = choose_first_step(engine, plan, bar)
    combined, pooling = first.combined, first.pooling
    if pooling is None and not plan.pools:
        pooling, _ = find_pooling(engine, plan.seed)
        combined = engine if pooling is None else pooling.pool(engine)
    aggregate = run(first.algorithm, combined, max_iter=plan.max_iter, tol=plan.tol)
    n = engine.n_workers
    leader = np.arange(n) if pooling is None else pooling.leader
    leaders, group = np.unique(leader, return_inverse=True)
    noise = worker_noise(engine)
    variance = aggregate.noise[leader] if first.algorithm.concludes else noise.variance
    overlap = noise.screening.facts
    unknown = overlap.spread(overlap.overlap) <= 0
    return JudgeWeights(
        group,
        aggregate.weight[leaders],
        np.where(unknown, np.nan, variance),
        estimate_biases(engine).value,
        first.algorithm.name or type(first.algorithm).__name__,
        "" if pooling is None else pooling.said,
    )


@dataclass(frozen=True, eq=False)
class Favours:
    """How much each judge favours each system, a row per judge and a column per system; NaN where unknown.

    Attributes
    ----------
    effect, std_error : arrays
        The shrunk effect and its standard error.
    adjusted_p : array
        Probability of such an effect by chance, adjusted for all judges and systems by Holm's method.
    named : array
        Whether it stands out.
    """

    effect: Floats
    std_error: Floats
    adjusted_p: Floats
    named: Bools


def favours(scores: Scores, level: float) -> Favours:
    """Estimate how much each judge favours each system."""
    judges, systems = scores.n_judges, scores.n_systems
    above, rows = _above_others(scores)
    item, judge, system = scores.item[rows], scores.judge[rows], scores.system[rows]
    # Relative to what the same judge does on the other systems of the item.
    _, pair = numbered(item * judges + judge)
    count = np.bincount(pair)
    own = above - (np.bincount(pair, above) / np.maximum(count, 1))[pair]
    kept = count[pair] > 1
    cell, own = (judge * systems + system)[kept], own[kept]
    size = judges * systems
    n = np.bincount(cell, minlength=size).astype(float)
    some, enough = np.maximum(n, 1), n > 1
    mean = np.bincount(cell, own, minlength=size) / some
    squares = np.bincount(cell, (own - mean[cell]) ** 2, minlength=size)
    error = np.where(enough, np.sqrt(squares / (some * np.maximum(n - 1, 1))), np.nan)
    mean = np.where(enough, mean, np.nan)
    p = np.full(size, np.nan)
    sure = enough & (error > 0)
    p[sure] = 2 * stdtr(n[sure] - 1, -np.abs(mean[sure] / error[sure]))
    p[enough & (error == 0)] = np.where(mean[enough & (error == 0)] == 0, 1.0, 0.0)
    adjusted = holm(p)
    spread = float(np.nanmean(mean**2 - error**2)) if enough.any() else 0.0
    spread = max(spread, 0.0)
    total = spread + error**2
    kept_share = np.divide(spread, total, out=np.zeros(size), where=total > 0)
    effect = np.where(enough, mean * kept_share, np.nan).reshape(judges, systems)
    raw = np.abs(mean).reshape(judges, systems)
    sizes = np.where(np.isnan(raw), 0.0, raw)
    by_judge, by_system = (sizes.max(axis=axis, initial=0.0, keepdims=True) for axis in (1, 0))
    named = (
        (adjusted.reshape(judges, systems) <= 1 - level)
        & (raw > CLEAR * error.reshape(judges, systems))
        & (raw >= NEAR * np.maximum(by_judge, by_system))
    )
    if len(np.unique(scores.group)) < FEWEST:
        named[:] = False
    return Favours(
        effect,
        (np.sqrt(kept_share) * error).reshape(judges, systems),
        adjusted.reshape(judges, systems),
        named,
    )


def _above_others(scores: Scores) -> tuple[Floats, Ints]:
    """Return how far scores are above the mean of judges outside the judge's group, and the rows of these scores."""
    key = scores.system * scores.n_items + scores.item
    _, cell = numbered(key)
    n = len(scores.weight)
    group = scores.group[scores.judge]
    value = scores.value - scores.bias[scores.judge]
    pairs, at = numbered(cell * n + group)
    mean = np.bincount(at, value) / np.bincount(at)
    weight, where = scores.weight[pairs % n], pairs // n
    total, weighted = np.bincount(where, weight), np.bincount(where, weight * mean)
    left = total[cell] - weight[at]
    rows = np.flatnonzero(left > 1e-9 * total[cell])
    others = (weighted[cell] - (weight * mean)[at])[rows] / left[rows]
    return value[rows] - others, rows
