"""Human labels for some items: the prediction-powered mean, which is that of the labels, made sharper by the judges.

With `h` the labels of n items, `t` the panel's scores of these and of N further items,

    mu = lam mean_unlabelled(t) + mean_labelled(h - lam t)
    lam = cov(h, t) / (var(t) (1 + n/N)), clipped to 0 .. 1      cov over the labelled items with divisor n,
                                                                var over all items with divisor n + N - 1
    variance = var_labelled(h - lam t)/n + lam^2 var_unlabelled(t)/N       divisors n - 1 and N - 1

and Student's t with n - 2 degrees of freedom, at least 2, as `lam` is learned from the labels too; n - 1 where it is 0.
The labelled items must be a random sample of all; then `mu` is unbiased
whatever the judges say, and `lam` (power tuning) keeps bad judges from widening the interval.

References: Angelopoulos, Bates, Fannjiang, Jordan, Zrnic, "Prediction-powered inference" (2023); Angelopoulos, Duchi,
Zrnic, "PPI++" (2023).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtr, stdtrit

if TYPE_CHECKING:
    from trueup.core.arrays import Floats

#: Labels of a system from which on they are used.
FEWEST = 3


@dataclass(frozen=True)
class LabelledMean:
    """A mean, or mean difference, on the scale of the labels.

    Attributes
    ----------
    value : float
        The mean.
    variance : float
        Its variance.
    labels, others : int
        Number of items with and without a label.
    power : float
        How much the scores of the judges count (`lam`), from 0 to 1.
    rectifier, rectifier_variance : float
        Mean of label minus score, and its variance.
    alone : float
        Variance of the mean of the labels alone.
    of_others : float
        Part of the variance that comes from the items without a label.
    """

    value: float
    variance: float
    labels: int
    others: int
    power: float
    rectifier: float
    rectifier_variance: float
    alone: float
    of_others: float

    @property
    def std_error(self) -> float:
        """Standard error."""
        return float(np.sqrt(self.variance))

    @property
    def degrees(self) -> float:
        """Degrees of freedom: one for each label but the mean and `lam`, which are learned from them."""
        learned = 2 if self.power > 0 else 1
        return float(max(self.labels - learned, FEWEST - 1))

    @property
    def effective_labels(self) -> float:
        """Number of labels that would say as much on their own."""
        return self.labels * self.alone / self.variance if self.variance > 0 else np.inf

    @property
    def labels_to_halve(self) -> int | None:
        """Number of further labels that would halve the interval; None where there are not that many items."""
        if self.variance == 0:
            return 0
        goal = self.variance / 4
        ways = [self.labels * self.alone / goal]  # by labels alone
        if goal > self.of_others:
            ways.append(self.labels * (self.variance - self.of_others) / (goal - self.of_others))
        more = int(np.ceil(min(ways) - 1e-9)) - self.labels
        return more if more <= self.others else None

    def interval(self, level: float) -> tuple[float, float]:
        """Return the ends of the interval."""
        half = float(stdtrit(self.degrees, 0.5 + level / 2)) * self.std_error
        return self.value - half, self.value + half

    def p_value(self, *, margin: float = 0.0, side: int = 0) -> float:
        """Return the probability of such a value if the mean were `margin`; see `MeanDifference.p_value`."""
        away = self.value - margin
        if self.variance == 0:
            if side == 0:
                return 1.0 if away == 0 else 0.0
            return 0.0 if side * away > 0 else 1.0
        t = away / self.std_error
        if side == 0:
            return float(2 * stdtr(self.degrees, -abs(t)))
        return float(stdtr(self.degrees, -side * t))


def labelled_mean(label: Floats, score: Floats) -> LabelledMean | None:
    """Combine labels (NaN where there is none) with scores of the same items; None with fewer than three labels."""
    has = ~np.isnan(label)
    h, t, other = label[has], score[has], score[~has]
    n, others = len(h), len(other)
    if n < FEWEST:
        return None
    power = tuning(h, t, score, others)
    value = float((h - power * t).mean()) + (power * float(other.mean()) if others else 0.0)
    of_others = power**2 * float(other.var(ddof=1)) / others if power > 0 else 0.0
    variance = float((h - power * t).var(ddof=1)) / n + of_others
    gap = h - t
    return LabelledMean(
        value,
        variance,
        n,
        others,
        power,
        float(gap.mean()),
        float(gap.var(ddof=1)) / n,
        float(h.var(ddof=1)) / n,
        of_others,
    )


def tuning(h: Floats, t: Floats, score: Floats, others: int) -> float:
    """Return how much the scores count: `lam`, from 0 to 1."""
    if others < 2:
        return 0.0
    spread = float(score.var(ddof=1))
    if spread == 0:
        return 0.0
    together = float(((h - h.mean()) * (t - t.mean())).mean())
    return float(np.clip(together / (spread * (1 + len(h) / others)), 0.0, 1.0))
