"""Columns that say something of questions: which of a frame or file they are, and reading them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from trueup.errors import MOST_NAMES, AnswersError, listing, missing_column, quoted
from trueup.io.columns import OTHER_NAMES
from trueup.io.readers.files import FORMATS, Format, open_source
from trueup.io.readers.frames import open_frame

if TYPE_CHECKING:
    from pathlib import Path

    from trueup.io.series import Series

# Columns that hold the truths of a frame with several.
TRUTH_NAMES = ("truth", "gold", "answer", "value")
GROUP_NAMES = ("group",)
# How pandas writes, reads and stores row numbers: no column anybody meant to give.
ROW_NUMBERS = ("Unnamed: ", "__index_level_")

# From the columns there are to the column of the questions and those wanted besides.
Pick: TypeAlias = Callable[[Sequence[object]], "Picked"]
# Options of `open_source`: how files are read.
How: TypeAlias = Mapping[str, Any]


class Picked(NamedTuple):
    """Columns chosen from those there are.

    Attributes
    ----------
    question
        The one with the questions.
    others
        Those that say something of them.
    numeric
        Whether that is numbers.
    """

    question: str
    others: list[str]
    numeric: bool

    @property
    def names(self) -> list[str]:
        """All of them."""
        return [self.question, *self.others]


class Columns(NamedTuple):
    """What they hold.

    Attributes
    ----------
    question
        The question that each row is about.
    others
        What is said of it, by name of the column.
    text
        Whether the values are text without a type, as in a CSV file.
    """

    question: Series
    others: dict[str, Series]
    text: bool = False


# -- which columns ---------------------------------------------------------------------------------


def question_names(question: str) -> list[str]:
    """Return the names that the column of the questions may have."""
    return [question, "question", OTHER_NAMES["question"]]


def _question_column(found: Sequence[object], question: str) -> str:
    for name in question_names(question):
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


def named(argument: str, wanted: list[str], question: str) -> Pick:
    """Pick columns of these names."""

    def pick(found: Sequence[object]) -> Picked:
        column = _question_column(found, question)
        if column in wanted:
            raise AnswersError(
                f"Column {quoted(column)}: holds the questions themselves. Name another column."
            )
        return _checked(Picked(column, wanted, argument != "groups"), found, argument)

    return pick


def fitting(argument: str, question: str) -> Pick:
    """Pick what a table of its own must hold."""

    def pick(found: Sequence[object]) -> Picked:
        column = _question_column(found, question)
        others = _PICK_OTHERS[argument]([name for name in found if _is_named(name, column)])
        return _checked(Picked(column, others, argument != "groups"), found, argument)

    return pick


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


def _checked(picked: Picked, found: Sequence[object], argument: str) -> Picked:
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


# -- reading them ----------------------------------------------------------------------------------


def from_frame(frame: Any, pick: Pick) -> Columns:
    """Read the columns picked from a frame."""
    opened = open_frame(frame)
    picked = pick(opened.names)
    found = opened.fetch(picked.names)
    return Columns(found[picked.question], {name: found[name] for name in picked.others})


def from_file(path: Any, pick: Pick, how: How) -> Columns:
    """Read the columns picked from a file."""
    source = open_source(path, **how)
    with source.named():
        picked = pick(source.names)
    found = source.fetch(picked.names, [picked.question])
    with source.named():
        others = {
            name: source.number(name, found[name]) if picked.numeric else found[name]
            for name in picked.others
        }
    return Columns(found[picked.question], others, source.untyped)


def ways_to_read(path: Path, how: How) -> list[How]:
    """Return how to read a file that lies beside the answers: as they are, and plainly."""
    kind = _format(path.name)
    fitting = {
        option: how[option]
        for option in (kind.options if kind else ())
        if how.get(option) is not None
    }
    return [fitting, {}] if fitting else [{}]


def is_file_name(text: str) -> bool:
    """Say whether a text ends as the name of a file does that can be read."""
    return _format(text) is not None


def _format(name: str) -> Format | None:
    whole = name.lower()
    plain = whole.removesuffix(".gz")
    return next(
        (
            each
            for each in FORMATS.values()
            if plain.endswith(each.endings) and (each.packed or plain == whole)
        ),
        None,
    )
