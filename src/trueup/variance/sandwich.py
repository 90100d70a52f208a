"""Sandwich: the variance of a weighted mean from the residuals of its own question."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trueup.arrays import segment_sum
from trueup.engines.memory import MemoryEngine
from trueup.engines.protocol import Visit
from trueup.errors import TrueupError

if TYPE_CHECKING:
    from trueup.algorithms.driver import Aggregate
    from trueup.answers import Answers
    from trueup.arrays import Floats
    from trueup.block import Block


def sandwich(answers: Answers, aggregate: Aggregate) -> Floats:
    """Return `v_j = sum_i p_ij^2 (x_ij - t_j)^2 / (1 - p_ij)`, NaN for a question with one answer.

    Unbiased with few assumptions, but far too noisy for a single question of two or three answers: take its
    average over questions, which on complete data equals that of the plug-in.
    """
    algorithm = aggregate.algorithm

    def visit(block: Block, kept: dict[str, Floats]) -> Visit:  # noqa: ARG001
        x = aggregate.offset[block.start : block.stop]
        share = algorithm.weights(block, aggregate.state.of(block), x)
        if share is None:
            raise TrueupError(
                f"variance: the algorithm {type(algorithm).__name__} has no weights, which the sandwich needs."
            )
        rest = np.where(block.spread(block.informative) > 0, 1.0 - share, 1.0)
        # A worker with all the weight has no residual: 0 / 0 is 0 here.
        rest = np.maximum(rest, np.finfo(float).tiny)
        residuals = block.residuals(x)
        variance = block.by_question(share * share * residuals * residuals / rest)
        return Visit(questions={"sandwich": np.where(block.informative > 0, variance, np.nan)})

    engine = MemoryEngine(answers)
    engine.sweep(visit)
    return engine.kept("sandwich")


def mean_sandwich(answers: Answers, aggregate: Aggregate) -> Floats:
    """Return the mean of the sandwich over the questions of each panel that have two answers, for all of them alike."""
    each = sandwich(answers, aggregate)
    known = ~np.isnan(each)
    total = segment_sum(np.where(known, each, 0.0), answers.panel_questions)
    count = segment_sum(known.astype(np.float64), answers.panel_questions)
    mean = np.divide(total, count, out=np.zeros(len(total)), where=count > 0)
    return mean[answers.question_panel]
