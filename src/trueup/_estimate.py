"""estimate(): answers in, truths out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.algorithms.driver import MAX_ITER, TOLERANCE, check_limits
from trueup.algorithms.registry import find
from trueup.answers.answers import FILE_OPTIONS, Answers
from trueup.answers.scale import check_truths
from trueup.core.progress import Progress
from trueup.core.sampling import check_seed
from trueup.engines import vectors
from trueup.engines.memory import MemoryEngine, check_threads
from trueup.errors import TrueupError, quoted
from trueup.io.question_data import QuestionData, QuestionDataRequest
from trueup.pipeline.auto_method import CANDIDATES
from trueup.pipeline.solve import COLUMNS, Plan, solve
from trueup.result.estimate import Estimate
from trueup.shrinkage import ShrinkRule
from trueup.shrinkage import find as find_rule
from trueup.shrinkage.normal import CAUTION

if TYPE_CHECKING:
    from trueup.algorithms.contract import Algorithm
    from trueup.algorithms.driver import StartingPoint
    from trueup.answers.answers import Duplicates
    from trueup.shrinkage.adaptive_prior import PriorChoice


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
        algorithm such as `CRH(scale="var")`. With known `worker_variance`, "auto" is "blue"; else workers whose errors
        clearly correlate count as one with it, see `trueup.pipeline.pooling`.
    shrink : str or ShrinkRule
        The second step: "adaptive" (a normal prior, or an alternative where held-out workers show that it helps),
        "normal", "mixture", "paper" (equation 1 of the paper, as printed), "stein", "mebe", "morris", "sure", "none",
        or a rule such as `EBE(positive=True)`.
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
    strange = sorted(set(reading) - set(FILE_OPTIONS))
    if strange:
        raise TypeError(f"estimate() got an unexpected keyword argument {strange[0]!r}")
    plan = make_plan(method, shrink, variance, bias, caution, level, max_iter, tol, seed, threads)
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
        file_options = {name: value for name, value in reading.items() if name != "wide"}
        request = QuestionDataRequest(groups, covariates, gold, question, file_options)
        question_data = read_question_data(request, data, answers)
        bar.step("answers read")
        return solved(data, plan, question_data, bar)


def read_question_data(request: QuestionDataRequest, data: Answers, source: Any) -> QuestionData:
    """Read groups, covariates and gold of answers in memory, and check the truths against their scale."""
    if request.gold is not None and data.n_panels > 1:
        raise TrueupError(
            f"{request.gold_argument}: known truths speak of one problem, and these are panels; take one, "
            "`answers.panel(b)`."
        )
    question_data = request.read(data, source)
    if question_data.gold is not None:

        def name_of(number: int) -> object:
            return data.question_ids.tolist(np.array([number]))[0]

        check_truths(question_data.gold, data.scale, name_of, request.gold_argument)
    return question_data


def solved(
    data: Answers,
    plan: Plan,
    question_data: QuestionData,
    bar: Progress,
    *,
    start: StartingPoint | None = None,
    prior_choice: PriorChoice | None = None,
) -> Estimate:
    """Run both steps in memory; each goes on from what is believed of the workers and the prior, if anything is."""
    engine = MemoryEngine(data, threads=plan.threads)
    groups, covariates, gold = question_data.groups, question_data.covariates, question_data.gold
    if gold is not None:
        engine.keep(vectors.GOLD, data.scale.forward(gold))
    solution = solve(
        engine,
        plan,
        bar,
        groups=None if groups is None else groups.codes,
        covariates=None if covariates is None else covariates.values,
        gold=gold is not None,
        start=start,
        prior_choice=prior_choice,
    )
    kept = {column: solution.engine.kept(name) for column, name in COLUMNS.items()}
    return Estimate(
        answers=data,
        aggregate=solution.aggregate,
        diagnosis=solution.diagnosis,
        level=plan.level,
        **kept,
        second_step=solution.moved,
        biases=solution.biases,
        groups=groups,
        calibration=solution.calibration,
        voices=solution.voices,
        plan=plan,
        question_data=question_data,
    )


def make_plan(
    method: str | Algorithm,
    shrink: str | ShrinkRule,
    variance: Any,
    bias: bool,
    caution: float,
    level: float,
    max_iter: int,
    tol: float,
    seed: int,
    threads: int | None,
) -> Plan:
    """Check what was asked for."""
    rule = _rule(shrink, caution)
    if not isinstance(level, int | float | np.number) or not 0 < level < 1:
        raise TrueupError(f"level: found {quoted(level)}, must be a number between 0 and 1.")
    check_limits(max_iter, tol)
    check_seed(seed)
    check_threads(threads)
    if not isinstance(bias, bool | np.bool_):
        raise TrueupError(f"bias: found {quoted(bias)}, must be True or False.")
    plan = Plan(method, rule, variance, bool(bias), float(level), max_iter, tol, seed, threads)
    if not plan.chooses:
        find(method)  # what is no method is refused before anything is read
    # Who names a method gets that method; what is chosen is chosen for voices.
    return replace(plan, voices=plan.chooses)


def _rule(shrink: str | ShrinkRule, caution: float) -> ShrinkRule:
    """Return the shrink rule; one given by name gets the caution asked for."""
    rule = find_rule(shrink)
    if not isinstance(caution, int | float | np.number) or not 0 < caution <= 1:
        raise TrueupError(f"caution: found {quoted(caution)}, must be above 0 and at most 1.")
    if not isinstance(shrink, ShrinkRule) and hasattr(rule, "caution"):
        return replace(rule, caution=float(caution))  # type: ignore[type-var]
    return rule
