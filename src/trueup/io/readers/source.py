"""A place answers are read from: its columns are known, its values still where they are."""

from __future__ import annotations

import gzip
import re
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from trueup.errors import AnswersError, BadRows, quoted
from trueup.io.numbers import COMMA_REMEDY

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from trueup.io.series import Series

LONGEST_PATH = 200
DECIMAL_REMEDY = 'Some have a decimal comma: pass decimal=",", or write 3.5, not 3,5.'
# What reading bytes can raise; gzip and zlib have errors of their own.
UNREADABLE = (OSError, EOFError, zlib.error)

Fetch: TypeAlias = "Callable[[Sequence[str], Collection[str]], dict[str, Series]]"


def _same(_name: str, series: Series) -> Series:
    return series


def _no_place(_row: int) -> str:
    return ""


@dataclass(frozen=True)
class Source:
    """Columns that can be fetched by name.

    Attributes
    ----------
    label
        What messages call it, such as 'File "answers.csv"'.
    names
        The columns, in order; a name may be there twice.
    fetch
        Given names and those of them that are ids, returns these columns.
    family
        Sources of one family can be read as one table: "text", "Parquet", "JSON", ...
    settle
        Gives distinct ids of a column the type they are returned in.
    number
        Prepares a column that is to be read as numbers.
    place
        Says where a row stands, such as "line 2", or nothing.
    counting
        How rows are counted, where that needs saying.
    ordered
        Whether the rows have an order.
    differs
        Of several sources: an error about the first that has other columns, or nothing.
    kept
        What must stay alive as long as the source is used.
    """

    label: str
    names: list[str]
    fetch: Fetch
    family: str
    settle: Callable[[str, Series], Series] = _same
    number: Callable[[str, Series], Series] = _same
    place: Callable[[int], str] = _no_place
    counting: str = ""
    ordered: bool = True
    differs: str = ""
    kept: object = None

    @property
    def untyped(self) -> bool:
        """Whether all values are text, numbers too."""
        return self.family == "text"

    @contextmanager
    def named(self) -> Iterator[None]:
        """Let errors begin with the label and end with the place of the row they are about."""
        try:
            yield
        except AnswersError as error:
            text = str(error)
            if isinstance(error, BadRows):
                text += self._where(_first_row(text))
            if self.untyped:
                text = text.replace(COMMA_REMEDY, DECIMAL_REMEDY)
            raise type(error)(f"{self.label}: {text}") from error.__cause__

    def _where(self, row: int | None) -> str:
        place = "" if row is None else self.place(row)
        says = [self.counting] if self.counting else []
        if place:
            says.append(f"row {row} is {place}")
        text = "; ".join(says)
        return f" {text[0].upper()}{text[1:]}." if text else ""


# A message of `bad_rows`: the quoted name of a column, then how many rows, then the first of them.
_AT_ROW = re.compile(r'Column "(?:[^"\\]|\\.)*": \d+ of \d+ values? [^("]*?at rows? (\d+)')


def _first_row(message: str) -> int | None:
    found = _AT_ROW.match(message)
    return int(found[1]) if found else None


@contextmanager
def labelled(label: str) -> Iterator[None]:
    """Let errors begin with a label."""
    try:
        yield
    except AnswersError as error:
        raise type(error)(f"{label}: {error}") from error.__cause__


def label_of(name: str) -> str:
    """Name a file in a message."""
    return f"File {quoted(name, LONGEST_PATH)}"


def unreadable(error: Exception) -> AnswersError:
    """Say in a line why bytes could not be read."""
    if isinstance(error, PermissionError):
        return AnswersError("no permission to read it. Change its permissions, or copy it.")
    if isinstance(error, EOFError | zlib.error | gzip.BadGzipFile):
        reason = quoted(str(error), LONGEST_PATH)
        return AnswersError(
            f"cannot be read ({reason}): the archive is cut short or damaged. Pack it again."
        )
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return AnswersError(f"cannot be read ({quoted(reason, LONGEST_PATH)}).")


def one_line(error: Any) -> str:
    """Return the first line of what a library says, quoted and short."""
    text = str(error).strip() or type(error).__name__
    return quoted(text.partition("\n")[0].strip(), LONGEST_PATH)
