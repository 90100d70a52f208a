"""estimate(): answers in, truths out."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.algorithms.driver import MAX_ITER, TOLERANCE, run
from trueup.algorithms.registry import find
from trueup.answers import Answers
from trueup.errors import TrueupError, TrueupWarning, quoted
from trueup.result import Diagnosis, Estimate
from trueup.shrinkage import find as find_rule
from trueup.variance import variances

if TYPE_CHECKING:
    from trueup.algorithms.contract import Algorithm
    from trueup.algorithms.driver import Aggregate
    from trueup.answers import Duplicates
    from trueup.arrays import Bools, Floats
    from trueup.shrinkage import Posterior, ShrinkRule

INTERVALS = (
    "intervals take the weights of the workers as known and their errors as independent; they do not contain an "
    "error that all workers share"
)
NO_OVERLAP = (
    "where no question has two answers the workers cannot be compared: intervals are unknown there"
)
POINT_ONLY = "this second step gives estimates without intervals; its positive part has them"
NO_WEIGHTS = "intervals are unknown: the method does not say how much each answer counts"
# A worker with more than this share of all weight decides nearly alone.
DICTATOR = 0.9
# Moves of a truth, in pooled standard deviations, that are worth a warning.
NOT_SETTLED = 1e-2


def estimate(
    answers: Any,
    method: str | Algorithm = "dtd",
    shrink: str | ShrinkRule = "none",
    variance: Any = None,
    *,
    transform: str | None = None,
    bounds: tuple[float, float] | None = None,
    worker_variance: Any = None,
    answer_variance: Any = None,
    duplicates: Duplicates = "error",
    level: float = 0.95,
    max_iter: int = MAX_ITER,
    tol: float = TOLERANCE,
    threads: int | None = None,
    question: str = "question",
    worker: str = "worker",
    answer: str = "answer",
) -> Estimate:
    """Estimate the true value of every question from the answers of many workers.

    Parameters
    ----------
    answers : data frame, path, array, sparse matrix or Answers
        A pandas, polars, pyarrow or duckdb table (or dict of columns) with one answer per row, a CSV or Parquet
        file, or an array workers x questions with NaN where there is no answer.
    method : str or Algorithm
        The first step: "mean", "median", "weighted_median", "blue", "dtd", "catd", "gtm", "crh", "pm", "ptd",
        "iptd", "kdem", "subject_bias", "student_t", a registered name or an algorithm such as
        `CRH(scale="var")`.
    shrink : str or ShrinkRule
        The second step: "none", "paper" (equation 1 of the paper, as printed), "stein", "mebe", "morris", "sure", or a
        rule such as `EBE(positive=True)`.
    variance : str, number or array, optional
        How sure the first step is of each question: "paper" (or "psi_H", as printed), "psi_H/n", "plugin",
        "sandwich", "blue", "jackknife", "bootstrap", a number, or one number per question. By default the rule's own:
        "paper" for paper, stein and mebe, "plugin" for the others; known variances where the method is "blue".
    transform : {"log", "log1p", "logit"}, optional
        Scale on which the answers are combined; estimates and intervals are carried back.
    bounds : (low, high), optional
        Estimates and intervals stay inside.
    worker_variance : mapping, str or array, optional
        Known variances of workers (or of some), or the column that has them, for "blue"; on the scale on which
        the answers are combined.
    answer_variance : str or array, optional
        Column with the variance of each answer, a source's own standard error squared; for an array of answers, an
        array of the same shape.
    duplicates : {"error", "mean", "first"}
        What to do when a worker answered a question more than once.
    level : float
        Level of the intervals.
    max_iter, tol : int, float
        Limits of the iteration: number of updates, and the move of a truth (in pooled standard deviations) below
        which it ends.
    threads : int, optional
        Default: all processors. It changes the time, not the result.
    question, worker, answer : str
        Names of the columns; `task`, `worker`, `label` are recognised as well.

    Examples
    --------
    >>> est = estimate([[10.0, 4.0, 7.0], [11.0, 5.0, 7.5], [16.0, 1.0, 3.0]], method="crh")
    >>> est.estimate.round(2).tolist()
    [10.51, 4.49, 7.24]
    """
    rule = find_rule(shrink)
    if not isinstance(level, int | float | np.number) or not 0 < level < 1:
        raise TrueupError(f"level: found {quoted(level)}, must be a number between 0 and 1.")
    data = Answers.of(
        answers,
        question=question,
        worker=worker,
        answer=answer,
        duplicates=duplicates,
        transform=transform,
        bounds=bounds,
        worker_variance=worker_variance,
        answer_variance=answer_variance,
    )
    algorithm = find(method)
    aggregate = run(algorithm, data, max_iter=max_iter, tol=tol, threads=threads)
    said = _warnings(data, aggregate)
    for text in said:
        warnings.warn(text, TrueupWarning, stacklevel=2)
    return _result(data, aggregate, rule, variance, level, said)


def _result(
    data: Answers,
    aggregate: Aggregate,
    rule: ShrinkRule,
    variance: Any,
    level: float,
    said: tuple[str, ...],
) -> Estimate:
    from scipy.special import ndtri

    algorithm = aggregate.algorithm
    x = aggregate.x
    # Known variances need no second answer to a question.
    alone = (aggregate.facts.overlap == 0)[data.question_panel]
    alone = alone & (not algorithm.needs_variance) & (variance is None or isinstance(variance, str))
    v = _variances(data, aggregate, rule, variance, alone)
    moved = _second_step(data, aggregate, rule, v, alone)
    assumptions = [INTERVALS]
    if alone.any():
        assumptions.append(NO_OVERLAP)
    elif np.isnan(v).any():
        assumptions.append(NO_WEIGHTS)
    elif np.isnan(moved.variance).any():
        assumptions.append(POINT_ONLY)

    scale, quantile = data.scale, ndtri(0.5 + 0.5 * level)
    std_error = np.sqrt(np.where(alone, np.nan, moved.variance))
    estimate = scale.backward(moved.mean)
    lower = scale.backward(moved.mean - quantile * std_error)
    upper = scale.backward(moved.mean + quantile * std_error)
    if np.isinf(estimate).any() or np.isinf(upper).any():
        raise TrueupError(
            "transform: an estimate or interval end is too large for a number when carried back. "
            "Give bounds=, or combine the answers on another scale."
        )
    return Estimate(
        answers=data,
        aggregate=aggregate,
        diagnosis=Diagnosis(
            method=algorithm.name or type(algorithm).__name__,
            shrink=rule.name or type(rule).__name__,
            iterations=int(aggregate.iterations.max(initial=0)),
            settled=bool(aggregate.settled.all()),
            assumptions=tuple(assumptions),
            warnings=(*said, *_reversed(data, moved)),
        ),
        level=level,
        estimate=estimate,
        lower=lower,
        upper=upper,
        std_error=std_error * scale.slope(moved.mean),
        base=scale.backward(x),
        base_std_error=np.sqrt(np.where(alone, np.nan, v)) * scale.slope(x),
        shrinkage=moved.shrinkage,
    )


def _variances(
    data: Answers, aggregate: Aggregate, rule: ShrinkRule, variance: Any, alone: Bools
) -> Floats:
    """Return the variance of each aggregate by the rule asked for, or that belongs to the second step."""
    if variance is None and (rule.name == "none" or aggregate.algorithm.needs_variance):
        return aggregate.variance
    if alone.all():
        return np.zeros(data.n_questions)
    return variances(rule.variance if variance is None else variance, data, aggregate)


def _second_step(
    data: Answers, aggregate: Aggregate, rule: ShrinkRule, v: Floats, alone: Bools
) -> Posterior:
    """Move the aggregates; what has no variance stays where it is."""
    x, stays = aggregate.x, alone | np.isnan(v)
    usable = np.where(stays, 0.0, v)
    panels = data.panel_questions
    posterior = rule.fit(x, usable, panels=panels).posterior(x, usable, panels=panels)
    return replace(posterior, variance=np.where(stays, v, posterior.variance))


def _reversed(data: Answers, moved: Posterior) -> tuple[str, ...]:
    """Warn where the second step moved questions past their centre."""
    if not (moved.shrinkage > 1).any():
        return ()
    panels = len(np.unique(data.question_panel[moved.shrinkage > 1]))
    where = f" in {panels} of {data.n_panels} panels" if data.n_panels > 1 else ""
    text = (
        f"the second step moved questions past their mean and so reversed their order{where} (shrinkage "
        f'{moved.shrinkage.max():.3g}); the variance is too large for it, take variance="plugin" or the positive part'
    )
    warnings.warn(text, TrueupWarning, stacklevel=4)
    return (text,)


def _warnings(data: Answers, aggregate: Aggregate) -> tuple[str, ...]:
    """Say what a user should know before trusting the numbers."""
    said = []
    facts = aggregate.facts
    if data.worker_variance is not None and not aggregate.algorithm.uses_variance:
        said.append(
            f"worker_variance is not used: {aggregate.algorithm.name} learns the variances of workers itself; use "
            'method="blue" for known ones'
        )
    moving = ~aggregate.settled & (aggregate.moved > NOT_SETTLED)
    if moving.any():
        where = f" in {moving.sum()} of {len(moving)} panels" if data.n_panels > 1 else ""
        said.append(
            f"the truths had not come to rest{where} after {aggregate.iterations.max()} iterations (last move "
            f"{aggregate.moved.max():.2g} standard deviations of an answer); raise max_iter or choose another "
            "method"
        )
    if aggregate.algorithm.iterates:
        several = facts.panel_sum(facts.informative) > 1
        top = facts.panel_max(aggregate.weight * facts.informative)
        share = top / np.maximum(facts.panel_sum(aggregate.weight * facts.informative), 1e-300)
        ruled = several & (share > DICTATOR)
        if ruled.any():
            where = f" in {ruled.sum()} of {len(ruled)} panels" if data.n_panels > 1 else ""
            said.append(
                f"one worker has more than {DICTATOR:.0%} of the weight{where}: the truths are nearly that "
                "worker's answers"
            )
    return tuple(said)
