"""Variance of any first step, a black box, by asking it again with other workers.

The variations are panels of one block-diagonal problem, so that the first step runs on all of them in one call. Its
number of iterations and tolerance are those of `run` unless given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.algorithms.driver import run
from trueup.errors import TrueupError

if TYPE_CHECKING:
    from trueup.algorithms.driver import Aggregate
    from trueup.answers import Answers
    from trueup.arrays import Floats

GROUPS = 20
PANELS = 200


def jackknife(
    answers: Answers, aggregate: Aggregate, *, groups: int = GROUPS, seed: int = 0, **options: Any
) -> Floats:
    """Return `(g-1)/g sum (x_(k) - mean)^2` over g random groups of workers left out in turn.

    A question whose answers all came from the groups left out has a value in fewer panels; its sum is scaled to g.
    Questions that can be estimated in fewer than two panels get the mean variance of the others.
    """
    groups = min(groups, answers.n_workers)
    if groups < 2:
        raise TrueupError("variance: the jackknife needs at least two workers.")
    count, _, ss = _moments(aggregate, answers.jackknife(groups, seed=seed), answers, options)
    variance = np.divide((groups - 1) * ss, count, out=np.full(len(ss), np.nan), where=count >= 2)
    return _fill(variance)


def bootstrap(
    answers: Answers, aggregate: Aggregate, *, panels: int = PANELS, seed: int = 0, **options: Any
) -> Floats:
    """Return the variance of each aggregate over panels of workers drawn with replacement."""
    drawn = answers.bootstrap(panels, seed=seed)
    count, _, ss = _moments(aggregate, drawn, answers, options)
    variance = np.divide(ss, count - 1.0, out=np.full(len(ss), np.nan), where=count >= 2)
    return _fill(variance)


def _moments(
    aggregate: Aggregate, panels: Answers, answers: Answers, options: dict[str, Any]
) -> tuple[Floats, Floats, Floats]:
    """Return for each question in how many panels it is, its mean, and its sum of squares around it."""
    x = run(aggregate.algorithm, panels, **options).offset
    source, m = panels.question_source, answers.n_questions
    assert source is not None  # noqa: S101  panels were drawn from answers
    if answers.question_source is not None:
        raise TrueupError("variance: draw workers from a single problem, not from panels.")
    count = np.bincount(source, minlength=m).astype(np.float64)
    mean = np.bincount(source, x, minlength=m) / np.maximum(count, 1.0)
    ss = np.bincount(source, (x - mean[source]) ** 2, minlength=m).astype(np.float64)
    return count, mean, ss


def _fill(variance: Floats) -> Floats:
    """Give questions without a variance the mean of the others."""
    known = ~np.isnan(variance)
    if not known.any():
        raise TrueupError(
            "variance: no question can be estimated without some of its workers; more answers are needed."
        )
    return np.where(known, variance, variance[known].mean())
