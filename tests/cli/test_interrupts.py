"""A command that is interrupted ends at once, says so, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from commands import SOURCE, files, need_cli, opened
from processes import begin_command

need_cli()

pytestmark = pytest.mark.usefixtures("folder_of_answers")


@pytest.fixture(scope="module")
def long_file() -> str:
    """Answers that take seconds to be estimated from."""
    n = 600_000
    lines = (f"{i // 5},{i % 5 * 7 + i // 5 % 7},{i * 37 % 101}\n" for i in range(n))
    return "question,worker,answer\n" + "".join(lines)


def started(*arguments: str) -> subprocess.Popen[str]:
    """Start a program that heeds interrupts, also where these tests run in the background and do not."""
    return subprocess.Popen(  # noqa: S603
        [sys.executable, *arguments],
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": SOURCE},
    )


# While the file is read, and pandas is imported by pyarrow.
@pytest.mark.parametrize("seconds", [0.05, 0.35])
def test_an_interrupt_while_reading_ends_with_130(long_file: str, seconds: float) -> None:
    os.mkfifo("pipe.csv")
    before = files()
    with started("-m", "trueup", "estimate", "pipe.csv", "-o", "out.csv") as process:
        with opened(Path("pipe.csv"), process.poll) as file:
            file.write(long_file)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(seconds)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=60)
    assert (process.returncode, out, errors) == (130, "", "trueup: interrupted\n")
    assert files() == before


# With everything imported: while first steps are tried, and workers are judged in threads.
@pytest.mark.parametrize("seconds", [0.3, 0.6])
def test_an_interrupt_while_estimating_ends_with_130(long_file: str, seconds: float) -> None:
    os.mkfifo("pipe.csv")
    before = files()
    running = begin_command("estimate", "pipe.csv", "-o", "out.csv")
    with opened(Path("pipe.csv"), running.is_over) as file:
        file.write(long_file)
    time.sleep(seconds)
    assert not running.is_over()
    running.interrupt()
    assert running.end() == (130, "", "trueup: interrupted\n")
    assert files() == before


SWALLOWED = """
try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    pass
"""
IN_A_FINALIZER = """
class Last:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
Last()
"""
IN_A_TEXT = "exec('signal.raise_signal(signal.SIGINT)')"
WHILE_CLEANING_UP = """
try:
    signal.raise_signal(signal.SIGINT)
finally:
    time.sleep(0.5)
    signal.raise_signal(signal.SIGINT)
    print("removed", flush=True)
"""
AS_ANOTHER = """
try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    raise RuntimeError("query interrupted") from None
"""


# DuckDB ends the process when an exception is raised while it is imported, and pyarrow drops that of pandas.
IN_AN_IMPORT = """
import pathlib
pathlib.Path("slow.py").write_text("import signal; signal.raise_signal(signal.SIGINT); print('imported', flush=True)")
sys.path.insert(0, ".")
import slow
"""


@pytest.mark.parametrize(
    ("work", "out"),
    [
        (IN_AN_IMPORT, "imported\n"),
        (SWALLOWED, ""),
        (IN_A_FINALIZER, ""),
        (IN_A_TEXT, ""),
        (AS_ANOTHER, ""),
        (WHILE_CLEANING_UP, "removed\n"),
    ],
)
def test_no_interrupt_is_lost(work: str, out: str) -> None:
    content = "".join(f"    {line}\n" for line in work.splitlines())
    program = (
        "import signal, sys, time\nfrom trueup.cli.exit_codes import exit_code\n"
        f"def work():\n{content}    time.sleep(60)\nsys.exit(exit_code(work, last=True))"
    )
    with started("-c", program) as process:
        said = process.communicate(timeout=30)
    assert (process.returncode, *said) == (130, out, "trueup: interrupted\n")


def test_an_interrupt_after_the_end_changes_nothing() -> None:
    program = (
        "import signal, sys\nfrom trueup.cli.exit_codes import exit_code\n"
        "code = exit_code(lambda: print('done'), last=True)\n"
        "signal.raise_signal(signal.SIGINT)\nsys.exit(code)"
    )
    with started("-c", program) as process:
        said = process.communicate(timeout=30)
    assert (process.returncode, *said) == (0, "done\n", "")
