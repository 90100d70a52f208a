"""Standard input, and other files that can be read only once, copied so that they can be read twice."""

from __future__ import annotations

import os
import select
import stat
import sys
import tempfile
import time
import weakref
from pathlib import Path
from typing import IO, Any

from trueup.errors import AnswersError
from trueup.io.leftovers import prefix, remove_dead
from trueup.io.limits import read_pieces
from trueup.io.readers.source import unreadable

STDIN = "-"
#: Seconds to wait for somebody to write to a pipe, and between two looks.
PATIENCE, STEP = 60.0, 0.05


class TemporaryCopy:
    """A temporary file, removed together with this object or when the process ends."""

    def __init__(self, stream: IO[bytes]) -> None:
        remove_dead(Path(tempfile.gettempdir()))
        handle, name = tempfile.mkstemp(prefix=prefix())
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
        with _opened(path) as stream:
            return TemporaryCopy(stream)
    except OSError as error:
        raise unreadable(error) from error


def _opened(path: Path) -> IO[bytes]:
    """Open a pipe or device; of a pipe with a name, wait for whoever writes to it, but not for ever."""
    if not stat.S_ISFIFO(path.stat().st_mode):
        return path.open("rb")
    # Opened in the plain way it would wait without end, and nothing could stop it.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        _wait_for_a_writer(handle)
        os.set_blocking(handle, True)
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def _wait_for_a_writer(handle: int) -> None:
    """Wait until there is something to read; as long as somebody has the other end open, without a limit."""
    since = time.monotonic()
    while not select.select([handle], [], [], STEP)[0]:
        try:
            os.read(
                handle, 1
            )  # nothing is there: it tells whether somebody has opened the other end
        except BlockingIOError:
            since = time.monotonic()
        if time.monotonic() - since > PATIENCE:
            raise AnswersError(
                f"is a pipe, and nothing has opened it for writing within {PATIENCE:g} seconds. Start what writes to "
                "it first, or name a file."
            )
