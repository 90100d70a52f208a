"""Groups, covariates and gold truths of answers on disk, and the ids of their questions.

Columns of the answers are sorted with them. Tables by question are read as for answers in memory; only the ids of the
questions are looked up block by block. They leave nothing in the working folder, so a table that has changed is read
anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.core.libraries import need
from trueup.io.question_data.match import QuestionsById
from trueup.io.series import to_list
from trueup.io.table import Ids

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trueup.core.arrays import Indices, Ints
    from trueup.engines.disk.blocks import StoredAnswers
    from trueup.io.question_data import QuestionData, QuestionDataRequest

#: Ids that are looked up one by one; for more of them all are read.
FEW = 1000


def read_question_data(request: QuestionDataRequest, stored: StoredAnswers) -> QuestionData:
    """Read all columns and tables of a request."""
    return request.read(
        QuestionsById(stored.question_ids, names=stored.names, unit=stored.unit),
        stored.question_data,
    )


class StoredIds(Ids):
    """The ids of the questions in a working folder, read block by block; all of them only where all are needed."""

    __slots__ = ("_all", "_stored")

    def __init__(self, stored: StoredAnswers) -> None:
        self._stored = stored
        self._all: Any = None

    @property
    def values(self) -> Any:
        """All ids, a pyarrow array."""
        if self._all is None:
            blocks = map(self._stored.block_ids, range(self._stored.n_blocks))
            self._all = need("pyarrow", "files").concat_arrays(list(blocks))
        return self._all

    def __len__(self) -> int:
        return self._stored.n_questions

    def take(self, indices: Indices) -> Ids:
        """Return the ids of these questions, in this order."""
        if self._all is None and len(indices) <= FEW:
            kind = self._stored.block_ids(0).type
            return Ids(need("pyarrow", "files").array(self.tolist(indices), kind))
        return Ids(self.values).take(indices)

    def tolist(self, indices: Indices | None = None) -> list[object]:
        """Return the ids of these questions; without any, those of a block, which shows what ids look like."""
        if indices is None:
            return to_list(self._stored.block_ids(0))
        if self._all is None and len(indices) <= FEW:
            return [self._stored.question_id(int(number)) for number in indices]
        return Ids(self.values).tolist(indices)

    def index_of(self, values: Ids | Iterable[object]) -> Ints:
        """Return the number of the question of each value, -1 where there is none."""
        wanted = values.tolist() if isinstance(values, Ids) else list(values)
        number_of = dict.fromkeys(wanted, -1)
        for i in range(self._stored.n_blocks):
            first = int(self._stored.starts[i])
            for number, question in enumerate(to_list(self._stored.block_ids(i)), first):
                if question in number_of:
                    number_of[question] = number
        return np.array([number_of[question] for question in wanted], dtype=np.int64)
