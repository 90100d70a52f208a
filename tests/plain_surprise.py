"""How surprising each answer is, one answer after another in plain loops: a slow reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from trueup.algorithms.driver import Aggregate


def one_by_one(aggregate: Aggregate, name: str) -> list[tuple[float, float, float]]:
    """Return expectation, deviation and degrees of freedom of each answer, one answer after another, in plain loops.

    The expectation is in answer units, and so is the deviation, before a factor for all answers.
    """
    answers, state = aggregate.engine.gather(), aggregate.state
    unit = state["unit"][0]
    s, b, tb2, e, s0, d0 = (
        state[name + part]
        for part in ("variance", "bias", "bias_variance", "bias_error", "level", "strength")
    )
    heavy = name == "heavy_"
    rows: list[dict[str, float]] = []
    for j in range(answers.n_questions):
        here = range(answers.indptr[j], answers.indptr[j + 1])
        who = [int(answers.workers[p]) for p in here]
        x = [float(answers.answers[p]) for p in here]
        median = float(np.median(x))
        y = [(value - median) / unit - b[i] for value, i in zip(x, who, strict=True)]
        t, v = float(np.median(y)), 1 / sum(1 / s[i] for i in who)
        for _ in range(4):
            a = [7 / (6 * s[i] + (value - t) ** 2 + v) for value, i in zip(y, who, strict=True)]
            v = 1 / sum(a)
            t = v * sum(w * value for w, value in zip(a, y, strict=True))
        a = [7 / (6 * s[i] + (value - t) ** 2 + v) for value, i in zip(y, who, strict=True)]
        t = sum(w * value for w, value in zip(a, y, strict=True)) / sum(a)
        for place, (i, value, w) in enumerate(zip(who, y, a, strict=True)):
            others = [p for p in range(len(who)) if p != place]
            total = sum(a[p] for p in others)
            square = (value - t) ** 2 + 1 / sum(a)
            rows.append(
                {
                    "i": i,
                    "a": w,
                    "p": w / sum(a),
                    "gap": value - t,
                    "q": square * w * s[i] if heavy else square,
                    "base": median,
                    "truth": sum(a[p] * y[p] for p in others) / total,
                    "v": 1 / total + sum((a[p] / total) ** 2 * e[who[p]] for p in others),
                }
            )
    result = []
    for row in rows:
        i = int(row["i"])
        mine = [other for other in rows if other["i"] == i]
        rest = [other for other in mine if other is not row]
        biased = float(tb2[i] > 0)
        bias, error = b[i], 0.0
        if biased:
            w = 7 / (6 + b[i] ** 2 / tb2[i]) / tb2[i]
            bias = b[i] - row["a"] * row["gap"] / (sum(other["a"] for other in rest) + w)
            error = 1 / (sum(other["a"] * (1 - other["p"]) for other in rest) + w)
        prior = d0[i] * s0[i]
        with_it = (sum(other["q"] for other in mine) + prior) / (len(mine) - biased + d0[i])
        without = (sum(other["q"] for other in rest) + prior) / (len(rest) - biased + d0[i])
        variance = s[i] * without / with_it + row["v"] + error
        freedom = sum(1 - other["p"] for other in rest) - biased
        freedom = d0[i] + (2 / 3 if heavy else 1.0) * freedom
        expected = row["base"] + unit * (row["truth"] + bias)
        result.append((expected, unit * np.sqrt(variance), freedom))
    return result
