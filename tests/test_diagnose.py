"""diagnose(): the verdict on the second step, on data where the right one is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import trueup
from trueup import Findings, TrueupError, diagnose_all


@pytest.mark.parametrize(
    ("scale", "expected"), [(0.0, 0.075), (0.5, 0.6), (1.0, 0.84), (5.0, 0.993)]
)
def test_expected_ratio_is_that_of_the_normal_model(scale: float, expected: float) -> None:
    """1 - (m-3)/m v/(v + tau2) with v = 1/5 for five workers of variance 1, forty questions."""
    ratios = [
        trueup.diagnose(
            trueup.simulate(
                workers=5, questions=40, truth_scale=scale, variance="fixed", seed=seed
            ).answers,
            panels=0,
        ).expected_ratio
        for seed in range(20)
    ]
    exact = 1 - 37 / 40 * 0.2 / (0.2 + scale**2)
    assert exact == pytest.approx(expected, abs=0.03)
    # A variance of the truths cannot be estimated below 0: with constant truth the gain is understated.
    assert np.mean(ratios) == pytest.approx(exact, abs=0.13 if scale == 0 else 0.06)


def test_the_printed_variance_is_about_n_times_too_large() -> None:
    found = trueup.diagnose(trueup.simulate(workers=10, questions=60, seed=1).answers, panels=0)
    assert 7 < found.printed / found.variance < 11
    assert not found.gain_printed.shrink
    assert found.gain.shrink
    assert "hurt (the limit is 2)" in str(found)


def test_alpha_star_of_a_right_variance_is_about_m_minus_three() -> None:
    found = trueup.diagnose(
        trueup.simulate(workers=20, questions=40, truth_scale=0.7, seed=2).answers, panels=800
    )
    assert found.condition is not None
    assert found.condition.alpha_star.value == pytest.approx(37, rel=0.25)
    text = str(found)
    assert "alpha* =" in text
    assert "conservative" in text
    assert "cannot be detected" in text


@pytest.mark.parametrize("method", ["mean", "crh", "dtd", "student_t", "median"])
def test_any_first_step_can_be_diagnosed(method: str) -> None:
    answers = trueup.simulate(workers=8, questions=30, density=0.7, seed=3).answers
    found = trueup.diagnose(answers, method, panels=50)
    assert found.method == method
    assert 0 < found.uniformity < 1
    assert 0 < found.expected_ratio < 1


def test_answers_that_cannot_be_diagnosed_are_refused() -> None:
    with pytest.raises(TrueupError, match="four"):
        trueup.diagnose([[1.0, 2.0], [2.0, 3.0]])
    with pytest.raises(TrueupError, match="two different"):
        trueup.diagnose([[1.0, 2.0, 3.0, 4.0]])
    with pytest.raises(TrueupError, match="panels"):
        trueup.diagnose(trueup.simulate(panels=3).answers)
    with pytest.raises(TrueupError, match=r"^answers: whether .* same value"):
        trueup.diagnose([[0.0] * 4, [0.25] * 4])
    with pytest.raises(TrueupError, match=r"^answers: whether .* from 1e-30 on"):
        trueup.diagnose([[0.0] * 4, [0.0, 0.0, 0.0, 2.4e-87]])


@pytest.fixture(scope="module")
def findings() -> Findings:
    x = trueup.simulate(workers=12, questions=60, density=0.8, seed=3).answers.to_matrix()
    x[3] += 3.0
    x[6] = x[7]
    return diagnose_all(x, panels=100)


def test_everything_is_said_on_about_thirty_lines(findings: Findings) -> None:
    lines = str(findings).splitlines()
    assert 25 <= len(lines) <= 40
    titles = ["Workers", "Workers with correlated errors", "Questions", "Agreement", "Second step"]
    assert [line for line in lines if line in titles] == titles
    assert not findings.missing
    text = str(findings)
    assert "3 (" in text
    assert "too high; corrected" in text
    assert "6 and 7: errors correlate 1.00; 100% of answers identical" in text
    assert "ICC(1) = " in text
    assert "more answers to reach a standard error of" in text
    assert text.count("cannot be detected from the answers") == 1


def test_parts_are_computed_once_and_kept() -> None:
    x = trueup.simulate(workers=12, questions=60, density=0.8, seed=3).answers.to_matrix()
    x[6] = x[7]
    est = trueup.estimate(x)
    findings = diagnose_all(est, panels=0)
    assert findings.answers_needed is not None
    assert findings.workers.partner[6] == 7
    assert findings.second_step is not None
    assert findings.second_step.method == est.diagnosis.method
    again = diagnose_all(est, panels=0, target_se=0.5)
    assert again.workers is findings.workers is est.findings.workers
    assert again.agreement is findings.agreement
    assert again.correlated is findings.correlated
    assert again.answers_needed is not None
    assert again.answers_needed.target == 0.5


def test_a_target_can_be_given() -> None:
    answers = trueup.simulate(seed=1).answers
    found = diagnose_all(answers, "mean", target_se=0.1, panels=0)
    assert found.answers_needed is not None
    assert found.answers_needed.target == 0.1
    with pytest.raises(TrueupError, match=r"^target_se: found -1"):
        diagnose_all(answers, "mean", target_se=-1.0, panels=0)


@pytest.mark.parametrize(
    "x",
    [
        [[5.0]],
        [[1.0, 2.0], [2.0, 3.0]],
        [[1.0, 2.0, 3.0, 4.0]],
        np.ones((3, 12)),
        np.tile(np.arange(12.0), (4, 1)),
        np.array([[1.0, np.nan], [np.nan, 2.0]]),
    ],
)
def test_what_cannot_be_known_is_said(x: object) -> None:
    found = diagnose_all(x, panels=0)
    assert found.missing
    assert "Not known" in str(found)


def test_resamples_without_a_spread_leave_the_condition_out() -> None:
    # Where the worker who differs is not drawn, all aggregates are equal.
    x = [[0.25] * 4, [0.0] * 4, [0.0] * 4, [0.0, 0.0, 0.0, 0.25]]
    assert trueup.diagnose(x).condition is None


def test_panels_are_refused_as_a_whole() -> None:
    with pytest.raises(TrueupError, match="panels"):
        diagnose_all(trueup.simulate(panels=2).answers)


def test_many_answers_are_resampled_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trueup.findings.collection.MOST_RESAMPLED", 500 * 60)
    answers = trueup.simulate(seed=1).answers
    assert "only 60 resamples were made" in str(diagnose_all(answers, "mean"))
    monkeypatch.setattr("trueup.findings.collection.MOST_RESAMPLED", 500 * 10)
    assert "it was left out" in str(diagnose_all(answers, "mean"))


@pytest.mark.parametrize("wrong", [1, -1, 0.5, pytest.param(10**400, id="10^400"), None])
def test_a_number_of_resamples_that_cannot_be_made_is_refused(wrong: Any) -> None:
    with pytest.raises(TrueupError, match=r"^panels: found .*, must be a whole number"):
        trueup.diagnose(trueup.simulate(seed=1).answers, panels=wrong)
