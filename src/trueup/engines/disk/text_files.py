"""Delimited text of any size: read by DuckDB, which skips lines that it cannot read and remembers them."""

from __future__ import annotations

import csv
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup.core.libraries import need
from trueup.engines.disk.files import BATCH, BUFFER, EACH, EXAMPLES, File, Malformed
from trueup.engines.disk.folder import folder_errors, not_writable
from trueup.errors import AnswersError, TrueupError, counted, quoted
from trueup.io.formats import COMPRESSION, ZSTD
from trueup.io.readers.delimited import (
    DUCKDB_OFFLINE,
    Layout,
    arrow_reader,
    check_lines,
    csv_query,
    explained,
    numbered_rows,
    read_header,
)
from trueup.io.readers.source import one_line
from trueup.io.readers.text import UTF8, Text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trueup.engines.disk.files import Limits
    from trueup.engines.disk.folder import Folder

# Rows that are passed to find a line.
FAR = 300_000
# Characters that DuckDB shows of what it leaves out.
SHOWN = 10_000


class TextFile(File):
    """A file of delimited text; all values are text."""

    untyped = True

    def __init__(self, path: Path, name: str, layout: Layout, folder: Folder) -> None:
        super().__init__(path, name)
        self.text = _as_plain(path, layout, folder)
        self.header = read_header(self.text, layout, name)
        self.names = self.header.names
        check_lines(self.text, self.header.longest_line)
        self.spool = folder.spool

    def rows(self) -> int:
        """Return roughly the number of rows; only the number of buckets depends on it."""
        lines = max(self.text.head.count(b"\n"), 1)
        size = self.text.path.stat().st_size * (COMPRESSION if self.text.packed else 1)
        return 1 + size * lines // max(len(self.text.head), 1)

    def kind(self, column: str) -> Any:
        """Return the type of a column: text."""
        del column
        return need("pyarrow", "files").string()

    def batches(
        self, columns: Sequence[str], limits: Limits, bad: Malformed | None
    ) -> Iterator[Any]:
        """Yield batches of these columns, of any length."""
        duckdb, pyarrow = need("duckdb", "files"), need("pyarrow", "files")
        rows = 0
        with _connection(limits, self.spool) as connection:
            try:
                query = csv_query(self.text, self.header, columns, store_rejects=bad is not None)
                reader = arrow_reader(connection.sql(query), BATCH)
                batches = iter(reader)
                while (batch := next(batches, None)) is not None:
                    rows += len(batch)
                    yield batch.rename_columns(list(columns))
                if bad is not None:
                    self._count_rejects(connection, bad)
                    self._check_rows(connection, rows)
            except duckdb.OutOfMemoryException as error:
                raise TrueupError(
                    f"{limits.memory} is too little to read this text ({one_line(error)}).",
                    argument="memory_limit",
                    remedy="Give more.",
                ) from error
            except (duckdb.Error, pyarrow.ArrowException, OSError) as error:
                raise explained(str(error), self.text, self.header) from error

    def _check_rows(self, connection: Any, rows: int) -> None:
        """See to it that no line was read twice.

        Several threads begin at several places of a file. Where such a place is inside a value of several lines that
        look like rows, DuckDB reads these once more, and says so only where it does not store what it rejects. Without
        a quote there is no such value. With one a single thread counts again, though it tells of no quote never closed.
        """
        if not self._has_quote():
            return
        query = csv_query(self.text, self.header, None, store_rejects=True, parallel=False)
        (again,) = connection.execute(query).fetchone()
        if again != rows:
            raise AnswersError(
                "cannot be read: a value of several lines in quotes looks like rows of its own. Is a quote missing? If "
                "not, write the answers as Parquet."
            )

    def _has_quote(self) -> bool:
        with self.text.open_bytes() as file:
            while piece := file.read(BUFFER):
                if b'"' in piece:
                    return True
        return False

    def _count_rejects(self, connection: Any, bad: Malformed) -> None:
        """Count lines that have no columns as the header has them.

        Where a quote is never closed, DuckDB begins anew somewhere behind it and says nothing of the lines between: it
        shows the first `SHOWN` characters of what it leaves out. So a row that takes more lines than can be counted
        stops the reading, as it does without `bad`.
        """
        connection.execute(
            # With ends of lines of two characters DuckDB takes the second of the line before for the first of this one.
            "CREATE TEMP VIEW rejected AS SELECT *, greatest("
            "length(content) - length(replace(content, chr(10), '')), "
            "length(content) - length(replace(content, chr(13), ''))) AS ends FROM ("
            "SELECT line_byte_position + starts_with(any_value(csv_line), chr(10))::INT AS byte, min(line) AS line, "
            "trim(any_value(csv_line), chr(10) || chr(13)) AS content, max(length(csv_line)) AS length, "
            "list(error_type::VARCHAR) AS kinds, list(error_message) AS messages "
            "FROM reject_errors GROUP BY line_byte_position)"
        )
        total, encoding = connection.execute(
            "SELECT coalesce(sum(1 + ends), 0), "
            "coalesce(bool_or(list_contains(kinds, 'INVALID ENCODING')), false) FROM rejected"
        ).fetchone()
        if encoding:
            raise self.text.not_decoded()
        endless = connection.execute(
            "SELECT byte, line FROM rejected "
            "WHERE ends > 0 AND (list_contains(kinds, 'UNQUOTED VALUE') OR length >= ?) ORDER BY byte LIMIT 1",
            [SHOWN],
        ).fetchone()
        if endless is not None:
            raise AnswersError(
                f"a quote that opens in line {self._line(endless[0]) or endless[1]} is never closed, or far below, or "
                "text follows where it closes. Mend that line; a quote within quotes is written twice."
            )
        rows = connection.execute(
            "SELECT byte, line, content, kinds, messages FROM rejected ORDER BY byte LIMIT ?",
            [EXAMPLES],
        ).fetchall()
        examples = []
        for byte, line, content, kinds, messages in rows:
            place = f"{self.label}: line {self._line(byte) or line} "
            found = quoted(content or "")
            if "UNQUOTED VALUE" in kinds:
                examples.append(
                    f"{place}has a quote that is never closed, or text where it closes ({found})"
                )
            elif "MISSING COLUMNS" in kinds or "TOO MANY COLUMNS" in kinds:
                examples.append(f"{place}has not {counted(len(self.names), 'field')} ({found})")
            else:
                examples.append(f"{place}cannot be read ({one_line(messages[0])})")
        bad.add(int(total), examples)

    def _line(self, byte: int) -> int:
        """Return the number of the line with this byte; DuckDB takes values of several lines for one."""
        if self.text.packed:
            return 0
        lines, end = 1, b"\n" if b"\n" in self.text.head else b"\r"
        try:
            with self.text.path.open("rb") as file:
                while byte > 0 and (piece := file.read(min(byte, BUFFER))):
                    lines += piece.count(end)
                    byte -= len(piece)
        except OSError:
            return 0
        return lines

    def place(self, row: int, column: str, value: object) -> str:
        """Find the line of a row, as far as that is quick; lines that could not be read are no rows."""
        number, at = f"row {row}", self.names.index(column)
        if row > FAR:
            return number
        passed = -1
        try:
            for line, fields in numbered_rows(self.text, self.header):
                passed += len(fields) == len(self.names)
                if passed == row:
                    return f"line {line}" if fields[at] == (value or "") else number
        except (csv.Error, AnswersError, OSError):
            pass
        return number

    def sample(self, column: str, places: int, limits: Limits) -> list[Any]:
        """Return the first values."""
        found: list[Any] = []
        batches = self.batches([column], limits, Malformed())
        for batch in batches:
            found.append(batch.column(0).slice(0, EACH))
            break
        batches.close()  # type: ignore[attr-defined]
        del places
        return found


def _connection(limits: Limits, spool: Path) -> Any:
    duckdb = need("duckdb", "files")
    config = {
        **DUCKDB_OFFLINE,
        "memory_limit": limits.memory,
        "threads": limits.threads,
        "temp_directory": str(spool / "duckdb_temp"),
        # Of answers that are there twice, the first may be the one to keep.
        "preserve_insertion_order": True,
    }
    try:
        return duckdb.connect(":memory:", config=config)
    except duckdb.Error as error:
        raise TrueupError(
            f"{limits.memory} cannot be used ({one_line(error)}).", argument="memory_limit"
        ) from error


def _as_plain(path: Path, layout: Layout, folder: Folder) -> Text:
    """Return a text that DuckDB can read, gzip or none and UTF-8; others are copied into the working folder."""
    packed = path.name.lower().endswith(ZSTD)
    if not packed:
        text = Text.of(path, layout.encoding)
        if text.is_utf8:
            return text
        with _copying(path, folder) as (copy, out), text.open() as file:
            while piece := file.read(BUFFER):
                out.write(piece.encode("utf-8"))
        return Text.of(copy)
    pyarrow = need("pyarrow", "files")
    with _copying(path, folder) as (copy, out):
        try:
            with pyarrow.CompressedInputStream(pyarrow.OSFile(str(path), "rb"), "zstd") as stream:
                while piece := stream.read(BUFFER):
                    out.write(piece)
        except (pyarrow.ArrowException, OSError) as error:
            raise AnswersError(
                "cannot be read: the archive is cut short or damaged. Pack it again."
            ) from error
    text = Text.of(copy, layout.encoding)
    return text if text.encoding in UTF8 else _as_plain(copy, layout, folder)


class _Copy:
    """A file in the working folder, whose errors are not those of the file that is read."""

    def __init__(self, file: Any, folder: Path) -> None:
        self._file, self._folder = file, folder

    def write(self, piece: bytes) -> None:
        try:
            self._file.write(piece)
        except OSError as error:
            raise not_writable(self._folder, error) from error


@contextmanager
def _copying(path: Path, folder: Folder) -> Iterator[tuple[Path, _Copy]]:
    folder.make()
    number = len(list(folder.spool.glob("unpacked-*")))
    copy = folder.spool / f"unpacked-{number}{Path(path.name.removesuffix(ZSTD)).suffix}"
    with folder_errors(folder.path), copy.open("wb") as file:
        yield copy, _Copy(file, folder.path)
