"""The second step in plain loops, one panel at a time: a slow reference to compare the fast one with.

Answers are a matrix of workers (rows) by questions (columns) with NaN where there is none, or a list of
(question, worker, value) with integer codes. Weights `p` have the shape of the matrix and sum to 1 in
every question. Nothing here is shared with the package.

Where the description of the method leaves a choice, this file decides:

- `mean v / mean v1` runs over all questions that are not gross. A half whose weights of a question
  are all 0 does not answer it.
- The mean difference of the halves is the u-weighted mean of `x^B - x^A`, the same for both predictions;
  `mean v^A` runs over the questions answered in both halves.
- Sums over splits, not means per question: a question missing in a split adds 0 there. A split with
  fewer than 8 common questions is left out.
- Groups of at least 8 are counted among the questions at hand (those of the half in the check).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import stats

from plain_noise import Bools, Floats, Ints, aggregate_variance, counts, matrix, plain_weights
from plain_priors import (
    fit_locations,
    fit_scales,
    group_means,
    group_priors,
    honest_variance,
    mixture,
    normal_prior,
    normal_step,
    plug_in,
)

Refit = Callable[[Floats, Floats, Ints], Floats]  # aggregates, variances, questions -> predictions


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


def interval(loop: dict[str, Any], level: float) -> tuple[Floats, Floats]:
    """Lower and upper end; noise and shift have degrees of freedom of their own (Satterthwaite).

    A posterior variance follows the variance of its aggregate as far as the question was not moved.
    """
    low, high = [], []
    shift, nu, shift_nu = loop["shift"], loop["interval_nu"], loop["shift_nu"]
    for value, noise, moved in zip(loop["e"], loop["var"], loop["B"], strict=True):
        total = noise + shift
        freedom = math.inf
        if total > 0:
            below = (noise / total * (1 - moved)) ** 2 / nu + (shift / total) ** 2 / shift_nu
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
    weight: Any = None,
    plain: bool = False,
) -> dict[str, Any]:
    """Estimates from answers, weights and aggregates; `orders` are the permutations of the check."""
    x, t = matrix(a), np.asarray(t, dtype=float)
    m = len(t)
    weight = np.ones(len(x)) if weight is None else weight
    known = aggregate_variance(x, p, t, weight, robust, plain)
    v, nu = known["v"], known["nu"]
    vi = np.maximum(v, known["vi"])
    kept = {"nu": nu, "shift": known["shift"], "v": v, "vi": vi, "model": "normal", "omega": 0.0}
    kept |= {name: known[name] for name in ("interval_nu", "shift_nu")}
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
