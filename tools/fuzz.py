"""Fuzz the public surface for some minutes: the properties of tests/project/test_fuzz*.py, on new examples every round.

Run from the folder of pyproject.toml: python tools/fuzz.py [--minutes 10] [--jobs 2] [--only TEXT]

A property that does not hold is left out of later rounds, which go on with the others: its example is printed at once,
its name at the end once more, and the exit code is 1. What was covered comes last: how often each function gave a
result, and how often it refused in one line.
"""  # noqa: INP001  a script

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROPERTIES = "tests/project/test_fuzz*.py"


def failed(cache: Path) -> list[str]:
    """Return the properties that did not hold in any round so far, by the cache of pytest."""
    found = cache / "v" / "cache" / "lastfailed"
    return sorted(json.loads(found.read_text("utf-8"))) if found.exists() else []


def one_round(seed: int, report: Path, cache: Path, jobs: int, only: str) -> int:
    """Try every property that held so far; return the exit code of pytest."""
    environment = {
        **os.environ,
        "HYPOTHESIS_PROFILE": "long",
        "TRUEUP_FUZZ_REPORT": str(report),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(jobs), "--dist", "worksteal"]
    command += [
        "-o",
        f"cache_dir={cache}",
        f"--hypothesis-seed={seed}",
        *(str(path.relative_to(ROOT)) for path in sorted(ROOT.glob(PROPERTIES))),
    ]
    command += ["-k", only] if only else []
    command += [f"--deselect={each}" for each in failed(cache)]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode  # noqa: S603


def main() -> int:
    """Go on until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--jobs", type=int, default=2, help="processes; 0: none but this one")
    parser.add_argument("--only", default="", help="properties that pytest -k finds by this")
    chosen = parser.parse_args()
    end, rounds, code = time.monotonic() + 60.0 * chosen.minutes, 0, 0
    covered: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        report, cache = Path(folder, "covered.jsonl"), Path(folder, "cache")
        longest = 0.0
        # A round is not begun that would end long after the time, nor after one that could not run (code 2 and above).
        while code < 2 and (rounds == 0 or time.monotonic() + 0.5 * longest < end):
            began = time.monotonic()
            code = one_round(chosen.seed + rounds, report, cache, chosen.jobs, chosen.only)
            longest = max(longest, time.monotonic() - began)
            rounds += 1
        if report.exists():
            for line in report.read_text("utf-8").splitlines():
                covered.update(json.loads(line))
        broken = failed(cache)
    say = print
    for what, count in sorted(covered.items()):
        say(f"{count:8,}  {what}")
    say(f"trueup: {rounds} rounds from seed {chosen.seed}, {covered.total():,} calls counted")
    for each in broken:
        say(f"trueup: does not hold: {each}")
    return code or bool(broken)


if __name__ == "__main__":
    sys.exit(main())
