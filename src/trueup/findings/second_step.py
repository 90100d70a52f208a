"""Whether the second step helps on these answers, by how much, and how sure that is.

Joins the statements of `trueup.theory` on one data set. The condition of the general theorem is about repeated answers
to the same questions, which one data set does not have; a bootstrap over workers takes their place, and the result says
what that can and cannot show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.algorithms.driver import run
from trueup.answers.panels import MOST_PANELS
from trueup.errors import TrueupError, counted, quoted
from trueup.theory import Condition, Gain, condition_from_bootstrap, gain_estimate, shrinkage_limit
from trueup.variance import mean_sandwich, plugin, psi_h

if TYPE_CHECKING:
    from trueup.algorithms.driver import Aggregate
    from trueup.answers.answers import Answers
    from trueup.core.arrays import Floats

PANELS = 400
SHARED = "Errors that all workers share cannot be detected from the answers; if they are large, shrinkage gains less."
#: A question that a resample of the workers leaves unanswered keeps its observed aggregate; if more of them than this
#: share are unanswered, the bootstrap says nothing.
MOST_MISSING = 0.2


@dataclass(frozen=True)
class SecondStepDiagnosis:
    """Whether the second step is expected to help on these answers.

    Attributes
    ----------
    method : str
    m : int
        Number of questions.
    variance : float
        Mean variance of an aggregate (plug-in).
    prior_variance : float
        Variance of the true values: that of the aggregates less their own.
    uniformity : float
        `variance / (variance + prior_variance)`: 1 where the questions are all alike as far as can be seen, near 0
        where they differ so much that nothing is gained.
    expected_ratio : float
        Expected risk after / before a second step with a right variance,
        `1 - (m-3)/m * uniformity` in the normal model.
    printed : float
        psi_H of the paper, as printed; helps only below twice `variance`.
    gain, gain_printed : Gain
        Gain of a step with the plug-in variance, and with psi_H, judged by another estimate of the variance (sandwich).
    condition : Condition or None
        The general condition and alpha* from a bootstrap over workers, with the plug-in variance.
    """

    method: str
    m: int
    variance: float
    prior_variance: float
    uniformity: float
    expected_ratio: float
    printed: float
    gain: Gain
    gain_printed: Gain
    condition: Condition | None

    @property
    def helps(self) -> bool:
        """Whether a second step with a right variance is expected to help."""
        return self.m > 3 and self.gain.shrink

    def __str__(self) -> str:
        brings = (
            f"lower the mean squared error by {1.0 - self.expected_ratio:.1%}"
            if self.helps
            else "help"
        )
        effect = "help" if self.printed < 2 * self.variance else "hurt (the limit is 2)"
        lines = [
            f"Shrinkage (second step) after {self.method} is {'' if self.helps else 'not '}expected to {brings}.",
            f"Uniformity of the questions: {self.uniformity:.2f} (1: all alike, 0: nothing in common).",
            f"Variance of an aggregate: {self.variance:.4g}; of the true values: {self.prior_variance:.4g}.",
            f"psi_H as printed in the paper is {self.printed / self.variance:.1f} times the former: it would {effect}.",
        ]
        if self.condition is not None:
            alpha = self.condition.alpha_star
            lines.append(
                f"Resampled workers give alpha* = {alpha.value:.1f} ± {alpha.std_error:.1f}; with the right variance "
                f"it is about m - 3 = {self.m - 3}."
            )
            lines += [f"  note: {note}" for note in self.condition.notes]
        lines.append(SHARED)
        return "\n".join(lines)


def diagnose_second_step(
    answers: Answers, aggregate: Aggregate, *, panels: int = PANELS, seed: int = 0, **limits: Any
) -> SecondStepDiagnosis:
    """Return whether the second step is expected to help.

    Parameters
    ----------
    answers, aggregate : Answers, Aggregate
        The answers of one problem, and what the first step made of them.
    panels : int
        Resamples of the workers; 0 leaves them out.
    seed : int
        Seed of the resamples.
    limits
        `max_iter` and `tol` of the first step on the resamples.
    """
    check_panels(panels)
    if answers.n_questions <= 3:
        found = counted(answers.n_questions, "question")
        raise TrueupError(f"found {found}, a second step needs four.", argument="answers")
    if (aggregate.facts.pool == 0).all():
        raise TrueupError(
            "no question has two different answers, so nothing is known of their noise.",
            argument="answers",
        )
    algorithm, x, m = aggregate.algorithm, aggregate.x, answers.n_questions
    v = float(plugin(answers, aggregate).mean())
    total = float(np.var(x, ddof=1))
    prior = max(total - v, 0.0)
    printed, judge = printed_and_sandwich(aggregate, v)
    try:
        uniformity = shrinkage_limit(v, prior)
        gain, gain_printed = (gain_estimate(x, psi, judge) for psi in (v, printed))
    except TrueupError as error:  # all questions have the same aggregate, or answers are tiny
        raise TrueupError(
            f"whether the second step helps cannot be said: {error.message}", argument="answers"
        ) from error
    return SecondStepDiagnosis(
        method=algorithm.name or type(algorithm).__name__,
        m=m,
        variance=v,
        prior_variance=prior,
        uniformity=uniformity,
        expected_ratio=1.0 - (m - 3) / m * uniformity,
        printed=printed,
        gain=gain,
        gain_printed=gain_printed,
        condition=_condition(answers, aggregate, panels, seed, limits) if panels else None,
    )


def printed_and_sandwich(aggregate: Aggregate, variance: float) -> tuple[float, float]:
    """Return two other estimates of the variance of an aggregate: psi_H as printed in the paper, and the sandwich.

    `variance` takes the place of the second where it is 0, or where the method does not tell how much each answer
    counts.
    """
    printed = float(psi_h(None, aggregate)[0])
    try:
        sandwich = float(mean_sandwich(None, aggregate)[0])
    except TrueupError:
        return printed, variance
    return printed, sandwich if sandwich > 0 else variance


def check_panels(panels: object) -> None:
    """Check that `panels` is a possible number of resamples."""
    if not isinstance(panels, int | np.integer) or not (panels == 0 or 2 <= panels <= MOST_PANELS):
        raise TrueupError(
            f"panels: found {quoted(panels)}, must be a whole number from 2 to {MOST_PANELS}, or 0 for none."
        )


def _condition(
    answers: Answers, aggregate: Aggregate, panels: int, seed: int, limits: dict[str, Any]
) -> Condition | None:
    """Measure the general condition on resampled workers, the plug-in variance of each resample as psi."""
    if answers.n_workers < 2:
        return None
    drawn = answers.bootstrap(panels, seed=seed)
    resampled = run(aggregate.algorithm, drawn, **limits)
    psi = np.array(
        [part.mean() for part in np.split(resampled.variance, drawn.panel_questions[1:-1])]
    )
    source = drawn.question_source
    assert source is not None  # noqa: S101  resamples know where they come from
    x: Floats = np.tile(aggregate.offset, (panels, 1))
    x[drawn.question_panel, source] = resampled.offset
    if 1.0 - drawn.n_questions / x.size > MOST_MISSING or not (psi > 0).all():
        return None
    try:
        return condition_from_bootstrap(x + answers.centre, psi)
    except TrueupError:  # in a resample all questions have the same aggregate
        return None
