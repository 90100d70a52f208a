"""Output files, checked before any long computation starts."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from trueup.errors import TrueupError, option, quoted
from trueup.io.archive import is_archive
from trueup.io.formats import PAGES, STATES, TABLES
from trueup.io.output_set import finish_interrupted
from trueup.io.readers.source import LONGEST_PATH

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

#: What a state says it is.
STATE = "trueup state"
#: What every page says in its first lines; those of version 0.1 say it at their foot.
MADE_BY, MADE_BY_0_1 = '<meta name="generator" content="trueup', "Made by trueup 0.1"
#: Where those first lines end.
HEAD = 4096


def check_outputs(
    outputs: Mapping[str, tuple[Path | None, Sequence[str]]],
    inputs: Sequence[Path] = (),
    *,
    force: bool = False,
    continued: Path | None = None,
) -> None:
    """Check that files can be written, before any long computation starts.

    What a run that was killed has left beside them is finished or removed first.

    Parameters
    ----------
    outputs
        Files, each with the endings that it may have, by the argument or option that names them.
    inputs
        Files that must not be overwritten.
    force
        Whether a state or page may replace a file that is none.
    continued
        A state that is read and replaced: reading it says what is wrong with it.
    """
    taken = _Taken()
    for read in inputs:
        taken.add(read)
    for name, (path, endings) in outputs.items():
        if path is None:
            continue
        shown = quoted(str(path), LONGEST_PATH)
        if path.suffix.lower() not in endings:
            raise TrueupError(f"{shown} must end in {' or '.join(endings)}.", argument=name)
        try:
            fault = _fault(path)
            used = not fault and taken.has(path)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise TrueupError(f"{shown} cannot be written ({reason}).", argument=name) from error
        if fault:
            raise TrueupError(fault.format(shown), argument=name)
        if used:
            raise TrueupError(
                f"{shown} is used already.", argument=name, remedy="Choose another name."
            )
        taken.add(path)
        finish_interrupted(Path(os.path.realpath(path)).parent)
        if not force and endings is PAGES:
            check_page(path, name)
        elif not force and endings is STATES and path != continued:
            check_state(path, name)


def tables_at(paths: Mapping[str, Path | None]) -> dict[str, tuple[Path | None, Sequence[str]]]:
    """Return tables with the endings that they may have, for `check_outputs`."""
    return {name: (path, TABLES) for name, path in paths.items()}


# Tables look like anybody's, and are replaced.
def check_page(path: Path, argument: str = "path") -> None:
    """Check that a page takes the place of another one, of an empty file or of none."""
    if not _may_go(path, is_page):
        raise _not_ours(path, argument, "report")


def check_state(path: Path, argument: str = "path") -> None:
    """Check that a state takes the place of another one, of an empty file or of none."""
    if not _may_go(path, partial(is_archive, name=STATE)):
        raise _not_ours(path, argument, "state")


def _may_go(path: Path, is_ours: Callable[[Path], bool]) -> bool:
    try:
        return not path.is_file() or path.stat().st_size == 0 or is_ours(path)
    except OSError:  # writing it will say what is wrong
        return True


def _not_ours(path: Path, argument: str, what: str) -> TrueupError:
    return TrueupError(
        f"{quoted(str(path), LONGEST_PATH)} is there already and is no {what} of trueup.",
        argument=argument,
        remedy="Choose another name, or pass " + option("force", True) + " to replace it.",
    )


def is_page(path: Path) -> bool:
    """Return whether a file is a page that trueup wrote."""
    text = path.read_bytes()
    return MADE_BY.encode() in text[:HEAD] or MADE_BY_0_1.encode() in text


class _Taken:
    """Files that are used already, by their name and, of those that are there, by what is behind it."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._files: set[tuple[int, int]] = set()

    def add(self, path: Path) -> None:
        self._names.add(os.path.realpath(path))
        self._files |= _identity(path)

    def has(self, path: Path) -> bool:
        return os.path.realpath(path) in self._names or not self._files.isdisjoint(_identity(path))


def _identity(path: Path) -> set[tuple[int, int]]:
    """Return what hard links to one file have in common."""
    try:
        about = path.stat()
    except (OSError, ValueError):
        return set()
    return {(about.st_dev, about.st_ino)} if about.st_ino else set()


def _fault(path: Path) -> str:
    """Return why a file cannot be written, with {} for its name; nothing if it can."""
    if path.is_dir():
        return "{} is a folder. Name a file, or remove the folder."
    if path.exists() and not path.is_file():
        return "{} is no plain file. Choose another name."
    if not path.parent.is_dir():
        return "there is no folder for {}. Make it first."
    # Files are written under a temporary name and renamed, so the folder must be writable.
    folder = Path(os.path.realpath(path)).parent
    effective = os.access in os.supports_effective_ids
    if not os.access(folder, os.W_OK | os.X_OK, effective_ids=effective):
        return "{} cannot be written: its folder takes no files. Choose another, or change its permissions."
    return ""
