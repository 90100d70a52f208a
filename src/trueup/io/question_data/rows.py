"""From rows that say something of questions to one value per question."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from trueup.errors import AnswersError, BadRows, listing, quoted
from trueup.io.encode import encode
from trueup.io.numbers import to_numbers
from trueup.io.readers.assemble import LARGEST_ANSWER
from trueup.io.readers.delimited import whole_number_ids
from trueup.io.series import take, to_list
from trueup.io.table import Ids

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trueup.answers.scale import Scale
    from trueup.core.arrays import Floats, Indices, Ints
    from trueup.io.series import Series

# Ids that a message shows.
SHOWN = 3
# A whole number of more digits is no 64-bit integer.
MOST_DIGITS = 20


class QuestionIds(Protocol):
    """The ids of questions, wherever they are; `Ids` in memory."""

    def __len__(self) -> int: ...

    def tolist(self, indices: Indices | None = None) -> list[object]:
        """Return these ids; without any, all, or as many as show what they are like."""

    def index_of(self, values: Iterable[object]) -> Ints:
        """Return the number of the question of each value, -1 where there is none."""


class Origin(Protocol):
    """Where the questions came from: all that were read, and what the input was."""

    @property
    def question_ids(self) -> QuestionIds:
        """All questions that were read."""

    @property
    def kind(self) -> str:
        """What the input was; see `Table`."""


class Questions(Protocol):
    """What is asked of answers to find the questions that something is known of. `Answers` are that, and more."""

    @property
    def n_questions(self) -> int:
        """Number of questions with answers."""

    @property
    def question_ids(self) -> QuestionIds:
        """Their ids."""

    @property
    def question_source(self) -> Ints | None:
        """The number of each among those that were read; None: they are the same."""

    @property
    def origin(self) -> Origin:
        """Where they came from."""

    @property
    def scale(self) -> Scale:
        """The scale of the answers, which truths must fit."""


class Given(NamedTuple):
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
    ids: QuestionIds
    source: Ints | None
    text: bool = False

    @property
    def n_known(self) -> int:
        """Number of questions that some row is about."""
        return len(np.unique(self.row_question[self.row_question >= 0]))


def matched(
    keys: Series | list[object],
    columns: dict[str, Series],
    answers: Questions,
    *,
    text: bool = False,
) -> Given:
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
    return Given(columns, per_row, ids, source, text)


def _whole(text: object) -> object:
    """Return the whole number that a text writes in the plain way, otherwise None, which is no id."""
    if isinstance(text, str) and len(text) <= MOST_DIGITS and text.removeprefix("-").isdecimal():
        number = int(text)
        return number if str(number) == text else None
    return None


def _no_match(given: list[object], answers: Questions) -> AnswersError:
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


def _answered(given: Given, name: str) -> tuple[Series, Ints]:
    """Return the rows of a column that are about questions somebody answered, and these."""
    series, number = given.columns[name], given.row_question
    here = np.flatnonzero(number >= 0)
    return (series, number) if len(here) == len(number) else (take(series, here), number[here])


def labels(given: Given, name: str) -> tuple[Ints, Ids]:
    """Return the number of the label of each question, -1 where it has none, and the labels."""
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
    return renumbered[label], Ids(whole_number_ids(ids) if given.text else ids)


def numbers(given: Given, name: str, remedy: str) -> Floats:
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


def _name(given: Given, number: int) -> str:
    return quoted(given.ids.tolist(np.array([number]))[0])


def _unusable(given: Given, number: int, name: str, value: object, remedy: str) -> AnswersError:
    limit = f" (at most {LARGEST_ANSWER:g} in size)" if isinstance(value, float) else ""
    return AnswersError(
        f"question {_name(given, number)} has the {quoted(name)} {quoted(value)}, which is not a usable number{limit}. "
        f"{remedy}"
    )


def _contradiction(
    given: Given, number: int, what: str, two: tuple[object, object]
) -> AnswersError:
    return AnswersError(
        f"question {_name(given, number)} has two {what}, {quoted(two[0])} and {quoted(two[1])}. "
        "Give one per question."
    )
