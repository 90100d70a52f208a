"""Commands read what evaluations leave: recognised or named, with what was left out in every output."""

from __future__ import annotations

import csv
import json
import shlex
from typing import TYPE_CHECKING, Any

import pytest

import trueup
from commands import need_cli, printed, refusal, run
from evaluation_files import (
    HOSTILE,
    deepeval,
    hub,
    inspect_log,
    label_studio,
    write_archive,
    write_json,
)

if TYPE_CHECKING:
    from pathlib import Path

need_cli()

LEFT_OUT = {
    "no score": 3, "score is not a number": 1, "sample without scores": 1, "sample failed": 1,
    "sample was invalidated": 1, "scorer gave no score": 2,
}  # fmt: skip


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_archive(tmp_path / "log.eval", inspect_log(), zstd=True)


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize("command", ["estimate", "compare", "diagnose", "doctor"])
def test_commands_read_logs(command: str) -> None:
    text = printed(command, "log.eval")
    assert "12 answers from 3 workers to 5 questions" in text or command == "compare"
    named = printed(command, "log.eval", "--from", "inspect")
    shown = named.replace(" --from inspect", "") if command == "doctor" else named
    assert command == "compare" or shown == text


def test_what_is_left_out_is_told_everywhere(log: Path) -> None:
    told = "9 of 21 rows set aside: no score (3)"
    assert told in printed("estimate", "log.eval", "--report", "report.html")
    assert told in printed("doctor", "log.eval")
    page = (log.parent / "report.html").read_text("utf-8")
    assert "no score (3)" in page
    assert HOSTILE[1] not in page
    document = json.loads(printed("estimate", "log.eval", "--format", "json"))
    assert document["read"]["set_aside"] == LEFT_OUT
    assert document["read"]["rows"] == 21
    printed("estimate", "log.eval", "--rejects", "rejects.csv")
    with (log.parent / "rejects.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 9
    assert {row["why"] for row in rows} == set(LEFT_OUT)
    plain = write_json(
        log.parent / "plain.json", [{"question": 1, "worker": w, "answer": 1} for w in "abc"]
    )
    said = refusal("estimate", plain, "--rejects", "none.csv")
    assert "set aside only with --skip-bad" in said


def test_the_ids_come_back_in_columns_of_their_own(log: Path) -> None:
    printed("estimate", "log.eval", "-o", "truths.csv")
    with (log.parent / "truths.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [*rows[0]][:2] == ["item", "system"]
    # A spreadsheet would run a formula: it comes with a quote in front.
    assert {row["item"].lstrip("'") for row in rows} == {"1", "2", "s3", HOSTILE[0], HOSTILE[3]}


def test_where_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_json(tmp_path / "run.json", deepeval())
    metric = "Correctness [GEval]"
    text = printed(
        "doctor",
        "run.json",
        "--where",
        f"metric={metric}",
        "--where",
        "item=0",
        "--where",
        "item=1",
    )
    assert "4 answers from 2 workers to 2 questions" in text
    command = text.splitlines()[-1].strip()
    assert shlex.split(command)[:8] == [
        "trueup", "estimate", "run.json", "--where", f"metric={metric}", "--where", "item=0", "--where",
    ]  # fmt: skip
    assert run(*shlex.split(command)[1:]).code == 0
    said = refusal("estimate", "run.json", "--where", "metrik=x")
    assert '--where: Column "metrik": not found.' in said
    assert 'Did you mean "metric"?' in said
    said = refusal("estimate", "run.json", "--where", "metric=x")
    assert f'The values there are "{metric}", "Bias"' in said
    assert "--where: found" in refusal("estimate", "run.json", "--where", "metric")
    # A value that begins with a dash, and the call that is printed.
    est = trueup.estimate("run.json", where={"metric": "Bias"}, duplicates="mean")
    assert est.request.as_call().text == (
        "trueup.estimate('run.json', duplicates='mean', where=('metric=Bias',))"
    )
    again = trueup.load(est.save(tmp_path / "state.trueup"))
    assert again.request.read.where == ("metric=Bias",)


@pytest.mark.parametrize("engine", ["disk", "spark"])
@pytest.mark.parametrize("option", [("--where", "horizon=1"), ("--from", "hubverse")])
def test_other_engines_name_the_option(
    tmp_path: Path, engine: str, option: tuple[str, str]
) -> None:
    home = hub(tmp_path)
    said = refusal(
        "estimate",
        f"{home}/*/*.csv",
        *option,
        "--engine",
        engine,
        "-o",
        str(tmp_path / "o.parquet"),
    )
    assert (
        f"--engine {engine}: reads files with one answer per row, and does not take {option[0]}."
        in said
    )
    said = refusal("compare", f"{home}/*/*.csv", *option, "--engine", engine)
    assert option[0] in said


def test_updates_read_logs(log: Path) -> None:
    printed("estimate", "log.eval", "--save", "state.trueup", "--method", "mean")
    write_json(log.parent / "more.json", inspect_log(model="anthropic/opus"))
    text = printed("update", "state.trueup", "more.json", "--format", "json", "-o", "t.csv")
    questions: list[Any] = trueup.load(log.parent / "state.trueup").answers.question_ids.tolist()
    assert {system for _, system in questions} == {"openai/o3", "anthropic/opus"}
    assert text
    assert "were given before" in refusal("update", "state.trueup", "more.json")
    tasks = [{**task, "id": str(task["id"])} for task in label_studio()]
    write_json(log.parent / "tasks.json", tasks)
    said = refusal("update", "state.trueup", "tasks.json")
    assert 'were named by the columns "item", "system" before, and are by "item", "metric"' in said


def test_help_shows_the_options() -> None:
    text = printed("estimate", "--help")
    for word in ("--from", "--where", "label-studio", "hubverse"):
        assert word in text
