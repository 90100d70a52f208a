"""Speed of the second step and of `method="auto"`, as ratios measured in one run. Writes benchmarks/second_step.md.

python benchmarks/second_step.py            all parts, about a minute
python benchmarks/second_step.py --quick    a tenth of the size, to try the script
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from pathlib import Path

from first_step import best, in_turns
from measure import machine

import trueup
from trueup.algorithms import CRH, run
from trueup.algorithms.registry import find
from trueup.pipeline.auto_method import choose
from trueup.pipeline.shrink import second_step
from trueup.shrinkage import Adaptive, Normal

ITERATIONS = 14
RESULTS = Path(__file__).parent / "second_step.md"


def large(questions: int) -> list[str]:
    """One large problem: the second step against 14 iterations of CRH on the same answers."""
    workers = max(questions // 100, 10)
    answers, _ = trueup.simulate(
        workers=workers, questions=questions, answers_per_question=10, bias=0.3, seed=1
    )
    aggregate = run(CRH(), answers, max_iter=ITERATIONS, tol=0.0)
    crh, second, auto, native = in_turns(
        [
            lambda: run(CRH(), answers, max_iter=ITERATIONS, tol=0.0),
            lambda: second_step(answers, aggregate, Adaptive()),
            lambda: choose(answers),
            lambda: run(find("native"), answers),
        ]
    )
    return [
        f"## {answers.n_answers:,} answers, {questions:,} questions, {workers:,} workers",
        "",
        f"14 iterations of CRH: {crh:.2f} s. Priors are fitted on 50,000 of the questions.",
        "",
        "| part | seconds | / CRH |",
        "|---|---|---|",
        f"| second step, adaptive | {second:.2f} | {second / crh:.1f} |",
        f'| choosing the first step (`method="auto"`) | {auto:.2f} | {auto / crh:.1f} |',
        f"| native first step | {native:.2f} | {native / crh:.1f} |",
    ]


def auto_by_size() -> list[str]:
    """Choosing the first step, from small to middling problems."""
    lines = [
        "## Choosing the first step, by size",
        "",
        "| workers | questions | answers | CRH, ms | auto, ms | ratio |",
        "|---|---|---|---|---|---|",
    ]
    for workers, questions, each in (
        (10, 50, 10),
        (50, 500, 8),
        (200, 2_000, 5),
        (500, 5_000, 10),
        (1_000, 10_000, 10),
        (2_000, 50_000, 10),
        (5_000, 200_000, 10),
    ):
        answers, _ = trueup.simulate(
            workers=workers, questions=questions, answers_per_question=each, seed=2
        )

        def crh(answers: trueup.Answers = answers) -> object:
            return run(CRH(), answers, max_iter=ITERATIONS, tol=0.0)

        def auto(answers: trueup.Answers = answers) -> object:
            return choose(answers)

        one, other = in_turns([crh, auto], 5)
        lines.append(
            f"| {workers:,} | {questions:,} | {answers.n_answers:,} | {1e3 * one:.1f} | {1e3 * other:.0f} "
            f"| {other / one:.1f} |"
        )
    return lines


def panels(count: int) -> list[str]:
    """Many small problems in one call."""
    lines = [
        f"## {count:,} panels of 10 workers x 50 questions, in one call",
        "",
        "| truth | prior | seconds |",
        "|---|---|---|",
    ]
    for truth, words in (("normal", "N(0,1)"), ("clustered", "three clusters")):
        answers, _ = trueup.simulate(workers=10, questions=50, panels=count, truth=truth, seed=1)
        aggregate = run(find("mean"), answers)
        for rule in (Normal(), Adaptive()):
            took = best(partial(second_step, answers, aggregate, rule), 3)
            lines.append(f"| {words} | {rule.name} | {took:.2f} |")
    return lines


def main() -> None:
    """Run all parts and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of the size; nothing is written"
    )
    quick = parser.parse_args().quick
    start = time.perf_counter()
    sections = [
        [
            "# Benchmarks of the second step",
            "",
            f"Printed by `make bench`. {machine('numpy', 'scipy')}.",
        ],
        large(100_000 if quick else 1_000_000),
        auto_by_size(),
        panels(100 if quick else 1000),
    ]
    text = "\n\n".join("\n".join(section) for section in sections) + "\n"
    print(text)
    print(f"{time.perf_counter() - start:.0f} s")
    if not quick:
        RESULTS.write_text(text)


if __name__ == "__main__":
    main()
