"""The engine on disk: blocks are read from a working folder when they are visited, and stay if there is room."""

from __future__ import annotations

import os
import re
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from copy import copy
from typing import IO, TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from trueup.answers.answers import Answers
from trueup.answers.origin import Origin
from trueup.core.libraries import need
from trueup.core.sampling import drawn
from trueup.engines import vectors
from trueup.engines.disk.blocks import damaged
from trueup.engines.disk.checkpoint import Journal
from trueup.engines.disk.folder import speaking
from trueup.engines.gathering import answer_fields, chosen_arrays, joined_arrays
from trueup.engines.memory import check_threads, load_libraries
from trueup.engines.reduction import Reduction
from trueup.engines.vectors import QuestionVectors
from trueup.errors import TrueupError, quoted
from trueup.io.table import Ids

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from trueup.answers.block import Block
    from trueup.core.arrays import Bools, Floats
    from trueup.engines.disk.blocks import Stored
    from trueup.engines.protocol import Kept, Sweep, Visit


Result = TypeVar("Result")

# Bytes of answers that stay in memory.
MEMORY = 1 << 29
# Bytes that a block keeps for each of its answers, with what it has computed of them.
BYTES = 40
_NAME = re.compile(r"[\w.-]+")


class DiskEngine:
    """Answers in a working folder; see `trueup.engines.protocol.Engine`.

    Vectors over the questions are files of the folder. A pass writes new ones beside the old and gives them their
    names at its end; those of an earlier process are not seen.

    Parameters
    ----------
    stored : Stored
    threads : int, optional
        Default: the number of processors. It changes the time, not the result.
    memory : int
        Bytes of answers that may stay in memory between passes. Blocks beyond are read at each pass.
    """

    question_vectors = QuestionVectors()
    #: Gives the working folder back; set by whoever opened it.
    on_close: weakref.finalize[..., DiskEngine] | None = None

    def __init__(self, stored: Stored, *, threads: int | None = None, memory: int = MEMORY) -> None:
        check_threads(threads)
        self.problem = stored
        self.n_workers = stored.n_workers
        self.answer_variance = stored.answer_variance
        self.threads = max(1, min(threads or os.cpu_count() or 1, stored.n_blocks))
        self._vectors = _Store(stored)
        self.journal = Journal(stored.folder.path)
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
            return block, visit(block, _parts(read, block))

        total = Reduction(self.n_workers, self.problem.n_panels)
        with self._vectors.writing() as out:
            for block, result in self._in_turn(go):
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
            block = change(block, _parts(read, block))
        return block

    def _in_turn(self, go: Callable[[int], Result]) -> Iterator[Result]:
        """Go to every block on several threads, and yield what comes back in their order."""
        blocks = range(self.problem.n_blocks)
        if self.threads == 1:
            yield from map(go, blocks)
            return
        load_libraries()
        with ThreadPoolExecutor(self.threads) as pool:
            # A window of blocks under way keeps what waits for its turn small.
            window = 2 * self.threads
            waiting = [pool.submit(go, i) for i in blocks[:window]]
            try:
                for i in [*blocks[window:], *[None] * len(waiting)]:
                    result = waiting.pop(0).result()
                    if i is not None:
                        waiting.append(pool.submit(go, i))
                    yield result
            finally:
                for each in waiting:
                    each.cancel()

    # -- vectors over the questions ------------------------------------------------------------------

    def keep(self, name: str, values: Floats | float) -> None:
        """Keep a vector over all questions, or one number for all."""
        if np.ndim(values) == 0:
            self._vectors.set(name, _Number(float(values), self.problem.n_questions))
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
                questions = np.flatnonzero(inside(block, _parts(read, block)))
            ids = stored.block_ids(i) if len(questions) else None
            return chosen_arrays(block, questions), None if ids is None else ids.take(questions)

        parts, ids = zip(*self._in_turn(go), strict=True)
        there = [part for part in ids if part is not None] or [stored.block_ids(0).slice(0, 0)]
        fields, present = answer_fields(joined_arrays(parts), self)
        origin = Origin(
            question_ids=Ids(need("pyarrow", "files").concat_arrays(there)),
            worker_ids=stored.worker_ids.take(present),
            kind="file",
            n_rows=stored.n_rows,
            n_missing=stored.n_missing,
            n_duplicates=stored.n_duplicates,
        )
        return Answers(**fields, origin=origin)


class _Vector:
    """A vector in a file, which can be read as long as this is there, even when another has taken its name."""

    def __init__(self, path: Path, length: int) -> None:
        self._folder, self._name = path.parent.parent, path.name
        try:
            self._handle = os.open(path, os.O_RDONLY)
            weakref.finalize(self, os.close, self._handle)
            size = os.fstat(self._handle).st_size
        except OSError as error:
            raise damaged(self._folder, error) from error
        if size != 8 * length:
            raise damaged(self._folder, self._name)
        self._length = length

    def part(self, first: int, count: int) -> Floats:
        """Read the numbers of some questions."""
        numbers = np.empty(count)
        done = os.preadv(self._handle, [numbers.data], 8 * first)
        if done != 8 * count:
            raise damaged(self._folder, self._name)
        return numbers

    def whole(self) -> Floats:
        """Map the file into memory."""
        with os.fdopen(os.dup(self._handle), "rb") as file:
            return np.memmap(file, dtype=np.float64, mode="r", shape=(self._length,))


class _Number:
    """A vector of one number."""

    def __init__(self, value: float, length: int) -> None:
        self._value, self._length = value, length

    def part(self, _first: int, count: int) -> Floats:
        """Return it for some questions."""
        return np.full(count, self._value)

    def whole(self) -> Floats:
        """Return it for all questions."""
        return np.broadcast_to(np.float64(self._value), (self._length,))


Vectors: TypeAlias = "dict[str, _Vector | _Number]"


def _parts(vectors: Vectors, block: Block) -> Kept:
    return {name: each.part(block.start, block.n_questions) for name, each in vectors.items()}


class _Store:
    """The vectors over the questions, by name."""

    def __init__(self, stored: Stored) -> None:
        self.folder, self.length = stored.folder, stored.n_questions
        self._now: Vectors = {}

    def path(self, name: str) -> Path:
        """Return where a vector is."""
        if not _NAME.fullmatch(name):
            raise TrueupError(
                f"name: found {quoted(name)}, must be of letters, digits, points and dashes."
            )
        return self.folder.vectors / f"{name}.f64"

    def set(self, name: str, vector: _Vector | _Number) -> None:
        """Give a name to a vector."""
        self._now[name] = vector

    def some(self, names: Sequence[str]) -> Vectors:
        """Return vectors as they are now; those never kept are left out."""
        return {name: self._now[name] for name in names if name in self._now}

    def whole(self, name: str) -> Floats:
        """Return a vector over all questions."""
        if name not in self._now:
            raise TrueupError(f"kept: no visit has kept {quoted(name)}.")
        return self._now[name].whole()

    def writing(self) -> _Writing:
        """Begin to write vectors."""
        return _Writing(self)


class _Writing:
    """New vectors: each becomes one when all of it is there and the pass is over."""

    def __init__(self, store: _Store) -> None:
        self._store = store
        self._files: dict[str, IO[bytes]] = {}

    def __enter__(self) -> _Writing:
        return self

    def write(self, name: str, start: int, values: Floats) -> None:
        """Write what a block has of a vector; blocks come in order."""
        with speaking(self._store.folder.path):
            if name not in self._files:
                path = self._store.path(name)
                path.parent.mkdir(exist_ok=True)
                self._files[name] = path.with_name(path.name + ".new").open("wb")
            self._check(name, start)
            self._files[name].write(np.ascontiguousarray(values, dtype=np.float64).data)

    def _check(self, name: str, questions: int) -> None:
        if self._files[name].tell() != 8 * questions:
            raise TrueupError(
                "found a visit that does not keep it.",
                argument=name,
                remedy="All of a pass must, or none.",
            )

    def __exit__(self, kind: object, *about: object) -> None:
        try:
            with speaking(self._store.folder.path):
                for name, file in self._files.items():
                    if kind is None:
                        self._check(name, self._store.length)
                    file.close()
                for name in self._files if kind is None else ():
                    path = self._store.path(name)
                    path.with_name(path.name + ".new").replace(path)
                    self._store.set(name, _Vector(path, self._store.length))
        finally:
            for name, file in self._files.items():
                path = self._store.path(name)
                with suppress(OSError):
                    file.close()
                    path.with_name(path.name + ".new").unlink(missing_ok=True)
