"""Answers cut into blocks of questions, the pieces that a pass visits."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from trueup.answers.block import Block
from trueup.answers.dense_block import CompleteBlock
from trueup.core.arrays import narrow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trueup.answers.answers import Answers

# Answers per block: too many for threads to wait for one another, few enough to bound what is in flight.
BLOCK_ANSWERS = 1 << 19
# Of many answers blocks hold up to twice as many, because each visit takes a while to begin; but never are so few left.
FEWEST_BLOCKS = 8
# Answers per piece of a block, for arithmetic that looks at every answer many times: so many stay in the cache.
PIECE_ANSWERS = 1 << 17


def cut_blocks(answers: Answers, size: int | None = None) -> list[Block]:
    """Cut the questions into blocks of about `size` answers, between panels where possible.

    The cuts depend on the answers alone, so that the number of threads changes no result.
    """
    if size is None:
        size = min(max(answers.n_answers // FEWEST_BLOCKS, BLOCK_ANSWERS), 2 * BLOCK_ANSWERS)
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


def pieces_of(block: Block) -> list[Block]:
    """Cut a block into pieces that stay in the cache of a processor; they are made once.

    A piece is one panel and knows nothing of the panels of its block.
    """
    pieces: list[Block] | None = vars(block).get("pieces")
    if pieces is None:
        pieces = vars(block)["pieces"] = list(_cut_pieces(block))
    return pieces


def _cut_pieces(block: Block) -> Iterator[Block]:
    n_answers = len(block.workers)
    # Sums over workers are made for every piece: with many workers, pieces are larger.
    size = max(PIECE_ANSWERS, 4 * block.n_workers)
    count = n_answers // size
    if count < 2:
        yield block
        return
    borders = np.searchsorted(block.indptr, np.arange(count + 1) * n_answers // count)
    borders[-1] = block.n_questions
    for first, last in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
        begin, end = int(block.indptr[first]), int(block.indptr[last])
        yield Block(
            indptr=block.indptr[first : last + 1] - block.indptr[first],
            workers=block.workers[begin:end],
            values=block.values[begin:end],
            precision=None if block.precision is None else block.precision[begin:end],
            n_workers=block.n_workers,
            start=block.start + first,
            first_worker=block.first_worker,
            panel_questions=np.array([0, last - first]),
            first_panel=block.first_panel,
            centre=block.centre[first:last],
            aside=None if block.aside is None else block.aside[first:last],
            given=None if block.given is None else block.given[begin:end],
        )
