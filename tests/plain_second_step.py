"""The second step in plain loops, one panel at a time: a slow reference to compare the fast one with.

Answers are a matrix of workers (rows) by questions (columns) with NaN where there is none, or a list of
(question, worker, value) with integer codes. Weights `p` have the shape of the matrix and sum to 1 in
every question. Nothing here is shared with the package.

Where the description of the method leaves a choice, this file decides:

Workers and variances
- A worker with no informative answer has the level `s0` as it stands, not floored; it is rescaled with
  all others. Without any informative answer, or with no spread at all, all worker variances are 0.
- `P_i`, and with it the variance of the common shift, sums over all questions, the gross ones too: only
  then does the bias term vanish in a complete panel. All other sums leave the gross questions out.
- `A_i` of the degrees of freedom sums over informative questions.
- Gross questions: interval variance = own variance (linear first steps); median of `k vi` of the others,
  divided by `k` (robust first steps). An answer with weight 1 adds nothing to its own variance.
- Robust scale: answers with residual 0 are left out. Medians are the usual ones (mean of the middle two);
  only the weighted median is the lower one.
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
Check
- `mean v / mean v1` runs over all questions that are not gross. A half whose weights of a question
  are all 0 does not answer it.
- The mean difference of the halves is the u-weighted mean of `x^B - x^A`, the same for both predictions;
  `mean v^A` runs over the questions answered in both halves.
- Sums over splits, not means per question: a question missing in a split adds 0 there. A split with
  fewer than 8 common questions is left out.
- Groups of at least 8 are counted among the questions at hand (those of the half in the check).
Choice of the first step
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
from numpy.typing import NDArray
from scipy import special, stats

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Fit = Callable[[Floats], Floats]
Refit = Callable[[Floats, Floats, Ints], Floats]  # aggregates, variances, questions -> predictions


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


def aggregate_variance(a: Any, p: Any, t: Any, robust: bool = False) -> dict[str, Any]:
    """Variances `v` of the aggregates, `vi` for intervals, degrees of freedom, common shift."""
    x = matrix(a)
    t = np.asarray(t, dtype=float)
    n, m = x.shape
    k = counts(x)
    noise = worker_noise(x)
    gross, s, pool, tb2 = (noise[name] for name in ("gross", "s", "pool", "tb2"))
    if robust and max(k) <= 2:
        robust = False
        p = plain_weights(x)
    p = np.where(np.isfinite(x), np.nan_to_num(np.asarray(p, dtype=float)), 0.0)
    share = [sum(p[i, j] for j in range(m)) / m for i in range(n)]
    shift = tb2 * sum(part**2 for part in share)
    v1 = np.full(m, np.nan)
    for j in range(m):
        v1[j] = sum(p[i, j] ** 2 * s[i] for i in range(n))
    out = {"shift": shift, "gross": gross, "v1": v1, "s": s, "pool": pool, "df": noise["df"]}
    if pool == 0:
        return out | {"v": np.zeros(m), "vi": np.zeros(m), "nu": 1.0}
    y = x - noise["bias"][:, None]
    if robust:
        equal = plain_weights(x)
        share = [sum(equal[i, j] for j in range(m)) / m for i in range(n)]
        out["shift"] = tb2 * sum(part**2 for part in share)
        v, vi, nu = robust_variance(y, k, noise, sum(part**2 for part in share))
    else:
        v, vi, nu = linear_variance(y, p, noise, v1, share)
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


def linear_variance(
    y: Floats, p: Floats, noise: dict[str, Any], v1: Floats, share: list[float]
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
            honest[j] += p[i, j] ** 2 * max(s[i], (K[i] * s[i] + 4 * pool) / (K[i] + 4))
        spread = sum(p[i, j] ** 2 for i in range(n)) - sum(part**2 for part in share)
        rest[j] = tb2 * max(spread, 0.0)
    level = sum1 / sum(pattern[j] for j in questions)
    v = g * pattern * level + g * rest
    vi = np.array([max(v[j], honest[j] + rest[j]) for j in range(m)])

    parts = [s[i] * sum(p[i, j] ** 2 for j in questions) for i in range(n)]
    noise_of_it = sum(parts[i] ** 2 / (noise["d"][i] + 2) for i in range(n))
    return v, vi, max(1.0, sum(parts) ** 2 / noise_of_it)


def robust_variance(
    y: Floats, k: Ints, noise: dict[str, Any], common: float
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
        factor = (1.3 if k[j] >= 3 else 1.0) / k[j]
        biases = noise["tb2"] * max(factor - common, 0.0)
        v[j] = (level * factor + biases) * level / pool
        vi[j] = 1.15 * level * factor + biases
    return v, vi, max(1.0, 0.6 * total)


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


# The check on held-out workers


def halves(
    a: Any, p: Any, s: Floats, v: Floats, v1: Floats, order: Sequence[int], gross: Bools
) -> dict[str, Floats]:
    """Aggregates and variances of the first and the second half of the workers in `order`."""
    x = matrix(a)
    p = np.where(np.isfinite(x), np.nan_to_num(np.asarray(p, dtype=float)), 0.0)
    n, m = x.shape
    ratio = np.mean([v[j] for j in range(m) if not gross[j]])
    ratio /= np.mean([v1[j] for j in range(m) if not gross[j]])
    out = {name: np.full(m, np.nan) for name in ("xa", "va", "xb", "vb")}
    sides = {"a": list(order)[: n // 2], "b": list(order)[n // 2 :]}
    for j in range(m):
        totals = {side: sum(p[i, j] for i in who) for side, who in sides.items()}
        if gross[j] or min(totals.values()) <= 0:
            continue
        for side, who in sides.items():
            values = [(p[i, j] / totals[side], x[i, j], s[i]) for i in who if p[i, j] > 0]
            out["x" + side][j] = sum(part * value for part, value, _ in values)
            out["v" + side][j] = ratio * sum(part**2 * own for part, _, own in values)
    return out


def held_out(refit: Refit, splits: Sequence[dict[str, Floats]]) -> dict[str, float] | None:
    """Gain of an alternative over the normal prior in predicting the other half; None: no check."""
    m = len(splits[0]["xa"])
    a = np.zeros(m)
    c = np.zeros(m)
    used = 0
    for split in splits:
        both = np.flatnonzero(np.isfinite(split["xa"]) & np.isfinite(split["xb"]))
        if len(both) < 8:
            continue
        used += 1
        for this, other in (("a", "b"), ("b", "a")):
            x, v = split["x" + this][both], split["v" + this][both]
            y, u = split["x" + other][both], 1 / (split["v" + other][both] + v.mean())
            y = y - (u * (y - x)).sum() / u.sum()
            first = normal_prior(x, v)["e"]
            second = refit(x, v, both)
            a[both] += u * (first - y) * (first - second)
            c[both] += u * (first - second) ** 2
    if not used:
        return None
    a, c = a / (2 * used), c / (2 * used)
    if c.sum() == 0:
        return {"gain": 0.0, "z": 0.0, "omega": 0.0}
    gain = float((2 * a - c).sum())
    z = gain / math.sqrt(float(((2 * a - c) ** 2).sum()))
    return {"gain": gain, "z": z, "omega": min(max(float(a.sum() / c.sum()), 0.0), 1.0)}


def refit_mixture(chosen: dict[str, Any]) -> Refit:
    def refit(x: Floats, v: Floats, questions: Ints) -> Floats:  # noqa: ARG001
        v = np.maximum(v, 1e-6 * np.median(v))
        if chosen["model"] == "scale":
            _, pi, mu, tau2 = fit_scales(x, v)
        else:
            _, pi, mu, tau2 = fit_locations(x, v, chosen["K"])
        return plug_in(x, v, pi, mu, tau2)["e"]

    return refit


def alternatives(t: Any, v: Any, groups: Any = None) -> dict[str, tuple[dict[str, Any], Refit]]:
    """What may be checked: the model on all data, and how to fit it to a half."""
    out: dict[str, tuple[dict[str, Any], Refit]] = {}
    m = len(t)
    if m < 8:
        return out
    chosen = mixture(t, v)
    if chosen["model"] != "normal":
        out["mixture"] = chosen, refit_mixture(chosen)
    if groups is not None:
        groups = np.asarray(groups, dtype=np.int64)
        if max(np.bincount(groups)) >= 8:
            out["group priors"] = {}, lambda x, v, of: group_priors(x, v, groups[of])["e"]
        if m - len(set(groups.tolist())) >= 4:

            def means(x: Floats, v: Floats, of: Ints) -> Floats:
                if len(of) - len(set(groups[of].tolist())) < 4:
                    return normal_prior(x, v)["e"]
                return group_means(x, v, groups[of])["e"]

            out["group means"] = {}, means
    return out


def earn(
    t: Any, v: Any, splits: Sequence[dict[str, Floats]], groups: Any = None
) -> dict[str, dict[str, float]]:
    """Gain, z and best weight of every alternative that there is."""
    out = {}
    for name, (_, refit) in alternatives(t, v, groups).items():
        result = held_out(refit, splits)
        if result is not None:
            out[name] = result
    return out


# All together


def interval(
    e: Any, var: Any, shift: float, nu: float, level: float, shift_nu: float = math.inf
) -> tuple[Floats, Floats]:
    """Lower and upper end; noise and shift have degrees of freedom of their own (Satterthwaite)."""
    low, high = [], []
    for value, noise in zip(np.asarray(e, dtype=float), np.asarray(var, dtype=float), strict=True):
        total = noise + shift
        freedom = math.inf
        if total > 0:
            below = (noise / total) ** 2 / max(nu, 3.0) + (shift / total) ** 2 / shift_nu
            freedom = 1 / below if below > 0 else math.inf
        tail = (1 + level) / 2
        q = stats.norm.ppf(tail) if freedom >= 300 else stats.t.ppf(tail, freedom)
        low.append(value - q * math.sqrt(total))
        high.append(value + q * math.sqrt(total))
    return np.array(low), np.array(high)


def second_step(
    a: Any,
    p: Any,
    t: Any,
    orders: Sequence[Sequence[int]] = (),
    groups: Any = None,
    caution: float = 1.0,
    robust: bool = False,
) -> dict[str, Any]:
    """Estimates from answers, weights and aggregates; `orders` are the permutations of the check."""
    x, t = matrix(a), np.asarray(t, dtype=float)
    m = len(t)
    known = aggregate_variance(x, p, t, robust)
    v, vi, nu = known["v"], known["vi"], known["nu"]
    kept = {"nu": nu, "shift": known["shift"], "v": v, "vi": vi, "model": "normal", "omega": 0.0}
    if known["pool"] == 0:
        var = np.full(m, 0.0 if known["df"] else np.nan)
        return kept | {"e": t.copy(), "var": var, "B": np.zeros(m), "model": "none"}
    out = kept | normal_step(t, v, vi, nu, caution)
    if m < 8 or not orders:
        return out
    if robust and max(counts(x)) <= 2:
        p = plain_weights(x)
    splits = [halves(x, p, known["s"], v, known["v1"], o, known["gross"]) for o in orders]
    earned = {name: r for name, r in earn(t, v, splits, groups).items() if r["z"] > 1.5}
    out["earned"] = earned
    if not earned:
        return out
    name = max(earned, key=lambda other: earned[other]["gain"])
    omega = earned[name]["omega"]
    omega = 1.0 if omega > 0.75 else omega
    if name == "mixture":
        bold = mixture(t, v, vi)
        model = bold["model"]
    else:
        method = group_priors if name == "group priors" else group_means
        bold = dict(method(t, v, groups, nu))
        bold["var"] = honest_variance(bold["e"], method(t, vi, groups))
        model = name
    apart = (out["e"] - bold["e"]) ** 2
    var = (1 - omega) * out["var"] + omega * bold["var"] + omega * (1 - omega) * apart
    mixed = {key: (1 - omega) * out[key] + omega * bold[key] for key in ("e", "B")}
    return out | mixed | {"var": var, "model": model, "omega": omega, "R": bold.get("R")}


# Choice of the first step


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
