"""What random halves of the workers would have said: the material with which a bold prior earns its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trueup.arrays import segment_sum
from trueup.draws import halves_of
from trueup.engines.memory import MemoryEngine
from trueup.engines.protocol import Visit
from trueup.shrinkage.contract import Halves
from trueup.variance.moderated import shares

if TYPE_CHECKING:
    from trueup.algorithms.driver import Aggregate
    from trueup.answers import Answers
    from trueup.arrays import Floats
    from trueup.block import Block
    from trueup.variance import Certainty, WorkerNoise

#: Random splits of the workers. With half as many the draw itself moves estimates of small panels.
SPLITS = 8
#: A half with less than this share of the weight of a question has not answered it.
NONE = 1e-12


def halve(
    answers: Answers,
    aggregate: Aggregate,
    certainty: Certainty,
    noise: WorkerNoise,
    *,
    seed: int = 0,
    splits: int = SPLITS,
) -> Halves:
    """Aggregate the answers of each half with the weights of the whole.

        x^A_j = sum_A p_ij x_ij / sum_A p_ij
        v^A_j = sum_A p_ij^2 s_i / (sum_A p_ij)^2,  times mean v / mean sum_i p_ij^2 s_i

    Gross questions, and those that only one half answered, are NaN.
    """
    first = halves_of(answers, splits, seed)
    sides = np.concatenate([first, ~first], axis=1).astype(np.float64)
    engine = MemoryEngine(answers)
    columns = 2 * splits
    names = [f"{what}{column}" for what in ("p", "x", "v") for column in range(columns)]

    def visit(block: Block, kept: dict[str, Floats]) -> Visit:  # noqa: ARG001
        mine = block.worker_slice
        share, inside = shares(aggregate, block), sides[mine]
        noisy = share * share * noise.variance[mine].take(block.workers)
        if block.precision is not None:
            noisy /= block.precision
        values = block.values
        if aggregate.bias is not None:
            values = values - aggregate.bias[mine].take(block.workers)
        parts = [block.by_question(each, inside) for each in (share, share * values, noisy)]
        return Visit(questions=dict(zip(names, np.concatenate(parts, axis=1).T, strict=True)))

    engine.sweep(visit)
    p, x, v = np.stack([engine.kept(name) for name in names]).reshape(3, 2, splits, -1)
    usable = (p > NONE).all(axis=0) & ~certainty.gross
    safe = np.where(usable, p, np.nan)
    borders, panel = answers.panel_questions, answers.question_panel
    counted = (answers.counts >= 2) & ~certainty.gross
    whole = v[0, 0] + v[1, 0]
    level = np.divide(
        segment_sum(certainty.v * counted, borders),
        segment_sum(whole * counted, borders),
        out=np.zeros(answers.n_panels),
        where=segment_sum(whole * counted, borders) > 0,
    )
    x, v = aggregate.centre + x / safe, level[panel] * v / safe**2
    return Halves(np.ascontiguousarray(x.swapaxes(0, 1)), np.ascontiguousarray(v.swapaxes(0, 1)))
