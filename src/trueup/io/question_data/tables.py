"""Tables that say something about questions, in any form, as rows that each speak about one question."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from trueup.core.libraries import loaded
from trueup.errors import (
    MOST_NAMES,
    AnswersError,
    Message,
    counted,
    listing,
    missing_column,
    option,
    quoted,
    warn,
)
from trueup.io.columns import OTHER_NAMES, recognised
from trueup.io.formats import find_format
from trueup.io.number_text import Writing
from trueup.io.numbers import WritingError, as_plain
from trueup.io.question_data.match import QuestionRows, match
from trueup.io.read_options import WRITING_OPTIONS
from trueup.io.readers.files import open_source
from trueup.io.readers.frames import open_frame
from trueup.io.readers.row_filter import keep_where
from trueup.io.series import library, to_list

if TYPE_CHECKING:
    from trueup.io.question_data.match import Questions
    from trueup.io.series import Series

Value = TypeVar("Value")
# From the columns that a table has to those that are read.
Choose: TypeAlias = "Callable[[Sequence[object]], ChosenColumns]"
# Options of `open_source`.
FileOptions: TypeAlias = Mapping[str, Any]

# What one of the values is called.
VALUE_NAMES = {"groups": "group", "covariates": "covariate", "gold": "truth"}
# Of several columns of a table, those that hold the values.
USUAL_NAMES = {"groups": ("group",), "gold": ("truth", "gold", "answer", "value")}
# How pandas writes, reads and stores row numbers: no column anybody meant to give.
ROW_NUMBERS = ("Unnamed: ", "__index_level_")
# What can be given, besides names of columns of the answers.
FORMS = {
    "groups": "a mapping from question to label, a frame or file with a question column and one more, or one label per "
    "question",
    "covariates": "a frame or file with a question column and numeric ones, or an array with one row per question",
    "gold": 'a mapping from question to truth, a frame or file with the columns "question" and "truth", or an array '
    "with one number per question, NaN where unknown",
}


class TableReader(NamedTuple):
    """Reads columns and tables of one kind.

    Attributes
    ----------
    kind
        What they hold: "groups", "covariates" or "gold".
    argument
        What messages call them.
    questions
        The questions that are meant.
    data
        What the answers were made of, to look for columns in.
    question
        Name of the column of the questions.
    options
        How the file of the answers is read.
    """

    kind: str
    argument: str
    questions: Questions
    data: Any
    question: Any
    options: FileOptions

    @property
    def _titles(self) -> tuple[str, ...]:
        """The columns that name a question: those that were passed, or those the answers have."""
        titles = self.questions.origin.names.question
        passed = not isinstance(self.question, str) or self.question != "question"
        several = len(titles) > 1
        return (
            (self.question,)
            if passed and isinstance(self.question, str) and not several
            else titles
        )

    def columns(self, names: list[str]) -> QuestionRows:
        """Read columns of the table the answers are from."""
        choose = partial(choose_named, names=names, question=self._titles, argument=self.argument)
        if isinstance(self.data, str | os.PathLike):
            return self._matched(self._from_file(self.data, choose, self.options))
        if is_frame(self.data):
            found = _from_frame(self.data, choose, self.options.get("where"))
            if self.kind != "groups":
                writing = _writing(self.options)
                found = found._replace(values=self._plain(found.values, writing))
            return self._matched(found)
        raise AnswersError(
            f"found {quoted(names[0])}, but these answers have no columns to look in. Give {FORMS[self.kind]}."
        )

    def table(self, given: Any, convert: Callable[[QuestionRows], Value]) -> Value:
        """Read a table of its own, and convert its rows."""
        if isinstance(given, str | os.PathLike):
            return self._from_any_file(Path(given), convert)
        rows = self._rows(given)
        self._tell(rows)
        return convert(rows)

    def _tell(self, rows: QuestionRows) -> None:
        if rows.nearly:
            warn(option(self.argument, None) + f": {rows.nearly}")

    def _from_any_file(self, path: Path, convert: Callable[[QuestionRows], Value]) -> Value:
        """Read a file as the answers are read or plainly, whichever knows more questions."""
        ways = _ways_to_read(path, self.options)
        errors, opened = [], []
        for way in ways:
            try:
                opened.append((way, self._from_file(path, self._choose, way)))
            except WritingError:
                raise
            except AnswersError as error:
                errors.append(_explained(error, way, ways))
        if opened:
            errors = []  # how it is written is known
        results: list[tuple[QuestionRows, Value]] = []
        for way, columns in opened:
            try:
                rows = self._matched(columns)
                results.append((rows, convert(rows)))
            except AnswersError as error:
                errors.append(_explained(error, way, ways))
        if not results:
            raise errors[0]
        rows, value = max(results, key=lambda result: result[0].n_known)
        self._tell(rows)
        return value

    def _rows(self, given: Any) -> QuestionRows:
        """Bring what is neither file nor column into rows."""
        names, value_name = _question_names(self._titles), VALUE_NAMES[self.kind]
        pandas = loaded("pandas")
        if pandas is not None and isinstance(given, pandas.Series):
            name = given.name if isinstance(given.name, str) and given.name else value_name
            several = len(self._titles) > 1
            keys = list(given.index) if several else _column("question", given.index)
            return match(keys, {name: given}, self.questions)
        if is_column(given):
            return self._in_order(given)
        if isinstance(given, Mapping) and not any(
            name in given and is_column(given[name]) for name in names
        ):
            _check_mapping(given, value_name, ", ".join(map(str, self._titles)))
            values = _column(value_name, list(given.values()))
            return match(list(given), {value_name: values}, self.questions)
        frame = _without_index(given, names)
        if not is_frame(frame):
            raise AnswersError(
                f"found {quoted(type(given).__name__)}. Give the name of a column, {FORMS[self.kind]}."
            )
        return self._matched(_from_frame(frame, self._choose))

    def _in_order(self, given: Any) -> QuestionRows:
        """Take what has one entry per question, or per column of an array of answers."""
        columns = _unnamed_columns(self.kind, given)
        length = len(next(iter(columns.values())))
        ids = self.questions.question_ids
        width = _width(self.data) if self.questions.origin.kind == "matrix" else None
        if length == width:
            return match(np.arange(length), columns, self.questions)
        if length != len(ids):
            expected = counted(len(ids), "question")
            if width not in (None, len(ids)):
                expected += f" with answers, or for each of {width} columns"
            raise AnswersError(
                f"found {length}, expected one for each of {expected}. Give them in the order of the "
                "questions in the result, or as a mapping from question."
            )
        return QuestionRows(columns, np.arange(length), ids, None)

    def _choose(self, available: Sequence[object]) -> ChosenColumns:
        """Choose the columns of a table of its own."""
        question = _question_column(available, self._titles)
        others: list[Any] = [name for name in available if _is_value_column(name, question)]
        usual = [name for name in USUAL_NAMES.get(self.kind, ()) if name in others]
        if self.kind == "covariates":
            values = others
            if not others:
                raise AnswersError(
                    "found no column besides that of the questions. Give at least one."
                )
        elif usual or len(others) == 1:
            values = [usual[0]] if usual else others
        else:
            found = f"the columns {listing(others, MOST_NAMES)}" if others else "no column"
            name = VALUE_NAMES[self.kind]
            raise AnswersError(
                f"found {found} besides that of the questions. Give one, or name the one with the {name}s "
                f"{quoted(name)}."
            )
        return _checked(ChosenColumns(question, values), available, self.argument)

    def _from_file(self, path: Any, choose: Choose, options: FileOptions) -> TableColumns:
        writing = _writing(options)
        source = open_source(
            path, **{name: options[name] for name in options if name not in WRITING_OPTIONS}
        )
        with source.named():
            chosen = choose(source.names)
        columns = source.fetch([*chosen.question, *chosen.values], chosen.question)
        question = _keys(columns, chosen)
        if self.kind != "groups":
            columns = self._plain(columns, writing)
        return TableColumns(question, columns, source.untyped)

    def _plain(self, columns: dict[str, Series], writing: Writing) -> dict[str, Series]:
        """Read numbers that are written like the answers; truths are in their unit, too."""
        unit = self.questions.origin.unit if self.kind == "gold" else ""
        return {name: as_plain(each, writing, name, unit) for name, each in columns.items()}

    def _matched(self, columns: TableColumns) -> QuestionRows:
        return match(columns.question, columns.values, self.questions, text=columns.text)


# -- columns ---------------------------------------------------------------------------------------


class ChosenColumns(NamedTuple):
    """Names of the column of the questions and of those that say something about them."""

    question: tuple[str, ...]
    values: list[Any]


class TableColumns(NamedTuple):
    """The ids of the questions, other columns by name, and whether all are text without a type, as in a CSV file."""

    question: Series | list[object]
    values: dict[str, Series]
    text: bool = False


def choose_named(
    available: Sequence[object],
    names: Sequence[str],
    question: str | tuple[str, ...],
    argument: str,
) -> ChosenColumns:
    """Choose columns of these names; check that each is there once and is not that of the questions."""
    columns = _question_column(available, (question,) if isinstance(question, str) else question)
    both = [column for column in columns if column in names]
    if both and len(columns) == 1:
        raise AnswersError(
            f"Column {quoted(both[0])}: holds the questions themselves. Name another column."
        )
    return _checked(ChosenColumns(columns, list(dict.fromkeys(names))), available, argument)


def column_names(data: Any) -> Sequence[object]:
    """Return the columns of a frame; nothing for other data."""
    return open_frame(data).names if is_frame(data) else ()


def _question_names(question: Sequence[str]) -> list[str]:
    """Return the names that the column of the questions may have; several columns have their own."""
    return list(question) if len(question) > 1 else [*question, "question", OTHER_NAMES["question"]]


def _question_column(available: Sequence[object], question: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns of the questions: those of the answers, or one with another name that people use."""
    if all(name in available for name in question):
        return question
    if len(question) == 1:
        for name in _question_names(question):
            if name in available:
                return (name,)
        known = recognised(available, "question")
        if len(known) == 1:
            return (known[0],)
    missing = next(name for name in question if name not in available)
    columns = (
        f"The columns are {listing(available, MOST_NAMES)}."
        if available
        else "There are no columns."
    )
    raise AnswersError(
        f"Column {quoted(missing)}: not found. {columns} Give this name to the column of the questions."
    )


def _keys(columns: dict[str, Series], chosen: ChosenColumns) -> Series | list[object]:
    """Take the columns of the questions out of all; several of them become tuples."""
    keys = [columns[name] for name in chosen.question]
    for name in set(chosen.question) - set(chosen.values):
        del columns[name]
    return keys[0] if len(keys) == 1 else list(zip(*map(to_list, keys), strict=True))


def _is_value_column(name: object, question: Sequence[str]) -> bool:
    """Tell whether a column is one that somebody meant to give besides the questions."""
    if isinstance(name, str):
        return bool(name.strip()) and name not in question and not name.startswith(ROW_NUMBERS)
    return True


def _checked(chosen: ChosenColumns, available: Sequence[object], argument: str) -> ChosenColumns:
    """Check that each column is there, once."""
    for name in (*chosen.question, *chosen.values):
        times = sum(other == name for other in available)
        if not times:
            raise missing_column(name, available, argument)
        if times > 1:
            raise AnswersError(
                f"Column {quoted(name)}: there are {times} columns of this name. Rename all but one."
            )
    return chosen


def _from_frame(frame: Any, choose: Choose, where: Sequence[str] | None = None) -> TableColumns:
    opened = keep_where(open_frame(frame), where)
    chosen = choose(opened.names)
    columns = opened.fetch([*chosen.question, *chosen.values])
    return TableColumns(_keys(columns, chosen), columns)


# -- forms -----------------------------------------------------------------------------------------


def native(given: Any) -> Any:
    """Return what narwhals wraps, where it wraps something."""
    narwhals = loaded("narwhals")
    return given if narwhals is None else narwhals.to_native(given, pass_through=True)


def is_column(given: Any) -> bool:
    """Tell whether something is a list or array rather than a frame or mapping."""
    if isinstance(given, np.ndarray) or library(given) != "numpy":
        return True
    pandas = loaded("pandas")
    if pandas is not None and isinstance(
        given, pandas.Index | pandas.api.extensions.ExtensionArray
    ):
        return True
    return isinstance(given, Sequence) and not isinstance(given, str | bytes)


def is_frame(data: Any) -> bool:
    """Tell whether something is a frame or dict of columns."""
    if data is None or isinstance(data, str | os.PathLike) or is_column(data):
        return False
    try:
        open_frame(data)
    except AnswersError:
        return False
    return True


def is_file_name(text: str) -> bool:
    """Tell whether a text ends like the name of a file that can be read."""
    return find_format(text) is not None


def _writing(options: FileOptions) -> Writing:
    """Return how the numbers of the answers are written."""
    return Writing.of(**{name: options[name] for name in WRITING_OPTIONS if name in options})


def _ways_to_read(path: Path, options: FileOptions) -> list[FileOptions]:
    """Return how to try a file: with the options of the answers that fit it, and without any."""
    format_ = find_format(path)
    fitting = {
        option: options[option]
        for option in (*(format_.options if format_ else ()), *WRITING_OPTIONS)
        if options.get(option) is not None
    }
    return [fitting, {}] if fitting else [{}]


def _explained(error: AnswersError, way: FileOptions, ways: list[FileOptions]) -> AnswersError:
    """Say how the file was read, where there are several ways."""
    if len(ways) == 1:
        return error
    options = Message(", ").join(option(name, value) for name, value in ways[0].items())
    how = "like the answers" if way else "plainly, since it cannot be read like the answers"
    return error.advised(error.remedy, f"It was read {how} (" + options + ").")


def _column(name: str, values: Any) -> Series:
    """Bring a list or array of any library into one of the native forms."""
    return open_frame({name: values}).fetch([name])[name]


def _check_mapping(given: Mapping[Any, Any], value_name: str, question: str) -> None:
    """Refuse a mapping to columns: a dict of columns in which that of the questions is missing."""
    for kind in set(map(type, given.values())):
        value = next(value for value in given.values() if type(value) is kind)
        if kind is not tuple and (is_column(value) or isinstance(value, Mapping)):
            raise AnswersError(
                f"found a mapping to {quoted(kind.__name__)} values. Give one {value_name} per question, "
                f"or a dict of columns of which one is {quoted(question)}."
            )


def _width(data: Any) -> int | None:
    """Return the number of columns of an array of answers."""
    shape = getattr(data, "shape", None)
    if shape is None and isinstance(data, list | tuple):
        shape = np.shape(data)
    return int(shape[-1]) if shape else None


def _without_index(given: Any, names: Sequence[str]) -> Any:
    """Make a column of the index of a pandas frame, where that has the questions."""
    pandas = loaded("pandas")
    if pandas is not None and isinstance(given, pandas.DataFrame):
        levels = [name for name in names if name in given.index.names]
        if levels and not any(name in given.columns for name in names):
            return given.reset_index(level=levels[0])
    return given


def _unnamed_columns(kind: str, given: Any) -> dict[str, Series]:
    """Split an array into its columns; one of one dimension is a single column."""
    name = VALUE_NAMES[kind]
    if kind != "covariates":
        return {name: _column(name, given)}
    if isinstance(given, Sequence) and any(map(is_column, given)):
        array = np.array(given, dtype=object)
        if array.ndim != 2:
            raise AnswersError("found rows of different length. Give as many numbers per question.")
        given = array
    if not isinstance(given, np.ndarray) or given.ndim != 2:
        return {name: _column(name, given)}
    if not isinstance(given, np.ma.MaskedArray):
        given = np.asarray(given)  # a np.matrix has no column of one dimension
    if not given.shape[1]:
        raise AnswersError("found rows without numbers. Give one number or more per question.")
    return {(one := f"{name}_{j}"): _column(one, given[:, j]) for j in range(given.shape[1])}
