"""The file formats: one table for everything that reads or writes files.

A new format is one reader module and one row of `FORMATS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from trueup.errors import AnswersError
from trueup.io.readers.delimited import open_text
from trueup.io.readers.excel import open_excel
from trueup.io.readers.json_lines import open_json
from trueup.io.readers.parquet import count_rows, open_parquet
from trueup.io.readers.source import read_head
from trueup.io.readers.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.io.readers.delimited import Layout
    from trueup.io.readers.source import Source

#: Endings of compressed files, behind the ending of the format. In memory only the first can be read, on disk both.
GZIP, ZSTD = PACKINGS = (".gz", ".zst")
#: How many times smaller compressed text is, roughly.
COMPRESSION = 4
#: Endings of reports and of saved states.
PAGES = (".html", ".htm")
STATES = (".trueup",)

# From a path, how text is written, and the name of the file to a table.
Opener: TypeAlias = "Callable[[Path, Layout, str], Source]"


@dataclass(frozen=True)
class Format:
    """A file format.

    Attributes
    ----------
    name
        What messages call it.
    endings
        How the names of such files end.
    open
        Opens a file.
    options
        The options of `Layout` that it takes.
    packed
        Whether such a file may be compressed.
    magic
        The bytes every such file begins with, where there are any.
    streamed
        Whether the disk engine can read it in pieces.
    row_bytes
        Rough number of bytes per row; None where the file itself says how many rows it has, or is not streamed.
    written
        The ending of tables that are written in this format; empty where none are.
    """

    name: str
    endings: tuple[str, ...]
    open: Opener
    options: tuple[str, ...] = ()
    packed: bool = False
    magic: bytes = b""
    streamed: bool = False
    row_bytes: int | None = None
    written: str = ""

    def check_options(self, layout: Layout) -> None:
        """Check that no option was given that this format does not take."""
        for option in layout.given:
            if option not in self.options:
                kinds = " and ".join(each.name for each in FORMATS if option in each.options)
                raise AnswersError(
                    f"is for {kinds}, and this is {self.name}.",
                    argument=option,
                    remedy="Leave it out.",
                )


TEXT = Format(
    "text",
    (".csv", ".tsv", ".txt"),
    open_text,
    options=("sep", "encoding", "skip_lines"),
    packed=True,
    streamed=True,
    row_bytes=20,
    written=".csv",
)
PARQUET = Format(
    "Parquet", (".parquet", ".pq"), open_parquet, magic=b"PAR1", streamed=True, written=".parquet"
)
JSON = Format(
    "JSON",
    (".jsonl", ".ndjson", ".json"),
    open_json,
    options=("encoding",),
    packed=True,
    written=".json",
)
EXCEL = Format(
    "Excel",
    (".xlsx", ".xlsm"),
    open_excel,
    options=("skip_lines", "sheet"),
    magic=b"PK\x03\x04",
)

FORMATS = (TEXT, PARQUET, JSON, EXCEL)
#: Endings of tables that are written.
TABLES = tuple(each.written for each in FORMATS if each.written)


def find_format(
    path: str | Path, *, packings: tuple[str, ...] = (GZIP,), streamed: bool = False
) -> Format | None:
    """Find the format of a file by the ending of its name.

    Parameters
    ----------
    path
        The file or its name.
    packings
        Endings of compressed files that the caller can read.
    streamed
        Consider only formats that can be read in pieces.

    Examples
    --------
    >>> find_format("answers.CSV.gz").name
    'text'
    >>> find_format("answers.parquet.gz") is None  # Parquet is never compressed as a whole
    True
    """
    path = Path(str(path).lower())
    packed = path.suffix in packings
    ending = Path(path.stem).suffix if packed else path.suffix
    for candidate in FORMATS:
        if ending in candidate.endings and (candidate.packed or not packed):
            return candidate if candidate.streamed or not streamed else None
    return None


def sniff_format(path: Path, encoding: str | None) -> Format:
    """Find the format of a file by its content."""
    head = read_head(path)
    for candidate in FORMATS:
        if candidate.magic and head.startswith(candidate.magic):
            return candidate
    with Text.of(path, encoding).open() as file:
        start = file.read(1 << 16).lstrip()
    return JSON if start.startswith(("{", "[")) else TEXT


def list_endings(*, packings: tuple[str, ...] = (GZIP,), streamed: bool = False) -> str:
    """List the endings that `find_format` knows, for a message."""
    formats = [each for each in FORMATS if each.streamed or not streamed]
    endings = ", ".join(ending for each in formats for ending in each.endings)
    packed = " and ".join(each.name for each in formats if each.packed)
    return f"{endings} ({packed} also with {' or '.join(packings)} behind)"


def estimate_rows(path: Path) -> int | None:
    """Estimate the number of rows of a file without reading it; None if it cannot be streamed.

    Raises
    ------
    AnswersError
        When its metadata cannot be read.
    """
    streamed = find_format(path, packings=PACKINGS, streamed=True)
    if streamed is None or not path.is_file():
        return None
    if streamed.row_bytes is None:
        return count_rows(path)
    packed = path.suffix.lower() in PACKINGS
    return path.stat().st_size * (COMPRESSION if packed else 1) // streamed.row_bytes
