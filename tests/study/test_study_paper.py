"""The study of the paper, small: every part runs, claims are judged by numbers, the page is whole."""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING

import numpy as np
import pytest

from trueup import TrueupError
from trueup.report.bundle import bundle
from trueup.study import paper
from trueup.study.paper import alpha, partition
from trueup.study.paper.alpha import ROWS, AlphaRow, ratio_of
from trueup.study.paper.cells import constant_truth, narrowest, uniform, variable_truth
from trueup.study.paper.context import Context
from trueup.study.paper.known import known_competence, table_one
from trueup.study.paper.partition import trade_off

if TYPE_CHECKING:
    from pathlib import Path

    from browser import Browser
    from trueup.study.paper import PaperStudy


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
def test_ratios_of_the_alpha_table(row: AlphaRow) -> None:
    truths, samples = (3, 2000) if row.n * row.m > 200 else (8, 3000)
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


def test_the_whole_study_makes_one_page_and_a_table(
    tmp_path: Path, data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One size: time goes by the number of cells more than by that of their samples.
    monkeypatch.setattr(Context, "workers", (3,))
    monkeypatch.setattr(Context, "questions", (10,))
    monkeypatch.setattr(alpha, "SAMPLES", 1000)
    result = paper.run(
        tmp_path / "out", quick=True, data=str(data_folder), samples=20, progress=False
    )
    assert len(result.verdicts) == len(paper.PARTS)
    assert not result.missing
    text = result.page.read_text(encoding="utf-8")
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


@pytest.fixture(scope="module")
def study_without_data(tmp_path_factory: pytest.TempPathFactory) -> PaperStudy:
    """A page of the parts that have charts and need no data, and of one that needs data."""
    folder = tmp_path_factory.mktemp("study")
    parts = (table_one, known_competence, constant_truth, variable_truth, trade_off)
    bundle()  # takes seconds to make anew: it is read before the cache is another one
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRUEUP_DATA", str(folder))
        patch.setenv("TRUEUP_CACHE", str(folder / "cache"))
        patch.setattr(paper, "PARTS", parts)
        return paper.run(folder, quick=True, data=str(folder), samples=20, progress=False)


@pytest.fixture(scope="module")
def page_without_data(study_without_data: PaperStudy) -> Path:
    return study_without_data.page


@pytest.mark.needs("browser")
def test_the_page_opens_in_a_browser_without_network_and_draws_every_chart(
    chromium: Browser, page_without_data: Path
) -> None:
    seen = chromium.look(page_without_data)
    assert page_without_data.read_text(encoding="utf-8").count("<figure id=") == 5
    assert len(re.findall(r'<svg[^>]*class="marks"', seen.dom)) == 5
    assert seen.console == []
    assert seen.requests == []


def test_without_data_the_rest_still_runs(study_without_data: PaperStudy) -> None:
    text = study_without_data.page.read_text(encoding="utf-8")
    assert "Table 1" in text
    assert "Not run: the data are not available." in text
    assert text.count("</span> not run</span>") == 2  # in the contents and at the part itself
    assert text.count("</span> holds in part</span>") == 2  # the parts of questions alone
    assert study_without_data.verdicts["Variable truth"] == "not run"
    assert list(study_without_data.missing) == ["Variable truth"]
    assert "Variable truth" not in study_without_data.failed


def test_a_quick_run_says_so_in_every_heading_and_at_the_end(
    study_without_data: PaperStudy,
) -> None:
    text = study_without_data.page.read_text(encoding="utf-8")
    headings = re.findall(r"<h[12]>(.*?)</h[12]>", text.partition("<footer>")[0])
    assert len(headings) == 7
    assert all("(quick run)" in heading for heading in headings if heading != "Contents")
    assert "Quick run" in text[text.index("<footer>") :]
    assert str(study_without_data).startswith("Quick run, few samples, 5 statements (holds: ")
    assert str(study_without_data).endswith("not run: 1).")


def test_parts_left_out_on_request_are_not_run_and_not_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paper, "PARTS", (constant_truth, variable_truth, trade_off))
    monkeypatch.setattr(Context, "workers", (3,))
    monkeypatch.setattr(Context, "questions", (10,))
    result = paper.run(tmp_path, without_data=True, samples=20, progress=False)
    assert result.verdicts["Variable truth"] == "not run"
    assert not result.missing
    text = result.page.read_text(encoding="utf-8")
    assert "uick" not in text[text.index("<body>") :].partition("<script")[0]
    assert "Full run, 3 statements" in text
    assert "pies" not in text  # the last part runs without its real data


def test_a_statement_fails_where_the_numbers_say_so(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition, "_after", lambda x, *_: x)  # no step: no cut can help
    assert trade_off(context).holds is False


def test_too_few_samples_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TrueupError, match="samples"):
        paper.run(tmp_path, samples=1)
