"""Many questions as few weighted ones, on which a prior is fitted as well.

A likelihood is a sum over questions of a smooth function of the aggregate t and its variance u. So questions whose t
and u lie close together are replaced by four points with the same number, means, variances and covariance,

    (mean t -+ sqrt(2) a, mean u -+ sqrt(2) b),  (mean t, mean u -+ sqrt(2) c),   [a 0; b c] the root of the covariance,

a rule of the third degree (Stroud, *Approximate Calculation of Multiple Integrals*, 1971): what it leaves out is of the
fourth order in the size of a cell. Cells are a third of a standard error wide, and 50,000 questions become about 1,500
points. Estimates move by less than a thousandth of their standard error (`benchmarks/shortcuts.py` prints it).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from trueup.core.arrays import Floats

#: Questions below which nothing is condensed.
MANY = 10_000
#: Width of a cell in standard errors, and the ratio of the largest to the smallest variance in it.
WIDTH, RATIO = 0.35, 1.4
#: Points that stand for a cell, and cells to each side of the middle: what lies beyond stays as it is.
POINTS, MOST_CELLS = 4, 1 << 30


def condense(t: Floats, u: Floats) -> tuple[Floats, Floats, Floats | None]:
    """Return aggregates and variances with the number of questions that each stands for, panels x points.

    Fewer than `MANY` questions are returned as they are, with None. Panels need different numbers of points: the last
    ones of a row may stand for no question.
    """
    if t.shape[1] < MANY:
        return t, u, None
    rows = [_condense(*row) for row in zip(t, u, strict=True)]
    length = max(len(row[0]) for row in rows)
    padding = (0.0, 1.0, 0.0)
    columns = (
        [np.pad(row[k], (0, length - len(row[k])), constant_values=padding[k]) for row in rows]
        for k in range(3)
    )
    points, variances, numbers = (np.stack(column) for column in columns)
    return points, variances, numbers


def _condense(t: Floats, u: Floats) -> tuple[Floats, Floats, Floats]:
    """Condense one panel."""
    tiny = np.finfo(float).tiny
    level = np.floor(np.log(np.maximum(u, tiny)) / np.log(RATIO))
    place = np.floor(t / (WIDTH * RATIO ** (level / 2)))
    inside = (u > tiny) & (np.abs(place) < MOST_CELLS)
    key = level * (4.0 * MOST_CELLS) + np.where(inside, place, 0.0)
    _, cell = np.unique(key, return_inverse=True)
    count = np.bincount(cell, inside)
    many = inside & (count > POINTS)[cell]
    cell, s, v = cell[many], t[many], u[many]
    used = np.flatnonzero(count > POINTS)
    n = np.bincount(cell, minlength=len(count))[used].astype(np.float64)

    def mean(values: Floats) -> Floats:
        return np.bincount(cell, values, minlength=len(count))[used] / n

    number = np.zeros(len(count), dtype=np.int64)
    number[used] = np.arange(len(used))
    middle, level = mean(s), mean(v)
    off_s, off_v = s - middle[number[cell]], v - level[number[cell]]
    a = np.sqrt(mean(off_s * off_s))
    b = np.divide(mean(off_s * off_v), a, out=np.zeros(len(a)), where=a > 0)
    c = np.sqrt(np.maximum(mean(off_v * off_v) - b * b, 0.0))
    a, b, c = (np.sqrt(2.0) * each for each in (a, b, c))
    alone = ~many
    return (
        np.concatenate([t[alone], middle - a, middle + a, middle, middle]),
        np.concatenate([u[alone], level - b, level + b, level - c, level + c]),
        np.concatenate([np.ones(int(alone.sum())), *([n / POINTS] * POINTS)]),
    )
