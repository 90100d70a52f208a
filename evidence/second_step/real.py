"""Real answers: sub-panels of seven data sets, eight first steps; where shrinkage can help and where it cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidence.points import Point, near, near_none
from evidence.second_step.caution import caution_figure, caution_rows, caution_table
from evidence.second_step.cell_tables import (
    averages,
    cell_label,
    clearly_above,
    first_few,
    group_by,
    mean,
    median,
    worst_cells,
)
from evidence.second_step.charts import lines
from evidence.second_step.context import CATD_PAPER, SETS
from evidence.second_step.rules import OURS, PRINTED, RIGHT, Ours
from trueup.errors import TrueupError
from trueup.report.page import Figure, PageTable, Section
from trueup.study.harness import SecondStep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidence.second_step.context import Context
    from trueup.algorithms import Algorithm
    from trueup.study.harness import StudyCell

METHODS: tuple[str | Algorithm, ...] = (
    "mean", "median", "crh", CATD_PAPER, "gtm", "iptd", "kdem", "native",
)  # fmt: skip
KDEM_SAMPLES = 40
#: A third size of the step, which determines the risk at every other size.
SMALL = SecondStep("ours, 0.3", None, Ours(caution=0.3))
# Smallest gain of the best linear step of which a share is computed.
GAIN = 0.03


def real_data(context: Context) -> Section:
    """Run all second steps on the available real data sets."""
    sources, missing = context.available(SETS)
    if not sources:
        raise TrueupError(f"none of the data sets is available ({', '.join(SETS)})")
    sizes = [(n, m) for n in (2, 3, 5, 10, 20) for m in (5, 10, 20, 50, 140)]
    methods = METHODS
    if context.quick:
        sizes, methods = [(3, 10), (10, 20)], ("mean", "median", "crh", CATD_PAPER, "native")
    cells = context.cells_of(
        "real_data",
        sources,
        sizes,
        methods,
        [*context.rules, SMALL],
        fewer={"kdem": min(KDEM_SAMPLES, context.samples)},
    )
    names = [step.name for step in context.rules]
    mine = [cell for cell in cells if cell.step == OURS]
    can = [cell for cell in mine if cell.oracle_b > 0]
    above, hurt = clearly_above(can), [cell for cell in mine if cell.oracle_b <= 0]
    table = {
        step: (mean(c.ratio for c in cells if c.step == step), len(clearly_above(_of(cells, step))))
        for step in names
    }
    curve = caution_rows(cells)
    context.rows["caution"] = curve
    _points(context, cells)
    overall = "; ".join(
        f"{step} {ratio:.2f} (above 1: {count / len(mine):.0%})"
        for step, (ratio, count) in table.items()
    )
    return Section(
        title=(
            f"Real answers: mean ratio {table[OURS][0]:.2f} against {table[PRINTED][0]:.2f} with the variance as "
            f"printed; {len(above)} of {len(can)} cells that can be helped are harmed"
        ),
        verdict=(
            "Target: no harm where shrinkage can help. Where the best linear step in hindsight shrinks (B > 0, "
            f"{len(can)} of {len(mine)} cells), ours is above 1 by more than two standard errors in "
            f"{len(above)} cells: {first_few([cell_label(cell) for cell in above])}. In the other {len(hurt)} "
            "cells the workers share an error that makes every shrinkage harmful: mean ratio "
            f"{mean(c.ratio for c in hurt):.3f}, worst {max((c.ratio for c in hurt), default=1.0):.2f}. Mean ratio "
            f"over all cells, and share of cells above 1 by more than two standard errors: {overall}."
        ),
        holds=None if above else True,
        text=(
            f"Random sub-panels of n workers and m questions, {context.samples} per cell (KDEm at most "
            f"{KDEM_SAMPLES}). In calories and population n random answers to each question are drawn instead of n "
            "workers; population is on the scale log(1 + x), emotions within its blocks, nflx_public against the mean "
            "of the other subjects. "
            f"B is estimated from the same panels, which favours every second step a little. {missing}"
        ),
        figures=[*_figures(cells, names), caution_figure(curve)],
        tables=[
            _summary(cells, names),
            worst_cells(can, [OURS], f"Worst cells for ours among those with B > 0, of {len(can)}"),
            _by_method(cells),
            _share_of_oracle(cells),
            caution_table(curve),
            _coverage(mine),
        ],
    )


def _of(cells: Sequence[StudyCell], step: str) -> list[StudyCell]:
    return [cell for cell in cells if cell.step == step]


def _figures(cells: Sequence[StudyCell], names: Sequence[str]) -> list[Figure]:
    shown = [cell for cell in cells if cell.step in names and cell.step != PRINTED]
    ratios = averages(shown, "source", "n", "step", of=median)
    best = averages(_of(cells, OURS), "source", "n", value="oracle", of=median)
    ratios += [
        {"source": r["source"], "n": r["n"], "step": "best linear", "ratio": r["oracle"]}
        for r in best
    ]
    covered = averages(_of(cells, OURS), "source", "n", value="coverage")
    return [
        Figure(
            "Risk after / before the second step against the number of workers, by data set",
            lines(ratios, x="n", y="ratio", colour="step", panel="source"),
            note="Median over first steps and numbers of questions, without psi_H, whose large ratios would hide the "
            "others. Below the dashed line the second step helps. Best linear is the best common factor in hindsight; "
            "where it is below 1 although all others are above, it moves estimates away from each other.",
        ),
        Figure(
            "Coverage of the 95% intervals of ours, by data set",
            lines(covered, x="n", y="coverage", colour="source", rule=0.95),
            note="Averaged over first steps and numbers of questions. The intervals do not contain the error that all "
            "workers share, which matters more as the number of workers grows.",
        ),
    ]


def _summary(cells: Sequence[StudyCell], names: Sequence[str]) -> PageTable:
    """Return a table of the cells that shrinkage can and cannot help, by data set."""
    rows = []
    for (source,), each in group_by(cells, "source").items():
        can = [cell for cell in each if cell.oracle_b > 0]
        cannot = [cell for cell in each if cell.oracle_b <= 0]
        row: list[object] = [source, len(_of(can, OURS))]
        for step in names:
            mine = _of(can, step)
            share = len(clearly_above(mine)) / len(mine) if mine else float("nan")
            row += [f"{share:.0%}" if mine else "–", _worst(mine), _mean(mine)]
        row.append(round(mean(cell.oracle for cell in _of(can, OURS)), 3))
        row.append(len(_of(cannot, OURS)))
        for step in names:
            row += [_mean(_of(cannot, step))]
        row.append(_worst(_of(cannot, OURS)))
        rows.append((max(cell.ratio for cell in _of(each, OURS)), row))
    rows.sort(key=lambda pair: -pair[0])
    heads = ["data", "cells B > 0"]
    for step in names:
        heads += [f"{step}: above 1", "worst", "mean"]
    heads += ["best linear", "cells B <= 0", *(f"{step}: mean" for step in names), f"{OURS}: worst"]
    title = "Cells in which shrinking can help, and the others"
    return PageTable(title, heads, [row for _, row in rows])


def _mean(cells: Sequence[StudyCell]) -> float:
    return round(mean(cell.ratio for cell in cells), 3)


def _worst(cells: Sequence[StudyCell]) -> float:
    return round(max((cell.ratio for cell in cells), default=float("nan")), 3)


def _by_method(cells: Sequence[StudyCell]) -> PageTable:
    """Return a table of the ratios of each first step, averaged over m."""
    workers = sorted({cell.n for cell in cells})
    rows = []
    for (source, method), each in group_by(cells, "source", "method").items():
        row: list[object] = [source, method]
        for n in workers:
            mine = [cell for cell in _of(each, OURS) if cell.n == n]
            if not mine:
                row.append("–")
                continue
            figures = [_mean([c for c in _of(each, s) if c.n == n]) for s in (PRINTED, RIGHT, OURS)]
            best = mean(cell.oracle for cell in mine)
            star = "*" if mean(float(cell.oracle_b <= 0) for cell in mine) >= 0.5 else ""
            row.append(" / ".join(f"{value:.2f}" for value in (*figures, best)) + star)
        rows.append((mean(c.ratio for c in _of(each, OURS)), row))
    rows.sort(key=lambda pair: -pair[0])
    return PageTable(
        f"{PRINTED} / {RIGHT} / {OURS} / best linear, averaged over m; a star: B <= 0 in at least half of the cells",
        ["data", "first step", *(f"n={n}" for n in workers)],
        [row for _, row in rows],
    )


def _share_of_oracle(cells: Sequence[StudyCell]) -> PageTable:
    rows = []
    for (method,), each in group_by(_of(cells, OURS), "method").items():
        worth = [cell for cell in each if cell.oracle_b > 0 and 1 - cell.oracle > GAIN]
        best = sum(1 - cell.oracle for cell in worth)
        share = sum(1 - cell.ratio for cell in worth) / best if worth else float("nan")
        rows.append([method, len(worth), round(share, 2)])
    rows.sort(key=lambda row: float(str(row[2])))
    return PageTable(
        f"Share of the gain of the best linear step, where that is above {GAIN:.0%} and B > 0",
        ["first step", "cells", "share"],
        rows,
    )


def _coverage(mine: Sequence[StudyCell]) -> PageTable:
    workers = sorted({cell.n for cell in mine})
    rows = [
        [source, *(round(mean(c.coverage for c in each if c.n == n), 2) for n in workers)]
        for (source,), each in group_by(mine, "source").items()
    ]
    return PageTable(
        "Coverage of the 95% intervals of ours, averaged over first steps and m",
        ["data", *(f"n={n}" for n in workers)],
        sorted(rows, key=lambda row: float(str(row[-2]))),
    )


def _points(context: Context, cells: Sequence[StudyCell]) -> None:
    """Note the figures that have a range they should be in."""

    def of(source: str, method: str, n: int, step: str = OURS) -> list[StudyCell]:
        return [c for c in cells if (c.source, c.method, c.n, c.step) == (source, method, n, step)]

    def note(what: str, some: Sequence[StudyCell], low: float, high: float) -> None:
        if some:
            # Cells of several sizes are drawn from the same answers: their errors hardly average out.
            value, error = mean(c.ratio for c in some), mean(c.ratio_se for c in some)
            wanted = f"{low:.2f} to {high:.2f}" if low else f"at most {high:.2f}"
            reached = low <= value <= high
            point = Point(7, what, f"{value:.3f}", wanted, reached, near(value, error, low, high))
            context.points.append(point)

    note("emotions, plain mean, n = 2, averaged over m", of("emotions", "mean", 2), 0.85, 0.92)
    note("emotions, plain mean, n = 10", of("emotions", "mean", 10), 0.0, 1.02)
    nflx = [cell for cell in cells if cell.source == "nflx_public" and cell.step == OURS]
    if nflx:
        above = clearly_above(nflx)
        text = f"Cells of nflx_public above 1 by more than two standard errors, of {len(nflx)}"
        found = f"{len(above)} ({first_few([cell_label(cell) for cell in above])})"
        by_chance = near_none(len(above), len(nflx), context.samples, 2.0)
        context.points.append(Point(7, text, found, "0", not above, by_chance))
    pies = [cell for cell in of("pies", "catd", 10) if cell.m == 10]
    note("CATD on pies, n = 10, m = 10", pies, 0.0, 1.05)
    for method, most in (("mean", 0.6), ("native", 0.6), ("crh", 1.1), ("catd", 1.1)):
        printed = mean(c.ratio for c in of("population", method, 3, PRINTED))
        what = f"population (log), {method}, n = 3, averaged over m; psi_H has {printed:.2f}"
        note(what, of("population", method, 3), 0.0, most)
