"""What is known of the questions besides their answers: groups, covariates and gold truths.

Whatever form they come in, they end as columns of rows and the number of the question each row speaks of. A question
may have many rows, as in a long table of answers, if they do not contradict one another.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from trueup.errors import AnswersError, counted, quoted
from trueup.io.question_data.given import Beside
from trueup.io.question_data.rows import labels, numbers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trueup.core.arrays import Floats, Ints
    from trueup.io.question_data.columns import How
    from trueup.io.question_data.rows import Given, Questions
    from trueup.io.table import Ids

NO_OPTIONS: How = MappingProxyType({})


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
    groups: Any,
    answers: Questions,
    data: Any = None,
    *,
    question: str = "question",
    how: How = NO_OPTIONS,
) -> Labels | None:
    """Read the group of each question.

    Parameters
    ----------
    groups : str, mapping, frame, path, or one label per question
        The name of a column of `data`; question -> label, a pandas Series indexed by question too; a frame or file
        with a question column and one more (of several, "group"); or labels in the order of the questions (for an
        array of answers, also one for each of its columns). Labels are labels, also if they are numbers; None, NaN
        and blank text mean that a question has none.
    answers : Answers
        The answers, whose questions are meant.
    data
        What the answers were made of, to look for columns in.
    question : str
        Name of the column of the questions; "question" and "task" are recognised as well.
    how : mapping
        How the file of the answers is read, as far as the caller says so: `sep`, `decimal`, `encoding`, `sql`. A file
        beside it is read in the same way if that fits it.

    Raises
    ------
    AnswersError
        When a question has two labels, no question is one of the answers, or `groups` is none of the above.

    Examples
    --------
    >>> from trueup import Answers
    >>> labels = read_groups({0: "film", 2: "book"}, Answers.from_matrix([[3.0, 1.0, 2.0]]))
    >>> labels.codes.tolist(), labels.ids.tolist()
    ([0, -1, 1], ['film', 'book'])
    """
    if groups is None:
        return None
    with _about("groups"):
        return Beside("groups", answers, data, question, how).read(groups, _labels)


def read_covariates(
    covariates: Any,
    answers: Questions,
    data: Any = None,
    *,
    question: str = "question",
    how: How = NO_OPTIONS,
) -> Covariates | None:
    """Read the covariates of each question.

    Parameters
    ----------
    covariates : str, list of str, frame, path, mapping or array
        Columns of `data`; a frame or file with a question column, in which all other columns that have a name are
        covariates; question -> number, a pandas Series indexed by question too; or one number or row of
        numbers per question, in their order (for an array of answers, also one for each of its columns).
    answers, data, question, how
        As for `read_groups`.

    Raises
    ------
    AnswersError
        When a question has no value or two different ones, or a value is not a finite number.

    Examples
    --------
    >>> from trueup import Answers
    >>> found = read_covariates({"task": [1, 0], "size": [7, 5]}, Answers.from_matrix([[3.0, 1.0]]))
    >>> found.names, found.values.tolist()
    (('size',), [[5.0], [7.0]])
    """
    if covariates is None:
        return None
    with _about("covariates"):
        return Beside("covariates", answers, data, question, how).read(
            covariates, partial(_covariates, answers)
        )


def read_gold(
    gold: Any,
    answers: Questions,
    data: Any = None,
    *,
    question: str = "question",
    how: How = NO_OPTIONS,
    argument: str = "gold",
) -> Floats | None:
    """Read the known truths, one number per question and NaN where none is known, in the unit of the answers.

    Parameters
    ----------
    gold : mapping, frame, path, array or str
        Question -> truth, a pandas Series indexed by question too; a frame or file with a question column and "truth"
        (or "gold", "answer", "value", or the only other column); one number per question in their order (for an array
        of answers, also one for each of its columns); or the name of a column of `data`. None and NaN mean that a
        truth is unknown. Questions nobody answered are left out.
    answers, data, question, how
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
    >>> from trueup import Answers
    >>> read_gold({1: 4.5, 9: 2.0}, Answers.from_matrix([[3.0, 1.0]])).tolist()
    [nan, 4.5]
    """
    if gold is None:
        return None
    with _about(argument):
        return Beside("gold", answers, data, question, how).read(gold, partial(_truths, answers))


def _labels(given: Given) -> Labels:
    (name,) = given.columns
    return Labels(*labels(given, name))


def _covariates(answers: Questions, given: Given) -> Covariates:
    values = np.empty((answers.n_questions, len(given.columns)))
    for j, name in enumerate(given.columns):
        values[:, j] = numbers(given, name, "Give finite numbers; use groups= for labels.")
        missing = np.isnan(values[:, j])
        if missing.any():
            first = answers.question_ids.tolist(np.flatnonzero(missing)[:1])[0]
            raise AnswersError(
                f"{counted(int(missing.sum()), 'question')} without a value of {quoted(name)}, first "
                f"{quoted(first)}. Every question needs one: fill it in, or leave out this covariate."
            )
    return Covariates(values, tuple(map(str, given.columns)))


def _truths(answers: Questions, given: Given) -> Floats:
    (name,) = given.columns
    truth = numbers(given, name, "Give a finite number, or nothing where the truth is unknown.")
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


def _refuse_truth(answers: Questions, truth: Floats, bad: Any, rule: str) -> NoReturn:
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
