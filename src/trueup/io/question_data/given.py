"""Groups, covariates and gold truths in any form, as rows that each speak of a question."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from trueup.core.libraries import loaded
from trueup.errors import AnswersError, counted, quoted
from trueup.io.question_data.columns import (
    How,
    fitting,
    from_file,
    from_frame,
    is_file_name,
    named,
    question_names,
    ways_to_read,
)
from trueup.io.question_data.forms import (
    FORMS,
    check_values,
    column,
    has_columns,
    is_column,
    is_dict_of_columns,
    is_frame,
    plain_name,
    unnamed_columns,
    width,
    without_index,
    wrong_form,
)
from trueup.io.question_data.rows import Given, matched
from trueup.io.readers.frames import open_frame

if TYPE_CHECKING:
    from trueup.io.question_data.columns import Columns
    from trueup.io.question_data.rows import Questions

Value = TypeVar("Value")


class Beside(NamedTuple):
    """What was given beside the answers.

    Attributes
    ----------
    argument
        What it is: "groups", "covariates" or "gold".
    answers
        The answers, whose questions are meant.
    data
        What the answers were made of, to look for columns in.
    question
        Name of the column of the questions.
    how
        How the file of the answers is read.
    """

    argument: str
    answers: Questions
    data: Any
    question: str
    how: How

    def read(self, given: Any, convert: Callable[[Given], Value]) -> Value:
        """Read what was given in any form, and make of it what is wanted."""
        narwhals = loaded("narwhals")
        if narwhals is not None:
            given = narwhals.to_native(given, pass_through=True)
        wanted = self._column_names(given)
        if isinstance(given, str | os.PathLike) and not wanted:
            return self._from_file(Path(given), convert)
        return convert(self._named(wanted) if wanted else self._rows(given))

    def _column_names(self, given: Any) -> list[str]:
        """Return the columns of the answers that are asked for by name, if that is what was given."""
        if isinstance(given, str):
            inside = is_frame(self.data) and given in open_frame(self.data).names
            return [given] if inside or not is_file_name(given) else []
        if self.argument != "covariates" or not is_column(given) or getattr(given, "ndim", 1) == 0:
            return []
        return list(map(str, given)) if all(isinstance(name, str) for name in given) else []

    def _named(self, wanted: list[str]) -> Given:
        """Read columns of the table the answers are from."""
        if not has_columns(self.data):
            raise AnswersError(
                f"found {quoted(wanted[0])}, but these answers have no columns to look in. "
                f"Give {FORMS[self.argument]}."
            )
        pick = named(self.argument, list(dict.fromkeys(wanted)), self.question)
        if isinstance(self.data, str | os.PathLike):
            return self._matched(from_file(self.data, pick, self.how))
        return self._matched(from_frame(self.data, pick))

    def _from_file(self, path: Path, convert: Callable[[Given], Value]) -> Value:
        """Read a file of its own as the answers are read or plainly, whichever knows more questions."""
        pick, ways = fitting(self.argument, self.question), ways_to_read(path, self.how)
        faults, opened = [], []
        for way in ways:
            try:
                opened.append((way, from_file(path, pick, way)))
            except AnswersError as error:
                faults.append(_said(error, way, ways))
        if opened:
            faults = []  # how it is written is known
        found: list[tuple[int, Value]] = []
        for way, columns in opened:
            try:
                rows = self._matched(columns)
                found.append((rows.n_known, convert(rows)))
            except AnswersError as error:
                faults.append(_said(error, way, ways))
        if not found:
            raise faults[0]
        return max(found, key=lambda each: each[0])[1]

    def _rows(self, given: Any) -> Given:
        """Bring what is neither file nor name into rows."""
        names = question_names(self.question)
        pandas = loaded("pandas")
        if pandas is not None and isinstance(given, pandas.Series):
            named = isinstance(given.name, str) and given.name
            name = given.name if named else plain_name(self.argument)
            return matched(column("question", given.index), {name: given}, self.answers)
        if is_column(given):
            return self._in_order(given)
        if isinstance(given, Mapping) and not is_dict_of_columns(given, names):
            check_values(given, self.argument, self.question)
            name = plain_name(self.argument)
            values = column(name, list(given.values()))
            return matched(list(given), {name: values}, self.answers)
        frame = without_index(given, names)
        if not is_frame(frame):
            raise wrong_form(self.argument, given)
        return self._matched(from_frame(frame, fitting(self.argument, self.question)))

    def _in_order(self, given: Any) -> Given:
        """Take what has one entry per question, or per column of an array of answers."""
        columns = unnamed_columns(self.argument, given)
        length = len(next(iter(columns.values())))
        answers = self.answers
        each_column = width(self.data) if answers.origin.kind == "matrix" else None
        if length == each_column:
            return matched(np.arange(length), columns, answers)
        if length != answers.n_questions:
            each = counted(answers.n_questions, "question")
            if each_column not in (None, answers.n_questions):
                each += f" with answers, or for each of {each_column} columns"
            raise AnswersError(
                f"found {length}, expected one for each of {each}. Give them in the order of the "
                "questions in the result, or as a mapping from question."
            )
        return Given(columns, np.arange(length), answers.question_ids, None)

    def _matched(self, columns: Columns) -> Given:
        return matched(columns.question, columns.others, self.answers, text=columns.text)


def _said(error: AnswersError, way: How, ways: list[How]) -> AnswersError:
    """Say how the file was read, where there are several ways."""
    if len(ways) == 1:
        return error
    options = ", ".join(f"{name}={quoted(value)}" for name, value in ways[0].items())
    how = "like the answers" if way else "plainly, since it cannot be read like the answers"
    return type(error)(f"{error} It was read {how} ({options}).")
