"""Each corollary on both sides of its boundary, against the risk it speaks about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given

from trueup import theory
from trueup.errors import TrueupError

if TYPE_CHECKING:
    from trueup.core.arrays import Floats

TRUTH = np.array([0.0, 0.3, -1.2, 2.0, 1.1, -0.4, 0.9, 1.6, -0.8, 0.5])
M = len(TRUTH)
N = 100_000
S = 0.7
POSITIVE = st.floats(0.01, 100.0)


def squares(x: Floats) -> Floats:
    deviations = x - x.mean(axis=1, keepdims=True)
    return np.asarray((deviations**2).sum(axis=1))


def simulated_gain(x: Floats, psi: Floats | float, truth: Floats = TRUTH) -> theory.Measured:
    """Loss of the aggregates less that of the empirical Bayes estimate, sample by sample."""
    centre = x.mean(axis=1, keepdims=True)
    share = np.broadcast_to((x.shape[1] - 3) * psi / squares(x), len(x))[:, None]
    estimate = centre + (1 - share) * (x - centre)
    return theory.Measured.mean(((x - truth) ** 2 - (estimate - truth) ** 2).sum(axis=1))


def exact_gain_of(psi: theory.TwoPoint) -> float:
    """Mean over both values of the gain for a constant, at the truths."""
    gains = [
        M * psi.variance - theory.risk_given_truth(TRUTH, psi.variance, value)
        for value in psi.values
    ]
    return float(psi.probabilities @ gains)


@pytest.fixture(scope="module")
def normal() -> Floats:
    return np.asarray(TRUTH + S**0.5 * np.random.default_rng(31).normal(size=(N, M)))


# Constant and independent psi


@given(psi=POSITIVE, variance=POSITIVE)
def test_constant_psi_helps_exactly_where_its_risk_is_lower(psi: float, variance: float) -> None:
    assume(abs(psi - 2 * variance) > 1e-6 * variance)
    verdict = theory.constant_psi(psi, variance)
    assert verdict.exact
    assert verdict.holds is (theory.risk_given_truth(TRUTH, variance, psi) < M * variance)


def test_constant_psi_at_its_ends() -> None:
    assert not theory.constant_psi(0.0, 1.0).holds
    assert theory.constant_psi(1e-9, 1.0).holds
    assert not theory.constant_psi(2.0, 1.0).holds


@pytest.mark.parametrize(("far", "helps"), [(2.3, True), (2.5, False)])
def test_independent_psi_on_both_sides(normal: Floats, far: float, helps: bool) -> None:
    """Psi is 0.8 or `far` times the variance: at 1 + sqrt(1.96) = 2.4 its error is 100 %."""
    values = S * np.array([0.8, far])
    verdict = theory.independent_psi(values, S)
    assert verdict.holds is helps
    assert (verdict.left < verdict.right) is helps
    psi = values[np.random.default_rng(32).integers(2, size=N)]
    gain, error = simulated_gain(normal, psi)
    assert abs(gain) > 4 * error
    assert (gain > 0) is helps


@given(
    values=st.lists(st.floats(0.0, 10.0).map(lambda v: round(v, 6)), min_size=1, max_size=6),
    variance=POSITIVE,
)
def test_both_forms_of_the_independent_condition_agree(
    values: list[float], variance: float
) -> None:
    psi = np.array(values)
    left, right = (psi**2).mean(), 2 * variance * psi.mean()
    assume(abs(left - right) > 1e-9 * max(left, right))
    verdict = theory.independent_psi(psi, variance)
    assert verdict.holds is bool(left < right)
    assert verdict.left - verdict.right == pytest.approx(left - right, rel=1e-6, abs=1e-6)


def test_probabilities_weigh_the_values() -> None:
    assert theory.independent_psi([1.0, 9.0], 1.0, [0.99, 0.01]).holds
    assert not theory.independent_psi([1.0, 9.0], 1.0, [0.9, 0.1]).holds
    with pytest.raises(TrueupError, match=r"^probabilities: their sum is 0\.9"):
        theory.independent_psi([1.0, 9.0], 1.0, [0.5, 0.4])


# Psi that grows with the spread


@pytest.mark.parametrize("scale", [0.2, 0.5, 0.9])
def test_mean_adjusted_psi_that_passes_does_no_harm(normal: Floats, scale: float) -> None:
    psi = scale * np.sqrt(1 + squares(normal))
    verdict = theory.mean_adjusted_psi(normal, psi, S)
    gain, error = simulated_gain(normal, psi)
    assert verdict.holds is (scale < 0.4)
    if verdict.holds:
        assert gain > 4 * error


def test_mean_adjusted_test_is_only_sufficient(normal: Floats) -> None:
    psi = 0.37 * np.sqrt(1 + squares(normal))
    verdict = theory.mean_adjusted_psi(normal, psi, S)
    assert not verdict.exact
    assert not verdict.holds
    assert verdict.std_error is not None
    assert verdict.left - verdict.right > 4 * verdict.std_error
    gain, error = simulated_gain(normal, psi)
    assert gain > 4 * error


def test_mean_adjusted_test_of_a_constant_allows_equality(normal: Floats) -> None:
    """Psi of twice the variance neither helps nor harms: "at most" is the most that can be said."""
    assert theory.mean_adjusted_psi(normal, 2 * S, S).holds
    assert not theory.constant_psi(2 * S, S).holds


def test_slopes_below_zero_are_refused(normal: Floats) -> None:
    def shy(x: Floats) -> Floats:
        return np.asarray(1 / squares(x))

    rows = normal[:50]
    with pytest.raises(TrueupError, match=r"^slopes: found -"):
        theory.mean_adjusted_psi(rows, shy(rows), S, theory.slope(shy, rows))
    # Rounding in a numerical slope of 0 is not a slope.
    flat = theory.numerical_slope(theory.ConstantPsi(S), rows)
    assert theory.mean_adjusted_psi(rows, S, S, flat).holds


@given(
    scale=POSITIVE,
    m=st.integers(4, 200),
    variance=POSITIVE,
    truth_variance=st.floats(0.01, 100.0),
)
def test_spread_psi_helps_exactly_where_its_risk_is_lower(
    scale: float, m: int, variance: float, truth_variance: float
) -> None:
    """A constant shrinkage b: (1-b)^2 of the noise within, b^2 of the spread of the truths."""
    b = scale * (m - 3) / (m - 1)
    change = (m - 1) * ((1 - b) ** 2 * variance + b**2 * truth_variance - variance)
    assume(abs(change) > 1e-9 * (m - 1) * (1 + b) ** 2 * (variance + truth_variance))
    exact = theory.spread_psi(scale, m, variance, truth_variance)
    printed = theory.spread_psi(scale, m, variance, truth_variance, "printed")
    assert exact.exact
    assert exact.holds is (change < 0)
    assert not printed.exact
    assert exact.holds or not printed.holds


@pytest.mark.parametrize("scale", [0.5, 1.0, 1.7])
@pytest.mark.parametrize(("side", "helps"), [(0.93, True), (1.07, False)])
def test_spread_psi_in_simulation(scale: float, side: float, helps: bool) -> None:
    """Truths spread to just below and just above the limit; the printed version rejects both."""
    limit = S * (2 * (M - 1) / (scale * (M - 3)) - 1)
    truth = TRUTH * (side * limit / TRUTH.var(ddof=1)) ** 0.5
    x = truth + S**0.5 * np.random.default_rng(33).normal(size=(N, M))
    gain, error = simulated_gain(x, theory.SpreadPsi(scale)(x), truth)
    assert abs(gain) > 4 * error
    assert (gain > 0) is helps
    assert theory.spread_psi(scale, M, S, side * limit).holds is helps
    assert not theory.spread_psi(scale, M, S, side * limit, "printed").holds


def test_spread_psi_at_scale_1_is_the_simple_bound() -> None:
    limit = S * (M + 1) / (M - 3)
    assert theory.spread_psi(1.0, M, S, 0.999999 * limit).holds
    assert not theory.spread_psi(1.0, M, S, 1.000001 * limit).holds


# Guessed workers


@given(
    pairs=st.lists(st.tuples(POSITIVE, POSITIVE), min_size=1, max_size=8),
)
def test_guessed_variances_are_a_constant_psi(pairs: list[tuple[float, float]]) -> None:
    guesses, variances = np.array(pairs).T
    weights = theory.blue_weights(guesses)
    true = theory.linear_variance(weights, variances)
    believed = theory.linear_variance(weights, guesses)
    assume(abs(believed - 2 * true) > 1e-6 * true)
    verdict = theory.guessed_variances(guesses, variances)
    assert verdict.holds is theory.constant_psi(believed, true).holds
    if (guesses < 2 * variances).all():
        assert verdict.holds


def test_one_guess_may_be_far_off() -> None:
    verdict = theory.guessed_variances([1.0, 100.0], [1.0, 1.0])
    assert verdict.holds
    assert "1 of 2 guesses" in verdict.text
    assert not theory.guessed_variances([2.1, 2.1], [1.0, 1.0]).holds
    assert theory.guessed_variances([1.9, 1.9], [1.0, 1.0]).holds


# How near psi must be


@pytest.mark.parametrize(("epsilon", "holds"), [(0.99, True), (1.01, False)])
def test_within_epsilon(epsilon: float, holds: bool) -> None:
    assert theory.within_epsilon(epsilon, 1.0).holds is holds
    ends = [theory.constant_psi(max(1.0 + sign * epsilon, 0.0), 1.0).holds for sign in (-1, 1)]
    assert all(ends) is holds


def test_counterexample_breaks_the_printed_corollary_only() -> None:
    case = theory.COUNTEREXAMPLE
    assert abs(case.near - case.variance) <= case.epsilon
    assert max(case.near, case.far) <= case.bound

    def holds(version: Literal["tight", "squared", "printed"]) -> bool:
        constants = (case.epsilon, case.delta, case.bound, case.variance)
        return theory.mostly_within_epsilon(*constants, version).holds

    assert holds("printed")
    assert not theory.independent_psi(case.values, case.variance, case.probabilities).holds
    assert exact_gain_of(case) < 0
    assert not holds("squared")
    assert not holds("tight")


@given(epsilon=POSITIVE, delta=st.floats(0.01, 1.0), bound=POSITIVE, variance=POSITIVE)
def test_tight_version_decides_about_the_worst_psi(
    epsilon: float, delta: float, bound: float, variance: float
) -> None:
    assume(bound >= variance - epsilon)
    worst = theory.worst_psi(epsilon, delta, bound, variance)
    assert abs(worst.near - variance) <= epsilon * (1 + 1e-12)
    assert max(worst.near, worst.far) <= max(bound, variance - epsilon)
    verdict = theory.mostly_within_epsilon(epsilon, delta, bound, variance)
    assume(abs(verdict.left - verdict.right) > 1e-9 * (abs(verdict.left) + abs(verdict.right)))
    helps = theory.independent_psi(worst.values, variance, worst.probabilities).holds
    assert verdict.holds is helps


@pytest.mark.parametrize(("delta", "bound"), [(0.9, 3.0), (0.6, 2.2), (0.99, 8.0)])
def test_tight_version_turns_where_the_worst_psi_does(delta: float, bound: float) -> None:
    def mean_excess(epsilon: float) -> float:
        return delta * (epsilon**2 - 1) + (1 - delta) * bound * (bound - 2)

    limit = (1 - (1 - delta) / delta * bound * (bound - 2)) ** 0.5
    for epsilon, helps in ((0.999 * limit, True), (1.001 * limit, False)):
        assert (mean_excess(epsilon) < 0) is helps
        assert theory.mostly_within_epsilon(epsilon, delta, bound, 1.0).holds is helps
        worst = theory.worst_psi(epsilon, delta, bound, 1.0)
        assert theory.independent_psi(worst.values, 1.0, worst.probabilities).holds is helps
        assert (exact_gain_of(worst) > 0) is helps


@given(
    epsilon=st.floats(0.0, 1.5),
    delta=st.floats(0.05, 1.0),
    bound=st.floats(1.0, 6.0),
    seed=st.integers(0, 2**32 - 1),
)
def test_corrected_versions_are_sufficient(
    epsilon: float, delta: float, bound: float, seed: int
) -> None:
    """Any psi with these constants, here a random one with five values, helps where a corrected version holds."""
    tight = theory.mostly_within_epsilon(epsilon, delta, bound, 1.0)
    squared = theory.mostly_within_epsilon(epsilon, delta, bound, 1.0, "squared")
    assert tight.holds or not squared.holds
    assume(tight.holds)
    rng = np.random.default_rng(seed)
    near = rng.uniform(1 - epsilon, min(1 + epsilon, bound), size=2)
    far = rng.uniform(0.0, bound, size=3)
    chance = np.append(np.full(2, delta / 2), np.full(3, (1 - delta) / 3))
    assert theory.independent_psi(np.append(near, far), 1.0, chance).holds


def test_tight_version_accepts_what_the_squared_one_rejects() -> None:
    constants = (0.5, 0.9, 2.8, 1.0)
    assert theory.mostly_within_epsilon(*constants).holds
    assert not theory.mostly_within_epsilon(*constants, "squared").holds
    assert theory.mostly_within_epsilon(0.5, 0.9, 2.5, 1.0, "squared").holds
    # Always near: only epsilon < variance is left.
    assert theory.mostly_within_epsilon(0.999, 1.0, 1e9, 1.0).holds
    assert not theory.mostly_within_epsilon(1.001, 1.0, 1e9, 1.0).holds


def test_constants_that_no_psi_has_are_refused() -> None:
    with pytest.raises(TrueupError, match=r"^bound: found 1"):
        theory.mostly_within_epsilon(10.0, 0.5, bound=1.0, variance=100.0)


# Psi near 0


def test_largest_scale_of_a_constant_is_twice_the_variance(normal: Floats) -> None:
    scale, error = theory.largest_scale(normal, 0.35)
    assert abs(scale - 2 * S / 0.35) < 4 * error
    assert scale == pytest.approx(4.0, rel=0.01)


def test_largest_scale_is_where_the_condition_turns(normal: Floats) -> None:
    psi = np.random.default_rng(34).gamma(3.0, 0.5, size=N)
    scale = theory.largest_scale(normal, psi).value
    for share, helps in ((1e-6, True), (0.5, True), (0.999, True), (1.001, False), (3.0, False)):
        assert theory.general_condition(normal, share * scale * psi).improves is helps


def test_no_scale_helps_where_errors_stretch_all_truths_together() -> None:
    """Not even psi near 0: workers who stretch or compress the whole scale alike are not noise to be shrunk."""
    rng = np.random.default_rng(35)
    stretch = rng.choice([-0.4, 0.4], size=(N, 1))
    x = TRUTH + stretch * (TRUTH - TRUTH.mean()) + 0.05 * rng.normal(size=(N, M))
    scale, error = theory.largest_scale(x, 0.1)
    assert scale < -4 * error
    gain, gain_error = simulated_gain(x, 1e-3)
    assert gain < -4 * gain_error


def test_no_scale_helps_for_a_psi_that_falls_steeply_with_the_spread(normal: Floats) -> None:
    """Under normal errors psi = SS^-q needs 2 q < m - 3."""
    assert theory.largest_scale(normal, 1e6 * squares(normal) ** -5.0).value < 0
    assert theory.largest_scale(normal, squares(normal) ** -1.0).value > 0


def test_a_verdict_can_be_quoted(normal: Floats) -> None:
    assert str(theory.constant_psi(3.0, 1.0)).startswith("does not hold: 3 < 2. A constant psi")
    text = str(theory.mean_adjusted_psi(normal[:100], 0.7, 0.7))
    assert text.startswith("holds: ")
    assert "(difference ± " in text
