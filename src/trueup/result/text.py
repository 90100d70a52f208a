"""An estimate as a few lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trueup.errors import counted, option, quoted
from trueup.pipeline.diagnosis import size_in_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trueup.result.estimate import Estimate

#: Questions that `print` shows, and the longest id.
SHOWN = 5
LONGEST_ID = 30


def account(est: Estimate) -> list[str]:
    """Say what was read, and what was dropped and why."""
    problem = est.problem
    lines = [size_in_words(problem)]
    if problem.n_missing:
        there = "it" if problem.n_missing == 1 else "them"
        lines.append(
            f"{problem.n_missing:,} of {counted(problem.n_rows, 'row')} dropped: no answer in {there}"
        )
    origin = getattr(problem, "origin", None)  # answers in memory have one
    lines += [] if origin is None else origin.account
    if problem.n_duplicates:
        lines.append(f"{counted(problem.n_duplicates, 'repeated answer')} merged")
    lines += _suggested(est)
    malformed = getattr(problem, "malformed", None)  # only files that are streamed have them
    if malformed is not None and malformed.count:
        were = "was" if malformed.count == 1 else "were"
        lines.append(f"{counted(malformed.count, 'row')} could not be used and {were} left out")
    return lines


def _suggested(est: Estimate) -> list[str]:
    """Mention a column that may hold known truths, unless it was used."""
    origin = getattr(est.problem, "origin", None)
    column = "" if origin is None else origin.gold_column
    if not column or column in est.request.question_data.columns().names:
        return []
    return [
        f"column {quoted(column)} was not used; "
        + option("gold", column)
        + " if it holds known truths"
    ]


def first_questions(est: Estimate) -> list[str]:
    """Show the first questions."""
    problem = est.problem
    count = min(SHOWN, problem.n_questions)
    lines = question_rows(est, np.arange(count).tolist())
    left = problem.n_questions - count
    return [*lines, f"... and {left:,} more"] if left else lines


def interval_columns(est: Estimate) -> dict[str, tuple[str, str]]:
    """Return the intervals to show: the title of each, and the columns of its ends.

    Where the target is the truth that is the interval for the consensus and the one for the truth; with known truths
    both are one.
    """
    level = f"{100 * est.level:g}%"
    consensus, truth = ("lower", "upper"), ("truth_lower", "truth_upper")
    if est.solution.target in ("truth", "both") and not est.diagnosis.gold:
        return {f"{level} consensus": consensus, f"{level} truth": truth}
    return {f"{level} interval": consensus}


def question_rows(est: Estimate, numbers: Sequence[int]) -> list[str]:
    """Show some questions by their numbers, as a table of text."""
    columns, title = interval_columns(est), short(est.problem.names.question_title)
    rows: list[tuple[str, ...]] = [(title, "estimate", *columns, "answers")]
    ends = [(getattr(est, low), getattr(est, high)) for low, high in columns.values()]
    places = np.asarray(numbers, dtype=np.int64)
    ids, counts = est.problem.question_ids.tolist(places), est.problem.counts_of(places)
    for name, j, count in zip(ids, numbers, counts.tolist(), strict=True):
        intervals = (interval(float(low[j]), float(high[j])) for low, high in ends)
        rows.append((short(name), f"{est.estimate[j]:.6g}", *intervals, f"{count:,}"))
    return text_table(rows)


def interval(low: float, high: float) -> str:
    """Write an interval."""
    return "unknown" if np.isnan(low) else f"{low:.4g} to {high:.4g}"


def short(name: object) -> str:
    """Return an id as a line of text that fits."""
    return quoted(str(name), LONGEST_ID)[1:-1]


def text_table(rows: Sequence[tuple[str, ...]], indent: str = "") -> list[str]:
    """Lay out rows of text in columns, the first to the left, the others to the right."""
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    return [
        indent
        + "  ".join(
            cell.ljust(width) if c == 0 else cell.rjust(width)
            for c, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
