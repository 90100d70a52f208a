"""Answers come from every kind of source, and what cannot be read is explained in one line."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import math
import os
import sqlite3
import sys
import threading
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import trueup
from trueup.answers import Answers
from trueup.errors import AnswersError, MissingExtra, TrueupError, TrueupWarning
from trueup.io.files import open_source, read_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.io.table import Table

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
duckdb = pytest.importorskip("duckdb")

ROWS = [("q2", "007", 1.5), ("q1", "x", -3.0), ("q2", "x", 2.0)]
TEXT = "question,worker,answer\nq2,007,1.5\nq1,x,-3\nq2,x,2\n"
LINES = "".join(json.dumps({"question": q, "worker": w, "answer": a}) + "\n" for q, w, a in ROWS)
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
    questions, workers = table.question_ids.tolist(), table.worker_ids.tolist()
    return [
        (questions[q], workers[w], a)
        for q, w, a in zip(table.question, table.worker, table.answer.tolist(), strict=True)
    ]


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    """Write a file with this content under this name."""

    def write(content: str | bytes, name: str = "answers.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def message_of(path: Any, **options: Any) -> str:
    with pytest.raises(TrueupError) as caught:
        read_file(path, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


def parquet(path: Path, columns: dict[str, Any]) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


# -- how text is written ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "options"),
    [
        (TEXT.replace(",", ":"), {"sep": ":"}),
        (TEXT.replace(",", "\t"), {"sep": "\\t"}),
        (TEXT.replace(",", "\t"), {"sep": "tab"}),
        (TEXT.replace(",", " "), {"sep": " "}),
        (TEXT.replace(",", "'"), {"sep": "'"}),
        (TEXT.replace(",", "§"), {"sep": "§"}),
        (TEXT.replace(",", ";").replace(".", ","), {"decimal": ","}),
        (TEXT.replace("1.5", '"1,5"'), {"decimal": ","}),
        (TEXT.replace(",", ";").replace(".", ","), {"decimal": ",", "sep": ";"}),
        (TEXT, {"decimal": "."}),
        (TEXT.encode("utf-16"), {"encoding": "utf-16"}),
        (TEXT.encode("utf-16-be"), {"encoding": "UTF-16-BE"}),
        (TEXT.encode("utf-32"), {}),
        (TEXT.encode("utf-8-sig"), {"encoding": "utf-8"}),
        (TEXT.encode(), {"encoding": "ascii"}),
        (gzip.compress(TEXT.encode("cp1252"), mtime=0), {"encoding": "cp1252"}),
    ],
)
def test_text_may_be_written_in_many_ways(
    written: Callable[..., Path], content: str | bytes, options: dict[str, str]
) -> None:
    assert rows_of(read_file(written(content), **options)) == ROWS


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-8", "cp850"])
def test_an_encoding_that_is_named_is_used(written: Callable[..., Path], encoding: str) -> None:
    path = written("question,worker,answer\né,ü,1\n".encode(encoding))

    assert rows_of(read_file(path, encoding=encoding)) == [("é", "ü", 1.0)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sep": "::"}, 'sep: found "::", must be one character'),
        ({"sep": ""}, 'sep: found "", must be one character'),
        ({"sep": '"'}, 'sep: found "\\"", must be one character'),
        ({"sep": 3}, "sep: found 3, must be one character"),
        ({"decimal": ";"}, 'decimal: found ";", must be "." or ",".'),
        ({"encoding": "utf-9"}, 'encoding: found "utf-9", which is no encoding of text.'),
        ({"encoding": "rot13"}, 'encoding: found "rot13", which is no encoding of text.'),
        ({"encoding": 8}, "encoding: found 8, which is no encoding of text."),
        ({"encoding": "ascii"}, 'File "answers.csv": line 3 is not UTF-8 text (byte 0xc3). Pass'),
        ({"encoding": "utf-16"}, 'File "answers.csv": is not utf-16 text. Pass the encoding'),
        ({"wide": "both"}, 'File "answers.csv": wide: found "both", must be True, False,'),
        ({"sql": "SELECT 1"}, 'File "answers.csv": sql: is for a DuckDB or SQLite database'),
        ({"sql": "SELECT 1", "sep": ","}, "sep: is for text, and sql for a database."),
    ],
)
def test_options_are_checked(
    written: Callable[..., Path], options: dict[str, Any], message: str
) -> None:
    path = written("question,worker,answer\nq,w,1\nq,é,2\n")

    assert message_of(path, **options).startswith(message)


def test_points_are_refused_where_the_decimal_mark_is_a_comma(
    written: Callable[..., Path],
) -> None:
    path = written("question;worker;answer\nq;v;1,5\n\nq;w;1.234,5\n")

    assert message_of(path, decimal=",") == (
        'File "answers.csv": Column "answer": 1 of 2 values has a point, at row 1 ("1.234,5"). '
        'With decimal="," write 1234,5 and no points, or leave decimal out if points are meant. '
        "Rows are counted from 0, without the header; row 1 is line 4."
    )


def test_the_line_of_a_row_counts_lines_inside_quotes(written: Callable[..., Path]) -> None:
    path = written('question,worker,answer\n"a\nb",v,1\n\n\nq,w,x\n')

    assert message_of(path).endswith("; row 1 is line 6.")


def test_a_column_name_does_not_mislead(written: Callable[..., Path]) -> None:
    path = written('question,worker,"1 of 2 values x at row 9"\nq,w,z\n')

    assert message_of(path, answer="1 of 2 values x at row 9").endswith("; row 0 is line 2.")


def test_ten_thousand_columns_are_no_trouble(written: Callable[..., Path]) -> None:
    names = [f"note_{i:05d}" for i in range(10_000)]
    content = ",".join([*names, "question", "worker", "answer"]) + "\n"
    content += ",".join(["0"] * 10_000 + ["q", "w", "1.5"]) + "\n"

    assert rows_of(read_file(written(content))) == [("q", "w", 1.5)]


def test_a_nul_byte_late_in_a_file_is_found(written: Callable[..., Path]) -> None:
    path = written("question,worker,answer\n" + "q,w,1\n" * 20_000 + "q,\0,1\n")

    assert 'Column "worker": the id "\\x00" holds a NUL byte' in message_of(path)


def test_a_header_that_never_ends_is_explained(written: Callable[..., Path]) -> None:
    path = written('question,"worker,answer\n' + "q,w,1\n" * 50_000)

    assert "never closed" in message_of(path)


def test_a_large_archive_cut_short_is_explained(written: Callable[..., Path]) -> None:
    lines = "".join(f"q{i},w,{i * i}\n" for i in range(200_000))
    whole = gzip.compress(("question,worker,answer\n" + lines).encode(), mtime=0)

    assert "the archive is cut short or damaged" in message_of(
        written(whole[: len(whole) // 2], "a.csv.gz")
    )
    damaged = whole[:1000] + bytes(reversed(whole[1000:3000])) + whole[3000:]
    assert "cannot be read" in message_of(written(damaged, "a.jsonl.gz"))


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.jsonl", "a.db", "a.xlsx"])
def test_a_file_without_permission_is_explained(
    written: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = written(TEXT, name)

    def refuse(*_: Any, **__: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr(pq, "ParquetFile", refuse)
    monkeypatch.setitem(sys.modules, "openpyxl", SimpleNamespace())

    assert message_of(path) == (
        f'File "{name}": no permission to read it. Change its permissions, or copy it.'
    )


def test_odd_paths_are_refused_in_a_line(tmp_path: Path) -> None:
    for path in ("x" * 5000 + ".csv", "a\0b.csv", "", "a\nb.csv", "\udcff.csv", tmp_path / ".."):
        assert message_of(path).startswith("File ")
    for nothing in ([], 3, None, [1, 2], ["a.csv", 3]):
        assert message_of(nothing).startswith("Path: found ")


def test_a_file_name_that_is_no_text_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a\udcff.csv"
    try:
        path.write_text(TEXT)
    except (OSError, UnicodeError):
        pytest.skip("this file system has names of text only")

    assert rows_of(read_file(path)) == ROWS


# -- JSON ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", LINES),
        ("a.NDJSON", LINES),
        ("a.json", LINES),
        ("a.jsonl", LINES.replace("\n", "\r\n")),
        ("a.jsonl", "\n" + LINES.replace("\n", "\n \n")),
        ("a.jsonl", LINES.rstrip()),
        ("a.json", "[" + LINES.strip().replace("\n", ",") + "]"),
        ("a.jsonl", " \n[\n" + LINES.strip().replace("\n", ",\n") + "]\n"),
        ("a.json", LINES.encode("utf-8-sig")),
        ("a.json", LINES.encode("utf-16")),
        ("a.jsonl.gz", gzip.compress(LINES.encode(), mtime=0)),
        ("a.jsonl", LINES.replace("}", ', "meta": {"a": [1]}, "tags": []}')),
        ("a.jsonl", LINES.replace("1.5", '" 1.5 "')),
    ],
)
def test_json_is_read(written: Callable[..., Path], name: str, content: str | bytes) -> None:
    table = read_file(written(content, name))

    assert rows_of(table) == ROWS
    assert (table.kind, table.ordered, table.n_missing) == ("file", True, 0)


def test_types_of_json_are_kept(written: Callable[..., Path]) -> None:
    lines = '{"question": 7, "worker": "007", "answer": 1}\n{"worker": "7", "question": 8}\n'
    lines += '{"question": 9, "worker": "\\u00e9\\ud83d\\ude00", "answer": null, "x": 1}\n'
    lines += '{"question": 8, "worker": "7", "answer": "2"}\n'

    table = read_file(written(lines, "a.jsonl"))

    assert rows_of(table) == [(7, "007", 1.0), (8, "7", 2.0)]
    assert (table.n_rows, table.n_missing) == (4, 2)


def test_json_needs_no_other_package(
    written: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("pyarrow", "duckdb", "pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, None)

    assert rows_of(read_file(written(LINES, "a.jsonl"))) == ROWS


@pytest.mark.parametrize(
    ("ids", "wanted"),
    [
        ([1, 2, 3], [1, 2, 3]),
        ([1, 2.5, 3], [1.0, 2.5, 3.0]),
        (["a", 12, 2.0], ["a", "12", "2"]),
        ([2**70, 1, 2], [str(2**70), "1", "2"]),
        ([True, False, True], [True, False]),
        ([True, "x", 1.5], ["True", "x", "1.5"]),
    ],
)
def test_ids_of_several_types_become_text(
    written: Callable[..., Path], ids: list[object], wanted: list[object]
) -> None:
    rows = [{"question": n, "worker": w, "answer": n} for n, w in enumerate(ids)]

    table = read_file(written(json.dumps(rows), "a.json"))

    assert table.worker_ids.tolist() == wanted
    pa.array(table.worker_ids.tolist())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty. Give one object per line, or a list of objects."),
        ("[]", "is empty. Give one object per line, or a list of objects."),
        (LINES + '{"question": 1', 'line 4 is not one whole JSON object (column 15: "Expecting'),
        ("{\n}\n", "line 1 is not one whole JSON object (column 2: "),
        (LINES + "3\n", "line 4 is a number, not an object. Write "),
        ("null\n", "line 1 is null, not an object."),
        ("[1, 2]", "object 1 of the list is a number, not an object."),
        ('[{"a": 1}, ["x"]]', "object 2 of the list is a list, not an object."),
        ('[{"a": 1},', "is not a whole JSON list (line 1, column 11: "),
        ("{" + '"a":[' * 100_000, "line 1 is not one whole JSON object ("),
        ("[" * 100_000, "is not a JSON list that can be used (too deeply nested)."),
        ('{"a": ' + "9" * 5000 + "}", "line 1 is not one whole JSON object ("),
        ('{"worker": "\\ud800"}', "line 1 holds half a character"),
        ('{"a": 1}', 'Column "question": not found. The columns are "a".'),
        (
            '\n{"question": 1, "worker": 2, "answer": [3]}',
            (
                'Column "answer": 1 of 1 value is nested, at row 0 ([3]). Give one plain value '
                "each: take what is inside lists and objects out. "
                "Rows are counted from 0; row 0 is line 2."
            ),
        ),
        (
            '[{"question": {"id": 1}, "worker": 2, "answer": 3}]',
            "Column \"question\": 1 of 1 value is nested, at row 0 ({'id': 1}).",
        ),
        (
            '[{"question": 1, "worker": 2, "answer": "x"}]',
            'Column "answer": 1 of 1 value is not a number, at row 0 ("x").',
        ),
        (
            '{"question": 1, "worker": 2, "answer": Infinity}',
            'Column "answer": 1 of 1 value is infinite, at row 0 (inf).',
        ),
        (
            '[{"question": 1, "worker": 2, "answer": 1}, {"question": 1, "worker": "2", "answer": 1}]',
            'Column "worker": holds "2" both as text and as a number. Write it in one way.',
        ),
        ("question,worker,answer\n", "line 1 is not one whole JSON object ("),
        (LINES.encode("latin-1") + b'{"a": "\xe9"}', "line 4 is not UTF-8 text (byte 0xe9)."),
    ],
)
def test_json_that_cannot_be_used_is_explained(
    written: Callable[..., Path], content: str | bytes, message: str
) -> None:
    assert message_of(written(content, "a.jsonl")).startswith(f'File "a.jsonl": {message}')


def test_options_of_delimited_text_are_not_for_other_formats(
    written: Callable[..., Path], tmp_path: Path
) -> None:
    assert message_of(written(LINES, "a.jsonl"), sep=",") == (
        'File "a.jsonl": sep: is for text, and this is JSON. Leave it out.'
    )
    path = parquet(tmp_path / "a.pq", {"question": [1], "worker": [1], "answer": [1]})
    assert message_of(path, encoding="utf-8").startswith('File "a.pq": encoding: is for text')


# -- Excel -----------------------------------------------------------------------------------------


# A zip archive with nothing in it.
NO_PARTS = b"PK\x05\x06" + b"\0" * 18


def fake_openpyxl(*sheets: list[tuple[Any, ...]]) -> SimpleNamespace:
    """Make a module that has one workbook of these sheets."""

    def load_workbook(_file: Any, *, read_only: bool, data_only: bool) -> Any:
        assert read_only
        assert data_only
        pages = [
            SimpleNamespace(
                iter_rows=lambda *, values_only, s=sheet: s if values_only else [],
                reset_dimensions=lambda: None,
            )
            for sheet in sheets
        ]
        return SimpleNamespace(worksheets=pages, close=lambda: None)

    return SimpleNamespace(load_workbook=load_workbook)


def test_a_sheet_is_read(written: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    sheet = [
        (None, None, None, None),
        ("question", "worker", "answer", None),
        ("q2", "007", 1.5, None),
        (None, None, None, None),
        ("q1", "x", -3, None),
        ("q2", "x", "2"),
    ]
    monkeypatch.setitem(sys.modules, "openpyxl", fake_openpyxl(sheet, []))
    path = written(NO_PARTS, "a.xlsx")

    assert rows_of(read_file(path)) == ROWS
    sheet.append(("q3", "x", "three", None))
    assert message_of(path).endswith(
        "Rows are counted from 0, below row 2 of the sheet; row 3 is row 7 of the sheet."
    )


def test_sheets_that_cannot_be_used_are_explained(
    written: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(NO_PARTS, "a.xlsx")

    monkeypatch.setitem(sys.modules, "openpyxl", fake_openpyxl([]))
    assert message_of(path) == (
        'File "a.xlsx": its first sheet is empty. Its first row must name the columns.'
    )
    monkeypatch.setitem(sys.modules, "openpyxl", fake_openpyxl([("question", "worker")]))
    assert 'Column "answer": not found.' in message_of(path)
    monkeypatch.setitem(sys.modules, "openpyxl", fake_openpyxl())
    assert "holds no sheet of cells" in message_of(path)
    monkeypatch.setitem(sys.modules, "openpyxl", SimpleNamespace())
    assert "cannot be read as a workbook of Excel" in message_of(path)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(
        MissingExtra, match=r"Save the sheet as .csv .CSV UTF-8., or run: pip install"
    ):
        read_file(path)
    assert "Save the sheet as .xlsx" in message_of(written(b"", "a.xls"))


def test_a_workbook_of_openpyxl_is_read(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in [("question", "worker", "answer"), *((q, w, a) for q, w, a in ROWS)]:
        book.active.append(row)
    book.active.append((7, "x", 4))
    path = tmp_path / "a.xlsx"
    book.save(path)

    assert rows_of(read_file(path)) == [*ROWS, ("7", "x", 4.0)]
    path.write_bytes(path.read_bytes()[:500])
    assert "cannot be read as a workbook of Excel" in message_of(path)


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


def parquet_bytes() -> bytes:
    buffer = io.BytesIO()
    questions, workers, answers = zip(*ROWS, strict=True)
    table = pa.table(
        {"question": list(questions), "worker": list(workers), "answer": list(answers)}
    )
    pq.write_table(table, buffer)
    return buffer.getvalue()


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


# -- wide tables -----------------------------------------------------------------------------------

WIDE = "question,ann,007,bob\nq1,1,2,\nq2,,,\nq3,NA,4,5\n"
WIDE_ROWS = [("q1", "ann", 1.0), ("q1", "007", 2.0), ("q3", "007", 4.0), ("q3", "bob", 5.0)]


def test_a_column_per_worker_is_recognised(written: Callable[..., Path]) -> None:
    table = read_file(written(WIDE))

    assert rows_of(table) == WIDE_ROWS
    assert table.row is not None
    assert table.row.tolist() == [0, 0, 2, 2]
    assert (table.kind, table.n_rows, table.n_missing) == ("file", 4, 0)
    assert rows_of(read_file(written(WIDE), wide=True)) == WIDE_ROWS
    assert rows_of(read_file(written(WIDE), wide="questions")) == WIDE_ROWS
    assert rows_of(read_file(written(WIDE.replace("question", "task")))) == WIDE_ROWS
    item = written(WIDE.replace("question", "item"))
    assert rows_of(read_file(item, question="item")) == WIDE_ROWS
    assert trueup.estimate(item, "mean", "none", question="item").questions[
        "n_answers"
    ].tolist() == [
        2,
        2,
    ]


def test_wide_tables_may_be_of_any_format(written: Callable[..., Path], tmp_path: Path) -> None:
    columns = {"question": ["q1", "q2"], "1": [1.0, None], "2": [2, 3]}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    wanted = [("q1", "1", 1.0), ("q1", "2", 2.0), ("q2", "2", 3.0)]

    assert rows_of(read_file(parquet(tmp_path / "a.pq", columns))) == wanted
    assert rows_of(read_file(written(json.dumps(rows), "a.json"))) == wanted
    text = "question;1;2\nq1;1,0;2\nq2;;3\n"
    numbers = [(q, int(w), a) for q, w, a in wanted]  # in text, whole numbers are numbers
    assert rows_of(read_file(written(text), decimal=",")) == numbers


def test_a_column_per_question_is_read_when_asked_for(written: Callable[..., Path]) -> None:
    path = written(WIDE.replace("question", "worker"))

    table = read_file(path, wide="workers")

    assert rows_of(table) == [(q, w, a) for w, q, a in WIDE_ROWS]
    assert 'pass wide="workers"' in message_of(path)
    assert rows_of(read_file(written(WIDE), wide="workers", worker="question")) == rows_of(table)


def test_rows_without_ids_are_numbered(written: Callable[..., Path]) -> None:
    path = written("ann,bob,cyd\n1,2,\n,,\n3,,\n")
    wanted = [(0, "ann", 1.0), (0, "bob", 2.0), (2, "ann", 3.0)]

    with pytest.warns(TrueupWarning, match='one column per worker \\("ann", "bob", "cyd"\\)'):
        assert rows_of(read_file(path)) == wanted
    assert rows_of(read_file(path, wide=True)) == wanted
    assert rows_of(read_file(path, wide="workers")) == [(w, q, a) for q, w, a in wanted]


@pytest.mark.parametrize(
    "content",
    [
        "item,rater,score\n1,2,3\n1,3,4\n",
        "question,rater,score\n1,2,3\n2,3,4\n",
        "userId,movieId,x\n1,2,3\n",
        "user_id,b,c\n1,2,3\n",
        "when,what\n1,2\n",
        "question,evaluador,nota\n1,2,3\n1,3,4\n",
        "3.5,4\n3,4\n",
        "question,ann\n1,2\n",
        ",ann,bob\n1,2,3\n",
    ],
)
def test_a_long_table_under_other_names_is_not_taken_for_a_wide_one(
    written: Callable[..., Path], content: str
) -> None:
    assert "not found. The columns are " in message_of(written(content))


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (
            "item,ann,bob\na,1,2\n",
            {},
            (
                'Column "question": not found. The columns are "item", "ann", "bob". '
                'Name the column that holds it: question="...".'
            ),
        ),
        (
            "name of it,ann,bob\na,1,2\n",
            {},
            (
                "It was not read as one row per question and one column per worker, since column "
                '"name of it" does not hold numbers only: leave it out and pass wide=True, or '
                'question="name of it" if it names the questions.'
            ),
        ),
        (
            "question,ann,bob\na,1,2\na,2,3\n",
            {},
            ("since a question stands in more than one row: pass wide=True if that is meant."),
        ),
        (
            "question;a;b;c\nq;1,5;2;3,5\n",
            {},
            (
                'for values in column "a". Some have a decimal comma: pass decimal=",", or write '
                "3.5, not 3,5."
            ),
        ),
        ("question;a\nq;1,5\n", {"wide": True}, 'comma: pass decimal=",", or write 3.5'),
        (WIDE, {"wide": False}, 'Column "worker": not found.'),
        (WIDE, {"wide": True, "question": "item"}, 'Column "item": not found.'),
        (WIDE, {"wide": True, "panel": "p"}, 'Column "p": not found.'),
        (WIDE, {"wide": True, "numbers": ("ann",)}, "has no further number for each answer."),
        (WIDE, {"wide": True, "panel": "question"}, "asked for as question and as panel."),
        ("question,a,a\nq,1,2\n", {"wide": True}, "there are several columns of this name"),
        ("question\nq\n", {"wide": True}, "there is no column of answers besides"),
        ("question,a,b\nq,,\n", {}, "no answers, all 2 cells are empty."),
        ("question,a,b\n", {}, "no answers, all 0 cells are empty."),
        ("question,a,b\n,1,2\n", {}, 'Column "question": 1 of 1 value is missing, at row 0.'),
        ("question,a,b\nq,1,1e200\n", {"wide": True}, "is beyond ±1e+150"),
        (
            "question,a,b\nq,1,x\n",
            {"wide": True},
            (
                'Column "b": 1 of 1 value is not a number, at row 0 ("x"). Remove or mend these '
                "rows. The table was read as one row per question and one column per worker; "
                "wide=False reads one row per answer. "
                "Rows are counted from 0, without the header; row 0 is line 2."
            ),
        ),
    ],
)
def test_errors_say_how_a_table_was_read(
    written: Callable[..., Path], content: str, options: dict[str, Any], message: str
) -> None:
    assert message in message_of(written(content), **options)


def test_wide_files_need_the_same_workers(written: Callable[..., Path]) -> None:
    one = written("question,a,b\nq,1,2\n", "1.csv")
    two = written("b,question,a\n3,r,4\n", "2.csv")
    three = written("question,a,b,c\ns,1,2,3\n", "3.csv")

    assert rows_of(read_file([one, two])) == [
        ("q", "a", 1.0),
        ("q", "b", 2.0),
        ("r", "a", 4.0),
        ("r", "b", 3.0),
    ]
    assert message_of([one, three], wide=True) == (
        'File "3.csv": has the columns "c", unlike "1.csv". Give all files the same columns.'
    )
    assert message_of([three, one], wide=True).startswith('File "1.csv": lacks the columns "c"')


def test_panels_of_a_wide_table(written: Callable[..., Path]) -> None:
    table = read_file(written("p,question,a,b\nx,q,1,2\ny,q,3,4\n"), panel="p")

    assert table.panel is not None
    assert table.panel_ids is not None
    assert table.panel_ids.tolist(np.asarray(table.panel)) == ["x", "x", "y", "y"]


def test_many_columns_of_workers(written: Callable[..., Path]) -> None:
    names = [f"worker_{i:05d}" for i in range(2_000)]
    content = (
        "question,"
        + ",".join(names)
        + "\n"
        + "".join(f"q{j}," + ",".join(["3.5"] * 1_999 + [""]) + "\n" for j in range(3))
    )

    table = read_file(written(content))

    assert (len(table.answer), len(table.worker_ids)) == (3 * 1_999, 1_999)


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


# -- anything at all -------------------------------------------------------------------------------

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

    table = read_file(path, sep=sep, decimal=decimal, encoding=encoding)

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
        table = read_file(path, **options)
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
