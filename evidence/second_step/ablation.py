"""Ablation: what each piece of our second step contributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from evidence.second_step.cell_tables import first_few, group_by, mean
from evidence.second_step.charts import marks
from evidence.second_step.context import CATD_PAPER, SETS
from evidence.second_step.rules import OURS, Ours, Without
from trueup.report.page import Figure, PageTable, Section
from trueup.shrinkage import Mixture, Normal
from trueup.study.harness import SecondStep
from trueup.study.sources import Synthetic
from trueup.variance.moderated import PIECES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidence.second_step.context import Context
    from trueup.algorithms import Algorithm
    from trueup.study.harness import StudyCell

METHODS: tuple[str | Algorithm, ...] = ("mean", "median", "crh", CATD_PAPER, "native")
SPARSE = (
    Synthetic("sparse, biased", {"bias": 0.5, "answers_per_question": 3}),
    Synthetic("sparse, spammers", {"bias": 0.3, "answers_per_question": 4, "spammers": 0.2}),
)
BOLD, CHECK = "flexible priors", "check of flexible priors"
RULES = {
    BOLD: "a mixture may replace the normal prior",
    CHECK: "a mixture must predict held-out workers better",
}
SAMPLES = 60
#: A piece whose removal costs less than this everywhere, in ratio and in coverage, is not worth having.
WORTH = 0.01


def ablation(context: Context) -> Section:
    """Run the reduced grid without each piece in turn."""
    steps = [
        SecondStep(OURS, None, Ours(caution=1.0)),
        SecondStep(BOLD, None, Normal(caution=1.0)),
        SecondStep(CHECK, None, Mixture(caution=1.0)),
        *(SecondStep(piece, Without(piece), Normal(caution=1.0)) for piece in PIECES),
    ]
    sources, missing = context.available(("emotions",) if context.quick else SETS)
    samples = min(context.samples, SAMPLES)
    grids: list[tuple[Sequence[Any], tuple[int, ...], tuple[int, ...]]] = [
        (context.synthetic(), (2, 3, 10), (5, 20, 50)),
        (sources, (2, 3, 5, 10), (5, 10, 20, 50)),
    ]
    methods = METHODS
    if context.quick:
        grids = [(grids[0][0][2:5], (3,), (20,)), (sources, (3,), (20,))]
        methods = ("mean", "median", "native")
    cells: list[StudyCell] = []
    for which, workers, questions in grids:
        sizes = [(n, m) for n in workers for m in questions]
        cells += context.cells_of("ablation", which, sizes, methods, steps, samples=samples)
    cells += context.cells_of(
        "ablation", SPARSE, [(20, 50)] if context.quick else [(20, 50), (40, 200)],
        methods, steps, samples=samples,
    )  # fmt: skip
    rows = [row for piece in (*PIECES, *RULES) for row in _changes(cells, piece)]
    context.rows["ablation_changes"] = rows
    what = PIECES | RULES
    summary = sorted((_summary(rows, piece, what[piece]) for piece in what), key=_cost)
    idle = [str(row[0]) for row in summary if _cost(row) < WORTH and float(str(row[6])) > -WORTH]
    return Section(
        title=(
            "Ablation: "
            + (f"removing {len(idle)} of {len(what)} pieces costs less than 1%" if idle else "every piece pays")
        ),
        verdict=(
            f"Target: every piece is worth {WORTH:.0%} somewhere. Removing these pieces costs less than {WORTH:.0%} in "
            "ratio and in coverage, for every data set and first step: "
            f"{first_few(idle, most=len(what))}. A larger ratio or less coverage without a piece is what it is worth."
        ),
        holds=not idle,
        text=(
            f"{samples} panels per cell, the same for all; a change is the mean over the sizes of a data set and first "
            "step. Pieces of the variance are removed with the normal prior, which is what ours uses unless a flexible "
            f"prior predicts better; {BOLD} and their check compare the adaptive rule with the normal prior and with "
            f"an unchecked mixture. {missing}"
        ),
        figures=[
            Figure(
                "Change of the mean ratio of risks without each piece",
                marks(
                    [
                        {"piece": row["piece"], "change": row["change"], "where": _where(row)}
                        for row in rows
                    ],
                    name="piece",
                    value="change",
                    rule=0.0,
                ),
                note="One point for each data set and first step. To the right of the dashed line the piece helps.",
            )
        ],
        tables=[
            PageTable(
                "Without one piece at a time, least useful first",
                [
                    "piece", "what it does", "mean change of the ratio", "largest cost", "±", "where",
                    "largest loss of coverage", "where it covers less", "largest gain without it", "where it harms",
                ],
                summary,
            ),
            _largest(rows),
        ],
    )  # fmt: skip


def _cost(row: Sequence[object]) -> float:
    return float(str(row[3]))


def _where(row: dict[str, Any]) -> str:
    return f"{row['data']}, {row['method']}"


def _changes(cells: Sequence[StudyCell], piece: str) -> list[dict[str, Any]]:
    """Return the change without a piece for each data set and first step, with its standard error over sizes."""
    reference = OURS if piece in RULES else BOLD
    rows = []
    for (source, method), group in group_by(cells, "source", "method").items():
        before = {(c.n, c.m): c for c in group if c.step == reference}
        after = {(c.n, c.m): c for c in group if c.step == piece}
        change = np.array([after[size].ratio - before[size].ratio for size in before])
        error = change.std(ddof=1) / np.sqrt(len(change)) if len(change) > 1 else float("nan")
        covered = mean(after[size].coverage for size in before)
        rows.append(
            {
                "piece": piece,
                "data": source,
                "method": method,
                "ratio": mean(cell.ratio for cell in before.values()),
                "change": float(change.mean()),
                "change_se": float(error),
                "coverage_change": covered - mean(cell.coverage for cell in before.values()),
            }
        )
    return rows


def _summary(rows: Sequence[dict[str, Any]], piece: str, what: str) -> list[object]:
    part = [row for row in rows if row["piece"] == piece]
    cost = max(part, key=lambda row: row["change"])
    gain = min(part, key=lambda row: row["change"])
    uncovered = min(part, key=lambda row: row["coverage_change"])
    return [
        piece, what, round(mean(row["change"] for row in part), 4), round(cost["change"], 3),
        round(cost["change_se"], 3), _where(cost), round(uncovered["coverage_change"], 3), _where(uncovered),
        round(gain["change"], 3), _where(gain),
    ]  # fmt: skip


def _largest(rows: Sequence[dict[str, Any]], most: int = 25) -> PageTable:
    """List where removing a piece helps most, then where it costs most."""
    order = sorted(rows, key=lambda row: row["change"])
    shown = [*order[: most // 2], *order[: -(most // 2) - 1 : -1]]
    return PageTable(
        "Where removing a piece helps most, and where it costs most",
        ["piece", "data", "first step", "ratio with it", "change without", "±", "change of coverage"],
        [
            [
                row["piece"], row["data"], row["method"], round(row["ratio"], 3), round(row["change"], 3),
                round(row["change_se"], 3), round(row["coverage_change"], 3),
            ]
            for row in shown
        ],
    )  # fmt: skip
