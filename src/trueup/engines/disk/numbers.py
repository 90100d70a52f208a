"""Columns of a file as numbers; what is none makes its row malformed, and stops nothing."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trueup.core.libraries import need
from trueup.errors import MOST_ROWS, AnswersError, quoted
from trueup.io.number_text import MISSING_TEXTS, Writing
from trueup.io.numbers import Read, clean_arrow_texts, from_arrow, from_texts
from trueup.io.readers.answer_column import LARGEST_ANSWER, AnswerRules

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


class Checked(NamedTuple):
    """Numbers, which rows hold something else, what the first of these hold, and how often each unit was there."""

    numbers: Floats
    wrong: Bools
    cells: list[Cell]
    units: Counter[str]


def checked_numbers(column: str, series: Any, rules: AnswerRules, look: Bools | None) -> Checked:
    """Read numbers; tell which rows hold something else, or something that is not valid."""
    numbers, bad, units = read_numbers(series, column, rules.writing)
    units = units or Counter()
    wrong = ~(np.abs(numbers) <= LARGEST_ANSWER) & ~np.isnan(numbers)
    if bad is not None:
        wrong |= bad
    outside = rules.outside(numbers)
    if outside is not None:
        wrong |= outside
    if look is not None:
        wrong &= look
    if not wrong.any():
        return Checked(numbers, wrong, [], units)
    cells = []
    for row in np.flatnonzero(wrong)[:MOST_ROWS].tolist():
        if bad is not None and bad[row]:
            fault = NO_NUMBER
        elif np.isinf(numbers[row]):
            fault = "is infinite"
        elif outside is not None and outside[row]:
            fault = f"is {rules.range_in_words}"
        else:
            fault = f"is beyond ±{LARGEST_ANSWER:g}"
        cells.append(Cell(row, column, series[row].as_py(), fault))
    return Checked(numbers, wrong, cells, units)


def read_numbers(series: Any, column: str, writing: Writing) -> Read:
    """Read a column as numbers, NaN where there is none, and tell which values are something else.

    By the rules of `trueup.io.numbers`, but for one thing: text that is no number stops nothing.
    """
    pyarrow = need("pyarrow", "files")
    types = pyarrow.types
    if types.is_dictionary(series.type):
        series = series.cast(series.type.value_type)
    if not (types.is_string(series.type) or types.is_large_string(series.type)):
        read = from_arrow(pyarrow.chunked_array([series]))
        if read is None:
            raise AnswersError(
                f"Column {quoted(column)}: holds {quoted(str(series.type))} values, not numbers. Convert them first."
            )
        return read
    if not writing.plain:
        return from_arrow(pyarrow.chunked_array([series]), writing) or from_texts(series, writing)
    clean, bad = clean_arrow_texts(series), None
    if clean is None:
        clean, bad = _mixed(series)
    return Read(np.asarray(clean.fill_null(np.nan)), bad)


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
