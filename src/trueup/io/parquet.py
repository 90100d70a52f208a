"""Parquet files."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import AnswersError, need
from trueup.io.limits import check_rows
from trueup.io.source import Source, label_of, one_line, unreadable

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from trueup.io.native import Series

# Rows that a thread of its own is worth, and the most threads: what each has found must be joined in the end.
SHARE_ROWS = 500_000
MOST_SHARES = 4


def open_parquet(path: Path, name: str | None = None) -> Source:
    """Open a Parquet file; only what it says about itself is read."""
    parquet = need("pyarrow.parquet", "files")
    pyarrow = need("pyarrow", "files")
    try:
        with parquet.ParquetFile(path) as file:
            schema, metadata = file.schema_arrow, file.metadata
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise explained(error) from error
    return Source(
        label=label_of(path.name if name is None else name),
        names=schema.names,
        fetch=partial(_fetch, path, schema, metadata),
        family="Parquet",
        settle=lambda column, ids: _settle(ids, schema.field(column).type),
    )


def _fetch(
    path: Path, schema: Any, metadata: Any, names: Sequence[str], _ids: Collection[str]
) -> dict[str, Series]:
    pyarrow = need("pyarrow", "files")
    check_rows(metadata.num_rows, len(names))
    texts = [name for name in names if _is_text(schema.field(name).type)]
    try:
        with ThreadPoolExecutor() as pool:
            shares = _shares(metadata)
            read = partial(_read, path, metadata, list(names), texts, alone=len(shares) == 1)
            table = pyarrow.concat_tables(pool.map(read, shares))
        return {name: table.column(name) for name in names}
    except (pyarrow.ArrowException, OSError, ValueError, KeyError) as error:
        raise explained(error) from error


def _shares(metadata: Any) -> list[list[int]]:
    """Cut the row groups of a file into one run of them for each thread that is worth starting.

    pyarrow gives each column one thread, in which the ids of a file with many questions take nearly all the time.
    """
    n_groups = metadata.num_row_groups
    wanted = min(os.cpu_count() or 1, MOST_SHARES, metadata.num_rows // SHARE_ROWS, n_groups)
    return [share.tolist() for share in np.array_split(np.arange(n_groups), max(1, wanted))]


def _read(
    path: Path, metadata: Any, names: list[str], texts: list[str], groups: list[int], *, alone: bool
) -> Any:
    """Read some row groups, with all text as dictionaries: no text is kept per row."""
    parquet = need("pyarrow.parquet", "files")
    with parquet.ParquetFile(path, metadata=metadata, read_dictionary=texts) as file:
        return file.read_row_groups(groups, columns=names, use_threads=alone)


def _is_text(kind: Any) -> bool:
    types = need("pyarrow", "files").types
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _settle(ids: Series, kind: Any) -> Series:
    """Give ids back the type they have in the file, unless files of several types were joined."""
    pyarrow = need("pyarrow", "files")
    if pyarrow.types.is_dictionary(ids.type) and not pyarrow.types.is_dictionary(kind):
        ids = ids.cast(kind if _is_text(kind) else ids.type.value_type)
    try:
        ids.validate(full=True)
    except pyarrow.ArrowException as error:
        raise explained(error) from error
    return ids


def explained(error: Exception) -> AnswersError:
    """Say in a line why a file could not be read as Parquet."""
    if isinstance(error, PermissionError):
        return unreadable(error)
    return AnswersError(
        f"cannot be read as Parquet ({one_line(error)}). "
        "Write the file again, or check that it is a Parquet file."
    )
