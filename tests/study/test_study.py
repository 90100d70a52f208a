"""The Monte-Carlo harness: a cell is what a plain loop would give, and a stopped run goes on."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import trueup
from trueup import Answers, TrueupError
from trueup.core.progress import Progress
from trueup.shrinkage import EBE
from trueup.study import (
    PAPER_STEPS,
    Sampled,
    SecondStep,
    StudyCell,
    StudyGrid,
    Synthetic,
    harness,
    ratio_interval,
    study,
    write_table,
)  # fmt: skip

if TYPE_CHECKING:
    from pathlib import Path

SYNTHETIC = Synthetic("normal truth", {"truth_scale": 0.7})


def small_grid(**changes: Any) -> StudyGrid:
    options: dict[str, Any] = {
        "sources": [SYNTHETIC],
        "sizes": [(3, 6), (5, 8)],
        "methods": ["mean", "crh"],
        "samples": 30,
    }
    return StudyGrid(**(options | changes))


def by_name(cells: list[StudyCell]) -> dict[tuple[Any, ...], StudyCell]:
    return {(c.source, c.n, c.m, c.method, c.step): c for c in cells}


@pytest.mark.filterwarnings("ignore::trueup.TrueupWarning")
def test_a_cell_is_what_a_plain_loop_over_estimate_gives() -> None:
    cells = by_name(study(small_grid(sizes=[(5, 8)])))
    seed = harness.seed_of(0, SYNTHETIC, 5, 8)
    answers, truth = SYNTHETIC.draw(30, 5, 8, seed)
    for method in ("mean", "crh"):
        for step in PAPER_STEPS:
            base, losses = [], []
            for number in range(30):
                est = trueup.estimate(
                    answers.panel(number),
                    method=method,
                    shrink=step.shrink,
                    variance=step.variance,
                    target="consensus",
                )
                here = truth[answers.question_panel == number]
                base.append(np.mean((est.base - here) ** 2))
                losses.append(np.mean((est.estimate - here) ** 2))
            cell = cells["normal truth", 5, 8, method, step.name]
            assert cell.base_risk == pytest.approx(np.mean(base), rel=1e-9)
            assert cell.risk == pytest.approx(np.mean(losses), rel=1e-9)
            assert cell.ratio == pytest.approx(np.mean(losses) / np.mean(base), rel=1e-9)
            assert cell.risk_se == pytest.approx(np.std(losses, ddof=1) / np.sqrt(30), rel=1e-9)
            assert cell.ratio_low <= cell.ratio <= cell.ratio_high
            assert cell.samples == 30


def test_every_cell_of_the_grid_is_there_once() -> None:
    cells = study(small_grid())
    assert len(cells) == len(by_name(cells)) == 2 * 2 * len(PAPER_STEPS)


def test_results_are_reproducible_and_depend_on_the_seed() -> None:
    one, same, other = (study(small_grid(seed=seed)) for seed in (1, 1, 2))
    assert [c.risk for c in one] == [c.risk for c in same]
    assert [c.risk for c in one] != [c.risk for c in other]


def test_slow_methods_can_have_fewer_samples() -> None:
    cells = by_name(study(small_grid(sizes=[(3, 6)], fewer={"crh": 10})))
    assert cells["normal truth", 3, 6, "mean", "psi_H"].samples == 30
    few = cells["normal truth", 3, 6, "crh", "psi_H"]
    assert few.samples == 10
    alone = by_name(study(small_grid(sizes=[(3, 6)], methods=["crh"])))
    assert few.risk != alone["normal truth", 3, 6, "crh", "psi_H"].risk


def test_a_stopped_run_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = study(small_grid())
    ran: list[str] = []
    real = harness._run

    def counted(
        grid: Any, source: Any, n: int, m: int, algorithm: Any, drawn: Any
    ) -> list[StudyCell]:
        if len(ran) == 2:
            raise KeyboardInterrupt
        ran.append(f"{n}x{m} {algorithm.name}")
        return real(grid, source, n, m, algorithm, drawn)

    monkeypatch.setattr(harness, "_run", counted)
    with pytest.raises(KeyboardInterrupt):
        study(small_grid(), out=tmp_path)
    with (tmp_path / "study.cells.jsonl").open("a") as file:
        file.write('{"key": "cut off in the mid')  # as a killed process may leave it
    ran.clear()
    found = study(small_grid(), out=tmp_path)
    assert ran == ["5x8 mean", "5x8 crh"]
    assert [(c.risk, c.ratio) for c in found] == [(c.risk, c.ratio) for c in expected]
    ran.clear()
    study(small_grid(), out=tmp_path)
    assert ran == []
    monkeypatch.setattr(harness, "_run", real)
    changed = study(small_grid(samples=31), out=tmp_path)
    assert changed[0].samples == 31


def test_real_answers_are_drawn_with_their_truth() -> None:
    rng = np.random.default_rng(1)
    truth = rng.normal(0, 3, 12)
    matrix = truth + 0.001 * rng.standard_normal((9, 12))
    matrix[rng.random(matrix.shape) < 0.3] = np.nan
    answers = Answers.from_matrix(matrix)
    for sparse in (False, True):
        source = Sampled("set", answers, truth, sparse=sparse)
        assert source.fits(3, 6)
        assert not source.fits(100, 6)
        drawn = source.draw(20, 3, 6, seed=3)
        np.testing.assert_allclose(
            drawn.answers.centre, drawn.truth, atol=0.01
        )  # any answer is close to the truth here


def test_part_of_a_set_keeps_its_own_truth() -> None:
    truth = np.arange(10.0)
    answers = Answers.from_matrix(np.tile(truth, (4, 1)))
    part = answers.sample(1, workers=4, questions=6, seed=5).panel(0)
    assert part.question_source is not None
    source = Sampled("part", part, truth[part.question_source])
    drawn = source.draw(15, 3, 4, seed=1)
    np.testing.assert_array_equal(drawn.answers.centre, drawn.truth)


def test_a_set_needs_a_truth_for_every_question() -> None:
    answers = Answers.from_matrix([[1.0, 2.0]])
    with pytest.raises(TrueupError, match="truth"):
        Sampled("x", answers, np.array([1.0, np.nan]))


def test_ratio_interval_covers_the_true_ratio() -> None:
    rng = np.random.default_rng(2)
    hits = 0
    for repeat in range(200):
        base = rng.gamma(3.0, 1.0, 80)
        losses = 0.5 * base + rng.gamma(1.0, 0.3, 80)
        low, high = ratio_interval(losses, base, seed=repeat)
        hits += low <= (0.5 * 3 + 0.3) / 3 <= high
    assert 0.88 <= hits / 200 <= 0.99


def test_gain_of_a_correct_variance_and_harm_of_the_printed_one() -> None:
    cells = by_name(study(small_grid(sizes=[(10, 20)], methods=["mean"], samples=300)))
    key = ("normal truth", 10, 20, "mean")
    assert cells[*key, "psi_H"].ratio_low > 1.5
    assert cells[*key, "plug-in"].ratio_high < 1.0


def test_own_second_steps_can_be_added() -> None:
    steps = (SecondStep("mine", "plugin", EBE(alpha=1.0)), SecondStep("sure", "plugin", "sure"))
    cells = study(small_grid(steps=steps, sizes=[(3, 6)]))
    assert {cell.step for cell in cells} == {"mine", "sure"}


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_tables_are_written_whole(tmp_path: Path, ending: str) -> None:
    rows = [cell.row() for cell in study(small_grid(sizes=[(3, 6)]))]
    path = write_table(rows, tmp_path / f"cells{ending}")
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    if ending == ".parquet":
        read = pq.read_table(path).to_pylist()
        assert [list(row) for row in read] == [list(row) for row in rows]
        assert repr(read) == repr(rows)  # not-a-number is not equal to itself
    else:
        lines = path.read_text().splitlines()
        assert len(lines) == len(rows) + 1
        assert lines[0].startswith("source,n,m,method,step,samples")


def test_tables_of_nothing_or_of_another_kind_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TrueupError, match="none"):
        write_table([], tmp_path / "x.csv")
    with pytest.raises(TrueupError, match="csv or"):
        write_table([{"a": 1}], tmp_path / "x.xls")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_drawn_for_a_person_only(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream, shown in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr("sys.stderr", stream)
        with Progress("study", 2, shown=True) as bar:
            bar.step("first")
            bar.step("second")
        assert ("2/2" in stream.getvalue()) is shown
    bar = Progress("study", 200, shown=False)
    bar.done = 50
    assert bar.line("x", 60.0).endswith("50/200, 3 min 00 s left  x")
