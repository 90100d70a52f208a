"""Columns of any library as floating point numbers.

Text is read by one rule whatever library it comes from, so that the same file gives the same numbers: an ordinary
decimal number, spaces around it ignored, or a mark for "no value". Each library is called directly: the casts of
narwhals fail on text, on objects, and on Arrow integers beyond 2**53.
"""

from __future__ import annotations

import re
import sys
from decimal import Decimal
from importlib import import_module
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trueup.errors import MOST_ROWS, AnswersError, bad_rows, option, quoted
from trueup.io.encode import arrow_of_pandas, encode, is_missing
from trueup.io.series import Series, dtype_name, library, take, to_list

if TYPE_CHECKING:
    from numpy.typing import NDArray

MISSING_TEXTS = ("", "na", "nan", "null")
COMMA_REMEDY = "Some have a decimal comma: write 3.5, not 3,5."
_NUMBER = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|[+-]?inf(?:inity)?", re.IGNORECASE
)
COMMA = re.compile(r"\s*[+-]?[0-9]*,[0-9]+(?:e[+-]?[0-9]+)?\s*", re.IGNORECASE)


class _Read(NamedTuple):
    """Numbers, NaN where there is none, and which rows held something that is no number."""

    numbers: NDArray[np.float64]
    bad: NDArray[np.bool_] | None = None


def to_numbers(
    series: Series, column: str, *, keep: NDArray[np.bool_] | None = None, argument: str = ""
) -> NDArray[np.float64]:
    """Read a column as numbers.

    Parameters
    ----------
    series
        The column.
    column
        Its name, for messages.
    keep
        The rows to check; others may hold anything.
    argument
        The keyword that chooses this column, for messages.

    Returns
    -------
    array
        One number per row of the column, NaN where the value is missing.

    Raises
    ------
    AnswersError
        When a value is not a number, or infinite.
    """
    read = _READ[library(series)](series)
    if read is None:
        raise AnswersError(
            f"Column {quoted(column)}: holds {quoted(dtype_name(series))} values, not numbers.",
            remedy="Convert them first" + or_other_column(argument) + ".",
        )
    if read.bad is not None and (rows := _at(read.bad, keep)):
        values = to_list(take(series, np.array(rows[:MOST_ROWS])))
        remedy = "Remove or mend these rows" + or_other_column(argument) + "."
        if any(isinstance(value, str) and COMMA.fullmatch(value) for value in values):
            remedy = COMMA_REMEDY
        raise bad_rows(
            column, rows, len(series), ("is not a number", "are not numbers"), remedy, values
        )
    if not _all_finite(read.numbers) and (rows := _at(np.isinf(read.numbers), keep)):
        raise bad_rows(
            column,
            rows,
            len(series),
            ("is infinite", "are infinite"),
            "Remove these rows, or leave the value empty where there is none.",
            read.numbers[rows[:MOST_ROWS]].tolist(),
        )
    return read.numbers


def _all_finite(numbers: NDArray[np.float64]) -> bool:
    """Return whether all numbers are finite, without a temporary array."""
    return not len(numbers) or bool(np.isfinite(numbers.min()) and np.isfinite(numbers.max()))


def or_other_column(argument: str) -> str:
    """Suggest another column, where a keyword chooses it."""
    return ", or pass " + option(argument, "other_column") if argument else ""


def _at(bad: NDArray[np.bool_], keep: NDArray[np.bool_] | None) -> list[int]:
    rows: list[int] = np.flatnonzero(bad if keep is None else bad & keep).tolist()
    return rows


def _from_pandas(series: Series) -> _Read | None:
    pandas = sys.modules["pandas"]
    arrow = arrow_of_pandas(series)
    if arrow is not None:
        return from_arrow(arrow)
    if isinstance(series.dtype, np.dtype):
        return _from_numpy(series.to_numpy())
    if isinstance(series.dtype, pandas.StringDtype):
        return from_texts(series)
    if isinstance(series.dtype, pandas.CategoricalDtype):
        return _from_objects(series.tolist())
    if pandas.api.types.is_numeric_dtype(series.dtype):
        return _Read(series.to_numpy(dtype=np.float64, na_value=np.nan))
    return None


def _from_polars(series: Series) -> _Read | None:
    polars = sys.modules["polars"]
    dtype = series.dtype
    if dtype.is_numeric() or isinstance(dtype, polars.Boolean | polars.Null):
        return _Read(series.cast(polars.Float64).to_numpy())
    if isinstance(dtype, polars.String | polars.Categorical | polars.Enum):
        return from_texts(series)
    if isinstance(dtype, polars.Object):
        return _from_objects(to_list(series))
    return None


def from_arrow(series: Series) -> _Read | None:
    """Read a pyarrow column; None if its type cannot hold numbers."""
    pyarrow = sys.modules["pyarrow"]
    types = pyarrow.types
    if types.is_dictionary(series.type):
        return _from_dictionary(series)
    kind = series.type
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        clean = clean_arrow_texts(series)
        if clean is None:
            return from_texts(series)
        series = clean
    elif not (
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_boolean(kind)
        or types.is_null(kind)
    ):
        return None
    # Not safe only because whole numbers beyond 2**53 are rounded, as everywhere else.
    numbers = series.cast(pyarrow.float64(), safe=False)
    if numbers.null_count:
        numbers = numbers.fill_null(np.nan)
    return _Read(np.asarray(numbers.to_numpy()))


def _from_dictionary(series: Series) -> _Read | None:
    """Read each value of a dictionary once, so that no text is copied for every row."""
    numbers, bad = [np.empty(0)], [np.empty(0, dtype=np.bool_)]
    for chunk in getattr(series, "chunks", [series]):
        read = from_arrow(chunk.dictionary)
        if read is None:
            return None
        at = chunk.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
        wrong = np.zeros(len(read.numbers), dtype=np.bool_) if read.bad is None else read.bad
        numbers.append(np.append(read.numbers, np.nan)[at])
        bad.append(np.append(wrong, False)[at])
    return _Read(np.concatenate(numbers), np.concatenate(bad))


def clean_arrow_texts(series: Series) -> Series | None:
    """Parse text of nothing but numbers and marks for "no value" at once; None for other text.

    Arrow reads numbers as we do, except that it knows more spellings of NaN.
    """
    pyarrow = sys.modules["pyarrow"]
    compute = import_module("pyarrow.compute")
    try:
        numbers = compute.cast(series, pyarrow.float64())
        if not compute.any(compute.is_nan(numbers)).as_py():
            return numbers
    except pyarrow.ArrowInvalid:
        pass
    try:
        texts = compute.utf8_lower(compute.utf8_trim_whitespace(series))
        marks = compute.is_in(texts, pyarrow.array(MISSING_TEXTS, type=texts.type))
        numbers = compute.cast(
            compute.if_else(marks, pyarrow.scalar(None, texts.type), texts), pyarrow.float64()
        )
    except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError):
        return None
    return None if compute.any(compute.is_nan(numbers)).as_py() else numbers


def _from_numpy(series: Series) -> _Read | None:
    match series.dtype.kind:
        case "b" | "i" | "u" | "f":
            return _Read(series.astype(np.float64, copy=False))
        case "O" | "U":
            return _from_objects(series.tolist())
        case _:
            return None


_READ = {
    "pandas": _from_pandas,
    "polars": _from_polars,
    "pyarrow": from_arrow,
    "numpy": _from_numpy,
}


def from_texts(series: Series) -> _Read:
    """Read each distinct text once."""
    codes, _, first_rows = encode(series)
    read = _from_objects(to_list(take(series, first_rows)))
    numbers = np.append(read.numbers, np.nan)[codes]
    return _Read(numbers, None if read.bad is None else np.append(read.bad, False)[codes])


def _from_objects(values: list[Any]) -> _Read:
    if set(map(type, values)) <= {int, float, bool, type(None)}:
        try:
            return _Read(np.array(values, dtype=np.float64))
        except OverflowError:
            pass
    read = [_from_object(value) for value in values]
    numbers = np.array([np.nan if number is None else number for number in read], dtype=np.float64)
    return _Read(numbers, np.array([number is None for number in read], dtype=np.bool_))


def _from_object(value: object) -> float | None:
    """Return the number of a Python object, NaN if it means "no value", None if it is no number."""
    if isinstance(value, str):
        text = value.strip()
        if text.lower() in MISSING_TEXTS:
            return np.nan
        return float(text) if _NUMBER.fullmatch(text) else None
    if is_missing(value):
        return np.nan
    if isinstance(value, np.timedelta64) or not isinstance(value, Real | Decimal | np.bool_):
        return None
    try:
        return float(value)
    except OverflowError:
        return np.inf
