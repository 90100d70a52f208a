"""The subject-bias model of video-quality panels: each worker has a bias and an inconsistency.

ITU-T P.910 / P.913; Li and Bampis, Recover subjective quality scores from noisy measurements, DCC 2017:

    x_ij = t_j + b_i + nu_i e_ij
    b_i = mean_j (x_ij - t_j),   nu_i^2 = mean_j (x_ij - t_j)^2 - b_i^2
    t_j = sum_i (x_ij - b_i) w_i / sum_i w_i,   w_i = 1 / nu_i^2

The location is fixed by requiring that the biases average to zero over the workers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trueup.algorithms.contract import Algorithm, State
from trueup.algorithms.facts import VARIANCE_FLOOR
from trueup.core.parameters import number

if TYPE_CHECKING:
    from trueup.algorithms.facts import Facts
    from trueup.answers.block import Block
    from trueup.core.arrays import Floats


@dataclass(frozen=True)
class SubjectBias(Algorithm):
    """Truths corrected for the bias of each worker, weighted by inconsistency.

    Parameters
    ----------
    nu0 : float
        Number of pseudo-answers at the pooled variance; 0 gives the published model, in which one worker tends to
        dictate all truths.
    epsilon : float
        Added to the variance in the weight, in squared answer units.
    """

    nu0: float = 2.0
    epsilon: float = 0.0

    name = "subject_bias"
    continues = False
    shares_by_worker = True
    finishes = True

    def __post_init__(self) -> None:
        number("nu0", self.nu0)
        number("epsilon", self.epsilon)

    def start(self, facts: Facts) -> State:
        zeros = np.zeros(facts.n_workers)
        return State(
            facts,
            {
                "weight": np.ones(facts.n_workers),
                "bias": zeros,
                "variance": facts.pool_of_worker,
                "shift": zeros,
            },
        )

    def truths(self, block: Block, state: State) -> Floats:
        weight, total = block.weigh(state["weight"])
        return (total - block.total_weight(state["weight"] * state["bias"])) / weight

    def tally(self, block: Block, state: State, x: Floats) -> Floats:
        residuals = block.residuals(x)
        weighted = residuals if block.precision is None else block.precision * residuals
        first = block.by_worker(weighted, block.informative)
        return np.stack([first, block.by_worker(weighted * residuals, block.informative)])

    def update(self, state: State, sums: Floats) -> State:
        facts = state.facts
        bias = self._bias(facts, sums)
        pool = facts.pool_of_worker
        ss = np.maximum(sums[1] - facts.precision * bias**2, 0.0)
        variance = facts.variance(ss + self.nu0 * pool, facts.n_informative + self.nu0)
        weight = 1.0 / np.where(variance > 0, variance + self.epsilon, 1.0)
        return state.replace(weight=facts.weigh(weight), bias=bias, variance=variance)

    def finish(self, state: State, sums: Floats) -> State:
        """Return the state with the biases at the final truths, shifted so that they average to zero."""
        facts = state.facts
        bias = np.where(facts.pool_of_worker > 0, self._bias(facts, sums), 0.0)
        count = facts.panel_sum(facts.informative)
        shift = facts.panel_sum(bias * facts.informative) / np.maximum(count, 1.0)
        shift = facts.spread(shift)
        return state.replace(bias=(bias - shift) * facts.informative, shift=shift)

    @staticmethod
    def _bias(facts: Facts, sums: Floats) -> Floats:
        total = facts.precision
        bias: Floats = np.divide(sums[0], total, out=np.zeros(len(total)), where=total > 0)
        return bias

    def final_truths(self, block: Block, state: State, x: Floats) -> Floats:
        first = block.indptr[:-1]
        worker = block.workers[first]
        single = block.values[first] - state["bias"][worker]  # the only answer minus its bias
        return np.where(block.counts > 1, x + state["shift"][worker], single)

    def noise(self, state: State, ss: Floats, freedom: Floats) -> Floats:
        return np.maximum(state["variance"], VARIANCE_FLOOR * state.facts.pool_of_worker)

    def uncertainty(self, block: Block, state: State, x: Floats, noise: Floats) -> Floats:
        precision = np.divide(1.0, noise, out=np.zeros(len(noise)), where=noise > 0)
        total = block.total_weight(precision)
        return np.divide(1.0, total, out=np.zeros(len(total)), where=total > 0)
