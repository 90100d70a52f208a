"""What is known of the questions besides their answers, on disk: columns of the answers, or tables by question.

Columns go through the sorting with the answers. A table of its own, which must fit into memory, is read as for answers
in memory; only the ids of the questions are looked up block by block. It leaves nothing in the working folder, so a
table that has changed is read anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trueup._estimate import Known
from trueup.core.libraries import loaded
from trueup.errors import AnswersError, TrueupError
from trueup.io.paths import check_present, find_paths
from trueup.io.question_data.columns import is_file_name
from trueup.io.question_data.forms import is_column, plain_name
from trueup.io.question_data.read import Covariates, read_covariates, read_gold, read_groups
from trueup.io.series import to_list

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from trueup.answers.scale import Scale
    from trueup.core.arrays import Floats, Indices, Ints
    from trueup.engines.disk.blocks import Stored
    from trueup.io.question_data.read import Labels


@dataclass(frozen=True, eq=False)
class Attributes:
    """What the caller knows of the questions.

    Attributes
    ----------
    groups
        Column or table of labels, or None.
    covariates
        Columns and tables of numbers.
    gold
        Column or table of truths, or None.
    question
        Name of the column of the questions.
    how
        How text files are written.
    """

    groups: Any
    covariates: tuple[Any, ...]
    gold: Any
    question: str
    how: Mapping[str, Any]

    @classmethod
    def of(
        cls, groups: Any, covariates: Any, gold: Any, question: str, how: Mapping[str, Any]
    ) -> Attributes:
        """Take what was given, and refuse before answers are read what does not say which questions it is of."""
        known = cls(groups, _several(covariates), gold, question, how)
        _check("groups", groups)
        for each in known.covariates:
            _check("covariates", each)
        _check("gold", gold)
        return known

    @property
    def group_column(self) -> str | None:
        """The column of the groups, where they are one."""
        return self.groups if _is_column_name(self.groups) else None

    @property
    def covariate_columns(self) -> tuple[str, ...]:
        """The columns among the covariates."""
        return tuple(filter(_is_column_name, self.covariates))

    @property
    def gold_column(self) -> str | None:
        """The column of the truths, where they are one."""
        return self.gold if _is_column_name(self.gold) else None

    @property
    def files(self) -> list[Path]:
        """All files among them."""
        given = (self.groups, *self.covariates, self.gold)
        paths = [
            each for each in given if isinstance(each, str | PathLike) and not _is_column_name(each)
        ]
        return [path for each in paths for path in find_paths(each).paths]

    def read(self, stored: Stored) -> Known:
        """Read all of it; truths come on the scale on which the answers are combined."""
        questions = StoredQuestions(stored)
        return Known(
            self._groups(stored, questions),
            self._covariates(stored, questions),
            self._gold(stored, questions),
        )

    def _groups(self, stored: Stored, questions: StoredQuestions) -> Labels | None:
        if self.group_column is not None:
            return stored.groups
        return read_groups(self.groups, questions, question=self.question, how=self.how)

    def _covariates(self, stored: Stored, questions: StoredQuestions) -> Covariates | None:
        held = stored.covariates
        columns = iter(() if held is None else held.values.T)
        parts, names = [], []
        for each in self.covariates:
            if _is_column_name(each):
                parts.append(next(columns)[:, None])
                names.append(each)
                continue
            found = read_covariates(each, questions, question=self.question, how=self.how)
            if found is not None:
                parts.append(found.values)
                names += found.names
        return Covariates(np.hstack(parts), tuple(names)) if parts else None

    def _gold(self, stored: Stored, questions: StoredQuestions) -> Floats | None:
        gold = self.gold if self.gold_column is None else stored.gold
        truth = read_gold(gold, questions, question=self.question, how=self.how)
        if truth is None:
            return None
        if isinstance(self.gold, str | PathLike) and np.isnan(truth).all():
            raise TrueupError("gold: found no truth, all are empty. Fill in some, or leave it out.")
        return stored.scale.forward(truth)


def _several(covariates: Any) -> tuple[Any, ...]:
    """Return names and files each by itself and once; a table is one of its own."""
    if covariates is None:
        return ()
    given = _native(covariates)
    if is_column(given) and getattr(given, "ndim", 1) == 1:
        names = list(given)
        if all(isinstance(each, str | PathLike) for each in names):
            return tuple(dict.fromkeys(names))
    return (given,)


def _is_column_name(given: Any) -> bool:
    """Say whether that is a column of the answers: what ends as the name of a file does is a file."""
    return isinstance(given, str) and not is_file_name(given)


def _check(argument: str, given: Any) -> None:
    """Refuse a file that is not there, and what does not say which questions it is of."""
    if _is_column_name(given):
        return
    if isinstance(given, str | PathLike):
        try:
            for path in find_paths(given).paths:
                check_present(path)
        except AnswersError as error:
            raise AnswersError(f"{argument}: {error}") from error
        return
    pandas, given = loaded("pandas"), _native(given)
    indexed = pandas is not None and isinstance(given, pandas.Series)
    if is_column(given) and not indexed:
        value = plain_name(argument)
        raise TrueupError(
            f"{argument}: with answers that are not in memory it must say which questions it is of. Give a file or "
            f'frame with the columns "question" and "{value}", or a mapping from question to {value}.'
        )


def _native(given: Any) -> Any:
    narwhals = loaded("narwhals")
    return given if narwhals is None else narwhals.to_native(given, pass_through=True)


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
        found = dict.fromkeys(wanted, -1)
        for i in range(self._stored.n_blocks):
            first = int(self._stored.starts[i])
            for number, each in enumerate(to_list(self._stored.question_ids(i)), first):
                if each in found:
                    found[each] = number
        return np.array([found[each] for each in wanted], dtype=np.int64)


class StoredQuestions:
    """What reading groups, covariates and truths asks of answers; those of a working folder are in one table."""

    question_source: Ints | None = None

    def __init__(self, stored: Stored) -> None:
        self.question_ids = StoredIds(stored)
        self.n_questions = stored.n_questions
        self.scale: Scale = stored.scale
        self.origin = Origin(self.question_ids)


class Origin(NamedTuple):
    """Where the questions are from."""

    question_ids: StoredIds
    kind: str = "file"
