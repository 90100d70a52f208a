"""Ids as codes 0, 1, 2, ...: the library the ids come from hashes them.

Each library is called directly: narwhals has no function that encodes, and sorting Python objects in numpy is 40 times
slower. Every library's codes end in `_compact`, which numbers the ids in order of first appearance and finds the row
each was first seen in, so that ids can later be taken from the caller's own column.
"""

from __future__ import annotations

import re
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trueup.core.arrays import PIECE, in_pieces, index_type
from trueup.core.libraries import loaded
from trueup.errors import AnswersError, quoted
from trueup.io.series import (
    Series,
    arrow_to_numpy,
    dtype_name,
    library,
    numpy_to_arrow,
    sort_order,
    take,
    to_list,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

# A lookup table of 32-bit entries over the range of the ids takes at most 16 bytes per row.
WIDEST_RANGE = 4
# Types of times and durations, whatever their library.
MOMENTS = re.compile(r"time|date|duration|interval", re.IGNORECASE)


class Encoded(NamedTuple):
    """Ids of rows as codes.

    Attributes
    ----------
    codes
        Code of each row, -1 where the id is missing.
    n
        Number of ids.
    first_rows
        For each code, the first kept row of the whole column that has its id.
    """

    codes: NDArray[np.int32 | np.int64]
    n: int
    first_rows: NDArray[np.int64]


class _Raw(NamedTuple):
    """Codes as the library returned them: -1 for missing, gaps allowed, all below `size`."""

    codes: NDArray[np.integer[Any]]
    size: int


def encode(
    series: Series,
    *,
    column: str = "id",
    keep: NDArray[np.bool_] | None = None,
    by_id: bool = False,
    coded: bool = False,
) -> Encoded:
    """Number the distinct values of a column.

    Parameters
    ----------
    series
        A pandas, polars or pyarrow column or a one-dimensional numpy array.
    column
        Its name, for messages.
    keep
        The rows to encode; others are left out.
    by_id
        Number the ids in sorted order rather than in order of first appearance.
    coded
        Whether it is known that the dictionary of a pyarrow column holds each value once, and no null.

    Raises
    ------
    AnswersError
        When the values cannot be hashed, such as lists.
    """
    try:
        raw = _codes_of(series) if coded else _RAW[library(series)](series)
    except TypeError as error:
        raise no_ids(column, dtype_name(series)) from error
    encoded = _compact(raw, keep)
    if not by_id:
        return encoded
    order = sort_order(take(series, encoded.first_rows))
    rank = np.full(encoded.n + 1, -1, dtype=encoded.codes.dtype)
    rank[order] = np.arange(encoded.n)
    return Encoded(rank[encoded.codes], encoded.n, encoded.first_rows[order])


def check_distinct(values: Series, column: str) -> None:
    """Check that ids of a type with more digits than Python knows are told apart by Python, too.

    Times of nanoseconds, for example, would become one time, and those after the year 9999 none at all.
    """
    if not MOMENTS.search(dtype_name(values)):
        return
    try:
        fine = len(set(to_list(values))) == len(values)
    except (TypeError, ValueError, OverflowError):
        fine = False
    if not fine:
        raise no_ids(column, dtype_name(values))


def no_ids(column: str, kind: str) -> AnswersError:
    """Build the error about values of a type that cannot be ids."""
    return AnswersError(
        f"Column {quoted(column)}: holds {quoted(kind)} values, of which some "
        "cannot be told apart as ids. Turn them into text or numbers."
    )


def _compact(raw: _Raw, keep: NDArray[np.bool_] | None) -> Encoded:
    """Renumber raw codes in order of first appearance."""
    codes = raw.codes if keep is None else raw.codes[keep]
    n_rows = len(codes)
    counter = index_type(max(n_rows, raw.size))
    first_rows = _first_of_each(codes, raw.size)
    if first_rows is not None:
        if keep is not None:
            first_rows = np.flatnonzero(keep)[first_rows]
        return Encoded(codes.astype(counter, copy=False), raw.size, first_rows)
    # One slot more than there are codes, for -1, which is the last index.
    slots = np.full(raw.size + 1, n_rows, dtype=counter)
    for start in reversed(range(0, n_rows, PIECE)):
        piece = codes[start : start + PIECE].astype(np.intp)
        # The last of several assignments to a slot stays: in reverse order, that of the first row.
        slots[piece[::-1]] = np.arange(start + len(piece) - 1, start - 1, -1, dtype=counter)
    slots[raw.size] = n_rows
    present = np.flatnonzero(slots < n_rows)
    present = present[np.argsort(slots[present])]
    first_rows = slots[present].astype(np.int64)
    slots[present] = np.arange(len(present))
    slots[raw.size] = -1
    if keep is not None:
        first_rows = np.flatnonzero(keep)[first_rows]
    numbered = np.empty(n_rows, dtype=counter)

    def renumber(here: slice) -> None:
        np.take(slots, codes[here], out=numbered[here], mode="wrap")  # -1 is the last slot

    in_pieces(renumber, n_rows)
    return Encoded(numbered, len(present), first_rows)


def _first_of_each(codes: NDArray[np.integer[Any]], size: int) -> NDArray[np.int64] | None:
    """Return the first row of each code, if the codes are numbered in order of first appearance without gaps."""
    firsts, known = [], 0
    for start in range(0, len(codes), PIECE):
        piece = codes[start : start + PIECE]
        low, high = int(piece.min()), int(piece.max())
        if low < 0:
            return None
        if high < known:
            continue
        piece = piece.astype(np.int64)
        piece[0] = max(piece[0], known - 1)
        highest = np.maximum.accumulate(piece)
        new = np.flatnonzero(np.diff(highest, prepend=known - 1))
        known += len(new)
        if high != known - 1:
            return None
        firsts.append(new + start)
    return np.concatenate(firsts) if known == size and firsts else None


def _from_pandas(series: Series) -> _Raw:
    pandas = sys.modules["pandas"]
    arrow = arrow_of_pandas(series)
    if arrow is not None:
        return _from_arrow(arrow)
    if isinstance(series.dtype, pandas.CategoricalDtype):
        values = _RAW["pandas"](pandas.Series(series.cat.categories))
        return _through(values, series.cat.codes.to_numpy())
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "biu":
        return _from_integers(series.to_numpy())
    if series.dtype == object or isinstance(series.dtype, pandas.StringDtype):
        # With a value that is no text at the end, pandas 2 compares whole texts, not only up to a NUL.
        texts = np.append(series.to_numpy(dtype=object), np.array([None], dtype=object))
        codes, values = pandas.factorize(texts)
        return _Raw(codes[:-1], len(values))
    codes, values = pandas.factorize(series)
    return _Raw(codes, len(values))


def arrow_of_pandas(series: Series) -> Series | None:
    """Return the Arrow column inside a pandas column, or None."""
    pandas = sys.modules["pandas"]
    if isinstance(series.dtype, pandas.ArrowDtype) or (
        isinstance(series.dtype, pandas.StringDtype) and series.dtype.storage.startswith("pyarrow")
    ):
        return series.array.__arrow_array__()
    return None


def _from_polars(series: Series) -> _Raw:
    polars = sys.modules["polars"]
    dtype = series.dtype
    if isinstance(dtype, polars.String):
        if hasattr(polars, "Categories"):
            # With categories of our own: the codes of shared ones have gaps.
            series = series.cast(polars.Categorical(polars.Categories.random()))
        else:
            series = series.cast(polars.Enum(series.unique(maintain_order=True).drop_nulls()))
    if dtype.is_float():
        return _from_floats(series.to_numpy())
    if isinstance(dtype, polars.Boolean):
        series = series.cast(polars.UInt8)
    # isinstance, as a Categorical with categories of its own does not equal polars.Categorical.
    coded = isinstance(series.dtype, polars.Categorical | polars.Enum)
    # numpy has no integers of 128 bits.
    narrow = series.dtype.is_integer() and not str(series.dtype).endswith("128")
    if coded or narrow or series.dtype.is_temporal():
        series = series.to_physical()
        missing = series.is_null().to_numpy() if series.null_count() else None
        if missing is not None:
            series = series.fill_null(strategy="min").fill_null(0)
        return _from_integers(series.to_numpy(), missing)
    return _from_objects(to_list(series))


def _from_arrow(series: Series) -> _Raw:
    pyarrow = sys.modules["pyarrow"]
    types = pyarrow.types
    if isinstance(series, pyarrow.Array):
        series = pyarrow.chunked_array([series])
    if isinstance(series.type, pyarrow.BaseExtensionType):
        storage = series.type.storage_type
        series = pyarrow.chunked_array([part.storage for part in series.chunks], type=storage)
    kind = series.type
    if types.is_boolean(kind):
        series = series.cast(pyarrow.uint8())
    elif types.is_floating(kind):
        series = series.cast(pyarrow.float64())
        # `fill_null` imports pandas.
        return _from_floats(
            arrow_to_numpy(series.fill_null(np.nan) if series.null_count else series)
        )
    if types.is_boolean(kind) or types.is_integer(kind):
        missing = series.is_null().to_numpy() if series.null_count else None
        if missing is not None:
            series = series.fill_null(import_module("pyarrow.compute").min(series).as_py() or 0)
        return _from_integers(arrow_to_numpy(series), missing)
    try:
        series = with_dictionary(series)
    except pyarrow.ArrowNotImplementedError:
        return _from_objects(to_list(series))
    raw = _codes_of(series)
    if not series.num_chunks or not types.is_dictionary(kind):
        return raw
    # A dictionary from the caller may hold nulls, or one value twice.
    return _through(_from_arrow(series.chunk(0).dictionary), raw.codes)


def _codes_of(series: Series) -> _Raw:
    """Return the codes of an Arrow column with one dictionary."""
    pyarrow = sys.modules["pyarrow"]
    if isinstance(series, pyarrow.Array):  # rows that were taken out of a column
        series = pyarrow.chunked_array([series])
    if not series.num_chunks:
        return _Raw(np.empty(0, dtype=np.int32), 0)
    codes = pyarrow.chunked_array([part.indices for part in series.chunks])
    if codes.null_count:
        # In a signed type, since indices may be unsigned.
        codes = codes.cast(pyarrow.int64()).fill_null(-1)
    return _Raw(arrow_to_numpy(codes), len(series.chunk(0).dictionary))


def with_dictionary(series: Series) -> Series:
    """Return an Arrow column as codes of one dictionary; where there was none, in order of first appearance."""
    pyarrow = sys.modules["pyarrow"]
    is_coded = pyarrow.types.is_dictionary(series.type)
    coded = series.unify_dictionaries() if is_coded else series.dictionary_encode()
    if coded.num_chunks < 2:
        return coded
    # Taking values from many chunks would compare their dictionaries each time.
    indices = pyarrow.concat_arrays([chunk.indices for chunk in coded.chunks])
    whole = pyarrow.DictionaryArray.from_arrays(indices, coded.chunk(0).dictionary, safe=False)
    return pyarrow.chunked_array([whole])


def _from_numpy(series: Series) -> _Raw:
    match series.dtype.kind:
        case "b" | "i" | "u":
            return _from_integers(series)
        case "f":
            return _from_floats(series)
        case "m" | "M":
            return _from_integers(series.view(np.int64), np.isnat(series))
        case "V":
            raise TypeError
        case _:
            return _from_objects(to_list(series))


_RAW = {
    "pandas": _from_pandas,
    "polars": _from_polars,
    "pyarrow": _from_arrow,
    "numpy": _from_numpy,
}


def _through(values: _Raw, codes: NDArray[np.integer[Any]]) -> _Raw:
    """Replace codes of dictionary entries by codes of the values of these entries."""
    if len(values.codes) == values.size and np.array_equal(values.codes, np.arange(values.size)):
        return _Raw(codes, values.size)
    return _Raw(np.append(values.codes, -1)[codes], values.size)


def _from_integers(values: NDArray[Any], missing: NDArray[np.bool_] | None = None) -> _Raw:
    """Encode integers: those in a narrow range are their own codes, others are hashed or sorted."""
    if not len(values):
        return _Raw(np.empty(0, dtype=np.int64), 0)
    if values.dtype == np.bool_:
        values = values.view(np.uint8)
    low, high = int(values.min()), int(values.max())
    if high - low <= WIDEST_RANGE * len(values) + 1024:
        # In a wide type: 127 - (-128) is no int8. Of uint64 there is no wider one, and no need: nothing is negative.
        wide = np.uint64 if values.dtype == np.uint64 else np.int64
        codes = np.empty(len(values), dtype=index_type(high - low))
        np.subtract(values, low, out=codes, dtype=wide, casting="unsafe")
        raw = _Raw(codes, high - low + 1)
    else:
        raw = _hash_integers(values)
    if missing is not None:
        raw.codes[missing] = -1
    return raw


def _hash_integers(values: NDArray[Any]) -> _Raw:
    """Encode integers with the hash table of a loaded library; numpy has to sort."""
    pyarrow, pandas = loaded("pyarrow"), loaded("pandas")
    if pyarrow is not None:
        encoded = numpy_to_arrow(values).dictionary_encode()
        return _Raw(arrow_to_numpy(encoded.indices).copy(), len(encoded.dictionary))
    if pandas is not None:
        codes, distinct = pandas.factorize(values)
    else:
        distinct, codes = np.unique(values, return_inverse=True)
    return _Raw(codes, len(distinct))


def _from_floats(values: NDArray[Any]) -> _Raw:
    """Encode floating point ids; if all are whole numbers, as integers."""
    values = values.astype(np.float64, copy=False)
    unknown = np.isnan(values)
    missing = unknown if unknown.any() else None
    if missing is not None:
        values = np.where(missing, 0.0, values)
    if np.all(np.abs(values) < 2.0**53):
        whole = values.astype(np.int64)
        if np.array_equal(whole, values):
            return _from_integers(whole, missing)
    distinct, codes = np.unique(values, return_inverse=True)
    if missing is not None:
        codes[missing] = -1
    return _Raw(codes, len(distinct))


def _from_objects(values: list[object]) -> _Raw:
    """Encode Python objects by their own hash, without a loop in Python."""
    code_of = {value: code for code, value in enumerate(dict.fromkeys(values))}
    code_of.update({value: -1 for value in code_of if is_missing(value)})
    codes = np.fromiter(map(code_of.__getitem__, values), dtype=np.int64, count=len(values))
    return _Raw(codes, len(code_of))


def is_missing(value: object) -> bool:
    """Return whether a Python object means a missing value: None, NaN, NaT or pandas' NA."""
    if value is None:
        return True
    try:
        # Only NaN and NaT differ from themselves.
        return bool(value != value)
    except (TypeError, ValueError):
        return type(value).__name__ == "NAType"
    except ArithmeticError:  # a signalling NaN of decimal cannot be compared
        return True
