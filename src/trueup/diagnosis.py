"""diagnose(): whether the second step helps here, by how much, and how sure that is.

Joins the statements of `trueup.theory` on one data set. The condition of the general theorem speaks of repeated answers
to the same questions, which one data set does not have; a bootstrap over workers stands in for them, and the result
says what that can and cannot tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.algorithms.driver import MAX_ITER, TOLERANCE, run
from trueup.algorithms.registry import find
from trueup.answers import Answers
from trueup.errors import TrueupError
from trueup.theory import Condition, Gain, condition_from_bootstrap, gain_estimate, shrinkage_limit
from trueup.variance import mean_sandwich, plugin, psi_h

if TYPE_CHECKING:
    from trueup.algorithms.contract import Algorithm
    from trueup.algorithms.driver import Aggregate
    from trueup.arrays import Floats

PANELS = 400
SHARED = "Errors that all workers share cannot be seen in the answers; if they are large, less is gained."
#: A question that a resample of the workers leaves unanswered keeps its observed aggregate; more of them than this
#: share of all, and the bootstrap says nothing.
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
        brings = f"lower the mean squared error by {1.0 - self.expected_ratio:.1%}"
        effect = "help" if self.printed < 2 * self.variance else "hurt (the limit is 2)"
        lines = [
            f"A second step after {self.method} is expected to {brings if self.helps else 'bring nothing'}.",
            f"How uniform the questions are: {self.uniformity:.2f} (1 all alike, 0 nothing in common).",
            f"Variance of an aggregate {self.variance:.4g}, of the true values {self.prior_variance:.4g}.",
            f"psi_H as the paper prints it is {self.printed / self.variance:.1f} times the former: it would {effect}.",
        ]
        if self.condition is not None:
            alpha = self.condition.alpha_star
            lines.append(
                f"Resampled workers give alpha* = {alpha.value:.1f} ± {alpha.std_error:.1f}; with a right variance "
                f"it is about m - 3 = {self.m - 3}."
            )
            lines += [f"  note: {note}" for note in self.condition.notes]
        lines.append(SHARED)
        return "\n".join(lines)


def diagnose(
    answers: Any,
    method: str | Algorithm = "mean",
    *,
    panels: int = PANELS,
    max_iter: int = MAX_ITER,
    tol: float = TOLERANCE,
    seed: int = 0,
    **options: Any,
) -> SecondStepDiagnosis:
    """Tell whether the second step helps on these answers, by how much, and how uniform the questions are.

    Parameters
    ----------
    answers
        As for `estimate`; `options` are those of `Answers.of`.
    method : str or Algorithm
        The first step.
    panels : int
        Resamples of the workers; 0 leaves them out.

    Examples
    --------
    >>> from trueup import simulate
    >>> found = diagnose(simulate(workers=6, questions=40, truth_scale=0.5, seed=1).answers)
    >>> found.helps, round(found.expected_ratio, 2)
    (True, 0.44)
    """
    data = Answers.of(answers, **options)
    if data.n_panels > 1:
        raise TrueupError("answers: these are panels; diagnose one with `answers.panel(b)`.")
    if data.n_questions <= 3:
        raise TrueupError(f"answers: found {data.n_questions} questions, a second step needs four.")
    algorithm = find(method)
    aggregate = run(algorithm, data, max_iter=max_iter, tol=tol)
    if (aggregate.facts.pool == 0).all():
        raise TrueupError(
            "answers: no question has two different answers, so nothing is known of their noise."
        )
    x, m = aggregate.x, data.n_questions
    v = float(plugin(data, aggregate).mean())
    total = float(np.var(x, ddof=1))
    prior = max(total - v, 0.0)
    uniformity = shrinkage_limit(v, prior)
    printed = float(psi_h(data, aggregate)[0])
    other = float(mean_sandwich(data, aggregate)[0])
    judge = other if other > 0 else v
    return SecondStepDiagnosis(
        method=algorithm.name or type(algorithm).__name__,
        m=m,
        variance=v,
        prior_variance=prior,
        uniformity=uniformity,
        expected_ratio=1.0 - (m - 3) / m * uniformity,
        printed=printed,
        gain=gain_estimate(x, v, judge),
        gain_printed=gain_estimate(x, printed, judge),
        condition=_condition(data, aggregate, panels, max_iter, tol, seed) if panels else None,
    )


def _condition(
    data: Answers, aggregate: Aggregate, panels: int, max_iter: int, tol: float, seed: int
) -> Condition | None:
    """Measure the general condition on resampled workers, the plug-in variance of each resample as psi."""
    if data.n_workers < 2:
        return None
    drawn = data.bootstrap(panels, seed=seed)
    found = run(aggregate.algorithm, drawn, max_iter=max_iter, tol=tol)
    psi = np.array([part.mean() for part in np.split(found.variance, drawn.panel_questions[1:-1])])
    source = drawn.question_source
    assert source is not None  # noqa: S101  resamples know where they come from
    x: Floats = np.tile(aggregate.offset, (panels, 1))
    x[drawn.question_panel, source] = found.offset
    if 1.0 - drawn.n_questions / x.size > MOST_MISSING or not (psi > 0).all():
        return None
    return condition_from_bootstrap(x + data.centre, psi)
