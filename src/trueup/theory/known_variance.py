"""Risk of the empirical Bayes estimate whose shrinkage uses a constant: the true variance, or a guess.

The estimate is `Xbar + (1 - alpha guess / SS)(X_j - Xbar)`, with alpha = m - 3 and the true variance as guess unless
otherwise stated. Under `X_j ~ N(mu_j, variance)` its risk is

    m variance - (2 alpha (m-3) variance guess - alpha^2 guess^2) E[1/SS],

which for the defaults is `m variance - (m-3)^2 variance^2 E[1/SS]`, below the risk of the aggregates for any truths.
With truths from a normal prior `E[1/SS]` has a closed form.

References: G. Casella, An introduction to empirical Bayes data analysis, American Statistician 39 (1985); Ben Shabat,
Meir and Azriel, arXiv 2206.04816, theorem on known competence and the figure on a biased variance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, SupportsIndex

from trueup.errors import TrueupError
from trueup.theory.blue import blue_variance
from trueup.theory.guards import SMALLEST, count, number, numbers, strength
from trueup.theory.spread import (
    inverse_ss,
    inverse_ss_bounds,
    inverse_ss_under_prior,
    truth_spread,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from trueup.core.arrays import Floats


def risk_given_truth(
    truth: ArrayLike, variance: float, guess: float | None = None, alpha: float | None = None
) -> float:
    """Return the exact risk at these truths, as an expected sum of squared errors.

    Parameters
    ----------
    truth
        True values, one per question, at least four.
    variance
        Variance of each aggregate.
    guess
        The constant used in place of the variance; the variance itself unless given.
    alpha
        Constant of the shrinkage; m - 3 unless given.

    Notes
    -----
    Assumptions: `X_j ~ N(mu_j, variance)`, independent, `guess` not computed from X. This is the plain estimate; with
    the positive part the risk is even lower.

    Examples
    --------
    >>> round(risk_given_truth([0.0, 0.0, 0.0, 0.0, 0.0], variance=1.0), 9)  # 5 - 2^2 / 2
    3.0
    """
    m, _ = truth_spread(truth)
    return _risk(m, variance, guess, alpha, inverse_ss(truth, variance))


def risk_under_prior(
    m: SupportsIndex,
    variance: float,
    prior_variance: float,
    guess: float | None = None,
    alpha: float | None = None,
) -> float:
    """Return the risk averaged over normal truths, in closed form.

    Notes
    -----
    With the defaults `m s - (m-3) s^2 / (s + t)`, with s the variance of an aggregate and t that of the truths;
    with a guess h instead of s, `m s - (m-3)(2 s h - h^2) / (s + t)`.

    Assumptions: those of `risk_given_truth`, and truths `N(any mean, prior_variance)`.

    Examples
    --------
    >>> risk_under_prior(10, variance=1.0, prior_variance=1.0)
    6.5
    """
    expected = inverse_ss_under_prior(m, variance, prior_variance)
    return _risk(count("m", m), variance, guess, alpha, expected)


def ebblue_risk(m: SupportsIndex, variances: ArrayLike, prior_variance: float) -> float:
    """Return the risk of EbBlue: the empirical Bayes step on BLUE with its known variance.

    `m s - (m-3) s^2 / (s + prior_variance)` with `s = 1 / sum_i 1/sigma_i^2`: below `m s`, the risk of BLUE.

    Assumptions: normal unbiased answers of independent workers with known variances, a variance per worker; normal
    truths; m > 3.

    Examples
    --------
    Five workers with standard deviations 1 to 5, per question:

    >>> round(ebblue_risk(10, [1.0, 4.0, 9.0, 16.0, 25.0], prior_variance=1.0) / 10, 5)
    0.48911
    """
    variance = blue_variance(variances)
    if variance < SMALLEST:
        raise TrueupError(
            f"the variance of BLUE is {variance:.3g}.",
            argument="variances",
            remedy=f"Give variances so large that it is at least {SMALLEST:g}.",
        )
    return risk_under_prior(m, variance, prior_variance)


def casella_bound(truth: ArrayLike, variance: float) -> float:
    """Return an upper bound of `risk_given_truth` that is strictly below `m variance`, in closed form.

    Notes
    -----
    `m s - (m-3)^2 s^2 / ((m-3) s + SS(mu))`, from the lower bound of `E[1/SS]` (see `inverse_ss_bounds`). It equals the
    risk if all truths are equal, and approaches it if they are far apart. Casella's theorem says that the risk is below
    `m s` for all truths; this says by how much at least.

    Assumptions: those of `risk_given_truth`, with the variance known.

    Examples
    --------
    >>> casella_bound([0.0, 0.0, 2.0, 2.0, 1.0], variance=2.0)  # 10 - 2^2 * 2^2 / (4 + 4)
    8.0
    """
    m, _ = truth_spread(truth)
    return _risk(m, variance, None, None, inverse_ss_bounds(truth, variance).lower)


def biased_variance_risk(
    guesses: ArrayLike, m: SupportsIndex, variance: float, prior_variance: float
) -> Floats:
    """Return the curve `R(h) = m s - (m-3)(2 s h - h^2) / (s + t)` over constant guesses h of the variance s.

    A parabola with its minimum at h = s, which reaches the risk of the aggregates at h = 2 s: a guess that is too small
    always gains, a guess above 2 s always loses. This is the figure on a biased variance in the paper.

    Assumptions: those of `risk_under_prior`; plain estimate without positive part.

    Examples
    --------
    >>> biased_variance_risk([0.0, 1.0, 2.0, 3.0], m=10, variance=1.0, prior_variance=1.0).tolist()
    [10.0, 6.5, 10.0, 20.5]
    """
    guess = numbers("guesses", guesses, "not negative")
    noise = number("variance", variance, "positive")
    questions = count("m", m)
    strongest = (questions - 3) * (questions - 3)
    expected = inverse_ss_under_prior(m, variance, prior_variance)
    risk: Floats = questions * noise - strongest * expected * guess * (2.0 * noise - guess)
    return risk


def _risk(
    m: int, variance: float, guess: float | None, alpha: float | None, expected: float
) -> float:
    noise = number("variance", variance, "positive")
    used = noise if guess is None else number("guess", guess, "not negative")
    size = strength(alpha, m)
    return m * noise - size * used * expected * (2.0 * (m - 3) * noise - size * used)
