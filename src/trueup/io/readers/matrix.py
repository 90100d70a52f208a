"""Arrays and sparse matrices, workers x questions, as a `Table`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.core.arrays import compact
from trueup.errors import AnswersError
from trueup.io.readers.answer_column import LARGEST_ANSWER
from trueup.io.table import Ids, Table

if TYPE_CHECKING:
    from trueup.core.arrays import Floats, Ints


def matrix_table(
    matrix: Any,
    answer_variance: Any = None,
    worker_variance: Any = None,
) -> Table:
    """Read an array workers x questions, or panels x workers x questions, NaN = no answer.

    Variances given as arrays become numbers of the table of the same name.
    """
    array = _numbers("answers", matrix)
    if array.ndim not in (2, 3):
        raise AnswersError(
            f"found an array of {array.ndim} dimensions.",
            argument="answers",
            remedy="Give workers x questions, or panels x workers x questions.",
        )
    panels = array if array.ndim == 3 else array[None]
    by_question = panels.transpose(0, 2, 1)
    panel, question, worker = here = np.nonzero(~np.isnan(by_question))
    numbers = {}
    if answer_variance is not None:
        variance = _numbers("answer_variance", answer_variance)
        if variance.shape != array.shape:
            raise AnswersError(
                f"found shape {variance.shape}, expected that of the answers, {array.shape}.",
                argument="answer_variance",
            )
        numbers["answer_variance"] = variance.reshape(panels.shape).transpose(0, 2, 1)[here]
    return _table(
        by_question[here],
        question,
        worker,
        panels.shape[:0:-1],
        numbers | _per_worker(worker_variance, worker, panels.shape[1]),
        panel=panel if array.ndim == 3 else None,
        n_panels=len(panels),
    )


def sparse_table(
    matrix: Any,
    answer_variance: Any = None,
    worker_variance: Any = None,
) -> Table:
    """Read a `scipy.sparse` matrix workers x questions; every stored value is an answer, even 0."""
    if matrix.ndim != 2:
        raise AnswersError(
            f"found a sparse array of {matrix.ndim} dimensions.",
            argument="answers",
            remedy="Give workers x questions.",
        )
    entries = matrix.tocoo()
    answer = _numbers("answers", entries.data)
    here = ~np.isnan(answer)
    numbers = {}
    if answer_variance is not None:
        numbers["answer_variance"] = _stored_alike(entries, answer_variance)[here]
    worker, question = entries.row[here].astype(np.int64), entries.col[here].astype(np.int64)
    numbers |= _per_worker(worker_variance, worker, matrix.shape[0])
    return _table(answer[here], question, worker, matrix.shape[::-1], numbers)


def _numbers(name: str, values: Any) -> Floats:
    if isinstance(values, np.ma.MaskedArray):
        values = np.where(np.ma.getmaskarray(values), np.nan, values.data)
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "cmM":  # numpy would drop the imaginary part, and count days
            return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError):
        pass
    raise AnswersError(
        "found values that are not numbers, or rows of different length.",
        argument=name,
        remedy="Give numbers, NaN where there is none.",
    )


def _per_worker(variance: Any, worker: Ints, n_workers: int) -> dict[str, Floats]:
    """Return the variance of the worker of each answer, from one per row of the matrix; mappings are read elsewhere."""
    if variance is None or hasattr(variance, "items"):
        return {}
    array = _numbers("worker_variance", variance)
    if array.shape != (n_workers,):
        raise AnswersError(
            f"found shape {array.shape}, expected one number for each of "
            f"{n_workers} workers, or a mapping from worker to variance.",
            argument="worker_variance",
        )
    return {"worker_variance": array[worker]}


def _stored_alike(entries: Any, variance: Any) -> Floats:
    """Return the variances stored in a second sparse matrix, in the order of the first."""
    other = variance.tocoo() if hasattr(variance, "tocoo") else None
    if (
        other is None
        or other.shape != entries.shape
        or not np.array_equal(other.row, entries.row)
        or not np.array_equal(other.col, entries.col)
    ):
        raise AnswersError(
            "give a sparse matrix with the same entries as the answers, stored in the same order.",
            argument="answer_variance",
        )
    return _numbers("answer_variance", other.data)


def _table(
    answer: Floats,
    question: Ints,
    worker: Ints,
    shape: tuple[int, ...],
    numbers: dict[str, Floats],
    *,
    panel: Ints | None = None,
    n_panels: int = 1,
) -> Table:
    """Check the answers, and leave out questions and workers without any."""
    if not len(answer):
        raise AnswersError(
            "there are none.", argument="answers", remedy="Give at least one number."
        )
    large = ~(np.abs(answer) <= LARGEST_ANSWER)
    if large.any():
        at = int(np.argmax(large))
        where = f"worker {worker[at]}, question {question[at]}"
        if panel is not None:
            where = f"panel {panel[at]}, {where}"
        raise AnswersError(
            f"found {answer[at]:g} ({where}).",
            argument="answers",
            remedy=f"Answers must be finite and at most "
            f"{LARGEST_ANSWER:g} in size; use NaN for a missing answer, or rescale.",
        )
    question_code, questions = compact(question, shape[0])
    worker_code, workers = compact(worker, shape[1])
    return Table(
        question=question_code,
        worker=worker_code,
        answer=answer,
        panel=panel,
        numbers=numbers,
        question_ids=Ids(questions),
        worker_ids=Ids(workers),
        panel_ids=None if panel is None else Ids(np.arange(n_panels)),
        n_rows=len(answer),
        kind="matrix",
    )
