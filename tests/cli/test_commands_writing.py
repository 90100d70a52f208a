"""The commands write all they were asked for or nothing, whatever becomes of the disk."""

from __future__ import annotations

import errno
import json
import os
import resource
import stat
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import trueup
from commands import SOURCE, expected, files, need_cli, one_line, printed, refusal, table, write

if TYPE_CHECKING:
    from collections.abc import Iterator

need_cli()

parquet = pytest.importorskip("pyarrow.parquet")

pytestmark = pytest.mark.usefixtures("folder_of_answers")


def test_the_report_and_the_tables_are_written() -> None:
    before = files()
    outputs = ("-o", "out.csv", "--workers", "workers.parquet", "--report", "page.html")
    text = printed("estimate", "answers.csv", *outputs, "--truth", "truth.csv")
    names = ["out.csv", "workers.parquet", "page.html"]
    assert text.endswith("".join(f"Written: {name}\n" for name in names))
    assert files() == before | set(names)
    assert [float(row["estimate"]) for row in table("out.csv")] == expected()
    assert parquet.read_table("workers.parquet").column("worker").to_pylist() == list(
        trueup.estimate("answers.csv").answers.worker_ids.tolist()
    )
    page = Path("page.html").read_text(encoding="utf-8")
    assert page.lower().startswith("<!doctype html>")
    assert "Comparison with known truths" in page


@pytest.mark.parametrize("broken", ["page.html", "workers.json", "out.csv"])
def test_all_is_written_or_nothing(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from trueup.cli import tables

    def full(_: object, path: Path) -> None:
        path.write_text("half", encoding="utf-8")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    if broken.endswith("html"):
        monkeypatch.setattr(tables, "_write_itself", full)
    else:
        monkeypatch.setitem(tables._WRITERS, Path(broken).suffix, full)
    Path("out.csv").write_text("old", encoding="utf-8")
    before = files()
    outputs = ("-o", "out.csv", "--workers", "workers.json", "--report", "page.html")
    line = refusal("estimate", "answers.csv", *outputs)
    assert f'File "{broken}": no space left on device. Make room' in line
    assert files() == before
    assert Path("out.csv").read_text(encoding="utf-8") == "old"


def test_what_fails_beside_the_tables_leaves_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are written while the summary is made."""

    def fails(*_: object) -> str:
        raise trueup.TrueupError("no summary today")

    monkeypatch.setattr("trueup.cli.summary.summary", fails)
    before = sorted(Path().iterdir())
    said = refusal("estimate", "answers.csv", "-o", "t.parquet", "--workers", "w.csv")
    assert "no summary today" in said
    assert sorted(Path().iterdir()) == before


def test_without_what_draws_charts_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("vl_convert", "altair"):
        monkeypatch.setitem(sys.modules, name, None)
    before = files()
    line = refusal("estimate", "answers.csv", "-o", "out.csv", "--report", "page.html")
    assert 'pip install "trueup[report]"' in line
    assert files() == before


@pytest.mark.parametrize("option", ["--truth", "--gold", "--groups", "--covariates"])
def test_no_file_that_is_read_is_overwritten(option: str) -> None:
    before = Path("truth.csv").read_bytes()
    line = refusal("estimate", "answers.csv", option, "truth.csv", "-o", "truth.csv")
    assert '--out: "truth.csv" is used already' in line
    assert Path("truth.csv").read_bytes() == before


def test_devices_and_pipes_are_not_replaced() -> None:
    os.mkfifo("pipe.csv")
    Path("full.csv").symlink_to("/dev/full")
    for name in ("pipe.csv", "full.csv"):
        assert "is no plain file" in refusal("estimate", "answers.csv", "-o", name)
    assert stat.S_ISFIFO(Path("pipe.csv").stat().st_mode)
    assert stat.S_ISCHR(Path("full.csv").stat().st_mode)


@contextmanager
def small_files(size: int) -> Iterator[None]:
    """Let no file grow beyond some bytes, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("name", ["out.csv", "out.parquet", "out.json", "page.html"])
def test_a_disk_that_is_full_leaves_no_half_file(name: str) -> None:
    Path(name).write_text("old", encoding="utf-8")
    before = files()
    option = "--report" if name.endswith("html") else "-o"
    arguments = ("estimate", "answers.csv", "--method", "mean", option, name)
    with small_files(512):
        line = refusal(*arguments, *(["--force"] if option == "--report" else []))
    assert f'File "{name}": file too large' in line
    assert files() == before
    assert Path(name).read_text(encoding="utf-8") == "old"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_output_that_cannot_be_printed_is_one_line() -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "trueup", "doctor", "answers.csv"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": SOURCE},
        )
    assert done.returncode == 1
    assert "o space left on device" in one_line(done.stderr)


# -- suspicious answers, title and unit ----------------------------------------------------------------


def with_a_slip() -> tuple[str, str]:
    """Write answers of which one is ten times too large; return its question and its worker."""
    import numpy as np

    rng = np.random.default_rng(3)
    height, error = rng.normal(172.0, 8.0, 20), rng.normal(0.0, 3.0, (20, 6))
    table_of = [
        {"question": f"q{j}", "worker": f"w{i}", "answer": round(height[j] + error[j, i])}
        for j in range(20)
        for i in range(6)
    ]
    table_of[50]["answer"] *= 10
    write("slip.csv", table_of)
    return table_of[50]["question"], table_of[50]["worker"]


def test_suspicious_answers_are_shown_and_written_by_every_command() -> None:
    question, worker = with_a_slip()
    line = f"question {question}, worker {worker}: "
    for command in ("doctor", "estimate", "diagnose"):
        text = printed(command, "slip.csv")
        assert "\nSuspicious answers\n" in text
        said = next(each for each in text.splitlines() if line in each)
        assert "; the other answers suggest about 1" in said
        assert said.endswith("A factor of 10 too large?")
    for command in ("estimate", "diagnose"):
        for name in ("suspects.csv", "suspects.json"):
            assert f"Written: {name}" in printed(command, "slip.csv", "--answers", name)
        (row,) = table("suspects.csv")
        assert (row["question"], row["worker"]) == (question, worker)
        assert float(row["answer"]) > 8 * float(row["expected"])
        assert [each["worker"] for each in json.loads(Path("suspects.json").read_text())] == [
            worker
        ]
    document = json.loads(printed("estimate", "slip.csv", "--format", "json"))
    assert [each["question"] for each in document["suspicious_answers"]] == [question]


def test_without_three_answers_to_a_question_the_file_of_suspicious_answers_is_empty() -> None:
    few = [{"question": j, "worker": i, "answer": i + j} for j in range(6) for i in range(2)]
    write("few.csv", few)
    assert "Suspicious answers" not in printed("doctor", "few.csv")
    for command in ("estimate", "diagnose"):
        text = printed(command, "few.csv", "--answers", "none.csv")
        assert "Written: none.csv" in text
        assert table("none.csv") == []
        assert Path("none.csv").read_text().startswith("question,worker,answer,expected")


def test_a_report_gets_title_and_unit() -> None:
    printed(
        "estimate", "answers.csv", "--report", "r.html", "--title", "Lengths <1>", "--unit", "cm"
    )
    html = Path("r.html").read_text("utf-8")
    assert "<h1>Lengths &lt;1&gt;</h1>" in html
    assert "Unit: cm." in html
    for name in ("--title", "--unit"):
        assert f"{name}: found " in refusal("estimate", "answers.csv", name, "cm")
