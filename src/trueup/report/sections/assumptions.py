"""What the numbers rest on, how to cite them, and how to get them again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trueup.report.page import Section
from trueup.report.parts import Copy, Points

if TYPE_CHECKING:
    from trueup.report.parts import Part
    from trueup.report.sections.context import Facts
    from trueup.result.estimate import Estimate

PAPER = "Ben Shabat, Meir, Azriel: Empirical Bayes approach to Truth Discovery problems. arXiv 2206.04816."
INDEPENDENT = "workers err independently of each other, and each of them independently from question to question"
ALIKE = (
    "the questions have something in common, so that the others say what is usual: a question known to be unlike all "
    "others is better estimated apart"
)


def rests(facts: Facts, command: str | None) -> Section:
    """Write the section."""
    from trueup import __version__

    est = facts.est
    said = [INDEPENDENT, *est.diagnosis.assumptions]
    if est.shrinkage.any():
        said.append(ALIKE)
    lines = [
        text[0].upper() + text[1:] + ("" if text.endswith(".") else ".") for text in said if text
    ]
    parts: list[Part] = [
        Points([("What was assumed?", " ".join(lines))]),
        Copy(
            "How to cite",
            f"{PAPER}\ntrueup {__version__}, {est.diagnosis.method} and {est.diagnosis.shrink}.",
        ),
        Copy("How to get these numbers again", command or _call(est)),
    ]
    return Section("What this rests on, and how to repeat it", parts=parts)


def _call(est: Estimate) -> str:
    """Return the Python call that gives these numbers again."""
    call = est.request.as_call()
    note = f"\n# {call.note}" if call.note else ""
    return f'est = {call.text}\nest.report("report.html"){note}'
