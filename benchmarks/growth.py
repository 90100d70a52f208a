"""How time and memory grow with the number of answers, every size in a fresh process.

    python benchmarks/growth.py                      10^5 to 10^8 answers, in memory and on disk
    python benchmarks/growth.py --quick              10^5 and 10^6, to try the script
    python benchmarks/growth.py --engines memory --sizes 1e5 1e6 1e7

The whole command line: from a Parquet file, CRH with the adaptive second step, to a Parquet file. The largest file has
1.6 GB; `--folder` says where files go.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from pathlib import Path

from measure import Run, draw, fresh, inline, machine, make_answers, trueup_command, write_section

SIZES = (10**5, 10**6, 10**7, 10**8)
QUICK = SIZES[:2]
ENGINES = ("memory", "disk")
#: Answers from which on the exponent is fitted: below them it is the start of the program that takes the time.
FITTED = 10**6


def command(engine: str, source: Path) -> list[str]:
    """Return the command line; what an engine writes besides the result lies next to the answers."""
    more = ["--work-dir", str(source.with_suffix(".work"))] if engine == "disk" else []
    return trueup_command(source, "--method", "crh", "--engine", engine, *more)


def exponent(runs: dict[int, float]) -> float:
    """Return the slope of a line through the logarithms, NaN with fewer than two sizes."""
    points = [(math.log(size), math.log(value)) for size, value in runs.items()]
    if len(points) < 2:
        return math.nan
    x, y = (math.fsum(column) / len(points) for column in zip(*points, strict=True))
    return math.fsum((a - x) * (b - y) for a, b in points) / math.fsum(
        (a - x) ** 2 for a, _ in points
    )


def table(results: dict[str, dict[int, Run]]) -> list[str]:
    """Return the results of all engines."""
    lines = [
        "| engine | answers | seconds | µs/answer | peak memory, MB | bytes/answer |",
        "|---|---|---|---|---|---|",
    ]
    for engine, runs in results.items():
        for size, run in runs.items():
            figures = (
                f"{run.seconds:.1f} | {1e6 * run.seconds / size:.2f} | {run.memory / 1e6:.0f} | "
                f"{run.memory / size:.0f}"
            )
            lines.append(f"| {engine} | {size:,} | {run.failed or figures} |")
    lines.append("")
    for engine, runs in results.items():
        done = {size: run for size, run in runs.items() if not run.failed and size >= FITTED}
        if len(done) < 2:
            continue
        time = exponent({size: run.seconds for size, run in done.items()})
        memory = exponent({size: run.memory for size, run in done.items()})
        lines.append(
            f"- {engine}: from {min(done):,} to {max(done):,} answers time grows like n^{time:.2f}, "
            f"memory like n^{memory:.2f}."
        )
    return lines


def chart(results: dict[str, dict[int, Run]]) -> str:
    """Draw seconds and gigabytes over answers."""
    import altair as alt

    rows = [
        {"engine": engine, "answers": size, "seconds": run.seconds, "gigabytes": run.memory / 1e9}
        for engine, runs in results.items()
        for size, run in runs.items()
        if not run.failed
    ]
    log = alt.Scale(type="log")
    base = alt.Chart(inline(rows)).mark_line(point=True)
    pictures = [
        base.encode(
            x=alt.X("answers:Q", scale=log, axis=alt.Axis(format="~s")),
            y=alt.Y(f"{what}:Q", scale=log),
            color="engine:N",
        ).properties(width=300, height=240)
        for what in ("seconds", "gigabytes")
    ]
    return draw("growth", alt.hconcat(*pictures))


def main() -> None:
    """Run all sizes and write the section."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="two sizes; nothing is written")
    parser.add_argument("--sizes", type=float, nargs="+", default=SIZES)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=ENGINES)
    parser.add_argument("--folder", type=Path, help="where the files go; default: a temporary one")
    parser.add_argument("--timeout", type=float, default=7200.0, help="seconds for one run")
    options = parser.parse_args()
    sizes = QUICK if options.quick else tuple(int(size) for size in options.sizes)
    results: dict[str, dict[int, Run]] = {engine: {} for engine in options.engines}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for size in sizes:
            source = make_answers(size, Path(folder))
            for engine in options.engines:
                run = results[engine][size] = fresh(command(engine, source), options.timeout)
                print(
                    f"{engine}, {size:,}: {run.seconds:.1f} s, {run.memory / 1e6:.0f} MB {run.failed}",
                    flush=True,
                )
            source.unlink()
    lines = [
        "## Growth",
        "",
        f"`benchmarks/growth.py`. {machine('numpy', 'duckdb', 'pyarrow')}.",
        "",
        "Whole processes: Parquet in, CRH, adaptive second step, Parquet out; ten answers to a question,",
        "a worker for every thousand answers (at least 200).",
        "",
        *table(results),
    ]
    if not options.quick:
        write_section("growth", [*lines, "", chart(results)])
    print("\n".join(lines))


if __name__ == "__main__":
    main()
