"""The commands write all they were asked for or nothing, whatever becomes of the disk."""

from __future__ import annotations

import errno
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
from commands import SOURCE, expected, files, need_cli, one_line, printed, refusal, table

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

    monkeypatch.setitem(tables._WRITERS, Path(broken).suffix, full)
    Path("out.csv").write_text("old", encoding="utf-8")
    before = files()
    outputs = ("-o", "out.csv", "--workers", "workers.json", "--report", "page.html")
    line = refusal("estimate", "answers.csv", *outputs)
    assert f'File "{broken}": no space left on device. Make room' in line
    assert files() == before
    assert Path("out.csv").read_text(encoding="utf-8") == "old"


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
        line = refusal(*arguments)
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
