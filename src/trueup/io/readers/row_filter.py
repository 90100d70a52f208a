"""Rows of a table that are kept: those with certain values in certain columns, or those that a reader can use."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trueup.errors import MOST_NAMES, AnswersError, listing, missing_column, quoted
from trueup.io.encode import encode
from trueup.io.series import take, to_list

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from numpy.typing import NDArray

    from trueup.io.readers.source import Source
    from trueup.io.series import Series

# A number without superfluous zeros in front: "007" is a name.
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d{1,3})?")


class Condition(NamedTuple):
    """A column, and the texts of which its values must be one."""

    column: str
    texts: tuple[str, ...]


def check_where(given: Any) -> tuple[str, ...] | None:
    """Return conditions as texts "column=value"; a mapping may have several values for a column.

    Examples
    --------
    >>> check_where({"kind": "film", "year": [2020, 2021]})
    ('kind=film', 'year=2020', 'year=2021')
    """
    if given is None:
        return None
    if isinstance(given, Mapping):
        pairs = [(name, value) for name, values in given.items() for value in _several(values)]
        texts = tuple(f"{name}={_text(value)}" for name, value in pairs)
        plain = all(isinstance(name, str) and _is_plain(value) for name, value in pairs)
    else:
        texts = (given,) if isinstance(given, str) else tuple(_several(given))
        plain = all(isinstance(text, str) and "=" in text for text in texts)
    if not texts or not plain:
        raise AnswersError(
            f"found {quoted(given)}, must be a column, an equals sign and a value, such as kind=film, or a mapping "
            "from columns to values.",
            argument="where",
        )
    return texts


def keep_where(source: Source, where: Sequence[str] | None) -> Source:
    """Return a source with only those rows of another that meet all conditions.

    Several values for one column mean any of them.

    Raises
    ------
    AnswersError
        When a column is unknown, or, once columns are fetched, no row is left.
    """
    if not where:
        return source
    with source.named():
        conditions = _conditions(source.names, where)
    columns = [each.column for each in conditions]
    last: list[NDArray[np.int64]] = []

    def load(names: Sequence[str], ids: Collection[str]) -> dict[str, Series]:
        more = [name for name in columns if name not in names]
        loaded = source.load([*names, *more], [*ids, *more])
        rows = _meeting(loaded, conditions)
        last[:] = [rows]
        return {name: take(loaded[name], rows) for name in names}

    return _shown(source, load, lambda: last[0] if last else np.arange(0))


def keep_rows(source: Source, rows: NDArray[np.int64]) -> Source:
    """Return a source with these rows of another, which has an order."""

    def load(names: Sequence[str], ids: Collection[str]) -> dict[str, Series]:
        return {name: take(column, rows) for name, column in source.load(names, ids).items()}

    return _shown(source, load, lambda: rows)


def _shown(
    source: Source,
    load: Callable[[Sequence[str], Collection[str]], dict[str, Series]],
    rows_of: Callable[[], NDArray[np.int64]],
) -> Source:
    """Replace what loads the columns, and find the places of rows where they were before."""

    def places(rows: Sequence[int]) -> list[str]:
        kept = rows_of()
        return source.places([int(kept[row]) for row in rows])

    def place(row: int) -> str:
        kept = rows_of()
        return source.place(int(kept[row])) if row < len(kept) else ""

    counting = f"{source.counting or 'Rows are counted from 0'}, among those that are kept"
    if source.counting.endswith("kept"):
        counting = source.counting
    return replace(source, load=load, place=place, all_places=places, counting=counting)


def _several(values: Any) -> list[Any]:
    several = isinstance(values, Sequence | np.ndarray) and not isinstance(values, str | bytes)
    return list(values) if several else [values]


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | bool | int | float | date | time | np.generic)


def _conditions(names: Sequence[object], where: Sequence[str]) -> list[Condition]:
    """Split texts at an equals sign behind the name of a column; names may have such signs, too."""
    found: dict[str, list[str]] = {}
    for text in where:
        cuts = [place for place, character in enumerate(text) if character == "="]
        cut = next((place for place in cuts if text[:place] in names), None)
        if cut is None:
            raise missing_column(text[: cuts[0]], names, "").about("where")
        found.setdefault(text[:cut], []).append(text[cut + 1 :])
    for name in found:
        if sum(other == name for other in names) > 1:
            raise AnswersError(
                f"there are several columns {quoted(name)}.",
                argument="where",
                remedy="Rename all but one.",
            )
    return [Condition(name, tuple(texts)) for name, texts in found.items()]


def _meeting(columns: Mapping[str, Series], conditions: Sequence[Condition]) -> NDArray[np.int64]:
    """Return the rows that meet all conditions."""
    rows = np.arange(len(columns[conditions[0].column]))
    for condition in conditions:
        here = take(columns[condition.column], rows)
        codes, _, first = encode(here, column=condition.column)
        values = to_list(take(here, first))
        wanted = np.array([*(_is_one_of(each, condition.texts) for each in values), False])
        wanted[-1] = "" in condition.texts  # the code of a missing value is -1
        met = np.flatnonzero(wanted[codes])
        if not len(met):
            raise _nothing_left(condition, values, given=len(here) > 0)
        rows = rows[met]
    return rows


def _nothing_left(condition: Condition, values: list[object], *, given: bool) -> AnswersError:
    wanted = " or ".join(map(quoted, condition.texts))
    there = f"The values there are {listing(values, MOST_NAMES)}." if values else ""
    return AnswersError(
        f"column {quoted(condition.column)} is {wanted} in no row"
        + (" that is left." if given else ", and there are no rows."),
        argument="where",
        remedy=there or "Leave it out.",
    )


def _is_one_of(value: object, texts: Sequence[str]) -> bool:
    own = _text(value)
    return own in texts or (
        _NUMBER.fullmatch(own) is not None
        and any(_NUMBER.fullmatch(text) and float(text) == float(own) for text in texts)
    )


def _text(value: object) -> str:
    """Return a value as a file of text would have it."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None:
        return ""
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value).lower() if isinstance(value, bool) else str(value)
