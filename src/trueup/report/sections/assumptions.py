"""The assumptions behind the numbers, how to cite them, and how to reproduce them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trueup.report.page import Section
from trueup.report.parts import Copy, Points
from trueup.report.sections.public_crowds import CROWDS
from trueup.report.sections.report_data import sentence
from trueup.report.sections.truth_reach import TruthReach

if TYPE_CHECKING:
    from trueup.report.parts import Part
    from trueup.report.sections.report_data import ReportData
    from trueup.result.estimate import Estimate

PAPER = "Ben Shabat, Meir, Azriel: Empirical Bayes approach to Truth Discovery problems. arXiv 2206.04816."
INDEPENDENT = "errors are independent, between workers and between the answers of one worker to different questions"
SHARED = "apart from the error that all workers share, "
LIKE_PUBLIC = f"truth_lower and truth_upper assume that this crowd errs like the {CROWDS} public ones with known truths"
LIKE_GOLD = (
    "truth_lower and truth_upper assume that the questions with known truths are like all others"
)
ALIKE = (
    "the questions have something in common, so that the others tell what values are typical; estimate a question that "
    "is known to be unlike all others separately"
)


def assumptions_section(data: ReportData, command: str | None) -> Section:
    """Write the section."""
    from trueup import __version__

    est = data.est
    texts = [INDEPENDENT, *est.diagnosis.assumptions, *([ALIKE] if est.shrinkage.any() else [])]
    if TruthReach(data).is_known:
        texts[0] = SHARED + INDEPENDENT
        texts.append(LIKE_PUBLIC if est.calibration is None else LIKE_GOLD)
    citation = f"{PAPER}\ntrueup {__version__}, {est.diagnosis.method} and {est.diagnosis.shrink}."
    parts: list[Part] = [
        Points([("What is assumed?", " ".join(filter(None, map(sentence, texts))))]),
        Copy("How to cite", citation),
        Copy("How to reproduce these numbers", command or _call(est)),
    ]
    return Section("Assumptions, and how to reproduce this", parts=parts)


def _call(est: Estimate) -> str:
    """Return the Python call that gives these numbers again."""
    call = est.request.as_call()
    note = f"\n# {call.note}" if call.note else ""
    return f'est = {call.text}\nest.report("report.html"){note}'
