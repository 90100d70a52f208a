"""JSON: one object per line, or one list of objects."""

from __future__ import annotations

import json
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Any, TextIO

from trueup.errors import AnswersError, quoted
from trueup.io.limits import check_bytes, read_pieces
from trueup.io.readers.python_values import listed_source
from trueup.io.readers.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from trueup.io.readers.delimited import Layout
    from trueup.io.readers.source import Source

# A line with one of these may hold half of a surrogate pair, which is no text.
SURROGATE = ("\\ud", "\\uD")
#: Characters that an object may have, on a line of its own.
LONGEST_LINE = 1 << 24


def open_json(path: Path, layout: Layout, _name: str) -> Source:
    """Read a file of objects: each is a row, its keys are the columns."""
    text = Text.of(path, layout.encoding)
    with text.open() as file:
        listed = _skip_spaces(file) == "["
    with text.open() as file:
        columns = _columns(_listed(file) if listed else _lines(file))
    return listed_source(
        "JSON",
        columns,
        place=(lambda row: f"object {row + 1} of the list") if listed else partial(_place, text),
        counting="Rows are counted from 0",
    )


def _skip_spaces(file: TextIO) -> str:
    """Return the first character that is no space."""
    while (character := file.read(1)) and character.isspace():
        pass
    return character


def _columns(rows: Iterator[tuple[str, Any]]) -> dict[str, list[Any]]:
    """Turn rows into columns; a row without a key has no value in its column."""
    columns: dict[str, list[Any]] = {}
    n = 0
    for where, row in rows:
        if type(row) is not dict:
            raise AnswersError(
                f"{where} is {_kind(row)}, not an object. Write "
                '{"question": ..., "worker": ..., "answer": ...}.'
            )
        for key, value in row.items():
            column = columns.get(key)
            if column is None:
                columns[key] = column = []
            if len(column) < n:
                column.extend([None] * (n - len(column)))
            column.append(value)
        n += 1
    if not n:
        raise AnswersError("is empty. Give one object per line, or a list of objects.")
    for column in columns.values():
        column.extend([None] * (n - len(column)))
    return columns


def _lines(file: TextIO) -> Iterator[tuple[str, Any]]:
    decode = json.JSONDecoder().decode
    for number, line in enumerate(_split(file), 1):
        if line.isspace():
            continue
        where = f"line {number}"
        try:
            row = decode(line.rstrip())
        except (ValueError, RecursionError) as error:
            raise AnswersError(
                f"{where} is not one whole JSON object ({_fault(error)}). Write each object on a "
                "line of its own, or all of them in one list [...]."
            ) from error
        if any(mark in line for mark in SURROGATE):
            _check_text(where, row)
        yield where, row


def _split(file: TextIO) -> Iterator[str]:
    """Yield lines that end in a line feed; the file also ends them at carriage returns, which are spaces in JSON."""
    started, number, size = "", 1, 0
    while part := file.readline(LONGEST_LINE):
        size += len(part)
        check_bytes(size)
        if len(started) + len(part) >= LONGEST_LINE:
            raise AnswersError(f"line {number} is too long. Is a line end missing?")
        started += part
        if not part.endswith("\r"):
            yield started
            started, number = "", number + 1
    if started:
        yield started


def _listed(file: TextIO) -> Iterator[tuple[str, Any]]:
    content = "".join(read_pieces(file))
    try:
        rows = json.loads(content)
    except json.JSONDecodeError as error:
        raise AnswersError(
            f"is not a whole JSON list (line {error.lineno}, column {error.colno}: "
            f"{quoted(error.msg)}). Write the file again."
        ) from error
    except (ValueError, RecursionError) as error:
        raise AnswersError(
            f"is not a JSON list that can be used ({_fault(error)}). Write the file again."
        ) from error
    risky = any(mark in content for mark in SURROGATE)
    for number, row in enumerate(rows, 1):
        where = f"object {number} of the list"
        if risky:
            _check_text(where, row)
        yield where, row


def _check_text(where: str, row: Any) -> None:
    """Check that there is no half of a surrogate pair, which no other program would accept."""
    try:
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise AnswersError(
            f"{where} holds half a character (\\ud800 to \\udfff), which is no text. Fix it."
        ) from error


def _fault(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"column {error.colno}: {quoted(error.msg)}"
    if isinstance(error, RecursionError):
        return "too deeply nested"
    return quoted(str(error), 100)


def _kind(value: object) -> str:
    names = {
        NoneType: "null",
        bool: "true or false",
        int: "a number",
        float: "a number",
        str: "a text",
    }
    return names.get(type(value), "a list")


def _place(text: Text, row: int) -> str:
    """Find the line of a row; empty lines are no rows."""
    passed = -1
    with text.open() as file:
        for number, line in enumerate(_split(file), 1):
            passed += not line.isspace()
            if passed == row:
                return f"line {number}"
    return ""
