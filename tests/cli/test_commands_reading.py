"""The commands read answers in every form, and the files beside them."""

from __future__ import annotations

import io
import json
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

from commands import (
    N_QUESTIONS,
    ON_FILES,
    WORKERS,
    estimates,
    expected,
    need_cli,
    printed,
    refusal,
    rows,
    run,
    truth_of,
    truths,
    write,
)

need_cli()

pytestmark = pytest.mark.usefixtures("folder_of_answers")


def test_wide_tables() -> None:
    by_question: dict[str, dict[str, Any]] = {}
    by_worker: dict[str, dict[str, Any]] = {}
    for row in rows():
        by_question.setdefault(row["question"], {"question": row["question"]})[row["worker"]] = row[
            "answer"
        ]
        by_worker.setdefault(row["worker"], {"worker": row["worker"]})[row["question"]] = row[
            "answer"
        ]
    wide = [
        {"question": name, **dict.fromkeys(WORKERS), **each} for name, each in by_question.items()
    ]
    write("wide.csv", wide)
    names = [f"q{j + 1}" for j in range(N_QUESTIONS)]
    write(
        "tall.csv",
        [{"worker": w, **dict.fromkeys(names), **by_worker[w]} for w in WORKERS],
    )
    wanted = pytest.approx(expected(), rel=1e-9)
    assert estimates("answers.csv", "--wide", "long") == wanted
    assert estimates("wide.csv", "--wide", "questions") == wanted
    assert estimates("tall.csv", "--wide", "workers") == wanted
    assert 'Column "worker": not found' in refusal("estimate", "wide.csv", "--wide", "long")


def test_how_a_table_was_understood_is_said() -> None:
    Path("plain.csv").write_text("item,a,b\nx,1,2\ny,3,4\n", encoding="utf-8")
    assert "trueup estimate plain.csv --wide questions -o truths.csv" in printed(
        "doctor", "plain.csv"
    )
    assert "pass --wide questions" in refusal("estimate", "plain.csv")


def semicolons(name: str, **options: Any) -> None:
    german = [
        {
            **row,
            "answer": str(row["answer"]).replace(".", ","),
            "size": str(row["size"]).replace(".", ","),
        }
        for row in rows()
    ]
    write(name, german, delimiter=";", **options)


def test_semicolons_and_decimal_commas() -> None:
    semicolons("german.csv")
    how = ("--sep", ";", "--decimal", ",")
    assert estimates("german.csv", *how) == expected()
    assert "decimal comma" in refusal("estimate", "german.csv")
    wanted = expected(groups="kind", covariates="size")
    assert estimates("german.csv", *how, "--groups", "kind", "--covariates", "size") == wanted
    assert 'Column "knd"' in refusal("estimate", "german.csv", *how, "--groups", "knd")


def test_latin_1() -> None:
    old = [{**row, "worker": f"{row['worker']}é", "größe": row["size"]} for row in rows()]
    write("old.csv", old, encoding="latin-1")
    how = ("--encoding", "latin-1")
    assert estimates("old.csv", *how) == pytest.approx(expected(), rel=1e-9)
    assert estimates("old.csv", *how, "--covariates", "größe") == pytest.approx(
        expected(covariates="size"), rel=1e-9
    )
    assert "--encoding latin-1 -o truths.csv" in printed("doctor", "old.csv")
    line = refusal("compare", "old.csv")
    assert "is not UTF-8 text" in line
    assert "latin-1" in line


GERMAN = ("--sep", ";", "--decimal", ",", "--encoding", "latin-1")


OPTIONS = ("--truth", "--gold", "--groups", "--covariates")


@pytest.mark.parametrize(
    ("option", "plain"),
    [
        ("--truth", "plain.csv"),
        ("--gold", "list.json"),
        ("--groups", "lines.jsonl"),
        ("--covariates", "plain.csv"),
    ],
)
def test_files_beside_the_answers_are_read_like_them_or_plainly(option: str, plain: str) -> None:
    named = [{**row, "question": f"{row['question']}é"} for row in rows()]
    write("answers.csv", named)
    column = {"--groups": "kind", "--covariates": "size"}.get(option, "truth")
    value = {row["question"]: row.get(column) for row in named}
    beside: list[dict[str, Any]] = [
        {"question": question, column: truth_of(j) if column == "truth" else value[question]}
        for j, question in enumerate(value)
    ]
    german = [{key: str(cell).replace(".", ",") for key, cell in row.items()} for row in beside]
    answers = [{**row, "answer": str(row["answer"]).replace(".", ",")} for row in named]
    write("german.csv", answers, delimiter=";", encoding="latin-1")
    write("like.csv", german, delimiter=";", encoding="latin-1")
    write("plain.csv", beside)
    Path("list.json").write_text(json.dumps(beside), encoding="utf-8")
    lines = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in beside)
    Path("lines.jsonl").write_text(lines, encoding="utf-8")
    wanted = printed("estimate", "answers.csv", option, "plain.csv")
    for name in ("like.csv", plain):
        assert printed("estimate", "german.csv", *GERMAN, option, name) == wanted


@pytest.mark.parametrize("option", ["--gold", "--truth"])
def test_ids_that_are_nearly_those_of_questions_are_told(option: str) -> None:
    Path("nearly.csv").write_text("question,truth\nq1,1.5\nQ2,1\n", encoding="utf-8")
    done = run("estimate", "answers.csv", option, "nearly.csv")
    assert done.code == 0
    assert (
        f'trueup: {option}: 1 id is of no question, though one has nearly the same: "Q2"'
        in done.err
    )


def test_how_a_file_beside_the_answers_was_read_is_said() -> None:
    semicolons("german.csv")
    Path("like.csv").write_text("question;truth\nq1;1,5\nq2;tall\n", encoding="utf-8")
    Path("plain.csv").write_text("question,truth\nq1,1.5\nq2,tall\n", encoding="utf-8")
    how = ("--sep", ";", "--decimal", ",", "--truth")
    line = refusal("estimate", "german.csv", *how, "like.csv")
    assert '"tall"' in line
    assert "It was read like the answers (--sep ';', --decimal ',')." in line
    line = refusal("estimate", "german.csv", *how, "plain.csv")
    assert '"tall"' in line
    assert "plainly, since it cannot be read like the answers (--sep ';', --decimal ',')." in line


def test_names_of_files_are_no_columns() -> None:
    for option, name in (
        *zip(OPTIONS, ("t.ndjson", "t.xlsx", "t.jsonl.gz", "t.pq"), strict=True),
        *((option, "t.json") for option in OPTIONS),
    ):
        line = refusal("estimate", "answers.csv", option, name)
        assert f'File "{name}": not found' in line


def test_sheets_beside_the_answers() -> None:
    openpyxl = pytest.importorskip("openpyxl", reason='needs pip install "trueup[excel]"')
    book = openpyxl.Workbook()
    for row in ({"question": "question", "truth": "truth"}, *truths()):
        book.active.append(list(row.values()))
    book.save("truth.xlsx")
    wanted = printed("estimate", "answers.csv", "--truth", "truth.csv")
    assert printed("estimate", "answers.csv", "--truth", "truth.xlsx") == wanted


def test_a_pattern_stands_for_files() -> None:
    Path("parts").mkdir()
    write("parts/1.csv", rows()[:30])
    write("parts/2.csv", rows()[30:])
    assert estimates("parts/*.csv") == expected()
    assert estimates("parts/*.csv", "--groups", "kind") == expected(groups="kind")
    assert "is used already" in refusal("estimate", "parts/*.csv", "-o", "parts/2.csv")


@pytest.mark.parametrize("command", ON_FILES)
def test_standard_input(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def typed() -> None:
        content = io.TextIOWrapper(io.BytesIO(Path("answers.csv").read_bytes()))
        monkeypatch.setattr(sys, "stdin", content)

    typed()
    text = printed(command, "-")
    assert "12 questions" in text or command == "compare"
    if command == "estimate":
        typed()
        assert estimates("-", "--groups", "kind") == expected(groups="kind")


def test_a_query() -> None:
    names = ("question", "worker", "answer", "kind", "size")
    with sqlite3.connect("data.sqlite") as connection:
        connection.execute('CREATE TABLE "a b" (question, worker, answer REAL, kind, size REAL)')
        connection.executemany(
            'INSERT INTO "a b" VALUES (?, ?, ?, ?, ?)',
            [tuple(row[name] for name in names) for row in rows()],
        )
    connection.close()
    before = Path("data.sqlite").read_bytes()
    query = ("--sql", 'SELECT * FROM "a b"')
    # Rows of a query have no order: questions come sorted.
    order = sorted(range(N_QUESTIONS), key=lambda j: f"q{j + 1}")

    def in_order(found: list[float]) -> Any:
        return pytest.approx([found[j] for j in order], rel=1e-9)

    assert estimates("data.sqlite", *query) == in_order(expected())
    more = ("--groups", "kind", "--covariates", "size")
    wanted = in_order(expected(groups="kind", covariates="size"))
    assert estimates("data.sqlite", *query, *more) == wanted
    assert '"a b"' in refusal("doctor", "data.sqlite")
    assert "no such table" in refusal("doctor", "data.sqlite", "--sql", "SELECT * FROM c")
    assert "Only reading" in refusal("doctor", "data.sqlite", "--sql", 'DROP TABLE "a b"')
    assert Path("data.sqlite").read_bytes() == before
