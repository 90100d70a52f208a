"""Medians: plain, and weighted by the typical error of each worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trueup.algorithms.contract import Algorithm, State
from trueup.algorithms.facts import VARIANCE_FLOOR
from trueup.core.parameters import number

if TYPE_CHECKING:
    from trueup.algorithms.contract import Kind
    from trueup.algorithms.facts import Facts
    from trueup.answers.block import Block
    from trueup.core.arrays import Floats


@dataclass(frozen=True)
class Median(Algorithm):
    """Median of the answers to each question, the midpoint of the middle two for an even number.

    The variance of a truth is the large-sample one for normal workers of unequal variance,
    `(pi/2) k / (sum_i 1/sigma_i)^2`, and that of the mean for one or two answers.
    """

    name = "median"
    shares_by_worker = True

    @property
    def kind(self) -> Kind:
        return "robust"

    def truths(self, block: Block, state: State) -> Floats:
        if block.precision is None:
            return block.median
        return block.weighted_median(np.sqrt(block.precision))

    def noise(self, state: State, ss: Floats, freedom: Floats) -> Floats:
        return state.facts.variance(ss, state.facts.n_informative)

    def uncertainty(self, block: Block, state: State, x: Floats, noise: Floats) -> Floats:
        variance = noise.take(block.workers)
        if block.precision is not None:
            variance = variance / block.precision
        few = block.by_question(variance) / block.counts**2
        with np.errstate(divide="ignore"):  # the variance is 0 where all agree
            many = 0.5 * np.pi * block.counts / block.by_question(1.0 / np.sqrt(variance)) ** 2
        return np.where(block.counts <= 2, few, many)


@dataclass(frozen=True)
class WeightedMedian(Algorithm):
    """Weighted median of the answers, the weights learned from each worker's mean absolute error.

    As for Laplace errors with scale `d_i`, learned from the plain medians:

        d_i = (sum_j |x_ij - median_j| + nu0 d) / (k_i + nu0),   w_i = 1 / d_i,   t_j = weighted median

    with `d` the mean absolute error of all workers. There is only one update: a worker with much weight is the weighted
    median, so its error would be 0 and its weight would keep growing. Known worker variances fix the scale at
    `sigma_i / sqrt(2)`.

    Parameters
    ----------
    nu0 : float
        Number of pseudo-answers with the typical error.
    """

    nu0: float = 2.0

    name = "weighted_median"
    max_updates = 1
    uses_variance = True

    def __post_init__(self) -> None:
        number("nu0", self.nu0)

    @property
    def kind(self) -> Kind:
        return "robust"

    def start(self, facts: Facts) -> State:
        known = facts.worker_variance
        weight = np.ones(facts.n_workers)
        if known is not None and not np.isnan(known).any():
            weight = np.sqrt(2.0 / known)
        return State(facts, {"weight": weight})

    def truths(self, block: Block, state: State) -> Floats:
        return block.weighted_median(self._answer_weights(block, state))

    def _answer_weights(self, block: Block, state: State) -> Floats:
        weight = state["weight"].take(block.workers)
        return weight if block.precision is None else weight * np.sqrt(block.precision)

    def weights(self, block: Block, state: State, x: Floats) -> Floats:
        weight = self._answer_weights(block, state)
        return weight / block.spread(block.by_question(weight))

    def tally(self, block: Block, state: State, x: Floats) -> Floats:
        error = np.sqrt(block.squares(x))
        return block.by_worker(error, block.informative)[None]

    def update(self, state: State, sums: Floats) -> State:
        facts = state.facts
        total, count = facts.panel_sum(sums[0]), facts.panel_sum(facts.n_informative)
        typical = np.divide(total, count, out=np.zeros(facts.n_panels), where=count > 0)
        error = (sums[0] + self.nu0 * facts.spread(typical)) / np.maximum(
            facts.n_informative + self.nu0, 1.0
        )
        floor = np.sqrt(VARIANCE_FLOOR * facts.pool_of_worker)
        weight = 1.0 / np.maximum(error, np.where(floor > 0, floor, 1.0))
        known = facts.worker_variance
        if known is not None:
            weight = np.where(np.isnan(known), weight, np.sqrt(2.0 / known))
        return state.replace(weight=facts.weigh(weight))
