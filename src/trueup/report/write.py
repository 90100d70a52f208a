"""write_report(): an estimate as one page."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup.core.parameters import yes_or_no
from trueup.errors import counted
from trueup.io.outputs import check_page
from trueup.report.page import write_page
from trueup.report.sections.assumptions import assumptions_section
from trueup.report.sections.correlated import correlated_section
from trueup.report.sections.estimates import estimates_section
from trueup.report.sections.method import agreement_section, method_section
from trueup.report.sections.moves import moves_section
from trueup.report.sections.overview import overview_section
from trueup.report.sections.prior import prior_section
from trueup.report.sections.report_data import ReportData, one_line
from trueup.report.sections.second_step import second_step_section
from trueup.report.sections.suspicious import suspicious_section
from trueup.report.sections.truth import known_truths, truth_section
from trueup.report.sections.truth_interval import truth_interval_section
from trueup.report.sections.truth_reach import TruthReach
from trueup.report.sections.worker_rows import WorkerRows
from trueup.report.sections.workers import workers_section

if TYPE_CHECKING:
    from os import PathLike

    from trueup.result.estimate import Estimate


def write_report(
    estimate: Estimate,
    path: str | PathLike[str],
    *,
    title: str | None = None,
    unit: str | None = None,
    command: str | None = None,
    truth: Any = None,
    force: bool = False,
) -> Path:
    """Write the report of an estimate: one HTML file that needs no network and no other file.

    Parameters
    ----------
    estimate : Estimate
    path : path
        File to write; a page of trueup there is replaced.
    title : str, optional
        Title of the page; default: how many questions were estimated from how many workers.
    unit : str, optional
        Unit of the answers, such as "cm", shown with estimates, on axes and with widths.
    command : str, optional
        The command line to show as the way to reproduce the estimate; default: a Python call.
    truth : mapping, frame, path, str or array, optional
        Known truths of some questions, as for `gold`, to show errors and coverage: question -> truth, a frame or file,
        a column of the file of answers, or one number per question in the order of `estimate.questions`, NaN where
        unknown.
    force : bool
        Replace a file that is no page of trueup, too.

    Raises
    ------
    MissingExtra
        When vl-convert-python is not installed.
    """
    from trueup import __version__

    yes_or_no("force", force)
    if not force:
        check_page(Path(path))  # before all that takes time
    problem = estimate.problem
    title, unit = one_line("title", title), one_line("unit", unit)
    data = ReportData(estimate, known_truths(estimate, truth), unit)
    workers = WorkerRows(estimate, data.worker_table)
    how_far, first = truth_interval_section(data), TruthReach(data).is_target
    sections = [
        overview_section(data, workers),
        how_far if first else None,
        estimates_section(data),
        truth_section(data),
        suspicious_section(data),
        workers_section(data, workers),
        correlated_section(data),
        None if first else how_far,
        method_section(data),
        agreement_section(data),
        prior_section(data),
        moves_section(data),
        second_step_section(data),
        assumptions_section(data, command),
    ]
    questions = counted(problem.n_questions, "question")
    today = datetime.now().astimezone().date().isoformat()
    return write_page(
        path,
        title=title or f"Estimates for {questions} from {counted(problem.n_workers, 'worker')}",
        intro=f"{today}. Unit: {unit}." if unit else f"{today}.",
        sections=[section for section in sections if section is not None],
        opening=1,
        footer=f"Made by trueup {__version__}. This file works offline and sends nothing.",
        force=force,
    )
