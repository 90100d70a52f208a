"""How far estimates move where not every question is looked at every time.

    python benchmarks/shortcuts.py             50,000 to 100,000 questions, two minutes
    python benchmarks/shortcuts.py --quick     15,000 questions, to try the script; nothing is written

Two shortcuts are taken with many questions: priors are fitted on a few weighted points instead of on all questions,
and the first rounds of `native` look at a sample. Everything is estimated twice, with all questions and as it is by
itself. Moves are in standard errors of the aggregate.
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from measure import machine, write_section

import trueup
from trueup.algorithms import native
from trueup.shrinkage import condense

if TYPE_CHECKING:
    from collections.abc import Callable

    Answers = dict[str, np.ndarray]

QUICK = 15_000
PRIORS, SAMPLES = 50_000, 100_000
COLUMNS = [f"{name}, {how}" for name in ("estimate", "lower", "upper") for how in ("rms", "most")]


def truths(kind: str, questions: int, rng: np.random.Generator) -> np.ndarray:
    """Draw truths."""
    if kind == "uniform":
        return rng.uniform(-2.0, 2.0, questions)
    if kind == "normal":
        return rng.normal(size=questions)
    if kind == "skewed":
        return rng.exponential(1.5, questions)
    return rng.choice([-3.0, 0.0, 4.0], questions) + 0.3 * rng.normal(size=questions)


def answers(
    questions: int,
    *,
    kind: str = "normal",
    workers: int = 500,
    each: int = 10,
    bias: float = 0.0,
    heavy: bool = False,
    neighbours: bool = False,
) -> Answers:
    """Draw answers of workers with unequal noise; a worker meets any other one, or only its neighbours in a ring."""
    rng = np.random.default_rng(7)
    truth = truths(kind, questions, rng)
    question = np.repeat(np.arange(questions), each)
    widest = 2 if neighbours else workers // each
    steps = rng.integers(1, widest, size=(questions, each)).cumsum(axis=1)
    worker = (rng.integers(workers, size=questions)[:, None] + steps).ravel() % workers
    noise = rng.standard_t(3, size=question.size) if heavy else rng.normal(size=question.size)
    noise *= np.exp(0.4 * rng.normal(size=workers))[worker]
    noise += bias * rng.normal(size=workers)[worker]
    return {"question": question, "worker": worker, "answer": truth[question] + noise}


def row(name: str, estimate: Callable[[], trueup.Estimate], module: Any, limit: str) -> str:
    """Estimate without a shortcut, whose limit is then out of reach, and with it; return the row of the moves."""
    found, usual = [], getattr(module, limit)
    for value in (10**9, usual):
        setattr(module, limit, value)
        try:
            found.append(estimate().questions)
        finally:
            setattr(module, limit, usual)
    everything, short = found
    unit = np.asarray(everything["base_std_error"])
    cells = [name]
    for column in ("estimate", "lower", "upper"):
        move = (np.asarray(short[column]) - np.asarray(everything[column])) / unit
        cells += [f"{np.sqrt((move**2).mean()):.1e}", f"{np.abs(move).max():.1e}"]
    return f"| {' | '.join(cells)} |"


def table(first: str, rows: list[str]) -> list[str]:
    """Return a table of moves."""
    return [f"| {first} | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 1) + "|", *rows]


def priors(questions: int) -> list[str]:
    """Return the table of priors on weighted points."""

    def estimate(given: Answers) -> trueup.Estimate:
        return trueup.estimate(given, "crh", target="consensus", transform="none")

    rows = [
        row(kind, partial(estimate, answers(questions, kind=kind)), condense, "MANY")
        for kind in ("uniform", "normal", "skewed", "clusters")
    ]
    return [
        f"Priors fitted on weighted points: {questions:,} questions with 10 answers each, CRH and the second step.",
        "",
        *table("truths", rows),
    ]


def samples(questions: int) -> list[str]:
    """Return the table of first rounds on a sample."""

    def estimate(given: Answers) -> trueup.Estimate:
        return trueup.estimate(given, "native", target="consensus", transform="none")

    designs: dict[str, dict[str, Any]] = {
        "no biases": {},
        "biases, standard deviation 0.3": {"bias": 0.3},
        "biases, standard deviation 1": {"bias": 1.0},
        "heavy tails": {"heavy": True},
        "heavy tails and biases, 0.3": {"heavy": True, "bias": 0.3},
        "50 workers, biases 0.3": {"workers": 50, "bias": 0.3},
        "biases 0.3, workers meet neighbours only": {"bias": 0.3, "neighbours": True},
    }
    rows = []
    for name, design in designs.items():
        given = answers(questions, **{"each": 5, **design})
        rows.append(row(name, partial(estimate, given), native, "SAMPLED"))
    return [
        (
            f"First rounds of `native` on a sample: {questions:,} questions with 5 answers each, 500 workers unless "
            "said otherwise, normal truths. Where workers meet only their neighbours, biases of workers far apart are "
            "compared through many others; the usual number of rounds does not settle them, with a sample or without."
        ),
        "",
        *table("workers", rows),
    ]


def main() -> None:
    """Measure both and write the section."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    lines = [
        "## Shortcuts",
        "",
        f"`benchmarks/shortcuts.py`. {machine('numpy', 'scipy')}.",
        "",
        "How far estimates and intervals move, in standard errors of the aggregate, where there are many questions.",
        "",
        *priors(QUICK if options.quick else PRIORS),
        "",
        *samples(QUICK if options.quick else SAMPLES),
    ]
    print("\n".join(lines))
    if not options.quick:
        write_section("shortcuts", lines)


if __name__ == "__main__":
    main()
