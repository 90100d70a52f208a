"""Simulated answers: what the default costs where the plain mean is best, and what it gains elsewhere."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from evidence.first_step.comparison import DEFAULT, FIRST_STEPS, relative_risks, with_error
from evidence.first_step.designs import DESIGNS, NORMAL, WORKERS_PER_ANSWER, ErrorDesign
from evidence.panel_estimates import seed_for
from evidence.points import Point, near
from evidence.processes import run_tasks
from trueup.report.page import PageTable, Section

if TYPE_CHECKING:
    from evidence.second_step.context import Context

PANELS = 200
QUESTIONS, SIZES = 50, (3, 10)
#: Questions of smaller panels of alike workers, and the largest share by which the default may be above the mean.
SMALL = (10, 20)
LIMITS = {10: 0.015, 20: 0.015, 50: 0.01}
COLUMNS = {name: FIRST_STEPS[name] for name in ("native", DEFAULT, "median", "student_t")}


def cell(
    design: ErrorDesign, answers_each: int, questions: int, panels: int, seed: int
) -> list[dict[str, Any]]:
    """Return the rows of a design and size."""
    drawn = design.draw(
        panels, answers_each, questions, seed_for(seed, design.name, answers_each, questions)
    ).drawn
    about = {"design": design.name, "answers": answers_each, "questions": questions}
    return [about | row for row in relative_risks(*drawn, COLUMNS, seed=seed)]


def simulated_designs(context: Context) -> Section:
    """Compare first steps on all designs."""
    panels = min(context.samples, PANELS)
    plan = [(NORMAL, size, questions) for questions in SMALL for size in SIZES]
    plan += [(design, size, QUESTIONS) for design in DESIGNS for size in SIZES]
    tasks = [
        (
            f"{design.name} {size} x {questions}",
            partial(cell, design, size, questions, panels, context.seed),
        )
        for design, size, questions in plan
    ]
    rows = run_tasks(context, "simulated_designs", tasks)
    cells: dict[tuple[str, int, int], dict[str, dict[str, Any]]] = {}
    for row in rows:
        key = (row["design"], row["questions"], row["answers"])
        cells.setdefault(key, {})[row["first_step"]] = row
    costs = {key: found[DEFAULT] for key, found in cells.items() if key[0] == NORMAL.name}
    within = {key: row["ratio"] - 1 <= LIMITS[key[1]] for key, row in costs.items()}
    for (_, questions, size), row in costs.items():
        context.points.append(
            Point(
                2, f"Alike normal workers, {questions} questions, {size} answers: cost of the default",
                with_error(row), f"at most {1 + LIMITS[questions]:.3f}", row["ratio"] - 1 <= LIMITS[questions],
                near(row["ratio"], row["ratio_se"], high=1 + LIMITS[questions]),
            )
        )  # fmt: skip
    dearest = max(costs, key=lambda key: costs[key]["ratio"])
    return Section(
        title=(
            f"Simulated answers: at most {costs[dearest]['ratio'] - 1:.1%} above the plain mean where that is best"
        ),
        verdict=(
            "Target: with alike normal workers at most 1.5% above the plain mean from 10 questions on, 1% from 50 on. "
            + "; ".join(
                f"{questions} questions, {size} answers: {with_error(row)}"
                for (_, questions, size), row in costs.items()
            )
            + "."
        ),
        holds=all(within.values()),
        text=(
            f"{panels} panels per cell; truths N(0, 1). The pool has {WORKERS_PER_ANSWER} workers for each answer to a "
            "question, so that a worker answers a third of the questions; of the last design it is so large that most "
            "workers answer one question. Unequal workers: standard deviations exp(N(0, 0.5²)). Gross errors are "
            "15-fold; answers of spammers are the truth plus a uniform error between -10 and 10."
        ),
        tables=[
            PageTable(
                "Mean squared error relative to the plain mean",
                ["design", "questions", "answers to a question", *COLUMNS],
                [
                    [name, questions, size, *(with_error(found[step]) for step in COLUMNS)]
                    for (name, questions, size), found in cells.items()
                ],
            )
        ],
    )  # fmt: skip
