"""Scores that a reader found in a document, and those it had to leave out, as one table."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from trueup.errors import AnswersError, quoted
from trueup.io.readers.python_values import listed_source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trueup.io.readers.source import Source

#: Columns that name a question together, as far as a format has them, and all columns in their order.
PARTS = ("item", "system", "task", "metric", "file")
COLUMNS = ("item", "system", "task", "metric", "worker", "answer", "run", "cost", "gold", "file")
#: The column that says why a row is left out.
REASON = "left out"
# A number as text; nothing else that float() reads, such as "1_000" or "infinity".
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?\s*")
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s\d]{2,}")


class LeftOut(NamedTuple):
    """Why a row is left out, and what stands there for an answer."""

    why: str
    value: Any


@dataclass
class Records:
    """Rows of all files that are read, one for each score.

    Attributes
    ----------
    question
        The columns that name a question together; others are only there.
    several
        Whether several files are read.
    file
        Name of the file that is read now.
    rows, reasons, places
        The values of each row by column, why it is left out, and where it stands.
    runs
        How many runs were read of what is evaluated, by a key of the format's own.
    """

    question: tuple[str, ...] = ("item",)
    several: bool = False
    file: str = ""
    rows: list[dict[str, Any]] = field(default_factory=list)
    reasons: list[LeftOut | None] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    runs: dict[Any, int] = field(default_factory=dict)

    def add(self, place: str, value: Any, *, why: str = "", **ids: Any) -> None:
        """Add a score; one that cannot be used, or for which a reason is given, is left out.

        Parameters
        ----------
        place
            Where it stands in the file.
        value
            The score.
        why
            Why it is left out, if it is.
        ids
            Values of other columns.
        """
        number = number_of(value)
        row = {name: _id(place, name, ids.get(name)) for name in COLUMNS if name in ids}
        for name in ("cost", "gold"):
            row[name] = number_of(ids.get(name))
        if not why:
            missing = [name for name in ("item", "worker") if row.get(name) is None]
            if missing:
                why = f"no {missing[0]}"
            elif number is None:
                why = "no score" if _is_none(value) else "score is not a number"
        row["answer"] = None if why else number
        if self.several:
            row["file"] = self.file
        self.rows.append(row)
        self.reasons.append(LeftOut(why, value) if why else None)
        self.places.append(f"{place} of {quoted(self.file)}" if self.several else place)

    def source(self, family: str) -> Source:
        """Return the table; columns without values are left out, as long as they do not name questions."""
        if all(self.reasons):
            kinds = Counter(reason.why for reason in self.reasons if reason is not None)
            found = ", ".join(f"{why} ({count:,})" for why, count in kinds.most_common())
            raise AnswersError(
                f"is of the format {family}, and holds no score that can be used"
                + (f": {found}." if found else "."),
                remedy="Check that the evaluation was finished.",
            )
        columns: dict[str, list[Any]] = {}
        for name in COLUMNS:
            values = [row.get(name) for row in self.rows]
            if name in (*self.question, "worker", "answer") or any(v is not None for v in values):
                columns[name] = values
        names = list(columns)
        columns[REASON] = self.reasons
        source = listed_source(
            family,
            columns,
            names=names,
            place=lambda row: self.places[row],
            counting="Rows are counted from 0",
        )
        return replace(source, question=self.question, reasons=REASON)

    def distinct(self, name: str) -> set[Any]:
        """Return the values of a column."""
        return {row.get(name) for row in self.rows} - {None}


def number_of(value: Any) -> float | None:
    """Return a value as a finite number, None where it is none.

    >>> number_of(True), number_of(" 2.5 "), number_of("1_000"), number_of(float("nan"))
    (1.0, 2.5, None, None)
    """
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        return None
    if not isinstance(value, bool | int | float | str):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def is_email(value: Any) -> bool:
    """Tell whether a text is an e-mail address, which is never used as an id."""
    return isinstance(value, str) and _EMAIL.fullmatch(value.strip()) is not None


def numbered(name: str, judge: Any, seen: Counter[tuple[Any, str]]) -> str:
    """Return the name of what a judge grades by: with a number from the second time on.

    >>> seen = Counter()
    >>> [numbered("rubric", judge, seen) for judge in ("a", "b", "a")]
    ['rubric', 'rubric', 'rubric 2']
    """
    seen[judge, name] += 1
    count = seen[judge, name]
    return name if count == 1 else f"{name} {count}"


def objects(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list; anything else holds none."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def text_at(document: Any, *keys: str) -> str | None:
    """Return the text at the end of a path of keys, if there is one.

    >>> text_at({"eval": {"model": "m"}}, "eval", "model"), text_at({"eval": []}, "eval", "model")
    ('m', None)
    """
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document if isinstance(document, str) and document.strip() else None


def first_text(values: Sequence[Any]) -> str | None:
    """Return the first text that is not empty."""
    return next((each for each in values if isinstance(each, str) and each.strip()), None)


def _is_none(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def _id(place: str, name: str, value: Any) -> Any:
    """Return an id as it is; what is neither a text nor a number is none."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise AnswersError(
                f"{place} holds half a character (\\ud800 to \\udfff) in its {name}, which is no text. Mend it."
            ) from error
        return value if value.strip() else None
    usable = isinstance(value, int | float) and not isinstance(value, bool) and value == value
    return value if usable else None
