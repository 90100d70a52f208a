"""Noise of workers for intervals in plain loops, one panel at a time: a slow reference.

Nothing here is shared with the package. `noise` is what `plain_noise.worker_noise` found out.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

Floats = NDArray[np.float64]


def answerers(x: Floats, j: int) -> list[int]:
    return [i for i in range(x.shape[0]) if np.isfinite(x[i, j])]


def prior_of_variances(m: Floats, f: Floats, some: list[int], pool: float) -> tuple[float, float]:
    """Level and strength of the worker variances."""
    size = len(some)
    if size <= 3:
        return pool, 4.0
    half = {i: 0.5 * max(f[i], 0.5) for i in some}
    z = {i: math.log(m[i]) - special.digamma(half[i]) + math.log(half[i]) for i in some}
    centre = sum(z.values()) / size
    spread = sum((value - centre) ** 2 for value in z.values()) / (size - 1)
    excess = spread - sum(float(special.polygamma(1, half[i])) for i in some) / size
    d1 = min(2 / excess + 1, 1000.0) if excess > 0.002 else 1000.0
    d0 = 1 / ((size - 3) / size / d1 + 0.75 / size)
    return math.exp(centre + special.digamma(d0 / 2) - math.log(d0 / 2)), d0


def interval_noise(x: Floats, noise: dict[str, Any], questions: list[int]) -> dict[str, Any]:
    n = x.shape[0]
    s, b, K, pool, one = (noise[name] for name in ("s", "bias", "K", "pool", "one"))  # noqa: N806
    squares, free, rest = np.zeros(n), np.zeros(n), np.zeros(n)
    for j in questions:
        who = answerers(x, j)
        total = sum(1 / s[i] for i in who)
        centre = sum((x[i, j] - b[i]) / s[i] for i in who) / total
        for i in who:
            squares[i] += (x[i, j] - b[i] - centre) ** 2
            rest[i] += x[i, j] - b[i] - centre
            free[i] += 1 - 1 / s[i] / total
    f = np.array([free[i] * (1 - one / K[i]) if K[i] >= 2 else free[i] for i in range(n)])
    m = np.array([max(squares[i] / f[i], 1e-4 * pool) if f[i] > 1e-9 else pool for i in range(n)])
    some = [i for i in range(n) if K[i] > 0]
    level, strength = prior_of_variances(m, f, some, pool)
    own = f / (f + strength)
    s = own * m + (1 - own) * level
    s = s * sum(f * m / s) / sum(f)
    assumed = min(0.75 / len(some) * strength, 1.0) if len(some) > 3 else 1.0
    found = {"f": f, "m": m, "own": own, "s": s, "assumed": assumed}
    return found | bias_variance(found, b, rest, K, one)


def bias_variance(found: Any, b: Floats, rest: Floats, K: Floats, one: int) -> dict[str, float]:  # noqa: N803
    """Paule and Mandel's variance of the biases, and its degrees of freedom."""
    known = [i for i in range(len(b)) if K[i] >= 2 and one and found["f"][i] > 1e-9]
    size = len(known)
    if size < 2:
        return {"tb2": 0.0, "shift_nu": 1.0}
    value = np.array([b[i] + rest[i] / K[i] for i in known])
    error = np.array([found["s"][i] / found["f"][i] for i in known])

    def excess(tb2: float) -> float:
        w = 1 / (tb2 + error)
        centre = sum(w * value) / sum(w)
        return float(sum(w * (value - centre) ** 2) - (size - 1))

    if excess(0.0) <= 0:
        return {"tb2": 0.0, "shift_nu": size - 1.0}
    top = float(sum((value - value.mean()) ** 2))
    tb2 = float(optimize.brentq(excess, 0.0, top, xtol=1e-14 * top, rtol=1e-13))
    share = tb2 / (tb2 + error)
    return {"tb2": tb2, "shift_nu": (size - 1.0) * float(np.mean(share**2))}


def factor(found: Any, weight: Floats, K: Floats) -> float:  # noqa: N803
    """What weights that follow the residuals need, and the level where they do not."""
    f, m, s, own = (found[name] for name in ("f", "m", "s", "own"))
    some = [i for i in range(len(f)) if K[i] > 0]
    logs = np.array([[math.log(m[i]), math.log(weight[i])] for i in some])
    logs -= logs.mean(axis=0)
    below = float(sum(logs[:, 0] ** 2))
    e = min(max(-float(sum(logs[:, 0] * logs[:, 1])) / below, 0.0), 1.0) if below > 1e-12 else 0.0
    p = weight * K / sum(weight * K)
    luck = sum(p[i] * (1 - p[i]) * own[i] / f[i] for i in some if f[i] > 0)
    level = sum(f * m) / sum(f * s)
    return float((1 + found["assumed"] * 2 * e * (1 + e) * luck) * level ** (1 - e))


def freedom(found: Any, part: Floats) -> float:
    """Degrees of freedom of a variance to which the workers add `part`."""
    f, own = found["f"], found["own"]
    c = part / sum(part)
    g = own * c + f / sum(f) * sum((1 - own) * c)
    nu = 1 / sum(g[i] ** 2 / f[i] for i in range(len(f)) if f[i] > 0)
    return max(min(float(nu), float(sum(f))), 1.0)


def variance_of_median(k: int, s: list[float], clipped: float) -> float:
    """Variance of the median of k answers of workers with variances s."""
    if k <= 2:
        return min(1.15 * clipped / k, sum(s) / k**2)
    normal = math.pi / 2 / (k + (0.5 if k % 2 else 1.27))
    typical = (sum(1 / math.sqrt(each) for each in s) / k) ** -2
    return min(1.15 * clipped, typical) * normal
