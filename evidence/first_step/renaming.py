"""Names of workers: how far estimates move when the same workers get other names."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from evidence.first_step.designs import DESIGNS
from evidence.panel_estimates import estimate_of, seed_for
from evidence.points import Point, near
from evidence.processes import run_tasks
from trueup import Answers
from trueup.report.page import PageTable, Section

if TYPE_CHECKING:
    from evidence.first_step.designs import ErrorDesign
    from evidence.second_step.context import Context

PANELS, NAMES = 12, 10
ANSWERS, QUESTIONS = 6, 50
#: Largest average move, in standard errors.
MOST = 0.1
#: Columns of the estimate, and their standard errors.
STEPS = {"first step": ("base", "base_std_error"), "both steps": ("estimate", "std_error")}
RENAMED = tuple(
    replace(design, name=f"{design.name}, complete", pool=1) for design in DESIGNS[:2]
) + tuple(design for design in DESIGNS if design.pool <= 3)


def cell(design: ErrorDesign, panels: int, names: int, seed: int) -> list[dict[str, Any]]:
    """Return the average move of the estimates of each panel, in standard errors, for each of `STEPS`."""
    drawn = design.draw(panels, ANSWERS, QUESTIONS, seed_for(seed, design.name))
    rng = np.random.default_rng(seed)
    rows = []
    for number, matrix in enumerate(drawn.answers):
        est = estimate_of(Answers.from_matrix(matrix))
        again = [
            estimate_of(Answers.from_matrix(matrix[rng.permutation(len(matrix))]))
            for _ in range(names)
        ]
        for steps, (column, error) in STEPS.items():
            moves = [np.abs(getattr(other, column) - getattr(est, column)) for other in again]
            move = float(np.mean(np.stack(moves) / getattr(est, error)))
            rows.append({"design": design.name, "panel": number, "steps": steps, "move": move})
    return rows


def renamed_workers(context: Context) -> Section:
    """Give the workers of panels of 50 x 6 random names."""
    panels, names = min(context.samples, PANELS), 2 if context.quick else NAMES
    designs = RENAMED[:2] if context.quick else RENAMED
    tasks = [
        (f"{design.name} {names} names", partial(cell, design, panels, names, context.seed))
        for design in designs
    ]
    rows = run_tasks(context, "renamed_workers", tasks)
    shown, averages = [], []
    for design in designs:
        row: list[object] = [design.name]
        for steps in STEPS:
            moves = [r["move"] for r in rows if (r["design"], r["steps"]) == (design.name, steps)]
            row += [
                round(float(np.mean(moves)), 4),
                round(float(np.std(moves, ddof=1) / len(moves) ** 0.5), 4),
            ]
            if steps == "first step":
                averages.append(
                    (float(np.mean(moves)), float(np.std(moves, ddof=1) / len(moves) ** 0.5))
                )
        shown.append(row)
    largest, error = max(averages)
    context.points.append(
        Point(
            6, f"Workers renamed in panels of {QUESTIONS} x {ANSWERS}: largest average move, in standard errors",
            f"{largest:.3f}", f"less than {MOST}", largest < MOST,
            near(largest, error, high=MOST),
        )
    )  # fmt: skip
    return Section(
        title=f"Names of workers: estimates move by at most {largest:.3f} standard errors on average",
        verdict=(
            f"Target: less than {MOST} standard errors on average. Largest average of a design: {largest:.3f}."
        ),
        holds=largest < MOST,
        text=(
            f"{panels} panels of {QUESTIONS} questions with {ANSWERS} answers each, {names} random renamings; workers "
            "answer a third of the questions, in complete panels all of them. The default draws its folds over the "
            "sorted names of the workers."
        ),
        tables=[
            PageTable(
                "Average move of an estimate after renaming, in standard errors",
                ["design", *(head for steps in STEPS for head in (steps, "±"))],
                shown,
            )
        ],
    )  # fmt: skip
