"""Wide tables: a row per question and a column per worker, or the other way round."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trueup.core.arrays import compact
from trueup.core.libraries import loaded
from trueup.errors import MOST_NAMES, AnswersError, listing, missing_column, option, quoted
from trueup.io.columns import OTHER_NAMES, check_names
from trueup.io.readers.assemble import encode_ids
from trueup.io.readers.frames import array_of
from trueup.io.rejects import Reject, Rejects
from trueup.io.series import take, to_list
from trueup.io.table import Ids, Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from trueup.core.arrays import Indices
    from trueup.io.readers.answer_column import AnswerReader
    from trueup.io.readers.source import Source
    from trueup.io.series import Series

# A column with one of these names is not a worker: such a table has one answer per row, under other names.
# Compared without case, spaces and punctuation.
LONG_NAMES = frozenset(
    re.findall(
        r"\w+",
        """
        question task item object subject sample worker rater annotator judge source
        sensor user participant respondent forecaster expert answer label score rating
        value response estimate forecast prediction measurement truth gold time
        timestamp date year index row key name number weight variance std count n nr no
        q w id
        """,
    )
)
# Fewest columns of answers of a table that is taken for wide, with a column of ids and without.
FEWEST = 2
FEWEST_ALONE = 3


@dataclass(frozen=True)
class Wide:
    """How a wide table is laid out.

    Attributes
    ----------
    rows
        What a row is, "question" or "worker"; a column is the other.
    ids
        Column with the ids of the rows; None: they are numbered.
    panel
        Column that tells independent problems apart, if any.
    cells
        The columns of answers.
    guessed
        Whether the caller did not say that the table is wide.
    """

    rows: str
    ids: str | None
    panel: str | None
    cells: list[str]
    guessed: bool

    @property
    def id_names(self) -> list[str]:
        """The columns that hold ids."""
        return [name for name in (self.ids, self.panel) if name is not None]

    @property
    def names(self) -> list[str]:
        """All columns."""
        return [*self.id_names, *self.cells]

    @property
    def columns(self) -> str:
        """What a column is."""
        return "worker" if self.rows == "question" else "question"

    def __str__(self) -> str:
        return f"one row per {self.rows} and one column per {self.columns}"


def plan(
    wide: Any,
    found: Sequence[str],
    *,
    question: str,
    worker: str,
    answer: str,
    panel: str | None,
    numbers: Sequence[str],
) -> Wide | None:
    """Find out how a table is wide; return None if it is not.

    Parameters
    ----------
    wide
        True or "questions": one row per question; "workers": one row per worker; False: one row
        per answer; None: guess.
    found
        The columns of the table.
    question, worker, answer, panel, numbers
        The columns that the caller asks for.
    """
    if isinstance(wide, bool | np.bool_):
        wide = "questions" if wide else "no"
    if not isinstance(wide, str | None) or wide not in (None, "no", "questions", "workers"):
        raise AnswersError(
            f'found {quoted(wide)}, must be True, False, "questions" (one row per question) '
            'or "workers" (one row per worker).',
            argument="wide",
        )
    if wide == "no":
        return None
    check_names(found, (("question", question), ("worker", worker), ("answer", answer)))
    rows = "worker" if wide == "workers" else "question"
    ids: str | None = worker if rows == "worker" else question
    if ids not in found and ids == rows:
        other = OTHER_NAMES.get(rows)
        ids = other if other in found else None
    special = [name for name in (ids, panel) if name is not None]
    cells = [name for name in found if name not in special]
    layout = Wide(rows, ids, panel, cells, guessed=wide is None)
    if wide is None:
        named = worker != "worker" or answer != "answer" or bool(numbers)
        return None if named or not _looks_wide(layout, found) else layout
    _check(layout, found, numbers)
    return layout


def _looks_wide(layout: Wide, found: Sequence[str]) -> bool:
    fewest = FEWEST_ALONE if layout.ids is None else FEWEST
    if len(layout.cells) < fewest or any(count > 1 for count in Counter(found).values()):
        return False
    if any(name not in found for name in layout.id_names) or any(map(_is_long, layout.cells)):
        return False
    # A first line with numbers such as 3.5 is no header.
    return layout.ids is not None or not any(
        re.fullmatch(r"[+-]?\d*\.\d+", name) for name in layout.cells
    )


def _is_long(name: str) -> bool:
    plain = re.sub(r"[\W_]", "", name.casefold())
    return (
        not plain
        or plain in LONG_NAMES
        or re.search(r"(?:[a-z]I|[\W_]i|^I|^i)[Dd]$", name) is not None
    )


def _check(layout: Wide, found: Sequence[str], numbers: Sequence[str]) -> None:
    for argument, name in ((layout.rows, layout.ids), ("panel", layout.panel)):
        if name is not None and name not in found:
            raise missing_column(name, found, argument)
    twice = [name for name, count in Counter(found).items() if count > 1]
    if twice:
        raise AnswersError(
            f"Column {quoted(twice[0])}: there are several columns of this name, and the table "
            f"was read as {layout}. Rename all but one."
        )
    if layout.ids is not None and layout.ids == layout.panel:
        raise AnswersError(
            f"Column {quoted(layout.ids)}: asked for as {layout.rows} and as panel. "
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


def numbers_of(
    columns: Mapping[str, Series], layout: Wide, reader: AnswerReader
) -> tuple[dict[str, NDArray[np.float64]], dict[str, AnswersError]]:
    """Read the columns of answers as numbers; where the layout is a guess, also return why some are not numbers."""
    read, faults = {}, {}
    for name in layout.cells:
        try:
            read[name] = reader.read(columns[name], name)
        except AnswersError as error:
            faults[name] = error
            if not layout.guessed:
                ids = (
                    "" if layout.ids else ", and " + option(layout.rows) + " names a column of ids"
                )
                rows = option("wide", False) + " reads one row per answer" + ids + "."
                raise error.advised(
                    error.remedy, f"The table was read as {layout}; " + rows
                ) from error.__cause__
    return read, faults


def wide_table(
    columns: Mapping[str, Series],
    cells: Mapping[str, NDArray[np.float64]],
    layout: Wide,
    source: Source,
    reader: AnswerReader,
) -> Table:
    """Turn rows and columns into answers; an empty cell is no answer."""
    matrix = np.column_stack(list(cells.values()))
    given = ~np.isnan(matrix)
    row, column = np.nonzero(given)
    if not len(row):
        raise AnswersError(
            f"no answers, all {matrix.size} cells are empty. The table was read as {layout}."
        )
    keep: NDArray[np.bool_] = np.asarray(given.any(axis=1))
    # Rows without an answer are dropped, and those after them move up.
    position = (np.cumsum(keep) - 1)[row]

    def coded(name: str) -> tuple[Indices, Ids]:
        codes, ids = encode_ids(
            columns[name], name, None if keep.all() else keep, ordered=source.ordered
        )
        return codes[position], Ids(source.settle(name, ids.values))

    if layout.ids is None:
        row_code, numbers = compact(row, len(matrix))
        by_row: tuple[Indices, Ids] = row_code, Ids(numbers)
    else:
        by_row = coded(layout.ids)
    column_code, used = compact(column, matrix.shape[1])
    by_column = column_code, _header_ids([layout.cells[i] for i in used.tolist()], source)
    panel, panel_ids = (None, None) if layout.panel is None else coded(layout.panel)
    question, worker = (by_row, by_column) if layout.rows == "question" else (by_column, by_row)
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
        kind="file",
        ordered=source.ordered,
        rejects=_rejects(columns, layout, source, reader),
        doubtful=tuple(reader.doubtful.most_common()),
    )


def _rejects(
    columns: Mapping[str, Series], layout: Wide, source: Source, reader: AnswerReader
) -> Rejects:
    """Name the cells that were set aside by their row and column."""
    if not reader.aside:
        return Rejects()
    aside = sorted(reader.aside, key=lambda each: each.row)
    rows = [each.row for each in aside]
    ids: list[object] = list(rows)
    if layout.ids is not None:
        ids = to_list(take(columns[layout.ids], np.array(rows)))
    found = []
    for each, place, name in zip(aside, source.places(rows), ids, strict=True):
        question, worker = (name, each.column) if layout.rows == "question" else (each.column, name)
        found.append(Reject(each.row, place, question, worker, each.value, each.why))
    return Rejects.of(found)


class NotWide(NamedTuple):
    """Why a table that might be wide is not, and keywords with which it would be."""

    reason: str
    fixes: tuple[dict[str, Any], ...] = ()


def not_wide(
    columns: Mapping[str, Series], faults: Mapping[str, AnswersError], layout: Wide
) -> NotWide | None:
    """Explain why a table that might be wide is not: an id is in two rows, or there is text. None if it is wide."""
    commas = [name for name, error in faults.items() if getattr(error, "notation", False)]
    text = [name for name in faults if name not in commas]
    if len(layout.cells) - len(text) < FEWEST:
        return NotWide("")
    if text:
        name = ", or " + option(layout.rows, text[0]) + f" if it names the {layout.rows}s"
        return NotWide(
            f"It was not read as {layout}, since column {quoted(text[0])} does not hold numbers "
            "only: leave it out and pass "
            + option("wide", True)
            + ("" if layout.ids else name)
            + "."
        )
    if commas:
        where = f"in column {quoted(commas[0])}"
        reason = f"It was not read as {layout}, for values {where}. " + faults[commas[0]].remedy
        return NotWide(reason, faults[commas[0]].fixes)
    if layout.ids is None or layout.panel is not None:
        return None
    codes, ids = encode_ids(columns[layout.ids], layout.ids, None, ordered=True)
    if len(ids) == len(codes):
        return None
    return NotWide(
        f"It was not read as {layout}, since a {layout.rows} is in more than one row: pass "
        + option("wide", True)
        + " if that is intended."
    )


def _header_ids(names: list[str], source: Source) -> Ids:
    """Return names of columns as ids, by the rule for ids in this kind of file."""
    pyarrow = loaded("pyarrow")
    if source.untyped and pyarrow is not None:
        return Ids(source.settle("", pyarrow.array(names, pyarrow.string())))
    return Ids(array_of(list(names)))
