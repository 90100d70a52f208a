"""Text files of values between delimiters, read as text and nothing else.

Only the delimiter is guessed, from the first line. Types are not: whether "007" is a number is not for a CSV reader to
decide.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import numpy as np

from trueup.core.libraries import need
from trueup.errors import AnswersError, option, quoted
from trueup.io.limits import check_bytes, memory
from trueup.io.readers.source import UNREADABLE, Source, one_line, unreadable
from trueup.io.readers.text import Text, check_encoding

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from trueup.io.series import Series

DELIMITERS = (",", "\t", ";", "|")
# Names of a character that is hard to type in a shell.
TABS = ("\\t", "tab")
LONGEST_HEADER = 1 << 27
# DuckDB's own limit, in bytes, unless the header needs more.
LONGEST_LINE = 2_000_000
# Bytes that are searched for the end of a line at a time.
WINDOW_PIECE = 1 << 16
# Nothing may be downloaded while a file is read.
DUCKDB_OFFLINE = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
# No leading zero, no plus, no space: the number is written as this same text again.
_WHOLE = r"^(0|-?[1-9][0-9]{0,18})$"
#: Lines above the header that can be skipped, and rows that are looked at to find it.
MOST_SKIPPED, LOOKED_AT = 10_000, 60
# The first line of some spreadsheets' text, which names the delimiter.
_SEP_LINE = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
# What the third row of an export of a questionnaire by Qualtrics holds.
_IMPORT_ID = re.compile(r'\{\s*"ImportId"')
_COMMA_NUMBER = re.compile(r"(?:^|[,;\t|])\s*([+-]?\d+,\d+)\s*$")


@dataclass(frozen=True)
class Layout:
    """How a text file is written, as far as the caller says so.

    Attributes
    ----------
    sep
        The character between two values; None: the one of `DELIMITERS` the header has most of.
    encoding
        Name of the encoding; None: UTF-8, or what a byte order mark says.
    skip_lines
        Lines above the one that names the columns; None: none but empty ones and "sep=;".
    sheet
        Name of the sheet of a workbook; None: the only one.
    """

    sep: str | None = None
    encoding: str | None = None
    skip_lines: int | None = None
    sheet: str | None = None

    @classmethod
    def of(
        cls, sep: Any = None, encoding: Any = None, skip_lines: Any = None, sheet: Any = None
    ) -> Layout:
        """Check the options of a caller."""
        if sep is not None:
            sep = "\t" if isinstance(sep, str) and sep.lower() in TABS else sep
            if not isinstance(sep, str) or len(sep) != 1 or not _can_delimit(sep):
                raise AnswersError(
                    f"found {quoted(sep)}, must be one character, such as ',', ';' or '\\t', "
                    "and neither a quote nor the end of a line.",
                    argument="sep",
                )
        if skip_lines is not None:
            whole = isinstance(skip_lines, int | np.integer) and not isinstance(skip_lines, bool)
            if not whole or not 0 <= skip_lines <= MOST_SKIPPED:
                raise AnswersError(
                    f"found {quoted(skip_lines)}, must be a whole number from 0 to {MOST_SKIPPED:,}.",
                    argument="skip_lines",
                )
        if not isinstance(sheet, str | None):
            raise AnswersError(
                f"found {quoted(sheet)}, must be the name of a sheet.", argument="sheet"
            )
        lines = None if skip_lines is None else int(skip_lines)
        return cls(sep, check_encoding(encoding), lines, sheet)

    @property
    def given(self) -> list[str]:
        """Names of the options that were given."""
        return [each.name for each in fields(self) if getattr(self, each.name) is not None]


def _can_delimit(character: str) -> bool:
    return character not in '"\r\n\0' and not "\ud800" <= character <= "\udfff"


def open_text(path: Path, layout: Layout, name: str) -> Source:
    """Open a delimited text file; its first line names the columns."""
    need("pyarrow", "files")
    need("duckdb", "files")
    text = Text.of(path, layout.encoding)
    header = read_header(text, layout, name)
    return Source(
        names=header.names,
        load=partial(_load, text, header),
        family="text",
        settle=lambda column, ids: whole_number_ids(without_nul(column, ids)),
        place=lambda row: _places(text, header, [row])[0],
        all_places=partial(_places, text, header),
        hint=header.hint,
        fixes=header.fixes,
        counting="Rows are counted from 0, without the header",
    )


class Header(NamedTuple):
    """The row of a delimited text file that names its columns.

    Attributes
    ----------
    delimiter, names, length
        Its delimiter, the columns it names, and the number of characters up to its end.
    rows
        Rows up to the first one of data, empty ones included.
    hint, fixes
        What to do if another row names the columns, and the keywords that do it.
    """

    delimiter: str
    names: list[str]
    length: int
    rows: int = 1
    hint: str = ""
    fixes: tuple[dict[str, Any], ...] = ()

    @property
    def longest_line(self) -> int:
        """Largest number of bytes that a line may have."""
        return max(LONGEST_LINE, 64 * self.length)


def read_header(text: Text, layout: Layout, name: str) -> Header:
    """Find the delimiter and the column names of a file with this name."""
    tabs_only = re.search(r"\.tsv(\.gz|\.zst)?$", name.lower())
    headers = [
        _header_with(text, delimiter, layout)
        for delimiter in ([layout.sep] if layout.sep else ["\t"] if tabs_only else DELIMITERS)
    ]
    header = max(headers, key=lambda candidate: len(candidate.names))
    if not header.names:
        raise AnswersError("is empty or has no header. Its first line must name the columns.")
    if header.names[0].lower().startswith("sep=") and layout.sep is None:
        # The line may hold the delimiter itself.
        found = _SEP_LINE.fullmatch(header.delimiter.join(header.names).strip())
        if found is not None and _can_delimit(found[1]):
            layout = replace(layout, sep=found[1])
            header = _header_with(text, found[1], layout)
    if not layout.skip_lines:
        _check_titles(header, headers)
    return header


def _check_titles(header: Header, candidates: Sequence[Header]) -> None:
    """Raise an error where lines above the header are plainly no header: a single value above rows of several."""
    alone = sum(map(bool, map(str.strip, header.names))) == 1
    likely = next((each for each in candidates if each.hint), None)
    if alone and likely is not None and all(_alone(each) for each in candidates):
        raise AnswersError(
            f"its first line, {quoted(' '.join(header.names).strip())}, does not name the columns.",
            remedy=likely.hint,
        ).mended_by(*likely.fixes)


def _alone(header: Header) -> bool:
    return sum(map(bool, map(str.strip, header.names))) <= 1


def _header_with(text: Text, delimiter: str, layout: Layout) -> Header:
    """Read the header and some rows below it with one delimiter."""
    names: list[str] = []
    number = length = 0
    below: list[list[str]] = []
    with text.open() as file:
        lines = _HeaderLines(file)
        try:
            for fields_of_row in csv.reader(lines, delimiter=delimiter):
                number += 1
                skipped = number <= (layout.skip_lines or 0) or _is_sep_line(
                    fields_of_row, delimiter, number, layout
                )
                if not names:
                    names, length = [] if skipped else fields_of_row, lines.length
                    rows = number
                    continue
                lines.relax()
                below.append(fields_of_row)
                if len(below) == LOOKED_AT:
                    break
        except csv.Error as error:
            if not names:
                raise AnswersError(
                    f"its header cannot be read ({one_line(error)}). Is a quote never closed?"
                ) from error
    if not names:
        return Header(delimiter, names, lines.length)
    if len(below) > 1 and any(map(_IMPORT_ID.match, below[1])):
        rows += 2  # the questions in words, and what they are called inside Qualtrics
        return Header(delimiter, names, length, rows)
    hint, fixes = _hint([names, *below], rows - 1)
    return Header(delimiter, names, length, rows, hint, fixes)


def _is_sep_line(row: list[str], delimiter: str, number: int, layout: Layout) -> bool:
    """Tell whether the first line of a file only names the delimiter."""
    found = _SEP_LINE.fullmatch(delimiter.join(row).strip()) if number == 1 else None
    return found is not None and layout.sep is not None


def _hint(rows: list[list[str]], above: int) -> tuple[str, tuple[dict[str, Any], ...]]:
    """Tell how many lines are above the one that seems to name the columns, if that is not the first."""
    filled = [sum(map(bool, map(str.strip, row))) for row in rows]
    widest = max(filled)
    start = next(
        (at for at, row in enumerate(rows) if filled[at] == widest and len(set(row)) == len(row)),
        0,
    )
    # A title may have a comma in it, but not all of them; a header may lack a name, but not half of them.
    titles = all(count < widest for count in filled[:start])
    titles = titles and min(filled[:start], default=0) <= widest // 2
    steady = 2 * sum(count == widest for count in filled[start:]) > len(rows) - start
    if not start or widest < 2 or not titles or not steady or len(rows) - start < 2:
        return "", ()
    lines = above + start
    return (
        f"Line {lines + 1} seems to name the columns: pass " + option("skip_lines", lines) + ".",
        ({"skip_lines": lines},),
    )


class _HeaderLines:
    """Lines of a file, up to the longest header allowed."""

    def __init__(self, file: TextIO) -> None:
        self.file = file
        self.length = 0
        self._in_header = True

    def relax(self) -> None:
        """Say that the header is complete: what follows need not be."""
        self._in_header = False

    def __iter__(self) -> Iterator[str]:
        while line := self.file.readline(LONGEST_HEADER):
            self.length += len(line)
            if self.length >= LONGEST_HEADER:
                if not self._in_header:
                    return
                raise AnswersError("its header does not end. Is a quote in it never closed?")
            yield line


def _load(
    text: Text, header: Header, names: Sequence[str], _ids: Collection[str]
) -> dict[str, Series]:
    duckdb = need("duckdb", "files")
    check_bytes(text.path.stat().st_size)
    with text.as_utf8() as copy:
        try:
            check_lines(copy, header.longest_line, memory())
        except UNREADABLE as error:
            raise unreadable(error) from error
        try:
            with duckdb.connect(":memory:", config=DUCKDB_OFFLINE) as connection:
                table = connection.sql(csv_query(copy, header, names)).to_arrow_table()
        except duckdb.Error as error:
            raise explained(str(error), text, header) from error
    return dict(zip(names, table.columns, strict=True))


def csv_query(
    text: Text,
    header: Header,
    columns: Sequence[str] | None,
    *,
    store_rejects: bool = False,
    parallel: bool = True,
) -> str:
    """Return the SQL with which DuckDB reads columns of a UTF-8 text, all as text; without columns it counts rows."""
    wanted = "count(*)"
    if columns is not None:
        # Columns go by position, since DuckDB renames those that differ only in case.
        position = {name: i for i, name in reversed(list(enumerate(header.names)))}
        wanted = ", ".join(f"c{position[name]}" for name in columns)
    every = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(header.names)))
    delimiter = header.delimiter.replace("'", "''")
    start = "header = true" if header.rows == 1 else f"header = false, skip = {header.rows}"
    return (
        f"SELECT {wanted} FROM read_csv({_literal(text.path)}, auto_detect = false, {start}, "  # noqa: S608 - made of numbers, one checked character and one quoted path
        f"delim = '{delimiter}', quote = '\"', escape = '\"', max_line_size = {header.longest_line}, "
        f"compression = '{'gzip' if text.packed else 'none'}', store_rejects = {store_rejects}, "
        f"parallel = {parallel}, columns = {{{every}}})"
    )


def _literal(path: Path) -> str:
    """Write a path in SQL so that it means this file only: no pattern, no address, no quote."""
    plain = re.sub(r"[*?\[]", lambda special: f"[{special[0]}]", str(path.absolute()))
    return "'" + plain.replace("'", "''") + "'"


def check_lines(text: Text, longest: int, most: int | None = None) -> None:
    """Check that no line is many times longer than allowed: DuckDB would drop it without a word.

    Such a line fills a whole window without a line end. In most windows of a plain file the first bytes hold one and
    the rest is skipped; a compressed file is unpacked once, up to the limit.

    Parameters
    ----------
    text
        The text.
    longest
        Bytes that a line may have.
    most
        Bytes that a compressed file may unpack to.
    """
    window = 4 * longest
    with text.open_bytes() as file:
        size = 0
        while True:
            left, has_end = window, False
            while left > 0 and (text.packed or not has_end):
                piece = file.read(min(left, WINDOW_PIECE))
                if not piece:
                    return
                left -= len(piece)
                has_end = has_end or b"\n" in piece or b"\r" in piece
            if not has_end:
                raise AnswersError("a line is too long. Is a line end or a quote missing?")
            size += window
            if text.packed and most is not None:
                check_bytes(size, "unpacks to", most)
            if left:
                file.seek(size)


def arrow_reader(relation: Any, rows: int) -> Any:
    """Return a result of DuckDB as batches of so many rows; the method had another name before version 1.5."""
    reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    return reader(rows)


def whole_number_ids(ids: Series) -> Series:
    """Turn text ids into 64-bit integers if no id loses anything by that."""
    pyarrow = need("pyarrow", "files")
    compute = need("pyarrow.compute", "files")
    if not compute.all(compute.match_substring_regex(ids, _WHOLE)).as_py():
        return ids
    try:
        return ids.cast(pyarrow.int64())
    except pyarrow.ArrowInvalid:
        return ids


def without_nul(column: str, ids: Series) -> Series:
    """Return text ids as they are; raise an error if one of them holds a NUL byte."""
    compute = need("pyarrow.compute", "files")
    damaged = compute.match_substring(ids, "\0")
    if compute.any(damaged).as_py():
        first = ids.filter(damaged)[0].as_py()
        raise AnswersError(
            f"Column {quoted(column)}: the id {quoted(first)} holds a NUL byte. The file is "
            "damaged: write it again."
        )
    return ids


def numbered_rows(text: Text, header: Header) -> Iterator[tuple[int, list[str]]]:
    """Yield each row of a text below the header, with the number of the line it begins in."""
    with text.open() as file:
        reader = csv.reader(file, delimiter=header.delimiter)
        line = 1
        for number, values in enumerate(reader):
            if number >= header.rows:
                yield line, values
            line = reader.line_num + 1


def _places(text: Text, header: Header, rows: Sequence[int]) -> list[str]:
    """Find the lines that rows begin in, as DuckDB counts rows: without empty lines."""
    wanted = dict.fromkeys(rows, "")
    last = max(wanted, default=-1)
    passed = -1
    try:
        for line, values in numbered_rows(text, header):
            # The only value of a row may be missing.
            passed += bool(values) or len(header.names) == 1
            if passed in wanted and not wanted[passed]:
                wanted[passed] = f"line {line}"
            if passed >= last:
                break
    except (csv.Error, AnswersError, *UNREADABLE):
        pass
    return [wanted[row] for row in rows]


def explained(message: str, text: Text, header: Header) -> AnswersError:
    """Explain in one line what DuckDB says in thirty."""
    if "utf-8" in message.lower():
        return text.not_decoded()
    number = re.search(r"CSV Error on Line: (\d+)", message)
    line = f"line {number[1]}" if number else "a line"
    fields = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", message)
    if fields:
        original = re.search(r"Original Line: (.*)", message)
        content = original[1].rstrip("\r") if original else ""
        expected = int(fields[1])
        # DuckDB stops counting at the first field too many.
        found = max(int(fields[2]), _count(content, header.delimiter))
        says = f"{line} has {found} fields, the header has {expected}."
        if header.hint:
            return AnswersError(says, remedy=header.hint).mended_by(*header.fixes)
        advice = _comma_advice(content) if header.delimiter == "," and found == expected + 1 else ""
        return AnswersError(says, remedy="Mend that line." + advice)
    if "unterminated quote" in message:
        return AnswersError(
            f"a quote that opens in {line} is never closed, or text follows where it closes. "
            "Mend that line; a quote within quotes is written twice."
        )
    if "maximum line size" in message.lower():
        return AnswersError(f"{line} is too long. Is a line end or a quote missing?")
    if "gzip" in message.lower():
        return AnswersError("cannot be read: the archive is cut short or damaged. Pack it again.")
    if "invalid state" in message:
        return AnswersError(
            "cannot be read as delimited text: its lines end in several ways. Give all of them "
            "the same end."
        )
    return AnswersError(f"cannot be read as delimited text ({one_line(message)}).")


def _count(line: str, delimiter: str) -> int:
    try:
        return len(next(csv.reader([line], delimiter=delimiter), []))
    except csv.Error:
        return 0


def _comma_advice(line: str) -> str:
    """Suggest that a number with a decimal comma was cut in two."""
    number = _COMMA_NUMBER.search(line)
    if number is None:
        return ""
    return (
        f" If {quoted(number[1])} is one number, put it in quotes or separate columns by "
        "semicolons, and pass " + option("decimal", ",") + "."
    )
