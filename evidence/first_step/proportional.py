"""Errors in proportion to the value: whether logarithms are chosen, and what the default then does."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from evidence.first_step.comparison import MEAN, first_step
from evidence.first_step.designs import Proportional, additive
from evidence.panel_estimates import estimate_of, panels_of, seed_for
from evidence.points import Point, near, share_error
from evidence.processes import run_tasks
from trueup.report.page import PageTable, Section
from trueup.study.harness import losses_of, ratio_error

if TYPE_CHECKING:
    from evidence.second_step.context import Context
    from trueup import Estimate
    from trueup.core.arrays import Floats

PANELS, QUESTIONS = 60, 50
SPREADS, ERRORS, WORKERS = (0.5, 1.0, 2.0), (0.1, 0.3, 0.6), (3, 6)
ADDITIVE = "additive"
#: Columns of the estimate: the first step alone, and both steps with their defaults.
STEPS = {"first step": "base", "both steps": "estimate"}
#: An estimate below this share of the truth counts as this share: logarithms need positive numbers.
FLOOR = 0.01
MOST, MOST_LARGE, MOST_MEDIAN = 1.03, 0.92, 1.08
FEWEST_CHOSEN, MOST_CHOSEN = 0.9, 0.05
RESAMPLES = 400


def chose_logarithms(est: Estimate) -> bool:
    """Return whether the answers of a single panel were combined as logarithms."""
    return est.diagnosis.transform == "proportional"


def proportional_cell(
    spread: float, error: float, workers: int, panels: int, seed: int
) -> list[dict[str, Any]]:
    """Return the rows of a cell, one for each of `STEPS`."""
    drawn = (
        Proportional(spread, error)
        .draw(panels, workers, QUESTIONS, seed_for(seed, spread, error, workers))
        .drawn
    )
    answers, truth = drawn
    borders = answers.panel_questions
    mean = first_step(answers, **MEAN)
    base, base_log = losses_of(borders, mean, truth), _log_losses(borders, mean, truth)
    each = [estimate_of(panel, target="consensus", seed=seed) for panel in panels_of(answers)]
    rows = []
    for name, column in STEPS.items():
        found = np.concatenate([getattr(est, column) for est in each])
        losses, in_logs = losses_of(borders, found, truth), _log_losses(borders, found, truth)
        ratios = losses / base
        rows.append(
            {
                "spread": spread,
                "error": error,
                "workers": workers,
                "panels": panels,
                "steps": name,
                "chosen": float(np.mean([chose_logarithms(est) for est in each])),
                "ratio": float(in_logs.mean() / base_log.mean()),
                "ratio_se": ratio_error(in_logs, base_log),
                "median": float(np.median(ratios)),
                "median_se": median_error(ratios),
            }
        )
    return rows


def additive_cell(workers: int, panels: int, seed: int) -> list[dict[str, Any]]:
    """Return the row of positive answers with errors that do not grow with the value."""
    answers = additive(panels, workers, QUESTIONS, seed_for(seed, ADDITIVE, workers)).drawn.answers
    chosen = [
        chose_logarithms(estimate_of(panel, seed=seed, shrink="none"))
        for panel in panels_of(answers)
    ]
    about = {"spread": 0.0, "error": 0.0, "workers": workers, "panels": panels, "steps": ADDITIVE}
    empty = dict.fromkeys(("ratio", "ratio_se", "median", "median_se"), float("nan"))
    return [about | {"chosen": float(np.mean(chosen))} | empty]


def _log_losses(borders: Any, estimate: Floats, truth: Floats) -> Floats:
    """Return the mean squared error of the logarithm of each panel."""
    return losses_of(borders, np.log(np.maximum(estimate, FLOOR * truth)), np.log(truth))


def median_error(values: Floats) -> float:
    """Return the standard error of a median by the bootstrap."""
    rng = np.random.default_rng(0)
    drawn = rng.choice(values, (RESAMPLES, len(values)))
    return float(np.median(drawn, axis=1).std(ddof=1))


def errors_in_proportion(context: Context) -> Section:
    """Run the default on errors in proportion, and on errors that do not grow."""
    panels = min(context.samples, PANELS)
    spreads, errors = (SPREADS[1:2], ERRORS[2:]) if context.quick else (SPREADS, ERRORS)
    tasks = [
        (
            f"{spread} {error} {workers}",
            partial(proportional_cell, spread, error, workers, panels, context.seed),
        )
        for spread in spreads
        for error in errors
        for workers in WORKERS
    ]
    tasks += [
        (f"{ADDITIVE} {workers}", partial(additive_cell, workers, panels, context.seed))
        for workers in WORKERS
    ]
    rows = run_tasks(context, "errors_in_proportion", tasks)
    grown = [row for row in rows if row["steps"] in STEPS]
    constant = [row for row in rows if row["steps"] == ADDITIVE]
    large = [row for row in grown if row["error"] == max(errors)]
    fewest = min(row["chosen"] for row in grown)
    worst, worst_large = (max(row["ratio"] for row in part) for part in (grown, large))
    median = max(row["median"] for row in grown)
    most = max(row["chosen"] for row in constant)
    reached = (
        fewest >= FEWEST_CHOSEN, worst <= MOST, worst_large <= MOST_LARGE, median <= MOST_MEDIAN,
        most <= MOST_CHOSEN,
    )  # fmt: skip
    whats = (
        ("Errors in proportion: smallest share of panels with logarithms", f"{fewest:.0%}", "at least 90%"),
        ("Squared error of log estimates relative to the plain mean, worst cell", f"{worst:.3f}", f"at most {MOST}"),
        ("The same where errors are largest", f"{worst_large:.3f}", f"at most {MOST_LARGE}"),
        ("Median over panels of the ratio of squared errors, worst cell", f"{median:.3f}", f"at most {MOST_MEDIAN}"),
        ("Errors that do not grow: largest share of panels with logarithms", f"{most:.0%}", "at most 5%"),
    )  # fmt: skip
    ratio_errors = [max(part, key=lambda row: row["ratio"])["ratio_se"] for part in (grown, large)]
    by_chance = (
        near(fewest, share_error(FEWEST_CHOSEN, panels), FEWEST_CHOSEN),
        near(worst, ratio_errors[0], high=MOST),
        near(worst_large, ratio_errors[1], high=MOST_LARGE),
        near(median, max(grown, key=lambda row: row["median"])["median_se"], high=MOST_MEDIAN),
        near(most, share_error(MOST_CHOSEN, panels), high=MOST_CHOSEN),
    )
    context.points += [
        Point(4, *what, reached=ok, near=chance)
        for what, ok, chance in zip(whats, reached, by_chance, strict=True)
    ]
    return Section(
        title=(
            f"Errors in proportion: logarithms in at least {fewest:.0%} of the panels, elsewhere in at most {most:.0%}"
        ),
        verdict=(
            "Target: logarithms in at least 90% of the panels, squared error of log estimates at most 1.03 of the "
            "plain mean's in every cell and 0.92 where errors are largest, median ratio at most 1.08; where errors do "
            f"not grow with the value, logarithms in at most 5%. Found: {fewest:.0%}, {worst:.3f}, {worst_large:.3f}, "
            f"{median:.3f}, {most:.0%}."
        ),
        holds=all(reached),
        text=(
            f"Truths exp(N(4, sd²)), {QUESTIONS} questions, complete panels, {panels} per cell. An answer is the truth "
            "times a lognormal factor of mean 1, so that the truth is what the average worker says and the plain mean "
            "is unbiased; the error is the standard deviation of the logarithm of the factor. Estimates below a "
            f"hundredth of the truth count as a hundredth. Errors that do not grow (sd 0): truths N(50, 10²), noise "
            "N(0, 5²), all answers positive."
        ),
        tables=[
            PageTable(
                "Logarithms chosen, and squared errors relative to the plain mean",
                [
                    "sd of log truths", "error", "workers", "steps", "logarithms chosen",
                    "of logarithms: ratio of means", "±", "as they are: median ratio", "±",
                ],
                [
                    [
                        row["spread"], row["error"], row["workers"], row["steps"], f"{row['chosen']:.0%}",
                        round(row["ratio"], 3), round(row["ratio_se"], 3), round(row["median"], 3),
                        round(row["median_se"], 3),
                    ]
                    for row in rows
                ],
            )
        ],
    )  # fmt: skip
