"""Worker biases: subtracted before the first step, or left in the answers."""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from evidence.second_step.cell_tables import first_few
from evidence.second_step.charts import marks
from trueup._estimate import estimate
from trueup.core.arrays import segment_sum
from trueup.datasets.simulate import simulate
from trueup.errors import TrueupError, TrueupWarning
from trueup.report.page import Figure, PageTable, Section
from trueup.study.harness import losses_of, ratio_error
from trueup.study.sources import Sampled

if TYPE_CHECKING:
    from evidence.second_step.context import Context
    from trueup.answers.answers import Answers
    from trueup.core.arrays import Floats

METHODS = ("native", "mean")
SPREADS = (0.0, 0.5, 1.0, 2.0)
WORKERS, QUESTIONS, EACH = 40, 400, 3
NFLX_EACH = (2, 3, 5)


def biases(context: Context) -> Section:
    """Compare both on sparse answers."""
    panels = min(context.samples, 5 if context.quick else 100)
    tasks = [
        (f"sparse {spread} {panels} panels", partial(_simulated, spread, panels, context.seed))
        for spread in SPREADS
    ]
    missing = ""
    try:
        nflx = context.real("nflx_public")
    except TrueupError:
        missing = "Not run, because the data are not available: nflx_public."
    else:
        tasks += [
            (f"nflx {each} {panels} panels", partial(_nflx, nflx, each, panels, context.seed))
            for each in NFLX_EACH
        ]
    rows = context.rows_of("biases", tasks)
    shown = sorted(rows, key=lambda row: -row["ratio"])
    worse = [row for row in shown if row["ratio"] - 1 > 2 * row["ratio_se"]]
    best = shown[-1]
    coverage = [row["bias_coverage"] for row in rows if not np.isnan(row["bias_coverage"])]
    return Section(
        title=(
            "Worker biases: in sparse answers, subtracting them lowers the squared error up to "
            f"{1 / best['ratio']:.1f}-fold"
        ),
        verdict=(
            "Target: no cost where there are no biases, and intervals of the biases that hold. Subtracting them costs "
            f"more than two standard errors in {len(worse)} of {len(rows)} rows: "
            + first_few([f"{_name(row)}: {row['ratio']:.3f}" for row in worse])
            + f". The largest gain is in {_name(best)}: "
            f"{best['ratio']:.2f}. With biases subtracted the 95% intervals of the questions cover "
            f"{min(row['on'] for row in rows):.0%} to {max(row['on'] for row in rows):.0%}, those of the biases "
            f"{min(coverage):.0%} to {max(coverage):.0%}."
        ),
        holds=None if worse or min(coverage) < 0.9 else True,
        text=(
            f"Simulated: {QUESTIONS} questions, {WORKERS} workers, {EACH} answers to a question, truth N(0, 1), "
            f"{panels} panels. nflx_public: some random answers to each question, compared with the mean of all "
            f"others; the bias of a subject is computed from all its answers. Default second step. {missing}"
        ),
        figures=[
            Figure(
                "Mean squared error with biases subtracted / left in",
                marks(
                    [
                        {
                            "design": row["data"],
                            "first step": row["method"],
                            "MSE with / without": row["ratio"],
                        }
                        for row in rows
                    ],
                    name="design",
                    value="MSE with / without",
                    colour="first step",
                ),
                note="To the left of the dashed line it is better to subtract them.",
            )
        ],
        tables=[
            PageTable(
                "Biases subtracted and left in, largest cost first",
                [
                    "data", "first step", "panels", "MSE left in", "MSE subtracted", "ratio", "±", "coverage left in",
                    "coverage subtracted", "coverage of the biases", "mean squared z of the biases",
                ],
                [
                    [
                        row["data"], row["method"], row["panels"], round(row["mse_left"], 4),
                        round(row["mse_off"], 4), round(row["ratio"], 3), round(row["ratio_se"], 3),
                        round(row["left"], 3), round(row["on"], 3), round(row["bias_coverage"], 3),
                        round(row["bias_z2"], 2),
                    ]
                    for row in shown
                ],
            )
        ],
    )  # fmt: skip


def _name(row: dict[str, Any]) -> str:
    return f"{row['data']} ({row['method']})"


def _simulated(spread: float, panels: int, seed: int) -> list[dict[str, Any]]:
    drawn = simulate(
        workers=WORKERS,
        questions=QUESTIONS,
        panels=panels,
        answers_per_question=EACH,
        bias=spread,
        seed=seed,
    )
    return _compare(f"biases N(0, {spread**2:g})", drawn.answers, drawn.truth, drawn.bias)


def _nflx(full: Sampled, each: int, panels: int, seed: int) -> list[dict[str, Any]]:
    source = Sampled(full.name, full.answers, None, sparse=True)
    answers, truth = source.draw(panels, each, full.answers.n_questions, seed)
    people = np.bincount(full.answers.workers, minlength=full.answers.n_workers)
    centred = full.answers.values - np.repeat(
        np.add.reduceat(full.answers.values, full.answers.indptr[:-1]) / full.answers.counts,
        full.answers.counts,
    )
    own = np.bincount(full.answers.workers, centred, minlength=len(people)) / people
    assert answers.worker_source is not None  # noqa: S101  set for panels
    return _compare(f"nflx_public, {each} answers each", answers, truth, own[answers.worker_source])


def _compare(name: str, answers: Answers, truth: Floats, bias: Floats) -> list[dict[str, Any]]:
    """Estimate with biases left in and with biases subtracted."""
    rows = []
    for method in METHODS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TrueupWarning)
            both = [
                estimate(answers, method=method, bias=subtract, target="consensus")
                for subtract in (False, True)
            ]
        left, off = (losses_of(answers.panel_questions, est.estimate, truth) for est in both)
        covered = [float(np.mean((est.lower <= truth) & (truth <= est.upper))) for est in both]
        estimated = both[1].biases
        # The default finds none where no panel has any.
        z2, inside = float("nan"), float("nan")
        if estimated is not None:
            z2, inside = _calibration(answers, bias, estimated.value, estimated.std_error)
        rows.append(
            {
                "data": name,
                "method": method,
                "panels": answers.n_panels,
                "mse_left": float(left.mean()),
                "mse_off": float(off.mean()),
                "ratio": float(off.mean() / left.mean()),
                "ratio_se": ratio_error(off, left),
                "left": covered[0],
                "on": covered[1],
                "bias_coverage": inside,
                "bias_z2": z2,
            }
        )
    return rows


def _calibration(
    answers: Answers, bias: Floats, value: Floats, error: Floats
) -> tuple[float, float]:
    """Return the mean squared z-value of the biases, and the share within 1.96 standard errors.

    Biases are compared up to a constant per panel, which answers cannot determine: the mean over answers.
    """
    borders, panel = answers.panel_workers, answers.worker_panel
    count = np.bincount(answers.workers, minlength=answers.n_workers).astype(np.float64)
    middle = segment_sum(count * (value - bias), borders) / segment_sum(count, borders)
    known = error > 0
    if not known.any():
        return float("nan"), float("nan")
    z = ((value - bias - middle[panel])[known]) / error[known]
    return float(np.mean(z**2)), float(np.mean(np.abs(z) <= 1.96))
