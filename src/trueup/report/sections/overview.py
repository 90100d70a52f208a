"""The overview: what was read, which methods were used, whether the second step helps, what to look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trueup.errors import counted
from trueup.pipeline.diagnosis import size_in_words
from trueup.report.markup import Name
from trueup.report.names import shown
from trueup.report.page import Section
from trueup.report.parts import Callout, Cards, Lists, Paragraphs, Points
from trueup.report.sections.report_data import ReportData, brief, percent, sentence
from trueup.report.sections.truth_reach import CONSENSUS, TruthReach
from trueup.report.sections.worker_rows import isolated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trueup.findings.agreement import Agreement
    from trueup.findings.answers import OddAnswers
    from trueup.report.parts import Part
    from trueup.report.sections.worker_rows import WorkerRows

    #: Names with words on them.
    Entries = list[tuple[Name | str, str]]

LISTED = 5
METHODS = {
    "native": "an average in which precise workers count more and answers that are far off count less (native)",
    "mean": "the plain average",
    "median": "the median",
    "weighted_median": "a median in which precise workers count more",
    "blue": "an average weighted by the known precision of each worker (BLUE)",
}
UNDERSTATED = "and the full step would understate them again"


def overview_section(data: ReportData, workers: WorkerRows) -> Section:
    """Write the section."""
    parts: list[Part] = [Paragraphs(_headline(data), lead=True), Cards(_cards(data))]
    warnings = data.est.diagnosis.warnings
    if warnings:
        parts.append(
            Callout(counted(len(warnings), "warning"), list(map(sentence, warnings)), "warning")
        )
    parts += [Points(_points(data)), Lists(_lists(data, workers))]
    return Section("Overview", parts=parts)


def _headline(data: ReportData) -> str:
    """Say in one or two sentences how far the truth may be or, for the consensus, how certain the estimates are."""
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
    gain = est.second_step.expected_gain
    if gain >= 0.005 and not reach.is_target:
        text += f", and shrinkage (second step) is expected to lower the mean squared error by {percent(gain)}"
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
    gain = data.est.second_step.expected_gain
    if np.isfinite(gain) and not reach.is_target:
        change = f"−{percent(gain)}" if gain > 0 else "none"
        cards.append((change, "expected change of the mean squared error", "by the second step"))
    return cards


def _truth_cards(data: ReportData, reach: TruthReach) -> list[tuple[str, str, str]]:
    """Return the typical distance of the truth and the reach of its interval, where they are known."""
    signs = ("×", "×") if data.in_logarithms else ("", "±")
    cards = []
    if reach.outlook.is_known:
        whose = "half of the truths are nearer"
        distance = signs[0] + reach.size(reach.outlook.distance)
        cards.append((distance, "typical distance from the truth", whose))
    if np.isfinite(reach.half_width):
        rate = "over crowds like the public ones" if not reach.outlook.n_gold else ""
        half_width = signs[1] + reach.size(reach.half_width)
        cards.append((half_width, f"typical {data.percent} interval for the truth", rate))
    return cards


def _points(data: ReportData) -> list[tuple[str, str]]:
    """Answer the questions that everybody has."""
    points = [
        ("What was read?", _read(data)),
        *(
            [("What is estimated?", sentence(target))]
            if (target := data.est.diagnosis.target)
            else []
        ),
        ("How were the answers combined, and why?", _aggregation(data)),
        ("Does the second step help here?", _gain(data)),
        (
            "What does an interval mean?",
            f"{_interval_meaning(data)} {sentence(data.est.diagnosis.gold)}".rstrip(),
        ),
    ]
    reach = TruthReach(data)
    if not reach.is_known and not reach.merged:
        points.append(("How far may the truth be?", reach.how_far))
    elif reach.is_target and not reach.outlook.n_gold and reach.next_gold:
        points.append(("What would known truths bring?", reach.next_gold))
    if data.agreement is not None:
        points.append(("Do the workers agree?", _agreement(data, data.agreement)))
    for question, finding in (
        ("Are their errors independent?", data.correlated),
        ("Are more answers needed?", data.answers_needed),
    ):
        if finding is not None:
            points.append((question, finding.summary))
    return points


def _agreement(data: ReportData, agreement: Agreement) -> str:
    """Say how well workers agree, and that a few absurd answers can hide it."""
    if not data.odd_answers:
        return agreement.summary
    count = counted(len(data.odd_answers), "answer")
    do_not, are = ("does", "is") if len(data.odd_answers) == 1 else ("do", "are")
    return f"{agreement.summary} The {count} that {do_not} not fit {are} included and may lower this a lot."


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
    gain = est.second_step.expected_gain
    if TruthReach(data).is_target:
        return _partial_step(data)
    if not est.shrinkage.any():
        return "It changed no estimates: there is too little data to learn from."
    share = percent(float(np.mean(est.shrinkage)))
    text = f"Shrinkage (second step) moves estimates {share} of the way toward {est.second_step.target} on average"
    if not np.isfinite(gain):
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
    gain = est.second_step.expected_gain
    if not gain >= 0.005:
        return text
    return (
        f'{text} In full (target="consensus") it is expected to lower the mean squared distance from {CONSENSUS} by '
        f"{percent(gain)}."
    )


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
    if data.est.shrinkage.any():
        moves = _moved_questions(data)
        lists.append(("Questions moved most", moves or [("No question", "moved noticeably")]))
    if data.odd_answers:
        lists.append(("Answers that do not fit", _odd_answers(data.odd_answers)))
    indices = workers.to_look_at[:LISTED]
    remarks: Entries = [
        (Name(name), "; ".join(workers.remarks[i]))
        for i, name in zip(indices.tolist(), data.workers(indices), strict=True)
    ]
    lists.append(("Workers to look at", remarks or [("Nobody", "stands out")]))
    return lists


def _odd_answers(odd: OddAnswers) -> Entries:
    """Return the most surprising answers, with what would fit instead."""
    entries: Entries = []
    for number in range(min(len(odd), LISTED)):
        question, worker = (shown(ids.name(number)) for ids in (odd.question_ids, odd.worker_ids))
        answer, expected = brief(odd.answer[number]), brief(odd.expected[number])
        text = f"worker {isolated(worker)} answered {answer}; about {expected} would fit"
        hint = odd.hint[number]
        entries.append((Name(question), text if hint is None else f"{text} ({hint})"))
    if len(odd) > LISTED:
        entries.append((f"{len(odd) - LISTED:,} more", "est.findings.answers lists all of them"))
    return entries


def _uncertain_questions(data: ReportData) -> Entries:
    order = data.by_uncertainty[~data.is_gold[data.by_uncertainty]][:LISTED]
    entries: Entries = []
    for j, name in zip(order.tolist(), data.questions(order), strict=True):
        margin, count = data.margin[j], counted(int(data.problem.counts[j]), "answer")
        width = "interval unknown" if np.isnan(margin) else data.say_margin(margin)
        more = 0 if data.answers_needed is None else int(data.answers_needed.more[j])
        wanted = f", {more:,} more for median certainty" if more > 0 else ""
        entries.append((Name(name), f"{data.say(data.est.estimate[j])}, {width}, {count}{wanted}"))
    return entries


def _moved_questions(data: ReportData) -> Entries:
    indices = data.by_move[:LISTED]
    before, after = (
        map(str, data.rounded(column[indices])) for column in (data.est.base, data.est.estimate)
    )
    return [
        (Name(name), f"{start} → {end}")
        for name, start, end in zip(data.questions(indices), before, after, strict=True)
        if start != end
    ]
