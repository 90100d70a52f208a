"""Several files take their names together; what dead runs have left is finished or removed, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import trueup
from processes import begin
from trueup.io.atomic import atomic_write
from trueup.io.leftovers import own_path, prefix, remove_dead
from trueup.io.output_set import finish_interrupted, output_set


def write_two(first: str, second: str) -> None:
    """Write a new text to two files."""
    paths = [Path(first), Path(second)]
    with output_set(paths) as names:
        for path in paths:
            names[path].write_text("new")


def dead_process() -> int:
    """Return the number of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


@pytest.mark.parametrize("folder", [".", "other"])
def test_killed_at_any_step_the_next_run_finishes_all_or_undoes_all(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    paths = [Path("a.csv"), Path(folder, "b.csv")]
    seen, moment, code = set(), 0, -signal.SIGKILL
    while code != 0:
        moment += 1
        for path in paths:
            path.write_text("old")
        code = begin(write_two, *map(str, paths), killed_at=moment).end().code
        assert code in (0, -signal.SIGKILL)
        between = [path.read_text() for path in paths]
        # Whichever folder the next run writes to.
        finish_interrupted(paths[moment % 2].absolute().parent)
        after = [path.read_text() for path in paths]
        assert after in (["old", "old"], ["new", "new"])
        assert after == ["new", "new"] or between == ["old", "old"]
        seen.add((*between, *after))
        for path in paths:
            finish_interrupted(path.absolute().parent)
        assert [path.read_text() for path in paths] == after
        left = {path.name for path in tmp_path.rglob("*")}
        assert left == {"a.csv", "b.csv", "other"}
    assert ("old", "old", "old", "old") in seen
    assert ("old", "old", "new", "new") in seen
    assert ("new", "old", "new", "new") in seen


def test_what_somebody_changed_since_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    moment = 0
    while True:
        moment += 1
        for name in ("a.csv", "b.csv"):
            Path(name).write_text("old")
        assert begin(write_two, "a.csv", "b.csv", killed_at=moment).end().code != 0
        if Path("a.csv").read_text() == "new":
            break
    Path("b.csv").write_text("mine")
    finish_interrupted(tmp_path)
    assert [Path(name).read_text() for name in ("a.csv", "b.csv")] == ["new", "mine"]
    assert len(list(tmp_path.iterdir())) == 2


def test_only_leftovers_of_dead_processes_are_removed(tmp_path: Path) -> None:
    begin_ = f".{prefix()}"
    dead = begin_.replace(f"-{os.getpid()}-", f"-{dead_process()}-")
    machine = prefix().split("-")[1]
    stay = [
        own_path(tmp_path).name,  # this process is alive
        f"{begin_.replace(f'-{os.getpid()}-', '-1-')}ab.tmp",  # so is this one
        f"{dead.replace(machine, '0' * 8)}ab.tmp",  # of another machine
        f"{dead}ab.csv",
        f"{dead[1:]}AB C",
        ".trueup-notes.tmp",
        "trueup-mine",
    ]
    for name in stay:
        (tmp_path / name).write_text("x")
    (tmp_path / f"{dead}link.tmp").symlink_to(tmp_path / "trueup-mine")
    for name in (f"{dead}0a.tmp", f"{dead[1:]}x_1"):
        (tmp_path / name).write_text("x")
    work = tmp_path / f"{dead[1:]}folder"
    (work / "answers").mkdir(parents=True)
    remove_dead(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {*stay, f"{dead}link.tmp"}


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_a_file_that_is_replaced_keeps_its_permissions(mode: int, tmp_path: Path) -> None:
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    for path in (first, second):
        path.write_text("old")
        path.chmod(mode)
    with atomic_write(first) as name:
        name.write_text("new")
        assert name.stat().st_mode & 0o77 == 0  # nobody else reads it while it is written
    with output_set([second]) as names:
        names[second].write_text("new")
    for path in (first, second):
        assert (path.stat().st_mode & 0o777, path.read_text()) == (mode, "new")


def test_a_set_that_fails_leaves_all_as_it_was(tmp_path: Path) -> None:
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    paths[0].write_text("old")
    with pytest.raises(KeyboardInterrupt), output_set(paths) as names:  # noqa: PT012
        names[paths[0]].write_text("new")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == [paths[0]]
    assert paths[0].read_text() == "old"


@pytest.mark.parametrize("name", ["save", "report"])
def test_a_name_that_no_file_can_have_is_refused(name: str) -> None:
    est = trueup.estimate([[1.0, 2.0, 4.0], [2.0, 2.0, 5.0]])
    with pytest.raises(trueup.TrueupError, match=r"x.*cannot be written"):
        getattr(est, name)("x\0.trueup" if name == "save" else "x\0.html")
