"""What is known before the first iteration: one pass that counts and pools."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trueup.algorithms.contract import Facts
from trueup.arrays import segment_sum
from trueup.engines.protocol import Visit

if TYPE_CHECKING:
    from trueup.answers import Answers
    from trueup.arrays import Floats
    from trueup.block import Block
    from trueup.engines.protocol import Engine


def survey(engine: Engine, answers: Answers) -> Facts:
    """Count the answers of each worker, and find the pooled variance of each panel."""
    sums, panel_sums = count(engine)
    within, overlap = panel_sums
    return Facts(
        worker_panel=answers.worker_panel,
        panel_questions=answers.panel_questions,
        n_panels=answers.n_panels,
        n_answers=sums[0],
        n_informative=sums[1],
        precision=sums[2],
        precision_squared=sums[3],
        pool=np.divide(within, overlap, out=np.zeros(len(overlap)), where=overlap > 0),
        overlap=overlap,
        worker_variance=answers.worker_variance,
        answer_variance=answers.answer_variance,
    )


def count(engine: Engine) -> tuple[Floats, Floats]:
    """Return sums per worker (answers, informative ones, their precision and its square) and per panel.

    The latter are the sum of squares within questions and `sum_j (k_j - 1)`.
    """

    def visit(block: Block, kept: dict[str, Floats]) -> Visit:  # noqa: ARG001
        ones = np.ones(block.n_questions)
        counts = block.by_worker(None, np.column_stack([ones, block.informative])).T
        if block.precision is None:
            precision = squared = counts[1]
        else:
            precision = block.by_worker(block.precision, block.informative)
            squared = block.by_worker(block.precision**2, block.informative)
        per_panel = block.informative * np.stack([block.within, block.counts - 1.0])
        totals = [segment_sum(row, block.panel_questions) for row in per_panel]
        return Visit(sums=np.stack([*counts, precision, squared]), panel_sums=np.stack(totals))

    sweep = engine.sweep(visit)
    return sweep.sums, sweep.panel_sums
