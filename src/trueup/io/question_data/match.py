"""From rows that say something about questions to one value per question."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from trueup.errors import AnswersError, BadRows, counted, listing, option, quoted
from trueup.io.columns import PLAIN_NAMES, IdNames
from trueup.io.encode import encode
from trueup.io.numbers import to_numbers
from trueup.io.readers.answer_column import LARGEST_ANSWER
from trueup.io.readers.delimited import whole_number_ids
from trueup.io.series import take, to_list
from trueup.io.table import CompositeIds, Ids

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trueup.core.arrays import Floats, Indices, Ints
    from trueup.io.series import Series

# Ids that a message shows.
SHOWN = 3
# Questions up to which unknown ids are compared with theirs.
MOST_COMPARED = 100_000
# A whole number of more digits is no 64-bit integer.
MOST_DIGITS = 20
REMEDIES = {
    "covariates": "Give finite numbers; use " + option("groups") + " for labels.",
    "gold": "Give a finite number, or nothing where the truth is unknown.",
}


class QuestionIds(Protocol):
    """The ids of questions, wherever they are; `Ids` in memory."""

    def __len__(self) -> int: ...

    def tolist(self, indices: Indices | None = None) -> list[object]:
        """Return these ids; without indices all, or as many as show what they are like."""

    def index_of(self, values: Iterable[object]) -> Ints:
        """Return the number of the question of each value, -1 where there is none."""


class QuestionOrigin(Protocol):
    """Where the questions came from: all that were read, and what the input was."""

    @property
    def question_ids(self) -> QuestionIds:
        """All questions that were read."""

    @property
    def kind(self) -> str:
        """What the input was; see `Table`."""

    @property
    def names(self) -> IdNames:
        """What questions and workers are called."""

    @property
    def unit(self) -> str:
        """The unit that was stripped from the answers; empty where they have none."""


class Questions(Protocol):
    """The questions that have answers. `Answers` are that, and more."""

    @property
    def question_ids(self) -> QuestionIds:
        """Their ids."""

    @property
    def question_source(self) -> Ints | None:
        """The number of each among those that were read; None: they are the same."""

    @property
    def origin(self) -> QuestionOrigin:
        """Where they came from."""


@dataclass(frozen=True, eq=False)
class QuestionsById:
    """Questions of which only the ids are known, such as those of an engine."""

    question_ids: QuestionIds
    question_source: Ints | None = None
    kind: str = "file"
    names: IdNames = PLAIN_NAMES
    unit: str = ""

    @property
    def origin(self) -> QuestionOrigin:
        """The same questions."""
        return self


class QuestionRows(NamedTuple):
    """Columns, and the question that each of their rows is about.

    Attributes
    ----------
    columns
        What was given, by name.
    question
        Number among `ids` of the question of each row, -1 where nobody answered it.
    ids
        The questions that rows can be about.
    source
        For each question of the answers its number among `ids`; None: they are the same.
    text
        Whether the values are text without a type, as in a CSV file.
    nearly
        What to say of ids that no question has, while one has nearly the same; empty where there are none.
    """

    columns: dict[str, Series]
    question: Ints
    ids: QuestionIds
    source: Ints | None
    text: bool = False
    nearly: str = ""

    @property
    def n_known(self) -> int:
        """Number of questions that some row is about."""
        return len(np.unique(self.question[self.question >= 0]))

    def id_of(self, question: int) -> object:
        """Return the id of a question among `ids`."""
        return self.ids.tolist(np.array([question]))[0]

    def name_of(self, question: int) -> object:
        """Return the id of a question of the answers."""
        return self.id_of(question if self.source is None else int(self.source[question]))


def match(
    keys: Series | list[object],
    columns: dict[str, Series],
    questions: Questions,
    *,
    text: bool = False,
) -> QuestionRows:
    """Find the questions by their ids.

    A list names each of them once. In a text file "1" may mean a number as well as a text.
    """
    ids, source = questions.origin.question_ids, questions.question_source
    codes, distinct = None, keys
    if not isinstance(keys, list):
        codes, _, first_rows = encode(keys, column="question")
        distinct = to_list(take(keys, first_rows))
    number = ids.index_of(distinct)
    if text:
        rest = np.flatnonzero(number < 0)
        like = ids.tolist(np.arange(1))[0] if len(ids) and isinstance(ids, CompositeIds) else None
        number[rest] = ids.index_of([_as_number(distinct[i], like) for i in rest.tolist()])
    used = number if source is None else number[np.isin(number, source)]
    if distinct and not (used >= 0).any():
        raise _no_match(distinct, questions)
    per_row = number if codes is None else np.append(number, -1)[codes]
    nearly = _nearly([distinct[i] for i in np.flatnonzero(number < 0).tolist()], ids)
    return QuestionRows(columns, per_row, ids, source, text, nearly)


def _as_number(text: object, like: object) -> object:
    """Return what a text means as an id: a whole number, or parts of which some are numbers, as those of another id."""
    if not isinstance(text, tuple) or not isinstance(like, tuple):
        return _whole(text)
    return tuple(
        part if isinstance(other, str) else _whole(part)
        for part, other in zip(text, like, strict=False)
    )


def _whole(text: object) -> object:
    """Return the whole number that a text writes in the plain way, otherwise None, which is no id."""
    if isinstance(text, str) and len(text) <= MOST_DIGITS and text.removeprefix("-").isdecimal():
        number = int(text)
        return number if str(number) == text else None
    return None


def _no_match(keys: list[object], questions: Questions) -> AnswersError:
    """Show ids of both sides, and say what tells them apart where that can be seen."""
    ids = questions.question_ids.tolist()
    if {str(one) for one in ids} & {str(one) for one in keys}:
        advice = 'The number 1 and the text "1" are different ids: convert one side.'
    elif {_loose(one) for one in ids} & {_loose(one) for one in keys}:
        advice = "They differ in spaces or capitals: write them alike."
    else:
        advice = "Use the ids of the question column."
    shown = questions.question_ids
    if isinstance(shown, Ids):  # others are in this order
        ids = shown.tolist(shown.sort_order()[:SHOWN])
    return AnswersError(
        "found no question that is in the answers. It has "
        f"{listing(keys[:SHOWN], SHOWN)}, the answers have {listing(ids[:SHOWN], SHOWN)}. {advice}"
    )


def _loose(value: object) -> str:
    return str(value).strip().casefold()


def _nearly(unknown: list[object], ids: QuestionIds) -> str:
    """Say which ids differ from those of questions only in spaces, capitals, zeros or type."""
    if not unknown or isinstance(ids, CompositeIds) or len(ids) > MOST_COMPARED:
        return ""
    there = {_as_typed(one): one for one in ids.tolist()}
    pairs = [(one, there[_as_typed(one)]) for one in unknown if _as_typed(one) in there]
    if not pairs:
        return ""
    one, other = pairs[0]
    kinds = "" if type(one) is type(other) else f" ({type(one).__name__}, {type(other).__name__})"
    verb = "is of no question, though one has nearly the same"
    if len(pairs) > 1:
        verb = "are of no question, though some have nearly the same"
    return (
        f"{counted(len(pairs), 'id')} {verb}: {quoted(one)} is not {quoted(other)}{kinds}. Write them alike, or they "
        "are ignored."
    )


def _as_typed(value: object) -> str:
    """Return an id as a careless hand may have written it: "007 " for 7, "Clip A" for "clip a"."""
    text = _loose(value)
    number = re.fullmatch(r"0*(\d+)(?:\.0+)?", text)
    return number[1] if number else text


def _answered(rows: QuestionRows, name: str) -> tuple[Series, Ints]:
    """Return the rows of a column that are about questions somebody answered, and these questions."""
    series, question = rows.columns[name], rows.question
    has = np.flatnonzero(question >= 0)
    return (series, question) if len(has) == len(question) else (take(series, has), question[has])


def labels(rows: QuestionRows, name: str) -> tuple[Ints, Ids]:
    """Return the number of the label of each question, -1 where it has none, and the labels."""
    series, question = _answered(rows, name)
    codes, n, first_rows = encode(series, column=name)
    distinct = to_list(take(series, first_rows))
    blank = [isinstance(label, str) and not label.strip() for label in distinct]
    codes = np.where(np.array([*blank, True])[codes], -1, codes)
    label, row = one_label(codes, question, len(rows.ids))
    if row is not None:
        pair = (distinct[codes[row]], distinct[label[question[row]]])
        raise two_values(rows.id_of(question[row]), "labels", pair)
    if rows.source is not None:
        label = label[rows.source]
    used, first = np.unique(label[label >= 0], return_index=True)
    used = used[np.argsort(first)]
    renumbered = np.full(n + 1, -1)  # -1 finds the last
    renumbered[used] = np.arange(len(used))
    ids = take(series, first_rows[used])
    return renumbered[label], Ids(whole_number_ids(ids) if rows.text else ids)


def numbers(rows: QuestionRows, name: str, kind: str) -> Floats:
    """Return one number per question, NaN where none is given."""
    series, question = _answered(rows, name)
    try:
        values = to_numbers(series, name)
    except BadRows:
        row = _first_bad(series)
        found = to_list(take(series, np.array([row])))[0]
        raise unusable(rows.id_of(question[row]), name, found, kind) from None
    large = np.abs(values) > LARGEST_ANSWER
    if large.any():
        row = int(np.argmax(large))
        raise unusable(rows.id_of(question[row]), name, float(values[row]), kind)
    number, contradiction = one_number(values, question, len(rows.ids))
    if contradiction is not None:
        row = contradiction
        pair = (float(values[row]), float(number[question[row]]))
        raise two_values(rows.id_of(question[row]), f"values of {quoted(name)}", pair)
    return number if rows.source is None else number[rows.source]


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


# -- rules and words for every engine --------------------------------------------------------------


def one_label(codes: Indices, question: Indices, n_questions: int) -> tuple[Ints, int | None]:
    """Return the label of each question, -1 where it has none, and the first row that contradicts it."""
    label = np.full(n_questions, -1)
    has = codes >= 0
    label[question[has]] = codes[has]
    differs = has & (label[question] != codes)
    return label, int(np.argmax(differs)) if differs.any() else None


def one_number(values: Floats, question: Indices, n_questions: int) -> tuple[Floats, int | None]:
    """Return the number of each question, NaN where it has none, and the first row that contradicts it."""
    number = np.full(n_questions, np.nan)
    has = ~np.isnan(values)
    number[question[has]] = values[has]
    differs = has & (number[question] != values)
    return number, int(np.argmax(differs)) if differs.any() else None


def _in_order(value: object) -> tuple[str, Any]:
    plain = isinstance(value, int | float | str)
    return type(value).__name__, value if plain else str(value)


def two_values(question: object, what: str, pair: tuple[object, object]) -> AnswersError:
    """Build the error for a question with two different labels or numbers."""
    # In one order, as rows of a cluster have none.
    first, second = sorted(pair, key=_in_order)
    return AnswersError(
        f"question {quoted(question)} has two {what}, {quoted(first)} and {quoted(second)}. Give one per question."
    )


def missing_covariates(count: int, name: str, first: object) -> AnswersError:
    """Build the error for questions without a value of a covariate."""
    return AnswersError(
        f"{counted(count, 'question')} without a value of {quoted(name)}, first {quoted(first)}. "
        "Every question needs one: fill it in, or leave out this covariate."
    )


def unusable(question: object, name: str, value: object, kind: str) -> AnswersError:
    """Build the error for a covariate or truth that is not a number, or too large."""
    limit = f" (at most {LARGEST_ANSWER:g} in size)" if isinstance(value, float) else ""
    return AnswersError(
        f"question {quoted(question)} has the {quoted(name)} {quoted(value)}, which is not a usable number{limit}.",
        remedy=REMEDIES[kind],
    )
