"""The errors this library raises, and the one voice they speak in.

A message names the argument or column first, then says what was found there, then what to do
about it, all on one line. Text that comes from the caller's data is shortened and quoted, so that
no id or value, however odd, can break the line or flood the terminal.

Errors carry these facts as attributes, and a `Message` knows which keywords it mentions, so that
the command line can write `--decimal ','` where Python writes `decimal=","`.
"""

from __future__ import annotations

import copy
import difflib
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

LONGEST_COPIED = 400
LONGEST_VALUE = 40
MOST_ROWS = 5
MOST_NAMES = 10


@dataclass(frozen=True)
class Mention:
    """A keyword in a message: `decimal=","`, `decimal=...` for any value, `decimal` for its name alone (None)."""

    name: str
    value: object = None

    def __str__(self) -> str:
        if self.value is None:
            return self.name
        # Whole, so that it can be copied.
        return f"{self.name}={'...' if self.value is ... else quoted(self.value, LONGEST_COPIED)}"


class Comma(str):
    """What stands between two keywords of a call; the command line writes a blank instead."""

    __slots__ = ()


class Message(str):
    """A text that knows which keywords it mentions; texts that are added with + become part of it.

    Attributes
    ----------
    parts : tuple of str and Mention
        What it consists of.
    """

    __slots__ = ("parts",)
    parts: tuple[str | Mention, ...]

    def __new__(cls, *parts: str | Mention) -> Self:
        """Join texts and mentions."""
        text = super().__new__(cls, "".join(map(str, parts)))
        text.parts = tuple(
            piece
            for part in parts
            for piece in (part.parts if isinstance(part, Message) else (part,))
        )
        return text

    def __add__(self, other: str) -> Message:
        return Message(self, other)

    def __radd__(self, other: str) -> Message:
        return Message(other, self)

    def join(self, texts: Iterable[str]) -> Message:
        """Join texts, with this one in between."""
        joined = [piece for text in texts for piece in (self, text)]
        return Message(*joined[1:])


def option(name: str, value: object = ...) -> Message:
    """Mention a keyword with a value, by default any; None mentions its name alone.

    Examples
    --------
    >>> print("Pass " + option("decimal", ",") + " or " + option("encoding") + ", or drop " + option("sep", None))
    Pass decimal="," or encoding=..., or drop sep
    """
    return Message(Mention(name, value))


def options(values: Mapping[str, object]) -> Message:
    """Mention keywords that are to be passed together.

    Examples
    --------
    >>> print("Pass " + options({"question": "item", "answer": "mark"}) + ".")
    Pass question="item", answer="mark".
    """
    mentions = [Mention(name, value) for name, value in values.items()]
    return Message(*[part for each in mentions for part in (Comma(", "), each)][1:])


class TrueupError(ValueError):
    """Something this library was given cannot be used as it is.

    Parameters
    ----------
    found : str
        What is wrong, in one sentence.

    Attributes
    ----------
    argument : str
        The keyword it is about; empty where it is about none.
    rows : tuple of int
        The rows it is about, counted from 0, where they are known.
    remedy : str
        What to do about it; empty where `found` says it.
    labels : Message
        What stands in front of the message: the argument, or the file it is about.
    fixes : tuple of dict
        Keywords with values, any of which mends it; None is the default of a keyword.
    """

    def __init__(
        self, found: str = "", *, argument: str = "", rows: Sequence[int] = (), remedy: str = ""
    ) -> None:
        super().__init__(found)
        self.argument = argument
        self.rows = tuple(rows)
        self.remedy = remedy
        self.labels = Message(Mention(argument), ": ") if argument else Message()
        self.fixes: tuple[dict[str, Any], ...] = ()

    @property
    def message(self) -> Message:
        """The whole message: argument, what was found, what to do."""
        return self.labels + Message(" ").join(filter(None, (*self.args, self.remedy)))

    def __str__(self) -> str:
        return self.message

    def labelled(self, label: str) -> Self:
        """Return the same error with a label, such as the name of a file, in front of the message."""
        error = copy.copy(self)
        error.labels = label + ": " + self.labels
        return error

    def about(self, argument: str) -> Self:
        """Return the same error with the name of a keyword in front of the message."""
        error = self.labelled(Message(Mention(argument)))
        error.argument = self.argument or argument
        return error

    def renamed(self, argument: str) -> Self:
        """Return the same error about a keyword as the caller knows it."""
        error = copy.copy(self)
        error.argument = argument
        error.labels = Message(Mention(argument), ": ")
        return error

    def mended_by(self, *fixes: dict[str, Any]) -> Self:
        """Return the same error with keywords that mend it."""
        error = copy.copy(self)
        error.fixes = fixes
        return error

    def advised(self, *remedies: str) -> Self:
        """Return the same error with other sentences on what to do about it."""
        error = copy.copy(self)
        error.remedy = Message(" ").join(filter(None, remedies))
        return error


class TrueupWarning(UserWarning):
    """The result is what was asked for, but there is a reason not to trust it blindly."""


class AnswersError(TrueupError):
    """The table of answers is not one that truth can be estimated from.

    Attributes
    ----------
    source
        The file or other source that the message names; empty before it does.
    place
        Where the first of the rows is, in a sentence that is part of the remedy.
    columns
        The columns there are, where one was not found.
    runs
        The column that seems to number runs, where answers repeat; empty where none does.
    """

    source = ""
    place = ""
    columns: tuple[object, ...] = ()
    runs = ""


class BadRows(AnswersError):  # noqa: N818
    """Some rows of a column cannot be used; the message names them by number, `rows` holds them all.

    Attributes
    ----------
    notation
        Whether these are numbers after all, written in another way.
    """

    notation = False


class MissingExtra(TrueupError, ImportError):  # noqa: N818 - says what is wrong without a suffix
    """A package that this call needs is not installed."""


def warn(text: str) -> None:
    """Warn at the line of the caller, the first one outside this package."""
    home, level, frame = str(Path(__file__).parent), 1, sys._getframe()  # noqa: SLF001  the usual way
    while frame.f_back is not None and frame.f_code.co_filename.startswith(home):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, TrueupWarning, stacklevel=level)


def cut(text: str, longest: int) -> str:
    """Leave out the middle of a long text: long ids often differ at their end.

    >>> cut("a" * 20 + "b" * 20, 12)
    'aaaaaaa…bbbb'
    """
    tail = longest // 3
    return text if len(text) <= longest else f"{text[: longest - tail - 1]}…{text[-tail:]}"


def quoted(value: object, longest: int = LONGEST_VALUE) -> str:
    r"""Write a value so that it stays on one line and is short.

    Examples
    --------
    >>> print(quoted("two\nlines"), quoted(3), quoted("x" * 50))
    "two\nlines" 3 "xxxxxxxxxxxxxxxxxxxxxxxxxx…xxxxxxxxxxxxx"
    """
    text = value if isinstance(value, str) else repr(value)
    if len(text) > longest:
        text = cut(text, longest)
    if isinstance(value, str):
        text = text.replace("\\", "\\\\").replace('"', '\\"')
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return f'"{text}"' if isinstance(value, str) else text


def counted(number: int, what: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "answer"), counted(1200, "answer")
    ('1 answer', '1,200 answers')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def listing(values: Sequence[object], most: int) -> str:
    """Quote values one after another, and count those left out."""
    text = ", ".join(quoted(value) for value in values[:most])
    left = len(values) - most
    return f"{text} and {left} more" if left > 0 else text


def places(rows: Sequence[int], values: Sequence[object] | None = None) -> str:
    """Name the first of these rows, each with its value where that says something."""
    shown = [str(row) for row in rows[:MOST_ROWS]]
    if values is not None:
        shown = [f"{row} ({quoted(value)})" for row, value in zip(shown, values, strict=False)]
    return ("row " if len(rows) == 1 else "rows ") + ", ".join(shown)


def first_rows(
    bad: NDArray[np.bool_],
    row: NDArray[np.int64] | None = None,
    values: NDArray[Any] | None = None,
) -> str:
    """Name the first rows that a mask marks.

    Parameters
    ----------
    bad
        True where something is wrong, over the kept rows of a table.
    row
        Original row numbers of the kept rows; None when no row was dropped.
    values
        What stands in these rows, over the kept rows as well.

    Examples
    --------
    >>> import numpy as np
    >>> first_rows(np.array([False, True, True]), values=np.array([1.0, -2.0, -3.0]))
    'rows 1 (-2.0), 2 (-3.0)'
    """
    shown = None if values is None else values[bad.nonzero()[0][:MOST_ROWS]].tolist()
    return places(marked_rows(bad, row), shown)


def marked_rows(bad: NDArray[np.bool_], row: NDArray[np.int64] | None = None) -> list[int]:
    """Return the numbers of all rows that a mask marks; see `first_rows`."""
    indices = bad.nonzero()[0]
    return (indices if row is None else row[indices]).tolist()  # type: ignore[no-any-return]


def bad_rows(
    column: object,
    rows: Sequence[int],
    n_rows: int,
    fault: tuple[str, str],
    remedy: str,
    values: Sequence[object] | None = None,
) -> BadRows:
    """Build the error for a column with unusable values.

    Parameters
    ----------
    column
        Name of the column.
    rows
        Positions of all offending rows, counted from 0.
    n_rows
        Number of rows looked at.
    fault
        What is wrong, in the singular and the plural ("is missing", "are missing").
    remedy
        One or more sentences on what to do.
    values
        What stands in the first few of these rows.
    """
    count = len(rows)
    noun = "value" if n_rows == 1 else "values"
    return BadRows(
        f"Column {quoted(column)}: {count} of {n_rows} {noun} {fault[count > 1]}, "
        f"{'first ' if count > 1 else ''}at {places(rows, values)}.",
        rows=rows,
        remedy=remedy,
    )


def nearest(name: str, candidates: Sequence[object]) -> str | None:
    """Find the candidate most likely meant by a name; case and outer spaces weigh nothing."""
    plain = {text.strip().casefold(): text for text in candidates if isinstance(text, str)}
    found = difflib.get_close_matches(name.strip().casefold(), plain, n=1)
    return plain[found[0]] if found else None


def missing_column(
    name: object, found: Sequence[object], argument: str, likely: Any = None
) -> AnswersError:
    """Build the error for a column that is not there.

    Parameters
    ----------
    name
        The column asked for.
    found
        The columns there are.
    argument
        The keyword that chooses this column, or nothing where several columns share one.
    likely
        The column that may be meant; by default one whose name is spelled alike.
    """
    there = f"The columns are {listing(found, MOST_NAMES)}." if found else "There are no columns."
    if likely is None and isinstance(name, str):
        likely = nearest(name, found)
    if likely is not None:
        remedy = "Did you mean " + (option(argument, likely) if argument else quoted(likely)) + "?"
    elif argument:
        remedy = "Name the column that holds it: " + option(argument, "...") + "."
    else:
        remedy = "Name a column that is there."
    error = AnswersError(f"Column {quoted(name)}: not found. {there}", remedy=remedy)
    error.columns = tuple(found)
    return error.mended_by({argument: likely}) if argument and likely is not None else error
