"""Aggregates of random halves of the workers, on which alternatives to the normal prior are tried."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trueup.core.arrays import segment_sum
from trueup.core.sampling import halves_of
from trueup.engines import vectors
from trueup.engines.protocol import Visit
from trueup.engines.question_sample import QuestionSample
from trueup.shrinkage.contract import Halves
from trueup.variance.moderated import answer_shares

if TYPE_CHECKING:
    from trueup.algorithms.driver import Aggregate
    from trueup.answers.block import Block
    from trueup.core.arrays import Floats
    from trueup.engines.protocol import Engine, Kept
    from trueup.variance import Certainty

#: Random splits of the workers. With half as many the draw itself moves estimates of small panels.
SPLITS = 8
#: Questions on which a bold prior is tried: what more of them would tell apart hardly matters.
TRIED = 20_000
#: A half with less than this share of the weight of a question has not answered it.
NONE = 1e-12


def halve(
    aggregate: Aggregate,
    certainty: Certainty,
    variance: Floats,
    *,
    sample: QuestionSample | None = None,
    seed: int = 0,
    splits: int = SPLITS,
) -> Halves:
    """Aggregate the answers of each half to a sample of the questions (default: all) with the weights of the whole.

        x^A_j = sum_A p_ij x_ij / sum_A p_ij
        v^A_j = sum_A p_ij^2 s_i / (sum_A p_ij)^2,  times mean v / mean sum_i p_ij^2 s_i

    `variance` is the s_i of each worker. Gross questions, those that only one half answered, and of very many all but
    about `TRIED`, are NaN.
    """
    engine, sample, aside = aggregate.engine, sample or QuestionSample(), certainty.aside
    tried = _tried(engine, sample, seed)
    first = halves_of(engine.problem, splits, seed)
    sides = np.concatenate([first, ~first], axis=1).astype(np.float64)
    share_of, bias = answer_shares(aggregate), aggregate.bias

    def visit(block: Block, kept: Kept) -> Visit:
        inside_sample = sample.inside(block, kept)
        chosen = inside_sample & tried.inside(block, kept)
        few, known = block.part(chosen), {name: each[chosen] for name, each in kept.items()}
        mine = few.worker_slice
        share, inside = share_of(few, known), sides[mine]
        noisy = share * share * variance[mine].take(few.workers)
        if few.precision is not None:
            noisy /= few.precision
        values = few.values
        if bias is not None:
            values = values - bias[mine].take(few.workers)
        p, px, pv = (few.by_question(each, inside) for each in (share, share * values, noisy))
        gross = known[aside] > 0 if aside else np.zeros(few.n_questions, dtype=bool)
        counted = (few.counts >= 2) & ~gross
        totals = counted * np.stack([known[vectors.VARIANCE], pv[:, 0] + pv[:, splits]])
        usable = (p > NONE).reshape(-1, 2, splits).all(axis=1) & ~gross[:, None]
        safe = np.where(np.tile(usable, 2), p, np.nan)
        numbers = np.arange(block.panel_slice.start, block.panel_slice.stop)
        panel = np.repeat(numbers, np.diff(block.panel_questions))[inside_sample]
        x, v = np.full((2, len(panel), 2 * splits), np.nan)
        here = chosen[inside_sample]
        x[here], v[here] = few.centre[:, None] + px / safe, pv / safe**2
        return Visit(
            panel_sums=np.stack([segment_sum(row, few.panel_questions) for row in totals]),
            rows={"x": x, "v": v, "panel": panel.astype(np.float64)},
        )

    reads = (
        vectors.OFFSET,
        vectors.VARIANCE,
        *([aside] if aside else []),
        *{*sample.reads, *tried.reads},
    )
    sweep = engine.sweep(visit, reads=reads)
    above, below = sweep.panel_sums
    x, v, panel = sweep.rows["x"], sweep.rows["v"], sweep.rows["panel"].astype(np.int64)
    # Shares of the sum first: a quotient of both sums need not be a number where variances were given.
    v = above[panel, None] * (v / np.where(below > 0, below, np.inf)[panel, None])
    # Splits x halves x questions.
    return Halves(*(np.ascontiguousarray(each.reshape(-1, 2, splits).T) for each in (x, v)))


def _tried(engine: Engine, sample: QuestionSample, seed: int) -> QuestionSample:
    """Return those questions of a sample that are worth their time."""
    m = engine.problem.n_questions
    if engine.problem.n_panels > 1 or m <= TRIED:
        return QuestionSample()
    if sample.limit is None:
        engine.draw(seed)
    return QuestionSample(np.array([TRIED / m * 2.0**64]))
