"""Tables to files: CSV for spreadsheets, Parquet for programs, all of them whole or none.

In CSV a text that a spreadsheet would take for a formula (it begins with =, +, -, @, a tab or a carriage return) gets
an apostrophe in front; numbers and all other texts are written as they are. Parquet and JSON have every text as it is.
"""

from __future__ import annotations

import csv
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from trueup.core.libraries import need
from trueup.findings.answers import empty_frame
from trueup.io.atomic import errors_name
from trueup.io.frames_out import make_frame, repeating
from trueup.io.output_set import output_set
from trueup.result.tables import question_frame, worker_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from trueup.answers.answers import Answers
    from trueup.findings.collection import Findings
    from trueup.result.estimate import Estimate

FORMULA = ("=", "+", "-", "@", "\t", "\r")
CRLF = "\r\n"
# Rows that are Python objects at a time.
BATCH = 1 << 16
# Answers are kept relative to a centre, which costs a digit; those people typed have fewer than these.
DIGITS = 15


def write_files(contents: Mapping[Path, Any], meanwhile: Callable[[], str] = str) -> str:
    """Write tables (pyarrow, for .json any object, or a function that writes to a path) to files, all or none.

    `meanwhile` is called beside the Parquet tables, which need no interpreter, and before everything else is written;
    what it returns is returned. Where it fails, no file is written.
    """

    def write(path: Path) -> None:
        content = contents[path]
        with errors_name(path):
            write = _write_itself if callable(content) else _WRITERS[path.suffix.lower()]
            write(content, names[path])

    def is_quiet(path: Path) -> bool:
        return path.suffix.lower() == ".parquet" and not callable(contents[path])

    with output_set(contents) as names, ThreadPoolExecutor(1) as pool:
        quiet = [pool.submit(write, path) for path in contents if is_quiet(path)]
        result = meanwhile()
        for each in quiet:
            each.result()
        for path in contents:
            if not is_quiet(path):
                write(path)
    return result


def result_rows(est: Estimate, part: str) -> Any:
    """Return the questions or workers as a pyarrow table; workers with all that stands out about each of them."""
    if part == "questions":
        return question_frame(est, "pyarrow")
    rows = worker_frame(est, "pyarrow")
    if est.problem.n_panels > 1:
        return rows
    pyarrow = need("pyarrow", "files")
    place = rows.schema.get_field_index("flag")
    flags = pyarrow.array(est.findings.workers.flag, pyarrow.string())
    return rows.set_column(place, "flag", flags)


def result_table(est: Estimate, part: str, path: Path) -> Any:
    """Return a table for a file; for JSON, rows with how they came about."""
    rows = result_rows(est, part)
    if path.suffix.lower() != ".json":
        return rows
    about = est.diagnosis
    return {
        "method": about.method,
        "shrink": about.shrink,
        "level": est.level,
        "warnings": about.warnings,
        "assumptions": about.assumptions,
        part: rows.to_pylist(),
    }


def suspicious_table(findings: Findings) -> Any:
    """Return the suspicious answers as a pyarrow table; it is empty where none can be known."""
    answers = findings.answers
    return empty_frame("pyarrow") if answers is None else replace(answers, kind="pyarrow").frame


def suspicious_file(findings: Findings, path: Path) -> Any:
    """Return the suspicious answers for a file."""
    rows = suspicious_table(findings)
    return rows.to_pylist() if path.suffix.lower() == ".json" else rows


def rejects_table(est: Estimate, path: Path) -> Any:
    """Return the rows that were set aside as a table for a file."""
    pyarrow = need("pyarrow", "files")
    columns = est.rejects.columns
    kinds = {"row": pyarrow.int64()}
    table = pyarrow.table(
        {
            name: pyarrow.array(values, kinds.get(name, pyarrow.string()))
            for name, values in columns.items()
        }
    )
    return table.to_pylist() if path.suffix.lower() == ".json" else table


def answers_table(answers: Answers) -> Any:
    """Return answers as a pyarrow table, one per row."""
    need("pyarrow", "files")
    question = np.repeat(np.arange(answers.n_questions), answers.counts)
    value = answers.answers
    return make_frame(
        "pyarrow",
        {
            "question": answers.question_ids.take(question),
            "worker": answers.worker_ids.take(answers.workers),
            "answer": np.array([float(f"{each:.{DIGITS}g}") for each in value.tolist()]),
        },
    )


def _write_csv(table: Any, path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(_LineFeeds(file), lineterminator=CRLF)
        writer.writerow(table.column_names)
        for batch in table.to_batches(max_chunksize=BATCH):
            columns = [map(_plain, column.to_pylist()) for column in batch.columns]
            writer.writerows(zip(*columns, strict=True))


class _LineFeeds:
    """End rows with a line feed; the csv module quotes all line ends in a text only if its own is CRLF."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, row: str) -> int:
        return self._file.write(row.removesuffix(CRLF) + "\n")


def _plain(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def _write_parquet(table: Any, path: Path) -> None:
    parquet = need("pyarrow.parquet", "files")
    parquet.write_table(table, path, use_dictionary=repeating(table.schema))


def _write_json(content: Any, path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        # Ids that JSON does not know, such as dates, become text.
        json.dump(content, file, allow_nan=False, default=str, indent=1)
        file.write("\n")


def _write_itself(write: Callable[[Path], object], path: Path) -> None:
    write(path)


_WRITERS: dict[str, Callable[[Any, Path], None]] = {
    ".csv": _write_csv,
    ".parquet": _write_parquet,
    ".json": _write_json,
}
