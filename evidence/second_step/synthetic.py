"""The synthetic grid: nine kinds of truth, two to twenty workers, five to two hundred questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidence.points import Point, near, near_none, share_error
from evidence.second_step.cell_tables import (
    averages,
    cell_label,
    clearly_above,
    errors_above,
    first_few,
    group_by,
    mean,
    worst_cells,
)
from evidence.second_step.charts import lines
from evidence.second_step.context import BIAS
from evidence.second_step.rules import CAUTION, CAUTIOUS, OURS
from trueup.report.page import Figure, PageTable, Section

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidence.second_step.context import Context
    from trueup.study.harness import StudyCell

METHODS = ("mean", "crh", "native")
#: Target ranges of the coverage, averaged over n; a constant truth is covered more often by construction.
COVERAGE, CONSTANT = (0.93, 0.98), (0.93, 1.0)


def synthetic_grid(context: Context) -> Section:
    """Run all second steps on all truths."""
    workers = (2, 3, 10) if context.quick else (2, 3, 5, 10, 20)
    questions = (5, 20) if context.quick else (5, 10, 20, 50, 200)
    sizes = [(n, m) for n in workers for m in questions]
    cells = context.cells_of("synthetic_grid", context.synthetic(), sizes, METHODS)
    steps = [step.name for step in context.rules]
    mine = [cell for cell in cells if cell.step == OURS]
    above, far = clearly_above(mine), clearly_above(mine, 1.01, 3.0)
    linear = [cell for cell in mine if cell.method != "crh"]
    covered = averages(linear, "source", "method", "m", value="coverage")
    outside = [row for row in covered if not _inside(row["source"], row["coverage"])]
    others = [
        f"{step} {len(clearly_above(c for c in cells if c.step == step))}"
        for step in steps
        if step != OURS
    ]
    low = min(row["coverage"] for row in covered)
    high = max(row["coverage"] for row in covered if row["source"] != "constant")
    context.points += [
        Point(
            3,
            f"Cells of the synthetic grid above 1.01 by more than three standard errors, of {len(mine)}",
            f"{len(far)}; worst {max(mine, key=lambda c: c.ratio).ratio:.3f}",
            "0",
            not far,
            near_none(len(far), len(mine), context.samples, 3.0),
        ),
        Point(
            4,
            "Coverage by truth, m and first step (mean, native), averaged over n",
            f"{low:.3f} to {high:.3f} (constant truth to "
            f"{max(r['coverage'] for r in covered if r['source'] == 'constant'):.3f}); {len(outside)} of "
            f"{len(covered)} outside",
            "0.93 to 0.98 (constant truth to 1)",
            not outside,
            all(_is_near(row, len(workers) * context.samples) for row in covered),
        ),
    ]
    lost = "clearly harms no truth" if not far else f"is above 1.01 in {len(far)} cells"
    return Section(
        title=f"Synthetic answers: ours {lost}, and its intervals cover {low:.0%} to {high:.0%}",
        verdict=(
            "Target: no cell above 1.01 by more than three standard errors, coverage of the 95% intervals from 93% to "
            f"98%. {len(far)} of {len(mine)} cells are above 1.01 by more than three standard errors "
            f"({first_few([cell_label(cell) for cell in far])}); {len(above)} are above 1 by more than two "
            f"({first_few([cell_label(cell) for cell in above])}). Cells of the other second steps above 1 by more "
            f"than two: {', '.join(others)}. Coverage, averaged over n, is outside the range in {len(outside)} of "
            f"{len(covered)} combinations of truth, m and first step (mean, native): "
            f"{first_few([_say(row) for row in sorted(outside, key=lambda row: row['coverage'])])}."
        ),
        holds=False if far else (None if outside else True),
        text=(
            f"Worker variances N(1, 0.5²), truncated at 0, worker biases with standard deviation {BIAS}, complete "
            f"panels; {context.samples:,} panels per cell. Nobody shares an error here, so this is about the "
            "consensus: "
            f"{OURS!r} is the adaptive rule with its full step, that of target consensus, {CAUTIOUS!r} takes "
            f"{CAUTION} of it, as version 0.1 did by default. psi_H is the variance of the paper as printed, with the "
            "positive part of its rule; plug-in is the variance of a weighted mean; right variance is the paper's rule "
            "with our variance."
        ),
        figures=_figures(cells, context),
        tables=[_summary(cells, steps), worst_cells(cells, steps)],
    )


def _inside(source: str, coverage: float) -> bool:
    low, high = CONSTANT if source == "constant" else COVERAGE
    return low <= coverage <= high


def _is_near(row: dict[str, object], panels: int) -> bool:
    """Return whether a coverage is in its range but for chance.

    All intervals of a panel rest on the same estimates of the workers, so that many of them count as five.
    """
    low, high = CONSTANT if row["source"] == "constant" else COVERAGE
    return near(float(str(row["coverage"])), share_error(0.95, 5 * panels), low, high)


def _say(row: dict[str, object]) -> str:
    return f"{row['source']}, {row['method']}, m={row['m']}: {row['coverage']:.3f}"


def _figures(cells: Sequence[StudyCell], context: Context) -> list[Figure]:
    native = [cell for cell in cells if cell.method == "native"]
    mine = [cell for cell in cells if cell.step == OURS]
    note = f"Averages over the numbers of workers, native first step. {context.samples:,} panels per cell."
    return [
        Figure(
            "Risk after / before the second step against the number of questions",
            lines(
                averages(native, "source", "m", "step"),
                x="m", y="ratio", colour="step", panel="source", log_y=True,
            ),
            note=f"Below the dashed line the second step helps. {note}",
        ),
        Figure(
            "Risk after / before the second step against the number of workers",
            lines(
                averages([c for c in native if c.step != "psi_H"], "source", "n", "step"),
                x="n", y="ratio", colour="step", panel="source",
            ),
            note="Averages over the numbers of questions, native first step; without psi_H, whose large ratios would "
            "hide the others.",
        ),
        Figure(
            "Coverage of the 95% intervals of ours",
            lines(
                averages(mine, "source", "m", "method", value="coverage"),
                x="m", y="coverage", colour="method", panel="source", rule=0.95,
            ),
            note="Share of the truths inside, averaged over the numbers of workers. The dashed line is the target.",
        ),
    ]  # fmt: skip


def _summary(cells: Sequence[StudyCell], steps: Sequence[str]) -> PageTable:
    """Return a table of mean ratios, worst cells and coverage by truth and first step."""
    questions = sorted({cell.m for cell in cells})
    rows = []
    for (source, method), each in group_by(cells, "source", "method").items():
        mine = [cell for cell in each if cell.step == OURS]
        worst = max(mine, key=lambda cell: cell.ratio)
        row: list[object] = [source, method, len(mine)]
        row += [round(mean(c.ratio for c in each if c.step == step), 3) for step in steps]
        row += [round(worst.ratio, 3), round(worst.ratio_se, 3)]
        row.append(round(max(errors_above(cell) for cell in mine), 1))
        row += [round(mean(c.coverage for c in mine if c.m == m), 3) for m in questions]
        rows.append(row)
    at = 3 + len(steps)
    rows.sort(key=lambda row: -float(str(row[at])))
    heads = ["true values", "first step", "cells", *steps]
    heads += ["worst", "±", "most errors above 1", *(f"m={m}: covered" for m in questions)]
    return PageTable(
        "Mean ratios of risks of each second step, worst cell and coverage of ours; worst first",
        heads,
        rows,
    )
