"""Paths given by the caller: a file, a pattern, several files, standard input."""

from __future__ import annotations

import glob
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from trueup.errors import AnswersError, nearest, quoted
from trueup.io.readers.source import LONGEST_PATH, label_of, unreadable
from trueup.io.readers.streams import STDIN

if TYPE_CHECKING:
    from collections.abc import Sequence


class Paths(NamedTuple):
    """Files to read as one table, and what messages call them together."""

    paths: list[Path]
    label: str


def is_path(value: object) -> bool:
    """Return whether a value is a path or a list of paths."""
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(each, str | os.PathLike) for each in value)
    return isinstance(value, str | os.PathLike)


def find_paths(given: Any) -> Paths:
    """Find the files a caller names.

    Parameters
    ----------
    given
        A path, or a list of paths. One with `*`, `?` or `[...]` in it that is no file stands for
        all files that match, in sorted order; "-" for standard input.
    """
    if not is_path(given):
        what = "an empty list" if isinstance(given, list | tuple) and not given else quoted(given)
        raise AnswersError(f"Path: found {what}. Give a path, a pattern or a list of paths.")
    if isinstance(given, list | tuple):
        paths = [path for each in given for path in _matching(Path(each))]
        if STDIN in map(str, paths) and len(paths) > 1:
            raise AnswersError('Path: "-" (standard input) cannot be one of several files.')
        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        return Paths(paths, f"Files {quoted(paths[0].name)}{more}")
    path = Path(given)
    paths = _matching(path)
    many = paths != [path]
    return Paths(paths, f"Files {quoted(str(path), LONGEST_PATH)}" if many else "")


def _matching(path: Path) -> list[Path]:
    """Return the files that match a pattern, or the path itself if it is no pattern."""
    name = str(path)
    if not glob.has_magic(name) or os.path.lexists(name):
        return [path]
    try:
        # Not `Path.glob`, which does not take absolute patterns.
        matches = map(Path, glob.glob(name, recursive=True))  # noqa: PTH207
        found = sorted((each for each in matches if not each.is_dir()), key=str)
    except (OSError, ValueError, RecursionError):
        found = []
    if not found:
        raise AnswersError(
            f"File {quoted(name, LONGEST_PATH)}: no file matches this pattern. Check the folder "
            "and the ending."
        )
    return found


def check_present(path: Path) -> None:
    """Check that there is a file at a path; if not, suggest the nearest name."""
    shown = label_of(str(path))
    try:
        if path.is_dir():
            raise AnswersError(
                f"{shown}: is a folder. Name one file in it, or all of them by a pattern such as "
                f"{quoted(str(path / '*.csv'), LONGEST_PATH)}."
            )
        if path.exists():
            return
        if not path.parent.is_dir():
            folder = quoted(str(path.parent), LONGEST_PATH)
            raise AnswersError(f"{shown}: not found, there is no folder {folder}.")
        near = nearest(path.name, [other.name for other in path.parent.iterdir()])
    except OSError as error:
        raise unreadable(error).labelled(shown) from error
    advice = f"Did you mean {quoted(near)}?" if near else "Check the name and the folder."
    raise AnswersError(f"{shown}: not found. {advice}")


def is_pipe(path: Path) -> bool:
    """Return whether a path can be read only once: a pipe, a terminal, a socket."""
    mode = path.stat().st_mode
    return not stat.S_ISREG(mode)


def names_of(paths: Sequence[Path]) -> list[str]:
    """Return a name for each file: the short one, or the whole path where short names are the same."""
    short = [path.name for path in paths]
    return short if len(set(short)) == len(short) else [str(path) for path in paths]
