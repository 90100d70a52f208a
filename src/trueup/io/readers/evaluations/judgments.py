"""Relevance judgments of TREC (qrels): a file per judge without a header, `query 0 document label` in each line."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from trueup.core.libraries import need
from trueup.errors import AnswersError, quoted
from trueup.io.readers.delimited import whole_number_ids, without_nul
from trueup.io.readers.source import UNREADABLE, Source
from trueup.io.readers.text import Text

if TYPE_CHECKING:
    from pathlib import Path

#: The columns that name a question.
QUESTION = ("query", "document")
NAMES = [*QUESTION, "answer"]
#: How such files may end besides ".txt".
ENDINGS = (".qrels", ".qrel")
#: Lines that are looked at, and characters that one of them may have.
LOOKED_AT, LONGEST = 5, 10_000
_LINE = re.compile(r"\s*\S+\s+(0|Q0)\s+\S+\s+[+-]?\d+(\.\d+)?\s*")


def is_judgments(path: Path, encoding: str | None) -> bool:
    """Tell whether the first lines of a text file are judgments."""
    try:
        with Text.of(path, encoding).open() as file:
            lines = list(islice(iter(lambda: file.readline(LONGEST), ""), LOOKED_AT))
    except (AnswersError, UnicodeError, *UNREADABLE):
        return False  # reading it as a table says what is wrong
    lines = [line for line in lines if line.strip()]
    return bool(lines) and all(_LINE.fullmatch(line) for line in lines)


def open_judgments(path: Path, encoding: str | None) -> Source:
    """Read a file of judgments as a table of its three columns."""
    pyarrow = need("pyarrow", "files")
    columns: dict[str, list[str]] = {name: [] for name in NAMES}
    numbers: list[int] = []
    with Text.of(path, encoding).open() as file:
        for number, line in enumerate(file, 1):
            fields = line.split()
            if not fields:
                continue
            if len(fields) != 4:
                raise AnswersError(
                    f"line {number:,} is {quoted(line.strip())}, and the lines before it have four values: query, 0, "
                    "document, label. Mend it."
                )
            numbers.append(number)
            for name, value in zip(NAMES, (fields[0], fields[2], fields[3]), strict=True):
                columns[name].append(value)
    texts = {name: pyarrow.array(values, pyarrow.string()) for name, values in columns.items()}
    return Source(
        names=NAMES,
        load=lambda names, _ids: {name: pyarrow.chunked_array([texts[name]]) for name in names},
        family="text",
        settle=lambda column, ids: whole_number_ids(without_nul(column, ids)),
        place=lambda row: f"line {numbers[row]:,}",
        counting="Rows are counted from 0",
        question=QUESTION,
    )
