"""Several sources joined into one table, one below the other."""

from __future__ import annotations

import bisect
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.core.libraries import need
from trueup.errors import MOST_NAMES, AnswersError, listing, quoted
from trueup.io.readers.frames import array_of
from trueup.io.readers.python_values import id_array
from trueup.io.series import dtype_name, library, to_list

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from trueup.io.readers.source import Source
    from trueup.io.series import Series


def join_sources(sources: Sequence[Source], label: str) -> Source:
    """Put sources of one family below one another; columns go by name.

    Raises
    ------
    AnswersError
        When one of them is of another family.
    """
    first = sources[0]
    for source in sources:
        if source.family != first.family:
            raise AnswersError(
                f"{source.label}: is {source.family}, while {_inside(first)} is {first.family}. "
                "Read files of one format at a time."
            )
    others = [source for source in sources if set(source.names) != set(first.names)]
    ends: list[int] = []  # where the rows of each source end, known once they are fetched

    def fetch(names: Sequence[str], ids: Collection[str]) -> dict[str, Series]:
        parts = []
        for source in sources:
            _check_alike(source, first, names)
            parts.append(source.fetch(names, ids))
        ends[:] = np.cumsum([len(part[names[0]]) for part in parts]).tolist()
        return {
            name: _stack(name, [part[name] for part in parts], sources, name in ids)
            for name in names
        }

    def place(row: int) -> str:
        at = bisect.bisect_right(ends, row)
        if at == len(ends):
            return ""
        inside = row - (ends[at - 1] if at else 0)
        return f"{sources[at].place(inside) or f'row {inside}'} of {_inside(sources[at])}"

    differs = f"{others[0].label}: {_difference(others[0], first)}" if others else ""
    return replace(first, label=label, fetch=fetch, place=place, differs=differs)


def _inside(source: Source) -> str:
    """Name a source within a sentence."""
    return source.label.removeprefix("File ")


def _difference(source: Source, first: Source) -> str:
    more = [name for name in source.names if name not in set(first.names)]
    less = [name for name in first.names if name not in set(source.names)]
    found = "has" if more else "lacks"
    return (
        f"{found} the columns {listing(more or less, MOST_NAMES)}, unlike {_inside(first)}. Give all "
        "files the same columns."
    )


def _check_alike(source: Source, first: Source, names: Sequence[str]) -> None:
    times = Counter(source.names)
    for name in names:
        if times[name] == 1:
            continue
        found = f"has {times[name]} columns" if times[name] else "has no column"
        raise AnswersError(
            f"{source.label}: {found} {quoted(name)}, unlike {_inside(first)}. Its columns are "
            f"{listing(source.names, MOST_NAMES)}. Give all files the same columns."
        )


def _stack(name: str, parts: list[Series], sources: Sequence[Source], is_id: bool) -> Series:
    if library(parts[0]) == "numpy":
        values = [value for part in parts for value in to_list(part)]
        return id_array(name, values) if is_id else array_of(values)
    pyarrow = need("pyarrow", "files")
    types = pyarrow.types
    if len({part.type for part in parts}) > 1:
        parts = [
            part.cast(part.type.value_type) if types.is_dictionary(part.type) else part
            for part in parts
        ]
    tables: list[Any] = [pyarrow.table({name: part}) for part in parts]
    for i, table in enumerate(tables):
        try:
            # Numbers of several widths become the widest; a column of nulls is of any type.
            pyarrow.concat_tables(
                [tables[0].slice(0, 0), table.slice(0, 0)], promote_options="permissive"
            )
        except pyarrow.ArrowException as error:
            raise AnswersError(
                f"{sources[i].label}: Column {quoted(name)}: holds {quoted(dtype_name(parts[i]))} "
                f"values, in {_inside(sources[0])} {quoted(dtype_name(parts[0]))}. Give all files "
                "the same types."
            ) from error
    try:
        return pyarrow.concat_tables(tables, promote_options="permissive").column(0)
    except pyarrow.ArrowException as error:
        raise AnswersError(
            f"{sources[0].label}: Column {quoted(name)}: the files hold values of several types. "
            "Give all files the same types."
        ) from error
