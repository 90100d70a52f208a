"""The general condition, the risk under normal errors, and the estimated gain, against simulated losses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from trueup import theory

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.core.arrays import Floats
    from trueup.theory import Condition

TRUTH = np.array([0.0, 0.3, -1.2, 2.0, 1.1, -0.4, 0.9, 1.6, -0.8, 0.5])
M = len(TRUTH)
N = 100_000
S = 0.7


def squares(x: Floats) -> Floats:
    deviations = x - x.mean(axis=1, keepdims=True)
    return np.asarray((deviations**2).sum(axis=1))


def losses(x: Floats, psi: Floats | float, alpha: float, truth: Floats = TRUTH) -> Floats:
    centre = x.mean(axis=1, keepdims=True)
    share = np.broadcast_to(alpha * psi / squares(x), len(x))
    return np.asarray(((centre + (1 - share)[:, None] * (x - centre) - truth) ** 2).sum(axis=1))


def root_psi(x: Floats) -> Floats:
    """A smooth psi that grows with the spread, though not like it."""
    return np.asarray(np.sqrt(1.0 + squares(x)) / 5)


def lopsided_psi(x: Floats) -> Floats:
    """A smooth psi that looks at two questions only."""
    return np.asarray(0.2 + 0.1 * (x[:, 0] - x[:, 1]) ** 2 + 0.3 * np.exp(-(x[:, 2] ** 2)))


@pytest.fixture(scope="module")
def normal() -> Floats:
    return np.asarray(TRUTH + S**0.5 * np.random.default_rng(21).normal(size=(N, M)))


@pytest.fixture(scope="module")
def skew() -> tuple[Floats, Floats]:
    """Neither normal nor of one variance, with a bias shared by all questions, and a psi that is random."""
    rng = np.random.default_rng(22)
    noise = rng.exponential(1.0, size=(N, M)) * np.linspace(0.5, 1.3, M) ** 0.5
    noise -= np.linspace(0.5, 1.3, M) ** 0.5
    x = TRUTH + 5.0 + noise
    return x, rng.gamma(4.0, 0.2, size=N) + 0.01 * squares(x)


# The general condition


@pytest.mark.parametrize("alpha", [1.0, 7.0, 12.0])
def test_risk_difference_is_that_of_the_losses(skew: tuple[Floats, Floats], alpha: float) -> None:
    x, psi = skew
    direct = ((x - TRUTH - 5) ** 2).sum(axis=1) - losses(x, psi, alpha, TRUTH + 5)
    error = direct.std() / N**0.5

    seeing = theory.general_condition(x, psi, TRUTH + 5).risk_difference(alpha)
    assert seeing.value == pytest.approx(direct.mean(), rel=1e-9)
    assert seeing.std_error == pytest.approx(error, rel=1e-4)

    # With the means of X estimated as well, the result is as good and not the same.
    blind = theory.general_condition(x, psi).risk_difference(alpha)
    assert abs(blind.value - direct.mean()) < 4 * error
    assert blind.value == pytest.approx(direct.mean(), rel=0.01)


def test_a_bias_shared_by_all_questions_does_not_matter(skew: tuple[Floats, Floats]) -> None:
    x, psi = skew
    blind, seeing = theory.general_condition(x, psi), theory.general_condition(x, psi, TRUTH)
    exact = ((x - TRUTH) ** 2).sum(axis=1) - losses(x, psi, M - 3)
    assert seeing.gain.value == pytest.approx(exact.mean(), rel=1e-9)
    assert blind.gain.value == pytest.approx(exact.mean(), rel=0.01)


def test_a_bias_that_differs_needs_the_truth() -> None:
    """Aggregates that stretch the truths by half: shrinking helps more than their covariance tells."""
    x = 1.5 * TRUTH + S**0.5 * np.random.default_rng(23).normal(size=(20_000, M))
    exact = ((x - TRUTH) ** 2).sum(axis=1) - losses(x, S, M - 3)
    seeing, blind = theory.general_condition(x, S, TRUTH), theory.general_condition(x, S)
    assert seeing.gain.value == pytest.approx(exact.mean(), rel=1e-9)
    assert blind.gain.value < exact.mean() / 2


def test_alpha_star_is_where_the_gain_is_largest(skew: tuple[Floats, Floats]) -> None:
    measured = theory.general_condition(*skew)
    best = measured.alpha_star.value
    top = measured.risk_difference(best).value
    assert top == pytest.approx(measured.covariance.value**2 / measured.spread.value)
    for share in (0.5, 0.99, 1.01, 1.5):
        assert measured.risk_difference(share * best).value < top
    # An improvement exactly for alpha between 0 and twice the best.
    assert (
        measured.risk_difference(1.999 * best).value
        > 0
        > measured.risk_difference(2.001 * best).value
    )


@pytest.mark.parametrize("psi", [0.3, 0.7, 1.6])
def test_alpha_star_undoes_a_wrong_constant(normal: Floats, psi: float) -> None:
    best, error = theory.general_condition(normal, psi).alpha_star
    expected = (M - 3) * S / psi
    assert abs(best - expected) < 4 * error
    assert best == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize(("psi", "helps"), [(1.9 * S, True), (2.1 * S, False)])
def test_verdict_on_both_sides_of_twice_the_variance(
    normal: Floats, psi: float, helps: bool
) -> None:
    measured = theory.general_condition(normal, psi)
    assert measured.clear
    assert measured.improves is helps


def test_gain_is_the_risk_difference_at_m_minus_3(skew: tuple[Floats, Floats]) -> None:
    measured = theory.general_condition(*skew)
    default = measured.risk_difference()
    assert default == measured.risk_difference(M - 3)
    assert default.value == pytest.approx(measured.gain.value, rel=1e-9)
    assert default.std_error == pytest.approx(measured.gain.std_error, rel=1e-6)


def test_covariance_is_the_unbiased_one() -> None:
    rng = np.random.default_rng(28)
    x, psi = rng.normal(TRUTH, 1.0, size=(6, M)), rng.gamma(5.0, 0.2, size=6)
    step = psi[:, None] * (x - x.mean(axis=1, keepdims=True)) / squares(x)[:, None]
    expected = sum(np.cov(x[:, j], step[:, j])[0, 1] for j in range(M))
    assert theory.general_condition(x, psi).covariance.value == pytest.approx(expected)


def test_standard_errors_are_those_of_repetition() -> None:
    rng = np.random.default_rng(24)
    runs = [
        theory.general_condition(
            2 * TRUTH + rng.normal(size=(400, M)), rng.gamma(5.0, 0.2, size=400)
        )
        for _ in range(400)
    ]

    def check(pick: Callable[[Condition], theory.Measured]) -> None:
        found = [pick(run) for run in runs]
        actual = np.std([one.value for one in found])
        assert np.mean([one.std_error for one in found]) == pytest.approx(actual, rel=0.12)

    check(lambda run: run.covariance)
    check(lambda run: run.spread)
    check(lambda run: run.alpha_star)
    check(lambda run: run.gain)
    check(lambda run: run.risk_difference(3.0))


def test_a_person_can_quote_it(normal: Floats) -> None:
    text = str(theory.general_condition(normal[:2000], 0.7))
    assert text.startswith("EB^(m-3) improves on the first step: risk lower by ")
    assert "(m = 10, 2000 samples)" in text
    assert "against m - 3 = 7" in text
    assert "note:" not in text
    # At twice the variance there is nothing to gain or lose.
    assert "within the noise" in str(theory.general_condition(normal[:200], 2 * S))
    worse = str(theory.general_condition(normal[:2000], 3.0))
    assert worse.startswith("EB^(m-3) does not improve on the first step: risk higher by ")
    assert "by -" not in worse


# Resampled workers of one data set


def test_bootstrap_of_workers_is_conservative_and_says_so() -> None:
    """Its gain is about that of truths as far apart as the aggregates are, which is below the real one."""
    rng = np.random.default_rng(25)
    workers, noise = 40, 28.0
    real = theory.risk_given_truth(TRUTH, noise / workers)
    ratios, best = [], []
    for _ in range(30):
        answers = TRUTH + noise**0.5 * rng.normal(size=(workers, M))
        pick = rng.integers(workers, size=(400, workers))
        resampled = answers[pick]
        measured = theory.condition_from_bootstrap(
            resampled.mean(axis=1), resampled.var(axis=1, ddof=1).mean(axis=1) / workers
        )
        ratios.append(measured.gain.value / (M * noise / workers - real))
        best.append(measured.alpha_star.value)
    assert 0.5 < np.mean(ratios) < 0.9
    # The size of psi it can judge: alpha* comes out near m - 3.
    assert np.mean(best) == pytest.approx(M - 3, rel=0.1)
    text = str(measured)
    assert "conservative" in text
    assert "another set of workers" in text
    assert "errors that all workers share" in text


def test_bootstrap_sees_a_psi_that_is_too_large() -> None:
    rng = np.random.default_rng(26)
    answers = TRUTH + 14.0**0.5 * rng.normal(size=(20, M))
    means = answers[rng.integers(20, size=(500, 20))].mean(axis=1)
    assert theory.condition_from_bootstrap(means, 0.7).improves
    assert not theory.condition_from_bootstrap(means, 14.0).improves


# Normal errors


@pytest.mark.parametrize(
    "psi", [root_psi, lopsided_psi, theory.SpreadPsi(1.4), theory.ConstantPsi(0.9)]
)
@pytest.mark.parametrize("alpha", [None, 3.0])
def test_normal_risk_is_the_mean_loss(
    normal: Floats, psi: Callable[[Floats], Floats], alpha: float | None
) -> None:
    values = psi(normal)
    risk, error = theory.normal_risk(normal, values, S, theory.slope(psi, normal), alpha)
    direct = losses(normal, values, M - 3 if alpha is None else alpha)
    assert abs(risk - direct.mean()) < 4 * (error + direct.std() / N**0.5)
    assert risk == pytest.approx(direct.mean(), rel=0.01)


@pytest.mark.parametrize("psi", [root_psi, theory.SpreadPsi(1.4)])
def test_normal_risk_without_the_slope_is_too_large(
    normal: Floats, psi: Callable[[Floats], Floats]
) -> None:
    values = psi(normal)
    risk, error = theory.normal_risk(normal, values, S)
    assert risk > losses(normal, values, M - 3).mean() + 20 * error


def test_steins_lemma(normal: Floats) -> None:
    """E[(X - mu) g(X)] = variance E[g'(X)] for the functions by which the estimate moves."""
    x, centre = normal, normal.mean(axis=1)
    step = root_psi(x) * (x[:, 3] - centre) / squares(x)
    nudge = np.zeros(M)
    nudge[3] = 1e-5

    def at(shift: Floats) -> Floats:
        moved = x + shift
        return np.asarray(root_psi(moved) * (moved[:, 3] - moved.mean(axis=1)) / squares(moved))

    derivative = (at(nudge) - at(-nudge)) / 2e-5
    difference = (x[:, 3] - TRUTH[3]) * step - S * derivative
    assert abs(difference.mean()) < 4 * difference.std() / N**0.5
    assert (S * derivative).mean() > 40 * difference.std() / N**0.5  # there is something to compare


def test_known_variance_risk_is_the_exact_one(normal: Floats) -> None:
    risk, error = theory.known_variance_risk(normal, S)
    exact = theory.risk_given_truth(TRUTH, S)
    assert abs(risk - exact) < 4 * error
    assert risk == pytest.approx(exact, rel=0.001)


def test_unbiased_risk_of_one_data_set_is_an_entry_of_the_mean(normal: Floats) -> None:
    psi, grows = root_psi(normal), theory.slope(root_psi, normal)
    several = theory.unbiased_risk(normal[:50], psi[:50], S, grows[:50])
    single = theory.unbiased_risk(normal[:1], psi[:1], S, grows[:1])
    assert single[0] == several[0]
    assert theory.normal_risk(normal[:50], psi[:50], S, grows[:50]).value == several.mean()


@pytest.mark.parametrize("psi", [theory.SpreadPsi(0.6), theory.ConstantPsi(0.9)])
def test_exact_slopes_agree_with_differences(
    normal: Floats, psi: Callable[[Floats], Floats]
) -> None:
    rows = normal[:100]
    assert theory.slope(psi, rows) == pytest.approx(theory.numerical_slope(psi, rows), abs=1e-9)


def test_one_difference_replaces_the_sum_over_questions(normal: Floats) -> None:
    rows = normal[:100]
    total = np.zeros(len(rows))
    for j in range(M):
        nudge = np.zeros(M)
        nudge[j] = 1e-5
        derivative = (lopsided_psi(rows + nudge) - lopsided_psi(rows - nudge)) / 2e-5
        total += derivative * (rows[:, j] - rows.mean(axis=1)) / squares(rows)
    assert theory.slope(lopsided_psi, rows) == pytest.approx(total, rel=1e-6, abs=1e-9)


# The gain on one data set


def test_estimated_gain_is_right_on_average(normal: Floats) -> None:
    """With an independent, unbiased, noisy estimate of the variance, for a psi below and one above the limit."""
    rows = normal[:8000]
    estimates = S * np.random.default_rng(27).chisquare(8, size=len(rows)) / 8
    for psi in (0.9, 2.5):
        gains = np.array(
            [theory.gain_estimate(x, psi, s).value for x, s in zip(rows, estimates, strict=True)]
        )
        exact = M * S - theory.risk_given_truth(TRUTH, S, psi)
        assert abs(gains.mean() - exact) < 4 * gains.std() / len(gains) ** 0.5
        assert gains.mean() == pytest.approx(exact, rel=0.05)


def test_slope_enters_the_estimated_gain(normal: Floats) -> None:
    x = normal[:1]
    psi, grows = theory.SpreadPsi(1.4)(x), theory.slope(theory.SpreadPsi(1.4), x)
    gain = theory.gain_estimate(x[0], psi[0], S, grows[0])
    assert gain.value == pytest.approx(M * S - theory.unbiased_risk(x, psi, S, grows)[0])
    assert gain.relative == pytest.approx(gain.value / (M * S))
    assert gain.shrinkage == pytest.approx(1.4 * 7 / 9)


@pytest.mark.parametrize("psi", [0.01, 1.0, 1.99, 2.01, 100.0])
def test_psi_alone_always_predicts_a_gain(psi: float) -> None:
    printed = theory.gain_by_psi_alone(TRUTH, psi)
    assert printed.shrink
    assert printed.value == pytest.approx(theory.gain_estimate(TRUTH, psi, psi).value)
    assert "no evidence" in str(printed)
    usable = theory.gain_estimate(TRUTH, psi, 1.0)
    assert usable.shrink is (psi < 2)
    assert str(usable).startswith("gain expected" if psi < 2 else "no gain expected")
