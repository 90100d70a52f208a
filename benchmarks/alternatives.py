"""Against what a user would do instead: the average of each question, by DuckDB or polars, from the same file.

    python benchmarks/alternatives.py            ten thousand to ten million answers, about ten minutes
    python benchmarks/alternatives.py --quick    ten thousand answers, to try the script

Every program starts in a fresh process, reads the same file (Parquet with ids as text, in no order, unless said
otherwise) and writes one of its kind. Times are those of the whole process, the best of a few turns.
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
    TO '{sys.argv[2]}' (FORMAT {sys.argv[3]})''')
"""
POLARS = """
import sys, polars as pl
read = {"parquet": pl.scan_parquet, "csv": pl.scan_csv}[sys.argv[3]]
answers = read(sys.argv[1]).group_by("question").agg(pl.col("answer").mean())
getattr(answers, "sink_" + sys.argv[3])(sys.argv[2])
"""
FIRST = "DuckDB, average"
#: The largest problem that a report is written of here, and sizes at which other files are read.
WITH_REPORT, OTHER_FILES = 1_000_000, (100_000, 1_000_000)
#: Text in Parquet comes first; then other ids and files, by their names.
KINDS = {
    "text ids, Parquet": ("text", "parquet"),
    "integer ids, Parquet": ("integers", "parquet"),
    "text ids, CSV": ("text", "csv"),
    "integer ids, CSV": ("integers", "csv"),
}


def commands(source: Path, *, report: bool) -> dict[str, list[str]]:
    """Return what is compared."""
    kind = source.suffix[1:]
    out = [str(source), str(source.with_suffix(f".average.{kind}")), kind]
    programs = {
        FIRST: [sys.executable, "-c", DUCKDB, *out],
        "polars, average": [sys.executable, "-c", POLARS, *out],
        "trueup, mean, no second step": trueup_command(
            source, "--method", "mean", "--shrink", "none"
        ),
        "trueup, CRH, adaptive": trueup_command(source, "--method", "crh"),
        "trueup, default": trueup_command(source),
    }
    if report:
        page = str(source.with_suffix(".html"))
        programs["trueup, default, with report"] = trueup_command(source, "--report", page)
    return programs


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


def other_files(size: int, kinds: dict[str, dict[str, Run]]) -> list[str]:
    """Return the seconds of each program for each kind of file of one size."""
    programs = list(next(iter(kinds.values())))
    lines = [
        f"### Other files, {size:,} answers",
        "",
        f"| seconds (/ DuckDB) | {' | '.join(kinds)} |",
        "|---" * (len(kinds) + 1) + "|",
    ]
    for program in programs:
        cells = [
            runs[program].failed
            or f"{runs[program].seconds:.2f} ({runs[program].seconds / runs[FIRST].seconds:.1f})"
            for runs in kinds.values()
        ]
        lines.append(f"| {program} | {' | '.join(cells)} |")
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
            row=alt.Row("answers:N", title="answers", sort=[f"{size:,}" for size in results]),
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
    sizes = (10_000,) if options.quick else (10_000, 100_000, 1_000_000, 10_000_000)
    turns = 1 if options.quick else 3
    results, others = {}, {}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for size in sizes:
            source = make_answers(size, Path(folder))
            results[size] = in_turns(commands(source, report=size <= WITH_REPORT), turns)
        for size in sizes[:1] if options.quick else OTHER_FILES:
            others[size] = {
                name: in_turns(
                    commands(make_answers(size, Path(folder), *kind), report=False), turns
                )
                for name, kind in KINDS.items()
            }
    lines = [
        "## Against the average of each question",
        "",
        f"`benchmarks/alternatives.py`. {machine('duckdb', 'polars', 'numpy')}.",
        "",
        "Whole processes, from a Parquet file with ids as text, in no order, to a Parquet file; best of three turns.",
        "The default is `--method auto`; CRH has the adaptive second step, too.",
        "An average has no intervals, weighs all workers alike and says nothing of them.",
        "",
    ]
    for size, runs in results.items():
        lines += [*table(size, runs), ""]
    for size, kinds in others.items():
        lines += [*other_files(size, kinds), ""]
    if not options.quick:
        write_section("alternatives", [*lines, chart(results)])
    print("\n".join(lines))


if __name__ == "__main__":
    main()
