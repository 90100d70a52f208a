"""How surprising each answer is, given the other answers of its question and what is known about its worker.

The model is that of the native first step, with normal or heavy-tailed errors, whichever the answers speak for:
`x_ij = theta_j + b_i + e_ij` with the bias `b_i` and the variance `s_i` of each worker. All that an answer is compared
with is learned without it. With robust weights `a_ij = u_ij / s_i` (`trueup.algorithms.noise_models`), which are small
for answers that are far off,

    t_j without i = (sum a y' - a_ij y'_ij) / (sum a - a_ij),    v_j without i = 1 / (sum a - a_ij)
    b_i without j = b_i - a_ij (y'_ij - t_j) / (A_i + w_i - a_ij),   e_i its variance
    s_i without j = (q_i + d0 s0 - q_ij) / (F_i - 1),    F_i = K_i + d0 - [biases]
    z_ij = (y_ij - b_i - t_j) / sqrt(s_i + v_j + e_i),   all without the answer

with `y' = y - b_i`, `A_i` and `q_i` the sums of the worker over its weights and squared distances, `w_i` the weight of
the prior of its bias, d0 and s0 strength and level of the prior of the variances. Under normal errors z_ij has a
t distribution with `f_i` degrees of freedom, those behind s_i (the moderated t of Smyth, Statistical Applications in
Genetics and Molecular Biology 2004, for a single answer), under heavy-tailed ones one with `1 / (1/6 + 1/f_i)`.

Heavy tails are also what a few gross errors among normal ones look like. A mixture tells the two apart,

    z_ij ~ (1 - g) c t_f + g 10 t_1,

fitted by EM once with f_i degrees of freedom and once with the smaller ones; normal errors that fit better are taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trueup.algorithms.answer_spread import NORMAL as NORMAL_DEVIATION
from trueup.algorithms.native import HEAVY, NORMAL
from trueup.algorithms.noise_models import FREEDOM, NoiseModel, in_units
from trueup.algorithms.worker_learning import HEAVY_FREEDOM, Learned
from trueup.answers.block import SMALLEST_STD
from trueup.core.arrays import equal_segments
from trueup.engines.protocol import Visit

if TYPE_CHECKING:
    from trueup.algorithms.driver import Aggregate
    from trueup.answers.block import Block
    from trueup.core.arrays import Bools, Floats, Ints
    from trueup.engines.protocol import Kept

#: Smallest share of other answers in a truth; its square is still a number.
SMALLEST_SHARE = 1e-150
#: Fewest answers of a question: of two that differ nobody knows which is wrong.
FEWEST_ANSWERS = 3
#: An answer supports the value that another one is compared with if it is within so many standard deviations of it, or
#: so many times closer to it than the other one.
SUPPORTS, CLOSER = 3.0, 5.0
#: Steps of EM, answers that it looks at, and the scale of gross errors.
STEPS, MOST_FITTED, GROSS = 20, 20_000, 10.0
#: Smallest share of gross errors, at which EM starts from and cannot get stuck.
FIRST_SHARE, SMALLEST_SHARE = 0.01, 1e-6


@dataclass(frozen=True, eq=False)
class Surprise:
    """How far each answer is from what the other answers let expect, on the scale on which answers are combined.

    Attributes
    ----------
    expected, deviation : arrays
        What the worker was expected to answer, and the standard deviation of that.
    z : array
        Answer minus expectation, in such deviations.
    freedom : array
        Degrees of freedom of the t distribution of z.
    judged : array
        Whether the question has at least three answers.
    supported : array
        Whether more than half of the answers of the question agree on another value.
    size : array
        Distance from the expectation, in typical distances of answers from the median of their question.
    """

    expected: Floats
    deviation: Floats
    z: Floats
    freedom: Floats
    judged: Bools
    supported: Bools
    size: Floats

    def probability(self, z: Floats, places: Ints) -> Floats:
        """Return the probability of a distance as large as z for the answers at some places."""
        from scipy.special import stdtr

        probability: Floats = 2.0 * stdtr(self.freedom[places], -np.abs(z))
        return probability


def surprise(aggregate: Aggregate) -> Surprise:
    """Return how surprising each answer of one problem is, given what the native first step learned from all."""
    state, facts = aggregate.state, aggregate.facts
    heavy = bool(state[HEAVY + "weight"][0] > state[NORMAL + "weight"][0])
    learned = Learned.from_vectors(state.values, HEAVY if heavy else NORMAL)
    unit = float(state["unit"][0])
    model = NoiseModel(True, learned.variance, learned.bias)

    def visit(block: Block, kept: Kept) -> Visit:  # noqa: ARG001
        median = block.median
        scaled = in_units(block, median, np.full(block.n_questions, unit))
        fit, values = model.fit(scaled), model.unbiased(scaled)
        weight = model.shares(scaled, fit) / block.spread(fit.v)
        total = block.by_question(weight)
        t = block.by_question(weight * values) / total
        share = weight / block.spread(total)
        rest = values - block.spread(t)
        precision = np.ones(len(rest)) if block.precision is None else block.precision
        variance = learned.variance.take(block.workers) / precision
        square = (rest * rest + block.spread(1.0 / total)) * precision
        if heavy:
            square *= weight * variance
        inside = block.informative
        near = (rest * rest <= SUPPORTS**2 * variance).astype(np.float64)
        error = learned.bias_error.take(block.workers)
        counts = block.counts.astype(np.float64)
        distance = np.abs(scaled.values) * block.spread(
            inside * np.sqrt(counts / np.maximum(counts - 1.0, 1.0))
        )
        return Visit(
            sums=np.stack(
                [
                    block.by_worker(numbers, inside)
                    for numbers in (weight, weight * share, square, share)
                ]
            ),
            rows={
                "weight": weight,
                "share": share,
                "rest": rest,
                "square": square,
                "precision": precision,
                "worker": block.workers.astype(np.float64),
                "count": block.spread(counts),
                "others": block.spread(block.by_question(near)) - near,
                "majority": block.spread(_reach_of_most(block, np.abs(rest))),
                "others_error": block.spread(block.by_question(share * share * error))
                - share * share * error,
                "base": block.spread(block.centre + median),
                "t": block.spread(t),
                "distance": distance,
            },
        )

    sweep = aggregate.engine.sweep(visit)
    rows, (known, overlap, squares, own) = sweep.rows, sweep.sums
    worker = rows["worker"].astype(np.int64)
    weight, share, rest = rows["weight"], rows["share"], rows["rest"]
    others = np.maximum(1.0 - share, SMALLEST_SHARE)
    # Truth and bias without the answer.
    biased = learned.bias_variance > 0
    shift, error = np.zeros(len(rest)), np.zeros(len(rest))
    if biased.any():
        prior = _prior_weight(learned)
        # A worker who shares no other question has no bias that could be known without the answer.
        known_otherwise = (known + prior).take(worker) - weight
        np.divide(-weight * rest, known_otherwise, out=shift, where=known_otherwise > 0)
        left = np.maximum((known - overlap).take(worker) - weight * others, 0.0)
        error = 1.0 / (left + prior.take(worker)) + rows["others_error"] / others**2
    difference = rest / others - shift
    # The variance of the worker without the answer.
    count, strength = facts.n_informative, learned.strength
    freedom = np.where(count >= 2, count - biased, count) + strength
    total = squares + strength * learned.level
    left = np.maximum(total.take(worker) - rows["square"], (strength * learned.level).take(worker))
    ratio = left / total.take(worker) * (freedom / np.maximum(freedom - 1.0, 0.5)).take(worker)
    variance = learned.variance.take(worker) * ratio / rows["precision"]
    variance = variance + share / (weight * others) + error
    behind = np.maximum((count - own - biased).take(worker) - others, 0.0)
    freedom = strength.take(worker) + (HEAVY_FREEDOM if heavy else 1.0) * behind

    deviation = np.sqrt(variance)
    judged = rows["count"] >= FEWEST_ANSWERS
    if heavy:
        factor, freedom = _reference(difference / deviation, freedom, judged)
        deviation = factor * deviation
    z = difference / deviation
    return Surprise(
        expected=rows["base"]
        + unit * (rows["t"] - rest * share / others + learned.bias.take(worker) + shift),
        deviation=unit * deviation,
        z=z,
        freedom=freedom,
        judged=judged,
        supported=(rows["others"] > 0.5 * rows["count"])
        | (np.abs(rest) > CLOSER * rows["majority"]),
        size=_size(np.abs(difference), rows["distance"]),
    )


def _reach_of_most(block: Block, distance: Floats) -> Floats:
    """Return for each question the smallest distance within which more than half of its answers are."""
    reach = np.empty(block.n_questions)
    for rows, distances in equal_segments(distance, block.indptr):
        middle = distances.shape[1] // 2
        reach[rows] = np.partition(distances, middle, axis=1)[:, middle]
    return reach


def _prior_weight(learned: Learned) -> Floats:
    """Return the weight of the prior of each bias, `7 / (6 + b^2/tb2) / tb2`, which has heavy tails."""
    tb2 = learned.bias_variance
    weight: Floats = (FREEDOM + 1.0) / (FREEDOM * tb2 + learned.bias**2)
    return weight


def _size(difference: Floats, distance: Floats) -> Floats:
    """Return differences in typical distances of answers that differ from their median, the farthest left out."""
    # As in a block, what is smaller has no square, and is none.
    differing = distance[distance > SMALLEST_STD]
    if len(differing) < 2:
        return np.where(difference > 0, np.inf, 0.0)
    differing = np.delete(differing, differing.argmax())
    typical: Floats = difference / (NORMAL_DEVIATION * np.median(differing))
    return typical


def _reference(z: Floats, freedom: Floats, judged: Bools) -> tuple[float, Floats]:
    """Return the factor c and the degrees of freedom of the better mixture; the factor of heavy tails is 1."""
    tails = 1.0 / (1.0 / FREEDOM + 1.0 / freedom)
    places = np.flatnonzero(judged)
    # Evenly spread over the sorted distances, so that the order of the answers does not matter.
    places = places[np.argsort(np.abs(z[places]), kind="stable")]
    places = places[:: max(1, -(-len(places) // MOST_FITTED))]
    if not len(places):
        return 1.0, tails
    normal, factor = _mixture(z[places], freedom[places])
    heavy, _ = _mixture(z[places], tails[places])
    return (factor, freedom) if normal > heavy else (1.0, tails)


def _mixture(z: Floats, freedom: Floats) -> tuple[float, float]:
    """Return log likelihood and factor c of `(1 - g) c t_f + g 10 t_1`, both g and c >= 1 fitted by EM."""
    from scipy.special import gammaln

    constant = gammaln(0.5 * (freedom + 1.0)) - gammaln(0.5 * freedom)
    constant = constant - 0.5 * np.log(freedom * np.pi)
    square = z * z
    gross = -np.log(np.pi * GROSS) - np.log1p(square / GROSS**2)
    factor, share, level = 1.0, FIRST_SHARE, -np.inf
    for _ in range(STEPS):
        scaled = square / factor**2
        usual = constant - np.log(factor) - 0.5 * (freedom + 1.0) * np.log1p(scaled / freedom)
        usual, wide = usual + np.log1p(-share), gross + np.log(share)
        both = np.logaddexp(usual, wide)
        level = float(both.sum())
        inside = np.exp(usual - both)
        share = float(np.clip(1.0 - inside.mean(), SMALLEST_SHARE, 0.5))
        weight = inside * (freedom + 1.0) / (freedom + scaled)
        factor = float(np.sqrt(max((weight * square).sum() / max(inside.sum(), 1.0), 1.0)))
    return level, factor
