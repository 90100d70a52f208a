"""Estimates from a Spark DataFrame of any size: the same two steps, where the answers are.

The answers are cut into blocks by question once and cached; every pass sends the state of the workers to them and adds
up what comes back. Neither answers nor truths come to the driver. Python of the executors needs trueup, numpy, scipy
and pyarrow.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from trueup._compare import Contest, compare_on
from trueup._estimate import make_plan
from trueup.algorithms.driver import MAX_ITER, TOLERANCE
from trueup.core.libraries import need
from trueup.core.progress import Progress
from trueup.engines import vectors
from trueup.engines.protocol import Visit
from trueup.engines.spark import SparkEngine
from trueup.errors import TrueupError
from trueup.findings.workers import WorkerTable, worker_table_of
from trueup.io.frames_out import make_frame
from trueup.io.question_data import QuestionDataRequest
from trueup.pipeline.auto_method import CANDIDATES
from trueup.pipeline.solve import COLUMNS, solve
from trueup.result.estimate import UNKNOWN_OF_WORKERS, worker_columns, worker_flags
from trueup.result.outcome import Outcome
from trueup.shrinkage.normal import CAUTION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self

    from pyspark.sql import DataFrame

    from trueup.algorithms.contract import Algorithm
    from trueup.answers.block import Block
    from trueup.engines.protocol import Kept
    from trueup.pipeline.solve import Solution
    from trueup.shrinkage import ShrinkRule


def estimate(
    frame: DataFrame,
    method: str | Algorithm = "auto",
    shrink: str | ShrinkRule = "adaptive",
    variance: str | float | None = None,
    *,
    groups: Any = None,
    covariates: Any = None,
    gold: Any = None,
    bias: bool = False,
    caution: float = CAUTION,
    level: float = 0.95,
    max_iter: int = MAX_ITER,
    tol: float = TOLERANCE,
    seed: int = 0,
    progress: bool = False,
    partitions: int | None = None,
    question: str = "question",
    worker: str = "worker",
    answer: str = "answer",
    duplicates: str = "error",
    transform: str | None = None,
    bounds: tuple[float, float] | None = None,
    worker_variance: str | Mapping[Any, float] | None = None,
    answer_variance: str | None = None,
) -> SparkEstimate:
    """Estimate the true value of every question from the answers in a Spark DataFrame.

    Parameters
    ----------
    frame : Spark DataFrame
        One answer per row, in any order, of any size; missing answers are dropped and counted.
    groups, covariates : str, mapping, frame or path, optional
        Columns of the frame, the same for all rows of a question, or tables by question id as for `trueup.estimate`,
        which must fit into the memory of the driver and of each executor. Several columns and files of covariates may
        be given in a list.
    gold : str, mapping, frame or path, optional
        Known truths of some questions: a column of the frame, null where unknown, or a table by question id.
    partitions : int, optional
        Partitions of the answers; default: as many as tasks run at a time, or more for many answers.
    method, shrink, variance, bias, caution, level, max_iter, tol, seed, progress
        As for `trueup.estimate`. Variances by "jackknife" or "bootstrap", functions and arrays need all answers in
        memory and are refused.
    question, worker, answer, transform, bounds, worker_variance, answer_variance
        As for `trueup.estimate`.
    duplicates : {"error", "mean"}
        What to do when a worker answered a question more than once.

    Examples
    --------
    `with trueup.spark.estimate(spark.table("answers")) as est: est.questions.write.parquet("truths")`
    """
    need("pyspark", "spark")
    plan = make_plan(method, shrink, variance, bias, caution, level, max_iter, tol, seed, None)
    if not isinstance(variance, str | int | float | None):
        raise TrueupError("variance: on a cluster it is a name or a number.")
    with Progress("estimate", 3 + len(CANDIDATES), shown=progress) as bar:
        engine = SparkEngine(
            frame,
            question=question,
            worker=worker,
            answer=answer,
            duplicates=duplicates,
            transform=transform,
            bounds=bounds,
            answer_variance=answer_variance,
            worker_variance=worker_variance,
            question_data=QuestionDataRequest(groups, covariates, gold, question),
            partitions=partitions,
        )
        try:
            bar.step("answers cut into blocks")
            solution = solve(engine, plan, bar, gold=gold is not None)
            return SparkEstimate.of(frame, engine, solution)
        except BaseException:
            engine.close()
            raise


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SparkEstimate(Outcome):
    """What came out of a run on a cluster.

    Attributes
    ----------
    questions : Spark DataFrame
        A row per question with the columns of `trueup.Estimate.questions`. It is made of the cached blocks whenever it
        is asked for: write or cache it, then close the estimate.
    workers : Spark DataFrame
        A row per worker with the columns of `trueup.Estimate.workers`.
    diagnosis : Diagnosis
        What was chosen and why, what the second step did, warnings.
    level : float
        Level of the intervals.
    n_questions, n_workers, n_answers, n_rows, n_missing, n_duplicates : int
        How many there are; rows read, rows without an answer, answers that were merged.
    """

    questions: DataFrame
    workers: DataFrame
    engine: SparkEngine
    solution: Solution
    flags: list[str | None]

    @classmethod
    def of(cls, frame: DataFrame, engine: SparkEngine, solution: Solution) -> SparkEstimate:
        """Make the frames of a solution."""
        flags = worker_flags(engine, solution.aggregate.facts)
        ids = engine.problem.worker_ids
        workers = worker_columns(solution.aggregate, solution.moved, solution.biases, ids, flags)
        table = make_frame("pyarrow", workers, null_columns=UNKNOWN_OF_WORKERS)
        found: Any = solution.engine  # the one whose blocks were combined
        return cls(
            **cls.told(solution),
            questions=found.frame(
                _columns,
                (*COLUMNS.values(), *([] if solution.voices is None else [vectors.ANSWERED])),
                columns={**dict.fromkeys(COLUMNS, "double"), "n_answers": "long"},
            ),
            workers=frame.sparkSession.createDataFrame(table),
            engine=engine,
            solution=solution,
            flags=flags,
        )

    @cached_property
    def verdicts(self) -> WorkerTable:
        """What is to be thought of each worker, from a sample of the questions where there are very many.

        It is found out when it is first asked for, and asked for before the estimate is closed.
        """
        return worker_table_of(self.solution, self.flags)

    def close(self) -> None:
        """Give the memory of the answers back to the cluster; frames that were not cached are gone then."""
        self.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *about: object) -> None:
        self.close()


def _columns(block: Block, kept: Kept) -> Visit:
    """Return the columns of the questions under the names they are reported by."""
    found = {column: kept[name] for column, name in COLUMNS.items()}
    # Blocks in which workers are heard as one have fewer answers than were given.
    return Visit(
        questions={**found, "n_answers": kept.get(vectors.ANSWERED, block.counts.astype(float))}
    )


def compare(
    frame: DataFrame,
    methods: Sequence[str | Algorithm] | None = None,
    truth: Any = None,
    *,
    shrink: str | ShrinkRule = "adaptive",
    max_iter: int = MAX_ITER,
    tol: float = TOLERANCE,
    seed: int = 0,
    progress: bool = False,
    partitions: int | None = None,
    question: str = "question",
    worker: str = "worker",
    answer: str = "answer",
    duplicates: str = "error",
    transform: str | None = None,
    bounds: tuple[float, float] | None = None,
    worker_variance: str | Mapping[Any, float] | None = None,
    answer_variance: str | None = None,
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> Any:
    """Compare first steps on workers they have not seen, from a Spark DataFrame of any size; see `trueup.compare`.

    The answers to a sample of the questions are brought to the driver and compared there; the table is that of
    `trueup.compare`, as a pyarrow table, since it has an order.

    Parameters
    ----------
    truth : mapping, frame or path, optional
        Known truths of some questions, by question id; those of the sample are used.
    methods, shrink, max_iter, tol, seed, progress
        As for `trueup.compare`.
    sep, decimal, encoding : str, optional
        How a text file of truths is written.
    frame, partitions, question, worker, answer, duplicates, transform, bounds, worker_variance, answer_variance
        As for `estimate`.
    """
    need("pyspark", "spark")
    contest = Contest.of(methods, shrink, max_iter=max_iter, tol=tol, seed=seed)
    how: dict[str, Any] = {"sep": sep, "decimal": decimal, "encoding": encoding}
    request = QuestionDataRequest(
        gold=truth, question=question, file_options=how, gold_argument="truth"
    )
    request.check_by_id(columns=False)
    with Progress("compare", 2 + len(contest.algorithms), shown=progress) as bar:
        engine = SparkEngine(
            frame,
            question=question,
            worker=worker,
            answer=answer,
            duplicates=duplicates,
            transform=transform,
            bounds=bounds,
            answer_variance=answer_variance,
            worker_variance=worker_variance,
            partitions=partitions,
        )
        try:
            bar.step("answers cut into blocks")
            return compare_on(engine, contest, request, bar)
        finally:
            engine.close()
