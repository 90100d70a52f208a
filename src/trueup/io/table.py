"""The answers as arrays of codes, together with the ids of these codes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from trueup.io import series
from trueup.io.rejects import Rejects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

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
    unanswered
        Number of questions that have rows but no answer.
    question_name
        Column of the questions.
    others
        Loads the columns that were not asked for, by name, one value per answer.
    kind
        What the input was: "pandas", "polars", "pyarrow", "duckdb", "array", "file" or "other".
    ordered
        Whether the rows have an order. If so, codes are in order of first appearance, otherwise
        in order of the ids.
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
    rejects: Rejects = field(default_factory=Rejects)
    doubtful: tuple[tuple[str, int], ...] = ()
    unanswered: int = 0
    question_name: str = "question"
    others: Callable[[], Mapping[str, series.Series]] = dict
