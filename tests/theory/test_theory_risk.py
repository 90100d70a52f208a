"""Closed forms of the theory against simulation, quadrature and each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from scipy import integrate, stats

from repository import vectors
from trueup import theory

if TYPE_CHECKING:
    from trueup.core.arrays import Floats

TRUTH = np.array([0.0, 0.3, -1.2, 2.0, 1.1, -0.4, 0.9, 1.6, -0.8, 0.5])
M = len(TRUTH)
N = 200_000
VARIANCES = np.arange(1.0, 6.0) ** 2  # five workers with standard deviations 1 to 5
CLOSED_FORM = vectors()["known_competence_closed_form"]["rows"]


def squares(x: Floats) -> Floats:
    deviations = x - x.mean(axis=1, keepdims=True)
    return np.asarray((deviations**2).sum(axis=1))


def eb_losses(x: Floats, truth: Floats, guess: float, alpha: float) -> Floats:
    centre = x.mean(axis=1, keepdims=True)
    estimate = centre + (1 - alpha * guess / squares(x))[:, None] * (x - centre)
    return np.asarray(((estimate - truth) ** 2).sum(axis=1))


def assert_mean(values: Floats, expected: float, relative: float = 0.01) -> None:
    """The mean is the expected one, within four standard errors and within a share of it."""
    error = values.std(ddof=1) / len(values) ** 0.5
    assert abs(values.mean() - expected) < 4 * error
    assert values.mean() == pytest.approx(expected, rel=relative)


@pytest.fixture(scope="module")
def fixed() -> Floats:
    """Aggregates of variance 0.7 around the same truths."""
    return np.asarray(TRUTH + 0.7**0.5 * np.random.default_rng(11).normal(size=(N, M)))


@pytest.fixture(scope="module")
def drawn() -> tuple[Floats, Floats]:
    """Truths N(2, 1.5), and aggregates of variance 0.7 around them."""
    rng = np.random.default_rng(12)
    truth = 2.0 + 1.5**0.5 * rng.normal(size=(N, M))
    return truth, truth + 0.7**0.5 * rng.normal(size=(N, M))


# A known prior


def test_posterior_is_prior_times_likelihood() -> None:
    grid = np.linspace(-30.0, 30.0, 60_001)
    density = np.exp(-((grid - 1.0) ** 2) / (2 * 2.5) - (3.7 - grid) ** 2 / (2 * 0.8))
    density /= density.sum()
    mean = density @ grid

    posterior = theory.bayes_estimate([3.7], variance=0.8, prior_mean=1.0, prior_variance=2.5)

    assert posterior.mean[0] == pytest.approx(mean, rel=1e-9)
    assert posterior.variance == pytest.approx(density @ (grid - mean) ** 2, rel=1e-9)


def test_a_prior_without_spread_is_believed() -> None:
    posterior = theory.bayes_estimate([3.0, 5.0], 1.0, prior_mean=4.0, prior_variance=0.0)
    assert posterior.mean.tolist() == [4.0, 4.0]
    assert (posterior.variance, posterior.shrinkage) == (0.0, 1.0)


def test_bayes_risk_is_the_risk_of_the_bayes_estimate(drawn: tuple[Floats, Floats]) -> None:
    truth, x = drawn
    posterior = theory.bayes_estimate(x.ravel(), 0.7, prior_mean=2.0, prior_variance=1.5)
    losses = ((posterior.mean.reshape(x.shape) - truth) ** 2).sum(axis=1)
    assert_mean(losses, theory.bayes_risk(M, 0.7, 1.5))


def test_bayes_risk_is_below_that_of_the_empirical_bayes_estimate() -> None:
    for m in (4, 10, 1000):
        assert theory.bayes_risk(m, 0.7, 1.5) < theory.risk_under_prior(m, 0.7, 1.5)
    assert theory.risk_under_prior(10**6, 0.7, 1.5) == pytest.approx(
        theory.bayes_risk(10**6, 0.7, 1.5), rel=1e-5
    )


@pytest.mark.parametrize("m", [4, 5, 10, 83, 1000, 10**6])
def test_both_sides_of_the_marginal_identity_agree(m: int) -> None:
    left, right = theory.marginal_identity(m, 0.7, 1.5)
    assert right == 1 / (m - 3)
    assert left == pytest.approx(right, rel=1e-12)


def test_marginal_identity_in_simulation(drawn: tuple[Floats, Floats]) -> None:
    assert_mean((0.7 + 1.5) / squares(drawn[1]), theory.marginal_identity(M, 0.7, 1.5).left)


# BLUE


def test_variance_of_a_linear_estimate_in_simulation() -> None:
    weights = np.array([0.6, -0.1, 0.2, 0.2, 0.1])
    answers = 3.0 + VARIANCES**0.5 * np.random.default_rng(5).normal(size=(N, 5))
    assert_mean((answers @ weights - 3.0) ** 2, theory.linear_variance(weights, VARIANCES), 0.02)


def test_blue_variance_is_that_of_its_weights() -> None:
    weights = theory.blue_weights(VARIANCES)
    assert weights.sum() == pytest.approx(1.0)
    assert theory.linear_variance(weights, VARIANCES) == pytest.approx(
        theory.blue_variance(VARIANCES)
    )
    assert theory.blue_risk(10, VARIANCES) == pytest.approx(6.8324, rel=1e-5)


@given(
    variances=st.lists(st.floats(0.01, 100.0), min_size=2, max_size=8),
    seed=st.integers(0, 2**32 - 1),
)
def test_no_unbiased_weights_are_better_than_blue(variances: list[float], seed: int) -> None:
    best = theory.blue_weights(variances)
    change = np.random.default_rng(seed).normal(size=len(variances))
    change -= change.mean()  # keeps the sum of the weights at 1
    excess = theory.linear_variance(best + change, variances) - theory.blue_variance(variances)
    assert excess == pytest.approx((change**2) @ np.array(variances), rel=1e-6)
    assert excess >= 0


def test_blue_is_sufficient() -> None:
    """Given BLUE, another unbiased estimate scatters around BLUE in the same way whatever the truth is."""
    rng = np.random.default_rng(6)
    truth = rng.normal(2.0, 3.0, size=N)
    answers = truth[:, None] + VARIANCES**0.5 * rng.normal(size=(N, 5))
    blue = answers @ theory.blue_weights(VARIANCES)
    other = answers.mean(axis=1)

    rest = other - blue
    design = np.stack([np.ones(N), blue, truth], axis=1)
    coefficients, *_ = np.linalg.lstsq(design, rest, rcond=None)
    residuals = rest - design @ coefficients
    errors = residuals.std() * np.sqrt(np.diag(np.linalg.inv(design.T @ design)))
    assert (np.abs(coefficients) < 4 * errors).all()
    # The mean is no such summary: given the mean, BLUE still tells the truth.
    design[:, 1] = other
    coefficients, *_ = np.linalg.lstsq(design, -rest, rcond=None)
    assert abs(coefficients[2]) > 100 * errors[2]


# The mean of 1/SS


@pytest.mark.parametrize("m", [4, 5, 11, 84, 2000])
@pytest.mark.parametrize("noncentrality", [0.0, 0.01, 3.0, 79.0, 5000.0])
def test_mean_of_inverse_ss_is_the_poisson_mixture(m: int, noncentrality: float) -> None:
    truth = np.zeros(m)
    truth[0] = (noncentrality * m / (m - 1)) ** 0.5  # SS(mu) = noncentrality
    centre = noncentrality / 2
    reach = 14 * centre**0.5 + 60
    j = np.arange(max(0, int(centre - reach)), int(centre + reach))
    chance = stats.poisson.pmf(j, centre)
    mixture = (chance / chance.sum()) @ (1 / (m - 3.0 + 2 * j))

    assert theory.inverse_ss(truth, 1.0) == pytest.approx(mixture, rel=1e-11)
    assert theory.inverse_ss(2 * truth, 4.0) == pytest.approx(mixture / 4, rel=1e-11)


def test_mean_of_inverse_ss_is_the_integral_over_its_density() -> None:
    spread = ((TRUTH - TRUTH.mean()) ** 2).sum() / 0.7
    value, _ = integrate.quad(lambda q: stats.ncx2.pdf(q, M - 1, spread) / q, 0, np.inf)
    assert theory.inverse_ss(TRUTH, 0.7) == pytest.approx(value / 0.7, rel=1e-7)


def test_mean_of_inverse_ss_in_simulation(fixed: Floats) -> None:
    assert_mean(1 / squares(fixed), theory.inverse_ss(TRUTH, 0.7))


@given(
    truth=st.lists(st.floats(-50.0, 50.0), min_size=4, max_size=30),
    variance=st.floats(0.01, 100.0),
)
def test_bounds_of_the_mean_of_inverse_ss(truth: list[float], variance: float) -> None:
    lower, upper = theory.inverse_ss_bounds(truth, variance)
    exact = theory.inverse_ss(truth, variance)
    assert lower * (1 - 1e-12) <= exact <= upper * (1 + 1e-12)


def test_bounds_meet_where_all_truths_are_equal() -> None:
    lower, upper = theory.inverse_ss_bounds([5.0] * 7, 2.0)
    assert lower == pytest.approx(1 / 8)
    assert upper == pytest.approx(1 / 8)


# Risks


@pytest.mark.parametrize(("guess", "alpha"), [(0.7, 7.0), (0.7, 3.0), (1.3, 7.0), (2.0, 9.0)])
def test_risk_given_the_truths_in_simulation(fixed: Floats, guess: float, alpha: float) -> None:
    expected = theory.risk_given_truth(TRUTH, 0.7, guess, alpha)
    assert_mean(eb_losses(fixed, TRUTH, guess, alpha), expected)


@pytest.mark.parametrize(("guess", "alpha"), [(0.7, 7.0), (0.2, 7.0), (1.7, 7.0), (0.7, 4.0)])
def test_risk_under_a_normal_prior_in_simulation(
    drawn: tuple[Floats, Floats], guess: float, alpha: float
) -> None:
    truth, x = drawn
    expected = theory.risk_under_prior(M, 0.7, 1.5, guess, alpha)
    assert_mean(eb_losses(x, truth, guess, alpha), expected)


def test_defaults_are_the_known_variance_and_m_minus_3() -> None:
    assert theory.risk_given_truth(TRUTH, 0.7) == theory.risk_given_truth(TRUTH, 0.7, 0.7, 7.0)
    assert theory.risk_under_prior(M, 0.7, 1.5) == pytest.approx(7 - 7 * 0.49 / 2.2)


def test_risk_under_the_prior_is_the_mean_of_the_risk_given_the_truths() -> None:
    truths = 1.5**0.5 * np.random.default_rng(3).normal(size=(4000, M))
    risks = np.array([theory.risk_given_truth(truth, 0.7) for truth in truths])
    assert_mean(risks, theory.risk_under_prior(M, 0.7, 1.5))


@given(
    truth=st.lists(st.floats(-100.0, 100.0), min_size=4, max_size=20),
    variance=st.floats(0.1, 10.0),
)
def test_risk_is_below_the_bound_and_the_bound_below_that_of_the_aggregates(
    truth: list[float], variance: float
) -> None:
    bound = theory.casella_bound(truth, variance)
    assert theory.risk_given_truth(truth, variance) <= bound * (1 + 1e-12)
    assert bound < len(truth) * variance


def test_the_bound_is_reached_by_equal_truths_only() -> None:
    assert theory.casella_bound([3.0] * 8, 2.0) == pytest.approx(
        theory.risk_given_truth([3.0] * 8, 2.0)
    )
    assert theory.casella_bound(TRUTH, 0.7) > 1.01 * theory.risk_given_truth(TRUTH, 0.7)


@pytest.mark.parametrize("row", CLOSED_FORM, ids=lambda row: f"n={row['n']} m={row['m']}")
def test_known_competence_as_tabulated(row: dict[str, Any]) -> None:
    variances = np.arange(1.0, row["n"] + 1) ** 2
    assert theory.blue_variance(variances) == pytest.approx(row["sigma_tilde2"], rel=1e-12)
    blue, eb = row["risk_blue_per_question"], row["risk_ebblue_per_question"]
    assert theory.blue_risk(row["m"], variances) / row["m"] == pytest.approx(blue, rel=1e-12)
    assert theory.ebblue_risk(row["m"], variances, 1.0) / row["m"] == pytest.approx(eb, rel=1e-12)


def test_known_competence_in_simulation() -> None:
    """The set-up of the paper: truths N(2, 1), five workers with standard deviations 1 to 5, ten questions."""
    rng = np.random.default_rng(7)
    truth = rng.normal(2.0, 1.0, size=(N, M))
    blue = np.zeros((N, M))
    for weight, variance in zip(theory.blue_weights(VARIANCES), VARIANCES, strict=True):
        blue += weight * (truth + variance**0.5 * rng.normal(size=(N, M)))
    known = theory.blue_variance(VARIANCES)
    assert_mean(((blue - truth) ** 2).mean(axis=1), 0.68324)
    assert_mean(eb_losses(blue, truth, known, M - 3) / M, 0.48911)


def test_biased_variance_curve() -> None:
    s, t = theory.blue_variance(VARIANCES), 1.0
    guesses = np.array([0.0, 0.5 * s, s, 1.9 * s, 2.0 * s, 2.1 * s])
    curve = theory.biased_variance_risk(guesses, M, s, t)
    for guess, risk in zip(guesses, curve, strict=True):
        assert risk == pytest.approx(theory.risk_under_prior(M, s, t, guess))
    assert curve.argmin() == 2
    assert curve[0] == pytest.approx(M * s)
    assert curve[4] == pytest.approx(M * s)
    assert curve[3] < M * s < curve[5]


# Many questions


def test_shrinkage_tends_to_that_of_the_bayes_estimate() -> None:
    rng = np.random.default_rng(8)
    limit = theory.shrinkage_limit(0.7, 1.5)
    assert limit == theory.bayes_estimate([0.0], 0.7, 0.0, 1.5).shrinkage
    m = 400_000
    truth = rng.exponential(1.5**0.5, size=m)  # variance 1.5, and not normal
    x = (truth + 0.7**0.5 * rng.normal(size=m))[None, :]
    b = (m - 3) / squares(x)[0]
    assert 0.7 * b == pytest.approx(limit, rel=0.02)
    assert 2.0 * b == pytest.approx(theory.shrinkage_limit(0.7, 1.5, guess=2.0), rel=0.02)


def test_moments_of_the_shrinkage_in_simulation() -> None:
    b = 27 * 0.7 / squares((0.7 + 1.5) ** 0.5 * np.random.default_rng(9).normal(size=(N, 30)))
    mean, std = theory.shrinkage_moments(30, 0.7, 1.5)
    assert_mean(b, mean)
    assert b.std() == pytest.approx(std, rel=0.02)
