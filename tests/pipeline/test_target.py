"""The target: ratings are opinions, everything else is a guess at a fact; what each target does and says."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import trueup
from small_panels import NAN, clustered, sound, sparse
from trueup import Answers, TrueupError, TrueupWarning, disk
from trueup.engines.memory import MemoryEngine
from trueup.pipeline.target import choose_target
from trueup.request import Plan

if TYPE_CHECKING:
    from pathlib import Path

    from trueup.core.arrays import Floats
    from trueup.pipeline.target import Target

#: Second steps that take no target: they stay as they were published.
PUBLISHED = ["paper", "stein", "mebe", "morris", "sure"]


def ratings(values: Any, n: int = 6, m: int = 10, seed: int = 0) -> Floats:
    """Return random answers out of some values, each of which is given."""
    x = np.random.default_rng(seed).choice(np.asarray(values, dtype=float), (n, m))
    x.flat[: len(values)] = values
    return x


def chosen(answers: Any, *, gold: bool = False, **options: Any) -> Target:
    return choose_target(MemoryEngine(Answers.of(answers)), Plan(**options), gold=gold)


# Which one


@pytest.mark.parametrize(
    ("values", "levels"),
    [
        ([1, 2, 3, 4, 5], 5),
        (range(11), 11),
        (np.arange(1.0, 5.5, 0.5), 9),
        ([1, 2, 4, 5], 5),
        (np.arange(11) / 10, 11),
        ([-2, -1, 0, 1, 2], 5),
        ([0, 1], 2),
        ([1e6, 1e6 + 25, 1e6 + 50], 3),
    ],
    ids=[
        "1 to 5", "0 to 10", "half points", "nobody said 3", "tenths", "around 0", "yes and no",
        "far from 0",
    ],
)  # fmt: skip
def test_ratings_are_opinions(values: Any, levels: int) -> None:
    target = chosen(ratings(values))
    assert target.name == "consensus"
    assert target.why == f"the answers are ratings on {levels} values"


@pytest.mark.parametrize(
    "x",
    [
        ratings(range(12)),
        ratings([1, 2, 3.5]),
        ratings([1, 2, 4, 8, 16]),
        ratings([0, 1, 11]),
        ratings([7]),
        ratings([1, 2, 3, 4, 5], n=1, m=29),
        np.random.default_rng(0).normal(size=(6, 10)),
    ],
    ids=["12 values", "no equal steps", "doubling", "a gap", "one value", "29 answers", "numbers"],
)
def test_everything_else_is_a_guess_at_a_fact(x: Floats) -> None:
    target = chosen(x)
    assert target.name == "truth"
    assert target.why == "the answers are not ratings on a few values"


def test_thirty_answers_are_enough() -> None:
    assert chosen(ratings([1, 2, 3, 4, 5], n=1, m=30)).name == "consensus"


def test_a_rating_that_comes_late_counts() -> None:
    x = ratings([1, 2, 3, 4, 5], n=40, m=60)
    assert chosen(x).name == "consensus"
    x[-1, -1] = 2.2
    assert chosen(x).name == "truth"


def test_what_was_asked_for_is_done_without_a_reason() -> None:
    for name in ("truth", "consensus"):
        target = chosen(ratings(range(5)), target=name, gold=True)
        assert (target.name, target.why) == (name, "")


def test_known_truths_ask_for_the_truth() -> None:
    target = chosen(ratings(range(5)), gold=True)
    assert (target.name, target.why) == ("truth", "some truths are known")


@pytest.mark.parametrize("value", ["mean", None, 1, "Truth"])
def test_other_targets_are_refused(value: Any) -> None:
    with pytest.raises(TrueupError, match=r"^target: "):
        trueup.estimate([[1.0]], target=value)


def panels(*parts: Floats) -> Answers:
    columns: dict[str, list[Any]] = {"panel": [], "question": [], "worker": [], "answer": []}
    for number, x in enumerate(parts):
        for worker, question in np.argwhere(~np.isnan(x)).tolist():
            row = (number, question, worker, float(x[worker, question]))
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value)
    return Answers.of(columns, panel="panel")


def test_panels_are_judged_one_by_one() -> None:
    both = panels(ratings([1, 2, 3, 4, 5]), sparse(1), ratings(range(11), seed=1))
    target = chosen(both)
    assert target.truth.tolist() == [False, True, False]
    assert (target.name, target.why) == ("both", "2 of 3 panels are ratings")
    est = trueup.estimate(both, "mean", kind="judgment")
    sound(est)
    for number in range(3):
        one = trueup.estimate(both.panel(number), "mean", kind="judgment")
        own = both.question_panel == number
        for name in ("estimate", "upper", "truth_lower", "truth_upper", "shrinkage"):
            np.testing.assert_allclose(getattr(est, name)[own], getattr(one, name), rtol=1e-9)
    assert chosen(panels(ratings(range(5)), ratings(range(4)))).name == "consensus"


@pytest.mark.parametrize("values", [[1, 2, 3, 4, 5], [1, 2, 3.5]])
def test_files_on_disk_have_the_same_target(values: list[float], tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    x = ratings(values, n=8, m=40)
    rows = [f"{j},{i},{x[i, j]}" for i, j in np.argwhere(~np.isnan(x)).tolist()]
    source = tmp_path / "answers.csv"
    source.write_text("\n".join(["question,worker,answer", *rows]), "utf-8")
    expected = trueup.estimate(source, "mean")
    with disk.estimate(source, tmp_path / "out.parquet", "mean") as est:
        assert est.solution.target == expected.solution.target
        assert est.diagnosis == expected.diagnosis
        for name in ("estimate", "lower", "upper", "truth_lower", "truth_upper"):
            ours, theirs = (np.sort(getattr(each, name)) for each in (est, expected))
            np.testing.assert_allclose(ours, theirs, rtol=1e-9)


# What it does


def noisy(n: int = 4, m: int = 30) -> tuple[Floats, Floats]:
    """Return answers that scatter more than the truths, and the truths."""
    rng = np.random.default_rng(1)
    truth = rng.normal(0, 0.5, m)
    return truth + rng.normal(size=(n, m)), truth


def test_the_consensus_takes_the_full_step_and_the_truth_less() -> None:
    x, _ = noisy()
    truth, full = (trueup.estimate(x, "mean", target=each) for each in ("truth", "consensus"))
    np.testing.assert_allclose(full.estimate, full.second_step.posterior.mean, rtol=1e-12)
    assert (truth.shrinkage < full.shrinkage).all()
    # They share the interval for the consensus, which is widened to hold the estimate.
    np.testing.assert_array_equal(truth.lower, np.minimum(full.lower, truth.estimate))
    np.testing.assert_array_equal(truth.upper, np.maximum(full.upper, truth.estimate))
    np.testing.assert_array_equal(truth.std_error, full.std_error)
    apart = np.abs(truth.estimate - full.estimate).mean()
    for est, other in ((truth, "consensus"), (full, "truth")):
        assert est.solution.outlook.change == pytest.approx(apart)
        moves = f'target="{other}" would move estimates by {apart:.3g} on average'
        assert moves in est.diagnosis.target


@pytest.mark.parametrize("shrink", PUBLISHED)
@pytest.mark.parametrize("target", ["auto", "truth", "consensus"])
def test_published_second_steps_take_no_target(shrink: str, target: str) -> None:
    x = np.random.default_rng(3).normal(0, 1, 30) + np.random.default_rng(4).normal(size=(5, 30))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrueupWarning)
        est = trueup.estimate(x, "mean", shrink, target=target, kind="forecast", caution=0.5)
    np.testing.assert_allclose(est.estimate, est.second_step.posterior.mean, rtol=1e-12)
    np.testing.assert_allclose(est.shrinkage, est.second_step.posterior.shrinkage, rtol=1e-12)
    assert np.isnan(est.truth_lower).all()
    assert np.isnan(est.truth_upper).all()
    assert f"shrink {shrink} takes no target" in est.diagnosis.target
    assert "truth_lower and truth_upper are unknown" in est.diagnosis.target
    assert est.solution.target == ""
    assert not est.solution.outlook.is_known


@pytest.mark.parametrize("shrink", ["paper", "morris"])
def test_published_second_steps_are_calibrated_as_before(shrink: str) -> None:
    rng = np.random.default_rng(5)
    truth = rng.normal(50, 10, 60)
    x = 10 + 0.5 * truth + rng.normal(0, 3, (6, 60))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrueupWarning)
        est = trueup.estimate(x, "mean", shrink, gold=dict(enumerate(truth[:12].tolist())))
    assert est.calibration is not None
    step = est.second_step.posterior
    centre, square, _ = est.calibration.apply(step.mean, np.nan_to_num(step.variance))
    np.testing.assert_allclose(est.estimate[12:], centre[12:], rtol=1e-12)
    half = 0.5 * (est.upper - est.lower)[12:]
    assert (half > 1.9599 * np.sqrt(square[12:])).all()
    assert (half < 2.5 * np.sqrt(square[12:])).all()
    assert np.isnan(est.truth_upper[12:]).all()
    np.testing.assert_allclose(est.truth_upper[:12], truth[:12])
    assert est.diagnosis.gold.startswith("Compared with 12 known truths")


def test_without_second_step_the_interval_for_the_truth_exists() -> None:
    x = sparse(5)
    est = trueup.estimate(x, "mean", "none")
    sound(est)
    np.testing.assert_array_equal(est.estimate, est.base)
    assert np.isfinite(est.truth_lower).all()
    assert (est.truth_lower < est.lower).all()
    assert (est.upper < est.truth_upper).all()
    same = trueup.estimate(x, "mean", "none", target="consensus")
    np.testing.assert_array_equal(same.estimate, est.estimate)
    np.testing.assert_array_equal(same.truth_upper, est.truth_upper)


@pytest.mark.parametrize("shrink", ["adaptive", "normal", "mixture"])
@pytest.mark.parametrize("count", [0, 3])
def test_caution_multiplies_the_step(shrink: str, count: int) -> None:
    x, truth = noisy()
    gold = dict(enumerate(truth[:count].tolist())) or None
    full, none = (
        trueup.estimate(x, "mean", each, target="truth", gold=gold) for each in (shrink, "none")
    )
    half = trueup.estimate(x, "mean", shrink, target="truth", gold=gold, caution=0.5)
    np.testing.assert_allclose(half.shrinkage, 0.5 * full.shrinkage, rtol=1e-12)
    assert full.shrinkage.max() > 0
    if not count:
        np.testing.assert_allclose(half.estimate, 0.5 * (none.estimate + full.estimate), atol=1e-12)
    sound(half)


def test_kinds_change_the_interval_for_the_truth_alone() -> None:
    x = sparse(8)
    ests = {
        kind: trueup.estimate(x, "mean", target="truth", kind=kind)
        for kind in (None, "perception", "judgment", "forecast")
    }
    width = {kind: np.mean(est.truth_upper - est.truth_lower) for kind, est in ests.items()}
    assert width["perception"] < width["judgment"] < width["forecast"]
    assert width["perception"] < 0.7 * width[None]
    for est in ests.values():
        np.testing.assert_array_equal(est.estimate, ests[None].estimate)
        np.testing.assert_array_equal(est.upper, ests[None].upper)


@pytest.mark.parametrize("count", [0, 3])
def test_a_kind_changes_nothing_for_the_consensus_and_that_is_said(count: int) -> None:
    x, truth = clustered(7)
    options: dict[str, Any] = {"gold": dict(enumerate(truth[:count].tolist())) or None}
    plain, kind = (
        trueup.estimate(x, "mean", target="consensus", kind=kind, **options)
        for kind in (None, "forecast")
    )
    for name in ("estimate", "lower", "upper", "truth_lower", "truth_upper"):
        np.testing.assert_array_equal(getattr(kind, name), getattr(plain, name))
    assert 'kind="forecast" changes nothing for it' in kind.diagnosis.target
    assert "kind" not in plain.diagnosis.target


def test_known_truths_do_not_touch_a_consensus_that_was_asked_for() -> None:
    x, truth = clustered(8)
    plain = trueup.estimate(x, "mean", target="consensus")
    est = trueup.estimate(x, "mean", target="consensus", gold={2: float(truth[2]) + 1.0})
    others = np.arange(45) != 2
    for name in ("estimate", "lower", "upper", "std_error"):
        np.testing.assert_array_equal(getattr(est, name)[others], getattr(plain, name)[others])
    assert est.estimate[2] == est.lower[2] == est.truth_upper[2] == pytest.approx(truth[2] + 1.0)
    assert (est.truth_upper[others] != plain.truth_upper[others]).all()
    assert est.diagnosis.assumptions == plain.diagnosis.assumptions


@pytest.mark.parametrize(
    ("x", "reason"),
    [
        (np.tile(np.arange(6.0), (4, 1)), "all answers to a question agree"),
        (np.where(np.eye(6) > 0, np.arange(6.0), NAN), "no question has two answers"),
    ],
)
def test_where_the_scatter_is_unknown_the_reason_is_said(x: Floats, reason: str) -> None:
    est = trueup.estimate(x)
    np.testing.assert_array_equal(est.estimate, est.base)
    assert np.isnan(est.truth_lower).all()
    assert f"truth_lower and truth_upper are unknown, because {reason}" in est.diagnosis.target


@pytest.mark.parametrize("count", [0, 3])
def test_narrow_intervals_are_widened_to_hold_the_estimate(count: int) -> None:
    """At a low level they are narrow around a centre that lies beyond the estimate."""
    x, truth = noisy()
    gold = dict(enumerate(truth[:count].tolist())) or None
    est = trueup.estimate(x, "mean", target="truth", gold=gold, level=0.01)
    sound(est)
    assert (est.truth_lower == est.estimate)[count:].any()
    assert (est.truth_upper == est.estimate)[count:].any()
