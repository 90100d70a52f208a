"""Commands run inside this process, which is faster than another one, and small files of answers for them."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import resource
import time
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import pytest

import trueup
from trueup.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

SOURCE = str(Path(trueup.__file__).parents[1])
ON_FILES = ("estimate", "compare", "diagnose", "doctor")
WORKERS = ("ann", "bob", "cat", "dan", "eve", "fay")
N_QUESTIONS = 12


def need_cli() -> None:
    """Skip a whole file of tests where packages of the command line are not installed."""
    for name in ("cyclopts", "duckdb", "pyarrow", "altair", "vl_convert"):
        pytest.importorskip(name, reason='needs pip install "trueup[cli]"')


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


def run(*arguments: str | Path) -> Done:
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main([str(each) for each in arguments])
    code = ended.value.code
    assert isinstance(code, int)
    return Done(code, out.getvalue(), err.getvalue())


def printed(*arguments: str | Path) -> str:
    """Return what a command prints that can be run."""
    done = run(*arguments)
    assert (done.code, done.err) == (0, ""), done
    return done.out


def refusal(*arguments: str | Path, code: int = 1) -> str:
    """Return the one line of a command that cannot be run."""
    done = run(*arguments)
    assert (done.code, done.out) == (code, ""), done
    return one_line(done.err)


def one_line(text: str) -> str:
    """Return the text, which is one line that a person can read."""
    assert text.startswith("trueup: "), text
    assert text.endswith("\n")
    assert text.count("\n") == 1, text
    assert "Traceback" not in text
    assert "unexpected" not in text
    return text


def environment(**changes: str | None) -> dict[str, str]:
    """Return this environment with some variables changed, or taken away."""
    kept = {**os.environ, "PYTHONPATH": SOURCE, **changes}
    return {name: value for name, value in kept.items() if value is not None}


@contextmanager
def full_disk(limit: int) -> Iterator[None]:
    """Let no file become longer: that stands in for the end of the disk."""
    before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))


def truth_of(j: int) -> float:
    """Return the truth of a question."""
    return (10 if j < N_QUESTIONS // 2 else 40) + (5 * j % 7 - 3) / 2


def rows() -> list[dict[str, Any]]:
    """Answers of people who err more and more; two kinds of questions."""
    return [
        {
            "question": f"q{j + 1}",
            "worker": worker,
            "answer": round(
                truth_of(j) + (1 + i) * ((7 * i * i + 13 * j + 5 * i * j) % 11 - 5) / 4, 2
            ),
            "kind": "low" if j < N_QUESTIONS // 2 else "high",
            "size": 1.5 * j,
        }
        for j in range(N_QUESTIONS)
        for i, worker in enumerate(WORKERS)
        if (i + j) % 5
    ]


def truths(count: int = N_QUESTIONS) -> list[dict[str, Any]]:
    """Return the truths of the first questions."""
    return [{"question": f"q{j + 1}", "truth": truth_of(j)} for j in range(count)]


def write(path: str, table: Sequence[dict[str, Any]], **options: Any) -> Path:
    """Write a table as delimited text."""
    encoding = options.pop("encoding", "utf-8")
    with Path(path).open("w", newline="", encoding=encoding) as file:
        writer = csv.DictWriter(file, list(table[0]), **options)
        writer.writeheader()
        writer.writerows(table)
    return Path(path)


def table(path: str) -> list[dict[str, str]]:
    """Return the rows of a file of the tables that commands write."""
    with Path(path).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def estimates(*arguments: str | Path) -> list[float]:
    """Return the estimates that a command prints as JSON."""
    document = json.loads(printed("estimate", *arguments, "--format", "json"))
    return [row["estimate"] for row in document["questions"]]


def expected(**options: Any) -> list[float]:
    """Return the estimates of the library."""
    found: list[float] = trueup.estimate("answers.csv", **options).estimate.tolist()
    return found


def files() -> set[str]:
    """Return the names of all that is in this folder."""
    return {path.name for path in Path().iterdir()}


def opened(pipe: Path, is_over: Callable[[], object]) -> IO[str]:
    """Open a pipe for writing as soon as a program has opened it for reading; fail if it ends before."""
    while not is_over():
        try:
            end = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            assert error.errno == errno.ENXIO  # noqa: PT017 - nobody reads yet
            time.sleep(0.01)
        else:
            os.set_blocking(end, True)
            return os.fdopen(end, "w", encoding="utf-8")
    pytest.fail("ended before it read")
