"""From a source to a `Table`, one row per answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trueup.errors import MOST_ROWS, AnswersError, bad_rows, quoted
from trueup.io.columns import check_titles, suggested
from trueup.io.encode import encode
from trueup.io.numbers import to_numbers
from trueup.io.series import Series, take
from trueup.io.table import CompositeIds, Ids, Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from trueup.core.arrays import Indices
    from trueup.io.columns import Roles
    from trueup.io.readers.source import Source

# The square of a larger answer, and so every variance, would overflow.
LARGEST_ANSWER = 1e150


def read_long(source: Source, roles: Roles) -> Table:
    """Read a table with one row per answer: ids as codes, answers and further columns as numbers.

    Rows without an answer are dropped first: their ids and further numbers are not checked.

    Raises
    ------
    AnswersError
        When no answer is left, or one of the columns cannot be used.
    """
    with source.named():
        check_titles(roles.id_titles)
    columns = source.fetch(roles.names, roles.id_names)
    with source.named():
        for name in (roles.answer, *roles.numbers):
            columns[name] = source.number(name, columns[name])
        return _assemble(columns, roles, source)


def _assemble(columns: Mapping[str, Series], roles: Roles, source: Source) -> Table:
    answer = read_answers(columns[roles.answer], roles.answer, argument="answer")
    n_rows = len(answer)
    missing = np.isnan(answer)
    n_missing = int(np.count_nonzero(missing))
    if n_missing == n_rows:
        found = f"all {n_rows} values are missing" if n_rows else "the table has 0 rows"
        raise AnswersError(
            f"Column {quoted(roles.answer)}: no answers, {found}. Give at least one answer."
        )
    keep = ~missing if n_missing else None

    def coded(*names: str) -> tuple[Indices, Ids]:
        return coded_ids({name: columns[name] for name in names}, keep, source)

    question, question_ids = coded(*roles.question)
    worker, worker_ids = coded(roles.worker)
    panel, panel_ids = (None, None) if roles.panel is None else coded(roles.panel)
    numbers = {
        name: _kept(to_numbers(columns[name], name, keep=keep), keep) for name in roles.numbers
    }
    return Table(
        question=question,
        worker=worker,
        answer=_kept(answer, keep),
        row=None if keep is None else np.flatnonzero(keep),
        panel=panel,
        numbers=numbers,
        question_ids=question_ids,
        worker_ids=worker_ids,
        panel_ids=panel_ids,
        n_rows=n_rows,
        n_missing=n_missing,
        kind=source.kind,
        ordered=source.ordered,
        names=roles.id_titles,
        suggested=suggested(name for name in source.names if name not in roles.names),
    )


def read_answers(series: Series, column: str, *, argument: str = "") -> NDArray[np.float64]:
    """Read a column of answers, NaN where there is none; raise an error for those that are too large."""
    answer = to_numbers(series, column, argument=argument)
    if len(answer) and max(-answer.min(), answer.max()) <= LARGEST_ANSWER:
        return answer  # found without a temporary array; with NaN, the check below decides
    too_large = np.flatnonzero(np.abs(answer) > LARGEST_ANSWER)
    if len(too_large):
        raise bad_rows(
            column,
            too_large.tolist(),
            len(answer),
            (f"is beyond ±{LARGEST_ANSWER:g}", f"are beyond ±{LARGEST_ANSWER:g}"),
            "Their squares overflow: remove these rows, or give answers in a larger unit.",
            answer[too_large[:MOST_ROWS]].tolist(),
        )
    return answer


def coded_ids(
    columns: Mapping[str, Series], keep: NDArray[np.bool_] | None, source: Source
) -> tuple[Indices, Ids]:
    """Replace ids by codes; those of several columns together are one id."""
    coded = [encode_ids(series, name, keep, source.ordered) for name, series in columns.items()]
    settled = [
        Ids(source.settle(name, ids.values)) for name, (_, ids) in zip(columns, coded, strict=True)
    ]
    if len(coded) == 1:
        return coded[0][0], settled[0]
    joint: Indices = np.zeros(len(coded[0][0]), dtype=np.int64)
    for codes, ids in coded:
        # Numbered anew each time, so that they stay small; in the order of the ids where rows have none.
        joint = encode(joint * len(ids) + codes, by_id=not source.ordered).codes.astype(np.int64)
    joint, _, first = encode(joint, by_id=not source.ordered)
    return joint, CompositeIds(settled, [codes[first] for codes, _ in coded])


def encode_ids(
    series: Series, column: str, keep: NDArray[np.bool_] | None, ordered: bool
) -> tuple[Indices, Ids]:
    """Replace the ids of the kept rows by codes; each of these rows must have an id."""
    codes, _, first_rows = encode(series, column=column, keep=keep, by_id=not ordered)
    if len(codes) and codes.min() < 0:
        without = np.flatnonzero(codes < 0)
        rows = without if keep is None else np.flatnonzero(keep)[without]
        raise bad_rows(
            column,
            rows.tolist(),
            len(series),
            ("is missing", "are missing"),
            "Every answer needs an id here: fill it in, or remove these rows.",
        )
    return codes, Ids(take(series, first_rows))


def _kept(numbers: NDArray[np.float64], keep: NDArray[np.bool_] | None) -> NDArray[np.float64]:
    """Pick the kept rows; an array that may be the caller's own memory becomes read-only."""
    if keep is not None:
        return numbers[keep]
    view = np.ascontiguousarray(numbers).view()
    view.flags.writeable = False
    return view
