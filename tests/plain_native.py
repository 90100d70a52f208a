"""The native first step as a slow, plain program over lists of answers: what the fast one is checked against."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import digamma, gammaln, polygamma

ROUNDS = 10


def lower_median(values: np.ndarray, weights: np.ndarray) -> float:
    """Return the smallest value at which the cumulated weight reaches half."""
    order = np.argsort(values, kind="stable")
    running = np.cumsum(weights[order])
    return float(values[order][np.argmax(running >= 0.5 * running[-1] * (1 - 1e-12))])


def plain_native(question: Any, worker: Any, answer: Any, *, biases: bool = True) -> dict[str, Any]:
    """Return everything that the native first step finds, in the units of the answers where it has units."""
    q, w, x = np.asarray(question), np.asarray(worker), np.asarray(answer, dtype=float)
    m, n = int(q.max()) + 1, int(w.max()) + 1
    mine = [np.flatnonzero(q == j) for j in range(m)]
    k = np.array([len(rows) for rows in mine])
    median = np.array([np.median(x[rows]) for rows in mine])
    distance = np.abs(x - median[q])
    usable = (k[q] >= 2) & (distance > 0)
    spread = distance[usable] * np.sqrt(k[q][usable] / (k[q][usable] - 1))
    if not usable.any():
        return {"t": median, "v": np.where(k >= 2, 0.0, np.nan), "weight": None}
    c = 1.4826 * float(np.median(spread))
    y = np.clip((x - median[q]) / c, -1e60, 1e60)
    mean = np.array([y[rows].mean() for rows in mine])
    several = k[q] >= 2
    pool = float(((y - mean[q]) ** 2)[several].sum() / (k[k >= 2] - 1).sum())
    count = np.bincount(w[several], minlength=n).astype(float)
    is_in = count > 0

    def by_worker(values: np.ndarray) -> np.ndarray:
        return np.bincount(w[several], values[several], minlength=n)

    def truths(s: np.ndarray, b: np.ndarray, heavy: bool) -> tuple[np.ndarray, ...]:
        z, u = y - b[w], np.ones(len(y))
        t, v = np.empty(m), np.empty(m)
        for j, rows in enumerate(mine):
            r, precision = z[rows], 1.0 / s[w[rows]]
            v[j] = 1.0 / precision.sum()
            if not heavy:
                t[j] = v[j] * (r * precision).sum()
                continue
            t[j] = np.median(r)
            for _ in range(4):
                share = 7.0 / (6.0 + ((r - t[j]) ** 2 + v[j]) * precision)
                v[j] = 1.0 / (share * precision).sum()
                t[j] = v[j] * (share * precision * r).sum()
            u[rows] = 7.0 / (6.0 + ((r - t[j]) ** 2 + v[j]) * precision)
        return t, v, u

    chains = []
    for heavy in (False, True):
        start = min(pool, 1.0) if heavy else pool
        eff = 2.0 / 3.0 if heavy else 1.0
        s, b, e, tb2 = np.full(n, start), np.zeros(n), np.zeros(n), 0.0
        for number in range(1, ROUNDS + 1):
            t, v, u = truths(s, b, heavy)
            p = u * v[q] / s[w]
            a, o = by_worker(u / s[w]), by_worker(u / s[w] * p)
            g = by_worker(u / s[w] * (y - t[q]))
            ss = by_worker(u * ((y - b[w] - t[q]) ** 2 + v[q]))
            own = by_worker(p)
            known = np.maximum(a - o, 0.0)
            if number == 2 and biases:
                two = count >= 2
                if two.sum() >= 2:
                    # A worker whose answers show nothing about its bias says nothing about biases.
                    square = np.where(known > 0, g**2 / np.where(known > 0, known, 1.0), 1.0)
                    beyond = float((square[two] - 1.0).sum())
                    tb2 = beyond / known[two].sum() if beyond > math.sqrt(2 * two.sum()) else 0.0
            if tb2 > 0:
                weight = 7.0 / (6.0 + b**2 / tb2) / tb2
                b = np.where(is_in, g / (a + weight), 0.0)
                b = np.where(is_in, b - (weight * b)[is_in].sum() / weight[is_in].sum(), 0.0)
                e = 1.0 / (known + weight)
                tb2 = float((7.0 / (6.0 + b**2 / tb2) * (b**2 + e))[is_in].mean())
                if tb2 * np.median(a[is_in]) < 1e-9:
                    tb2, b, e = 0.0, np.zeros(n), np.zeros(n)
                else:
                    e = np.where(is_in, e, 6.0 * tb2 / 7.0)
            biased = float(tb2 > 0)
            size = int(is_in.sum())
            mean_square = ss / np.maximum(count, 1.0)
            d0, s0 = 4.0, lower_median(mean_square[is_in], count[is_in])
            if number >= 3 and size > 3:
                f = 0.5 * np.maximum((count - own - biased) * eff, 0.5)[is_in]
                z = np.log(np.maximum(mean_square[is_in], 1e-4 * start)) - digamma(f) + np.log(f)
                excess = float(z.var(ddof=1) - polygamma(1, f).mean())
                d1 = min(2.0 / excess + 1.0, 1000.0) if excess > 0 else 1000.0
                d0 = 1.0 / ((size - 3.0) / size / d1 + 0.75 / size)
                s0 = float(np.exp(z.mean()))
            free = count - biased * (count >= 2)
            s = np.where(is_in, np.maximum((ss + d0 * s0) / (free + d0), 1e-6 * start), s0)
            factor = float((ss[is_in] / s[is_in]).sum() / count.sum())
            s, s0 = s * factor, s0 * factor
        t, v, u = truths(s, b, heavy)
        p = u * v[q] / s[w]
        bias_part = np.array([(p[rows] ** 2 * e[w[rows]]).sum() for rows in mine])
        level, final_v = np.empty(m), v.copy()
        for j, rows in enumerate(mine):
            r, noise = y[rows] - b[w[rows]], s[w[rows]]
            if not heavy:
                density = -0.5 * np.log(2 * np.pi * noise) - 0.5 * (r - t[j]) ** 2 / noise
                level[j] = density.sum() + 0.5 * math.log(2 * np.pi * v[j])
                continue
            nodes = t[j] + np.arange(-7, 8) * math.sqrt(v[j])
            constant = gammaln(3.5) - gammaln(3.0) - 0.5 * np.log(6 * np.pi * noise)
            far = (r - nodes[:, None]) ** 2 / noise
            logs = (constant - 3.5 * np.log1p(far / 6.0)).sum(axis=1)
            mass = np.exp(logs - logs.max())
            level[j] = logs.max() + math.log(mass.sum() * math.sqrt(v[j]))
            t[j] = (mass * nodes).sum() / mass.sum()
            final_v[j] = (mass * (nodes - t[j]) ** 2).sum() / mass.sum()
        ml = float(level[k >= 2].sum())
        if tb2 > 0:
            inside = is_in
            ml -= 0.5 * float((b[inside] ** 2).sum()) / tb2
            ml -= 0.5 * float(np.log1p(tb2 * known[inside]).sum())
        half = d0 / 2.0
        price = (
            half * np.log(half * s0 / s)
            - gammaln(half)
            - half * s0 / s
            + 0.5 * math.log(2 * np.pi)
            - 0.5 * np.log(half + (count - own) * eff / 2.0)
        )
        ml += float(price[is_in].sum())
        w_i = 7.0 / (6.0 + b**2 / tb2) / tb2 if tb2 > 0 else np.ones(n)
        size = int(is_in.sum())
        shift = tb2 * float(((w_i[is_in] / w_i[is_in].sum()) ** 2).sum())
        shift *= 9 / 7 * size / max(size - 1, 1)
        chains.append(
            {
                "t": t,
                "v": final_v + bias_part,
                "ml": ml,
                "s": s,
                "b": b,
                "tb2": tb2,
                "d0": d0,
                "shift": shift,
            }
        )
    v_a = pool / k
    sums = np.array([((y[rows] - mean[j]) ** 2).sum() for j, rows in enumerate(mine)])
    level = -0.5 * (k - 1) * np.log(2 * np.pi * pool) - 0.5 * np.log(k) - 0.5 * sums / pool
    all_ml = np.array([level[k >= 2].sum(), chains[0]["ml"], chains[1]["ml"] - 1.0])
    evidence = all_ml.max() + math.log(np.exp(all_ml - all_ml.max()).sum())
    weight = np.exp(all_ml - all_ml.max())
    weight = np.where(weight < 1e-9, 0.0, weight)
    weight /= weight.sum()
    ts = np.stack([mean, chains[0]["t"], chains[1]["t"]])
    vs = np.stack([v_a, chains[0]["v"], chains[1]["v"]])
    t = weight @ ts
    v = weight @ (vs + (ts - t) ** 2)
    heavier = chains[int(all_ml[2] > all_ml[1])]
    return {
        "t": median + c * t,
        "v": c**2 * v,
        "weight": weight,
        "s": c**2 * heavier["s"],
        "b": c * heavier["b"],
        "tb2": c**2 * heavier["tb2"],
        "ml": [chains[0]["ml"], chains[1]["ml"]],
        "d0": [chains[0]["d0"], chains[1]["d0"]],
        "t_gauss": median + c * chains[0]["t"],
        "shift": c**2 * float(weight[1:] @ [chain["shift"] for chain in chains]),
        "evidence": evidence - float((k[k >= 2] - 1).sum()) * math.log(c),
        "c": c,
    }
