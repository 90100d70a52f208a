"""Variance of any first step by running it again with other workers.

The resamples are panels of one block-diagonal problem, so that the first step runs on all of them in one call. Number
of iterations and tolerance are those of `run` unless given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.algorithms.driver import run
from trueup.answers.panels import folds
from trueup.errors import TrueupError, option

if TYPE_CHECKING:
    from trueup.algorithms.driver import Aggregate
    from trueup.answers.answers import Answers
    from trueup.core.arrays import Floats, Ints

GROUPS = 20
PANELS = 200


def jackknife(
    answers: Answers | None,
    aggregate: Aggregate,
    *,
    groups: int = GROUPS,
    seed: int = 0,
    **options: Any,
) -> Floats:
    """Return `(g-1)/g sum (x_(k) - mean)^2` over g random groups of workers left out in turn.

    A question has no value in a panel that leaves out all its workers; its sum is then scaled to g. Questions with
    fewer than two values get the mean variance of the others.
    """
    answers = _in_memory(answers, "jackknife")
    if (np.diff(answers.panel_workers) < 2).all():
        raise TrueupError("the jackknife needs at least two workers.", argument="variance")
    split = folds(answers, groups, seed=seed)
    x = run(aggregate.algorithm, split.training, **options).offset
    count, ss = _moments(x, split.question, answers.n_questions)
    made = np.minimum(np.diff(answers.panel_workers), groups)[answers.question_panel]
    variance = np.divide((made - 1.0) * ss, count, out=np.full(len(ss), np.nan), where=count >= 2)
    return _fill(variance)


def bootstrap(
    answers: Answers | None,
    aggregate: Aggregate,
    *,
    panels: int = PANELS,
    seed: int = 0,
    **options: Any,
) -> Floats:
    """Return the variance of each aggregate over panels of workers drawn with replacement."""
    answers = _in_memory(answers, "bootstrap")
    drawn = answers.bootstrap(panels, seed=seed)
    source = drawn.question_source
    if source is None or answers.question_source is not None:
        raise TrueupError(
            "draw workers from a single problem, not from panels.", argument="variance"
        )
    x = run(aggregate.algorithm, drawn, **options).offset
    count, ss = _moments(x, source, answers.n_questions)
    variance = np.divide(ss, count - 1.0, out=np.full(len(ss), np.nan), where=count >= 2)
    return _fill(variance)


def _in_memory(answers: Answers | None, rule: str) -> Answers:
    if answers is None:
        raise TrueupError(
            f'"{rule}" runs the first step again with other workers, which needs all answers in memory.',
            argument="variance",
            remedy="Use " + option("engine", "memory") + ", or another rule.",
        )
    return answers


def _moments(x: Floats, question: Ints, questions: int) -> tuple[Floats, Floats]:
    """Return the number of values of each question, and their sum of squares around the mean."""
    count = np.bincount(question, minlength=questions).astype(np.float64)
    mean = np.bincount(question, x, minlength=questions) / np.maximum(count, 1.0)
    ss = np.bincount(question, (x - mean[question]) ** 2, minlength=questions).astype(np.float64)
    return count, ss


def _fill(variance: Floats) -> Floats:
    """Give questions without a variance the mean of the others."""
    known = ~np.isnan(variance)
    if not known.any():
        raise TrueupError(
            "no question can be estimated without some of its workers; more answers are needed.",
            argument="variance",
        )
    return np.where(known, variance, variance[known].mean())
