"""Bias of differences by `trueup.rank`, beside that of averages of shrunk estimates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import trueup
from evidence.panel_estimates import seed_for
from evidence.points import ALLOWED, Point
from evidence.ranking.designs import Design, draw, frame_of
from trueup.report.page import PageTable, Section

if TYPE_CHECKING:
    from evidence.second_step.context import Context

PANELS = 150
DESIGNS = [Design(judges, items, 0.2, gap=1.0) for judges in (3, 5) for items in (30, 100)]


def cell(design: Design, samples: int, seed: int) -> dict[str, Any]:
    """Return the mean error of both differences, each with its standard error."""
    rng = np.random.default_rng(seed_for(seed, "bias", design.name))
    errors = []
    for _ in range(samples):
        scores = frame_of(draw(design, rng))
        ours = trueup.rank(scores, by="system", item="item").standings.difference(0, 1).value
        est = trueup.estimate(scores, question=["item", "system"], target="consensus")
        system = np.array([name[1] for name in est.answers.question_ids.values])
        shrunk = est.estimate[system == 0].mean() - est.estimate[system == 1].mean()
        errors.append((ours - design.gap, shrunk - design.gap))
    mean, error = np.mean(errors, axis=0), np.std(errors, axis=0, ddof=1) / samples**0.5
    return {
        "design": design.name,
        "bias": mean[0], "bias_se": error[0], "shrunk_bias": mean[1], "shrunk_bias_se": error[1],
    }  # fmt: skip


def bias(context: Context) -> Section:
    """Measure how far differences are off on average, with a true difference of 1."""
    samples = min(context.samples, PANELS)
    rows = [cell(design, samples, context.seed) for design in DESIGNS]
    context.rows["ranking_bias"] = rows

    def pooled(name: str) -> tuple[float, float]:
        error = np.sqrt(sum(row[f"{name}_se"] ** 2 for row in rows)) / len(rows)
        return float(np.mean([row[name] for row in rows])), float(error)

    ours, shrunk = pooled("bias"), pooled("shrunk_bias")
    context.points.append(
        Point(
            2, "A difference of 1", f"{1 + ours[0]:.3f} ± {ours[1]:.3f}", "within two standard errors",
            abs(ours[0]) <= 2 * ours[1], abs(ours[0]) <= ALLOWED * ours[1],
        )
    )  # fmt: skip
    return Section(
        title=f"A difference of 1 comes out as {1 + ours[0]:.3f} ± {ours[1]:.3f}",
        verdict=(
            f"Averages of shrunk estimates: {1 + shrunk[0]:.3f} ± {shrunk[1]:.3f}. Target: within two standard errors "
            "of 1."
        ),
        holds=abs(ours[0]) <= 2 * ours[1],
        text=f"{samples} panels per cell, through `trueup.rank` and `trueup.estimate`.",
        tables=[
            PageTable(
                "Mean error of the difference of two systems",
                ["panel", "trueup.rank", "averages of shrunk estimates"],
                [
                    [
                        row["design"],
                        f"{row['bias']:+.3f} ± {row['bias_se']:.3f}",
                        f"{row['shrunk_bias']:+.3f} ± {row['shrunk_bias_se']:.3f}",
                    ]
                    for row in rows
                ],
            )
        ],
    )
