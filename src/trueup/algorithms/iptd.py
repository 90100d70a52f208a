"""PTD and IPTD: proxy-based truth discovery, once and iterated.

Meir et al., Truth discovery via proxy voting (arXiv 1905.00629). The proxy of a worker is its weighted mean
squared distance from the other workers who answered the same questions. It can be computed without comparing
pairs of answers: with `W_j` the sum of weights, `t_j` the weighted mean and `V_j` the weighted variance of a question,

    sum_i' w_i' (x_ij - x_i'j)^2 = W_j ((x_ij - t_j)^2 + V_j)
    pi_i = sum_j W_j ((x_ij - t_j)^2 + V_j) / sum_j (W_j - w_i)

The proxies give an estimate f_i of each worker's fault, which is its variance; `w_i = 1 / f_i`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from trueup.algorithms.contract import Algorithm, State
from trueup.core.parameters import number, one_of

if TYPE_CHECKING:
    from trueup.algorithms.facts import Facts
    from trueup.answers.block import Block
    from trueup.core.arrays import Floats

SMALLEST_FAULT = 0.01  # of half the mean proxy


@dataclass(frozen=True)
class IPTD(Algorithm):
    """Iterated proxy-based truth discovery.

    Parameters
    ----------
    variant : {"pd", "awg", "debias"}
        How faults follow from proxies. "pd": they are the proxies. "awg": ridge regression of pairwise
        distances on the faults of both workers, intended for one iteration. "debias": the proxy minus the mean
        fault of the others, correct for any weights and any sparsity.
    lam : float
        Ridge penalty of "awg".
    """

    variant: Literal["pd", "awg", "debias"] = "pd"
    lam: float = 0.0

    name = "iptd"

    def __post_init__(self) -> None:
        one_of("variant", self.variant, ("pd", "awg", "debias"))
        number("lam", self.lam)

    def start(self, facts: Facts) -> State:
        ones = np.ones(facts.n_workers)
        return State(facts, {"weight": ones, "fault": ones, "proxy": ones})

    def tally(self, block: Block, state: State, x: Floats) -> Floats:
        # Squares are expanded, so that no array of residuals is needed; see Block.squared_distances.
        weight, squares = state["weight"], block.weighted_squares
        total = block.total_weight(weight)
        level = total * x * x
        spread = np.maximum(block.by_question(squares, weight) - level, 0.0)  # W_j V_j
        # Sums over the other workers of each question.
        columns = [spread + level, total]
        if self.variant == "debias":
            columns.append(block.total_weight(weight * state["fault"]))
        informative = block.informative
        others = block.by_worker(block.precision, np.column_stack(columns) * informative[:, None]).T
        total = total * informative
        distance = block.by_worker(squares, total) - 2.0 * block.by_worker(
            block.weighted, total * x
        )
        return np.stack([np.maximum(distance + others[0], 0.0), *others[1:]])

    def update(self, state: State, sums: Floats) -> State:
        facts, weight = state.facts, state["weight"]
        distance, total = sums[:2]
        own = facts.precision_squared  # a pair of answers counts by the precision of both
        proxy = np.divide(
            distance,
            total - weight * own,
            out=np.zeros(len(weight)),
            where=(facts.informative > 0) & (total > weight * own),
        )
        mean = facts.spread(facts.mean_of_informative(proxy))
        if self.variant == "pd":
            fault = proxy
        elif self.variant == "awg":
            fault = self._ridge(facts, proxy, mean)
        elif state.step == 0:
            fault = proxy - 0.5 * mean
        else:
            others = sums[2] - weight * state["fault"] * own
            fault = proxy - others / np.where(facts.informative > 0, total - weight * own, 1.0)
        fault = np.where(facts.informative > 0, fault, 0.5 * mean)
        fault = np.maximum(fault, SMALLEST_FAULT * 0.5 * mean)
        some = (fault > 0) & (facts.pool_of_worker > 0)
        fault = np.where(some, fault, 1.0)  # all workers of the panel agree
        weight = facts.weigh(1.0 / fault)
        weight = weight / facts.spread(facts.panel_sum(weight))
        return state.replace(weight=weight, fault=fault, proxy=proxy)

    def _ridge(self, facts: Facts, proxy: Floats, mean: Floats) -> Floats:
        """Return the ridge regression of pairwise distances on the sum of two faults, with penalty lam/2."""
        n = facts.spread(facts.panel_sum(facts.informative))
        penalty = 0.5 * self.lam
        divisor = n - 2.0 + penalty
        fault = (n - 1.0) * proxy - n * (n - 1.0) * mean / np.maximum(2.0 * n - 2.0 + penalty, 1.0)
        # The faults of two workers without a penalty cannot be distinguished.
        return np.divide(fault, divisor, out=0.5 * mean, where=divisor > 0)


@dataclass(frozen=True)
class PTD(IPTD):
    """Proxy-based truth discovery: a single iteration, as first published."""

    name = "ptd"
    max_updates = 1
