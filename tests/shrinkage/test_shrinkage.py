"""Second steps against published numbers and closed forms."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from repository import vectors
from trueup import TrueupError
from trueup.shrinkage import EBE, MEBE, Identity, Morris, ShrinkRule, Stein, Sure, find, names

VECTORS = vectors()
RULES: list[ShrinkRule] = [
    Identity(), EBE(), EBE(positive=True), EBE(alpha=2.0), Stein(), Stein(positive=True), MEBE(), Morris(), Sure(),
]  # fmt: skip
X = np.array(VECTORS["empirical_bayes"]["x"])
VECTOR_RULES = {
    "ebe": EBE(),
    "ebe_positive": EBE(positive=True),
    "stein": Stein(),
    "stein_positive": Stein(positive=True),
    "mebe": MEBE(),
}


@pytest.mark.parametrize("name", VECTOR_RULES)
@pytest.mark.parametrize("over", [False, True])
def test_published_numbers(name: str, over: bool) -> None:
    vectors = VECTORS["empirical_bayes"]
    s2 = np.full(len(X), vectors["over_shrink_sigma2"] if over else vectors["sigma2"])
    expected = (vectors["over"] if over else vectors)[name]
    rule = VECTOR_RULES[name]
    found = rule.fit(X, s2).posterior(X, s2)
    np.testing.assert_allclose(found.mean, expected["estimate"], rtol=1e-8)
    np.testing.assert_allclose(found.shrinkage, expected["shrink"], rtol=1e-8)


@pytest.mark.parametrize(
    ("name", "rule"), [("morris", Morris()), ("morris_equal", Morris()), ("sure", Sure())]
)
def test_published_numbers_for_unequal_variances(name: str, rule: Morris | Sure) -> None:
    vector = VECTORS[name]
    x, v = np.array(vector["x"]), np.broadcast_to(vector["v"], len(vector["x"]))
    prior = rule.fit(x, v)
    found = prior.posterior(x, v)
    np.testing.assert_allclose(found.mean, vector["estimate"], rtol=1e-7)
    np.testing.assert_allclose(found.shrinkage, vector["shrink"], rtol=1e-7)
    np.testing.assert_allclose(prior.mu[0], vector["mu"], rtol=1e-8)
    np.testing.assert_allclose(prior.tau2[0], vector["tau2"], rtol=1e-6)


def test_morris_with_equal_variances_is_equation_one() -> None:
    v = np.full(len(X), 1.3)
    morris, ebe = (rule.fit(X, v).posterior(X, v) for rule in (Morris(), EBE()))
    np.testing.assert_allclose(morris.mean, ebe.mean, rtol=1e-10)


def test_mebe_is_the_positive_part_with_alpha_m() -> None:
    v = np.full(len(X), 1.3)
    mebe = MEBE().fit(X, v).posterior(X, v)
    alpha = EBE(alpha=len(X), positive=True).fit(X, v).posterior(X, v)
    np.testing.assert_allclose(mebe.mean, alpha.mean, rtol=1e-12)


@given(seed=st.integers(0, 10_000), m=st.integers(4, 30))
def test_sure_finds_the_smallest_risk_estimate(seed: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    v = rng.uniform(0.1, 2.0, m)
    x = rng.normal(0, rng.uniform(0.1, 3.0), m) + np.sqrt(v) * rng.standard_normal(m)

    def risk(tau2: float) -> float:
        b = v / (v + tau2)
        return float(np.sum(b**2 * (x - x.mean()) ** 2 + v * (1 - 2 * (1 - 1 / m) * b)))

    found = risk(float(Sure().fit(x, v).tau2[0]))
    grid = min(risk(float(tau2)) for tau2 in np.concatenate([[0.0], np.geomspace(1e-4, 1e6, 400)]))
    best = minimize_scalar(lambda log: risk(float(np.exp(log))), bounds=(-12, 14), method="bounded")
    assert found <= min(grid, float(best.fun)) + 1e-6 * abs(grid)


@pytest.mark.parametrize("rule", RULES, ids=str)
@given(seed=st.integers(0, 10_000))
def test_panels_together_are_as_panels_alone(rule: ShrinkRule, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 9, 6)
    panels = np.concatenate([[0], np.cumsum(sizes)])
    x, v = rng.normal(3, 2, panels[-1]), rng.uniform(0.0, 2.0, panels[-1])
    together = rule.fit(x, v, panels=panels).posterior(x, v, panels=panels)
    for a, b in pairwise(panels.tolist()):
        alone = rule.fit(x[a:b], v[a:b]).posterior(x[a:b], v[a:b])
        np.testing.assert_allclose(together.mean[a:b], alone.mean, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(together.shrinkage[a:b], alone.shrinkage, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(together.variance[a:b], alone.variance, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_nothing_to_go_by_means_no_change(rule: ShrinkRule) -> None:
    cases = [
        (np.array([1.0, 2.0]), np.ones(2)),
        (np.array([4.0]), np.ones(1)),
        (np.array([1.0, 2.0, 4.0, 9.0, 3.0]), np.zeros(5)),
    ]
    for x, v in cases:
        found = rule.fit(x, v).posterior(x, v)
        np.testing.assert_array_equal(found.mean, x)
        np.testing.assert_array_equal(found.shrinkage, np.zeros(len(x)))
        np.testing.assert_array_equal(found.variance, v)


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.name != "stein"], ids=str)
def test_three_questions_or_equal_aggregates_stay(rule: ShrinkRule) -> None:
    for x in (np.array([1.0, 2.0, 4.0]), np.full(6, 0.1)):
        found = rule.fit(x, np.ones(len(x))).posterior(x, np.ones(len(x)))
        np.testing.assert_array_equal(found.mean, x)


@given(
    x=st.lists(st.floats(-100, 100), min_size=4, max_size=20).map(np.array), s2=st.floats(0.01, 100)
)
def test_the_mean_is_kept_and_the_positive_part_never_crosses_it(x: np.ndarray, s2: float) -> None:
    v = np.full(len(x), s2)
    for rule in (EBE(), EBE(positive=True), MEBE()):
        found = rule.fit(x, v).posterior(x, v)
        scale = 1e-9 * (1 + np.abs(found.mean).max())
        assert found.mean.mean() == pytest.approx(x.mean(), abs=scale)
        if rule != EBE():
            assert (found.shrinkage <= 1).all()
            assert ((found.mean - x.mean()) * (x - x.mean()) >= -scale).all()


@pytest.mark.parametrize("rule", [EBE(), EBE(positive=True), MEBE(), Morris(), Sure()], ids=str)
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_estimates_move_with_unit_and_origin(rule: ShrinkRule, scale: float) -> None:
    v = np.array(VECTORS["morris"]["v"])
    base = rule.fit(X, v).posterior(X, v)
    x, w = scale * (X + 5.0), scale**2 * v
    moved = rule.fit(x, w).posterior(x, w)
    np.testing.assert_allclose(moved.mean, scale * (base.mean + 5.0), rtol=1e-9)
    np.testing.assert_allclose(moved.variance, scale**2 * base.variance, rtol=1e-6)


def test_a_prior_can_be_used_on_new_questions() -> None:
    v = np.full(len(X), 1.3)
    prior = EBE().fit(X, v)
    new = prior.posterior(np.array([10.0]), np.array([1.3]))
    b = VECTORS["empirical_bayes"]["ebe"]["shrink"]
    assert new.mean[0] == pytest.approx(X.mean() + (1 - b) * (10.0 - X.mean()))


def test_more_variance_means_more_shrinkage_for_unequal_variances() -> None:
    v = np.array(VECTORS["morris"]["v"])
    for rule in (Morris(), Sure()):
        b = rule.fit(X, v).posterior(X, v).shrinkage
        assert (np.diff(b[np.argsort(v)]) > 0).all()
        assert ((b > 0) & (b < 1)).all()


def test_risk_of_the_normal_model_within_four_standard_errors() -> None:
    """R(EBE) = m s - (m-3) s^2 / (s + tau2) for truths N(mu, tau2) and known variance s."""
    rng = np.random.default_rng(1)
    m, s, tau2, samples = 10, 0.7, 1.0, 40_000
    truth = rng.normal(2, np.sqrt(tau2), (samples, m))
    x = (truth + np.sqrt(s) * rng.standard_normal((samples, m))).ravel()
    panels = np.arange(samples + 1) * m
    v = np.full(len(x), s)
    loss = {
        rule: (
            (rule.fit(x, v, panels=panels).posterior(x, v, panels=panels).mean - truth.ravel()) ** 2
        )
        .reshape(samples, m)
        .sum(axis=1)
        for rule in (EBE(), EBE(positive=True))
    }
    expected = m * s - (m - 3) * s**2 / (s + tau2)
    plain = loss[EBE()]
    assert abs(plain.mean() - expected) < 4 * plain.std() / np.sqrt(samples)
    assert loss[EBE(positive=True)].mean() < plain.mean()


def test_posterior_variance_of_the_positive_part_is_the_squared_error() -> None:
    rng = np.random.default_rng(2)
    m, s, samples = 20, 0.5, 4000
    truth = rng.normal(0, 1, (samples, m))
    x = (truth + np.sqrt(s) * rng.standard_normal((samples, m))).ravel()
    panels, v = np.arange(samples + 1) * m, np.full(samples * m, s)
    for rule in (EBE(positive=True), Morris(), Sure()):
        found = rule.fit(x, v, panels=panels).posterior(x, v, panels=panels)
        error = np.mean((found.mean - truth.ravel()) ** 2)
        assert error == pytest.approx(found.variance.mean(), rel=0.06)


def test_rules_by_name() -> None:
    assert names() == [
        "none", "paper", "stein", "mebe", "morris", "sure", "normal", "mixture", "adaptive",
    ]  # fmt: skip
    for name in names():
        assert find(name).name == name
    assert find(EBE(positive=True)) == EBE(positive=True)
    with pytest.raises(TrueupError, match="paper, stein"):
        find("papers")


@pytest.mark.parametrize(
    ("x", "v", "message"),
    [
        ([1.0, np.nan], [1.0, 1.0], "x"),
        ([1.0, 2.0], [1.0, -1.0], "v"),
        ([[1.0, 2.0]], [1.0, 1.0], "x"),
        ([1.0, 2.0], [np.inf, 1.0], "v"),
        ([1.0, 2.0], [6e307, 1.0], "v"),
    ],
)
def test_bad_aggregates_are_refused(x: list[float], v: list[float], message: str) -> None:
    with pytest.raises(TrueupError, match=f"^{message}:"):
        EBE().fit(np.array(x), np.array(v))
    with pytest.raises(TrueupError, match="panels"):
        EBE().fit(np.ones(4), np.ones(4), panels=np.array([0, 3]))


@pytest.mark.parametrize("v", [1e300, 1e150, 5e-324, 0.0])
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_the_largest_and_the_smallest_variances_are_taken(rule: ShrinkRule, v: float) -> None:
    for x in ([0.0], [0.0] * 3, [1.0, 2.0, 3.0, 4.0, 5.0], [1e150, -1e150, 0.0, 1.0, 2.0]):
        found = rule.fit(np.array(x), np.array(v)).posterior(np.array(x), np.array(v))
        assert np.isfinite(found.mean).all()
        assert not np.isinf(found.variance).any()


def test_sure_takes_aggregates_that_are_huge_beside_their_variances() -> None:
    x = np.array([0.0, 0.0, 0.0, 3.02846089745981e141])
    found = Sure().fit(x, 2.6e-38 * np.ones(4)).posterior(x, 2.6e-38 * np.ones(4))
    np.testing.assert_allclose(found.mean, x, rtol=1e-6, atol=1e135)
    assert np.isfinite(found.variance).all()
