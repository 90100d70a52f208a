"""Against what a user would do instead: the average of each question, by DuckDB or polars, from the same file.

    python benchmarks/alternatives.py            one and ten million answers, a few minutes
    python benchmarks/alternatives.py --quick    100,000 answers, to try the script

Every program starts in a fresh process, reads the same Parquet file (ids are text, rows are in no order) and writes
Parquet. Times are those of the whole process, the best of a few turns.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from measure import (
    Run,
    draw,
    in_turns,
    inline,
    machine,
    make_answers,
    trueup_command,
    write_section,
)

DUCKDB = """
import sys, duckdb
duckdb.execute(f'''COPY (SELECT question, avg(answer) AS answer FROM '{sys.argv[1]}' GROUP BY question)
    TO '{sys.argv[2]}' (FORMAT parquet)''')
"""
POLARS = """
import sys, polars as pl
answers = pl.scan_parquet(sys.argv[1]).group_by("question").agg(pl.col("answer").mean())
answers.sink_parquet(sys.argv[2])
"""
FIRST = "DuckDB, average"


def commands(source: Path) -> dict[str, list[str]]:
    """Return what is compared."""
    out = str(source.with_suffix(".average.parquet"))
    return {
        FIRST: [sys.executable, "-c", DUCKDB, str(source), out],
        "polars, average": [sys.executable, "-c", POLARS, str(source), out],
        "trueup, mean, no second step": trueup_command(
            source, "--method", "mean", "--shrink", "none"
        ),
        "trueup, CRH, adaptive": trueup_command(source, "--method", "crh"),
        "trueup, auto, adaptive": trueup_command(source),
    }


def table(size: int, runs: dict[str, Run]) -> list[str]:
    """Return the results for one size."""
    lines = [
        f"### {size:,} answers, {size // 10:,} questions, {max(200, size // 1000):,} workers",
        "",
        "| program | seconds | / DuckDB | peak memory, MB |",
        "|---|---|---|---|",
    ]
    for name, run in runs.items():
        ratio = run.seconds / runs[FIRST].seconds
        figures = f"{run.seconds:.2f} | {ratio:.1f} | {run.memory / 1e6:.0f}"
        lines.append(f"| {name} | {run.failed or figures} |")
    return lines


def chart(results: dict[int, dict[str, Run]]) -> str:
    """Draw the ratios."""
    import altair as alt

    rows = [
        {"program": name, "answers": f"{size:,}", "ratio": run.seconds / runs[FIRST].seconds}
        for size, runs in results.items()
        for name, run in runs.items()
        if not run.failed
    ]
    picture = (
        alt.Chart(inline(rows))
        .mark_bar()
        .encode(
            x=alt.X("ratio:Q", title="time / DuckDB"),
            y=alt.Y("program:N", sort=None, title=None),
            row=alt.Row("answers:N", title="answers", sort=None),
        )
        .properties(width=360)
    )
    return draw("alternatives", picture)


def main() -> None:
    """Run all programs and write the section."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="a small file; nothing is written")
    parser.add_argument("--folder", type=Path, help="where the files go; default: a temporary one")
    options = parser.parse_args()
    sizes = (100_000,) if options.quick else (1_000_000, 10_000_000)
    results = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for size in sizes:
            source = make_answers(size, Path(folder))
            results[size] = in_turns(commands(source), 1 if options.quick else 3)
    lines = [
        "## Against the average of each question",
        "",
        f"`benchmarks/alternatives.py`. {machine('duckdb', 'polars', 'numpy')}.",
        "",
        "Whole processes, from a Parquet file with ids as text, in no order, to a Parquet file; best of three turns.",
        "An average has no intervals, weighs all workers alike and says nothing of them.",
        "",
    ]
    for size, runs in results.items():
        lines += [*table(size, runs), ""]
    if not options.quick:
        write_section("alternatives", [*lines, chart(results)])
    print("\n".join(lines))


if __name__ == "__main__":
    main()
