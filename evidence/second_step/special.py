"""Designs beyond complete panels with normal noise: uneven questions, bad workers, groups and covariates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evidence.points import Point, near
from evidence.second_step import designs
from evidence.second_step.cell_tables import cell_label, clearly_above, first_few, group_by, mean
from evidence.second_step.charts import marks
from evidence.second_step.designs import Design, Labelled
from evidence.second_step.rules import OURS, PRINTED, RIGHT, Unaware
from trueup.errors import TrueupError
from trueup.report.page import Figure, PageTable, Section
from trueup.study.harness import SecondStep

if TYPE_CHECKING:
    from evidence.second_step.context import Context
    from trueup.study.harness import StudyCell

UNAWARE = "ours, without them"
ROBUST = ("mean", "median", "native")
UNEVEN = [
    Design(f"1 to 100 answers, truth N(0, {scale**2:.3g})", designs.uneven(scale))
    for scale in (0.3, 1.0, 3.0)
]
NOISY = [
    Design("Student t3 noise", designs.heavy_noise),
    Design("30% spammers", designs.spammers),
    Design("5% gross errors", designs.gross),
]
EXACT = Design("one exact worker", designs.one_exact)
INFORMED = [
    Design("five groups", designs.grouped, designs.group_labels),
    Design("useless groups", designs.plain, designs.group_labels),
    Design("useful covariate", designs.sloped, designs.covariate),
    Design("useless covariate", designs.plain, designs.covariate),
]
EMOTIONS = "emotions, seven scales as groups"
#: Workers and questions beside an exact worker; with student_t, which finds it.
BESIDE_EXACT = [(3, 40), (5, 30), (5, 100), (10, 40)]
# Number of consecutive questions of emotions with the same scale.
RUN = 100


def special_designs(context: Context) -> Section:
    """Run all second steps on these designs."""
    steps = [step for step in context.rules if step.name in (PRINTED, RIGHT, OURS)]
    told = [*steps, SecondStep(UNAWARE, None, Unaware(caution=1.0))]
    few = min(context.samples, 10 if context.quick else 100)
    cells = context.cells_of("special_designs", UNEVEN, [(200, 100)], ["mean"], steps, samples=few)
    cells += context.cells_of("special_designs", NOISY, [(10, 50)], ROBUST, steps)
    cells += context.cells_of("special_designs", [EXACT], BESIDE_EXACT, ["student_t"], steps)
    cells += context.cells_of("special_designs", INFORMED, [(5, 50)], ["mean"], told)
    bayes = {}
    for designs_, n, m, samples in (
        (UNEVEN, 200, 100, few),
        (INFORMED, 5, 50, context.samples),
    ):
        for design in designs_:
            bayes[design.name] = design.bayes_ratio(samples, n, m, context.seed)[0]
    text = ""
    try:
        source = _emotions(context)
    except TrueupError:
        text = "Not run, because the data are not available: emotions."
    else:
        sizes = [(n, 140) for n in ((3,) if context.quick else (2, 3, 5, 10))]
        cells += context.cells_of("special_designs", [source], sizes, ["mean"], told, samples=few)
    rows, chart = _rows(cells, bayes)
    mine = {(c.source, c.method): c for c in cells if c.step == OURS and c.source != EMOTIONS}
    above = clearly_above(cell for cell in cells if cell.step == OURS)
    _points(context, cells, bayes)
    gaps = [mine[design.name, "mean"].ratio - bayes[design.name] for design in UNEVEN]
    return Section(
        title=(
            f"Special designs: within {max(gaps):.2f} of the Bayes rule where questions have 1 to 100 answers; known "
            f"groups lower the ratio to {mine['five groups', 'mean'].ratio:.2f}, a covariate to "
            f"{mine['useful covariate', 'mean'].ratio:.2f}"
        ),
        verdict=(
            "Target: no harm, and a gain from groups and covariates. Above 1 by more than two standard errors: "
            f"{first_few([cell_label(cell) for cell in above])}. Known groups lower the "
            f"ratio from {_unaware(cells, 'five groups'):.2f} to {mine['five groups', 'mean'].ratio:.2f} (Bayes "
            f"{bayes['five groups']:.2f}), a useful covariate from {_unaware(cells, 'useful covariate'):.2f} to "
            f"{mine['useful covariate', 'mean'].ratio:.2f} (Bayes {bayes['useful covariate']:.2f}); useless ones "
            f"change it by {mine['useless groups', 'mean'].ratio - _unaware(cells, 'useless groups'):+.3f} and "
            f"{mine['useless covariate', 'mean'].ratio - _unaware(cells, 'useless covariate'):+.3f}."
        ),
        holds=None if above else True,
        text=(
            "Uneven: 100 questions, 200 workers, 1 to 100 answers per question, log-uniform. Noise: "
            "10 workers, 50 questions, truth N(0, 1); answers of spammers are uniform from -10 to 10; a gross error is "
            "15-fold. One exact worker: the others have errors of variance 1; student_t nearly follows the exact one, "
            "so that hardly any error is left to lower. Groups: 5 workers, five groups of 10 questions; standard "
            "deviation 5 between groups, 0.5 "
            f"within. Covariate: truth 2 z + N(0, 0.25). '{UNAWARE}' is ours on the same answers without groups or "
            f"covariates. {text}"
        ),
        figures=[
            Figure(
                "Ratio of risks by design and second step",
                marks(chart, name="design", value="ratio", colour="second step", log=True),
                note="To the left of the dashed line the second step helps. Best linear is the best common factor "
                "in hindsight.",
            )
        ],
        tables=[
            PageTable(
                "Ratios of risks and coverage of the 95% intervals, worst for ours first",
                [
                    "design", "first step", "n", "m", PRINTED, RIGHT, OURS, "±", UNAWARE, "Bayes",
                    "best linear", "coverage",
                ],
                rows,
            )
        ],
    )  # fmt: skip


def _emotions(context: Context) -> Labelled:
    source = context.real("emotions")
    ids = np.array([int(str(id_)) for id_ in source.answers.question_ids.tolist()])
    return Labelled(
        EMOTIONS, source.answers, source.truth, blocks=source.blocks, labels=(ids - 1) // RUN
    )


def _unaware(cells: list[StudyCell], source: str) -> float:
    return mean(cell.ratio for cell in cells if cell.source == source and cell.step == UNAWARE)


def _rows(
    cells: list[StudyCell], bayes: dict[str, float]
) -> tuple[list[list[object]], list[dict[str, object]]]:
    """Return the rows of the table, worst first, and the points of the chart in the same order."""
    rows, points = [], []
    groups = group_by(cells, "source", "method", "n", "m")
    for (source, method, n, m), each in sorted(
        groups.items(), key=lambda item: -next(c.ratio for c in item[1] if c.step == OURS)
    ):
        found = {cell.step: cell for cell in each}
        ours = found[OURS]
        known = bayes.get(source, float("nan")) if method == "mean" else float("nan")
        ratio = {step: cell.ratio for step, cell in found.items()}
        ratio |= {"Bayes": known, "best linear": ours.oracle}
        order = [PRINTED, RIGHT, OURS, UNAWARE, "Bayes", "best linear"]
        figures = [round(ratio.get(step, float("nan")), 3) for step in order]
        figures.insert(3, round(ours.ratio_se, 3))
        rows.append([source, method, n, m, *figures, round(ours.coverage, 3)])
        design = f"{source}, {method}"
        if source in (EMOTIONS, EXACT.name):
            design += f", n = {n}" if source == EMOTIONS else f", {n} x {m}"
        points += [
            {"design": design, "second step": step, "ratio": ratio[step]}
            for step in (OURS, UNAWARE, RIGHT, PRINTED, "Bayes", "best linear")
            if step in ratio
        ]
    return rows, points


def _points(context: Context, cells: list[StudyCell], bayes: dict[str, float]) -> None:
    found = {(c.source, c.step): c.ratio for c in cells if c.method == "mean"}
    error = {(c.source, c.step): c.ratio_se for c in cells if c.method == "mean"}
    name = UNEVEN[1].name
    ours, right, best = found[name, OURS], found[name, RIGHT], bayes[name]
    context.points += [
        Point(
            5, "1 to 100 answers per question, truth N(0, 1): ours minus the Bayes rule",
            f"{ours - best:+.3f}", "at most 0.03", ours - best <= 0.03, near(ours - best, error[name, OURS], high=0.03),
        ),
        Point(
            5, "The same: the paper's rule with our variance minus the Bayes rule",
            f"{right - best:+.3f}", "at least 0.15", right - best >= 0.15, near(right - best, error[name, RIGHT], 0.15),
        ),
        Point(
            8, "Five known groups", f"{found['five groups', OURS]:.3f}", "at most 0.70",
            found["five groups", OURS] <= 0.70, near(found["five groups", OURS], error["five groups", OURS], high=0.70),
        ),
    ]  # fmt: skip
    for useless in ("useless groups", "useless covariate"):
        change = found[useless, OURS] - found[useless, UNAWARE]
        context.points.append(
            Point(
                8,
                f"{useless.capitalize()}: change when used",
                f"{change:+.3f}",
                "at most 0.01",
                change <= 0.01,
                near(change, error[useless, OURS], high=0.01),
            )
        )
