"""The result: what was estimated and how sure it is, what to be careful about, and what to look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trueup.errors import counted
from trueup.report.page import Section
from trueup.report.parts import Callout, Cards, Lists, Paragraphs, Points
from trueup.report.sections.report_data import ReportData, sentence
from trueup.report.sections.suspicious import entries_of
from trueup.report.sections.truth_reach import CONSENSUS, TruthReach

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trueup.report.markup import Name
    from trueup.report.parts import Part
    from trueup.report.sections.worker_rows import WorkerRows

    #: Names with words on them.
    Entries = list[tuple[Name | str, str]]

LISTED = 5


def overview_section(data: ReportData, workers: WorkerRows) -> Section:
    """Write the section."""
    parts: list[Part] = [Paragraphs(_headline(data), lead=True), Cards(_cards(data))]
    warnings = data.est.diagnosis.warnings
    if warnings:
        parts.append(
            Callout(counted(len(warnings), "warning"), list(map(sentence, warnings)), "warning")
        )
    parts += [Points(_points(data)), Lists(_lists(data, workers))]
    return Section("Result", parts=parts)


def _headline(data: ReportData) -> str:
    """Say in one or two sentences how far the truth may be or, for the consensus, how certain the estimates are."""
    what = f"{counted(data.m, 'question')} {'was' if data.m == 1 else 'were'} estimated from {_sources(data)}."
    return f"{what} {_certainty(data)}"


def _sources(data: ReportData) -> str:
    answers, workers = (
        counted(data.problem.n_answers, "answer"),
        counted(data.problem.n_workers, "worker"),
    )
    return f"{answers} of {workers}"


def _certainty(data: ReportData) -> str:
    est, reach = data.est, TruthReach(data)
    is_truth = reach.is_target and reach.is_known
    if is_truth and (reach.merged or not data.knows_intervals):
        return reach.how_far
    if not data.knows_intervals:
        return "Every question has an estimate; how certain these are cannot be known from these answers."
    margin = data.typical_margin
    if is_truth:
        text = f"{reach.how_far} {sentence(CONSENSUS)[:-1]} is known to {data.say_margin(margin)}"
    else:
        text = f"A typical estimate has a margin of error of {data.say_margin(margin)} ({data.percent} interval)"
    spread = float(np.std(np.log(est.estimate) if data.is_relative else est.estimate))
    if spread > 0 and margin > 2.0 * spread:
        text += ". That is wider than the differences between questions: more answers are needed to tell them apart"
    return f"{text}."


def _cards(data: ReportData) -> Sequence[tuple[str, str, str]]:
    problem = data.problem
    low, high = int(problem.counts.min()), int(problem.counts.max())
    span = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    missing = problem.n_missing
    dropped = f"{counted(missing, 'row')} without an answer" if missing else "no row left out"
    cards = [
        (f"{problem.n_questions:,}", "questions", f"{span} answers each"),
        (f"{problem.n_workers:,}", "workers", ""),
        (f"{problem.n_answers:,}", "answers", dropped),
    ]
    reach = TruthReach(data)
    is_truth = reach.is_target and reach.is_known
    if is_truth:
        cards += _truth_cards(data, reach)
    if data.knows_intervals and not (is_truth and reach.merged):
        margin, whose = data.say_margin(data.typical_margin), " for the consensus" * is_truth
        cards.append(
            (margin, f"typical {data.percent} interval{whose}", "half of them are narrower")
        )
    return cards


def _truth_cards(data: ReportData, reach: TruthReach) -> list[tuple[str, str, str]]:
    """Return the typical distance of the truth and the reach of its interval, where they are known."""

    def sign(value: float, plain: str) -> str:
        return "×" if data.in_logarithms and not reach.is_percent(value) else plain

    with_unit = str if data.in_logarithms else data.with_unit
    cards = []
    if reach.outlook.is_known:
        whose = "half of the truths are nearer"
        distance = with_unit(sign(reach.outlook.distance, "") + reach.size(reach.outlook.distance))
        cards.append((distance, "typical distance from the truth", whose))
    if np.isfinite(reach.half_width):
        rate = "over crowds like the public ones" if not reach.outlook.n_gold else ""
        half_width = with_unit(sign(reach.half_width, "±") + reach.size(reach.half_width))
        cards.append((half_width, f"typical {data.percent} interval for the truth", rate))
    return cards


def _points(data: ReportData) -> list[tuple[str, str]]:
    """Answer the questions that everybody has."""
    points = [
        *([("What is estimated?", _target(data))] if data.est.solution.target else []),
        ("What does an interval mean?", _interval_meaning(data)),
    ]
    reach = TruthReach(data)
    if not reach.is_known and not reach.merged:
        points.append(("How far may the truth be?", reach.how_far))
    elif reach.is_target and not reach.outlook.n_gold and reach.next_gold:
        points.append(("What would known truths bring?", reach.next_gold))
    if data.answers_needed is not None:
        points.append(("Are more answers needed?", data.answers_needed.summary))
    return points


def _target(data: ReportData) -> str:
    """Say what is estimated."""
    if data.est.solution.target == "both":
        return (
            "The true value of each question; in panels of ratings, the consensus of the workers."
        )
    if TruthReach(data).is_target:
        return "The true value of each question."
    return f"The consensus: {CONSENSUS} on average. For ratings and opinions that is all there is to know."


def _interval_meaning(data: ReportData) -> str:
    est, reach = data.est, TruthReach(data)
    if reach.merged:
        public = "" if est.calibration is not None else " and what public crowds teach"
        return (
            f"{data.percent} of the {data.percent} intervals should contain the truth itself: "
            f"{counted(int(data.is_gold.sum()), 'known truth')}{public} tell how large the error of all workers is."
        )
    if not data.knows_intervals:
        return sentence("; ".join(est.diagnosis.assumptions)) or "Intervals are unknown here."
    text = f"A {data.percent} interval (lower, upper) shows how far the estimate may be from {CONSENSUS} on average"
    if not reach.is_known:
        return f"{text}; an error that all workers share is not included."
    if not reach.is_target:
        return f"{text}; truth_lower and truth_upper allow for an error that all workers share as well."
    return (
        f"{text}. Errors that all workers share are in the interval for the truth (truth_lower, truth_upper) only: it "
        f"contains {data.percent} of truths on average over crowds like the public ones."
    )


def _lists(data: ReportData, workers: WorkerRows) -> Sequence[tuple[str, Entries]]:
    lists: list[tuple[str, Entries]] = []
    uncertain = _uncertain_questions(data)
    if uncertain:
        lists.append(("Least certain questions", uncertain))
    if data.odd_answers:
        odd = data.odd_answers
        entries = entries_of(odd, LISTED)
        if len(odd) > LISTED:
            entries.append((f"{len(odd) - LISTED:,} more", "listed under Suspicious answers"))
        lists.append(("Suspicious answers", entries))
    indices = workers.to_look_at[:LISTED]
    remarks: Entries = [
        (name, "; ".join(workers.remarks[i]))
        for i, name in zip(indices.tolist(), data.worker_cells(indices), strict=True)
    ]
    lists.append(("Workers to look at", remarks or [("Nobody", "stands out")]))
    return lists


def _uncertain_questions(data: ReportData) -> Entries:
    order = data.by_uncertainty[~data.is_gold[data.by_uncertainty]][:LISTED]
    entries: Entries = []
    for j, name in zip(order.tolist(), data.question_cells(order), strict=True):
        margin, count = data.margin[j], counted(int(data.problem.counts[j]), "answer")
        width = "interval unknown" if np.isnan(margin) else data.say_margin(margin)
        more = 0 if data.answers_needed is None else int(data.answers_needed.more[j])
        wanted = f", {more:,} more for median certainty" if more > 0 else ""
        value = data.say_value(data.est.estimate[j])
        entries.append((name, f"{value}, {width}, {count}{wanted}"))
    return entries
