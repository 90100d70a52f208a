"""Whatever a file holds, it comes back as it was, or one line explains why it cannot be read."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import math
import sqlite3
import sys
from contextlib import closing
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from input_files import LINES, ODD_IDS, TEXT, WIDE, parquet_bytes, read, rows_of
from trueup.errors import TrueupError, TrueupWarning
from trueup.io.readers.files import read_file

if TYPE_CHECKING:
    from pathlib import Path


anything = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=60,
    deadline=None,
)
ids = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
numbers = st.floats(-1e100, 1e100, allow_subnormal=False)
tables = st.lists(st.tuples(ids, ids, numbers), min_size=1, max_size=8)


@anything
@given(
    rows=tables,
    sep=st.sampled_from(",;\t|:"),
    decimal=st.sampled_from(".,"),
    file=st.sampled_from([("utf-8", "a.csv"), ("utf-16", "a.csv"), ("utf-8", "a.csv.gz")]),
)
@example(
    rows=[(each, each, 1.5) for each in ODD_IDS], sep=",", decimal=",", file=("utf-8", "a.csv")
)
def test_delimited_text_comes_back_as_it_was(
    tmp_path: Path,
    rows: list[tuple[str, str, float]],
    sep: str,
    decimal: str,
    file: tuple[str, str],
) -> None:
    encoding, name = file
    rows = [row for row in rows if "\0" not in row[0] + row[1]] or [("q", "w", 1.0)]
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=sep, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(["question", "worker", "answer"])
    writer.writerows((q, w, repr(a).replace(".", decimal)) for q, w, a in rows)
    content = out.getvalue().encode(encoding)
    path = tmp_path / name
    path.write_bytes(gzip.compress(content, mtime=0) if name.endswith(".gz") else content)

    table = read(path, sep=sep, decimal=decimal, encoding=encoding)

    assert [(str(q), str(w), a) for q, w, a in rows_of(table)] == rows


@anything
@given(rows=tables, listed=st.booleans(), escaped=st.booleans())
@example(rows=[(each, each, 1.5) for each in ODD_IDS], listed=False, escaped=False)
def test_json_comes_back_as_it_was(
    tmp_path: Path, rows: list[tuple[str, str, float]], listed: bool, escaped: bool
) -> None:
    objects = [{"question": q, "worker": w, "answer": a} for q, w, a in rows]
    texts = [json.dumps(each, ensure_ascii=escaped) for each in objects]
    path = tmp_path / "a.jsonl"
    path.write_text("[" + ",".join(texts) + "]" if listed else "\n".join(texts), encoding="utf-8")

    assert rows_of(read_file(path)) == rows


@anything
@given(rows=tables)
@example(rows=[(each, each, 1.5) for each in ODD_IDS])
def test_databases_and_wide_tables_give_ids_as_they_are(
    tmp_path: Path, rows: list[tuple[str, str, float]]
) -> None:
    rows = list({(q, w): (q, w, a) for q, w, a in rows}.values())
    path = tmp_path / "a.db"
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (question TEXT, worker TEXT, answer DOUBLE)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        connection.commit()
    assert sorted(rows_of(read_file(path, sql="SELECT * FROM t"))) == sorted(rows)
    cells: dict[str, dict[str, float]] = {}
    for q, w, a in rows:
        cells.setdefault(q, {})[f"w{w}"] = a
    objects = [{"question": q} | answers for q, answers in cells.items()]
    (tmp_path / "a.json").write_text(json.dumps(objects), encoding="utf-8")
    found = rows_of(read_file(tmp_path / "a.json", wide=True))
    assert sorted(found) == sorted((q, f"w{w}", a) for q, w, a in rows)


def reads_or_explains(path: Any, **options: Any) -> None:
    """Read a file: finite answers, or one line on why not."""
    message = ""
    try:
        table = read(path, **options)
    except (TrueupError, TrueupWarning) as error:
        message = str(error)
    if message:
        assert "\n" not in message
        assert len(message) < 2_000
        return
    assert np.isfinite(table.answer).all()
    assert len(table.answer)
    for ids_of in (table.question_ids, table.worker_ids):
        assert not any(each is None for each in ids_of.tolist())


WORDS = (
    b"question worker answer , ; 1 2.5 3,5 { } [ ] : null 1e999 a,b,1 x,y,2 question,worker,answer "
    b'" \xff \xc3\xa9 \\ud800'
)
SPACES = (b"\n", b"\r", b"\r\n", b"\0", b"\t", b" ", codecs.BOM_UTF8, b'"answer": ')
pieces = st.sampled_from([*WORDS.split(), *SPACES])


@anything
@given(
    content=st.one_of(st.binary(max_size=60), st.lists(pieces, max_size=25).map(b"".join)),
    name=st.sampled_from(["a.csv", "a.tsv", "a.csv.gz", "a.jsonl", "a.json", "a.pq", "a.db", "-"]),
    options=st.fixed_dictionaries(
        {},
        optional={
            "sep": st.sampled_from([",", ";", " ", "1"]),
            "decimal": st.sampled_from([".", ","]),
            "encoding": st.sampled_from(["utf-8", "latin-1", "utf-16", "cp1252", "utf-7", "big5"]),
            "wide": st.sampled_from([True, False, "workers"]),
        },
    ),
    packed=st.booleans(),
)
def test_any_bytes_are_read_or_explained(
    tmp_path: Path, content: bytes, name: str, options: dict[str, Any], packed: bool
) -> None:
    content = gzip.compress(content, mtime=0) if packed else content
    if name == "-":
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
            reads_or_explains("-", **options)
        return
    path = tmp_path / name
    path.write_bytes(content)
    reads_or_explains(path, **options)


def whole_files() -> dict[str, bytes]:
    """Sound files, to be broken."""
    folder_bytes = {"a.csv": TEXT.encode(), "a.csv.gz": gzip.compress(TEXT.encode(), mtime=0)}
    folder_bytes |= {"a.jsonl": LINES.encode(), "a.parquet": parquet_bytes()}
    return folder_bytes | {"wide.csv": WIDE.encode()}


WHOLE = whole_files()


@anything
@given(
    name=st.sampled_from(sorted(WHOLE)),
    changes=st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=3)), max_size=4),
    end=st.floats(0, 1),
)
def test_damaged_files_are_read_or_explained(
    tmp_path: Path, name: str, changes: list[tuple[float, bytes]], end: float
) -> None:
    content = WHOLE[name]
    for where, new in changes:
        at = math.floor(where * len(content))
        content = content[:at] + new + content[at + len(new) :]
    if end > 0.5:
        content = content[: math.floor(2 * (end - 0.5) * len(content))]
    path = tmp_path / name
    path.write_bytes(content)

    reads_or_explains(path)


@anything
@given(
    query=st.one_of(st.text(max_size=30), st.sampled_from(["SELECT", ";", "SELECT 1;", "VACUUM"]))
)
def test_any_query_is_run_or_explained(tmp_path: Path, query: str) -> None:
    path = tmp_path / "q.db"
    if not path.exists():
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE t (question, worker, answer)")
            connection.commit()

    reads_or_explains(path, sql=query)
