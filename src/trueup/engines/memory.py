"""The engine in memory: blocks are views of one Answers, visited by threads."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.answers.answers import Answers
from trueup.core.arrays import compact, expand, narrow, offsets
from trueup.core.sampling import question_draws
from trueup.engines import vectors
from trueup.engines.reduction import Reduction
from trueup.engines.vectors import QuestionVectors
from trueup.errors import TrueupError, quoted

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
        self.blocks = answers.blocks() if block_answers is None else answers.blocks(block_answers)
        check_threads(threads)
        self.threads = max(1, min(threads or os.cpu_count() or 1, len(self.blocks)))
        self._kept: dict[str, Floats] = {}
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
    ) -> MemoryEngine:
        """Return an engine over other blocks; see `trueup.engines.protocol.Engine`."""
        engine = copy(self)
        engine.blocks = list(self._visits(change, reads))
        engine.n_workers = workers or self.n_workers
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
        self.keep(vectors.DRAW, question_draws(self.problem, seed))

    def gather(
        self, inside: Callable[[Block, Kept], Bools] | None = None, reads: Sequence[str] = ()
    ) -> Answers:
        """Return the answers to some questions, or to all; see `trueup.engines.protocol.Engine`."""
        if inside is None:
            if self._as_read:
                return self.problem
            if sum(len(block.values) for block in self.blocks) != self.problem.n_answers:
                return self.gather(lambda block, kept: np.ones(block.n_questions, dtype=bool))  # noqa: ARG005
            values, centre = (
                np.concatenate([getattr(block, name) for block in self.blocks])
                for name in ("values", "centre")
            )
            return replace(self.problem, values=values, centre=centre)
        parts = []
        for block in self.blocks:
            here = np.flatnonzero(inside(block, self._part(block, reads)))
            parts.append((block.start + here, *answers_in(block, here)))
        question, counts, workers, values, centre, precision = (
            np.concatenate(part) for part in zip(*parts, strict=True)
        )
        data = self.problem
        worker, present = compact(workers.astype(np.int64), data.n_workers)
        known, source = data.worker_variance, data.question_source
        return replace(
            data,
            indptr=offsets(counts),
            workers=narrow(worker, len(present)),
            values=values,
            centre=centre,
            precision=None if data.precision is None else precision,
            worker_variance=None if known is None else known[present],
            question_source=question if source is None else source[question],
            worker_source=present if data.worker_source is None else data.worker_source[present],
            panel_questions=np.array([0, len(question)]),
            panel_workers=np.array([0, len(present)]),
        )

    def _part(self, block: Block, reads: Sequence[str]) -> Kept:
        here = slice(block.start, block.stop)
        return {name: self._kept[name][here] for name in reads if name in self._kept}

    def _visits(self, visit: Callable[[Block, Kept], Any], reads: Sequence[str]) -> Iterator[Any]:
        def go(block: Block) -> Any:
            return visit(block, self._part(block, reads))

        if self.threads == 1:
            yield from map(go, self.blocks)
            return
        load_libraries()
        with ThreadPoolExecutor(self.threads) as pool:
            # A window of blocks under way keeps what waits for its turn small.
            window = 2 * self.threads
            waiting = [pool.submit(go, block) for block in self.blocks[:window]]
            for block in [*self.blocks[window:], *[None] * len(waiting)]:
                result = waiting.pop(0).result()
                if block is not None:
                    waiting.append(pool.submit(go, block))
                yield result


def engine_of(answers: Answers | Engine, threads: int | None = None) -> Engine:
    """Return the engine to look at answers with: they may be in one already."""
    if isinstance(answers, Answers):
        return MemoryEngine(answers, threads=threads)
    return answers


def answers_in(block: Block, questions: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Return counts, workers, values, centre and precision of some questions of a block."""
    counts = block.counts[questions]
    at = expand(block.indptr[questions].astype(np.int64), counts)
    precision = np.empty(0) if block.precision is None else block.precision[at]
    return counts, block.workers[at], block.values[at], block.centre[questions], precision


def check_threads(threads: object) -> None:
    """Refuse what is no number of threads."""
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise TrueupError(f"threads: found {quoted(threads)}, must be a whole number from 1 on.")


def load_libraries() -> None:
    """Load what visits use before threads need it: an import that two threads wait for may never end."""
    import scipy.sparse
    import scipy.special  # noqa: F401
