"""Variances of single questions rest on a handful of answers; pooled over the questions of a panel they hold.

With `s_j` the variance of an answer according to question j alone and `d_j` its degrees of freedom, the variances
`sigma_j` behind them have

    M  = sum d_j s_j / sum d_j                               their level
    c2 = sum d_j s_j^2 d_j/(d_j + 2) / (M^2 sum d_j) - 1     their relative variance, at least 0

since `E s_j^2 = sigma_j^2 (d_j + 2)/d_j`. If they follow a scaled inverse chi-squared distribution, their posterior
mean is (Smyth, Statistical Applications in Genetics and Molecular Biology 2004, with moments instead of logarithms)

    (d_j s_j + e M) / (d_j + e),     e = 2 + 2/c2

What is left uncertain is the level, `2 M^2 / var(M)` degrees of freedom.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from trueup.core.arrays import segment_sum

if TYPE_CHECKING:
    from trueup.core.arrays import Floats, Ints


class PooledVariances(NamedTuple):
    """The variance of an answer to each question, and the degrees of freedom of the level of each panel."""

    variance: Floats
    nu: Floats


def pool(s: Floats, freedom: Floats, starts: Ints, *, fully: bool) -> PooledVariances:
    """Pool the variances of the questions of each panel; questions without degrees of freedom take the level.

    `starts` are the borders of the panels. `fully`: every question has the level of its panel. The level of a panel
    without any degrees of freedom is NaN.
    """
    size = np.diff(starts)
    known = np.where(freedom > 0, s, 0.0)
    total = segment_sum(freedom, starts)

    def average(values: Floats) -> Floats:
        mean: Floats = np.full(len(size), np.nan)
        np.divide(segment_sum(freedom * values, starts), total, out=mean, where=total > 0)
        return mean

    level = average(known)
    relative = np.divide(
        known,
        np.repeat(level, size),
        out=np.zeros(len(known)),
        where=np.repeat((total > 0) & (level > 0), size),
    )
    square = average(relative**2 * freedom / (freedom + 2.0))
    excess = np.nan_to_num(np.maximum(square - 1.0, 0.0))
    of_level = 2.0 * (1.0 + excess) + excess * average(freedom)
    nu = np.divide(2.0 * total, of_level, out=np.ones(len(size)), where=total > 0)
    if fully:
        return PooledVariances(np.repeat(level, size), np.maximum(nu, 1.0))
    strength = np.repeat(
        np.divide(2.0, excess, out=np.full(len(size), np.inf), where=excess > 0), size
    )
    own = freedom / (freedom + 2.0 + strength)
    variance = own * known + (1.0 - own) * np.repeat(level, size)
    return PooledVariances(variance, np.maximum(nu, 1.0))
