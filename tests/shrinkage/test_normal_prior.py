"""The normal prior against integrals and closed forms, and what it shares with mixtures."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chi2

from plain_quadrature import QUADRATURE, PlainPosterior, agree, data, plain
from trueup import TrueupError
from trueup.shrinkage import Mixture, Normal
from trueup.shrinkage.quadrature import integrate, levels
from trueup.shrinkage.units import PanelUnits

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDING = 1e-9


@pytest.mark.parametrize(
    ("seed", "m", "spread"), [(0, 4, 1.0), (1, 5, 0.0), (2, 6, 10.0), (3, 12, 0.3)]
)
def test_normal_is_the_integral(seed: int, m: int, spread: float) -> None:
    x, v = data(seed, m, spread=spread)
    agree(Normal(caution=1.0).fit(x, v).posterior(x, v), plain(x, v), v)


@pytest.mark.parametrize(("m", "spread", "nu"), [(4, 1.0, np.inf), (9, 0.2, 5.0), (30, 3.0, 12.0)])
def test_panels_of_one_variance_are_no_special_case(m: int, spread: float, nu: float) -> None:
    """They are fitted and read by sums over questions; variances that differ in the last digits are not."""
    panels = np.array([0, m, 2 * m, 3 * m])
    x = np.concatenate([data(seed, m, spread=spread)[0] for seed in range(3)]) + 50.0
    v = np.repeat([0.4, 2.0, 1e-3], m)
    wide = v * np.repeat([1.3, 1.0, 2.0], m)
    rule = Normal(caution=0.9)
    one = rule.fit(x, v, panels=panels, nu=nu, v_interval=wide)
    nearly = v * (1.0 + 1e-13 * np.arange(3 * m))
    other = rule.fit(x, nearly, panels=panels, nu=nu, v_interval=wide * (nearly / v))
    # Each prior reads both kinds of variances, also others than those it was fitted with.
    for prior, factor in itertools.product((one, other), (1.0, 3.0)):
        found = prior.posterior(x, factor * v, panels=panels, v_interval=factor * wide)
        general = other.posterior(x, factor * nearly, panels=panels, v_interval=factor * wide)
        assert found.mean == pytest.approx(general.mean, rel=1e-11)
        assert found.variance == pytest.approx(general.variance, rel=1e-10)
        assert found.shrinkage == pytest.approx(general.shrinkage, rel=1e-10)
    # An integral that knows of no shortcut.
    for number in range(3):
        mine = slice(number * m, (number + 1) * m)
        if np.isinf(nu):
            found = Normal(caution=1.0).fit(x[mine], v[mine]).posterior(x[mine], v[mine])
            agree(found, plain(x[mine], v[mine]), v[mine])


def test_a_panel_that_reaches_far_costs_no_digits_where_its_variances_are_equal() -> None:
    x, v = np.array([0.1, -0.2, 0.3, 0.0, 0.2, 1e15]), np.ones(6)
    moved = Normal(caution=1.0).fit(x, v).posterior(x, v)
    assert moved.mean[:5] == pytest.approx(x[:5], abs=1e-12)
    assert (moved.variance >= 0).all()


def test_normal_by_adaptive_quadrature() -> None:
    """The reference above shares its grid with nobody; this one has none."""
    x, v = data(4, 7)
    v0 = 7 / np.sum(1 / v)

    def weighed(at: float, j: int | None) -> float:
        w = 1 / (v + np.exp(at))
        mu = np.sum(w * x) / np.sum(w)
        fit = 0.5 * np.sum(np.log(w)) - 0.5 * np.log(np.sum(w)) - 0.5 * np.sum(w * (x - mu) ** 2)
        what = 1.0 if j is None else x[j] - v[j] * w[j] * (x[j] - mu)
        return float(what * np.exp(fit + at) / (np.exp(at) + v0))

    def whole(j: int | None) -> float:
        return quad(weighed, -25, 14, args=(j,), points=[-4.0, -1.0, 1.0, 3.0], limit=200)[0]

    found = Normal(caution=1.0).fit(x, v).posterior(x, v)
    for j in range(3):
        assert found.mean[j] == pytest.approx(whole(j) / whole(None), abs=QUADRATURE)


@pytest.mark.parametrize("high", [5.0, 1e4])
def test_the_grid_integrates_a_density_that_does_not_vanish_at_its_ends(high: float) -> None:
    """Without questions only the prior is left: with the power 2 a density (1 + s)^-2 from 0 to the upper end."""
    one = np.ones((1, 1))
    nodes, _ = integrate(
        lambda s: (np.zeros(s.shape), np.zeros(s.shape), ()),
        free=1.0, power=2.0, high=np.array([high]), c=one,
    )  # fmt: skip
    found = float((nodes.weight / (1.0 + nodes.s)).sum())
    exact = 0.5 * (1.0 - (1.0 + high) ** -2) / (1.0 - 1.0 / (1.0 + high))
    assert found == pytest.approx(exact, rel=3e-3)
    assert nodes.weight.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(("seed", "m", "nu"), [(5, 8, 6.0), (6, 6, 2.0), (7, 12, 40.0)])
def test_an_estimated_variance_is_averaged_over(seed: int, m: int, nu: float) -> None:
    """And the interval is that of the variance taken as known, around the estimate."""
    x, v = data(seed, m)
    wide = 1.5 * v
    estimate, careful = plain(x, v, nu=nu), plain(x, wide)
    known = careful.variance + (estimate.mean - careful.mean) ** 2
    expected = PlainPosterior(estimate.mean, known, estimate.shrinkage)
    found = Normal(caution=1.0).fit(x, v, nu=nu, v_interval=wide)
    agree(found.posterior(x, v, v_interval=wide), expected, v, 5 * QUADRATURE)


def test_values_of_c() -> None:
    nu = np.array([3.0, 50.0, 301.0])
    found = levels(nu)
    for row, degrees in zip(found[:2], nu, strict=False):
        expected = [degrees / chi2.ppf((k - 0.5) / 7, degrees + 4) for k in range(1, 8)]
        np.testing.assert_allclose(row, expected, rtol=1e-12)
    assert (found[2] == 1.0).all()
    assert levels(np.array([301.0, np.inf])).shape == (2, 1)


def test_many_questions_leave_a_narrow_peak() -> None:
    x, v = data(8, 9_999)  # of more the prior is fitted on weighted points
    w = 1 / v
    middle = np.log(np.var(x) - np.mean(v))
    expected = plain(x, v, ends=(middle - 0.15, middle + 0.15), points=120)
    assert np.ptp(w) > 1  # unequal variances, so that nothing is exact by symmetry
    found = Normal(caution=1.0).fit(x, v).posterior(x, v)
    np.testing.assert_allclose(found.shrinkage, expected.shrinkage, atol=2e-6)
    np.testing.assert_allclose(found.mean, expected.mean, atol=2e-5)


def test_far_apart_the_step_has_a_closed_form() -> None:
    """With equal variances and a wide truth `v + tau2` has an inverse gamma posterior: E[B] = (m - 1) v / SS."""
    rng = np.random.default_rng(9)
    x, v = rng.normal(0.0, 100.0, 30), np.full(30, 1.0)
    found = Normal(caution=1.0).fit(x, v).posterior(x, v)
    expected = 29.0 / np.sum((x - x.mean()) ** 2)
    np.testing.assert_allclose(found.shrinkage, expected, rtol=2e-3)
    np.testing.assert_allclose(found.mean, x - expected * (x - x.mean()), atol=1e-4)


def test_estimates_lie_between_the_aggregate_and_the_mean() -> None:
    for seed in range(20):
        x, _ = data(seed, 9)
        v = np.full(9, 0.4)
        found = Normal().fit(x, v, nu=5.0).posterior(x, v)
        low, high = np.minimum(x, x.mean()), np.maximum(x, x.mean())
        assert ((found.mean >= low - 1e-12) & (found.mean <= high + 1e-12)).all()
        assert ((found.shrinkage >= 0) & (found.shrinkage <= 1)).all()


def test_caution_takes_a_share_of_the_step() -> None:
    x, v = data(10, 10)
    full, part = (Normal(c).fit(x, v, nu=8.0).posterior(x, v) for c in (1.0, 0.7))
    np.testing.assert_allclose(part.mean, x + 0.7 * (full.mean - x), rtol=1e-12)
    np.testing.assert_allclose(part.shrinkage, 0.7 * full.shrinkage, rtol=1e-12)
    # The interval is around the estimate that is given, so it widens by what the share moved it.
    known = Normal(1.0).fit(x, v).posterior(x, v)
    np.testing.assert_allclose(part.variance, known.variance + (part.mean - known.mean) ** 2)
    for wrong in (0.0, -1.0, 1.01, np.nan):
        with pytest.raises(TrueupError, match="caution"):
            Normal(wrong)
        with pytest.raises(TrueupError, match="caution"):
            Mixture(wrong)


@pytest.mark.parametrize("m", [0, 1, 2, 3])
def test_few_questions_stay(m: int) -> None:
    x, v = data(11, m)
    prior = Normal().fit(x, v, v_interval=2 * v)
    found = prior.posterior(x, v, v_interval=2 * v)
    np.testing.assert_array_equal(found.mean, x)
    np.testing.assert_array_equal(found.variance, 2 * v)
    np.testing.assert_array_equal(found.shrinkage, 0.0)
    assert prior.model.tolist() == ["none"]


def test_known_answers_stay() -> None:
    x, _ = data(12, 6)
    prior = Normal().fit(x, np.zeros(6))
    found = prior.posterior(x, np.zeros(6))
    np.testing.assert_array_equal(found.mean, x)
    np.testing.assert_array_equal(found.variance, 0.0)
    assert prior.model.tolist() == ["none"]


def test_equal_aggregates_stay() -> None:
    x, (_, v) = np.full(9, 1e6 / 3), data(13, 9)
    found = Normal().fit(x, v).posterior(x, v)
    np.testing.assert_allclose(found.mean, x, rtol=1e-15)
    assert ((found.variance > 0) & (found.variance < v)).all()


@pytest.mark.parametrize("known", [1, 4, 7])
def test_some_answers_known_exactly(known: int) -> None:
    x, v = data(14, 9, spread=1.0)
    v = np.where(np.arange(9) < known, 0.0, v)
    for unit in (1.0, 1e-140, 1e140):
        found = Normal(1.0).fit(unit * x, unit**2 * v).posterior(unit * x, unit**2 * v)
        np.testing.assert_allclose(found.mean[:known] / unit, x[:known], atol=1e-5)
        assert (np.isfinite(found.variance) & (found.variance >= 0)).all()
        assert (found.shrinkage[known:] > 0.05).all()


def test_known_answers_that_agree_draw_the_others() -> None:
    x = np.array([2.0, 2.0, 2.0, 2.0, 2.0, 2.3, 1.8])
    v = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.2, 0.2])
    found = Normal(1.0).fit(x, v).posterior(x, v)
    np.testing.assert_allclose(found.mean, 2.0, atol=0.02)


def test_an_absurd_aggregate_costs_no_digits() -> None:
    x, v = data(15, 12)
    for far in (1e14, 1e60, 1e200, 1e308):
        y = np.where(np.arange(12) == 3, far, x)
        for rule in (Normal(), Mixture()):
            found = rule.fit(y, v).posterior(y, v)
            assert np.isfinite(found.mean).all()
            assert np.isfinite(found.variance).all()
            np.testing.assert_allclose(found.mean[3], far, rtol=1e-6)
        others = np.arange(12) != 3
        # The prior is so wide that the rest has nothing to go by, and keeps all of its digits.
        found = Normal().fit(y, v).posterior(y, v)
        np.testing.assert_allclose(found.mean[others], x[others], atol=1e-7)


def test_a_variance_without_a_square_is_a_variance() -> None:
    """Found by fuzzing: of a question of which nothing is known the prior is all there is."""
    x, v = data(16, 9)
    wide, far = (np.where(np.arange(9) == 3, large, v) for large in (1e12, 1e200))
    with np.errstate(over="raise"):
        found, known = (Normal().fit(x, each).posterior(x, each) for each in (far, wide))
    np.testing.assert_allclose(found.mean, known.mean, rtol=1e-6)
    np.testing.assert_allclose(found.variance, known.variance, rtol=1e-6)


RULES: list[Callable[[], Normal | Mixture]] = [Normal, Mixture]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("a", "b"), [(1e12, 0.0), (1e-12, 0.0), (-3.0, 17.0), (1.0, 1e4)])
def test_units_change_nothing(rule: Callable[[], Normal | Mixture], a: float, b: float) -> None:
    rng = np.random.default_rng(16)
    x, v = data(16, 30)
    x += rng.choice([0.0, 15.0], 30)
    first = rule().fit(x, v, nu=9.0, v_interval=1.2 * v).posterior(x, v, v_interval=1.2 * v)
    y, w = a * x + b, a * a * v
    other = rule().fit(y, w, nu=9.0, v_interval=1.2 * w).posterior(y, w, v_interval=1.2 * w)
    np.testing.assert_allclose((other.mean - b) / a, first.mean, rtol=ROUNDING, atol=ROUNDING)
    np.testing.assert_allclose(other.variance / a / a, first.variance, rtol=1e-7)
    np.testing.assert_allclose(other.shrinkage, first.shrinkage, rtol=1e-7)


@pytest.mark.parametrize("rule", RULES)
def test_order_of_questions_changes_nothing(rule: Callable[[], Normal | Mixture]) -> None:
    rng = np.random.default_rng(17)
    x, v = data(17, 40)
    x += rng.choice([0.0, 15.0], 40)
    order = rng.permutation(40)
    first = rule().fit(x, v).posterior(x, v)
    other = rule().fit(x[order], v[order]).posterior(x[order], v[order])
    np.testing.assert_allclose(other.mean, first.mean[order], rtol=ROUNDING)


@pytest.mark.parametrize("rule", RULES)
def test_panels_are_fitted_one_by_one(rule: Callable[[], Normal | Mixture]) -> None:
    rng = np.random.default_rng(18)
    sizes = [5, 0, 30, 2, 30, 4, 9, 200, 30]
    panels = np.concatenate([[0], np.cumsum(sizes)])
    x, v = data(18, int(panels[-1]), spread=0.3)
    x += rng.choice([0.0, 9.0, 30.0], len(x))
    nu = np.array([3.0, 5.0, 1e9, 7.0, 8.0, 9.0, 400.0, 20.0, 50.0])
    prior = rule().fit(x, v, panels=panels, nu=nu, v_interval=1.1 * v)
    found = prior.posterior(x, v, panels=panels, v_interval=1.1 * v)
    for b, here in enumerate(itertools.starmap(slice, itertools.pairwise(panels.tolist()))):
        one = rule().fit(x[here], v[here], nu=nu[b], v_interval=1.1 * v[here])
        alone = one.posterior(x[here], v[here], v_interval=1.1 * v[here])
        np.testing.assert_allclose(found.mean[here], alone.mean, rtol=ROUNDING)
        np.testing.assert_allclose(found.variance[here], alone.variance, rtol=ROUNDING)
        np.testing.assert_allclose(found.shrinkage[here], alone.shrinkage, rtol=ROUNDING)
        assert prior.model[b] == one.model[0]
    with pytest.raises(TrueupError, match="panels"):
        prior.posterior(x, v)


@pytest.mark.parametrize("rule", RULES)
def test_a_prior_reads_new_questions(rule: Callable[[], Normal | Mixture]) -> None:
    """Also many of them, which are read piece by piece."""
    rng = np.random.default_rng(19)
    x, v = data(19, 40, spread=0.3)
    x += rng.choice([0.0, 9.0], 40)
    prior = rule().fit(x, v, nu=30.0)
    whole = prior.posterior(np.tile(x, 2500), np.tile(v, 2500), v_interval=1.3)
    few = prior.posterior(x[3:5], v[3:5], v_interval=1.3)
    for name in ("mean", "variance", "shrinkage"):
        every = getattr(whole, name).reshape(2500, 40)
        np.testing.assert_allclose(every, np.broadcast_to(every[0], every.shape), rtol=1e-12)
        np.testing.assert_allclose(every[0, 3:5], getattr(few, name), rtol=1e-12)


@pytest.mark.parametrize(
    "wrong", [{"nu": 0.0}, {"nu": [1.0, 2.0]}, {"nu": np.nan}, {"v_interval": -1.0}]
)
def test_what_is_known_is_checked(wrong: dict[str, Any]) -> None:
    x, v = data(20, 10)
    with pytest.raises(TrueupError, match=next(iter(wrong))):
        Normal().fit(x, v, **wrong)


def test_units_of_a_panel() -> None:
    units = PanelUnits.of_tile(np.array([[1.0, 2.0, 9.0, 4.0]]), np.array([[1.0, 1.0, 4.0, 4.0]]))
    assert units.centre.tolist() == [3.0]
    assert units.unit[0] ** 2 == pytest.approx(4 / (1 + 1 + 0.25 + 0.25))
    assert units.usable.tolist() == [True]
