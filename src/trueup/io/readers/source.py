"""A table that can be read: its columns are known, its values are fetched when asked for."""

from __future__ import annotations

import gzip
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from trueup.errors import AnswersError, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from trueup.io.series import Series

LONGEST_PATH = 200
# Errors of reading bytes; gzip and zlib have their own.
UNREADABLE = (OSError, EOFError, zlib.error)
# Rows whose places are looked for one by one.
MOST_PLACES = 1000
# Bytes that tell databases and formats apart.
HEAD = 32

Load: TypeAlias = "Callable[[Sequence[str], Collection[str]], dict[str, Series]]"


@dataclass(frozen=True)
class Source:
    """Columns that can be fetched by name.

    Attributes
    ----------
    names
        The columns, in order; a name may occur twice.
    load
        Loads columns, given their names and those of them that are ids.
    family
        Sources of one family can be read as one table: "text", "Parquet", "JSON", ...
    kind
        What the caller gave: "file", or the kind of frame, see `Table`.
    label
        What messages call it, such as 'File "answers.csv"'; nothing for a frame.
    settle
        Converts the distinct ids of a column to the type they are returned in.
    coded
        Tells whether a column is fetched as codes of a dictionary that holds each value once.
    place
        Describes where a row is, such as "line 2"; may return nothing.
    all_places
        The same for many rows in rising order, where that is faster than one by one.
    hint
        What to do if its columns are not those that were expected, where that can be seen.
    fixes
        Keywords that do what the hint says.
    counting
        How rows are counted, where messages must say so.
    ordered
        Whether the rows have an order.
    joined
        Whether these are several files.
    differs
        Of several joined sources: an error about the first one with other columns.
    kept
        An object that must stay alive as long as the source is used.
    index
        Column with the labels of the rows, where they have some; it need not be among `names`.
    unnamed
        Whether the columns have no names, only numbers.
    question
        The columns that name a question together, where the format says so; such a table has one row per answer.
    reasons
        A column, not among `names`, that says why a row is left out: a `LeftOut`, or None for rows that are read.
    sql_types
        Types of columns that only the database has that they are from.
    """

    names: list[str]
    load: Load
    family: str
    kind: str = "file"
    label: str = ""
    settle: Callable[[str, Series], Series] = lambda _name, series: series
    coded: Callable[[str], bool] = lambda _name: False
    place: Callable[[int], str] = lambda _row: ""
    all_places: Callable[[Sequence[int]], list[str]] | None = None
    hint: str = ""
    fixes: tuple[dict[str, Any], ...] = ()
    counting: str = ""
    ordered: bool = True
    joined: bool = False
    differs: str = ""
    kept: object = None
    index: str | None = None
    unnamed: bool = False
    question: tuple[str, ...] = ()
    reasons: str = ""
    sql_types: Mapping[str, str] = field(default_factory=dict)

    @property
    def untyped(self) -> bool:
        """Whether all values are text, numbers too."""
        return self.family == "text"

    def fetch(self, names: Sequence[str], ids: Collection[str] = ()) -> dict[str, Series]:
        """Return columns by name; those that are ids keep their type where others may become numbers."""
        with self.named():
            return self.load(names, ids)

    @contextmanager
    def named(self) -> Iterator[None]:
        """Make errors begin with the label and end with the place of the row they are about, unless they do already."""
        try:
            yield
        except AnswersError as error:
            if error.source or not self.label:
                raise
            place = self._where(error.rows[0]) if error.rows else ""
            named = error.advised(error.remedy, place).labelled(self.label)
            named.source, named.place = self.label, place
            raise named from error.__cause__

    def places(self, rows: Sequence[int]) -> list[str]:
        """Describe where rows are, given in rising order."""
        if self.all_places is not None:
            return self.all_places(rows)
        return [self.place(row) if number < MOST_PLACES else "" for number, row in enumerate(rows)]

    def _where(self, row: int) -> str:
        place = self.place(row)
        parts = [self.counting] if self.counting else []
        if place:
            parts.append(f"row {row} is {place}")
        text = "; ".join(parts)
        return f"{text[0].upper()}{text[1:]}." if text else ""


@contextmanager
def labelled(label: str) -> Iterator[None]:
    """Make errors begin with a label, such as the name of a file."""
    try:
        yield
    except AnswersError as error:
        raise error.labelled(label) from error.__cause__


@contextmanager
def about(argument: str) -> Iterator[None]:
    """Make errors begin with the keyword that they are about."""
    try:
        yield
    except AnswersError as error:
        raise error.about(argument) from error.__cause__


def label_of(name: str) -> str:
    """Return what messages call a file."""
    return f"File {quoted(name, LONGEST_PATH)}"


def read_head(path: Path) -> bytes:
    """Return the first bytes of a file."""
    try:
        with path.open("rb") as file:
            return file.read(HEAD)
    except OSError as error:
        raise unreadable(error) from error


def unreadable(error: Exception) -> AnswersError:
    """Explain in one line why bytes could not be read."""
    if isinstance(error, PermissionError):
        return AnswersError("no permission to read it. Change its permissions, or copy it.")
    if isinstance(error, EOFError | zlib.error | gzip.BadGzipFile):
        reason = quoted(str(error), LONGEST_PATH)
        return AnswersError(
            f"cannot be read ({reason}): the archive is cut short or damaged. Pack it again."
        )
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return AnswersError(f"cannot be read ({quoted(reason, LONGEST_PATH)}).")


def one_line(error: object) -> str:
    """Return the first line of a library's message, quoted and short."""
    text = str(error).strip() or type(error).__name__
    return quoted(text.partition("\n")[0].strip(), LONGEST_PATH)
