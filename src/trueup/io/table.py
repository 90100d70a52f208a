"""The answers as arrays of codes, together with the ids of these codes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from trueup.io import series
from trueup.io.columns import PLAIN_NAMES, IdNames
from trueup.io.rejects import Rejects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from trueup.core.arrays import Indices


class Ids:
    """The id of every code 0, 1, ..., in the library and type the caller gave them in.

    Parameters
    ----------
    values
        A pandas or polars Series, a pyarrow Array or a numpy array of distinct values.
    """

    __slots__ = ("_code_of", "values")

    def __init__(self, values: series.Series) -> None:
        self.values = values
        self._code_of: dict[object, int] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"Ids({len(self)} of {series.library(self.values)} {series.dtype_name(self.values)})"

    def name(self, number: int) -> object:
        """Return one id."""
        return self.tolist(np.array([number]))[0]

    def take(self, indices: Indices) -> Ids:
        """Return the ids of these codes, in this order."""
        return Ids(series.take(self.values, np.asarray(indices, dtype=np.int64)))

    def tolist(self, indices: Indices | None = None) -> list[object]:
        """Return the ids, or those of the codes given, as Python objects."""
        return series.to_list(self.values if indices is None else self.take(indices).values)

    def index_of(self, values: Ids | Iterable[object]) -> NDArray[np.int64]:
        """Return the code of each value, -1 where there is none.

        Values are compared as Python does: 1 equals `np.int64(1)` but not "1".
        """
        if self._code_of is None:
            self._code_of = {value: code for code, value in enumerate(self.tolist())}
        code_of = self._code_of
        given = values.values if isinstance(values, Ids) else values
        wanted = list(given) if series.library(given) == "numpy" else series.to_list(given)
        return np.fromiter(
            (code_of.get(value, -1) for value in wanted), dtype=np.int64, count=len(wanted)
        )

    def sort_order(self) -> NDArray[np.int64]:
        """Return the codes in rising order of their ids.

        Ids of types that cannot be compared are in order of (type name, text).
        """
        return series.sort_order(self.values)


class Pseudonyms(Ids):
    """Names that stand for ids and tell nothing of them: "worker 1", "worker 2", ...

    They keep the order of what they stand for, so that random splits of the workers, which are drawn over their order,
    give the same numbers as with the ids.

    Parameters
    ----------
    values
        The pseudonyms.
    rank
        Place of what each of them stands for among all ids in order.
    """

    __slots__ = ("rank",)

    def __init__(self, values: series.Series, rank: NDArray[np.int64]) -> None:
        super().__init__(values)
        self.rank = rank

    def take(self, indices: Indices) -> Pseudonyms:
        """Return the pseudonyms of these codes, in this order."""
        return Pseudonyms(super().take(indices).values, self.rank[indices])

    def sort_order(self) -> NDArray[np.int64]:
        """Return the codes in rising order of what they stand for."""
        return np.argsort(self.rank, kind="stable")


def pseudonyms_of(ids: Ids) -> tuple[Pseudonyms, NDArray[np.int64]]:
    """Return pseudonyms in an order that nobody can guess, and the new code of each old one.

    The order is drawn from the randomness of the operating system, and another one each time.
    """
    n = len(ids)
    order = np.random.default_rng().permutation(n)  # the old code of each new one
    code, rank = np.empty((2, n), dtype=np.int64)
    code[order] = np.arange(n)
    rank[ids.sort_order()] = np.arange(n)
    names = np.array([f"worker {number}" for number in range(1, n + 1)], dtype=object)
    return Pseudonyms(names, rank[order]), code


class QuestionKey(tuple[object, ...]):
    """The id of a question that several columns name: a tuple that is written as its parts with commas."""

    __slots__ = ()

    def __str__(self) -> str:
        return ", ".join(map(str, self))

    def __repr__(self) -> str:
        return f'"{self}"'


class CompositeIds(Ids):
    """Ids that several columns name together, as tuples.

    Parameters
    ----------
    columns
        The distinct values of each column.
    codes
        For each column, the number of its value in each id.
    """

    __slots__ = ("_all", "codes", "columns")

    def __init__(self, columns: Sequence[Ids], codes: Sequence[Indices]) -> None:
        self.columns, self.codes = tuple(columns), tuple(codes)
        self._code_of = None
        self._all: NDArray[np.object_] | None = None

    @classmethod
    def of(cls, keys: Sequence[Sequence[object]]) -> CompositeIds:
        """Make ids of tuples."""
        columns, codes = [], []
        for values in zip(*keys, strict=True):
            code_of = {value: code for code, value in enumerate(dict.fromkeys(values))}
            columns.append(Ids(series.array_of(list(code_of))))
            codes.append(np.array([code_of[value] for value in values], dtype=np.int64))
        return cls(columns, codes)

    @property
    def parts(self) -> list[Ids]:
        """One column of ids for each of the columns."""
        return [ids.take(codes) for ids, codes in zip(self.columns, self.codes, strict=True)]

    @property
    def values(self) -> NDArray[np.object_]:
        """All ids, an array of tuples."""
        if self._all is None:
            rows = zip(*(part.tolist() for part in self.parts), strict=True)
            self._all = np.fromiter(map(QuestionKey, rows), dtype=object, count=len(self))
        return self._all

    def __len__(self) -> int:
        return len(self.codes[0])

    def take(self, indices: Indices) -> CompositeIds:
        """Return the ids of these codes, in this order."""
        rows = np.asarray(indices, dtype=np.int64)
        return CompositeIds(self.columns, [codes[rows] for codes in self.codes])


def concatenated(first: Ids, second: Ids) -> Ids:
    """Put ids of one input below one another."""
    if isinstance(first, CompositeIds):
        return CompositeIds.of([*first.values, *second.values])
    return Ids(series.concat(first.values, second.values))


@dataclass(frozen=True, eq=False)
class Table:
    """Answers, one entry per row that has an answer.

    The arrays may share memory with the caller's data: do not write to them.

    Attributes
    ----------
    question, worker
        Codes 0, 1, ... of the question and the worker of each answer.
    answer
        The answers, all finite.
    row
        Row number in the input of each answer; None when no row was dropped.
    panel
        Codes of the panels, or None.
    numbers
        Further columns, NaN where there is no value.
    question_ids, worker_ids, panel_ids
        The ids of the codes.
    n_rows
        Number of rows read.
    n_missing
        Number of rows dropped because their answer is missing.
    rejects
        Rows that were set aside because they cannot be used.
    doubtful
        Marks that were taken for "no answer" and may have been meant otherwise, and how often they were there.
    unit
        The unit that was stripped from the answers; empty where they have none.
    dropped_questions
        Number of questions that have rows but no answer.
    dropped_workers
        Workers that have rows or a column but no answer; None for one whose name is not told.
    others
        Loads the columns that were not asked for, by name, one value per answer.
    kind
        What the input was: "pandas", "polars", "pyarrow", "duckdb", "array", "file" or "other".
    ordered
        Whether the rows have an order. If so, codes are in order of first appearance, otherwise
        in order of the ids.
    names
        What the caller calls questions and workers.
    unanswered
        Questions that nobody answered, of a table that lists them; None: there are none.
    gold_column
        Column that may hold known truths and was not used; empty where there is none.
    """

    question: Indices
    worker: Indices
    answer: NDArray[np.float64]
    question_ids: Ids
    worker_ids: Ids
    n_rows: int
    kind: str
    n_missing: int = 0
    row: NDArray[np.int64] | None = None
    panel: Indices | None = None
    panel_ids: Ids | None = None
    numbers: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    ordered: bool = True
    names: IdNames = PLAIN_NAMES
    unanswered: Ids | None = None
    gold_column: str = ""
    rejects: Rejects = field(default_factory=Rejects)
    doubtful: tuple[tuple[str, int], ...] = ()
    dropped_questions: int = 0
    dropped_workers: tuple[object, ...] = ()
    unit: str = ""
    others: Callable[[], Mapping[str, series.Series]] = dict
