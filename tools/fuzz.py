"""Fuzz the public surface for some minutes: the properties of tests/test_fuzz.py, on new examples in every round.

Run from the folder of pyproject.toml: python tools/fuzz.py [--minutes 10]

At the end it prints what was covered: how often each function gave a result, and how often it refused in one line.
Exit code 1 after the first round in which a property does not hold; the output names the example.
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


def one_round(seed: int, report: Path) -> int:
    """Try every property; return the exit code of pytest."""
    environment = {
        **os.environ,
        "HYPOTHESIS_PROFILE": "long",
        "TRUEUP_FUZZ_REPORT": str(report),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal"]
    command += ["-p", "no:cacheprovider", f"--hypothesis-seed={seed}", "tests/test_fuzz.py"]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode  # noqa: S603


def main() -> int:
    """Go on until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    chosen = parser.parse_args()
    end, rounds, code = time.monotonic() + 60.0 * chosen.minutes, 0, 0
    covered: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "covered.jsonl")
        longest = 0.0
        # A round is not begun that would end long after the time.
        while code == 0 and (rounds == 0 or time.monotonic() + 0.5 * longest < end):
            began = time.monotonic()
            code = one_round(chosen.seed + rounds, report)
            longest = max(longest, time.monotonic() - began)
            rounds += 1
        if report.exists():
            for line in report.read_text("utf-8").splitlines():
                covered.update(json.loads(line))
    say = print
    for what, count in sorted(covered.items()):
        say(f"{count:8,}  {what}")
    say(f"trueup: {rounds} rounds from seed {chosen.seed}, {covered.total():,} calls counted")
    return code


if __name__ == "__main__":
    sys.exit(main())
