"""Sandwich estimate: the variance of a weighted mean from the residuals of its own question."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trueup.core.arrays import segment_sum
from trueup.engines import vectors
from trueup.engines.protocol import Visit
from trueup.errors import TrueupError

if TYPE_CHECKING:
    from trueup.algorithms.driver import Aggregate
    from trueup.answers.answers import Answers
    from trueup.answers.block import Block
    from trueup.core.arrays import Floats
    from trueup.engines.protocol import Kept, Sweep


def sandwich(answers: Answers | None, aggregate: Aggregate) -> Floats:  # noqa: ARG001  every rule has both
    """Return `v_j = sum_i p_ij^2 (x_ij - t_j)^2 / (1 - p_ij)`, NaN for a question with one answer.

    Unbiased under weak assumptions, but far too noisy for a single question with two or three answers: use its
    average over questions, which on complete data equals that of the plug-in.
    """
    _sweep(aggregate)
    return aggregate.engine.kept(vectors.SANDWICH)


def _sweep(aggregate: Aggregate) -> Sweep:
    """Store the sandwich of each question in the engine; return sum and number of those known, per panel."""
    algorithm = aggregate.algorithm
    state = aggregate.state

    def visit(block: Block, kept: Kept) -> Visit:
        x = kept[vectors.OFFSET]
        share = algorithm.weights(block, state.of(block), x)
        if share is None:
            raise TrueupError(
                f"the algorithm {type(algorithm).__name__} has no weights, which the sandwich needs.",
                argument="variance",
            )
        rest = np.where(block.spread(block.informative) > 0, 1.0 - share, 1.0)
        # The residual of a worker with all the weight is 0; avoid 0 / 0.
        rest = np.maximum(rest, np.finfo(float).tiny)
        residuals = block.residuals(x)
        variance = block.by_question(share * share * residuals * residuals / rest)
        known = block.informative > 0
        totals = np.stack([np.where(known, variance, 0.0), known.astype(np.float64)])
        return Visit(
            panel_sums=np.stack([segment_sum(row, block.panel_questions) for row in totals]),
            questions={vectors.SANDWICH: np.where(known, variance, np.nan)},
        )

    return aggregate.engine.sweep(visit, reads=(vectors.OFFSET,))


def mean_sandwich(answers: Answers | None, aggregate: Aggregate) -> Floats:  # noqa: ARG001
    """Return for each question the mean sandwich of its panel, over questions with at least two answers."""
    total, count = _sweep(aggregate).panel_sums
    mean = np.divide(total, count, out=np.zeros(len(total)), where=count > 0)

    def spread(block: Block, kept: Kept) -> Visit:  # noqa: ARG001
        return Visit(questions={vectors.VARIANCE: block.of_panel(mean)})

    aggregate.engine.sweep(spread, answers=False)
    return aggregate.engine.kept(vectors.VARIANCE)
