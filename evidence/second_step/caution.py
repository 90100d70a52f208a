"""How much of the full step (target consensus) to take: mean ratios against the caution factor.

The estimates of a panel are linear in the caution factor, so the risk of a cell is a parabola, which three values
determine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from evidence.second_step.cell_tables import mean
from evidence.second_step.charts import lines
from evidence.second_step.rules import CAUTION, CAUTIOUS, OURS
from trueup.report.page import Figure, PageTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trueup.study.harness import StudyCell

FACTORS = (0.3, 0.5, 0.6, 0.7, 0.8, 1.0)
RUN = {"ours, 0.3": 0.3, CAUTIOUS: CAUTION, OURS: 1.0}
ALL = "mean of the data sets"


def caution_rows(cells: Sequence[StudyCell]) -> list[dict[str, Any]]:
    """Return the mean ratio of each data set at each factor, and the mean over data sets."""
    found: dict[tuple[str, int, int, str], dict[str, float]] = {}
    for cell in cells:
        found.setdefault((cell.source, cell.n, cell.m, cell.method), {})[cell.step] = cell.ratio
    rows: list[dict[str, Any]] = []
    for source in dict.fromkeys(cell.source for cell in cells):
        by_step = [steps for (name, *_), steps in found.items() if name == source]
        ratios = np.array([[steps[step] for step in RUN] for steps in by_step])
        curve = np.polynomial.Polynomial.fit(
            list(RUN.values()), ratios.mean(axis=0), 2, domain=[-1, 1]
        )
        rows += [{"data": source, "factor": g, "ratio": float(curve(g))} for g in FACTORS]
    for factor in FACTORS:
        every = mean(row["ratio"] for row in rows if row["factor"] == factor)
        rows.append({"data": ALL, "factor": factor, "ratio": every})
    return rows


def caution_figure(rows: Sequence[dict[str, Any]]) -> Figure:
    """Draw the mean ratio against the factor."""
    best = min((row for row in rows if row["data"] == ALL), key=lambda row: row["ratio"])
    return Figure(
        f"How much of the step to take: over all data sets the mean ratio is smallest at {best['factor']}",
        lines(
            sorted(rows, key=lambda row: row["data"] != ALL), x="factor", y="ratio", colour="data"
        ),
        note="Mean ratio over all cells of a data set. Where workers share errors a smaller step does less harm.",
    )


def caution_table(rows: Sequence[dict[str, Any]]) -> PageTable:
    """List the mean ratio at each factor."""
    found = {(row["data"], row["factor"]): round(row["ratio"], 3) for row in rows}
    names = sorted(
        {row["data"] for row in rows} - {ALL}, key=lambda name: -found[name, FACTORS[-1]]
    )
    return PageTable(
        "Mean ratio of risks at each caution factor",
        ["data", *(str(factor) for factor in FACTORS)],
        [[name, *(found[name, factor] for factor in FACTORS)] for name in (*names, ALL)],
    )
