"""Systems compared by a panel: time and memory of `trueup rank`, beside `trueup estimate --shrink none`.

    python benchmarks/rank.py             50 x 1,000, 10 x 20,000, 50 x 4,000 and 200 x 1,000 systems by items, 5 judges
    python benchmarks/rank.py --quick     a tenth of the items, to try the script; nothing is written

Whole processes on one Parquet file with ids as text, taken in turns; processor time (user and system), the best of
three.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import fresh, machine, write_section

JUDGES, REPEAT = 5, 3
SIZES = ((50, 1_000), (10, 20_000), (50, 4_000), (200, 1_000))
#: Writes scores in no order, ids as text; unequal judges who favour systems.
MAKE = """
import sys, numpy as np, pyarrow as pa, pyarrow.parquet as pq
systems, items, judges, path = *map(int, sys.argv[1:4]), sys.argv[4]
rng = np.random.default_rng(1)
shape = systems, items, judges
y = (rng.normal(size=(1, items, 1)) + 0.5 * rng.normal(size=(systems, items, 1)) + 0.5 * rng.normal(size=judges)
     + 0.2 * rng.normal(size=(systems, 1, judges)) + 0.05 * np.arange(systems)[:, None, None]
     + np.linspace(0.5, 1.5, judges) * rng.normal(size=shape))
order = rng.permutation(y.size)
names = [np.char.add(name, each.ravel()[order].astype(str))
         for name, each in zip(("model-", "item-", "judge-"), np.indices(shape))]
table = dict(zip(("model", "item", "judge"), names))
pq.write_table(pa.table({**table, "score": y.ravel()[order]}), path)
"""


def processor(command: list[str]) -> tuple[float, float]:
    """Return the processor time and the peak memory in bytes of a program."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"exit {process.returncode}: {' '.join(command)}")
    memory = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return usage.ru_utime + usage.ru_stime, memory


def main() -> None:
    """Measure all sizes and write the section."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for systems, full in SIZES:
            items = full // 10 if options.quick else full
            path = str(Path(folder, "scores.parquet"))
            sizes = [str(each) for each in (systems, items, JUDGES)]
            made = fresh([sys.executable, "-c", MAKE, *sizes, path])
            if made.failed:
                sys.exit(f"{path} could not be made: {made.failed}")
            start = [sys.executable, "-m", "trueup"]
            columns = ["--worker", "judge", "--answer", "score"]
            rank = [*start, "rank", path, "--by", "model", "--item", "item", *columns]
            out = str(Path(folder, "out.parquet"))
            estimate = [*start, "estimate", path, "--question", "item,model", *columns]
            estimate += ["--shrink", "none", "-o", out]
            runs = [(processor(rank), processor(estimate)) for _ in range(REPEAT)]
            ours, base = (min(each[k] for each in runs) for k in (0, 1))
            rows.append(
                f"| {systems} | {items:,} | {systems * items * JUDGES:,} | {ours[0]:.1f} | {ours[1] / 1e6:.0f} "
                f"| {base[0]:.1f} | {ours[0] / base[0]:.1f} |"
            )
            print(rows[-1], flush=True)
    lines = [
        "## Systems compared by a panel",
        "",
        f"`benchmarks/rank.py`. {machine('numpy', 'pyarrow')}.",
        "",
        (
            f"Whole processes, {JUDGES} judges, complete, from a Parquet file with ids as text, in no order; processor "
            "time in seconds, best of three turns. Of more than 50 systems neighbours in the order are compared."
        ),
        "",
        "| systems | items | scores | rank | peak memory, MB | estimate, no second step | rank / estimate |",
        "|---|---|---|---|---|---|---|",
        *rows,
    ]
    if not options.quick:
        write_section("rank", lines)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
