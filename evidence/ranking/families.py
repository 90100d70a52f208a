"""Two judges of one family among five, through `trueup.rank`: their errors correlate, and so does whom they favour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import trueup
from evidence.panel_estimates import seed_for
from evidence.points import Point, near, share_error
from evidence.ranking.designs import Design, draw, frame_of
from trueup.report.page import PageTable, Section

if TYPE_CHECKING:
    from evidence.second_step.context import Context

#: Panels per cell, correlation of errors in the family, and the smallest mean coverage of a method.
PANELS, CORRELATION, SMALLEST = 400, 0.9, 0.92
METHODS = ("auto", "mean", "crh")
DESIGNS = [Design(5, items, partial) for items in (30, 100, 400) for partial in (0.2, 0.5)]


def cell(design: Design, samples: int, seed: int) -> list[dict[str, Any]]:
    """Return coverage, and how often the family was found, for each method."""
    rng = np.random.default_rng(seed_for(seed, "family", design.name))
    inside = dict.fromkeys(METHODS, 0)
    pooled = dict.fromkeys(METHODS, 0)
    for _ in range(samples):
        scores = frame_of(draw(design, rng, family=2, shared=CORRELATION))
        for method in METHODS:
            ranking = trueup.rank(scores, by="system", item="item", method=method)
            low, high = ranking.standings.difference(0, 1).interval
            inside[method] += low <= 0 <= high
            pooled[method] += bool(ranking.weights.pooled)
    return [
        {
            "design": design.name,
            "method": method,
            "covered": inside[method] / samples,
            "pooled": pooled[method] / samples,
        }
        for method in METHODS
    ]


def families(context: Context) -> Section:
    """Measure the coverage with judges who err together."""
    samples = min(context.samples, PANELS)
    rows = [row for design in DESIGNS for row in cell(design, samples, context.seed)]
    context.rows["ranking_families"] = rows
    means = {
        method: float(np.mean([row["covered"] for row in rows if row["method"] == method]))
        for method in METHODS
    }
    worst = min(row["covered"] for row in rows)
    lowest = min(means.values())
    context.points.append(
        Point(
            4, "Two of five judges from one family: mean coverage of the worst method", f"{lowest:.1%}",
            f"at least {SMALLEST:.0%}", lowest >= SMALLEST,
            near(lowest, share_error(SMALLEST, samples * len(DESIGNS)), SMALLEST),
        )
    )  # fmt: skip
    return Section(
        title=f"Two of five judges from one family: {lowest:.1%} for the worst method",
        verdict=(
            f"Target: at least {SMALLEST:.0%} on average, whatever the method; the worst cell has {worst:.1%}."
        ),
        holds=lowest >= SMALLEST,
        text=(
            f"{samples} panels per cell of two equal systems, complete. In the family noise and partiality correlate "
            f"with {CORRELATION:g}; all judges have noise of standard deviation 1."
        ),
        tables=[
            PageTable(
                "Share of 95% intervals that contain the true difference",
                ["panel", "first step", "covered", "family found"],
                [
                    [row["design"], row["method"], f"{row['covered']:.3f}", f"{row['pooled']:.2f}"]
                    for row in rows
                ],
            )
        ],
    )
