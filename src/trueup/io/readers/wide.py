"""Wide tables: a row per question and a column per worker, or the other way round."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trueup.core.arrays import compact
from trueup.core.libraries import loaded
from trueup.errors import MOST_NAMES, AnswersError, listing, missing_column, option, quoted
from trueup.io.columns import IdNames, check_titles
from trueup.io.encode import encode
from trueup.io.readers.answer_column import PLAIN_RULES, AnswerReader, AnswerRules
from trueup.io.readers.assemble import coded_ids, row_names
from trueup.io.readers.no_workers import check_last_row, check_sums, tell_apart
from trueup.io.rejects import Reject, Rejects
from trueup.io.series import array_of, concat, take, to_list
from trueup.io.table import CompositeIds, Ids, Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from trueup.core.arrays import Indices
    from trueup.io.readers.source import Source
    from trueup.io.series import Series


@dataclass(frozen=True)
class Wide:
    """How a wide table is laid out.

    Attributes
    ----------
    rows
        What a row is, "question" or "worker"; a column is the other.
    ids
        Columns with the ids of the rows; none: they are numbered.
    panel
        Column that tells independent problems apart, if any.
    cells
        The columns of answers.
    """

    rows: str
    ids: tuple[str, ...]
    panel: str | None
    cells: list[str]

    @property
    def id_names(self) -> list[str]:
        """The columns that hold ids."""
        return [*self.ids, *([] if self.panel is None else [self.panel])]

    @property
    def names(self) -> list[str]:
        """All columns."""
        return [*self.id_names, *self.cells]

    @property
    def columns(self) -> str:
        """What a column is."""
        return "worker" if self.rows == "question" else "question"

    @property
    def id_titles(self) -> IdNames:
        """What results call questions and workers: a column of ids has a name, a row of them has none."""
        titles = tuple(str(name) for name in self.ids if str(name).strip())
        if self.rows == "question":
            return IdNames(question=titles or ("question",))
        return IdNames(worker=titles[0] if titles else "worker")

    def __str__(self) -> str:
        return f"one row per {self.rows} and one column per {self.columns}"


def check_wide(layout: Wide, found: Sequence[object], numbers: Sequence[str]) -> None:
    """Check that a table can be read in a way that the caller asked for."""
    for argument, name in (*((layout.rows, name) for name in layout.ids), ("panel", layout.panel)):
        if name is not None and name not in found:
            raise missing_column(name, found, argument)
    twice = [name for name, count in Counter(found).items() if count > 1]
    if twice:
        raise AnswersError(
            f"Column {quoted(twice[0])}: there are several columns of this name, and the table "
            f"was read as {layout}. Rename all but one."
        )
    if layout.panel is not None and layout.panel in layout.ids:
        raise AnswersError(
            f"Column {quoted(layout.panel)}: asked for as {layout.rows} and as panel. "
            "Give each its own column."
        )
    if numbers:
        raise AnswersError(
            f"Column {quoted(numbers[0])}: the table was read as {layout}, which has no further "
            "number for each answer. Give one row per answer, or known variances as a mapping."
        )
    if not layout.cells:
        raise AnswersError(
            f"there is no column of answers besides {listing(layout.id_names, MOST_NAMES)}, and "
            f"the table was read as {layout}.",
            remedy="Pass " + option("wide", False) + " for one row per answer.",
        )


def read_wide(
    source: Source,
    layout: Wide,
    columns: Mapping[str, Series] | None = None,
    rules: AnswerRules = PLAIN_RULES,
) -> Table:
    """Read a wide table; `columns` are those that were fetched already."""
    if source.differs:
        raise AnswersError(source.differs)
    with source.named():
        check_titles(layout.id_titles)
    if columns is None or any(name not in columns for name in layout.names):
        columns = source.fetch(layout.names, layout.id_names)
    with source.named():
        reader = AnswerReader(rules)
        matrix = np.column_stack(_numbers(columns, layout, reader))
        if layout.rows == "question":
            _check_workers(columns, matrix, layout)
        return _table(columns, matrix, layout, source, reader)


def _check_workers(
    columns: Mapping[str, Series], matrix: NDArray[np.float64], layout: Wide
) -> None:
    """Check that columns are workers and rows questions, as far as names and values say."""
    check_sums(layout.cells, matrix)
    if len(layout.ids) == 1 and len(matrix):
        series = columns[layout.ids[0]]
        check_last_row(to_list(take(series, np.array([len(matrix) - 1])))[0], matrix)
    tell_apart(layout.cells)


def _numbers(
    columns: Mapping[str, Series], layout: Wide, reader: AnswerReader
) -> list[NDArray[np.float64]]:
    """Read the columns of answers as numbers."""
    read = []
    for name in layout.cells:
        try:
            read.append(reader.read(columns[name], name))
        except AnswersError as error:
            ids = "" if layout.ids else ", and " + option(layout.rows) + " names a column of ids"
            rows = option("wide", False) + " reads one row per answer" + ids + "."
            raise error.advised(
                error.remedy, f"The table was read as {layout}; " + rows
            ) from error.__cause__
    return read


def _table(
    columns: Mapping[str, Series],
    matrix: NDArray[np.float64],
    layout: Wide,
    source: Source,
    reader: AnswerReader,
) -> Table:
    """Turn rows and columns into answers; an empty cell is no answer."""
    given = ~np.isnan(matrix)
    row, column = np.nonzero(given)
    if not len(row):
        raise AnswersError(
            f"no answers, all {matrix.size} cells are empty. The table was read as {layout}."
        )
    keep: NDArray[np.bool_] = np.asarray(given.any(axis=1))
    # Rows without an answer are dropped, and those after them move up.
    position = (np.cumsum(keep) - 1)[row]

    def coded(*names: str) -> tuple[Indices, Ids]:
        chosen = {name: columns[name] for name in names}
        codes, ids = coded_ids(chosen, None if keep.all() else keep, source)
        return codes[position], ids

    empty_rows: Ids | None = None
    if not layout.ids:
        row_code, numbers = compact(row, len(matrix))
        by_row: tuple[Indices, Ids] = row_code, Ids(numbers)
        if not keep.all():
            empty_rows = Ids(np.flatnonzero(~keep))
    else:
        by_row = coded(*layout.ids)
        if not keep.all():
            by_row, empty_rows = _with_empty_rows(by_row, columns, layout, ~keep, source)
    column_code, used = compact(column, matrix.shape[1])
    answered = np.isin(np.arange(len(layout.cells)), used)
    header = _header_ids(list(layout.cells), source)
    by_column = column_code, header.take(used)
    empty_columns = None if answered.all() else header.take(np.flatnonzero(~answered))
    panel, panel_ids = (None, None) if layout.panel is None else coded(layout.panel)
    by_question = layout.rows == "question"
    question, worker = (by_row, by_column) if by_question else (by_column, by_row)
    unanswered, idle = (empty_rows, empty_columns) if by_question else (empty_columns, empty_rows)
    return Table(
        question=question[0],
        worker=worker[0],
        answer=matrix[row, column],
        row=row,
        panel=panel,
        question_ids=question[1],
        worker_ids=worker[1],
        panel_ids=panel_ids,
        n_rows=len(row) + len(reader.aside),
        kind=source.kind,
        ordered=source.ordered,
        names=layout.id_titles,
        # A question of one panel may have answers in another.
        unanswered=unanswered if panel is None else None,
        rejects=_rejects(columns, layout, source, reader),
        doubtful=tuple(reader.doubtful.most_common()),
        unit=reader.unit,
        dropped_workers=() if idle is None else tuple(idle.tolist()),
    )


def _rejects(
    columns: Mapping[str, Series], layout: Wide, source: Source, reader: AnswerReader
) -> Rejects:
    """Name the cells that were set aside by their row and column."""
    aside = sorted(reader.aside, key=lambda each: each.row)
    rows = [each.row for each in aside]
    places = source.places(rows) if rows else []
    named = []
    for each, place, name in zip(aside, places, row_names(columns, layout.ids, rows), strict=True):
        question, worker = (name, each.column) if layout.rows == "question" else (each.column, name)
        named.append(Reject(each.row, place, question, worker, each.value, each.why))
    return Rejects.of(named) if named else Rejects()


def _with_empty_rows(
    by_row: tuple[Indices, Ids],
    columns: Mapping[str, Series],
    layout: Wide,
    empty: NDArray[np.bool_],
    source: Source,
) -> tuple[tuple[Indices, Ids], Ids | None]:
    """Find the ids of rows without answers, in the type that they and all others have together."""
    codes, ids = by_row
    present = empty.copy()
    for name in layout.ids:
        present[empty] &= encode(columns[name], column=name, keep=empty).codes >= 0
    if not present.any():
        return by_row, None
    if isinstance(ids, CompositeIds):
        _, more = coded_ids({name: columns[name] for name in layout.ids}, present, source)
    else:
        (name,) = layout.ids
        first = encode(columns[name], column=name, keep=~empty, by_id=not source.ordered).first_rows
        last = encode(columns[name], column=name, keep=present).first_rows
        series = columns[name]
        settled = Ids(source.settle(name, concat(take(series, first), take(series, last))))
        ids = settled.take(np.arange(len(first)))
        more = settled.take(np.arange(len(first), len(first) + len(last)))
    fresh = np.flatnonzero(ids.index_of(more) < 0)
    return (codes, ids), more.take(fresh) if len(fresh) else None


def _header_ids(names: list[str], source: Source) -> Ids:
    """Return names of columns as ids, by the rule for ids in this kind of file."""
    pyarrow = loaded("pyarrow")
    if source.untyped and pyarrow is not None:
        return Ids(source.settle("", pyarrow.array(names, pyarrow.string())))
    return Ids(array_of(list(names)))
