"""The engine on disk: blocks are read from a working folder when they are visited, and stay if there is room."""

from __future__ import annotations

import os
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.answers.answers import Answers
from trueup.answers.origin import Origin
from trueup.core.libraries import need, release_unused
from trueup.core.sampling import drawn
from trueup.engines import vectors
from trueup.engines.disk.checkpoint import DiskJournal
from trueup.engines.disk.vectors import SameNumber, VectorStore, parts_of
from trueup.engines.gathering import answer_fields, chosen_arrays, joined_arrays
from trueup.engines.reduction import Reduction
from trueup.engines.threads import check_threads, in_turn
from trueup.engines.vectors import QuestionVectors
from trueup.errors import TrueupError
from trueup.io.table import Ids

if TYPE_CHECKING:
    import weakref
    from collections.abc import Callable, Sequence

    from trueup.answers.block import Block
    from trueup.core.arrays import Bools, Floats
    from trueup.engines.disk.blocks import StoredAnswers
    from trueup.engines.disk.vectors import Vectors
    from trueup.engines.protocol import Kept, Sweep, Visit

# Bytes of answers that stay in memory.
MEMORY = 1 << 29
# Bytes that a block keeps for each of its answers, with what it has computed of them.
BYTES = 40


class DiskEngine:
    """Answers in a working folder; see `trueup.engines.protocol.Engine`.

    Vectors over the questions are files of the folder. A pass writes new ones beside the old and gives them their
    names at its end; those of an earlier process are not seen.

    Parameters
    ----------
    stored : StoredAnswers
    threads : int, optional
        Default: the number of processors. It changes the time, not the result.
    memory : int
        Bytes of answers that may stay in memory between passes. Blocks beyond are read at each pass.
    """

    question_vectors = QuestionVectors()
    #: Gives the working folder back; set by whoever opened it.
    on_close: weakref.finalize[..., DiskEngine] | None = None

    def __init__(
        self, stored: StoredAnswers, *, threads: int | None = None, memory: int = MEMORY
    ) -> None:
        check_threads(threads)
        self.problem = stored
        self.n_workers = stored.n_workers
        self.answer_variance = stored.answer_variance
        self.threads = max(1, min(threads or os.cpu_count() or 1, stored.n_blocks))
        self._vectors = VectorStore(stored)
        self.journal = DiskJournal(stored.folder.path)
        sizes = BYTES * np.diff(stored.ends)
        self._stay = int(np.searchsorted(np.cumsum(sizes), memory, side="right"))
        self._loaded: dict[int, Block] = {}
        self._changes: tuple[tuple[Callable[[Block, Kept], Block], Vectors], ...] = ()

    # -- passes --------------------------------------------------------------------------------------

    def sweep(
        self,
        visit: Callable[[Block, Kept], Visit],
        reads: Sequence[str] = (),
        *,
        answers: bool = True,
    ) -> Sweep:
        """Visit every block; see `trueup.engines.protocol.Engine`."""
        read = self._vectors.some(reads)

        def go(i: int) -> tuple[Block, Visit]:
            block = self._block(i, answers=answers)
            return block, visit(block, parts_of(read, block))

        total = Reduction(self.n_workers, self.problem.n_panels)
        with self._vectors.writing() as out:
            for block, result in in_turn(go, range(self.problem.n_blocks), self.threads):
                total.add(block, result)
                for name, values in (result.questions or {}).items():
                    out.write(name, block.start, values)
        return total.result()

    def changed(
        self,
        change: Callable[[Block, Kept], Block],
        reads: Sequence[str] = (),
        *,
        workers: int | None = None,
        answer_variance: float | None = None,
    ) -> DiskEngine:
        """Return an engine over other blocks; the change is made again at each visit, with the vectors of now."""
        engine = copy(self)
        engine._changes = (*self._changes, (change, self._vectors.some(reads)))  # noqa: SLF001  a copy of our own
        if workers is not None:
            engine.n_workers = workers
        if answer_variance is not None:
            engine.answer_variance = answer_variance
        return engine

    def _block(self, i: int, *, answers: bool) -> Block:
        """Return a block as visits see it."""
        block = self._loaded.get(i)
        if block is None:
            # A change may need the answers even if the visit does not.
            full = answers or bool(self._changes)
            block = self.problem.block(i, answers=full)
            if full and i < self._stay:
                self._loaded[i] = block
        for change, read in self._changes:
            block = change(block, parts_of(read, block))
        return block

    # -- vectors over the questions ------------------------------------------------------------------

    def keep(self, name: str, values: Floats | float) -> None:
        """Keep a vector over all questions, or one number for all."""
        if np.ndim(values) == 0:
            self._vectors.set(name, SameNumber(float(values), self.problem.n_questions))
            return
        array = np.asarray(values, dtype=np.float64)
        if array.shape != (self.problem.n_questions,):
            raise TrueupError(
                f"found {array.shape} numbers, must be one for each of {self.problem.n_questions} questions.",
                argument=name,
            )
        with self._vectors.writing() as out:
            out.write(name, 0, array)

    def kept(self, name: str) -> Floats:
        """Return a vector over all questions, which is not to be written."""
        return self._vectors.whole(name)

    def part(self, i: int, names: Sequence[str]) -> Kept:
        """Return what is kept of the questions of block i."""
        first, stop = self.problem.starts[i : i + 2].tolist()
        vectors = self._vectors.some(names)
        return {name: each.part(first, stop - first) for name, each in vectors.items()}

    def close(self) -> None:
        """Give the working folder back, if somebody said how."""
        if self.on_close is not None:
            self.on_close()

    def draw(self, seed: int) -> None:
        """Keep `vectors.DRAW`; see `trueup.engines.protocol.Engine`."""
        stored = self.problem
        with self._vectors.writing() as out:
            for i in range(stored.n_blocks):
                out.write(vectors.DRAW, int(stored.starts[i]), drawn(stored.hashes(i), seed))

    def gather(
        self, inside: Callable[[Block, Kept], Bools] | None = None, reads: Sequence[str] = ()
    ) -> Answers:
        """Return the answers to chosen questions, or to all, as a problem in memory."""
        stored, read = self.problem, self._vectors.some(reads)
        if self.n_workers != stored.n_workers:
            raise TrueupError(
                "gather: workers of changed blocks have no ids. Gather from the engine they came from."
            )

        def go(i: int) -> tuple[Any, Any]:
            block = self._block(i, answers=True)
            questions = np.arange(block.n_questions)
            if inside is not None:
                questions = np.flatnonzero(inside(block, parts_of(read, block)))
            ids = stored.block_ids(i) if len(questions) else None
            return chosen_arrays(block, questions), None if ids is None else ids.take(questions)

        parts, ids = zip(*in_turn(go, range(self.problem.n_blocks), self.threads), strict=True)
        there = [part for part in ids if part is not None] or [stored.block_ids(0).slice(0, 0)]
        release_unused()  # what reading ids took
        fields, present = answer_fields(joined_arrays(parts), self)
        origin = Origin(
            question_ids=Ids(need("pyarrow", "files").concat_arrays(there)),
            worker_ids=stored.worker_ids.take(present),
            kind="file",
            n_rows=stored.n_rows,
            n_missing=stored.n_missing,
            n_duplicates=stored.n_duplicates,
            names=stored.names,
        )
        return Answers(**fields, origin=origin)
