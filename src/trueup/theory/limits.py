"""Limit of the shrinkage for many questions.

Reference: Ben Shabat, Meir and Azriel, arXiv 2206.04816, remark on the limit of the empirical Bayes estimate.
"""

from __future__ import annotations

from typing import NamedTuple, SupportsIndex

from trueup.theory.guards import count, number


class Moments(NamedTuple):
    """Mean and standard deviation of a random number."""

    mean: float
    std: float


def shrinkage_limit(variance: float, prior_variance: float, guess: float | None = None) -> float:
    """Return the limit of `b = (m-3) psi / SS` for many questions: `psi / (variance + prior_variance)`.

    Parameters
    ----------
    variance
        Variance of each aggregate.
    prior_variance
        Limit of the variance of the truths, `SS(mu)/m`.
    guess
        Limit of psi; the variance unless given, and then the limit of b is that of the Bayes estimate.

    Notes
    -----
    SS/m tends to `variance + prior_variance` by the law of large numbers. Assumptions: independent aggregates with
    errors of one variance (for example normal), truths whose sample variance has a limit; no particular prior.

    Examples
    --------
    >>> shrinkage_limit(1.0, prior_variance=3.0)
    0.25
    """
    noise = number("variance", variance, "positive")
    used = noise if guess is None else number("guess", guess, "not negative")
    return used / (noise + number("prior_variance", prior_variance, "not negative"))


def shrinkage_moments(m: SupportsIndex, variance: float, prior_variance: float) -> Moments:
    """Return mean and standard deviation of `b = (m-3) variance / SS` for m questions.

    With B the limit `variance / (variance + prior_variance)`: the mean is B for every m > 3 (see
    `marginal_identity`), the standard deviation is `B sqrt(2 / (m - 5))`, finite from m = 6 on.

    Assumptions: normal errors, normal truths, known variance.

    Examples
    --------
    >>> shrinkage_moments(55, variance=1.0, prior_variance=1.0)
    Moments(mean=0.5, std=0.1)
    """
    questions = count("m", m, least=6)
    limit = shrinkage_limit(variance, prior_variance)
    return Moments(limit, limit * (2.0 / (questions - 5)) ** 0.5)
