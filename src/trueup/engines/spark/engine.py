"""The engine on Spark: blocks are rows of a cached DataFrame, visited where they are.

A pass is one `mapInArrow` job over the blocks. The visit travels with the job, every partition adds up what its blocks
bring, and the driver adds up the partitions in order; with very many workers Spark adds them up, each executor a share
of the workers. Numbers of questions are not kept anywhere: they are made again from their recipes
(`trueup.engines.spark.vectors`), so that a pass depends on nothing that an executor could lose.

Only DataFrame operations are used, hence it works with Spark Connect, too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast, get_args

import numpy as np

from trueup.engines import vectors
from trueup.engines.one_panel import OnePanel
from trueup.engines.spark.batches import one_row_at_a_time
from trueup.engines.spark.blocks import ABOUT, STORED, VISITED, BlockPlan, Reader, check_faults
from trueup.engines.spark.intake import check_rows
from trueup.engines.spark.tasks import (
    GATHERED,
    SENT,
    add_shares,
    gathered,
    gatherer,
    joined,
    visitor,
    writer,
)
from trueup.engines.spark.vectors import Draw, Layer, Number, Step, StoredVector, Written, frozen
from trueup.errors import AnswersError, TrueupError, option, quoted
from trueup.io.question_data import QuestionDataRequest
from trueup.io.read_options import Duplicates, ReadOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame

    from trueup.answers.answers import Answers
    from trueup.answers.block import Block
    from trueup.core.arrays import Bools, Floats, Ints
    from trueup.engines.protocol import Journal, Kept, Sweep, Visit
    from trueup.engines.spark.vectors import Recipe
    from trueup.io.columns import IdNames
    from trueup.io.table import Ids

#: Answers of a block: rows of about two megabytes, which the JVM copies more than once on their way.
BLOCK_ANSWERS = 1 << 17
#: Answers of a partition at most, as a rule: about a hundred megabytes of blocks, so that a task has enough to do for
#: the time that Spark takes to start it.
PART_ANSWERS = 1 << 23
#: Bytes of worker sums that the driver collects from all partitions; with more, Spark adds them up.
COLLECTED = 1 << 28
#: Rows of sums that a visit is taken to bring, and workers in a share of them.
USUAL_SUMS, SHARE = 4, 1 << 16


@dataclass(frozen=True, eq=False)
class SparkProblem(OnePanel):
    """What is known of the answers in a Spark DataFrame; see `trueup.engines.protocol.Problem`."""

    n_questions: int
    n_answers: int
    worker_ids: Ids
    worker_variance: Floats | None
    n_rows: int
    n_missing: int
    n_duplicates: int
    names: IdNames
    unit: str = ""  # Spark strips none

    @property
    def n_workers(self) -> int:
        """Number of workers."""
        return len(self.worker_ids)

    @property
    def question_ids(self) -> Ids:
        """Ids of the questions, which stay on the cluster."""
        raise TrueupError(
            "question_ids: stay on the cluster. Ask for est.questions, a frame there."
        )

    @property
    def counts(self) -> Ints:
        """Number of answers of each question, which stay on the cluster."""
        raise TrueupError("counts: stay on the cluster. Ask for est.questions, a frame there.")

    def counts_of(self, questions: Ints) -> Ints:
        """Number of answers of some questions, which stay on the cluster."""
        return self.counts[questions]


class OnCluster:
    """What stands for something that is not on this machine: it can be carried about, but not used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __reduce__(self) -> tuple[Any, ...]:
        return OnCluster, (self._name,)

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__") and attribute not in ("__array__", "__array_interface__"):
            raise AttributeError(attribute)
        raise self._error()

    def __len__(self) -> int:
        raise self._error()

    def __getitem__(self, key: object) -> Any:
        raise self._error()

    def _error(self) -> TrueupError:
        return TrueupError(
            "stays on the cluster. Ask for a frame of it, or gather some questions.",
            argument=self._name,
        )


class _Stored(NamedTuple):
    """The cached blocks, how many partitions they are in, and how they are read."""

    blocks: DataFrame
    parts: int
    reader: Reader


class SparkEngine:
    """Answers on a Spark cluster.

    Parameters
    ----------
    frame : Spark DataFrame
        One answer per row, in any order. Missing answers are dropped and counted.
    read : ReadOptions, optional
        Columns, known variances, and what to do when a worker answered a question more than once: "error" or "mean".
    question_data : QuestionDataRequest, optional
        Groups, covariates and gold truths: columns of the frame, or tables by question id.
    partitions : int, optional
        Partitions of the blocks. Default: as many as tasks run at a time, or more for many answers.
    block_answers : int
        Answers of a block.
    """

    problem: SparkProblem
    journal: Journal | None = None  # Spark itself repeats what was lost

    def __init__(
        self,
        frame: DataFrame,
        read: ReadOptions | None = None,
        *,
        question_data: QuestionDataRequest | None = None,
        partitions: int | None = None,
        block_answers: int = BLOCK_ANSWERS,
    ) -> None:
        _check_frame(frame)
        read = read or ReadOptions()
        _check_duplicates(read.duplicates)
        request = question_data or QuestionDataRequest()
        request.check_by_id(available=frame.columns)
        checked = check_rows(frame, read, request.columns(frame.columns))
        ids = checked.worker_ids
        known = checked.question_data.with_tables(
            request, frame.columns, checked.rows, checked.names
        )
        parts = partitions or _partitions(frame, checked.n_answers)
        plan = BlockPlan(ids.values, max(block_answers, len(ids)), known)
        rows = checked.rows.repartition(parts, "question")
        rows = rows.sortWithinPartitions("question", "worker", "answer")
        blocks = rows.mapInArrow(plan.maker(), STORED).persist()
        try:
            about = blocks.select(*ABOUT).collect()
            n_duplicates = check_faults(about, checked.n_answers, plan, read.duplicates)
        except BaseException:
            _forget(blocks)
            raise
        n_answers = sum(row["answers"] for row in about)
        unit = math.fsum(row["total"] for row in about) / n_answers
        self.problem = SparkProblem(
            n_questions=sum(row["questions"] for row in about),
            n_answers=n_answers,
            worker_ids=ids,
            worker_variance=checked.worker_variance,
            n_rows=checked.n_rows,
            n_missing=checked.n_missing,
            n_duplicates=n_duplicates,
            names=checked.names,
        )
        self._stored = _Stored(blocks, parts, Reader(len(ids), unit, known.names))
        self.answer_variance = np.nan if read.answer_variance is None else 1.0 / unit
        self.question_vectors = known.question_vectors
        self._question_type = checked.rows.schema["question"].dataType
        self._n_workers = len(ids)
        self._layer = Layer()
        self._recipes: dict[str, Recipe] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Stay behind when a visit that knows the engine is sent to the cluster."""
        return OnCluster, ("engine",)

    @property
    def n_workers(self) -> int:
        """Number of workers that visits see."""
        return self._n_workers

    def close(self) -> None:
        """Give the memory of the blocks back to the cluster; a session that was stopped has given it back already."""
        _forget(self._stored.blocks)

    # -- what every engine does ------------------------------------------------------------------

    def sweep(
        self,
        visit: Callable[[Block, Kept], Visit],
        reads: Sequence[str] = (),
        *,
        answers: bool = True,  # noqa: ARG002  recipes may look at them
    ) -> Sweep:
        """Visit every block; see `trueup.engines.protocol.Engine`."""
        step = Step(frozen(visit), self._known(reads), self._layer)
        shares = self._shares()
        found = self._stored.blocks.select(*VISITED).mapInArrow(
            visitor(step, self._stored.reader, self._n_workers, shares), SENT
        )
        if len(shares) > 2:
            found = found.repartition(len(shares) - 1, "share")
            found = found.sortWithinPartitions("share", "part").mapInArrow(add_shares, SENT)
        sweep, written = joined(self._collect(found), self._n_workers)
        again = step.without(written)
        self._recipes.update({name: Written(again, name) for name in written})
        return sweep

    def changed(
        self,
        change: Callable[[Block, Kept], Block],
        reads: Sequence[str] = (),
        *,
        workers: int | None = None,
        answer_variance: float | None = None,
    ) -> SparkEngine:
        """Return an engine over other blocks; see `trueup.engines.protocol.Engine`."""
        engine = object.__new__(SparkEngine)
        engine.__dict__.update(
            self.__dict__
        )  # recipes are shared: each knows the layer it belongs to
        engine._layer = Layer(frozen(change), self._known(reads), self._layer)
        engine._n_workers = workers or self._n_workers
        if answer_variance is not None:
            engine.answer_variance = answer_variance
        return engine

    def keep(self, name: str, values: Floats | float) -> None:
        """Keep one number for all questions; vectors have no order here."""
        if np.ndim(values):
            raise TrueupError(
                "questions on a cluster have no order, so that a vector cannot be told apart.",
                argument=name,
                remedy="Give one number for all.",
            )
        self._recipes[name] = Number(float(values))

    def kept(self, name: str) -> Floats:
        """Return what stands for the vector and raises an error when it is looked at: it stays on the cluster."""
        return cast("Floats", OnCluster(name))

    def draw(self, seed: int) -> None:
        """Keep `vectors.DRAW`; see `trueup.engines.protocol.Engine`."""
        self._recipes[vectors.DRAW] = Draw(seed)

    def gather(
        self, inside: Callable[[Block, Kept], Bools] | None = None, reads: Sequence[str] = ()
    ) -> Answers:
        """Return the answers to some questions as a problem in memory, in order of their ids."""
        if self._n_workers != self.problem.n_workers:
            raise TrueupError("gather: these blocks have other workers than the answers.")
        taken = self._stored.blocks.select(*VISITED, "ids").mapInArrow(
            gatherer(inside, self._known(reads), self._layer, self._stored.reader),
            GATHERED,
        )
        return gathered(self._collect(taken), self)

    # -- what only this one does -----------------------------------------------------------------

    def to_frame(self, table: Any) -> DataFrame:
        """Return a small pyarrow table as a Spark DataFrame."""
        return self._stored.blocks.sparkSession.createDataFrame(table)

    def frame(
        self,
        visit: Callable[[Block, Kept], Visit],
        reads: Sequence[str] = (),
        *,
        columns: Mapping[str, str],
    ) -> DataFrame:
        """Return a Spark DataFrame with a row per question: its id, and columns that a visit brings as `questions`.

        It is lazy, and is made of the blocks whenever it is asked for; NaN becomes null.

        Parameters
        ----------
        visit, reads
            As in `sweep`.
        columns : mapping
            Name and Spark type ("double", "long", "boolean") of each column.
        """
        from pyspark.sql import types

        step = Step(frozen(visit), self._known(reads), self._layer)
        schema = types.StructType(
            [types.StructField(self.problem.names.question[0], self._question_type)]
        )
        for name, kind in columns.items():
            schema = schema.add(name, kind)
        return self._stored.blocks.select(*VISITED, "ids").mapInArrow(
            writer(step, self._stored.reader, dict(columns)), schema
        )

    def _collect(self, found: DataFrame) -> list[Any]:
        """Return the rows that come of a pass over the blocks."""
        with one_row_at_a_time(self._stored.blocks.sparkSession):
            return found.collect()

    def _known(self, reads: Sequence[str]) -> dict[str, Recipe]:
        stored = {name: StoredVector(name) for name in self._stored.reader.names}
        recipes = {**stored, **self._recipes}
        return {name: recipes[name] for name in reads if name in recipes}

    def _shares(self) -> list[int]:
        """Return the borders of the shares in which sums over workers are sent: one for all where they are small."""
        n, parts = self._n_workers, self._stored.parts
        if parts * n * USUAL_SUMS * 8 <= COLLECTED:
            return [0, n]
        count = min(parts, math.ceil(n / SHARE))
        return [n * i // count for i in range(count + 1)]


def _check_frame(frame: object) -> None:
    """Check that `frame` is a Spark DataFrame with a live session."""
    from pyspark.sql import DataFrame

    if not isinstance(frame, DataFrame):
        kind = f"{type(frame).__module__.partition('.')[0]}.{type(frame).__qualname__}"
        raise TrueupError(
            f"frame: found {quoted(kind)}, must be a Spark DataFrame. Pass spark.createDataFrame(frame), or use "
            "trueup.estimate or trueup.compare for answers in memory."
        )
    if _is_stopped(frame.sparkSession):
        raise TrueupError(
            "frame: its Spark session has been stopped. Start another one, and read the answers again."
        )


def _is_stopped(session: Any) -> bool:
    """Tell whether a session has been stopped, from here or from elsewhere."""
    if hasattr(session, "is_stopped"):  # Spark Connect
        return bool(session.is_stopped)
    try:
        return int(session.sparkContext.defaultParallelism) < 0
    except Exception:  # there is nobody to ask, which is told in several ways
        return True


def _forget(blocks: DataFrame) -> None:
    """Give the memory of blocks back, where there is a session that has it."""
    if not _is_stopped(blocks.sparkSession):
        blocks.unpersist()


def _check_duplicates(duplicates: str) -> None:
    if not isinstance(duplicates, str) or duplicates not in get_args(Duplicates):
        raise AnswersError(f'{quoted(duplicates)} is not "error" or "mean".', argument="duplicates")
    if duplicates == "first":
        raise AnswersError(
            '"first" asks for an order, and the rows of a Spark DataFrame have none.',
            argument="duplicates",
            remedy="Pass "
            + option("duplicates", "mean")
            + " to average them, or leave one row of each before.",
        )


def _partitions(frame: DataFrame, n_answers: int) -> int:
    """Return the number of partitions: all processors have work, and no task has too much."""
    session = frame.sparkSession
    try:
        tasks = int(session.sparkContext.defaultParallelism)
    except Exception:  # Spark Connect has no context, and several ways of saying so
        tasks = int(session.conf.get("spark.sql.shuffle.partitions") or 1)
    if n_answers <= tasks * PART_ANSWERS:
        return max(1, min(tasks, math.ceil(n_answers / BLOCK_ANSWERS)))
    return tasks * math.ceil(n_answers / (tasks * PART_ANSWERS))
