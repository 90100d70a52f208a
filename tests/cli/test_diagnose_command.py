"""What trueup diagnose hands out: a page, a document for machines, and the questions that need answers."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import trueup
from commands import files, need_cli, printed, refusal, rows, table, write

need_cli()

pytestmark = pytest.mark.usefixtures("folder_of_answers")

ODD = "<b>typing & error</b>"


def findings() -> None:
    """Answers with a copier, an absurd answer and questions with few answers."""
    answers = rows()
    answers[7]["answer"] = 4000.0
    copies = [{**row, "worker": "copier"} for row in answers if row["worker"] == "eve"]
    few = [
        {**answers[0], "question": ODD, "worker": who, "answer": 12.0 + i}
        for i, who in enumerate(("ann", "bob"))
    ]
    write("answers.csv", [*answers, *copies, *few])


def test_the_page_has_a_section_for_everything_found_and_works_offline() -> None:
    findings()
    text = printed("diagnose", "answers.csv", "--report", "page.html", "--seed", "2")
    assert text.endswith("Written: page.html\n")
    page = Path("page.html").read_text(encoding="utf-8")
    for title in (
        "Diagnosis of 7 workers and 13 questions",
        "Workers",
        "Suspicious answers",
        "Workers with correlated errors",
        "Questions that need answers",
        "Agreement",
    ):
        assert f">{title}</h" in page, title
    assert "default-src 'none'" in page
    assert "copier" in page
    assert ">4000<" in page.replace(",", "")
    assert ODD not in page
    assert ODD in unescape(page)
    assert "How to get this page again" in page


def test_the_document_has_keys_that_stay() -> None:
    findings()
    document = json.loads(printed("diagnose", "answers.csv", "--format", "json"))
    assert list(document) == [
        "trueup", "read", "method", "why", "warnings", "workers", "odd_answers", "pairs", "questions", "agreement",
        "second_step", "missing",
    ]  # fmt: skip
    assert document["read"]["workers"] == 7
    assert [row["worker"] for row in document["workers"]["rows"]][:2] == ["bob", "cat"]
    assert document["odd_answers"]["rows"][0]["answer"] == 4000.0
    assert {"eve", "copier"} <= {row["worker"] for row in document["pairs"]["rows"]} | {
        row["other"] for row in document["pairs"]["rows"]
    }
    assert set(document["questions"]["rows"][0]) == {
        "question", "std_error", "n_answers", "more_answers", "gain", "std_error_after_one",
    }  # fmt: skip
    names = [each["name"] for each in document["agreement"]["coefficients"]]
    assert names[0] == "ICC(1)"
    assert document["second_step"]["helps"] in (True, False)


def test_a_document_of_answers_that_tell_little_says_what_is_missing() -> None:
    write("answers.csv", [{"question": "a", "worker": "x", "answer": 1.0}])
    document = json.loads(printed("diagnose", "answers.csv", "--format", "json"))
    assert document["agreement"] is None
    assert any(text.startswith("agreement: ") for text in document["missing"])
    printed("diagnose", "answers.csv", "--report", "page.html")
    assert "Not known" in Path("page.html").read_text(encoding="utf-8")


def needs(*arguments: str) -> list[dict[str, Any]]:
    printed("diagnose", "answers.csv", "--questions", "needs.csv", "--target-se", *arguments)
    return table("needs.csv")


def test_questions_come_by_need() -> None:
    findings()
    found = needs("0.7")
    more = [int(row["more_answers"]) for row in found]
    assert more == sorted(more, reverse=True)
    assert more[0] > 0
    expected = trueup.diagnose_all("answers.csv", target_se=0.7).answers_needed
    assert expected is not None
    assert sum(more) == expected.total
    assert len(found) == 13


def test_questions_that_never_reach_the_target_come_last_without_a_number() -> None:
    findings()
    found = needs("1e-9")
    more = [row["more_answers"] for row in found]
    assert "" in more
    numbers = more[: more.index("")]
    assert set(more[len(numbers) :]) == {""}
    assert all(number.isdigit() for number in numbers)


def test_names_of_outputs_are_checked_first() -> None:
    before = files()
    assert "--report" in refusal("diagnose", "answers.csv", "--report", "page.pdf")
    assert "--questions" in refusal("diagnose", "answers.csv", "--questions", "needs.txt")
    assert files() == before
