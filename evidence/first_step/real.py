"""Real answers: sub-panels of a few answers to each question, and all answers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from evidence.first_step.comparison import DEFAULT, FIRST_STEPS, relative_risks, with_error
from evidence.processes import run_tasks
from evidence.sub_panels import EVERYTHING, RANDOM_ANSWERS, RANDOM_WORKERS, draw
from trueup.errors import TrueupError
from trueup.report.page import PageTable, Section

if TYPE_CHECKING:
    from evidence.second_step.context import Context

SETS = ("emotions", "calories", "dots", "groceries", "pies", "nflx_public", "population")
SIZES = (3, 6, 12)
PANELS = 40
#: How sub-panels are drawn, and how many answers to a question they have; 0: all.
PLAN = (
    *((RANDOM_WORKERS, size) for size in SIZES),
    *((RANDOM_ANSWERS, size) for size in SIZES),
    (EVERYTHING, 0),
)
#: A cell is clearly worse than the mean beyond this ratio.
WORSE = 1.02


def cell(
    name: str, data: str | None, how: str, answers_each: int, panels: int, seed: int
) -> list[dict[str, Any]]:
    """Return the rows of a data set and a number of answers to each question."""
    drawn = draw(name, data, how, answers_each, panels, seed)
    if drawn is None:
        return []
    about = {
        "data": name,
        "drawn": how,
        "answers": answers_each,
        "questions": drawn.answers.n_questions // drawn.answers.n_panels,
    }
    return [about | row for row in relative_risks(*drawn, seed=seed)]


def real_sets(context: Context) -> Section:
    """Compare first steps on the available data sets."""
    names = SETS[3:5] if context.quick else SETS
    sources, missing = context.available(names)
    if not sources:
        raise TrueupError(f"none of the data sets is available ({', '.join(names)})")
    panels = min(context.samples, PANELS)
    tasks = [
        (
            f"{source.name} {how} {size}",
            partial(cell, source.name, context.data, how, size, panels, context.seed),
        )
        for source in sources
        for how, size in PLAN
    ]
    rows = run_tasks(context, "real_sets", tasks)
    cells: dict[tuple[str, str, int], dict[str, dict[str, Any]]] = {}
    for row in rows:
        key = (row["data"], row["drawn"], row["answers"])
        cells.setdefault(key, {})[row["first_step"]] = row
    ours = [found[DEFAULT]["ratio"] for found in cells.values()]
    worst = max(cells, key=lambda key: cells[key][DEFAULT]["ratio"])
    average = {
        name: float(np.exp(np.mean([np.log(found[name]["ratio"]) for found in cells.values()])))
        for name in FIRST_STEPS
    }
    above = sum(ratio > WORSE for ratio in ours)
    return Section(
        title=(
            f"Real answers: {average[DEFAULT]:.2f} of the risk of the plain mean, {above} of {len(ours)} cells above "
            f"{WORSE}"
        ),
        verdict=(
            "Geometric mean over cells of the squared error relative to the plain mean: "
            + ", ".join(f"{name} {value:.2f}" for name, value in average.items())
            + f". The worst cell of the default is {_words(*worst)}: "
            f"{with_error(cells[worst][DEFAULT])}."
        ),
        text=(
            f"{panels} random sub-panels of all questions: of random workers with all their answers (emotions within "
            "its blocks of 140 questions; not calories and population, where few workers share many questions), and of "
            "random answers to each question, so that most workers answer only some questions. "
            "population is on the scale log(1 + x). The truth of nflx_public is the mean of the workers left out. "
            "Sizes are left out where a set has fewer answers to a question. The errors of all answers (one panel) "
            f"describe the variation between questions. {missing}"
        ).strip(),
        tables=[
            PageTable(
                "Mean squared error relative to the plain mean",
                ["data", "drawn", "answers to a question", "questions", "panels", *FIRST_STEPS],
                [
                    [
                        name, how, size or "all", found[DEFAULT]["questions"], found[DEFAULT]["panels"],
                        *(with_error(found[step]) for step in FIRST_STEPS),
                    ]
                    for (name, how, size), found in cells.items()
                ],
            )
        ],
    )  # fmt: skip


def _words(name: str, how: str, size: int) -> str:
    return f"{name}, all answers" if how == EVERYTHING else f"{name}, {size} {how}"
