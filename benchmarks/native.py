"""One run of the native first step against one of the plain mean, in one process.

    python benchmarks/native.py             10^6 answers: 200,000 questions, five answers each, 1,000 workers
    python benchmarks/native.py --quick     a tenth of the size, to try the script; nothing is written

Times are the best of several runs, taken in turns, after one that counts for nothing: it imports libraries and reads
the answers for the first time.
"""

from __future__ import annotations

import argparse
from functools import partial

from first_step import in_turns
from measure import machine, write_section

import trueup
from trueup.algorithms import find, run

QUESTIONS, EACH, WORKERS = 200_000, 5, 1_000
REPEAT = 7


def main() -> None:
    """Time both first steps with one and with two threads, and write the section."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    questions = QUESTIONS // 10 if options.quick else QUESTIONS
    answers = trueup.simulate(
        workers=WORKERS, questions=questions, answers_per_question=EACH, bias=0.3, seed=1
    ).answers
    about = (
        f"{answers.n_answers:,} answers, {answers.n_questions:,} questions, {answers.n_workers:,} workers. Seconds of "
        "`trueup.algorithms.run`, in one process."
    )
    rows = []
    for threads in (1, 2):
        calls = [partial(run, find(name), answers, threads=threads) for name in ("mean", "native")]
        in_turns(calls, 1)
        mean, native = in_turns(calls, REPEAT)
        rows.append(f"| {threads} | {mean:.3f} | {native:.3f} | {native / mean:.1f} |")
    lines = [
        "## The native first step",
        "",
        f"`benchmarks/native.py`. {machine('numpy', 'scipy')}.",
        "",
        about,
        "",
        "| threads | mean | native | native / mean |",
        "|---|---|---|---|",
        *rows,
    ]
    if not options.quick:
        write_section("native", lines)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
