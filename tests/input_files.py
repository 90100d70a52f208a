"""Small files of answers for the tests of what reads them, and what was read."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest

from trueup.errors import TrueupError
from trueup.io.read_options import ANSWER_OPTIONS
from trueup.io.readers.answer_column import AnswerRules
from trueup.io.readers.files import read_file

if TYPE_CHECKING:
    from pathlib import Path

    from trueup.io.table import Table

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("duckdb")

ROWS = [("q2", "007", 1.5), ("q1", "x", -3.0), ("q2", "x", 2.0)]
TEXT = "question,worker,answer\nq2,007,1.5\nq1,x,-3\nq2,x,2\n"
LINES = "".join(json.dumps({"question": q, "worker": w, "answer": a}) + "\n" for q, w, a in ROWS)
#: A column per worker.
WIDE = "question,ann,007,bob\nq1,1,2,\nq2,,,\nq3,NA,4,5\n"
ODD_IDS = [
    "007",
    " 7 ",
    'it"s',
    "a,b;c\td|e",
    "é😀",
    "שלום",
    "\u202eabc",
    "line\nbreak",
    "'); DROP",
]


def rows_of(table: Table) -> list[tuple[object, object, float]]:
    """Return question, worker and answer of every row."""
    questions, workers = table.question_ids.tolist(), table.worker_ids.tolist()
    return [
        (questions[q], workers[w], a)
        for q, w, a in zip(table.question, table.worker, table.answer.tolist(), strict=True)
    ]


def read(path: Any, **options: Any) -> Table:
    """Read a file with any options of `Answers.from_file`."""
    rules = AnswerRules.of(
        **{name: options.pop(name) for name in ANSWER_OPTIONS if name in options}
    )
    return read_file(path, **options, rules=rules)


def message_of(path: Any, error: type[TrueupError] = TrueupError, **options: Any) -> str:
    """Return the one line that says why a file cannot be read."""
    with pytest.raises(error) as caught:
        read(path, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


def parquet(path: Path, columns: dict[str, Any]) -> Path:
    """Write columns as Parquet."""
    pq.write_table(pa.table(columns), path)
    return path


def parquet_bytes() -> bytes:
    """Return a file of the rows as Parquet."""
    buffer = io.BytesIO()
    questions, workers, answers = zip(*ROWS, strict=True)
    table = pa.table(
        {"question": list(questions), "worker": list(workers), "answer": list(answers)}
    )
    pq.write_table(table, buffer)
    return buffer.getvalue()
