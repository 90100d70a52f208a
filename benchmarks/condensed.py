"""How far estimates move where priors are fitted on a few weighted points instead of on all questions.

    python benchmarks/condensed.py             50,000 questions of each kind
    python benchmarks/condensed.py --quick     15,000 questions, to try the script; nothing is written

Ten of 500 workers answer each question; truths are uniform, normal, skewed or in clusters. CRH with the second step
runs twice: with the prior fitted on all questions, and as it does by itself. Moves are in standard errors of the
aggregate.
"""

from __future__ import annotations

import argparse

import numpy as np
from measure import machine, write_section

import trueup
from trueup.shrinkage import condense

QUESTIONS, QUICK, WORKERS, EACH = 50_000, 15_000, 500, 10
KINDS = ("uniform", "normal", "skewed", "clusters")


def answers(kind: str, questions: int) -> dict[str, np.ndarray]:
    """Draw answers of workers with unequal noise."""
    rng = np.random.default_rng(7)
    truth = {
        "uniform": rng.uniform(-2.0, 2.0, questions),
        "normal": rng.normal(size=questions),
        "skewed": rng.exponential(1.5, questions),
        "clusters": rng.choice([-3.0, 0.0, 4.0], questions) + 0.3 * rng.normal(size=questions),
    }[kind]
    question = np.repeat(np.arange(questions), EACH)
    first = rng.integers(WORKERS, size=questions)
    worker = (first[:, None] + 7 * np.arange(EACH)).ravel() % WORKERS
    noise = np.exp(0.4 * rng.normal(size=WORKERS))[worker] * rng.normal(size=question.size)
    return {"question": question, "worker": worker, "answer": truth[question] + noise}


def moves(kind: str, questions: int) -> list[str]:
    """Return the row of one kind."""
    found = []
    for many in (questions + 1, condense.MANY):
        before, condense.MANY = condense.MANY, many
        try:
            found.append(
                trueup.estimate(
                    answers(kind, questions), "crh", target="consensus", transform="none"
                )
            )
        finally:
            condense.MANY = before
    everything, condensed = (each.questions for each in found)
    unit = np.asarray(everything["base_std_error"])
    cells = [kind]
    for column in ("estimate", "lower", "upper"):
        move = (np.asarray(condensed[column]) - np.asarray(everything[column])) / unit
        cells += [f"{np.sqrt((move**2).mean()):.1e}", f"{np.abs(move).max():.1e}"]
    return cells


def main() -> None:
    """Measure every kind and write the section."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    questions = QUICK if options.quick else QUESTIONS
    rows = [moves(kind, questions) for kind in KINDS]
    columns = [
        f"{name}, {how}" for name in ("estimate", "lower", "upper") for how in ("rms", "most")
    ]
    text = [
        f"`benchmarks/condensed.py`. {machine('numpy', 'scipy')}.",
        "",
        (
            f"{questions:,} questions with {EACH} answers each, CRH and the second step: how far estimates and "
            "intervals move, in standard errors of the aggregate, where the prior is fitted on weighted points."
        ),
        "",
        f"| truths | {' | '.join(columns)} |",
        "|---" * (len(columns) + 1) + "|",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
    print("\n".join(text))
    if not options.quick:
        write_section("Priors on weighted points", text)


if __name__ == "__main__":
    main()
