"""Files that commands write: what may be replaced, what is refused, and what a command that is ended leaves."""

from __future__ import annotations

import csv
import gzip
import os
import signal
import time
from pathlib import Path

import pytest

import trueup
from commands import files, need_cli, opened, printed, refusal, rows, write
from processes import begin_command, started
from trueup import disk
from trueup.io.readers import streams

need_cli()

pytestmark = pytest.mark.usefixtures("folder_of_answers")

PAGES = {
    "estimate": ("estimate", "answers.csv", "--report", "page.html"),
    "diagnose": ("diagnose", "answers.csv", "--resamples", "0", "--report", "page.html"),
    "rank": ("rank", "scores.csv", "--by", "model", "--report", "page.html"),
    "update": (
        "update",
        "a.trueup",
        "more.csv",
        "--duplicates",
        "replace",
        "--report",
        "page.html",
    ),
}
FOREIGN = "<!DOCTYPE html><html><p>mine</p></html>"


@pytest.fixture
def inputs(folder_of_answers: Path) -> None:  # noqa: ARG001  they are written into it
    """Write scores of two systems, a state, and more answers."""
    systems = ((row, model) for row in rows() for model in ("a", "b"))
    write(
        "scores.csv",
        [
            {**row, "model": model, "answer": row["answer"] + (model == "b")}
            for row, model in systems
        ],
    )
    write("more.csv", [{"question": "q1", "worker": "ann", "answer": 11}])
    printed("estimate", "answers.csv", "--save", "a.trueup")


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize("command", PAGES)
def test_a_report_replaces_a_report_of_ours_and_no_other_file(command: str) -> None:
    line = PAGES[command]
    for _ in range(2):
        printed(*line)
    Path("page.html").write_text(FOREIGN, encoding="utf-8")
    said = refusal(*line)
    assert '--report: "page.html" is there already and is no report of trueup' in said
    assert "--force" in said
    assert Path("page.html").read_text(encoding="utf-8") == FOREIGN
    printed(*line, "--force")
    assert "Made by trueup" in Path("page.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("inputs")
def test_a_state_replaces_a_state_and_no_other_file() -> None:
    for line, option in (
        (("estimate", "answers.csv", "--save", "b.trueup"), "--save"),
        (
            (
                "update",
                "a.trueup",
                "more.csv",
                "--duplicates",
                "replace",
                "--state-out",
                "b.trueup",
            ),
            "--state-out",
        ),
    ):
        for _ in range(2):
            printed(*line)
        Path("b.trueup").write_text("mine", encoding="utf-8")
        assert f'{option}: "b.trueup" is there already and is no state of trueup' in refusal(*line)
        assert Path("b.trueup").read_text(encoding="utf-8") == "mine"
        printed(*line, "--force")
        assert Path("b.trueup").read_bytes().startswith(b"PK")


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize(
    "line",
    [
        ("estimate", "answers.csv", "--workers", "other.csv", "-o", "linked.csv"),
        ("compare", "answers.csv", "-o", "linked.csv"),
        ("diagnose", "answers.csv", "-o", "linked.csv"),
        ("rank", "scores.csv", "--by", "model", "-o", "linked.csv"),
        ("update", "a.trueup", "answers.csv", "--duplicates", "replace", "-o", "linked.csv"),
    ],
    ids=lambda line: line[0],
)
def test_a_hard_link_to_what_is_read_is_not_written(line: tuple[str, ...]) -> None:
    source = "scores.csv" if line[0] == "rank" else "answers.csv"
    Path("linked.csv").hardlink_to(source)
    before = Path(source).read_bytes()
    assert '"linked.csv" is used already' in refusal(*line)
    assert Path(source).read_bytes() == before


def test_no_file_is_written_twice() -> None:
    Path("old.csv").write_text("old", encoding="utf-8")
    Path("same.csv").hardlink_to("old.csv")
    Path("link.html").symlink_to("old.csv")
    for others in (("--workers", "old.csv"), ("--workers", "same.csv"), ("--report", "link.html")):
        line = ("estimate", "answers.csv", "-o", "old.csv", *others)
        assert f'{others[0]}: "{others[1]}" is used already' in refusal(*line)
    twice = refusal("simulate", "-o", "old.csv", "--truth-out", "./old.csv")
    assert '--truth-out: "old.csv" is used already' in twice
    assert Path("old.csv").read_text(encoding="utf-8") == "old"


def test_private_files_stay_private() -> None:
    line = ("estimate", "answers.csv", "-o", "o.csv", "--report", "p.html", "--save", "s.trueup")
    printed(*line)
    for name in ("o.csv", "p.html", "s.trueup"):
        Path(name).chmod(0o600)
    printed(*line)
    assert {Path(name).stat().st_mode & 0o777 for name in ("o.csv", "p.html", "s.trueup")} == {
        0o600
    }


def test_every_file_that_is_replaced_keeps_mode_and_owner() -> None:
    lines = [
        "simulate -o many.csv --truth-out truth.parquet --questions 9 --workers 5",
        "simulate -o many.parquet --questions 9 --workers 5",
        "estimate many.parquet --engine disk -o o.parquet --workers w.json --report r.html --answers x.csv",
        "compare many.csv -o c.json",
        "diagnose many.csv -o d.csv --report f.html --resamples 0",
    ]
    before = files()
    for line in lines:
        printed(*line.split())
    est = trueup.estimate("many.csv")
    est.report("page.html")
    est.save("state.trueup")
    outputs = sorted(files() - before)
    assert len(outputs) == 12
    for name in outputs:
        Path(name).chmod(0o640)
        if os.geteuid() == 0:
            os.chown(name, 1234, 4321)
    numbers = {(Path(name).stat().st_uid, Path(name).stat().st_gid) for name in outputs}
    for name in outputs:
        os.utime(name, (0, 0))
    for line in lines:
        printed(*line.split())
    est.report("page.html")
    est.save("state.trueup")
    after = [Path(name).stat() for name in outputs]
    assert all(each.st_mtime > 0 for each in after)  # all of them are new
    assert {each.st_mode & 0o777 for each in after} == {0o640}
    assert {(each.st_uid, each.st_gid) for each in after} == numbers


def test_a_hard_link_to_what_is_read_on_disk_is_not_written() -> None:
    printed("simulate", "-o", "many.parquet", "--questions", "9", "--workers", "5")
    Path("linked.parquet").hardlink_to("many.parquet")
    line = ("estimate", "many.parquet", "--engine", "disk", "-o", "linked.parquet")
    assert '"linked.parquet" is used already' in refusal(*line)
    with pytest.raises(trueup.TrueupError, match="is used already"):
        disk.estimate("many.parquet", "linked.parquet")


def test_a_pipe_that_nobody_writes_to_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "PATIENCE", 0.2)
    os.mkfifo("pipe.csv")
    for line in (("estimate", "pipe.csv"), ("estimate", "answers.csv", "--gold", "pipe.csv")):
        said = refusal(*line)
        assert "is a pipe, and nothing has opened it for writing within 0.2 seconds" in said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_that_is_ended_leaves_nothing(number: int) -> None:
    os.mkfifo("pipe.csv")
    before = files()
    running = begin_command("estimate", "pipe.csv", "-o", "out.csv", TMPDIR=str(Path.cwd()))
    with opened(Path("pipe.csv"), running.is_over) as file:
        file.write("question,worker,answer\n1,2,3\n")
        file.flush()
        time.sleep(0.3)  # it has begun to copy
        assert len(files()) > len(before)
        os.kill(running.process.pid, number)
        word = "interrupted" if number == signal.SIGINT else "ended on request"
        assert running.end() == (128 + number, "", f"trueup: {word}\n")
    assert files() == before


#: Commands with all files that they write.
ALL = {
    "estimate": "estimate answers.csv --method mean -o x.csv --workers y.parquet --answers z.json --report r.html "
    "--save s.trueup",
    "rank": "rank scores.csv --by model -o x.csv --differences y.parquet --judges-out z.json --report r.html",
    "update": "update a.trueup more.csv --duplicates replace -o x.csv --workers y.csv --state-out s.trueup",
    "on disk": "estimate answers.csv --engine disk --method mean -o x.parquet --workers y.csv --work-dir work",
    "packed": "estimate packed.csv.gz --method mean -o x.csv --workers y.csv",
    "sheet": "estimate sheet.xlsx --method mean -o x.csv --workers y.csv",
    "text": "estimate latin.csv --encoding latin-1 --method mean -o x.csv --workers y.csv",
}


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize("command", ALL)
def test_outputs_of_a_run_that_is_killed_are_all_old_or_all_new(command: str) -> None:
    line = ALL[command].split()
    text = Path("answers.csv").read_text(encoding="utf-8").replace("ann", "änn")
    Path("latin.csv").write_text(text, encoding="latin-1")
    Path("packed.csv.gz").write_bytes(gzip.compress(text.encode()))
    if command == "sheet":
        book = pytest.importorskip("openpyxl").Workbook()
        for row in csv.reader(text.splitlines()):
            book.active.append(row)
        book.save("sheet.xlsx")
    here = str(Path.cwd())
    before = files()
    assert started(*line, TMPDIR=here).code == 0
    outputs = sorted(name for name in files() - before if Path(name).is_file())
    new = {name: Path(name).read_bytes() for name in outputs}
    old = {name: b"" if name.endswith(("trueup", "html")) else b"old" for name in outputs}
    states, moment, code = set(), 0, -signal.SIGKILL
    while code != 0:
        moment += 25 if command == "on disk" else 3
        for name, content in old.items():
            Path(name).write_bytes(content)
        code = started(*line, killed_at=moment, TMPDIR=here).code
        # Any run that writes here makes it whole.
        printed("simulate", "-o", "next.parquet", "--questions", "2", "--workers", "2")
        found = {name: Path(name).read_bytes() for name in outputs}
        assert found in (old, new)
        states.add(found == new)
    assert states == {True, False}
    # One on disk removes what is left of all others.
    more = "estimate next.parquet --engine disk -o last.parquet --method mean"
    assert started(*more.split(), TMPDIR=here).code == 0
    assert files() - {"work", "next.parquet", "last.parquet"} == before | set(outputs)
