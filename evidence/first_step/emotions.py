"""Emotions: seven ratings of a hundred headlines, where a robust first step easily does harm."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from evidence.first_step.comparison import DEFAULT, FIRST_STEPS, relative_risks, with_error
from evidence.points import Point, near
from evidence.processes import run_tasks
from evidence.sub_panels import source_of
from trueup.report.page import PageTable, Section
from trueup.study.sources import Drawn, Sampled

if TYPE_CHECKING:
    from evidence.second_step.context import Context

PANELS, SEEDS = 40, 5
ALL = "all answers"
#: How sub-panels are drawn, and the largest ratio that is accepted.
SUB_PANELS = {
    ALL: 1.03,
    "6 workers, one block": 1.10,
    "6 answers to a question, all blocks": 1.10,
    "12 workers, all their answers": 1.10,
}


def draw(how: str, data: str | None, panels: int, seed: int) -> Drawn:
    """Draw sub-panels of emotions."""
    source = source_of("emotions", data)
    answers, truth = source.answers, source.truth
    assert truth is not None  # noqa: S101  emotions has truths
    if how == ALL:
        return Drawn(answers, truth)
    if how.startswith("6 workers"):
        return source.draw(panels, 6, 140, seed)
    if how.startswith("6 answers"):
        sparse = Sampled("emotions", answers, truth, sparse=True)
        return sparse.draw(panels, 6, answers.n_questions, seed)
    return Sampled("emotions", answers, truth).draw(panels, 12, answers.n_questions, seed)


def cell(how: str, data: str | None, panels: int, seed: int, folds: int) -> list[dict[str, Any]]:
    """Return the row of the default with one seed of the folds; the sub-panels are the same for all seeds."""
    drawn = draw(how, data, panels, seed)
    rows = relative_risks(*drawn, {DEFAULT: FIRST_STEPS[DEFAULT]}, seed=folds)
    return [{"sub_panels": how, "folds": folds} | row for row in rows]


def emotions_folds(context: Context) -> Section:
    """Run the default with several seeds of the folds on all answers and on sub-panels."""
    context.real("emotions")
    panels, seeds = min(context.samples, PANELS), 2 if context.quick else SEEDS
    tasks = [
        (f"{how} {folds}", partial(cell, how, context.data, panels, context.seed, folds))
        for how in SUB_PANELS
        for folds in range(seeds)
    ]
    rows = run_tasks(context, "emotions_folds", tasks)
    shown, worst = [], {}
    for how, most in SUB_PANELS.items():
        of_seed = [row for row in rows if row["sub_panels"] == how]
        ratios = [row["ratio"] for row in of_seed]
        worst[how] = max(of_seed, key=lambda row: row["ratio"])
        context.points.append(
            Point(
                3, f"emotions, {how}: worst of {seeds} seeds of the folds", with_error(worst[how]),
                f"at most {most:.2f}", worst[how]["ratio"] <= most,
                near(worst[how]["ratio"], worst[how]["ratio_se"], high=most),
            )
        )  # fmt: skip
        shown.append(
            [
                how, of_seed[0]["panels"], *(f"{ratio:.3f}" for ratio in ratios),
                round(float(np.mean(ratios)), 3), round(worst[how]["ratio_se"], 3),
            ]
        )  # fmt: skip
    return Section(
        title=f"Emotions: {worst[ALL]['ratio']:.2f} of the risk of the plain mean on all answers",
        verdict=(
            "Target: at most 1.03 on all answers, 1.10 on sub-panels, whatever the seed of the folds. Worst seed: "
            + "; ".join(f"{how} {with_error(row)}" for how, row in worst.items())
            + "."
        ),
        holds=all(worst[how]["ratio"] <= most for how, most in SUB_PANELS.items()),
        text=(
            f"The default first step; {panels} sub-panels, the same for all seeds. Ten workers answered each block of "
            "140 questions. ± is the standard error of the worst seed: between panels, for all answers between "
            "questions."
        ),
        tables=[
            PageTable(
                "Mean squared error relative to the plain mean, by seed of the folds",
                ["answers", "panels", *(f"seed {folds}" for folds in range(seeds)), "mean", "±"],
                shown,
            )
        ],
    )
