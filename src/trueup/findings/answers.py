"""Suspicious answers: single ones that do not fit what others say about the same question, in words and as a frame.

Every answer of a question with at least three is compared with the others (`trueup.findings.surprise`). It is listed
if all of this holds:

- its surprise, a tail probability, is small among all of them: the rule of Benjamini and Hochberg (Journal of the Royal
  Statistical Society B 1995) at 2%, and it is at most one in a thousand. Where all is well hardly anything is listed;
- more than half of the answers of the question agree on another value, so that it is clear which of them is odd;
- it is farther off than 2.2 times what is usual where answers differ, so that one step of a rating scale is not odd.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import TrueupError, counted, quoted
from trueup.findings.surprise import FEWEST_ANSWERS, surprise
from trueup.io.columns import PLAIN_NAMES, IdNames
from trueup.io.frames_out import make_frame
from trueup.variance.correlated import sample_answers

if TYPE_CHECKING:
    from trueup.algorithms.driver import Aggregate
    from trueup.answers.answers import Answers
    from trueup.answers.scale import Scale
    from trueup.core.arrays import Floats, Ints
    from trueup.findings.surprise import Surprise
    from trueup.io.table import Ids
    from trueup.pipeline.solution import Solution
    from trueup.variance.correlated import AnswerSample

SHOWN = 10
#: Expected share of the listed answers that are in order, and the largest surprise of a listed one.
FALSE_SHARE, LARGEST = 0.02, 1e-3
#: Smallest distance from what would fit, relative to the usual one where answers differ.
SMALLEST_SIZE = 2.2
#: A changed answer fits well if one as far off is at least this likely.
FITS = 0.003
POWERS = (10, 100, 1000)
SIGN = "wrong sign?"
NO_THREE = (
    "no question has three answers; of two that differ nobody can say which one is wrong. "
    "Three answers to a question are needed."
)
NEXT = "Check them at the source. Nothing was removed or changed."


@dataclass(frozen=True, eq=False)
class OddAnswers:
    """Answers that do not fit, the most surprising first.

    Attributes
    ----------
    question_ids, worker_ids : Ids
        Question and worker of each.
    answer : array
        What was answered.
    expected, lower, upper : arrays
        What would fit, and the interval in which an answer of this worker to this question was to be expected.
    surprise : array
        Probability that an answer is as far off, under the fitted model.
    z : array
        Distance from what would fit in standard deviations, on the scale on which answers are combined.
    hint : tuple of str or None
        What may have gone wrong, where a factor of 10, 100 or 1000 or another sign would make the answer fit.
    n_judged, n_questions : int
        Number of answers that were compared with others, and of their questions.
    n_few : int
        Number of questions with fewer than three answers, about which nothing is said.
    places : array
        Their places among the answers that were examined.
    kind : str
        Library of `frame`.
    note : str
        Says that only a sample of the questions was examined, if so.
    names : IdNames
        What the caller calls questions and workers.
    """

    question_ids: Ids
    worker_ids: Ids
    answer: Floats
    expected: Floats
    lower: Floats
    upper: Floats
    surprise: Floats
    z: Floats
    hint: tuple[str | None, ...]
    n_judged: int
    n_questions: int
    n_few: int
    places: Ints
    kind: str
    note: str = ""
    names: IdNames = PLAIN_NAMES

    def __len__(self) -> int:
        return len(self.answer)

    @property
    def frame(self) -> Any:
        """Frame with a row per answer, the most surprising first."""
        columns: dict[str, Any] = {
            "question": self.question_ids,
            "worker": self.worker_ids,
            "answer": self.answer,
            "expected": self.expected,
            "lower": self.lower,
            "upper": self.upper,
            "surprise": self.surprise,
            "z": self.z,
            "hint": list(self.hint),
        }
        return make_frame(self.kind, columns, names=self.names)

    @property
    def summary(self) -> str:
        """What was found, in one sentence."""
        compared = counted(self.n_judged, "answer")
        if len(self) == 0:
            return (
                f"No answer is suspicious ({compared} compared with others to the same question)."
            )
        is_ = "is" if len(self) == 1 else "are"
        return (
            f"{len(self):,} of {compared} {is_} far from what others answered to the same question:"
        )

    def describe(self, number: int) -> str:
        """Return a sentence about one of the answers."""
        question, worker = (
            quoted(str(ids.name(number))).strip('"') for ids in (self.question_ids, self.worker_ids)
        )
        fits, low, high = (_short(ends[number]) for ends in (self.expected, self.lower, self.upper))
        within = f" ({low} to {high})" if low != high else ""
        text = (
            f"question {question}, worker {worker}: {self.answer[number]:.10g}; the other answers suggest about "
            f"{fits}{within}"
        )
        hint = self.hint[number]
        return text if hint is None else f"{text}. {hint[0].upper()}{hint[1:]}"

    def __str__(self) -> str:
        return "\n".join(self.lines(SHOWN))

    def lines(self, most: int) -> list[str]:
        """Return the findings in words, with at most this many answers."""
        lines = [self.summary]
        lines += [f"  {self.describe(number)}" for number in range(min(most, len(self)))]
        if len(self) > most:
            lines.append(f"  ... and {len(self) - most:,} more")
        lines += [NEXT] if len(self) else []
        if self.n_few:
            verb = "has" if self.n_few == 1 else "have"
            lines.append(
                f"{counted(self.n_few, 'question')} {verb} fewer than three answers: of two that differ nobody "
                "can say which one is wrong."
            )
        return [*lines, self.note] if self.note else lines


def empty_frame(kind: str) -> Any:
    """Return the frame of no suspicious answers, for answers in which none can be known."""
    words, numbers = (
        ("question", "worker", "hint"),
        ("answer", "expected", "lower", "upper", "surprise", "z"),
    )
    columns: dict[str, Any] = {name: [] for name in words} | {name: np.empty(0) for name in numbers}
    order = ("question", "worker", *numbers, "hint")
    return make_frame(kind, {name: columns[name] for name in order})


def odd_answers(
    solution: Solution, aggregate: Aggregate, sample: AnswerSample, kind: str
) -> OddAnswers:
    """Return the answers that do not fit.

    Parameters
    ----------
    solution : Solution
        What both steps found.
    aggregate : Aggregate
        The native first step over the answers of the sample.
    sample : AnswerSample
        The answers that are examined closely, on the scale on which they are combined.
    kind : str
        Library of the frame.
    """
    answers, counts = sample.answers, sample.answers.counts
    several = int((counts >= FEWEST_ANSWERS).sum())
    if not several:
        raise TrueupError(NO_THREE)
    found = surprise(aggregate)
    places, p_value = _listed(found)
    question = np.searchsorted(answers.indptr, places, side="right") - 1
    worker = answers.workers[places].astype(np.int64)
    ranks = [_rank(answers.question_ids, question), _rank(answers.worker_ids, worker)]
    order = np.lexsort((*ranks, -np.abs(found.z[places]), p_value))
    places, p_value = places[order], p_value[order]
    question, worker = question[order], worker[order]
    scale = replace(solution.scale, shift=0.0)  # a single answer is meant, not the average worker
    given = _as_given(solution, answers, places, question, worker)
    half = _quantile(found.freedom[places], solution.plan.level) * found.deviation[places]
    expected = found.expected[places]
    return OddAnswers(
        question_ids=answers.question_ids.take(question),
        worker_ids=answers.worker_ids.take(worker),
        answer=given,
        expected=scale.backward(expected),
        lower=scale.backward(expected - half),
        upper=scale.backward(expected + half),
        surprise=p_value,
        z=found.z[places],
        hint=_hints(found, places, given, scale),
        n_judged=int(counts[counts >= FEWEST_ANSWERS].sum()),
        n_questions=several,
        n_few=len(counts) - several,
        places=places,
        kind=kind,
        note=sample.note,
        names=solution.root.problem.names,
    )


def _listed(found: Surprise) -> tuple[Ints, Floats]:
    """Return which answers are listed, and how likely a distance as large is.

    Benjamini and Hochberg among all that were compared; and they must be large enough.
    """
    places = np.flatnonzero(found.judged & found.supported & (found.size >= SMALLEST_SIZE))
    p_value = found.probability(found.z[places], places)
    ordered = np.sort(p_value)
    bound = FALSE_SHARE * np.arange(1, len(ordered) + 1) / max(int(found.judged.sum()), 1)
    below = np.flatnonzero(ordered <= bound)
    limit = ordered[below[-1]] if len(below) else -1.0
    listed = p_value <= min(limit, LARGEST)
    return places[listed], p_value[listed]


def _as_given(
    solution: Solution, answers: Answers, places: Ints, question: Ints, worker: Ints
) -> Floats:
    """Return answers as they were given, to the last digit."""
    if solution.scale.transform is None or not len(places):
        return answers.answers[places]
    original = sample_answers(solution.root).answers
    questions = original.question_ids.index_of(answers.question_ids.take(question))
    workers = original.worker_ids.index_of(answers.worker_ids.take(worker))
    values, given = original.answers, np.empty(len(places))
    for number, (j, i) in enumerate(zip(questions.tolist(), workers.tolist(), strict=True)):
        row = slice(original.indptr[j], original.indptr[j + 1])
        given[number] = values[row][original.workers[row] == i][0]
    return given


def _hints(found: Surprise, places: Ints, answer: Floats, scale: Scale) -> tuple[str | None, ...]:
    """Return for each answer the one change that makes it fit, if there is exactly one."""
    changes = {SIGN: -1.0}
    changes |= {f"a factor of {power} too large?": 1.0 / power for power in POWERS}
    changes |= {f"a factor of {power} too small?": float(power) for power in POWERS}
    fitting = np.zeros((len(changes), len(places)), dtype=bool)
    for row, factor in zip(fitting, changes.values(), strict=True):
        with np.errstate(all="ignore"):
            changed = answer * factor
            possible = np.isfinite(changed) & ~scale.outside(changed) & (changed != answer)
            value = scale.forward(np.where(possible, changed, answer))
            z = (value - found.expected[places]) / found.deviation[places]
            row[:] = possible & (found.probability(z, places) >= FITS)
    only = fitting.sum(axis=0) == 1
    names = list(changes)
    return tuple(
        names[which] if one else None
        for which, one in zip(fitting.argmax(axis=0).tolist(), only.tolist(), strict=True)
    )


def _rank(ids: Ids, codes: Ints) -> Ints:
    """Return the place of each of these ids among them in order."""
    different, which = np.unique(codes, return_inverse=True)
    order = ids.take(different).sort_order()
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank[which]


def _quantile(freedom: Floats, level: float) -> Floats:
    from scipy.special import stdtrit

    return np.asarray(stdtrit(freedom, 0.5 + 0.5 * level), dtype=np.float64)


def _short(value: float) -> str:
    """Write a number with three digits, without an exponent where it is of everyday size."""
    return f"{float(f'{value:.3g}'):.12g}"
