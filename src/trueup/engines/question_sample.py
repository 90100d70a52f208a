"""A sample of the questions of an engine, drawn by their ids, so that every engine draws the same ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trueup.core.sampling import MAX_QUESTIONS
from trueup.engines.protocol import Visit
from trueup.engines.vectors import DRAW

if TYPE_CHECKING:
    from trueup.answers.block import Block
    from trueup.core.arrays import Bools, Floats
    from trueup.engines.protocol import Engine, Kept

#: Largest number of answers to sampled questions, unless that leaves fewer than `MIN_QUESTIONS`.
MAX_ANSWERS, MIN_QUESTIONS = 5_000_000, 1_000


@dataclass(frozen=True, eq=False)
class QuestionSample:
    """A sample of the questions: those whose random number is below the limit of their panel.

    Attributes
    ----------
    limit : array or None
        One number per panel; None: all questions.
    """

    limit: Floats | None = None

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the vectors that `inside` needs."""
        return () if self.limit is None else (DRAW,)

    def inside(self, block: Block, kept: Kept) -> Bools:
        """Return whether each question of a block is in the sample."""
        if self.limit is None:
            return np.ones(block.n_questions, dtype=bool)
        return kept[DRAW] < block.of_panel(self.limit)


def sample_questions(engine: Engine, seed: int, size: int | None = None) -> QuestionSample:
    """Draw at most `size` questions of each panel; by default as many as a prior is fitted on.

    Fewer are drawn from a single problem with very many answers to each question.
    """
    problem = engine.problem
    sizes = np.diff(problem.panel_questions)
    if size is None:
        size = MAX_QUESTIONS
        if problem.n_panels == 1:
            most = MAX_ANSWERS * problem.n_questions // max(problem.n_answers, 1)
            size = min(size, max(most, MIN_QUESTIONS))
    if sizes.max(initial=0) <= size:
        return QuestionSample()
    engine.draw(seed)
    if problem.n_panels > 1:
        numbers = engine.kept(DRAW)
        borders = problem.panel_questions
        limit = np.full(len(sizes), np.inf)
        for panel in np.flatnonzero(sizes > size).tolist():
            of_panel = numbers[borders[panel] : borders[panel + 1]]
            limit[panel] = np.partition(of_panel, size)[size]
        return QuestionSample(limit)
    # Bring back few enough numbers to fit into memory, and enough that the limit is among them.
    share = (size + 10.0 * np.sqrt(size) + 10.0) / problem.n_questions
    while True:
        below = share * 2.0**64

        def visit(block: Block, kept: Kept, below: float = below) -> Visit:  # noqa: ARG001
            numbers = kept[DRAW]
            return Visit(rows={DRAW: numbers[numbers < below]})

        smallest = engine.sweep(visit, reads=(DRAW,), answers=False).rows[DRAW]
        if len(smallest) > size:
            return QuestionSample(np.partition(smallest, size)[size : size + 1])
        share *= 2.0
