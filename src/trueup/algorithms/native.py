"""The native first step: inverse-variance weights, with worker variances shrunk by empirical Bayes.

As in the inverse-variance family, the weight of a worker is one over its variance. Residuals from the truths are too
small, because the truths are made of the same answers, so their expected squares are used (an EM step). Each variance
is pulled toward a common level with the strength of d0 pseudo-answers:

    S_j  = sum_i 1/s_i,    t_j = sum_i (x_ij - b_i)/s_i / S_j
    ss_i = sum_j ( (x_ij - b_i - t_j)^2 + 1/S_j )
    s_i  = (ss_i + d0 s0) / (k_i + d0)

`d0` and `s0` are empirical-Bayes estimates: similar workers give a large d0 and nearly the plain mean, different
workers keep weights of their own. Gross questions and biases are screened out while the variances are learned.
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
    from trueup.engines.protocol import Engine

#: Number of pseudo-answers as long as the spread of the worker variances is unknown.
PSEUDO_ANSWERS = 4.0
#: Largest number of pseudo-answers; workers are then practically equal.
ALIKE = 1000.0
#: Largest number of informative workers from which the spread of their variances cannot be estimated.
FEW_WORKERS = 3
#: Number of updates before the spread of the worker variances is estimated.
FIRST_ROUNDS = 2
#: Smallest mean square, as a share of the pooled variance, that enters a logarithm.
SMALLEST = 1e-4


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
    pseudo_answers = 2.0

    def __post_init__(self) -> None:
        one_of("toward", self.toward, ("median", "mean"))

    def start(self, facts: Facts) -> State:
        pool = np.where(facts.pool_of_worker > 0, facts.pool_of_worker, 1.0)
        return State(facts, {"weight": 1.0 / pool, "variance": pool})

    def tally(self, block: Block, state: State, x: Floats) -> Floats:
        total = block.total_weight(state["weight"])
        slack = block.by_worker(block.precision, block.informative / total)
        return np.stack([block.squared_distances(x), slack])

    def update(self, state: State, sums: Floats) -> State:
        facts = state.facts
        count = answers_behind(facts)
        ss = sums[0] + sums[1]
        level, strength = self.prior(state, ss, count, state["weight"] * sums[1])
        variance = (ss + strength * level) / (count + strength)
        variance = np.where(facts.informative > 0, variance, level)
        variance = np.maximum(variance, VARIANCE_FLOOR * facts.pool_of_worker)
        variance = np.where(variance > 0, variance, 1.0)  # all workers of the panel agree
        return state.replace(weight=1.0 / variance, variance=variance)

    def prior(
        self, state: State, ss: Floats, count: Floats, own: Floats
    ) -> tuple[Floats, Floats | float]:
        """Return the level toward which each worker's variance is pulled, and the number of pseudo-answers."""
        facts = state.facts
        if self.toward == "mean":
            return facts.pool_of_worker, self.pseudo_answers
        mean = ss / np.maximum(count, 1.0)
        median = segment_median(mean, facts.n_informative, facts.panel_workers)
        return facts.spread(median), self.pseudo_answers


@dataclass(frozen=True)
class Native(Moderated):
    """Inverse-variance weights with worker variances shrunk by empirical Bayes.

    The number of pseudo-answers d0 and the level s0 come from the spread of `log(ss_i / k_i)` over workers beyond what
    their degrees of freedom explain (Smyth, Statistical Applications in Genetics and Molecular Biology 2004, for gene
    expression), with a small-sample correction `1/d0 = (L-3)/L / d1 + 3/(4 L)` for L workers.
    """

    name = "native"
    max_updates = 10
    pseudo_answers = PSEUDO_ANSWERS

    def prepare(self, engine: Engine, facts: Facts) -> tuple[Engine, Facts]:
        from trueup.algorithms.screening import screen

        screening = screen(engine, facts)
        return screening.engine, screening.facts

    def prior(
        self, state: State, ss: Floats, count: Floats, own: Floats
    ) -> tuple[Floats, Floats | float]:
        from scipy.special import digamma, polygamma

        median, strength = super().prior(state, ss, count, own)
        if state.step < FIRST_ROUNDS:
            return median, strength
        facts = state.facts
        workers = facts.panel_sum(facts.informative)
        if (workers <= FEW_WORKERS).all():
            return median, strength
        freedom = 0.5 * np.maximum(facts.n_informative - own - _bias_freedom(facts), 0.5)
        mean = np.maximum(ss / np.maximum(count, 1.0), SMALLEST * facts.pool_of_worker)
        mean = np.where(mean > 0, mean, 1.0)
        z = np.log(mean) - digamma(freedom) + np.log(freedom)
        centre = facts.mean_of_informative(z)
        divisor = np.maximum(workers - 1.0, 1.0)
        spread = facts.panel_sum(facts.informative * (z - facts.spread(centre)) ** 2) / divisor
        excess = spread - facts.mean_of_informative(polygamma(1, freedom))
        d1 = 2.0 / np.maximum(excess, 2.0 / ALIKE) + 1.0
        d1 = np.where(excess > 0, np.minimum(d1, ALIKE), ALIKE)
        size = np.maximum(workers, 1.0)
        d0 = 1.0 / ((size - 3.0) / size / d1 + 0.75 / size)
        enough = facts.spread(workers) > FEW_WORKERS
        level = np.where(enough, facts.spread(np.exp(centre)), median)
        return level, np.where(enough, facts.spread(d0), strength)

    def noise(self, state: State, ss: Floats, freedom: Floats) -> Floats:
        return state["variance"]


def _bias_freedom(facts: Facts) -> Floats | float:
    """Return the degree of freedom that the bias of each worker uses up, 0 or 1."""
    if facts.bias_variance is None:
        return 0.0
    return facts.spread((facts.bias_variance > 0).astype(np.float64))


def answers_behind(facts: Facts) -> Floats:
    """Return the number of informative answers of each worker, minus 1 if it has a bias (and two answers)."""
    count = facts.n_informative
    return np.where(count >= 2, count - _bias_freedom(facts), count)
