"""The native first step and the choice of one in plain loops: a slow reference.

Answers are a matrix of workers (rows) by questions (columns) with NaN where there is none, or a list of
(question, worker, value) with integer codes. Nothing here is shared with the package.

Where the description of the method leaves a choice, this file decides:

- Gross questions do not enter the native worker variances either. "At most 3 workers" counts workers
  with informative answers. `var(z)` divides by L - 1; `mean z` is not weighted; there is no floor for
  `s_i`. A worker with K_i = 1 counts as 1 answer, not K_i - one.
- The robust standard deviation of held-out answers is taken over questions with two or more answers. An
  answer whose question has no training answer is left out for every candidate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import special

from plain_noise import (
    Floats,
    answerers,
    bias_of_workers,
    gross_questions,
    informative,
    lower_median,
    matrix,
    squares_of_workers,
)

Fit = Callable[[Floats], Floats]


def native_weights(a: Any) -> Floats:
    """Worker variances whose inverses are the weights of the native first step."""
    x = matrix(a)
    n = x.shape[0]
    gross = gross_questions(x)
    noise = bias_of_workers(x, gross)
    K, one, pool = noise["K"], noise["one"], noise["pool"]  # noqa: N806
    if pool == 0:
        return np.ones(n)
    questions = informative(x, gross)
    some = [i for i in range(n) if K[i] > 0]
    number = len(some)
    own = np.array([K[i] if K[i] == 1 else K[i] - one for i in range(n)])
    s = np.full(n, pool)
    for turn in range(10):
        ss, free = squares_of_workers(x, noise["bias"], s, questions)
        if turn < 2 or number <= 3:
            d0 = 4.0
            s0 = lower_median([ss[i] / own[i] for i in some], [K[i] for i in some])
        else:
            df = [max(free[i] - one, 0.5) for i in some]
            logs = [math.log(max(ss[i] / own[i], 1e-4 * pool)) for i in some]
            z = [
                log - float(special.digamma(d / 2)) + math.log(d / 2)
                for log, d in zip(logs, df, strict=True)
            ]
            excess = np.var(z, ddof=1) - np.mean([special.polygamma(1, d / 2) for d in df])
            d1 = min(2 / excess + 1, 1000.0) if excess > 0 else 1000.0
            s0 = math.exp(np.mean(z))
            d0 = 1 / ((number - 3) / number / d1 + 3 / (4 * number))
        s = np.full(n, s0)
        for i in some:
            s[i] = (ss[i] + d0 * s0) / (own[i] + d0)
    return s


def native_fit(a: Any) -> tuple[Floats, Floats]:
    """Aggregates (NaN for a question without answers) and weights of the native first step."""
    x = matrix(a)
    w = 1 / native_weights(x)
    p = np.zeros_like(x)
    t = np.full(x.shape[1], np.nan)
    for j in range(x.shape[1]):
        who = answerers(x, j)
        for i in who:
            p[i, j] = w[i] / sum(w[o] for o in who)
        if who:
            t[j] = sum(p[i, j] * x[i, j] for i in who)
    return t, p


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


def auto_choice(a: Any, candidates: dict[str, Fit], folds: Sequence[int]) -> dict[str, Any]:
    """The first step that predicts held-out workers best, if clearly better than the native one.

    A candidate takes the answers of some workers (the others all NaN) and returns aggregates, NaN for
    questions without answers. `folds` gives the fold of every worker.
    """
    x = matrix(a)
    n, m = x.shape
    if n < 3:
        return {"choice": "native", "losses": {}, "qualified": []}
    tame = winsorised(x)
    fits: dict[str, Fit] = {"native": lambda train: native_fit(train)[0], **candidates}
    losses = {name: np.zeros(m) for name in fits}
    for fold in sorted(set(folds)):
        train = x.copy()
        for i in range(n):
            if folds[i] == fold:
                train[i] = np.nan
        seen = [j for j in range(m) if answerers(train, j)]
        for name, fit in fits.items():
            t = fit(train)
            for i in range(n):
                for j in seen:
                    if folds[i] == fold and np.isfinite(x[i, j]):
                        losses[name][j] += (t[j] - tame[i, j]) ** 2
    qualified = []
    whole = float(losses["native"].sum())
    for name in candidates:
        g = losses["native"] - losses[name]
        gain, error = float(g.sum()), math.sqrt(float((g**2).sum()))
        if gain > 2 * error or (gain > error and gain > 0.1 * whole):
            qualified.append(name)
    choice = min(qualified, key=lambda name: float(losses[name].sum()), default="native")
    return {"choice": choice, "losses": losses, "qualified": qualified}
