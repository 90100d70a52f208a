"""The best estimate if the prior were known, and the identity by which the data replace it.

Model: `X_j ~ N(mu_j, variance)` independent given the truths, `mu_j ~ N(prior_mean, prior_variance)`. The Bayes
estimate needs the shrinkage `b = variance / (variance + prior_variance)`. Under this model the aggregates are
`N(prior_mean, variance + prior_variance)`, so SS is `variance + prior_variance` times a chi-square variable with
m - 1 degrees of freedom, whose reciprocal has mean 1/(m - 3). Hence `(m - 3) variance / SS` is an unbiased estimate of
b. This is the origin of the m - 3 in the empirical Bayes estimator.

Reference: Ben Shabat, Meir and Azriel, Empirical Bayes approach to Truth Discovery problems, arXiv 2206.04816,
section on the Bayes estimator and appendix A.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, SupportsIndex

from trueup.theory.guards import count, number, numbers
from trueup.theory.spread import mean_inverse_chi2

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from trueup.core.arrays import Floats


@dataclass(frozen=True, eq=False)
class BayesPosterior:
    """The truths given the aggregates: independent, normal, with these means and one variance.

    Attributes
    ----------
    mean : array
        One per question; the Bayes estimate under squared error.
    variance : float
        Posterior variance, the same for all questions.
    shrinkage : float
        Fraction of the distance from the aggregate to the prior mean.
    """

    mean: Floats
    variance: float
    shrinkage: float


class MarginalIdentity(NamedTuple):
    """The two sides of the identity, each computed in its own way."""

    left: float
    right: float


def bayes_estimate(
    x: ArrayLike, variance: float, prior_mean: float, prior_variance: float
) -> BayesPosterior:
    """Return the posterior of the truths under a known normal prior.

    Parameters
    ----------
    x
        Aggregates, one per question.
    variance
        Variance of each aggregate around its truth.
    prior_mean, prior_variance
        The truths are `N(prior_mean, prior_variance)`; with variance 0 they all equal the mean.

    Notes
    -----
    `mean_j = prior_mean + (1 - b)(x_j - prior_mean)`, `b = variance / (variance + prior_variance)`, and the posterior
    variance is `(1 - b) variance`.

    Assumptions: normal prior with known parameters, normal noise of one known variance, independent questions. No
    estimator has a smaller risk averaged over this prior.

    Examples
    --------
    >>> posterior = bayes_estimate([8.0, 12.0], variance=1.0, prior_mean=9.0, prior_variance=3.0)
    >>> posterior.mean.tolist(), posterior.variance, posterior.shrinkage
    ([8.25, 11.25], 0.75, 0.25)
    """
    values = numbers("x", x)
    noise = number("variance", variance, "positive")
    centre = number("prior_mean", prior_mean)
    spread = number("prior_variance", prior_variance, "not negative")
    keep = spread / (noise + spread)
    return BayesPosterior(centre + keep * (values - centre), keep * noise, noise / (noise + spread))


def bayes_risk(m: SupportsIndex, variance: float, prior_variance: float) -> float:
    """Return `m variance prior_variance / (variance + prior_variance)`, the risk of the Bayes estimate.

    The risk is the expected sum of squared errors over m questions, averaged over the prior: under the assumptions
    of `bayes_estimate` no estimator can do better.

    Examples
    --------
    >>> bayes_risk(10, variance=1.0, prior_variance=1.0)
    5.0
    """
    noise = number("variance", variance, "positive")
    spread = number("prior_variance", prior_variance, "not negative")
    return count("m", m, least=1) * noise * (spread / (noise + spread))


def marginal_identity(m: SupportsIndex, variance: float, prior_variance: float) -> MarginalIdentity:
    """Return both sides of `E[(variance + prior_variance) / SS] = 1 / (m - 3)`.

    The left side is integrated numerically from the distribution of SS, the right side is the fraction. The variances
    cancel, so the identity holds for any variances.

    Assumptions: those of `bayes_estimate`; any prior mean, which need not be known; m > 3. Appendix A of the paper.

    Examples
    --------
    >>> left, right = marginal_identity(9, variance=2.0, prior_variance=5.0)
    >>> round(left, 12) == round(right, 12) == round(1 / 6, 12)
    True
    """
    questions = count("m", m)
    total = number("variance", variance, "positive") + number(
        "prior_variance", prior_variance, "not negative"
    )
    expected = mean_inverse_chi2(questions, 0.0) / total
    return MarginalIdentity(total * expected, 1.0 / (questions - 3))
