"""estimate() with its own second step: its arguments, groups and covariates, and its words."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import trueup
from frames_by_library import FRAMES, rows
from small_panels import NAN, agree, clustered, columns_of, grouped, sound, sparse, table
from trueup import TrueupError, TrueupWarning
from trueup.algorithms import Algorithm
from trueup.pipeline.solve import INTERVALS, POINT_ONLY
from trueup.shrinkage import Adaptive, Normal

if TYPE_CHECKING:
    from collections.abc import Callable


# Arguments


def test_caution_takes_a_share_of_the_step() -> None:
    x = sparse(5)
    full, half = (
        trueup.estimate(x, "mean", target="consensus", caution=caution) for caution in (1.0, 0.5)
    )
    assert full.second_step.models == half.second_step.models == ["normal"]
    assert (full.shrinkage > 0).all()
    np.testing.assert_allclose(
        half.estimate - half.base, 0.5 * (full.estimate - full.base), atol=1e-12
    )
    np.testing.assert_allclose(half.shrinkage, 0.5 * full.shrinkage, rtol=1e-12)
    default = trueup.estimate(x, "mean", target="consensus")
    np.testing.assert_array_equal(default.estimate, full.estimate)


@pytest.mark.parametrize("target", ["truth", "consensus"])
def test_caution_cuts_down_every_prior(target: str) -> None:
    """Intervals belong to the full step, and are widened to hold the estimate."""
    x, _ = clustered(6)
    full, half = (
        trueup.estimate(x, "mean", target=target, caution=caution) for caution in (1.0, 0.5)
    )
    assert full.second_step.models == half.second_step.models == ["mixture"]
    assert np.abs(full.estimate - full.base).max() > 0.1
    np.testing.assert_allclose(half.estimate, 0.5 * (full.base + full.estimate), atol=1e-12)
    np.testing.assert_allclose(half.shrinkage, 0.5 * full.shrinkage, rtol=1e-12)
    np.testing.assert_allclose(half.lower, np.minimum(full.lower, half.estimate), atol=1e-12)
    np.testing.assert_allclose(half.upper, np.maximum(full.upper, half.estimate), atol=1e-12)
    np.testing.assert_array_equal(half.std_error, full.std_error)


def test_caution_is_a_share_of_what_a_given_rule_does() -> None:
    x = sparse(5)
    full = trueup.estimate(x, "mean", target="consensus")
    for rule, caution in ((Adaptive(1.0), 0.3), (Normal(), 0.3), (Normal(0.6), 0.5)):
        own = trueup.estimate(x, "mean", rule, target="consensus", caution=caution)
        share = rule.caution * caution
        np.testing.assert_allclose(own.shrinkage, share * full.shrinkage, rtol=1e-12)
        np.testing.assert_allclose(
            own.estimate - own.base, share * (full.estimate - full.base), atol=1e-12
        )


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
    # Pooled over the questions, which leaves their average as it is.
    assert np.mean(est.base_std_error**2) == pytest.approx(jackknife.mean(), rel=1e-9)
    assert np.ptp(est.base_std_error**2) < 0.6 * np.ptp(jackknife)
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
    assert "the value that the covariates predict" in est.diagnosis.second_step
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


# Words


def test_the_diagnosis_tells_the_story() -> None:
    est = trueup.estimate(sparse(14, n=8, m=30), target="consensus")
    said = est.diagnosis
    text = str(said)
    assert said.method == "native"
    assert said.why == "the plain mean does not predict held-out workers clearly better"
    assert text.startswith(f"method native ({said.why}), shrink adaptive")
    moved = f"{est.shrinkage.mean():.1%} of the way toward the overall mean"
    assert moved in said.second_step
    assert said.assumptions == (INTERVALS,)
    assert "an error that all workers share is not included" in text
    named = trueup.estimate(sparse(14), "mean")
    assert named.diagnosis.why == ""
    assert str(named.diagnosis).startswith("method mean, shrink adaptive")


def test_the_gain_is_told_if_workers_err_independently() -> None:
    rng = np.random.default_rng(15)
    x = rng.normal(0, 0.3, 200) + rng.normal(size=(5, 200))
    est = trueup.estimate(x, "mean", target="consensus")
    gain = est.second_step.expected_gain
    # tau2 / (tau2 + v) = .09 / .29 of the error is left.
    assert gain == pytest.approx(1 - 0.09 / 0.29, abs=0.1)
    assert f"this lowers the mean squared error by about {gain:.1%}" in est.diagnosis.second_step
    # Nobody can promise that of the truth.
    truth = trueup.estimate(x, "mean", target="truth")
    assert "this lowers" not in truth.diagnosis.second_step


def test_rules_without_intervals_say_so() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrueupWarning)
        est = trueup.estimate(sparse(16), "mean", "paper")
    assert np.isnan(est.lower).all()
    assert POINT_ONLY in est.diagnosis.assumptions
