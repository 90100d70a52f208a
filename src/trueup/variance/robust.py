"""The variance of medians and modes: estimated from clipped residuals, on the safe side.

The variance of a median of a few heavy-tailed answers cannot be estimated well. Residuals from the median of their
question are clipped at 2.5 robust standard deviations. The second step is damped by the share of the pooled variance
that clipping removes, and intervals use the clipped variance with a margin.

Intervals around plain medians use the variance for normal workers where that is smaller, with the noise `s_i` of
`trueup.variance.interval_noise`: what matters for a median is the density of the answers near the truth, so that
workers who are far off hardly count,

    v_j = (pi/2) / (k_j + 1/2) / (mean_i s_i^-1/2)^2    (k_j + 1.27 for even k_j)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trueup.algorithms.answer_spread import medians, panel_spreads
from trueup.answers.block import ROUNDING
from trueup.core.arrays import segment_sum
from trueup.engines import vectors
from trueup.engines.protocol import Visit
from trueup.engines.question_sample import sample_questions

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.answers.block import Block
    from trueup.core.arrays import Floats
    from trueup.engines.protocol import Engine, Kept
    from trueup.engines.question_sample import QuestionSample
    from trueup.variance.contract import Certainty
    from trueup.variance.worker_noise import WorkerNoise

CLIP = 2.5
#: Variance of a median of three answers or more, relative to that of a mean.
MEDIAN = 1.3
MARGIN = 1.15
#: The variance of the median of k normal answers is (pi/2) / (k + 1/2) for odd k, (pi/2) / (k + 1.27) for even k.
ODD, EVEN = 0.5, 1.27
#: Seed for the sample of questions of a very large problem.
SEED = 0


def robust(
    answers: Engine, noise: WorkerNoise, *, clipped: bool = True, plain: bool = False
) -> Certainty:
    """Return the variances of medians and modes, from the pooled variance if not `clipped`.

    `plain`: medians of answers that all count alike.
    """
    engine, facts = noise.screening.engine, noise.screening.facts
    any_gross = noise.screening.n_gross > 0
    sample = sample_questions(engine, SEED)
    scale = panel_spreads(engine, sample, ROUNDING * np.sqrt(facts.pool))

    def visit(block: Block, kept: Kept) -> Visit:
        limit = block.spread(CLIP * block.of_panel(scale))
        distance = np.minimum(np.abs(block.residuals(kept[vectors.MEDIAN])), limit)
        total = block.informative * block.by_question(distance * distance)
        ones = np.ones(block.n_questions)
        own = block.by_worker(None, ones / block.counts)
        return Visit(sums=own[None], panel_sums=segment_sum(total, block.panel_questions)[None])

    sweep = engine.sweep(visit, reads=(vectors.MEDIAN,))
    freedom = facts.panel_sum(noise.freedom)
    level = np.divide(
        sweep.panel_sums[0] * (freedom + 1.0),
        facts.overlap * freedom,
        out=np.zeros(len(freedom)),
        where=freedom > 0,
    )
    level = np.minimum(level, facts.pool) if clipped else facts.pool
    kept_share = np.divide(level, facts.pool, out=np.zeros(len(level)), where=facts.pool > 0)
    questions = np.maximum(np.diff(facts.panel_questions), 1)
    common = facts.panel_sum((sweep.sums[0] / facts.spread(questions)) ** 2)
    tb2 = noise.bias_variance

    careful = noise.for_intervals
    deviation = np.sqrt(careful.variance)
    inverse = np.divide(1.0, deviation, out=np.zeros(len(deviation)), where=deviation > 0)

    def of_median(block: Block) -> Floats:
        workers, few = block.worker_slice, block.counts <= 2
        precision = np.ones(len(block.values)) if block.precision is None else block.precision
        mean = block.by_question(1.0 / precision, careful.variance[workers])
        density = block.by_question(np.sqrt(precision), inverse[workers])
        counts = block.counts.astype(np.float64)
        density = np.maximum(density / counts, 1e-150)  # its square is still a number
        of_normal = np.where(few, 1.0 / counts, _median_variance(counts))
        clipped = MARGIN * of_normal * block.of_panel(level)
        return np.minimum(clipped, np.where(few, mean / counts**2, of_normal / density**2))

    def variances(block: Block) -> tuple[Floats, Floats, Floats]:
        factor = np.where(block.counts >= 3, MEDIAN, 1.0) / block.counts
        v = factor * block.of_panel(level * kept_share)
        v_interval = of_median(block) if plain else MARGIN * factor * block.of_panel(level)
        # The part of the biases that does not cancel, as for means. Their variance is not clipped, so damp it.
        apart = np.maximum(factor - block.of_panel(common), 0.0)
        v = v + block.of_panel(tb2 * kept_share) * apart
        v_interval = v_interval + block.of_panel(careful.bias_variance) * apart
        return v, np.maximum(v, v_interval), factor

    # Gross questions get the typical variance of the others.
    typical = _typical(engine, variances, sample) if any_gross else np.zeros((2, len(level)))

    def combine(block: Block, kept: Kept) -> Visit:
        v, v_interval, factor = variances(block)
        if any_gross:
            gross, absurd = kept[vectors.GROSS] > 0, kept[vectors.ABSURD] > 0
            v, v_interval = (
                np.where(absurd, block.of_panel(median) / block.counts, variance)
                for median, variance in zip(typical, (v, v_interval), strict=True)
            )
            # Where all answers scatter widely, not just one, the interval is wide as well.
            own = np.maximum(block.std**2 * factor, v_interval)
            v_interval = np.where(gross & ~absurd, own, v_interval)
        return Visit(questions={vectors.VARIANCE: v, vectors.INTERVAL_VARIANCE: v_interval})

    answers.sweep(
        combine,
        reads=(vectors.GROSS, vectors.ABSURD) if any_gross else (),
        answers=any_gross or plain,
    )
    nu = np.maximum(0.6 * freedom, 1.0)
    interval_nu = careful.nu(facts.n_informative * inverse) if plain else nu
    shift = careful.bias_variance * common
    return noise.certainty(answers, nu, interval_nu, shift, careful.shift_nu)


def _median_variance(counts: Floats) -> Floats:
    """Return the variance of the median of three standard normal answers or more, to within 1%."""
    return 0.5 * np.pi / (counts + np.where(counts % 2 == 1, ODD, EVEN))


def _typical(
    engine: Engine,
    variances: Callable[[Block], tuple[Floats, Floats, Floats]],
    sample: QuestionSample,
) -> Floats:
    """Return the median of `k v` and of `k v_interval` over questions with two answers that are not gross."""

    def visit(block: Block, kept: Kept) -> Visit:
        others = sample.inside(block, kept) & (kept[vectors.GROSS] == 0) & (block.counts >= 2)
        v, v_interval, _ = variances(block)
        return Visit(
            panel_sums=segment_sum(others.astype(np.float64), block.panel_questions)[None],
            rows={
                vectors.VARIANCE: (v * block.counts)[others],
                vectors.INTERVAL_VARIANCE: (v_interval * block.counts)[others],
            },
        )

    sweep = engine.sweep(visit, reads=(vectors.GROSS, *sample.reads))
    size = sweep.panel_sums[0]
    return np.stack(
        [medians(sweep.rows[name], size) for name in (vectors.VARIANCE, vectors.INTERVAL_VARIANCE)]
    )
