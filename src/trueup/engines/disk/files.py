"""Files of answers as a stream of batches: columns of many rows, in the order of the rows.

Parquet is read by pyarrow, delimited text by DuckDB, which counts the lines it cannot read. What a file means is
decided as for files in memory, by the parts of `trueup.io`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from trueup.core.libraries import need
from trueup.errors import AnswersError, TrueupError, quoted
from trueup.io.paths import check_present, find_paths, is_pipe, names_of
from trueup.io.readers.join import check_one_format, promoted_type
from trueup.io.readers.parquet import check_length, explained
from trueup.io.readers.source import label_of
from trueup.io.readers.streams import STDIN
from trueup.io.series import check_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from os import PathLike
    from pathlib import Path


# Rows of a batch.
BATCH = 1 << 19
# Malformed rows that are named.
EXAMPLES = 5
# Files and parts of files that ids are sampled from, and ids from each.
PLACES, EACH = 32, 1 << 13
# Bytes that a page of Parquet is read by: whole columns may be larger than memory.
BUFFER = 1 << 20
# A size as DuckDB reads it.
SIZE = re.compile(r"\s*([0-9]+\.?[0-9]*)\s*(?:b|bytes?|[kmgt]i?b)\s*", re.IGNORECASE | re.ASCII)


class Limits(NamedTuple):
    """What reading may use."""

    memory: str
    threads: int


def check_memory_limit(given: object) -> None:
    """Check that `memory_limit` is a size of memory.

    Examples
    --------
    >>> check_memory_limit("1.5 GB")
    >>> check_memory_limit("-1GB")
    Traceback (most recent call last):
        ...
    trueup.errors.TrueupError: memory_limit: found "-1GB". Give a size above 0, such as "2GB".
    """
    found = SIZE.fullmatch(given) if isinstance(given, str) else None
    if found is None or not float(found[1]):
        raise TrueupError(
            f"found {quoted(given)}.",
            argument="memory_limit",
            remedy='Give a size above 0, such as "2GB".',
        )


@dataclass
class Malformed:
    """Rows that cannot be used.

    Attributes
    ----------
    count : int
        Their number.
    examples : list of str
        Where the first of them are, and what is wrong with them.
    """

    count: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, count: int, examples: Sequence[str]) -> None:
        """Take in more of them."""
        self.count += count
        self.examples.extend(examples[: EXAMPLES - len(self.examples)])


class File:
    """A file of answers, its columns known and its values not yet read."""

    names: list[str]
    untyped = False

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.label = path, label_of(name)

    @property
    def family(self) -> str:
        """The name of its format."""
        return "text" if self.untyped else "Parquet"

    def rows(self) -> int:
        """Return the number of rows, exactly or roughly."""
        raise NotImplementedError

    def kind(self, column: str) -> Any:
        """Return the type of a column."""
        raise NotImplementedError

    def batches(
        self, columns: Sequence[str], limits: Limits, bad: Malformed | None
    ) -> Iterator[Any]:
        """Yield batches of these columns, in order; lines that cannot be read are an error, or counted in `bad`."""
        raise NotImplementedError

    def sample(self, column: str, places: int, limits: Limits) -> list[Any]:
        """Return values of a column from several places."""
        raise NotImplementedError

    def place(self, row: int, _column: str, _value: object) -> str:
        """Say where a row stands."""
        return f"row {row}"


F = TypeVar("F", bound=File)


class ParquetFile(File):
    """A Parquet file."""

    def __init__(self, path: Path, name: str) -> None:
        super().__init__(path, name)
        with self._open() as file:
            self.schema, self.metadata = file.schema_arrow, file.metadata
        self.names = self.schema.names

    def _open(self, **options: Any) -> Any:
        parquet, pyarrow = need("pyarrow.parquet", "files"), need("pyarrow", "files")
        try:
            return parquet.ParquetFile(self.path, pre_buffer=False, buffer_size=BUFFER, **options)
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            raise explained(error) from error

    def rows(self) -> int:
        """Return the number of rows."""
        return int(self.metadata.num_rows)

    def kind(self, column: str) -> Any:
        """Return the type of a column."""
        return self.schema.field(column).type

    def batches(
        self, columns: Sequence[str], limits: Limits, bad: Malformed | None
    ) -> Iterator[Any]:
        """Yield batches of these columns; a damaged file is always an error."""
        del limits, bad
        pyarrow = need("pyarrow", "files")
        # Text is read as it is: to join the dictionaries of all row groups takes longer than to make one of a batch.
        n_rows = 0
        with self._open(metadata=self.metadata) as file:
            batches = file.iter_batches(batch_size=BATCH, columns=list(columns), use_threads=True)
            while True:
                try:
                    batch = next(batches, None)
                except (pyarrow.ArrowException, OSError, ValueError) as error:
                    raise explained(error) from error
                if batch is None:
                    check_length(columns[0], n_rows, self.metadata)
                    return
                n_rows += len(batch)
                for name in columns:
                    check_text(name, batch.column(name))
                yield batch.select(list(columns))

    def sample(self, column: str, places: int, limits: Limits) -> list[Any]:
        """Return the first values of some row groups."""
        del limits
        pyarrow = need("pyarrow", "files")
        groups = self.metadata.num_row_groups
        step = max(1, groups // max(places, 1))
        found: list[Any] = []
        try:
            with self._open(metadata=self.metadata) as file:
                for group in range(0, groups, step):
                    parts = file.iter_batches(EACH, row_groups=[group], columns=[column])
                    part = next(parts, None)
                    if part is not None:
                        found.append(check_text(column, part.column(0)))
        except AnswersError:
            raise
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            raise explained(error) from error
        return found


def open_alike(
    paths: str | PathLike[str] | Sequence[str | PathLike[str]], open_one: Callable[[Path, str], F]
) -> list[F]:
    """Open each file by its path and its name among them; raise an error if they have several formats."""
    found = find_paths(paths).paths
    files = [open_one(path, name) for path, name in zip(found, names_of(found), strict=True)]
    check_one_format(files)
    return files


def check_stands(path: Path) -> None:
    """Check that a path is a plain file, which can be read more than once."""
    if str(path) == STDIN:
        raise AnswersError(
            'Path: "-" (standard input) can be read only once. Write it to a file first.'
        )
    check_present(path)
    if is_pipe(path):
        raise AnswersError(
            f"{label_of(path.name)}: is no plain file. Write its content to a file first."
        )


def common_type(files: Sequence[File], column: str) -> Any:
    """Return the type that holds the ids of all files: text, or whole numbers."""
    types = need("pyarrow", "files").types
    for file in files:
        kind = _value_type(file, column)
        if not (types.is_integer(kind) or types.is_string(kind) or types.is_large_string(kind)):
            raise AnswersError(
                f"Column {quoted(column)}: holds {quoted(str(kind))} values. On disk, ids are text or "
                "whole numbers: convert them first."
            ).labelled(file.label)
    return unified_type(files, column)


def unified_type(files: Sequence[File], column: str) -> Any:
    """Return the type that holds the values of all files, as in memory."""
    return promoted_type(files, column, [_value_type(file, column) for file in files])


def _value_type(file: File, column: str) -> Any:
    """Return the type of values, however they are stored."""
    pyarrow = need("pyarrow", "files")
    kind = file.kind(column)
    if pyarrow.types.is_dictionary(kind):
        kind = kind.value_type
    return pyarrow.string() if pyarrow.types.is_string_view(kind) else kind
