"""The moderated variance, for any weights and any sparsity: robust against lucky weights and single spammers.

The variance of an aggregate `t_j = sum_i p_ij x_ij` is `sum_i p_ij^2 s_i`, if the variances of the workers are known.
They are not known, and the weights were learned from the same answers, so they favour workers who look better than they
are. Two estimates bracket the variance:

    v1_j = sum_i p_ij^2 s_i      moderated worker variances: the weights are partly luck
    v2_j = sum_i p_ij^2 c_i      variances around this aggregate: the weights are taken at face value

The more answers the weights were learned from, the more the first estimate counts:

    g   = clip(sum v2 / sum v1, 0.01, 1)^(4/(4 + K)),   K = sum p_ij^2 k_i / sum p_ij^2
    v_j = g a_j sum v1 / sum a + g tb2 max(Q_j - sum_i P_i^2, 0)

Of a worker who has most of the weight the others judge `s_i`, see `trueup.variance.leading_worker`. Intervals use
`sum_i p_ij^2 s_i` with the noise of `trueup.variance.interval_noise`, never less than `v_j`.

`a_j` is the pattern over questions, from more strongly moderated variances, `Q_j = sum_i p_ij^2` and
`P_i = sum_j p_ij / m`. The last term is the part of the worker biases that does not cancel, 0 in a complete panel.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from trueup.core.arrays import segment_sum
from trueup.engines import vectors
from trueup.engines.protocol import Visit
from trueup.errors import TrueupError, option, quoted
from trueup.variance.leading_worker import with_leading_worker
from trueup.variance.robust import robust
from trueup.variance.worker_noise import WorkerNoise, noise_behind

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from trueup.algorithms.driver import Aggregate
    from trueup.answers.answers import Answers
    from trueup.answers.block import Block
    from trueup.core.arrays import Floats
    from trueup.engines.protocol import Kept
    from trueup.variance.contract import Certainty

#: Number of pseudo-answers at the pooled variance, for the pattern over questions.
PATTERN = 10.0
#: Number of answers behind the weights at which both estimates count alike.
EVEN = 4.0
#: Lower limit of the ratio of the two estimates.
LEAST = 0.01


#: The pieces of the recipe and their purpose; `skip` leaves some out, to measure what they contribute.
PIECES = {
    "gross": "questions with one absurd answer are set aside",
    "biases": "constant biases of workers are not noise",
    "median level": "worker variances are pulled toward the median worker, not the mean",
    "unbiased level": "worker variances are rescaled to the unbiased pooled variance",
    "pattern": "questions differ by moderated worker variances, not by raw ones",
    "luck": "weights are trusted in part, and more so if they rest on more answers",
    "careful intervals": "intervals allow for weights that were learned from the same answers",
    "clipping": "for medians, residuals are clipped and the step is damped accordingly",
    "freedom": "the prior and the intervals account for the variances being estimates",
}


def moderated(
    answers: Answers | None,  # noqa: ARG001  every rule has both
    aggregate: Aggregate,
    *,
    noise: WorkerNoise | None = None,
    skip: Collection[str] = (),
) -> Certainty:
    """Return the moderated variances of the aggregates of a first step.

    `noise` is the worker noise, where it is already known; `skip` names pieces of the recipe to leave out (`PIECES`).
    A median of two answers is their mean: where no question has more, robust first steps are treated as linear.
    """
    unknown = set(skip) - set(PIECES)
    if unknown:
        raise TrueupError(f"skip: {quoted(min(unknown))} is not one of {', '.join(PIECES)}.")
    engine, facts = aggregate.engine, aggregate.facts
    if noise is None or skip:
        noise = noise_behind(aggregate, skip)
    if aggregate.kind == "robust" and facts.most_answers.max() > 2:
        plain = not aggregate.algorithm.iterates
        certainty = robust(engine, noise, clipped="clipping" not in skip, plain=plain)
    else:
        certainty = _linear(aggregate, noise, skip)
    if "careful intervals" in skip:
        certainty = replace(certainty, v_interval=certainty.v, interval=vectors.VARIANCE)
    if "freedom" in skip:
        known = np.full(len(certainty.nu), np.inf)
        certainty = replace(certainty, nu=known, interval_nu=known)
    return certainty


def _linear(aggregate: Aggregate, noise: WorkerNoise, skip: Collection[str]) -> Certainty:
    """Return the variances of weighted means."""
    engine, facts = aggregate.engine, noise.screening.facts
    count, pool, s = noise.n_informative, noise.pool, noise.variance
    bias, any_gross = facts.bias, noise.screening.n_gross > 0
    assert bias is not None  # noqa: S101  set by screen()
    pattern = s if "pattern" in skip else (count * s + PATTERN * pool) / (count + PATTERN)
    careful = noise.for_intervals
    columns = np.column_stack([np.ones(len(s)), pattern, careful.variance])
    share_of, own_bias = answer_shares(aggregate), aggregate.bias
    own_bias = np.zeros(len(s)) if own_bias is None else own_bias
    # Panels whose biases the first step itself has removed.
    removed = facts.panel_max(np.abs(own_bias)) > 0
    gone = removed[facts.worker_panel]
    subtracted = np.where(gone, own_bias, bias)
    bias_error = np.where(gone, careful.bias_error, 0.0)

    def visit(block: Block, kept: Kept) -> Visit:
        workers = block.worker_slice
        share = share_of(block, kept)
        usable = (block.counts >= 2) & (kept[vectors.GROSS] == 0)
        inside = block.informative * usable
        # Squared shares are divided by the precision, because the variance of an answer is s_i / precision.
        squared = share * share
        noisy = squared if block.precision is None else squared / block.precision
        question = block.by_question(noisy, columns[workers]).T
        own = question[0] if noisy is squared else block.by_question(squared)
        y = block.values - subtracted[workers].take(block.workers)
        y -= block.spread(block.by_question(share * y))
        y *= y
        if block.precision is not None:
            y *= block.precision
        ones = np.ones(block.n_questions)
        per_question = {
            vectors.WEIGHT_SQUARES: own,
            vectors.MODERATED_SUM: question[1],
            vectors.CAREFUL_SUM: question[2],
            vectors.BIAS_VARIANCE: block.by_question(squared, bias_error[workers]),
        }
        if any_gross:
            rest = np.maximum(1.0 - share, np.finfo(float).tiny)
            rest = np.where(block.spread(kept[vectors.GROSS]) > 0, rest, 1.0)
            per_question[vectors.RESIDUAL_SUM] = block.by_question(
                squared * block.residuals(kept[vectors.OFFSET]) ** 2 / rest
            )
        by_worker = block.by_worker(share, np.column_stack([ones, inside])).T
        sums = [
            *by_worker,
            block.by_worker(noisy, inside),
            block.by_worker(y, inside),
        ]
        level = segment_sum(question[1] * usable, block.panel_questions)
        return Visit(sums=np.stack(sums), panel_sums=level[None], questions=per_question)

    sweep = engine.sweep(visit, reads=(vectors.OFFSET, vectors.GROSS))
    share, inside, squared, rest = sweep.sums
    if aggregate.algorithm.farthest(aggregate.state) is not None:
        # Within its questions such a method may end at the answers of a single worker.
        s = with_leading_worker(noise, inside)
    freedom = count - inside
    around = np.divide(rest, freedom, out=np.zeros(len(rest)), where=freedom > 1e-12 * count)
    total = facts.panel_sum(squared * s)
    luck = _luck_factor(
        total,
        facts.panel_sum(squared * around),
        facts.panel_sum(squared * count),
        facts.panel_sum(squared),
    )
    if "luck" in skip:
        luck = np.ones(len(luck))
    level = np.divide(total, sweep.panel_sums[0], out=np.zeros(len(total)), where=total > 0)
    tb2 = noise.bias_variance
    questions = np.maximum(np.diff(facts.panel_questions), 1)
    in_all = (share / facts.spread(questions)) ** 2
    common = facts.panel_sum(in_all)
    shift = careful.bias_variance * common
    common_error = facts.panel_sum(in_all * bias_error)
    # Where biases are relative to the average worker, its noise counts as well if the weights differ.
    equal = facts.informative / np.maximum(facts.spread(facts.panel_sum(facts.informative)), 1.0)
    noisy = facts.panel_sum(careful.variance / np.maximum(count, 1.0) * (equal**2 - in_all))
    average = careful.bias_variance * facts.panel_sum(equal**2) + np.maximum(noisy, 0.0)
    shift = np.where(removed, average, shift)
    steep = careful.inflation(aggregate.weight)

    def combine(block: Block, kept: Kept) -> Visit:
        own = kept[vectors.WEIGHT_SQUARES]
        apart = np.maximum(own - block.of_panel(common), 0.0)
        biases, in_interval = (block.of_panel(b) * apart for b in (tb2, careful.bias_variance))
        error = np.maximum(kept[vectors.BIAS_VARIANCE] - block.of_panel(common_error), 0.0)
        here = block.of_panel(removed)
        biases, in_interval = np.where(here, error, biases), np.where(here, error, in_interval)
        v = block.of_panel(luck) * (kept[vectors.MODERATED_SUM] * block.of_panel(level) + biases)
        v_interval = block.of_panel(steep) * kept[vectors.CAREFUL_SUM] + in_interval
        v_interval = np.maximum(v, v_interval)
        if any_gross:
            single, gross, absurd = (
                kept[vectors.RESIDUAL_SUM],
                kept[vectors.GROSS] > 0,
                kept[vectors.ABSURD] > 0,
            )
            v = np.where(absurd, single, v)
            # Where all answers scatter widely the interval is wide, but the step is that of other questions.
            wide = np.where(gross, np.maximum(single, v_interval), v_interval)
            v_interval = np.where(absurd, single, wide)
        return Visit(questions={vectors.VARIANCE: v, vectors.INTERVAL_VARIANCE: v_interval})

    more = (vectors.RESIDUAL_SUM, vectors.GROSS, vectors.ABSURD) if any_gross else ()
    engine.sweep(
        combine,
        reads=(
            vectors.WEIGHT_SQUARES,
            vectors.MODERATED_SUM,
            vectors.CAREFUL_SUM,
            vectors.BIAS_VARIANCE,
            *more,
        ),
        answers=False,
    )
    spread = s * squared
    largest = facts.spread(facts.panel_max(spread))
    spread = np.divide(spread, largest, out=np.zeros(len(spread)), where=largest > 0)
    below = facts.panel_sum(spread**2 / (noise.freedom + 2.0))
    nu = np.divide(facts.panel_sum(spread) ** 2, below, out=np.ones(len(below)), where=below > 0)
    interval_nu = careful.nu(squared * careful.variance)
    return noise.certainty(engine, np.maximum(nu, 1.0), interval_nu, shift, careful.shift_nu)


def _luck_factor(v1: Floats, v2: Floats, answers: Floats, weight: Floats) -> Floats:
    """Return the factor g of each panel; `answers / weight` is K, the number of answers behind the weights."""
    behind = np.divide(answers, weight, out=np.ones(len(weight)), where=weight > 0)
    ratio = np.divide(v2, v1, out=np.ones(len(v2)), where=v1 > 0)
    g: Floats = np.clip(ratio, LEAST, 1.0) ** (EVEN / (EVEN + behind))
    return g


def answer_shares(aggregate: Aggregate) -> Callable[[Block, Kept], Floats]:
    """Return a function that computes the share of each answer of a block in its aggregate.

    It reads `vectors.OFFSET`. For a robust first step all shares of a question are equal.
    """
    if aggregate.kind == "robust":
        return equal_shares
    algorithm, state = aggregate.algorithm, aggregate.state

    def of(block: Block, kept: Kept) -> Floats:
        share = algorithm.weights(block, state.of(block), kept[vectors.OFFSET])
        if share is None:
            raise TrueupError(
                f"the algorithm {type(algorithm).__name__} does not say how much each answer counts; "
                "use " + option("variance", "jackknife") + ' or "bootstrap".',
                argument="variance",
            )
        return share

    return of


def equal_shares(block: Block, kept: Kept) -> Floats:  # noqa: ARG001
    """Return `1 / k_j` for each answer."""
    return 1.0 / block.spread(block.counts.astype(np.float64))


def keep_bias_variance(aggregate: Aggregate, per_worker: Floats) -> None:
    """Store `sum_i p_ij^2 u_i` of each question in the engine, as `vectors.BIAS_VARIANCE`.

    That is the variance that worker errors of variance u_i (`per_worker`) add to each aggregate. For a first step that
    does not say how much each answer counts, all shares of a question are equal.
    """
    share_of = answer_shares(aggregate) if aggregate.has_variance else equal_shares

    def visit(block: Block, kept: Kept) -> Visit:
        share = share_of(block, kept)
        return Visit(
            questions={
                vectors.BIAS_VARIANCE: block.by_question(
                    share * share, per_worker[block.worker_slice]
                )
            }
        )

    aggregate.engine.sweep(visit, reads=(vectors.OFFSET,))
