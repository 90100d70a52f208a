"""JSON documents: one object, or one list, for a whole file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from trueup.errors import AnswersError, quoted
from trueup.io.limits import read_pieces
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
            first = file.readline()
            if not first:
                return None
        if first.lstrip()[0] not in "{[":
            return None
        rest = "".join(read_pieces(file))
    decoder = json.JSONDecoder()
    try:
        if first.lstrip().startswith("{"):
            if rest.strip() and _is_whole(first):
                return None  # one object per line
            return json.loads(first + rest)
        inside = (first + rest).lstrip()[1:].lstrip()
        return [decoder.raw_decode(inside)[0]] if inside.startswith("{") else None
    except _FAULTS:
        return None


def _is_whole(line: str) -> bool:
    try:
        json.loads(line)
    except _FAULTS:
        return False
    return True
