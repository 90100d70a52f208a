"""estimate() with its own second step, end to end: edge cases, a plain reference, and any answers at all."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import plain_noise
import plain_second_step as plain
import trueup
from small_panels import NAN, clustered, grouped, sound, sparse, table
from trueup import Answers, TrueupWarning
from trueup.algorithms import Native, run
from trueup.algorithms.registry import find
from trueup.core.sampling import places
from trueup.pipeline.solve import NO_OVERLAP
from trueup.pipeline.split_halves import SPLITS
from trueup.shrinkage import Normal

if TYPE_CHECKING:
    from trueup.core.arrays import Floats


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
    assert "changed no estimates" in str(est)


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
    est = trueup.estimate(x, method, target="consensus")
    sound(est)
    assert np.isfinite(est.lower).all()
    assert np.isfinite(est.truth_lower).all()
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
    est = trueup.estimate(x, "mean", target="consensus")
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
    assert est.findings.flags == [None] * 5 + ["shares no question with other workers"]


def test_many_degrees_of_freedom_have_normal_quantiles() -> None:
    few, many = (
        trueup.estimate(np.random.default_rng(5).normal(size=(8, m)), "mean", target="consensus")
        for m in (10, 200)
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
    p = shares(answers, aggregate) if not robust else plain_noise.plain_weights(x)
    options |= {"weight": aggregate.weight, "plain": method == "median"}
    return plain.second_step(x, p, aggregate.x, orders, robust=robust, **options)


@pytest.mark.parametrize("method", ["mean", "native", "crh", "median"])
@pytest.mark.parametrize("caution", [1.0, 0.8])
@pytest.mark.parametrize("seed", range(3))
def test_the_normal_prior_is_that_of_the_plain_loop(seed: int, method: str, caution: float) -> None:
    """Points and ends of the two quadratures differ: a thousandth of a standard error."""
    x = sparse(10 + seed, m=12 if seed else 6)
    # The native first step has variances of its own; here it gets those of all others, who remove no biases.
    first = Native(biases=False) if method == "native" else find(method)
    est = trueup.estimate(x, first, Normal(caution), "moderated", target="consensus")
    answers = Answers.of(x)
    aggregate = run(first, answers)
    robust = aggregate.kind == "robust"
    p = plain_noise.plain_weights(x) if robust else shares(answers, aggregate)
    loop = plain.second_step(
        x,
        p,
        aggregate.x,
        caution=caution,
        robust=robust,
        weight=aggregate.weight,
        plain=method == "median",
    )
    error = np.sqrt(loop["var"])
    np.testing.assert_allclose((est.estimate - loop["e"]) / error, 0.0, atol=2e-3)
    np.testing.assert_allclose(est.shrinkage, loop["B"], atol=2e-3)
    posterior = est.second_step.posterior
    np.testing.assert_allclose(posterior.variance, loop["var"], rtol=5e-3)
    low, high = plain.interval(loop, 0.95)
    # The common shift of robust first steps is that of the plain mean.
    np.testing.assert_allclose((est.lower - low) / error, 0.0, atol=2e-2)
    np.testing.assert_allclose((est.upper - high) / error, 0.0, atol=2e-2)


@pytest.mark.parametrize("seed", range(4))
def test_mixtures_that_earn_their_place_are_those_of_the_plain_loop(seed: int) -> None:
    """The search over components and its stops differ in details: a twentieth of a standard error."""
    x, _ = clustered(20 + seed, n=5, m=30)
    x[np.random.default_rng(seed).random(x.shape) < 0.15] = NAN
    x = x[:, ~np.isnan(x).all(axis=0)]
    est = trueup.estimate(x, "mean", target="consensus", seed=seed)
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
    est = trueup.estimate(x, "mean", target="consensus", groups=labels)
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
        est, normal = (
            trueup.estimate(x, "mean", shrink, target="consensus")
            for shrink in ("adaptive", "normal")
        )
        if not reference(x, "mean").get("earned"):
            kept += 1
            np.testing.assert_array_equal(est.estimate, normal.estimate)
            np.testing.assert_array_equal(est.upper, normal.upper)
    assert kept >= 7


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
    est = trueup.estimate(answers, "mean", target="consensus")
    sound(est)
    v = est.base_std_error.mean() ** 2
    ratio = np.mean((est.estimate - truth) ** 2) / np.mean((est.base - truth) ** 2)
    assert ratio == pytest.approx(0.25 / (0.25 + v), abs=0.03)
