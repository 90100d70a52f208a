"""Algorithms against slow plain loops, on random sparse answers."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trueup
from trueup.algorithms import CATD, CRH, DTD, IPTD, Algorithm, KDEm, StudentT, WeightedMedian, run
from trueup.answers.answers import Answers
from trueup.core.arrays import rectangles

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.core.arrays import Floats


def random_matrix(seed: int, n: int = 6, m: int = 12) -> Floats:
    rng = np.random.default_rng(seed)
    matrix = rng.normal(0, 3, m) + rng.uniform(0.2, 2, n)[:, None] * rng.standard_normal((n, m))
    matrix[rng.random((n, m)) < 0.4] = np.nan
    matrix[rng.integers(0, n, m), np.arange(m)] = rng.normal(size=m)
    return matrix


def columns(matrix: Floats) -> list[tuple[list[int], Floats]]:
    """Who answered each question, and what."""
    result = []
    for j in range(matrix.shape[1]):
        who = np.flatnonzero(~np.isnan(matrix[:, j]))
        result.append((who.tolist(), matrix[who, j]))
    return result


def weighted_means(matrix: Floats, weight: Floats) -> Floats:
    return np.array([np.average(x, weights=weight[who]) for who, x in columns(matrix)])


def pooled(matrix: Floats) -> float:
    within = sum(((x - x.mean()) ** 2).sum() for _, x in columns(matrix))
    return float(within / sum(len(x) - 1 for _, x in columns(matrix)))


def fill(weight: Floats, counts: Floats) -> Floats:
    return np.where(counts > 0, weight, weight[counts > 0].mean())


def dtd_loop(matrix: Floats, iterations: int) -> Floats:
    n = len(matrix)
    pool, weight = pooled(matrix), np.ones(n)
    for _ in range(iterations):
        truth = weighted_means(matrix, weight)
        ss, freedom, counts = np.zeros(n), np.zeros(n), np.zeros(n)
        for j, (who, x) in enumerate(columns(matrix)):
            if len(who) < 2:
                continue
            for i, value in zip(who, x, strict=True):
                ss[i] += (value - truth[j]) ** 2
                freedom[i] += 1 - weight[i] / weight[who].sum()
                counts[i] += 1
        variance = np.maximum((ss + 2 * pool) / (freedom + 2), 1e-6 * pool)
        weight = fill(1 / variance, counts)
    return weighted_means(matrix, weight)


def crh_loop(matrix: Floats, iterations: int) -> Floats:
    n, weight = len(matrix), np.ones(len(matrix))
    for _ in range(iterations):
        truth = weighted_means(matrix, weight)
        loss, counts = np.zeros(n), np.zeros(n)
        for j, (who, x) in enumerate(columns(matrix)):
            if len(who) < 2:
                continue
            for i, value in zip(who, x, strict=True):
                loss[i] += (value - truth[j]) ** 2 / x.std() if x.std() > 0 else 0
                counts[i] += 1
        distance = np.where(counts > 0, loss / np.maximum(counts, 1), 0)
        share = np.maximum(distance / distance.sum(), 1e-8)
        weight = fill(-np.log(share), counts)
    return weighted_means(matrix, weight)


def iptd_loop(matrix: Floats, iterations: int) -> Floats:
    """Looks at every pair of answers."""
    n, weight = len(matrix), np.ones(len(matrix))
    for _ in range(iterations):
        above, below, counts = np.zeros(n), np.zeros(n), np.zeros(n)
        for who, x in columns(matrix):
            if len(who) < 2:
                continue
            for i, value in zip(who, x, strict=True):
                counts[i] += 1
                for other, its in zip(who, x, strict=True):
                    if other != i:
                        above[i] += weight[other] * (value - its) ** 2
                        below[i] += weight[other]
        proxy = np.where(counts > 0, above / np.where(counts > 0, below, 1), 0)
        half = proxy[counts > 0].mean() / 2
        fault = np.maximum(np.where(counts > 0, proxy, half), 0.01 * half)
        weight = fill(1 / fault, counts)
    return weighted_means(matrix, weight)


LOOPS: list[tuple[Algorithm, Callable[[Floats, int], Floats]]] = [
    (DTD(), dtd_loop),
    (CRH(), crh_loop),
    (IPTD(), iptd_loop),
]


@pytest.mark.parametrize(("algorithm", "loop"), LOOPS, ids=["dtd", "crh", "iptd"])
@given(seed=st.integers(0, 10_000), iterations=st.integers(0, 4))
def test_equals_a_plain_loop(
    algorithm: Algorithm, loop: Callable[[Floats, int], Floats], seed: int, iterations: int
) -> None:
    matrix = random_matrix(seed)
    found = run(algorithm, Answers.from_matrix(matrix), max_iter=iterations, tol=0.0)
    np.testing.assert_allclose(found.x, loop(matrix, iterations), rtol=1e-9, atol=1e-9)


@given(seed=st.integers(0, 10_000))
def test_weighted_median_minimises_the_weighted_absolute_distance(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = random_matrix(seed).round(1)  # with ties
    answers = Answers.from_matrix(matrix)
    weight = rng.integers(1, 4, answers.n_answers).astype(float)
    (block,) = answers.blocks()
    found = block.weighted_median(weight)
    for j, (start, stop) in enumerate(pairwise(block.indptr.tolist())):
        values, w = block.values[start:stop], weight[start:stop]
        loss = [(w * np.abs(values - value)).sum() for value in values]
        best = values[np.isclose(loss, min(loss))]
        assert found[j] == pytest.approx((best.min() + best.max()) / 2)


def test_weighted_median_with_equal_weights_is_the_median() -> None:
    answers = Answers.from_matrix(random_matrix(3))
    (block,) = answers.blocks()
    np.testing.assert_array_equal(
        block.weighted_median(np.full(len(block.values), 0.1)), block.median
    )


def test_laplace_weights_follow_the_mean_absolute_error() -> None:
    rng = np.random.default_rng(1)
    scale = np.array([0.5, 1.0, 2.0, 4.0, 1.0, 0.5, 2.0])
    matrix = rng.normal(0, 5, 4000) + rng.laplace(0, 1, (7, 4000)) * scale[:, None]
    found = run(WeightedMedian(), Answers.from_matrix(matrix), max_iter=30)
    relative = found.weight * scale
    assert relative.max() / relative.min() < 1.5


def test_student_truths_solve_their_equation() -> None:
    matrix = random_matrix(5)
    matrix[0, :3] += 100.0  # gross answers
    answers = Answers.from_matrix(matrix)
    found = run(StudentT(), answers, max_iter=6)
    for j, (who, x) in enumerate(columns(matrix)):
        variance = found.state["variance"][who]
        residual = x - found.x[j]
        u = 5 / (4 + residual**2 / variance)
        assert np.sum(u / variance * residual) == pytest.approx(0, abs=1e-7)


def kde_mode(values: Floats, weight: Floats) -> float:
    """Look for the highest point of the density on a fine grid."""
    z = (values - values.mean()) / values.std()
    h = np.median(np.abs(z - np.median(z))) + 1e-10
    grid = np.linspace(z.min(), z.max(), 200_001)
    density = sum(w * np.exp(-(((grid - at) / h) ** 2)) for w, at in zip(weight, z, strict=True))
    return float(values.mean() + values.std() * grid[np.argmax(density)])


def test_kdem_finds_the_highest_point_of_the_density() -> None:
    rng = np.random.default_rng(8)
    matrix = rng.normal(0, 1, (7, 12)) * rng.uniform(0.5, 3, 7)[:, None]
    found = run(KDEm(), Answers.from_matrix(matrix), max_iter=3, tol=0.0)
    for j in range(12):
        expected = kde_mode(matrix[:, j], found.weight)
        assert found.x[j] == pytest.approx(expected, abs=2e-4 * matrix[:, j].std())


def test_binned_density_is_close_to_the_exact_one() -> None:
    rng = np.random.default_rng(9)
    k = 500
    truth = rng.normal(0, 2, 3)
    matrix = truth + rng.gamma(2.0, 1.0, (k, 3)) * rng.uniform(0.5, 1.5, k)[:, None]
    matrix[:9, 1] += 1e6  # far away: empty bins in between must not cost anything
    answers = Answers.from_matrix(matrix)
    exact = run(KDEm(binned_above=k), answers, max_iter=2, tol=0.0)
    binned = run(KDEm(binned_above=10), answers, max_iter=2, tol=0.0)
    np.testing.assert_allclose(binned.x, exact.x, atol=1e-4 * float(matrix[:, 0].std()))
    np.testing.assert_allclose(binned.weight, exact.weight, rtol=1e-2)


def test_catd_rewards_many_answers_by_the_chi_square_quantile() -> None:
    from scipy.stats import chi2

    counts = np.array([1.0, 2.0, 3.0, 5.0, 10.0, 50.0, 100.0])
    np.testing.assert_allclose(CATD().reward(counts), chi2.ppf(0.025, counts) / counts, rtol=1e-12)
    published = [0.000982, 0.025318, 0.071932, 0.166242, 0.324697, 0.647147, 0.742219]
    np.testing.assert_allclose(CATD().reward(counts), published, atol=5e-7)


def test_catd_equals_dtd_on_complete_answers() -> None:
    rng = np.random.default_rng(2)
    answers = Answers.from_matrix(rng.normal(0, 1, (6, 9)) * rng.uniform(0.5, 2, 6)[:, None])
    for iterations in (1, 3, 14):
        dtd = run(DTD(), answers, max_iter=iterations, tol=0.0)
        catd = run(CATD(), answers, max_iter=iterations, tol=0.0)
        np.testing.assert_allclose(catd.x, dtd.x, rtol=1e-10)


def test_one_ridge_proxy_iteration_equals_one_published_dtd_iteration() -> None:
    rng = np.random.default_rng(4)
    answers = Answers.from_matrix(rng.normal(0, 1, (6, 9)) * rng.uniform(0.5, 2, 6)[:, None])
    dtd = run(DTD(preset="paper"), answers, max_iter=1)
    ridge = run(IPTD(variant="awg", lam=4.0), answers, max_iter=1)
    np.testing.assert_allclose(ridge.x, dtd.x, rtol=1e-10)


def test_huber_truths_ignore_how_far_away_a_gross_answer_is() -> None:
    matrix = random_matrix(6, n=7)
    matrix[:, 0] = [1.0, 1.1, 0.9, 1.0, 1.05, 0.95, 1e4]
    near = matrix.copy()
    near[6, 0] = 1e3
    huber = StudentT(errors="huber", nu0=20.0)
    far_x, near_x = (
        run(huber, Answers.from_matrix(each), max_iter=0).x[0] for each in (matrix, near)
    )
    assert far_x == near_x


def test_rectangles_hold_every_answer_once() -> None:
    answers = Answers.from_matrix(random_matrix(7, n=9, m=40))
    seen = np.concatenate([p.ravel() for _, p in rectangles(answers.indptr, batch=20)])
    assert sorted(seen.tolist()) == list(range(answers.n_answers))


@pytest.mark.filterwarnings("ignore:one worker has more than 90%")
def test_rounding_does_not_decide_whom_pm_takes_for_the_worst() -> None:
    """The first and the last worker contradict each other everywhere, and are equally far from the truths."""
    x = np.array([[1.0, 1.0, 2.0], [1.0, 2.0, np.nan], [2.0, 2.0, 1.0]])
    one, other = (trueup.estimate(each, "pm", "none") for each in (x, -x))
    assert one.aggregate.settled.all()
    np.testing.assert_allclose(one.estimate, [1.0, 2.0, 1.5], atol=1e-7)
    np.testing.assert_allclose(other.estimate, -one.estimate, rtol=1e-12)
