"""Priors alone: the variance of the aggregates is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidence.second_step.charts import lines
from evidence.second_step.context import TRUTHS
from evidence.second_step.rules import KnownVariance
from evidence.second_step.words import beyond, by, named, several
from trueup.report.page import Figure, Section, Table
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
    """Judge the priors where nothing but the prior is unknown."""
    noise = {"variance": "fixed", "variance_scale": VARIANCE}
    sources = [Synthetic(name, options | noise) for name, options in TRUTHS.items()]
    questions = (5, 20, 50) if context.quick else (5, 10, 20, 50, 200)
    sizes = [(1, m) for m in questions]
    cells = context.cells_of("known_variance", sources, sizes, ["mean"], STEPS)
    rows = []
    for (source, m), each in by(cells, "source", "m").items():
        ratio = {cell.step: cell for cell in each}
        figures = [
            round(value, 3)
            for step in (JAMES_STEIN, NORMAL, MIXTURE)
            for value in (ratio[step].ratio, ratio[step].ratio_se)
        ]
        rows.append([source, m, *figures])
    rows.sort(key=lambda row: -float(str(row[4])))
    mine = [cell for cell in cells if cell.step == NORMAL]
    bold = [cell for cell in cells if cell.step == MIXTURE]
    above, bold_above = beyond(mine), beyond(bold)
    plain = {(cell.source, cell.m): cell.ratio for cell in mine}
    gain = max(bold, key=lambda cell: plain[cell.source, cell.m] - cell.ratio)
    return Section(
        title=(
            "Variance known: a normal prior "
            + ("never loses beyond chance" if not above else f"loses in {len(above)} of {len(mine)} cells")
            + f", a mixture gains most with {gain.source}"
        ),
        verdict=(
            "Wanted: a normal prior that is nowhere above 1 beyond two standard errors. "
            f"Above are: the normal prior in {len(above)} of {len(mine)} cells "
            f"({several([named(cell) for cell in above])}), the mixture, which nothing keeps in check here, in "
            f"{len(bold_above)} ({several([named(cell) for cell in bold_above])}). It gains "
            f"most with {gain.source}, m = {gain.m}: {gain.ratio:.2f} where the normal prior has "
            f"{plain[gain.source, gain.m]:.2f}."
        ),
        holds=not above,
        text=(
            f"One aggregate per question, with normal noise of known variance {VARIANCE}. James-Stein is equation (1) "
            "of the paper with its positive part and the right variance. The adaptive rule has no workers to check its "
            "bolder priors on and is the normal prior here."
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
                note=f"Below 1 the second step helps. {context.samples:,} panels a point.",
            )
        ],
        tables=[
            Table(
                "Ratios of risks and their standard errors, where the normal prior gains least first",
                ["true values", "m", JAMES_STEIN, "±", NORMAL, "±", MIXTURE, "±"],
                rows,
            )
        ],
    )  # fmt: skip
