"""The variance estimate of the paper as printed, which estimates the variance of a worker, not of the truths."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trueup.engines import vectors
from trueup.engines.protocol import Visit

if TYPE_CHECKING:
    from trueup.algorithms.driver import Aggregate
    from trueup.answers.answers import Answers
    from trueup.answers.block import Block
    from trueup.core.arrays import Floats
    from trueup.engines.protocol import Kept


def psi_h(answers: Answers | None, aggregate: Aggregate) -> Floats:  # noqa: ARG001  every rule has both
    """Return `psi_H = (1/n) sum_i 1/(m-1) sum_j (x_ij - t_j)^2` of each panel, repeated for its questions.

    On sparse data the divisor of worker i is `max(|Q_i| - 1, 1)`, and the mean is over workers with answers. For the
    plain mean it is about n times the variance of the truths, see the documentation of the second step.
    """
    return _keep(aggregate, per_answer=False)


def psi_h_per_answer(answers: Answers | None, aggregate: Aggregate) -> Floats:  # noqa: ARG001
    """Return psi_H divided by the number of answers of each question.

    On complete data this is psi_H / n, which is close to the variance of a plain mean of n answers.
    """
    return _keep(aggregate, per_answer=True)


def _keep(aggregate: Aggregate, *, per_answer: bool) -> Floats:
    """Compute psi_H, store it in the engine and return it."""
    engine, facts = aggregate.engine, aggregate.facts

    def visit(block: Block, kept: Kept) -> Visit:
        residuals = block.residuals(kept[vectors.OFFSET])
        return Visit(sums=block.by_worker(residuals * residuals, np.ones(block.n_questions))[None])

    sums = engine.sweep(visit, reads=(vectors.OFFSET,)).sums
    answered = facts.n_answers > 0
    variance = np.where(answered, sums[0] / np.maximum(facts.n_answers - 1.0, 1.0), 0.0)
    count = np.maximum(facts.panel_sum(answered.astype(np.float64)), 1.0)
    psi = facts.panel_sum(variance) / count

    def spread(block: Block, kept: Kept) -> Visit:  # noqa: ARG001
        v = block.of_panel(psi)
        return Visit(questions={vectors.VARIANCE: v / block.counts if per_answer else v})

    engine.sweep(spread, answers=False)
    return engine.kept(vectors.VARIANCE)
