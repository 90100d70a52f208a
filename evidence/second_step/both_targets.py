"""Truth or consensus, on real answers: the risk of both targets, and how often truths are inside their intervals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from evidence.panel_estimates import estimate_of, seed_for
from evidence.points import Point, near
from evidence.processes import run_tasks
from evidence.second_step.rules import CAUTION
from evidence.sub_panels import EVERYTHING, RANDOM_ANSWERS, draw
from trueup.core.arrays import segment_sum
from trueup.errors import TrueupError
from trueup.report.page import PageTable, Section

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidence.second_step.context import Context
    from trueup.core.arrays import Bools, Floats, Ints

SETS = ("emotions", "calories", "dots", "groceries", "pies")
#: Answers to a question of a sub-panel; 0: all.
SIZES = (2, 3, 6, 12, 0)
METHODS = ("mean", "native", "median", "student_t")
TARGETS = ("truth", "consensus")
STEPS = (*TARGETS, f"{CAUTION} of the step")
PANELS = 40
RESAMPLES = 400
#: A cell loses if its ratio is above this.
WORSE = 1.02
#: Largest geometric mean, share of cells above 1.02 and ratio of a cell, and range of the coverage of truths.
GEOMETRIC_MEAN, SHARE_ABOVE, WORST, COVERAGE = 0.93, 0.15, 1.15, (0.93, 0.99)


@dataclass(frozen=True)
class Goal:
    """A figure of the target truth, and where it should be."""

    what: str
    found: str
    wanted: str
    reached: bool
    near: bool


@dataclass(frozen=True, eq=False)
class TargetCell:
    """One data set, number of answers and first step: losses and coverage, one number for each panel.

    `loss` has a row for each of `STEPS`.
    """

    data: str
    answers: int
    method: str
    before: Floats
    loss: Floats
    truth_inside: Floats
    consensus_inside: Floats

    def ratios(self, panels: Ints | slice = slice(None)) -> Floats:
        """Return the risk after / before the second step for each of `STEPS`, from some of the panels."""
        ratios: Floats = self.loss[:, panels].mean(axis=1) / self.before[panels].mean()
        return ratios

    @property
    def label(self) -> str:
        """Name of the cell."""
        size = f"{self.answers} answers" if self.answers else "all answers"
        return f"{self.data}, {size}, {self.method}"


def rows_of_cell(
    name: str, data: str | None, size: int, panels: int, seed: int
) -> list[dict[str, Any]]:
    """Return a row for each panel and first step."""
    drawn = draw(name, data, RANDOM_ANSWERS if size else EVERYTHING, size, panels, seed)
    if drawn is None:
        return []
    answers, truth = drawn
    borders = answers.panel_questions
    questions = np.diff(borders)

    def of_panels(values: Floats | Bools) -> Floats:
        means: Floats = segment_sum(np.asarray(values, dtype=float), borders) / questions
        return means

    rows = []
    for method in METHODS:
        one, other = (
            estimate_of(answers, method=method, transform="none", target=target)
            for target in TARGETS
        )
        columns = {
            "before": of_panels((one.base - truth) ** 2),
            "truth": of_panels((one.estimate - truth) ** 2),
            "consensus": of_panels((other.estimate - truth) ** 2),
            STEPS[2]: of_panels((one.base + CAUTION * (other.estimate - one.base) - truth) ** 2),
            "truth_inside": of_panels((one.truth_lower <= truth) & (truth <= one.truth_upper)),
            "consensus_inside": of_panels((other.lower <= truth) & (truth <= other.upper)),
        }
        rows += [
            {"data": name, "answers": size, "method": method, "panel": panel}
            | {key: float(values[panel]) for key, values in columns.items()}
            for panel in range(len(questions))
        ]
    return rows


def cells_from(rows: Sequence[dict[str, Any]]) -> list[TargetCell]:
    """Collect the rows of each cell."""
    found: dict[tuple[str, int, str], list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault((row["data"], row["answers"], row["method"]), []).append(row)

    def column(panels: list[dict[str, Any]], name: str) -> Floats:
        return np.array([row[name] for row in panels])

    return [
        TargetCell(
            *key,
            before=column(panels, "before"),
            loss=np.stack([column(panels, step) for step in STEPS]),
            truth_inside=column(panels, "truth_inside"),
            consensus_inside=column(panels, "consensus_inside"),
        )
        for key, panels in found.items()
    ]


def summary(ratios: Floats) -> Floats:
    """Return geometric mean, share above 1.02 and largest of the ratios of all cells, for each of `STEPS`."""
    return np.stack(
        [np.exp(np.log(ratios).mean(axis=0)), (ratios > WORSE).mean(axis=0), ratios.max(axis=0)]
    )


def summary_errors(cells: Sequence[TargetCell], seed: int) -> Floats:
    """Return standard errors of the summary: panels are drawn again, the same ones for all first steps."""
    rng = np.random.default_rng(seed_for(seed, "both targets"))
    again = []
    for _ in range(RESAMPLES):
        chosen: dict[tuple[str, int], Ints] = {}
        ratios = []
        for cell in cells:
            count = len(cell.before)
            key = (cell.data, cell.answers)
            if key not in chosen:
                chosen[key] = rng.integers(0, count, count)
            ratios.append(cell.ratios(chosen[key]))
        again.append(summary(np.array(ratios)))
    errors: Floats = np.std(again, axis=0, ddof=1)
    return errors


def coverage_error(cells: Sequence[TargetCell]) -> float:
    """Return a standard error of the mean coverage: that of the cells with several panels, as if all were one draw."""
    several = [cell.truth_inside for cell in cells if len(cell.truth_inside) > 1]
    return max((float(one.std(ddof=1) / np.sqrt(len(one))) for one in several), default=0.0)


def both_targets(context: Context) -> Section:
    """Estimate with both targets on the available data sets."""
    sources, missing = context.available(SETS[3:] if context.quick else SETS)
    if not sources:
        raise TrueupError(f"none of the data sets is available ({', '.join(SETS)})")
    panels = min(context.samples, PANELS)
    tasks = [
        (
            f"{source.name} {size}, {panels} panels",
            partial(rows_of_cell, source.name, context.data, size, panels, context.seed),
        )
        for source in sources
        for size in SIZES
    ]
    cells = cells_from(run_tasks(context, "both_targets", tasks))
    ratios = np.array([cell.ratios() for cell in cells])
    (mean, above, worst), errors = summary(ratios), summary_errors(cells, context.seed)
    by_set = [
        float(np.mean([cell.truth_inside.mean() for cell in cells if cell.data == source.name]))
        for source in sources
    ]
    covered = float(np.mean(by_set))
    low, high = COVERAGE
    goals = (
        Goal(
            "geometric mean of the risk after / before",
            f"{mean[0]:.3f} ± {errors[0, 0]:.3f}",
            f"at most {GEOMETRIC_MEAN}",
            bool(mean[0] <= GEOMETRIC_MEAN),
            near(mean[0], errors[0, 0], high=GEOMETRIC_MEAN),
        ),
        Goal(
            f"share of cells above {WORSE}",
            f"{above[0]:.1%} ± {errors[1, 0]:.1%}",
            f"at most {SHARE_ABOVE:.0%}",
            bool(above[0] <= SHARE_ABOVE),
            near(above[0], errors[1, 0], high=SHARE_ABOVE),
        ),
        Goal(
            "worst cell",
            f"{worst[0]:.2f} ± {errors[2, 0]:.2f}",
            f"at most {WORST}",
            bool(worst[0] <= WORST),
            near(worst[0], errors[2, 0], high=WORST),
        ),
        Goal(
            "coverage of the 95% intervals for the truth, mean of the data sets",
            f"{covered:.1%}",
            f"{low:.0%} to {high:.0%}",
            low <= covered <= high,
            near(covered, coverage_error(cells), low, high),
        ),
    )
    if not context.quick:
        about = f"Target truth, {len(cells)} cells of real answers: "
        context.points += [
            Point(11, about + goal.what, goal.found, goal.wanted, goal.reached, goal.near)
            for goal in goals
        ]
    lost = max(cells, key=lambda cell: cell.ratios()[0])
    return Section(
        title=(
            f"Truth or consensus, on real answers: {mean[0]:.2f} of the risk against {mean[1]:.2f}, above {WORSE} in "
            f"{above[0]:.0%} of the cells against {above[1]:.0%}"
        ),
        verdict=(
            "Target truth: "
            + "; ".join(f"{goal.what}: {goal.found} (goal: {goal.wanted})" for goal in goals)
            + ". "
            + "; ".join(
                f"{words}: {mean[number]:.3f} ± {errors[0, number]:.3f}, above {WORSE} in {above[number]:.1%}, "
                f"worst {worst[number]:.2f}"
                for number, words in (
                    (1, "The full step, target consensus"),
                    (2, f"{CAUTION} of it"),
                )
            )
            + f". The worst cell of target truth is {lost.label}."
        ),
        holds=all(goal.reached for goal in goals),
        text=(
            f"{panels} sub-panels of random answers to each question, and all answers; answers are combined as they "
            "are (transform none), and risks are mean squared errors on their scale. Standard errors describe the "
            "choice of the panels, the same ones for all first steps; cells with all answers are one panel and do not "
            f"vary. Truths and intervals are compared over all questions. {missing}"
        ).strip(),
        tables=[_by_set(cells), by_first_step(cells), _by_cell(cells)],
    )


def _by_set(cells: Sequence[TargetCell]) -> PageTable:
    rows: list[list[object]] = []
    names = list(dict.fromkeys(cell.data for cell in cells))
    for name in [*names, "all cells"]:
        some = [cell for cell in cells if name in (cell.data, "all cells")]
        mean, above, worst = summary(np.array([cell.ratios() for cell in some]))
        inside = [
            float(np.mean([getattr(cell, f"{target}_inside").mean() for cell in some]))
            for target in TARGETS
        ]
        row: list[object] = [name, len(some)]
        for number in range(len(STEPS)):
            row += [
                round(float(mean[number]), 3),
                f"{above[number]:.0%}",
                round(float(worst[number]), 2),
            ]
        rows.append([*row, *(f"{value:.1%}" for value in inside)])
    heads = ["data", "cells"]
    for step in STEPS:
        heads += [step, f"above {WORSE}", "worst"]
    return PageTable(
        "Risk after / before the second step (geometric mean), and coverage of 95% intervals, by data set",
        [*heads, "inside truth_lower..truth_upper", "inside lower..upper"],
        rows,
    )


def by_first_step(cells: Sequence[TargetCell]) -> PageTable:
    """Return the risks of each first step before and after the second, relative to the plain mean before it.

    A first step that errs less leaves less to gain.
    """
    plain = {(c.data, c.answers): c.before.mean() for c in cells if c.method == METHODS[0]}
    rows: list[list[object]] = []
    for method in dict.fromkeys(cell.method for cell in cells):
        some = [cell for cell in cells if cell.method == method]
        before = np.array([cell.before.mean() / plain[cell.data, cell.answers] for cell in some])
        after = np.array([cell.ratios() for cell in some])
        means = [before, *after.T, before * after[:, 0]]
        rows.append([method, *(round(float(np.exp(np.log(one).mean())), 3) for one in means)])
    return PageTable(
        "By first step (geometric means): its risk relative to the plain mean, the risk after / before the second "
        "step, and the risk after it, target truth, relative to the plain mean",
        ["first step", "before", *STEPS, "after"],
        rows,
    )


def _by_cell(cells: Sequence[TargetCell]) -> PageTable:
    return PageTable(
        "Every cell, largest loss of target truth first",
        ["data", "answers", "first step", "panels", *STEPS, "truths inside"],
        [
            [
                cell.data, cell.answers or "all", cell.method, len(cell.before),
                *(round(float(ratio), 3) for ratio in cell.ratios()), f"{cell.truth_inside.mean():.0%}",
            ]
            for cell in sorted(cells, key=lambda cell: -cell.ratios()[0])
        ],
    )  # fmt: skip
