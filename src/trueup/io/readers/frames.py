"""Data frames of many kinds as a `Table`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.core.libraries import loaded
from trueup.errors import MOST_NAMES, AnswersError, listing, quoted
from trueup.io.columns import choose
from trueup.io.readers.answer_column import PLAIN_RULES, AnswerRules
from trueup.io.readers.assemble import read_long
from trueup.io.readers.source import Source
from trueup.io.series import Series, library

if TYPE_CHECKING:
    from trueup.io.table import Table


def read_frame(
    frame: object,
    *,
    question: str = "question",
    worker: str = "worker",
    answer: str = "answer",
    panel: str | None = None,
    numbers: Sequence[str] = (),
    rules: AnswerRules = PLAIN_RULES,
) -> Table:
    """Read the answers in a data frame.

    Parameters
    ----------
    frame
        A pandas or polars frame (lazy ones too), a pyarrow Table or RecordBatch, a DuckDB
        relation, a dict of columns of equal length, or any frame narwhals can read.
    question, worker, answer
        Names of these columns. Where a default name is not there, "task" stands in for
        "question" and "label" for "answer".
    panel
        Column that tells independent problems apart, if any.
    numbers
        Further columns to read as numbers.
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
    source = open_frame(frame)
    roles = choose(
        source.names,
        question=question,
        worker=worker,
        answer=answer,
        panel=panel,
        numbers=numbers,
    )
    return read_long(source, roles, rules)


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
        return _source("pandas", list(frame.columns), frame.__getitem__)
    if polars is not None and isinstance(frame, polars.DataFrame):
        # By position and without their names: one such as "^a$" would be taken for a pattern, even by methods of the
        # column itself.
        names = frame.columns
        return _source("polars", names, lambda name: frame.to_series(names.index(name)).alias(""))
    if pyarrow is not None and isinstance(frame, pyarrow.Table | pyarrow.RecordBatch):
        return _source("pyarrow", frame.schema.names, frame.column)
    if duckdb is not None and isinstance(frame, duckdb.DuckDBPyRelation):
        load = partial(_load_relation, frame)
        return Source(frame.columns, load, "frame", kind="duckdb", ordered=False)
    if isinstance(frame, Mapping):
        return Source(list(frame), partial(_load_mapping, frame), "frame", kind="array")
    return open_with_narwhals(frame)


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


def _load_relation(relation: Any, names: Sequence[str], _ids: Collection[str]) -> dict[str, Series]:
    quoted_names = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
    table = relation.project(quoted_names).to_arrow_table()
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


def array_of(values: list[object]) -> Series:
    """Make an array of a list without turning 1 into "1", truncating texts or rounding whole numbers."""
    kinds = {int: "iu", float: "f", bool: "b"}
    types = set(map(type, values))
    if len(types) == 1 and (kind := types.pop()) in kinds:
        array = np.array(values)
        # Whole numbers that fit no common integer type, such as -1 and 2**64 - 1, become fractions or objects.
        if array.dtype.kind in kinds[kind]:
            return array
    return np.fromiter(values, dtype=object, count=len(values))
