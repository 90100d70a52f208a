"""The command line: what a user starts in a process of its own, and options that need none."""

from __future__ import annotations

import csv
import errno
import gzip
import importlib.util
import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

import trueup
from commands import Done, environment, opened, run
from processes import begin, begin_command
from trueup.cli import main
from trueup.cli.exit_codes import exit_code

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

needs_cli = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("cyclopts", "duckdb", "pyarrow"))),
    reason='needs pip install "trueup[cli]"',
)
COMMAND = (sys.executable, "-W", "error", "-m", "trueup")
# Runs several commands as if these packages were not installed, and says how they ended.
WITHOUT = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
for name in sys.argv[1].split(","):
    sys.modules[name] = None
from trueup.cli import main
ended = []
for line in json.loads(sys.argv[2]):
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        try:
            main(line)
        except SystemExit as end:
            ended.append((end.code, out.getvalue(), err.getvalue()))
print(json.dumps(ended))
"""
ANSWERS = """question,worker,answer
height,ann,172
height,bob,175
height,eve,190
age,ann,34
age,bob,36
age,eve,20
"""
ODD_NAMES = ("a b.csv", "🐝.csv", 'it\'s "quoted".csv', "-dash.csv", "[x]*?.csv", "$(x);&.csv")


def without(packages: str, *lines: str) -> list[Done]:
    """Run commands in a process of their own, as if some packages were not installed."""
    given = json.dumps([line.split() for line in lines])
    done = finished([sys.executable, "-W", "error", "-c", WITHOUT, packages, given])
    assert (done.code, done.err) == (0, "")
    return [Done(*each) for each in json.loads(done.out)]


def changed(code: str, *arguments: str, **options: Any) -> Done:
    """Run a command after some Python code that changes the program."""
    program = f"{code}\nfrom trueup.cli import main\nmain({list(arguments)})"
    return begin(exec, program, {}, **options).end()


def finished(command: Sequence[str | Path]) -> Done:
    done = subprocess.run(  # noqa: S603
        command, capture_output=True, text=True, check=False, env=environment()
    )
    return Done(done.returncode, done.stdout, done.stderr)


def message(done: Done) -> str:
    """Return the one line of a command that could not run."""
    assert (done.code, done.out) == (1, ""), done
    return one_line(done.err)


def one_line(text: str) -> str:
    assert text.endswith("\n")
    assert text.count("\n") == 1, text
    assert text.startswith("trueup: ")
    return text


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    path = tmp_path / "answers.csv"
    path.write_text(ANSWERS, encoding="utf-8")
    return path


def test_the_demo_shows_estimates_and_how_close_they_come() -> None:
    done = run("demo")
    assert done.code == 0, done.err
    assert done.err == ""
    assert "81 answers from 8 workers to 12 questions" in done.out
    errors = {
        words[0]: float(words[1])
        for words in map(str.split, done.out.splitlines())
        if len(words) == 2 and words[0] in ("mean", "dtd")
    }
    assert errors["dtd"] < errors["mean"]


def test_the_version_is_that_of_the_package() -> None:
    assert finished([*COMMAND, "--version"]).out.strip() == f"trueup {trueup.__version__}"


def test_a_wrong_command_is_a_usage_error() -> None:
    done = finished([*COMMAND, "guess"])
    assert done.code == 2
    assert "demo" in done.err
    assert "Traceback" not in done.err


# -- without the extra -----------------------------------------------------------------------------


def test_the_base_install_has_the_demo_and_the_version() -> None:
    lines = ("demo", "--version", "--quiet demo", "--help", "guess")
    demo, version, quiet, shown, wrong = without("cyclopts,rich", *lines)
    assert "12 questions" in demo.out
    assert version.out == f"trueup {trueup.__version__}\n"
    assert (quiet.code, quiet.out) == (0, "")
    assert "trueup[cli]" in shown.out
    assert wrong.code == 2


def test_other_commands_say_what_to_install() -> None:
    lines = (
        "estimate x.csv -o y.csv --method crh",
        "estimate --help",
        "simulate -o x.csv",
        "datasets",
        "study paper --quick",
    )
    for done in without("cyclopts,rich", *lines):
        assert 'pip install "trueup[cli]"' in message(done)


# -- help and usage --------------------------------------------------------------------------------


@needs_cli
@pytest.mark.parametrize(
    "command", ["", "demo", "estimate", "simulate", "datasets", "study", "study paper"]
)
def test_help_shows_an_example(command: str) -> None:
    done = run(*command.split(), "--help")
    assert done.code == 0
    assert f"Example: trueup {command}" in done.out
    assert "--quiet" in done.out
    assert done.err == ""


@needs_cli
def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys\nfrom trueup.cli.app import run\ntry:\n    run(['--help'])\n"
        "finally:\n    print(*sys.modules)"
    )
    done = finished([sys.executable, "-c", code])
    loaded = set(done.out.split())
    assert loaded.isdisjoint({"pandas", "polars", "pyarrow", "duckdb", "altair", "vl_convert"})
    assert "trueup.cli.demo" not in loaded


@needs_cli
@pytest.mark.parametrize(
    ("arguments", "about"),
    [
        (("guess",), "guess"),
        (("estimate",), "FILE"),
        (("estimate", "x.csv", "--methud", "crh"), "--methud"),
        (("estimate", "x.csv", "--bounds", "1"), "--bounds"),
        (("estimate", "x.csv", "--level", "high"), "--level"),
        (("estimate", "x.csv", "--duplicates", "last"), "--duplicates"),
        (("simulate",), "--out"),
        (("simulate", "-o", "x.csv", "--workers", "many"), "--workers"),
        (("datasets", "-o", "x.csv"), "trueup datasets NAME"),
        (("study", "everything"), "everything"),
    ],
)
def test_usage_errors_name_the_culprit_in_one_line(arguments: tuple[str, ...], about: str) -> None:
    done = run(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert about in one_line(done.err)


# -- estimate --------------------------------------------------------------------------------------


@needs_cli
def test_estimate_prints_what_came_out_and_writes_it(answers: Path, tmp_path: Path) -> None:
    truths, workers = tmp_path / "truths.csv", tmp_path / "workers.csv"
    outputs = ("-o", truths, "--workers", workers)
    done = finished([*COMMAND, "estimate", answers, "--method", "crh", *outputs])
    assert done.code == 0, done.err
    assert done.err == ""
    assert "6 answers from 3 workers to 2 questions" in done.out
    est = trueup.estimate(answers, method="crh")
    assert [row["question"] for row in table(truths)] == ["height", "age"]
    assert [float(row["estimate"]) for row in table(truths)] == est.estimate.tolist()
    assert [row["worker"] for row in table(workers)] == ["ann", "bob", "eve"]
    assert sorted(tmp_path.iterdir()) == sorted([answers, truths, workers])


@needs_cli
def test_estimate_writes_parquet_and_json_too(answers: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    frame, text = tmp_path / "t.parquet", tmp_path / "w.json"
    assert run("estimate", answers, "-o", frame, "--workers", text).code == 0
    est = trueup.estimate(answers)
    assert parquet.read_table(frame).column("estimate").to_pylist() == est.estimate.tolist()
    content = json.loads(text.read_text("utf-8"))
    assert content["method"] == est.diagnosis.method
    assert content["shrink"] == "adaptive"
    assert [row["worker"] for row in content["workers"]] == ["ann", "bob", "eve"]
    assert content["workers"][0]["bias"] is None


@needs_cli
def test_options_reach_the_library(tmp_path: Path) -> None:
    path = tmp_path / "other.csv"
    path.write_text("q,w,a\nx,u,1\nx,u,2\nx,v,9\ny,u,3\ny,v,4\n")
    truths = tmp_path / "t.csv"
    done = run(
        *("estimate", path, "--question", "q", "--worker", "w", "--answer", "a", "-o", truths),
        *("--duplicates", "mean", "--bounds", "-1", "3.5", "--level", "0.9", "--method", "mean"),
        *("--variance", "0.25", "--transform", "log1p"),
    )
    assert done.code == 0, done.err
    est = trueup.estimate(
        path,
        method="mean",
        variance=0.25,
        question="q",
        worker="w",
        answer="a",
        duplicates="mean",
        bounds=(-1, 3.5),
        level=0.9,
        transform="log1p",
    )
    assert [float(row["upper"]) for row in table(truths)] == est.upper.tolist()
    assert [float(row["truth_upper"]) for row in table(truths)] == est.truth_upper.tolist()
    assert "90% consensus" in done.out
    assert "90% truth" in done.out


@needs_cli
def test_warnings_are_part_of_the_result(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    assert run("simulate", "-o", path, "--truth", "constant").code == 0
    done = run("estimate", path, "--shrink", "paper")
    assert done.code == 0, done.err
    assert "Warning: the second step moved questions past their mean" in done.out
    assert done.err == ""


@needs_cli
@pytest.mark.parametrize("place", ["before", "after"])
def test_quiet_prints_nothing_but_errors(place: str, answers: Path, tmp_path: Path) -> None:
    def quiet(*arguments: str | Path) -> Done:
        return run(*(("--quiet", *arguments) if place == "before" else (*arguments, "--quiet")))

    done = quiet("estimate", answers, "-o", tmp_path / "t.csv")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert len(table(tmp_path / "t.csv")) == 2
    assert "not found" in message(quiet("estimate", tmp_path / "none.csv"))


@needs_cli
@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_file_names_are_names(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(ANSWERS)
    done = run("estimate", "-o", f"out {name}", "--", name)
    assert done.code == 0, done.err
    assert len(table(tmp_path / f"out {name}")) == 2
    assert len(list(tmp_path.iterdir())) == 2


@needs_cli
def test_a_name_with_a_line_break_stays_on_one_line(tmp_path: Path) -> None:
    assert r"no\nsuch.csv" in message(run("estimate", tmp_path / "no\nsuch.csv"))


@needs_cli
@pytest.mark.parametrize(
    ("name", "content", "about"),
    [
        ("a.csv", b"", "is empty"),
        ("a.csv", b"question,worker,answer\n1,2\n", "fields"),
        ("a.csv", b"question,worker,answer\n", ""),
        ("a.csv", b"question,worker,answer\nq,w,tall\n", "tall"),
        ("a.csv", "question,worker,answer\né,w,1\n".encode("latin-1"), "UTF-8"),
        ("a.csv", b"when,what\n1,2\n", "question"),
        ("a.csv.gz", gzip.compress(ANSWERS.encode(), mtime=0)[:40], ""),
        ("a.parquet", b"PAR1 or not", "Parquet"),
        ("a.xlsx", b"PK", ".csv"),
    ],
)
def test_broken_files_are_explained_in_one_line(
    name: str, content: bytes, about: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    out = tmp_path / "out.csv"
    line = message(run("estimate", path, "-o", out))
    assert about in line
    assert "unexpected" not in line
    assert not out.exists()


@needs_cli
def test_what_cannot_be_written_is_said_before_anything_is_done(
    answers: Path, tmp_path: Path
) -> None:
    before = answers.read_text()
    cases: dict[str, list[str | Path]] = {
        "must end in .csv or .parquet or .json": ["-o", tmp_path / "t.txt"],
        "there is no folder": ["-o", tmp_path / "none" / "t.csv"],
        "is used already": ["-o", answers],
        "--workers": ["-o", tmp_path / "t.csv", "--workers", tmp_path / "t.csv"],
    }
    for about, options in cases.items():
        assert about in message(run("estimate", answers, *options))
    (tmp_path / "folder.csv").mkdir()
    assert "is a folder" in message(run("estimate", answers, "-o", tmp_path / "folder.csv"))
    assert "is a folder" in message(run("estimate", tmp_path / "folder.csv"))
    assert answers.read_text() == before


@needs_cli
def test_both_tables_are_written_or_none(
    answers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trueup.cli import tables

    def full(_: object, path: Path) -> None:
        path.write_text("half")
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setitem(tables._WRITERS, ".parquet", full)
    old = tmp_path / "t.csv"
    old.write_text("old")
    done = run("estimate", answers, "-o", old, "--workers", tmp_path / "w.parquet")
    assert "no space left on device. Make room" in message(done)
    assert old.read_text() == "old"
    assert sorted(tmp_path.iterdir()) == [answers, old]


@needs_cli
def test_ids_keep_every_byte_but_a_spreadsheet_gets_no_formula(tmp_path: Path) -> None:
    harmless = ["007", " x ", 'a"b', "two\nlines", "cr\rhere", "é🐝", "a=b", "'quoted", "1e5"]
    formulas = ["=1+1", "+1", "-x", "@SUM(A1)", "\ttab", "\rreturn"]
    path, out = tmp_path / "a.csv", tmp_path / "t.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["question", "worker", "answer"])
        for number, name in enumerate(harmless + formulas):
            writer.writerows([[name, "u", -number], [name, "v", -number - 1]])
    done = run("estimate", path, "-o", out, "--method", "mean", "--shrink", "none")
    assert done.code == 0, done.err
    written = [row["question"] for row in table(out)]
    assert written == harmless + [f"'{name}" for name in formulas]
    assert [float(row["estimate"]) for row in table(out)] == [-n - 0.5 for n in range(15)]
    assert all(row["estimate"].startswith("-") for row in table(out))


@needs_cli
def test_whole_number_ids_stay_numbers(tmp_path: Path) -> None:
    path, out = tmp_path / "a.csv", tmp_path / "t.csv"
    path.write_text("question,worker,answer\n-5,1,2\n-5,2,3\n7,1,2\n7,2,3\n")
    assert run("estimate", path, "-o", out).code == 0
    assert [row["question"] for row in table(out)] == ["-5", "7"]


@needs_cli
@pytest.mark.parametrize("what", ["datasets", "--help"])
def test_a_reader_who_leaves_early_is_no_error(what: str) -> None:
    with subprocess.Popen(  # noqa: S603
        [*COMMAND, what], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(60) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""


# -- simulate, datasets, study ---------------------------------------------------------------------


@needs_cli
def test_simulated_answers_can_be_estimated(tmp_path: Path) -> None:
    answers, truth = tmp_path / "a.csv", tmp_path / "t.csv"
    options = ("--workers", "20", "--questions", "30", "--density", "0.5", "--seed", "3")
    done = run("simulate", "-o", answers, "--truth-out", truth, *options)
    assert done.code == 0, done.err
    drawn, true = trueup.simulate(workers=20, questions=30, density=0.5, seed=3)
    assert [float(row["truth"]) for row in table(truth)] == true.tolist()
    assert len(table(answers)) == drawn.n_answers
    there, here = trueup.estimate(answers).estimate, trueup.estimate(drawn).estimate
    assert abs(there - here).max() < 1e-9
    first = answers.read_bytes()
    assert run("simulate", "-o", answers, *options).code == 0
    assert answers.read_bytes() == first


@needs_cli
def test_a_simulation_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    assert "density" in message(run("simulate", "-o", path, "--density", "2"))
    assert "workers" in message(run("simulate", "-o", path, "--workers", "-1"))
    assert not path.exists()


@needs_cli
def test_datasets_are_listed_described_and_written(tmp_path: Path) -> None:
    listed = run("datasets")
    assert listed.code == 0
    assert [line.partition(":")[0] for line in listed.out.splitlines()] == list(
        trueup.datasets.names()
    )
    assert "Cite: " in run("datasets", "emotions").out
    assert 'Did you mean "emotions"' in message(run("datasets", "emotion"))
    folder = tmp_path / "data" / "mine"
    folder.mkdir(parents=True)
    (folder / "answers.csv").write_text("question,worker,answer\nx,u,3.3\nx,v,2.2\ny,u,0.1\n")
    out = tmp_path / "out.csv"
    done = run("datasets", "mine", "--data", tmp_path / "data", "-o", out)
    assert done.code == 0, done.err
    assert [row["answer"] for row in table(out)] == ["3.3", "2.2", "0.1"]
    line = message(run("datasets", "mine", "--data", tmp_path / "data", "--truth-out", out))
    assert "no true values" in line


STUDY = """
import sys, types
fake = types.ModuleType("trueup.study.paper")
class Result:
    page, failed, missing = "page.html", {failed}, {missing}
    __str__ = lambda self: "Quick run"
fake.run = lambda **given: print(given) or Result()
sys.modules["trueup.study.paper"] = fake"""


@needs_cli
def test_the_study_is_called_with_what_was_asked() -> None:
    code = STUDY.format(failed="()", missing="{}")
    done = changed(code, "study", "paper", "--quick", "--samples", "7", "--out", "d")
    assert (done.code, done.err) == (0, "")
    asked = "'quick': True, 'data': None, 'without_data': False, 'samples': 7, 'seed': 0"
    assert asked in done.out
    assert done.out.endswith("Written: page.html\nQuick run\n")


@needs_cli
def test_the_exit_code_of_a_study_tells_what_it_found() -> None:
    missing = {"Emotions": "There are no data."}
    cannot_run = changed(STUDY.format(failed="()", missing=missing), "study", "paper")
    assert cannot_run.code == 1
    assert "1 part could not run: Emotions. There are no data." in one_line(cannot_run.err)
    disproved = changed(STUDY.format(failed=("A", "B"), missing=missing), "study", "paper")
    assert disproved.code == 4
    assert "not all statements hold: A, B." in one_line(disproved.err)


# -- things that go wrong --------------------------------------------------------------------------


def test_an_error_of_ours_is_one_line_unless_asked_for_more() -> None:
    code = """
import trueup.cli.demo as demo
def broken(): raise KeyError("two\\nlines")
demo.demo = broken"""
    assert "unexpected KeyError" in message(changed(code, "demo"))
    done = changed(code, "demo", TRUEUP_TRACEBACK="1")
    assert done.code == 1
    assert "Traceback" in done.err


@pytest.mark.parametrize(
    ("number", "remedy"),
    [(errno.EACCES, "Check who may"), (errno.ENOSPC, "Make room"), (errno.EIO, "")],
)
def test_errors_of_the_system_name_the_file_and_a_remedy(
    number: int, remedy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise OSError(number, os.strerror(number), "a b\n.csv")

    assert exit_code(fail) == 1
    line = one_line(capsys.readouterr().err)
    assert r'File "a b\n.csv": ' in line
    assert remedy in line


@pytest.mark.parametrize("arguments", [["estimate", "a\0.csv"], ["rank", "a.csv", "--by", "\0"]])
def test_a_nul_byte_is_no_part_of_a_command(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "holds a NUL byte" in one_line(capsys.readouterr().err)


@needs_cli
def test_an_interrupt_while_reading_ends_with_130(tmp_path: Path) -> None:
    pipe, out = tmp_path / "answers.csv", tmp_path / "t.csv"
    os.mkfifo(pipe)
    running = begin_command("estimate", pipe, "-o", out)
    with opened(pipe, running.is_over):
        running.interrupt()
        done = running.end()
    assert done == (130, "", "trueup: interrupted\n")
    assert list(tmp_path.iterdir()) == [pipe]


def test_an_interrupt_that_becomes_another_error_is_one_all_the_same() -> None:
    code = """
import os, signal, trueup.cli.demo as demo
def interrupted():
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt as error:
        raise RuntimeError("Query interrupted") from error
demo.demo = interrupted"""
    assert changed(code, "demo") == (130, "", "trueup: interrupted\n")


@needs_cli
def test_an_interrupt_while_writing_leaves_no_file(tmp_path: Path) -> None:
    out = tmp_path / "a.csv"
    running = begin_command("simulate", "-o", out, "--workers", "100", "--questions", "8000")
    while not any(tmp_path.iterdir()):  # the temporary file
        assert not running.is_over()
        time.sleep(0.002)
    running.interrupt()
    assert running.end() == (130, "", "trueup: interrupted\n")
    assert list(tmp_path.iterdir()) == []
