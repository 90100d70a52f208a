"""What a command on answers prints: a short account a person would quote, or a document for machines."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.cli.wording import as_options
from trueup.errors import counted, quoted
from trueup.findings.workers import worker_table
from trueup.result.estimate import LONGEST_ID

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trueup.core.arrays import Floats
    from trueup.findings.workers import WorkerTable
    from trueup.result.estimate import Estimate
    from trueup.variance.correlated import Together

#: Questions and workers that are shown.
SHOWN = 10
#: Pairs of workers that are named.
PAIRS = 3


def verdicts_on(est: Estimate) -> WorkerTable | None:
    """Return the verdict on every worker; None of panels, in each of which workers are others."""
    return None if est.answers.n_panels > 1 else worker_table(est)


def summary(est: Estimate, verdicts: WorkerTable | None, truth: Floats | None = None) -> str:
    """Say what was read, what was chosen and why, what to expect, and what to look at."""
    about = est.diagnosis
    lines = [
        *read(est),
        "",
        f"First step: {about.method}" + (f" ({about.why})" if about.why else ""),
    ]
    lines += [about.voices[:1].upper() + about.voices[1:]] if about.voices else []
    lines += [about.second_step[:1].upper() + about.second_step[1:]] if about.second_step else []
    lines += [about.gold] if about.gold else []
    lines += [f"Warning: {as_options(text)}" for text in about.warnings]
    lines += [f"Note: {as_options(text)}" for text in about.assumptions]
    if truth is not None:
        lines += ["", *against(est, truth)]
    lines += ["", *least_certain(est)]
    if verdicts is not None:
        lines += ["", *to_look_at(verdicts, heard_as_one=bool(about.voices))]
    return "\n".join(lines)


def read(est: Estimate) -> list[str]:
    """Say what was read, and what was dropped and why."""
    answers, origin = est.answers, est.answers.origin
    people, asked = counted(answers.n_workers, "worker"), counted(answers.n_questions, "question")
    lines = [f"{counted(answers.n_answers, 'answer')} of {people} to {asked}"]
    if origin.n_missing:
        there = "it" if origin.n_missing == 1 else "them"
        lines.append(
            f"{origin.n_missing:,} of {counted(origin.n_rows, 'row')} dropped: no answer in {there}"
        )
    if origin.n_duplicates:
        lines.append(f"{counted(origin.n_duplicates, 'repeated answer')} merged")
    return lines


def errors(est: Estimate, truth: Floats) -> dict[str, Any]:
    """Compare with known truths: root mean squared errors, and the share inside its interval."""
    known = np.flatnonzero(~np.isnan(truth))
    base, error = (
        float(np.sqrt(np.mean((each[known] - truth[known]) ** 2)))
        for each in (est.base, est.estimate)
    )
    some = known[~np.isnan(est.lower[known])]
    inside = (est.lower[some] <= truth[some]) & (truth[some] <= est.upper[some])
    return {
        "known": len(known),
        "rmse": error,
        "rmse_first_step": base,
        "inside": float(inside.mean()) if len(some) else None,
    }


def against(est: Estimate, truth: Floats) -> list[str]:
    """Say how far the estimates are from known truths."""
    found = errors(est, truth)
    rmse = f"root mean squared error {found['rmse']:.4g} (first step alone {found['rmse_first_step']:.4g})"
    lines = [f"Against {counted(found['known'], 'known truth')}: {rmse}"]
    if found["inside"] is not None:
        lines.append(
            f"{found['inside']:.0%} of them are inside their {100 * est.level:g}% interval"
        )
    return lines


def least_certain(est: Estimate) -> list[str]:
    """Show the questions with the largest standard errors."""
    error = np.where(np.isnan(est.std_error), np.inf, est.std_error)
    order = np.argsort(-error, kind="stable")[:SHOWN]
    few = len(order) == est.answers.n_questions
    percent = f"{100 * est.level:g}% interval"
    rows = [("question", "estimate", percent, "answers")]
    for name, j in zip(est.answers.question_ids.tolist(order), order.tolist(), strict=True):
        low, high = est.lower[j], est.upper[j]
        interval = "unknown" if np.isnan(low) else f"{low:.4g} to {high:.4g}"
        rows.append((short(name), f"{est.estimate[j]:.6g}", interval, f"{est.answers.counts[j]:,}"))
    title = (
        "All questions, the least certain first" if few else f"The {SHOWN} least certain questions"
    )
    return [title, *columns(rows)]


def to_look_at(verdicts: WorkerTable, *, heard_as_one: bool) -> list[str]:
    """Show the workers that stand out, and say what those who err together do to the intervals.

    `heard_as_one`: whether some of those who err together count as one worker in the estimate.
    """
    pairs = err_together(verdicts.together, heard_as_one=heard_as_one)
    lines = (*str(verdicts).splitlines(), *pairs)
    return ["Workers", *(f"  {line}" for line in lines)]


def with_verdicts(workers: Any, verdicts: WorkerTable | None) -> Any:
    """Return a pyarrow table of the workers with all that stands out about each of them."""
    if verdicts is None:
        return workers
    import pyarrow as pa

    flag = dict(zip(verdicts.worker_ids.tolist(), verdicts.flag, strict=True))
    texts = [flag[name] for name in workers.column("worker").to_pylist()]
    at = workers.schema.get_field_index("flag")
    return workers.set_column(at, "flag", pa.array(texts, pa.string()))


def err_together(tied: Together, *, heard_as_one: bool) -> list[str]:
    """Name the pairs of workers who are not independent, if there are any."""
    if not len(tied):
        return []
    ids = tied.answers.worker_ids
    one, other = (ids.tolist(each[:PAIRS]) for each in (tied.first, tied.second))
    names = [f"{short(a)} and {short(b)}" for a, b in zip(one, other, strict=True)]
    more = [f"{len(tied) - PAIRS:,} more"] if len(tied) > PAIRS else []
    errs = "pair errs" if len(tied) == 1 else "pairs err"
    worth = f"{counted(tied.n_workers, 'worker')} are worth {tied.effective:.1f} independent ones"
    then = (
        f"{worth}. Estimates and intervals count those named above as one"
        if heard_as_one
        else f"intervals are too narrow, as {worth}"
    )
    text = f"{len(tied):,} {errs} together ({', '.join(names + more)}): {then}."
    return [f"{text} trueup diagnose FILE shows them."]


def short(name: object) -> str:
    """Return an id as a line of text that fits."""
    return quoted(str(name), LONGEST_ID)[1:-1]


def columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Lay out rows of text in columns, the first to the left, the others to the right."""
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    return [
        "  "
        + "  ".join(
            cell.ljust(width) if c == 0 else cell.rjust(width)
            for c, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def document(
    est: Estimate, verdicts: WorkerTable | None, truth: Floats | None = None, **more: Any
) -> str:
    """Return everything as JSON, and what else there is to say."""
    origin = replace(est.answers.origin, kind="pyarrow")
    mine = replace(est, answers=replace(est.answers, origin=origin))
    about = asdict(est.diagnosis)
    content: dict[str, Any] = {
        "read": {
            "rows": origin.n_rows,
            "dropped": origin.n_missing,
            "merged": origin.n_duplicates,
            "answers": est.answers.n_answers,
            "workers": est.answers.n_workers,
            "questions": est.answers.n_questions,
        },
        "diagnosis": about,
        "level": est.level,
        "questions": mine.questions.to_pylist(),
        "workers": with_verdicts(mine.workers, verdicts).to_pylist(),
        **more,
    }
    if truth is not None:
        content["against_truth"] = errors(est, truth)
    return json.dumps(content, allow_nan=False, default=str, indent=1)
