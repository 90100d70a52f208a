"""Groups, covariates and gold truths as a caller gives them, in any form and for every engine.

A text is the name of a column of the answers unless it ends like the name of a file. Everything else is a table of its
own: a file, a frame, a mapping from question to value, or values in the order of the questions. Tables must fit into
memory. Whatever the form, they end as columns of rows and the number of the question of each row. A question may have
many rows, as in a long table of answers, if they do not contradict one another.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trueup.core.keywords import keyword
from trueup.core.libraries import loaded
from trueup.errors import AnswersError, quoted
from trueup.io.paths import check_present, find_paths
from trueup.io.question_data.data import Covariates, Labels, QuestionData
from trueup.io.question_data.match import labels, missing_covariates, numbers
from trueup.io.question_data.tables import (
    VALUE_NAMES,
    TableReader,
    choose_named,
    column_names,
    is_column,
    is_file_name,
    native,
)
from trueup.io.readers.source import about, labelled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from trueup.core.arrays import Floats
    from trueup.io.question_data.match import QuestionRows, Questions


class QuestionColumns(NamedTuple):
    """Columns of the answers that say something about the questions."""

    groups: str | None = None
    covariates: tuple[str, ...] = ()
    gold: str | None = None

    @property
    def names(self) -> list[str]:
        """All of them, once."""
        every = (self.groups, *self.covariates, self.gold)
        return list(dict.fromkeys(name for name in every if name is not None))

    def check(self, available: Sequence[object], question: str, label: str = "") -> None:
        """Check that each column is there once, and is not that of the questions.

        Parameters
        ----------
        available
            The columns there are.
        question
            Name of the column of the questions.
        label
            What messages call the source of the columns, such as a file.
        """
        for kind, value in zip(VALUE_NAMES, self, strict=True):
            names = [value] if isinstance(value, str) else value
            if names:
                with about(kind), labelled(label) if label else nullcontext():
                    choose_named(available, names, question, kind)


@dataclass(frozen=True, eq=False)
class QuestionDataRequest:
    """What the caller knows about the questions.

    Attributes
    ----------
    groups : str, path, mapping, frame, or one label per question
        The name of a column of the answers; question -> label, also as a pandas Series indexed by question; a frame or
        file with a question column and one more (of several, "group"); or labels in the order of the questions (for an
        array of answers, also one for each of its columns). Labels stay labels, also if they are numbers; None, NaN
        and blank text mean that a question has none.
    covariates : str, path, list of these, mapping, frame or array
        Columns of the answers; files or a frame with a question column, in which all other columns that have a name
        are covariates; question -> number, also as a pandas Series; or one number or row of numbers per question, in
        their order.
    gold : str, path, mapping, frame or array
        A column of the answers; question -> truth, also as a pandas Series; a frame or file with a question column and
        "truth" (or "gold", "answer", "value", or the only other column); or one number per question. None and NaN mean
        that a truth is unknown. Questions nobody answered are ignored.
    question : str
        Name of the column of the questions; "question" and "task" are recognised as well.
    file_options : mapping
        How the file of the answers is read, as far as the caller says so: `sep`, `decimal`, `encoding`, `sql`. Other
        files are read in the same way if that fits them.
    gold_argument : str
        What messages call the truths: "gold", or "truth" where estimates are compared with them.
    groups_argument : str
        What messages call the groups.

    Examples
    --------
    >>> from trueup import Answers
    >>> request = QuestionDataRequest(groups={0: "film", 2: "book"}, gold={1: 4.5, 9: 2.0})
    >>> data = request.read(Answers.from_matrix([[3.0, 1.0, 2.0]]))
    >>> data.groups.codes.tolist(), data.groups.ids.tolist(), data.gold.tolist()
    ([0, -1, 1], ['film', 'book'], [nan, 4.5, nan])
    """

    groups: Any = keyword(
        None,
        "Column with the group of each question, or a file with the columns question and group.",
        str | None,
    )
    covariates: Any = keyword(
        None,
        "Column with a number known about each question, or a file of them; may be given several times.",
        list[str] | None,
    )
    gold: Any = keyword(
        None,
        "Known truths of some questions, one or more: a column, or a file with the columns question and truth.",
        str | None,
    )
    question: Any = "question"
    file_options: Mapping[str, Any] = field(default_factory=dict)
    gold_argument: str = "gold"
    groups_argument: str = "groups"

    def columns(self, available: Sequence[object] = ()) -> QuestionColumns:
        """Return the columns that must come with the answers.

        Names of `available` columns are columns even if they end like the name of a file.
        """
        named = [(kind, item) for kind, item in self._items if is_column_name(item, available)]
        return QuestionColumns(
            next((item for kind, item in named if kind == "groups"), None),
            tuple(item for kind, item in named if kind == "covariates"),
            next((item for kind, item in named if kind == "gold"), None),
        )

    def tables(self, available: Sequence[object] = ()) -> list[QuestionDataRequest]:
        """Return a request for each table that is not a column of the answers."""
        none: dict[str, Any] = dict.fromkeys(VALUE_NAMES)
        return [
            replace(self, **{**none, kind: item})
            for kind, item in self._items
            if not is_column_name(item, available)
        ]

    @property
    def files(self) -> list[Path]:
        """All files among them, which outputs must not overwrite."""
        paths: list[Path] = []
        for _, item in self._items:
            if isinstance(item, str | PathLike) and not is_column_name(item):
                try:
                    paths += find_paths(item).paths
                except AnswersError:
                    continue  # reading it says what is wrong
        return paths

    def check_by_id(self, *, columns: bool = True, available: Sequence[object] = ()) -> None:
        """Check what was given for answers that are not in memory, before these are read.

        Files must exist, and values must come with the ids of their questions.

        Parameters
        ----------
        columns
            Whether columns of the answers may be named.
        available
            Columns of the answers, where they are known.
        """
        for kind, item in self._items:
            with about(self._argument(kind)):
                if not is_column_name(item, available):
                    _check_table(kind, item)
                elif not columns:
                    raise _not_by_id(kind, quoted(item))

    def read(
        self, questions: Questions, data: Any = None, *, partial: bool = False
    ) -> QuestionData:
        """Read everything that was given.

        Parameters
        ----------
        questions : Answers, or what has question ids
            The questions that are meant.
        data
            What the answers were made of, to look for columns in: a frame or a path. Or `QuestionData` that were
            already read from columns of the answers.
        partial
            `questions` are only some of those that have answers: covariates may be missing, as NaN.

        Raises
        ------
        AnswersError
            When a form is unknown, no question is one of the answers, a question has two different values, a number
            cannot be used, or a covariate is missing.
        """

        def covariates_of(rows: QuestionRows) -> Covariates:
            return _covariates(rows, partial=partial)

        groups = self._read("groups", _labels, questions, data)
        covariates = self._read("covariates", covariates_of, questions, data)
        gold = self._read("gold", _truths, questions, data)
        if gold and isinstance(self.gold, str | PathLike) and np.isnan(gold[0]).all():
            raise no_truth(self.gold_argument)
        return QuestionData(
            groups[0] if groups else None,
            Covariates(
                np.hstack([part.values for part in covariates]),
                tuple(name for part in covariates for name in part.names),
            )
            if covariates
            else None,
            gold[0] if gold else None,
        )

    def _read(
        self, kind: str, convert: Callable[[QuestionRows], Any], questions: Questions, data: Any
    ) -> list[Any]:
        """Read one argument: its columns together, then each of its tables."""
        items = [item for other, item in self._items if other == kind]
        if not items:
            return []
        reader = TableReader(
            kind, self._argument(kind), questions, data, self.question, self.file_options
        )
        available = column_names(data)
        names = [item for item in items if is_column_name(item, available)]
        parts = []
        with about(reader.argument):
            if names and isinstance(data, QuestionData):
                parts.append(getattr(data, kind))
            elif names:
                parts.append(convert(reader.columns(names)))
            parts += [
                reader.table(item, convert) for item in items if not is_column_name(item, available)
            ]
        return parts

    @property
    def _items(self) -> list[tuple[str, Any]]:
        """Columns and tables, each with its argument; several covariates one by one."""
        items = [("groups", native(self.groups))]
        items += [("covariates", item) for item in _separate(native(self.covariates))]
        items.append(("gold", native(self.gold)))
        return [(kind, item) for kind, item in items if item is not None]

    def _argument(self, kind: str) -> str:
        names = {"gold": self.gold_argument, "groups": self.groups_argument}
        return names.get(kind, kind)


def is_column_name(given: Any, available: Sequence[object] = ()) -> bool:
    """Tell whether a column of the answers is meant rather than a file or other table."""
    return isinstance(given, str) and (given in available or not is_file_name(given))


def no_truth(argument: str) -> AnswersError:
    """Build the error for a column or file without any truth."""
    return AnswersError(
        "found no truth, all are empty.", argument=argument, remedy="Fill in some, or leave it out."
    )


def _separate(covariates: Any) -> list[Any]:
    """Return names and files one by one and once; any other table is one item."""
    if isinstance(covariates, list | tuple) and not covariates:
        return []
    if is_column(covariates) and getattr(covariates, "ndim", 1) == 1:
        first = next(iter(covariates), None)
        if isinstance(first, str | PathLike) and all(
            isinstance(item, str | PathLike) for item in covariates
        ):
            return list(dict.fromkeys(str(i) if isinstance(i, str) else i for i in covariates))
    return [covariates]


def _check_table(kind: str, table: Any) -> None:
    if isinstance(table, str | PathLike):
        for path in find_paths(table).paths:
            check_present(path)
        return
    pandas = loaded("pandas")
    indexed = pandas is not None and isinstance(table, pandas.Series)
    if is_column(table) and not indexed:
        raise _not_by_id(kind, "values without question ids")


def _not_by_id(kind: str, found: str) -> AnswersError:
    value = VALUE_NAMES[kind]
    return AnswersError(
        f"found {found}, but answers that are not in memory need values by question id. Give a file or frame with the "
        f'columns "question" and "{value}", or a mapping from question to {value}.'
    )


def _labels(rows: QuestionRows) -> Labels:
    (name,) = rows.columns
    return Labels(*labels(rows, name))


def _truths(rows: QuestionRows) -> Floats:
    (name,) = rows.columns
    return numbers(rows, name, "gold")


def _covariates(rows: QuestionRows, *, partial: bool) -> Covariates:
    values = np.column_stack([numbers(rows, name, "covariates") for name in rows.columns])
    if not partial:
        for name, column in zip(rows.columns, values.T, strict=True):
            missing = np.flatnonzero(np.isnan(column))
            if len(missing):
                raise missing_covariates(len(missing), name, rows.name_of(missing[0]))
    return Covariates(values, tuple(map(str, rows.columns)))
