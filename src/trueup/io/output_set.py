"""Several files that are written together: all of them are new, or all are as they were, whenever a run ends.

1. Every file is finished under a temporary name beside the old one.
2. A list of all of them (`.trueup-...set`) is put into each of their folders. From the last of these lists on the set
   is complete.
3. Every file takes its name, and the lists are removed.

A run that is killed before the end of 2 has changed nothing: the next run that writes into one of the folders removes
what is left. After that the next run finishes 3. A file that somebody has changed in between stays as it is.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup.io.atomic import (
    atomic_write,
    begin_private,
    errors_name,
    keep_permissions,
    plain_target,
)
from trueup.io.leftovers import TOGETHER, UNFINISHED, dead, own_path, remove

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: A list is no longer than this.
LARGEST_LIST = 1 << 20


@contextmanager
def output_set(paths: Iterable[Path]) -> Iterator[dict[Path, Path]]:
    """Yield a temporary path for each file; all of them take their names at the end, or none.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first, second = Path(folder, "a.csv"), Path(folder, "b.csv")
    ...     with output_set([first, second]) as names:
    ...         for path in (first, second):
    ...             _ = names[path].write_text("done")
    ...     print(sorted(file.name for file in Path(folder).iterdir()))
    ['a.csv', 'b.csv']
    """
    targets = {path: plain_target(path) for path in paths}
    for folder in {target.parent for target in targets.values()}:
        finish_interrupted(folder)
    names = {path: own_path(target.parent) for path, target in targets.items()}
    try:
        for path, target in targets.items():
            with errors_name(path):
                begin_private(target, names[path])
        yield names
        for path, target in targets.items():
            with errors_name(path):
                _to_disk(names[path])
                keep_permissions(target, names[path])
    except BaseException:
        for name in names.values():
            remove(name)
        raise
    moves = [_Move(names[path], target, _stamp(target)) for path, target in targets.items()]
    _Set.of(moves).take_names()


def finish_interrupted(folder: Path) -> None:
    """Finish or undo what a run that was killed had begun to write into a folder."""
    waiting = set()
    for path in dead(folder, TOGETHER):
        found = _Set.read(path)
        if found is None:
            continue
        try:
            found.finish() if found.is_complete else found.undo()
        except OSError:  # another folder of the set cannot be written: another run may
            waiting |= {move.temporary for move in found.moves}
    for path in dead(folder, UNFINISHED):
        if path not in waiting:
            remove(path)


@dataclass(frozen=True)
class _Move:
    """A finished file, the name it will take, and what has that name now."""

    temporary: Path
    target: Path
    stamp: list[int]

    def make(self) -> None:
        if os.path.lexists(self.temporary):
            self.temporary.replace(self.target)


@dataclass(frozen=True)
class _Set:
    """Files that take their names together, and the lists that say so, one in each folder."""

    moves: list[_Move]
    lists: list[Path]

    @classmethod
    def of(cls, moves: list[_Move]) -> _Set:
        folders = list(dict.fromkeys(move.target.parent for move in moves))
        first = own_path(folders[0], TOGETHER) if folders else Path()
        return cls(moves, [folder / first.name for folder in folders])

    @classmethod
    def read(cls, path: Path) -> _Set | None:
        """Read a list; None where it is none."""
        try:
            if path.stat().st_size > LARGEST_LIST:
                return None
            content = json.loads(path.read_text(encoding="ascii"))
            moves = [
                _Move(Path(temporary), Path(target), list(map(int, stamp)))
                for temporary, target, stamp in content
            ]
        except (OSError, ValueError, TypeError):
            return None
        hidden = all(
            move.temporary.parent == move.target.parent
            and move.temporary.name.startswith(".trueup-")
            and move.temporary.suffix == UNFINISHED
            for move in moves
        )
        folders = dict.fromkeys(move.target.parent for move in moves)
        return cls(moves, [folder / path.name for folder in folders]) if hidden and moves else None

    @property
    def is_complete(self) -> bool:
        """Whether all files are finished. Lists are removed only after all files have their names."""
        return all(path.is_file() for path in self.lists)

    def take_names(self) -> None:
        """Give all files their names."""
        if len(self.moves) > 1:  # a single one has its name at once
            try:
                self._write_lists()
            except BaseException:
                self.undo()
                raise
        try:
            self._make_moves()
        except OSError:
            # Without a list nobody could finish it; with one the next run does.
            if len(self.moves) == 1:
                self.undo()
            raise
        except BaseException:  # an interrupt: what has begun is finished first
            self._make_moves()
            raise

    def finish(self) -> None:
        """Do what a killed run has not done; what somebody else has changed since stays as it is."""
        for move in self.moves:
            if os.path.lexists(move.temporary):
                move.make() if _stamp(move.target) == move.stamp else remove(move.temporary)
        self._remove_lists()

    def undo(self) -> None:
        """Remove the new files and the lists."""
        for move in self.moves:
            remove(move.temporary)
        self._remove_lists()

    def _make_moves(self) -> None:
        for move in self.moves:
            with errors_name(move.target):
                move.make()
        self._remove_lists()

    def _write_lists(self) -> None:
        about: list[Any] = [
            [str(move.temporary), str(move.target), move.stamp] for move in self.moves
        ]
        for path in self.lists:
            with errors_name(path.parent), atomic_write(path) as temporary:
                temporary.write_text(json.dumps(about), encoding="ascii")
                _to_disk(temporary)

    def _remove_lists(self) -> None:
        for path in self.lists:
            with suppress(FileNotFoundError):
                path.unlink()


def _stamp(path: Path) -> list[int]:
    """Return what tells whether a file was changed or replaced; nothing where there is none."""
    try:
        about = path.stat()
    except OSError:
        return []
    return [about.st_ino, about.st_size, about.st_mtime_ns]


def _to_disk(path: Path) -> None:
    """Wait until a file is on the disk: else it might be empty after a power cut, in spite of its name."""
    if not path.is_file():
        return
    handle = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
