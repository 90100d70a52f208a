"""Noise of workers and variance of aggregates in plain loops, one panel at a time: a slow reference.

Answers are a matrix of workers (rows) by questions (columns) with NaN where there is none, or a list of
(question, worker, value) with integer codes. Weights `p` have the shape of the matrix and sum to 1 in
every question. Nothing here is shared with the package.

Where the description of the method leaves a choice, this file decides:

- A worker with no informative answer has the level `s0` as it stands, not floored; it is rescaled with
  all others. Without any informative answer, or with no spread at all, all worker variances are 0.
- `P_i`, and with it the variance of the common shift, sums over all questions, the gross ones too: only
  then does the bias term vanish in a complete panel. All other sums leave the gross questions out.
- `A_i` of the degrees of freedom sums over informative questions.
- Gross questions: interval variance = own variance (linear first steps); median of `k vi` of the others,
  divided by `k` (robust first steps). An answer with weight 1 adds nothing to its own variance.
- Robust scale: answers with residual 0 are left out. Medians are the usual ones (mean of the middle two);
  only the weighted median is the lower one.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import plain_interval_noise

if TYPE_CHECKING:
    from collections.abc import Sequence

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


def matrix(a: Any) -> Floats:
    """The answers as workers x questions."""
    if not isinstance(a, list):
        return np.asarray(a, dtype=float)
    table = np.full((1 + max(w for _, w, _ in a), 1 + max(q for q, _, _ in a)), np.nan)
    for question, worker, value in a:
        table[worker, question] = value
    return table


def counts(x: Floats) -> Ints:
    return np.array([np.isfinite(x[:, j]).sum() for j in range(x.shape[1])], dtype=np.int64)


def answerers(x: Floats, j: int) -> list[int]:
    return [i for i in range(x.shape[0]) if np.isfinite(x[i, j])]


def plain_weights(a: Any) -> Floats:
    """1/k for every answer: the weights of the mean."""
    x = matrix(a)
    k = counts(x)
    p = np.zeros_like(x)
    for j in range(x.shape[1]):
        for i in answerers(x, j):
            p[i, j] = 1 / k[j]
    return p


def lower_median(values: Sequence[float], weights: Sequence[float]) -> float:
    """The smallest value with at least half of the weight at or below it."""
    reached = 0.0
    for value, weight in sorted(zip(values, weights, strict=True)):
        reached += weight
        if 2 * reached >= sum(weights):
            return value
    raise AssertionError("no weights")


# Noise of the workers


def gross_questions(a: Any) -> Bools:
    """Questions whose spread is more than 100 times the usual."""
    x = matrix(a)
    m = x.shape[1]
    spread = {}
    for j in range(m):
        values = [x[i, j] for i in answerers(x, j)]
        if len(values) >= 2:
            centre = sum(values) / len(values)
            spread[j] = sum((value - centre) ** 2 for value in values) / (len(values) - 1)
    gross = np.zeros(m, dtype=bool)
    if len(spread) < 5:
        return gross
    lowest = sorted(spread.values())[: 9 * len(spread) // 10]
    usual = sum(lowest) / len(lowest)
    for j, value in spread.items():
        gross[j] = usual > 0 and value > 100 * usual
    return gross


def absurd_questions(a: Any) -> Bools:
    """Gross questions that one answer made so: the others have at most a twentieth of the sum of squares."""
    x = matrix(a)
    absurd = gross_questions(x)
    for j in np.flatnonzero(absurd).tolist():
        values = [x[i, j] for i in answerers(x, j)]
        if len(values) == 2:
            continue
        centre = sum(values) / len(values)
        worst = max(values, key=lambda value: abs(value - centre))
        rest = list(values)
        rest.remove(worst)
        middle = sum(rest) / len(rest)
        left = sum((value - middle) ** 2 for value in rest)
        absurd[j] = left <= 0.05 * sum((value - centre) ** 2 for value in values)
    return absurd


def informative(x: Floats, gross: Bools) -> list[int]:
    """Questions that tell about noise: two answers or more, and not gross."""
    k = counts(x)
    return [j for j in range(x.shape[1]) if k[j] >= 2 and not gross[j]]


def bias_of_workers(x: Floats, gross: Bools) -> dict[str, Any]:
    n = x.shape[0]
    k = counts(x)
    residuals: list[list[float]] = [[] for _ in range(n)]
    K = np.zeros(n)  # noqa: N806
    f = np.zeros(n)
    df = 0
    for j in informative(x, gross):
        who = answerers(x, j)
        centre = sum(x[i, j] for i in who) / k[j]
        df += int(k[j]) - 1
        for i in who:
            residuals[i].append(x[i, j] - centre)
            K[i] += 1
            f[i] += 1 - 1 / k[j]
    out: dict[str, Any] = {"bias": np.zeros(n), "tb2": 0.0, "pool": 0.0, "one": 0, "K": K, "f": f}
    out["df"] = df
    if df == 0:
        return out
    out["pool"] = sum(r * r for row in residuals for r in row) / df
    with_bias = [i for i in range(n) if K[i] >= 2]
    nb = len(with_bias) - 1
    if nb < 1 or df <= nb:
        return out
    b = np.zeros(n)
    for i in with_bias:
        b[i] = sum(residuals[i]) / K[i]
    s2 = sum((r - b[i]) ** 2 for i in range(n) for r in residuals[i]) / (df - nb)
    between = sum(K[i] * b[i] ** 2 for i in with_bias)
    expected = s2 * sum(f[i] / K[i] for i in with_bias)
    tb2 = (between - expected) / sum(f[i] for i in with_bias)
    if tb2 > 0 and s2 > 0:
        out |= {"bias": b, "tb2": float(tb2), "pool": float(s2), "one": 1}
    return out


def squares_of_workers(
    x: Floats, bias: Floats, s: Floats, questions: list[int]
) -> tuple[Floats, Floats]:
    """`ss_i` and the sum of `1 - p_ij` at the worker variances `s`."""
    ss = np.zeros(len(s))
    free = np.zeros(len(s))
    for j in questions:
        who = answerers(x, j)
        total = sum(1 / s[i] for i in who)
        centre = sum((x[i, j] - bias[i]) / s[i] for i in who) / total
        for i in who:
            ss[i] += (x[i, j] - bias[i] - centre) ** 2 + 1 / total
            free[i] += 1 - 1 / s[i] / total
    return ss, free


def worker_noise(a: Any) -> dict[str, Any]:
    """Biases and variances of the workers."""
    x = matrix(a)
    n = x.shape[0]
    gross = gross_questions(x)
    out = bias_of_workers(x, gross)
    out["gross"] = gross
    K, f, one, pool = out["K"], out["f"], out["one"], out["pool"]  # noqa: N806
    out["d"] = np.array([max(f[i] - one, 0.0) for i in range(n)])
    out["s"] = np.zeros(n)
    if pool == 0:
        return out
    questions = informative(x, gross)
    some = [i for i in range(n) if K[i] > 0]
    s = np.full(n, pool)
    for _ in range(12):
        ss, _free = squares_of_workers(x, out["bias"], s, questions)
        s0 = lower_median([ss[i] / max(K[i] - one, 1) for i in some], [K[i] for i in some])
        s = np.full(n, s0)
        for i in some:
            own = K[i] if K[i] == 1 else K[i] - one
            s[i] = max((ss[i] + 2 * s0) / (own + 2), 1e-6 * pool)
    out["s"] = s * pool * sum(f) / sum(f[i] * s[i] for i in range(n))
    return out


# Variance of the aggregates


def aggregate_variance(
    a: Any, p: Any, t: Any, weight: Any, robust: bool = False, plain: bool = False
) -> dict[str, Any]:
    """Variances `v` of the aggregates, `vi` for intervals, degrees of freedom, common shift.

    `weight` has the weight of each worker; `plain`: a median in which all count alike.
    """
    x = matrix(a)
    t = np.asarray(t, dtype=float)
    n, m = x.shape
    k = counts(x)
    noise = worker_noise(x)
    gross, s, pool = (noise[name] for name in ("gross", "s", "pool"))
    if robust and max(k) <= 2:
        robust = False
        p = plain_weights(x)
    p = np.where(np.isfinite(x), np.nan_to_num(np.asarray(p, dtype=float)), 0.0)
    share = [sum(p[i, j] for j in range(m)) / m for i in range(n)]
    careful = {"tb2": 0.0, "shift_nu": 1.0}
    if pool > 0:
        careful = plain_interval_noise.interval_noise(x, noise, informative(x, gross))
    shift = careful["tb2"] * sum(part**2 for part in share)
    v1 = np.full(m, np.nan)
    for j in range(m):
        v1[j] = sum(p[i, j] ** 2 * s[i] for i in range(n))
    out = {"shift": shift, "gross": gross, "v1": v1, "s": s, "pool": pool, "df": noise["df"]}
    out["shift_nu"] = careful["shift_nu"]
    if pool == 0:
        return out | {"v": np.zeros(m), "vi": np.zeros(m), "nu": 1.0, "interval_nu": 1.0}
    y = x - noise["bias"][:, None]
    if robust:
        equal = plain_weights(x)
        share = [sum(equal[i, j] for j in range(m)) / m for i in range(n)]
        out["shift"] = careful["tb2"] * sum(part**2 for part in share)
        common = sum(part**2 for part in share)
        v, vi, nu = robust_variance(y, k, noise, common, careful if plain else None)
        vi += np.maximum(median_factor(k) - common, 0.0) * careful["tb2"]
        out["interval_nu"] = nu
        if plain:
            part = noise["K"] / np.sqrt(careful["s"])
            out["interval_nu"] = plain_interval_noise.freedom(careful, part)
    else:
        v, vi, nu = linear_variance(y, p, noise, v1, share, careful)
        vi = vi * plain_interval_noise.factor(careful, np.asarray(weight), noise["K"])
        spread = (p**2).sum(axis=0) - sum(part**2 for part in share)
        vi += careful["tb2"] * np.maximum(spread, 0.0)
        squared = (p[:, informative(x, gross)] ** 2).sum(axis=1)
        out["interval_nu"] = plain_interval_noise.freedom(careful, squared * careful["s"])
    vi = np.maximum(v, vi)
    absurd = absurd_questions(x)
    for j in range(m):
        if not gross[j]:
            continue
        if not absurd[j]:
            spread = np.var([x[i, j] for i in answerers(x, j)])
            if robust:
                vi[j] = max(vi[j], spread / k[j] * (1.3 if k[j] >= 3 else 1.0))
            else:
                parts = [(p[i, j], x[i, j] - t[j]) for i in answerers(x, j) if p[i, j] < 1]
                vi[j] = max(vi[j], sum(part**2 * r**2 / (1 - part) for part, r in parts))
            continue
        if robust:
            others = informative(x, gross)
            v[j] = np.median([k[o] * v[o] for o in others]) / k[j]
            vi[j] = np.median([k[o] * vi[o] for o in others]) / k[j]
        else:
            parts = [(p[i, j], x[i, j] - t[j]) for i in answerers(x, j) if p[i, j] < 1]
            v[j] = vi[j] = sum(part**2 * r**2 / (1 - part) for part, r in parts)
    return out | {"v": v, "vi": vi, "nu": nu}


def median_factor(k: Ints) -> Floats:
    """Variance of a median in the second step, relative to that of an answer."""
    return np.array([(1.3 if each >= 3 else 1.0) / each for each in k])


def linear_variance(
    y: Floats,
    p: Floats,
    noise: dict[str, Any],
    v1: Floats,
    share: list[float],
    careful: dict[str, Any],
) -> tuple[Floats, Floats, float]:
    n, m = y.shape
    gross, s, K, pool, tb2 = (noise[name] for name in ("gross", "s", "K", "pool", "tb2"))  # noqa: N806
    questions = informative(y, gross)
    used = list(range(m))

    above = np.zeros(n)
    below = np.zeros(n)
    for j in questions:
        who = answerers(y, j)
        centre = sum(p[i, j] * y[i, j] for i in who)
        for i in who:
            above[i] += (y[i, j] - centre) ** 2
            below[i] += 1 - p[i, j]
    c = [above[i] / below[i] if below[i] > 0 else 0.0 for i in range(n)]

    squares = sum(p[i, j] ** 2 for j in questions for i in range(n))
    behind = sum(p[i, j] ** 2 * K[i] for j in questions for i in range(n)) / squares
    sum1 = sum(v1[j] for j in questions)
    sum2 = sum(p[i, j] ** 2 * c[i] for j in questions for i in range(n))
    ratio = min(max(sum2 / sum1, 0.01), 1.0)
    g = ratio ** (4 / (4 + behind))

    pattern = np.zeros(m)
    honest = np.zeros(m)
    rest = np.zeros(m)
    for j in used:
        for i in range(n):
            pattern[j] += p[i, j] ** 2 * (K[i] * s[i] + 10 * pool) / (K[i] + 10)
            honest[j] += p[i, j] ** 2 * careful["s"][i]
        spread = sum(p[i, j] ** 2 for i in range(n)) - sum(part**2 for part in share)
        rest[j] = tb2 * max(spread, 0.0)
    level = sum1 / sum(pattern[j] for j in questions)
    v = g * pattern * level + g * rest

    parts = [s[i] * sum(p[i, j] ** 2 for j in questions) for i in range(n)]
    noise_of_it = sum(parts[i] ** 2 / (noise["d"][i] + 2) for i in range(n))
    return v, honest, max(1.0, sum(parts) ** 2 / noise_of_it)


def robust_variance(
    y: Floats, k: Ints, noise: dict[str, Any], common: float, careful: dict[str, Any] | None
) -> tuple[Floats, Floats, float]:
    m = y.shape[1]
    gross, pool = noise["gross"], noise["pool"]
    total = float(sum(noise["d"]))
    residuals: list[float] = []
    scaled: list[float] = []
    for j in informative(y, gross):
        values = [y[i, j] for i in answerers(y, j)]
        sizes = sorted(abs(value - np.median(values)) for value in values)
        residuals += sizes
        scaled += [size * math.sqrt(k[j] / (k[j] - 1)) for size in sizes if size > 0]
    scale = 1.4826 * float(np.median(scaled))
    level = 0.0
    if total > 0:
        level = sum(min(r, 2.5 * scale) ** 2 for r in residuals) / noise["df"]
        level = min(level * (total + 1) / total, pool)
    v = np.zeros(m)
    vi = np.zeros(m)
    for j in range(m):
        factor = median_factor(k)[j]
        biases = noise["tb2"] * max(factor - common, 0.0)
        v[j] = (level * factor + biases) * level / pool
        vi[j] = 1.15 * level * factor
        if careful is not None:
            of_workers = [careful["s"][i] for i in answerers(y, j)]
            vi[j] = plain_interval_noise.variance_of_median(int(k[j]), of_workers, level)
    return v, vi, max(1.0, 0.6 * total)
