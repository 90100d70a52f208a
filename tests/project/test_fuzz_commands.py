"""Any command line: what was asked for and exit code 0, or one line on what is wrong, and no file left behind."""

from __future__ import annotations

import math
import os
import re
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trueup
from commands import run
from fuzz_strategies import COVERED, METHODS, RULES, VARIANCES, examples, write_covered

if TYPE_CHECKING:
    from collections.abc import Iterator

for needed in ("pandas", "pyarrow", "duckdb", "cyclopts", "altair"):
    pytest.importorskip(needed, reason="needs the test dependencies")


@pytest.fixture(scope="module", autouse=True)
def count_what_was_covered() -> Iterator[None]:
    yield
    write_covered()


ROWS = [
    (f"q{j}", f"m{s}", f"w{i}", (7 * i + 3 * j + 5 * s * i) % 11, j % 3, 1 + (i + j) % 4)
    for i in range(4)
    for j in range(5)
    for s in range(2)
]
LINES = "".join(
    ",".join(map(str, row)) + "\n"
    for row in [("question", "model", "worker", "answer", "topic", "noise"), *ROWS]
)
ANSWERS = "question,worker,answer\n" + "".join(
    f"q{j},w{i},{(7 * i + 3 * j) % 11}\n" for i in range(4) for j in range(5)
)
TRUTHS = "question,truth\n" + "".join(f"q{j},{j + 0.5}\n" for j in range(4))
MORE = "question,worker,answer\nq1,new,4\nq9,w1,2\n"

#: What each command can be run with.
COMPLETE: dict[str, tuple[str, ...]] = {
    "estimate": ("a.csv",),
    "rank": ("scores.csv", "--by", "model", "--item", "question"),
    "update": ("state.trueup", "more.csv"),
    "compare": ("a.csv",),
    "diagnose": ("a.csv",),
    "doctor": ("a.csv",),
    "simulate": (),
    "datasets": (),
    "study": (),
}
VALUES: dict[str, tuple[str, ...]] = {
    "--method": METHODS,
    "--shrink": RULES,
    "--variance": (*VARIANCES, "2.5", "1e-61", "1e200"),
    "--worker-variance": ("noise", "truth.csv"),
    "--answer-variance": ("noise", "answer"),
    "--target-se": ("0.5", "1e-200", "1e200"),
    "--target": ("auto", "truth", "consensus"),
    "--kind": ("perception", "judgment", "forecast"),
    "--bias": ("auto", "on", "off"),
    "--transform": ("auto", "none", "log", "log1p", "logit", "proportional"),
    "--bounds": ("0 11", "-1 12", "3 4"),
    "--duplicates": ("mean", "first", "error", "replace"),
    "--gold": ("truth.csv", "topic"),
    "--truth": ("truth.csv", "normal", "uniform"),
    "--groups": ("topic", "truth.csv"),
    "--covariates": ("topic", "noise", "truth.csv"),
    "--cluster": ("topic",),
    "--run": ("topic",),
    "--baseline": ("m0", "m7"),
    "--fail-if": ("worse", "not-better"),
    "--margin": ("0.5", "0"),
    "--judges": ("sample", "fixed"),
    "--engine": ("auto", "memory", "disk"),
    "--format": ("text", "json"),
    "--level": ("0.8", "0.999"),
    "--caution": ("0.5", "1"),
    "--where": ("worker=w1", "topic=1", "model=m0"),
    "--valid": ("0 10", "5 6"),
    "--wide": ("questions", "workers", "long"),
    "--question": ("question", "question,model"),
    "--out": ("out.csv", "out.parquet", "out.json", "a.csv", "out.html"),
    "--workers": ("workers.csv", "12"),
    "--report": ("report.html", "out.csv"),
    "--save": ("new.trueup", "state.trueup"),
    "--state-out": ("new.trueup", "state.trueup"),
    "--rejects": ("rejects.csv",),
    "--differences": ("differences.csv",),
    "--judges-out": ("judges.csv",),
    "--answers": ("odd.csv",),
    "--pairs": ("pairs.csv",),
    "--questions": ("questions.csv", "12"),
    "--truth-out": ("truth-out.csv",),
    "--resamples": ("8", "0"),
    "--cost-item": ("2",),
    "--cost-answer": ("0.1",),
}
WORDS = (
    "mean", "0.5", "0", "-1", "1e400", "nan", "x", "", "json", "mean,median", "question", "answer", "a.csv", "log",
    "nowhere.csv", "0,1", "é😀", "two\nlines", "'; DROP", "3", "=1+1", "--", "-", "/", "..", "\0",
)  # fmt: skip


@cache
def options(command: str) -> tuple[str, ...]:
    """Return the options of a command, as its help has them."""
    found = sorted(set(re.findall(r"--[a-z][a-z-]*", run(command, "--help").out)))
    return tuple(each for each in found if each not in ("--help", "--version", "--master"))


def test_every_command_is_tried() -> None:
    assert set(COMPLETE) == set(re.findall(r"^│ ([a-z]+) ", run("--help").out, re.M)) - {"demo"}


def line_of(data: st.DataObject) -> list[str]:
    """Draw a command line, most of it of words that are meant to be there."""
    command = data.draw(st.sampled_from(sorted(COMPLETE)))
    complete = data.draw(st.sampled_from([True, True, True, False]))
    line = [command, *(COMPLETE[command] if complete else ())]
    known = [*options(command), "--no-such"]
    for name in data.draw(st.lists(st.sampled_from(known), max_size=4)):
        right = st.sampled_from(VALUES.get(name, WORDS))
        often = st.one_of(right, right, right, right, st.sampled_from(WORDS), st.none())
        value = data.draw(often)
        line += [name, *([] if value is None else value.split(" "))]
    if data.draw(st.integers(0, 9)) == 0:
        line.append(data.draw(st.sampled_from(WORDS)))
    return line


@cache
def files() -> dict[str, bytes]:
    """Return the files that lie where a command is run."""
    with tempfile.TemporaryDirectory() as folder:
        est = trueup.estimate([[1.0, 2.0, 4.0], [2.0, 4.0, 5.0], [9.0, 1.0, 3.0]], "mean")
        state = est.save(Path(folder, "state.trueup")).read_bytes()
    texts = {"a.csv": ANSWERS, "scores.csv": LINES, "truth.csv": TRUTHS, "more.csv": MORE}
    return {name: text.encode() for name, text in texts.items()} | {"state.trueup": state}


def check_numbers(path: Path) -> None:
    """Check the estimates that a command wrote."""
    import pyarrow.csv
    import pyarrow.parquet

    read: Any = pyarrow.csv.read_csv if path.suffix == ".csv" else pyarrow.parquet.read_table
    rows = read(path).to_pylist()
    for row in rows:
        if "estimate" in row:
            assert row["estimate"] is not None
            assert math.isfinite(row["estimate"]), row
            if row.get("lower") is not None and row.get("upper") is not None:
                assert row["lower"] <= row["upper"], row


@examples(70)
@given(data=st.data())
def test_any_command_line_ends_well_and_leaves_all_files_or_none(data: st.DataObject) -> None:
    line, before = line_of(data), Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for name, content in files().items():
                Path(name).write_bytes(content)
            code, out, err = run(*line)
            after = {each.name: each.read_bytes() for each in Path().iterdir() if not each.is_dir()}
            if code == 0:
                for name in ("out.csv", "out.parquet"):
                    if name in after:
                        check_numbers(Path(name))
        finally:
            os.chdir(before)
    COVERED[f"command {line[0]}: code {code}"] += 1
    assert code in (0, 1, 2) or (code, line[0], "--fail-if" in line) == (3, "rank", True)
    assert "unexpected" not in err, (line, err)
    assert "Traceback" not in err, (line, err)
    assert "Warning" not in err, (line, err)
    left = {name: content for name, content in after.items() if files().get(name) != content}
    assert not any(name.startswith(".") for name in left), left
    if code in (1, 2):
        message = err if "undecided" not in out else "trueup: undecided\n"
        assert message.startswith("trueup: "), (line, err)
        errors = [each for each in message.splitlines() if "; not used, as --engine" not in each]
        assert len(errors) == 1, (line, err)
        assert not left or "undecided" in out, (line, sorted(left))
