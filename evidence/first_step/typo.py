"""One typing error among 290 answers: what it does to the estimates, and whether it is found."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from evidence.first_step.designs import with_typo
from evidence.first_step.proportional import RESAMPLES, median_error
from evidence.panel_estimates import estimate_of
from evidence.points import Point, near, share_error
from evidence.processes import run_tasks
from trueup import Answers
from trueup.report.page import PageTable, Section

if TYPE_CHECKING:
    from evidence.second_step.context import Context
    from trueup import Estimate
    from trueup.core.arrays import Floats

SEEDS = 30
#: Smallest share of seeds in which the typing error is found.
FOUND = 0.95
DEFAULT = "default, both steps"
#: Options of `trueup.estimate` by name of the row.
ESTIMATORS: dict[str, dict[str, Any]] = {
    "mean": {"method": "mean", "shrink": "none", "transform": "none"},
    "student_t": {"method": "student_t", "shrink": "none", "transform": "none"},
    "default, first step alone": {"shrink": "none"},
    DEFAULT: {"target": "consensus"},
}


def named(est: Estimate) -> list[tuple[int, int]]:
    """Return worker and question of the answers that do not fit, the most surprising first."""
    odd = est.findings.answers
    if odd is None:
        return []
    pairs = zip(odd.worker_ids.tolist(), odd.question_ids.tolist(), strict=True)
    return [(int(str(worker)), int(str(question))) for worker, question in pairs]


def seed_rows(seed: int) -> list[dict[str, Any]]:
    """Return the root mean squared errors of one seed, with the typing error and without it."""
    rows = []
    for is_typed in (True, False):
        typed = with_typo(seed, typo=is_typed)
        answers = Answers.from_matrix(typed.answers)
        for name, options in ESTIMATORS.items():
            est = estimate_of(answers, **options)
            error = float(np.sqrt(np.mean((est.estimate - typed.truth) ** 2)))
            odd = named(est) if name == DEFAULT else []
            rows.append(
                {
                    "seed": seed,
                    "typo": is_typed,
                    "estimator": name,
                    "rmse": error,
                    "found": is_typed and odd[:1] == [(typed.worker, typed.question)],
                    "named": len(odd),
                }
            )
    return rows


def one_typing_error(context: Context) -> Section:
    """Run the estimators on all seeds."""
    seeds = min(context.samples, SEEDS)
    tasks = [(f"seed {seed}", partial(seed_rows, context.seed + seed)) for seed in range(seeds)]
    rows = run_tasks(context, "one_typing_error", tasks)
    shown, middle, error = [], {}, {}
    for name in ESTIMATORS:
        typed, clean = (
            np.array([r["rmse"] for r in rows if r["estimator"] == name and r["typo"] is is_typed])
            for is_typed in (True, False)
        )
        middle[name], error[name] = float(np.median(typed)), median_error(typed)
        shown.append(
            [
                name, round(middle[name], 3), round(error[name], 3), round(_root(typed), 3),
                round(root_error(typed), 3), round(_root(clean), 3), round(root_error(clean), 3),
            ]
        )  # fmt: skip
    ours = [row for row in rows if row["estimator"] == DEFAULT]
    found = float(np.mean([row["found"] for row in ours if row["typo"]]))
    false = [row["named"] for row in ours if not row["typo"]]
    context.points.append(
        Point(
            5, "One tenfold answer among 290: median error of the default relative to that of student_t",
            f"{middle[DEFAULT] / middle['student_t']:.2f}", "at most 1", middle[DEFAULT] <= middle["student_t"],
            near(middle[DEFAULT], error[DEFAULT], high=middle["student_t"]),
        )
    )  # fmt: skip
    context.points.append(
        Point(
            5, "The same: share of seeds in which it is the first of the answers that do not fit",
            f"{found:.0%}", f"at least {FOUND:.0%}", found >= FOUND,
            near(found, share_error(FOUND, seeds), FOUND),
        )
    )  # fmt: skip
    return Section(
        title=(
            f"One typing error: typical error {middle[DEFAULT]:.2f} with the default, {middle['mean']:.2f} with the "
            "plain mean"
        ),
        verdict=(
            "Target: an error no larger than that of student_t, and the typing error found. Median over seeds of the "
            "root mean squared error: "
            + ", ".join(f"{name} {value:.2f}" for name, value in middle.items())
            + f". The typing error is the first of the answers that do not fit in {found:.0%} of the seeds; without it "
            f"{np.mean(false):.1f} answers are named on average."
        ),
        holds=middle[DEFAULT] <= middle["student_t"] and found >= FOUND,
        text=(
            "40 truths N(172, 8²), 8 workers with biases N(0, 1.5²) and standard deviations of about 4, nine tenths of "
            f"the answers given, in whole numbers; one of them is tenfold. {seeds} seeds."
        ),
        tables=[
            PageTable(
                "Root mean squared error of the estimates",
                [
                    "first step", "median over seeds", "±", "root mean square over seeds", "±",
                    "without the typing error", "±",
                ],
                shown,
            )
        ],
    )  # fmt: skip


def _root(values: Floats) -> float:
    return float(np.sqrt(np.mean(values**2)))


def root_error(values: Floats) -> float:
    """Return the standard error of the root mean square by the bootstrap."""
    drawn = np.random.default_rng(0).choice(values, (RESAMPLES, len(values)))
    return float(np.sqrt(np.mean(drawn**2, axis=1)).std(ddof=1))
