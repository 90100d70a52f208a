"""write_findings(): what stands out about workers, answers and questions, as one page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trueup.errors import counted
from trueup.report.page import PageTable, Section, write_page
from trueup.report.parts import Callout, Copy, Points
from trueup.report.sections.correlated import correlated_section
from trueup.report.sections.report_data import MOST_ROWS, ReportData, sentence
from trueup.report.sections.suspicious import suspicious_section
from trueup.report.sections.worker_rows import WorkerRows
from trueup.report.sections.workers import workers_section

if TYPE_CHECKING:
    from os import PathLike
    from pathlib import Path

    from trueup.findings.agreement import Agreement
    from trueup.findings.answers_needed import AnswersNeeded
    from trueup.findings.collection import Findings
    from trueup.report.parts import Part
    from trueup.result.estimate import Estimate

NEEDS = (
    "How many more answers of typical workers each question needs to reach the standard error that is asked for, and "
    "what one more answer would bring. A dash: no number of answers is enough, or nothing is known."
)
AGREEMENT = (
    "1: all workers say the same about each question; 0: their answers to one question are no more alike than those to "
    "different ones."
)


def write_findings(
    est: Estimate,
    findings: Findings,
    path: str | PathLike[str],
    *,
    command: str | None = None,
    force: bool = False,
) -> Path:
    """Write the findings on an estimate to one HTML file that needs no network and no other file.

    Parameters
    ----------
    est, findings : Estimate, Findings
        What `trueup.diagnose_all` found, and what it is about.
    path : path
        File to write; a page of trueup there is replaced.
    command : str, optional
        The command line to show as the way to get the page again.
    force : bool
        Replace a file that is no page of trueup, too.
    """
    from trueup import __version__

    data = ReportData(est, findings=findings)
    sections = [
        _overview(findings, est, command),
        workers_section(data, WorkerRows(est, findings.workers)),
        suspicious_section(data),
        correlated_section(data),
        None if data.answers_needed is None else _needs(data, data.answers_needed),
        None if data.agreement is None else _agreement(data.agreement),
    ]
    problem = est.problem
    questions = counted(problem.n_questions, "question")
    return write_page(
        path,
        title=f"Diagnosis of {counted(problem.n_workers, 'worker')} and {questions}",
        intro="",
        sections=[section for section in sections if section is not None],
        opening=1,
        footer=f"Made by trueup {__version__}. This file works offline and sends nothing.",
        force=force,
    )


def _overview(findings: Findings, est: Estimate, command: str | None) -> Section:
    """Say what was found in a sentence each."""
    parts: list[Part] = []
    warnings = est.diagnosis.warnings
    if warnings:
        title = counted(len(warnings), "warning")
        parts.append(Callout(title, list(map(sentence, warnings)), "warning"))
    found: list[tuple[str, Any]] = [
        ("Who stands out?", findings.workers),
        ("Which answers do not fit?", findings.answers),
        ("Who errs together?", findings.correlated),
        ("Which questions need more answers?", findings.answers_needed),
        ("How well do workers agree?", findings.agreement),
    ]
    points = [(title, part.summary.rstrip(":")) for title, part in found if part is not None]
    second_step = findings.second_step
    if second_step is not None:
        points.append(("Does the second step help here?", str(second_step).splitlines()[0]))
    parts.append(Points(points))
    if findings.missing:
        parts.append(Callout("Not known", list(map(sentence, findings.missing))))
    if command is not None:
        parts.append(Copy("How to get this page again", command))
    return Section("Overview", parts=parts)


def _needs(data: ReportData, needed: AnswersNeeded) -> Section:
    order = needed.need_order[:MOST_ROWS]
    columns: dict[str, list[Any]] = {
        "question": list(data.question_cells(order)),
        "answers so far": needed.n_answers[order].tolist(),
        "more answers": [None if more < 0 else more for more in needed.more[order].tolist()],
        "standard error": needed.std_error[order].tolist(),
        "after one more answer": needed.after_one[order].tolist(),
    }
    rows = list(zip(*columns.values(), strict=True))
    note = (
        f"The first {len(order):,} of {len(needed.more):,}."
        if len(order) < len(needed.more)
        else ""
    )
    title = f"Questions by need ({counted(len(order), 'row')})"
    table = PageTable(title, list(columns), rows, "a question", note)
    text = f"{needed.summary}\n\n{NEEDS}"
    return Section("Questions that need answers", text=text, tables=[table])


def _agreement(agreement: Agreement) -> Section:
    coefficients = (agreement.one, agreement.mean, agreement.alpha, *agreement.two_way)
    rows = [
        (each.name, each.value, each.lower, each.upper, each.word, each.meaning)
        for each in coefficients
    ]
    columns = ["coefficient", "value", "from", "to", "in a word", "of"]
    text = f"{agreement.summary} {AGREEMENT}"
    return Section("Agreement", text=text, tables=[PageTable("Coefficients", columns, rows)])
