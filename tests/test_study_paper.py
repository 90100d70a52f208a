"""The study of the paper, small: every part runs, claims are judged by numbers, the page is whole."""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING

import numpy as np
import pytest

import browser
from trueup import TrueupError
from trueup.report.page import write_page
from trueup.study import paper
from trueup.study.paper.alpha import ROWS, Row, ratio_of
from trueup.study.paper.cells import constant_truth, narrowest, uniform, variable_truth
from trueup.study.paper.context import Context
from trueup.study.paper.known import known_competence, table_one
from trueup.study.paper.partition import trade_off

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return Context(out=tmp_path, samples=60, repeats=20_000, quick=True, progress=False)


def test_table_one_is_reproduced_and_its_slip_shown(context: Context) -> None:
    section = table_one(context)
    assert section.holds
    rows = {row[0]: row for row in section.tables[0].rows}
    assert rows["EbBlue"][-1] == pytest.approx(6.831493560854014)
    assert rows["EbBlue, printed"][-1] == 6.68


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_ratios_of_the_alpha_table(row: Row) -> None:
    truths, samples = (3, 4000) if row.n * row.m > 200 else (8, 10_000)
    low, high = row.reproduced
    assert low <= ratio_of(row, truths, samples, seed=1) <= high


def test_known_competence_follows_its_closed_form(context: Context) -> None:
    section = known_competence(context)
    assert section.holds
    assert len(section.figures) == 2


def test_the_narrowest_run_of_values() -> None:
    values = np.array([0.0, 10.0, 10.2, 3.0, 10.1, 7.0])
    assert narrowest(values, 3).tolist() == [1, 2, 4]


def test_uniform_subsets_are_as_large_as_they_may_be() -> None:
    values = np.concatenate([np.linspace(0, 1, 8), 100 * np.arange(1.0, 9)])
    chosen = uniform(values)
    assert set(range(8)) <= set(chosen.tolist())
    assert values[chosen].var() * 80 <= values.var()
    assert len(uniform(np.arange(20.0))) == 4  # nothing is uniform enough: the smallest subset


def test_parts_of_questions_by_truth_help_where_there_are_clusters(context: Context) -> None:
    section = trade_off(context)
    table = section.figures[0].table
    assert table is not None
    ratio = {(row[0], row[1]): float(str(row[2])) for row in table.rows}
    assert ratio["three clusters, by truth", 4] < 0.9 * ratio["three clusters, by truth", 1]
    assert ratio["truth N(0, 1), by estimate", 10] > ratio["truth N(0, 1), by estimate", 1]


def test_the_whole_study_makes_one_page_and_a_table(tmp_path: Path, data_folder: Path) -> None:
    page = paper.run(
        tmp_path / "out", quick=True, data=str(data_folder), samples=20, progress=False
    )
    text = page.read_text(encoding="utf-8")
    for claim in (
        "improves every algorithm, by 1 to 90%",
        "approaches 1",
        "fails",
        "improves again",
    ):
        assert claim in text
    assert "Not run" not in text
    with (tmp_path / "out" / "cells.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["method"] for row in rows} == {
        "mean", "median", "gtm", "catd", "kdem", "iptd", "dtd", "crh",
    }  # fmt: skip
    assert {row["step"] for row in rows} == {
        "psi_H",
        "psi_H positive",
        "psi_H/n",
        "plug-in",
        "trueup",
    }
    assert all(float(row["risk"]) >= 0 for row in rows)


@pytest.mark.needs("browser")
def test_the_page_opens_in_a_browser_without_network_and_draws_every_chart(tmp_path: Path) -> None:
    parts = (table_one, known_competence, constant_truth, trade_off)
    context = Context(out=tmp_path, samples=20, repeats=2000, quick=True, progress=False)
    sections = [part(context) for part in parts]
    page = write_page(tmp_path / "page.html", title="Study", intro="", sections=sections)
    seen = browser.look(page)
    figures = sum(len(section.figures) for section in sections)
    assert figures == 5
    assert len(re.findall(r'<svg[^>]*class="marks"', seen.dom)) == figures
    assert seen.console == []


def test_without_data_the_rest_still_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUEUP_DATA", str(tmp_path))
    monkeypatch.setenv("TRUEUP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(paper, "PARTS", (table_one, constant_truth, variable_truth))
    page = paper.run(tmp_path / "out", quick=True, data=str(tmp_path), samples=10, progress=False)
    text = page.read_text(encoding="utf-8")
    assert "Not run" in text
    assert "Table 1" in text


def test_too_few_samples_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TrueupError, match="samples"):
        paper.run(tmp_path, samples=1)
