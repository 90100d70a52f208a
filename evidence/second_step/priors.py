"""Test of the priors alone: the variance of the aggregates is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidence.second_step.cell_tables import cell_label, clearly_above, first_few, group_by
from evidence.second_step.charts import lines
from evidence.second_step.context import TRUTHS
from evidence.second_step.rules import KnownVariance
from trueup.report.page import Figure, PageTable, Section
from trueup.shrinkage import EBE, Mixture, Normal
from trueup.study.harness import SecondStep
from trueup.study.sources import Synthetic

if TYPE_CHECKING:
    from evidence.second_step.context import Context

VARIANCE = 0.3
JAMES_STEIN, NORMAL, MIXTURE = "James-Stein", "normal prior", "mixture, unchecked"
STEPS = (
    SecondStep(JAMES_STEIN, KnownVariance(VARIANCE), EBE(positive=True)),
    SecondStep(NORMAL, KnownVariance(VARIANCE), Normal(caution=1.0)),
    SecondStep(MIXTURE, KnownVariance(VARIANCE), Mixture(caution=1.0)),
)


def known_variance(context: Context) -> Section:
    """Test the priors where only the prior is unknown."""
    noise = {"variance": "fixed", "variance_scale": VARIANCE}
    sources = [Synthetic(name, options | noise) for name, options in TRUTHS.items()]
    questions = (5, 20, 50) if context.quick else (5, 10, 20, 50, 200)
    sizes = [(1, m) for m in questions]
    cells = context.cells_of("known_variance", sources, sizes, ["mean"], STEPS)
    rows = []
    for (source, m), group in group_by(cells, "source", "m").items():
        by_step = {cell.step: cell for cell in group}
        figures = [
            round(value, 3)
            for step in (JAMES_STEIN, NORMAL, MIXTURE)
            for value in (by_step[step].ratio, by_step[step].ratio_se)
        ]
        rows.append([source, m, *figures])
    rows.sort(key=lambda row: -float(str(row[4])))
    mine = [cell for cell in cells if cell.step == NORMAL]
    bold = [cell for cell in cells if cell.step == MIXTURE]
    above, bold_above = clearly_above(mine), clearly_above(bold)
    plain = {(cell.source, cell.m): cell.ratio for cell in mine}
    gain = max(bold, key=lambda cell: plain[cell.source, cell.m] - cell.ratio)
    return Section(
        title=(
            "Variance known: a normal prior "
            + ("never clearly loses" if not above else f"loses in {len(above)} of {len(mine)} cells")
            + f", a mixture gains most with {gain.source}"
        ),
        verdict=(
            "Target: a normal prior that is nowhere above 1 by more than two standard errors. "
            f"Cells above: {len(above)} of {len(mine)} for the normal prior "
            f"({first_few([cell_label(cell) for cell in above])}), {len(bold_above)} for the mixture, which is "
            f"unchecked here ({first_few([cell_label(cell) for cell in bold_above])}). The mixture gains "
            f"most with {gain.source}, m = {gain.m}: {gain.ratio:.2f} compared with "
            f"{plain[gain.source, gain.m]:.2f} for the normal prior."
        ),
        holds=not above,
        text=(
            f"One aggregate per question, with normal noise of known variance {VARIANCE}. James-Stein is equation (1) "
            "of the paper with its positive part and the correct variance. Without workers to check flexible priors "
            "on, the adaptive rule is the normal prior here."
        ),
        figures=[
            Figure(
                "Risk after / before the second step, variance known",
                lines(
                    [
                        {"m": c.m, "ratio": c.ratio, "prior": c.step, "truth": c.source}
                        for c in cells
                    ],
                    x="m", y="ratio", colour="prior", panel="truth",
                ),
                note=f"Below 1 the second step helps. {context.samples:,} panels per point.",
            )
        ],
        tables=[
            PageTable(
                "Ratios of risks and their standard errors, smallest gain of the normal prior first",
                ["true values", "m", JAMES_STEIN, "±", NORMAL, "±", MIXTURE, "±"],
                rows,
            )
        ],
    )  # fmt: skip
