"""The noise of the workers for intervals: each variance pulled toward the others as much as the workers are alike.

The variance of an aggregate is `sum_i p_ij^2 s_i`. Weights that were learned from the answers favour workers who look
better than they are, so `s_i` has to be what is to be expected of such a worker, neither what it looks like nor what
all workers have in common. Empirical Bayes (Smyth, Statistical Applications in Genetics and Molecular Biology 2004):

    m_i = sum_j (x_ij - t_j)^2 / f_i,    f_i = sum_j (1 - p_ij)
    s_i = (f_i m_i + d0 s0) / (f_i + d0), then all times one factor, so that  sum_i f_i m_i / s_i = sum_i f_i

`t_j` are means weighted by the moderated variances, and `p_ij` the shares in them. A bias that was subtracted uses up
its part of `f_i`. The level `s0` and the strength `d0` are learned from all workers: alike ones share one variance.

The variance `sum_i a_i s_i` depends on each `m_i` directly and through the level, with the share `g_i`; so it has about
`nu` degrees of freedom (Satterthwaite, Biometrics Bulletin 1946), at most `sum_i f_i`:

    c_i = a_i s_i / sum a s,    w_i = f_i / (f_i + d0)
    g_i = w_i c_i + f_i / (sum f) sum_k (1 - w_k) c_k,    1 / nu = sum_i g_i^2 / f_i
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trueup.algorithms.worker_learning import (
    ASSUMED,
    FEW_WORKERS,
    PSEUDO_ANSWERS,
    variance_prior,
)
from trueup.engines.protocol import Visit

if TYPE_CHECKING:
    from trueup.algorithms.facts import Facts
    from trueup.algorithms.screening import Screening
    from trueup.answers.block import Block
    from trueup.core.arrays import Bools, Floats
    from trueup.engines.protocol import Kept

#: Smallest mean square of a worker, as a share of the pooled variance.
SMALLEST = 1e-4
#: Steps in which the variance of the biases is found.
HALVINGS = 40


@dataclass(frozen=True, eq=False)
class IntervalNoise:
    """What intervals expect of the noise of each worker.

    Attributes
    ----------
    facts : Facts
        Counts of the answers.
    variance : array
        `s_i`.
    freedom : array
        `f_i`, degrees of freedom of the residuals of each worker.
    own : array
        `w_i`, how much its own residuals count in `s_i`.
    mean : array
        `m_i`.
    assumed : array
        Share of `1/d0` of each panel that is assumed and not learned from the spread of the variances.
    bias_variance, shift_nu : arrays
        Variance of the biases of each panel, and its degrees of freedom.
    """

    facts: Facts
    variance: Floats
    freedom: Floats
    own: Floats
    mean: Floats
    assumed: Floats
    bias_variance: Floats
    shift_nu: Floats

    @property
    def bias_error(self) -> Floats:
        """Variance of the bias of each worker, estimated from its residuals, `s_i / f_i`."""
        known = np.maximum(self.freedom, 1.0)
        return self.variance / known

    def steepness(self, weight: Floats) -> Floats:
        """Return `e` of each panel, between 0 and 1: weights follow the residuals as `m_i^-e`."""
        facts = self.facts
        count = facts.informative * (weight > 0)
        size = np.maximum(facts.panel_sum(count), 1.0)
        x = np.log(np.where(self.mean > 0, self.mean, 1.0))
        y = np.log(np.where(weight > 0, weight, 1.0))
        x, y = (z - facts.spread(facts.panel_sum(z * count) / size) for z in (x, y))
        below = facts.panel_sum(count * x * x)
        slope = np.divide(
            -facts.panel_sum(count * x * y), below, out=np.zeros(len(below)), where=below > 1e-12
        )
        e: Floats = np.clip(slope, 0.0, 1.0)
        return e

    def inflation(self, weight: Floats) -> Floats:
        """Return the factor that the variances of each panel need for weights that follow the residuals.

        For inverse variances as weights, `1 + 4 sum_i p_i (1 - p_i) / nu_i` (Meier, Biometrics 1953): half of it
        because such weights are not the best ones, and half because weights that are too large come with variances
        that are too small. The first half grows with e^2, the second with e. Empirical Bayes needs it only as far as
        d0 was assumed. The less the weights follow the residuals, the more the sum of the variances has to be right
        and not that of the precisions.
        """
        facts, e = self.facts, self.steepness(weight)
        p = weight * facts.n_informative
        p = p / np.maximum(facts.spread(facts.panel_sum(p)), 1e-300)
        behind = np.divide(self.freedom, self.own, out=np.full(len(p), np.inf), where=self.own > 0)
        luck = 2.0 * e * (1.0 + e) * facts.panel_sum(p * (1.0 - p) / behind)
        below = facts.panel_sum(self.freedom * self.variance)
        total = facts.panel_sum(self.freedom * self.mean)
        level = np.divide(total, below, out=np.ones(len(e)), where=below > 0)
        return (1.0 + self.assumed * luck) * level ** (1.0 - e)

    def nu(self, part: Floats) -> Floats:
        """Return the degrees of freedom of the variance of each panel to which the workers add `a_i s_i` (`part`)."""
        facts, f = self.facts, self.freedom
        largest = facts.spread(facts.panel_max(part))
        part = np.divide(part, largest, out=np.zeros(len(part)), where=largest > 0)
        share = part / np.maximum(facts.spread(facts.panel_sum(part)), 1e-300)
        total = facts.panel_sum(f)
        pulled = facts.panel_sum((1.0 - self.own) * share)
        of_level = np.divide(f, facts.spread(total), out=np.zeros(len(f)), where=f > 0)
        g = self.own * share + of_level * facts.spread(pulled)
        below = facts.panel_sum(np.divide(g**2, f, out=np.zeros(len(f)), where=f > 0))
        nu = np.divide(1.0, below, out=total.copy(), where=below > 0)
        return np.maximum(np.minimum(nu, total), 1.0)


def interval_noise(screening: Screening, moderated: Floats) -> IntervalNoise:
    """Return the noise of the workers for intervals; `moderated` are their variances by `worker_noise`."""
    facts = screening.facts
    # In units of the panel, so that weights times any answer are numbers.
    weight = np.divide(
        facts.pool_of_worker,
        moderated,
        out=np.ones(len(moderated)),
        where=(moderated > 0) & (facts.pool_of_worker > 0),
    )

    def visit(block: Block, kept: Kept) -> Visit:  # noqa: ARG001
        local = weight[block.worker_slice]
        total, values = block.weigh(local)
        own = local * block.by_worker(block.precision, block.informative / total)
        truth, inside = values / total, block.informative
        rest = block.by_worker(block.weighted, inside)
        rest -= block.by_worker(block.precision, inside * truth)
        return Visit(sums=np.stack([block.squared_distances(truth), own, rest]))

    squares, own, rest = screening.engine.sweep(visit).sums
    count = facts.n_informative
    biased = facts.spread(screening.biased) * (count >= 2) / np.maximum(count, 1.0)
    freedom = np.maximum(count - own, 0.0) * (1.0 - biased)
    usable = freedom > 1e-9
    freedom = np.where(usable, freedom, 0.0)
    pool = facts.pool_of_worker
    mean = np.divide(squares, freedom, out=pool.copy(), where=usable)
    mean = np.maximum(np.where(pool > 0, mean, 0.0), SMALLEST * pool)
    workers = np.maximum(facts.panel_sum(facts.informative), 1.0)
    level, strength = variance_prior(facts, mean, freedom, pool, np.full(len(mean), PSEUDO_ANSWERS))
    level = np.where(facts.spread(workers) > FEW_WORKERS, level * _below_mean_log(strength), level)
    own_share = freedom / (freedom + strength)
    variance = own_share * mean + (1.0 - own_share) * level
    ratio = np.divide(freedom * mean, variance, out=np.zeros(len(mean)), where=variance > 0)
    total = facts.panel_sum(freedom)
    factor = np.divide(facts.panel_sum(ratio), total, out=np.ones(len(total)), where=total > 0)
    variance = variance * facts.spread(factor)
    precision = facts.precision
    bias = np.divide(rest, precision, out=np.zeros(len(rest)), where=precision > 0)
    assert facts.bias is not None  # noqa: S101  set by screen()
    tb2, shift_nu = bias_variance(
        facts,
        facts.bias + bias,
        np.divide(variance, freedom, out=np.full(len(variance), np.inf), where=usable),
        (count >= 2) & (facts.spread(screening.biased) > 0),
    )
    assumed = np.minimum(ASSUMED / workers * facts.of_panels(strength), 1.0)
    assumed = np.where(workers > FEW_WORKERS, assumed, 1.0)
    return IntervalNoise(facts, variance, freedom, own_share, mean, assumed, tb2, shift_nu)


def _below_mean_log(strength: Floats) -> Floats:
    """Return `s0` divided by what the logarithms of the variances average to, `exp(digamma(d0/2)) / (d0/2)`."""
    from scipy.special import digamma

    half = 0.5 * strength
    ratio: Floats = np.exp(digamma(half)) / half
    return ratio


def bias_variance(
    facts: Facts, bias: Floats, error: Floats, counted: Bools
) -> tuple[Floats, Floats]:
    """Return the variance of the biases of each panel and its degrees of freedom, given the error of each bias.

        sum_i w_i (b_i - mean)^2 = n - 1,    w_i = 1 / (tb2 + u_i)

    (Paule and Mandel, Journal of Research of the National Bureau of Standards 1982): noisy workers, whose biases nobody
    can know, say little. A difference of two variances, it has `(1 - 1/n) sum_i r_i^2` degrees of freedom with
    `r_i = tb2 w_i`.
    """
    inside = (counted & np.isfinite(error)).astype(np.float64)
    size = facts.panel_sum(inside)
    error = np.where(inside > 0, error, 1.0)

    def excess(tb2: Floats) -> Floats:
        below = facts.spread(tb2) + error
        weight = np.divide(inside, below, out=np.zeros(len(below)), where=below > 0)
        total = np.maximum(facts.panel_sum(weight), 1e-300)
        centre = facts.panel_sum(weight * bias) / total
        return facts.panel_sum(weight * (bias - facts.spread(centre)) ** 2) - (size - 1.0)

    low = np.zeros(facts.n_panels)
    middle = facts.panel_sum(inside * bias) / np.maximum(size, 1.0)
    high = facts.panel_sum(inside * (bias - facts.spread(middle)) ** 2)
    high = np.where((size >= 2) & (excess(low) > 0), high, 0.0)
    for _ in range(HALVINGS):
        half = 0.5 * (low + high)
        more = excess(half) > 0
        low, high = np.where(more, half, low), np.where(more, high, half)
    tb2 = 0.5 * (low + high)
    spread = facts.spread(tb2)
    share = np.divide(spread, spread + error, out=np.zeros(len(error)), where=spread > 0)
    between = np.maximum(size - 1.0, 1.0)
    kept = facts.panel_sum(inside * share**2) / np.maximum(size, 1.0)
    return tb2, np.where(tb2 > 0, between * np.maximum(kept, 1e-9), between)
