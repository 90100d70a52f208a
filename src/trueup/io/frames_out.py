"""Result columns as a frame of the kind the caller came with."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from trueup.io.series import Series, library
from trueup.io.table import Ids

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

Column: TypeAlias = "NDArray[Any] | Ids | list[object]"
Frame: TypeAlias = Any


def make_frame(
    kind: str, columns: Mapping[str, Column], *, null_columns: Collection[str] = ()
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
    """
    if kind == "duckdb":
        # The relation keeps the table alive, and the default connection is never closed by us.
        table = make_frame("pyarrow", columns, null_columns=null_columns)
        return import_module("duckdb").from_arrow(table)
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
            text = module.string() if is_text else None
            return module.array(values, type=text, from_pandas=nan_is_null)
        case _:
            return np.fromiter(values, dtype=object, count=len(values)) if is_list else values
