"""What an iteration on Spark costs beyond one in memory.

    python benchmarks/spark_overhead.py             10^6 and 10^7 answers on local[2]
    python benchmarks/spark_overhead.py --quick     10^5 answers, to try the script; nothing is written

The same answers, the same algorithm (CRH); the first iterations on Spark start its processes and are left out.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from statistics import median

from measure import machine, make_answers, write_section

import trueup
from trueup.algorithms import find, run
from trueup.engines.memory import MemoryEngine

SIZES = (10**6, 10**7)
ITERATIONS, FIRST = 12, 3


def iterations(engine: object) -> list[float]:
    """Return the seconds between one iteration and the next."""
    ends = [time.perf_counter()]
    algorithm = find("crh")
    run(
        algorithm,
        engine,  # type: ignore[arg-type]
        max_iter=ITERATIONS,
        tol=0.0,
        callback=lambda *_: ends.append(time.perf_counter()),
    )
    return [after - before for before, after in pairwise(ends)]


def main() -> None:
    """Run all sizes and write the section."""
    from pyspark.sql import SparkSession

    from trueup.engines.spark import SparkEngine

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.driver.memory", "6g").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for size in (10**5,) if options.quick else SIZES:
            source = make_answers(size, Path(folder))
            start = time.perf_counter()
            there = SparkEngine(session.read.parquet(str(source)))
            making = time.perf_counter() - start
            spark = median(iterations(there)[FIRST:])
            there.close()
            memory = median(iterations(MemoryEngine(trueup.Answers.of(source)))[FIRST:])
            figures = f"{making:.1f} | {spark:.2f} | {memory:.3f} | {spark - memory:.2f}"
            rows.append(f"| {size:,} | {figures} | {spark / memory:.0f} |")
            print(rows[-1], flush=True)
    session.stop()
    lines = [
        "## Spark",
        "",
        f"`benchmarks/spark_overhead.py`. {machine('pyspark', 'pyarrow', 'numpy')}, local[2].",
        "",
        "| answers | making the blocks, s | iteration on Spark, s | in memory, s | difference, s | ratio |",
        "|---|---|---|---|---|---|",
        *rows,
    ]
    if not options.quick:
        write_section("spark", lines)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
