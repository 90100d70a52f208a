"""Several files joined into one table, one below the other; checks that they fit together."""

from __future__ import annotations

import bisect
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from trueup.core.libraries import need
from trueup.errors import MOST_NAMES, AnswersError, listing, quoted
from trueup.io.readers.python_values import id_array
from trueup.io.series import array_of, library, to_list

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from trueup.io.readers.source import Source
    from trueup.io.series import Series


class InputFile(Protocol):
    """A file of answers, in memory or on disk."""

    @property
    def label(self) -> str:
        """What messages call it."""

    @property
    def names(self) -> list[str]:
        """Its columns."""

    @property
    def family(self) -> str:
        """The name of its format."""


def join_sources(sources: Sequence[Source], label: str) -> Source:
    """Put sources of one family below one another; columns go by name.

    Raises
    ------
    AnswersError
        When one of them is of another family.
    """
    check_one_format(sources)
    first = sources[0]
    others = [source for source in sources if set(source.names) != set(first.names)]
    ends: list[int] = []  # where the rows of each source end, known once they are loaded

    def load(names: Sequence[str], ids: Collection[str]) -> dict[str, Series]:
        check_columns(sources, names)
        parts = [source.fetch(names, ids) for source in sources]
        ends[:] = np.cumsum([len(part[names[0]]) for part in parts]).tolist()
        return {
            name: _stack(name, [part[name] for part in parts], sources, name in ids)
            for name in names
        }

    def place(row: int) -> str:
        number = bisect.bisect_right(ends, row)
        if number == len(ends):
            return ""
        inside = row - (ends[number - 1] if number else 0)
        return f"{sources[number].place(inside) or f'row {inside}'} of {_short(sources[number])}"

    differs = f"{others[0].label}: {_difference(others[0], first)}" if others else ""
    return replace(
        first,
        label=label,
        load=load,
        place=place,
        all_places=None,
        joined=True,
        differs=differs,
        coded=lambda _name: False,
    )


def check_one_format(files: Sequence[InputFile]) -> None:
    """Check that all files have the format of the first."""
    first = files[0]
    for file in files:
        if file.family != first.family:
            raise _fault(
                file,
                f"is {file.family}, while {_short(first)} is {first.family}. "
                "Read files of one format at a time.",
            )


def check_columns(files: Sequence[InputFile], names: Sequence[str]) -> None:
    """Check that each file has each of these columns once."""
    for file in files:
        times = Counter(file.names)
        for name in names:
            if times[name] != 1:
                found = f"has {times[name]} columns" if times[name] else "has no column"
                raise _fault(
                    file,
                    f"{found} {quoted(name)}, unlike {_short(files[0])}. Its columns are "
                    f"{listing(file.names, MOST_NAMES)}. Give all files the same columns.",
                )


def promoted_type(files: Sequence[InputFile], column: str, types: Sequence[Any]) -> Any:
    """Return the Arrow type that holds the values of a column in all files, given its type in each.

    Numbers of several widths become the widest; a column of nulls is of any type.
    """
    pyarrow = need("pyarrow", "files")
    schema = pyarrow.schema([(column, types[0])])
    for file, kind in zip(files, types, strict=True):
        try:
            schema = pyarrow.unify_schemas(
                [schema, pyarrow.schema([(column, kind)])], promote_options="permissive"
            )
        except pyarrow.ArrowException as error:
            raise _fault(
                file,
                f"Column {quoted(column)}: holds {quoted(str(kind))} values, in {_short(files[0])} "
                f"{quoted(str(schema.field(0).type))}. Give all files the same types.",
            ) from error
    return schema.field(0).type


def _fault(file: InputFile, message: str) -> AnswersError:
    error = AnswersError(message).labelled(file.label)
    error.source = file.label
    return error


def _short(file: InputFile) -> str:
    """Return the name of a file within a sentence."""
    return file.label.removeprefix("File ")


def _difference(source: Source, first: Source) -> str:
    more = [name for name in source.names if name not in set(first.names)]
    less = [name for name in first.names if name not in set(source.names)]
    found = "has" if more else "lacks"
    return (
        f"{found} the columns {listing(more or less, MOST_NAMES)}, unlike {_short(first)}. Give all "
        "files the same columns."
    )


def _stack(name: str, parts: list[Series], sources: Sequence[Source], is_id: bool) -> Series:
    if library(parts[0]) == "numpy":
        values = [value for part in parts for value in to_list(part)]
        return id_array(name, values) if is_id else array_of(values)
    pyarrow = need("pyarrow", "files")
    if len({part.type for part in parts}) > 1:
        parts = [
            part.cast(part.type.value_type) if pyarrow.types.is_dictionary(part.type) else part
            for part in parts
        ]
        promoted_type(sources, name, [part.type for part in parts])
    tables = [pyarrow.table({name: part}) for part in parts]
    try:
        return pyarrow.concat_tables(tables, promote_options="permissive").column(0)
    except pyarrow.ArrowException as error:
        raise _fault(
            sources[0],
            f"Column {quoted(name)}: the files hold values of several types. "
            "Give all files the same types.",
        ) from error
