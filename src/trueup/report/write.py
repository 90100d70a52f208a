"""write_report(): an estimate as one page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup.errors import TrueupError, counted, quoted
from trueup.io.formats import PAGES
from trueup.io.readers.source import LONGEST_PATH
from trueup.report.page import write_page
from trueup.report.sections.assumptions import rests
from trueup.report.sections.context import Facts
from trueup.report.sections.correlated import errs_together
from trueup.report.sections.estimates import estimates
from trueup.report.sections.moves import moved
from trueup.report.sections.overview import verdict
from trueup.report.sections.prior import prior
from trueup.report.sections.second_step import helps
from trueup.report.sections.truth import against_truth, check_truth
from trueup.report.sections.worker_rows import Judged
from trueup.report.sections.workers import workers

if TYPE_CHECKING:
    from os import PathLike

    from trueup.result.estimate import Estimate


def write_report(
    estimate: Estimate,
    path: str | PathLike[str],
    *,
    command: str | None = None,
    truth: Any = None,
) -> Path:
    """Write the report of an estimate: one HTML file that needs no network and no other file.

    Parameters
    ----------
    estimate : Estimate
    path : path
        Where to; a page that is there is replaced, a file that is no .html file is not.
    command : str, optional
        The command line that made the estimate, to be shown; by default a Python call.
    truth : array, optional
        True value of each question in the order of `estimate.questions`, NaN where unknown: errors and coverage are
        shown then.

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
    answers = estimate.answers
    facts = Facts(estimate, check_truth(truth, answers.n_questions))
    judged = Judged(estimate, facts.worker_table)
    sections = [
        verdict(facts, judged),
        estimates(facts),
        against_truth(facts),
        prior(facts),
        moved(facts),
        helps(facts),
        workers(facts, judged),
        errs_together(facts),
        rests(facts, command),
    ]
    people = counted(answers.n_workers, "worker")
    says = "says" if answers.n_workers == 1 else "say"
    return write_page(
        path,
        title=f"What {people} {says} about {counted(answers.n_questions, 'question')}",
        intro="",
        sections=[section for section in sections if section is not None],
        opening=1,
        footer=f"Made by trueup {__version__}. This file needs no network and sends nothing.",
    )
