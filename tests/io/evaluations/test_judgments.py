"""Judgments of TREC: a file per judge, no header, and what is no such file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import trueup
from input_files import message_of, rows_of
from trueup.io.readers.files import read_file

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("duckdb")

#: Ids that look like something else, and white space of any kind.
LINES = ("007 0 =doc-1 2", "007\tQ0\t<b>2</b>   -1", "  08 0 doc,3 0  ", "", "08 0 doc-1 1.5")
FOUND = {
    (("007", "=doc-1"), 2.0), (("007", "<b>2</b>"), -1.0), (("08", "doc,3"), 0.0), (("08", "doc-1"), 1.5),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the judgments of two judges, beside a file of something else."""
    (tmp_path / "gpt-4.1.txt").write_text("\n".join(LINES) + "\n")
    (tmp_path / "claude.qrels").write_text("\r\n".join(LINES))
    (tmp_path / "README.txt").write_text("What this is.")
    return tmp_path


def test_each_file_is_a_judge(folder: Path) -> None:
    for given in (folder, [folder / "gpt-4.1.txt", folder / "claude.qrels"]):
        rows: Any = rows_of(read_file(given))
        assert {(q, answer) for q, _, answer in rows} == FOUND
        assert {worker for _, worker, _ in rows} == {"gpt-4.1", "claude"}
    est = trueup.estimate(folder)
    assert list(est.questions.columns)[:2] == ["query", "document"]


def test_whole_numbers_are_numbers_and_folders_may_be_judges(tmp_path: Path) -> None:
    for judge in ("a", "b"):
        (tmp_path / judge).mkdir()
        (tmp_path / judge / "labels.txt").write_text("101 0 5 1\n102 0 6 2\n")
    rows: Any = rows_of(read_file(str(tmp_path / "*" / "labels.txt"), worker_from="folder"))
    assert {(q, worker) for q, worker, _ in rows} == {
        (q, worker) for q in ((101, 5), (102, 6)) for worker in "ab"
    }


def test_lines_that_are_cut_and_labels_that_are_none(folder: Path) -> None:
    path = folder / "gpt-4.1.txt"
    whole = "\n".join(LINES * 2) + "\n"
    path.write_text(whole + "08 0 doc-7")
    said = message_of(path)
    assert 'File "gpt-4.1.txt": line 11 is "08 0 doc-7"' in said
    assert "\n" not in said
    path.write_text(whole + "08 0 doc-7 relevant\n")
    said = message_of(path)
    assert "1 of 9 values is not a number" in said
    assert "line 11" in said


@pytest.mark.parametrize(
    "text",
    ["query 0 document label\n1 0 a 2\n", "1,0,a,2\n", "1 7 a 2\n", "1 0 a 2 x\n", "", "\xff\xfe"],
)
def test_other_tables_are_no_judgments(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(trueup.AnswersError) as error:
        trueup.estimate(path)
    assert "document" not in str(error.value) or "label" in str(error.value)


def test_a_table_that_is_asked_for_is_a_table(folder: Path) -> None:
    path = folder / "gpt-4.1.txt"
    several: tuple[dict[str, Any], ...] = (
        {"from_format": "table"},
        {"sep": " "},
        {"skip_lines": 1},
    )
    for options in several:
        assert "four values" not in message_of(path, **options)
        assert "query" not in message_of(path, **options)
