"""Estimates from a Spark DataFrame of any size: the same two steps, where the answers are.

The answers are cut into blocks by question once and cached; every pass sends the state of the workers to them and adds
up what comes back. Neither answers nor truths come to the driver. Python of the executors needs trueup, numpy, scipy
and pyarrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from trueup._compare import COMPARED, Contest, compare_on, truth_request
from trueup.core.keywords import check_names, signature_with
from trueup.core.libraries import need
from trueup.core.progress import Progress
from trueup.engines.spark.setup import open_engine
from trueup.errors import TrueupError
from trueup.io.question_data import QuestionData
from trueup.pipeline.auto_method import CANDIDATES
from trueup.pipeline.solve import solve
from trueup.request import KEYWORD_ONLY, KEYWORDS, Request
from trueup.result.estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from trueup.algorithms.registry import Method
    from trueup.request import CompareOnSparkKeywords, SparkKeywords
    from trueup.shrinkage import ShrinkRule

#: Keywords of `trueup.estimate` that a cluster does not have.
ON_THIS_MACHINE = (
    "panel",
    "anonymous",
    "sheet",
    "worker_from",
    "from_format",
    "where",
    "wide",
    "sql",
    "threads",
)
OPTIONS = tuple(name for name in KEYWORD_ONLY if name not in ON_THIS_MACHINE)
COMPARE_OPTIONS = tuple(name for name in COMPARED if name not in ON_THIS_MACHINE)


@signature_with(KEYWORDS, OPTIONS)
def estimate(
    frame: DataFrame,
    method: Method = "auto",
    shrink: str | ShrinkRule = "adaptive",
    variance: str | float | None = None,
    *,
    partitions: int | None = None,
    progress: bool = False,
    **keywords: Unpack[SparkKeywords],
) -> Estimate:
    """Estimate the true value of every question from the answers in a Spark DataFrame.

    `est.questions` and `est.workers` are Spark DataFrames with the columns of `trueup.Estimate`. The first is made of
    the cached blocks whenever it is asked for: write or cache it, then close the estimate.

    Parameters
    ----------
    frame : Spark DataFrame
        One answer per row, in any order, of any size; missing answers are dropped and counted.
    groups, covariates, gold : str, mapping, frame or path, optional
        Columns of the frame, the same for all rows of a question; or tables by question, which must fit into the memory
        of the driver.
    partitions : int, optional
        Partitions of the answers; default: as many as tasks run at a time, or more for many answers.
    duplicates : {"error", "mean", "mean-all"}
        What to do when a worker answered a question more than once; other columns are not looked at here.
    method, shrink, variance, progress, and all other keywords
        As for `trueup.estimate`; `sep`, `encoding` and `skip_lines` are those of files with groups, covariates or gold;
        `strip_units` and `skip_bad` are for answers in memory or on disk.
        Variances by "jackknife" or "bootstrap", functions and arrays need all answers in memory.

    Examples
    --------
    `with trueup.spark.estimate(spark.table("answers")) as est: est.questions.write.parquet("truths")`
    """
    need("pyspark", "spark")
    check_names("estimate", keywords, OPTIONS)
    request = Request.of("estimate", method=method, shrink=shrink, variance=variance, **keywords)
    if not isinstance(variance, str | int | float | None):
        raise TrueupError("on a cluster it is a name or a number.", argument="variance")
    with Progress("estimate", 3 + len(CANDIDATES), shown=progress) as bar:
        engine = open_engine(frame, request.read, request.question_data, partitions=partitions)
        try:
            bar.step("answers cut into blocks")
            gold = request.question_data.gold is not None
            solution = solve(engine, request.plan, bar, gold=gold)
            return Estimate(request, QuestionData(), solution, "spark")
        except BaseException:
            engine.close()
            raise


@signature_with(KEYWORDS, COMPARE_OPTIONS)
def compare(
    frame: DataFrame,
    methods: Sequence[Method] | None = None,
    truth: Any = None,
    *,
    shrink: str | ShrinkRule = "adaptive",
    partitions: int | None = None,
    progress: bool = False,
    **keywords: Unpack[CompareOnSparkKeywords],
) -> Any:
    """Compare first steps on workers they have not seen, from a Spark DataFrame of any size; see `trueup.compare`.

    The answers to a sample of the questions are brought to the driver and compared there; the table is that of
    `trueup.compare`, as a pyarrow table, since it has an order.

    Parameters
    ----------
    truth : mapping, frame or path, optional
        Known truths of some questions, by question id; those of the sample are used.
    frame, partitions
        As for `estimate`.
    methods, shrink, progress, and all other keywords
        As for `trueup.compare`; `sep`, `decimal`, `encoding` are those of a text file of truths.
    """
    need("pyspark", "spark")
    check_names("compare", keywords, COMPARE_OPTIONS)
    request = Request.of("compare", shrink=shrink, **keywords)
    contest = Contest.of(methods, request)
    truths = truth_request(truth, request)
    truths.check_by_id(columns=False)
    with Progress("compare", 2 + len(contest.algorithms), shown=progress) as bar:
        engine = open_engine(frame, request.read, None, partitions=partitions)
        try:
            bar.step("answers cut into blocks")
            return compare_on(engine, contest, truths, bar)
        finally:
            engine.close()
