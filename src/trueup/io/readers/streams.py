"""Standard input, and other files that can be read only once, kept for reading twice."""

from __future__ import annotations

import os
import sys
import tempfile
import weakref
from pathlib import Path
from typing import IO, Any

from trueup.errors import AnswersError
from trueup.io.limits import check_bytes
from trueup.io.readers.source import unreadable
from trueup.io.readers.text import Text

STDIN = "-"
PIECE = 1 << 20
PARQUET = b"PAR1"
ZIP = b"PK\x03\x04"


class Copy:
    """A file of our own, which is removed together with this object or when the process ends."""

    def __init__(self, stream: IO[bytes]) -> None:
        handle, name = tempfile.mkstemp(prefix="trueup-")
        self.path = Path(name)
        self._remove = weakref.finalize(self, self.path.unlink, missing_ok=True)
        try:
            with os.fdopen(handle, "wb") as file:
                size = 0
                while piece := stream.read(PIECE):
                    size += len(piece)
                    check_bytes(size)
                    file.write(piece)
        except AnswersError:
            self._remove()
            raise
        except (OSError, ValueError) as error:
            self._remove()
            raise unreadable(error) from error


# Standard input as it was last, and its copy.
_kept: list[tuple[Any, Copy]] = []


def keep_stdin() -> Path:
    """Copy standard input to a file, once however often it is asked for."""
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None:
        raise AnswersError("is not there. Name a file instead.")
    if not _kept or _kept[0][0] is not stream:
        _kept[:] = [(stream, Copy(stream))]
    return _kept[0][1].path


def keep_pipe(path: Path) -> Copy:
    """Copy a pipe or device to a file."""
    try:
        with path.open("rb") as stream:
            return Copy(stream)
    except OSError as error:
        raise unreadable(error) from error


def sniff(path: Path, encoding: str | None) -> str:
    """Tell the format of a file from its content: "Parquet", "Excel", "JSON" or "text"."""
    try:
        with path.open("rb") as file:
            head = file.read(len(PARQUET))
    except OSError as error:
        raise unreadable(error) from error
    if head == PARQUET:
        return "Parquet"
    if head == ZIP:
        return "Excel"
    with Text.of(path, encoding).open() as file:
        start = file.read(1 << 16).lstrip()
    return "JSON" if start.startswith(("{", "[")) else "text"
