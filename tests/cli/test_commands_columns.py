"""Commands on tables with other names of columns, several columns for a question, and shapes that are not clear."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from commands import ON_FILES, need_cli, printed, refusal, rows, run, table, write

need_cli()

pytestmark = pytest.mark.usefixtures("folder_of_answers")


def renamed(**names: str) -> list[dict[str, object]]:
    return [{names.get(key, key): value for key, value in row.items()} for row in rows()]


def test_names_people_use_are_recognised_and_kept() -> None:
    write("clips.csv", renamed(question="Clip", worker="Rater", answer="MOS"))
    out = printed("estimate", "clips.csv", "-o", "out.csv", "--workers", "who.csv")
    assert re.search(r"^  Clip +estimate", out, re.MULTILINE)
    assert next(iter(table("out.csv")[0])) == "Clip"
    assert next(iter(table("who.csv")[0])) == "Rater"
    plain = json.loads(printed("estimate", "answers.csv", "--format", "json"))["questions"]
    found = json.loads(printed("estimate", "clips.csv", "--format", "json"))["questions"]
    assert [row["estimate"] for row in found] == [row["estimate"] for row in plain]
    assert [row["Clip"] for row in found] == [row["question"] for row in plain]
    printed("estimate", "clips.csv", "--engine", "disk", "-o", "disk.parquet")


@pytest.mark.parametrize("command", [name for name in ON_FILES if name != "doctor"])
def test_the_advice_of_an_error_can_be_pasted(command: str) -> None:
    write("films.csv", renamed(question="film", worker="critic", answer="stars", size="mass"))
    text = refusal(command, "films.csv")
    asked = re.search(r"Did you mean (.*)\?", text)
    assert asked is not None
    assert asked[1] == "--question film --worker critic --answer stars"
    printed(command, "films.csv", *shlex.split(asked[1]))


def test_a_table_of_either_shape_is_refused_with_both_ways() -> None:
    lines = ["player,scout,mark", *(f"{p},{s},{(p * s) % 5}" for p in range(1, 5) for s in (7, 8))]
    Path("marks.csv").write_text("\n".join(lines) + "\n")
    text = refusal("estimate", "marks.csv")
    ways = re.findall(r"\(pass ([^)]*)\)", text)
    assert ways == ["--question player --worker scout --answer mark", "--wide questions"]
    assert "worker 7 answered 2 to question 1" in text
    for way in ways:
        assert run("estimate", "marks.csv", *shlex.split(way)).code == 0


def test_a_question_of_several_columns() -> None:
    write("answers.csv", [{**row, "model": m} for m in "ab" for row in rows()])
    asked = ("--question", "question,model", "--save", "s.trueup")
    out = printed("estimate", "answers.csv", *asked, "-o", "out.csv", "--report", "r.html")
    assert list(table("out.csv")[0])[:2] == ["question", "model"]
    assert "question, model" in out
    write("gold.csv", [{"question": "q1", "model": "a", "truth": 9.0}])
    printed("estimate", "answers.csv", *asked[:2], "--gold", "gold.csv", "--truth", "gold.csv")
    write("new.csv", [{"question": "q1", "model": "c", "worker": "ann", "answer": 3.0}])
    printed("update", "s.trueup", "new.csv", "-o", "after.csv")
    assert [row["model"] for row in table("after.csv") if row["question"] == "q1"] == [
        "a",
        "b",
        "c",
    ]
    text = refusal("estimate", "answers.csv", *asked[:2], "--engine", "disk", "-o", "o.parquet")
    assert "--question: found the columns" in text


def test_questions_that_nobody_answered_are_said() -> None:
    Path("wide.csv").write_text("film,ann,bob,cat\na,1,2,3\nb,,,\nc,4,4,5\n")
    out = printed("estimate", "wide.csv", "-o", "out.csv")
    assert 'Warning: 1 question without any answer, so that the estimate is unknown: "b"' in out
    assert [(row["film"], row["n_answers"]) for row in table("out.csv")][-1] == ("b", "0")
    assert table("out.csv")[-1]["estimate"] == ""
