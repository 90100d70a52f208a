"""The verdict first, in plain words: what was read, what was chosen, whether it helps, what to look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trueup.errors import counted
from trueup.report.markup import Name
from trueup.report.page import Section
from trueup.report.parts import Callout, Cards, Lists, Points, Text
from trueup.report.sections.context import Facts, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trueup.report.parts import Part
    from trueup.report.sections.worker_rows import Judged

LISTED = 5
INDEPENDENT = "if workers err independently of each other"
METHODS = {
    "native": "an average in which exact workers count more (native)",
    "mean": "the plain average",
    "median": "the median",
    "weighted_median": "a median in which exact workers count more",
    "blue": "an average with the known precision of each worker (BLUE)",
}


def verdict(facts: Facts, judged: Judged) -> Section:
    """Write the section."""
    parts: list[Part] = [Text(headline(facts), lead=True), Cards(_cards(facts))]
    warnings = facts.est.diagnosis.warnings
    if warnings:
        title = "Be careful" if len(warnings) == 1 else f"Be careful: {len(warnings)} warnings"
        parts.append(Callout(title, [_sentence(text) for text in warnings], "warning"))
    parts += [Points(points(facts)), Lists(_lists(facts, judged))]
    return Section("In short", parts=parts)


def headline(facts: Facts) -> str:
    """Say everything in one breath."""
    est = facts.est
    if not facts.knows_intervals:
        return (
            "Every question has an estimate; how sure these are cannot be known from these answers."
        )
    text = (
        f"A typical estimate is known to ±{facts.say_size(float(np.nanmedian(facts.half_width)))}"
    )
    gain = est.second_step.expected_gain
    if gain >= 0.005:
        text += f", and the second step is expected to lower squared errors by {percent(gain)}"
    text += "."
    reached = float(np.std(est.estimate))
    if reached > 0 and np.nanmedian(facts.half_width) > 2.0 * reached:
        text += " That is wider than the questions are apart: more answers are needed to tell them apart."
    return text


def _cards(facts: Facts) -> Sequence[tuple[str, str, str]]:
    est = facts.est
    answers = est.answers
    counts = answers.counts
    low, high = int(counts.min()), int(counts.max())
    each = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    cards = [
        (f"{answers.n_questions:,}", "questions", f"{each} answers each"),
        (f"{answers.n_workers:,}", "workers", ""),
        (f"{answers.n_answers:,}", "answers", _dropped_short(facts)),
    ]
    if facts.knows_intervals:
        half = facts.say_size(float(np.nanmedian(facts.half_width)))
        cards.append((f"±{half}", "typical interval", f"half are narrower; level {facts.percent}"))
    gain = est.second_step.expected_gain
    if np.isfinite(gain):
        says = f"−{percent(gain)}" if gain > 0 else "none"
        cards.append((says, "expected change of squared errors", "by the second step"))
    return cards


def _dropped_short(facts: Facts) -> str:
    origin = facts.est.answers.origin
    return f"{origin.n_missing:,} rows had none" if origin.n_missing else "no row dropped"


def points(facts: Facts) -> list[tuple[str, str]]:
    """Answer the questions that everybody has."""
    est = facts.est
    said = est.diagnosis
    found = [
        ("What was read?", _read(facts)),
        ("How were the answers combined, and why so?", _chosen(facts)),
        ("Does the second step help here?", _helps(facts)),
        (
            "What does an interval mean?",
            _meaning(facts) + (f" {_sentence(said.gold)}" if said.gold else ""),
        ),
    ]
    if facts.agreement is not None:
        found.append(("Do the workers agree?", facts.agreement.summary))
    if facts.correlated is not None:
        found.append(("Do some of them err together?", facts.correlated.summary))
    if facts.answers_needed is not None:
        found.append(("Are more answers needed?", facts.answers_needed.summary))
    return found


def _read(facts: Facts) -> str:
    answers, origin = facts.est.answers, facts.est.answers.origin
    text = (
        f"{counted(answers.n_answers, 'answer')} of {counted(answers.n_workers, 'worker')} to "
        f"{counted(answers.n_questions, 'question')}"
    )
    if answers.n_panels > 1:
        text += f" in {answers.n_panels:,} independent panels"
    text += "."
    if origin.n_missing:
        text += f" {origin.n_missing:,} of {origin.n_rows:,} rows were left out because they hold no answer."
    else:
        text += " No row had to be left out."
    if origin.n_duplicates:
        text += f" {counted(origin.n_duplicates, 'repeated answer')} of one worker to one question were merged."
    single = int((answers.counts == 1).sum())
    if single and answers.n_questions > 1:
        text += (
            f" {counted(single, 'question')} {'has' if single == 1 else 'have'} a single answer."
        )
    scale = facts.est.solution.scale
    if scale.transform:
        text += f" They were combined on the {scale.transform} scale and carried back."
    return text


def _chosen(facts: Facts) -> str:
    said = facts.est.diagnosis
    text = f"By {METHODS.get(said.method, 'the method ' + said.method)}"
    text += f": {said.why}." if said.why else ", as asked for."
    if said.iterations and not said.settled:
        text += (
            f" After {counted(said.iterations, 'iteration')} the values had not come fully to rest."
        )
    if said.pooling:
        text += f" {said.pooling[:1].upper()}{said.pooling[1:]}."
    if facts.est.biases is not None:
        text += " The bias of each worker was estimated and taken off first."
    return text


def _helps(facts: Facts) -> str:
    est = facts.est
    share = float(np.mean(est.shrinkage))
    if not est.shrinkage.any():
        if est.diagnosis.shrink == "none":
            return "It was not asked for: the estimates are the answers combined."
        return "It left all questions where they were: there is too little to learn from here."
    text = f"It moves questions {percent(share)} of the way toward what is usual here"
    gain = est.second_step.expected_gain
    if not np.isfinite(gain):
        return text + "; by how much that helps cannot be said for this rule."
    if gain >= 0.01:
        word = "Yes" if gain >= 0.05 else "A little"
        return f"{word}. {text}, which is expected to lower the mean squared error by {percent(gain)}, {INDEPENDENT}."
    if gain > 0:
        return f"Hardly. {text}: the answers are so good, or the questions so different, that little is left to gain."
    return f"No gain is expected: {text[0].lower()}{text[1:]}."


def _meaning(facts: Facts) -> str:
    est = facts.est
    if not facts.knows_intervals:
        return _sentence("; ".join(est.diagnosis.assumptions)) or "Intervals are unknown here."
    if est.calibration is not None:
        return (
            f"A {facts.percent} interval is meant to contain the truth itself for {facts.percent} of the questions: "
            f"known truths of {est.calibration.n_gold:,} questions showed what all workers get wrong together."
        )
    return (
        f"A {facts.percent} interval says how far the estimate may be from what infinitely many such workers would "
        "say; it does not contain an error that all workers share."
    )


def _lists(facts: Facts, judged: Judged) -> Sequence[tuple[str, Sequence[tuple[Name | str, str]]]]:
    est = facts.est
    lists: list[tuple[str, Sequence[tuple[Name | str, str]]]] = []
    doubt = facts.by_doubt[~facts.is_gold[facts.by_doubt]][:LISTED]
    entries = []
    for j, name in zip(doubt.tolist(), facts.questions(doubt), strict=True):
        half, count = facts.half_width[j], counted(int(est.answers.counts[j]), "answer")
        width = "interval unknown" if np.isnan(half) else f"±{facts.say_size(half)}"
        more = 0 if facts.answers_needed is None else int(facts.answers_needed.more[j])
        wanted = f", {more:,} more for typical certainty" if more > 0 else ""
        entries.append((Name(name), f"{facts.say(est.estimate[j])}, {width}, {count}{wanted}"))
    if entries:
        lists.append(("Least certain questions", entries))
    far = np.argsort(-np.abs(np.where(facts.is_gold, 0.0, facts.moved)), kind="stable")[:LISTED]
    before, after = (map(str, facts.rounded(each[far])) for each in (est.base, est.estimate))
    moves: list[tuple[Name | str, str]] = [
        (Name(name), f"{start} → {end}")
        for name, start, end in zip(facts.questions(far), before, after, strict=True)
        if start != end
    ]
    if est.shrinkage.any():
        lists.append(("Questions moved most", moves or [("No question", "was moved noticeably")]))
    look = judged.look_at[:LISTED]
    workers: list[tuple[Name | str, str]] = [
        (Name(name), "; ".join(judged.remarks[i]))
        for i, name in zip(look.tolist(), facts.workers(look), strict=True)
    ]
    lists.append(("Workers to look at", workers or [("Nobody", "stands out")]))
    return lists


def _sentence(text: str) -> str:
    text = text.strip()
    if not text:
        return ""
    return text[0].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
