"""Vectors over the questions in files of a working folder."""

from __future__ import annotations

import os
import re
import weakref
from contextlib import suppress
from typing import IO, TYPE_CHECKING, TypeAlias

import numpy as np

from trueup.engines.disk.blocks import damaged
from trueup.engines.disk.folder import folder_errors
from trueup.errors import TrueupError, quoted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from trueup.answers.block import Block
    from trueup.core.arrays import Floats
    from trueup.engines.disk.blocks import StoredAnswers
    from trueup.engines.protocol import Kept

_NAME = re.compile(r"[\w.-]+")


class VectorFile:
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


class SameNumber:
    """A vector of one number."""

    def __init__(self, value: float, length: int) -> None:
        self._value, self._length = value, length

    def part(self, _first: int, count: int) -> Floats:
        """Return it for some questions."""
        return np.full(count, self._value)

    def whole(self) -> Floats:
        """Return it for all questions."""
        return np.broadcast_to(np.float64(self._value), (self._length,))


Vectors: TypeAlias = "dict[str, VectorFile | SameNumber]"


def parts_of(vectors: Vectors, block: Block) -> Kept:
    """Read the numbers of the questions of a block."""
    return {name: each.part(block.start, block.n_questions) for name, each in vectors.items()}


class VectorStore:
    """The vectors over the questions in a working folder, by name."""

    def __init__(self, stored: StoredAnswers) -> None:
        self.folder, self.length = stored.folder, stored.n_questions
        self._now: Vectors = {}

    def path(self, name: str) -> Path:
        """Return where a vector is."""
        if not _NAME.fullmatch(name):
            raise TrueupError(
                f"name: found {quoted(name)}, must be of letters, digits, points and dashes."
            )
        return self.folder.vectors / f"{name}.f64"

    def set(self, name: str, vector: VectorFile | SameNumber) -> None:
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

    def writing(self) -> VectorWriter:
        """Begin to write vectors."""
        return VectorWriter(self)


class VectorWriter:
    """New vectors; each gets its name when the pass is over and all of it has been written."""

    def __init__(self, store: VectorStore) -> None:
        self._store = store
        self._files: dict[str, IO[bytes]] = {}

    def __enter__(self) -> VectorWriter:
        return self

    def write(self, name: str, start: int, values: Floats) -> None:
        """Write the numbers of the questions of a block; blocks come in order."""
        with folder_errors(self._store.folder.path):
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
            with folder_errors(self._store.folder.path):
                for name, file in self._files.items():
                    if kind is None:
                        self._check(name, self._store.length)
                    file.close()
                for name in self._files if kind is None else ():
                    path = self._store.path(name)
                    path.with_name(path.name + ".new").replace(path)
                    self._store.set(name, VectorFile(path, self._store.length))
        finally:
            for name, file in self._files.items():
                path = self._store.path(name)
                with suppress(OSError):
                    file.close()
                    path.with_name(path.name + ".new").unlink(missing_ok=True)
