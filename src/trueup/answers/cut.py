"""Answers cut into blocks of questions, the pieces that a pass visits."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from trueup.answers.block import Block
from trueup.answers.dense_block import CompleteBlock
from trueup.core.arrays import narrow

if TYPE_CHECKING:
    from trueup.answers.answers import Answers

# Answers per block: too many for threads to wait for one another, few enough to bound what is in flight.
BLOCK_ANSWERS = 1 << 19


def cut_blocks(answers: Answers, size: int = BLOCK_ANSWERS) -> list[Block]:
    """Cut the questions into blocks of about `size` answers, between panels where possible.

    The cuts depend on the answers alone, so that the number of threads changes no result.
    """
    # Sums per worker must not outweigh the answers.
    size = max(size, answers.n_workers // answers.n_panels)
    indptr, borders = answers.indptr, answers.panel_questions
    starts = [0]
    while starts[-1] < answers.n_questions:
        start = starts[-1]
        target = int(indptr[start]) + size
        stop = max(int(np.searchsorted(indptr, target, side="right")) - 1, start + 1)
        stop = min(stop, answers.n_questions)
        border = borders[np.searchsorted(borders, stop, side="right") - 1]
        starts.append(int(border) if border > start else stop)
    return [_block(answers, start, stop) for start, stop in pairwise(starts)]


def _block(answers: Answers, start: int, stop: int) -> Block:
    """Return the questions from `start` up to `stop` as a block."""
    rows = slice(int(answers.indptr[start]), int(answers.indptr[stop]))
    borders = answers.panel_questions
    first_panel = int(np.searchsorted(borders, start, side="right")) - 1
    last_panel = int(np.searchsorted(borders, stop - 1, side="right"))
    first, last = answers.panel_workers[[first_panel, last_panel]].tolist()
    workers = answers.workers[rows]
    largest = max(rows.stop - rows.start, last - first)
    inside = np.clip(borders[first_panel : last_panel + 1], start, stop)
    block = Block(
        indptr=narrow(answers.indptr[start : stop + 1] - rows.start, largest),
        workers=narrow(workers - first if first else workers, largest),
        values=answers.values[rows],
        precision=None if answers.precision is None else answers.precision[rows],
        n_workers=last - first,
        start=start,
        first_worker=first,
        panel_questions=inside - start,
        first_panel=first_panel,
        centre=answers.centre[start:stop],
        given=None if answers.given is None else answers.given[rows],
    )
    return CompleteBlock.if_complete(block)
