"""Which questions need another answer, and how many: what the next one would add to what is known.

The variance V_j of an estimate says how much is known of a question, prior included. An answer of a typical worker,
of variance s (what an answer counts at the median question, with the bias that the next worker has as well), adds 1/s
to what is known:

    1/V_j after a more answers = 1/V_j + a/s,         one answer lowers V_j by V_j^2 / (V_j + s)
    a_j = s (1/(target^2 - F_j) - 1/V_j), rounded up

F_j is the part of the squared standard error that no further answer to this question lowers: a shift through the
biases of the workers, the spread that gold showed. It is the normal model of the second step with a fixed prior
(Gelman et al., Bayesian Data Analysis, section 2.5); the answers are counted on the scale on which they are combined.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.answers.scale import LOGARITHMS
from trueup.core.parameters import SMALLEST, number
from trueup.errors import TrueupError, counted, quoted
from trueup.io.columns import PLAIN_NAMES, IdNames
from trueup.io.frames_out import make_frame

if TYPE_CHECKING:
    from trueup.core.arrays import Bools, Floats, Ints
    from trueup.io.table import Ids
    from trueup.pipeline.solution import Solution

SHOWN = 10
#: More answers than this to a question are a way of saying never.
MOST = 1e9


@dataclass(frozen=True, eq=False)
class AnswersNeeded:
    """What more answers would bring, question by question, the least certain first.

    Attributes
    ----------
    question_ids : Ids
        The questions.
    kind : str
        Library of the frame `questions`.
    std_error, n_answers : arrays
        Standard error and number of answers of each question.
    order : array
        Numbers of the questions by falling standard error, relative to the value where the target is; those where it is
        unknown come last.
    target : float
        Standard error that is asked for.
    asked : bool
        Whether it was given, or is that of the median question.
    more : array
        Answers that each question needs for it, in the order of the questions of the estimate; -1 where no number of
        answers is enough or nothing is known.
    gain : array
        How much one more answer lowers the squared standard error of each question, NaN where unknown.
    after_one : array
        Standard error of each question after one more answer, NaN where unknown.
    typical : float
        Standard deviation of an answer of a typical worker, on the scale on which answers are combined.
    relative : bool
        Whether the target is a share of the value: where logarithms are combined and no target was given.
    names : IdNames
        What the caller calls questions and workers.
    """

    question_ids: Ids
    kind: str
    std_error: Floats
    n_answers: Ints
    order: Ints
    target: float
    asked: bool
    more: Ints
    gain: Floats
    after_one: Floats
    typical: float
    relative: bool = False
    names: IdNames = PLAIN_NAMES

    @property
    def total(self) -> int:
        """Answers needed in all, for the questions that can reach the target."""
        return int(np.maximum(self.more, 0).sum())

    @property
    def short(self) -> int:
        """Number of questions that have not reached the target and can."""
        return int((self.more > 0).sum())

    @property
    def never(self) -> int:
        """Number of questions that no number of answers brings to the target."""
        return int(((self.more < 0) & ~self._unknown).sum())

    @property
    def best(self) -> Ints:
        """Numbers of the ten questions that gain most from one more answer."""
        gain = np.nan_to_num(self.gain, nan=-1.0)
        best = np.argsort(-gain, kind="stable")[:SHOWN]
        return best[gain[best] > 0]

    @property
    def _unknown(self) -> Bools:
        return np.isnan(self.std_error)

    @property
    def questions(self) -> Any:
        """Frame with a row per question, the least certain first."""
        return self._frame(self.order)

    @property
    def by_need(self) -> Any:
        """The same frame, the question that needs most answers first; those without such a number come last."""
        return self._frame(self.need_order)

    @property
    def need_order(self) -> Ints:
        """Numbers of the questions, the one that needs most answers first."""
        need = np.where(self._unknown, -2, self.more)
        return self.order[np.argsort(-need[self.order], kind="stable")]

    def _frame(self, order: Ints) -> Any:
        more = self.more[order]
        number: Any = np.where(more < 0, np.nan, more)
        if self.kind == "pyarrow":  # whole numbers stay so beside those that are missing
            number = [None if each < 0 else each for each in more.tolist()]
        columns: dict[str, Any] = {
            "question": self.question_ids.take(order),
            "std_error": self.std_error[order],
            "n_answers": self.n_answers[order],
            "more_answers": number if (more < 0).any() else more,
            "gain": self.gain[order],
            "std_error_after_one": self.after_one[order],
        }
        unknown = ("std_error", "more_answers", "gain", "std_error_after_one")
        return make_frame(self.kind, columns, null_columns=unknown, names=self.names)

    @property
    def summary(self) -> str:
        """What is needed, in one sentence."""
        goal = "a standard error of "
        goal += f"{self.target:.1%} of the value" if self.relative else f"{self.target:.3g}"
        goal += "" if self.asked else " (the median question's)"
        if self.short == 0:
            some = " that can do so" if self.never else ""
            text = f"Every question{some} has reached {goal}."
        else:
            verb = "needs" if self.short == 1 else "need"
            text = (
                f"{self.short:,} of {counted(len(self.more), 'question')} {verb} more answers to reach {goal}: "
                f"{counted(self.total, 'more answer')} from typical workers in total."
            )
        if self.never:
            text += (
                f" {counted(self.never, 'question')} cannot reach it with any number of answers."
            )
        unknown = int(self._unknown.sum())
        if unknown:
            text += f" The standard error of {counted(unknown, 'question')} is unknown."
        return text

    def __str__(self) -> str:
        return "\n".join(self.lines(SHOWN))

    def lines(self, most: int) -> list[str]:
        """Return the findings in words, with at most this many questions."""
        lines = [self.summary]
        best = self.best[:most]
        if len(best):
            lines.append("One more answer helps most for these questions:")
        for name, j in zip(self.question_ids.tolist(best), best.tolist(), strict=True):
            short = quoted(str(name)).strip('"')
            lines.append(
                f"  {short}: standard error {self.std_error[j]:.3g} to {self.after_one[j]:.3g} "
                f"({counted(int(self.n_answers[j]), 'answer')} so far)"
            )
        return lines


def check_target(target_se: float | None) -> None:
    """Check a target that a caller gives: its square must be a number."""
    if target_se is not None:
        number("target_se", target_se, SMALLEST)


def answers_needed(solution: Solution, kind: str, target_se: float | None = None) -> AnswersNeeded:
    """Return which questions need more answers.

    Parameters
    ----------
    solution : Solution
        What both steps found.
    kind : str
        Library of the frame.
    target_se : float, optional
        Standard error that every question should have, in answer units; default: that of the median question, relative
        to the value where logarithms are combined.
    """
    check_target(target_se)
    problem, error = solution.root.problem, solution.column("std_error")
    if problem.n_panels > 1:
        raise TrueupError("estimate: it is of panels; ask for one of them.")
    known = ~np.isnan(error)
    if not known.any():
        raise TrueupError(
            "estimate: no standard error is known, so nothing can be said about more answers. "
            "Questions with two answers and a second step with intervals are needed."
        )
    # From the scale of the answers to the one on which they are combined, where answers add up.
    slope = np.where(known & (error > 0), _slope(solution), 1.0)
    relative = target_se is None and solution.scale.transform in LOGARITHMS
    unit = slope if relative else np.ones(len(slope))
    target = float(np.median((error / unit)[known])) if target_se is None else float(target_se)
    s = _typical(solution)
    total = np.where(known, error / slope, 0.0) ** 2
    own = np.minimum(np.nan_to_num(solution.second_step.posterior.variance), total)
    fixed = total - own
    after = fixed + s * np.divide(own, own + s, out=np.zeros(len(own)), where=own + s > 0)
    room = (target * unit / slope) ** 2 - fixed
    reached = ~known | (error <= target * unit * (1 + 1e-12))
    exact = np.zeros(len(error))
    open_ = ~reached & (room > 0) & (own > 0)
    exact[open_] = s * (1.0 / room[open_] - 1.0 / own[open_])
    more = np.where(open_, np.minimum(np.ceil(exact - 1e-9), MOST), 0).astype(np.int64)
    more[(~reached & ~open_) | ~known | (more >= MOST)] = -1
    return AnswersNeeded(
        problem.question_ids,
        kind,
        error,
        problem.counts,
        np.argsort(np.where(known, -error / unit, np.inf), kind="stable"),
        target,
        target_se is not None,
        more,
        np.where(known, (total - after) * slope**2, np.nan),
        np.where(known, np.sqrt(after) * slope, np.nan),
        float(np.sqrt(s)),
        relative,
        problem.names,
    )


def _typical(solution: Solution) -> float:
    """Return the variance of an answer of a typical worker, including its bias unless biases were removed.

    That is `k_j (v_j + shift)` at the median question: what an answer counts in the first step, on average over its
    workers. The median of the workers would not do where workers give an answer or two each: their variances are then
    as good as unknown, and the median of such estimates is far below their mean.
    """
    sure, counts = solution.second_step.certainty, solution.root.problem.counts
    known = ~solution.second_step.unknown & np.isfinite(sure.v_interval)
    if not known.any():
        return 0.0
    return float(np.median(counts[known] * (sure.v_interval[known] + sure.shift[0])))


def _slope(solution: Solution) -> Floats:
    """Return the factor that carries a standard error from the scale of combination to answer units."""
    scale = solution.scale
    if scale.transform is None:
        return np.ones(solution.root.problem.n_questions)
    # An estimate on its bound has no slope; then the standard error is taken as it is.
    with np.errstate(all="ignore"):
        slope = scale.slope(scale.forward_truths(solution.column("estimate")))
    return np.where(np.isfinite(slope) & (slope > 0), slope, 1.0)
