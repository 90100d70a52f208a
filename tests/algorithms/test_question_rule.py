"""A plain function as a first step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import trueup
from trueup import TrueupError, disk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

rng = np.random.default_rng(5)
MATRIX = 50 + rng.normal(0, 3, 12) + rng.normal(0, 1, (7, 12))
MATRIX[rng.random(MATRIX.shape) < 0.3] = np.nan


def low(answers: Any) -> Any:
    return np.percentile(answers, 40)


def test_the_function_sees_the_answers_of_one_question_each() -> None:
    est = trueup.estimate(MATRIX, method=low)
    expected = [low(column[~np.isnan(column)]) for column in MATRIX.T]
    np.testing.assert_allclose(est.base, expected, rtol=1e-12)
    assert est.diagnosis.method == "function"


def test_its_variances_are_those_of_the_jackknife() -> None:
    est = trueup.estimate(MATRIX, method=low, target="consensus")
    asked = trueup.estimate(MATRIX, method=low, target="consensus", variance="jackknife")
    assert np.isfinite(est.std_error).all()
    assert est.estimate.tolist() == asked.estimate.tolist()
    assert (est.shrinkage > 0).all()


def test_the_function_sees_answers_and_not_logarithms() -> None:
    wide = np.exp(rng.normal(3, 2, 30)) * np.exp(rng.normal(0, 0.3, (8, 30)))
    assert trueup.estimate(wide, method="native").diagnosis.transform == "proportional"
    est = trueup.estimate(wide, method=np.mean)
    assert est.diagnosis.transform == "none"
    np.testing.assert_allclose(est.base, wide.mean(axis=0))


def test_the_function_may_change_its_array() -> None:
    def greedy(answers: Any) -> float:
        answers.sort()
        first = float(answers[0])
        answers[:] = 0.0
        return first

    est = trueup.estimate(MATRIX, method=greedy, shrink="none")
    np.testing.assert_allclose(est.estimate, np.nanmin(MATRIX, axis=0))


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda _: np.nan, "returned nan for the answers .*, must be one finite number"),
        (lambda _: None, "returned None"),
        (lambda answers: np.append(answers, answers), "returned array"),
        (lambda _: 1 / 0, 'raised "ZeroDivisionError: division by zero" for the answers'),
    ],
)
def test_what_it_returns_must_be_a_number(function: Callable[[Any], Any], text: str) -> None:
    with pytest.raises(TrueupError, match=f"^method: the function {text}"):
        trueup.estimate(MATRIX, method=function)


def test_variances_of_answers_are_refused() -> None:
    with pytest.raises(
        TrueupError, match=r"^answer_variance: a function as method sees the answers"
    ):
        trueup.estimate(MATRIX, method=low, answer_variance=np.ones(MATRIX.shape))


def test_it_is_compared_and_printed() -> None:
    board = trueup.compare(MATRIX, [low, "mean"])
    assert set(board["method"]) >= {"mean"}
    est = trueup.estimate(MATRIX, method=low)
    assert "method" in est.request.as_call().placeholders


def test_it_runs_on_disk(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    worker, question = np.nonzero(~np.isnan(MATRIX))
    rows = zip(question.tolist(), worker.tolist(), MATRIX[worker, question].tolist(), strict=True)
    path = tmp_path / "answers.csv"
    path.write_text("question,worker,answer\n" + "".join(f"{q},{w},{y!r}\n" for q, w, y in rows))
    expected = trueup.estimate(MATRIX, method=low, shrink="none").estimate
    with disk.estimate(path, tmp_path / "out.parquet", low, "none") as est:
        np.testing.assert_allclose(est.estimate, expected)
    with pytest.raises(TrueupError, match=r"needs all answers in memory"):
        disk.estimate(path, tmp_path / "out.parquet", low)
