"""Try every mutation of tools/mutations.toml: change one thing, run the tests that should notice, put it back.

Run from the folder of pyproject.toml: python tools/mutations.py [--jobs 2] [--only TEXT] [--list]

Each process works on a copy of the tree in a temporary folder. First the tests run as things are: a test that fails
anyway notices nothing. Exit code 0: all were noticed; 1: some were not, or their text is no longer where it was.
"""  # noqa: INP001  a script

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parents[1]
LIST = Path(__file__).with_name("mutations.toml")
SOURCE = Path("src", "trueup")
COPIED = (
    "src",
    "tests",
    "tools",
    "evidence",
    "docs",
    "examples",
    "pyproject.toml",
    "README.md",
    "CHANGELOG.md",
)
SKIPPED = shutil.ignore_patterns("__pycache__", "*.pyc", ".hypothesis", "snapshots.new")
#: Seconds after which tests that have not ended count as noticing.
LIMIT = 600.0
PASSED, FAILED = 0, 1

say = print


@dataclass(frozen=True)
class Mutation:
    """A change for the worse."""

    file: str
    old: str
    new: str
    why: str
    tests: tuple[str, ...]
    times: int = 1

    @property
    def path(self) -> Path:
        """The file, from the root of the project."""
        return SOURCE / self.file

    def found(self, root: Path = ROOT) -> int:
        """Return how often the old text is there."""
        return (root / self.path).read_text("utf-8").count(self.old)

    def is_current(self, root: Path = ROOT) -> bool:
        """Tell whether the old text is there as often as stated, and the new one differs."""
        return self.found(root) == self.times and self.old != self.new

    def __str__(self) -> str:
        return f"{self.file}: {_short(self.old)} -> {_short(self.new)}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:59] + "…"


def mutations(path: Path = LIST) -> list[Mutation]:
    """Read the list."""
    rows = tomllib.loads(path.read_text("utf-8"))["mutation"]
    return [Mutation(**{**row, "tests": tuple(row["tests"])}) for row in rows]


def copy_tree(folder: Path) -> Path:
    """Copy what the tests need."""
    for name in COPIED:
        here = ROOT / name
        if here.is_dir():
            shutil.copytree(here, folder / name, ignore=SKIPPED)
        elif here.exists():
            shutil.copy(here, folder / name)
    return folder


def run_tests(tree: Path, tests: tuple[str, ...]) -> tuple[int, str]:
    """Run tests in a tree until the first failure; return the exit code of pytest and the end of what it said."""
    paths = os.pathsep.join(str(tree / each) for each in ("src", "tests"))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
    command += ["-p", "no:randomly", "--no-header", *tests]
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("TRUEUP_NO_SKIPS", None)
    try:
        done = subprocess.run(  # noqa: S603
            command,
            cwd=tree,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return FAILED, "did not end"
    return done.returncode, (done.stdout + done.stderr)[-3000:]


def who_noticed(output: str) -> str:
    """Return the test that failed."""
    for line in output.splitlines():
        if line.startswith(("FAILED ", "ERROR ")):
            return line.split(" - ")[0].split(" ", 1)[1]
    return output.strip().splitlines()[-1] if output.strip() else "no output"


def try_one(mutation: Mutation, trees: SimpleQueue[Path]) -> tuple[str, str]:
    """Apply a mutation in a free tree and run its tests; return what became of it, and a detail."""
    if not mutation.is_current():
        return "LOST", f"the old text is there {mutation.found()} times, expected {mutation.times}"
    tree = trees.get()
    path = tree / mutation.path
    text = path.read_text("utf-8")
    try:
        path.write_text(text.replace(mutation.old, mutation.new, 1), "utf-8")
        code, output = run_tests(tree, mutation.tests)
    finally:
        path.write_text(text, "utf-8")
        trees.put(tree)
    if code == FAILED:
        return "killed", who_noticed(output)
    if code == PASSED:
        return "SURVIVED", mutation.why
    return "BROKEN", f"pytest ended with {code}: {who_noticed(output)}"


def main() -> int:
    """Try them all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="those whose file or text contains this")
    parser.add_argument("--list", action="store_true", help="show them, and try nothing")
    parser.add_argument(
        "--no-check", action="store_true", help="do not run the tests as things are"
    )
    chosen = parser.parse_args()
    wanted = [each for each in mutations() if chosen.only in f"{each.path} {each.old} {each.why}"]
    if chosen.list:
        for each in wanted:
            say(f"{each}\n    {each.why}; {' '.join(each.tests)}")
        return 0
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="trueup-mutations-") as name:
        trees: SimpleQueue[Path] = SimpleQueue()
        folders = [copy_tree(Path(name, str(job))) for job in range(chosen.jobs)]
        for tree in folders:
            trees.put(tree)
        if not chosen.no_check:
            every = tuple(dict.fromkeys(test for each in wanted for test in each.tests))
            say(f"trueup: {len(every)} test files and tests as things are ...", flush=True)
            code, output = run_tests(folders[0], every)
            if code != PASSED:
                say(f"trueup: they fail without any mutation: {who_noticed(output)}")
                return 1
        say(f"trueup: {len(wanted)} mutations ...", flush=True)
        bad = 0
        with ThreadPoolExecutor(chosen.jobs) as pool:
            results = pool.map(lambda each: try_one(each, trees), wanted)
            for mutation, (fate, detail) in zip(wanted, results, strict=True):
                bad += fate != "killed"
                say(f"{fate:8} {mutation}\n         {detail}", flush=True)
    seconds = time.monotonic() - began
    say(f"trueup: {len(wanted) - bad} of {len(wanted)} mutations killed, in {seconds:.0f} seconds")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
