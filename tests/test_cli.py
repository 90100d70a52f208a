"""The command line, as a user starts it."""

from __future__ import annotations

import subprocess
import sys

import trueup


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603
        [sys.executable, "-W", "error", "-m", "trueup", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_demo_shows_estimates_and_how_close_they_come() -> None:
    done = run("demo")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "81 answers of 8 workers to 12 questions" in done.stdout
    errors = {
        words[0]: float(words[1])
        for words in map(str.split, done.stdout.splitlines())
        if len(words) == 2 and words[0] in ("mean", "dtd")
    }
    assert errors["dtd"] < errors["mean"]


def test_the_version_is_that_of_the_package() -> None:
    assert run("--version").stdout.strip() == f"trueup {trueup.__version__}"


def test_a_wrong_command_is_a_usage_error() -> None:
    done = run("guess")
    assert done.returncode == 2
    assert "demo" in done.stderr
    assert "Traceback" not in done.stderr
