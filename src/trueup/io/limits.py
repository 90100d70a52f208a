"""How much a file may ask for: no more than the memory of this machine holds.

A small file may claim to be large: a table of a trillion equal rows, an archive that unpacks to a thousand times its
size, a line that never ends. So sizes are checked before or while a file is read into memory.
"""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING, AnyStr

from trueup.errors import AnswersError

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Bytes that a value takes in memory, as a number or as the code of a text.
VALUE_BYTES = 8
#: Bytes or characters that are read at a time.
PIECE = 1 << 20
REMEDY = (
    "Write it as Parquet or CSV and read it with --engine disk (trueup.disk.estimate), or give fewer answers, or check "
    "that the file is what it should be."
)


def memory() -> int:
    """Return the bytes of memory of this machine, or a huge number where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 1 << 62


def check_rows(rows: int, columns: int) -> None:
    """Check that a table of this size, as its file claims, fits into memory."""
    if rows * columns * VALUE_BYTES > memory():
        raise AnswersError(
            f"says that it has {rows:,} rows, which do not fit into memory. {REMEDY}"
        )


def check_bytes(size: int, verb: str = "holds", most: int | None = None) -> None:
    """Check that so many bytes fit into memory.

    Parameters
    ----------
    size
        Bytes that were read, or are to be read.
    verb
        What the file does: "holds" or "unpacks to".
    most
        Largest size allowed; by default all memory.
    """
    if size > (memory() if most is None else most):
        raise AnswersError(f"{verb} {size:,} bytes or more, too much for memory. {REMEDY}")


def read_pieces(file: IO[AnyStr]) -> Iterator[AnyStr]:
    """Yield a file piece by piece; raise an error once all pieces together would not fit into memory."""
    size = 0
    while piece := file.read(PIECE):
        size += len(piece)
        check_bytes(size)
        yield piece
