"""estimate(): answers in, truths out. Its keywords are declared in `trueup.request`, for all doors."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from trueup.answers.answers import Answers
from trueup.core.keywords import signature_with
from trueup.core.progress import Progress
from trueup.engines.memory import MemoryEngine
from trueup.errors import MOST_NAMES, TrueupError, counted, listing
from trueup.pipeline.auto_method import SPLITS
from trueup.pipeline.solve import solve
from trueup.request import KEYWORD_ONLY, KEYWORDS, Request
from trueup.result.estimate import Estimate

if TYPE_CHECKING:
    from trueup.algorithms.contract import Algorithm
    from trueup.algorithms.registry import Method
    from trueup.algorithms.worker_fit import StartingPoint
    from trueup.answers.scale import Scale
    from trueup.io.question_data import QuestionData
    from trueup.pipeline.solution import Solution
    from trueup.request import EstimateKeywords
    from trueup.shrinkage import ShrinkRule
    from trueup.shrinkage.adaptive_prior import PriorChoice


@signature_with(KEYWORDS, KEYWORD_ONLY)
def estimate(
    answers: Any,
    method: Method = "auto",
    shrink: str | ShrinkRule = "adaptive",
    variance: Any = None,
    *,
    progress: bool = False,
    **keywords: Unpack[EstimateKeywords],
) -> Estimate:
    """Estimate the true value of every question from the answers of many workers.

    Parameters
    ----------
    answers : data frame, path, array, sparse matrix or Answers
        A pandas, polars, pyarrow or duckdb table (or dict of columns) with one answer per row, a CSV or Parquet
        file, or an array workers x questions with NaN where there is no answer.
    method : str, Algorithm or function
        Aggregation (first step): "auto", "native", "mean", "median", "weighted_median", "blue", "dtd", "catd", "gtm",
        "crh", "pm", "ptd", "iptd", "kdem", "subject_bias", "student_t" or a registered name, any of them also with
        parameters ("subject_bias:nu0=0"); an algorithm such as `CRH(scale="var")`; or a function that takes the answers
        to one question, an array, and returns a number: `lambda values: np.percentile(values, 40)`.
        "native" averages three models of the workers by their likelihood: all alike (the plain
        mean), unequal, and unequal with some answers far off. "auto" is "native" unless the plain mean predicts
        held-out workers better by more than half a standard error; with known `worker_variance` it is "blue".
        Otherwise it also counts workers whose errors clearly correlate as one, see `trueup.pipeline.pooling`.
    shrink : str or ShrinkRule
        Shrinkage (second step): "adaptive" (a normal prior, or a bolder one where that predicts held-out workers
        better), "normal", "mixture", "paper" (equation 1 of the paper, as printed), "stein", "mebe", "morris", "sure",
        "none", or a rule such as `EBE(positive=True)`.
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
    transform : {"auto", "none", "proportional", "log", "log1p", "logit"}
        Scale on which the answers are combined; estimates and intervals are carried back. "auto" combines logarithms
        where all answers are positive and errors clearly grow in proportion to the value, else the answers as they are
        ("none"); `est.diagnosis.scale` says so. Either way it estimates what the average worker would say.
        "proportional" combines logarithms in any case; "log" does so and estimates what the typical worker would say, a
        geometric mean. "auto" is "none" where variances are given, and where a method other than "native" is named
        together with `shrink="none"`. None is "none".
    bounds : (low, high), optional
        Estimates and intervals stay inside.
    worker_variance : mapping, str or array, optional
        Known variances of workers (or of some), or the column that has them, for "blue"; on the scale on which
        the answers are combined.
    answer_variance : str or array, optional
        Column with the variance of each answer, a source's own standard error squared; for an array of answers, an
        array of the same shape.
    duplicates : {"error", "mean", "mean-all", "first"}
        What to do when a worker answered a question more than once. "mean" stops where these answers differ in another
        column of few values, such as the model that was judged, and names it; "mean-all" does not.
    gold : mapping, frame or array, optional
        Known truths of some questions, one or more. They show the error that all workers share: estimates of the
        other questions are corrected, and `lower, upper` are those for the truth. From eight on the correction competes
        with one from the known truths alone; from twenty on they also help to learn who is good.
    target : {"auto", "truth", "consensus"}
        What is estimated. "consensus": what infinitely many such workers would say, right for ratings and opinions; the
        second step is taken in full. "truth": facts that workers guess, forecast or measure; only as much of the step
        is taken as crowds like this one have not done already by avoiding extremes. "auto" takes the consensus of
        ratings (30 answers or more on at most 11 values with equal steps) and the truth of everything else; with `gold`
        it is the truth. `est.diagnosis.target` says which and why. It acts on "adaptive", "normal" and "mixture";
        "none" moves nothing, and the published rules stay as they are. The columns `lower, upper` are about the
        consensus, `truth_lower, truth_upper` about the truth, for either target.
    kind : {"perception", "judgment", "forecast"}, optional
        Kind of the questions, for the interval for the truth; it changes nothing about the consensus.
    bias : {"auto", True, False}
        Whether biases of workers are removed: by the method "native", where they are larger than noise explains
        ("auto"); also before any other method (True); never (False). With "native", True is "auto".
    caution : float, optional
        Multiplies the second step of "adaptive", "normal" and "mixture", above 0 and up to 1; by default 1.
    level : float
        Level of the intervals.
    max_iter, tol : int, float
        Limits of the iteration: number of updates, and the move of a truth (in pooled standard deviations) below
        which it ends.
    seed : int
        Seed for the random splits of the workers with which methods and priors are chosen.
    progress : bool
        Show a bar on the error output, if that is a terminal.
    threads : int, optional
        Default: all processors. It changes the time, not the result.
    question, worker, answer : str
        Names of the columns. Other names that people use are recognised in any case: item, clip, task_id; rater, judge,
        user; score, rating, value and so on. A question may be several columns, `question=["sample", "model"]`. Ids
        keep the names of their columns in the result.
    wide : bool or {"questions", "workers"}, optional
        One row per question and one column per worker (True or "questions"), one row per worker and one column per
        question ("workers"), or one row per answer (False). By default found from names and values; where both are
        possible that is an error. Questions that nobody answered stay in the result without an estimate.
    panel : str, optional
        Column that tells independent problems apart.
    anonymous : bool
        Put pseudonyms ("worker 1", "worker 2", ...) in the place of the ids of the workers as soon as they are read:
        tables, reports and messages then show no id. Who gets which number is drawn anew each time, from the
        randomness of the operating system; the estimates stay what they are without it. Not on a cluster.
    decimal, thousands : str, optional
        Decimal mark of numbers in text, "." or ",", and what separates groups of three digits, if anything does: ",",
        ".", " " or "'".
    strip_units : bool
        Take off the unit, currency or percent sign beside numbers in text; all must have the same one or none. "45 %"
        is read as 45.
    skip_bad : bool
        Set rows aside whose answer is not a number or not valid, or that lack a question or worker. They are counted
        by kind, and `est.rejects` lists them.
    valid : (low, high), optional
        Answers outside are an error, or set aside with `skip_bad`.
    where : mapping, optional
        Column -> value, or a list of values: only rows with one of them are read. Values are compared as text, numbers
        as numbers.
    sep, encoding, skip_lines, sheet, worker_from, from_format, sql
        How a file is read, see `Answers.from_file`.

    Examples
    --------
    >>> est = estimate([[10.0, 4.0, 7.0], [11.0, 5.0, 7.5], [16.0, 1.0, 3.0]], method="crh")
    >>> est.estimate.round(2).tolist()
    [10.51, 4.49, 7.24]
    """
    request = Request.of(
        "estimate", answers, method=method, shrink=shrink, variance=variance, **keywords
    )
    with Progress("estimate", 3 + SPLITS, shown=progress) as bar:
        data = read_answers(answers, request)
        if request.question_data.gold is not None and data.n_panels > 1:
            raise TrueupError(
                "known truths are those of one problem, and these are panels; take one, `answers.panel(b)`.",
                argument="gold",
            )
        question_data = request.question_data.read(data, answers)
        bar.step("answers read")
        return estimate_in_memory(data, request, question_data, bar)


def read_answers(answers: Any, request: Request) -> Answers:
    """Read the answers as a request says."""
    columns = request.question_data.columns().names
    return Answers.of(answers, **request.read.given, question_data=columns)


def estimate_in_memory(
    data: Answers,
    request: Request,
    question_data: QuestionData,
    bar: Progress,
    *,
    algorithm: Algorithm | None = None,
    start: StartingPoint | None = None,
    prior_choice: PriorChoice | None = None,
    scale: Scale | None = None,
) -> Estimate:
    """Run both steps in memory; see `trueup.pipeline.solve` for what they may continue from."""
    engine = MemoryEngine(data, threads=request.plan.threads)
    solution = solve(
        engine,
        request.plan,
        bar,
        question_data,
        algorithm=algorithm,
        start=start,
        prior_choice=prior_choice,
        scale=scale,
    )
    return Estimate(request, question_data, _told(solution, data), data.origin.kind)


def _told(solution: Solution, data: Answers) -> Solution:
    """Say which questions nobody answered."""
    missing = data.origin.unanswered
    if missing is None or data.question_source is not None:
        return solution
    text = (
        f"{counted(len(missing), 'question')} without any answer, so that the estimate is unknown: "
        f"{listing(missing.tolist(), MOST_NAMES)}"
    )
    diagnosis = replace(solution.diagnosis, warnings=(*solution.diagnosis.warnings, text))
    return replace(solution, diagnosis=diagnosis)
