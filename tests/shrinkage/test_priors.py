"""Priors of the second step against plain loops, closed forms, and figures that they should reach."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chi2, norm

from trueup import TrueupError
from trueup.shrinkage import Mixture, Normal, Posterior, expectation, location_mixture
from trueup.shrinkage.clusters import line_clusters
from trueup.shrinkage.expectation import Components, fit_location, fit_one, fit_scale
from trueup.shrinkage.groups import GroupMeans, GroupPriors
from trueup.shrinkage.location_mixture import LocationMixture
from trueup.shrinkage.mixture_search import choose
from trueup.shrinkage.panel_data import PanelData
from trueup.shrinkage.quadrature import levels
from trueup.shrinkage.regression import Regression
from trueup.shrinkage.scale_mixture import ScaleMixture
from trueup.shrinkage.units import PanelUnits

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

QUADRATURE = 2e-4  # error that 40 points may leave, in standard errors
ROUNDING = 1e-9


def data(seed: int, m: int, *, spread: float = 1.0) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    v = rng.uniform(0.1, 1.0, m)
    return rng.normal(2.0, spread, m) + np.sqrt(v) * rng.standard_normal(m), v


def panel_data(x: Floats, v: Floats, starts: NDArray[np.int64], **extra: Any) -> PanelData:
    return PanelData.of(x, v, starts, extra)


class Believed(NamedTuple):
    mean: Floats
    variance: Floats
    shrinkage: Floats


def plain(
    x: Floats,
    v: Floats,
    z: Floats | None = None,
    nu: float | None = None,
    ends: tuple[float, float] = (-25.0, 14.0),
    points: int = 1500,
) -> Believed:
    """Sum over a fine grid of tau2 for each c, with covariates z: an intercept, groups or a regression."""
    m = len(x)
    z = np.ones((m, 1)) if z is None else z
    v0, power = m / np.sum(1 / v), 0.5 if m == 4 else 1.0
    values = [1.0]
    if nu is not None:
        values = [nu / chi2.ppf((k - 0.5) / 7, nu + 4) for k in range(1, 8)]
    logs, means, within, shares = [], [], [], []
    for at, c in itertools.product(np.linspace(*ends, points), values):
        tau2 = np.exp(at)
        w = 1 / (c * v + tau2)
        inside = z.T @ (w[:, None] * z)
        cover = np.linalg.inv(inside)
        centre = z @ (cover @ (z.T @ (w * x)))
        b = c * v * w
        fit = 0.5 * np.sum(np.log(w)) - 0.5 * np.linalg.slogdet(inside)[1]
        fit -= 0.5 * np.sum(w * (x - centre) ** 2)
        logs.append(fit - power * np.log(tau2 + v0) + at)
        means.append(x - b * (x - centre))
        within.append(c * v * (1 - b) + b**2 * np.sum((z @ cover) * z, axis=1))
        shares.append(b)
    p = np.exp(np.array(logs) - max(logs))
    p /= p.sum()
    e, square = p @ np.array(means), p @ (np.array(means) ** 2 + np.array(within))
    return Believed(e, square - e**2, p @ np.array(shares))


def agree(found: Posterior, expected: Believed, v: Floats, atol: float = QUADRATURE) -> None:
    np.testing.assert_allclose((found.mean - expected.mean) / np.sqrt(v), 0.0, atol=atol)
    np.testing.assert_allclose(found.variance / expected.variance, 1.0, atol=10 * atol)
    np.testing.assert_allclose(found.shrinkage, expected.shrinkage, atol=atol)


# The normal prior


@pytest.mark.parametrize(
    ("seed", "m", "spread"), [(0, 4, 1.0), (1, 5, 0.0), (2, 6, 10.0), (3, 12, 0.3)]
)
def test_normal_is_the_integral(seed: int, m: int, spread: float) -> None:
    x, v = data(seed, m, spread=spread)
    agree(Normal(caution=1.0).fit(x, v).posterior(x, v), plain(x, v), v)


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


@pytest.mark.parametrize(("seed", "m", "nu"), [(5, 8, 6.0), (6, 6, 2.0), (7, 12, 40.0)])
def test_an_estimated_variance_is_averaged_over(seed: int, m: int, nu: float) -> None:
    """And the interval is that of the variance taken as known, around the estimate."""
    x, v = data(seed, m)
    wide = 1.5 * v
    estimate, careful = plain(x, v, nu=nu), plain(x, wide)
    known = careful.variance + (estimate.mean - careful.mean) ** 2
    expected = Believed(estimate.mean, known, estimate.shrinkage)
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
    x, v = data(8, 20_000)
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


# Clusters on a line


def test_clusters_are_the_best_of_all() -> None:
    rng = np.random.default_rng(21)
    t = np.sort(rng.normal(size=(5, 11)), axis=1)
    t[4, -1] = 1e14
    for k, found in enumerate(line_clusters(t, 4), start=2):
        for row, begins in zip(t, found, strict=True):
            cost = {
                cuts: sum(float(np.sum((p - p.mean()) ** 2)) for p in np.split(row, cuts))
                for cuts in itertools.combinations(range(1, 11), k - 1)
            }
            assert cost[tuple(begins[1:].tolist())] == pytest.approx(min(cost.values()), rel=1e-12)


def test_clusters_of_many_numbers() -> None:
    rng = np.random.default_rng(22)
    many = {0: 1200, 10: 1200, 30: 1440}  # whole bins of 30 numbers
    t = np.sort(np.concatenate([rng.normal(c, 0.1, n) for c, n in many.items()]))[None]
    np.testing.assert_array_equal(line_clusters(t, 3)[1], [[0, 1200, 2400]])


# Mixtures


def plain_mixture(
    t: Floats, v: Floats, start: Components, rounds: int, *, shared: bool
) -> tuple[Floats, Floats, Floats, float]:
    """Expectation maximisation in loops; `shared` means a common location, else a common variance."""
    pi, mu, tau2 = start.pi[0].copy(), start.mu[0].copy(), start.tau2[0].copy()
    fit = 0.0
    for _ in range(rounds):
        each = np.array(
            [p * norm.pdf(t, a, np.sqrt(v + s)) for p, a, s in zip(pi, mu, tau2, strict=True)]
        )
        fit = float(np.sum(np.log(each.sum(axis=0))))
        r = each / each.sum(axis=0)
        old = pi, mu, tau2
        w = np.array([1 / (v + s) for s in tau2])
        pi = r.mean(axis=1)
        mu = np.sum(r * w * t, axis=1) / np.sum(r * w, axis=1)
        if shared:
            mu = np.full(len(pi), np.sum(r * w * t) / np.sum(r * w))
        above = r * w**2 * ((t - mu[:, None]) ** 2 - v)
        tau2 = np.maximum(0.0, above.sum(axis=1) / np.sum(r * w**2, axis=1))
        if not shared:
            tau2 = np.full(len(pi), max(0.0, above.sum() / np.sum(r * w**2)))
    return *old, fit


@pytest.mark.parametrize("shared", [False, True])
def test_expectation_maximisation_is_the_plain_loop(shared: bool) -> None:
    rng = np.random.default_rng(23)
    t = np.where(rng.random(40) < 0.7, rng.normal(0, 0.4, 40), rng.normal(0, 6.0, 40))
    v = rng.uniform(0.1, 1.0, 40)
    tau2 = np.array([[0.2, 4.0]]) if shared else np.full((1, 2), 0.5)
    mu = np.zeros((1, 2)) if shared else np.array([[-1.0, 4.0]])
    start = Components(np.array([[0.6, 0.4]]), mu, tau2, np.zeros(1))
    found = (fit_scale if shared else fit_location)(t[None], v[None], start)
    fits = [plain_mixture(t, v, start, rounds, shared=shared) for rounds in range(1, 51)]
    gains = np.diff([fit[3] for fit in fits])
    # It may settle from the fifth round on, as soon as a round gains less than a thousandth.
    settled = next((k for k, gain in enumerate(gains, start=2) if k >= 5 and gain < 1e-3), 50)
    pi, mu_end, tau2_end, fit = fits[settled - 1]
    np.testing.assert_allclose(found.pi[0], pi, rtol=1e-8)
    np.testing.assert_allclose(found.mu[0], mu_end, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.tau2[0], tau2_end, rtol=1e-8, atol=1e-10)
    assert found.fit[0] == pytest.approx(fit, rel=1e-9)
    assert fits[0][3] < fit


def test_one_normal_by_moments() -> None:
    x, v = data(24, 30)
    found = fit_one(x[None], v[None])[0]

    def likelihood(tau2: float) -> float:
        w = 1 / (v + tau2)
        mu = np.sum(w * x) / np.sum(w)
        return float(np.sum(norm.logpdf(x, mu, np.sqrt(v + tau2))))

    best = max(likelihood(float(tau2)) for tau2 in np.geomspace(1e-3, 1e2, 2000))
    # Moments come close to the maximum and cannot be above it.
    assert best - 0.1 < found <= best + 1e-4
    equal = np.full(30, 0.2)
    expected = norm.logpdf(x, x.mean(), x.std()).sum()
    assert fit_one(x[None], equal[None])[0] == pytest.approx(expected, rel=1e-12)


def test_location_mixture_is_the_integral() -> None:
    rng = np.random.default_rng(25)
    v = rng.uniform(0.1, 0.5, 24)
    x = rng.choice([0.0, 4.0], 24) + rng.normal(0, 0.3, 24) + np.sqrt(v) * rng.standard_normal(24)
    questions = panel_data(x, v, np.array([0, 24]))
    chosen = choose(questions)
    assert chosen.kind.tolist() == [2]
    units, start = chosen.of(np.array([0]))
    prior = LocationMixture.fit(questions, units, start)
    found = prior.posterior(x, v)
    v0 = 24 / np.sum(1 / v)
    pi, begin = start.pi[0], units.centre[0] + units.unit[0] * start.mu[0]
    logs, means, squares, parts = [], [], [], []
    for at in np.linspace(-14, 6, 1500):
        tau2 = np.exp(at)
        w = 1 / (v + tau2)
        mu = begin
        for turn in range(3):
            each = pi[:, None] * norm.pdf(x, mu[:, None], np.sqrt(v + tau2))
            r = each / each.sum(axis=0)
            if turn < 2:
                mu = np.sum(r * w * x, axis=1) / np.sum(r * w, axis=1)
        behind = np.sum(r * w, axis=1)
        fit = np.sum(np.log(each.sum(axis=0))) - 0.5 * np.sum(np.log(behind))
        logs.append(fit - np.log(tau2 + v0) + at)
        b = v * w
        e = x - b * (x - mu[:, None])
        means.append(np.sum(r * e, axis=0))
        squares.append(np.sum(r * (e**2 + v * (1 - b) + b**2 / behind[:, None]), axis=0))
        parts.append(r)
    p = np.exp(np.array(logs) - max(logs))
    p /= p.sum()
    mean = p @ np.array(means)
    np.testing.assert_allclose(found.mean, mean, atol=3e-4)
    np.testing.assert_allclose(found.variance, p @ np.array(squares) - mean**2, rtol=3e-3)
    soft = np.tensordot(p, np.array(parts), 1)
    belongs = prior.membership(np.array([0]), x[None], v[None])[0]
    np.testing.assert_allclose(belongs, soft, atol=1e-3)
    np.testing.assert_allclose(belongs.sum(axis=0), 1.0, rtol=1e-12)


MAPPINGS = (expectation.threaded, expectation.serial)


def clusters(questions: int) -> tuple[Floats, Floats]:
    """Aggregates in three clusters, and their variances."""
    rng = np.random.default_rng(27)
    v = rng.uniform(0.1, 0.5, questions)
    middle = rng.choice([0.0, 3.0, 9.0], questions) + rng.normal(0, 0.5, questions)
    return middle + np.sqrt(v) * rng.standard_normal(questions), v


def test_a_few_points_are_as_good_as_the_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where many questions make the density of tau2 narrow."""
    x, v = clusters(6000)
    questions = panel_data(x, v, np.array([0, 6000]))
    chosen = choose(questions)
    few = LocationMixture.fit(questions, *chosen.of(np.array([0])))
    monkeypatch.setattr(location_mixture, "NARROW", 0.0)
    full = LocationMixture.fit(questions, *chosen.of(np.array([0])))
    assert (few.grid.nodes.weight > 0).sum() == location_mixture.FEW
    assert (full.grid.nodes.weight > 1e-12).sum() > 3 * location_mixture.FEW
    assert few.grid.nodes.weight.sum() == pytest.approx(1.0, rel=1e-12)
    one, other = (prior.posterior(x, v, v_interval=2 * v) for prior in (few, full))
    for name in ("mean", "variance", "shrinkage"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9, atol=1e-11)
    row = np.array([0])
    soft, hard = (prior.membership(row, x[None], v[None]) for prior in (few, full))
    np.testing.assert_allclose(soft, hard, atol=1e-11)


def test_pieces_and_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    x, v = clusters(2000)
    start = Components(
        np.full((1, 3), 1 / 3), np.array([[0.0, 2.0, 6.0]]), np.ones((1, 3)), np.zeros(1)
    )
    whole = fit_location(x[None], v[None], start, mapping=expectation.serial)
    monkeypatch.setattr(expectation, "LONGEST", 150)
    several = [fit_location(x[None], v[None], start, mapping=mapping) for mapping in MAPPINGS]
    for name in ("pi", "mu", "tau2", "fit"):
        one, other = (getattr(found, name) for found in several)
        np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose(one, getattr(whole, name), rtol=1e-10)


def test_scale_mixture_is_a_sum_of_two() -> None:
    rng = np.random.default_rng(26)
    v = rng.uniform(0.1, 0.5, 60)
    x = np.where(rng.random(60) < 0.85, 0.0, rng.normal(0, 5, 60)) + np.sqrt(v) * rng.normal(
        size=60
    )
    chosen = choose(panel_data(x, v, np.array([0, 60])))
    assert chosen.kind.tolist() == [1]
    units, parts = chosen.of(np.array([0]))
    found = ScaleMixture(units, parts).posterior(x, v)
    mu = units.centre[0] + units.unit[0] * parts.mu[0, 0]
    tau2 = units.unit[0] ** 2 * parts.tau2[0]
    each = np.array([p * norm.pdf(x, mu, np.sqrt(v + s)) for p, s in zip(parts.pi[0], tau2)])  # noqa: B905
    r = each / each.sum(axis=0)
    b = v / (v + tau2[:, None])
    e = x - b * (x - mu)
    mean = np.sum(r * e, axis=0)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-9, atol=1e-12)
    square = np.sum(r * (v * (1 - b) + (e - mean) ** 2), axis=0)
    np.testing.assert_allclose(found.variance, square, rtol=1e-9)
    np.testing.assert_allclose(found.shrinkage, np.sum(r * b, axis=0), rtol=1e-9)


def truth(kind: str, size: tuple[int, int], rng: np.random.Generator) -> Floats:
    if kind == "constant":
        return np.zeros(size)
    if kind == "normal":
        return rng.normal(0.0, 1.0, size)
    if kind == "wide":
        return rng.normal(0.0, 5.0, size)
    if kind == "clusters":
        return rng.choice([0.0, 10.0, 30.0], size) + rng.normal(0.0, 0.3, size)
    if kind == "two points":
        return rng.choice(np.array([0.0, 3.0]), size)
    return np.where(rng.random(size) < 0.9, 0.0, rng.normal(0.0, 5.0, size))


@pytest.mark.parametrize(
    ("kind", "m", "rule", "low", "high"),
    [
        ("constant", 5, Normal, 0.33, 0.47),
        ("constant", 20, Normal, 0.10, 0.16),
        ("normal", 20, Normal, 0.77, 0.87),
        ("normal", 200, Normal, 0.75, 0.80),
        ("wide", 20, Normal, 0.97, 1.00),
        ("clusters", 20, Normal, 0.99, 1.01),
        ("constant", 20, Mixture, 0.10, 0.18),
        ("normal", 20, Mixture, 0.77, 0.87),
        ("wide", 20, Mixture, 0.97, 1.03),
        ("clusters", 20, Mixture, 0.32, 0.43),
        ("clusters", 200, Mixture, 0.22, 0.28),
        ("two points", 50, Mixture, 0.12, 0.21),
        ("mostly zero", 50, Mixture, 0.19, 0.30),
    ],
)
def test_risk_relative_to_the_aggregates(
    kind: str, m: int, rule: type[Normal | Mixture], low: float, high: float
) -> None:
    """Variance known, 0.3; published .40 .13 .82 .78 .98 1.00, .15 .81 1.00 .37 .25 .17 .24; 120 repetitions."""
    rng = np.random.default_rng(27)
    size = (120 if m < 200 else 40, m)
    theta = truth(kind, size, rng)
    x = (theta + rng.normal(0.0, np.sqrt(0.3), size)).ravel()
    v, panels = np.full(x.size, 0.3), np.arange(size[0] + 1) * m
    found = rule(caution=1.0).fit(x, v, panels=panels).posterior(x, v, panels=panels)
    ratio = np.sum((found.mean - theta.ravel()) ** 2) / np.sum((x - theta.ravel()) ** 2)
    assert low < ratio < high
    covered = np.mean(np.abs(found.mean - theta.ravel()) < 1.96 * np.sqrt(found.variance))
    # Equal true values are covered more often, since small variances cannot be excluded.
    assert 0.92 < covered < (1.01 if kind in ("constant", "two points", "mostly zero") else 0.985)


# Groups


def common(x: Floats, v: Floats) -> Posterior:
    return Normal().fit(x, v).posterior(x, v)


def test_own_priors_are_normal_priors_of_the_groups() -> None:
    rng = np.random.default_rng(28)
    x, v = data(28, 40)
    groups = rng.permutation(np.repeat([7, 3, 5, -1], [20, 9, 7, 4]))
    prior = GroupPriors.fit(
        panel_data(x, v, np.array([0, 40]), groups=groups, nu=np.array([9.0]), v_interval=2 * v)
    )
    assert prior is not None
    rest = common(x, v)
    found = prior.posterior(x, v, groups=groups, common=rest, v_interval=2 * v)
    for label in (7, 3):
        here = groups == label
        own = Normal(1.0).fit(x[here], v[here], nu=9.0, v_interval=2 * v[here])
        alone = own.posterior(x[here], v[here], v_interval=2 * v[here])
        np.testing.assert_allclose(found.mean[here], alone.mean, rtol=1e-12)
        np.testing.assert_allclose(found.variance[here], alone.variance, rtol=1e-12)
    here = (groups == 5) | (groups == -1)
    np.testing.assert_array_equal(found.mean[here], rest.mean[here])
    new = prior.posterior(x, v, groups=np.full(40, 4), common=rest)
    np.testing.assert_array_equal(new.mean, rest.mean)
    assert GroupPriors.fit(panel_data(x, v, np.array([0, 40]), groups=np.arange(40))) is None


def test_group_means_are_the_integral() -> None:
    rng = np.random.default_rng(29)
    groups = np.array([4, 4, 4, 9, 9, 2, 2, 2, 2, 6])
    v = rng.uniform(0.1, 1.0, 10)
    x = rng.normal(0, 5, 10)[groups] + np.sqrt(v + 0.5) * rng.normal(size=10)
    z = (groups[:, None] == np.unique(groups)).astype(float)
    panels = np.array([0, 3, 13])
    first = np.array([0.0, 1.0, 2.0])
    all_x, all_v = np.append(first, x), np.append(np.ones(3), v)
    all_groups = np.append([4, 4, 4], groups)
    prior = GroupMeans.fit(panel_data(all_x, all_v, panels, groups=all_groups))
    assert prior is not None
    assert prior.grid.units.usable.nonzero()[0].tolist() == [1]  # the other has one group only
    rest = Normal().fit(all_x, all_v, panels=panels).posterior(all_x, all_v, panels=panels)
    found = prior.posterior(all_x, all_v, panels=panels, groups=all_groups, common=rest)
    np.testing.assert_array_equal(found.mean[:3], rest.mean[:3])
    own = Posterior(found.mean[3:], found.variance[3:], found.shrinkage[3:])
    agree(own, plain(x, v, z), v)
    assert found.mean[-1] == pytest.approx(x[-1], abs=1e-12)  # alone in its group


def test_group_means_with_estimated_variances() -> None:
    x, v = data(30, 12)
    groups = np.repeat([0, 1, 2], 4)
    z = (groups[:, None] == np.arange(3)).astype(float)
    prior = GroupMeans.fit(
        panel_data(x, v, np.array([0, 12]), groups=groups, nu=np.array([6.0]), v_interval=1.5 * v)
    )
    assert prior is not None
    found = prior.posterior(x, v, groups=groups, common=common(x, v), v_interval=1.5 * v)
    estimate, careful = plain(x, v, z, nu=6.0), plain(x, 1.5 * v, z)
    known = careful.variance + (estimate.mean - careful.mean) ** 2
    agree(found, Believed(estimate.mean, known, estimate.shrinkage), v, 5 * QUADRATURE)
    assert GroupMeans.fit(panel_data(x, v, np.array([0, 12]), groups=np.arange(12))) is None


# Regression


def test_regression_is_the_integral() -> None:
    rng = np.random.default_rng(31)
    z = rng.normal(3.0, 2.0, (15, 2))
    v = rng.uniform(0.1, 1.0, 15)
    x = 1.0 + z @ [2.0, -1.0] + np.sqrt(v + 0.3) * rng.normal(size=15)
    prior = Regression.fit(panel_data(x, v, np.array([0, 15]), covariates=z, nu=np.array([8.0])))
    assert prior is not None
    found = prior.posterior(x, v, covariates=z)
    full = np.column_stack([np.ones(15), z])
    estimate, careful = plain(x, v, full, nu=8.0), plain(x, v, full)
    known = careful.variance + (estimate.mean - careful.mean) ** 2
    agree(found, Believed(estimate.mean, known, estimate.shrinkage), v, 5 * QUADRATURE)
    with pytest.raises(TrueupError, match="covariates"):
        prior.posterior(x, v)


def test_what_covariates_span_is_all_that_counts() -> None:
    rng = np.random.default_rng(32)
    z = rng.normal(3.0, 2.0, (20, 2))
    x, v = data(32, 20)
    x += z[:, 0]
    panels = np.array([0, 20])
    plain_prior = Regression.fit(panel_data(x, v, panels, covariates=z))
    assert plain_prior is not None
    first = plain_prior.posterior(x, v, covariates=z)
    ways = [
        np.column_stack([z[:, 1] * 1e9 + 5e9, z[:, 0] * 1e-9]),
        np.column_stack([z, z[:, 0] - 2 * z[:, 1], np.full(20, 7.1)]),
    ]
    for other in ways:
        prior = Regression.fit(panel_data(x, v, panels, covariates=other))
        assert prior is not None
        found = prior.posterior(x, v, covariates=other)
        np.testing.assert_allclose(found.mean, first.mean, rtol=1e-6)
        np.testing.assert_allclose(found.variance, first.variance, rtol=1e-6)
    assert (
        Regression.fit(panel_data(x, v, panels, covariates=np.full((20, 1), 0.1))) is None
    )  # says nothing
    assert (
        Regression.fit(panel_data(x[:6], v[:6], np.array([0, 6]), covariates=z[:6])) is None
    )  # too few questions


def test_a_regression_of_few_precise_questions_stays_finite() -> None:
    rng = np.random.default_rng(33)
    z = rng.normal(size=(12, 3))
    x, v = data(33, 12)
    v[[2, 5]] = [1e-30, 0.0]
    prior = Regression.fit(panel_data(x, v, np.array([0, 12]), covariates=z))
    assert prior is not None
    found = prior.posterior(x, v, covariates=z)
    assert np.isfinite([found.mean, found.variance, found.shrinkage]).all()
    np.testing.assert_allclose(found.mean[[2, 5]], x[[2, 5]], atol=1e-3)


def test_units_of_a_panel() -> None:
    units = PanelUnits.of_tile(np.array([[1.0, 2.0, 9.0, 4.0]]), np.array([[1.0, 1.0, 4.0, 4.0]]))
    assert units.centre.tolist() == [3.0]
    assert units.unit[0] ** 2 == pytest.approx(4 / (1 + 1 + 0.25 + 0.25))
    assert units.usable.tolist() == [True]
