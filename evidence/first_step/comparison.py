"""First steps compared: estimates without the second step, and their squared errors relative to the plain mean's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from evidence.panel_estimates import estimate_of, panels_of
from trueup.study.harness import losses_of, ratio_error

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trueup import Answers, Estimate
    from trueup.core.arrays import Floats

DEFAULT = "auto"
MEAN: dict[str, Any] = {"method": "mean", "transform": "none"}
AS_THEY_ARE = "auto, answers as they are"
#: Options of `trueup.estimate` by name of the column.
FIRST_STEPS: dict[str, dict[str, Any]] = {
    "native": {"method": "native", "transform": "none"},
    AS_THEY_ARE: {"transform": "none"},
    DEFAULT: {},
    "median": {"method": "median", "transform": "none"},
    "student_t": {"method": "student_t", "transform": "none"},
}


def first_step(answers: Answers, *, seed: int = 0, **options: Any) -> Floats:
    """Return the estimates of a first step for all questions of all panels; each panel is a problem of its own."""
    if options.get("method", DEFAULT) != DEFAULT:
        return estimate_of(answers, shrink="none", seed=seed, **options).estimate
    return np.concatenate([est.estimate for est in default_steps(answers, seed=seed, **options)])


def default_steps(answers: Answers, *, seed: int = 0, **options: Any) -> list[Estimate]:
    """Return the estimates of the default first step, one for each panel."""
    return [estimate_of(panel, shrink="none", seed=seed, **options) for panel in panels_of(answers)]


def as_they_are(default: Sequence[Estimate], answers: Answers, seed: int) -> Floats:
    """Return the default first step without logarithms; it runs only where they were chosen."""
    return np.concatenate(
        [
            est.estimate
            if est.diagnosis.transform == "none"
            else estimate_of(panel, shrink="none", seed=seed, transform="none").estimate
            for est, panel in zip(default, panels_of(answers), strict=True)
        ]
    )


def relative_risks(
    answers: Answers,
    truth: Floats,
    first_steps: Mapping[str, Mapping[str, Any]] = FIRST_STEPS,
    *,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Return a row for each first step: its mean squared error relative to that of the plain mean.

    The ratio is that of the means over panels, and its standard error describes the variation between panels; of a
    single panel, that between questions.
    """
    borders = answers.panel_questions
    if answers.n_panels == 1:
        borders = np.arange(answers.n_questions + 1)
    base = losses_of(borders, first_step(answers, **MEAN), truth)
    default = default_steps(answers, seed=seed) if DEFAULT in first_steps else []
    estimates = {}
    for name, options in first_steps.items():
        if name == DEFAULT:
            estimates[name] = np.concatenate([est.estimate for est in default])
        elif name == AS_THEY_ARE and default:
            estimates[name] = as_they_are(default, answers, seed)
        else:
            estimates[name] = first_step(answers, seed=seed, **options)
    rows = []
    for name, estimate in estimates.items():
        losses = losses_of(borders, estimate, truth)
        rows.append(
            {
                "first_step": name,
                "panels": answers.n_panels,
                "ratio": float(losses.mean() / base.mean()),
                "ratio_se": ratio_error(losses, base),
            }
        )
    return rows


def with_error(row: Mapping[str, Any], value: str = "ratio") -> str:
    """Return a figure and its standard error as text."""
    return f"{row[value]:.3f} ± {row[f'{value}_se']:.3f}"
