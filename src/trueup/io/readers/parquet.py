"""Parquet files."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

from trueup.core.libraries import need, release_unused
from trueup.errors import AnswersError, quoted
from trueup.io.encode import with_dictionary
from trueup.io.limits import check_rows
from trueup.io.readers.source import Source, one_line, unreadable
from trueup.io.series import check_text

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from trueup.io.readers.delimited import Layout
    from trueup.io.series import Series

#: Rows that are worth two threads.
MANY = 1 << 19


def open_parquet(path: Path, _layout: Layout, _name: str) -> Source:
    """Open a Parquet file; only its metadata is read."""
    parquet = need("pyarrow.parquet", "files")
    pyarrow = need("pyarrow", "files")
    try:
        with parquet.ParquetFile(path) as file:
            schema, metadata = file.schema_arrow, file.metadata
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise explained(error) from error
    # Columns of text whose dictionaries are made here while loading, each value once.
    made: set[str] = set()
    return Source(
        names=schema.names,
        load=partial(_load, path, schema, metadata, made),
        family="Parquet",
        settle=lambda column, ids: _settle(ids, schema.field(column).type),
        coded=made.__contains__,
    )


def _load(
    path: Path,
    schema: Any,
    metadata: Any,
    made: set[str],
    names: Sequence[str],
    _ids: Collection[str],
) -> dict[str, Series]:
    parquet = need("pyarrow.parquet", "files")
    pyarrow = need("pyarrow", "files")
    check_rows(metadata.num_rows, len(names))
    # Text becomes dictionaries, so that it is not copied per row. Those in the file are read as they are; making others
    # while reading would take twice as long as afterwards.
    texts = [name for name in names if _is_text(schema.field(name).type)]
    try:
        with parquet.ParquetFile(path, metadata=metadata) as file:
            coded = [name for name in texts if _has_dictionary(file, name)]
        open_file = partial(parquet.ParquetFile, path, metadata=metadata, read_dictionary=coded)
        if metadata.num_rows >= MANY:
            columns = _load_side_by_side(open_file, metadata, names, texts, coded)
            release_unused()
        else:
            with open_file() as file:
                table = file.read(columns=list(names))
            columns = {name: table.column(name) for name in names}
            columns |= {name: with_dictionary(columns[name]) for name in texts}
    except (pyarrow.ArrowException, OSError, ValueError, KeyError) as error:
        raise explained(error) from error
    for name, column in columns.items():
        check_length(name, len(column), metadata)
    made.update(set(texts).difference(coded))
    return {name: check_text(name, column) for name, column in columns.items()}


def _load_side_by_side(
    open_file: Callable[[], Any],
    metadata: Any,
    names: Sequence[str],
    texts: Collection[str],
    coded: Collection[str],
) -> dict[str, Series]:
    """Load the columns of a large file on two threads, few rows at a time: large pieces of memory are slow to get.

    Making a dictionary takes longest, so each thread makes one of half the rows.
    """
    pyarrow = need("pyarrow", "files")
    count = metadata.num_row_groups
    step = max(1, MANY * count // metadata.num_rows)
    middle = count // 2

    def load(name: str, begin: int, end: int) -> Series:
        with open_file() as file:
            tables = [
                file.read_row_groups(
                    range(start, min(start + step, end)), [name], use_threads=False
                )
                for start in range(begin, end, step)
            ]
        column = pyarrow.concat_tables(tables).column(name)
        return with_dictionary(column) if name in texts else column

    columns: dict[str, Any] = {}
    with ThreadPoolExecutor(2) as pool:
        for name in names:
            split = middle and name in texts and name not in coded
            parts = [(0, middle), (middle, count)] if split else [(0, count)]
            columns[name] = [pool.submit(load, name, *part) for part in parts]
        for name, parts in columns.items():
            first, *rest = (part.result() for part in parts)
            if rest:
                chunks = [chunk for part in (first, *rest) for chunk in part.chunks]
                first = with_dictionary(pyarrow.chunked_array(chunks))
            columns[name] = first
    return columns


def count_rows(path: Path) -> int:
    """Return the number of rows that a Parquet file says it has."""
    parquet, pyarrow = need("pyarrow.parquet", "files"), need("pyarrow", "files")
    try:
        return int(parquet.read_metadata(path).num_rows)
    except (pyarrow.ArrowException, OSError) as error:
        raise explained(error) from error


def check_length(name: str, n_rows: int, metadata: Any) -> None:
    """Check that a column has as many rows as the file says: a damaged one may have fewer."""
    if n_rows != metadata.num_rows:
        says = f"column {quoted(name)} has {n_rows:,} rows, of {metadata.num_rows:,} in the file"
        raise explained(ValueError(says))


def _has_dictionary(file: Any, name: str) -> bool:
    """Tell whether the first rows of a column of text are stored as a dictionary; later ones may not be."""
    metadata = file.metadata
    groups = range(metadata.num_row_groups)
    first = next((group for group in groups if metadata.row_group(group).num_rows), None)
    if first is None:
        return False
    # A file may contradict itself about a column. Reading reports that; pyarrow ends the process where it is looked at.
    next(file.iter_batches(1, row_groups=[first], columns=[name]), None)
    paths = [metadata.schema.column(number).path for number in range(metadata.num_columns)]
    encodings = metadata.row_group(first).column(paths.index(name)).encodings
    return any("DICTIONARY" in encoding for encoding in encodings)


def _is_text(kind: Any) -> bool:
    types = need("pyarrow", "files").types
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _settle(ids: Series, kind: Any) -> Series:
    """Convert ids back to the type they have in the file, unless files of several types were joined."""
    pyarrow = need("pyarrow", "files")
    if pyarrow.types.is_dictionary(ids.type) and not pyarrow.types.is_dictionary(kind):
        ids = ids.cast(kind if _is_text(kind) else ids.type.value_type)
    try:
        ids.validate(full=True)
    except pyarrow.ArrowException as error:
        raise explained(error) from error
    return ids


def explained(error: Exception) -> AnswersError:
    """Explain in one line why a file could not be read as Parquet."""
    if isinstance(error, PermissionError):
        return unreadable(error)
    return AnswersError(
        f"cannot be read as Parquet ({one_line(error)}). "
        "Write the file again, or check that it is a Parquet file."
    )
