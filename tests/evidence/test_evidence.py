"""The study of our second step, small: its numbers are those of a plain loop, rules are added in one line."""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import trueup
from evidence import second_step as trial
from evidence.second_step import context as contexts
from evidence.second_step import designs, rules, synthetic
from evidence.second_step.ablation import BOLD, CHECK, ablation
from evidence.second_step.bayes import PRIORS
from evidence.second_step.caution import FACTORS, caution_rows
from evidence.second_step.cell_tables import clearly_above, worst_cells
from evidence.second_step.context import CATD_PAPER, Context
from evidence.second_step.method_choice import AUTO, CANDIDATES, CONTAMINATED, _cell
from evidence.second_step.priors import known_variance
from evidence.second_step.real import SMALL
from evidence.second_step.rules import CAUTION, CAUTIOUS, OURS, Ours, Unaware
from evidence.second_step.special import INFORMED
from evidence.second_step.worker_biases import _compare
from evidence.summary import write_summary
from trueup import TrueupError
from trueup.algorithms.driver import run as run_first
from trueup.algorithms.registry import find
from trueup.pipeline.shrink import second_step
from trueup.report.bundle import bundle
from trueup.shrinkage import Adaptive, Normal, Sure
from trueup.study import SecondStep
from trueup.study.harness import seed_of
from trueup.variance.moderated import PIECES

if TYPE_CHECKING:
    from pathlib import Path

    from browser import Browser

FEW = ("constant", "N(0, 1)", "N(0, 25)", "three clusters")
PARTS = ["synthetic_grid", "biases", "figures_to_reach"]


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def only_data_in(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Have data sets looked for in this folder only."""
    bundle()  # takes seconds to make anew: it is read before the cache is another one
    patch.setenv("TRUEUP_DATA", str(folder))
    patch.setenv("TRUEUP_CACHE", str(folder / "cache"))


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return Context(out=tmp_path, samples=12, quick=True, progress=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some parts of the study, without data."""
    here = tmp_path_factory.mktemp("study")
    with pytest.MonkeyPatch.context() as patch:
        only_data_in(here, patch)
        patch.setattr(contexts, "TRUTHS", {name: contexts.TRUTHS[name] for name in FEW})
        patch.setattr(synthetic, "METHODS", ("mean", "native"))
        trial.run(here / "out", quick=True, samples=4, progress=False, parts=PARTS)
    return here / "out"


def test_the_page_says_what_was_found_and_the_tables_hold_it(folder: Path) -> None:
    text = (folder / "index.html").read_text(encoding="utf-8")
    for words in ("Figures to reach", "Synthetic answers", "Worker biases"):
        assert words in text
    assert "the data are not available: nflx_public" in text
    cells = rows_of(folder / "cells.csv")
    names = {row["step"] for row in cells if row["part"] == "synthetic_grid"}
    assert names == {rule.name for rule in rules.RULES}
    figures = rows_of(folder / "figures.csv")
    assert {row["number"] for row in figures} == {"1", "2", "3", "4", "6", "10"}
    exact = [row for row in figures if row["number"] in ("6", "10")]
    assert [row["reached"] for row in exact] == ["True"] * 3
    assert len(rows_of(folder / "biases.csv")) == 8
    summary = (folder / "summary.md").read_text(encoding="utf-8")
    assert "| true values | first step |" in summary
    for line in summary.splitlines():
        if line.startswith("| 10 |"):
            assert line.count(" | ") == 4


@pytest.mark.needs("browser")
def test_the_page_opens_without_network_and_draws_every_chart(
    chromium: Browser, folder: Path
) -> None:
    seen = chromium.look(folder / "index.html")
    assert len(re.findall(r'<svg[^>]*class="marks"', seen.dom)) == 4
    assert seen.console == []
    assert seen.requests == []


def test_a_row_is_what_a_plain_loop_over_estimate_gives(context: Context) -> None:
    source = context.synthetic(["three clusters"])[0]
    cells = context.cells_of("loop", [source], [(4, 16)], ["crh"])
    answers, truth = source.draw(12, 4, 16, seed_of(0, source, 4, 16))
    for name, caution in ((OURS, 1.0), (CAUTIOUS, CAUTION)):
        base, losses, inside = [], [], []
        for number in range(12):
            est = trueup.estimate(
                answers.panel(number), "crh", Adaptive(caution=caution), target="consensus"
            )
            here = truth[answers.question_panel == number]
            base.append(np.mean((est.base - here) ** 2))
            losses.append(np.mean((est.estimate - here) ** 2))
            inside += ((est.lower <= here) & (here <= est.upper)).tolist()
        cell = next(cell for cell in cells if cell.step == name)
        assert cell.ratio == pytest.approx(np.mean(losses) / np.mean(base), rel=1e-9)
        assert cell.coverage == pytest.approx(np.mean(inside), abs=0.02)


def test_ours_is_the_adaptive_rule_with_the_same_caution() -> None:
    answers, _ = trueup.simulate(6, 40, panels=8, truth="two_points", seed=3)
    aggregate = run_first(find("mean"), answers)
    for caution in (1.0, 0.8, 0.3, 1.0):
        ours, plain = (
            second_step(answers, aggregate, rule)
            for rule in (Ours(caution=caution), Adaptive(caution=caution))
        )
        assert ours.models == plain.models
        np.testing.assert_array_equal(ours.posterior.mean, plain.posterior.mean)
        np.testing.assert_array_equal(ours.posterior.variance, plain.posterior.variance)
    assert "mixture" in plain.models


def test_an_added_rule_is_in_all_tables(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    added = SecondStep("my rule", "moderated", Sure())
    monkeypatch.setattr(rules, "RULES", (*rules.RULES, added))
    monkeypatch.setattr(synthetic, "METHODS", ("mean", "native"))
    monkeypatch.setattr(contexts, "TRUTHS", {name: contexts.TRUTHS[name] for name in FEW})
    mine = Context(out=context.out, samples=3, quick=True, progress=False)
    section = synthetic.synthetic_grid(mine)
    assert "my rule" in section.verdict
    assert "my rule" in section.tables[0].columns
    assert "my rule" in section.tables[1].columns
    assert sum(cell.step == "my rule" for _, cell in mine.cells) == 4 * 6 * 2
    summary = write_summary(context.out / "summary.md", "Trial", "", [section])
    assert "| my rule |" in summary.read_text(encoding="utf-8")


def test_what_is_finished_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise AssertionError("run again")

    options: dict[str, Any] = {"out": tmp_path, "samples": 3, "quick": True, "progress": False}
    first = known_variance(Context(**options))
    monkeypatch.setattr("trueup.study.harness.second_step", broken)
    assert known_variance(Context(**options)).tables == first.tables
    with pytest.raises(AssertionError, match="run again"):
        known_variance(Context(**options, seed=1))
    with pytest.raises(AssertionError, match="run again"):  # other code, other results
        known_variance(Context(**options, code="changed"))


def test_without_a_piece_something_changes(
    context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_data_in(tmp_path, monkeypatch)
    context.samples = 4
    section = ablation(context)
    assert {row[0] for row in section.tables[0].rows} == {*PIECES, BOLD, CHECK}
    changes = context.rows["ablation_changes"]
    moved = {row["piece"] for row in changes if row["change"] or row["coverage_change"]}
    assert len(moved) > 6
    assert "the data are not available: emotions" in section.text


@pytest.mark.parametrize(
    ("name", "density", "start"),
    [
        ("N(0, 1)", norm.pdf, -np.inf),
        ("exponential", lambda t: 0.5 * np.exp(-0.5 * t), 0.0),
        (
            "three clusters",
            lambda t: sum(norm.pdf(t, at, 0.3) for at in (0.0, 10.0, 30.0)),
            -np.inf,
        ),
    ],
)
def test_the_bayes_rules_are_posterior_means(name: str, density: Any, start: float) -> None:
    for x, v in ((0.7, 0.3), (2.5, 1.1), (-1.0, 0.2)):
        low = max(start, x - 12.0)

        def weight(t: float, x: float = x, v: float = v) -> float:
            return float(density(t) * norm.pdf(x, t, np.sqrt(v)))

        total = quad(weight, low, x + 12.0, points=[x])[0]
        first = quad(lambda t: t * weight(t), low, x + 12.0, points=[x])[0]
        found = PRIORS[name](np.array([x]), np.array([v]))[0]
        assert found == pytest.approx(first / total, rel=1e-5)


def test_points_have_a_posterior_mean_too() -> None:
    x, v = np.array([1.2, 2.9]), np.array([0.4, 0.4])
    ratio = np.exp(-(x**2) / 0.8) / np.exp(-((x - 3.0) ** 2) / 0.8)
    assert PRIORS["two points"](x, v) == pytest.approx(3.0 / (1.0 + ratio))
    assert PRIORS["constant"](x, v).tolist() == [0.0, 0.0]


def test_the_risk_is_a_parabola_in_the_caution(context: Context) -> None:
    source = context.synthetic(["N(0, 0.09)"])[0]
    more = [SecondStep(f"at {g}", None, Ours(caution=g)) for g in FACTORS]
    steps = [*rules.RULES, SMALL, *more]
    cells = context.cells_of("caution", [source], [(3, 12)], ["mean", "native"], steps)
    found = {row["factor"]: row["ratio"] for row in caution_rows(cells) if row["data"] != "all"}
    for factor in FACTORS:
        run = [cell.ratio for cell in cells if cell.step == f"at {factor}"]
        assert found[factor] == pytest.approx(np.mean(run), rel=1e-9)


def test_groups_and_covariates_reach_the_second_step(context: Context) -> None:
    steps = [
        SecondStep(OURS, None, Ours(caution=1.0)),
        SecondStep("nothing", None, Unaware(caution=1.0)),
    ]
    useful = [INFORMED[0], INFORMED[2]]
    cells = context.cells_of("told", useful, [(5, 50)], ["mean"], steps)
    for design in useful:
        told, not_told = (c.ratio for c in cells if c.source == design.name)
        assert told < not_told - 0.05
        bayes, error = design.bayes_ratio(12, 5, 50, 0)
        assert bayes < told + 2 * error
    drawn = useful[0].draw(2, 5, 50, 1)
    assert useful[0].known(drawn)["groups"].tolist() == [*np.repeat(range(5), 10)] * 2
    assert designs.covariate(50)["covariates"].shape == (50, 1)


def test_the_choice_is_one_of_the_candidates(context: Context) -> None:
    source = CONTAMINATED[0]
    (row,) = _cell(source, 5, 30, context.samples, context.seed)
    candidates = [row[name] for name in CANDIDATES]
    assert min(candidates) == 1.0
    assert 0 < row[AUTO] <= max(candidates) * 1.5
    assert row["samples"] == 12


def test_taking_biases_off_is_what_estimate_gives() -> None:
    drawn = trueup.simulate(12, 60, panels=2, answers_per_question=3, bias=2.0, seed=5)
    row = _compare("one", drawn.answers, drawn.truth, drawn.bias)[1]
    assert row["method"] == "mean"
    for bias, loss, covered in ((False, "mse_left", "left"), (True, "mse_off", "on")):
        losses, inside = [], []
        for number in range(2):
            here = drawn.truth[drawn.answers.question_panel == number]
            est = trueup.estimate(
                drawn.answers.panel(number), method="mean", bias=bias, target="consensus"
            )
            losses.append(np.mean((est.estimate - here) ** 2))
            inside += ((est.lower <= here) & (here <= est.upper)).tolist()
        assert row[loss] == pytest.approx(np.mean(losses), rel=1e-6)
        assert row[covered] == pytest.approx(np.mean(inside), abs=0.01)
    assert 0.5 < row["bias_coverage"] <= 1.0


def test_without_biases_the_default_has_none_to_compare() -> None:
    drawn = trueup.simulate(40, 400, panels=5, answers_per_question=3, seed=0)
    native, mean = _compare("none", drawn.answers, drawn.truth, drawn.bias)
    assert np.isnan(native["bias_coverage"])
    assert native["ratio"] == pytest.approx(1.0, abs=0.01)
    assert 0.9 < mean["bias_coverage"] <= 1.0


def test_the_worst_cells_come_first(context: Context) -> None:
    cells = context.cells_of(
        "worst",
        context.synthetic(["constant", "N(0, 25)"]),
        [(3, 6), (8, 10)],
        [CATD_PAPER, "mean"],
    )
    table = worst_cells(cells, [rule.name for rule in rules.RULES])
    ratios = [float(str(row[4])) for row in table.rows]
    assert ratios == sorted(ratios, reverse=True)
    assert len(ratios) == 8
    assert all(cell.ratio > 1 for cell in clearly_above(cells))


def test_real_answers_sets_that_are_missing_are_named(
    tmp_path: Path, data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_data_in(tmp_path, monkeypatch)
    monkeypatch.delenv("TRUEUP_DATA")
    some = tmp_path / "data"
    some.mkdir()
    for name in ("emotions", "groceries"):
        (some / name).symlink_to(data_folder / name)
    page = trial.run(
        tmp_path / "out", quick=True, samples=4, progress=False, data=some, parts=["real_data"]
    )
    text = page.read_text(encoding="utf-8")
    assert "Not run, because the data are not available: dots, pies" in text
    cells = rows_of(tmp_path / "out" / "cells.csv")
    assert {row["source"] for row in cells} == {"emotions", "groceries"}
    assert len(rows_of(tmp_path / "out" / "caution.csv")) == 3 * len(FACTORS)


def test_without_data_the_part_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only_data_in(tmp_path, monkeypatch)
    page = trial.run(
        tmp_path / "out", quick=True, progress=False, parts=["real_data", "gold_questions"]
    )
    text = page.read_text(encoding="utf-8")
    assert "Not run: none of the data sets is available" in text
    assert "Known truths" in text
    assert len(rows_of(tmp_path / "out" / "gold_questions.csv")) == 2 * 2 * 3


def test_wrong_requests_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TrueupError, match="samples"):
        trial.run(tmp_path, samples=1)
    with pytest.raises(TrueupError, match="everything"):
        trial.run(tmp_path, parts=["everything"])


def test_normal_and_ours_agree_where_no_bolder_prior_is_tried() -> None:
    answers, _ = trueup.simulate(4, 6, panels=5, seed=1)
    aggregate = run_first(find("mean"), answers)
    one, other = (second_step(answers, aggregate, rule) for rule in (Ours(1.0), Normal(1.0)))
    np.testing.assert_array_equal(one.posterior.mean, other.posterior.mean)
