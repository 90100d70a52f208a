"""Data frames of many kinds as a `Table`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.core.libraries import loaded
from trueup.errors import MOST_NAMES, AnswersError, listing, quoted
from trueup.io.columns import SQL_TYPES
from trueup.io.readers.answer_column import PLAIN_RULES, AnswerRules
from trueup.io.readers.row_filter import check_where, keep_where
from trueup.io.readers.shape import read_table
from trueup.io.readers.source import Source
from trueup.io.series import Series, array_of, check_text, library

if TYPE_CHECKING:
    from trueup.io.table import Table


def read_frame(
    frame: object,
    *,
    question: str | Sequence[str] = "question",
    worker: str = "worker",
    answer: str = "answer",
    panel: str | None = None,
    numbers: Sequence[str] = (),
    wide: bool | str | None = None,
    where: Any = None,
    question_data: Sequence[str] = (),
    rules: AnswerRules = PLAIN_RULES,
) -> Table:
    """Read the answers in a data frame.

    Parameters
    ----------
    frame
        A pandas or polars frame (lazy ones too), a pyarrow Table or RecordBatch, a DuckDB
        relation, a dict of columns of equal length, or any frame narwhals can read.
    question, worker, answer
        Names of these columns; several columns may name a question together. Where a default name is not there, other
        names that people use are recognised, see `trueup.io.columns`.
    panel
        Column that tells independent problems apart, if any.
    numbers
        Further columns to read as numbers.
    wide
        True or "questions": one row per question and one column per worker; "workers": one row per
        worker and one column per question; False: one row per answer. By default found from names and values; where
        both are possible that is an error.
    where
        Column -> value, or several: only rows with one of them are read.
    question_data
        Columns that say something about the questions: in a wide table they are no workers.
    rules
        What is taken for an answer: how numbers are written, which are valid, and whether others are set aside.

    Raises
    ------
    AnswersError
        When it is no data frame, or does not hold usable answers.

    Examples
    --------
    >>> table = read_frame({"question": ["a", "a", "b"], "worker": [7, 8, 7], "answer": [1, 3, 2]})
    >>> table.question.tolist(), table.worker_ids.tolist()
    ([0, 0, 1], [7, 8])
    """
    return read_table(
        keep_where(open_frame(frame), check_where(where)),
        question=question,
        worker=worker,
        answer=answer,
        panel=panel,
        numbers=numbers,
        wide=wide,
        question_data=question_data,
        rules=rules,
    )


def open_frame(frame: Any) -> Source:
    """Find out what kind of frame this is; its data are not read yet.

    Common frames are opened by their own library: narwhals rejects frames with two columns of one name, even if nobody
    asks for these, and relations with a column named "*". Lazy and other frames are left to narwhals.
    """
    narwhals = loaded("narwhals")
    if narwhals is not None:
        frame = narwhals.to_native(frame, pass_through=True)
    pandas, polars, pyarrow, duckdb = map(loaded, ("pandas", "polars", "pyarrow", "duckdb"))
    if pandas is not None and isinstance(frame, pandas.DataFrame):
        return _pandas_source(pandas, frame)
    if polars is not None and isinstance(frame, polars.DataFrame):
        # By position and without their names: one such as "^a$" would be taken for a pattern, even by methods of the
        # column itself.
        names = frame.columns
        return _source("polars", names, lambda name: frame.to_series(names.index(name)).alias(""))
    if pyarrow is not None and isinstance(frame, pyarrow.Table | pyarrow.RecordBatch):
        names = frame.schema.names
        return _source("pyarrow", names, lambda name: check_text(name, frame.column(name)))
    if duckdb is not None and isinstance(frame, duckdb.DuckDBPyRelation):
        load, types = partial(_load_relation, frame), sql_types(frame)
        return Source(frame.columns, load, "frame", kind="duckdb", ordered=False, sql_types=types)
    if isinstance(frame, Mapping):
        return Source(list(frame), partial(_load_mapping, frame), "frame", kind="array")
    return open_with_narwhals(frame)


def _pandas_source(pandas: Any, frame: Any) -> Source:
    """Open a pandas frame; levels of its index that have names are columns, and labels of rows are their ids."""
    names = list(frame.columns)
    index = frame.index
    levels = {
        name: number
        for number, name in enumerate(index.names)
        if isinstance(name, str) and name not in names and list(index.names).count(name) == 1
    }
    labels = next(iter(levels), None) if index.nlevels == 1 else None
    plain = isinstance(index, pandas.RangeIndex) and (index.start, index.step) == (0, 1)
    if labels is None and index.nlevels == 1 and not plain and "" not in names:
        labels, levels = "", {**levels, "": 0}  # results give it a name

    def column(name: str) -> Series:
        if name in levels:
            values = index.get_level_values(levels[name])
            return pandas.Series(values.array, index=pandas.RangeIndex(len(index)))
        return frame[name]

    named = [name for name in levels if name in index.names]
    unnamed = names == list(range(len(names)))
    source = _source("pandas", [*named, *names], column)
    return replace(source, index=labels, unnamed=unnamed)


def _source(kind: str, names: list[str], column: Callable[[str], Series]) -> Source:
    def load(wanted: Sequence[str], _ids: Collection[str]) -> dict[str, Series]:
        return {name: column(name) for name in wanted}

    return Source(names, load, "frame", kind=kind)


def open_with_narwhals(frame: Any) -> Source:
    """Open a lazy frame, or a frame of some other library, by way of narwhals."""
    narwhals = import_module("narwhals")
    try:
        wrapped = narwhals.from_native(frame)
    except TypeError:
        raise AnswersError(
            f"Frame: found {quoted(type(frame).__name__)}, no data frame. Give a pandas or "
            "polars frame, a pyarrow table, a DuckDB relation or a dict of columns."
        ) from None
    lazy = isinstance(wrapped, narwhals.LazyFrame)
    every = wrapped.collect_schema().names()

    def load(names: Sequence[str], _ids: Collection[str]) -> dict[str, Series]:
        # A position, unlike a name, is never taken for a pattern.
        chosen = wrapped.select(narwhals.nth([every.index(name) for name in names]))
        return open_frame(chosen.collect() if lazy else chosen.to_pandas()).fetch(names)

    kind = "polars" if lazy and wrapped.implementation.is_polars() else "other"
    return Source(every, load, "frame", kind=kind, ordered=not lazy)


def sql_types(relation: Any) -> dict[str, str]:
    """Return the types that Arrow does not have of the columns of a relation, as DuckDB writes them."""
    types = {}
    for name, kind in zip(relation.columns, relation.types, strict=True):
        if kind.id == "enum":
            words = ", ".join("'" + word.replace("'", "''") + "'" for word in kind.children[0][1])
            types[name] = f"ENUM({words})"
        elif str(kind) in SQL_TYPES:
            types[name] = str(kind)
    return types


def _load_relation(relation: Any, names: Sequence[str], _ids: Collection[str]) -> dict[str, Series]:
    types, columns = sql_types(relation), []
    for name in names:
        column = '"' + name.replace('"', '""') + '"'
        # Of the others values change on their way to Arrow, without a word.
        plain = types.get(name, "ENUM").startswith(("ENUM", "HUGEINT", "JSON", "UUID"))
        columns.append(column if plain else f"CAST({column} AS VARCHAR) AS {column}")
    table = relation.project(", ".join(columns)).to_arrow_table()
    return dict(zip(names, table.columns, strict=True))


def _load_mapping(
    columns: Mapping[str, object], names: Sequence[str], _ids: Collection[str]
) -> dict[str, Series]:
    series = {name: _column_of(name, columns[name]) for name in names}
    lengths = {name: len(column) for name, column in series.items()}
    if len(set(lengths.values())) > 1:
        each = ", ".join(f"{quoted(name)} has {length}" for name, length in lengths.items())
        raise AnswersError(f"Columns {listing(names, MOST_NAMES)}: differ in length ({each}).")
    return series


def _column_of(name: str, values: Any) -> Series:
    """Return a column of a dict as a column of a library or a numpy array, its values unchanged."""
    pandas = loaded("pandas")
    if library(values) == "polars":
        return values.alias("")
    if library(values) != "numpy":
        return values
    if pandas is not None and isinstance(
        values, pandas.Index | pandas.api.extensions.ExtensionArray
    ):
        return pandas.Series(values)
    if isinstance(values, np.ma.MaskedArray):
        # As objects, so that masked values become None rather than the number behind the mask.
        hidden = np.ma.getmaskarray(values)
        values = values.data.astype(object)
        values[hidden] = None
    if isinstance(values, np.ndarray):
        if values.ndim == 1:
            return values
        found = f"an array of {values.ndim} dimensions"
    elif isinstance(values, Sequence) and not isinstance(values, str | bytes):
        return array_of(list(values))
    else:
        found = f"a single {quoted(type(values).__name__)}"
    raise AnswersError(
        f"Column {quoted(name)}: found {found}. Give a list or one-dimensional array."
    )
