"""The inverse-variance family: DTD, CATD and BLUE.

All weight a worker by one over its variance. They differ in how they know it: from the distance to the truths
(DTD), from that and the number of answers (CATD), or because the variance itself is given (BLUE).

    SS_i      = sum_j (x_ij - t_j)^2
    sigma_i^2 = (SS_i + nu0 s^2) / (k_i + nu0)                     correction "none"
              = (SS_i + nu0 s^2) / (sum_j (1 - p_ij) + nu0)        correction "loo"
    w_i       = g(k_i) / sigma_i^2,     t_j = sum_i w_i x_ij / sum_i w_i

with `s^2` the pooled variance. As published (`preset="paper"`: no correction, nu0 = 0) the iteration runs into
a singularity of the likelihood: one worker with variance 0 dictates all truths. The correction and two
pseudo-answers prevent that and are the default.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from trueup.algorithms.contract import Algorithm, State
from trueup.core.parameters import SMALLEST, number, one_of
from trueup.errors import TrueupError, option

if TYPE_CHECKING:
    from trueup.algorithms.facts import Facts
    from trueup.answers.block import Block
    from trueup.core.arrays import Floats


@dataclass(frozen=True)
class DTD(Algorithm):
    """Distance from the outcome: weights are inverse mean squared distances from the truths.

    After Grofman, Owen and Feld (1983), iterated; the numeric LFC of Raykar et al. (2010) without features
    (LFC_N) is the same update.

    Parameters
    ----------
    correction : {"loo", "none"}
        "loo" counts an answer with share p_ij in its truth as `1 - p_ij` answers.
    nu0 : float
        Number of pseudo-answers at the pooled variance.
    init : {"mean", "median"}
        The first truths.
    floor_abs : float
        Smallest variance, in squared answer units; 0 uses the relative floor.
    preset : {"robust", "paper"}
        "paper" is the published form: correction "none" and nu0 = 0.
    """

    correction: Literal["loo", "none"] = "loo"
    nu0: float = 2.0
    init: Literal["mean", "median"] = "mean"
    floor_abs: float = 0.0
    preset: InitVar[Literal["robust", "paper"]] = "robust"

    name = "dtd"
    shares_by_worker = True

    def __post_init__(self, preset: str) -> None:
        one_of("preset", preset, ("robust", "paper"))
        one_of("correction", self.correction, ("loo", "none"))
        one_of("init", self.init, ("mean", "median"))
        number("nu0", self.nu0)
        number("floor_abs", self.floor_abs)
        if preset == "paper":
            if (self.correction, self.nu0) not in (("loo", 2.0), ("none", 0.0)):
                raise TrueupError("preset: paper fixes correction and nu0; leave these out.")
            object.__setattr__(self, "correction", "none")
            object.__setattr__(self, "nu0", 0.0)

    def truths(self, block: Block, state: State) -> Floats:
        if self.init == "median" and state.step == 0:
            return block.median
        return super().truths(block, state)

    def tally(self, block: Block, state: State, x: Floats) -> Floats:
        squares = block.squared_distances(x)
        if self.correction == "none":
            return squares[None]
        weight = state["weight"]
        own_share = weight * block.by_worker(
            block.precision, block.informative / block.total_weight(weight)
        )
        return np.stack([squares, own_share])

    def update(self, state: State, sums: Floats) -> State:
        variance = self.variance(state.facts, sums)
        return state.replace(
            weight=state.facts.weigh(self.reward(state.facts.n_informative) / variance),
            variance=variance,
        )

    def variance(self, facts: Facts, sums: Floats) -> Floats:
        """Return the variance of each worker from its squared distances."""
        pool = facts.pool_of_worker
        freedom = facts.n_informative - (sums[1] if self.correction == "loo" else 0.0)
        variance = facts.variance(sums[0] + self.nu0 * pool, freedom + self.nu0)
        if self.floor_abs:
            variance = np.maximum(variance, self.floor_abs)
        return np.where(variance > 0, variance, 1.0)  # all workers of the panel agree

    def reward(self, n_informative: Floats) -> Floats | float:
        """Return the factor of the weight that depends on the number of answers: 1."""
        return 1.0


@dataclass(frozen=True)
class CATD(DTD):
    """Confidence-aware truth discovery: DTD that gives less weight to workers with few answers.

    The weight is one over the upper end of the confidence interval of the worker's variance,
    `w_i = chi2.ppf(alpha/2, k_i) / SS_i`, that is `g(k) = chi2.ppf(alpha/2, k) / k`. On complete data it is
    the same as DTD. Li et al., A confidence-aware approach for truth discovery on long-tail data, VLDB 2015.

    Parameters
    ----------
    alpha : float
        One minus the level of the interval.
    """

    alpha: float = 0.05

    name = "catd"

    def __post_init__(self, preset: str) -> None:
        super().__post_init__(preset)
        number("alpha", self.alpha, SMALLEST, 1.0 - 1e-12)

    def reward(self, n_informative: Floats) -> Floats:
        """Return `chi2.ppf(alpha/2, k) / k`."""
        from scipy.special import gammaincinv

        counts, where = np.unique(np.maximum(n_informative, 1.0), return_inverse=True)
        reward: Floats = (2.0 * gammaincinv(0.5 * counts, 0.5 * self.alpha) / counts)[where]
        return reward


@dataclass(frozen=True)
class Blue(DTD):
    """Best linear unbiased estimate for known worker variances (or known answer variances).

    `t_j = sum_i (x_ij / sigma_i^2) / sum_i (1 / sigma_i^2)`, with variance `1 / sum_i (1 / sigma_i^2)`: of all
    unbiased weighted means the one with the smallest variance (Aitken 1935). Where the variance of only
    some workers is known, the others' are learned as in DTD.
    """

    name = "blue"
    needs_variance = True
    uses_variance = True

    def start(self, facts: Facts) -> State:
        known = self._known(facts)
        # Unknown variances start at the pooled variance, or at the mean of the known ones where all workers agree.
        is_known = ~np.isnan(known)
        count = facts.panel_sum(is_known.astype(np.float64))
        mean = facts.panel_sum(np.where(is_known, known, 0.0)) / np.maximum(count, 1.0)
        mean = facts.spread(np.where(count > 0, mean, 1.0))
        typical = np.where(facts.pool_of_worker > 0, facts.pool_of_worker, mean)
        variance = np.where(is_known, known, typical)
        return State(facts, {"weight": 1.0 / variance, "variance": variance})

    def update(self, state: State, sums: Floats) -> State:
        facts = state.facts
        known = self._known(facts)
        variance = np.where(np.isnan(known), self.variance(facts, sums), known)
        return state.replace(weight=1.0 / variance, variance=variance)

    @staticmethod
    def _known(facts: Facts) -> Floats:
        """Return the known variances, NaN where unknown. With known answer variances all are known."""
        if facts.worker_variance is not None and not np.isnan(facts.worker_variance).all():
            return facts.worker_variance
        if np.isnan(facts.answer_variance):
            raise TrueupError(
                "the method blue needs known variances.",
                argument="worker_variance",
                remedy="Pass "
                + option("worker_variance")
                + " or "
                + option("answer_variance")
                + ", or choose a method that learns them, such as dtd.",
            )
        return np.full(facts.n_workers, facts.answer_variance)

    def noise(self, state: State, ss: Floats, freedom: Floats) -> Floats:
        """Return known and learned variances; NaN for workers whose variance cannot be learned."""
        facts = state.facts
        unknown = np.isnan(self._known(facts)) & (facts.informative == 0)
        return np.where(unknown, np.nan, state["variance"])

    def uncertainty(self, block: Block, state: State, x: Floats, noise: Floats) -> Floats:
        unknown = block.by_question(np.isnan(noise).astype(np.float64).take(block.workers)) > 0
        return np.where(unknown, np.nan, 1.0 / block.total_weight(state["weight"]))
