"""The noise of a worker who decides nearly alone, judged by the others.

Truths are nearly the answers of a worker who has most of the weight. So it is hardly ever far from them, and its
residuals say little about its noise: it may be an instrument that is always right, or preferred by luck. Its distance
`d_j` from the mean of the others, weighted by their variances `s_k`, does not know of its weight:

    d_j ~ N(0, phi (rho + c_j)),    c_j = 1 / sum_k 1/s_k,    x_kj ~ N(theta_j, phi s_k)

in units of the harmonic mean of the `s_k`. With phi integrated out, flat in log phi, and Q the sum of squares of the
others around their mean in units of `s_k`, N distances that are free say

    log L(rho) = -1/2 sum_j log(rho + c_j) - N/2 log(sum_j d_j^2 / (rho + c_j) + Q)

The worker is exact (rho = 0) with prior probability 0.1, else one like the others: log rho is uniform between the
logarithms of 0.5 and 10. Its variance is the posterior mean of `rho phi`, if that is smaller than what its residuals
say: a variance that is too large moves estimates that are nearly right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trueup.core.arrays import segment_sum
from trueup.engines.protocol import Visit

if TYPE_CHECKING:
    from trueup.answers.block import Block
    from trueup.core.arrays import Bools, Floats
    from trueup.engines.protocol import Kept
    from trueup.variance.worker_noise import WorkerNoise

#: A worker leads its panel with more than this share of the weight.
LEADING = 0.5
#: Questions that two others have answered as well, from which on these are asked.
FEWEST_QUESTIONS = 5
#: Variance of the leading worker relative to the others, and the prior probability of each.
EXACT, NODES = 0.1, 9
RATIOS = np.append(0.0, np.geomspace(0.5, 10.0, NODES))
PRIOR = np.append(EXACT, np.full(NODES, (1.0 - EXACT) / NODES))


def with_leading_worker(noise: WorkerNoise, weight: Floats) -> Floats:
    """Return the variance of each worker, where one leads its panel judged by the others.

    Parameters
    ----------
    noise : WorkerNoise
        Variances that are learned from residuals.
    weight : array
        `sum_j p_ij` of each worker over questions with two answers.
    """
    facts, s = noise.screening.facts, noise.variance
    most = LEADING * facts.spread(facts.panel_sum(weight))
    leads: Bools = (weight > most) & (facts.pool_of_worker > 0)
    if not leads.any():
        return s
    others, positive = np.where(leads, 0.0, facts.n_informative), np.where(s > 0, s, 1.0)
    below = facts.panel_sum(others / positive)
    unit = np.divide(facts.panel_sum(others), below, out=facts.pool.copy(), where=below > 0)
    precision = facts.spread(unit) / positive
    sums = _sums(noise, leads, precision)
    questions, freedom, squares = sums[:3]
    logs, distances = sums[3 : 3 + len(RATIOS)], sums[3 + len(RATIOS) :]
    count = questions + freedom
    known = (questions >= FEWEST_QUESTIONS) & (freedom > 0) & (squares > 0)
    total = np.where(known, distances + squares, 1.0)
    likelihood = np.log(PRIOR)[:, None] - 0.5 * logs - 0.5 * count * np.log(total)
    believed = np.exp(likelihood - likelihood.max(axis=0))
    believed /= believed.sum(axis=0)
    expected = (believed * RATIOS[:, None] * total).sum(axis=0) / np.maximum(count, 1.0)
    found = leads & known[facts.worker_panel]
    judged = np.where(found, np.minimum(s, facts.spread(expected)), s)
    # The pooled variance stays: what this worker has less of it the others have more.
    part = noise.screening.freedom
    spared = facts.panel_sum(part * (s - judged))
    theirs = facts.panel_sum(np.where(leads, 0.0, part * s))
    more = np.divide(spared, theirs, out=np.zeros(len(theirs)), where=theirs > 0)
    return np.where(leads, judged, s * (1.0 + facts.spread(more)))


def _sums(noise: WorkerNoise, leads: Bools, precision: Floats) -> Floats:
    """Return sums over the questions of each panel that its leading worker and two others have answered.

    These are: their number, the degrees of freedom and the sum of squares of the others, `log(rho + c_j)` for each of
    `RATIOS`, and `d_j^2 / (rho + c_j)` for each.
    """

    def visit(block: Block, kept: Kept) -> Visit:  # noqa: ARG001
        workers = block.worker_slice
        own = leads[workers].take(block.workers).astype(np.float64)
        theirs = (1.0 - own) * precision[workers].take(block.workers)
        if block.precision is not None:
            own, theirs = own * block.precision, theirs * block.precision
        exactness, total = block.by_question(own), block.by_question(theirs)
        inside = (exactness > 0) & (total > 0) & (block.counts > 2) & (block.informative > 0)
        exactness, total = (np.where(inside, sums, 1.0) for sums in (exactness, total))
        away = block.residuals(block.by_question(theirs * block.values) / total)
        distance = block.by_question(own * away) / exactness
        theirs *= away
        theirs *= away
        variances = RATIOS[:, None] / exactness + 1.0 / total
        rows = [np.ones(len(total)), block.counts - 2.0, block.by_question(theirs)]
        rows += [*np.log(variances), *(distance**2 / variances)]
        return Visit(
            panel_sums=np.stack(
                [segment_sum(np.where(inside, row, 0.0), block.panel_questions) for row in rows]
            )
        )

    sums: Floats = noise.screening.engine.sweep(visit).panel_sums
    return sums
