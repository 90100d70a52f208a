"""Groups, covariates and gold truths of answers on disk.

Columns of the answers are sorted with them. Tables by question are read as for answers in memory; only the ids of the
questions are looked up block by block. They leave nothing in the working folder, so a table that has changed is read
anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trueup.io.question_data.match import QuestionsById
from trueup.io.series import to_list

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trueup.core.arrays import Indices, Ints
    from trueup.engines.disk.blocks import Stored
    from trueup.io.question_data import QuestionData, QuestionDataRequest


def read_question_data(request: QuestionDataRequest, stored: Stored) -> QuestionData:
    """Read all columns and tables of a request."""
    return request.read(QuestionsById(StoredIds(stored)), stored.question_data)


class StoredIds:
    """The ids of the questions in a working folder, as `trueup.io.table.Ids`, but read block by block."""

    def __init__(self, stored: Stored) -> None:
        self._stored = stored

    def __len__(self) -> int:
        return self._stored.n_questions

    def tolist(self, indices: Indices | None = None) -> list[object]:
        """Return the ids of these questions; without any, those of a block, which shows what ids look like."""
        if indices is None:
            return to_list(self._stored.question_ids(0))
        return [self._stored.question_id(number) for number in indices.tolist()]

    def index_of(self, values: Iterable[object]) -> Ints:
        """Return the number of the question of each value, -1 where there is none."""
        wanted = list(values)
        number_of = dict.fromkeys(wanted, -1)
        for i in range(self._stored.n_blocks):
            first = int(self._stored.starts[i])
            for number, question in enumerate(to_list(self._stored.question_ids(i)), first):
                if question in number_of:
                    number_of[question] = number
        return np.array([number_of[question] for question in wanted], dtype=np.int64)
