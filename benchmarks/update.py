"""An update with one new answer for every hundred, against an estimate from all of them.

    python benchmarks/update.py             10^6 answers, 100,000 questions, 1,000 workers, text ids
    python benchmarks/update.py --quick     a tenth of the size, to try the script; nothing is written

All in one process, in turns, the best of three. `load` is `trueup.load`; an update reads the state itself.
"""

from __future__ import annotations

import argparse
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from first_step import in_turns
from measure import machine, make_answers, write_section

import trueup

SIZE = 10**6
METHODS = ("auto", "dtd", "crh")
REPEAT = 3


def difference(one: trueup.Estimate, other: trueup.Estimate) -> float:
    """Return the largest difference of two estimates of the same questions, in standard deviations of the truths."""
    at = one.answers.question_ids.index_of(other.answers.question_ids)
    return float(np.abs(one.estimate[at] - other.estimate).max() / other.estimate.std())


def main() -> None:
    """Time all methods and write the section."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    size = SIZE // 10 if options.quick else SIZE
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        every = pq.read_table(make_answers(size, Path(folder)))
        old, new = every.slice(0, size - size // 100), every.slice(size - size // 100)
        for method in METHODS:
            before = trueup.estimate(old, method=method)
            state = before.save(Path(folder, "state.trueup"))
            full = partial(trueup.estimate, every, method=method)
            update = partial(trueup.update, state, new, save=False)
            written = partial(trueup.update, state, new, save=Path(folder, "new.trueup"))
            times = in_turns([partial(trueup.load, state), update, written, full], REPEAT)
            load, quick, saved, whole = times
            apart = difference(update(), full())
            what = f"{method} ({before.diagnosis.method})" if method == "auto" else method
            rows.append(
                f"| {what} | {before.second_step.models[0]} | {load:.2f} | {quick:.2f} | {saved:.2f} | {whole:.2f} "
                f"| {quick / whole:.2f} | {apart:.0e} |"
            )
            print(rows[-1], flush=True)
    workers, questions = max(200, size // 1000), size // 10
    about = (
        f"{size:,} answers, {questions:,} questions, {workers:,} workers, text ids; the last hundredth of the answers "
        "is new. Seconds; the difference is the largest between estimates, in standard deviations of the truths."
    )
    lines = [
        "## Updates",
        "",
        f"`benchmarks/update.py`. {machine('numpy', 'pyarrow')}.",
        "",
        about,
        "",
        "| method | prior | load | update | and save | full run | update / full run | difference |",
        "|---|---|---|---|---|---|---|---|",
        *rows,
    ]
    if not options.quick:
        write_section("update", lines)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
