"""What the benchmarks share: programs in fresh processes, and their sections of benchmarks/results.md.

Only the standard library is imported here: a process that is started counts the memory of the one that starts it.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results.md"
TITLE = "# Benchmarks\n\nPrinted by `make bench`. Ratios compare times of one run on one machine.\n"
#: The sections, in the order in which they are shown.
SECTIONS = ("alternatives", "parts", "peers", "growth", "first step", "native")

#: Writes a file of answers in no order: ten answers to a question, a worker for every thousand answers.
MAKE = """
import sys, duckdb
size, path, folder, text = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4] == "text"
question, worker = ("'question-' || q", "'worker-' || w") if text else ("(q * 7919)::BIGINT", "(w * 104729)::BIGINT")
questions, workers = size // 10, max(200, size // 1000)
base = duckdb.connect()
base.execute("SET preserve_insertion_order = false")
base.execute("SET memory_limit = '4GB'")
base.execute(f"SET temp_directory = '{folder}'")
# Which question and which of its answers a row is comes from a permutation of the rows; 1000003 is a prime.
base.execute(f'''COPY (
    SELECT {question} AS question, {worker} AS worker,
        (hash(q) % 1000) / 100.0
        + (0.5 + (hash(w) % 100) / 50.0) * 2 * (random() + random() + random() - 1.5) AS answer
    FROM (
        SELECT q, (hash(q) % {workers} + r * {workers // 11}) % {workers} AS w
        FROM (SELECT p % {questions} AS q, p // {questions} AS r
              FROM (SELECT (i * 1000003::BIGINT + 17) % {size} AS p FROM range({size}) t(i)))
    )) TO '{path}' (FORMAT {"csv, HEADER" if path.endswith("csv") else "parquet"})''')
"""


@dataclass(frozen=True)
class Run:
    """What a program took: seconds, and the peak of its resident memory in bytes; or why it failed."""

    seconds: float
    memory: int
    failed: str = ""


def environment() -> dict[str, str]:
    """Return the environment of programs: Python keeps compiled modules, as it does for what pip installed."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def fresh(command: Sequence[str], timeout: float = 3600.0) -> Run:
    """Run a program in a fresh process."""
    start = time.perf_counter()
    process = subprocess.Popen(
        list(command),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    limit = threading.Timer(timeout, process.kill)
    limit.start()
    assert process.stderr is not None  # noqa: S101  asked for
    said = process.stderr.read().strip().splitlines()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    limit.cancel()
    process.stderr.close()
    process.returncode = os.waitstatus_to_exitcode(status)
    memory = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    if process.returncode == 0:
        return Run(seconds, memory)
    why = f"more than {timeout:.0f} s" if seconds >= timeout else f"exit {process.returncode}"
    return Run(seconds, memory, f"{why} {said[-1]}" if said and seconds < timeout else why)


def in_turns(commands: dict[str, list[str]], repeat: int) -> dict[str, Run]:
    """Return the shortest run of each program, taken in turns so that a slow moment hits all alike."""
    best: dict[str, Run] = {}
    for _ in range(repeat):
        for name, command in commands.items():
            run = fresh(command)
            if name not in best or run.seconds < best[name].seconds:
                best[name] = run
            print(
                f"{name}: {run.seconds:.2f} s, {run.memory / 1e6:.0f} MB {run.failed}", flush=True
            )
    return best


def make_answers(size: int, folder: Path, ids: str = "text", ending: str = "parquet") -> Path:
    """Write a file of answers, unless it is there; `ids` are text or integers."""
    path = folder / f"answers-{size}{'' if ids == 'text' else '-' + ids}.{ending}"
    if not path.exists():
        made = fresh([sys.executable, "-c", MAKE, str(size), str(path), str(folder), ids])
        if made.failed:
            sys.exit(f"{path} could not be made: {made.failed}")
    return path


def trueup_command(source: Path, *options: str) -> list[str]:
    """Return the command line that estimates a file and writes another of its kind beside it."""
    out = str(source.with_suffix(f".out{source.suffix}"))
    return [sys.executable, "-m", "trueup", "estimate", str(source), "-o", out, *options]


def write_section(name: str, lines: Sequence[str], path: Path = RESULTS) -> None:
    """Put a section in its place in the results; one that was there before is replaced."""
    text = "\n".join(lines).strip() + "\n"
    found = {}
    if path.exists():
        pattern = r"<!-- begin (.+?) -->\n(.*?)<!-- end \1 -->\n"
        found = dict(re.findall(pattern, path.read_text(encoding="utf-8"), flags=re.DOTALL))
    found[name] = text
    order = [*SECTIONS, *sorted(set(found) - set(SECTIONS))]
    parts = [
        f"<!-- begin {each} -->\n{found[each]}<!-- end {each} -->\n"
        for each in order
        if each in found
    ]
    new = path.with_suffix(".new")
    new.write_text("\n".join([TITLE, *parts]), encoding="utf-8")
    new.replace(path)


def inline(rows: list[dict[str, Any]]) -> Any:
    """Return rows as the data of a chart."""
    import altair as alt

    make: Any = alt.InlineData  # without types
    return make(values=rows)


def draw(name: str, chart: Any) -> str:
    """Write a chart as SVG, and return the line that shows it."""
    path = (
        FOLDER.parent / "docs" / "pictures" / f"benchmark-{name}.svg"
    )  # the documentation shows it, too
    # Other fonts than the one it is measured with may be wider.
    chart.properties(padding={"left": 5, "top": 5, "right": 40, "bottom": 5}).save(str(path))
    return f"![{name}](../docs/pictures/{path.name})"


def machine(*packages: str) -> str:
    """Return the date, the machine and the versions of some packages in a line."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        found = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        model = found[0].split(":", 1)[1].strip() if found else model
    today = time.strftime("%Y-%m-%d")
    words = [today, model, f"{os.cpu_count()} processors", platform.system()]
    words.append(f"Python {platform.python_version()}")
    for package in packages:
        try:
            words.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            words.append(f"no {package}")
    return ", ".join(words)
