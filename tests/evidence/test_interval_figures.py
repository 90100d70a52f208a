"""The study of the intervals, small: its tables are complete."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import numpy as np
import pytest

from evidence import intervals
from evidence.intervals import answers_needed, consensus, rules
from evidence.intervals.consensus import PanelDesign
from evidence.panel_estimates import estimate_of, panels_of

if TYPE_CHECKING:
    from pathlib import Path


def test_the_tables_are_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = ("3 workers, 5 questions", "3 biased workers, 40 questions")
    monkeypatch.setattr(rules, "DESIGNS", {name: rules.DESIGNS[name] for name in few})
    monkeypatch.setattr(answers_needed, "METHODS", ("mean",))
    monkeypatch.setattr(consensus, "TABLES", {"two": (PanelDesign(2, 1), PanelDesign(3, 5))})
    monkeypatch.setattr(consensus, "BEYOND", (PanelDesign(10, 5, spam="anywhere"),))
    monkeypatch.setattr(consensus, "METHODS", ("auto", "crh"))
    intervals.run(tmp_path, quick=True, samples=2, progress=False)
    with (tmp_path / "named_rules.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4 * 2 * 3 * 2
    assert {row["rule"] for row in rows} == set(rules.RULES)
    assert all(0.5 < float(row["inside"]) <= 1 for row in rows)
    with (tmp_path / "more_answers.csv").open() as file:
        needed = list(csv.DictReader(file))
    assert len(needed) == 2 * 2 * 2
    assert all(0.6 < float(row["error"]) < 1.5 for row in needed)
    summary = (tmp_path / "summary.md").read_text()
    assert "hold the truth" in summary
    assert "Marked as rough: 2 x 1 (" in summary
    with (tmp_path / "consensus_intervals.csv").open() as file:
        found = {(row["design"], row["method"], row["rough"]) for row in csv.DictReader(file)}
    assert {row[::2] for row in found} == {("2 x 1", "True"), ("3 x 5", "False")}
    assert len(found) == 2 * 2


def test_no_cell_with_three_workers_and_five_questions_is_rough() -> None:
    for design in (each for table in consensus.TABLES.values() for each in table):
        _, rough = consensus.inside(*design.draw(2, 1), "mean")
        assert bool(rough) == (((design.each or design.workers) - 1) * design.questions < 3)


@pytest.mark.parametrize("design", [PanelDesign(5, 5), PanelDesign(10, 5, bias=1.0)], ids=str)
def test_the_default_is_that_of_each_panel_alone(design: PanelDesign) -> None:
    answers, _ = design.draw(8, 3)
    lower, upper, _ = consensus.ends(answers, "auto")
    alone = [
        estimate_of(panel, method="auto", target="consensus", transform="none")
        for panel in panels_of(answers)
    ]
    assert len({est.diagnosis.method for est in alone}) == 2
    np.testing.assert_allclose(lower, np.concatenate([est.lower for est in alone]), rtol=1e-6)
    np.testing.assert_allclose(upper, np.concatenate([est.upper for est in alone]), rtol=1e-6)


@pytest.mark.parametrize("method", consensus.METHODS[1:])
def test_the_intervals_are_those_of_estimate(method: str) -> None:
    for design in (PanelDesign(2, 1), PanelDesign(10, 20, each=3, bias=1.0)):
        answers, _ = design.draw(2, 3)
        lower, upper, rough = consensus.ends(answers, method)
        est = estimate_of(answers, method=method, target="consensus", transform="none")
        np.testing.assert_allclose(lower, est.lower, rtol=1e-12)
        np.testing.assert_allclose(upper, est.upper, rtol=1e-12)
        assert rough == est.diagnosis.rough


def test_a_row_says_where_an_interval_is_off() -> None:
    row = rules.cell("3 workers, 5 questions", "plugin", 3, 1)[0]
    assert row["design"] == "3 workers, 5 questions"
    assert row["ratio"] == pytest.approx(1.0, abs=0.9)
