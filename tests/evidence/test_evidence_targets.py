"""The studies of both targets and of known truths: their rows are what a plain loop over estimate gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import trueup
from evidence.second_step import gold
from evidence.second_step.both_targets import (
    METHODS,
    TARGETS,
    TargetCell,
    by_first_step,
    rows_of_cell,
    summary,
    summary_errors,
)
from evidence.second_step.gold import mean_of_sets, rows_of
from evidence.sub_panels import RANDOM_ANSWERS, draw
from trueup.study import Drawn

if TYPE_CHECKING:
    from pathlib import Path


def test_a_draw_of_known_truths_is_what_estimate_gives() -> None:
    drawn = trueup.simulate(6, 30, bias=1.0, seed=4)
    answers, truth = drawn.answers, drawn.truth + 1.0
    rows = rows_of(Drawn(answers, truth), (1, 9), 2, 3)
    assert [(row["draw"], row["gold"]) for row in rows] == [(0, 1), (0, 9), (1, 1), (1, 9)]
    order = np.random.default_rng(3).permutation(30)
    known = np.full(30, np.nan)
    known[order[:9]] = truth[order[:9]]
    rest, row = order[9:], rows[1]
    for key, told in (("without", None), ("with", known)):
        est = trueup.estimate(answers, method="native", transform="none", target="truth", gold=told)
        inside = (est.truth_lower <= truth) & (truth <= est.truth_upper)
        assert row[f"mse_{key}"] == pytest.approx(np.mean((est.estimate - truth)[rest] ** 2))
        assert row[f"coverage_{key}"] == pytest.approx(inside[rest].mean())
        assert row[f"width_{key}"] == pytest.approx(
            (est.truth_upper - est.truth_lower)[rest].mean()
        )


def test_each_data_set_counts_the_same_in_the_mean() -> None:
    def cell(data: str, ratio: float, coverage: float) -> dict[str, object]:
        errors = {"ratio_se": 0.0, "coverage_se": 0.0}
        return {
            "data": data,
            "gold": 3,
            "ratio": ratio,
            "coverage": coverage,
            "width": 1.0,
        } | errors

    row = mean_of_sets([cell("a", 1.0, 0.8), cell("a", 1.0, 1.0), cell("b", 0.25, 1.0)])
    assert row["gold"] == 3
    assert row["ratio"] == pytest.approx(0.5)
    assert row["coverage"] == pytest.approx(0.95)


def test_a_cell_of_both_targets_is_what_estimate_gives(data_folder: Path) -> None:
    rows = rows_of_cell("groceries", str(data_folder), 3, 2, 0)
    drawn = draw("groceries", str(data_folder), RANDOM_ANSWERS, 3, 2, 0)
    assert drawn is not None
    assert [row["method"] for row in rows[::2]] == [*METHODS]
    for number in range(2):
        answers = drawn.answers.panel(number)
        truth = drawn.truth[drawn.answers.question_panel == number]
        row = rows[number]
        for target in TARGETS:
            est = trueup.estimate(answers, "mean", transform="none", target=target)
            assert row["before"] == pytest.approx(np.mean((est.base - truth) ** 2))
            assert row[target] == pytest.approx(np.mean((est.estimate - truth) ** 2))
        part = trueup.estimate(answers, "mean", transform="none", target="consensus", caution=0.8)
        assert row["0.8 of the step"] == pytest.approx(np.mean((part.estimate - truth) ** 2))
    assert rows_of_cell("groceries", str(data_folder), 500, 2, 0) == []


def test_a_summary_varies_as_much_as_the_panels_do() -> None:
    def cell(data: str, loss: list[float]) -> TargetCell:
        before = np.ones(len(loss))
        return TargetCell(data, 3, "mean", before, np.tile(loss, (3, 1)), before, before)

    alike = [cell("a", [0.5, 0.5]), cell("b", [2.0, 2.0])]
    mean, above, worst = summary(np.array([each.ratios() for each in alike]))
    assert mean == pytest.approx(np.ones(3))
    assert above == pytest.approx(0.5 * np.ones(3))
    assert worst == pytest.approx(2.0 * np.ones(3))
    assert summary_errors(alike, 0) == pytest.approx(np.zeros((3, 3)))
    varied = [cell("a", [0.9, 1.1] * 50)]
    assert summary_errors(varied, 0)[0] == pytest.approx(0.01 * np.ones(3), rel=0.3)


def test_first_steps_are_compared_with_the_plain_mean_before_the_second() -> None:
    def cell(method: str, before: float, loss: float) -> TargetCell:
        one = np.ones(2)
        return TargetCell("a", 3, method, before * one, np.full((3, 2), loss), one, one)

    rows = by_first_step([cell("mean", 4.0, 2.0), cell("native", 1.0, 0.9)]).rows
    assert rows == [["mean", 1.0, 0.5, 0.5, 0.5, 0.5], ["native", 0.25, 0.9, 0.9, 0.9, 0.225]]


def test_the_simulated_crowds_need_no_data(data_folder: Path) -> None:
    assert len(gold.simulated_rows("simulated, nothing shared", (1, 3), 2, 0)) == 4
    real = gold.real_rows("groceries", str(data_folder), 3, (1, 9), 1, 0)
    assert [row["gold"] for row in real] == [1]  # nine of ten leave one question
