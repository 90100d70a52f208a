"""Standard input, and other files that can be read only once, copied so that they can be read twice."""

from __future__ import annotations

import os
import sys
import tempfile
import weakref
from pathlib import Path
from typing import IO, Any

from trueup.errors import AnswersError
from trueup.io.limits import read_pieces
from trueup.io.readers.source import unreadable

STDIN = "-"


class TemporaryCopy:
    """A temporary file, removed together with this object or when the process ends."""

    def __init__(self, stream: IO[bytes]) -> None:
        handle, name = tempfile.mkstemp(prefix="trueup-")
        self.path = Path(name)
        self._remove = weakref.finalize(self, self.path.unlink, missing_ok=True)
        try:
            with os.fdopen(handle, "wb") as file:
                file.writelines(read_pieces(stream))
        except AnswersError:
            self._remove()
            raise
        except (OSError, ValueError) as error:
            self._remove()
            raise unreadable(error) from error


# Standard input when it was last read, and its copy.
_copied: list[tuple[Any, TemporaryCopy]] = []


def copy_stdin() -> Path:
    """Copy standard input to a file, once however often it is asked for."""
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None:
        raise AnswersError("is not there. Name a file instead.")
    if not _copied or _copied[0][0] is not stream:
        _copied[:] = [(stream, TemporaryCopy(stream))]
    return _copied[0][1].path


def copy_pipe(path: Path) -> TemporaryCopy:
    """Copy a pipe or device to a file."""
    try:
        with path.open("rb") as stream:
            return TemporaryCopy(stream)
    except OSError as error:
        raise unreadable(error) from error
