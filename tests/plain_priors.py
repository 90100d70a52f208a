"""Priors of the second step in plain loops, one panel at a time: a slow reference.

`t` are aggregates, `v` and `vi` their variances for the prior and for the interval. Nothing here is shared
with the package.

Where the description of the method leaves a choice, this file decides:

Normal prior
- All grid points count alike (no half weights at the ends); the mass below the grid comes on top.
- `S2` divides by the sum of the weights. The reported `B` is the posterior mean of `B`.
- The peak and the 14 log units refer to the density in log tau2, prior and Jacobian included.
- With caution the squared difference in the interval variance is that of the cautioned estimate.
- With three questions or fewer nothing is shrunk and the interval variance is `vi` as it is.
- Own means, common tau2: `S2` is taken around the 1/v-weighted group means.
Mixtures
- EM: means are weighted by `R w` at the present tau2, then tau2 is the mean posterior second moment
  around the new means (responsibilities and posterior at the old tau2). A round is an E step and an M
  step; from the fifth round on, an E step that gains less than 1e-3 ends the loop.
- The start is the k-means partition of `t`, every question counted once; more than 128 questions are
  first put into 128 bins of consecutive order statistics with sizes as equal as possible.
- The search over K compares with the best location model so far, the normal prior being K = 1.
- `var t` of the start of the scale mixture and of the normal prior divides by m - 1.
- Integration over tau2: the means start from the EM fit at every point; responsibilities are computed
  once more after the two rounds; `R` and `B` are reported as posterior means.
- `max(v, vi)` replaces `v` in a second integration of its own, from which only the variance is taken
  (no squared difference added). The scale mixture is a plug-in, without the error of its mean.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special, stats

if TYPE_CHECKING:
    from plain_noise import Floats, Ints

# Normal prior


def harmonic(v: Floats) -> float:
    return len(v) / float(sum(1 / v))


def at_tau2(
    t: Floats, v: Floats, tau2: float, groups: Ints
) -> tuple[float, Floats, Floats, Floats, Floats]:
    """Log likelihood, weights, mean and its precision per question, estimates."""
    w = 1 / (v + tau2)
    mu = np.zeros(len(t))
    precision = np.zeros(len(t))
    loglik = 0.5 * float(np.log(w).sum())
    for group in set(groups.tolist()):
        inside = groups == group
        precision[inside] = w[inside].sum()
        mu[inside] = (w[inside] * t[inside]).sum() / w[inside].sum()
        loglik -= 0.5 * math.log(w[inside].sum())
    loglik -= 0.5 * float((w * (t - mu) ** 2).sum())
    return loglik, w, mu, precision, mu + tau2 * w * (t - mu)


def integrate(t: Floats, v: Floats, nu: float, power: float, groups: Ints) -> dict[str, Floats]:
    """Posterior over (tau2, c) with a flat mean per group."""
    v = np.maximum(v, 1e-9 * np.median(v))
    v0 = harmonic(v)
    centre = at_tau2(t, v, 0.0, groups)[2]
    s2 = float(((t - centre) ** 2 / v).sum() / (1 / v).sum())

    def density(log_tau2: float, c: float) -> float:
        tau2 = math.exp(log_tau2)
        prior = -power * math.log(tau2 + v0) + log_tau2
        return at_tau2(t, c * v, tau2, groups)[0] + prior

    coarse = np.linspace(math.log(1e-3 * v0), math.log(1e4 * max(s2, float(np.median(v)))), 40)
    heights = [density(log_tau2, 1.0) for log_tau2 in coarse]
    near = [q for q in range(40) if heights[q] >= max(heights) - 14]
    fine = np.linspace(coarse[max(near[0] - 1, 0)], coarse[min(near[-1] + 1, 39)], 40)
    step = fine[1] - fine[0]

    scales = [1.0]
    if nu <= 300:
        scales = [nu / float(stats.chi2.ppf((q - 0.5) / 7, nu + 4)) for q in range(1, 8)]
    points = [(log_tau2, c) for log_tau2 in fine for c in scales]
    logs = np.array([density(log_tau2, c) for log_tau2, c in points])
    weights = np.exp(logs - logs.max())
    if near[0] == 0:
        weights[: len(scales)] *= 1 + 1 / step  # the mass below, in units of the step
    weights /= weights.sum()

    results = []
    for log_tau2, c in points:
        tau2 = math.exp(log_tau2)
        _, w, _, precision, estimate = at_tau2(t, c * v, tau2, groups)
        factor = c * v * w
        results.append((estimate, c * v * tau2 * w + factor**2 / precision, factor))
    e = sum(q * estimate for q, (estimate, _, _) in zip(weights, results, strict=True))
    var = sum(q * (u + (z - e) ** 2) for q, (z, u, _) in zip(weights, results, strict=True))
    b = sum(q * factor for q, (_, _, factor) in zip(weights, results, strict=True))
    return {"e": np.asarray(e), "var": np.asarray(var), "B": np.asarray(b)}


def normal_prior(
    t: Any, v: Any, nu: float = math.inf, power: float | None = None
) -> dict[str, Floats]:
    """Posterior of the truths under a normal prior of unknown mean and variance."""
    t, v = np.asarray(t, dtype=float), np.asarray(v, dtype=float)
    m = len(t)
    if m <= 3 or np.median(v) <= 0:
        return {"e": t.copy(), "var": v.copy(), "B": np.zeros(m)}
    if power is None:
        power = 0.5 if m == 4 else 1.0
    return integrate(t, v, nu, power, np.zeros(m, dtype=np.int64))


def group_means(t: Any, v: Any, groups: Any, nu: float = math.inf) -> dict[str, Floats]:
    """Own mean for every group, common tau2."""
    t, v = np.asarray(t, dtype=float), np.asarray(v, dtype=float)
    groups = np.asarray(groups, dtype=np.int64)
    assert len(t) - len(set(groups.tolist())) >= 4
    return integrate(t, v, nu, 1.0, groups)


def group_priors(t: Any, v: Any, groups: Any, nu: float = math.inf) -> dict[str, Floats]:
    """Own mean and tau2 for every group with at least 8 questions; the others share the common prior."""
    t, v, groups = np.asarray(t, dtype=float), np.asarray(v, dtype=float), np.asarray(groups)
    out = normal_prior(t, v, nu)
    for group in set(groups.tolist()):
        inside = groups == group
        if inside.sum() >= 8:
            own = normal_prior(t[inside], v[inside], nu)
            for name, values in own.items():
                out[name][inside] = values
    return out


def honest_variance(e: Floats, other: dict[str, Floats]) -> Floats:
    """Variance around `e` when the posterior with the interval variances is right."""
    return np.asarray(other["var"] + (other["e"] - e) ** 2)


def normal_step(t: Any, v: Any, vi: Any, nu: float, caution: float = 1.0) -> dict[str, Floats]:
    """The cautioned estimate under the normal prior, with the variance for its interval."""
    t = np.asarray(t, dtype=float)
    step = normal_prior(t, v, nu)
    e = t + caution * (step["e"] - t) if caution < 1 else step["e"]
    return {"e": e, "var": honest_variance(e, normal_prior(t, vi)), "B": caution * step["B"]}


# Mixtures


def log_normal(t: Floats, mu: Floats, variance: Floats) -> Floats:
    """Log density, questions x components."""
    return np.asarray(
        -0.5 * np.log(2 * math.pi * variance) - 0.5 * (t[:, None] - mu) ** 2 / variance
    )


def responsibilities(
    t: Floats, v: Floats, pi: Floats, mu: Floats, tau2: Floats
) -> tuple[float, Floats]:
    """Log likelihood and `R_jk`; `tau2` has one entry per component."""
    with np.errstate(divide="ignore"):
        joint = np.log(pi) + log_normal(t, mu, v[:, None] + tau2)
    total = special.logsumexp(joint, axis=1)
    return float(total.sum()), np.exp(joint - total[:, None])


def clusters(t: Floats, most: int) -> list[list[Ints]]:
    """Optimal partitions of the sorted values into 1, 2, ..., `most` runs, as lists of questions."""
    order = np.argsort(t, kind="stable")
    bins = np.array_split(order, min(128, len(t)))
    size = np.array([len(part) for part in bins], dtype=float)
    values = np.array([t[part].mean() for part in bins]) - t.mean()
    size_to = np.concatenate([[0.0], np.cumsum(size)])
    sum_to = np.concatenate([[0.0], np.cumsum(size * values)])
    square_to = np.concatenate([[0.0], np.cumsum(size * values**2)])

    def cost(first: int, last: int) -> float:  # of the bins first, ..., last - 1 as one cluster
        total = sum_to[last] - sum_to[first]
        inside = square_to[last] - square_to[first] - total**2 / (size_to[last] - size_to[first])
        return max(float(inside), 0.0)

    count = len(bins)
    best = [cost(0, last) if last else 0.0 for last in range(count + 1)]
    cuts: list[list[int]] = []
    partitions = []
    for number in range(1, most + 1):
        if number > 1:
            new = [math.inf] * (count + 1)
            cut = [0] * (count + 1)
            for last in range(number, count + 1):
                for first in range(number - 1, last):
                    candidate = best[first] + cost(first, last)
                    if candidate < new[last]:
                        new[last], cut[last] = candidate, first
            best = new
            cuts.append(cut)
        ends = [count]
        for cut in reversed(cuts):
            ends.append(cut[ends[-1]])
        edges = [0, *reversed(ends)]
        partitions.append(
            [np.concatenate(bins[edges[c] : edges[c + 1]]).astype(np.int64) for c in range(number)]
        )
    return partitions


def start_of_locations(
    t: Floats, v: Floats, partition: list[Ints]
) -> tuple[Floats, Floats, Floats]:
    pi = np.array([len(part) / len(t) for part in partition])
    mu = np.array([(t[part] / v[part]).sum() / (1 / v[part]).sum() for part in partition])
    own = np.zeros(len(t))
    for number, part in enumerate(partition):
        own[part] = mu[number]
    tau2 = max(float(np.mean((t - own) ** 2 - v)), 0.1 * float(v.mean()))
    return pi, mu, np.full(len(mu), tau2)


def start_of_scales(t: Floats, v: Floats) -> tuple[Floats, Floats, Floats]:
    spread = max(float(np.var(t, ddof=1) - v.mean()), 0.05 * float(v.mean()))
    return np.array([0.8, 0.2]), np.full(2, np.median(t)), spread * np.array([0.25, 6.0])


def em(
    t: Floats, v: Floats, start: tuple[Floats, Floats, Floats], scales: bool
) -> tuple[float, Floats, Floats, Floats]:
    """Maximum likelihood by EM: log likelihood, pi, mu, tau2 (one entry per component)."""
    pi, mu, tau2 = start
    before = -math.inf
    for number in range(1, 51):
        loglik, R = responsibilities(t, v, pi, mu, tau2)  # noqa: N806
        if number >= 5 and loglik - before < 1e-3:
            break
        before = loglik
        pi = R.mean(axis=0)
        w = 1 / (v[:, None] + tau2)
        if scales:
            mu = np.full(2, (R * w * t[:, None]).sum() / (R * w).sum())
        else:
            mu = (R * w * t[:, None]).sum(axis=0) / (R * w).sum(axis=0)
        moment = R * ((tau2 * w * (t[:, None] - mu)) ** 2 + tau2 * w * v[:, None])
        total = R.sum(axis=0) if scales else float(len(t))
        tau2 = (moment.sum(axis=0) if scales else np.full(len(mu), moment.sum())) / total
    return responsibilities(t, v, pi, mu, tau2)[0], pi, mu, tau2


def fit_locations(t: Floats, v: Floats, number: int) -> tuple[float, Floats, Floats, Floats]:
    return em(t, v, start_of_locations(t, v, clusters(t, number)[number - 1]), scales=False)


def fit_scales(t: Floats, v: Floats) -> tuple[float, Floats, Floats, Floats]:
    return em(t, v, start_of_scales(t, v), scales=True)


def fit_normal(t: Floats, v: Floats) -> float:
    """Log likelihood of the normal prior after 30 moment iterations."""
    tau2 = max(float(np.var(t, ddof=1) - v.mean()), 0.0)
    for _ in range(30):
        w = 1 / (v + tau2)
        mu = (w * t).sum() / w.sum()
        tau2 = max(float((w**2 * ((t - mu) ** 2 - v)).sum() / (w**2).sum()), 0.0)
    w = 1 / (v + tau2)
    mu = (w * t).sum() / w.sum()
    return float(log_normal(t, np.array([mu]), (v + tau2)[:, None]).sum())


def plug_in(
    t: Floats, v: Floats, pi: Floats, mu: Floats, tau2: Floats, error: Floats | float = 0.0
) -> dict[str, Floats]:
    """Posterior at given parameters; `error` is the variance of the mean of every component."""
    _, R = responsibilities(t, v, pi, mu, tau2)  # noqa: N806
    w = 1 / (v[:, None] + tau2)
    inside = mu + tau2 * w * (t[:, None] - mu)
    factor = v[:, None] * w
    e = (R * inside).sum(axis=1)
    own = v[:, None] * tau2 * w + factor**2 * error + (inside - e[:, None]) ** 2
    return {"e": e, "var": (R * own).sum(axis=1), "B": (R * factor).sum(axis=1), "R": R}


def integrate_locations(t: Floats, v: Floats, pi: Floats, mu: Floats) -> dict[str, Floats]:
    """Posterior of a location mixture over its common tau2."""
    v0 = harmonic(v)
    nearest = float(np.mean(((t[:, None] - mu) ** 2).min(axis=1)))
    grid = np.linspace(math.log(1e-3 * v0), math.log(1e2 * max(v0, nearest)), 40)
    logs = np.zeros(40)
    results = []
    for q in range(40):
        tau2 = math.exp(grid[q])
        common = np.full(len(mu), tau2)
        w = 1 / (v + tau2)
        centre = mu
        for _ in range(2):
            _, R = responsibilities(t, v, pi, centre, common)  # noqa: N806
            centre = (R.T @ (w * t)) / (R.T @ w)
        loglik, R = responsibilities(t, v, pi, centre, common)  # noqa: N806
        logs[q] = loglik - 0.5 * np.log(R.T @ w).sum() - math.log(tau2 + v0) + grid[q]
        results.append(plug_in(t, v, pi, centre, common, error=1 / (R.T @ w)))
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    e = sum(q * result["e"] for q, result in zip(weights, results, strict=True))
    out = {"e": np.asarray(e), "var": np.zeros(len(t)), "B": np.zeros(len(t))}
    out["R"] = np.zeros((len(t), len(mu)))
    for q, result in zip(weights, results, strict=True):
        out["var"] += q * (result["var"] + (result["e"] - e) ** 2)
        out["B"] += q * result["B"]
        out["R"] += q * result["R"]
    return out


def mixture(t: Any, v: Any, vi: Any = None) -> dict[str, Any]:
    """The mixture with the smallest criterion: model "normal", "scale" or "location"."""
    t, v = np.asarray(t, dtype=float), np.asarray(v, dtype=float)
    m = len(t)
    v = np.maximum(v, 1e-6 * np.median(v))
    vi = v if vi is None else np.maximum(v, np.asarray(vi, dtype=float))
    price = math.log(m) + 1.5
    criteria: dict[str, float] = {"normal": -2 * fit_normal(t, v) + 2 * price}
    if m < 8:
        return {"model": "normal", "K": 1, "criteria": criteria}
    partitions = clusters(t, min(8, m // 4))
    fits = {}
    best, without = criteria["normal"], 0
    for number in range(2, min(8, m // 4) + 1):
        fit = em(t, v, start_of_locations(t, v, partitions[number - 1]), scales=False)
        fits[str(number)] = fit
        criteria[str(number)] = -2 * fit[0] + 2 * number * price
        without = 0 if criteria[str(number)] < best else without + 1
        best = min(best, criteria[str(number)])
        if without == 2:
            break
    fits["scale"] = fit_scales(t, v)
    criteria["scale"] = -2 * fits["scale"][0] + 4 * price
    winner = min(criteria, key=lambda name: criteria[name])
    if winner == "normal":
        return {"model": "normal", "K": 1, "criteria": criteria}
    _, pi, mu, tau2 = fits[winner]
    if winner == "scale":
        posterior = plug_in(t, v, pi, mu, tau2)
        return {"model": "scale", "K": 2, "criteria": criteria, **posterior}
    posterior = integrate_locations(t, v, pi, mu)
    posterior["var"] = integrate_locations(t, vi, pi, mu)["var"]
    return {"model": "location", "K": int(winner), "criteria": criteria, **posterior}
