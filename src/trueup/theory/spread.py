"""The mean of 1/SS, the expectation that determines how much shrinkage can gain.

`SS = sum_j (X_j - Xbar)^2` for aggregates `X_j ~ N(mu_j, variance)`. Given the truths it is `variance` times a
noncentral chi-square variable with m - 1 degrees of freedom and noncentrality `SS(mu) / variance`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple, SupportsIndex

import numpy as np

from trueup.theory.guards import count, number, numbers

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from trueup.core.arrays import Floats

# Number of Gauss-Legendre nodes; the integral ends where the integrand is below exp(-TAIL / 2).
NODES = 128
TAIL = 80.0


class Bounds(NamedTuple):
    """Lower and upper bound of a number."""

    lower: float
    upper: float


@cache
def _nodes() -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    return (nodes + 1.0) / 2.0, weights / 2.0


def mean_inverse_chi2(m: int, noncentrality: float) -> float:
    """Return `E[1/Q]` for a noncentral chi-square Q with m - 1 degrees of freedom, to about 1e-13 of its value.

    Q is a chi-square variable with m - 1 + 2J degrees of freedom, J Poisson with mean `noncentrality / 2`, hence
    `E[1/Q] = E[1 / (m - 3 + 2J)]`. Writing the fraction as the integral of `t^(m - 4 + 2J)` over [0, 1] and summing
    over J gives the integral of `t^(m-4) exp(-noncentrality (1 - t^2) / 2)`, which is smooth and largest near t = 1.
    """
    scale = noncentrality + m - 3
    reach = min(scale, TAIL)
    nodes, weights = _nodes()
    below = nodes * (reach / scale)
    log = (m - 4) * np.log1p(-below) - noncentrality * below * (1.0 - below / 2.0)
    return float(weights @ np.exp(log)) * (reach / scale)


def truth_spread(truth: ArrayLike) -> tuple[int, float]:
    """Return the number of questions, at least four, and `SS(mu)`."""
    values = numbers("truth", truth)
    m = count("truth", len(values))
    deviations = values - values.mean()
    return m, float(deviations @ deviations)


def inverse_ss(truth: ArrayLike, variance: float) -> float:
    """Return the exact `E[1/SS]` over repeated aggregates of the same truths.

    Parameters
    ----------
    truth
        True values, one per question, at least four.
    variance
        Variance of each aggregate.

    Notes
    -----
    Assumptions: `X_j ~ N(mu_j, variance)`, independent. A common shift of all aggregates does not matter.

    Examples
    --------
    >>> round(inverse_ss([0.0, 0.0, 0.0, 0.0, 0.0], variance=0.5), 9)  # 1 / ((m - 3) variance)
    1.0
    """
    m, squares = truth_spread(truth)
    noise = number("variance", variance, "positive")
    return mean_inverse_chi2(m, squares / noise) / noise


def inverse_ss_bounds(truth: ArrayLike, variance: float) -> Bounds:
    """Return simple bounds of `inverse_ss`.

    Notes
    -----
    With `L = SS(mu) / variance`: `1/(m-3+L) <= variance E[1/SS] <= (m-1) / ((m-3)(m-1+L))`. The lower one is Jensen's
    inequality for `E[1/(m-3+2J)]`. The upper bound follows from `(m-3) E[1/(m-3+2J)] + L E[1/(m-1+2J)] = 1` and the
    lower bound of the second mean. Both are equalities if all truths are equal.

    Assumptions: those of `inverse_ss`. Reference: Casella and Hwang, Limit expressions for the risk of James-Stein
    estimators, Canadian Journal of Statistics 10 (1982).
    """
    m, squares = truth_spread(truth)
    noise = number("variance", variance, "positive")
    return Bounds(
        1.0 / ((m - 3) * noise + squares),
        (m - 1) / (m - 3) / ((m - 1) * noise + squares),
    )


def inverse_ss_under_prior(m: SupportsIndex, variance: float, prior_variance: float) -> float:
    """Return `E[1/SS] = 1 / ((m - 3)(variance + prior_variance))`, averaged over normal truths, too.

    Assumptions: `X_j ~ N(mu_j, variance)`, `mu_j ~ N(any mean, prior_variance)`, all independent, m > 3. See
    `marginal_identity`.

    Examples
    --------
    >>> inverse_ss_under_prior(7, variance=1.0, prior_variance=1.5)
    0.1
    """
    total = number("variance", variance, "positive") + number(
        "prior_variance", prior_variance, "not negative"
    )
    return 1.0 / ((count("m", m) - 3) * total)
