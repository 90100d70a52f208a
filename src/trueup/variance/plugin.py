"""Plug-in rules: the variance of a weighted mean with fixed weights and estimated worker variances."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from trueup.engines import vectors
from trueup.engines.protocol import Visit
from trueup.errors import TrueupError, option
from trueup.variance.moderated import moderated

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.algorithms.driver import Aggregate
    from trueup.answers.answers import Answers
    from trueup.answers.block import Block
    from trueup.core.arrays import Floats
    from trueup.engines.protocol import Kept
    from trueup.variance.contract import Certainty
    from trueup.variance.worker_noise import WorkerNoise


def plugin(answers: Answers | None, aggregate: Aggregate) -> Floats:  # noqa: ARG001  every rule has both
    """Return `v_j = sum_i p_ij^2 s_i^2`, with `s_i^2 = sum_j (x_ij - t_j)^2 / sum_j (1 - p_ij)`.

    The weights are treated as fixed, so the variance is somewhat too small if they were learned from few answers.
    Algorithms with their own variance formula (median, GTM, subject bias, Student, BLUE) use that.
    """
    if not aggregate.has_variance:
        raise TrueupError(
            f"the algorithm {type(aggregate.algorithm).__name__} does not say how much each answer counts; "
            "use " + option("variance", "jackknife") + ' or "bootstrap".',
            argument="variance",
        )

    def visit(block: Block, kept: Kept) -> Visit:  # noqa: ARG001
        return Visit(questions={vectors.VARIANCE: kept[vectors.MODEL_VARIANCE]})

    aggregate.engine.sweep(visit, reads=(vectors.MODEL_VARIANCE,), answers=False)
    return aggregate.engine.kept(vectors.VARIANCE)


def blue(answers: Answers | None, aggregate: Aggregate) -> Floats:  # noqa: ARG001
    """Return `v_j = 1 / sum_i 1/s_i^2` over the workers of question j.

    The variance of the best linear unbiased estimate, correct only for first steps with inverse-variance weights.
    """
    noise = aggregate.noise

    def visit(block: Block, kept: Kept) -> Visit:  # noqa: ARG001
        variance = noise[block.worker_slice]
        precision = np.divide(1.0, variance, out=np.zeros(len(variance)), where=variance > 0)
        total = block.total_weight(precision)
        return Visit(
            questions={
                vectors.VARIANCE: np.divide(1.0, total, out=np.zeros(len(total)), where=total > 0)
            }
        )

    aggregate.engine.sweep(visit)
    return aggregate.engine.kept(vectors.VARIANCE)


def at_face_value(
    rule: Callable[[Answers | None, Aggregate], Floats | Certainty],
    answers: Answers | None,
    aggregate: Aggregate,
    noise: WorkerNoise | None = None,
    moderate: Certainty | None = None,
) -> Certainty:
    """Return the variances of a rule that takes the weights as fixed; for intervals, at least the moderated ones.

    Weights that were learned from the same answers favour workers who look better than they are, so the residuals
    around such an aggregate are too small: half the variance with three workers and five questions. The moderated
    variances do not depend on the weights. They also say how much of the error all questions share, and with how many
    degrees of freedom. Estimates follow the rule as it is.
    """
    engine = aggregate.engine
    sure = moderate.again_in(engine) if moderate else moderated(answers, aggregate, noise=noise)
    rule(answers, aggregate)
    shift = sure.shift

    def visit(block: Block, kept: Kept) -> Visit:
        own = kept[vectors.VARIANCE] - block.of_panel(shift)
        return Visit(
            questions={vectors.INTERVAL_VARIANCE: np.maximum(own, kept[vectors.INTERVAL_VARIANCE])}
        )

    engine.sweep(visit, reads=(vectors.VARIANCE, vectors.INTERVAL_VARIANCE), answers=False)
    return replace(
        sure,
        v=engine.kept(vectors.VARIANCE),
        v_interval=engine.kept(vectors.INTERVAL_VARIANCE),
        marks=np.broadcast_to(0.0, (engine.problem.n_questions,)),
        aside="",
    )
