"""Answers come from several files, standard input, pipes and databases, through one public entry."""

from __future__ import annotations

import gzip
import io
import os
import sqlite3
import sys
import threading
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from input_files import LINES, ROWS, TEXT, message_of, parquet, parquet_bytes, rows_of
from trueup.answers.answers import Answers
from trueup.errors import AnswersError
from trueup.io.readers.files import open_source, read_file

if TYPE_CHECKING:
    from collections.abc import Callable


pa = pytest.importorskip("pyarrow")
duckdb = pytest.importorskip("duckdb")


# -- several files ---------------------------------------------------------------------------------


def test_a_pattern_is_one_table_in_sorted_order(
    written: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written("answer;question;worker\n2;b;w\n", "part-2.csv")
    written("question,worker,answer\na,007,1\n", "part-1.csv")
    written("question,worker,answer\nno,no,9\n", "other.csv")
    (tmp_path / "part-dir.csv").mkdir()
    monkeypatch.chdir(tmp_path)
    wanted = [("a", "007", 1.0), ("b", "w", 2.0)]

    assert rows_of(read_file("part-*.csv")) == wanted
    assert rows_of(read_file(Path("part-[12].csv"))) == wanted
    assert rows_of(read_file(str(tmp_path / "**" / "part-?.csv"))) == wanted
    assert rows_of(read_file(["part-2.csv", Path("part-1.csv")])) == wanted[::-1]
    assert rows_of(read_file(("part-2.csv",))) == wanted[1:]
    assert repr(Answers.of(["part-1.csv", "part-2.csv"])) == (
        "Answers(2 questions, 2 workers, 2 answers)"
    )
    assert repr(Answers.of(Path("part-*.csv"), sep=None)) == (
        "Answers(2 questions, 2 workers, 2 answers)"
    )


def test_whole_numbers_are_numbers_only_if_those_of_all_files_are(
    written: Callable[..., Path], tmp_path: Path
) -> None:
    written("question,worker,answer\n1,1,1\n", "a.csv")
    written("question\tworker\tanswer\n2\t02\t1\n", "b.tsv")

    table = read_file([tmp_path / "a.csv", tmp_path / "b.tsv"])

    assert (table.question_ids.tolist(), table.worker_ids.tolist()) == ([1, 2], ["1", "02"])


def test_parquet_files_are_joined(tmp_path: Path) -> None:
    parts: list[dict[str, Any]] = [
        {"question": ["b", "a"], "worker": pa.array([1, 2], pa.int32()), "answer": [1.5, 2.5]},
        {"worker": [2**40], "answer": pa.array([3], pa.int8()), "question": ["b"], "more": [1]},
        {
            "question": pa.array(["c"], pa.large_string()),
            "worker": pa.array([5], pa.uint8()),
            "answer": pa.array([4], pa.decimal128(4, 1)),
        },
        {"question": pa.nulls(1), "worker": pa.nulls(1), "answer": pa.nulls(1)},
    ]
    for number, columns in enumerate(parts):
        parquet(tmp_path / f"part-{number}.parquet", columns)

    table = read_file(tmp_path / "part-*.parquet")

    assert rows_of(table) == [("b", 1, 1.5), ("a", 2, 2.5), ("b", 2**40, 3.0), ("c", 5, 4.0)]
    assert table.n_missing == 1
    same = [tmp_path / "part-0.parquet"] * 2
    assert read_file(same).question_ids.values.type == pa.string()


def test_json_files_are_joined(written: Callable[..., Path], tmp_path: Path) -> None:
    written(LINES, "1.jsonl")
    written('[{"question": "q3", "worker": 7, "answer": 1}]', "2.json")

    assert rows_of(read_file(tmp_path / "*.json*")) == [*ROWS, ("q3", "7", 1.0)]


def test_a_file_that_differs_is_named(written: Callable[..., Path], tmp_path: Path) -> None:
    one = written("question,worker,answer\na,w,1\n", "1.csv")
    two = written("question,who,answer\na,v,1\n", "2.csv")
    bad = written("question,worker,answer\n\na,u,1\na,v,x\n", "3.csv")
    short = written("question,worker,answer\na\n", "4.csv")
    lines = written(LINES, "5.jsonl")
    texts = parquet(tmp_path / "6.pq", {"question": ["a"], "worker": ["1"], "answer": [1]})
    numbers = parquet(tmp_path / "7.pq", {"question": ["a"], "worker": [1], "answer": [1]})

    assert message_of([one, two]) == (
        'File "2.csv": has no column "worker", unlike "1.csv". Its columns are "question", "who", '
        '"answer". Give all files the same columns.'
    )
    assert message_of([one, bad]).startswith(
        'Files "1.csv" and 1 more: Column "answer": 1 of 3 values is not a number, at row 2 ("x").'
    )
    assert message_of([one, bad]).endswith('; row 2 is line 4 of "3.csv".')
    assert message_of([one, short]).startswith('File "4.csv": line 2 has 1 fields')
    assert message_of([one, lines]).startswith('File "5.jsonl": is JSON, while "1.csv" is text.')
    assert message_of([texts, numbers]).startswith(
        'File "7.pq": Column "worker": holds "int64" values, in "6.pq" "string".'
    )
    assert ": not found. " in message_of([one, tmp_path / "missing.csv"])
    assert message_of([one, "-"]).startswith('Path: "-" (standard input) cannot be')
    assert message_of(tmp_path / "[").startswith("File ")
    assert message_of(tmp_path / "zz*.csv") == (
        f'File "{tmp_path / "zz*.csv"}": no file matches this pattern. '
        "Check the folder and the ending."
    )


# -- standard input and pipes ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        TEXT.encode(),
        TEXT.replace(",", "\t").encode(),
        TEXT.encode("utf-16"),
        gzip.compress(TEXT.encode(), mtime=0),
        LINES.encode(),
        b"\n \n[" + LINES.strip().replace("\n", ",").encode() + b"]",
        gzip.compress(LINES.encode(), mtime=0),
        parquet_bytes(),
    ],
)
def test_standard_input_is_read_once_and_told_by_its_content(
    monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    stream = io.BytesIO(content)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream))

    assert rows_of(read_file("-")) == ROWS
    assert stream.read() == b""
    assert rows_of(read_file(Path("-"))) == ROWS
    assert Answers.of("-").n_answers == 3


def test_trouble_with_standard_input_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    for content, message in [
        (b"", "is empty or has no header"),
        (b"question,worker,answer\na,b\n", "line 2 has 2 fields"),
        (b"question,worker,answer\na,b,x\n", 'Column "answer": 1 of 1 value is not a number'),
        (b"PAR1" + b"x" * 40, "cannot be read as Parquet"),
        (b"{", "line 1 is not one whole JSON object"),
        (b"\x1f\x8b\x00", "cannot be read ("),
        (b"a\0", "line 1 holds a NUL byte"),
    ]:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
        assert message_of("-").startswith(f"Standard input: {message}")
    for nothing in (None, io.StringIO("question")):
        monkeypatch.setattr(sys, "stdin", nothing)
        assert message_of("-") == "Standard input: is not there. Name a file instead."
    assert message_of("-", sql="SELECT 1") == "sql: needs one database file. Name it."


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_read(tmp_path: Path) -> None:
    pipe = tmp_path / "63"
    os.mkfifo(pipe)
    for content, wanted in ((TEXT, ROWS), ("question,worker,answer\na,b,x\n", None)):
        writer = threading.Thread(target=pipe.write_text, args=(content,))
        writer.start()
        if wanted is None:
            assert message_of(pipe).endswith("; row 0 is line 2.")
        else:
            assert rows_of(read_file(pipe)) == wanted
        writer.join()


# -- databases -------------------------------------------------------------------------------------


@pytest.fixture(params=["SQLite", "DuckDB"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "it's 100% [x].db"
    connect = sqlite3.connect if request.param == "SQLite" else duckdb.connect
    with closing(connect(str(path))) as connection:
        connection.execute("CREATE TABLE answers (item TEXT, who TEXT, answer DOUBLE)")
        connection.executemany("INSERT INTO answers VALUES (?, ?, ?)", [list(row) for row in ROWS])
        connection.execute("CREATE TABLE empty (question TEXT, worker TEXT, answer DOUBLE)")
        connection.commit()
    return path


QUERY = "SELECT item AS question, who AS worker, answer FROM answers"


def test_a_query_gives_the_table(database: Path) -> None:
    before = database.read_bytes()

    table = read_file(database, sql=QUERY)

    assert sorted(rows_of(table), key=str) == sorted(ROWS, key=str)
    assert not table.ordered
    assert table.question_ids.tolist() == ["q1", "q2"]
    assert Answers.from_sql(str(database), QUERY).n_answers == 3
    assert Answers.of(database, sql=QUERY).n_workers == 2
    assert database.read_bytes() == before


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (None, 'database. It holds "answers", "empty". Say what to read from it: sql="SELECT'),
        ("", 'sql: found "", must be a query such as SELECT ...'),
        (3, "sql: found 3, must be a query"),
        ("selec 1", "refuses the query ("),
        ("SELECT * FROM nowhere", "refuses the query ("),
        ("SELECT 1 AS question", 'Column "worker": not found.'),
        ("SELECT * FROM empty", "no answers, the table has 0 rows"),
        ("DELETE FROM answers", "refuses the query ("),
        ("CREATE TABLE more (x INTEGER)", "refuses the query ("),
        ("ATTACH 'other.db' AS other", "refuses the query ("),
        ("-- nothing", "sql: "),
        ("SELECT 1\0", "sql: "),
        ("SELECT '\ud800'", "sql: "),
        ("SELECT item AS question, who AS worker, item AS answer FROM answers", "not numbers"),
    ],
)
def test_queries_that_cannot_be_used_are_explained(
    database: Path, query: Any, message: str
) -> None:
    before = database.read_bytes()

    found = message_of(database, sql=query)

    assert message in found
    assert found.startswith('File "it\'s 100% [x].db": ')
    assert database.read_bytes() == before
    assert list(database.parent.iterdir()) == [database]


def test_a_query_sees_nothing_outside_its_database(
    database: Path, written: Callable[..., Path]
) -> None:
    path = written(TEXT)
    frame = pa.table({"question": [1], "worker": [1], "answer": [1]})

    assert frame.num_rows == 1
    assert "refuses the query" in message_of(database, sql="SELECT * FROM frame")
    assert "refuses the query" in message_of(database, sql=f"FROM '{path}'")
    copy = f"COPY answers TO '{path.parent / 'copy.csv'}'"
    assert "refuses the query" in message_of(database, sql=copy)


def test_a_broken_database_is_explained(written: Callable[..., Path], database: Path) -> None:
    content = database.read_bytes()
    broken = content[:100] + bytes(255 - byte for byte in content[100:])

    assert "refuses the query" in message_of(written(broken, "b.db"), sql=QUERY)
    assert "refuses the query" in message_of(written(content[:40], "b.db"), sql=QUERY)
    assert "Say what to read from it" in message_of(written(content[:40], "b.db"))
    assert "neither" in message_of(written(b"", "b.db"), sql=QUERY)


# -- the public entry ------------------------------------------------------------------------------


def test_options_of_files_are_for_files_only(written: Callable[..., Path]) -> None:
    matrix = [[1.0, 2.0], [3.0, 4.0]]
    columns = {"question": [1], "worker": [1], "answer": [1]}

    assert Answers.of(matrix, sep=None, wide=None).n_answers == 4
    assert Answers.of(columns, sep=None, wide=None, sql=None).n_answers == 1
    for data in (matrix, columns):
        with pytest.raises(AnswersError, match="sep: is for files"):
            Answers.of(data, sep=",")
    answers = Answers.of(written(TEXT), sep=",", encoding="utf-8", worker_variance={"x": 2.0})
    assert Answers.of(answers, sep=None) is answers
    with pytest.raises(AnswersError, match="wide: belongs where the Answers are made"):
        Answers.of(answers, wide=True)
    with pytest.raises(AnswersError, match="duplicates: "):
        Answers.from_file(written(TEXT + "q1,x,4\n"))


def test_a_source_can_be_opened_without_reading_it(written: Callable[..., Path]) -> None:
    source = open_source(written(TEXT.replace(",", ";")))

    assert source.names == ["question", "worker", "answer"]
    assert source.fetch(["worker"], ())["worker"].to_pylist() == ["007", "x", "x"]
    assert source.untyped
