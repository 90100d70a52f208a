"""The study of the intervals, small: its tables are complete."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import pytest

from evidence import intervals
from evidence.intervals import answers_needed, rules

if TYPE_CHECKING:
    from pathlib import Path


def test_the_tables_are_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = ("3 workers, 5 questions", "3 biased workers, 40 questions")
    monkeypatch.setattr(rules, "DESIGNS", {name: rules.DESIGNS[name] for name in few})
    monkeypatch.setattr(answers_needed, "METHODS", ("mean",))
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
    assert "hold the truth" in (tmp_path / "summary.md").read_text()


def test_a_row_says_where_an_interval_is_off() -> None:
    row = rules.cell("3 workers, 5 questions", "plugin", 3, 1)[0]
    assert row["design"] == "3 workers, 5 questions"
    assert row["ratio"] == pytest.approx(1.0, abs=0.9)
