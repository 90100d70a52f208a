"""Share of the attainable gain: ours compared with the Bayes rule that knows the prior and the workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from evidence.second_step.bayes import PRIORS
from evidence.second_step.cell_tables import mean
from evidence.second_step.charts import lines
from evidence.second_step.rules import OURS, Ours
from trueup.core.arrays import segment_sum
from trueup.datasets.simulate import simulate
from trueup.report.page import Figure, PageTable, Section
from trueup.study.harness import SecondStep, losses_of, ratio_error, seed_of

if TYPE_CHECKING:
    from evidence.second_step.context import Context
    from trueup.study.sources import Synthetic

NORMAL = ("constant", "N(0, 0.09)", "N(0, 1)")
# Smallest gain of which a share is computed.
GAIN = 0.03


def share_of_gain(context: Context) -> Section:
    """Compare ours with the Bayes rule after the plain mean."""
    sources = context.synthetic(PRIORS, bias=0.0)
    questions = (10, 50) if context.quick else (10, 20, 50, 200)
    sizes = [(n, m) for n in (3, 10) for m in questions]
    cells = context.cells_of(
        "share_of_gain", sources, sizes, ["mean"], [SecondStep(OURS, None, Ours(caution=1.0))]
    )
    found = {(cell.source, cell.n, cell.m): cell for cell in cells}
    rows: list[dict[str, Any]] = []
    for source in sources:
        for n, m in sizes:
            cell = found[source.name, n, m]
            best, error = bayes_ratio(source, n, m, context.samples, context.seed)
            share = (1.0 - cell.ratio) / (1.0 - best) if 1.0 - best > GAIN else float("nan")
            rows.append(
                {
                    "truth": source.name, "n": n, "m": m, "ours": cell.ratio, "ours_se": cell.ratio_se,
                    "bayes": best, "bayes_se": error, "share": share,
                }
            )  # fmt: skip
    context.rows["share_of_gain_bayes"] = rows
    most = max(questions)
    at = {m: _shares(rows, m) for m in (min(questions), most)}
    enough = [row for row in rows if row["m"] >= 50 and row["truth"] in NORMAL]
    least = min((row["share"] for row in enough if row["share"] == row["share"]), default=np.nan)
    shown = [
        [row["truth"], row["n"], row["m"], *(round(row[c], 3) for c in list(row)[3:])]
        for row in sorted(rows, key=lambda row: -row["ours"])
    ]
    return Section(
        title=f"Share of the attainable gain: {at[most]:.0%} on average with {most} questions",
        verdict=(
            "Target: at least 85% for constant and narrow normal truths with 50 questions. "
            f"Compared with a rule that knows the prior and the variance of every worker, ours achieves "
            f"{at[min(at)]:.0%} of the gain with {min(at)} questions and {at[most]:.0%} with {most}, on average over "
            "truths and n. For constant and narrow normal truths with at least 50 questions it achieves at least "
            f"{least:.0%}."
        ),
        holds=bool(least > 0.85),
        text=(
            "First step: the plain mean; worker variances N(1, 0.5²), truncated at 0, no biases, complete panels. With "
            "few questions the Bayes rule uses knowledge that the answers do not contain, such as where clusters are. "
            f"No share is given where the gain itself is below {GAIN:.0%}."
        ),
        figures=[
            Figure(
                "Share of the gain of the Bayes rule",
                lines(
                    [row | {"workers": f"n = {row['n']}"} for row in rows],
                    x="m", y="share", colour="workers", panel="truth", columns=4,
                ),
                note="1 is the whole attainable gain.",
            )
        ],
        tables=[
            PageTable(
                "Ratio of risks of ours and of the Bayes rule, largest first",
                ["true values", "n", "m", "ours", "±", "Bayes", "±", "share of the gain"],
                shown,
            )
        ],
    )  # fmt: skip


def bayes_ratio(source: Synthetic, n: int, m: int, samples: int, seed: int) -> tuple[float, float]:
    """Return the ratio of risks of the Bayes rule after the plain mean, and its standard error."""
    drawn = simulate(
        workers=n,
        questions=m,
        panels=samples,
        seed=seed_of(seed, source, n, m),
        **source.options,
    )
    answers, panels = drawn.answers, drawn.answers.panel_questions
    x = answers.centre + np.add.reduceat(answers.values, answers.indptr[:-1]) / n
    v = segment_sum(drawn.worker_variance, answers.panel_workers) / n**2
    best = PRIORS[source.name](x, np.repeat(v, m))
    base, losses = losses_of(panels, x, drawn.truth), losses_of(panels, best, drawn.truth)
    return float(losses.mean() / base.mean()), ratio_error(losses, base)


def _shares(rows: list[dict[str, Any]], m: int) -> float:
    return mean(row["share"] for row in rows if row["m"] == m)
