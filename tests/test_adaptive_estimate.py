"""estimate() with its own second step, end to end: edge cases, invariances, arguments, words, and a plain reference."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import plain_second_step as plain
import trueup
from frames_by_library import FRAMES, rows
from trueup import Answers, TrueupError, TrueupWarning
from trueup.algorithms import Algorithm, run
from trueup.algorithms.registry import find
from trueup.draws import places
from trueup.engines.memory import MemoryEngine
from trueup.halves import SPLITS
from trueup.shrinkage import Adaptive, Normal
from trueup.solution import INTERVALS, NO_OVERLAP, POINT_ONLY

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.arrays import Floats

NAN = np.nan


def sparse(seed: int, n: int = 8, m: int = 14, *, share: float = 0.7, bias: float = 0.5) -> Floats:
    """Unlike workers with biases; every question has an answer, some a single one."""
    rng = np.random.default_rng(seed)
    noise = np.exp(rng.normal(0, 0.5, n))
    x = rng.normal(0, 2, m) + rng.normal(0, bias, (n, 1)) + noise[:, None] * rng.normal(size=(n, m))
    rank = rng.random((n, m)).argsort(axis=0).argsort(axis=0)
    x[(rng.random((n, m)) > share) & (rank > 0)] = NAN
    return x[~np.isnan(x).all(axis=1)]


def clustered(seed: int, n: int = 6, m: int = 45) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    truth = rng.choice([0.0, 10.0, 30.0], m) + rng.normal(0, 0.3, m)
    return truth + rng.normal(size=(n, m)), truth


def grouped(seed: int, n: int = 5) -> tuple[Floats, list[str]]:
    rng = np.random.default_rng(seed)
    truth = np.repeat(rng.normal(0, 5, 5), 10) + rng.normal(0, 0.3, 50)
    return truth + rng.normal(size=(n, 50)), np.repeat(list("abcde"), 10).tolist()


def table(x: Floats) -> pd.DataFrame:
    worker, question = np.nonzero(~np.isnan(x))
    return pd.DataFrame(
        {
            "question": [f"q{j:03d}" for j in question],
            "worker": [f"w{i:03d}" for i in worker],
            "answer": x[worker, question],
        }
    )


def columns_of(x: Floats) -> dict[str, Any]:
    """The same as a dict of lists."""
    return {str(name): column.tolist() for name, column in table(x).items()}


def sound(est: trueup.Estimate) -> None:
    """Finite numbers, or unknown intervals with a reason."""
    assert np.isfinite(est.estimate).all()
    assert np.isfinite(est.base).all()
    assert (est.shrinkage >= 0).all()
    assert (est.shrinkage <= 1).all()
    unknown = np.isnan(est.lower)
    np.testing.assert_array_equal(unknown, np.isnan(est.upper))
    np.testing.assert_array_equal(unknown, np.isnan(est.std_error))
    if unknown.any():
        assert any("unknown" in text for text in est.diagnosis.assumptions)
    assert (est.lower <= est.estimate)[~unknown].all()
    assert (est.estimate <= est.upper)[~unknown].all()


# Edge cases


@pytest.mark.parametrize(
    "x",
    [
        np.arange(5.0)[None],
        np.where(np.eye(6) > 0, np.arange(6.0), NAN),
        np.array([[4.5]]),
    ],
    ids=["one worker", "disjoint workers", "one answer"],
)
@pytest.mark.parametrize("method", ["auto", "mean", "crh", "median"])
def test_without_two_answers_to_a_question_nothing_is_known_of_the_noise(
    x: Floats, method: str
) -> None:
    est = trueup.estimate(x, method)
    sound(est)
    np.testing.assert_array_equal(est.estimate, np.nanmax(x, axis=0))
    assert np.isnan(est.lower).all()
    assert np.isnan(est.base_std_error).all()
    assert NO_OVERLAP in est.diagnosis.assumptions
    assert est.second_step.models == ["none"]
    assert not est.shrinkage.any()
    assert "left all questions where they were" in str(est)


@pytest.mark.parametrize("m", [1, 4, 12])
def test_where_all_agree_intervals_have_no_width(m: int) -> None:
    est = trueup.estimate(np.tile(np.arange(float(m)), (4, 1)))
    sound(est)
    np.testing.assert_array_equal(est.estimate, np.arange(float(m)))
    np.testing.assert_array_equal(est.upper - est.lower, 0.0)
    assert est.second_step.models == ["none"]


@pytest.mark.parametrize("m", range(1, 9))
@pytest.mark.parametrize("method", ["auto", "mean", "median"])
def test_few_questions(m: int, method: str) -> None:
    x = np.random.default_rng(m).normal(size=(5, m)) + np.arange(m)
    est = trueup.estimate(x, method)
    sound(est)
    assert np.isfinite(est.lower).all()
    if m <= 3:
        np.testing.assert_array_equal(est.estimate, est.base)
        np.testing.assert_allclose(est.std_error, est.base_std_error, rtol=1e-12)
        assert est.second_step.models == ["none"]
    else:
        assert (est.shrinkage > 0).all()
        assert est.second_step.models == ["normal"]


def test_of_up_to_seven_questions_only_the_normal_prior_is_tried() -> None:
    x, _ = clustered(1, m=7)
    assert trueup.estimate(x, "mean").second_step.models == ["normal"]
    wide, _ = clustered(1, m=40)
    assert trueup.estimate(wide, "mean").second_step.models == ["mixture"]


def test_equal_aggregates_stay() -> None:
    x = np.array([[1.0, 2.0, 1.0, 2.0, 1.0, 2.0], [2.0, 1.0, 2.0, 1.0, 2.0, 1.0]]) + 7
    est = trueup.estimate(x, "mean")
    sound(est)
    np.testing.assert_allclose(est.estimate, 8.5, rtol=1e-12)
    assert (est.upper > est.lower).all()
    assert np.ptp(est.std_error) == pytest.approx(0.0, abs=1e-12)


def test_a_single_answer_is_shrunk_more_and_says_nothing_of_its_author() -> None:
    x = np.random.default_rng(3).normal(size=(5, 12))
    x[1:, 4] = NAN
    est = trueup.estimate(x, "mean")
    sound(est)
    others = np.arange(12) != 4
    assert (est.shrinkage[4] > est.shrinkage[others]).all()
    assert (est.std_error[4] > est.std_error[others]).all()
    far = x.copy()
    far[0, 4] += 1.0
    again = trueup.estimate(far, "mean")
    np.testing.assert_allclose(again.second_step.certainty.v, est.second_step.certainty.v)


def test_a_worker_with_no_informative_answer() -> None:
    x = np.random.default_rng(4).normal(size=(5, 12))
    wide = np.full((6, 14), NAN)
    wide[:5, :12] = x
    wide[5, 12:] = [1.0, -1.0]
    est = trueup.estimate(wide)
    sound(est)
    assert np.isfinite(est.lower).all()
    noise = est.second_step.noise
    assert noise is not None
    assert 0 < noise.variance[5] < np.inf
    assert est.flag == [None] * 5 + ["shares no question with anybody"]


def test_many_degrees_of_freedom_have_normal_quantiles() -> None:
    few, many = (
        trueup.estimate(np.random.default_rng(5).normal(size=(8, m)), "mean") for m in (10, 200)
    )
    assert few.second_step.certainty.nu[0] < 300 < many.second_step.certainty.nu[0]
    for est, low, high in ((few, 1.965, 2.2), (many, 1.9599, 1.96)):
        width = (est.upper - est.lower) / 2 / est.std_error
        assert low < width.min()
        assert width.max() < high


def test_workers_with_one_answer_each() -> None:
    rng = np.random.default_rng(6)
    x = np.full((40, 10), NAN)
    x[np.arange(40), np.arange(40) % 10] = rng.normal(size=40)
    est = trueup.estimate(x)
    sound(est)
    assert np.isfinite(est.lower).all()
    assert 0 < est.shrinkage.mean() < 1


# Invariances


def agree(found: trueup.Estimate, first: trueup.Estimate, a: float = 1.0, b: float = 0.0) -> None:
    """To 1e-9 of the spread of the answers."""
    unit = float(np.ptp(first.base)) + float(np.nanmax(first.std_error))
    for name, scale, shift in (
        ("estimate", a, b),
        ("lower", a, b),
        ("upper", a, b),
        ("base", a, b),
        ("std_error", a, 0.0),
        ("shrinkage", 1.0, 0.0),
    ):
        before, after = getattr(first, name), getattr(found, name)
        size = 1.0 if name == "shrinkage" else unit
        np.testing.assert_allclose((after - shift) / scale, before, rtol=1e-9, atol=1e-9 * size)


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
    first, other = trueup.estimate(x, method), trueup.estimate(a * x + b, method)
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
    np.testing.assert_allclose(results[1], results[0], rtol=1e-9)
    np.testing.assert_allclose(turned, results[0], rtol=1e-9)


def test_the_seed_changes_the_splits_only() -> None:
    x = sparse(3)
    zero, one = (trueup.estimate(x, "mean", "normal", seed=seed).estimate for seed in (0, 1))
    np.testing.assert_array_equal(zero, one)
    for seed in (0, 1):
        first, again = (trueup.estimate(clustered(4)[0], seed=seed) for _ in range(2))
        np.testing.assert_array_equal(first.estimate, again.estimate)


# The plain reference


def shares(answers: Answers, aggregate: Any) -> Floats:
    """Weight of every answer in its question, workers x questions."""
    p = np.zeros((answers.n_workers, answers.n_questions))
    (block,) = answers.blocks()
    at = np.repeat(np.arange(block.n_questions), block.counts)
    p[block.workers, at] = aggregate.algorithm.weights(
        block, aggregate.state.of(block), aggregate.offset
    )
    return p


def reference(x: Floats, method: str, seed: int = 0, **options: Any) -> dict[str, Any]:
    answers = Answers.of(x)
    aggregate = run(find(method), answers)
    orders = [np.argsort(places(answers, seed, draw)).tolist() for draw in range(SPLITS)]
    robust = aggregate.kind == "robust"
    p = shares(answers, aggregate) if not robust else plain.plain_weights(x)
    return plain.second_step(x, p, aggregate.x, orders, robust=robust, **options)


def shift_workers(x: Floats) -> int:
    """Workers with two informative answers."""
    noise = plain.worker_noise(x)
    return int(sum(count >= 2 for count in noise["K"]))


@pytest.mark.parametrize("method", ["mean", "native", "crh", "median"])
@pytest.mark.parametrize("caution", [1.0, 0.8])
@pytest.mark.parametrize("seed", range(3))
def test_the_normal_prior_is_that_of_the_plain_loop(seed: int, method: str, caution: float) -> None:
    """Points and ends of the two quadratures differ: a thousandth of a standard error."""
    x = sparse(10 + seed, m=12 if seed else 6)
    est = trueup.estimate(x, method, "normal", caution=caution)
    answers = Answers.of(x)
    aggregate = run(find(method), answers)
    robust = aggregate.kind == "robust"
    p = plain.plain_weights(x) if robust else shares(answers, aggregate)
    loop = plain.second_step(x, p, aggregate.x, caution=caution, robust=robust)
    error = np.sqrt(loop["var"])
    np.testing.assert_allclose((est.estimate - loop["e"]) / error, 0.0, atol=2e-3)
    np.testing.assert_allclose(est.shrinkage, loop["B"], atol=2e-3)
    posterior = est.second_step.posterior
    np.testing.assert_allclose(posterior.variance, loop["var"], rtol=5e-3)
    low, high = plain.interval(
        loop["e"], loop["var"], loop["shift"], loop["nu"], 0.95, max(shift_workers(x) - 1.0, 1.0)
    )
    # The common shift of robust first steps is that of the plain mean.
    np.testing.assert_allclose((est.lower - low) / error, 0.0, atol=2e-2)
    np.testing.assert_allclose((est.upper - high) / error, 0.0, atol=2e-2)


@pytest.mark.parametrize("seed", range(4))
def test_mixtures_that_earn_their_place_are_those_of_the_plain_loop(seed: int) -> None:
    """The search over components and its stops differ in details: a twentieth of a standard error."""
    x, _ = clustered(20 + seed, n=5, m=30)
    x[np.random.default_rng(seed).random(x.shape) < 0.15] = NAN
    x = x[:, ~np.isnan(x).all(axis=0)]
    est = trueup.estimate(x, "mean", Adaptive(1.0), seed=seed)
    loop = reference(x, "mean", seed)
    assert loop["model"] == "location"
    assert loop["omega"] == 1.0
    assert est.second_step.models == ["mixture"]
    error = np.sqrt(loop["var"])
    np.testing.assert_allclose((est.estimate - loop["e"]) / error, 0.0, atol=0.05)
    np.testing.assert_allclose(est.shrinkage, loop["B"], atol=0.03)
    np.testing.assert_allclose(est.second_step.posterior.variance, loop["var"], rtol=0.05)
    parts = est.partition.sort_values(["question", "part"])
    belongs = np.zeros_like(loop["R"])
    belongs[parts["question"], parts["part"] - 1] = parts["probability"]
    np.testing.assert_allclose(belongs, loop["R"], atol=0.02)


@pytest.mark.parametrize("useful", [True, False])
def test_groups_earn_their_place_as_in_the_plain_loop(useful: bool) -> None:
    x, labels = grouped(1)
    if not useful:
        x = x[:, np.random.default_rng(2).permutation(50)] + 20 * np.random.default_rng(1).normal(
            size=50
        )
    codes = np.repeat(np.arange(5), 10)
    est = trueup.estimate(x, "mean", Adaptive(1.0), groups=labels)
    loop = reference(x, "mean", groups=codes)
    names = {"group means": "group means", "group priors": "groups", "normal": "normal"}
    assert est.second_step.models == [names[loop["model"]]]
    assert est.second_step.models[0].startswith("group") == useful
    error = np.sqrt(loop["var"])
    np.testing.assert_allclose((est.estimate - loop["e"]) / error, 0.0, atol=0.01)
    np.testing.assert_allclose(est.second_step.posterior.variance, loop["var"], rtol=0.02)


def test_what_has_not_earned_its_place_is_not_used() -> None:
    kept = 0
    for seed in range(10):
        x = sparse(40 + seed, n=8, m=16)
        est, normal = (trueup.estimate(x, "mean", shrink) for shrink in ("adaptive", "normal"))
        if not reference(x, "mean").get("earned"):
            kept += 1
            np.testing.assert_array_equal(est.estimate, normal.estimate)
            np.testing.assert_array_equal(est.upper, normal.upper)
    assert kept >= 7


# Arguments


def test_caution_takes_a_share_of_the_step() -> None:
    x = sparse(5)
    full, half = (trueup.estimate(x, "mean", caution=caution) for caution in (1.0, 0.5))
    assert full.second_step.models == half.second_step.models == ["normal"]
    np.testing.assert_allclose(
        half.estimate - half.base, 0.5 * (full.estimate - full.base), atol=1e-12
    )
    np.testing.assert_allclose(half.shrinkage, 0.5 * full.shrinkage, rtol=1e-12)
    default = trueup.estimate(x, "mean")
    np.testing.assert_allclose(default.shrinkage, 0.8 * full.shrinkage, rtol=1e-12)


def test_what_has_earned_its_place_is_not_cut_down() -> None:
    x, _ = clustered(6)
    full, half = (trueup.estimate(x, "mean", caution=caution) for caution in (1.0, 0.5))
    assert full.second_step.models == ["mixture"]
    np.testing.assert_array_equal(half.estimate, full.estimate)


def test_a_rule_that_is_given_keeps_its_own_caution() -> None:
    x = sparse(5)
    full = trueup.estimate(x, "mean", caution=1.0)
    for rule in (Adaptive(1.0), Normal(1.0)):
        np.testing.assert_allclose(
            trueup.estimate(x, "mean", rule, caution=0.3).estimate, full.estimate, rtol=1e-12
        )
    own = trueup.estimate(x, "mean", Normal(0.25))
    np.testing.assert_allclose(own.shrinkage, 0.25 * full.shrinkage, rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"caution": 0.0}, "^caution: found 0"),
        ({"caution": 1.5}, "^caution"),
        ({"caution": NAN}, "^caution: found nan"),
        ({"caution": "bold"}, "^caution"),
        ({"seed": -1}, "^seed: found -1"),
        ({"seed": 1.5}, "^seed"),
        ({"seed": None}, "^seed"),
        ({"level": 0.0}, "^level"),
        ({"level": 1.0}, "^level"),
        ({"level": "high"}, "^level"),
        ({"groups": "kind"}, "^groups"),
        ({"groups": ["a", "b"]}, "^groups"),
        ({"groups": {"nobody asked": 1}}, "^groups"),
        ({"covariates": "size"}, "^covariates"),
        ({"covariates": np.zeros((3, 1))}, "^covariates"),
        ({"covariates": np.full((14, 1), NAN)}, "^covariates"),
        ({"gold": {"nobody asked": 1.0}}, "^gold"),
        ({"gold": {0: "many"}}, "^gold"),
        ({"gold": [1.0, 2.0]}, "^gold"),
        ({"gold": {0: np.inf}}, "^gold"),
        ({"method": "best"}, "method"),
        ({"shrink": "much"}, "shrink"),
    ],
)
def test_wrong_arguments_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TrueupError, match=message):
        trueup.estimate(sparse(6), **options)


def test_panels_have_no_auto() -> None:
    answers, _ = trueup.simulate(5, 10, panels=3, seed=1)
    with pytest.raises(TrueupError, match="method: auto chooses for one problem"):
        trueup.estimate(answers)
    est = trueup.estimate(answers, "native")
    sound(est)
    assert est.partition is None
    one = trueup.estimate(answers.panel(1), "native")
    np.testing.assert_allclose(est.estimate[10:20], one.estimate, rtol=1e-9)
    np.testing.assert_allclose(est.upper[10:20], one.upper, rtol=1e-9)


@pytest.mark.parametrize(
    "kind",
    [list, tuple, np.asarray, pd.Series],
)
@pytest.mark.parametrize("shrink", ["adaptive", "morris"])
def test_known_variances_of_the_aggregates(kind: Callable[[Any], Any], shrink: str) -> None:
    x = sparse(7, m=10)
    est = trueup.estimate(x, "mean", shrink, kind([0.1] * 5 + [5.0] * 5))
    np.testing.assert_allclose(est.base_std_error, np.sqrt([0.1] * 5 + [5.0] * 5))
    assert est.shrinkage[:5].max() < est.shrinkage[5:].min()


def test_a_known_variance_needs_no_second_answer() -> None:
    est = trueup.estimate(np.arange(8.0)[None], "mean", variance=1.0)
    sound(est)
    assert np.isfinite(est.lower).all()
    assert (est.shrinkage > 0).all()


def test_with_known_worker_variances_auto_is_blue() -> None:
    x = np.random.default_rng(8).normal(size=(3, 12))
    known = np.array([0.5, 1.0, 4.0])
    est = trueup.estimate(x, worker_variance=known)
    assert est.diagnosis.method == "blue"
    assert est.diagnosis.why == "worker variances are known"
    np.testing.assert_allclose(est.base, (x / known[:, None]).sum(axis=0) / (1 / known).sum())
    np.testing.assert_allclose(est.base_std_error, (1 / (1 / known).sum()) ** 0.5)
    # As good as known: normal quantiles.
    np.testing.assert_allclose((est.upper - est.lower) / 2, 1.959964 * est.std_error, rtol=1e-6)


class Midrange(Algorithm):
    """A black box: it does not say how much each answer counts."""

    name = "midrange"

    def truths(self, block: Any, state: Any) -> Any:
        low = np.minimum.reduceat(block.values, block.indptr[:-1])
        return 0.5 * (low + np.maximum.reduceat(block.values, block.indptr[:-1]))

    def weights(self, block: Any, state: Any, x: Any) -> None:
        return None


def test_a_black_box_has_its_variance_by_jackknife_and_the_normal_prior() -> None:
    x = clustered(7, n=7, m=30)[0]
    est = trueup.estimate(x, Midrange())
    sound(est)
    middle = 0.5 * (x.min(axis=0) + x.max(axis=0))
    np.testing.assert_allclose(est.base, middle)
    left = np.array(
        [0.5 * (y.min(axis=0) + y.max(axis=0)) for y in (np.delete(x, i, axis=0) for i in range(7))]
    )
    jackknife = 6 / 7 * ((left - left.mean(axis=0)) ** 2).sum(axis=0)
    np.testing.assert_allclose(est.base_std_error**2, jackknife, rtol=1e-9)
    assert est.second_step.models == ["normal"]
    assert (est.shrinkage > 0).any()


# Groups and covariates


@pytest.mark.parametrize("kind", FRAMES)
def test_partitions_of_mixtures_are_frames_of_the_callers_kind(kind: str) -> None:
    x, truth = clustered(8)
    make, expected = FRAMES[kind]
    columns = columns_of(x)
    est = trueup.estimate(make(columns), "mean")
    assert isinstance(est.partition, expected)
    found = rows(est.partition)
    assert list(found) == ["question", "part", "probability"]
    total = dict.fromkeys(found["question"], 0.0)
    likely: dict[str, int] = {}
    for name, part, probability in zip(*found.values(), strict=True):
        total[name] += probability
        if probability > 0.5:
            likely[name] = part
    assert all(value == pytest.approx(1.0, abs=0.01) for value in total.values())
    assert likely == {
        f"q{j:03d}": int(np.searchsorted([5.0, 20.0], value)) + 1 for j, value in enumerate(truth)
    }


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("form", ["column", "mapping", "numbers"])
def test_partitions_of_groups_are_frames_of_the_callers_kind(kind: str, form: str) -> None:
    x, labels = grouped(2)
    make, expected = FRAMES[kind]
    columns = columns_of(x)
    of: dict[str, Any] = {f"q{j:03d}": label for j, label in enumerate(labels)}
    groups: Any = {**of}
    if form == "column":
        columns["kind"] = [of[name] for name in columns["question"]]
        groups = "kind"
    if form == "numbers":
        of = {name: 10 * "abcde".index(label) for name, label in of.items()}
        groups = of
    est = trueup.estimate(make(columns), "mean", groups=groups)
    assert est.second_step.models[0].startswith("group")
    assert isinstance(est.partition, expected)
    found = rows(est.partition)
    assert dict(zip(found["question"], found["part"], strict=True)) == of
    assert found["probability"] == [1.0] * 50


def test_questions_without_a_group_are_in_no_part() -> None:
    x, labels = grouped(2)
    some = {j: label for j, label in enumerate(labels) if j % 10}
    est = trueup.estimate(x, "mean", groups=some)
    assert est.second_step.models[0].startswith("group")
    assert sorted(est.partition["question"]) == sorted(some)
    sound(est)


def test_without_parts_there_is_no_partition() -> None:
    assert trueup.estimate(sparse(8), "mean", "normal").partition is None
    assert trueup.estimate(sparse(8), "mean", "none").partition is None


def test_useful_groups_lower_the_error_and_useless_ones_change_nothing() -> None:
    x, labels = grouped(3)
    plainly, with_groups = (trueup.estimate(x, "mean", groups=each) for each in (None, labels))
    assert with_groups.std_error.mean() < plainly.std_error.mean()
    mixed = np.random.default_rng(1).permutation(labels).tolist()
    y = sparse(9, n=6, m=50, share=1.0)
    agree(trueup.estimate(y, "mean", groups=mixed), trueup.estimate(y, "mean"))


def test_covariates_that_tell_something_are_used() -> None:
    rng = np.random.default_rng(9)
    z = rng.normal(size=40)
    truth = 3 * z + rng.normal(0, 0.3, 40)
    x = truth + rng.normal(size=(5, 40))
    est = trueup.estimate(x, "mean", covariates=z[:, None])
    assert est.second_step.models == ["regression"]
    assert "what the covariates predict" in est.diagnosis.second_step
    assert est.partition is None
    off = trueup.estimate(x, "mean")
    assert np.sum((est.estimate - truth) ** 2) < 0.7 * np.sum((off.estimate - truth) ** 2)
    scaled = trueup.estimate(x, "mean", covariates=1e6 * z[:, None] - 5e6)
    np.testing.assert_allclose(scaled.estimate, est.estimate, rtol=1e-6)
    useless = trueup.estimate(x, "mean", covariates=rng.normal(size=(40, 1)))
    assert useless.second_step.models != ["regression"]
    columns = table(x)
    columns["size"] = columns["question"].map({f"q{j:03d}": value for j, value in enumerate(z)})
    named = trueup.estimate(columns, "mean", covariates="size")
    assert named.diagnosis.second_step == est.diagnosis.second_step
    by_name = dict(zip(named.answers.question_ids.tolist(), named.estimate, strict=True))
    np.testing.assert_allclose([by_name[f"q{j:03d}"] for j in range(40)], est.estimate, rtol=1e-9)


# Known truths


def compressed(seed: int, m: int = 60, n: int = 6) -> tuple[Floats, Floats]:
    """A crowd that says 10 + half of the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(50, 10, m)
    crowd = 10 + 0.5 * truth + rng.normal(0, 1, m)
    return crowd + rng.normal(0, 3, (n, m)), truth


@pytest.mark.parametrize("count", [8, 15, 30])
@pytest.mark.parametrize("method", ["auto", "mean", "native"])
def test_known_truths_correct_the_others(count: int, method: str) -> None:
    x, truth = compressed(1)
    known = {j: float(truth[j]) for j in range(count)}
    est, without = trueup.estimate(x, method, gold=known), trueup.estimate(x, method)
    sound(est)
    rest = slice(count, None)
    before, after = (np.mean((e.estimate - truth)[rest] ** 2) for e in (without, est))
    assert after < 0.3 * before
    inside = ((est.lower <= truth) & (truth <= est.upper))[rest]
    assert inside.mean() > 0.85
    np.testing.assert_allclose(est.estimate[:count], truth[:count], rtol=1e-12)
    np.testing.assert_allclose(est.upper[:count], truth[:count], rtol=1e-12)
    assert (est.std_error[:count] == 0).all()
    assert est.calibration is not None
    assert est.calibration.n_gold == count
    assert f"Compared with {count} known truths" in str(est)
    assert INTERVALS not in est.diagnosis.assumptions


def test_fewer_than_eight_known_truths_say_so() -> None:
    x, truth = compressed(2)
    est = trueup.estimate(x, "mean", gold={3: truth[3], 7: truth[7]})
    without = trueup.estimate(x, "mean")
    assert est.calibration is None
    assert est.estimate[[3, 7]] == pytest.approx(truth[[3, 7]])
    assert est.lower[[3, 7]] == pytest.approx(truth[[3, 7]])
    others = ~np.isin(np.arange(60), [3, 7])
    np.testing.assert_array_equal(est.estimate[others], without.estimate[others])
    np.testing.assert_array_equal(est.upper[others], without.upper[others])
    assert "2 known truths: at least 8 are needed" in str(est)
    assert est.diagnosis.assumptions[0] == INTERVALS
    assert "1 known truth: " in str(trueup.estimate(x, "mean", gold={3: truth[3]}))


def test_known_truths_give_intervals_where_workers_share_nothing() -> None:
    rng = np.random.default_rng(3)
    truth = rng.normal(size=30)
    x = np.where(np.eye(30) > 0, truth + rng.normal(0, 0.5, 30), NAN)
    est = trueup.estimate(x, gold={j: float(truth[j]) for j in range(15)})
    assert np.isfinite(est.lower).all()
    width = (est.upper - est.lower)[15:]
    assert 0.5 < width.mean() < 5.0


@pytest.mark.parametrize("shrink", ["none", "paper", "normal"])
def test_known_truths_work_with_every_second_step(shrink: str) -> None:
    x, truth = compressed(4)
    est = trueup.estimate(x, "mean", shrink, gold=np.where(np.arange(60) < 20, truth, NAN))
    assert np.isfinite(est.lower).all()
    assert np.mean((est.estimate - truth)[20:] ** 2) < 16  # 4 (1 + 9/6) expected, some 240 without


def test_known_truths_are_read_on_the_scale_of_the_transform() -> None:
    x, truth = compressed(5)
    plainly = trueup.estimate(x, "mean", gold={j: truth[j] for j in range(12)})
    logs = trueup.estimate(
        np.exp(x / 20), "mean", transform="log", gold={j: np.exp(truth[j] / 20) for j in range(12)}
    )
    np.testing.assert_allclose(20 * np.log(logs.estimate), plainly.estimate, rtol=1e-9)
    np.testing.assert_allclose(20 * np.log(logs.upper), plainly.upper, rtol=1e-9)


def test_units_change_nothing_of_what_known_truths_show() -> None:
    x, truth = compressed(6)
    first = trueup.estimate(x, gold={j: truth[j] for j in range(25)})
    other = trueup.estimate(1e6 * x + 3.0, gold={j: 1e6 * truth[j] + 3.0 for j in range(25)})
    np.testing.assert_allclose((other.estimate - 3.0) / 1e6, first.estimate, rtol=1e-7)
    np.testing.assert_allclose((other.upper - 3.0) / 1e6, first.upper, rtol=1e-7)


def test_known_truths_of_panels_are_refused() -> None:
    answers, truth = trueup.simulate(5, 30, panels=2, seed=1)
    gold = dict(zip(range(25), truth[:25].tolist(), strict=True))
    with pytest.raises(TrueupError, match="one problem"):
        trueup.estimate(answers, "mean", gold=gold)


# Biases of workers


def test_biases_are_in_the_frame_of_the_workers() -> None:
    x = sparse(11, n=8, m=60, bias=2.0)
    est = trueup.estimate(x, bias=True)
    sound(est)
    workers = est.workers
    assert list(workers.columns) == [
        "worker", "weight", "variance", "bias", "n_answers", "flag", "bias_std_error",
    ]  # fmt: skip
    assert est.biases is not None
    np.testing.assert_array_equal(workers["bias"], est.biases.value)
    np.testing.assert_array_equal(workers["bias_std_error"], est.biases.std_error)
    assert (workers["bias"].abs() > workers["bias_std_error"]).sum() >= 4
    without = trueup.estimate(x)
    assert "bias_std_error" not in without.workers.columns
    assert without.workers["bias"].isna().all()


@pytest.mark.parametrize("kind", FRAMES)
def test_workers_with_biases_are_a_frame_of_the_callers_kind(kind: str) -> None:
    make, expected = FRAMES[kind]
    columns = columns_of(sparse(12, bias=2.0))
    est = trueup.estimate(make(columns), "mean", bias=True)
    assert isinstance(est.workers, expected)
    found = rows(est.workers)
    assert list(found)[-1] == "bias_std_error"
    assert all(np.isfinite(value) for value in found["bias"] + found["bias_std_error"])


def test_the_error_of_the_biases_is_in_the_intervals() -> None:
    x = sparse(13, n=8, m=40, share=0.4, bias=2.0)
    est = trueup.estimate(x, "mean", "none", bias=True)
    assert est.biases is not None
    clean = est.biases.remove(MemoryEngine(Answers.of(x))).gather()
    alone = trueup.estimate(clean, "mean", "none")
    counts = (~np.isnan(x)).sum(axis=0)
    extra = (~np.isnan(x) * est.biases.std_error[:, None] ** 2).sum(axis=0) / counts**2
    np.testing.assert_allclose(est.estimate, alone.estimate, rtol=1e-9, atol=1e-12)
    # And the mean bias of these workers, which stays in the answers.
    given = (~np.isnan(x)).sum(axis=1)
    shift = est.biases.variance[0] * np.sum((given / given.sum()) ** 2)
    np.testing.assert_allclose(est.std_error**2, alone.std_error**2 + extra + shift, rtol=1e-9)


def test_biases_and_known_truths_go_together() -> None:
    x, truth = compressed(7)
    x = x + np.random.default_rng(7).normal(0, 5, (6, 1))
    est = trueup.estimate(x, bias=True, gold={j: truth[j] for j in range(20)})
    sound(est)
    assert np.mean((est.estimate - truth)[20:] ** 2) < 16  # 4 (1 + 9/6) expected, some 240 without


# Words


def test_the_diagnosis_tells_the_story() -> None:
    est = trueup.estimate(sparse(14, n=8, m=30))
    said = est.diagnosis
    text = str(said)
    assert said.method == "native"
    assert said.why == "no other first step predicts held-out workers clearly better"
    assert text.startswith(f"method native ({said.why}), shrink adaptive")
    moved = f"{est.shrinkage.mean():.1%} of the way toward their common mean"
    assert moved in said.second_step
    assert said.assumptions == (INTERVALS,)
    assert "does not contain an error that all workers share" in text
    named = trueup.estimate(sparse(14), "mean")
    assert named.diagnosis.why == ""
    assert str(named.diagnosis).startswith("method mean, shrink adaptive")


def test_the_gain_is_told_if_workers_err_independently() -> None:
    rng = np.random.default_rng(15)
    x = rng.normal(0, 0.3, 200) + rng.normal(size=(5, 200))
    est = trueup.estimate(x, "mean", caution=1.0)
    gain = est.second_step.expected_gain
    # tau2 / (tau2 + v) = .09 / .29 of the error is left.
    assert gain == pytest.approx(1 - 0.09 / 0.29, abs=0.1)
    assert f"squared errors fall by about {gain:.1%}" in est.diagnosis.second_step


def test_rules_without_intervals_say_so() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrueupWarning)
        est = trueup.estimate(sparse(16), "mean", "paper")
    assert np.isnan(est.lower).all()
    assert POINT_ONLY in est.diagnosis.assumptions


# Anything

ODD = [0.0, 1.0, -1.0, 1.0 / 3.0, 2.0, 7.5, 1e-12, 1e-9, 1e9, -1e12, 1e15, 1e15 + 2.0]


@st.composite
def matrices(draw: st.DrawFn) -> Floats:
    """Small, sparse, with ties, huge and tiny values and constant workers and questions."""
    n, m = draw(st.integers(1, 5)), draw(st.integers(1, 9))
    values = draw(
        st.one_of(
            st.just(ODD[:5]),
            st.just(ODD),
            st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=6),
        )
    )
    x = np.array(
        draw(st.lists(st.sampled_from(values), min_size=n * m, max_size=n * m)), dtype=np.float64
    ).reshape(n, m)
    if draw(st.booleans()):
        x[draw(st.integers(0, n - 1))] = draw(st.sampled_from(values))
    if draw(st.booleans()):
        x[:, draw(st.integers(0, m - 1))] = draw(st.sampled_from(values))
    holes = draw(st.lists(st.booleans(), min_size=n * m, max_size=n * m))
    if draw(st.booleans()):
        x[np.array(holes).reshape(n, m)] = NAN
    if np.isnan(x).all():
        x[0, 0] = 1.0
    return x


@given(
    x=matrices(),
    method=st.sampled_from(["auto", "mean", "native", "median"]),
    bias=st.booleans(),
    caution=st.sampled_from([0.3, 0.8, 1.0]),
)
def test_any_answers_give_sound_estimates(
    x: Floats, method: str, bias: bool, caution: float
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrueupWarning)
        est = trueup.estimate(x, method, bias=bias, caution=caution)
    sound(est)
    # The second step moves toward other estimates, never beyond all of them.
    slack = 1e-9 * (np.ptp(est.base) + np.abs(est.base).max())
    assert est.estimate.min() >= est.base.min() - slack
    assert est.estimate.max() <= est.base.max() + slack
    if est.second_step.models == ["none"]:
        np.testing.assert_array_equal(est.estimate, est.base)


@given(x=matrices(), shuffle=st.randoms(use_true_random=False))
def test_order_of_rows_changes_nothing_of_anything(x: Floats, shuffle: Any) -> None:
    frame = table(x)
    order = list(range(len(frame)))
    shuffle.shuffle(order)
    first, mixed = (trueup.estimate(each, "native") for each in (frame, frame.iloc[order]))
    left, right = (
        dict(zip(each.answers.question_ids.tolist(), each.estimate.tolist(), strict=True))
        for each in (first, mixed)
    )
    size = np.ptp(first.base) + np.abs(first.base).max()
    for name, value in left.items():
        assert right[name] == pytest.approx(value, rel=1e-9, abs=1e-9 * size)


def test_questions_beyond_fifty_thousand_use_the_prior_of_a_sample() -> None:
    answers, truth = trueup.simulate(5, 50_500, answers_per_question=3, truth_scale=0.5, seed=3)
    est = trueup.estimate(answers, "mean", caution=1.0)
    sound(est)
    v = est.base_std_error.mean() ** 2
    ratio = np.mean((est.estimate - truth) ** 2) / np.mean((est.base - truth) ** 2)
    assert ratio == pytest.approx(0.25 / (0.25 + v), abs=0.03)
