"""Columns of any library as floating point numbers.

Text is read by one rule whatever library it comes from, so that the same file gives the same numbers: an ordinary
decimal number, spaces around it ignored, or a mark for "no value". Each library is called directly: the casts of
narwhals fail on text, on objects, and on Arrow integers beyond 2**53.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from decimal import Decimal
from importlib import import_module
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trueup.errors import MOST_ROWS, AnswersError, BadRows, bad_rows, option, quoted
from trueup.io.encode import arrow_of_pandas, encode, is_missing
from trueup.io.number_advice import advise
from trueup.io.number_text import MISSING_TEXTS, PLAIN, Writing
from trueup.io.series import Series, arrow_to_numpy, dtype_name, library, take, to_list

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Units that a message names.
MOST_UNITS = 5


class Read(NamedTuple):
    """Numbers, NaN where there is none; which rows held something that is no number; how often each unit was there."""

    numbers: NDArray[np.float64]
    bad: NDArray[np.bool_] | None = None
    units: Counter[str] | None = None


def to_numbers(
    series: Series,
    column: str,
    *,
    keep: NDArray[np.bool_] | None = None,
    argument: str = "",
    writing: Writing = PLAIN,
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
    writing
        How numbers are written in text.

    Returns
    -------
    array
        One number per row of the column, NaN where the value is missing.

    Raises
    ------
    AnswersError
        When a value is not a number, or infinite.
    """
    read = read_numbers(series, column, argument, writing)
    if read.bad is not None and (rows := _at(read.bad, keep)):
        raise not_numbers(series, column, rows, argument=argument, writing=writing)
    if read.units is not None:
        check_units(column, read.units)
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


def read_numbers(series: Series, column: str, argument: str, writing: Writing) -> Read:
    """Read a column as numbers; what is none stops nothing, unless the whole column cannot hold numbers."""
    read = _READ[library(series)](series, writing)
    if read is None:
        raise AnswersError(
            f"Column {quoted(column)}: holds {quoted(dtype_name(series))} values, not numbers.",
            remedy="Convert them first" + or_other_column(argument) + ".",
        )
    return read


def not_numbers(
    series: Series,
    column: str,
    rows: list[int],
    *,
    argument: str = "",
    writing: Writing = PLAIN,
    skips: bool = False,
) -> BadRows:
    """Build the error about values that are not numbers: where and what they are, and which option reads them.

    `skips`: whether such rows could be set aside.
    """
    advice = advise(to_list(series), rows, writing, skips=skips)
    values = to_list(take(series, np.array(rows[:MOST_ROWS])))
    remedy = advice.remedy
    if not remedy:
        passing = ", pass " if argument else ", or pass "
        aside = passing + option("skip_bad", True) + " to set them aside" if skips else ""
        remedy = "Remove or mend these rows" + aside + or_other_column(argument) + "."
    error = bad_rows(
        column, rows, len(series), ("is not a number", "are not numbers"), remedy, values
    )
    if advice.kinds:
        error.args = (f"{error.args[0]} {advice.kinds}",)
    error.fixes, error.notation = advice.fixes, advice.notation
    return error


class WritingError(AnswersError):
    """Numbers of a table may not be read like the answers, nor plainly."""


def as_plain(series: Series, writing: Writing, column: str = "", unit: str = "") -> Series:
    """Return a column in which text that is a number, written in this way, is one; the rest stays as it is.

    Raises
    ------
    AnswersError
        When some of it is a number only if it is written plainly: "53.125" beside "1.053" for a thousand.
    WritingError
        When that may separate thousands, too, or where its numbers have another unit than `unit`.
    """
    if writing.plain or (read := _READ[library(series)](series, writing)) is None:
        return series
    if read.units is not None:
        check_units(column, read.units, unit)
    values = np.fromiter(to_list(series), dtype=object, count=len(series))
    good = ~np.isnan(read.numbers)
    others = [value for value in values[~good] if _is_plain(value)]
    if others:
        grouped = all(_GROUPED.fullmatch(value) for value in others)
        raise (WritingError if grouped else AnswersError)(
            f"Column {quoted(column)}: {quoted(others[0])} is not written like the answers"
            + (", and may be a whole number." if grouped else "."),
            remedy="Write all numbers in one way.",
        )
    values[good] = read.numbers[good]
    return values


#: What may be a number with a decimal point, or a whole one with a point for thousands.
_GROUPED = re.compile(r"\s*[+-]?[1-9]\d{0,2}\.\d{3}\s*")


def _is_plain(value: object) -> bool:
    """Tell whether a text is a finite number, written as programs write it."""
    try:
        return isinstance(value, str) and bool(np.isfinite(float(value)))
    except ValueError:
        return False


def check_units(column: str, units: Counter[str], unit: str = "") -> None:
    """Check that all numbers of a column, or of several that hold answers, have the same unit or none.

    Raises
    ------
    AnswersError
        When they have several.
    WritingError
        When they have another one than `unit`, that of the answers.
    """
    named = {unit: count for unit, count in units.most_common() if unit}
    if len(named) > 1:
        found = ", ".join(
            f"{quoted(unit)} ({count:,})" for unit, count in [*named.items()][:MOST_UNITS]
        )
        more = f" and {len(named) - MOST_UNITS} more" if len(named) > MOST_UNITS else ""
        raise AnswersError(
            f"Column {quoted(column)}: holds several units, {found}{more}.",
            remedy="Convert all numbers to one unit: they cannot be combined as they are.",
        )
    if "%" in named and units[""]:
        raise AnswersError(
            f"Column {quoted(column)}: {named['%']:,} with a percent sign and {units['']:,} without are mixed.",
            remedy='"45 %" is read as 45: write all numbers in per cent, or none.',
        )
    own = unit_of(units)
    if own and unit and own != unit:
        raise WritingError(
            f"Column {quoted(column)}: is in {quoted(own)}, the answers in {quoted(unit)}.",
            remedy="Convert all numbers to one unit.",
        )


def unit_of(units: Counter[str]) -> str:
    """Return the unit of numbers of which each has this one or none; empty where none has one."""
    return next((unit for unit, _ in units.most_common() if unit), "")


def _all_finite(numbers: NDArray[np.float64]) -> bool:
    """Return whether all numbers are finite, without a temporary array."""
    return not len(numbers) or bool(np.isfinite(numbers.min()) and np.isfinite(numbers.max()))


def or_other_column(argument: str) -> str:
    """Suggest another column, where a keyword chooses it."""
    return ", or pass " + option(argument, "other_column") if argument else ""


def _at(bad: NDArray[np.bool_], keep: NDArray[np.bool_] | None) -> list[int]:
    rows: list[int] = np.flatnonzero(bad if keep is None else bad & keep).tolist()
    return rows


def _from_pandas(series: Series, writing: Writing) -> Read | None:
    pandas = sys.modules["pandas"]
    arrow = arrow_of_pandas(series)
    if arrow is not None:
        return from_arrow(arrow, writing)
    if isinstance(series.dtype, np.dtype):
        return _from_numpy(series.to_numpy(), writing)
    if isinstance(series.dtype, pandas.StringDtype):
        return from_texts(series, writing)
    if isinstance(series.dtype, pandas.CategoricalDtype):
        return _from_objects(series.tolist(), writing)
    if pandas.api.types.is_numeric_dtype(series.dtype):
        return Read(series.to_numpy(dtype=np.float64, na_value=np.nan))
    return None


def _from_polars(series: Series, writing: Writing) -> Read | None:
    polars = sys.modules["polars"]
    dtype = series.dtype
    if dtype.is_numeric() or isinstance(dtype, polars.Boolean | polars.Null):
        return Read(series.cast(polars.Float64).to_numpy())
    if isinstance(dtype, polars.String | polars.Categorical | polars.Enum):
        return from_texts(series, writing)
    if isinstance(dtype, polars.Object):
        return _from_objects(to_list(series), writing)
    return None


def from_arrow(series: Series, writing: Writing = PLAIN) -> Read | None:
    """Read a pyarrow column; None if its type cannot hold numbers."""
    pyarrow = sys.modules["pyarrow"]
    types = pyarrow.types
    if types.is_dictionary(series.type):
        if writing.plain:
            return _from_dictionary(series)
        series = series.cast(series.type.value_type)
    kind = series.type
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        clean = clean_arrow_texts(series) if writing.plain else _plain_texts(series, writing)
        if clean is None:
            return from_texts(series, writing)
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
    return Read(arrow_to_numpy(numbers))


def _from_dictionary(series: Series) -> Read | None:
    """Read each value of a dictionary once, so that no text is copied for every row."""
    numbers, bad = [np.empty(0)], [np.empty(0, dtype=np.bool_)]
    for chunk in getattr(series, "chunks", [series]):
        read = from_arrow(chunk.dictionary)
        if read is None:
            return None
        at = arrow_to_numpy(chunk.indices.cast("int64").fill_null(-1))
        wrong = np.zeros(len(read.numbers), dtype=np.bool_) if read.bad is None else read.bad
        numbers.append(np.append(read.numbers, np.nan)[at])
        bad.append(np.append(wrong, False)[at])
    return Read(np.concatenate(numbers), np.concatenate(bad))


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


def _from_numpy(series: Series, writing: Writing) -> Read | None:
    match series.dtype.kind:
        case "b" | "i" | "u" | "f":
            return Read(series.astype(np.float64, copy=False))
        case "O" | "U":
            return _from_objects(series.tolist(), writing)
        case _:
            return None


_READ = {
    "pandas": _from_pandas,
    "polars": _from_polars,
    "pyarrow": from_arrow,
    "numpy": _from_numpy,
}


def from_texts(series: Series, writing: Writing = PLAIN) -> Read:
    """Read each distinct text once."""
    codes, _, first_rows = encode(series)
    times = np.bincount(codes + 1, minlength=len(first_rows) + 1)[1:]
    read = _from_objects(to_list(take(series, first_rows)), writing, times.tolist())
    numbers = np.append(read.numbers, np.nan)[codes]
    bad = None if read.bad is None else np.append(read.bad, False)[codes]
    return Read(numbers, bad, read.units)


def _plain_texts(series: Series, writing: Writing) -> Series | None:
    """Parse text of nothing but numbers written in this way and marks for "no value"; None for other text."""
    if writing.strip_units:
        return None
    pyarrow = sys.modules["pyarrow"]
    compute = import_module("pyarrow.compute")
    texts = compute.utf8_lower(compute.utf8_trim_whitespace(series))
    marks = compute.is_in(texts, pyarrow.array([*MISSING_TEXTS, None], type=texts.type))
    number = compute.match_substring_regex(texts, f"^{writing.pattern}$").fill_null(False)
    if not compute.all(compute.or_(marks, number)).as_py():
        return None
    if writing.separators:
        texts = compute.replace_substring_regex(texts, writing.separators, "")
    texts = compute.replace_substring(texts, writing.point, ".")
    return compute.cast(
        compute.if_else(marks, pyarrow.scalar(None, texts.type), texts), pyarrow.float64()
    )


def _from_objects(values: list[Any], writing: Writing, times: list[int] | None = None) -> Read:
    """Read Python objects; `times` says how often each is there, for the count of units."""
    if set(map(type, values)) <= {int, float, bool, type(None)}:
        try:
            return Read(np.array(values, dtype=np.float64))
        except OverflowError:
            pass
    units: Counter[str] = Counter()
    read: list[float | None] = []
    for value, count in zip(values, times or [1] * len(values), strict=True):
        number, unit = _from_object(value, writing)
        read.append(number)
        if number is not None and number == number:
            units[unit] += count
    numbers = np.array([np.nan if number is None else number for number in read], dtype=np.float64)
    bad = np.array([number is None for number in read], dtype=np.bool_)
    return Read(numbers, bad, units if writing.strip_units else None)


def _from_object(value: object, writing: Writing) -> tuple[float | None, str]:
    """Return the number of a Python object and its unit; NaN if it means "no value", None if it is no number."""
    if isinstance(value, str):
        text = value.strip()
        if text.lower() in MISSING_TEXTS:
            return np.nan, ""
        return writing.parse(text) or (None, "")
    if is_missing(value):
        return np.nan, ""
    if isinstance(value, np.timedelta64) or not isinstance(value, Real | Decimal | np.bool_):
        return None, ""
    try:
        return float(value), ""
    except OverflowError:
        return np.inf, ""
