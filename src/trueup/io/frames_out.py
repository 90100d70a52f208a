"""Result columns as a frame of the kind the caller came with."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from trueup.core.libraries import need
from trueup.io.series import Series, library, numpy_to_arrow
from trueup.io.table import CompositeIds, Ids

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

    from trueup.io.columns import IdNames

Column: TypeAlias = "NDArray[Any] | Ids | list[object]"
Frame: TypeAlias = Any


def make_frame(
    kind: str,
    columns: Mapping[str, Column],
    *,
    null_columns: Collection[str] = (),
    names: IdNames | None = None,
) -> Frame:
    """Build a frame.

    Parameters
    ----------
    kind
        The kind of frame the input was, see `Table`. Where it was none, the frame is a pandas
        one; without pandas, a pyarrow table; without either, a dict of arrays.
    columns
        Arrays, ids, or lists in which None means "no value".
    null_columns
        Floating point columns in which NaN means "no value". It becomes null, except in pandas
        and dicts, where NaN itself says so.
    names
        What the caller calls the columns "question" and "worker"; None: they stay as they are.
    """
    if names is not None:
        columns = named(columns, names)
    if kind == "duckdb":
        # The relation keeps the table alive, and the default connection is never closed by us.
        table = make_frame("pyarrow", columns, null_columns=null_columns)
        for name in dict(names.sql_types) if names is not None else ():
            place = table.schema.get_field_index(name)
            if place >= 0:  # as text: its decimal numbers may have more digits than DuckDB takes
                values = table.column(place)
                plain = str(values.type).startswith("decimal")
                table = table.set_column(place, name, values.cast("string") if plain else values)
        return _typed(import_module("duckdb").from_arrow(table), names)
    if kind not in ("pandas", "polars", "pyarrow"):
        kind = _installed()
    native = {
        name: _column(kind, _values(kind, values), name in null_columns)
        for name, values in columns.items()
    }
    if kind == "numpy":
        return native
    module = import_module(kind)
    return module.table(native) if kind == "pyarrow" else module.DataFrame(native)


def _typed(relation: Any, names: IdNames | None) -> Any:
    """Give the columns of a relation the types of a database that Arrow does not have."""
    types = {} if names is None else dict(names.sql_types)
    if types.keys().isdisjoint(relation.columns):
        return relation
    parts = []
    for name in relation.columns:
        column = '"' + name.replace('"', '""') + '"'
        parts.append(f"CAST({column} AS {types[name]}) AS {column}" if name in types else column)
    return relation.project(", ".join(parts))


def repeating(schema: Any) -> list[str]:
    """Return the columns of a pyarrow schema for which a Parquet file is worth dictionaries.

    Fractions hardly repeat: a dictionary of them takes time, and as much room again.
    """
    is_float = need("pyarrow", "files").types.is_floating
    return [field.name for field in schema if not is_float(field.type)]


def named(columns: Mapping[str, Column], names: IdNames) -> dict[str, Column]:
    """Return columns in which "question" and "worker" have the caller's names.

    A question that several columns name has all of them. Where another column has such a name already, ours stays.
    """
    result: dict[str, Column] = {}
    for name, values in columns.items():
        titles = {"question": names.question, "worker": (names.worker,)}.get(name, (name,))
        parts = values.parts if isinstance(values, CompositeIds) else [values]
        others = [other for other in columns if other != name]
        if len(titles) != len(parts) or any(title in others for title in titles):
            titles = (name,) if len(parts) == 1 else tuple(f"{name}_{k}" for k in range(len(parts)))
        result |= dict(zip(titles, parts, strict=True))
    return result


def _installed() -> str:
    for kind in ("pandas", "pyarrow"):
        try:
            import_module(kind)
        except ImportError:
            continue
        return kind
    return "numpy"


def _values(kind: str, values: Column) -> Series | list[object]:
    """Return ids as a column of this library where that is possible without loss, else as a list."""
    if not isinstance(values, Ids):
        return values
    match library(values.values), kind:
        case "pyarrow", "pandas":
            return values.values.to_pandas()
        case "numpy", "pandas":
            return values.values
        case origin, _ if origin == kind:
            return values.values
        case _:
            return values.tolist()


def _column(kind: str, values: Series | list[object], nan_is_null: bool) -> Series:
    """Return values as a column of a library. Each has its own way to say which type and what is null.

    A list of nothing but None passes for text, in pandas for objects.
    """
    if library(values) == kind != "numpy":
        return values
    is_list = isinstance(values, list)
    is_text = is_list and all(value is None or isinstance(value, str) for value in values)
    nan_is_null = nan_is_null and not is_list
    module = import_module(kind)
    match kind:
        case "pandas":
            empty = is_list and all(value is None for value in values)
            return module.Series(values, dtype=object if empty else None)
        case "polars":
            text = module.String if is_text else None
            return module.Series(values=values, dtype=text, nan_to_null=nan_is_null)
        case "pyarrow":
            if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
                return numpy_to_arrow(values, nan_is_null=nan_is_null)
            text = module.string() if is_text else None
            return module.array(values, type=text, from_pandas=nan_is_null)
        case _:
            return np.fromiter(values, dtype=object, count=len(values)) if is_list else values
