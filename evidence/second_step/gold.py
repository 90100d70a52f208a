"""Gold: the known truths of a few questions, and the error shared by all workers that they reveal."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from evidence.second_step.cell_tables import first_few
from evidence.second_step.charts import marks
from trueup.algorithms.driver import run
from trueup.algorithms.registry import find
from trueup.pipeline.calibration import calibrate
from trueup.pipeline.shrink import second_step
from trueup.report.page import Figure, PageTable, Section
from trueup.shrinkage import Adaptive
from trueup.study.harness import LEVEL
from trueup.study.sources import Drawn, Synthetic
from trueup.variance.intervals import student_quantile

if TYPE_CHECKING:
    from evidence.second_step.context import Context

METHODS = ("native", "mean")
SHARED = {"dots": (8, 10, 12), "pies": (8, 10, 12), "calories": (8, 10, 12), "groceries": (8,)}
#: Data sets from which panels are drawn: number of panels, workers and questions.
DRAWN = {"emotions": (5, 10, 140), "nflx_public": (10, 10, 79)}
NOTHING_SHARED = Synthetic("synthetic, no shared error", {"bias": 0.3})
COUNTS = (8, 10, 12)


def gold_questions(context: Context) -> Section:
    """Draw known truths at random many times, and evaluate the other questions."""
    repeats = 40 if context.quick else 200
    shared, missing = context.available(SHARED)
    free, also = context.available(DRAWN)
    tasks = []
    for method in METHODS:
        for source in shared:
            if source.truth is not None:
                drawn = Drawn(source.answers, source.truth)
                key = f"{source.name} {method} {repeats} draws"
                counts = SHARED[source.name]
                tasks.append((key, partial(_rows, source.name, drawn, method, counts, repeats)))
        for source in free:
            panels, n, m = DRAWN[source.name]
            drawn = source.draw(panels, n, m, context.seed)
            key = f"{source.name} {method} {repeats} draws"
            tasks.append((key, partial(_rows, source.name, drawn, method, COUNTS, repeats)))
        drawn = NOTHING_SHARED.draw(20, 10, 50, context.seed)
        key = f"{NOTHING_SHARED.name} {method} {repeats} draws"
        tasks.append((key, partial(_rows, NOTHING_SHARED.name, drawn, method, COUNTS, repeats)))
    rows = context.rows_of("gold_questions", tasks)
    shown = sorted(rows, key=lambda row: -row["ratio"])
    worse = [row for row in rows if row["ratio"] - 1 > 2 * row["ratio_se"]]
    helped = [row for row in rows if row["data"] in SHARED]
    costs = [row for row in rows if row["data"] == NOTHING_SHARED.name]
    low = min((row["with_gold"] for row in rows), default=float("nan"))
    before = min((row["without"] for row in helped), default=float("nan"))
    after = min((row["with_gold"] for row in helped), default=float("nan"))
    dearest = max(costs, key=lambda row: row["ratio"])
    return Section(
        title=f"Known truths of 8 questions and more: coverage of the others at least {low:.0%}",
        verdict=(
            "Target: coverage of at least 90%, and no cost. "
            + (
                f"Where workers share errors ({', '.join(source.name for source in shared)}) the 95% intervals of the "
                f"other questions cover at least {before:.0%} without known truths, at least {after:.0%} with them. "
                if helped
                else ""
            )
            + f"The squared error rises by more than two standard errors in {len(worse)} of {len(rows)} rows: "
            + first_few([f"{_name(row)}: {row['ratio']:.2f}" for row in shown if row in worse])
            + f". Without shared errors, 8 to 12 known truths change it at most {dearest['ratio']:.2f}-fold."
        ),
        holds=None if low < 0.9 or worse else True,
        text=(
            f"The known truths are drawn at random {repeats} times; all other questions are evaluated. First and "
            "second step have their defaults and run once: below 20 known truths they do not depend on them. Standard "
            f"errors are over the draws. {missing} {also}"
        ).strip(),
        figures=[
            Figure(
                "Coverage of the 95% intervals of the other questions",
                marks(
                    [
                        {"row": _name(row), "coverage": row[key], "known truths": what}
                        for row in sorted(rows, key=lambda row: row["without"])
                        if row["method"] == METHODS[0]
                        for key, what in (("without", "not used"), ("with_gold", "used"))
                    ],
                    name="row",
                    value="coverage",
                    colour="known truths",
                    rule=LEVEL,
                ),
                note=f"First step {METHODS[0]}. The dashed line is the target.",
            )
        ],
        tables=[
            PageTable(
                "With and without known truths, largest increase of the squared error first",
                [
                    "data", "first step", "known", "draws", "MSE with / without", "±", "coverage without",
                    "coverage with", "±", "width with / without", "corrected",
                ],
                [
                    [
                        row["data"], row["method"], row["gold"], row["draws"], round(row["ratio"], 3),
                        round(row["ratio_se"], 3), round(row["without"], 3), round(row["with_gold"], 3),
                        round(row["with_gold_se"], 3), round(row["width"], 2), f"{row['corrected']:.0%}",
                    ]
                    for row in shown
                ],
            )
        ],
    )  # fmt: skip


def _name(row: dict[str, Any]) -> str:
    return f"{row['data']}, {row['gold']} known ({row['method']})"


def _rows(
    name: str, drawn: Drawn, method: str, counts: tuple[int, ...], repeats: int
) -> list[dict[str, Any]]:
    """Calibrate on random questions of each panel, and evaluate the others."""
    answers, truth = drawn
    aggregate = run(find(method), answers)
    moved = second_step(answers, aggregate, Adaptive())
    estimate, width = moved.posterior.mean, moved.half_width(answers, LEVEL)
    # The common shift due to worker biases is part of the offset.
    variance = moved.posterior.variance
    rng = np.random.default_rng(0)
    rows = []
    for count in counts:
        results = []
        for draw in range(repeats):
            panel = draw % answers.n_panels
            order = rng.permutation(np.arange(*answers.panel_questions[panel : panel + 2]))
            gold, rest = order[:count], order[count:]
            calibration = calibrate(estimate[gold], variance[gold], truth[gold])
            assert calibration is not None  # noqa: S101  there are eight or more
            mean, var, freedom = calibration.apply(estimate[rest], variance[rest])
            half = student_quantile(0.5 + 0.5 * LEVEL, freedom) * np.sqrt(var)
            before, after = np.abs(estimate[rest] - truth[rest]), np.abs(mean - truth[rest])
            results.append(
                (
                    np.mean(before**2), np.mean(after**2), np.mean(before <= width[rest]),
                    np.mean(after <= half), np.mean(half) / np.mean(width[rest]),
                    calibration.corrected != "nothing",
                )
            )  # fmt: skip
        base, loss, without, within, wide, corrected = np.array(results, dtype=float).T
        ratio = loss.mean() / base.mean()
        root = np.sqrt(repeats)
        rows.append(
            {
                "data": name,
                "method": method,
                "gold": count,
                "draws": repeats,
                "ratio": float(ratio),
                "ratio_se": float((loss - ratio * base).std(ddof=1) / root / base.mean()),
                "without": float(without.mean()),
                "with_gold": float(within.mean()),
                "with_gold_se": float(within.std(ddof=1) / root),
                "width": float(wide.mean()),
                "corrected": float(corrected.mean()),
            }
        )
    return rows
