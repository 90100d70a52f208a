"""The choice of a first step in plain loops: a slow reference.

Answers are a matrix of workers (rows) by questions (columns) with NaN where there is none, or a list of
(question, worker, value) with integer codes. Nothing here is shared with the package.

Where the description of the method leaves a choice, this file decides:

- The robust standard deviation of held-out answers is taken over questions with two or more answers. An
  answer whose question has no training answer is left out for every candidate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plain_native import plain_native
from plain_noise import Floats, answerers, matrix

Fit = Callable[[Floats], Floats]


def native_fit(a: Any) -> Floats:
    """Aggregates of the native first step, NaN for a question without answers."""
    x = matrix(a)
    worker, question = np.nonzero(~np.isnan(x))
    workers, questions = np.unique(worker), np.unique(question)
    found = plain_native(
        np.searchsorted(questions, question), np.searchsorted(workers, worker), x[worker, question]
    )
    t = np.full(x.shape[1], np.nan)
    t[questions] = found["t"]
    return t


def winsorised(x: Floats) -> Floats:
    """The answers, at most 5 robust standard deviations from the median of their question."""
    distances: list[float] = []
    squares, df = 0.0, 0
    middle = np.full(x.shape[1], np.nan)
    for j in range(x.shape[1]):
        values = np.array([x[i, j] for i in answerers(x, j)])
        if len(values):
            middle[j] = np.median(values)
        if len(values) >= 2:
            distances += np.abs(values - middle[j]).tolist()
            squares += float(((values - values.mean()) ** 2).sum())
            df += len(values) - 1
    if not df:
        return x
    scale = 1.4826 * float(np.median(distances)) or math.sqrt(squares / df)
    return np.asarray(np.clip(x, middle - 5 * scale, middle + 5 * scale))


def held_out_losses(
    a: Any, fits: dict[str, Fit], folds: Sequence[int], fewest_left: int = 3
) -> dict[str, Floats]:
    """Sums of squared errors on the held-out answers of each question.

    A first step takes the answers of some workers (the others all NaN) and returns aggregates, NaN for
    questions without answers. `folds` gives the fold of every worker.
    """
    x = matrix(a)
    n, m = x.shape
    tame = winsorised(x)
    losses = {name: np.zeros(m) for name in fits}
    for fold in sorted(set(folds)):
        train = x.copy()
        for i in range(n):
            if folds[i] == fold:
                train[i] = np.nan
        seen = [j for j in range(m) if len(answerers(train, j)) >= fewest_left]
        for name, fit in fits.items():
            t = fit(train)
            for i in range(n):
                for j in seen:
                    if folds[i] == fold and np.isfinite(x[i, j]):
                        losses[name][j] += (t[j] - tame[i, j]) ** 2
    return losses


def auto_choice(
    a: Any, candidates: dict[str, Fit], splits: Sequence[Sequence[int]]
) -> dict[str, Any]:
    """The native first step, or another that predicts held-out workers better by more than half a standard error.

    Both difference and standard error are means over splits of the workers into folds.
    """
    fits: dict[str, Fit] = {"native": native_fit, **candidates}
    all_losses = [held_out_losses(a, fits, folds) for folds in splits]
    loss, error = {}, {}
    for name in fits:
        loss[name] = float(np.mean([losses[name].sum() for losses in all_losses]))
        gaps = [losses["native"] - losses[name] for losses in all_losses]
        error[name] = float(np.mean([math.sqrt(float((gap**2).sum())) for gap in gaps]))
    better = [name for name in candidates if loss["native"] - loss[name] > 0.5 * error[name]]
    choice = min(better, key=lambda name: loss[name], default="native")
    return {"choice": choice, "loss": loss, "error": error}
