"""JSON documents: one object, or one list, for a whole file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from trueup.errors import AnswersError, quoted
from trueup.io.limits import read_pieces
from trueup.io.readers.json_lines import LONGEST_LINE
from trueup.io.readers.text import Text

if TYPE_CHECKING:
    from pathlib import Path

#: What cannot be parsed: broken text, numbers of too many digits, too deep a nesting.
_FAULTS = (ValueError, RecursionError)


def parse(content: str | bytes, what: str = "") -> Any:
    """Parse JSON; `what` is the part of the file that it is, in messages."""
    try:
        return json.loads(content)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}: {quoted(error.msg)}"
    except UnicodeDecodeError:
        where = "it is not UTF-8 text"
    except _FAULTS as error:
        deep = isinstance(error, RecursionError)
        where = "too deeply nested" if deep else quoted(str(error), 100)
    found = f"{quoted(what)} in it is" if what else "is"
    raise AnswersError(f"{found} not whole JSON ({where}). Write the file again.")


def read_document(path: Path, encoding: str | None) -> Any:
    """Read a JSON document."""
    with Text.of(path, encoding).open() as file:
        return parse("".join(read_pieces(file)))


def peek(path: Path, encoding: str | None) -> Any:
    """Return what tells the format of a document: of an object all of it, of a list its first entry in a list.

    None where it is neither, such as one object per line, or broken.
    """
    with Text.of(path, encoding).open() as file:
        first = ""
        while not first.strip():
            first = file.readline(LONGEST_LINE)
            if not first:
                return None
        start = first.lstrip()
        if start[0] not in "{[":
            return None
        pieces = read_pieces(file)
        if start[0] == "{" and (whole := _parsed(first)) is not None:
            return None if any(piece.strip() for piece in pieces) else whole  # one object per line
        start += "".join(pieces)
    if start[0] == "{":
        return _parsed(start)
    inside = start[1:].lstrip()
    entry = _parsed(inside, first=True) if inside.startswith("{") else None
    return None if entry is None else [entry]


def _parsed(text: str, *, first: bool = False) -> Any:
    """Return what a text, or the first value in it, is as JSON; None where it is broken."""
    try:
        return json.JSONDecoder().raw_decode(text)[0] if first else json.loads(text)
    except _FAULTS:
        return None
