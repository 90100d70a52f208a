"""A block in which nobody left a question out: the same moves as products of whole arrays.

Complete panels are the rule in laboratories and in studies. Their answers need no index: they are a cube, panels x
questions x workers, and every move of a block is a sum over one of its sides. Plain `einsum` is used and not the matrix
products of a BLAS, whose rounding may depend on how many threads it takes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from trueup.answers.block import Block

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.core.arrays import Floats


@dataclass(frozen=True, eq=False)
class CompleteBlock(Block):
    """A block of equally large panels, in each of which every worker answered every question."""

    @classmethod
    def fits(cls, block: Block) -> bool:
        """Return whether a block is complete."""
        questions = np.diff(block.panel_questions)
        panels = len(questions)
        n = block.n_workers // panels
        if block.width != n or n * panels != block.n_workers or (questions != questions[0]).any():
            return False
        cube = block.workers.reshape(panels, -1, n)
        return bool((cube == np.arange(block.n_workers).reshape(panels, 1, n)).all())

    @classmethod
    def if_complete(cls, block: Block) -> Block:
        """Return a complete block as one of this class, and any other as it is."""
        if not cls.fits(block):
            return block
        return cls(**{each.name: getattr(block, each.name) for each in fields(block)})

    @cached_property
    def shape(self) -> tuple[int, int, int]:
        """Panels, questions of a panel, workers of a panel."""
        panels = len(self.panel_questions) - 1
        return panels, self.n_questions // panels, self.n_workers // panels

    def total_weight(self, weight: Floats) -> Floats:
        """Return the sum of the weights (times precision) of the answers of each question."""
        if self.precision is not None:
            return self.by_question(self.precision, weight)
        panels, questions, workers = self.shape
        return np.repeat(weight.reshape(panels, workers).sum(axis=1), questions)

    def weighted_values(self, weight: Floats) -> Floats:
        """Return the sum of weight (times precision) times value over the answers of each question."""
        return self.by_question(self.weighted, weight)

    def by_worker(self, per_answer: Floats | None, factor: Floats) -> Floats:
        """Return for each worker the sum over its answers of `per_answer * factor of the question`."""
        panels, questions, workers = self.shape
        if per_answer is None:
            columns = factor.shape[1:]
            total: Floats = factor.reshape(panels, questions, *columns).sum(axis=1)
            return np.repeat(total, workers, axis=0)
        cube = per_answer.reshape(self.shape)
        return _by_column(
            lambda each: np.einsum("bmn,bm->bn", cube, each.reshape(panels, questions)), factor
        )

    def by_question(self, per_answer: Floats, factor: Floats | None = None) -> Floats:
        """Return for each question the sum over its answers of `per_answer * factor of the worker`."""
        panels, _, workers = self.shape
        if factor is None:
            factor = np.ones(self.n_workers)
        cube = per_answer.reshape(self.shape)
        return _by_column(
            lambda each: np.einsum("bmn,bn->bm", cube, each.reshape(panels, workers)), factor
        )


def _by_column(total: Callable[[Floats], Floats], factor: Floats) -> Floats:
    """Return the totals with a factor, or with each of its columns: `einsum` is many times slower with several."""
    if factor.ndim == 1:
        return total(factor).ravel()
    return np.stack([total(column).ravel() for column in factor.T], axis=1)
