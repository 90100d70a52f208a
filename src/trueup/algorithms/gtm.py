"""GTM, the Gaussian truth model: a full Bayesian model of standardised answers.

Zhao and Han, A probabilistic model for estimating real-valued truth from conflicting sources, QDB 2012.
Answers are standardised per question by median and standard deviation, `z_ij = (x_ij - c_j) / s_j`, and

    mu_j ~ N(mu0, s0^2),   sigma_i^2 ~ InvGamma(alpha, beta),   z_ij ~ N(mu_j, sigma_i^2)

    sigma_i^2 = (2 beta + sum_j (z_ij - mu_j)^2) / (2 (alpha + 1) + k_i)
    mu_j      = (mu0/s0^2 + sum_i z_ij/sigma_i^2) / (1/s0^2 + sum_i 1/sigma_i^2),   t_j = c_j + s_j mu_j

The prior on the variance prevents a single worker from dominating.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trueup.algorithms.contract import Algorithm, State
from trueup.core.parameters import LARGEST, SMALLEST, number, yes_or_no

if TYPE_CHECKING:
    from trueup.algorithms.facts import Facts
    from trueup.answers.block import Block
    from trueup.core.arrays import Floats


@dataclass(frozen=True)
class GTM(Algorithm):
    """Gaussian truth model.

    Parameters
    ----------
    alpha, beta : float
        Inverse-gamma prior of the worker variances, on the standardised scale.
    mu0, s02 : float
        Mean and variance of the normal prior of the standardised truths.
    soft : bool
        Exact EM: add the posterior variance of the truth to each squared residual. Published implementations do not.
    """

    alpha: float = 10.0
    beta: float = 10.0
    mu0: float = 0.0
    s02: float = 1.0
    soft: bool = False

    name = "gtm"

    def __post_init__(self) -> None:
        number("alpha", self.alpha, SMALLEST)
        number("beta", self.beta, SMALLEST)
        number("mu0", self.mu0, -LARGEST)
        number("s02", self.s02, SMALLEST)
        yes_or_no("soft", self.soft)

    def start(self, facts: Facts) -> State:
        ones = np.ones(facts.n_workers)
        return State(facts, {"weight": ones, "variance": ones})

    def truths(self, block: Block, state: State) -> Floats:
        if state.step == 0:
            return super().truths(block, state)
        weight, total = block.weigh(state["weight"])
        # sum_i z_ij / sigma_i^2 = (total - c weight) / s, and the result is s mu: s cancels except for the prior.
        total -= block.median * weight
        if self.mu0:
            total += self.mu0 / self.s02 * block.std
        total /= 1.0 / self.s02 + weight
        total += block.median
        return total

    def tally(self, block: Block, state: State, x: Floats) -> Floats:
        residuals = block.squared_distances(x, "inverse_variance")
        if self.soft and state.step > 0:
            spread = block.informative / (1.0 / self.s02 + block.total_weight(state["weight"]))
            residuals = residuals + block.by_worker(block.precision, spread)
        return residuals[None]

    def update(self, state: State, sums: Floats) -> State:
        facts = state.facts
        variance = (2.0 * self.beta + sums[0]) / (2.0 * (self.alpha + 1.0) + facts.n_informative)
        return state.replace(weight=facts.weigh(1.0 / variance), variance=variance)

    def weights(self, block: Block, state: State, x: Floats) -> Floats:
        """Return `q_ij + q_0/k_j`: the share of the prior, which is at the median, is split among the answers."""
        precision = 1.0 / state["variance"]
        total = 1.0 / self.s02 + block.total_weight(precision)
        share = precision.take(block.workers)
        if block.precision is not None:
            share *= block.precision
        return share / block.spread(total) + block.spread(1.0 / (self.s02 * total * block.counts))

    def own_share(self, block: Block, state: State, x: Floats) -> Floats:
        precision = 1.0 / state["variance"]
        total = 1.0 / self.s02 + block.total_weight(precision)
        prior = 1.0 / (self.s02 * total * block.counts)
        shares = precision * block.by_worker(block.precision, block.informative / total)
        return shares + block.by_worker(None, block.informative * prior)

    def uncertainty(self, block: Block, state: State, x: Floats, noise: Floats) -> Floats:
        """Return `s_j^2 sum_i p_ij^2 sigma_i^2`, with the standardised variances of the model.

        With D the total precision and c the prior's share of each answer, the square is expanded to
        `(D - 1/s0^2)/D^2 + 2 c k/D + c^2 sum_i sigma_i^2`, which needs no number per answer.
        """
        variance = state["variance"]
        total = 1.0 / self.s02 + block.total_weight(1.0 / variance)
        prior = 1.0 / (self.s02 * total * block.counts)
        if block.precision is None:
            spread = block.total_weight(variance)
        else:
            spread = block.by_question(1.0 / block.precision, variance)
        inside = (total - 1.0 / self.s02) / total**2 + 2.0 * prior * block.counts / total
        scale = np.where(block.std > 0, block.std**2, self._fallback(block, state))
        return scale * (inside + prior**2 * spread)

    def _fallback(self, block: Block, state: State) -> Floats:
        """Return the pooled variance, for questions whose own variance is 0."""
        pool = state.facts.pool[block.panel_slice]
        return np.repeat(pool, np.diff(block.panel_questions))
