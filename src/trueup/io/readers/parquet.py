"""Parquet files."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from trueup.core.libraries import need
from trueup.errors import AnswersError
from trueup.io.limits import check_rows
from trueup.io.readers.source import Source, one_line, unreadable
from trueup.io.series import check_text

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from trueup.io.readers.delimited import Layout
    from trueup.io.series import Series


def open_parquet(path: Path, _layout: Layout, _name: str) -> Source:
    """Open a Parquet file; only its metadata is read."""
    parquet = need("pyarrow.parquet", "files")
    pyarrow = need("pyarrow", "files")
    try:
        with parquet.ParquetFile(path) as file:
            schema, metadata = file.schema_arrow, file.metadata
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise explained(error) from error
    return Source(
        names=schema.names,
        load=partial(_load, path, schema, metadata),
        family="Parquet",
        settle=lambda column, ids: _settle(ids, schema.field(column).type),
    )


def _load(
    path: Path, schema: Any, metadata: Any, names: Sequence[str], _ids: Collection[str]
) -> dict[str, Series]:
    parquet = need("pyarrow.parquet", "files")
    pyarrow = need("pyarrow", "files")
    check_rows(metadata.num_rows, len(names))
    # Text comes as dictionaries, as it is in the file, so no text is copied per row.
    texts = [name for name in names if _is_text(schema.field(name).type)]
    try:
        with parquet.ParquetFile(path, metadata=metadata, read_dictionary=texts) as file:
            table = file.read(columns=list(names))
        return {name: check_text(name, table.column(name)) for name in names}
    except AnswersError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError, KeyError) as error:
        raise explained(error) from error


def count_rows(path: Path) -> int:
    """Return the number of rows that a Parquet file says it has."""
    parquet, pyarrow = need("pyarrow.parquet", "files"), need("pyarrow", "files")
    try:
        return int(parquet.read_metadata(path).num_rows)
    except (pyarrow.ArrowException, OSError) as error:
        raise explained(error) from error


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
