"""Groups, covariates and gold truths of answers on a cluster: vectors over the questions of a block.

Columns of the answers travel with their rows until blocks are made; a row without an answer may still say something
about its question. Tables by question are read on the driver as for answers in memory, with only the ids of the
questions looked up on the cluster, and travel with the function that makes the blocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trueup.answers.build import NAMED
from trueup.engines import vectors
from trueup.engines.vectors import QuestionVectors
from trueup.errors import quoted
from trueup.io.question_data import QuestionColumns
from trueup.io.question_data.match import QuestionsById, missing_covariates, two_values
from trueup.io.question_data.request import no_truth
from trueup.io.readers.source import about

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame

    from trueup.core.arrays import Bools, Floats, Indices, Ints
    from trueup.io.columns import IdNames
    from trueup.io.question_data import QuestionDataRequest

#: Ids of the answers that show what they are like, where no id of a table is one of them.
EXAMPLES = 1000


class QuestionTable(NamedTuple):
    """Vectors over some questions: their ids (a pyarrow array), and one number for each of them."""

    ids: Any
    values: dict[str, Floats]

    def find(self, ids: Any) -> dict[str, Floats]:
        """Return the numbers of these questions; NaN, or -1 for no group, where there are none."""
        import pyarrow.compute as pc

        place = pc.index_in(ids, value_set=self.ids.cast(ids.type)).fill_null(-1).to_numpy()
        return {
            name: np.append(values, -1.0 if name == vectors.GROUP else np.nan)[place]
            for name, values in self.values.items()
        }


class BlockQuestionData(NamedTuple):
    """What is known about the questions of a block.

    Attributes
    ----------
    vectors : array
        A row for each of `SparkQuestionData.names`.
    faults : dict
        How often something is wrong, and examples; see `SparkQuestionData.check`.
    n_truths : int
        Number of questions with a known truth.
    """

    vectors: Floats
    faults: dict[str, Any]
    n_truths: int


class SparkQuestionData(NamedTuple):
    """What is known about the questions, and where it comes from.

    Attributes
    ----------
    columns : QuestionColumns
        Columns of the answers.
    labels : pyarrow array or None
        The labels of the column of groups: a question has the number of its own, -1 without one.
    tables : tuple of QuestionTable
        Everything else.
    covariate_names : tuple of str
        Names of the covariates of the tables, which come after those of the columns.
    """

    columns: QuestionColumns = QuestionColumns()
    labels: Any = None
    tables: tuple[QuestionTable, ...] = ()
    covariate_names: tuple[str, ...] = ()

    @property
    def column_of(self) -> dict[str, str]:
        """The vectors that come with the rows, and the column of each."""
        groups, covariates, gold = self.columns
        columns = {} if groups is None else {vectors.GROUP: groups}
        columns |= {vectors.covariate(k): name for k, name in enumerate(covariates)}
        return columns if gold is None else {**columns, vectors.GOLD: gold}

    @property
    def names(self) -> tuple[str, ...]:
        """All vectors."""
        return (*self.column_of, *(name for table in self.tables for name in table.values))

    @property
    def question_vectors(self) -> QuestionVectors:
        """Which groups and covariates there are."""
        n_covariates = len(self.columns.covariates) + len(self.covariate_names)
        return QuestionVectors(vectors.GROUP in self.names, n_covariates)

    def with_tables(
        self,
        request: QuestionDataRequest,
        available: Sequence[str],
        rows: DataFrame,
        names_of_ids: IdNames,
    ) -> SparkQuestionData:
        """Read the tables of a request, all that is not an available column; `rows` are the answers."""
        tables: list[QuestionTable] = []
        names: list[str] = []
        for table in request.tables(available):
            ids = ClusterIds(rows)
            data = table.read(QuestionsById(ids, names=names_of_ids), partial=True)
            values = {}
            if data.groups is not None:
                values[vectors.GROUP] = data.groups.codes.astype(np.float64)
            if data.covariates is not None:
                for name, column in zip(
                    data.covariates.names, data.covariates.values.T, strict=True
                ):
                    number = len(self.columns.covariates) + len(names)
                    values[vectors.covariate(number)] = column
                    names.append(name)
            if data.gold is not None:
                values[vectors.GOLD] = data.gold
            tables.append(QuestionTable(ids.found, values))
        return self._replace(tables=tuple(tables), covariate_names=tuple(names))

    def read(self, rows: Any, starts: Ints, answered: Bools, ids: Any) -> BlockQuestionData:
        """Read what is known about the questions of a block.

        Parameters
        ----------
        rows : pyarrow table
            Ordered by question.
        starts : array
            First row of each question.
        answered : array
            Whether a question has an answer; others do not count.
        ids : pyarrow array
            Those that have one.
        """
        known: dict[str, Floats] = {}
        faults: dict[str, Any] = {}
        for name in self.column_of:
            values = self._codes(rows[name]) if name == vectors.GROUP else rows[name].to_numpy()
            # Neither looks at NaN where there is a number.
            least, most = (pick.reduceat(values, starts)[answered] for pick in (np.fmin, np.fmax))
            two = np.flatnonzero(least < most)
            if len(two):
                some = zip(_some(ids, two), least[two].tolist(), most[two].tolist(), strict=False)
                faults[f"two {name}"] = [len(two), [list(example) for example in some]]
            if name == vectors.GROUP:
                least = np.where(np.isnan(least), -1.0, least)
            known[name] = least
        for table in self.tables:
            known |= table.find(ids)
        for name, values in known.items():
            missing = np.flatnonzero(np.isnan(values))
            if name != vectors.GOLD and len(missing):
                faults[f"no {name}"] = [len(missing), _some(ids, missing)]
        n_truths = int(np.sum(~np.isnan(known.get(vectors.GOLD, np.zeros(0)))))
        return BlockQuestionData(
            np.array(list(known.values())).reshape(-1, len(ids)), faults, n_truths
        )

    def _codes(self, labels: Any) -> Floats:
        """Return the number of the label of each row, NaN where there is none."""
        import pyarrow as pa
        import pyarrow.compute as pc

        codes = pc.index_in(labels, value_set=self.labels.cast(labels.type))
        numbers: Floats = codes.cast(pa.float64()).to_numpy()
        return numbers

    def check(self, faults: Mapping[str, tuple[int, list[Any]]], n_truths: int) -> None:
        """Raise an error about values that contradict one another, are missing or cannot be used."""
        for name, column in self.column_of.items():
            if f"two {name}" in faults:
                question, *pair = _first(faults[f"two {name}"][1])
                what, argument = f"values of {quoted(column)}", "covariates"
                if name == vectors.GROUP:
                    what, argument = "labels", "groups"
                    pair = [self.labels[int(code)].as_py() for code in pair]
                elif name == vectors.GOLD:
                    argument = "gold"
                with about(argument):
                    raise two_values(question, what, (pair[0], pair[1]))
        for k, column in enumerate((*self.columns.covariates, *self.covariate_names)):
            count, some = faults.get(f"no {vectors.covariate(k)}", (0, []))
            if count:
                with about("covariates"):
                    raise missing_covariates(count, column, _first([[one] for one in some])[0])
        if self.columns.gold is not None and not n_truths:
            raise no_truth("gold")


class ClusterIds:
    """The ids of the questions on a cluster, as `trueup.io.table.Ids`; those that were looked for have numbers.

    Parameters
    ----------
    rows : Spark DataFrame
        The answers, with columns "question" and "answer".

    Attributes
    ----------
    found : pyarrow array
        The ids that were looked for and have answers.
    """

    def __init__(self, rows: DataFrame) -> None:
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_type

        self._rows = rows.where(rows["answer"].isNotNull()).select("question")
        self._type = to_arrow_type(rows.schema["question"].dataType)
        self.found: Any = pa.array([], type=self._type)

    def __len__(self) -> int:
        return len(self.found)

    def id_of(self, number: int) -> object:
        """Return the id of a number."""
        return self.found[number].as_py()

    def tolist(self, indices: Indices | None = None) -> list[object]:
        """Return the ids of these numbers; without any, examples of the ids of all answers."""
        if indices is not None:
            return [self.id_of(number) for number in indices.tolist()]
        some = self._rows.distinct().orderBy("question").limit(EXAMPLES).toArrow()
        return list(some["question"].to_pylist())

    def index_of(self, values: Iterable[object]) -> Ints:
        """Return the number of the question of each value, -1 where there is none."""
        import pyarrow as pa
        from pyspark.sql import functions

        wanted = list(values)
        numbers = np.full(len(wanted), -1)
        places = [place for place, value in enumerate(wanted) if self._may_be_id(value)]
        if not places:
            return numbers
        ids = pa.array([wanted[place] for place in places], type=self._type)
        table = pa.table({"id": ids, "row": pa.array(range(len(ids)))})
        keys = functions.broadcast(self._rows.sparkSession.createDataFrame(table))
        same = self._rows["question"] == keys["id"]
        found = self._rows.join(keys, same).select("row").distinct().toArrow()
        rows = np.sort(found["row"].to_numpy())
        numbers[np.array(places)[rows]] = len(self.found) + np.arange(len(rows))
        self.found = pa.concat_arrays([self.found, ids.take(rows)])
        return numbers

    def _may_be_id(self, value: object) -> bool:
        """Tell whether the column of the questions could hold a value."""
        import pyarrow as pa

        try:
            return value is not None and bool(pa.scalar(value, self._type).as_py() == value)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return False


def _some(ids: Any, questions: Ints) -> list[Any]:
    """Return the first of these questions as they can be written down."""
    return [plain(ids[int(question)].as_py()) for question in questions[:NAMED]]


def plain(value: Any) -> Any:
    """Return an id as JSON has it."""
    return value if isinstance(value, str | int | float) else str(value)


def _first(some: list[Any]) -> Any:
    """Return the example whose question comes first; ids of a column are of one kind."""
    return min(some, key=lambda example: example[0])
