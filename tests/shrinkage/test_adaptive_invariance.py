"""estimate() with its own second step: units, order and names change nothing."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
import pytest

import trueup
from small_panels import agree, clustered, sparse, table

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.core.arrays import Floats


DATA: dict[str, Callable[[], Floats]] = {
    "sparse": lambda: sparse(1),
    "clusters": lambda: clustered(2)[0],
    "absurd": lambda: np.where(np.arange(14) == 3, sparse(1) * 1e3, sparse(1)),
}


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("method", ["auto", "mean", "median"])
@pytest.mark.parametrize(("a", "b"), [(1e12, 0.0), (1e-12, 0.0), (1.0, 64.0), (3.0, -20.0)])
def test_units_change_nothing(data: str, method: str, a: float, b: float) -> None:
    x = DATA[data]()
    # A shift may make all answers positive, and then the data choose the scale.
    transform = "none" if b else "auto"
    first, other = (trueup.estimate(y, method, transform=transform) for y in (x, a * x + b))
    agree(other, first, a, b)
    assert other.diagnosis.method == first.diagnosis.method
    assert other.second_step.models == first.second_step.models


@pytest.mark.parametrize("a", [1e100, 1e-100])
def test_units_change_nothing_as_far_as_answers_may_go(a: float) -> None:
    x = sparse(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        agree(trueup.estimate(a * x, "mean"), trueup.estimate(x, "mean"), a)


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("method", ["auto", "native", "median", "crh"])
def test_order_of_rows_changes_nothing(data: str, method: str) -> None:
    rows = table(DATA[data]())
    first = trueup.estimate(rows, method).questions.sort_values("question", ignore_index=True)
    for shuffle in range(2):
        mixed = trueup.estimate(rows.sample(frac=1.0, random_state=shuffle), method)
        found = mixed.questions.sort_values("question", ignore_index=True)
        assert found["question"].tolist() == first["question"].tolist()
        for name in ("estimate", "lower", "upper", "std_error", "shrinkage", "base"):
            np.testing.assert_allclose(found[name], first[name], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("method", ["auto", "mean"])
def test_names_of_questions_change_nothing(method: str) -> None:
    rows = table(clustered(3)[0])
    first = trueup.estimate(rows, method)
    renamed = rows.assign(question=rows["question"].map(lambda name: name[::-1] + "?"))
    agree(trueup.estimate(renamed, method), first)


@pytest.mark.parametrize("method", ["auto", "mean"])
def test_names_of_workers_in_the_same_order_change_nothing(method: str) -> None:
    rows = table(clustered(3)[0])
    first = trueup.estimate(rows, method)
    renamed = rows.assign(worker="z" + rows["worker"] + "x")
    agree(trueup.estimate(renamed, method), first)


def test_names_of_workers_change_nothing_with_the_normal_prior() -> None:
    rows = table(sparse(2))
    first = trueup.estimate(rows, "mean", "normal")
    back = {name: f"{99 - number}" for number, name in enumerate(sorted(set(rows["worker"])))}
    agree(trueup.estimate(rows.assign(worker=rows["worker"].map(back)), "mean", "normal"), first)


def test_the_number_of_threads_changes_nothing() -> None:
    answers, _ = trueup.simulate(30, 3000, density=0.5, seed=2)
    one, four = (trueup.estimate(answers, "native", threads=threads) for threads in (1, 4))
    np.testing.assert_array_equal(one.estimate, four.estimate)
    np.testing.assert_array_equal(one.upper, four.upper)


def test_a_constant_added_to_one_worker_of_a_complete_panel_moves_all_alike() -> None:
    rng = np.random.default_rng(7)
    x = rng.normal(size=(5, 20)) + rng.normal(0, 1, (5, 1)) + rng.normal(0, 1, 20)
    first = trueup.estimate(x, "mean", "normal")
    x[2] += 3.0
    other = trueup.estimate(x, "mean", "normal")
    assert (first.second_step.certainty.shift > 0).all()
    np.testing.assert_allclose(other.estimate, first.estimate + 0.6, rtol=0, atol=1e-9)
    np.testing.assert_allclose(other.shrinkage, first.shrinkage, rtol=1e-9)


@pytest.mark.parametrize("factor", [3.0, 7.0])
def test_biases_that_are_none_but_for_rounding_change_nothing(factor: float) -> None:
    """Two questions, all agree on one: half of the residual of the other is bias, half noise."""
    x = np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 4.0]])
    results = [trueup.estimate(scale * x, "native").estimate / scale for scale in (1.0, factor)]
    turned = trueup.estimate(factor * x[::-1], "native").estimate / factor
    np.testing.assert_allclose(results[1], results[0], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(turned, results[0], rtol=1e-9, atol=1e-12)


def test_the_seed_changes_the_splits_only() -> None:
    x = sparse(3)
    zero, one = (trueup.estimate(x, "mean", "normal", seed=seed).estimate for seed in (0, 1))
    np.testing.assert_array_equal(zero, one)
    for seed in (0, 1):
        first, again = (trueup.estimate(clustered(4)[0], seed=seed) for _ in range(2))
        np.testing.assert_array_equal(first.estimate, again.estimate)
