"""From the consensus to the truth, one problem at a time: a slow reference, written from the description of the model.

Nothing here is shared with the package. Answers are a matrix of workers (rows) by questions (columns) with NaN where
there is none; `t, e, v, b` are the aggregates, the outcome of the full second step, its variances (NaN: unknown) and
its shrinkage, all on the scale on which answers are combined.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import optimize, stats

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

KINDS = {
    None: (0.04, 0.8),
    "perception": (-0.77, 0.5),
    "judgment": (0.14, 0.5),
    "forecast": (0.92, 0.5),
}


def scatter(x: Floats) -> float:
    """Scatter of a single answer; the fixed point by iterating from above, which stops at the largest one."""
    distances: list[float] = []
    for column in x.T:
        values = column[~np.isnan(column)]
        k = len(values)
        if k >= 2:
            middle = float(np.median(values))
            distances += [abs(value - middle) * math.sqrt(k / (k - 1)) for value in values]
    positive = [r for r in distances if r > 0]
    if not positive:
        return 0.0
    least = 1e-9 * float(np.median(positive))
    rest = np.array([r for r in positive if r > least])
    level = float(rest.mean())
    for _ in range(100_000):
        before, level = level, float(np.minimum(rest, 3 * level).mean())
        if before - level <= 1e-15 * level:
            break
    return math.sqrt(math.pi / 2) * len(rest) / len(distances) * level


class Gold(NamedTuple):
    """Known truths in units of s: consensus, its variance, and truth."""

    z: Floats
    u: Floats
    g: Floats


class Nodes(NamedTuple):
    """The posterior: log slope, spread, posterior mean and variance of the offset, and weight of each node."""

    lam: Floats
    om: Floats
    ah: Floats
    va: Floats
    w: Floats

    def mean(self, values: Floats) -> float:
        return float(np.sum(self.w * values))

    @property
    def slope_variance(self) -> float:
        return self.mean((self.lam - self.mean(self.lam)) ** 2)


def posterior(x: float, shift: float, gold: Gold, kind: str | None = None) -> Nodes:
    """Weights of the nodes; they are laid anew while the posterior of the log slope is narrower than their distance."""
    lams = np.linspace(-1.6, 2.4, 51)
    usual = stats.t.pdf((lams - 0.37 * x) / 0.14, 4)
    wide = stats.norm.pdf(lams, 0.37 * x, 0.6)
    found = _weigh(lams, 0.85 * usual / usual.sum() + 0.15 * wide / wide.sum(), shift, gold, kind)
    step = 0.08
    for _ in range(6):
        sd = math.sqrt(found.slope_variance)
        if not len(gold.g) or sd >= step:
            break
        middle, reach = found.mean(found.lam), max(6 * sd, 2 * step)
        lams = np.linspace(middle - reach, middle + reach, 51)
        step = float(lams[1] - lams[0])
        density = 0.85 * stats.t.pdf((lams - 0.37 * x) / 0.14, 4) / 0.14
        density += 0.15 * stats.norm.pdf(lams, 0.37 * x, 0.6)
        found = _weigh(lams, density * step, shift, gold, kind)
    return found


def _weigh(lams: Floats, prior: Floats, shift: float, gold: Gold, kind: str | None) -> Nodes:
    middle, sd = KINDS[kind]
    logs = np.linspace(-4, 4, 41)
    spreads = stats.norm.pdf(logs, middle, sd)
    spreads /= spreads.sum()
    nodes = [
        (lam, math.exp(log), a2 + shift, 0.8 * own * other * 0.5)
        for lam, own in zip(lams, prior, strict=True)
        for log, other in zip(logs, spreads, strict=True)
        for a2 in (0.0, 0.74**2)
    ]
    lam, om, a2, weight = np.array([*nodes, (0.0, 0.0, shift, 0.2)]).T
    k = len(gold.g)
    eta = max(0.7, 1 - 2 / k) if k else 1.0
    b = np.exp(lam)[:, None]
    d = np.maximum(om[:, None] ** 2 + b**2 * gold.u, 1e-12)
    r = gold.g - b * gold.z
    s, t = (eta / d).sum(axis=1), (eta / d * r).sum(axis=1)
    va = a2 / (1 + a2 * s)
    log_w = np.log(np.maximum(weight, 1e-300)) - eta / 2 * np.log(d).sum(axis=1)
    log_w += va * t**2 / 2 - (eta / d * r**2).sum(axis=1) / 2 - np.log(1 + a2 * s) / 2
    w = np.exp(log_w - log_w.max())
    return Nodes(lam, om, va * t, va, w / w.sum())


def quantile(found: Nodes, u: float, level: float) -> float:
    """Half the symmetric interval of the mixture at z = 0, in predictive standard deviations."""
    own = np.sqrt(found.om**2 + found.va + np.exp(2 * found.lam) * u)
    own = np.maximum(own, 1e-12)
    away = found.ah - found.mean(found.ah)
    deviation = math.sqrt(found.mean(own**2 + away**2))

    def lacking(half: float) -> float:
        inside = stats.norm.cdf((half - away) / own) - stats.norm.cdf((-half - away) / own)
        return level - found.mean(inside)

    return float(optimize.bisect(lacking, 0, 50 * deviation, xtol=1e-14, maxiter=200)) / deviation


def truths(
    t: Floats,
    e: Floats,
    v: Floats,
    b: Floats,
    s: float,
    gold: dict[int, float] | None = None,
    *,
    shift: float = 0.0,
    kind: str | None = None,
    level: float = 0.95,
) -> dict[str, Any]:
    """Estimates of the truth and their intervals, without the competition with the calibration."""
    known, m = gold or {}, len(t)
    sure = ~np.isnan(v)
    middle = float(e[sure].mean()) if sure.any() else float(e.mean())
    x = 0.0
    if sure.sum() >= 4 and s > 0:
        tau2 = float(e[sure].var() + v[sure].mean())
        x = min(math.log(1 + s**2 / tau2), 5.0)
    if s == 0 and len(known) >= 3:
        s, x = math.sqrt(np.mean([(truth - t[j]) ** 2 for j, truth in known.items()])), 0.0
    if s == 0:
        unknown = np.full(m, np.nan)
        return {"s": 0.0, "x": x, "estimate": t.copy(), "lower": unknown, "upper": unknown}
    typical = float(np.median(v[sure])) if sure.any() else 0.0
    u = np.where(sure, v, typical) / s**2
    z, at = (e - middle) / s, np.array(list(known), dtype=int)
    told_by = Gold(z[at], u[at], (np.array(list(known.values()), dtype=float) - middle) / s)
    none = Gold(*np.zeros((3, 0)))
    after, before = (posterior(x, shift / s**2, each, kind) for each in (told_by, none))
    slope, offset = after.mean(np.exp(after.lam)), after.mean(after.ah)
    compression = math.exp(0.37 * x) * slope / before.mean(np.exp(before.lam))
    told = 0.0
    if known:
        learned = 1 - after.slope_variance / before.slope_variance
        told = max(learned, min(1.0, len(known) / 10), 0.0) ** 2
    mu = offset + slope * z
    square = after.mean(after.om**2 + after.va + after.ah**2) - mu**2
    square += after.mean(np.exp(2 * after.lam)) * (u + z**2)
    square += 2 * after.mean(after.ah * np.exp(after.lam)) * z
    half = quantile(after, typical / s**2, level) * np.sqrt(square)
    estimate, lower, upper = np.zeros((3, m))
    for j in range(m):
        if j in known:
            estimate[j] = lower[j] = upper[j] = known[j]
            continue
        share = (1 - (1 - b[j]) * compression) / b[j] if b[j] > 0 else 0.0
        careful = t[j] + min(max(share, 0.0), 1.0) * (e[j] - t[j]) + s * offset
        estimate[j] = (1 - told) * careful + told * (middle + s * mu[j])
        lower[j] = min(middle + s * (mu[j] - half[j]), estimate[j])
        upper[j] = max(middle + s * (mu[j] + half[j]), estimate[j])
    return {"s": s, "x": x, "estimate": estimate, "lower": lower, "upper": upper}
