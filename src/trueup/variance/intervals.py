"""Width of the intervals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from trueup.core.interpolation import Interpolant

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.core.arrays import Floats

#: Degrees of freedom from which variances count as known.
MANY = 300.0
#: Quantiles from which on they are interpolated, which takes a tenth of the time, and the degree of the polynomial.
INTERPOLATED, DEGREE = 1000, 32


@dataclass(frozen=True, eq=False)
class Width:
    """Half-width of the intervals in standard errors.

    Student's quantile where the variances are estimates, the normal quantile where they are practically known. Noise
    and common shift have separate degrees of freedom, which are combined by Satterthwaite's formula.
    """

    level: float
    nu: Floats
    shift: Floats
    shift_nu: Floats

    def quantile(
        self,
        variance: Floats,
        of_panel: Callable[[Floats], Floats],
        shrinkage: Floats | float = 0.0,
    ) -> Floats:
        """Return the quantile of each question; `of_panel` maps a number per panel to one per question.

        A posterior variance `v tau2 / (v + tau2)` follows errors of v only in proportion to `1 - B`, with B the
        shrinkage: the more a question was moved, the more degrees of freedom its variance has.
        """
        shift, nu = of_panel(self.shift), of_panel(np.maximum(self.nu, 1.0))
        total = variance + shift
        share = np.divide(shift, total, out=np.zeros(len(total)), where=total > 0)
        kept = (1.0 - share) * (1.0 - np.clip(shrinkage, 0.0, 1.0))
        below = kept**2 / nu + share**2 / of_panel(self.shift_nu)
        freedom = np.divide(1.0, below, out=np.full(len(below), np.inf), where=below > 0)
        return student_quantile(0.5 + 0.5 * self.level, freedom)


def student_quantile(p: float, freedom: Floats) -> Floats:
    """Return Student's quantile for each number of degrees of freedom; the normal quantile for many."""
    from scipy.special import ndtri

    quantile = np.full(np.shape(freedom), ndtri(p))
    few = freedom < MANY
    own = np.maximum(freedom[few], 1.0)
    if len(own) > INTERPOLATED and p > 0.5:
        quantile[few] = np.exp(_log_student(p)(1.0 / own))
    else:
        quantile[few] = _student(p, own)
    return quantile


def _student(p: float, freedom: Floats) -> Floats:
    from scipy.special import stdtrit

    return np.asarray(stdtrit(freedom, p), dtype=np.float64)


@lru_cache(maxsize=16)
def _log_student(p: float) -> Interpolant:
    """Return the logarithm of the quantile as a function of 1 / degrees of freedom, exact to ten digits and more."""
    return Interpolant.of(lambda x: np.log(_student(p, 1.0 / x)), 1.0 / MANY, 1.0, DEGREE)
