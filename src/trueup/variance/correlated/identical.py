"""Pairs with more identical answers than ties explain.

On a coarse scale ties are common. With m_j the share of equal pairs among the answers to a question and a_i how many
more ties than that worker i has with all but k, two who do not copy are equal on `a_i a_k sum_j m_j` questions; the
number of equal answers is compared with that, and one standard error of a_i a_k more, by the binomial distribution.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from trueup.core.arrays import compact, group_order, offsets, rectangles
from trueup.variance.correlated.discoveries import MATTERS, TINY, discoveries

if TYPE_CHECKING:
    from trueup.core.arrays import Bools, Floats, Ints
    from trueup.variance.correlated.shared_questions import Flat


@dataclass(frozen=True, eq=False)
class Same:
    """Share of identical answers of each pair, what ties explain of it, p-value, and whether it was found."""

    share: Floats
    expected: Floats
    p: Floats
    found: Bools


def identical(flat: Flat) -> Same:
    """Find pairs with more identical answers than ties explain."""
    from scipy.special import betainc

    group, size = _value_groups(flat)
    k = flat.counts.astype(np.float64)
    ties = flat.sums(size - 1.0) / np.maximum(k * (k - 1.0), 1.0)
    one, two, n = flat.chosen[flat.one], flat.chosen[flat.two], flat.shared
    if not ties.any():
        nothing = np.zeros(len(n))
        return Same(nothing, nothing, np.ones(len(n)), nothing > 0)
    equal = _equal_answers(flat, group, size)
    (usual,) = flat.pair_sums((flat.spread(ties)[flat.mine], None))
    workers = flat.data.n_workers
    had = np.bincount(flat.worker, size - 1.0, minlength=workers)
    due = np.bincount(flat.worker, flat.spread(ties * (k - 1.0)), minlength=workers)

    def eager(worker: Ints) -> Floats:
        """How many more ties than usual a worker has with all others but this one; one more for not knowing."""
        value: Floats = (np.maximum(had[worker] - equal, 0.0) + 1.0) / (
            np.maximum(due[worker] - usual, 0.0) + 1.0
        )
        return value

    # Ties that are only there because of this pair do not make ties usual: at least one among all answers, though.
    least = 1.0 / (np.sum(k * (k - 1.0)) / 2.0 + 2.0)
    rate = eager(one) * eager(two) * usual / n
    rate = np.clip(rate, least, 1.0 - 1e-9)
    # How eager they are is known up to the ties it was counted on: one standard error on the safe side.
    unsure = np.sqrt(sum(1.0 / (np.maximum(had[each] - equal, 0.0) + 1.0) for each in (one, two)))
    safe = np.minimum(rate * (1.0 + unsure), 1.0 - 1e-9)
    p = np.where(
        equal > 0, betainc(np.maximum(equal, 1.0), np.maximum(n - equal, 0.0) + 1.0, safe), 1.0
    )
    share = equal / n
    found = discoveries(p, np.ones(len(n), dtype=bool)) & (share - rate >= MATTERS)
    return Same(share, rate, np.maximum(p, TINY), found)


def _value_groups(flat: Flat) -> tuple[Ints, Floats]:
    """Return for each answer the number of its group of equal answers to its question, and how many there are."""
    group = np.empty(len(flat.value), dtype=np.int64)
    for _, positions in rectangles(flat.indptr):
        value = flat.value[positions]
        order = np.argsort(value, axis=1, kind="stable")
        value = np.take_along_axis(value, order, axis=1)
        new = np.ones(value.shape, dtype=bool)
        np.not_equal(value[:, 1:], value[:, :-1], out=new[:, 1:])
        first = np.maximum.accumulate(np.where(new, np.arange(value.shape[1]), 0), axis=1)
        group[np.take_along_axis(positions, order, axis=1)] = positions[:, :1] + first
    return group, np.bincount(group, minlength=len(group))[group].astype(np.float64)


def _equal_answers(flat: Flat, group: Ints, size: Floats) -> Floats:
    """Return the number of equal answers of each pair: both are in the same group."""
    several = size[flat.mine] >= 2
    of_chosen, columns = group[flat.mine][several], flat.columns[several]
    of_chosen, _ = compact(of_chosen, len(group))
    order = group_order(of_chosen, int(of_chosen.max(initial=0)) + 1)
    rows = offsets(np.bincount(of_chosen))
    grouped = replace(flat, rows=rows, columns=columns[order])
    return grouped.pair_sums((None, None))[0]
