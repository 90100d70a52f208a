"""The typical spread of answers around the median of their question: the robust unit of a panel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trueup.core.arrays import offsets, rectangles
from trueup.engines import vectors
from trueup.engines.protocol import Visit

if TYPE_CHECKING:
    from trueup.answers.block import Block
    from trueup.core.arrays import Floats
    from trueup.engines.protocol import Engine, Kept
    from trueup.engines.question_sample import QuestionSample

#: Standard deviation of normal answers, in median absolute deviations.
NORMAL = 1.4826


def panel_spreads(engine: Engine, sample: QuestionSample, rounding: Floats) -> Floats:
    """Return 1.4826 times the median of `|r_ij| sqrt(k_j/(k_j-1))` of each panel, over residuals that are not 0.

    The residual of a middle answer is 0 by construction, and where many answers are tied only the others show the
    spread. Residuals up to the `rounding` of their panel are 0. For a very large problem a sample of questions is used.
    The engine keeps `vectors.MEDIAN`.
    """

    def visit(block: Block, kept: Kept) -> Visit:
        median, counts = block.median, block.counts
        distance = np.abs(block.residuals(median))
        # Subtracting biases leaves rounding errors.
        distance[distance <= block.spread(block.of_panel(rounding))] = 0.0
        distance *= block.spread(
            sample.inside(block, kept)
            * block.informative
            * np.sqrt(counts / np.maximum(counts - 1.0, 1.0))
        )
        borders = block.indptr[block.panel_questions]
        size = np.add.reduceat(np.append(distance, 0.0) > 0, borders[:-1], dtype=np.int64)
        return Visit(
            panel_sums=(size * (np.diff(borders) > 0)).astype(np.float64)[None],
            questions={vectors.MEDIAN: median},
            rows={"distance": distance[distance > 0]},
        )

    sweep = engine.sweep(visit, reads=sample.reads)
    return NORMAL * medians(sweep.rows["distance"], sweep.panel_sums[0])


def medians(values: Floats, sizes: Floats) -> Floats:
    """Return the median of consecutive runs of these sizes, one per panel; 0 for an empty run."""
    result = np.zeros(len(sizes))
    filled = np.flatnonzero(sizes)
    for rows, positions in rectangles(offsets(sizes[filled].astype(np.int64))):
        result[filled[rows]] = np.median(values[positions], axis=1)
    return result
