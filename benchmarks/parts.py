"""Where the time of one run goes: the command in a fresh process, split into parts.

    python benchmarks/parts.py            5,000 to ten million answers, a few minutes
    python benchmarks/parts.py --quick    5,000 and 100,000 answers; nothing is written

A part is what some functions take, without what other parts inside them take. Seconds on the clock of the main thread:
what another one does meanwhile is not counted, waiting for it is. The best of three runs by their sum.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measure import environment, machine, make_answers, trueup_command, write_section

if TYPE_CHECKING:
    from collections.abc import Callable

#: Part -> functions, as module:name; methods as module:class.name.
PARTS = {
    "read the file": ("trueup.io.readers.source:Source.fetch",),
    "number the ids": ("trueup.io.encode:encode",),
    "sort and centre": ("trueup.answers.build:build",),
    "choose a scale": ("trueup.pipeline.scale_choice:choose_scale",),
    "choose a method": ("trueup.pipeline.first_step:choose_first_step",),
    "first step": ("trueup.algorithms.driver:run",),
    "noise of workers": (
        "trueup.variance.worker_noise:worker_noise",
        "trueup.variance.interval_noise:interval_noise",
        "trueup.variance.moderated:moderated",
    ),
    "halves of the workers": ("trueup.pipeline.split_halves:halve",),
    "prior": (
        "trueup.shrinkage.adaptive:Adaptive.fit",
        "trueup.pipeline.shrink:_sampled",
    ),
    "move and intervals": (
        "trueup.pipeline.shrink:_move",
        "trueup.pipeline.finish:Finish.keep_in",
    ),
    "truth model": (
        "trueup.pipeline.truths:crowd_numbers",
        "trueup.pipeline.truths:answer_scatter",
    ),
    "suspicious answers": ("trueup.findings.answers:odd_answers",),
    "correlated workers": ("trueup.variance.correlated.search:find_pairs",),
    "verdicts on workers": ("trueup.findings.workers:judge_workers",),
    "report": ("trueup.report.write:write_report",),
    "tables and files": (
        "trueup.cli.tables:result_table",
        "trueup.cli.tables:write_files",
    ),
}
OTHER, START = "the rest", "start: Python, imports"
#: Answers, and what is run on them.
RUNS = {
    5_000: ("--method", "auto"),
    100_000: ("--method", "crh"),
    1_000_000: ("--method", "crh"),
    10_000_000: ("--method", "crh"),
}


class Clock:
    """Seconds by part: each moment counts for the innermost part."""

    def __init__(self, begun: float) -> None:
        self.seconds: dict[str, float] = {}
        self._running = [START]
        self._since = begun

    def switch(self) -> None:
        """Give the time since the last switch to the part that is running."""
        now = time.time()
        part = self._running[-1]
        self.seconds[part] = self.seconds.get(part, 0.0) + now - self._since
        self._since = now

    def begin(self, part: str) -> None:
        """Begin a part."""
        self.switch()
        self._running.append(part)

    def end(self) -> None:
        """End it."""
        self.switch()
        self._running.pop()

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with its time counted."""

        @functools.wraps(function)
        def call(*args: Any, **keywords: Any) -> Any:
            if threading.current_thread() is not threading.main_thread():
                return function(*args, **keywords)
            self.begin(part)
            try:
                return function(*args, **keywords)
            finally:
                self.end()

        return call


def watch(clock: Clock) -> None:
    """Put functions that count their time in the place of those of each part, wherever they were imported."""
    for part, names in PARTS.items():
        for name in names:
            module, _, path = name.partition(":")
            *owners, last = path.split(".")
            place = functools.reduce(getattr, owners, import_module(module))
            function = getattr(place, last)
            counted = clock.timed(part, function)
            if owners:
                setattr(place, last, counted)
                continue
            for other in list(sys.modules.values()):
                if getattr(other, "__name__", "").startswith("trueup") and (
                    vars(other).get(last) is function
                ):
                    setattr(other, last, counted)


def child(begun: float, arguments: list[str]) -> None:
    """Run the command in this process and print the seconds of its parts."""
    clock = Clock(begun)
    from trueup.cli import LINEAR_ALGEBRA

    for library in LINEAR_ALGEBRA:  # as the command does before anything else
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    for names in PARTS.values():
        for name in names:
            import_module(name.partition(":")[0])
    from trueup.cli.app import run

    watch(clock)
    clock.begin(OTHER)
    run(arguments)
    clock.end()
    print("\n" + json.dumps(clock.seconds))


def fresh_parts(command: list[str]) -> dict[str, float]:
    """Run a command of trueup in a fresh process, and return the seconds of its parts."""
    script = [sys.executable, __file__, "--child", repr(time.time()), *command[3:]]
    done = subprocess.run(script, capture_output=True, text=True, check=True, env=environment())
    seconds: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return seconds


def table(results: dict[int, dict[str, float]]) -> list[str]:
    """Return the seconds, a row for each part."""
    heads = [f"{size:,} ({RUNS[size][1]})" for size in results]
    lines = [f"| part | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for part in (START, *PARTS, OTHER):
        row = [seconds.get(part, 0.0) for seconds in results.values()]
        if any(value >= 0.005 for value in row):  # else it would be shown as 0.00
            lines.append(f"| {part} | " + " | ".join(f"{value:.2f}" for value in row) + " |")
    sums = [sum(seconds.values()) for seconds in results.values()]
    return [*lines, "| sum | " + " | ".join(f"{value:.2f}" for value in sums) + " |"]


def main() -> None:
    """Run the command on files of several sizes and write the section."""
    if sys.argv[1:2] == ["--child"]:
        child(float(sys.argv[2]), sys.argv[3:])
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="small files; nothing is written")
    parser.add_argument("--folder", type=Path, help="where the files go; default: a temporary one")
    options = parser.parse_args()
    results: dict[int, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for size in list(RUNS)[: 2 if options.quick else None]:
            source = make_answers(size, options.folder or Path(folder))
            command = trueup_command(source, *RUNS[size])
            runs = [fresh_parts(command) for _ in range(3)]
            results[size] = min(runs, key=lambda seconds: sum(seconds.values()))
    lines = [
        "## Where the time goes",
        "",
        f"`benchmarks/parts.py`. {machine('numpy', 'scipy', 'pyarrow', 'duckdb')}.",
        "",
        "Seconds of one run by part: answers (method), Parquet with text ids in no order to Parquet.",
        "",
        *table(results),
    ]
    if not options.quick:
        write_section("parts", lines)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
