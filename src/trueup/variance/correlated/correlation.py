"""Pairs whose errors are correlated: residual correlations beyond what the truths they helped to make bring along.

    x_ij = t_j + b_i + e_ij,      r_ij = x_ij - b_i - sum_l p_lj (x_lj - b_l)

Residuals r of two workers who err independently are correlated all the same, for both helped to make the truth they
are compared with. With shares p_ij (of weights 1/max(noise_i, median noise), see `trueup.variance.worker_noise`:
nobody who looks good decides alone), variances s_i of the errors and c the covariance of those of workers i and k,

    Q_j          = sum_l p_lj^2 s_l
    E r_ij r_kj  = Q_j - p_ij s_i - p_kj s_k + c (1 - p_ij - p_kj + 2 p_ij p_kj)
    E r_ij^2     = Q_j + (1 - 2 p_ij) s_i

The s_i solve the last line, summed over the questions of each worker, at c = 0. Over the n questions that both
answered the residual correlation r has the expectation rho0 at c = 0, and the correlation of the errors is what is
beyond it:

    rho0 = sum_j E0 r_i r_k / sqrt(sum_j E r_i^2 sum_j E r_k^2),    r' = tanh(atanh r - atanh rho0)
    t    = r' sqrt(nu / (1 - r'^2)),  nu = n/phi - 2                Student, one-sided

On Fisher's scale the difference is normal for many questions; Student's distribution is right for few. phi >= 1 is
the mean product of squared standardised residuals of two workers, above 1 where some questions are harder than
others, which makes correlations more variable. Residuals are drawn in to four standard deviations, and where those of
a worker clearly depend on the truth (a worker who uses the scale in another way, or does not look) that is removed
first.

Two who copy draw the truth toward themselves, which makes the others seem to err together as well: of each pair found
one is left out of the truths, and all is done again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trueup.core.sampling import id_order
from trueup.variance.correlated.discoveries import MATTERS, TINY, discoveries
from trueup.variance.correlated.shared_questions import FEWEST

if TYPE_CHECKING:
    from trueup.core.arrays import Bools, Floats
    from trueup.variance.correlated.shared_questions import Flat
    from trueup.variance.worker_noise import WorkerNoise

#: Answers that a question must have to show a pair, and workers below which nothing can be told.
CROWD, FEWEST_WORKERS = 3, 4
#: Residuals are drawn in to this many standard deviations.
CLIP = 4.0
#: A residual depends on the truth beyond this many standard errors of its slope.
CLEAR = 3.0
#: Rounds, and at least so many where they cost more than a problem with this many pairs of answers.
ROUNDS, FEWEST_ROUNDS, EASY = 20, 3, 2e7
#: Turns that find the variances of the workers, pseudo-answers at the typical one, and the smallest variance.
TURNS, PSEUDO, SMALLEST = 10, 2.0, 1e-3


@dataclass(frozen=True, eq=False)
class Errors:
    """Correlation of the errors of each pair, its z and p-value, and whether it was found."""

    correlation: Floats
    z: Floats
    p: Floats
    found: Bools


def correlated(flat: Flat, noise: WorkerNoise) -> Errors:
    """Find pairs whose errors are correlated; of each pair found one is left out of the truths, until no more come."""
    pairs, n = len(flat.one), flat.data.n_workers
    empty = Errors(
        np.full(pairs, np.nan), np.full(pairs, np.nan), np.ones(pairs), np.zeros(pairs, dtype=bool)
    )
    if n < FEWEST_WORKERS or not (noise.pool > 0).any():
        return empty
    answers = np.bincount(flat.data.workers, minlength=n)
    rank = np.empty(n, dtype=np.int64)
    rank[id_order(flat.data)] = np.arange(n)
    worth = np.lexsort((-rank, answers)).argsort()[flat.chosen]  # who of two is kept
    active = np.ones(n, dtype=bool)
    errors = empty
    work = float(np.sum(np.diff(flat.rows).astype(np.float64) ** 2))
    for _ in range(int(np.clip(ROUNDS * EASY / max(work, 1.0), FEWEST_ROUNDS, ROUNDS))):
        errors = _round(flat, noise, active)
        in_use = active[flat.chosen]
        open_pairs = np.flatnonzero(errors.found & in_use[flat.one] & in_use[flat.two])
        if len(open_pairs) == 0:
            break
        best = np.zeros(len(flat.chosen))
        one, two, z = flat.one[open_pairs], flat.two[open_pairs], errors.z[open_pairs]
        np.maximum.at(best, one, z)
        np.maximum.at(best, two, z)
        # Those who seem to err together only because others copy are far less clear than those.
        mutual = (z >= best[one]) & (z >= best[two]) & (2.0 * z >= z.max())
        drop = np.where(worth[one] < worth[two], one, two)[mutual]
        active[flat.chosen[drop]] = False
    return errors


def _round(flat: Flat, noise: WorkerNoise, active: Bools) -> Errors:
    """Test all pairs, the truths made by active workers alone."""
    facts = noise.screening.facts
    bias = facts.bias
    assert bias is not None  # noqa: S101  set with the noise
    typical = float(np.median(noise.variance[facts.n_informative > 0]))
    typical = typical if typical > 0 else float(noise.pool.max())
    unit, worker = np.sqrt(typical), flat.worker
    y = (flat.value - bias[worker]) / unit
    weight = (active / np.maximum(noise.variance / typical, 1.0))[worker]
    total, active_answers = flat.sums(weight), flat.sums(active[worker].astype(np.float64))
    gross = (
        noise.screening.gross if flat.questions is None else noise.screening.gross[flat.questions]
    )
    usable = (active_answers >= CROWD) & ~gross
    inside = usable.astype(np.float64)
    p = weight / flat.spread(np.where(total > 0, total, 1.0))
    truth = flat.sums(p * y)
    r = (y - flat.spread(truth)) * flat.spread(inside)
    centre = flat.data.centre if flat.questions is None else flat.data.centre[flat.questions]
    r -= _slopes(flat, r, (centre - centre[0]) / unit + truth, inside)
    s = _moments(flat, r, p, inside)
    q = flat.sums(p * p * s[worker])
    expected = s[worker] * (1.0 - 2.0 * p) + flat.spread(q)
    limit = CLIP * np.sqrt(np.maximum(expected, 0.0))
    r = np.clip(r, -limit, limit)
    phi = _difficulty(flat, r, expected, active_answers, inside)

    mine = flat.mine
    use = flat.spread(inside)[mine]
    own, share, common = r[mine], p[mine] * use, flat.spread(q * inside)[mine]
    energy = own * own
    # Sums over shared questions: their number, Q, then of r_i r_k, r_i^2, r_k^2, p_i, p_k, p_i p_k.
    n, common_sum, cross, energy_1, energy_2, share_1, share_2, both = flat.pair_sums(
        (use, None),
        (common, None),
        (own, own),
        (energy, use),
        (use, energy),
        (share, use),
        (use, share),
        (share, share),
    )
    s_1, s_2 = s[flat.chosen[flat.one]], s[flat.chosen[flat.two]]
    v_1 = s_1 * (n - 2.0 * share_1) + common_sum
    v_2 = s_2 * (n - 2.0 * share_2) + common_sum
    usual = common_sum - s_1 * share_1 - s_2 * share_2
    freedom = n / phi - 2.0
    level = np.sqrt(np.maximum(v_1 * v_2, 0.0))
    size = np.sqrt(energy_1 * energy_2)
    known = (n >= FEWEST) & (freedom >= 1.0) & (level > 0) & (size > 0)

    def ratio(above: Floats, below: Floats) -> Floats:
        value = np.divide(above, below, out=np.zeros(len(above)), where=known)
        return np.clip(value, -1.0 + 1e-9, 1.0 - 1e-9)

    beyond = np.tanh(np.arctanh(ratio(cross, size)) - np.arctanh(ratio(usual, level)))
    freedom = np.maximum(freedom, 1.0)
    p_value = np.where(known, _student(beyond, freedom), 1.0)
    # The covariance of the errors, then what it took off the variances: a share of the other in the truth.
    reach = n - share_1 - share_2 + 2.0 * both
    c = np.divide(cross - usual, reach, out=np.zeros(len(n)), where=known & (reach > 0))
    taken = 2.0 * np.maximum(c, 0.0)
    s_1 = s_1 + taken * (share_2 - both) / np.maximum(n - 2.0 * share_1 + both, 1.0)
    s_2 = s_2 + taken * (share_1 - both) / np.maximum(n - 2.0 * share_2 + both, 1.0)
    correlation = np.clip(c / np.sqrt(s_1 * s_2), -1.0, 1.0)
    found = discoveries(p_value, known) & (correlation >= MATTERS)
    return Errors(
        np.where(known, correlation, np.nan),
        np.where(known, _normal(p_value, beyond, freedom), np.nan),
        p_value,
        found,
    )


def _moments(flat: Flat, r: Floats, p: Floats, inside: Floats) -> Floats:
    """Return the variance of each worker that explains its residuals, in units of the typical one.

    Solves `sum_j r_ij^2 = s_i sum_j (1 - p_ij)^2 + sum_j sum_{l != i} p_lj^2 s_l` by turns, with two more answers at
    the typical variance. Unlike the noise that weights are made of, it does not take two who copy for excellent ones.
    """
    n, worker, use = flat.data.n_workers, flat.worker, flat.spread(inside)

    def sums(values: Floats) -> Floats:
        return np.bincount(worker, values * use, minlength=n).astype(np.float64, copy=False)

    square, own, energy = p * p, sums((1.0 - p) ** 2), sums(r * r)
    s = np.ones(n)
    for _ in range(TURNS):
        others = sums(flat.spread(flat.sums(square * s[worker])) - square * s[worker])
        s = np.maximum((energy - others + PSEUDO) / (own + PSEUDO), SMALLEST)
    return s


def _slopes(flat: Flat, r: Floats, truth: Floats, inside: Floats) -> Floats:
    """Return what the truth explains of the residuals of workers whose residuals clearly depend on it."""
    n = flat.data.n_workers
    x, use = flat.spread(truth), flat.spread(inside)

    def sums(values: Floats) -> Floats:
        return np.bincount(flat.worker, values, minlength=n).astype(np.float64, copy=False)

    count = np.maximum(sums(use), 1.0)
    x = (x - (sums(x * use) / count)[flat.worker]) * use
    xx, xr, rr = sums(x * x), sums(x * r), sums(r * r)
    slope = np.divide(xr, xx, out=np.zeros(n), where=xx > 0)
    rest = np.maximum(rr - slope * xr, 0.0) / np.maximum(count - 2.0, 1.0)
    clear = (count >= FEWEST) & (slope**2 * xx > CLEAR**2 * rest)
    return np.where(clear, slope, 0.0)[flat.worker] * x


def _difficulty(
    flat: Flat, r: Floats, expected: Floats, active_answers: Floats, inside: Floats
) -> float:
    """Return phi, the mean product of squared standardised residuals of two workers over what is usual."""
    square = np.divide(r * r, expected, out=np.zeros(len(r)), where=expected > 0)
    counts = flat.counts.astype(np.float64)
    pairs = inside * counts * (counts - 1.0)
    if pairs.sum() == 0:
        return 1.0
    first = flat.sums(square)
    product = np.sum(inside * (first**2 - flat.sums(square**2)))
    mean = np.sum(inside * first) / np.sum(inside * counts)
    # Residuals around a mean of k are correlated -1/(k - 1), and their squares 2/(k - 1)^2.
    usual = np.sum(pairs * (1.0 + 2.0 / np.maximum(active_answers - 1.0, 1.0) ** 2))
    return max(float(product / (usual * mean**2)), 1.0) if mean > 0 else 1.0


def _student(r: Floats, freedom: Floats) -> Floats:
    """Return the one-sided p-value of a correlation."""
    from scipy.special import stdtr

    t = r * np.sqrt(freedom / np.maximum(1.0 - r * r, TINY))
    p: Floats = np.maximum(stdtr(freedom, -t), TINY)
    return p


def _normal(p: Floats, r: Floats, freedom: Floats) -> Floats:
    """Return the normal deviate that belongs to a one-sided p-value, without loss on either side."""
    from scipy.special import ndtri

    z: Floats = np.where(r > 0, -ndtri(p), ndtri(_student(-r, freedom)))
    return z
