"""Columns of any library: name, type, rows, order.

A column is a pandas Series, a polars Series, a pyarrow Array or ChunkedArray, or a numpy array. No library is imported
to find out which: a column of a library can only exist once that library is loaded. narwhals does not serve here: it
wraps neither numpy arrays nor pyarrow Arrays, keeps the index of pandas, takes from all chunks of pyarrow at once
(see `_take_arrow`), and has no sort order that all libraries share.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from trueup.core.libraries import loaded
from trueup.errors import AnswersError, quoted

if TYPE_CHECKING:
    from numpy.typing import NDArray

Series: TypeAlias = Any

#: Types of numbers that pyarrow calls otherwise than numpy.
ARROW_NUMBERS = {"halffloat": "float16", "float": "float32", "double": "float64"}


def library(series: Series) -> str:
    """Return the name of the library a column comes from."""
    pandas, polars, pyarrow = loaded("pandas"), loaded("polars"), loaded("pyarrow")
    if pandas is not None and isinstance(series, pandas.Series):
        return "pandas"
    if polars is not None and isinstance(series, polars.Series):
        return "polars"
    if pyarrow is not None and isinstance(series, pyarrow.Array | pyarrow.ChunkedArray):
        return "pyarrow"
    return "numpy"


def dtype_name(series: Series) -> str:
    """Return the type of a column as its library writes it."""
    return str(series.type if library(series) == "pyarrow" else series.dtype)


def take(series: Series, rows: NDArray[np.int64]) -> Series:
    """Pick rows by position, keeping the library and the type."""
    match library(series):
        case "pandas":
            return series.iloc[rows].reset_index(drop=True)
        case "polars":
            return series.gather(rows)
        case "pyarrow":
            return _take_arrow(series, rows)
        case _:
            return series[rows]


def to_list(series: Series) -> list[object]:
    """Return the values as Python objects."""
    match library(series):
        case "polars":
            return list(series.to_list())
        case "pyarrow":
            try:
                return list(series.to_pylist())
            except UnicodeDecodeError as error:
                raise AnswersError(
                    "holds text that is not UTF-8. Write it again as UTF-8."
                ) from error
        case "numpy" if series.dtype.kind in "mM":
            # tolist() turns nanosecond times into bare integers.
            return list(series)
        case _:
            return list(series.tolist())


def check_text(column: str, values: Series) -> Series:
    """Return a column of pyarrow, whose text must be UTF-8: only then are there letters for what is in it."""
    types = sys.modules["pyarrow"].types
    kind = values.type.value_type if types.is_dictionary(values.type) else values.type
    if types.is_string(kind) or types.is_large_string(kind):
        try:
            values.validate(full=True)
        except ValueError as error:  # of pyarrow as well
            raise not_utf8(column) from error
    return values


def not_utf8(column: str) -> AnswersError:
    """Build the error about text that cannot be read."""
    return AnswersError(
        f"Column {quoted(column)}: holds text that is not UTF-8. Write it again as UTF-8."
    )


def array_of(values: list[object]) -> Series:
    """Make an array of a list without turning 1 into "1", truncating texts or rounding whole numbers."""
    kinds = {int: "iu", float: "f", bool: "b"}
    types = set(map(type, values))
    if len(types) == 1 and (kind := types.pop()) in kinds:
        array = np.array(values)
        # Whole numbers that fit no common integer type, such as -1 and 2**64 - 1, become fractions or objects.
        if array.dtype.kind in kinds[kind]:
            return array
    return np.fromiter(values, dtype=object, count=len(values))


def concat(first: Series, second: Series) -> Series:
    """Put two columns of ids below one another, in their own type where both have it."""
    kind = library(first)
    if kind == library(second) and dtype_name(first) == dtype_name(second):
        match kind:
            case "pandas":
                return _concat_pandas(first, second)
            case "polars":
                return sys.modules["polars"].concat([first, second])
            case "pyarrow":
                parts = [part for each in (first, second) for part in _chunks(each)]
                chunked = sys.modules["pyarrow"].chunked_array(parts, type=first.type)
                return chunked.unify_dictionaries().combine_chunks()
            case _:
                return np.concatenate([first, second])
    return array_of([*to_list(first), *to_list(second)])


def _concat_pandas(first: Series, second: Series) -> Series:
    pandas = sys.modules["pandas"]
    if isinstance(first.dtype, pandas.CategoricalDtype):
        try:
            return pandas.Series(pandas.api.types.union_categoricals([first, second]))
        except TypeError:  # ordered ones, and categories of other types
            pass
    return pandas.concat([first, second], ignore_index=True)


def _chunks(series: Series) -> list[Any]:
    return list(series.chunks) if hasattr(series, "chunks") else [series]


def sort_order(series: Series) -> NDArray[np.int64]:
    """Return the positions of the values in rising order, the same in every library.

    Text is compared by code point; values of types that cannot be compared are in order of (type name, text).
    """
    fast = _sort_natively(series)
    if fast is not None:
        return fast.astype(np.int64, copy=False)
    values = to_list(series)
    try:
        order = sorted(range(len(values)), key=values.__getitem__)  # type: ignore[arg-type]
    except TypeError:
        order = sorted(range(len(values)), key=lambda i: (type(values[i]).__name__, str(values[i])))
    return np.array(order, dtype=np.int64)


def _sort_natively(series: Series) -> NDArray[np.integer[Any]] | None:
    """Sort in the library itself where it has the same order as Python; None elsewhere."""
    match library(series):
        case "polars":
            polars = sys.modules["polars"]
            if isinstance(series.dtype, polars.Categorical | polars.Enum):
                series = series.cast(polars.String)
            if isinstance(series.dtype, polars.String) or series.dtype.is_numeric():
                return np.asarray(series.arg_sort().to_numpy())
        case "pyarrow":
            types = sys.modules["pyarrow"].types
            if types.is_dictionary(series.type):
                series = series.cast(series.type.value_type)
            kind = series.type
            simple = (
                types.is_primitive(kind)
                and not types.is_float16(kind)
                and not types.is_interval(kind)
            )
            if types.is_string(kind) or types.is_large_string(kind) or simple:
                return arrow_to_numpy(import_module("pyarrow.compute").sort_indices(series))
        case "pandas" if isinstance(series.dtype, np.dtype) and series.dtype.kind != "O":
            return np.argsort(series.to_numpy(), kind="stable")
        case "numpy" if series.dtype.kind != "O":
            return np.argsort(series, kind="stable")
    return None


def arrow_to_numpy(column: Series) -> NDArray[Any]:
    """Return a pyarrow column of numbers without nulls as an array, without a copy where it has one chunk.

    `to_numpy` of pyarrow imports pandas where that is installed, which takes as long as reading a million rows.
    """
    dtype = np.dtype(ARROW_NUMBERS.get(str(column.type), str(column.type)))
    parts = [
        np.frombuffer(chunk.buffers()[1], dtype, len(chunk), chunk.offset * dtype.itemsize)
        for chunk in _chunks(column)
        if len(chunk)
    ]
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.empty(0, dtype)


def numpy_to_arrow(values: NDArray[Any], *, nan_is_null: bool = False) -> Series:
    """Return an array of integers or floating point numbers as a pyarrow array; it does not import pandas, either."""
    pyarrow = import_module("pyarrow")
    values = np.ascontiguousarray(values)
    known = None
    if nan_is_null and values.dtype.kind == "f":
        missing = np.isnan(values)
        if missing.any():
            known = pyarrow.py_buffer(np.packbits(~missing, bitorder="little"))
    kind = pyarrow.from_numpy_dtype(values.dtype)
    return pyarrow.Array.from_buffers(kind, len(values), [known, pyarrow.py_buffer(values)])


def _take_arrow(series: Series, rows: NDArray[np.int64]) -> Series:
    """Pick rows chunk by chunk.

    `ChunkedArray.take` may first join the chunks, which fails for more than two gigabytes of text.
    """
    pyarrow = sys.modules["pyarrow"]
    try:
        if isinstance(series, pyarrow.Array):
            return series.take(numpy_to_arrow(rows))
        if not len(rows):
            return pyarrow.array([], type=series.type)
        order = np.argsort(rows, kind="stable")
        chunks = [chunk for chunk in series.chunks if len(chunk)]
        ends = np.cumsum([len(chunk) for chunk in chunks])
        parts = np.split(rows[order], np.searchsorted(rows[order], ends[:-1]))
        starts = [0, *ends[:-1].tolist()]
        taken = [
            chunk.take(numpy_to_arrow(part - start))
            for chunk, part, start in zip(chunks, parts, starts, strict=True)
        ]
        joined = pyarrow.chunked_array(taken, type=series.type).unify_dictionaries()
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return pyarrow.concat_arrays(joined.chunks).take(numpy_to_arrow(back))
    except pyarrow.ArrowNotImplementedError:
        # Not every version can take from text views, for example.
        return pyarrow.array([series[int(row)].as_py() for row in rows], type=series.type)
