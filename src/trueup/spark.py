"""Estimates from a Spark DataFrame of any size: the same two steps, where the answers are.

The answers are cut into blocks by question once and cached; every pass sends the state of the workers to them and adds
up what comes back. Neither answers nor truths come to the driver. Python of the executors needs trueup, numpy, scipy
and pyarrow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trueup.algorithms.driver import MAX_ITER, TOLERANCE
from trueup.choose import CANDIDATES
from trueup.engines.protocol import Visit
from trueup.engines.spark import SparkEngine
from trueup.errors import TrueupError, counted, need
from trueup.estimation import make_plan
from trueup.io.results import make_frame
from trueup.progress import Progress
from trueup.result import UNKNOWN_OF_WORKERS, worker_columns, worker_flags
from trueup.shrinkage.normal import CAUTION
from trueup.solution import COLUMNS, solve

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from pyspark.sql import DataFrame

    from trueup.algorithms.contract import Algorithm
    from trueup.block import Block
    from trueup.engines.protocol import Kept
    from trueup.result import Diagnosis
    from trueup.shrinkage import ShrinkRule
    from trueup.solution import Solution


def estimate(
    frame: DataFrame,
    method: str | Algorithm = "auto",
    shrink: str | ShrinkRule = "adaptive",
    variance: str | float | None = None,
    *,
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
            partitions=partitions,
        )
        try:
            bar.step("answers cut into blocks")
            solution = solve(engine, plan, bar)
            return SparkEstimate.of(frame, engine, solution)
        except BaseException:
            engine.close()
            raise


@dataclass(frozen=True, eq=False)
class SparkEstimate:
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
    diagnosis: Diagnosis
    level: float
    n_questions: int
    n_workers: int
    n_answers: int
    n_rows: int
    n_missing: int
    n_duplicates: int
    engine: SparkEngine

    @classmethod
    def of(cls, frame: DataFrame, engine: SparkEngine, solution: Solution) -> SparkEstimate:
        """Make the frames of a solution."""
        problem = engine.problem
        flags = worker_flags(engine, solution.aggregate.facts)
        workers = worker_columns(
            solution.aggregate, solution.moved, solution.biases, problem.worker_ids, flags
        )
        table = make_frame("pyarrow", workers, null_columns=UNKNOWN_OF_WORKERS)
        found: Any = solution.engine  # the one whose blocks were combined
        return cls(
            questions=found.frame(
                _columns,
                tuple(COLUMNS.values()),
                columns={**dict.fromkeys(COLUMNS, "double"), "n_answers": "long"},
            ),
            workers=frame.sparkSession.createDataFrame(table),
            diagnosis=solution.diagnosis,
            level=solution.plan.level,
            n_questions=problem.n_questions,
            n_workers=problem.n_workers,
            n_answers=problem.n_answers,
            n_rows=problem.n_rows,
            n_missing=problem.n_missing,
            n_duplicates=problem.n_duplicates,
            engine=engine,
        )

    def close(self) -> None:
        """Give the memory of the answers back to the cluster; frames that were not cached are gone then."""
        self.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *about: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        people, asked = counted(self.n_workers, "worker"), counted(self.n_questions, "question")
        lines = [f"{counted(self.n_answers, 'answer')} of {people} to {asked}"]
        if self.n_missing:
            lines.append(f"{self.n_missing:,} of {self.n_rows:,} rows dropped: no answer in them")
        if self.n_duplicates:
            lines.append(f"{counted(self.n_duplicates, 'repeated answer')} merged")
        return "\n".join([*lines, str(self.diagnosis)])


def _columns(block: Block, kept: Kept) -> Visit:
    """Return the columns of the questions under the names they are reported by."""
    found = {column: kept[name] for column, name in COLUMNS.items()}
    return Visit(questions={**found, "n_answers": block.counts.astype(float)})
