"""write_report(): an estimate as one page."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup.errors import TrueupError, counted, quoted
from trueup.io.formats import PAGES
from trueup.io.readers.source import LONGEST_PATH
from trueup.report.page import write_page
from trueup.report.sections.assumptions import assumptions_section
from trueup.report.sections.correlated import correlated_section
from trueup.report.sections.estimates import estimates_section
from trueup.report.sections.method import agreement_section, method_section
from trueup.report.sections.moves import moves_section
from trueup.report.sections.overview import overview_section
from trueup.report.sections.prior import prior_section
from trueup.report.sections.report_data import ReportData
from trueup.report.sections.second_step import second_step_section
from trueup.report.sections.suspicious import suspicious_section
from trueup.report.sections.truth import check_truth, truth_section
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
) -> Path:
    """Write the report of an estimate: one HTML file that needs no network and no other file.

    Parameters
    ----------
    estimate : Estimate
    path : path
        File to write; an existing page is replaced, but no existing file with another suffix than .html.
    title : str, optional
        Title of the page; default: how many questions were estimated from how many workers.
    unit : str, optional
        Unit of the answers, such as "cm", shown with estimates, on axes and with widths.
    command : str, optional
        The command line to show as the way to reproduce the estimate; default: a Python call.
    truth : array, optional
        True value of each question in the order of `estimate.questions`, NaN where unknown, to show errors and
        coverage.

    Raises
    ------
    MissingExtra
        When vl-convert-python is not installed.
    """
    from trueup import __version__

    target = Path(path)
    if target.is_file() and target.stat().st_size and target.suffix.lower() not in PAGES:
        raise TrueupError(
            f"{quoted(str(target), LONGEST_PATH)} is there already and no page.",
            argument="path",
            remedy="Choose a name that ends in .html.",
        )
    problem = estimate.problem
    title, unit = _words("title", title), _words("unit", unit)
    data = ReportData(estimate, check_truth(truth, problem.n_questions), unit)
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
    )


def _words(argument: str, text: str | None) -> str:
    """Check a text for the page; return it on one line, empty where there is none."""
    if text is not None and not isinstance(text, str):
        raise TrueupError(f"found {quoted(text)}, must be text.", argument=argument)
    return " ".join((text or "").split())
