"""Many questions as few weighted ones."""

from __future__ import annotations

import numpy as np
import pytest

from trueup.shrinkage import Adaptive, Mixture, Normal, condense
from trueup.shrinkage.expectation import fit_one


def draw(kind: str, questions: int = 30_000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    truths = {
        "normal": rng.normal(3, 1, questions),
        "uniform": rng.uniform(0, 10, questions),
        "skewed": rng.gamma(2, 1, questions),
        "far out": np.append(rng.normal(0, 1, questions - 2), [1e6, -1e12]),
    }[kind]
    v = 0.1 * rng.chisquare(6, questions)
    return truths + np.sqrt(v) * rng.normal(size=questions), v


def test_few_questions_stay_as_they_are() -> None:
    t, u = np.arange(12.0).reshape(2, 6), np.ones((2, 6))
    points, variances, number = condense.condense(t, u)
    assert points is t
    assert variances is u
    assert number is None


def test_sums_and_products_are_kept() -> None:
    x, v = (each[None] for each in draw("skewed"))
    points, variances, number = condense.condense(x, v)
    assert number is not None
    assert points.size < x.size / 10
    for one, two in ((1, 0), (0, 1), (2, 0), (1, 1), (0, 2)):
        new = (number * points**one * variances**two).sum()
        np.testing.assert_allclose(new, (x**one * v**two).sum(), rtol=1e-10)


def test_rows_of_different_length_are_padded_with_nothing() -> None:
    both = [draw(kind) for kind in ("normal", "uniform")]
    x, v = (np.stack(each) for each in zip(*both, strict=True))
    points, variances, number = condense.condense(x, v)
    assert number is not None
    np.testing.assert_allclose(number.sum(axis=1), x.shape[1])
    for row in range(2):
        alone = condense.condense(x[row : row + 1], v[row : row + 1])
        used = alone[0].shape[1]
        for padded, single in zip((points, variances, number), alone, strict=True):
            assert single is not None
            np.testing.assert_array_equal(padded[row, :used], single[0])
        assert not number[row, used:].any()


def test_the_likelihood_hardly_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    x, v = (each[None] for each in draw("uniform"))
    np.testing.assert_allclose(fit_one(*condense.condense(x, v)), fit_one(x, v), atol=0.05)
    # Were each cell only its mean, the difference would be large.
    monkeypatch.setattr(condense, "WIDTH", 3.0)
    assert abs(fit_one(*condense.condense(x, v)) - fit_one(x, v)) < 5


@pytest.mark.parametrize("kind", ["normal", "uniform", "skewed", "far out"])
@pytest.mark.parametrize("rule", [Normal(), Mixture(), Adaptive()], ids=lambda rule: rule.name)
def test_posteriors_hardly_move(
    kind: str, rule: Normal | Mixture | Adaptive, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, v = draw(kind)
    few = rule.fit(x, v, nu=200.0).posterior(x, v)
    monkeypatch.setattr(condense, "MANY", len(x) + 1)
    every = rule.fit(x, v, nu=200.0).posterior(x, v)
    move = np.abs(few.mean - every.mean) / np.sqrt(v)
    assert np.sqrt((move**2).mean()) < 1e-3
    assert move.max() < 1e-2
    np.testing.assert_allclose(few.variance, every.variance, rtol=1e-2)


def test_variances_of_zero_stay_apart() -> None:
    x, v = draw("normal")
    v[:100] = 0.0
    points, variances, number = condense.condense(x[None], v[None])
    assert number is not None
    exact = (variances[0] == 0) & (number[0] > 0)
    np.testing.assert_array_equal(np.sort(points[0, exact]), np.sort(x[:100]))
