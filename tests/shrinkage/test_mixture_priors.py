"""Clusters on a line, and mixtures against plain loops and the risks that they should reach."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.stats import norm

from plain_quadrature import data, panel_data
from trueup.shrinkage import Mixture, Normal, expectation, location_mixture
from trueup.shrinkage.clusters import line_clusters
from trueup.shrinkage.expectation import Components, fit_location, fit_one, fit_scale
from trueup.shrinkage.location_mixture import LocationMixture
from trueup.shrinkage.mixture_search import choose
from trueup.shrinkage.scale_mixture import ScaleMixture

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


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
    used = (few.grid.nodes.weight > 0).sum()
    assert 2 < used < 7
    assert (full.grid.nodes.weight > 1e-12).sum() > 3 * used
    assert few.grid.nodes.weight.sum() == pytest.approx(1.0, rel=1e-12)
    one, other = (prior.posterior(x, v, v_interval=2 * v) for prior in (few, full))
    for name in ("mean", "variance", "shrinkage"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9, atol=1e-11)
    row = np.array([0])
    soft, hard = (prior.membership(row, x[None], v[None]) for prior in (few, full))
    np.testing.assert_allclose(soft, hard, atol=1e-11)


def test_moves_follow_from_the_components_of_each_point() -> None:
    """By plain loops; the clusters overlap, so that a question may belong to several."""
    rng = np.random.default_rng(29)
    v = rng.uniform(0.5, 1.5, 800)
    x = rng.choice([0.0, 2.5], 800) + rng.normal(0, 0.5, 800) + np.sqrt(v) * rng.normal(size=800)
    questions = panel_data(x, v, np.array([0, 800]))
    prior = LocationMixture.fit(questions, *choose(questions).of(np.array([0])))
    found = prior.posterior(x, v)
    grid, nodes = prior.grid, prior.grid.nodes
    assert prior.pi.shape[1] > 1
    t, u = grid.units.standardise(np.array([0]), x[None], v[None])
    for j in range(0, 800, 23):
        means, within = [], []
        for g in range(nodes.s.shape[1]):
            s, mu = nodes.s[0, g], grid.beta[0, g]
            share = prior.pi[0] * norm.pdf(t[0, j], mu, np.sqrt(u[0, j] + s))
            share /= share.sum()
            b = u[0, j] / (u[0, j] + s)
            each = (1 - b) * t[0, j] + b * mu
            middle = share @ each
            own = b * s + b**2 / grid.precision[0, g]
            means.append(middle)
            within.append(share @ (own + (each - middle) ** 2))
        p = nodes.weight[0]
        mean = p @ means
        variance = p @ within + p @ (np.array(means) - mean) ** 2
        expected = grid.units.restore(np.array([0]), np.array([[mean]]), np.array([[variance]]))
        assert found.mean[j] == pytest.approx(expected[0].item(), rel=1e-9)
        assert found.variance[j] == pytest.approx(expected[1].item(), rel=1e-9)


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
