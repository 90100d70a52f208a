"""The variance of medians and modes: from clipped residuals, and on the safe side.

The variance of a median of a few heavy-tailed answers cannot be known. Residuals from the median of their question are
clipped at 2.5 robust standard deviations; the second step is damped by how much of the pooled variance was clipped off,
and intervals use the clipped variance with a margin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trueup.arrays import offsets, rectangles, segment_sum
from trueup.engines.protocol import Visit
from trueup.variance.certainty import Certainty

if TYPE_CHECKING:
    from trueup.answers import Answers
    from trueup.arrays import Bools, Floats, Ints
    from trueup.block import Block
    from trueup.variance.worker_noise import WorkerNoise

#: A median absolute deviation times this is the standard deviation, for normal answers.
NORMAL = 1.4826
CLIP = 2.5
#: Variance of a median of three answers or more, relative to that of a mean.
MEDIAN = 1.3
MARGIN = 1.15


def robust(answers: Answers, noise: WorkerNoise, *, clipped: bool = True) -> Certainty:
    """Return the variances of medians and modes; without clipping the pooled variance is taken."""
    apart, facts = noise.apart, noise.apart.facts
    gross, borders = apart.gross, answers.panel_questions
    scale = _robust_scale(answers, noise)

    def visit(block: Block, kept: dict[str, Floats]) -> Visit:
        limit = CLIP * np.repeat(scale[block.panel_slice], np.diff(block.panel_questions))
        distance = np.minimum(np.abs(block.residuals(kept["median"])), block.spread(limit))
        total = block.informative * block.by_question(distance * distance)
        ones = np.ones(block.n_questions)
        own = block.by_worker(None, ones / block.counts)
        return Visit(sums=own[None], panel_sums=segment_sum(total, block.panel_questions)[None])

    sweep = apart.engine.sweep(visit)
    freedom = facts.panel_sum(noise.freedom)
    level = np.divide(
        sweep.panel_sums[0] * (freedom + 1.0),
        facts.overlap * freedom,
        out=np.zeros(len(freedom)),
        where=freedom > 0,
    )
    level = np.minimum(level, facts.pool) if clipped else facts.pool
    kept_share = np.divide(level, facts.pool, out=np.zeros(len(level)), where=facts.pool > 0)
    panel, counts = answers.question_panel, answers.counts
    factor = np.where(counts >= 3, MEDIAN, 1.0) / counts
    v, v_interval = factor * (level * kept_share)[panel], MARGIN * factor * level[panel]
    questions = np.maximum(np.diff(borders), 1)
    common = facts.panel_sum((sweep.sums[0] / facts.spread(questions)) ** 2)
    # The part of the biases that does not cancel, as for means; their variance knows no clipping, so it is damped.
    tb2 = noise.bias_variance
    biases = tb2[panel] * np.maximum(factor - common[panel], 0.0)
    v, v_interval = v + biases * kept_share[panel], v_interval + biases
    if gross.any():
        own = np.zeros(len(v))
        for block in answers.blocks():
            own[block.start : block.stop] = block.std**2 * factor[block.start : block.stop]
        # Where all scatter widely, and not by one absurd answer, the interval does, too.
        wide = gross & ~apart.absurd
        v = np.where(apart.absurd, _typical(v, counts, gross, borders), v)
        v_interval = np.where(
            apart.absurd, _typical(v_interval, counts, gross, borders), v_interval
        )
        v_interval = np.where(wide, np.maximum(own, v_interval), v_interval)
    return Certainty(
        v,
        v_interval,
        np.maximum(0.6 * freedom, 1.0),
        tb2 * common,
        noise.shift_freedom,
        gross,
    )


def _robust_scale(answers: Answers, noise: WorkerNoise) -> Floats:
    """Return 1.4826 times the median of `|r_ij| sqrt(k_j/(k_j-1))` of each panel, over residuals that are not 0.

    The residual of a middle answer is 0 by construction, and where many answers tie the others tell how wide they are.
    """
    found: dict[int, tuple[slice, Ints, Floats]] = {}

    def visit(block: Block, kept: dict[str, Floats]) -> Visit:  # noqa: ARG001
        median, counts = block.median, block.counts
        distance = np.abs(block.residuals(median))
        distance *= block.spread(
            block.informative * np.sqrt(counts / np.maximum(counts - 1.0, 1.0))
        )
        borders = block.indptr[block.panel_questions]
        size = np.add.reduceat(np.append(distance, 0.0) > 0, borders[:-1], dtype=np.int64)
        found[block.start] = (
            block.panel_slice,
            size * (np.diff(borders) > 0),
            distance[distance > 0],
        )
        return Visit(questions={"median": median})

    noise.apart.engine.sweep(visit)
    sizes = np.zeros(answers.n_panels, dtype=np.int64)
    parts = [found[start] for start in sorted(found)]
    for where, size, _ in parts:
        sizes[where] += size
    values = np.concatenate([distance for *_, distance in parts])
    scale = np.zeros(answers.n_panels)
    filled = np.flatnonzero(sizes)
    for rows, positions in rectangles(offsets(sizes[filled])):
        scale[filled[rows]] = np.median(values[positions], axis=1)
    return NORMAL * scale


def _typical(v: Floats, counts: Ints, gross: Bools, borders: Ints) -> Floats:
    """Give gross questions the median of `k v` of the others of their panel that have two answers."""
    result = v.copy()
    for b in np.unique(np.searchsorted(borders, np.flatnonzero(gross), side="right") - 1):
        here = slice(borders[b], borders[b + 1])
        others = ~gross[here] & (counts[here] >= 2)
        typical = np.median((v[here] * counts[here])[others]) if others.any() else 0.0
        result[here][gross[here]] = typical / counts[here][gross[here]]
    return result
