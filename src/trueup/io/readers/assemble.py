"""From a source to a `Table`, one row per answer."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from trueup.errors import AnswersError, bad_rows, option, quoted
from trueup.io.columns import check_titles, find_gold_column
from trueup.io.encode import check_distinct, encode
from trueup.io.numbers import to_numbers
from trueup.io.readers.answer_column import PLAIN_RULES, AnswerReader, AnswerRules, SetAside
from trueup.io.readers.row_filter import keep_rows
from trueup.io.rejects import Reject, Rejects
from trueup.io.series import Series, take, to_list
from trueup.io.table import CompositeIds, Ids, QuestionKey, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from trueup.core.arrays import Indices
    from trueup.io.columns import Roles
    from trueup.io.readers.source import Source

#: Rows that a reader left out and that are listed one by one; all are counted.
MOST_LEFT_OUT = 100_000


def read_long(source: Source, roles: Roles, rules: AnswerRules = PLAIN_RULES) -> Table:
    """Read a table with one row per answer: ids as codes, answers and further columns as numbers.

    Rows without an answer are dropped first: their ids and further numbers are not checked.

    Raises
    ------
    AnswersError
        When no answer is left, or one of the columns cannot be used.
    """
    with source.named():
        check_titles(roles.id_titles)
    reasons = [source.reasons] if source.reasons else []
    columns = source.fetch([*roles.names, *reasons], roles.id_names)
    if not source.reasons:
        with source.named():
            return _assemble(columns, roles, source, rules)
    left_out = _left_out(columns, roles, source)
    rows = np.flatnonzero([each is None for each in columns[source.reasons].tolist()])
    columns = {name: take(column, rows) for name, column in columns.items()}
    source = keep_rows(source, rows)
    with source.named():
        table = _assemble(columns, roles, source, rules)
    n_rows, rejects = table.n_rows + len(left_out), left_out + table.rejects
    return replace(table, n_rows=n_rows, rejects=rejects)


def _left_out(columns: Mapping[str, Series], roles: Roles, source: Source) -> Rejects:
    """Count the rows that the reader left out, and name the first of them."""
    reasons = columns[source.reasons].tolist()
    rows = [row for row, reason in enumerate(reasons) if reason is not None]
    counts = Counter(reasons[row].why for row in rows)
    shown = rows[:MOST_LEFT_OUT]
    if not rows:
        return Rejects()
    names = [row_names(columns, ids, shown) for ids in (roles.question, (roles.worker,))]
    places = source.places(shown)
    return Rejects(
        tuple(
            Reject(row, place, question, worker, reasons[row].value, reasons[row].why)
            for row, place, question, worker in zip(shown, places, *names, strict=True)
        ),
        tuple(counts.most_common()),
    )


def _assemble(
    columns: Mapping[str, Series], roles: Roles, source: Source, rules: AnswerRules
) -> Table:
    reader = AnswerReader(rules)
    answer = reader.read(columns[roles.answer], roles.answer, argument="answer")
    n_rows = len(answer)
    if rules.skip_bad:
        answer = _without_ids(columns, roles, answer, reader)
    missing = np.isnan(answer)
    n_dropped = int(np.count_nonzero(missing))
    n_missing = n_dropped - len(reader.aside)
    if n_dropped == n_rows:
        raise no_answers(roles.answer, n_rows, len(reader.aside))
    keep = ~missing if n_dropped else None

    def coded(*names: str) -> tuple[Indices, Ids]:
        return coded_ids({name: columns[name] for name in names}, keep, source)

    question, question_ids = coded(*roles.question)
    worker, worker_ids = coded(roles.worker)
    panel, panel_ids = (None, None) if roles.panel is None else coded(roles.panel)
    numbers = {
        name: _kept(to_numbers(columns[name], name, keep=keep, writing=rules.writing), keep)
        for name in roles.numbers
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
        gold_column=find_gold_column(name for name in source.names if name not in roles.names),
        rejects=_rejects(columns, roles, source, reader),
        doubtful=tuple(reader.doubtful.most_common()),
        unit=reader.unit,
        dropped_questions=_dropped(columns, roles, keep, len(question_ids)),
        dropped_workers=_without_answer(columns[roles.worker], roles.worker, keep),
        others=_others(source, roles, keep),
    )


def no_answers(column: str, n_rows: int, n_aside: int = 0) -> AnswersError:
    """Build the error about a table without a single answer."""
    found = f"all {n_rows} values are missing" if n_rows else "the table has 0 rows"
    if n_aside:
        found = f"all {n_rows} values are missing or cannot be used"
    return AnswersError(f"Column {quoted(column)}: no answers, {found}. Give at least one answer.")


def _without_ids(
    columns: Mapping[str, Series],
    roles: Roles,
    answer: NDArray[np.float64],
    reader: AnswerReader,
) -> NDArray[np.float64]:
    """Set answers aside that have no question or no worker."""
    parts = [*(("question", name) for name in roles.question), ("worker", roles.worker)]
    for part, name in parts:
        here = np.flatnonzero(~np.isnan(answer))
        codes = encode(take(columns[name], here), column=name)[0]
        rows = here[codes < 0]
        if len(rows):
            values = to_list(take(columns[roles.answer], rows))
            reader.aside += [
                SetAside(row, roles.answer, value, f"no {part}")
                for row, value in zip(rows.tolist(), values, strict=True)
            ]
            answer = answer.copy()
            answer[rows] = np.nan
    return answer


def coded_ids(
    columns: Mapping[str, Series], keep: NDArray[np.bool_] | None, source: Source
) -> tuple[Indices, Ids]:
    """Replace ids by codes; those of several columns together are one id."""
    coded = [
        encode_ids(series, name, keep, source.ordered, coded=source.coded(name))
        for name, series in columns.items()
    ]
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


def _rejects(
    columns: Mapping[str, Series], roles: Roles, source: Source, reader: AnswerReader
) -> Rejects:
    """Name the rows that were set aside by what stands in their columns of ids."""
    if not reader.aside:
        return Rejects()
    aside = sorted(reader.aside, key=lambda each: each.row)
    rows = [each.row for each in aside]
    names = [row_names(columns, names, rows) for names in (roles.question, (roles.worker,))]
    places = source.places(rows)
    return Rejects.of(
        [
            Reject(each.row, place, question, worker, each.value, each.why)
            for each, place, question, worker in zip(aside, places, *names, strict=True)
        ]
    )


def row_names(
    columns: Mapping[str, Series], ids: Sequence[str], rows: Sequence[int]
) -> list[object]:
    """Return what stands in the columns of ids of some rows; the numbers of the rows where there are none."""
    if not ids:
        return list(rows)
    places = np.asarray(rows, dtype=np.int64)
    parts = [to_list(take(columns[name], places)) for name in ids]
    return parts[0] if len(parts) == 1 else [QuestionKey(key) for key in zip(*parts, strict=True)]


def _dropped(
    columns: Mapping[str, Series],
    roles: Roles,
    keep: NDArray[np.bool_] | None,
    answered: int,
) -> int:
    """Count the questions that have rows but no answer."""
    if keep is None:
        return 0
    parts = [np.asarray(encode(columns[name], column=name)[0]) for name in roles.question]
    whole = np.all([codes >= 0 for codes in parts], axis=0)
    joint = np.zeros(int(whole.sum()), dtype=np.int64)
    for codes in parts:
        joint = np.unique(joint * (int(codes.max()) + 1) + codes[whole], return_inverse=True)[1]
    return len(np.unique(joint)) - answered


def _without_answer(
    series: Series, column: str, keep: NDArray[np.bool_] | None
) -> tuple[object, ...]:
    """Return the workers that have rows but no answer."""
    if keep is None:
        return ()
    codes, n, first = encode(series, column=column)
    here = np.asarray(codes)[keep]
    left = np.setdiff1d(np.arange(n), here[here >= 0])
    return tuple(to_list(take(series, first[left])))


def _others(
    source: Source, roles: Roles, keep: NDArray[np.bool_] | None
) -> Callable[[], dict[str, Series]]:
    """Return what loads the other columns of the kept rows, for questions about them that seldom come up."""

    def load() -> dict[str, Series]:
        times = Counter(source.names)
        names = [each for each in source.names if each not in roles.names and times[each] == 1]
        columns = source.fetch(names) if names else {}
        rows = None if keep is None else np.flatnonzero(keep)
        return (
            columns if rows is None else {name: take(each, rows) for name, each in columns.items()}
        )

    return load


def encode_ids(
    series: Series,
    column: str,
    keep: NDArray[np.bool_] | None,
    ordered: bool,
    *,
    coded: bool = False,
) -> tuple[Indices, Ids]:
    """Replace the ids of the kept rows by codes; each of these rows must have an id."""
    codes, _, first_rows = encode(series, column=column, keep=keep, by_id=not ordered, coded=coded)
    if len(codes) and codes.min() < 0:
        without = np.flatnonzero(codes < 0)
        rows = without if keep is None else np.flatnonzero(keep)[without]
        error = bad_rows(
            column,
            rows.tolist(),
            len(series),
            ("is missing", "are missing"),
            "Every answer needs an id here: fill it in, remove these rows, or pass "
            + option("skip_bad", True)
            + " to set them aside.",
        )
        raise error.mended_by({"skip_bad": True}) if 2 * len(rows) <= len(codes) else error
    ids = take(series, first_rows)
    check_distinct(ids, column)
    return codes, Ids(ids)


def _kept(numbers: NDArray[np.float64], keep: NDArray[np.bool_] | None) -> NDArray[np.float64]:
    """Pick the kept rows; an array that may be the caller's own memory becomes read-only."""
    if keep is not None:
        return numbers[keep]
    view = np.ascontiguousarray(numbers).view()
    view.flags.writeable = False
    return view
