"""How much a file may ask for: no more than the memory of this machine holds.

A file may be small and say that it is large: a table of a trillion equal rows, an archive that unpacks to a thousand
times its size, a line that never ends. What is read into memory is measured before, or while, it is read; the
alternative is a machine that stops answering.
"""

from __future__ import annotations

import os

from trueup.errors import AnswersError

#: Bytes of a value in memory, whatever it is: a number, or a code of a text.
VALUE = 8
ELSEWHERE = (
    "Write it as Parquet or CSV and read it with --engine disk (trueup.disk.estimate), or give fewer answers, or check "
    "that the file is what it should be."
)


def memory() -> int:
    """Return the bytes of memory of this machine; without end where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 1 << 62


def check_rows(rows: int, columns: int) -> None:
    """Refuse a table whose rows do not fit into memory, by what it says of itself."""
    if rows * columns * VALUE > memory():
        raise AnswersError(
            f"says that it has {rows:,} rows, which do not fit into memory. {ELSEWHERE}"
        )


def check_bytes(size: int, what: str = "holds", most: int | None = None) -> None:
    """Refuse what does not fit into memory as it is.

    Parameters
    ----------
    size
        Bytes that were read, or are to be read.
    what
        What the file does: "holds" or "unpacks to".
    most
        How much there is room for; by default the memory.
    """
    if size > (memory() if most is None else most):
        raise AnswersError(f"{what} {size:,} bytes or more, too much for memory. {ELSEWHERE}")
