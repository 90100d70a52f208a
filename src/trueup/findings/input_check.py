"""examine(): what answers are like, and what can be run on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.algorithms.facts import gather_facts
from trueup.answers.scale import PanelScales, Scale
from trueup.engines.memory import MemoryEngine
from trueup.errors import Message, counted, option, quoted
from trueup.pipeline.auto_method import FEWEST_WORKERS
from trueup.pipeline.diagnosis import size_in_words
from trueup.pipeline.scale_choice import compare_scales
from trueup.pipeline.scaling import on_scale

if TYPE_CHECKING:
    from trueup.answers.answers import Answers

#: Questions below which the second step leaves everything where it is, and from which on mixtures are tried.
SHRINKS, MIXES = 4, 8
#: Informative answers from which on a worker can be judged.
JUDGED = 5
#: Smallest and largest answers that are shown.
EXTREMES = 3


@dataclass(frozen=True)
class Checkup:
    """What was found.

    Attributes
    ----------
    found : tuple of str
        What the data are like.
    runs : tuple of str
        What can be run on them.
    cannot : tuple of str
        What cannot, and why.
    advice : tuple of str
        What to do about it.
    """

    found: tuple[str, ...]
    runs: tuple[str, ...]
    cannot: tuple[str, ...]
    advice: tuple[str, ...]

    def __str__(self) -> str:
        return self.text

    @property
    def text(self) -> Message:
        """All of it, a line each; it knows which keywords it mentions."""
        parts = {
            "Found": self.found,
            "Can be run": self.runs,
            "Cannot be run": self.cannot,
            "Advice": self.advice,
        }
        lines: list[str] = []
        for title, texts in parts.items():
            if texts:
                lines += [title, *("  " + text for text in texts)]
        return Message("\n").join(lines)


def examine(answers: Answers, scale: Scale | None = None) -> Checkup:
    """Check answers without estimating anything.

    Examples
    --------
    >>> import trueup
    >>> print(examine(trueup.simulate(workers=3, questions=2, seed=1).answers).cannot[0])
    shrinkage (second step): needs 4 questions, found 2
    """
    counts, origin = answers.counts, answers.origin
    engine = MemoryEngine(answers)
    facts = gather_facts(engine if scale is None else on_scale(engine, PanelScales((scale,))))
    lone = int((counts < 2).sum())
    judged = int((facts.n_informative >= JUDGED).sum())
    found = [
        size_in_words(answers),
        f"answers per question: {_range(counts)}; per worker: {_range(facts.n_answers)}",
    ]
    if origin.n_missing:
        has = "has no answer and is" if origin.n_missing == 1 else "have no answer and are"
        found.append(f"{origin.n_missing:,} of {counted(origin.n_rows, 'row')} {has} left out")
    found += origin.account
    if origin.n_duplicates:
        was = "was" if origin.n_duplicates == 1 else "were"
        found.append(f"{counted(origin.n_duplicates, 'repeated answer')} {was} merged")
    if lone:
        found.append(
            f"{counted(lone, 'question')} with a single answer, which cannot be compared with others"
        )
    found += _extremes(answers)
    runs: list[str] = []
    cannot: list[str] = []
    advice: list[str] = []
    overlap = bool(facts.overlap[0] > 0)
    if not overlap:
        runs.append("estimates without intervals: the only answer to a question is its estimate")
        cannot.append(
            "judging workers, intervals, shrinkage (second step): no question has two answers"
        )
        advice.append(
            "have workers answer the same questions, or give eight or more known truths ("
            + option("gold")
            + ")"
        )
    elif facts.pool[0] == 0:
        runs.append("estimates; all workers agree on everything, so all get the same weight")
    else:
        runs.append("estimates with intervals, by any aggregation method (first step)")
        runs.append(
            f"judging {judged:,} of {counted(answers.n_workers, 'worker')} (those with {JUDGED} shared answers or more)"
        )
    if overlap and answers.n_workers >= FEWEST_WORKERS:
        runs.append(
            "choosing the aggregation method by held-out workers (method auto, trueup compare)"
        )
    elif overlap:
        cannot.append(
            f"choosing the aggregation method: needs {FEWEST_WORKERS} workers, found {answers.n_workers}"
        )
    if answers.n_questions < SHRINKS:
        cannot.append(
            f"shrinkage (second step): needs {SHRINKS} questions, found {answers.n_questions}"
        )
    elif overlap:
        more = ", with a search for clusters of questions" if answers.n_questions >= MIXES else ""
        runs.append(f"shrinkage (second step){more}")
    if scale is None and overlap and answers.n_panels == 1:
        about_scale = compare_scales(engine, Scale()).announced
        if about_scale:
            advice.append(about_scale)
    return Checkup(tuple(found), tuple(runs), tuple(cannot), tuple(advice))


def _extremes(answers: Answers) -> list[str]:
    """Name the smallest and the largest answers, by question and worker."""
    values = answers.answers
    if answers.n_panels > 1 or values.min() == values.max():
        return []
    question = np.repeat(np.arange(answers.n_questions), answers.counts)
    order = np.argsort(values, kind="stable")
    lines = [
        f"answers from {values[order[0]]:.6g} to {values[order[-1]]:.6g}, median {np.median(values):.6g}"
    ]
    count = min(EXTREMES, len(order))
    for what, chosen in (("smallest", order[:count]), ("largest", order[::-1][:count])):
        workers = answers.worker_ids.tolist(answers.workers[chosen])
        questions = answers.question_ids.tolist(question[chosen])
        named = [
            f"{value:.6g} ({quoted(who)} on {quoted(which)})"
            for value, who, which in zip(values[chosen].tolist(), workers, questions, strict=True)
        ]
        lines.append(f"{what}: {', '.join(named)}")
    return lines


def _range(counts: Any) -> str:
    return f"{counts.min():,.0f} to {counts.max():,.0f}, median {np.median(counts):g}"
