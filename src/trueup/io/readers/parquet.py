"""Parquet files."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from trueup.core.libraries import need
from trueup.errors import AnswersError
from trueup.io.limits import check_rows
from trueup.io.readers.source import Source, label_of, one_line, unreadable

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from trueup.io.series import Series


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
    parquet = need("pyarrow.parquet", "files")
    pyarrow = need("pyarrow", "files")
    check_rows(metadata.num_rows, len(names))
    # Text comes as dictionaries: the file has it so, and no text is copied per row.
    texts = [name for name in names if _is_text(schema.field(name).type)]
    try:
        with parquet.ParquetFile(path, metadata=metadata, read_dictionary=texts) as file:
            table = file.read(columns=list(names))
        return {name: table.column(name) for name in names}
    except (pyarrow.ArrowException, OSError, ValueError, KeyError) as error:
        raise explained(error) from error


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
