"""Gold: the known truths of a few questions, and what they tell about the others."""

from __future__ import annotations

from functools import partial
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from evidence.panel_estimates import estimate_of, panels_of, seed_for
from evidence.points import Point, near
from evidence.processes import run_tasks
from evidence.second_step.charts import lines
from evidence.sub_panels import EVERYTHING, RANDOM_ANSWERS, draw
from trueup.report.page import Figure, PageTable, Section
from trueup.study.sources import Drawn, Synthetic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidence.second_step.context import Context
    from trueup.core.arrays import Floats

SETS = ("emotions", "calories", "dots", "groceries", "pies")
#: Answers to a question; 0: all.
SIZES = (3, 6, 0)
COUNTS = (1, 2, 3, 5, 8, 12, 20)
#: Random choices of the known questions, each in another sub-panel.
DRAWS = 12
#: Simulated crowds: name, and by what factor true differences are larger than what the crowd sees.
SIMULATED = {"simulated, nothing shared": 1.0, "simulated, sees half the differences": 2.0}
#: Fewest other questions to evaluate.
FEWEST_OTHERS = 2
#: Range of the coverage of truths, mean of the data sets.
COVERAGE = (0.90, 0.98)
METHOD = "native"


def gold_questions(context: Context) -> Section:
    """Draw known truths at random, and evaluate the other questions."""
    draws = 3 if context.quick else min(context.samples, DRAWS)
    counts = (1, 8) if context.quick else COUNTS
    sources, missing = context.available(SETS[3:] if context.quick else SETS)
    tasks = [
        (
            f"{source.name} {size}, {counts}, {draws} draws",
            partial(real_rows, source.name, context.data, size, counts, draws, context.seed),
        )
        for source in sources
        for size in SIZES
    ]
    tasks += [
        (
            f"{name}, {counts}, {draws} draws",
            partial(simulated_rows, name, counts, draws, context.seed),
        )
        for name in SIMULATED
    ]
    cells = cells_from(run_tasks(context, "gold_questions", tasks))
    real = [cell for cell in cells if cell["data"] in SETS]
    average = (
        [mean_of_sets([cell for cell in real if cell["gold"] == k]) for k in counts] if real else []
    )
    low, high = COVERAGE
    reached = all(
        row["ratio"] <= 1.0 + row["ratio_se"] and low <= row["coverage"] <= high for row in average
    )
    said = ", ".join(
        f"{row['gold']}: {row['ratio']:.3f} ± {row['ratio_se']:.3f} and {row['coverage']:.1%}"
        for row in average
    )
    if not context.quick:
        context.points += [
            Point(
                12,
                f"{row['gold']} known truths, mean of the data sets: squared error of the others relative to none",
                f"{row['ratio']:.3f} ± {row['ratio_se']:.3f}",
                "at most 1",
                row["ratio"] <= 1.0 + row["ratio_se"],
                near(row["ratio"], row["ratio_se"], high=1.0),
            )
            for row in average
        ]
        context.points += [
            Point(
                12,
                f"{row['gold']} known truths, mean of the data sets: coverage of the others",
                f"{row['coverage']:.1%}",
                f"{low:.0%} to {high:.0%}",
                low <= row["coverage"] <= high,
                near(row["coverage"], row["coverage_se"], low, high),
            )
            for row in average
        ]
    shown = sorted(cells, key=lambda cell: -cell["ratio"])
    return Section(
        title="Known truths from the first one on: what they tell about the other questions",
        verdict=(
            f"Goal: squared error not above that without known truths, coverage {low:.0%} to {high:.0%}, on average "
            f"over the data sets. Known truths, squared error of the others relative to none, coverage: {said}. "
            if average
            else ""
        )
        + "; ".join(
            f"{name}: "
            + ", ".join(
                f"{cell['gold']}: {cell['ratio']:.2f}" for cell in cells if cell["data"] == name
            )
            for name in SIMULATED
        )
        + ".",
        holds=reached if average else None,
        text=(
            f"Known questions are drawn at random {draws} times, in another sub-panel each time; all other questions "
            f"are evaluated. First step {METHOD}, answers combined as they are; without known truths the target is the "
            "truth. Means over data sets are geometric for the squared error, and give each data set the same "
            "weight; groceries has ten questions and is left out from 12 known truths on. Standard errors are over the "
            f"draws. {missing}"
        ).strip(),
        figures=[
            Figure(
                "Squared error of the other questions relative to no known truth",
                lines(
                    [
                        {"known truths": cell["gold"], "ratio": cell["ratio"], "data": cell["data"]}
                        for cell in cells
                        if not cell["answers"]
                    ],
                    x="known truths",
                    y="ratio",
                    colour="data",
                ),
                note="All answers; simulated: ten answers to each question.",
            )
        ],
        tables=[
            PageTable(
                "Mean of the data sets",
                ["known", "MSE with / without", "±", "coverage", "±", "width with / without"],
                [
                    [
                        row["gold"], round(row["ratio"], 3), round(row["ratio_se"], 3), f"{row['coverage']:.1%}",
                        f"{row['coverage_se']:.1%}", round(row["width"], 2),
                    ]
                    for row in average
                ],
            ),
            PageTable(
                "With and without known truths, largest increase of the squared error first",
                ["data", "answers", "known", "MSE with / without", "±", "coverage without", "coverage", "±", "width"],
                [
                    [
                        cell["data"], cell["answers"] or "all", cell["gold"], round(cell["ratio"], 3),
                        round(cell["ratio_se"], 3), f"{cell['coverage_without']:.0%}", f"{cell['coverage']:.0%}",
                        f"{cell['coverage_se']:.0%}", round(cell["width"], 2),
                    ]
                    for cell in shown
                ],
            ),
        ],
    )  # fmt: skip


def real_rows(
    name: str, data: str | None, size: int, counts: Sequence[int], draws: int, seed: int
) -> list[dict[str, Any]]:
    """Return the rows of a data set and a number of answers to each question."""
    drawn = draw(name, data, RANDOM_ANSWERS if size else EVERYTHING, size, draws, seed)
    about = {"data": name, "answers": size}
    return [] if drawn is None else [about | row for row in rows_of(drawn, counts, draws, seed)]


def simulated_rows(name: str, counts: Sequence[int], draws: int, seed: int) -> list[dict[str, Any]]:
    """Return the rows of a simulated crowd."""
    answers, truth = Synthetic(name, {"bias": 0.3}).draw(draws, 10, 50, seed_for(seed, name))
    drawn = Drawn(answers, SIMULATED[name] * truth)
    about = {"data": name, "answers": 0}
    return [about | row for row in rows_of(drawn, counts, draws, seed)]


def rows_of(
    drawn: Drawn, counts: Sequence[int], draws: int, seed: int, **options: Any
) -> list[dict[str, Any]]:
    """Make random questions of a panel known, and evaluate the others: a row for each draw and number of them."""
    options = {"method": METHOD, "transform": "none", "target": "truth"} | options
    rng = np.random.default_rng(seed)
    problems = []
    borders = drawn.answers.panel_questions
    for panel, answers in enumerate(panels_of(drawn.answers)):
        truth = drawn.truth[slice(*borders[panel : panel + 2])]
        problems.append((answers, truth, estimate_of(answers, **options)))
    rows = []
    for number, (answers, truth, without) in enumerate(islice(cycle(problems), draws)):
        order = rng.permutation(len(truth))
        for count in counts:
            rest = order[count:]
            if len(rest) < FEWEST_OTHERS:
                continue
            gold = np.full(len(truth), np.nan)
            gold[order[:count]] = truth[order[:count]]
            found = estimate_of(answers, gold=gold, **options)
            row: dict[str, Any] = {"draw": number, "gold": count}
            for key, est in (("without", without), ("with", found)):
                lower, upper = est.truth_lower[rest], est.truth_upper[rest]
                inside = (lower <= truth[rest]) & (truth[rest] <= upper)
                row |= {
                    f"mse_{key}": float(np.mean((est.estimate[rest] - truth[rest]) ** 2)),
                    f"coverage_{key}": float(inside.mean()),
                    f"width_{key}": float(np.mean(upper - lower)),
                }
            rows.append(row)
    return rows


def cells_from(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return means over the draws of each data set, number of answers and number of known truths."""
    found: dict[tuple[str, int, int], list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault((row["data"], row["answers"], row["gold"]), []).append(row)
    cells = []
    for (data, answers, gold), draws in found.items():

        def column(name: str, draws: list[dict[str, Any]] = draws) -> Floats:
            return np.array([row[name] for row in draws])

        base, loss, covered = column("mse_without"), column("mse_with"), column("coverage_with")
        ratio, root = loss.mean() / base.mean(), np.sqrt(len(draws))
        cells.append(
            {
                "data": data,
                "answers": answers,
                "gold": gold,
                "ratio": float(ratio),
                "ratio_se": float((loss - ratio * base).std(ddof=1) / root / base.mean()),
                "coverage_without": float(column("coverage_without").mean()),
                "coverage": float(covered.mean()),
                "coverage_se": float(covered.std(ddof=1) / root),
                "width": float(column("width_with").mean() / column("width_without").mean()),
            }
        )
    return cells


def mean_of_sets(cells: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the mean over data sets of cells with the same number of known truths; that of ratios is geometric."""
    names = [cell["data"] for cell in cells]
    share = np.array([1.0 / names.count(name) for name in names]) / len(set(names))

    def column(name: str) -> Floats:
        return np.array([cell[name] for cell in cells])

    ratio = float(np.exp(share @ np.log(column("ratio"))))
    relative = share * column("ratio_se") / column("ratio")
    return {
        "gold": cells[0]["gold"],
        "ratio": ratio,
        "ratio_se": float(ratio * np.sqrt(np.sum(relative**2))),
        "coverage": float(share @ column("coverage")),
        "coverage_se": float(np.sqrt(np.sum((share * column("coverage_se")) ** 2))),
        "width": float(np.exp(share @ np.log(column("width")))),
    }
