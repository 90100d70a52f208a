"""JSON and Excel give the table of other files, and what cannot be read is explained in one line."""

from __future__ import annotations

import gzip
import json
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from input_files import LINES, ROWS, message_of, parquet, rows_of
from trueup.errors import MissingExtra
from trueup.io.readers.files import read_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pa = pytest.importorskip("pyarrow")


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
        ('{"a": 1}', 'Column "question": not found. Column "worker": not found. '),
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
                title=f"Sheet{number}",
            )
            for number, sheet in enumerate(sheets, 1)
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
        'File "a.xlsx": its sheet is empty. Its first row must name the columns.'
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
