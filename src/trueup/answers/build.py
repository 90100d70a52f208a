"""From a table of encoded answers to Answers: sorted, without duplicates, centred."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trueup.answers.faults import bad_variances, listed_answers, two_variances
from trueup.answers.origin import Origin
from trueup.answers.repeats import repeated_error
from trueup.core.arrays import (
    compact,
    equal_segments,
    group_order,
    in_pieces,
    index_type,
    narrow,
    offsets,
    segment_sum,
    sort_in_place,
)
from trueup.core.parameters import LARGEST, SMALLEST, usable_variances
from trueup.errors import AnswersError, first_rows, marked_rows, quoted
from trueup.io.read_options import check_reading
from trueup.io.table import pseudonyms_of

if TYPE_CHECKING:
    from typing import Self

    from trueup.core.arrays import Bools, Floats, Indices, Ints
    from trueup.io.read_options import Duplicates
    from trueup.io.table import Ids, Table

# Answers that a message names.
NAMED = 3
# Questions centred at a time.
QUESTIONS = 1 << 15
# Bits of a positive 64-bit number.
MOST_BITS = 63


def build(
    table: Table,
    duplicates: Duplicates,
    answer_variance: str | None,
    worker_variance: Any,
    *,
    anonymous: bool = False,
) -> dict[str, Any]:
    """Sort encoded answers by question and worker, settle duplicates, centre the values.

    With `anonymous`, workers have pseudonyms from here on: nothing later knows their ids.

    Returns
    -------
    dict
        The fields of `Answers`.
    """
    if not isinstance(answer_variance, str | None):
        raise AnswersError(
            f"found {quoted(answer_variance)}.",
            argument="answer_variance",
            remedy="Give the name of a column.",
        )
    check_reading(duplicates, answer_variance, worker_variance)
    if anonymous:
        table, worker_variance = _without_ids(table, worker_variance)
    question, worker, panels = _number(table)
    precision = _precision(table, answer_variance)
    m, n = int(panels.questions[-1]), int(panels.workers[-1])
    sort = Sort.of(question, worker, m, n)
    n_duplicates = int(np.count_nonzero(sort.again))
    if n_duplicates and duplicates in ("error", "mean"):
        at = np.flatnonzero(sort.again & ~np.append(False, sort.again[:-1]))[
            :NAMED
        ]  # each pair once
        error = repeated_error(table, n_duplicates, sort.rows(at), merging=duplicates == "mean")
        if error is not None:
            raise error
    indptr, worker = sort.indptr, sort.worker
    values = sort.follow(table.answer)
    precision = None if precision is None else sort.follow(precision)
    squares, degrees = 0.0, 0
    if n_duplicates:
        first = np.flatnonzero(np.concatenate([[True], ~sort.again]))
        every, size = values, np.diff(np.append(first, len(values)))
        values, precision = merge_repeated(values, precision, first, duplicates)
        if duplicates != "first":
            squares, degrees = float(((every - np.repeat(values, size)) ** 2).sum()), n_duplicates
        worker = worker[first]
        indptr = np.searchsorted(first, indptr)
    mean_variance = np.nan
    if precision is not None:
        mean_precision = float(precision.mean())
        precision, mean_variance = precision / mean_precision, 1.0 / mean_precision
    known = known_variance(table, worker_variance)
    if known is not None and panels.worker_source is not None:
        known = known[panels.worker_source]
    centred = centred_values(values, indptr)
    return {
        "indptr": indptr,
        "workers": narrow(worker, n),
        "values": centred.values,
        "centre": centred.centre,
        "given": centred.given,
        "panel_questions": panels.questions,
        "panel_workers": panels.workers,
        "precision": precision,
        "answer_variance": mean_variance,
        "worker_variance": known,
        "question_source": panels.question_source,
        "worker_source": panels.worker_source,
        "origin": Origin(
            table.question_ids,
            table.worker_ids,
            table.panel_ids,
            table.kind,
            table.n_rows,
            table.n_missing,
            n_duplicates,
            table.names,
            table.unanswered,
            table.gold_column,
            table.rejects,
            table.doubtful,
            table.dropped_questions,
            squares,
            degrees,
            table.dropped_workers,
            unit=table.unit,
        ),
    }


def _without_ids(table: Table, worker_variance: Any) -> tuple[Table, Any]:
    """Number the workers anew, in random order, and let pseudonyms take the place of their ids."""
    names, code = pseudonyms_of(table.worker_ids)
    if hasattr(worker_variance, "items"):
        given = dict(worker_variance.items())
        known = zip(table.worker_ids.index_of(given).tolist(), given.values(), strict=True)
        worker_variance = {names.name(int(code[old])): value for old, value in known if old >= 0}
    worker = code[table.worker].astype(table.worker.dtype)
    pseudonyms = zip(table.worker_ids.tolist(), names.tolist(code), strict=True)
    rejects = table.rejects.renamed({str(name): str(other) for name, other in pseudonyms})
    hidden = replace(
        table,
        worker=worker,
        worker_ids=names,
        rejects=rejects,
        dropped_workers=(None,) * len(table.dropped_workers),
    )
    return hidden, worker_variance


class _Panels(NamedTuple):
    """Where the questions and workers of each panel begin, and who they are."""

    questions: Ints
    workers: Ints
    question_source: Ints | None = None
    worker_source: Ints | None = None


def _number(table: Table) -> tuple[Indices, Indices, _Panels]:
    """Number questions and workers panel by panel: those of two panels are never the same."""
    m, n = len(table.question_ids), len(table.worker_ids)
    if table.panel is None or table.panel_ids is None:
        panels = _Panels(np.array([0, m]), np.array([0, n]))
        return table.question, table.worker, panels
    size = len(table.panel_ids)
    panel = table.panel.astype(np.int64)
    question, questions = compact(panel * m + table.question, size * m)
    worker, workers = compact(panel * n + table.worker, size * n)
    panels = _Panels(
        offsets(np.bincount(questions // m, minlength=size)),
        offsets(np.bincount(workers // n, minlength=size)),
        questions % m,
        workers % n,
    )
    return question, worker, panels


@dataclass(frozen=True)
class Sort:
    """The answers by question, then worker, then row.

    Attributes
    ----------
    indptr
        Where the answers of each question begin.
    worker
        Worker of each answer, in this order.
    again
        For each answer but the first, whether it has question and worker of the one before.
    key, mask
        The row of each answer is `key & mask`.
    """

    indptr: Ints
    worker: Indices
    again: Bools
    key: Ints
    mask: int

    @classmethod
    def of(cls, question: Indices, worker: Indices, m: int, n: int) -> Self:
        """Sort.

        Question, worker and row number side by side in one 64-bit number: sorting plain numbers is far faster than
        finding the order of something and following it, and touches little memory. Too many bits for that, and two
        counting sorts find the order.
        """
        rows = len(question)
        row_bits, worker_bits = _bits(rows), _bits(n)
        if row_bits + worker_bits + _bits(m) > MOST_BITS:
            order = group_order(worker, n)
            order = order[group_order(question[order], m)]
            question, worker = question[order], narrow(worker[order], n)
            again = (question[1:] == question[:-1]) & (worker[1:] == worker[:-1])
            indptr = offsets(np.bincount(question, minlength=m))
            return cls(indptr, worker, again, order.astype(np.int64), -1)
        key = np.empty(rows, dtype=np.int64)

        def pack(here: slice) -> None:
            part = question[here].astype(np.int64) << worker_bits
            part = (part | worker[here]) << row_bits
            key[here] = part | np.arange(here.start, here.stop)

        in_pieces(pack, rows)
        sort_in_place(key)
        ordered = np.empty(rows, dtype=index_type(n))
        again = np.empty(rows - 1, dtype=bool)

        def unpack(here: slice) -> None:
            pair = key[here.start : here.stop + 1] >> row_bits  # and one more, to compare with
            ordered[here] = pair[: here.stop - here.start] & ((1 << worker_bits) - 1)
            again[here] = pair[1:] == pair[:-1]

        in_pieces(unpack, rows)
        starts = np.arange(m + 1, dtype=np.int64) << (row_bits + worker_bits)
        return cls(np.searchsorted(key, starts), ordered, again, key, (1 << row_bits) - 1)

    def rows(self, positions: Any = slice(None)) -> Ints:
        """Return the rows of the answers at these positions."""
        rows: Ints = self.key[positions] & self.mask
        return rows

    def follow(self, values: Floats) -> Floats:
        """Return numbers given by row in this order."""
        result = np.empty(len(values))

        def gather(here: slice) -> None:
            np.take(values, self.rows(here), out=result[here], mode="clip")

        in_pieces(gather, len(values))
        return result


def _bits(count: int) -> int:
    """Return how many bits the numbers below `count` need."""
    return max(count - 1, 1).bit_length()


class Centred(NamedTuple):
    """Answers relative to the centre of their question; `given` is None where `values + centre` returns them."""

    values: Floats
    centre: Floats
    given: Floats | None


def centred_values(answers: Floats, indptr: Ints) -> Centred:
    """Return answers relative to the lower median of their question."""
    values, centre = np.empty(len(answers)), np.empty(len(indptr) - 1)
    exact: list[bool] = []

    def subtract(here: slice) -> None:
        ends = indptr[here.start : here.stop + 1]
        given, mine = (array[ends[0] : ends[-1]] for array in (answers, values))
        for rows, alike in equal_segments(given, ends - ends[0]):
            middle = (alike.shape[1] - 1) // 2
            centre[here][rows] = np.partition(alike, middle, axis=1)[:, middle]
        medians = np.repeat(centre[here], np.diff(ends))
        np.subtract(given, medians, out=mine)
        medians += mine
        exact.append(np.array_equal(medians, given))

    in_pieces(subtract, len(centre), QUESTIONS)
    return Centred(values, centre, None if all(exact) else answers)


def _listed(table: Table, positions: Indices, values: list[float] | None = None) -> str:
    """Name some answers by worker and question."""
    workers = table.worker_ids.tolist(table.worker[positions])
    questions = table.question_ids.tolist(table.question[positions])
    return listed_answers(workers, questions, values)


def _places(table: Table, bad: Bools, values: Floats) -> str:
    """Name the first bad answers: rows of a table, workers and questions of a matrix."""
    if table.kind != "matrix":
        return first_rows(bad, table.row, values)
    at = np.flatnonzero(bad)[:NAMED]
    return _listed(table, at, values[at].tolist())


def merge_repeated(
    values: Floats, precision: Floats | None, first: Ints, rule: Duplicates
) -> tuple[Floats, Floats | None]:
    """Make one answer of each run of repeated ones, starting at the positions `first`."""
    if rule == "first":
        return values[first], None if precision is None else precision[first]
    indptr = np.append(first, len(values))
    weight = np.ones(len(values)) if precision is None else precision
    total = segment_sum(weight, indptr)
    # Relative to the first of a run, so that the mean of equal answers is that answer.
    start = values[first]
    above = segment_sum(weight * (values - np.repeat(start, np.diff(indptr))), indptr)
    return start + above / total, None if precision is None else total


def _precision(table: Table, column: str | None) -> Floats | None:
    """Turn variances of single answers into precisions."""
    if column is None:
        return None
    variance = table.numbers[column]
    bad = ~usable_variances(variance)
    if bad.any():
        rows = [] if table.kind == "matrix" else marked_rows(bad, table.row)
        places = f"first at {_places(table, bad, variance)}"
        raise bad_variances(bad.sum(), len(bad), places, rows)
    precision: Floats = 1.0 / variance
    return precision


def known_variance(table: Table, given: Any) -> Floats | None:
    """Bring known worker variances into the order of the worker ids, NaN where unknown."""
    if given is None:
        return None
    if not isinstance(given, str):
        return variance_by_id(table.worker_ids, given)
    known = np.full(len(table.worker_ids), np.nan)
    column = table.numbers[given]
    has = ~np.isnan(column)
    known[table.worker[has]] = column[has]
    differs = has & (known[table.worker] != column)
    if differs.any():
        places = first_rows(differs, table.row, column)
        raise two_variances(
            given,
            f"a worker has two different variances, first at {places}",
            marked_rows(differs, table.row),
        )
    return _checked_variance(table.worker_ids, known)


def variance_by_id(ids: Ids, given: Any) -> Floats:
    """Bring a mapping from worker to variance into the order of the ids, NaN where unknown."""
    if not hasattr(given, "items"):
        raise AnswersError(
            f"found {quoted(type(given).__name__)}.",
            argument="worker_variance",
            remedy="Give the name of a column, or a mapping from worker to variance.",
        )
    variance_of = dict(given.items())
    position = ids.index_of(variance_of)
    here = position >= 0
    if not here.any():
        first = quoted(next(iter(variance_of), None))
        raise AnswersError(
            f"none of its {len(variance_of)} workers is in the answers (first: {first}).",
            argument="worker_variance",
            remedy="Use the ids of the worker column.",
        )
    known = np.full(len(ids), np.nan)
    try:
        known[position[here]] = np.asarray(list(variance_of.values()), dtype=np.float64)[here]
    except (TypeError, ValueError):
        raise AnswersError(
            "found values that are not numbers.",
            argument="worker_variance",
            remedy="Give worker -> variance.",
        ) from None
    return _checked_variance(ids, known)


def _checked_variance(ids: Ids, known: Floats) -> Floats:
    bad = ~np.isnan(known) & ~usable_variances(known)
    if bad.any():
        at = np.flatnonzero(bad)[:NAMED]
        worst = zip(ids.tolist(at), known[at], strict=True)
        raise AnswersError(
            f"must be positive numbers, from {SMALLEST:g} to {LARGEST:g}; not so for worker "
            f"{', '.join(f'{quoted(worker)} ({value:g})' for worker, value in worst)}.",
            argument="worker_variance",
        )
    return known
