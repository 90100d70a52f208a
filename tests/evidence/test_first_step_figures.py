"""The study of the first step, small: its designs are what they say, and its tables are complete."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import trueup
from evidence import first_step, sub_panels
from evidence.first_step import designs, emotions, proportional, real, renaming, simulated, typo
from evidence.first_step.comparison import AS_THEY_ARE, DEFAULT, FIRST_STEPS, relative_risks
from evidence.first_step.designs import DESIGNS, ErrorDesign, Proportional, additive, with_typo
from evidence.panel_estimates import seed_for
from evidence.processes import run_tasks
from evidence.second_step.context import Context

if TYPE_CHECKING:
    from pathlib import Path

SIMULATED = ["simulated_designs", "errors_in_proportion", "one_typing_error", "renamed_workers"]


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write what the small study of simulated answers finds."""
    out = tmp_path_factory.mktemp("first_step")
    first_step.run(out, quick=True, samples=2, progress=False, parts=[*SIMULATED, "figures"])
    return out


# Designs


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.name)
def test_every_question_has_its_answers(design: ErrorDesign) -> None:
    panels, truth = design.draw(2, 3, 50, 1)
    assert truth.shape == (2, 50)
    assert panels.shape == (2, 3 * design.pool, 50)
    assert (np.isfinite(panels).sum(axis=1) == 3).all()


def errors_of(name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the errors of a design in complete panels, panels x workers x questions."""
    design = next(each for each in DESIGNS if each.name == name)
    return design.errors(np.random.default_rng(1), (40, 40, 50))


def test_errors_are_what_their_names_say() -> None:
    assert errors_of("normal").std() == pytest.approx(1.0, abs=0.01)
    spread = np.log(errors_of("unequal workers").std(axis=2))
    assert spread.std() == pytest.approx(0.5, abs=0.05)
    for bias in (0.3, 0.7):
        mean = errors_of(f"biases, sd {bias}").mean(axis=2)
        assert mean.var() == pytest.approx(bias**2 + 1 / 50, rel=0.1)
    assert (np.abs(errors_of("5% gross errors")) > 5).mean() == pytest.approx(
        0.05 * 0.74, abs=0.005
    )
    student = errors_of("Student t3 errors")
    assert (np.abs(student) > 3.182).mean() == pytest.approx(0.05, abs=0.005)
    by_worker = errors_of("30% spammers").std(axis=2)
    assert (by_worker > 3).mean() == pytest.approx(0.3, abs=0.04)
    wild = errors_of("one worker in five at 100 times the sd").std(axis=2)
    assert (wild > 10).mean() == pytest.approx(0.2, abs=0.04)


@pytest.mark.parametrize("error", [0.1, 0.6])
def test_the_average_answer_is_the_truth_where_errors_are_in_proportion(error: float) -> None:
    answers, truth = Proportional(1.0, error).draw(20, 200, 50, 1)
    factor = answers / truth[:, None, :]
    assert factor.mean() == pytest.approx(1.0, abs=0.005)
    assert np.log(factor).std() == pytest.approx(error, rel=0.01)
    assert np.log(truth).std() == pytest.approx(1.0, abs=0.05)


def test_errors_that_do_not_grow_leave_answers_positive() -> None:
    answers, truth = additive(40, 6, 50, 1)
    assert answers.min() > 0
    assert (answers - truth[:, None, :]).std() == pytest.approx(5.0, rel=0.02)
    assert (truth.mean(), truth.std()) == pytest.approx((50.0, 10.0), abs=0.5)


def test_one_answer_is_tenfold_and_all_others_are_what_they_were() -> None:
    counts = []
    for seed in range(5):
        typed, clean = with_typo(seed), with_typo(seed, typo=False)
        given = np.isfinite(clean.answers)
        counts.append(given.sum())
        np.testing.assert_array_equal(np.isfinite(typed.answers), given)
        assert given.sum(axis=0).min() >= 2
        changed = np.argwhere(given & (typed.answers != clean.answers))
        assert changed.tolist() == [[typed.worker, typed.question]]
        meant = clean.answers[typed.worker, typed.question]
        assert typed.answers[typed.worker, typed.question] == 10 * meant
        assert 120 < meant < 230
        np.testing.assert_array_equal(clean.answers[given], np.round(clean.answers[given]))
    assert np.mean(counts) == pytest.approx(288, abs=8)


# Figures


def test_the_typing_error_is_named_and_nothing_else_without_it() -> None:
    rows = typo.seed_rows(1)
    ours = {row["typo"]: row for row in rows if row["estimator"] == typo.DEFAULT}
    assert ours[True]["found"]
    assert ours[True]["named"] >= 1
    assert not ours[False]["found"]
    assert not any(row["found"] for row in rows if row["estimator"] != typo.DEFAULT)


def test_a_ratio_is_that_of_a_plain_loop() -> None:
    answers, truth = DESIGNS[1].draw(3, 4, 20, 1).drawn
    columns = {name: FIRST_STEPS[name] for name in ("median", AS_THEY_ARE, DEFAULT)}
    rows = {row["first_step"]: row for row in relative_risks(answers, truth, columns, seed=2)}
    for name, method in (("median", "median"), (AS_THEY_ARE, "auto"), (DEFAULT, "auto")):
        losses, base = [], []
        for number in range(3):
            panel, known = answers.panel(number), truth[answers.question_panel == number]
            one = trueup.estimate(panel, method=method, shrink="none", seed=2).estimate
            mean = trueup.estimate(panel, method="mean", shrink="none").estimate
            losses.append(np.mean((one - known) ** 2))
            base.append(np.mean((mean - known) ** 2))
        assert rows[name]["ratio"] == pytest.approx(np.mean(losses) / np.mean(base), rel=1e-9)
        assert rows[name]["ratio_se"] > 0


def test_without_logarithms_the_default_is_run_again_where_they_were_chosen() -> None:
    answers, truth = Proportional(1.0, 0.5).draw(2, 6, 40, 1).drawn
    rows = {row["first_step"]: row for row in relative_risks(answers, truth)}
    assert rows[AS_THEY_ARE]["ratio"] != rows[DEFAULT]["ratio"]
    plain = {AS_THEY_ARE: FIRST_STEPS[AS_THEY_ARE]}
    (alone,) = relative_risks(answers, truth, plain)
    assert alone["ratio"] == rows[AS_THEY_ARE]["ratio"]


def test_of_a_single_panel_the_error_is_that_between_questions() -> None:
    answers, truth = DESIGNS[1].draw(1, 6, 40, 1).drawn
    (row,) = relative_risks(answers, truth, {"median": FIRST_STEPS["median"]})
    median, mean = (
        (trueup.estimate(answers, method=name, shrink="none").estimate - truth) ** 2
        for name in ("median", "mean")
    )
    assert row["ratio"] == pytest.approx(median.mean() / mean.mean())
    rng = np.random.default_rng(1)
    drawn = rng.integers(0, 40, (2000, 40))
    again = median[drawn].mean(axis=1) / mean[drawn].mean(axis=1)
    assert row["ratio_se"] == pytest.approx(again.std(), rel=0.2)


def test_the_error_of_a_median_is_about_right() -> None:
    values = np.random.default_rng(2).normal(size=400)
    assert proportional.median_error(values) == pytest.approx(1.2533 / 20, rel=0.4)
    assert typo.root_error(values) == pytest.approx(1 / 20 / 2**0.5, rel=0.25)


def test_tables_are_complete(folder: Path) -> None:
    cells = rows_of(folder / "simulated_designs.csv")
    expected = 2 * (len(DESIGNS) + len(simulated.SMALL)) * len(simulated.COLUMNS)
    assert len(cells) == expected
    assert all(float(row["ratio"]) > 0 for row in cells)
    steps = [row["steps"] for row in rows_of(folder / "errors_in_proportion.csv")]
    assert steps == [*proportional.STEPS] * 2 + [proportional.ADDITIVE] * 2
    assert len(rows_of(folder / "one_typing_error.csv")) == 2 * 2 * len(typo.ESTIMATORS)
    renamed = rows_of(folder / "renamed_workers.csv")
    assert len(renamed) == 2 * 2 * len(renaming.STEPS)
    assert {row["design"] for row in renamed} == {design.name for design in renaming.RENAMED[:2]}
    figures = rows_of(folder / "figures.csv")
    assert sorted({row["number"] for row in figures}) == ["2", "4", "5", "6"]


def test_the_summary_has_every_table_and_the_targets_first(folder: Path) -> None:
    summary = (folder / "summary.md").read_text(encoding="utf-8")
    heads = [line for line in summary.splitlines() if line.startswith("## ")]
    assert heads[0].startswith("## Figures to reach")
    assert [head.partition(":")[0] for head in heads[1:]] == [
        "## Simulated answers", "## Errors in proportion", "## One typing error", "## Names of workers",
    ]  # fmt: skip
    assert "nan" not in summary
    assert (folder / "index.html").stat().st_size > 10_000


def test_renaming_compares_the_same_workers() -> None:
    design = ErrorDesign("alike", designs.normal, pool=1)
    rows = renaming.cell(design, 1, 1, 0)
    assert [row["steps"] for row in rows] == [*renaming.STEPS]
    # Alike workers in a complete panel: whoever is held out, the estimates are about the same.
    assert all(0 <= row["move"] < 0.5 for row in rows)


def test_what_is_finished_is_not_run_again(tmp_path: Path) -> None:
    calls = []

    def task() -> list[dict[str, Any]]:
        calls.append(1)
        return [{"one": 1}]

    context = Context(out=tmp_path, samples=2, quick=True, progress=False)
    assert run_tasks(context, "part", [("first", task)]) == [{"one": 1}]
    assert run_tasks(context, "part", [("first", task), ("second", task)]) == [{"one": 1}] * 2
    assert len(calls) == 2
    assert seed_for(0, "a", 1) != seed_for(0, "a", 2)


def test_without_data_the_parts_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUEUP_DATA", str(tmp_path))
    monkeypatch.setenv("TRUEUP_CACHE", str(tmp_path / "cache"))
    first_step.run(
        tmp_path / "out", quick=True, progress=False, parts=["real_sets", "emotions_folds"]
    )
    summary = (tmp_path / "out" / "summary.md").read_text(encoding="utf-8")
    assert summary.count("Not run: ") == 2


def test_real_answers_are_drawn_as_described(data_folder: Path) -> None:
    data = str(data_folder)
    for name, how, size, questions in (
        ("groceries", sub_panels.RANDOM_WORKERS, 3, 10),
        ("groceries", sub_panels.RANDOM_ANSWERS, 3, 10),
        ("emotions", sub_panels.RANDOM_WORKERS, 6, 140),
        ("emotions", sub_panels.RANDOM_ANSWERS, 6, 700),
        ("calories", sub_panels.RANDOM_ANSWERS, 6, 36),
    ):
        drawn = sub_panels.draw(name, data, how, size, 2, 0)
        assert drawn is not None
        assert drawn.answers.n_panels == 2
        assert drawn.answers.n_questions == 2 * questions
        assert (drawn.answers.counts == size).all()
        people = drawn.answers.n_workers / 2
        assert (people == size) is (how == sub_panels.RANDOM_WORKERS)
    assert sub_panels.draw("calories", data, sub_panels.RANDOM_WORKERS, 6, 2, 0) is None
    assert sub_panels.draw("emotions", data, sub_panels.RANDOM_ANSWERS, 12, 2, 0) is None
    assert sub_panels.draw("nflx_public", data, sub_panels.EVERYTHING, 0, 2, 0) is None
    for how in emotions.SUB_PANELS:
        panels = emotions.draw(how, data, 2, 0).answers
        assert panels.n_panels == (1 if how == emotions.ALL else 2)
    rows = real.cell("groceries", data, sub_panels.RANDOM_WORKERS, 3, 2, 0)
    assert [row["first_step"] for row in rows] == [*FIRST_STEPS]
