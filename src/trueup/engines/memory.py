"""The engine in memory: blocks are views of one Answers, visited by threads."""

from __future__ import annotations

import os
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.answers.answers import Answers
from trueup.core.sampling import question_draws
from trueup.engines import vectors
from trueup.engines.gathering import answer_fields, chosen_arrays, joined_arrays
from trueup.engines.reduction import Reduction
from trueup.engines.threads import check_threads, in_turn
from trueup.engines.vectors import QuestionVectors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from trueup.answers.block import Block
    from trueup.core.arrays import Bools, Floats
    from trueup.engines.protocol import Engine, Journal, Kept, Sweep, Visit


class MemoryEngine:
    """Answers in memory, cut into blocks that threads visit: the sparse products release the lock.

    Parameters
    ----------
    answers : Answers
    threads : int, optional
        Default: the number of processors. It changes the time, not the result.
    block_answers : int, optional
        Answers per block.
    """

    journal: Journal | None = None
    question_vectors = QuestionVectors()

    def __init__(
        self, answers: Answers, *, threads: int | None = None, block_answers: int | None = None
    ) -> None:
        self.problem = answers
        self.n_workers = answers.n_workers
        self.answer_variance = answers.answer_variance
        self.blocks = answers.blocks() if block_answers is None else answers.blocks(block_answers)
        check_threads(threads)
        self.threads = max(1, min(threads or os.cpu_count() or 1, len(self.blocks)))
        self._kept: dict[str, Floats] = {}
        self._draws: dict[int, Floats] = {}  # by seed: several steps draw the same sample
        self._as_read = True

    def sweep(
        self,
        visit: Callable[[Block, Kept], Visit],
        reads: Sequence[str] = (),
        *,
        answers: bool = True,  # noqa: ARG002  all is at hand here
    ) -> Sweep:
        """Visit every block; see `trueup.engines.protocol.Engine`."""
        total = Reduction(self.n_workers, self.problem.n_panels)
        written: dict[str, Floats] = {}
        for block, result in zip(self.blocks, self._visits(visit, reads), strict=True):
            total.add(block, result)
            for name, values in (result.questions or {}).items():
                if name not in written:
                    written[name] = np.empty(self.problem.n_questions)
                written[name][block.start : block.stop] = values
        self._kept.update(written)
        return total.result()

    def changed(
        self,
        change: Callable[[Block, Kept], Block],
        reads: Sequence[str] = (),
        *,
        workers: int | None = None,
        answer_variance: float | None = None,
    ) -> MemoryEngine:
        """Return an engine over other blocks; see `trueup.engines.protocol.Engine`."""
        engine = copy(self)
        engine.blocks = list(self._visits(change, reads))
        engine.n_workers = workers or self.n_workers
        if answer_variance is not None:
            engine.answer_variance = answer_variance
        engine._as_read = False  # noqa: SLF001  a copy of our own
        return engine

    def keep(self, name: str, values: Floats | float) -> None:
        """Keep a vector over all questions, or one number for all."""
        self._kept[name] = np.broadcast_to(values, (self.problem.n_questions,))

    def kept(self, name: str) -> Floats:
        """Return a vector over all questions that visits have kept."""
        return self._kept[name]

    def draw(self, seed: int) -> None:
        """Keep `vectors.DRAW`; see `trueup.engines.protocol.Engine`."""
        if seed not in self._draws:
            self._draws[seed] = question_draws(self.problem, seed)
        self.keep(vectors.DRAW, self._draws[seed])

    def gather(
        self, inside: Callable[[Block, Kept], Bools] | None = None, reads: Sequence[str] = ()
    ) -> Answers:
        """Return the answers to some questions, or to all; see `trueup.engines.protocol.Engine`."""
        data = self.problem
        if inside is None and self._as_read:
            return data
        parts = []
        for block in self.blocks:
            questions = np.arange(block.n_questions)
            if inside is not None:
                questions = np.flatnonzero(inside(block, self._part(block, reads)))
            parts.append({"question": block.start + questions, **chosen_arrays(block, questions)})
        arrays = joined_arrays(parts)
        if inside is None and len(arrays["values"]) == data.n_answers:
            names = ("values", "centre", "precision", "given")
            changed: dict[str, Any] = {name: arrays.get(name) for name in names}
            return replace(data, answer_variance=self.answer_variance, **changed)
        fields, present = answer_fields(arrays, self)
        source, question = data.question_source, arrays["question"]
        return replace(
            data,
            **fields,
            question_source=question if source is None else source[question],
            worker_source=present if data.worker_source is None else data.worker_source[present],
        )

    def _part(self, block: Block, reads: Sequence[str]) -> Kept:
        here = slice(block.start, block.stop)
        return {name: self._kept[name][here] for name in reads if name in self._kept}

    def _visits(self, visit: Callable[[Block, Kept], Any], reads: Sequence[str]) -> Iterator[Any]:
        def go(block: Block) -> Any:
            return visit(block, self._part(block, reads))

        return in_turn(go, self.blocks, self.threads)


def engine_of(answers: Answers | Engine, threads: int | None = None) -> Engine:
    """Return the engine to look at answers with: they may be in one already."""
    if isinstance(answers, Answers):
        return MemoryEngine(answers, threads=threads)
    return answers
