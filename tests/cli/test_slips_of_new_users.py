"""What new users did in their first hour, and what they are told now."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import trueup
from commands import need_cli, printed, refusal, rows, run, write

need_cli()

pytestmark = pytest.mark.usefixtures("folder_of_answers")


def test_bounds_of_another_scale_are_refused() -> None:
    text = refusal("estimate", "answers.csv", "--bounds", "0", "1")
    assert "57 of 57 answers are outside the bounds 0 to 1" in text
    assert "Give bounds on the scale of the answers" in text


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_answers_outside_the_bounds_are_counted(engine: str) -> None:
    outside = sum(row["answer"] > 40 for row in rows())
    text = printed(
        "estimate", "answers.csv", "--bounds", "-100", "40", "--engine", engine, "-o", "out.parquet"
    )
    assert f"Warning: {outside} of 57 answers are outside the bounds -100 to 40" in text


def test_answers_inside_the_bounds_are_no_matter() -> None:
    assert "outside" not in printed("estimate", "answers.csv", "--bounds", "-100", "100")


@pytest.mark.parametrize(
    ("command", "advice"),
    [
        (("doctor", "a.csv", "b.csv"), "Put a pattern in quotes, as in 'answers/*.csv'"),
        (("estimate", "answers.csv", "--question", "a", "b"), "as in --question sample,model"),
        (("estimate", "answers.csv", "--bounds", "0-100"), "--bounds takes two numbers"),
        (("doctor",), "name a file, as in trueup doctor answers.csv"),
    ],
)
def test_a_command_that_is_written_in_another_way(command: tuple[str, ...], advice: str) -> None:
    assert advice in refusal(*command, code=2)


def test_a_keyword_that_is_spelled_otherwise() -> None:
    with pytest.raises(TypeError, match="Did you mean 'anonymous'"):
        trueup.estimate([[1.0, 2.0]], anonymus=True)  # type: ignore[call-arg]


def test_names_of_methods_with_a_hyphen() -> None:
    answers = [[1.0, 2.0, 4.0], [2.0, 3.0, 4.0], [1.5, 2.0, 5.0]]
    found = trueup.estimate(answers, "subject-bias")
    assert found.estimate.tolist() == trueup.estimate(answers, "subject_bias").estimate.tolist()


def test_a_column_of_words_does_not_compete_for_the_answers() -> None:
    table = [
        {"HITId": f"h{j}", "WorkerId": f"w{i}", "Answer.height": 150 + i + j, "Answer.note": "ok"}
        for i in range(4)
        for j in range(5)
    ]
    write("batch.csv", table)
    assert "20 answers from 4 workers to 5 questions" in printed("estimate", "batch.csv")


def test_who_gave_the_answers_that_were_set_aside() -> None:
    table = [dict(row) for row in rows()]
    for row in table[:3]:
        row["worker"], row["answer"] = "zoe-7731", "no idea"
    write("words.csv", table)
    text = printed("estimate", "words.csv", "--skip-bad", "--report", "page.html")
    assert '3 of 57 rows set aside: text (3); most often by "zoe-7731" (3)' in text
    assert "3 rows set aside" in Path("page.html").read_text(encoding="utf-8")
    hidden = ("--skip-bad", "--anonymous", "--rejects", "bad.csv", "--format", "json")
    done = run("estimate", "words.csv", *hidden)
    assert done.code == 0, done
    assert json.loads(done.out)
    assert "zoe-7731" not in done.out + Path("bad.csv").read_text(encoding="utf-8")
    with Path("bad.csv").open(newline="", encoding="utf-8") as file:
        assert [row["answer"] for row in csv.DictReader(file)] == ["no idea"] * 3


def test_workers_who_agree_no_better_than_chance() -> None:
    answers = np.random.default_rng(5).normal(size=(30, 3))
    answers -= answers.mean(axis=1, keepdims=True)  # all questions have the same mean
    table = [
        {"question": f"q{j}", "worker": f"w{i}", "answer": float(answers[j, i])}
        for j in range(30)
        for i in range(3)
    ]
    write("noise.csv", table)
    assert "Workers agree no better than chance" in printed("doctor", "noise.csv")
    assert "than chance" not in printed("doctor", "answers.csv")


def test_ratings_have_ends() -> None:
    table = [
        {"question": f"q{j}", "worker": f"w{i}", "answer": 1 + (i * j) % 5}
        for j in range(9)
        for i in range(6)
    ]
    write("ratings.csv", table)
    assert "--bounds 1 5 keeps estimates" in printed("doctor", "ratings.csv")
