"""Optimal clusters of numbers on a line.

In one dimension the best clusters by the sum of squares are runs of the sorted numbers, found by dynamic programming:
the best k runs of the first j numbers are the best k - 1 runs of the first i and the run from i to j, for the best i
(Fisher, JASA 1958). Long panels are first summarised by the means of `BINS` runs of equal length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trueup.shrinkage.tiles import CELLS

if TYPE_CHECKING:
    from trueup.core.arrays import Floats, Ints

BINS = 128


def line_clusters(t: Floats, most: int) -> list[Ints]:
    """Return where the 2, 3, ..., `most` best clusters of each row begin.

    Parameters
    ----------
    t : array
        Numbers, sorted in each row.
    most : int
        Largest number of clusters.

    Returns
    -------
    list of arrays
        Rows x clusters, the position of the first number of each cluster.

    Examples
    --------
    >>> line_clusters(np.array([[0.0, 0.1, 5.0, 5.1, 5.2, 9.0]]), 3)
    [array([[0, 2]]), array([[0, 2, 5]])]
    """
    rows, numbers = t.shape
    bins = min(numbers, BINS)
    edges = np.arange(bins + 1) * numbers // bins
    starts = [np.zeros((rows, k), dtype=np.int64) for k in range(2, most + 1)]
    at_once = max(1, CELLS // bins**2)
    for start in range(0, rows, at_once):
        batch = slice(start, start + at_once)
        middle = t[batch] if bins == numbers else np.add.reduceat(t[batch], edges[:-1], axis=1)
        weight = np.diff(edges).astype(np.float64)
        if bins < numbers:
            middle = middle / weight
        for k, begins in enumerate(_runs(middle, weight, most), start=2):
            starts[k - 2][batch] = edges[begins]
    return starts


def _runs(middle: Floats, weight: Floats, most: int) -> list[Ints]:
    """Return where the best runs of each row begin, for 2 to `most` runs."""
    rows, bins = middle.shape
    cost = _costs(middle, weight)
    best = cost[:, 0, :]
    picks = []
    row = np.arange(rows)[:, None]
    result = []
    for k in range(2, most + 1):
        # The last run begins at i >= 1, after the best k - 1 runs of what lies before i.
        tried = best[:, :-1, None] + cost[:, 1:, :]
        pick = tried.argmin(axis=1)
        best = np.take_along_axis(tried, pick[:, None, :], axis=1)[:, 0, :]
        picks.append(pick + 1)
        begins = np.zeros((rows, k), dtype=np.int64)
        end = np.full((rows, 1), bins - 1)
        for back in range(k - 1, 0, -1):
            begins[:, back : back + 1] = picks[back - 1][row, end]
            end = begins[:, back : back + 1] - 1
        result.append(begins)
    return result


def _costs(middle: Floats, weight: Floats) -> Floats:
    """Return the sum of squares of each run from i to j, infinite where j < i.

    One bin after another is added to all runs (Welford 1962): differences of running sums would lose all digits next to
    a number that lies far out.
    """
    rows, bins = middle.shape
    cost = np.full((rows, bins, bins), np.inf)
    count = np.zeros(bins)
    mean, squares = np.zeros((rows, bins)), np.zeros((rows, bins))
    for j in range(bins):
        n, before = count[: j + 1], weight[j]
        total = n + before
        away = middle[:, j : j + 1] - mean[:, : j + 1]
        squares[:, : j + 1] += away * away * (n * before / total)
        mean[:, : j + 1] += away * (before / total)
        count[: j + 1] = total
        cost[:, : j + 1, j] = squares[:, : j + 1]
    return cost
