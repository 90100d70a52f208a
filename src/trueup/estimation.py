"""estimate(): answers in, truths out."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.algorithms.driver import MAX_ITER, TOLERANCE, run
from trueup.algorithms.registry import find
from trueup.answers import FILE_OPTIONS, Answers
from trueup.bias import Biases, estimate_biases
from trueup.choose import CANDIDATES, choose
from trueup.draws import check_seed
from trueup.engines.memory import check_threads
from trueup.errors import TrueupError, TrueupWarning, counted, quoted
from trueup.gold import FEWEST, MANY, calibrate, consensus, one_more_worker
from trueup.io.attributes import read_covariates, read_gold, read_groups
from trueup.progress import Progress
from trueup.result import Diagnosis, Estimate
from trueup.second_step import SecondStepResult, second_step, student_quantile
from trueup.shrinkage import ShrinkRule
from trueup.shrinkage import find as find_rule
from trueup.shrinkage.normal import CAUTION
from trueup.variance.moderated import own_variance

if TYPE_CHECKING:
    from trueup.algorithms.contract import Algorithm
    from trueup.algorithms.driver import Aggregate
    from trueup.answers import Duplicates
    from trueup.arrays import Floats
    from trueup.io.attributes import Covariates, Labels
    from trueup.shrinkage import Posterior

INTERVALS = (
    "an interval says how far the estimate may be from what infinitely many such workers would say; it does not "
    "contain an error that all workers share"
)
NO_OVERLAP = (
    "where no question has two answers the workers cannot be compared: intervals are unknown there"
)
POINT_ONLY = "this second step gives estimates without intervals; its positive part has them"
NO_WEIGHTS = "intervals are unknown: the method does not say how much each answer counts"
TOO_FEW = f"at least {FEWEST} are needed to see the error that all workers share"
# A worker with more than this share of all weight decides nearly alone.
DICTATOR = 0.9
# Moves of a truth, in pooled standard deviations, that are worth a warning.
NOT_SETTLED = 1e-2


def estimate(
    answers: Any,
    method: str | Algorithm = "auto",
    shrink: str | ShrinkRule = "adaptive",
    variance: Any = None,
    *,
    groups: Any = None,
    covariates: Any = None,
    transform: str | None = None,
    bounds: tuple[float, float] | None = None,
    worker_variance: Any = None,
    answer_variance: Any = None,
    duplicates: Duplicates = "error",
    gold: Any = None,
    bias: bool = False,
    caution: float = CAUTION,
    level: float = 0.95,
    max_iter: int = MAX_ITER,
    tol: float = TOLERANCE,
    seed: int = 0,
    progress: bool = False,
    threads: int | None = None,
    question: str = "question",
    worker: str = "worker",
    answer: str = "answer",
    **reading: Any,
) -> Estimate:
    """Estimate the true value of every question from the answers of many workers.

    Parameters
    ----------
    answers : data frame, path, array, sparse matrix or Answers
        A pandas, polars, pyarrow or duckdb table (or dict of columns) with one answer per row, a CSV or Parquet
        file, or an array workers x questions with NaN where there is no answer.
    method : str or Algorithm
        The first step: "auto" (chosen by held-out workers), "native", "mean", "median", "weighted_median", "blue",
        "dtd", "catd", "gtm", "crh", "pm", "ptd", "iptd", "kdem", "subject_bias", "student_t", a registered name or an
        algorithm such as `CRH(scale="var")`. With known `worker_variance`, "auto" is "blue".
    shrink : str or ShrinkRule
        The second step: "adaptive" (a normal prior, and bolder ones where they earn their place), "normal", "mixture",
        "paper" (equation 1 of the paper, as printed), "stein", "mebe", "morris", "sure", "none", or a rule such as
        `EBE(positive=True)`.
    variance : str, number or array, optional
        How sure the first step is of each question: "moderated", "paper" (or "psi_H", as printed), "psi_H/n",
        "plugin", "sandwich", "blue", "jackknife", "bootstrap", a number, or one number per question. By default the
        rule's own: "paper" for paper, stein and mebe, "moderated" for the others; known variances where the method is
        "blue".
    groups : str, mapping, frame or sequence, optional
        Group of each question (always labels, also if they are numbers): a column of the answers, a mapping from
        question to group, a frame by question, or one label per question. "adaptive" shrinks toward the groups if
        that predicts held-out workers better.
    covariates : str, list of str, frame or array, optional
        Numbers known of each question: columns of the answers, a frame by question, or an array with a row per
        question. "adaptive" shrinks toward a regression on them if that predicts held-out workers better.
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
    gold : mapping, frame or array, optional
        Known truths of some questions. With eight or more of them the error that all workers share is estimated,
        corrected where it is clear, and put into the intervals.
    bias : bool
        Estimate the bias of each worker and take it off before anything else.
    caution : float
        Share of the step that "adaptive" and "normal" take, above 0 and up to 1.
    level : float
        Level of the intervals.
    max_iter, tol : int, float
        Limits of the iteration: number of updates, and the move of a truth (in pooled standard deviations) below
        which it ends.
    seed : int
        Of the random splits of the workers with which methods and priors are chosen.
    progress : bool
        Show a bar on the error output, if that is a terminal.
    threads : int, optional
        Default: all processors. It changes the time, not the result.
    question, worker, answer : str
        Names of the columns; `task`, `worker`, `label` are recognised as well.
    reading
        How a file is read: `sep`, `decimal`, `encoding`, `wide`, `sql`, see `Answers.from_file`.

    Examples
    --------
    >>> est = estimate([[10.0, 4.0, 7.0], [11.0, 5.0, 7.5], [16.0, 1.0, 3.0]], method="crh")
    >>> est.estimate.round(2).tolist()
    [10.51, 4.49, 7.24]
    """
    rule = _rule(shrink, caution)
    if not isinstance(level, int | float | np.number) or not 0 < level < 1:
        raise TrueupError(f"level: found {quoted(level)}, must be a number between 0 and 1.")
    strange = sorted(set(reading) - set(FILE_OPTIONS))
    if strange:
        raise TypeError(f"estimate() got an unexpected keyword argument {strange[0]!r}")
    check_seed(seed)
    check_threads(threads)
    if not isinstance(bias, bool | np.bool_):
        raise TrueupError(f"bias: found {quoted(bias)}, must be True or False.")
    limits: dict[str, Any] = {"max_iter": max_iter, "tol": tol, "threads": threads}
    with Progress("estimate", 3 + len(CANDIDATES), shown=progress) as bar:
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
            **reading,
        )
        known = Known.read(groups, covariates, gold, data, answers, question)
        bar.step("answers read")
        biases = estimate_biases(data) if bias else None
        clean = data if biases is None else biases.remove(data)
        algorithm, why = _first_step(method, clean, limits, seed, bar)
        lesson = _lesson(clean, known.gold, limits)
        aggregate = run(algorithm, clean, learn_from=lesson, **limits)
        bar.step(f"first step: {algorithm.name}")
        said = _warnings(clean, aggregate)
        for text in said:
            warnings.warn(text, TrueupWarning, stacklevel=2)
        moved = second_step(
            clean,
            aggregate,
            rule,
            variance,
            groups=None if known.groups is None else known.groups.codes,
            covariates=None if known.covariates is None else known.covariates.values,
            seed=seed,
        )
        bar.step(f"second step: {rule.name}")
    if biases is not None:
        moved = _with_bias_error(clean, aggregate, moved, biases)
    return _result(Parts(data, aggregate, rule, moved, known, biases, level, why, said))


@dataclass(frozen=True, eq=False)
class Known:
    """What the caller knows of the questions."""

    groups: Labels | None
    covariates: Covariates | None
    gold: Floats | None

    @classmethod
    def read(
        cls, groups: Any, covariates: Any, gold: Any, data: Answers, given: Any, question: str
    ) -> Known:
        """Read it in any of its forms; truths come on the scale on which the answers are combined."""
        if gold is not None and data.n_panels > 1:
            raise TrueupError(
                "gold: known truths speak of one problem, and these are panels; take one, `answers.panel(b)`."
            )
        truth = read_gold(gold, data, given, question=question)
        return cls(
            read_groups(groups, data, given, question=question),
            read_covariates(covariates, data, given, question=question),
            None if truth is None else data.scale.forward(truth),
        )


@dataclass(frozen=True, eq=False)
class Parts:
    """All that a result is made of."""

    data: Answers
    aggregate: Aggregate
    rule: ShrinkRule
    moved: SecondStepResult
    known: Known
    biases: Biases | None
    level: float
    why: str
    said: tuple[str, ...]


def _rule(shrink: str | ShrinkRule, caution: float) -> ShrinkRule:
    """Return the shrink rule; one given by name gets the caution asked for."""
    rule = find_rule(shrink)
    if not isinstance(caution, int | float | np.number) or not 0 < caution <= 1:
        raise TrueupError(f"caution: found {quoted(caution)}, must be above 0 and at most 1.")
    if not isinstance(shrink, ShrinkRule) and hasattr(rule, "caution"):
        return replace(rule, caution=float(caution))  # type: ignore[type-var]
    return rule


def _first_step(
    method: str | Algorithm, data: Answers, limits: dict[str, Any], seed: int, bar: Progress
) -> tuple[Algorithm, str]:
    """Return the first step, and why it was chosen if it was."""
    if method != "auto":
        return find(method), ""
    if data.worker_variance is not None:
        return find("blue"), "worker variances are known"
    if data.n_panels > 1:
        raise TrueupError(
            "method: auto chooses for one problem, and these are panels. Name a method, or take one panel at a time."
        )
    choice = choose(data, seed=seed, each=bar.step, **limits)
    return find(choice.candidates[int(choice.chosen[0])]), choice.reason


def _lesson(data: Answers, gold: Floats | None, limits: dict[str, Any]) -> Answers | None:
    """Return answers to learn the workers from, where enough truths are known to help with that."""
    questions = np.flatnonzero(~np.isnan(gold)) if gold is not None else np.zeros(0, dtype=np.int64)
    if gold is None or len(questions) < MANY:
        return None
    plain = run(find("mean"), data, **limits)
    variance = np.where(np.isnan(plain.variance), 0.0, plain.variance)[questions]
    expected, _ = consensus(plain.x[questions], variance, gold[questions])
    return one_more_worker(data, questions, expected)


def _with_bias_error(
    data: Answers, aggregate: Aggregate, moved: SecondStepResult, biases: Biases
) -> SecondStepResult:
    """Add what the uncertainty of the biases adds to intervals: that of each worker, and that of their mean.

    The mean of all answers was left where it is, and with it the mean bias of these workers.
    """
    extra = own_variance(data, aggregate, biases.std_error**2)
    variance = moved.posterior.variance + extra
    return replace(
        moved,
        posterior=replace(moved.posterior, variance=variance),
        certainty=replace(
            moved.certainty,
            v_interval=moved.certainty.v_interval + extra,
            shift=moved.certainty.shift + biases.shift,
            shift_nu=biases.shift_nu,
        ),
    )


def _result(parts: Parts) -> Estimate:
    data, aggregate, moved = parts.data, parts.aggregate, parts.moved
    posterior, scale = moved.posterior, data.scale
    mean, std_error = posterior.mean, moved.std_error(data)
    quantile = moved.quantile(data, parts.level)
    assumptions = _assumptions(parts)
    calibration, gold_says = None, ""
    shrinkage = posterior.shrinkage
    if parts.known.gold is not None:
        is_gold = ~np.isnan(parts.known.gold)
        # What cannot be known without gold is part of the spread that gold shows; a shift that all questions share
        # through the biases of the workers is part of the offset.
        variance = np.where(np.isnan(std_error), 0.0, posterior.variance)
        calibration = calibrate(mean[is_gold], variance[is_gold], parts.known.gold[is_gold])
        if calibration is not None:
            mean, variance, freedom = calibration.apply(mean, variance)
            std_error = np.sqrt(variance)
            quantile = student_quantile(0.5 + 0.5 * parts.level, freedom)
            assumptions, gold_says = [], str(calibration)
            if not np.isfinite(mean + variance).all():
                raise TrueupError(
                    "gold: a known truth is too far from all answers to learn from it."
                )
        else:
            gold_says = f"{counted(int(is_gold.sum()), 'known truth')}: {TOO_FEW}"
        mean = np.where(is_gold, parts.known.gold, mean)
        std_error = np.where(is_gold, 0.0, std_error)
        shrinkage = np.where(is_gold, 0.0, shrinkage)
    estimate = scale.backward(mean)
    lower = scale.backward(mean - quantile * std_error)
    upper = scale.backward(mean + quantile * std_error)
    if np.isinf(estimate).any() or np.isinf(upper).any():
        raise TrueupError(
            "transform: an estimate or interval end is too large for a number when carried back. "
            "Give bounds=, or combine the answers on another scale."
        )
    algorithm, x = aggregate.algorithm, aggregate.x
    base_error = np.sqrt(
        np.where(moved.unknown, np.nan, moved.certainty.v_interval)
        + moved.certainty.shift[data.question_panel]
    )
    return Estimate(
        answers=data,
        aggregate=aggregate,
        diagnosis=Diagnosis(
            method=algorithm.name or type(algorithm).__name__,
            shrink=parts.rule.name or type(parts.rule).__name__,
            iterations=int(aggregate.iterations.max(initial=0)),
            settled=bool(aggregate.settled.all()),
            why=parts.why,
            second_step=str(moved),
            gold=gold_says,
            assumptions=tuple(assumptions),
            warnings=(*parts.said, *_reversed(data, posterior)),
        ),
        level=parts.level,
        estimate=estimate,
        lower=lower,
        upper=upper,
        std_error=std_error * scale.slope(mean),
        base=scale.backward(x),
        base_std_error=base_error * scale.slope(x),
        shrinkage=shrinkage,
        second_step=moved,
        biases=parts.biases,
        groups=parts.known.groups,
        calibration=calibration,
    )


def _assumptions(parts: Parts) -> list[str]:
    """Say what the numbers rest on; the first sentence is about the intervals."""
    said, moved = [INTERVALS], parts.moved
    if moved.alone.any():
        said.append(NO_OVERLAP)
    elif np.isnan(moved.certainty.v).any():
        said.append(NO_WEIGHTS)
    elif np.isnan(moved.posterior.variance).any():
        said.append(POINT_ONLY)
    return said


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
