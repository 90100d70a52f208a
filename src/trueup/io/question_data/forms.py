"""The forms in which groups, covariates and gold truths come, and which of them one has."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.answers.answers import Answers
from trueup.core.libraries import loaded
from trueup.errors import AnswersError, quoted
from trueup.io.readers.frames import open_frame
from trueup.io.series import library

if TYPE_CHECKING:
    from trueup.io.series import Series

# What can be given, besides names of columns of the answers.
FORMS = {
    "groups": "a mapping from question to label, a frame or file with a question column and one more, or one label per "
    "question",
    "covariates": "a frame or file with a question column and numeric ones, or an array with one row per question",
    "gold": 'a mapping from question to truth, a frame or file with the columns "question" and "truth", or an array '
    "with one number per question, NaN where unknown",
}


def plain_name(argument: str) -> str:
    """Return what one of the values is called."""
    return {"groups": "group", "covariates": "covariate", "gold": "truth"}[argument]


def wrong_form(argument: str, given: object) -> AnswersError:
    """Build the error for something that is none of the forms."""
    return AnswersError(
        f"found {quoted(type(given).__name__)}. Give the name of a column, {FORMS[argument]}."
    )


def column(name: str, values: Any) -> Series:
    """Bring a list or array of any library into one of the native forms."""
    return open_frame({name: values}).fetch([name])[name]


def is_column(given: Any) -> bool:
    """Say whether something is a list or array rather than a frame or mapping."""
    if isinstance(given, np.ndarray) or library(given) != "numpy":
        return True
    pandas = loaded("pandas")
    if pandas is not None and isinstance(
        given, pandas.Index | pandas.api.extensions.ExtensionArray
    ):
        return True
    return isinstance(given, Sequence) and not isinstance(given, str | bytes)


def has_columns(data: Any) -> bool:
    """Say whether there are columns to look in."""
    return isinstance(data, str | os.PathLike) or is_frame(data)


def is_frame(data: Any) -> bool:
    """Say whether something is a frame or dict of columns."""
    if data is None or isinstance(data, Answers | str | os.PathLike) or is_column(data):
        return False
    try:
        open_frame(data)
    except AnswersError:
        return False
    return True


def is_dict_of_columns(given: Mapping[Any, Any], names: Sequence[str]) -> bool:
    """Say whether a mapping has the question column, rather than questions, among its keys."""
    return any(name in given and is_column(given[name]) for name in names)


def check_values(given: Mapping[Any, Any], argument: str, question: str) -> None:
    """Refuse a mapping to columns: a dict of columns in which that of the questions is missing."""
    for kind in set(map(type, given.values())):
        value = next(value for value in given.values() if type(value) is kind)
        if kind is not tuple and (is_column(value) or isinstance(value, Mapping)):
            raise AnswersError(
                f"found a mapping to {quoted(kind.__name__)} values. Give one {plain_name(argument)} per question, "
                f"or a dict of columns of which one is {quoted(question)}."
            )


def width(data: Any) -> int | None:
    """Return the number of columns of an array of answers."""
    shape = getattr(data, "shape", None)
    if shape is None and isinstance(data, list | tuple):
        shape = np.shape(data)
    return int(shape[-1]) if shape else None


def without_index(given: Any, names: Sequence[str]) -> Any:
    """Make a column of the index of a pandas frame, where that has the questions."""
    pandas = loaded("pandas")
    if pandas is not None and isinstance(given, pandas.DataFrame):
        inside = [name for name in names if name in given.index.names]
        if inside and not any(name in given.columns for name in names):
            return given.reset_index(level=inside[0])
    return given


def unnamed_columns(argument: str, given: Any) -> dict[str, Series]:
    """Split an array into its columns; one of one dimension is a single column."""
    name = plain_name(argument)
    if argument != "covariates":
        return {name: column(name, given)}
    if isinstance(given, Sequence) and any(map(is_column, given)):
        array = np.array(given, dtype=object)
        if array.ndim != 2:
            raise AnswersError("found rows of different length. Give as many numbers per question.")
        given = array
    if not isinstance(given, np.ndarray) or given.ndim != 2:
        return {name: column(name, given)}
    if not isinstance(given, np.ma.MaskedArray):
        given = np.asarray(given)  # a np.matrix has no column of one dimension
    if not given.shape[1]:
        raise AnswersError("found rows without numbers. Give one number or more per question.")
    return {(one := f"{name}_{j}"): column(one, given[:, j]) for j in range(given.shape[1])}
