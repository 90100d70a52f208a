"""How the estimates were made: what was read, how answers were combined, what the second step did, and agreement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trueup.errors import counted
from trueup.pipeline.diagnosis import size_in_words
from trueup.report.page import Section
from trueup.report.parts import Paragraphs, Points
from trueup.report.sections.report_data import ReportData, percent, sentence
from trueup.report.sections.truth_reach import CONSENSUS, TruthReach

if TYPE_CHECKING:
    from trueup.findings.agreement import Agreement

METHODS = {
    "native": "an average in which precise workers count more and answers that are far off count less (native)",
    "mean": "the plain average",
    "median": "the median",
    "weighted_median": "a median in which precise workers count more",
    "blue": "an average weighted by the known precision of each worker (BLUE)",
}
UNDERSTATED = "and the full step would understate them again"

ONE_QUESTION = (
    "a single question has most of the expected error, so no figure is given for what it gains"
)


def method_section(data: ReportData) -> Section:
    """Write the section."""
    about = data.est.diagnosis
    points = [
        ("What was read?", _read(data)),
        ("How were the answers combined, and why?", _aggregation(data)),
        ("Does the second step help here?", _gain(data)),
        *(("What are the estimates aimed at?", sentence(text)) for text in (about.target,) if text),
        *(("What did the known truths show?", sentence(text)) for text in (about.gold,) if text),
    ]
    return Section("How the estimates were made", parts=[Points(points)])


def agreement_section(data: ReportData) -> Section | None:
    """Write the section on agreement coefficients; None where they are unknown."""
    agreement = data.agreement
    if agreement is None:
        return None
    lines = agreement.lines((agreement.one, agreement.mean, agreement.alpha, *agreement.two_way))
    return Section(
        "Do the workers agree?",
        text=_agreement(data, agreement),
        parts=[Paragraphs("\n\n".join(line.strip() for line in lines[1:]))],
        fold="For statisticians: agreement coefficients (ICC, Krippendorff's alpha)",
    )


def _agreement(data: ReportData, agreement: Agreement) -> str:
    """Say how well workers agree, and that a few absurd answers can hide it."""
    if not data.odd_answers:
        return agreement.summary
    count = counted(len(data.odd_answers), "suspicious answer")
    are = "is" if len(data.odd_answers) == 1 else "are"
    return f"{agreement.summary} The {count} {are} included and may lower this a lot."


def _read(data: ReportData) -> str:
    problem = data.problem
    origin = getattr(problem, "origin", None)  # answers in memory have one
    text = size_in_words(problem)
    if problem.n_missing:
        text += f". {problem.n_missing:,} of {problem.n_rows:,} rows were left out because they hold no answer."
    elif origin is not None and len(origin.rejects):
        text += "."
    else:
        text += ". No row was left out."
    for line in [] if origin is None else origin.account:
        text += f" {line[:1].upper()}{line[1:]}."
    if problem.n_duplicates:
        text += f" {counted(problem.n_duplicates, 'repeated answer')} of one worker to one question were merged."
    single = int((problem.counts == 1).sum())
    if single and problem.n_questions > 1:
        has = "has" if single == 1 else "have"
        text += f" {counted(single, 'question')} {has} a single answer."
    if data.transform and not data.est.diagnosis.scale:
        scale = "as logarithms" if data.in_logarithms else f"on the {data.transform} scale"
        text += f" The answers were combined {scale} and converted back."
    return text


def _aggregation(data: ReportData) -> str:
    about = data.est.diagnosis
    text = (
        f"Aggregation (first step) used {METHODS.get(about.method, 'the method ' + about.method)}"
    )
    text += f": {about.why}." if about.why else ", as requested."
    if about.iterations and not about.settled:
        text += f" It had not converged after {counted(about.iterations, 'iteration')}."
    for more in (about.models, about.scale, about.pooling):
        if more:
            text += f" {sentence(more)}"
    if data.est.biases is not None and not data.est.aggregate.algorithm.concludes:
        text += " The bias of each worker was estimated and removed first."
    return text


def _gain(data: ReportData) -> str:
    est = data.est
    if est.diagnosis.shrink == "none":
        return "It was turned off: the estimates are the aggregates of the first step."
    gain = data.gain
    if TruthReach(data).is_target:
        return _partial_step(data)
    if not est.shrinkage.any():
        return "It changed no estimates: there is too little data to learn from."
    share = percent(float(np.mean(est.shrinkage)))
    text = f"Shrinkage (second step) moves estimates {share} of the way toward {est.second_step.target} on average"
    if not np.isfinite(gain):
        if np.isfinite(est.second_step.expected_gain):
            return f"{text}; {ONE_QUESTION}."
        return f"{text}; how much that helps is unknown for this rule."
    if gain >= 0.01:
        word = "Yes" if gain >= 0.05 else "A little"
        return (
            f"{word}. {text}, which is expected to lower the mean squared error by {percent(gain)} if workers err "
            "independently of each other."
        )
    if gain > 0:
        return f"Hardly. {text}: the answers are so precise, or the questions so different, that little can be gained."
    return f"No gain is expected. {text}."


def _partial_step(data: ReportData) -> str:
    """Say how much of the second step was taken where the target is the truth; no gain is promised then."""
    est = data.est
    if not est.second_step.totals.shrinkage.any():
        return "It changed no estimates: there is too little data to learn from."
    share, toward = float(np.mean(est.shrinkage)), est.second_step.target
    text = f"most crowds have already understated differences between questions, {UNDERSTATED}"
    if share == 0:
        text = f"It was not taken, because it would lead away from the truth: {text}."
    else:
        moved = f"It moves estimates {percent(share)} of the way toward {toward} on average"
        text = f"It was taken only in part: {text}. {moved}."
    if est.solution.target == "both":
        text += " In panels of ratings it was taken in full."
    gain = data.gain
    if not gain >= 0.005:
        return text
    return (
        f'{text} In full (target="consensus") it is expected to lower the mean squared distance from {CONSENSUS} by '
        f"{percent(gain)}."
    )
