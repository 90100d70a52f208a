"""Coverage of the difference of two systems, by the arithmetic of `trueup.rank` with learned weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from evidence.panel_estimates import seed_for
from evidence.points import ALLOWED, Point, near, share_error
from evidence.ranking.designs import Design, draw, scores_of, weighted
from trueup.report.page import PageTable, Section

if TYPE_CHECKING:
    from evidence.second_step.context import Context
    from trueup.core.arrays import Floats
    from trueup.ranking.scores import Scores

LEVEL = 0.95
#: Range of the mean coverage, and the smallest of any cell.
WANTED, SMALLEST = (0.93, 0.97), 0.90
DESIGNS = [
    Design(judges, items, partial, missing)
    for judges in (3, 5, 10)
    for items in (30, 100, 400)
    for partial in (0.0, 0.2, 0.5)
    for missing in (0.0, 0.5)
]


def shares(scores: Scores) -> Floats:
    """Return the mean share of each judge in the difference of the first two systems."""
    places, _ = scores.of_pair(0, 1)
    item, judge = places.item, places.group
    weight = scores.weight[judge]
    share = weight / np.bincount(item, weight)[item]
    return np.bincount(judge, share, minlength=scores.n_judges) / len(np.unique(item))


def cell(design: Design, samples: int, seed: int) -> dict[str, Any]:
    """Return how often both intervals contain the truth, and the mean difference in standard errors."""
    rng = np.random.default_rng(seed_for(seed, design.name))
    draws = [draw(design, rng) for _ in range(samples)]
    inside = np.zeros(2)
    values = []
    for each, weight, bias in zip(draws, *weighted(draws), strict=True):
        scores = scores_of(each, weight, bias)
        found = scores.difference(0, 1)
        here = float(shares(scores) @ (each.these[0] - each.these[1]))
        for k, (fixed, truth) in enumerate(((False, design.gap), (True, here))):
            low, high = found.interval(LEVEL, fixed=fixed)
            inside[k] += low <= truth <= high
        values.append(found.value)
    return {
        "design": design.name,
        "judges_like_these": inside[0] / samples,
        "these_judges": inside[1] / samples,
        "bias": float(np.mean(values)) - design.gap,
        "bias_se": float(np.std(values, ddof=1)) / samples**0.5,
    }


def coverage(context: Context) -> Section:
    """Measure the coverage of both intervals over a grid of panels."""
    rows = [cell(design, context.samples, context.seed) for design in DESIGNS]
    context.rows["ranking_coverage"] = rows
    like, these = (
        np.array([row[name] for row in rows]) for name in ("judges_like_these", "these_judges")
    )
    error = np.sqrt(sum(row["bias_se"] ** 2 for row in rows)) / len(rows)
    bias = float(np.mean([row["bias"] for row in rows])) / float(error)
    low, high = WANTED
    count, named = (
        context.samples * len(rows),
        (("judges like these", like), ("these judges", these)),
    )
    context.points += [
        Point(
            1, f"Coverage of a difference, {name}: mean of {len(rows)} cells", f"{each.mean():.1%}",
            f"{low:.0%} to {high:.0%}", bool(low <= each.mean() <= high),
            near(each.mean(), share_error(LEVEL, count), low, high),
        )
        for name, each in named
    ]  # fmt: skip
    context.points += [
        Point(
            1, "The same, judges like these: worst cell", f"{like.min():.1%}", f"at least {SMALLEST:.0%}",
            bool(like.min() >= SMALLEST), near(like.min(), share_error(SMALLEST, context.samples), SMALLEST),
        ),
        Point(
            1, "Mean error of the difference over all cells, in standard errors", f"{bias:+.1f}", "at most 2",
            abs(bias) <= 2, abs(bias) <= ALLOWED,
        ),
    ]  # fmt: skip
    holds = all(low <= each.mean() <= high for each in (like, these)) and like.min() >= SMALLEST
    return Section(
        title=f"Judges like these: {like.mean():.1%} on average, {like.min():.1%} at worst",
        verdict=(
            f"These judges: {these.mean():.1%} on average, {these.min():.1%} at worst. Target: 93% to 97% on average "
            "for both, no cell of judges like these below 90%. The mean difference over all cells is "
            f"{bias:+.1f} standard errors from the true one; target: at most 2."
        ),
        holds=bool(holds and abs(bias) <= 2),
        text=(
            f"{context.samples} panels per cell of two equal systems. Weights and biases are those of the native "
            "method over all panels of a cell at once; means, variances and intervals are those of `trueup.rank`. "
            "Judges are partial: they favour systems with the standard deviation shown."
        ),
        tables=[
            PageTable(
                "Share of 95% intervals that contain the true difference",
                ["panel", "judges like these", "these judges"],
                [
                    [row["design"], f"{row['judges_like_these']:.3f}", f"{row['these_judges']:.3f}"]
                    for row in rows
                ],
            )
        ],
    )
