"""The commands on files of answers: what they print, and how they refuse.

With TRUEUP_SNAPSHOTS=write the texts in tests/snapshots are renewed.
"""

from __future__ import annotations

import csv
import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import trueup
from commands import (
    N_QUESTIONS,
    ON_FILES,
    WORKERS,
    estimates,
    expected,
    files,
    need_cli,
    printed,
    refusal,
    rows,
    table,
    truth_of,
    truths,
    write,
)
from repository import TESTS
from trueup.errors import counted

need_cli()

SNAPSHOTS = TESTS / "snapshots"
RENEW = os.environ.get("TRUEUP_SNAPSHOTS") == "write"
COMMANDS = ("estimate", "compare", "diagnose", "doctor", "simulate", "datasets", "study", "demo")

pytestmark = pytest.mark.usefixtures("folder_of_answers")


# -- help and usage --------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str) -> None:
    text = printed(command, "--help")
    assert f"Example: trueup {command}" in text


@pytest.mark.parametrize("command", COMMANDS)
def test_a_base_installation_says_what_every_command_needs(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cyclopts", None)
    if command == "demo":
        assert "12 questions" in printed("demo")
    else:
        assert 'pip install "trueup[cli]"' in refusal(command, "answers.csv", "--sep", ";")


@pytest.mark.parametrize(
    ("line", "about"),
    [
        ("compare", "FILE"),
        ("diagnose", "FILE"),
        ("doctor", "FILE"),
        ("doctor answers.csv more.csv", "more.csv"),
        ("estimate answers.csv --wide sideways", "--wide"),
        ("estimate answers.csv --decimal ;", "--decimal"),
        ("estimate answers.csv --format xml", "--format"),
        ("estimate answers.csv --caution much", "--caution"),
        ("estimate answers.csv --seed x", "--seed"),
        ("estimate answers.csv --seed 1.5", "--seed"),
        ("compare answers.csv --seed 2.0", "--seed"),
        ("diagnose answers.csv --resamples 10.5", "--resamples"),
        ("simulate -o s.csv --workers 3.7", "--workers"),
        ("study paper --samples 2.5", "--samples"),
        ("estimate answers.csv --gold", "--gold"),
        ("estimate answers.csv --no-bias", "--no-bias"),
        ("compare answers.csv --format table", "--format"),
        ("diagnose answers.csv --resamples some", "--resamples"),
        ("doctor answers.csv --out x.csv", "--out"),
    ],
)
def test_usage_errors_name_the_culprit(line: str, about: str) -> None:
    assert about in refusal(*line.split(), code=2)


@pytest.mark.parametrize(
    ("line", "about"),
    [
        ("estimate answers.csv --method crj", '"crj" is not known. Did you mean "crh"?'),
        ("estimate answers.csv --shrink most", '--shrink: "most" is not known. Known:'),
        (
            "estimate answers.csv --caution 0",
            "caution: found 0.0, must be a number from 1e-60 to 1",
        ),
        ("estimate answers.csv --level 95", "level: found 95.0, must be a number between 0 and 1"),
        ("estimate answers.csv --seed -1", "seed: found -1"),
        ("estimate answers.csv --variance -1", "variance: found -1, must be 0 or from"),
        ("estimate answers.csv --bounds 5 1", "low below high"),
        ("estimate answers.csv --sep ab", "sep: found"),
        ("estimate answers.csv --encoding klingon", "encoding: found"),
        ("estimate answers.csv --groups knd", 'File "answers.csv": Column "knd": not found'),
        ("estimate answers.csv --groups grups.csv", 'File "grups.csv": not found'),
        ("estimate answers.csv --covariates kind", 'has the "kind" "low", which is not a usable'),
        ("estimate answers.csv --covariates sizes", "Did you mean --covariates size?"),
        ("estimate answers.csv --gold tru.csv", 'Did you mean "truth.csv"'),
        ("estimate answers.csv --truth tru.csv", '--truth: File "tru.csv": not found'),
        ("estimate answers.csv --report page.pdf", "must end in .html or .htm"),
        ("estimate answers.csv --report no/page.html", "there is no folder"),
        ("estimate answers.csv --question task", 'Column "task": not found'),
        ("estimate anwsers.csv", 'File "anwsers.csv": not found. Did you mean "answers.csv"?'),
        ("estimate none/*.csv", "no file matches this pattern"),
        ("compare answers.csv --method crj", '"crj" is not known'),
        ("compare answers.csv -o board.txt", "must end in .csv or .parquet or .json"),
        (
            "diagnose answers.csv --target-se 0",
            "--target-se: found 0.0, must be a number from 1e-60 to 1e+60",
        ),
        ("diagnose answers.csv --target-se nan", "--target-se: found nan"),
        ("diagnose answers.csv --resamples -1", "--resamples: found -1, must be 2 or more"),
        ("diagnose answers.csv --workers w.xls", "--workers"),
        ("doctor none.csv", 'File "none.csv": not found'),
        ("doctor .", "is a folder. Name one file in it"),
    ],
)
def test_errors_name_the_argument_and_the_remedy(line: str, about: str) -> None:
    before = files()
    assert about in refusal(*line.split())
    assert files() == before


def test_a_bad_value_is_named_by_file_column_and_line() -> None:
    bad = rows()
    bad[3]["answer"] = "tall"
    write("answers.csv", bad)
    for command in ON_FILES:
        line = (
            printed(command, "answers.csv")
            if command == "doctor"
            else refusal(command, "answers.csv")
        )
        for part in ("answers.csv", '"answer"', '"tall"', "line 5"):
            assert part in line


# -- what is printed -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("demo", "demo"),
        ("doctor", "doctor answers.csv"),
        ("diagnose", "diagnose answers.csv --target-se 0.5 --resamples 50"),
        ("compare", "compare answers.csv --truth truth.csv"),
        ("estimate", "estimate answers.csv --truth truth.csv -o out.csv --report page.html"),
        ("estimate-more", "estimate answers.csv --groups kind --covariates size --gold gold.csv"),
    ],
)
def test_the_output_is_as_it_was(name: str, line: str) -> None:
    write("gold.csv", truths(9))
    text = printed(*line.split())
    if name == "compare":
        # How long it took is the only thing that differs from time to time.
        text = re.sub(r" +\d+\.\d\d$", " SECONDS", text, flags=re.MULTILINE)
        text = re.sub(r" +seconds$", " seconds", text, flags=re.MULTILINE)
    path = SNAPSHOTS / f"{name}.txt"
    if RENEW:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), "TRUEUP_SNAPSHOTS=write renews it"
    assert "/tmp" not in text  # noqa: S108


def test_quiet_prints_nothing() -> None:
    for command in ON_FILES:
        assert printed(command, "answers.csv", "--quiet") == ""


# -- estimate: options -----------------------------------------------------------------------------


def test_json_is_what_the_library_finds() -> None:
    document = json.loads(
        printed("estimate", "answers.csv", "--format", "json", "--truth", "truth.csv")
    )
    est = trueup.estimate("answers.csv")
    assert document["read"] == {
        "rows": len(rows()),
        "dropped": 0,
        "merged": 0,
        "answers": len(rows()),
        "workers": len(WORKERS),
        "questions": N_QUESTIONS,
    }
    assert document["diagnosis"]["method"] == est.diagnosis.method
    assert document["level"] == 0.95
    for name in ("estimate", "lower", "upper", "std_error", "base"):
        assert [row[name] for row in document["questions"]] == getattr(est, name).tolist()
    assert [row["question"] for row in document["questions"]] == est.answers.question_ids.tolist()
    assert [row["worker"] for row in document["workers"]] == list(est.answers.worker_ids.tolist())
    true = np.array([truth_of(j) for j in range(N_QUESTIONS)])
    assert document["against_truth"] == {
        "known": N_QUESTIONS,
        "rmse": pytest.approx(np.sqrt(np.mean((est.estimate - true) ** 2))),
        "rmse_first_step": pytest.approx(np.sqrt(np.mean((est.base - true) ** 2))),
        "inside": pytest.approx(np.mean((est.lower <= true) & (true <= est.upper))),
        "inside_truth": pytest.approx(
            np.mean((est.truth_lower <= true) & (true <= est.truth_upper))
        ),
    }


@pytest.mark.parametrize(
    "content",
    ["x,u,1\n", "x,u,1\nx,v,1\ny,u,1\ny,v,1\n", "x,u,1\ny,v,2\nz,w,\n"],
    ids=["one answer", "all agree", "no overlap"],
)
def test_json_has_null_for_what_is_not_known(content: str) -> None:
    Path("few.csv").write_text(f"question,worker,answer\n{content}", encoding="utf-8")

    def refuse(text: str) -> None:
        pytest.fail(f"{text} is no JSON")

    for options in ([], ["--shrink", "none"], ["--bias", "on"]):
        text = printed("estimate", "few.csv", "--format", "json", *options)
        document = json.loads(text, parse_constant=refuse)
        assert all(isinstance(row["estimate"], float) for row in document["questions"])


def test_options_reach_the_library() -> None:
    assert estimates("answers.csv", "--method", "mean", "--bias", "on") == expected(
        method="mean", bias=True
    )
    assert estimates("answers.csv", "--bias", "off") == expected(bias=False)
    assert estimates("answers.csv", "--transform", "none") == expected(transform=None)
    assert estimates("answers.csv", "--caution", "0.3") == expected(caution=0.3)
    assert estimates("answers.csv", "--seed", "5") == expected(seed=5)
    assert estimates("answers.csv", "--variance", "0.5") == expected(variance=0.5)
    assert estimates("answers.csv", "--gold", "truth.csv") == expected(gold="truth.csv")


def test_groups_are_a_column_or_a_file() -> None:
    groups = {f"q{j + 1}": "low" if j < N_QUESTIONS // 2 else "high" for j in range(N_QUESTIONS)}
    write("groups.csv", [{"question": name, "group": each} for name, each in groups.items()])
    wanted = expected(method="median", groups=groups)
    options = ("answers.csv", "--method", "median", "--groups")
    assert estimates(*options, "kind") == wanted
    assert estimates(*options, "groups.csv") == wanted
    assert wanted != expected(method="median")
    assert "the mean of their group" in printed("estimate", *options, "kind")


def test_covariates_may_be_given_twice_as_columns_and_files() -> None:
    more = rows()
    for row in more:
        row["true"] = truth_of(int(row["question"][1:]) - 1)
    write("answers.csv", more)
    wanted = expected(covariates=["size", "true"])
    assert wanted != expected()
    assert estimates("answers.csv", "--covariates", "size", "--covariates", "true") == wanted
    write("known.csv", [{"question": each["question"], "true": each["truth"]} for each in truths()])
    assert estimates("answers.csv", "--covariates", "size", "--covariates", "known.csv") == wanted


def test_workers_who_err_together_are_named() -> None:
    draw = np.random.default_rng(1)
    matrix = draw.normal(size=40)[:, None] + draw.normal(size=(40, 8))
    matrix[:, 5] = matrix[:, 2] + draw.normal(size=40) / 10
    answers = [
        {"question": j, "worker": f"w{i}", "answer": matrix[j, i]}
        for j in range(40)
        for i in range(8)
    ]
    write("pair.csv", answers)
    text = printed("estimate", "pair.csv", "--method", "mean")
    assert "1 pair errs together (w2 and w5): intervals are too narrow" in text
    assert "trueup diagnose FILE shows them" in text
    for engine in ("memory", "disk"):
        files = ("-o", "t.parquet", "--workers", "w.csv")
        text = printed("estimate", "pair.csv", "--engine", engine, *files)
        assert "Workers who err together count as one: w2, w5" in text
        assert "Estimates and intervals count those named above as one." in text
        assert "too narrow" not in text
        with Path("w.csv").open(newline="") as file:
            flags = {row["worker"]: row["flag"] for row in csv.DictReader(file)}
        assert flags == {f"w{i}": "correlated errors" if i in (2, 5) else "" for i in range(8)}
    assert "too narrow" not in printed("estimate", "answers.csv")


def test_truths_are_compared_with_but_not_used() -> None:
    text = printed("estimate", "answers.csv", "--truth", "truth.csv")
    assert "Against 12 known truths: root mean squared error" in text
    assert "of them are inside their 95% interval for the truth, " in text
    text = printed("estimate", "answers.csv", "--truth", "truth.csv", "--target", "consensus")
    assert re.search(r"of them are inside their 95% interval$", text, re.MULTILINE)
    assert estimates("answers.csv", "--truth", "truth.csv") == expected()
    write("truth.csv", truths(1))
    assert "Against 1 known truth: " in printed("estimate", "answers.csv", "--truth", "truth.csv")


@pytest.mark.parametrize("option", ["--truth", "--gold"])
def test_truths_that_are_all_empty_are_refused(option: str) -> None:
    Path("truth.csv").write_text("question,truth\nq1,\n", encoding="utf-8")
    line = refusal("estimate", "answers.csv", option, "truth.csv")
    assert f"{option}: found no truth" in line


@pytest.mark.parametrize("count", [1, 7, 8])
def test_it_is_said_what_known_truths_show(count: int) -> None:
    write("gold.csv", truths(count))
    text = printed("estimate", "answers.csv", "--gold", "gold.csv")
    assert f"{counted(count, 'known truth')}: these workers " in text
    assert "10 more known truths would narrow the interval for the truth from ± " in text


def test_too_few_known_truths_are_said() -> None:
    write("gold.csv", truths(7))
    text = printed("estimate", "answers.csv", "--shrink", "morris", "--gold", "gold.csv")
    assert "7 known truths: at least 8 are needed" in text
    write("gold.csv", truths(8))
    assert "Compared with 8 known truths" in printed(
        "estimate", "answers.csv", "--shrink", "morris", "--gold", "gold.csv"
    )


# -- compare and diagnose --------------------------------------------------------------------------


def test_the_board_is_what_the_library_finds() -> None:
    found = trueup.compare("answers.csv", ["mean", "crh"], "truth.csv")
    methods = ("--method", "mean", "--method", "crh", "--truth", "truth.csv")
    board = json.loads(printed("compare", "answers.csv", *methods, "--format", "json"))
    for name in ("method", "shrink", "held_out", "behind", "risk"):
        column = list(found[name]) if isinstance(found, dict) else found[name].tolist()
        assert [row[name] for row in board] == column
    printed("compare", "answers.csv", *methods, "-o", "board.csv")
    assert [row["method"] for row in table("board.csv")] == [row["method"] for row in board]


def test_the_board_with_a_single_truth() -> None:
    write("truth.csv", truths(1))
    arguments = ("compare", "answers.csv", "--truth", "truth.csv", "--method", "mean")
    board = json.loads(printed(*arguments, "--format", "json"))
    assert {row["risk_se"] for row in board} == {None}
    text = printed(*arguments, "-o", "board.csv")
    assert "nan" not in text
    assert "1 of the others is " in text or "others" not in text
    assert {row["risk_se"] for row in table("board.csv")} == {""}


@pytest.mark.parametrize("content", ["", "x,u,1\n"], ids=["answers", "one answer"])
@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
def test_the_tables_of_a_diagnosis(content: str, ending: str) -> None:
    if content:
        Path("answers.csv").write_text(f"question,worker,answer\n{content}", encoding="utf-8")
    outputs = ("--workers", f"workers.{ending}", "--pairs", f"pairs.{ending}")
    text = printed("diagnose", "answers.csv", "--resamples", "0", *outputs)
    assert text.endswith(f"Written: workers.{ending}\nWritten: pairs.{ending}\n")
    if ending == "csv":
        assert len(table("workers.csv")) == (1 if content else len(WORKERS))
        assert Path("pairs.csv").read_text(encoding="utf-8").startswith("worker")
