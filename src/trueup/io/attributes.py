"""What is known of the questions besides their answers: groups, covariates and gold truths.

Whatever form they come in, they end as columns of rows and the number of the question each row speaks of. A question
may have many rows, as in a long table of answers, if they do not contradict one another.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias

import numpy as np

from trueup.answers import Answers
from trueup.errors import (
    MOST_NAMES,
    AnswersError,
    BadRows,
    counted,
    listing,
    missing_column,
    quoted,
)
from trueup.io.assemble import LARGEST_ANSWER
from trueup.io.columns import OTHER_NAMES
from trueup.io.delimited import whole_number_ids
from trueup.io.encode import encode
from trueup.io.files import DELIMITED, PARQUET, open_source
from trueup.io.frames import open_frame
from trueup.io.native import Series, library, loaded, take, to_list
from trueup.io.numbers import to_numbers
from trueup.io.table import Ids

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trueup.arrays import Floats, Ints

# Columns that hold the truths of a frame with several.
TRUTH_NAMES = ("truth", "gold", "answer", "value")
GROUP_NAMES = ("group",)
# How pandas writes, reads and stores row numbers: no column anybody meant to give.
ROW_NUMBERS = ("Unnamed: ", "__index_level_")
# Ids that a message shows.
SHOWN = 3
# A whole number of more digits is no 64-bit integer.
MOST_DIGITS = 20

# What can be given, besides names of columns of the answers.
FORMS = {
    "groups": "a mapping from question to label, a frame or file with a question column and one more, or one label per "
    "question",
    "covariates": "a frame or file with a question column and numeric ones, or an array with one row per question",
    "gold": 'a mapping from question to truth, a frame or file with the columns "question" and "truth", or an array '
    "with one number per question, NaN where unknown",
}

# From the columns there are to the column of the questions and those wanted besides.
Pick: TypeAlias = Callable[[Sequence[object]], "_Picked"]


@dataclass(frozen=True, eq=False)
class Labels:
    """The group of each question.

    Attributes
    ----------
    codes
        Number of the label of each question, -1 where it has none.
    ids
        The labels, in the order in which the questions first have them.
    """

    codes: Ints
    ids: Ids


@dataclass(frozen=True, eq=False)
class Covariates:
    """Numbers known of every question.

    Attributes
    ----------
    values
        One row per question, one column per covariate, all finite.
    names
        What the columns are called.
    """

    values: Floats
    names: tuple[str, ...]


def read_groups(
    groups: Any, answers: Answers, data: Any = None, *, question: str = "question"
) -> Labels | None:
    """Read the group of each question.

    Parameters
    ----------
    groups : str, mapping, frame, path, or one label per question
        The name of a column of `data`; question -> label, a pandas Series indexed by question too; a frame or CSV or
        Parquet file with a question column and one more (of several, "group"); or labels in the order of the
        questions (for an array of answers, also one for each of its columns). Labels are labels, also if they are
        numbers; None, NaN and blank text mean that a question has none.
    answers : Answers
        The answers, whose questions are meant.
    data
        What the answers were made of, to look for columns in.
    question : str
        Name of the column of the questions; "question" and "task" are recognised as well.

    Raises
    ------
    AnswersError
        When a question has two labels, no question is one of the answers, or `groups` is none of the above.

    Examples
    --------
    >>> labels = read_groups({0: "film", 2: "book"}, Answers.from_matrix([[3.0, 1.0, 2.0]]))
    >>> labels.codes.tolist(), labels.ids.tolist()
    ([0, -1, 1], ['film', 'book'])
    """
    if groups is None:
        return None
    with _about("groups"):
        given = _given("groups", groups, answers, data, question)
        (name,) = given.columns
        return _labels(given, name)


def read_covariates(
    covariates: Any, answers: Answers, data: Any = None, *, question: str = "question"
) -> Covariates | None:
    """Read the covariates of each question.

    Parameters
    ----------
    covariates : str, list of str, frame, path, mapping or array
        Columns of `data`; a frame or CSV or Parquet file with a question column, in which all other columns that have
        a name are covariates; question -> number, a pandas Series indexed by question too; or one number or row of
        numbers per question, in their order (for an array of answers, also one for each of its columns).
    answers, data, question
        As for `read_groups`.

    Raises
    ------
    AnswersError
        When a question has no value or two different ones, or a value is not a finite number.

    Examples
    --------
    >>> found = read_covariates({"task": [1, 0], "size": [7, 5]}, Answers.from_matrix([[3.0, 1.0]]))
    >>> found.names, found.values.tolist()
    (('size',), [[5.0], [7.0]])
    """
    if covariates is None:
        return None
    with _about("covariates"):
        given = _given("covariates", covariates, answers, data, question)
        values = np.empty((answers.n_questions, len(given.columns)))
        for j, name in enumerate(given.columns):
            remedy = "Give finite numbers; use groups= for labels."
            values[:, j] = _numbers(given, name, remedy)
            missing = np.isnan(values[:, j])
            if missing.any():
                first = answers.question_ids.tolist(np.flatnonzero(missing)[:1])[0]
                raise AnswersError(
                    f"{counted(int(missing.sum()), 'question')} without a value of {quoted(name)}, first "
                    f"{quoted(first)}. Every question needs one: fill it in, or leave out this covariate."
                )
        return Covariates(values, tuple(map(str, given.columns)))


def read_gold(
    gold: Any,
    answers: Answers,
    data: Any = None,
    *,
    question: str = "question",
    argument: str = "gold",
) -> Floats | None:
    """Read the known truths, one number per question and NaN where none is known, in the unit of the answers.

    Parameters
    ----------
    gold : mapping, frame, path, array or str
        Question -> truth, a pandas Series indexed by question too; a frame or CSV or Parquet file with a question
        column and "truth" (or "gold", "answer", "value", or the only other column); one number per question in their
        order (for an array of answers, also one for each of its columns); or the name of a column of `data`. None and
        NaN mean that a truth is unknown. Questions nobody answered are left out.
    answers, data, question
        As for `read_groups`.
    argument : str
        What an error calls the truths.

    Raises
    ------
    AnswersError
        When no question is one of the answers, a question has two truths, or a truth is no finite number or one that
        the transformation or the bounds of the answers do not allow.

    Examples
    --------
    >>> read_gold({1: 4.5, 9: 2.0}, Answers.from_matrix([[3.0, 1.0]])).tolist()
    [nan, 4.5]
    """
    if gold is None:
        return None
    with _about(argument):
        given = _given("gold", gold, answers, data, question)
        (name,) = given.columns
        truth = _numbers(
            given, name, "Give a finite number, or nothing where the truth is unknown."
        )
        scale = answers.scale
        bad = ~np.isnan(truth) & scale.outside(truth)
        if bad.any():
            _refuse_truth(answers, truth, bad, f"{scale.transform} needs truths {scale.domain}")
        if scale.bounds is not None:
            low, high = map(float, scale.bounds)
            bad = (truth < low) | (truth > high)
            if bad.any():
                _refuse_truth(answers, truth, bad, f"the bounds are {low:g} and {high:g}")
        return truth


def _refuse_truth(answers: Answers, truth: Floats, bad: Any, rule: str) -> NoReturn:
    at = np.flatnonzero(bad)[:1]
    raise AnswersError(
        f"question {quoted(answers.question_ids.tolist(at)[0])} has the truth {truth[at[0]]:g}, but {rule}. "
        "Mend or remove it, or change transform= or bounds=."
    )


@contextmanager
def _about(argument: str) -> Iterator[None]:
    """Name the argument in front of whatever goes wrong."""
    try:
        yield
    except AnswersError as error:
        raise type(error)(f"{argument}: {error}") from error.__cause__


# -- from any form to rows -------------------------------------------------------------------------


class _Picked(NamedTuple):
    """Columns chosen from those there are."""

    question: str
    others: list[str]

    @property
    def names(self) -> list[str]:
        return [self.question, *self.others]


class _Given(NamedTuple):
    """Columns, and the question that each of their rows is about.

    Attributes
    ----------
    columns
        What was given, by name.
    row_question
        Number among `ids` of the question of each row, -1 where nobody answered it.
    ids
        The questions that rows can be about.
    source
        For each question of the answers its number among `ids`; None: they are the same.
    text
        Whether the values are text without a type, as in a CSV file.
    """

    columns: dict[str, Series]
    row_question: Ints
    ids: Ids
    source: Ints | None
    text: bool = False


def _given(argument: str, given: Any, answers: Answers, data: Any, question: str) -> _Given:
    """Bring any accepted form into rows."""
    narwhals = loaded("narwhals")
    if narwhals is not None:
        given = narwhals.to_native(given, pass_through=True)
    wanted = _column_names(argument, given, data)
    if wanted:
        if not _has_columns(data):
            raise AnswersError(
                f"found {quoted(wanted[0])}, but these answers have no columns to look in. "
                f"Give {FORMS[argument]}."
            )
        return _by_name(argument, list(dict.fromkeys(wanted)), answers, data, question)
    if isinstance(given, str | os.PathLike):
        return _by_question(argument, Path(given), answers, question)
    pandas = loaded("pandas")
    if pandas is not None and isinstance(given, pandas.Series):
        name = given.name if isinstance(given.name, str) and given.name else _plain_name(argument)
        return _matched(_column("question", given.index), {name: given}, answers)
    if _is_column(given):
        return _in_order(argument, given, answers, data)
    if isinstance(given, Mapping) and not _is_dict_of_columns(given, question):
        _check_values(given, argument, question)
        name = _plain_name(argument)
        values = _column(name, list(given.values()))
        return _matched(list(given), {name: values}, answers)
    return _by_question(argument, given, answers, question)


def _column_names(argument: str, given: Any, data: Any) -> list[str]:
    """Return the columns of the answers that are asked for by name, if that is what was given."""
    if isinstance(given, str):
        if _is_file_name(given) and not (_is_frame(data) and given in open_frame(data).names):
            return []
        return [given]
    if argument != "covariates" or not _is_column(given) or getattr(given, "ndim", 1) == 0:
        return []
    return list(map(str, given)) if all(isinstance(name, str) for name in given) else []


def _by_name(
    argument: str, wanted: list[str], answers: Answers, data: Any, question: str
) -> _Given:
    """Read columns of the table the answers are from."""

    def pick(found: Sequence[object]) -> _Picked:
        column = _question_column(found, question)
        if column in wanted:
            raise AnswersError(
                f"Column {quoted(column)}: holds the questions themselves. Name another column."
            )
        return _checked(_Picked(column, wanted), found, argument)

    columns, text = _read(data, pick)
    return _matched(*_split(columns, wanted), answers, text=text)


def _by_question(argument: str, given: Any, answers: Answers, question: str) -> _Given:
    """Read a frame or file of its own, with a column of questions."""
    others: list[str] = []

    def pick(found: Sequence[object]) -> _Picked:
        column = _question_column(found, question)
        others.extend(_PICK_OTHERS[argument]([name for name in found if _is_named(name, column)]))
        return _checked(_Picked(column, others), found, argument)

    if not isinstance(given, Path):
        given = _without_index(given, question)
        if not _is_frame(given):
            raise AnswersError(
                f"found {quoted(type(given).__name__)}. Give the name of a column, {FORMS[argument]}."
            )
    columns, text = _read(given, pick)
    return _matched(*_split(columns, others), answers, text=text)


def _in_order(argument: str, given: Any, answers: Answers, data: Any) -> _Given:
    """Take what has one entry per question, or per column of an array of answers."""
    columns = _unnamed_columns(argument, given)
    length = len(next(iter(columns.values())))
    width = _width(data) if answers.origin.kind == "matrix" else None
    if length == width:
        return _matched(np.arange(width), columns, answers)
    if length != answers.n_questions:
        each = counted(answers.n_questions, "question")
        if width not in (None, answers.n_questions):
            each += f" with answers, or for each of {width} columns"
        raise AnswersError(
            f"found {length}, expected one for each of {each}. Give them in the order of the "
            "questions in the result, or as a mapping from question."
        )
    return _Given(columns, np.arange(length), answers.question_ids, None)


def _unnamed_columns(argument: str, given: Any) -> dict[str, Series]:
    """Split an array into its columns; one of one dimension is a single column."""
    name = _plain_name(argument)
    if argument != "covariates":
        return {name: _column(name, given)}
    if isinstance(given, Sequence) and any(map(_is_column, given)):
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


def _matched(
    keys: Series | list[object],
    columns: dict[str, Series],
    answers: Answers,
    *,
    text: bool = False,
) -> _Given:
    """Find the questions by their ids.

    A list names each of them once. In a text file "1" may mean a number as well as a text.
    """
    ids, source = answers.origin.question_ids, answers.question_source
    codes, distinct = None, keys
    if not isinstance(keys, list):
        codes, _, first_rows = encode(keys, column="question")
        distinct = to_list(take(keys, first_rows))
    number = ids.index_of(distinct)
    if text:
        rest = np.flatnonzero(number < 0)
        number[rest] = ids.index_of([_whole(distinct[i]) for i in rest.tolist()])
    used = number if source is None else number[np.isin(number, source)]
    if distinct and not (used >= 0).any():
        raise _no_match(distinct, answers)
    per_row = number if codes is None else np.append(number, -1)[codes]
    return _Given(columns, per_row, ids, source, text)


def _whole(text: object) -> object:
    """Return the whole number that a text writes in the plain way, otherwise None, which is no id."""
    if isinstance(text, str) and len(text) <= MOST_DIGITS and text.removeprefix("-").isdecimal():
        number = int(text)
        return number if str(number) == text else None
    return None


def _no_match(given: list[object], answers: Answers) -> AnswersError:
    """Show ids of both sides, and say what tells them apart where that can be seen."""
    there = answers.question_ids.tolist()
    if {str(each) for each in there} & {str(each) for each in given}:
        advice = 'The number 1 and the text "1" are different ids: convert one side.'
    elif {_loose(each) for each in there} & {_loose(each) for each in given}:
        advice = "They differ in spaces or capitals: write them alike."
    else:
        advice = "Use the ids of the question column."
    return AnswersError(
        "found no question that is in the answers. It has "
        f"{listing(given[:SHOWN], SHOWN)}, the answers have {listing(there[:SHOWN], SHOWN)}. {advice}"
    )


def _loose(value: object) -> str:
    return str(value).strip().casefold()


# -- kinds of input --------------------------------------------------------------------------------


def _plain_name(argument: str) -> str:
    return {"groups": "group", "covariates": "covariate", "gold": "truth"}[argument]


def _column(name: str, values: Any) -> Series:
    """Bring a list or array of any library into one of the native forms."""
    return open_frame({name: values}).fetch([name])[name]


def _is_column(given: Any) -> bool:
    """Say whether something is a list or array rather than a frame or mapping."""
    if isinstance(given, np.ndarray) or library(given) != "numpy":
        return True
    pandas = loaded("pandas")
    if pandas is not None and isinstance(
        given, pandas.Index | pandas.api.extensions.ExtensionArray
    ):
        return True
    return isinstance(given, Sequence) and not isinstance(given, str | bytes)


def _has_columns(data: Any) -> bool:
    return isinstance(data, str | os.PathLike) or _is_frame(data)


def _is_frame(data: Any) -> bool:
    """Say whether something is a frame or dict of columns."""
    if data is None or isinstance(data, Answers | str | os.PathLike) or _is_column(data):
        return False
    try:
        open_frame(data)
    except AnswersError:
        return False
    return True


def _is_dict_of_columns(given: Mapping[Any, Any], question: str) -> bool:
    """Say whether a mapping has the question column, rather than questions, among its keys."""
    return any(name in given and _is_column(given[name]) for name in _question_names(question))


def _check_values(given: Mapping[Any, Any], argument: str, question: str) -> None:
    """Refuse a mapping to columns: a dict of columns in which that of the questions is missing."""
    for kind in set(map(type, given.values())):
        value = next(value for value in given.values() if type(value) is kind)
        if kind is not tuple and (_is_column(value) or isinstance(value, Mapping)):
            raise AnswersError(
                f"found a mapping to {quoted(kind.__name__)} values. Give one {_plain_name(argument)} per question, "
                f"or a dict of columns of which one is {quoted(question)}."
            )


def _width(data: Any) -> int | None:
    """Return the number of columns of an array of answers."""
    shape = getattr(data, "shape", None)
    if shape is None and isinstance(data, list | tuple):
        shape = np.shape(data)
    return int(shape[-1]) if shape else None


def _without_index(given: Any, question: str) -> Any:
    """Make a column of the index of a pandas frame, where that has the questions."""
    pandas = loaded("pandas")
    if pandas is not None and isinstance(given, pandas.DataFrame):
        names = _question_names(question)
        inside = [name for name in names if name in given.index.names]
        if inside and not any(name in given.columns for name in names):
            return given.reset_index(level=inside[0])
    return given


# -- columns ---------------------------------------------------------------------------------------


def _question_names(question: str) -> list[str]:
    return [question, "question", OTHER_NAMES["question"]]


def _question_column(found: Sequence[object], question: str) -> str:
    for name in _question_names(question):
        if name in found:
            return name
    there = f"The columns are {listing(found, MOST_NAMES)}." if found else "There are no columns."
    raise AnswersError(
        f"Column {quoted(question)}: not found. {there} Give this name to the column of the questions."
    )


def _is_named(name: object, question: str) -> bool:
    """Say whether a column is one that somebody meant to give besides the questions."""
    if isinstance(name, str):
        return bool(name.strip()) and name != question and not name.startswith(ROW_NUMBERS)
    return True


def _pick_one(names: Sequence[str], others: list[Any], what: str) -> list[Any]:
    for name in names:
        if name in others:
            return [name]
    if len(others) == 1:
        return others
    there = f"found the columns {listing(others, MOST_NAMES)}" if others else "found no column"
    raise AnswersError(
        f"{there} besides that of the questions. Give one, or name the one with the {what}s {quoted(what)}."
    )


def _pick_all(others: list[Any]) -> list[Any]:
    if not others:
        raise AnswersError("found no column besides that of the questions. Give at least one.")
    return others


_PICK_OTHERS: dict[str, Callable[[list[Any]], list[Any]]] = {
    "groups": lambda others: _pick_one(GROUP_NAMES, others, "group"),
    "covariates": _pick_all,
    "gold": lambda others: _pick_one(TRUTH_NAMES, others, "truth"),
}


def _checked(picked: _Picked, found: Sequence[object], argument: str) -> _Picked:
    """See to it that each column is there, once."""
    for name in picked.names:
        times = sum(other == name for other in found)
        if not times:
            raise missing_column(name, found, argument)
        if times > 1:
            raise AnswersError(
                f"Column {quoted(name)}: there are {times} columns of this name. Rename all but one."
            )
    return picked


def _split(columns: dict[str, Series], others: list[str]) -> tuple[Series, dict[str, Series]]:
    """Set the column of the questions apart: the one that is not among the others."""
    (keys,) = (series for name, series in columns.items() if name not in others)
    return keys, {name: columns[name] for name in others}


def _read(source: Any, pick: Pick) -> tuple[dict[str, Series], bool]:
    """Read the columns picked from a frame or file, and say whether they are text without a type."""
    if not isinstance(source, str | os.PathLike):
        opened = open_frame(source)
        return opened.fetch(pick(opened.names).names), False
    file = open_source(source)
    try:
        names = pick(file.names).names
    except AnswersError as error:
        raise type(error)(f"File {quoted(Path(source).name)}: {error}") from error.__cause__
    return file.fetch(names, ()), file.untyped


def _is_file_name(text: str) -> bool:
    name = text.lower()
    return name.endswith(PARQUET) or name.removesuffix(".gz").endswith(DELIMITED)


# -- from rows to questions ------------------------------------------------------------------------


def _answered(given: _Given, name: str) -> tuple[Series, Ints]:
    """Return the rows of a column that are about questions somebody answered, and these."""
    series, number = given.columns[name], given.row_question
    here = np.flatnonzero(number >= 0)
    return (series, number) if len(here) == len(number) else (take(series, here), number[here])


def _labels(given: _Given, name: str) -> Labels:
    series, number = _answered(given, name)
    codes, n, first_rows = encode(series, column=name)
    distinct = to_list(take(series, first_rows))
    blank = [isinstance(label, str) and not label.strip() for label in distinct]
    codes = np.where(np.array([*blank, True])[codes], -1, codes)
    has = codes >= 0
    label = np.full(len(given.ids), -1)
    label[number[has]] = codes[has]
    differs = has & (label[number] != codes)
    if differs.any():
        at = int(np.argmax(differs))
        two = (distinct[codes[at]], distinct[label[number[at]]])
        raise _contradiction(given, number[at], "labels", two)
    if given.source is not None:
        label = label[given.source]
    used, first = np.unique(label[label >= 0], return_index=True)
    used = used[np.argsort(first)]
    renumbered = np.full(n + 1, -1)  # -1 finds the last
    renumbered[used] = np.arange(len(used))
    ids = take(series, first_rows[used])
    return Labels(renumbered[label], Ids(whole_number_ids(ids) if given.text else ids))


def _numbers(given: _Given, name: str, remedy: str) -> Floats:
    """Return one number per question, NaN where none is given."""
    series, number = _answered(given, name)
    try:
        values = to_numbers(series, name)
    except BadRows:
        at = _first_bad(series)
        found = to_list(take(series, np.array([at])))[0]
        raise _unusable(given, number[at], name, found, remedy) from None
    large = np.abs(values) > LARGEST_ANSWER
    if large.any():
        at = int(np.argmax(large))
        raise _unusable(given, number[at], name, float(values[at]), remedy)
    has = ~np.isnan(values)
    result = np.full(len(given.ids), np.nan)
    result[number[has]] = values[has]
    differs = has & (result[number] != values)
    if differs.any():
        at = int(np.argmax(differs))
        two = (float(values[at]), float(result[number[at]]))
        raise _contradiction(given, number[at], f"values of {quoted(name)}", two)
    return result if given.source is None else result[given.source]


def _first_bad(series: Series) -> int:
    """Return the first row that is not a finite number, by halving."""
    good, bad = 0, len(series)
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            to_numbers(take(series, np.arange(good, middle)), "")
        except BadRows:
            bad = middle
        else:
            good = middle
    return good


def _name(given: _Given, number: int) -> str:
    return quoted(given.ids.tolist(np.array([number]))[0])


def _unusable(given: _Given, number: int, name: str, value: object, remedy: str) -> AnswersError:
    limit = f" (at most {LARGEST_ANSWER:g} in size)" if isinstance(value, float) else ""
    return AnswersError(
        f"question {_name(given, number)} has the {quoted(name)} {quoted(value)}, which is not a usable number{limit}. "
        f"{remedy}"
    )


def _contradiction(
    given: _Given, number: int, what: str, two: tuple[object, object]
) -> AnswersError:
    return AnswersError(
        f"question {_name(given, number)} has two {what}, {quoted(two[0])} and {quoted(two[1])}. "
        "Give one per question."
    )
