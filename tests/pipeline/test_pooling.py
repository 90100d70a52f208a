"""Workers who err together count as one, where the first step is chosen; where nobody is found nothing changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import trueup
from small_panels import judges, long_table
from trueup._estimate import estimate_in_memory
from trueup.answers.answers import Answers
from trueup.core.progress import Progress
from trueup.engines.memory import MemoryEngine
from trueup.io.question_data import QuestionData
from trueup.pipeline.pooling import MOST_WORKERS, find_pooling
from trueup.request import Plan, Request

if TYPE_CHECKING:
    from pathlib import Path


COLUMNS = ("estimate", "lower", "upper", "std_error", "base", "base_std_error", "shrinkage")


def leaders(x: Any) -> list[int] | None:
    pooling, _ = find_pooling(MemoryEngine(Answers.of(x)))
    return None if pooling is None else pooling.leader.tolist()


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ((2,), [0, 0, 2, 3, 4, 5, 6, 7]),
        ((2, 2), [0, 0, 2, 2, 4, 5, 6, 7]),
        ((3,), [0] * 3 + [3, 4, 5, 6, 7]),
    ],
)
def test_groups_are_found(groups: tuple[int, ...], expected: list[int]) -> None:
    assert leaders(judges(*groups, workers=8, questions=300)[1]) == expected


@pytest.mark.parametrize("rho", [0.0, 0.3])
def test_weak_ties_change_nothing(rho: float) -> None:
    assert leaders(judges(2, rho=rho, questions=300)[1]) is None


def test_groups_are_found_in_a_sub_panel() -> None:
    """Workers of a sub-panel keep their ranks among all workers, which have gaps."""
    everybody = Answers.of(judges(2, workers=9, questions=300)[1])
    pairs = 0
    for seed in range(8):
        some = everybody.sample(1, workers=7, questions=300, seed=seed)
        pooling, _ = find_pooling(MemoryEngine(some))
        ids = some.worker_ids.tolist()
        if not {0, 1} <= set(ids):
            assert pooling is None
            continue
        pairs += 1
        assert pooling is not None
        assert [ids[leader] for leader in pooling.leader] == [0 if id_ == 1 else id_ for id_ in ids]
    assert pairs >= 2


def test_many_workers_panels_and_few_workers_are_left_alone() -> None:
    x = judges(2, workers=MOST_WORKERS + 1, questions=30, rho=0.99)[1]
    assert leaders(x) is None
    assert leaders(x[:MOST_WORKERS]) is not None
    assert leaders(judges(2, workers=3)[1]) is None
    assert leaders(np.stack([judges(2)[1]] * 2)) is None


def test_if_all_are_one_nobody_is_pooled() -> None:
    x = np.round(np.random.default_rng(1).normal(size=60), 1)
    assert leaders(np.tile(x, (5, 1)) + 0.0) is None


def test_a_pair_is_pooled_into_its_mean() -> None:
    x = judges(2)[1]
    est = trueup.estimate(x)
    assert est.pooling is not None
    assert est.diagnosis.pooling == "workers who err together count as one: 0, 1"
    assert est.diagnosis.pooling in str(est)
    merged = np.concatenate([x[:2].mean(axis=0, keepdims=True), x[2:]])
    alone = trueup.estimate(merged, method=est.diagnosis.method)
    np.testing.assert_allclose(est.base, alone.base, rtol=0, atol=1e-9)
    np.testing.assert_allclose(est.base_std_error, alone.base_std_error, rtol=1e-9)
    # The members share the weight of the group and have its noise; all else is about the workers as they are.
    weight, other = est.aggregate.weight, alone.aggregate.weight
    np.testing.assert_allclose(weight, [other[0] / 2, other[0] / 2, *other[1:]], rtol=1e-9)
    variance = est.worker_columns["variance"]
    np.testing.assert_allclose(variance[1:], alone.worker_columns["variance"], rtol=1e-9)
    assert variance[0] == variance[1]
    assert est.worker_columns["n_answers"].tolist() == [100] * 6
    assert est.findings.flags == [None] * 6
    assert est.answers.counts.tolist() == [6] * 100


def test_a_pair_does_no_harm_and_intervals_keep_their_promise() -> None:
    mean, auto, inside = [], [], []
    for seed in range(30):
        truth, x = judges(2, seed=seed)
        est = trueup.estimate(x, target="consensus")
        mean.append(np.mean((x.mean(axis=0) - truth) ** 2))
        auto.append(np.mean((est.estimate - truth) ** 2))
        inside.append(np.mean((est.lower <= truth) & (truth <= est.upper)))
    # Without pooling: 0.97 of the mean, and 84% inside.
    assert np.mean(auto) < 0.8 * np.mean(mean)
    assert np.mean(inside) > 0.92


@pytest.mark.parametrize("groups", [(), (2,)])
def test_without_pooling_every_digit_stays(
    groups: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = Answers.of(judges(*groups)[1])
    request = Request.of()
    assert request.plan.pools
    found = []
    for pools in (True, False):
        monkeypatch.setattr(Plan, "pools", pools)
        with Progress("", 1, shown=False) as bar:
            found.append(estimate_in_memory(data, request, QuestionData(), bar))
    same = all(np.array_equal(*(getattr(each, name) for each in found)) for name in COLUMNS)
    assert same == (groups == ())


def test_a_method_that_is_named_pools_nobody() -> None:
    x = judges(2)[1]
    assert trueup.estimate(x, method="mean").pooling is None
    np.testing.assert_allclose(trueup.estimate(x, method="mean").base, x.mean(axis=0))
    assert trueup.estimate(x, worker_variance=np.ones(6)).pooling is None


def test_order_of_rows_and_scale_change_nothing() -> None:
    rows = long_table(judges(2)[1])
    straight = trueup.estimate(rows)
    order = np.random.default_rng(3).permutation(len(rows["answer"]))
    mixed = {name: np.array(column)[order] for name, column in rows.items()}
    mixed["answer"] = 1e3 * mixed["answer"] - 7.0
    other = trueup.estimate(mixed)
    assert other.pooling is not None
    at = other.answers.question_ids.sort_order()
    np.testing.assert_allclose(other.estimate[at], 1e3 * straight.estimate - 7.0, rtol=1e-9)


def test_questions_that_only_one_of_a_pair_answered() -> None:
    x = judges(2, questions=200)[1]
    x[0, :40] = x[1, 40:80] = x[2:, 80:90] = np.nan  # the pair alone
    est = trueup.estimate(long_table(x))
    assert est.pooling is not None
    assert np.isfinite(est.estimate).all() and np.isfinite(est.lower).all()  # noqa: PT018
    variance = np.full(x.shape, 0.5)
    assert np.isfinite(trueup.estimate(x, answer_variance=variance).estimate).all()


@pytest.mark.parametrize("options", [{"bias": True}, {"transform": "log"}, {"gold": True}])
def test_other_options_go_with_it(options: dict[str, Any]) -> None:
    truth, x = judges(2)
    truth, x = truth + 20.0, x + 20.0
    if "gold" in options:
        options = {"gold": {each: truth[each] for each in range(30)}}
    est = trueup.estimate(x, **options)
    assert est.pooling is not None
    assert np.mean((est.estimate - truth) ** 2) < np.mean((x.mean(axis=0) - truth) ** 2)


def test_it_is_saved_and_updated(tmp_path: Path) -> None:
    x = judges(2)[1]
    rows = long_table(x)
    est = trueup.estimate(rows)
    path = est.save(tmp_path / "state.trueup")
    loaded = trueup.load(path)
    assert str(loaded) == str(est)
    np.testing.assert_allclose(
        loaded.second_step.posterior.mean, est.second_step.posterior.mean, rtol=1e-9
    )
    np.testing.assert_array_equal(loaded.pooling.leader, est.pooling.leader)  # type: ignore[union-attr]
    first = {name: column[:-6] for name, column in rows.items()}
    rest = {name: column[-6:] for name, column in rows.items()}
    again = trueup.update(trueup.estimate(first), rest)
    assert again.pooling is not None
    np.testing.assert_allclose(again.estimate, est.estimate, atol=1e-4)


def test_on_disk_the_same_comes_out(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("duckdb")
    from trueup import disk

    rows = long_table(judges(2, questions=120)[1])
    parquet.write_table(pyarrow.table(rows), tmp_path / "answers.parquet")
    found = disk.estimate(tmp_path / "answers.parquet", tmp_path / "out.parquet")
    est = trueup.estimate(rows)
    written = parquet.read_table(tmp_path / "out.parquet").to_pydict()
    assert found.diagnosis.pooling == est.diagnosis.pooling != ""
    assert written["question"] == sorted(set(rows["question"]))
    for name in ("estimate", "lower", "upper"):
        np.testing.assert_allclose(written[name], getattr(est, name), rtol=1e-9, atol=1e-9)
    assert set(written["n_answers"]) == {6}
    np.testing.assert_allclose(found.worker_columns["weight"], est.aggregate.weight, rtol=1e-9)
    assert found.worker_columns["n_answers"].tolist() == [120] * 6


def test_whoever_reads_the_result_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In print, on the command line, in the diagnosis, a notebook and the report; odd names are shown as text."""
    import csv

    from trueup.cli import main

    given = long_table(judges(2)[1])
    given["worker"] = [{"w0": "<b>a"}.get(name, name) for name in given["worker"]]
    est = trueup.estimate(given)
    said = "orkers who err together count as one: <b>a, w1"
    assert said in str(est)
    assert said in str(trueup.diagnose_all(est))
    source, page = tmp_path / "answers.csv", tmp_path / "page.html"
    with source.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerows([list(given), *zip(*given.values(), strict=True)])
    with pytest.raises(SystemExit) as ended:
        main(["estimate", str(source), "--report", str(page)])
    assert ended.value.code == 0
    assert said in capsys.readouterr().out
    escaped = said.replace("<", "&lt;").replace(">", "&gt;")
    assert escaped in page.read_text("utf-8")
    assert escaped in est._repr_html_()
