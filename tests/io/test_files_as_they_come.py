"""Files with titles, odd headers, several sheets, other line ends: read right, or an error whose advice works."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from input_files import message_of, read, rows_of
from trueup.errors import AnswersError
from trueup.io.readers.files import read_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytest.importorskip("duckdb")
openpyxl = pytest.importorskip("openpyxl")

BODY = "question,worker,answer\nq1,ann,1.5\nq1,bob,2\nq2,ann,3\n"
ROWS = [("q1", "ann", 1.5), ("q1", "bob", 2.0), ("q2", "ann", 3.0)]


def mended(path: Path) -> list[tuple[object, object, float]]:
    """Read a file as its error says."""
    with pytest.raises(AnswersError) as caught:
        read_file(path)
    (fix,) = caught.value.fixes
    return rows_of(read(path, **fix))


@pytest.mark.parametrize(
    "above",
    ["My study\n", "My study\n\nMade in 2024\n", "My study,,\n,,\n", '"A title, with a comma"\n'],
)
def test_titles_above_the_header(written: Callable[..., Path], above: str) -> None:
    path = written(above + BODY)
    lines = above.count("\n")
    assert f"Line {lines + 1} seems to name the columns: pass skip_lines={lines}." in message_of(
        path
    )
    assert mended(path) == ROWS
    assert mended(written(above.replace(",", ";") + BODY.replace(",", ";"), "b.csv")) == ROWS
    assert rows_of(read_file(path, skip_lines=lines)) == ROWS
    wrong = written(above + BODY + "q2,bob,x\n", "c.csv")
    assert f"row 3 is line {lines + 5}." in message_of(wrong, skip_lines=lines)


def test_empty_lines_above_the_header_are_no_matter(written: Callable[..., Path]) -> None:
    path = written("\n\n" + BODY)
    assert rows_of(read_file(path)) == ROWS


@pytest.mark.parametrize("first", ["sep=;\n", '"sep=;"\n', "SEP=;\r\n", "\ufeffsep=;\n"])
def test_the_first_line_may_name_the_delimiter(written: Callable[..., Path], first: str) -> None:
    body = BODY.replace("\n", "\r\n") if "\r" in first else BODY
    path = written(first + body.replace(",", ";"))
    assert rows_of(read_file(path)) == ROWS
    assert rows_of(read_file(path, sep=";")) == ROWS


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
def test_lines_may_end_in_any_way(written: Callable[..., Path], end: str) -> None:
    path = written(BODY.replace("\n", end))
    assert rows_of(read_file(path)) == ROWS
    assert rows_of(mended_table(written(("Title\n" + BODY).replace("\n", end), "b.csv"))) == ROWS


def mended_table(path: Path) -> Any:
    with pytest.raises(AnswersError) as caught:
        read_file(path)
    return read(path, **caught.value.fixes[0])


def test_three_rows_of_names_by_a_questionnaire(written: Callable[..., Path]) -> None:
    text = (
        "worker,Q1,Q2\n"
        'Response ID,"How tall is\nthe tree?",How old is it?\n'
        '"{""ImportId"":""_recordId""}","{""ImportId"":""QID1""}","{""ImportId"":""QID2""}"\n'
        "R_1,10,100\nR_2,12,\n"
    )
    path = written(text)
    assert rows_of(read_file(path, wide="workers")) == [
        ("Q1", "R_1", 10.0), ("Q2", "R_1", 100.0), ("Q1", "R_2", 12.0),
    ]  # fmt: skip
    assert "row 2 is line 7" in message_of(written(text + "R_3,x,5\n"), wide="workers")


def test_latin_1(written: Callable[..., Path]) -> None:
    path = written(BODY.replace("ann", "André").encode("latin-1"))
    assert mended(path)[0] == ("q1", "André", 1.5)


def workbook(path: Path, **sheets: list[list[Any]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_sheets_and_titles_in_a_workbook(tmp_path: Path) -> None:
    cells: list[list[Any]] = [line.split(",") for line in BODY.split()]
    cells[1:] = [[*row[:2], float(row[2])] for row in cells[1:]]
    one = workbook(tmp_path / "one.xlsx", answers=cells, empty=[])
    assert rows_of(read_file(one)) == ROWS
    two = workbook(tmp_path / "two.xlsx", notes=[["about"], ["this"]], answers=cells)
    message = message_of(two)
    assert 'holds 2 sheets, "notes", "answers". Pass the one with the answers' in message
    assert rows_of(read_file(two, sheet="answers")) == ROWS
    assert 'sheet: there is no sheet "Answers", only "notes", "answers".' in message_of(
        two, sheet="Answers"
    )
    titled = workbook(tmp_path / "t.xlsx", s=[["My study"], [], *cells])
    assert "Row 3 seems to: pass skip_lines=2." in message_of(titled)
    assert mended(titled) == ROWS


def test_units_in_a_sheet_and_in_json(tmp_path: Path, written: Callable[..., Path]) -> None:
    cells: list[list[Any]] = [["question", "worker", "answer"], ["a", "u", "5 cm"], ["a", "v", 6]]
    path = workbook(tmp_path / "a.xlsx", s=cells)
    assert mended(path) == [("a", "u", 5.0), ("a", "v", 6.0)]
    lines = '{"question": "a", "worker": "u", "answer": "5 cm"}\n{"question": "a", "worker": "v", "answer": 6}\n'
    assert mended(written(lines, "a.jsonl")) == [("a", "u", 5.0), ("a", "v", 6.0)]


def test_wide_tables_have_one_unit_and_set_cells_aside(written: Callable[..., Path]) -> None:
    path = written("question,ann,bob\nx,5 cm,7 in\ny,6 cm,8 in\n")
    assert "holds several units" in message_of(path, strip_units=True, wide=True)
    assert mended(written("question,ann,bob\nx,5 cm,7\ny,6 cm,8 cm\n"))[0] == ("x", "ann", 5.0)
    path = written("question,ann,bob\nx,5,oops\ny,6,8\n")
    table = read(path, wide=True, skip_bad=True)
    assert rows_of(table) == [("x", "ann", 5.0), ("y", "ann", 6.0), ("y", "bob", 8.0)]
    assert [tuple(each) for each in table.rejects.rows] == [
        (0, "line 2", "x", "bob", "oops", "text")
    ]


def test_rejects_name_their_lines(written: Callable[..., Path]) -> None:
    path = written(BODY + '\n"q\n3",ann,oops\nq3,bob,4\nq3,,5\n')
    table = read(path, skip_bad=True)
    assert [(each.row, each.place, each.why) for each in table.rejects.rows] == [
        (3, "line 6", "text"), (5, "line 9", "no worker"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"skip_lines": -1}, "skip_lines: found -1"),
        ({"skip_lines": "2"}, 'skip_lines: found "2"'),
        ({"sheet": 2}, "sheet: found 2"),
        ({"sheet": "a"}, "sheet: is for Excel, and this is text."),
    ],
)
def test_options_are_checked(
    written: Callable[..., Path], options: dict[str, Any], says: str
) -> None:
    assert says in message_of(written(BODY), **options)
