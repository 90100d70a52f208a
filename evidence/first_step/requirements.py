"""The figures that the first step should reach, all in one table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trueup.report.page import PageTable, Section

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidence.points import Point
    from evidence.second_step.context import Context


def figures(context: Context) -> Section:
    """Collect the figures of the parts that were run, missed ones first."""
    return listed(context.points)


def listed(points: Sequence[Point]) -> Section:
    """Return the table of all figures, missed ones first."""
    points = sorted(points, key=lambda point: point.reached)
    missed = [point for point in points if not point.reached]
    said = "; ".join(f"{point.what}: {point.found}" for point in missed) or "none"
    return Section(
        title=f"Figures to reach: {len(points) - len(missed)} of {len(points)}",
        verdict=f"Target: every figure in its range. Missed: {said}.",
        holds=not missed,
        text=(
            "Ranges are for the full number of panels; with fewer, a figure can miss its range by chance. Figures of "
            "parts that were not run are left out."
        ),
        tables=[
            PageTable(
                "Figures and their ranges, missed ones first",
                ["table", "what", "found", "target", "reached"],
                [
                    [p.number, p.what, p.found, p.wanted, "yes" if p.reached else "no"]
                    for p in points
                ],
            )
        ],
    )
