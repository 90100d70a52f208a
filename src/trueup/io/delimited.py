"""Text files of values between delimiters, read as text and nothing else.

Only the delimiter is guessed, from the first line. Types are not: whether "007" is a number is not
for a CSV reader to say.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
from typing import TYPE_CHECKING

from trueup.errors import AnswersError, need, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from trueup.io.columns import Roles
    from trueup.io.native import Series

DELIMITERS = (",", "\t", ";", "|")
HEAD = 1 << 16
NOT_UTF8 = "is not UTF-8 text. Save it with the encoding UTF-8."
# No leading zero, no plus, no space: the text such a number would be written as again.
_WHOLE = r"^(0|-?[1-9][0-9]{0,18})$"


def open_delimited(
    path: Path, pick: Callable[[Sequence[object]], Roles]
) -> tuple[Roles, dict[str, Series]]:
    """Read the columns that are picked from those the header names."""
    need("pyarrow", "files")
    duckdb = need("duckdb", "files")
    delimiter, header = _read_header(path)
    roles = pick(header)
    # Columns go by position, since DuckDB renames those that differ only in case.
    every = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(header)))
    wanted = ", ".join(f"c{header.index(name)}" for name in roles.names)
    compression = "gzip" if path.name.lower().endswith(".gz") else "none"
    query = (
        f"SELECT {wanted} FROM read_csv({_literal(path)}, auto_detect = false, header = true, "  # noqa: S608 - made of numbers and one quoted path
        f"delim = '{delimiter}', quote = '\"', escape = '\"', compression = '{compression}', "
        f"columns = {{{every}}})"
    )
    # Nothing may be fetched from anywhere while a file is read.
    config = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    try:
        with duckdb.connect(":memory:", config=config) as connection:
            table = connection.sql(query).to_arrow_table()
    except duckdb.Error as error:
        raise AnswersError(_reason(str(error))) from error
    return roles, dict(zip(roles.names, table.columns, strict=True))


def whole_number_ids(ids: Series) -> Series:
    """Turn text ids into 64-bit integers if that loses nothing of any of them."""
    pyarrow = need("pyarrow", "files")
    compute = need("pyarrow.compute", "files")
    if not compute.all(compute.match_substring_regex(ids, _WHOLE)).as_py():
        return ids
    try:
        return ids.cast(pyarrow.int64())
    except pyarrow.ArrowInvalid:
        return ids


def _read_header(path: Path) -> tuple[str, list[str]]:
    """Return the delimiter and the column names."""
    opener = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
            head = file.read(HEAD)
    except UnicodeDecodeError as error:
        raise AnswersError(NOT_UTF8) from error
    except (OSError, EOFError) as error:
        raise AnswersError(f"cannot be read ({quoted(str(error), 200)}).") from error
    tabs_only = path.name.lower().removesuffix(".gz").endswith(".tsv")
    headers = {
        delimiter: next(csv.reader(io.StringIO(head, newline=""), delimiter=delimiter), [])
        for delimiter in ("\t" if tabs_only else DELIMITERS)
    }
    delimiter = max(headers, key=lambda candidate: len(headers[candidate]))
    if not headers[delimiter]:
        raise AnswersError("is empty or has no header. Its first line must name the columns.")
    return delimiter, headers[delimiter]


def _literal(path: Path) -> str:
    """Write a path for SQL so that it means this file only: no pattern, no address, no quote."""
    plain = re.sub(r"[*?\[]", lambda special: f"[{special[0]}]", str(path.absolute()))
    return "'" + plain.replace("'", "''") + "'"


def _reason(message: str) -> str:
    """Say in one line what DuckDB says in thirty."""
    if "utf-8" in message.lower():
        return NOT_UTF8
    at = re.search(r"CSV Error on Line: (\d+)", message)
    line = f"line {at[1]}" if at else "a line"
    fields = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", message)
    if fields:
        return f"{line} has {fields[2]} fields, the header has {fields[1]}. Mend that line."
    if "unterminated quote" in message:
        return f"a quote that opens in {line} is never closed. Mend that line."
    return f"cannot be read as delimited text ({quoted(message.partition(chr(10))[0], 200)})."
