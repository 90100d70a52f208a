"""Read a data set from a folder: `answers.csv` and optional files about its questions.

| file | columns | |
|---|---|---|
| `answers.csv` | question, worker, answer | |
| `truth.csv` | question, truth | optional, for some questions or all |
| `blocks.csv` | question, block | optional |
| `labels.csv` | question, label | optional |
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.answers.answers import Answers
from trueup.datasets.dataset import Dataset
from trueup.errors import (
    MOST_ROWS,
    AnswersError,
    BadRows,
    TrueupError,
    listing,
    missing_column,
    quoted,
    warn,
)
from trueup.io.numbers import to_numbers
from trueup.io.readers.delimited import DELIMITERS
from trueup.io.readers.text import NOT_UTF8

if TYPE_CHECKING:
    from os import PathLike

ANSWERS = "answers.csv"
LAYOUT = (
    "answers.csv (columns question,worker,answer) and, where known, truth.csv (question,truth), "
    "blocks.csv (question,block), labels.csv (question,label)"
)
LONGEST_PATH = 200


def load_folder(path: str | PathLike[str], **options: Any) -> Dataset:
    """Read a data set from a folder.

    Parameters
    ----------
    path
        The folder. It contains `answers.csv` (columns question, worker, answer) and, where known, `truth.csv`
        (question, truth), `blocks.csv` (question, block) and `labels.csv` (question, label). Its name becomes the name
        of the data set.
    **options
        As for `Answers.from_file`: `duplicates`, `sep`, ...

    Raises
    ------
    TrueupError
        If there is no such folder, or a file in it cannot be used.
    """
    folder = Path(path)
    shown = quoted(str(folder), LONGEST_PATH)
    if not folder.is_dir():
        found = "is a file, not a folder" if folder.exists() else "not found"
        raise TrueupError(f"Folder {shown}: {found}. Name a folder with {LAYOUT}.")
    if not (folder / ANSWERS).is_file():
        raise TrueupError(f"Folder {shown}: has no answers.csv. It must hold {LAYOUT}.")
    try:
        return _read(folder, options)
    except AnswersError as error:
        raise error.labelled(f"Folder {shown}") from error.__cause__


def _read(folder: Path, options: dict[str, Any]) -> Dataset:
    answers = Answers.from_file(folder / ANSWERS, **options)
    # Integer ids are numbers in the answers but text in the other files; both are written the same way.
    ids = {str(id_): id_ for id_ in answers.question_ids.tolist()}
    truth = _read_values(folder / "truth.csv", "truth", ids)
    return Dataset(
        name=folder.resolve().name,
        answers=answers,
        truth=None if truth is None else _numbers(truth),
        blocks=_read_values(folder / "blocks.csv", "block", ids),
        labels=_read_values(folder / "labels.csv", "label", ids),
        source=str(folder),
    )


def _read_values(path: Path, column: str, ids: dict[str, Any]) -> dict[Any, str] | None:
    """Read one value per question; return None if the file does not exist or has no values."""
    if not path.is_file():
        return None
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = _rows(file.read(), column)
    except UnicodeDecodeError as error:
        raise AnswersError(f"File {quoted(path.name)}: {NOT_UTF8}") from error
    except OSError as error:
        reason = quoted(str(error.strerror), LONGEST_PATH)
        raise AnswersError(f"File {quoted(path.name)}: cannot be read ({reason}).") from error
    except AnswersError as error:
        raise error.labelled(f"File {quoted(path.name)}") from error.__cause__
    unknown = [question for question in rows if question not in ids]
    if rows and len(unknown) == len(rows):
        raise AnswersError(
            f"File {quoted(path.name)}: none of its {len(rows)} questions is in answers.csv, "
            f"such as {listing(unknown, 1)}. Write their ids as they are there."
        )
    if unknown:
        warn(
            f"File {quoted(path.name)}: {len(unknown)} of {len(rows)} questions have no answers "
            f"and are left out: {listing(unknown, MOST_ROWS)}."
        )
    return {ids[question]: value for question, value in rows.items() if question in ids} or None


def _rows(text: str, column: str) -> dict[str, str]:
    """Parse the text of a file into the value of each question."""
    first = text.partition("\n")[0]
    delimiter = max(DELIMITERS, key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        header = next(reader, [])
        for name in ("question", column):
            if name not in header:
                raise missing_column(name, header, "")
        question_column, value_column = header.index("question"), header.index(column)
        rows: dict[str, str] = {}
        for row in reader:
            if not row:
                continue
            if len(row) != len(header):
                raise AnswersError(
                    f"line {reader.line_num} has {len(row)} fields, the header has {len(header)}. "
                    "Fix that line."
                )
            question, value = row[question_column], row[value_column]
            if rows.setdefault(question, value) != value:
                raise AnswersError(
                    f"question {quoted(question)} appears twice, with {quoted(rows[question])} "
                    f"and {quoted(value)}. Keep one."
                )
    except csv.Error as error:
        raise AnswersError(f"line {reader.line_num} cannot be read ({error}).") from error
    return rows


def _numbers(truth: dict[Any, str]) -> dict[Any, float] | None:
    """Convert true values to numbers; leave out missing ones."""
    try:
        numbers = to_numbers(np.array([*truth.values()], dtype=object), "truth")
    except BadRows as error:
        counting = "Rows are counted from 0, without the header."
        raise error.advised(error.remedy, counting).labelled(
            'File "truth.csv"'
        ) from error.__cause__
    known = zip(truth, numbers.tolist(), strict=True)
    return {question: number for question, number in known if not np.isnan(number)} or None
