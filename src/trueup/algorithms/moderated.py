"""Moderated worker variances: inverse-variance weights by EM, each variance pulled toward a common level.

Residuals from the truths are too small, because the truths are made of the same answers, so their expected squares are
used (an EM step). Each variance is pulled toward the level s0 with the strength of two pseudo-answers:

    S_j  = sum_i 1/s_i,    t_j = sum_i (x_ij - b_i)/s_i / S_j
    ss_i = sum_j ( (x_ij - b_i - t_j)^2 + 1/S_j )
    s_i  = (ss_i + 2 s0) / (k_i + 2)

`trueup.variance.worker_noise` estimates the noise of the workers this way, whatever the first step was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from trueup.algorithms.contract import Algorithm, State
from trueup.algorithms.facts import VARIANCE_FLOOR
from trueup.core.arrays import segment_median
from trueup.core.parameters import one_of

if TYPE_CHECKING:
    from trueup.algorithms.facts import Facts
    from trueup.answers.block import Block
    from trueup.core.arrays import Floats

#: Number of pseudo-answers at the common level.
PSEUDO_ANSWERS = 2.0


@dataclass(frozen=True)
class Moderated(Algorithm):
    """Worker variances by EM, pulled toward the level of the median worker with two pseudo-answers.

    `trueup.variance.worker_noise` estimates the noise of the workers this way, whatever the first step was.

    Parameters
    ----------
    toward : {"median", "mean"}
        The level. With "mean" one spammer inflates the variance of good workers; it exists for comparison.
    """

    toward: Literal["median", "mean"] = "median"

    name = "moderated"
    shares_by_worker = True

    def __post_init__(self) -> None:
        one_of("toward", self.toward, ("median", "mean"))

    def start(self, facts: Facts) -> State:
        return State(facts, {"weight": np.ones(facts.n_workers), "variance": _unit(facts)})

    def tally(self, block: Block, state: State, x: Floats) -> Floats:
        slack = block.of_panel(_positive(state.facts.pool)) / block.total_weight(state["weight"])
        return block.squared_distances(x, slack=slack)[None]

    def update(self, state: State, sums: Floats) -> State:
        facts = state.facts
        count = answers_behind(facts)
        level = self._level(facts, sums[0] / np.maximum(count, 1.0))
        variance = (sums[0] + PSEUDO_ANSWERS * level) / (count + PSEUDO_ANSWERS)
        variance = np.where(facts.informative > 0, variance, level)
        variance = np.maximum(variance, VARIANCE_FLOOR * facts.pool_of_worker)
        variance = np.where(variance > 0, variance, 1.0)  # all workers of the panel agree
        return state.replace(weight=_unit(facts) / variance, variance=variance)

    def _level(self, facts: Facts, mean_square: Floats) -> Floats:
        """Return the level toward which each worker's variance is pulled."""
        if self.toward == "mean":
            return facts.pool_of_worker
        median = segment_median(mean_square, facts.n_informative, facts.panel_workers)
        return facts.spread(median)


def _bias_freedom(facts: Facts) -> Floats | float:
    """Return the degree of freedom that the bias of each worker uses up, 0 or 1."""
    if facts.bias_variance is None:
        return 0.0
    return facts.spread((facts.bias_variance > 0).astype(np.float64))


def answers_behind(facts: Facts) -> Floats:
    """Return the number of informative answers of each worker, minus 1 if it has a bias (and two answers)."""
    count = facts.n_informative
    return np.where(count >= 2, count - _bias_freedom(facts), count)


def _unit(facts: Facts) -> Floats:
    """Return each worker's pooled variance, the unit of weights: no weight times an answer overflows."""
    return _positive(facts.pool_of_worker)


def _positive(pool: Floats) -> Floats:
    """Return pooled variances, 1 where all answers of a panel agree."""
    return np.where(pool > 0, pool, 1.0)
