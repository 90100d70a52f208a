"""Result columns as a frame of the kind the caller came with."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from trueup.io.series import Series, library
from trueup.io.table import Ids

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from types import ModuleType

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
    if kind in _MAKERS:
        return _MAKERS[kind](import_module(kind), columns, null_columns)
    for likely in ("pandas", "pyarrow"):
        try:
            module = import_module(likely)
        except ImportError:
            continue
        return _MAKERS[likely](module, columns, null_columns)
    return {name: _to_numpy(values) for name, values in columns.items()}


def _make_pandas(
    pandas: ModuleType, columns: Mapping[str, Column], _null_columns: Collection[str]
) -> Frame:
    def convert(values: Column) -> Series:
        if isinstance(values, Ids):
            match library(values.values):
                case "pandas":
                    return values.values
                case "pyarrow":
                    return values.values.to_pandas()
                case "polars":
                    return pandas.Series(values.tolist())
                case _:
                    return pandas.Series(values.values)
        if isinstance(values, list) and all(value is None for value in values):
            return pandas.Series(values, dtype=object)
        return pandas.Series(values)

    return pandas.DataFrame({name: convert(values) for name, values in columns.items()})


def _make_polars(
    polars: ModuleType, columns: Mapping[str, Column], null_columns: Collection[str]
) -> Frame:
    def convert(name: str, values: Column) -> Series:
        if isinstance(values, Ids):
            if library(values.values) == "polars":
                return values.values.alias(name)
            return polars.Series(name, values.tolist())
        if isinstance(values, list):
            return polars.Series(name, values, dtype=polars.String if _is_text(values) else None)
        return polars.Series(name, values, nan_to_null=name in null_columns)

    return polars.DataFrame([convert(name, values) for name, values in columns.items()])


def _make_arrow(
    pyarrow: ModuleType, columns: Mapping[str, Column], null_columns: Collection[str]
) -> Frame:
    def convert(name: str, values: Column) -> Series:
        if isinstance(values, Ids):
            if library(values.values) == "pyarrow":
                return values.values
            return pyarrow.array(values.tolist())
        if isinstance(values, list):
            return pyarrow.array(values, type=pyarrow.string() if _is_text(values) else None)
        return pyarrow.array(values, from_pandas=name in null_columns)

    return pyarrow.table({name: convert(name, values) for name, values in columns.items()})


def _make_relation(
    duckdb: ModuleType, columns: Mapping[str, Column], null_columns: Collection[str]
) -> Frame:
    # The relation keeps the table alive, and the default connection is never closed by us.
    return duckdb.from_arrow(_make_arrow(import_module("pyarrow"), columns, null_columns))


_MAKERS: dict[str, Callable[[ModuleType, Mapping[str, Column], Collection[str]], Frame]] = {
    "pandas": _make_pandas,
    "polars": _make_polars,
    "pyarrow": _make_arrow,
    "duckdb": _make_relation,
}


def _is_text(values: list[object]) -> bool:
    """Say whether a list is text; one of nothing but None passes for it."""
    return all(value is None or isinstance(value, str) for value in values)


def _to_numpy(values: Column) -> NDArray[Any]:
    if isinstance(values, Ids):
        if library(values.values) == "numpy":
            return np.asarray(values.values)
        values = values.tolist()
    if isinstance(values, list):
        return np.fromiter(values, dtype=object, count=len(values))
    return values
