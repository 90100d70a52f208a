"""Delimited text may be written in many ways, and what cannot be read is explained in one line."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from input_files import ROWS, TEXT, message_of, read, rows_of
from trueup.io.readers.files import read_file

if TYPE_CHECKING:
    from collections.abc import Callable

pq = pytest.importorskip("pyarrow.parquet")


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
    assert rows_of(read(written(content), **options)) == ROWS


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
        ({"decimal": np.ones(2)}, 'decimal: found array([1., 1.]), must be "." or ",".'),
        ({"encoding": "utf-9"}, 'encoding: found "utf-9", which is no encoding of text.'),
        ({"encoding": "rot13"}, 'encoding: found "rot13", which is no encoding of text.'),
        ({"encoding": 8}, "encoding: found 8, which is no encoding of text."),
        ({"encoding": "ascii"}, 'File "answers.csv": line 3 is not UTF-8 text (byte 0xc3). Pass'),
        ({"encoding": "utf-16"}, 'File "answers.csv": is not utf-16 text. Pass the encoding'),
        ({"wide": np.ones(2)}, 'File "answers.csv": wide: found array([1., 1.]), must be True'),
        ({"answer": np.ones(2)}, 'File "answers.csv": Column array([1., 1.]): not found. The col'),
        ({"wide": "both"}, 'File "answers.csv": wide: found "both", must be True, False,'),
        ({"sql": "SELECT 1"}, 'File "answers.csv": sql: is for a DuckDB or SQLite database'),
        (
            {"sql": "SELECT 1", "sep": ","},
            "sep: is for files of text or sheets, and sql for a database.",
        ),
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
        'File "answers.csv": Column "answer": 1 of 2 values is not a number, at row 1 ("1.234,5"). '
        'It separates thousands. To read them pass thousands=".". '
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
    inner = tmp_path / "inner"
    inner.mkdir()
    for path in ("x" * 5000 + ".csv", "a\0b.csv", "", "a\nb.csv", "\udcff.csv", inner / ".."):
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
