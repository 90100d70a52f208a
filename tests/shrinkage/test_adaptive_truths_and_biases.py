"""estimate() with its own second step: known truths correct it, and biases of workers are taken off."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import trueup
from frames_by_library import FRAMES, rows
from small_panels import NAN, columns_of, sound, sparse
from trueup import Answers, TrueupError
from trueup.engines.memory import MemoryEngine
from trueup.pipeline.solve import INTERVALS

if TYPE_CHECKING:
    from trueup.core.arrays import Floats


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


def test_known_truths_count_from_the_first_on() -> None:
    x, truth = compressed(2)
    errors = [np.mean((trueup.estimate(x, "mean").estimate - truth)[7:] ** 2)]
    for count in (1, 2, 4, 7):
        est = trueup.estimate(x, "mean", gold={j: float(truth[j]) for j in range(count)})
        sound(est)
        assert est.calibration is None
        for column in (est.estimate, est.lower, est.upper, est.truth_lower, est.truth_upper):
            np.testing.assert_allclose(column[:count], truth[:count], rtol=1e-12)
        np.testing.assert_array_equal(est.lower, est.truth_lower)
        np.testing.assert_array_equal(est.upper, est.truth_upper)
        known = "1 known truth" if count == 1 else f"{count} known truths"
        assert f"{known}: these workers understate differences by about" in est.diagnosis.gold
        assert INTERVALS not in est.diagnosis.assumptions
        errors.append(np.mean((est.estimate - truth)[7:] ** 2))
    assert errors == sorted(errors, reverse=True)


def test_second_steps_without_target_need_eight_known_truths() -> None:
    x, truth = compressed(2)
    est = trueup.estimate(x, "mean", "morris", gold={3: truth[3], 7: truth[7]})
    without = trueup.estimate(x, "mean", "morris")
    assert est.calibration is None
    assert est.estimate[[3, 7]] == pytest.approx(truth[[3, 7]])
    assert est.truth_lower[[3, 7]] == pytest.approx(truth[[3, 7]])
    others = ~np.isin(np.arange(60), [3, 7])
    np.testing.assert_array_equal(est.estimate[others], without.estimate[others])
    np.testing.assert_array_equal(est.upper[others], without.upper[others])
    assert np.isnan(est.truth_upper[others]).all()
    assert "2 known truths: at least 8 are needed" in str(est)
    assert est.diagnosis.assumptions[0] == INTERVALS


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
    found = trueup.estimate(x)
    assert "bias_std_error" not in found.workers.columns
    np.testing.assert_array_equal(found.workers["bias"], workers["bias"])
    without = trueup.estimate(x, bias=False)
    assert without.workers["bias"].isna().all()
    assert without.biases is None
    none = trueup.estimate(sparse(11, n=8, m=60, bias=0.0), bias=True)
    assert none.biases is None
    assert none.workers["bias_std_error"].isna().all()


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
