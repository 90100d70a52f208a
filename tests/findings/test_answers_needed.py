"""Which questions need another answer: against the posterior after answers were in fact added."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import trueup
from trueup import TrueupError
from trueup.findings.answers_needed import AnswersNeeded, answers_needed


def needs(est: trueup.Estimate, target: Any = None) -> AnswersNeeded:
    return answers_needed(est.solution, "pandas", target)


@pytest.fixture(scope="module")
def est() -> trueup.Estimate:
    return trueup.estimate(
        trueup.simulate(workers=12, questions=60, density=0.5, seed=1).answers, method="native"
    )


def test_the_number_asked_for_is_enough_and_one_less_is_not(est: trueup.Estimate) -> None:
    target = 0.3
    found = needs(est, target)
    shift = est.second_step.certainty.shift[0]
    v = est.second_step.posterior.variance
    after = 1.0 / (1.0 / v + found.more / found.typical**2) + shift
    before = 1.0 / (1.0 / v + np.maximum(found.more - 1, 0) / found.typical**2) + shift
    assert (found.more >= 0).all()
    assert (np.sqrt(after) <= target * (1 + 1e-9)).all()
    assert (np.sqrt(before[found.more > 0]) > target).all()
    assert found.total == found.more.sum()
    assert found.short == (est.std_error > target).sum()


def test_more_answers_bring_what_was_said() -> None:
    """Mean standard error of thin questions with four more answers each, against the forecast."""
    rng = np.random.default_rng(3)
    full = trueup.simulate(workers=40, questions=200, variance="fixed", seed=3).answers.to_matrix()
    thin = np.full(full.shape, np.nan)
    more = np.full(full.shape, np.nan)
    for j in range(full.shape[1]):
        chosen = rng.permutation(40)
        thin[chosen[:4], j] = full[chosen[:4], j]
        more[chosen[:8], j] = full[chosen[:8], j]
    before = trueup.estimate(thin, method="mean", shrink="normal")
    after = trueup.estimate(more, method="mean", shrink="normal")
    target = float(after.std_error.mean())
    assert needs(before, target).more.mean() == pytest.approx(4.0, abs=1.2)


@pytest.mark.parametrize(
    ("method", "shrink"),
    [("mean", "none"), ("mean", "normal"), ("median", "none"), ("native", "normal")],
)
def test_workers_who_answer_once_bring_what_was_said(method: str, shrink: str) -> None:
    """Ask 60 questions of three new workers each, then of as many more as half the standard error is said to need.

    Both the standard error and the error itself are then what was promised, within a seventh.
    """
    rng = np.random.default_rng(8)
    standard, actual = [], []
    for _ in range(4):
        truth = rng.normal(size=60)
        few = np.repeat(np.arange(60), 3)
        x = truth[few] + rng.normal(size=len(few))
        before = _of_single_answers(few, x, method, shrink)
        target = 0.5 * float(np.median(before.std_error))
        more = np.repeat(np.arange(60), needs(before, target).more)
        y = truth[more] + rng.normal(size=len(more))
        after = _of_single_answers(np.r_[few, more], np.r_[x, y], method, shrink)
        standard.append(np.mean(after.std_error**2) / target**2)
        actual.append(np.mean((after.estimate - truth) ** 2) / target**2)
    assert np.sqrt(np.mean(standard)) == pytest.approx(1.0, abs=0.1)
    assert np.sqrt(np.mean(actual)) == pytest.approx(1.0, abs=0.14)


def _of_single_answers(question: Any, x: Any, method: str, shrink: str) -> trueup.Estimate:
    """Estimate from answers of as many workers, questions in their order."""
    order = np.argsort(question, kind="stable")
    rows = {"worker": np.arange(len(x)), "question": question[order], "answer": x[order]}
    return trueup.estimate(rows, method, shrink, target="consensus", transform="none")


def test_the_least_certain_come_first(est: trueup.Estimate) -> None:
    found = needs(est)
    assert (np.diff(est.std_error[found.order]) <= 0).all()
    assert found.target == pytest.approx(np.median(est.std_error))
    assert len(found.best) == 10
    assert found.best[0] == np.argmax(est.std_error)
    assert (found.after_one < est.std_error).all()
    frame = found.questions
    assert list(frame)[:4] == ["question", "std_error", "n_answers", "more_answers"]
    assert frame["std_error"][0] == est.std_error.max()


def test_words(est: trueup.Estimate) -> None:
    text = str(needs(est, 0.3))
    assert "more answers to reach a standard error of 0.3: " in text
    assert "from typical workers in total." in text
    assert "One more answer helps most for these questions:" in text
    assert "(the median question's)" in needs(est).summary
    assert needs(est, 1e6).summary == "Every question has reached a standard error of 1e+06."
    assert needs(est, 1e6).total == 0


def test_what_no_answer_can_mend_is_said() -> None:
    """A shift through the biases of the workers stays, however many answers a question gets."""
    est = trueup.estimate(trueup.simulate(workers=5, questions=40, bias=3.0, seed=2).answers)
    shift = float(np.sqrt(est.second_step.certainty.shift[0]))
    found = needs(est, 0.5 * shift)
    assert found.never == 40
    assert "cannot reach it" in str(found)
    assert (found.more == -1).all()
    assert np.isnan(found.questions["more_answers"]).all()


def test_units_and_scales() -> None:
    x = trueup.simulate(workers=8, questions=40, density=0.6, seed=4).answers.to_matrix()
    plain = trueup.estimate(x, method="mean")
    moved = trueup.estimate(100.0 + 10.0 * x, method="mean")
    assert needs(moved, 2.0).more.tolist() == needs(plain, 0.2).more.tolist()
    log = trueup.estimate(np.exp(x), method="mean", transform="log")
    found = needs(log, 0.2)
    # On the scale of the answers a large estimate needs more answers for the same standard error.
    large = np.argsort(log.estimate)
    assert found.more[large[-10:]].mean() > 5 * max(found.more[large[:10]].mean(), 1.0)
    assert np.isfinite(found.gain).all()


def test_known_truths_need_nothing() -> None:
    sim = trueup.simulate(workers=6, questions=60, seed=5)
    gold = {j: float(sim.truth[j]) for j in range(12)}
    found = needs(trueup.estimate(sim.answers, gold=gold), 0.3)
    assert (found.more[:12] == 0).all()
    assert np.isfinite(found.gain).all()


@pytest.mark.parametrize("target", [0.0, -1.0, np.nan, np.inf, "x"])
def test_targets_that_are_none(est: trueup.Estimate, target: float) -> None:
    with pytest.raises(TrueupError, match="target_se"):
        needs(est, target)


def test_estimates_without_standard_errors_are_refused() -> None:
    with pytest.raises(TrueupError, match="no standard error"):
        needs(trueup.estimate([[1.0, 2.0, 3.0, 4.0]]))
    with pytest.raises(TrueupError, match="panels"):
        needs(trueup.estimate(trueup.simulate(panels=2).answers, method="mean"))


def test_huge_answers_and_full_agreement_are_finite() -> None:
    x = trueup.simulate(workers=5, questions=20, seed=1).answers.to_matrix()
    found = needs(trueup.estimate(1e60 * x))
    assert np.isfinite(found.after_one).all()
    agreed = needs(trueup.estimate([[1.0, 2.0, 3.0, 4.0, 5.0]] * 3))
    assert agreed.total == 0
    assert len(agreed.best) == 0
