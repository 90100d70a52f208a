"""What a command on answers prints: a short account a person would quote, or a document for machines."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.answers.scale import LOGARITHMS, check_truths
from trueup.cli.run import shown_warnings
from trueup.cli.wording import as_options
from trueup.errors import counted
from trueup.result.tables import least_certain
from trueup.result.text import (
    account,
    interval,
    interval_columns,
    question_rows,
    short,
    text_table,
)

if TYPE_CHECKING:
    from pathlib import Path

    from trueup.core.arrays import Floats
    from trueup.findings.collection import Findings
    from trueup.findings.correlated import CorrelatedWorkers
    from trueup.io.question_data import QuestionDataRequest
    from trueup.result.estimate import Estimate

#: Questions and workers that are shown.
SHOWN = 10
#: Suspicious answers that are shown.
FIRST = 3
#: Pairs of workers that are named.
PAIRS = 3
#: Rows that could not be used and are shown.
BAD_ROWS = 5


def known_truth(est: Estimate, truths: QuestionDataRequest, file: str) -> Floats | None:
    """Read truths to compare with; those that were given as gold are no test."""
    if truths.gold is None:
        return None
    with shown_warnings():
        truth = truths.read(est.answers, file).gold
    gold = est.question_data.gold
    if truth is None:
        return None
    check_truths(truth, est.solution.scale, est.answers.question_ids.name, "truth")
    if gold is None:
        return truth
    rest = np.where(np.isnan(gold), truth, np.nan)
    return None if np.isnan(rest).all() else rest


def summary(est: Estimate, truth: Floats | None = None, written: Path | None = None) -> str:
    """Say what was read, what was chosen and why, what to expect, and what to look at.

    `written` is where the estimates are already, if they were not brought into memory.
    """
    about = est.diagnosis
    lines = [
        *_read(est),
        "",
        f"First step: {about.method}" + (f" ({about.why})" if about.why else ""),
    ]
    texts = map(
        as_options, (about.models, about.scale, about.pooling, about.second_step, about.target)
    )
    lines += [text[:1].upper() + text[1:] for text in texts if text]
    lines += [about.gold] if about.gold else []
    lines += [f"Warning: {as_options(text)}" for text in about.warnings]
    lines += [f"Note: {as_options(text)}" for text in about.assumptions]
    if truth is not None:
        lines += ["", *_against(est, truth)]
    lines += ["", *_least_certain(est, written)]
    if est.problem.n_panels == 1:
        lines += ["", *_workers(est)]
        if est.findings.answers is not None:
            lines += ["", "Suspicious answers", *suspicious_answers(est.findings)]
    return "\n".join(lines)


def _read(est: Estimate) -> list[str]:
    """Say what was read, and what was dropped and why."""
    malformed = getattr(est.problem, "malformed", None)  # only files that are streamed have them
    if malformed is None or not malformed.count:
        return list(map(as_options, account(est)))
    bad = f"{malformed.count:,} of {counted(est.problem.n_rows, 'row')}"
    return [
        *account(est)[:-1],
        f"{bad} could not be used and were left out (--strict stops):",
        *(f"  {example}" for example in malformed.examples[:BAD_ROWS]),
    ]


def errors(est: Estimate, truth: Floats) -> dict[str, Any]:
    """Compare with known truths: root mean squared errors, and the shares inside the intervals.

    "inside" is the share of truths inside the interval, "inside_truth" that inside the interval for the truth; None
    where intervals are unknown.
    """
    known = np.flatnonzero(~np.isnan(truth))
    base, error = (
        float(np.sqrt(np.mean((values[known] - truth[known]) ** 2)))
        for values in (est.base, est.estimate)
    )
    return {
        "known": len(known),
        "rmse": error,
        "rmse_first_step": base,
        "inside": _share_inside(truth[known], est.lower[known], est.upper[known]),
        "inside_truth": _share_inside(truth[known], est.truth_lower[known], est.truth_upper[known]),
    }


def _share_inside(truth: Floats, low: Floats, high: Floats) -> float | None:
    """Return the share of truths inside their intervals, None where no interval is known."""
    some = ~np.isnan(low)
    inside = (low <= truth) & (truth <= high)
    return float(inside[some].mean()) if some.any() else None


def _against(est: Estimate, truth: Floats) -> list[str]:
    """Say how far the estimates are from known truths."""
    found, level = errors(est, truth), f"{100 * est.level:g}%"
    rmse = f"root mean squared error {found['rmse']:.4g} (first step alone {found['rmse_first_step']:.4g})"
    lines = [f"Against {counted(found['known'], 'known truth')}: {rmse}"]
    inside, inside_truth = found["inside"], found["inside_truth"]
    if inside_truth is None or len(interval_columns(est)) == 1:
        if inside is not None:
            lines.append(f"{inside:.0%} of them are inside their {level} interval")
        return lines
    text = f"{inside_truth:.0%} of them are inside their {level} interval for the truth"
    if inside is not None:
        text += f", {inside:.0%} inside the one for the consensus, which leaves out errors that all workers share"
    return [*lines, text]


def _least_certain(est: Estimate, written: Path | None) -> list[str]:
    """Show the questions with the largest standard errors, as shares of the value where logarithms were combined."""
    count = min(SHOWN, est.problem.n_questions)
    relative = est.solution.scale.transform in LOGARITHMS
    title = (
        "All questions, the least certain first"
        if count == est.problem.n_questions and written is None
        else f"The {count} least certain questions"
    )
    title += ", relative to their value" if relative else ""
    if est.kind != "spark":
        numbers = least_certain(est, count).tolist()
        return [title, *(f"  {line}" for line in question_rows(est, numbers))]
    frame = est.questions.sparkSession.read.parquet(str(written))
    error = frame["std_error"] / frame["estimate"] if relative else frame["std_error"]
    least = frame.orderBy(error.desc_nulls_first()).limit(count).toArrow()
    columns = interval_columns(est)
    title = est.problem.names.question_title
    rows: list[tuple[str, ...]] = [(short(title), "estimate", *columns, "answers")]
    for row in least.to_pylist():
        intervals = (
            interval(*(np.nan if row[end] is None else row[end] for end in ends))
            for ends in columns.values()
        )
        name, value, answers = row[title], row["estimate"], row["n_answers"]
        rows.append((short(name), f"{value:.6g}", *intervals, f"{answers:,}"))
    return [title, *text_table(rows, "  ")]


def _workers(est: Estimate) -> list[str]:
    """Show the workers that stand out, and say what those who err together do to the intervals."""
    table = est.findings.workers
    pairs = _err_together(table.correlated, pooled=bool(est.diagnosis.pooling))
    return ["Workers", *(f"  {line}" for line in (*str(table).splitlines(), *pairs))]


def suspicious_answers(findings: Findings) -> list[str]:
    """Return the first suspicious answers, a line each; nothing where no question has three answers."""
    return (
        [] if findings.answers is None else [f"  {line}" for line in findings.answers.lines(FIRST)]
    )


def _err_together(correlated: CorrelatedWorkers, *, pooled: bool) -> list[str]:
    """Name the pairs of workers who are not independent, if there are any."""
    count, found = len(correlated), correlated.found
    if not count:
        return []
    ids = correlated.worker_ids
    one, other = (ids.tolist(side[:PAIRS]) for side in (found.first, found.second))
    names = [f"{short(a)} and {short(b)}" for a, b in zip(one, other, strict=True)]
    more = [f"{count - PAIRS:,} more"] if count > PAIRS else []
    errs = "pair errs" if count == 1 else "pairs err"
    worth = f"{counted(found.n_workers, 'worker')} are worth {found.effective:.1f} independent ones"
    then = (
        f"{worth}. Estimates and intervals count those named above as one"
        if pooled
        else f"intervals are too narrow, as {worth}"
    )
    text = f"{count:,} {errs} together ({', '.join(names + more)}): {then}."
    return [f"{text} trueup diagnose FILE shows them."]


def what_was_read(est: Estimate) -> dict[str, Any]:
    """Count rows, answers, workers and questions for a JSON document."""
    problem, rejects = est.problem, est.rejects
    counts: dict[str, Any] = {
        "rows": problem.n_rows,
        "dropped": problem.n_missing,
        "merged": problem.n_duplicates,
        "answers": problem.n_answers,
        "workers": problem.n_workers,
        "questions": problem.n_questions,
    }
    return counts | ({"set_aside": dict(rejects.counts)} if len(rejects) else {})


def document(
    est: Estimate, truth: Floats | None = None, written: Path | None = None, **more: Any
) -> str:
    """Return everything as JSON, and what else there is to say."""
    from trueup.cli.tables import result_rows, suspicious_table

    problem = est.problem
    content: dict[str, Any] = {
        "read": what_was_read(est),
        "diagnosis": asdict(est.diagnosis),
        "level": est.level,
    }
    malformed = getattr(problem, "malformed", None)
    if malformed is not None:
        content["read"] |= {
            "malformed": malformed.count,
            "malformed_examples": list(malformed.examples),
        }
    if written is None:
        content["questions"] = result_rows(est, "questions").to_pylist()
    else:
        content["questions_file"] = str(written)
    content["workers"] = result_rows(est, "workers").to_pylist()
    if problem.n_panels == 1:
        content["suspicious_answers"] = suspicious_table(est.findings).to_pylist()
    content |= more
    if truth is not None:
        content["against_truth"] = errors(est, truth)
    return json.dumps(content, allow_nan=False, default=str, indent=1)
