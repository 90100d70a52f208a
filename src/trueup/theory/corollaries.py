"""Which variance estimates help? The corollaries, with both sides of each inequality.

All of them are about the empirical Bayes estimate (alpha = m - 3) under the normal model of `normal_model`:
independent `X_j ~ N(mu_j, variance)`, m > 3, no positive part. "Helps" means a strictly smaller risk than that of
the aggregates. The corollaries on how close psi must be to the variance are in `accuracy`.

Reference: Ben Shabat, Meir and Azriel, arXiv 2206.04816, corollaries to the theorem on the normal model. Where the
printed statement differs from the exact one, both are available.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, SupportsIndex

import numpy as np

from trueup.core.parameters import one_of
from trueup.errors import TrueupError
from trueup.theory.blue import blue_variance, blue_weights, linear_variance
from trueup.theory.condition import general_condition
from trueup.theory.guards import centred, count, number, numbers, per_sample, repeated
from trueup.theory.results import Measured, Verdict

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from trueup.core.arrays import Floats

# Tolerance of the sum of probabilities, and of negative slopes as a share of psi/SS.
ROUNDING = 1e-9


def constant_psi(psi: float, variance: float) -> Verdict:
    """Check a constant guess: it helps if and only if `0 < psi < 2 variance`.

    This holds for all truths and any m > 3. The gain is `(m-3)^2 psi (2 variance - psi) E[1/SS]`.

    Assumptions: normal model; psi fixed in advance.

    Examples
    --------
    >>> print(constant_psi(1.5, variance=1.0))
    holds: 1.5 < 2. A constant psi helps if and only if it is below twice the variance of the aggregates.
    """
    guess = number("psi", psi, "not negative")
    bound = 2.0 * number("variance", variance, "positive")
    text = "A constant psi helps if and only if it is below twice the variance of the aggregates."
    if guess == 0:
        text += " At 0 nothing is shrunk."
    return Verdict(0 < guess < bound, guess, bound, "<", True, text)


def independent_psi(
    psi: ArrayLike, variance: float, probabilities: ArrayLike | None = None
) -> Verdict:
    """Check a random psi that is independent of X: it helps if and only if `E(psi - variance)^2 < variance^2`.

    Parameters
    ----------
    psi
        Values that psi takes.
    variance
        True variance of an aggregate.
    probabilities
        Probabilities of the values; equal unless given.

    Notes
    -----
    The root mean square error of the variance estimate must be below 100 %. This is equivalent to the paper's
    `E[psi^2] < 2 variance E[psi]`. The expectations are over the given values: if they are only a sample of psi, the
    verdict is about the sample.

    Assumptions: normal model; psi independent of X, for example from residuals of normal answers.

    Examples
    --------
    >>> independent_psi([0.5, 2.4], variance=1.0).holds, independent_psi([1.0, 2.4], variance=1.0).holds
    (False, True)
    """
    values = numbers("psi", psi, "not negative")
    noise = number("variance", variance, "positive")
    chance = _chances(probabilities, len(values))
    error = values - noise
    text = (
        "A psi independent of X helps if and only if its mean squared error is below the square of the variance, "
        "which is to say E[psi^2] < 2 variance E[psi]."
    )
    # As a sum of psi (psi - 2 variance): does not lose the small difference of two large numbers.
    excess = float(chance @ (values * (values - 2.0 * noise)))
    return Verdict(excess < 0, float(chance @ (error * error)), noise * noise, "<", True, text)


def mean_adjusted_psi(
    samples: ArrayLike, psi: ArrayLike, variance: float, slopes: ArrayLike | None = None
) -> Verdict:
    """Check a psi that grows with the spread of X: it does no harm if `E[psi^2/SS] <= 2 variance E[psi/SS]`.

    Parameters
    ----------
    samples
        Repeated aggregates, shape (samples, questions).
    psi
        Variance estimate of each sample.
    variance
        True variance of an aggregate.
    slopes
        Slope of psi for each sample (see `normal_model.slope`). Where given, they must not be negative.

    Notes
    -----
    A psi is mean-adjusted if its derivative with respect to X_j has the sign of `X_j - Xbar` for all j. The derivative
    term of the risk is then at least 0, and dropping it leaves an upper bound. Only the sum over j matters, so it is
    enough that the slope is not negative. The condition is sufficient, not necessary. The paper states a strict
    inequality; for a constant psi equality is possible, hence "at most" here.

    Assumptions: normal model; psi mean-adjusted.

    Raises
    ------
    TrueupError
        If a slope is negative: the corollary does not apply to such a psi.
    """
    x = repeated(samples)
    value = per_sample("psi", psi, len(x))
    noise = number("variance", variance, "positive")
    _, squares = centred("samples", x)
    if slopes is not None:
        slope = per_sample("slopes", slopes, len(x), "any")
        negative = slope < -ROUNDING * value / squares
        if negative.any():
            raise TrueupError(
                f"slopes: found {slope[negative][0]:.6g}. A mean-adjusted psi has no negative slope; "
                "use normal_risk instead."
            )
    left, right = value * value / squares, 2.0 * noise * value / squares
    difference = Measured.mean(left - right)
    text = (
        "A psi that grows with the spread of X does no harm if E[psi^2/SS] is at most 2 variance E[psi/SS]; "
        "otherwise this test is inconclusive."
    )
    return Verdict(
        difference.value <= 0,
        float(left.mean()),
        float(right.mean()),
        "<=",
        False,
        text,
        difference.std_error,
    )


def spread_psi(
    scale: float,
    m: SupportsIndex,
    variance: float,
    truth_variance: float,
    version: Literal["exact", "printed"] = "exact",
) -> Verdict:
    """Check `psi = scale S^2`, `S^2 = SS/(m-1)`: it helps if and only if `scale E[S^2] < 2 variance (m-1)/(m-3)`.

    Parameters
    ----------
    scale
        Factor c of the sample variance of the aggregates.
    m
        Number of questions.
    variance
        True variance of an aggregate.
    truth_variance
        `S^2(mu) = SS(mu)/(m-1)`, the sample variance of the truths.
    version
        "exact", or "printed": the paper's `c E[S^2] < 2 variance` (for c = 1), which is only sufficient.

    Notes
    -----
    The shrinkage is a constant, `b = c (m-3)/(m-1)`, so the risk is elementary:
    `m s + (m-1) b (b (s + S^2(mu)) - 2 s)`, below `m s` if and only if
    `b (s + S^2(mu)) < 2 s`. `E[S^2] = s + S^2(mu)` exactly. For c = 1 this reads
    `S^2(mu) < s (m+1)/(m-3)`. The printed version drops the derivative term, a factor (m-1)/(m-3).

    Assumptions: uncorrelated, unbiased aggregates of one variance; normality is not needed here.

    Examples
    --------
    >>> spread_psi(1.0, m=5, variance=1.0, truth_variance=2.9).holds
    True
    >>> spread_psi(1.0, m=5, variance=1.0, truth_variance=2.9, version="printed").holds
    False
    """
    one_of("version", version, ("exact", "printed"))
    factor = number("scale", scale, "not negative")
    questions = count("m", m)
    noise = number("variance", variance, "positive")
    left = factor * (noise + number("truth_variance", truth_variance, "not negative"))
    if version == "exact":
        right = 2.0 * noise * (questions - 1) / (questions - 3)
        text = "psi = c S^2 helps if and only if c E[S^2] is below 2 variance (m-1)/(m-3)."
    else:
        right = 2.0 * noise
        text = "psi = c S^2 helps if c E[S^2] is below twice the variance; sufficient only."
    return Verdict(0 < left < right, left, right, "<", version == "exact", text)


def guessed_variances(guesses: ArrayLike, variances: ArrayLike) -> Verdict:
    """Check guesses of the variances of workers: they help if and only if the guessed variance is below twice the true.

    Parameters
    ----------
    guesses
        Guessed variances, one per worker, by which the answers are weighted.
    variances
        True variances.

    Notes
    -----
    Weights `p_i` proportional to `1/guess_i` give an aggregate of true variance `sum_i p_i^2 sigma_i^2` and guessed
    variance `sum_i p_i^2 guess_i = 1 / sum_i 1/guess_i`. This is a constant psi. Sufficient: `guess_i < 2 sigma_i^2`
    for all workers. This is the paper's corollary on an oracle with guesses, where the true variance is printed without
    its index i.

    Assumptions: normal unbiased answers of independent workers; guesses fixed in advance. The comparison is with the
    aggregate that has the same weights, not with BLUE.

    Examples
    --------
    >>> guessed_variances([1.9, 5.0], [1.0, 4.0]).holds
    True
    """
    guess = numbers("guesses", guesses, "positive")
    truth = numbers("variances", variances, "positive")
    if len(guess) != len(truth):
        raise TrueupError(f"guesses: found {len(guess)} for {len(truth)} variances.")
    guessed = blue_variance(guess)
    bound = 2.0 * linear_variance(blue_weights(guess), truth)
    over = int((guess >= 2.0 * truth).sum())
    text = (
        "Guessed variances help if and only if they give the aggregate less than twice its true variance; "
        f"{over} of {len(guess)} guesses are twice the true variance or more."
    )
    return Verdict(guessed < bound, guessed, bound, "<", True, text)


def largest_scale(samples: ArrayLike, psi: ArrayLike, truth: ArrayLike | None = None) -> Measured:
    """Return the largest k such that any smaller multiple of psi helps: `k = 2 alpha* / (m - 3)`.

    Parameters
    ----------
    samples, psi, truth
        As in `general_condition`.

    Notes
    -----
    With `k psi` in place of psi, the covariance term of the general condition grows like k, the other like k^2: a psi
    close enough to 0 satisfies it, provided that `sum_j Cov(X_j, Z_j) > 0`. Under the normal model with constant psi
    this is always so, and k is `2 variance / psi`. In general it is not. Errors that stretch or compress all truths
    together make the sum negative, and so does a psi that falls steeply with SS. The returned value is then not
    positive, and no multiple of psi helps.

    Assumptions: those of the general condition; no normality.
    """
    measured = general_condition(samples, psi, truth)
    best, error = measured.alpha_star
    return Measured(2.0 * best / (measured.m - 3), 2.0 * error / (measured.m - 3))


def _chances(probabilities: ArrayLike | None, size: int) -> Floats:
    """Return probabilities of `size` values, equal unless given."""
    if probabilities is None:
        return np.full(size, 1.0 / size)
    chance = numbers("probabilities", probabilities, "not negative")
    if len(chance) != size:
        raise TrueupError(f"probabilities: found {len(chance)} for {size} values of psi.")
    total = float(chance.sum())
    if abs(total - 1.0) > ROUNDING:
        raise TrueupError(
            f"probabilities: their sum is {total:.9g}. Give probabilities with sum 1."
        )
    return chance
