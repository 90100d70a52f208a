"""The truth from answers: against a plain program written from the description alone, and what never changes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import plain_crowd
import trueup
from small_panels import NAN, grouped, sound, sparse
from trueup import Answers, TrueupError
from trueup.algorithms import Algorithm
from trueup.engines.memory import MemoryEngine
from trueup.pipeline.truths import answer_scatter, scatter

if TYPE_CHECKING:
    from trueup import Estimate
    from trueup.core.arrays import Floats

COLUMNS = ("estimate", "lower", "upper", "truth_lower", "truth_upper", "std_error")


# The scatter of a single answer


def scatter_of(x: Floats) -> float:
    (found,) = answer_scatter(MemoryEngine(Answers.of(x)))
    return float(found)


@pytest.mark.parametrize("seed", range(8))
def test_the_scatter_is_that_of_the_plain_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = sparse(seed, share=0.5)
    if seed % 2:  # ties, and answers that are far off
        x = np.round(x)
        x[0, : seed + 1] += 1e4
    assert scatter_of(x) == pytest.approx(plain_crowd.scatter(x), rel=1e-10)
    heavy = rng.standard_cauchy((4, 9))
    assert scatter_of(heavy) == pytest.approx(plain_crowd.scatter(heavy), rel=1e-10)


def test_where_all_agree_there_is_no_scatter() -> None:
    assert scatter_of(np.tile(np.arange(5.0), (3, 1))) == 0.0
    assert scatter_of(np.where(np.eye(4) > 0, 1.0, NAN)) == 0.0
    assert scatter(np.zeros(3)) == 0.0
    assert scatter(np.zeros(0)) == 0.0


def test_the_scatter_of_normal_answers_is_their_deviation() -> None:
    x = np.random.default_rng(1).normal(0.0, 3.0, (40, 500))
    assert scatter_of(x) == pytest.approx(3.0, rel=0.03)


def test_the_fixed_point_is_the_largest() -> None:
    """Half of the distances are tiny: iterating from below would stay with them."""
    r = np.array([1e-6] * 10 + [1.0] * 10)
    level = scatter(r) / np.sqrt(np.pi / 2)
    assert level == pytest.approx(np.minimum(r, 3 * level).mean())
    assert level == pytest.approx(0.5, rel=1e-5)


def test_agreement_lowers_the_scatter_by_its_share() -> None:
    rng = np.random.default_rng(2)
    r = np.abs(rng.normal(size=50))
    whole = scatter(r)
    assert scatter(np.append(r, np.zeros(50))) == pytest.approx(0.5 * whole)
    assert scatter(np.append(r, np.full(50, 1e-12))) <= 0.5 * whole


# The plain program


class NoWeights(Algorithm):
    """The mean, without saying how much each answer counts: no variance is known without a second step."""

    name = "no weights"

    def truths(self, block: Any, state: Any) -> Any:
        return np.add.reduceat(block.values, block.indptr[:-1]) / block.counts

    def weights(self, block: Any, state: Any, x: Any) -> None:
        return None


def crowd(seed: int, m: int = 14, n: int = 6) -> tuple[Floats, Floats]:
    """Answers of a crowd that understates differences, and the truths."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(20.0, 4.0, m)
    said = 20.0 + 0.7 * (truth - 20.0) + rng.normal(0.5, 0.8, m)
    x = said + rng.normal(0.0, 2.0, (n, m))
    x[(rng.random((n, m)) < 0.3) & (np.arange(n)[:, None] > 1)] = NAN
    return x, truth


def plain(x: Floats, est: Estimate, t: Floats, **options: Any) -> dict[str, Any]:
    step = est.second_step
    variance = np.where(step.unknown, NAN, step.posterior.variance)
    return plain_crowd.truths(
        t,
        step.posterior.mean,
        variance,
        step.posterior.shrinkage,
        plain_crowd.scatter(x),
        shift=float(step.certainty.shift[0]),
        level=est.level,
        **options,
    )


def some(truth: Floats, count: int) -> dict[int, float]:
    return {3 * j % len(truth): float(truth[3 * j % len(truth)]) for j in range(count)}


CASES: dict[str, tuple[dict[str, Any], int, int]] = {
    # options, number of questions, known truths
    "mean": ({"method": "mean"}, 14, 0),
    "native": ({"method": "native"}, 14, 0),
    "median at another level": ({"method": "median", "level": 0.8}, 14, 0),
    "normal prior": ({"method": "mean", "shrink": "normal"}, 14, 0),
    "mixture": ({"method": "mean", "shrink": "mixture"}, 30, 0),
    "no second step": ({"method": "mean", "shrink": "none"}, 14, 0),
    "four questions": ({"method": "mean"}, 4, 0),
    "three questions": ({"method": "mean"}, 3, 0),
    "one question": ({"method": "mean"}, 1, 0),
    "kind": ({"method": "mean", "kind": "forecast"}, 14, 0),
    "biases": ({"method": "mean", "bias": True}, 14, 0),
    "one known truth": ({"method": "mean"}, 14, 1),
    "seven known truths": ({"method": "mean"}, 14, 7),
    "known truths and kind": ({"method": "mean", "kind": "perception"}, 14, 3),
    "known truths of three questions": ({"method": "mean"}, 3, 1),
    "known truths without second step": ({"method": "mean", "shrink": "none"}, 14, 4),
    "no variance is known": ({"method": NoWeights(), "shrink": "none"}, 14, 0),
    "known truths, no variance": ({"method": NoWeights(), "shrink": "none"}, 14, 4),
}


@pytest.mark.parametrize("name", CASES)
def test_estimates_and_intervals_are_those_of_the_plain_program(name: str) -> None:
    options, m, count = CASES[name]
    x, truth = crowd(len(name), m)
    if options.get("bias"):
        x = x + np.random.default_rng(1).normal(0, 3, (len(x), 1))
    gold = some(truth, count) or None
    est = trueup.estimate(x, transform="none", target="truth", gold=gold, **options)
    sound(est)
    loop = plain(x, est, est.base, gold=gold, kind=options.get("kind"))
    if name == "biases":
        assert est.second_step.certainty.shift[0] > 0
    np.testing.assert_allclose(est.estimate, loop["estimate"], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(est.truth_lower, loop["lower"], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(est.truth_upper, loop["upper"], rtol=1e-8, atol=1e-8)


def test_known_truths_after_biases_were_removed() -> None:
    """The scatter is that of the answers as given; the mean bias that is left widens the prior of the offset."""
    x, truth = crowd(5)
    x = x + np.random.default_rng(1).normal(0, 3, (len(x), 1))
    gold = some(truth, 4)
    est = trueup.estimate(x, "mean", transform="none", bias=True, gold=gold)
    assert est.second_step.certainty.shift[0] > 0.1
    loop = plain(x, est, est.base, gold=gold)
    np.testing.assert_allclose(est.estimate, loop["estimate"], rtol=1e-8)
    np.testing.assert_allclose(est.truth_upper, loop["upper"], rtol=1e-8)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_one_answer_to_each_question(count: int) -> None:
    """Three known truths show how far answers are off; two do not."""
    x, truth = crowd(6, m=10)
    alone = np.where(np.arange(len(x))[:, None] == np.arange(10) % 2, x, NAN)[:2]
    gold = some(truth, count)
    est = trueup.estimate(alone, "mean", gold=gold)
    loop = plain(alone, est, est.base, gold=gold)
    assert (loop["s"] > 0) == (count >= 3)
    others = ~np.isin(np.arange(10), list(gold))
    np.testing.assert_allclose(est.estimate[others], loop["estimate"][others], rtol=1e-8)
    np.testing.assert_allclose(est.truth_lower[others], loop["lower"][others], rtol=1e-8)
    np.testing.assert_allclose(est.truth_upper[others], loop["upper"][others], rtol=1e-8)
    if count < 3:
        assert np.isnan(est.truth_lower[others]).all()
        assert "at least 3 are needed where no question has two answers" in est.diagnosis.gold


@pytest.mark.parametrize("count", [0, 3])
def test_logarithms_are_carried_back(count: int) -> None:
    x, truth = crowd(7)
    gold = some(truth, count) or None
    est = trueup.estimate(
        np.exp(x / 5),
        "mean",
        transform="log",
        gold=None if gold is None else {j: np.exp(value / 5) for j, value in gold.items()},
    )
    loop = plain(
        x / 5,
        est,
        np.log(est.base),
        gold=None if gold is None else {j: value / 5 for j, value in gold.items()},
    )
    np.testing.assert_allclose(np.log(est.estimate), loop["estimate"], rtol=1e-8)
    np.testing.assert_allclose(np.log(est.truth_lower), loop["lower"], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(np.log(est.truth_upper), loop["upper"], rtol=1e-8, atol=1e-8)


def test_bounds_come_last() -> None:
    x, truth = crowd(8)
    gold = some(truth, 2)
    free = trueup.estimate(x, "mean", transform="none", gold=gold)
    kept = trueup.estimate(x, "mean", transform="none", gold=gold, bounds=(8.0, 28.0))
    assert free.truth_lower.min() < 8.0
    assert free.truth_upper.max() > 28.0
    for name in ("estimate", "truth_lower", "truth_upper"):
        expected = np.clip(getattr(free, name), 8.0, 28.0)
        np.testing.assert_allclose(getattr(kept, name), expected, rtol=1e-12)


def test_panels_are_as_if_each_were_alone() -> None:
    parts = [crowd(seed, m=12)[0] for seed in range(3)]
    parts[1] = np.tile(parts[1][:1], (6, 1))  # all agree
    frame: dict[str, list[Any]] = {"panel": [], "question": [], "worker": [], "answer": []}
    for number, x in enumerate(parts):
        for worker, question in np.argwhere(~np.isnan(x)).tolist():
            row = (number, f"q{question}", f"w{worker}", float(x[worker, question]))
            for column, value in zip(frame.values(), row, strict=True):
                column.append(value)
    panels = Answers.of(frame, panel="panel")
    est = trueup.estimate(panels, "mean", kind="judgment")
    for number in range(3):
        one = trueup.estimate(panels.panel(number), "mean", kind="judgment")
        own = panels.question_panel == number
        for name in COLUMNS:
            np.testing.assert_allclose(
                getattr(est, name)[own], getattr(one, name), rtol=1e-9, err_msg=name
            )
        assert np.isnan(one.truth_lower).all() == (number == 1)


# What never changes


@pytest.mark.parametrize("count", [0, 4])
@pytest.mark.parametrize(("a", "b"), [(7.0, 100.0), (-0.01, 3.0)])
def test_units_change_nothing(a: float, b: float, count: int) -> None:
    x, truth = crowd(9)
    gold = some(truth, count)
    first = trueup.estimate(x, transform="none", gold=gold or None)
    other = trueup.estimate(
        a * x + b, transform="none", gold={j: a * each + b for j, each in gold.items()} or None
    )
    sound(other)
    ends = ("truth_lower", "truth_upper") if a > 0 else ("truth_upper", "truth_lower")
    size = abs(a) * float(np.ptp(first.base))
    np.testing.assert_allclose(other.estimate, a * first.estimate + b, atol=1e-8 * size)
    for name, end in zip(("truth_lower", "truth_upper"), ends, strict=True):
        np.testing.assert_allclose(
            getattr(other, name), a * getattr(first, end) + b, atol=1e-8 * size
        )


@pytest.mark.parametrize("count", [0, 4, 9])
def test_order_and_names_change_nothing(count: int) -> None:
    x, truth = crowd(10)
    rows = [(f"q{j}", f"w{i}", float(x[i, j])) for i, j in np.argwhere(~np.isnan(x)).tolist()]
    rng = np.random.default_rng(1)
    numbers = dict(zip([f"q{j}" for j in range(14)], rng.permutation(14).tolist(), strict=True))
    found = []
    for rename in (False, True):
        order = rng.permutation(len(rows)) if rename else range(len(rows))
        names = {old: 1000 + new if rename else old for old, new in numbers.items()}
        columns = {
            "question": [names[rows[k][0]] for k in order],
            "worker": [rows[k][1][::-1] if rename else rows[k][1] for k in order],
            "answer": [rows[k][2] for k in order],
        }
        gold = {names[f"q{j}"]: value for j, value in some(truth, count).items()}
        est = trueup.estimate(columns, "mean", gold=gold or None)
        at = {name: k for k, name in enumerate(est.answers.question_ids.tolist())}
        places = [at[names[f"q{j}"]] for j in range(14)]
        found.append({name: getattr(est, name)[places] for name in COLUMNS})
    for name in COLUMNS:
        np.testing.assert_allclose(found[1][name], found[0][name], rtol=1e-9, err_msg=name)


@pytest.mark.parametrize("seed", range(6))
def test_without_known_truths_estimates_lie_between_both_steps(seed: int) -> None:
    x = sparse(seed, n=4 + seed)
    est = trueup.estimate(x, "mean", target="truth")
    full = trueup.estimate(x, "mean", target="consensus")
    low, high = np.minimum(est.base, full.estimate), np.maximum(est.base, full.estimate)
    assert (low - 1e-12 <= est.estimate).all()
    assert (est.estimate <= high + 1e-12).all()
    np.testing.assert_array_equal(full.truth_lower, np.minimum(est.truth_lower, full.estimate))
    sound(est)
    sound(full)


def test_groups_and_covariates_change_the_second_step_alone() -> None:
    x, labels = grouped(1)
    codes = np.array([float("abcde".index(label)) for label in labels])
    for options in ({"groups": labels}, {"covariates": codes[:, None] ** 2}):
        est = trueup.estimate(x, "mean", target="truth", **options)
        loop = plain(x, est, est.base)
        np.testing.assert_allclose(est.estimate, loop["estimate"], rtol=1e-8)
        np.testing.assert_allclose(est.truth_upper, loop["upper"], rtol=1e-8)


def test_a_question_far_outside_pays_for_the_unknown_slope() -> None:
    x, _ = crowd(11, m=30)
    x[:, 0] += 60.0
    est = trueup.estimate(x, "mean", transform="none")
    width = est.truth_upper - est.truth_lower
    assert width[0] > 1.5 * np.median(width)


def test_a_known_truth_beyond_all_measure_is_refused() -> None:
    x, _ = crowd(12)
    with pytest.raises(TrueupError, match=r"^gold: a known truth is too far from all answers"):
        trueup.estimate(x, "mean", transform="none", gold={0: 1e80})


@pytest.mark.parametrize("tiny", [1e-300, 1e-161, 1e-90])
def test_a_scatter_next_to_nothing_is_agreement(tiny: float) -> None:
    x = np.tile(np.arange(6.0), (3, 1))
    x[0, 0] = tiny
    est = trueup.estimate(x, "mean", transform="none")
    np.testing.assert_allclose(est.estimate, np.arange(6.0), atol=1e-80)
    assert np.isnan(est.truth_lower).all()
    sound(est)


@pytest.mark.parametrize("gold", [{}, {0: np.nan}])
def test_known_truths_of_no_question_change_nothing(gold: dict[int, float]) -> None:
    x = np.array([[1.0, 2.0, 5.0, 3.0], [2.0, 2.0, 4.0, 5.0], [1.0, 3.0, 3.0, 4.0]])
    one, other = trueup.estimate(x), trueup.estimate(x, gold=gold)
    np.testing.assert_array_equal(other.estimate, one.estimate)
    np.testing.assert_array_equal(other.truth_upper, one.truth_upper)
