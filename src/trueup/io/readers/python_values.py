"""Columns that are lists of Python objects, from formats whose values have types."""

from __future__ import annotations

from datetime import date, time, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import MOST_ROWS, AnswersError, bad_rows, quoted
from trueup.io.encode import is_missing
from trueup.io.readers.source import Source
from trueup.io.series import array_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from trueup.io.series import Series

EXACT = 2**53
LARGEST = 2**63


def listed_source(
    family: str,
    columns: Mapping[str, list[Any]],
    *,
    names: list[str] | None = None,
    place: Callable[[int], str] = lambda _row: "",
    counting: str = "",
    ordered: bool = True,
) -> Source:
    """Return a source of columns that are already in memory."""
    return Source(
        names=list(columns) if names is None else names,
        load=partial(_load, columns),
        family=family,
        place=place,
        counting=counting,
        ordered=ordered,
    )


def _load(
    columns: Mapping[str, list[Any]], names: Sequence[str], ids: Collection[str]
) -> dict[str, Series]:
    return {
        name: id_array(name, columns[name]) if name in ids else _plain(name, columns[name])
        for name in names
    }


def _plain(name: str, values: list[Any]) -> Series:
    """Return values as an array; raise an error for lists and objects among them."""
    nested = {list, dict}
    if not nested.isdisjoint(map(type, values)):
        rows = [row for row, value in enumerate(values) if type(value) in nested]
        raise bad_rows(
            name,
            rows,
            len(values),
            ("is nested", "are nested"),
            "Give one plain value each: take what is inside lists and objects out.",
            [values[row] for row in rows[:MOST_ROWS]],
        )
    return array_of(values)


def id_array(name: str, values: list[Any]) -> Series:
    """Return ids of one type as an array; ids of several types become text.

    Raises
    ------
    AnswersError
        When a number and a text would become the same id.
    """
    array = _plain(name, values)
    if array.dtype != object:
        return array
    kinds = {type(value) for value in values} - {type(None)}
    if kinds == {str}:
        return array
    if kinds <= {int, float}:
        if kinds == {int} and all(-LARGEST <= v < LARGEST for v in values if v is not None):
            return array
        if all(v is None or is_missing(v) or abs(v) <= EXACT for v in values):
            return np.array([np.nan if v is None else v for v in values], dtype=np.float64)
    elif len(kinds) <= 1:
        return array
    return _as_texts(name, values)


def _as_texts(name: str, values: list[Any]) -> Series:
    texts = np.fromiter(map(_text_of, values), dtype=object, count=len(values))
    was_text: dict[str, bool] = {}
    for value, text in zip(values, texts, strict=True):
        is_text = isinstance(value, str)
        if text is not None and was_text.setdefault(text, is_text) != is_text:
            raise AnswersError(
                f"Column {quoted(name)}: holds {quoted(text)} both as text and as a number. "
                "Write it in one way."
            )
    return texts


def _text_of(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    if is_missing(value):
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, int) and abs(value) >= 10**4000:
        return hex(value)  # Python does not write so many digits
    return str(value) if isinstance(value, bool | int | float | timedelta) else repr(value)
