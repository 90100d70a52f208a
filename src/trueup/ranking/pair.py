"""Is one system better than another, and how sure is that? The paired comparison of two systems by a panel.

Judges score both systems on the same items. With `y_pi` the difference of the two scores of judge i on item p (the bias
of a judge cancels), `W_pi` the judge's share of the weight at item p, and P items,

    d_p = sum_i W_pi y_pi,    D = mean_p d_p.

`D` varies because other items would give other differences (`Vp`), and because other judges would favour the systems
otherwise (`Vj`): a judge-by-system effect is the same on every item, so more items do not average it out.

    Vp = P/(P-1) sum_p ((d_p - D)/P)^2                       sums over the items of a cluster where there are clusters
    b_pi = W_pi (y_pi - d_p)/P,   B_i = sum_p b_pi,   h_i = mean_p W_pi,   C = diag(h) - mean_p W_p W_p'
    k = sum h_i^2 / ||C||_F^2,    Vj = k max(sum B_i^2 - sum b_pi^2, 0),   Vi = k sum B_i^2

`B_i` is the judge's effect as far as it differs from the panel's, `C` what the panel's own mean takes from it, and the
sum of squares of single `b_pi` what noise alone would add to it. For judges like these the variance is `Vp + Vj` with
Satterthwaite's degrees of freedom, `(Vp + Vj)^2 / (Vp^2/(P-1) + Vi^2/f)` with `f = tr(C^2)^2 / tr(C^4)`, which is J - 1
for judges who count alike and less the more their weights differ; for these very judges it is `Vp` with `P - 1`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.special import stdtr, stdtrit

if TYPE_CHECKING:
    from typing import Self

    from trueup.core.arrays import Bools, Floats, Ints

#: Relative size below which a norm counts as zero.
NOTHING = 1e-12
#: Cells of a table per entry up to which it is kept in full.
FULL = 4


@dataclass(frozen=True)
class MeanDifference:
    """A mean over items, or a mean difference, with its variances.

    Attributes
    ----------
    value : float
        The mean; NaN where no item is shared.
    items : int
        Number of items.
    judges : int
        Number of judges.
    item_variance, judge_variance : float
        Variance from the choice of the items, and of the judges; NaN where unknown.
    judge_noise : float
        Sum behind the degrees of freedom of the judges (`Vi`).
    judge_df : float
        Degrees of freedom of the judges: their number less one where they count alike.
    units : int
        Number of clusters of items, or of items where there are none.
    """

    value: float
    items: int
    judges: int
    item_variance: float
    judge_variance: float
    judge_noise: float
    judge_df: float
    units: int

    @property
    def knows_judges(self) -> bool:
        """Whether the variance between judges is known: some item has two judges."""
        return bool(np.isfinite(self.judge_variance)) and self.judge_df > 0

    def variance(self, *, fixed: bool) -> float:
        """Return the variance, for these judges or for judges like these."""
        return self.item_variance if fixed else self.item_variance + self.judge_variance

    def degrees(self, *, fixed: bool) -> float:
        """Return the degrees of freedom, for these judges or for judges like these."""
        of_items = float(self.units - 1)
        if fixed:
            return of_items
        total = self.variance(fixed=False)
        parts = self.item_variance**2 / of_items + self.judge_noise**2 / self.judge_df
        return max(1.0, total**2 / parts) if parts > 0 else of_items

    def std_error(self, *, fixed: bool) -> float:
        """Return the standard error; NaN where it is unknown."""
        return float(np.sqrt(self.variance(fixed=fixed)))

    def interval(self, level: float, *, fixed: bool) -> tuple[float, float]:
        """Return the ends of the interval; NaN where they are unknown."""
        error = self.std_error(fixed=fixed)
        if not np.isfinite(error):
            return np.nan, np.nan
        half = float(stdtrit(self.degrees(fixed=fixed), 0.5 + level / 2)) * error
        return self.value - half, self.value + half

    def p_value(self, *, fixed: bool, margin: float = 0.0, side: int = 0) -> float:
        """Return the probability of such a value if the mean were `margin`; NaN where it is unknown.

        Parameters
        ----------
        fixed
            For these judges rather than for judges like these.
        margin
            The mean to test.
        side
            0: either side; 1: values above the margin are evidence; -1: values below it.
        """
        error = self.std_error(fixed=fixed)
        if not np.isfinite(error):
            return np.nan
        away = self.value - margin
        if error == 0:
            if side == 0:
                return 1.0 if away == 0 else 0.0
            return 0.0 if side * away > 0 else 1.0
        t, df = away / error, self.degrees(fixed=fixed)
        if side == 0:
            return float(2 * stdtr(df, -abs(t)))
        return float(stdtr(df, -side * t))


@dataclass(frozen=True, eq=False)
class Shares:
    """What each judge counts at each item: all that a mean needs but the scores, and many pairs of systems share it.

    Attributes
    ----------
    used : array or None
        Which scores count, those of judges with weight; None: all.
    items : array
        The items, rising.
    p, i : arrays
        Place of the item and of the judge of each score that counts.
    share : array
        Share of its judge in the weight at the item.
    mean_share : array
        Mean share of each judge over the items (`h`).
    norm, fourth : float
        `tr(C^2)` and `tr(C^4)`.
    unit : array or None
        Place of the cluster of each item.
    """

    used: Bools | None
    items: Ints
    p: Ints
    i: Ints
    share: Floats
    mean_share: Floats
    norm: float
    fourth: float
    unit: Ints | None

    @classmethod
    def of(cls, item: Ints, judge: Ints, weight: Floats, cluster: Ints | None = None) -> Self:
        """Return the shares at the items of scores; see `mean_over_items`."""
        counts = weight[judge] > 0
        used = None if counts.all() else counts
        if used is not None:
            item, judge = item[used], judge[used]
        items, p = numbered(item)
        _, i = numbered(judge)
        n = len(items)
        share = weight[judge] / np.bincount(p, weight[judge])[p]
        h = np.bincount(i, share) / max(n, 1)
        norm, fourth = _norms(share, p, i, h, n) if n else (0.0, 0.0)
        unit = None if cluster is None else np.unique(cluster[items], return_inverse=True)[1]
        return cls(used, items, p, i, share, h, norm, fourth, unit)

    def over_judges(self, score: Floats) -> Floats:
        """Return the mean of each item over its judges (`d_p`)."""
        score = score if self.used is None else score[self.used]
        sums = np.bincount(self.p, weights=self.share * score, minlength=len(self.items))
        return sums.astype(np.float64, copy=False)

    def mean(self, score: Floats) -> MeanDifference:
        """Average scores, or differences of scores, over judges and then over items."""
        n, judges = len(self.items), len(self.mean_share)
        if n == 0:
            nothing = np.nan
            return MeanDifference(nothing, 0, 0, nothing, nothing, nothing, 0.0, 0)
        by_item = self.over_judges(score)
        value = float(by_item.mean())
        units = n
        off: Floats = (by_item - value) / n
        if self.unit is not None:
            off = np.bincount(self.unit, weights=off).astype(np.float64)
            units = len(off)
        items_vary = units / (units - 1) * squares(off) if units > 1 else np.nan
        norm, size = self.norm, squares(self.mean_share)
        if norm <= NOTHING * size:
            return MeanDifference(value, n, judges, items_vary, np.nan, np.nan, 0.0, units)
        score = score if self.used is None else score[self.used]
        b = self.share * (score - by_item[self.p]) / n
        effect = squares(np.bincount(self.i, weights=b).astype(np.float64, copy=False))
        k = size / norm
        noise = k * effect
        between = k * max(effect - squares(b), 0.0)
        freedom = norm**2 / self.fourth
        return MeanDifference(value, n, judges, items_vary, between, noise, freedom, units)


def mean_over_items(
    item: Ints, judge: Ints, score: Floats, weight: Floats, cluster: Ints | None = None
) -> MeanDifference:
    """Average scores, or differences of scores, over judges and then over items.

    Parameters
    ----------
    item, judge : arrays
        Item and judge of each score, as numbers; no pair of them occurs twice.
    score : array
        The scores.
    weight : array
        Weight of each judge, by number.
    cluster : array, optional
        Cluster of each item, by number.
    """
    return Shares.of(item, judge, weight, cluster).mean(score)


def squares(values: Floats | Ints) -> float:
    """Return the sum of squares; not as a product, for which libraries start threads that cost more than they bring."""
    return float(np.square(values).sum())


def _norms(share: Floats, p: Ints, i: Ints, h: Floats, n: int) -> tuple[float, float]:
    """Return `tr(C^2)` and `tr(C^4)`; a table without many gaps is faster in full."""
    judges = len(h)
    if n * judges <= FULL * len(share):
        full = np.zeros((n, judges))
        full[p, i] = share
        # Not a product of matrices: libraries for these start threads, which cost more than so few columns.
        dense = np.diag(h) - np.einsum("pi,pj->ij", full, full) / n
        square = dense @ dense
        return float((dense * dense).sum()), float((square * square).sum())
    shares = sparse.csr_array((share, (p, i)), shape=(n, judges))
    taken = sparse.csr_array(sparse.diags_array(h) - (shares.T @ shares) / n)
    squared = taken @ taken
    return float(taken.data @ taken.data), float(squared.data @ squared.data)


def numbered(codes: Ints) -> tuple[Ints, Ints]:
    """Return the codes in use, rising, and the place of each one among them, without sorting where that can be."""
    if not len(codes):
        return codes, codes
    step = np.diff(codes)
    if (step >= 0).all():
        new = np.concatenate(([True], step > 0))
        return codes[new], np.cumsum(new) - 1
    if int(codes.max()) <= len(codes) and int(codes.min()) >= 0:
        used = np.bincount(codes) > 0
        return np.flatnonzero(used), (np.cumsum(used) - 1)[codes]
    found, place = np.unique(codes, return_inverse=True)
    return found, place


def holm(p: Floats) -> Floats:
    """Adjust p-values for several comparisons by Holm's method; unknown ones (NaN) do not count."""
    adjusted = np.full(len(p), np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    left = len(order) - np.arange(len(order))
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * left), 1.0)
    return adjusted
