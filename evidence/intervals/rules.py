"""Intervals by the variance rules with a name: few workers, few questions, sparse answers, biased workers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import trueup
from evidence.intervals.consensus import is_near
from evidence.panel_estimates import seed_for
from evidence.points import Point
from evidence.processes import run_tasks
from evidence.second_step.cell_tables import first_few
from trueup.algorithms import find as find_method
from trueup.algorithms.driver import run
from trueup.answers.answers import Answers
from trueup.pipeline.shrink import second_step
from trueup.report.page import PageTable, Section
from trueup.shrinkage import find as find_rule

if TYPE_CHECKING:
    from evidence.second_step.context import Context
    from trueup.core.arrays import Floats

LEVEL = 0.95
#: Least and largest share of intervals that should hold the truth, apart from chance.
RANGE = (0.93, 0.98)
RULES = ("plugin", "sandwich", "jackknife", "bootstrap")
METHODS = ("mean", "crh", "median")
STEPS = ("none", "normal")
#: Options of `trueup.simulate`, by name.
DESIGNS: dict[str, dict[str, Any]] = {
    "3 workers, 5 questions": {"workers": 3, "questions": 5},
    "3 workers, 40 questions": {"workers": 3, "questions": 40},
    "5 workers, 5 questions": {"workers": 5, "questions": 5},
    "5 workers, 40 questions": {"workers": 5, "questions": 40},
    "10 workers, 5 questions": {"workers": 10, "questions": 5},
    "10 workers, 40 questions": {"workers": 10, "questions": 40},
    "2 answers of 10 workers, 40 questions": {
        "workers": 10,
        "questions": 40,
        "answers_per_question": 2,
    },
    "5 answers of 20 workers, 40 questions": {
        "workers": 20,
        "questions": 40,
        "answers_per_question": 5,
    },
    "3 biased workers, 40 questions": {"workers": 3, "questions": 40, "bias": 1.0},
}


def coverage(answers: Answers, truth: Floats, method: str, step: str, rule: str) -> Floats:
    """Return whether each interval holds the truth, the squared standard error and the squared error, as rows."""
    moved = second_step(answers, run(find_method(method), answers), find_rule(step), rule)
    error = np.abs(moved.posterior.mean - truth)
    inside = error <= moved.half_width(answers, LEVEL)
    return np.stack([inside.astype(np.float64), moved.std_error(answers) ** 2, error**2])


def cell(design: str, rule: str, panels: int, seed: int) -> list[dict[str, Any]]:
    """Return a row for each first and second step."""
    drawn = trueup.simulate(panels=panels, seed=seed_for(seed, design), **DESIGNS[design])
    answers, truth = drawn.answers, drawn.truth.reshape(panels, -1)
    parts = [(answers, truth.ravel())]
    if rule == "bootstrap":  # it draws from a single problem
        single = (Answers.from_matrix(answers.panel(b).to_matrix()) for b in range(panels))
        parts = list(zip(single, truth, strict=True))
    rows = []
    for method in METHODS:
        for step in STEPS:
            found = [coverage(data, true, method, step, rule) for data, true in parts]
            inside, variance, error = (
                np.concatenate(found, axis=1).reshape(3, panels, -1).mean(axis=2)
            )
            rows.append(
                {
                    "design": design,
                    "rule": rule,
                    "method": method,
                    "shrink": step,
                    "intervals": inside.size * len(truth[0]),
                    "inside": float(inside.mean()),
                    "error": float(inside.std(ddof=1) / np.sqrt(panels)),
                    "ratio": float(variance.mean() / error.mean()),
                }
            )
    return rows


def named_rules(context: Context) -> Section:
    """Measure the intervals of the rules with a name."""
    panels = context.samples
    tasks = [
        (f"{rule}, {design}", partial(cell, design, rule, panels, context.seed))
        for rule in RULES
        for design in DESIGNS
    ]
    rows = run_tasks(context, "named_rules", tasks)
    low, high = RANGE
    off = [
        row
        for row in rows
        if not low - 2 * row["error"] <= row["inside"] <= high + 2 * row["error"]
    ]
    context.points.append(
        Point(
            2, f"Rules with a name, {len(rows)} cells: 95% intervals that hold the truth, within two standard errors",
            f"{len(rows) - len(off)} cells; not: {first_few([*map(_words, off)])}", f"{low:.0%} to {high:.0%}",
            not off, all(is_near(row, RANGE) for row in off),
        )
    )  # fmt: skip
    least = min(rows, key=lambda row: row["inside"])
    cells = {(row["rule"], row["design"], row["method"], row["shrink"]): row for row in rows}
    columns = [(method, step) for method in METHODS for step in STEPS]

    def table(title: str, text: str) -> PageTable:
        return PageTable(
            title,
            ["rule", "answers", *(f"{method}, {step}" for method, step in columns)],
            [
                [rule, design, *(text.format(**cells[rule, design, *column]) for column in columns)]
                for rule in RULES
                for design in DESIGNS
            ],
        )

    return Section(
        title=f"Rules with a name: at least {least['inside']:.1%} of 95% intervals hold the truth",
        verdict=(
            f"Target: {low:.0%} to {high:.0%} within two standard errors. {len(rows) - len(off)} of {len(rows)} cells "
            "are there"
            + (f"; not: {'; '.join(_words(row) for row in off)}" if off else "")
            + ". The jackknife of a median is known to be inconsistent; its intervals are mostly too wide."
        ),
        holds=all(row["inside"] >= low - 2 * row["error"] for row in rows),
        text=(
            f"{panels} panels per cell; truths N(0, 1), variances of workers N(1, 0.5²), biases N(0, 1) where said. "
            'First step and shrink rule are in the head: "none" is the interval of the first step alone.'
        ),
        tables=[
            table("Share of 95% intervals that hold the truth", "{inside:.3f} ± {error:.3f}"),
            table("Mean squared standard error / mean squared error", "{ratio:.2f}"),
        ],
    )


def _words(row: dict[str, Any]) -> str:
    return f"{row['rule']}, {row['method']}, {row['shrink']}, {row['design']} {row['inside']:.1%}"
