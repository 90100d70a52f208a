"""Columns of a file as numbers; what is none makes its row malformed, and stops nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trueup.core.libraries import need
from trueup.errors import MOST_ROWS, AnswersError, quoted
from trueup.io.numbers import MISSING_TEXTS, clean_arrow_texts, from_arrow, from_texts
from trueup.io.readers.assemble import LARGEST_ANSWER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trueup.core.arrays import Bools, Floats
    from trueup.engines.disk.files import File

# What `trueup.io.numbers` calls a number, for text without spaces and capitals.
NUMBER = r"^(?:[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|[+-]?inf(?:inity)?)$"
NO_NUMBER = "is not a number"
NO_ID = "is missing"


class Cell(NamedTuple):
    """A value that makes its row malformed."""

    row: int
    column: str
    value: object
    fault: str


def checked_numbers(
    column: str, series: Any, decimal: str | None, look: Bools | None
) -> tuple[Floats, Bools, list[Cell]]:
    """Read numbers; tell which rows hold something else, and what the first of these hold."""
    numbers, bad = read_numbers(series, column, decimal)
    wrong = ~(np.abs(numbers) <= LARGEST_ANSWER) & ~np.isnan(numbers)
    if bad is not None:
        wrong |= bad
    if look is not None:
        wrong &= look
    if not wrong.any():
        return numbers, wrong, []
    cells = []
    for row in np.flatnonzero(wrong)[:MOST_ROWS].tolist():
        if bad is not None and bad[row]:
            fault = NO_NUMBER
        elif np.isinf(numbers[row]):
            fault = "is infinite"
        else:
            fault = f"is beyond ±{LARGEST_ANSWER:g}"
        cells.append(Cell(row, column, series[row].as_py(), fault))
    return numbers, wrong, cells


def read_numbers(series: Any, column: str, decimal: str | None) -> tuple[Floats, Bools | None]:
    """Read a column as numbers, NaN where there is none, and tell which values are something else.

    By the rules of `trueup.io.numbers`, but for one thing: text that is no number stops nothing.
    """
    pyarrow, compute = need("pyarrow", "files"), need("pyarrow.compute", "files")
    types = pyarrow.types
    if types.is_dictionary(series.type):
        series = series.cast(series.type.value_type)
    if not (types.is_string(series.type) or types.is_large_string(series.type)):
        read = from_arrow(pyarrow.chunked_array([series]))
        if read is None:
            raise AnswersError(
                f"Column {quoted(column)}: holds {quoted(str(series.type))} values, not numbers. Convert them first."
            )
        return read.numbers, read.bad
    pointed = None
    if decimal == ",":
        # A point that is there already could mean anything.
        pointed = (
            compute.match_substring(series, ".").fill_null(False).to_numpy(zero_copy_only=False)
        )
        series = compute.replace_substring_regex(series, r"^([^,]*),([^,]*)$", r"\1.\2")
    clean, bad = clean_arrow_texts(series), None
    if clean is None:
        clean, bad = _mixed(series)
    if pointed is not None and pointed.any():
        bad = pointed if bad is None else bad | pointed
    return np.asarray(clean.fill_null(np.nan)), bad


def _mixed(series: Any) -> tuple[Any, Bools | None]:
    """Read text of which some is no number."""
    pyarrow, compute = need("pyarrow", "files"), need("pyarrow.compute", "files")
    texts = compute.utf8_lower(compute.utf8_trim_whitespace(series))
    number = compute.match_substring_regex(texts, NUMBER).fill_null(False)
    mark = compute.is_in(texts, pyarrow.array([*MISSING_TEXTS, None], type=texts.type))
    bad = compute.invert(compute.or_(number, mark)).to_numpy(zero_copy_only=False)
    try:
        only = compute.if_else(number, texts, pyarrow.scalar(None, texts.type))
        return compute.cast(only, pyarrow.float64()), bad
    except pyarrow.ArrowInvalid:
        read = from_texts(series)
        return pyarrow.array(read.numbers), read.bad


def examples_of(file: File, cells: Sequence[Cell]) -> list[str]:
    """Name malformed values for people."""
    return [
        f"{file.label}: {file.place(cell.row, cell.column, cell.value)}: {quoted(cell.column)} "
        f"{cell.fault}{'' if cell.value is None else f' ({quoted(cell.value)})'}"
        for cell in cells
    ]
