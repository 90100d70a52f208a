"""Human labels for some items: coverage of the mean and its width beside that of the labels alone."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import stdtrit

from evidence.panel_estimates import seed_for
from evidence.points import Point, near, share_error
from trueup.ranking.labels import labelled_mean
from trueup.report.page import PageTable, Section
from trueup.study.harness import ratio_error

if TYPE_CHECKING:
    from evidence.second_step.context import Context

LEVEL = 0.95
#: Range of the mean coverage, and the largest mean width relative to that of the labels alone.
WANTED, WIDEST = (0.93, 0.97), 1.05
#: Draws for each panel of the other parts: these are quick.
DRAWS = 5
LABELS, ITEMS, QUALITY = (10, 20, 50), (100, 400, 2000), (0.0, 0.3, 0.6, 0.9)


def cell(labels: int, items: int, quality: float, samples: int, seed: int) -> dict[str, Any]:
    """Return coverage and mean width for labels that correlate with the panel's scores by `quality`."""
    rng = np.random.default_rng(seed_for(seed, "labels", f"{labels}, {items}, {quality}"))
    quantile = float(stdtrit(labels - 1, 0.5 + LEVEL / 2))
    inside, widths = 0, []
    for _ in range(samples):
        truth, noise = rng.normal(size=(2, items))
        score = 0.5 + quality * truth + (1 - quality**2) ** 0.5 * noise
        label = np.full(items, np.nan)
        label[:labels] = truth[:labels]
        found = labelled_mean(label, score)
        assert found is not None  # noqa: S101  at least three labels
        low, high = found.interval(LEVEL)
        inside += low <= 0 <= high
        widths.append((high - low, 2 * quantile * found.alone**0.5))
    with_scores, alone = np.array(widths).T
    return {
        "labels": labels,
        "items": items,
        "quality": quality,
        "covered": inside / samples,
        "width": float(with_scores.mean() / alone.mean()),
        "width_se": ratio_error(with_scores, alone),
    }


def labels(context: Context) -> Section:
    """Measure coverage and width with few labels and judges of any quality."""
    samples = DRAWS * context.samples
    grid = product(LABELS, ITEMS, QUALITY)
    rows = [cell(*each, samples, context.seed) for each in grid]
    context.rows["ranking_labels"] = rows
    covered = np.array([row["covered"] for row in rows])
    width = np.array([row["width"] for row in rows])
    low, high = WANTED
    average, widest = float(covered.mean()), max(rows, key=lambda row: row["width"])
    context.points += [
        Point(
            5, f"Labels and judges: coverage, mean of {len(rows)} cells", f"{average:.1%}", f"{low:.0%} to {high:.0%}",
            low <= average <= high, near(average, share_error(LEVEL, samples * len(rows)), low, high),
        ),
        Point(
            5, "The same: largest mean width relative to labels alone", f"{widest['width']:.3f}", f"at most {WIDEST}",
            widest["width"] <= WIDEST, near(widest["width"], widest["width_se"], high=WIDEST),
        ),
    ]  # fmt: skip
    return Section(
        title=f"Labels and judges: {covered.mean():.1%} on average, {covered.min():.1%} at worst",
        verdict=(
            f"At worst {width.max():.3f} times as wide as the interval from the labels alone, {width.mean():.3f} times "
            f"on average. Target: {low:.0%} to {high:.0%} on average, and at most {WIDEST - 1:.0%} wider."
        ),
        holds=bool(low <= covered.mean() <= high and width.max() <= WIDEST),
        text=(
            f"{samples:,} draws per cell of one system: labels N(0, 1) of a random sample of the items, scores of the "
            "panel with the correlation shown."
        ),
        tables=[
            PageTable(
                "Share of 95% intervals that contain the true mean, and width relative to labels alone",
                ["labels", "items", "correlation", "covered", "relative width"],
                [
                    [
                        str(row["labels"]),
                        str(row["items"]),
                        f"{row['quality']:g}",
                        f"{row['covered']:.3f}",
                        f"{row['width']:.3f}",
                    ]
                    for row in rows
                ],
            )
        ],
    )
