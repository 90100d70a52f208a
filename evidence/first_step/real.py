"""Real answers: sub-panels of a few answers to each question, and all answers."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from evidence.first_step.comparison import DEFAULT, FIRST_STEPS, relative_risks, with_error
from evidence.first_step.processes import run_tasks
from evidence.panel_estimates import seed_for
from evidence.second_step.context import load_source
from trueup.errors import TrueupError
from trueup.report.page import PageTable, Section
from trueup.study.sources import Drawn

if TYPE_CHECKING:
    from evidence.second_step.context import Context

SETS = ("emotions", "calories", "dots", "groceries", "pies", "nflx_public", "population")
SIZES = (3, 6, 12)
PANELS = 40
ALL = 0
#: A cell is clearly worse than the mean beyond this ratio.
WORSE = 1.02
source_of = lru_cache(maxsize=None)(load_source)


def draw(name: str, data: str | None, answers_each: int, panels: int, seed: int) -> Drawn | None:
    """Draw sub-panels of all questions (of a block); `ALL` answers are one panel. None where there are too few."""
    source = source_of(name, data)
    if answers_each == ALL:
        return None if source.truth is None else Drawn(source.answers, source.truth)
    questions = source.answers.n_questions
    if source.blocks is not None:
        questions = int(np.bincount(source.blocks).min())
    elif source.sparse:
        questions = int((source.answers.counts >= answers_each).sum())
    if questions < 8 or not source.fits(answers_each, questions):
        return None
    return source.draw(panels, answers_each, questions, seed_for(seed, name, answers_each))


def cell(
    name: str, data: str | None, answers_each: int, panels: int, seed: int
) -> list[dict[str, Any]]:
    """Return the rows of a data set and a number of answers to each question."""
    drawn = draw(name, data, answers_each, panels, seed)
    if drawn is None:
        return []
    about = {"data": name, "answers": answers_each, "questions": _questions(drawn)}
    return [about | row for row in relative_risks(*drawn, seed=seed)]


def _questions(drawn: Drawn) -> int:
    return drawn.answers.n_questions // drawn.answers.n_panels


def real_sets(context: Context) -> Section:
    """Compare first steps on the available data sets."""
    names = SETS[3:5] if context.quick else SETS
    sources, missing = context.available(names)
    if not sources:
        raise TrueupError(f"none of the data sets is available ({', '.join(names)})")
    panels = min(context.samples, PANELS)
    tasks = [
        (
            f"{source.name} {size}",
            partial(cell, source.name, context.data, size, panels, context.seed),
        )
        for source in sources
        for size in (*SIZES, ALL)
    ]
    rows = run_tasks(context, "real_sets", tasks)
    cells: dict[tuple[str, int], dict[str, dict[str, Any]]] = {}
    for row in rows:
        cells.setdefault((row["data"], row["answers"]), {})[row["first_step"]] = row
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
            + f". The worst cell of the default is {worst[0]}, {_size(worst[1])}: "
            f"{with_error(cells[worst][DEFAULT])}."
        ),
        text=(
            f"{panels} random sub-panels of all questions. calories and population: random answers to each question; "
            "the others: random workers with all their answers, emotions within its blocks of 140 questions. "
            "population is on the scale log(1 + x). The truth of nflx_public is the mean of the workers left out. "
            "Sizes are left out where a set has fewer answers to a question. The errors of all answers (one panel) "
            f"describe the variation between questions. {missing}"
        ).strip(),
        tables=[
            PageTable(
                "Mean squared error relative to the plain mean",
                ["data", "answers to a question", "questions", "panels", *FIRST_STEPS],
                [
                    [
                        name, _size(size), found[DEFAULT]["questions"], found[DEFAULT]["panels"],
                        *(with_error(found[step]) for step in FIRST_STEPS),
                    ]
                    for (name, size), found in cells.items()
                ],
            )
        ],
    )  # fmt: skip


def _size(answers_each: int) -> str:
    return "all answers" if answers_each == ALL else f"{answers_each} answers"
