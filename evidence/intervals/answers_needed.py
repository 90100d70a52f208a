"""What `target_se` promises, and what the answers bring: questions asked of new workers, each of whom answers once."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from evidence.panel_estimates import estimate_of, seed_for
from evidence.points import Point, near
from evidence.processes import run_tasks
from trueup.answers.answers import Answers
from trueup.findings.answers_needed import answers_needed
from trueup.report.page import PageTable, Section

if TYPE_CHECKING:
    from collections.abc import Callable

    from evidence.second_step.context import Context
    from trueup.core.arrays import Floats, Ints

PANELS = 20
QUESTIONS = 60
#: The standard error asked for, relative to that of the median question.
WANTED = 0.5
#: Largest error relative to the standard error asked for.
MOST = 1.15
METHODS = ("mean", "native", "median")
STEPS = ("none", "normal")
#: Standard deviations of n workers, by name.
WORKERS: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "alike": lambda rng, n: np.ones(n),  # noqa: ARG005
    "unequal": lambda rng, n: np.exp(0.5 * rng.standard_normal(n)),
}


def answers_of_new_workers(question: Ints, x: Floats) -> Answers:
    """Return the answers of workers who give one each; questions in their order."""
    order = np.argsort(question, kind="stable")
    return Answers.of(
        {"worker": np.arange(len(x)), "question": question[order], "answer": x[order]}
    )


def cell(
    workers: str, each: int, method: str, step: str, panels: int, seed: int
) -> list[dict[str, Any]]:
    """Return a row: standard error and error after the answers that were said to be needed, relative to the target."""
    rng = np.random.default_rng(seed_for(seed, workers, each))
    options = {"method": method, "shrink": step, "target": "consensus", "transform": "none"}
    squares = []
    for _ in range(panels):
        truth = rng.standard_normal(QUESTIONS)

        def ask(question: Ints, truth: Floats = truth) -> Floats:
            noise = WORKERS[workers](rng, len(question)) * rng.standard_normal(len(question))
            return truth[question] + noise

        few = np.repeat(np.arange(QUESTIONS), each)
        x = ask(few)
        before = estimate_of(answers_of_new_workers(few, x), **options)
        target = WANTED * float(np.median(before.std_error))
        needed = answers_needed(before.solution, "pandas", target)
        more = np.repeat(np.arange(QUESTIONS), np.maximum(needed.more, 0))
        data = answers_of_new_workers(np.r_[few, more], np.r_[x, ask(more)])
        after = estimate_of(data, **options)
        both = (after.std_error**2, (after.estimate - truth) ** 2)
        squares.append([float(np.mean(values)) / target**2 for values in both])
    standard, error = np.sqrt(np.mean(squares, axis=0))
    spread = np.std([square for _, square in squares], ddof=1) / np.sqrt(panels)
    return [
        {
            "workers": workers,
            "answers": each,
            "method": method,
            "shrink": step,
            "standard_error": float(standard),
            "error": float(error),
            "error_se": float(spread / (2.0 * error)),
        }
    ]


def more_answers(context: Context) -> Section:
    """Compare what was promised with what came."""
    panels = min(context.samples, PANELS)
    tasks = [
        (
            f"{workers}, {each} answers, {method}, {step}",
            partial(cell, workers, each, method, step, panels, context.seed),
        )
        for workers in WORKERS
        for each in (3, 6)
        for method in METHODS
        for step in STEPS
    ]
    rows = run_tasks(context, "more_answers", tasks)
    worst = max(rows, key=lambda row: row["error"])
    context.points.append(
        Point(
            3, f"More answers, {len(rows)} cells: largest error relative to the standard error asked for",
            f"{worst['error']:.2f} ± {worst['error_se']:.2f}", f"at most {MOST}", worst["error"] <= MOST,
            near(worst["error"], worst["error_se"], high=MOST),
        )
    )  # fmt: skip
    return Section(
        title=f"More answers: the error is at most {worst['error']:.2f} times the standard error asked for",
        verdict=f"Target: at most {MOST} times the standard error asked for, whatever the first step.",
        holds=worst["error"] <= MOST,
        text=(
            f"{panels} panels of {QUESTIONS} questions per cell, truths N(0, 1). Each question is answered by 3 or 6 "
            "workers, none of whom answers another; then by as many more as half the standard error of the median "
            "question is said to need. Unequal workers: standard deviations exp(N(0, 0.5²))."
        ),
        tables=[
            PageTable(
                "After the answers needed, relative to the standard error asked for",
                ["workers", "answers", "first step", "shrink", "standard error", "root mean squared error"],
                [
                    [
                        row["workers"], row["answers"], row["method"], row["shrink"],
                        f"{row['standard_error']:.2f}", f"{row['error']:.2f}",
                    ]
                    for row in rows
                ],
            )
        ],
    )  # fmt: skip
