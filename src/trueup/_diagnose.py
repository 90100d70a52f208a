"""diagnose(): whether the second step helps here, by how much, and how sure that is; diagnose_all(): everything else.

Joins the statements of `trueup.theory` on one data set. The condition of the general theorem speaks of repeated answers
to the same questions, which one data set does not have; a bootstrap over workers stands in for them, and the result
says what that can and cannot tell.

`diagnose_all` gathers what a requester wants to know of workers and questions: who should be looked at
(`trueup.findings.workers`), who errs together (`trueup.variance.correlated`), which questions need more answers
(`trueup.findings.answers_needed`), how well the workers agree (`trueup.findings.agreement`), and what the second step
brings.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.algorithms.driver import MAX_ITER, TOLERANCE, run
from trueup.algorithms.registry import find
from trueup.answers.answers import Answers
from trueup.answers.panels import MOST_PANELS
from trueup.core.progress import Progress
from trueup.core.sampling import check_seed
from trueup.errors import TrueupError, TrueupWarning, counted, quoted
from trueup.theory import Condition, Gain, condition_from_bootstrap, gain_estimate, shrinkage_limit
from trueup.variance import mean_sandwich, plugin, psi_h, worker_noise

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.algorithms.contract import Algorithm
    from trueup.algorithms.driver import Aggregate
    from trueup.core.arrays import Floats
    from trueup.findings.agreement import Agreement
    from trueup.findings.answers_needed import Needs
    from trueup.findings.workers import WorkerTable
    from trueup.result.estimate import Estimate
    from trueup.variance.correlated import Together

PANELS = 400
SHARED = "Errors that all workers share cannot be seen in the answers; if they are large, less is gained."
#: A question that a resample of the workers leaves unanswered keeps its observed aggregate; more of them than this
#: share of all, and the bootstrap says nothing.
MOST_MISSING = 0.2
#: Answers in all resamples of the workers, beyond which there are fewer of them, and the fewest that say something.
MOST_RESAMPLED, FEWEST_PANELS = 10_000_000, 50
#: Pairs and questions that are listed where everything is.
FEW = 5


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
    check_seed(seed)
    _check_panels(panels)
    data = Answers.of(answers, **options)
    _one_problem(data)
    if data.n_questions <= 3:
        found = counted(data.n_questions, "question")
        raise TrueupError(f"answers: found {found}, a second step needs four.")
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


@dataclass(frozen=True, eq=False)
class Findings:
    """All that is known of workers and questions; what could not be found out is None, and `missing` says why.

    Attributes
    ----------
    estimate : Estimate
    workers : WorkerTable
    together : Together or None
    needs : Needs or None
    agreement : Agreement or None
    second_step : SecondStepDiagnosis or None
    missing : tuple of str
        What could not be found out, and why.
    """

    estimate: Estimate
    workers: WorkerTable
    together: Together | None
    needs: Needs | None
    agreement: Agreement | None
    second_step: SecondStepDiagnosis | None
    missing: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Say all in words, what can be acted upon first."""
        answers, about = self.estimate.answers, self.estimate.diagnosis
        why = f" ({about.why})" if about.why else ""
        size = (
            f"{counted(answers.n_answers, 'answer')} of {counted(answers.n_workers, 'worker')} to "
            f"{counted(answers.n_questions, 'question')}"
        )
        lines = [f"{size}; first step: {about.method}{why}"]
        lines += [about.voices] if about.voices else []
        lines += [f"warning: {text}" for text in about.warnings]
        parts = {"Workers": str(self.workers).splitlines()}
        if self.together is not None:
            parts["Workers who err together"] = self.together.lines(FEW)
        if self.needs is not None:
            parts["Questions"] = self.needs.lines(FEW)
        if self.agreement is not None:
            found = self.agreement
            parts["Agreement"] = found.lines((found.one, found.alpha, *found.two_way[::2]))
        if self.second_step is not None:
            # What cannot be seen has been said above, and notes are for those who ask for this part alone.
            text = str(self.second_step).splitlines()
            parts["Second step"] = [each for each in text if each != SHARED and "note:" not in each]
        if self.missing:
            parts["Not known"] = list(self.missing)
        for title, text in parts.items():
            lines += ["", title, *(f"  {each}" for each in text)]
        return "\n".join(lines)


def diagnose_all(
    answers: Any,
    method: str | Algorithm = "auto",
    *,
    target_se: float | None = None,
    panels: int = PANELS,
    max_iter: int = MAX_ITER,
    tol: float = TOLERANCE,
    seed: int = 0,
    threads: int | None = None,
    progress: bool = False,
    **options: Any,
) -> Findings:
    """Tell what stands out about workers and questions, how well workers agree, and what the second step brings.

    Parameters
    ----------
    answers
        An `Estimate`, or what `estimate` takes; `options` are those of `Answers.of`.
    method : str or Algorithm
        The first step.
    target_se : float, optional
        Standard error that every question should have; default: that of the median question.
    panels : int
        Resamples of the workers for the condition of the second step, fewer with many answers; 0 leaves them out.
    progress : bool
        Show a bar on the error output, if that is a terminal.

    Examples
    --------
    >>> from trueup import simulate
    >>> found = diagnose_all(simulate(workers=6, questions=40, seed=1).answers, panels=0)
    >>> print(found.workers.summary)
    Nothing stands out about any of 6 workers.
    """
    from trueup._estimate import estimate
    from trueup.findings.agreement import agreement
    from trueup.findings.answers_needed import needs
    from trueup.findings.workers import worker_table
    from trueup.result.estimate import Estimate
    from trueup.variance.correlated import noise_of, together

    check_seed(seed)
    _check_panels(panels)
    missing: list[str] = []

    def found(what: str, find: Callable[[], Any]) -> Any:
        """Return what was found; if nothing can be, remember why."""
        try:
            return find()
        except TrueupError as error:
            missing.append(f"{what}: {error}")
            return None

    if isinstance(answers, Estimate):
        est = answers
    else:
        data = Answers.of(answers, **options)
        _one_problem(data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TrueupWarning)  # they are among the findings
            est = estimate(data, method, max_iter=max_iter, tol=tol, seed=seed, threads=threads)
    data = est.answers
    _one_problem(data)
    affordable = MOST_RESAMPLED // max(data.n_answers, 1)
    if panels and affordable < panels:
        panels = affordable if affordable >= FEWEST_PANELS else 0
        done = f"only {panels} resamples were made" if panels else "it was left out"
        missing.append(f"the condition by resampled workers: with so many answers {done}.")
    noise = noise_of(est) or worker_noise(data)
    with Progress("diagnose", 5, shown=progress) as bar:
        ties = found("who errs together", lambda: together(est, noise=noise, seed=seed))
        bar.step("workers")
        table = worker_table(est, together=ties, noise=noise)
        bar.step("questions")
        wanted = found("which questions need more answers", lambda: needs(est, target_se))
        bar.step("agreement")
        agreed = found("agreement", lambda: agreement(data, seed=seed))
        bar.step("second step")
        brings = found(
            "what a second step brings",
            lambda: diagnose(
                data, est.aggregate.algorithm, panels=panels, max_iter=max_iter, tol=tol, seed=seed
            ),
        )
        bar.step("done")
    return Findings(est, table, ties, wanted, agreed, brings, tuple(missing))


def _check_panels(panels: Any) -> None:
    if not isinstance(panels, int | np.integer) or not (panels == 0 or 2 <= panels <= MOST_PANELS):
        raise TrueupError(
            f"panels: found {quoted(panels)}, must be a whole number from 2 to {MOST_PANELS}, or 0 for none."
        )


def _one_problem(data: Answers) -> None:
    if data.n_panels > 1:
        raise TrueupError("answers: these are panels; diagnose one with `answers.panel(b)`.")
