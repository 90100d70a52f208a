"""What is known before the first iteration: one pass that counts and pools."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trueup.algorithms.contract import Facts
from trueup.core.arrays import segment_max, segment_sum
from trueup.engines.protocol import Visit

if TYPE_CHECKING:
    from trueup.answers.block import Block
    from trueup.engines.protocol import Engine, Kept, Sweep


def survey(engine: Engine) -> Facts:
    """Count the answers of each worker, and find the pooled variance of each panel."""
    found, problem = count(engine), engine.problem
    sums, (within, overlap) = found.sums, found.panel_sums
    panel, known = problem.worker_panel, problem.worker_variance
    more = engine.n_workers - len(panel)  # workers that only this look at the answers has
    if more:
        panel = np.append(panel, np.zeros(more, dtype=np.int64))
        known = None if known is None else np.append(known, np.full(more, np.nan))
    return Facts(
        worker_panel=panel,
        panel_questions=problem.panel_questions,
        n_panels=problem.n_panels,
        most_answers=found.panel_peaks,
        n_answers=sums[0],
        n_informative=sums[1],
        precision=sums[2],
        precision_squared=sums[3],
        pool=np.divide(within, overlap, out=np.zeros(len(overlap)), where=overlap > 0),
        overlap=overlap,
        worker_variance=known,
        answer_variance=problem.answer_variance,
    )


def count(engine: Engine) -> Sweep:
    """Return sums per worker (answers, informative ones, their precision and its square) and per panel.

    The latter are the sum of squares within questions and `sum_j (k_j - 1)`; the peaks are the largest `k_j`.
    """

    def visit(block: Block, kept: Kept) -> Visit:  # noqa: ARG001
        ones = np.ones(block.n_questions)
        counts = block.by_worker(None, np.column_stack([ones, block.informative])).T
        if block.precision is None:
            precision = squared = counts[1]
        else:
            precision = block.by_worker(block.precision, block.informative)
            squared = block.by_worker(block.precision**2, block.informative)
        per_panel = block.informative * np.stack([block.within, block.counts - 1.0])
        totals = [segment_sum(row, block.panel_questions) for row in per_panel]
        return Visit(
            sums=np.stack([*counts, precision, squared]),
            panel_sums=np.stack(totals),
            panel_peaks=segment_max(block.counts.astype(np.float64), block.panel_questions),
        )

    return engine.sweep(visit)
