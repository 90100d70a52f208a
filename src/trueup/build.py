"""From a table of encoded answers to Answers: sorted, without duplicates, centred."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.answers import Answers, Origin
from trueup.arrays import compact, group_order, narrow, offsets, rectangles, segment_sum
from trueup.errors import AnswersError, first_rows, quoted

if TYPE_CHECKING:
    from trueup.answers import Duplicates
    from trueup.arrays import Bools, Floats, Indices, Ints
    from trueup.io.table import Table
    from trueup.scale import Scale

# Answers that a message names.
NAMED = 3


def build(
    table: Table,
    scale: Scale,
    duplicates: Duplicates,
    answer_variance: str | None,
    worker_variance: Any,
) -> Answers:
    """Sort encoded answers by question and worker, settle duplicates, centre the values."""
    if duplicates not in ("error", "mean", "first"):
        raise AnswersError(f'duplicates: {duplicates!r} is not "error", "mean" or "first".')
    if answer_variance is not None and worker_variance is not None:
        raise AnswersError(
            "worker_variance, answer_variance: give one of them. Add a worker's own variance to "
            "that of its answers if both are known."
        )
    outside = scale.outside(table.answer)
    if outside.any():
        raise AnswersError(
            f"transform: {scale.transform} needs answers {scale.domain}; {outside.sum():,} of "
            f"{len(outside):,} are not, first at {_places(table, outside, table.answer)}. "
            "Drop or mend these answers, or choose another transform."
        )
    question, worker = table.question, table.worker
    m, n = len(table.question_ids), len(table.worker_ids)
    question_source = worker_source = None
    panel_questions, panel_workers = np.array([0, m]), np.array([0, n])
    if table.panel is not None and table.panel_ids is not None:
        size = len(table.panel_ids)
        question, questions = compact(table.panel * m + question, size * m)
        worker, workers_ = compact(table.panel * n + worker, size * n)
        question_source, worker_source = questions % m, workers_ % n
        panel_questions = offsets(np.bincount(questions // m, minlength=size))
        panel_workers = offsets(np.bincount(workers_ // n, minlength=size))
        m, n = len(questions), len(workers_)

    values = scale.forward(table.answer)
    precision = _precision(table, answer_variance)
    key_order = _order(question, worker, m, n)
    if key_order is not None:
        question, worker, values = question[key_order], worker[key_order], values[key_order]
        precision = None if precision is None else precision[key_order]
    again = (question[1:] == question[:-1]) & (worker[1:] == worker[:-1])
    n_duplicates = int(np.count_nonzero(again))
    if n_duplicates:
        if duplicates == "error":
            raise _duplicate_error(table, again, key_order, n_duplicates)
        first = np.flatnonzero(np.concatenate([[True], ~again]))
        question, worker = question[first], worker[first]
        values, precision = _merge(values, precision, first, duplicates)
    mean_variance = np.nan
    if precision is not None:
        mean_precision = float(precision.mean())
        precision, mean_variance = precision / mean_precision, 1.0 / mean_precision
    indptr = offsets(np.bincount(question, minlength=m))
    del question
    if values is table.answer:
        values = values.copy()  # the caller's own array stays as it is
    known = _known_variance(table, worker_variance)
    if known is not None and worker_source is not None:
        known = known[worker_source]
    return Answers(
        indptr=indptr,
        workers=narrow(worker, n),
        values=values,
        centre=centre_in_place(values, indptr),
        panel_questions=panel_questions,
        panel_workers=panel_workers,
        precision=precision,
        answer_variance=mean_variance,
        worker_variance=known,
        question_source=question_source,
        worker_source=worker_source,
        scale=scale,
        origin=Origin(
            table.question_ids,
            table.worker_ids,
            table.panel_ids,
            table.kind,
            table.n_rows,
            table.n_missing,
            n_duplicates,
        ),
    )


def centre_in_place(values: Floats, indptr: Ints) -> Floats:
    """Subtract from the values of each question their lower median, and return it."""
    centre = np.empty(len(indptr) - 1)
    for rows, positions in rectangles(indptr):
        middle = (positions.shape[1] - 1) // 2
        centre[rows] = np.partition(values[positions], middle, axis=1)[:, middle]
    values -= np.repeat(centre, np.diff(indptr))
    return centre


def _order(question: Ints, worker: Ints, m: int, n: int) -> Indices | None:
    """Return the order by question and worker, or None if the answers are in it already."""
    rising = question[1:] > question[:-1]
    rising |= (question[1:] == question[:-1]) & (worker[1:] >= worker[:-1])
    if rising.all():
        return None
    by_worker = group_order(worker, n)
    return by_worker[group_order(question[by_worker], m)]


def _pairs(table: Table, positions: Indices) -> list[str]:
    """Name worker and question of some answers."""
    workers = table.worker_ids.tolist(table.worker[positions])
    questions = table.question_ids.tolist(table.question[positions])
    return [
        f"worker {quoted(w)} on question {quoted(q)}"
        for w, q in zip(workers, questions, strict=True)
    ]


def _places(table: Table, bad: Bools, values: Floats) -> str:
    """Name the first bad answers: rows of a table, workers and questions of a matrix."""
    if table.kind != "matrix":
        return first_rows(bad, table.row, values)
    at = np.flatnonzero(bad)[:NAMED]
    found = zip(_pairs(table, at), values[at].tolist(), strict=True)
    return ", ".join(f"{pair} ({value})" for pair, value in found)


def _duplicate_error(table: Table, again: Bools, order: Indices | None, count: int) -> AnswersError:
    at = np.flatnonzero(again & ~np.append(False, again[:-1]))[:NAMED]  # each pair once
    pairs = ", ".join(_pairs(table, at if order is None else order[at]))
    return AnswersError(
        f"duplicates: {count:,} answers repeat a worker on the same question, first {pairs}. "
        'Pass duplicates="mean" to average them, or duplicates="first" to keep the first.'
    )


def _merge(
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
    with np.errstate(divide="ignore", over="ignore"):
        precision: Floats = 1.0 / variance
    bad = ~((precision > 0) & np.isfinite(precision))
    if bad.any():
        raise AnswersError(
            f"answer_variance: {bad.sum():,} of {len(bad):,} values are not positive numbers, "
            f"first at {_places(table, bad, variance)}. Every answer needs a variance above 0 "
            "(a standard error must be squared)."
        )
    return precision


def _known_variance(table: Table, given: Any) -> Floats | None:
    """Bring known worker variances into the order of the worker ids, NaN where unknown."""
    if given is None:
        return None
    known = np.full(len(table.worker_ids), np.nan)
    if isinstance(given, str):
        column = table.numbers[given]
        has = ~np.isnan(column)
        known[table.worker[has]] = column[has]
        differs = has & (known[table.worker] != column)
        if differs.any():
            raise AnswersError(
                f'Column "{given}": a worker has two different variances, first at '
                f"{first_rows(differs, table.row, column)}. Give one variance per worker, or use "
                "answer_variance for variances of single answers."
            )
    elif hasattr(given, "items"):
        variance_of = dict(given.items())
        position = table.worker_ids.index_of(variance_of)
        here = position >= 0
        if not here.any():
            first = quoted(next(iter(variance_of), None))
            raise AnswersError(
                f"worker_variance: none of its {len(variance_of)} workers is in the answers "
                f"(first: {first}). Use the ids of the worker column."
            )
        try:
            known[position[here]] = np.asarray(list(variance_of.values()), dtype=np.float64)[here]
        except (TypeError, ValueError):
            raise AnswersError(
                "worker_variance: found values that are not numbers. Give worker -> variance."
            ) from None
    else:
        raise AnswersError(
            f"worker_variance: found {quoted(type(given).__name__)}. Give the name of a column, or "
            "a mapping from worker to variance."
        )
    bad = ~np.isnan(known) & ~((known > 0) & np.isfinite(known))
    if bad.any():
        worst = table.worker_ids.tolist(np.flatnonzero(bad)[:NAMED])
        raise AnswersError(
            f"worker_variance: must be positive numbers; not so for worker "
            f"{', '.join(quoted(worker) for worker in worst)}."
        )
    return known
