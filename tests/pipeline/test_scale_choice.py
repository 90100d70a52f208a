"""The scale on which answers are combined: when logarithms are chosen, and the way back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import trueup
from plain_native import plain_native
from trueup import Answers, disk
from trueup.answers.scale import Scale
from trueup.engines.memory import MemoryEngine
from trueup.pipeline.scale_choice import CLEAR, MOST_SHIFT, compare_scales

if TYPE_CHECKING:
    from pathlib import Path

    from trueup.core.arrays import Floats


def multiplicative(
    seed: int, n: int = 6, m: int = 50, *, sd: float = 1.0, error: float = 0.3, share: float = 1.0
) -> tuple[Floats, Floats]:
    """Answers whose errors are in proportion to the truth."""
    rng = np.random.default_rng(seed)
    truth = np.exp(rng.normal(4, sd, m))
    x = truth * np.exp(error * rng.normal(size=(n, m)))
    x[rng.random((n, m)) > share] = np.nan
    x[0, np.isnan(x).all(axis=0)] = 1.0
    return x, truth


def additive(seed: int, n: int = 6, m: int = 50) -> Floats:
    rng = np.random.default_rng(seed)
    return rng.normal(50, 10, m) + 5 * rng.normal(size=(n, m))


def rows(x: Floats) -> dict[str, Any]:
    worker, question = np.nonzero(~np.isnan(x))
    return {"question": question, "worker": worker, "answer": x[worker, question]}


def plain_gain(x: Floats) -> float:
    """The difference of the evidence for logarithms and for the answers as they are."""
    columns = rows(x)
    question, answer = columns["question"], columns["answer"]
    found = plain_native(question, columns["worker"], answer)
    logs = plain_native(question, columns["worker"], np.log(answer))
    several = np.bincount(question) >= 2
    jacobian = (logs["t"] + 0.5 * logs["v"])[several].sum() - np.log(answer)[
        several[question]
    ].sum()
    return float(logs["evidence"] + jacobian - found["evidence"])


@pytest.mark.parametrize("share", [1.0, 0.5])
@pytest.mark.parametrize("seed", range(3))
def test_the_evidence_is_that_of_the_plain_program(seed: int, share: float) -> None:
    for x in (multiplicative(seed, share=share)[0], np.abs(additive(seed))):
        engine = MemoryEngine(Answers.of(x))
        found = compare_scales(engine, Scale())
        assert found.gain is not None
        expected = plain_gain(x)
        assert found.gain[0] == pytest.approx(expected, rel=1e-6, abs=1e-6)
        assert (found.scales.first.transform == "proportional") == (expected > CLEAR)


def test_logarithms_are_chosen_where_errors_grow_with_the_value() -> None:
    chosen = [trueup.estimate(multiplicative(seed, n=3)[0]).diagnosis for seed in range(8)]
    assert all(each.transform == "proportional" for each in chosen)
    assert "combined as logarithms" in chosen[0].scale
    plain = [trueup.estimate(additive(seed)).diagnosis for seed in range(8)]
    assert all(each.transform == "none" for each in plain)


def test_answers_that_are_not_positive_stay_as_they_are() -> None:
    x, _ = multiplicative(1)
    for value in (0.0, -1.0):
        y = x.copy()
        y[2, 3] = value
        assert trueup.estimate(y).diagnosis.transform == "none"


def test_few_questions_stay_as_they_are() -> None:
    x, _ = multiplicative(1, m=7)
    assert trueup.estimate(x).diagnosis.transform == "none"


@pytest.mark.parametrize("method", ["mean", "native"])
def test_the_way_back_is_to_what_the_average_worker_would_say(method: str) -> None:
    x, _ = multiplicative(3, error=0.5)
    est = trueup.estimate(x, method, "none", transform="proportional")
    log = trueup.estimate(x, method, "none", transform="log")
    rest = (np.log(x) - np.log(log.estimate)) * np.sqrt(6 / 5)
    limit = 4 * 1.4826 * np.median(np.abs(rest))
    shift = 0.5 * np.mean(np.clip(rest, -limit, limit) ** 2)
    np.testing.assert_allclose(est.estimate, log.estimate * np.exp(shift), rtol=1e-9)
    np.testing.assert_allclose(est.upper, log.upper * np.exp(shift), rtol=1e-9)
    np.testing.assert_allclose(est.std_error, log.std_error * np.exp(shift), rtol=1e-9)
    assert est.solution.scale.shift == pytest.approx(shift, rel=1e-9)


def test_the_average_worker_is_met_on_average() -> None:
    ratio = []
    for seed in range(20):
        x, truth = multiplicative(seed, error=0.6)
        ratio.append(np.mean(trueup.estimate(x, shrink="none").estimate / truth))
    assert np.mean(ratio) == pytest.approx(np.exp(0.18), rel=0.02)


def test_the_shift_is_limited() -> None:
    x, _ = multiplicative(3, error=3.0)
    assert trueup.estimate(x, transform="proportional").solution.scale.shift == MOST_SHIFT


def test_a_mean_that_is_asked_for_is_the_mean() -> None:
    x, _ = multiplicative(2)
    est = trueup.estimate(x, "mean", "none")
    np.testing.assert_allclose(est.estimate, x.mean(axis=0))
    assert trueup.estimate(x, "mean").diagnosis.transform == "proportional"
    assert trueup.estimate(x, "native", "none").diagnosis.transform == "proportional"


def test_known_variances_are_those_of_the_answers_as_they_are() -> None:
    x, _ = multiplicative(2)
    known = dict.fromkeys(range(6), 4.0)
    assert trueup.estimate(x, worker_variance=known).diagnosis.transform == "none"
    assert trueup.estimate(x, variance=1.0).diagnosis.transform == "none"
    columns = {**rows(x), "v": np.ones(x.size)}
    assert trueup.estimate(columns, answer_variance="v").diagnosis.transform == "none"
    assert trueup.estimate(x, variance="plugin").diagnosis.transform == "proportional"


def test_units_do_not_matter() -> None:
    x, _ = multiplicative(4)
    first = trueup.estimate(x)
    for factor in (1e-6, 1e6):
        other = trueup.estimate(factor * x)
        np.testing.assert_allclose(other.estimate, factor * first.estimate, rtol=1e-9)
        np.testing.assert_allclose(other.lower, factor * first.lower, rtol=1e-9)


def test_none_is_a_word_and_the_absence_of_one() -> None:
    x, _ = multiplicative(4)
    one, other = (trueup.estimate(x, transform=each) for each in ("none", None))
    np.testing.assert_array_equal(one.estimate, other.estimate)
    assert one.diagnosis.transform == other.diagnosis.transform == "none"
    assert not one.diagnosis.scale


def test_weak_evidence_is_mentioned() -> None:
    gains = {}
    for seed in range(200):
        rng = np.random.default_rng(seed)
        x = rng.normal(50, 10, 20) * np.exp(0.1 * rng.normal(size=(3, 20)))
        found = compare_scales(MemoryEngine(Answers.of(x)), Scale())
        assert found.gain is not None
        gains[seed] = float(found.gain[0])
        if 0 < gains[seed] < CLEAR:
            said = trueup.estimate(x).diagnosis
            assert said.transform == "none"
            assert "not clear" in said.scale
            assert "not clear" in str(said)
            return
    raise AssertionError(f"no weak evidence among {gains}")


def test_panels_choose_each_for_themselves() -> None:
    matrices = [multiplicative(1)[0], additive(1), multiplicative(2, m=5)[0], multiplicative(3)[0]]
    frames = [pd.DataFrame(rows(x)).assign(panel=number) for number, x in enumerate(matrices)]
    est = trueup.estimate(pd.concat(frames), "native", panel="panel")
    borders = est.answers.panel_questions
    for number, x in enumerate(matrices):
        alone = trueup.estimate(rows(x), "native")
        mine = slice(borders[number], borders[number + 1])
        for name in ("estimate", "lower", "upper", "base"):
            np.testing.assert_allclose(
                getattr(est, name)[mine],
                getattr(alone, name),
                rtol=1e-8,
                err_msg=f"{number} {name}",
            )
    assert "in 2 of 4 panels" in est.diagnosis.scale


def test_disk_chooses_as_memory_does(tmp_path: Path) -> None:
    x, _ = multiplicative(5, share=0.7)
    frame = pd.DataFrame(rows(x)).astype({"question": str, "worker": str})
    frame.to_csv(tmp_path / "a.csv", index=False)
    memory = trueup.estimate(tmp_path / "a.csv")
    with disk.estimate(tmp_path / "a.csv", tmp_path / "out.parquet") as est:
        assert est.diagnosis == memory.diagnosis
        found = est.questions.to_pandas().sort_values("question")
    expected = pd.DataFrame(memory.questions).sort_values("question")
    for name in ("estimate", "lower", "upper", "base"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-9)


def test_known_truths_come_back_as_they_are() -> None:
    x, truth = multiplicative(6, error=0.5)
    gold = {number: float(truth[number]) for number in range(12)}
    est = trueup.estimate(x, gold=gold)
    assert est.diagnosis.transform == "proportional"
    np.testing.assert_allclose(est.estimate[:12], truth[:12], rtol=1e-12)


def test_a_truth_that_is_not_positive_keeps_the_answers_as_they_are() -> None:
    x, truth = multiplicative(6, error=0.5)
    est = trueup.estimate(x, gold={0: float(truth[0]), 3: 0.0})
    assert est.diagnosis.transform != "proportional"
    assert est.estimate[3] == 0.0
    with pytest.raises(trueup.TrueupError, match="truths above 0"):
        trueup.estimate(x, gold={3: 0.0}, transform="proportional")


def test_gold_without_a_truth_is_none() -> None:
    x, _ = multiplicative(6)
    plain = trueup.estimate(x)
    for gold in ({}, {1: None}, {1: float("nan")}):
        est = trueup.estimate(x, gold=gold)
        for name in ("estimate", "lower", "upper", "truth_lower", "truth_upper"):
            np.testing.assert_array_equal(getattr(est, name), getattr(plain, name))


def test_bounds_hold_on_the_way_back() -> None:
    x, _ = multiplicative(7)
    est = trueup.estimate(x, bounds=(20.0, 100.0))
    assert est.diagnosis.transform == "proportional"
    assert est.estimate.min() >= 20
    assert est.upper.max() <= 100


def test_an_update_keeps_the_scale(tmp_path: Path) -> None:
    x, _ = multiplicative(8)
    est = trueup.estimate(rows(x[:5]))
    path = est.save(tmp_path / "state.trueup")
    loaded = trueup.load(path)
    assert loaded.diagnosis == est.diagnosis
    assert loaded.solution.scale == est.solution.scale
    np.testing.assert_array_equal(loaded.estimate, est.estimate)
    np.testing.assert_allclose(loaded.second_step.posterior.mean, est.second_step.posterior.mean)
    new = {"question": np.arange(50), "worker": np.full(50, 5), "answer": x[5]}
    updated = trueup.update(path, new)
    full = trueup.estimate(rows(x))
    assert updated.diagnosis.transform == "proportional"
    assert updated.diagnosis.scale == est.diagnosis.scale
    np.testing.assert_allclose(updated.estimate, full.estimate, rtol=1e-9)


def test_answers_that_the_scale_cannot_take_start_anew() -> None:
    x, _ = multiplicative(8)
    est = trueup.estimate(rows(x))
    new = {"question": [0, 1], "worker": [9, 9], "answer": [0.0, -3.0]}
    updated = trueup.update(est, new)
    assert updated.diagnosis.transform == "none"
    assert "estimated anew" in str(updated.diagnosis)
    everything = pd.concat([pd.DataFrame(rows(x)), pd.DataFrame(new)])
    np.testing.assert_allclose(updated.estimate, trueup.estimate(everything).estimate, rtol=1e-9)
    asked = trueup.estimate(rows(x), transform="log")
    with pytest.raises(
        trueup.TrueupError, match=r"^answers: log needs answers above 0.*again"
    ) as caught:
        trueup.update(asked, new)
    assert caught.value.argument == "answers"


@pytest.mark.parametrize("transform", ["exp", 3, ""])
def test_other_words_are_refused(transform: Any) -> None:
    with pytest.raises(trueup.TrueupError, match=r"transform: .* is not known"):
        trueup.estimate([[1.0, 2.0], [2.0, 3.0]], transform=transform)


@pytest.mark.parametrize("bias", ["on", 1, None])
def test_bias_is_yes_no_or_auto(bias: Any) -> None:
    with pytest.raises(trueup.TrueupError, match='must be True, False or "auto"'):
        trueup.estimate([[1.0, 2.0], [2.0, 3.0]], bias=bias)
