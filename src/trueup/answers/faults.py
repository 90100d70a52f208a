"""Errors about answers that are the same wherever these are: in memory, on disk or on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trueup.core.parameters import LARGEST, SMALLEST
from trueup.errors import AnswersError, counted, option, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def listed_answers(
    workers: Iterable[object], questions: Iterable[object], values: Iterable[object] | None = None
) -> str:
    """Name answers by worker and question, each with its value where that says something."""
    names = [
        f"worker {quoted(worker)} on question {quoted(question)}"
        for worker, question in zip(workers, questions, strict=True)
    ]
    if values is not None:
        names = [f"{name} ({value})" for name, value in zip(names, values, strict=True)]
    return ", ".join(names)


def repeated_answers(count: int, examples: str, *, ordered: bool = True) -> AnswersError:
    """Build the error for several answers of a worker to a question; rows without an order have no first one."""
    first = " to average them, or " + option("duplicates", "first") + " to keep the first."
    mean = option("duplicates", "mean")
    return AnswersError(
        f"{counted(count, 'answer')} repeat{'s' if count == 1 else ''} a worker on the same question, {examples}.",
        argument="duplicates",
        remedy="Pass " + mean + (first if ordered else " to average them."),
    )


def bad_variances(
    count: int, n_answers: int, examples: str, rows: Sequence[int] = ()
) -> AnswersError:
    """Build the error for variances of answers that are not positive numbers."""
    return AnswersError(
        f"{count:,} of {n_answers:,} values are not positive numbers from {SMALLEST:g} to {LARGEST:g}, {examples}.",
        argument="answer_variance",
        rows=rows,
        remedy="Every answer needs a variance above 0 (a standard error must be squared).",
    )


def two_variances(column: str, found: str, rows: Sequence[int] = ()) -> AnswersError:
    """Build the error for a worker with different variances in a column."""
    return AnswersError(
        f"Column {quoted(column)}: {found}.",
        rows=rows,
        remedy="Give one variance per worker, or use answer_variance for variances of single answers.",
    )
