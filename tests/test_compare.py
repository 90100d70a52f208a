"""compare(): a leaderboard on held-out workers, in the caller's kind of frame."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import plain_first_step as plain
import trueup
from frames_by_library import FRAMES, rows
from trueup import Answers, TrueupError
from trueup._compare import METHODS
from trueup.algorithms import CRH, run
from trueup.algorithms.registry import find
from trueup.answers.panels import folds
from trueup.pipeline.auto_method import FOLDS, choose
from trueup.pipeline.shrink import second_step
from trueup.shrinkage import EBE, Adaptive, Normal

if TYPE_CHECKING:
    from trueup.core.arrays import Floats

COLUMNS = ["method", "shrink", "auto", "held_out", "held_out_se", "behind", "behind_se", "seconds"]
WITH_TRUTH = [*COLUMNS[:-1], "risk", "risk_se", "seconds"]


def problem(seed: int = 0, n: int = 7, m: int = 14, share: float = 0.7) -> tuple[Floats, Floats]:
    """Sparse answers without absurd ones, and their truth."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(0, 1, m)
    x = truth + np.exp(rng.normal(0, 0.4, n))[:, None] * rng.uniform(-1.5, 1.5, (n, m))
    x[(rng.random((n, m)) > share) & (np.arange(n) > 1)[:, None]] = np.nan
    return x, truth


def table(x: Floats) -> dict[str, Any]:
    worker, question = np.nonzero(~np.isnan(x))
    return {
        "question": [f"q{j:02d}" for j in question],
        "worker": [f"w{i:02d}" for i in worker],
        "answer": x[worker, question].tolist(),
    }


@pytest.mark.parametrize("kind", FRAMES)
def test_the_board_is_a_frame_of_the_callers_kind(kind: str) -> None:
    x, truth = problem()
    make, expected = FRAMES[kind]
    known = {f"q{j:02d}": float(value) for j, value in enumerate(truth)}
    board = trueup.compare(make(table(x)), ["mean", "crh"], known)
    assert isinstance(board, expected)
    found = rows(board)
    assert list(found) == WITH_TRUTH
    assert sorted(zip(found["method"], found["shrink"], strict=True)) == [
        ("crh", "adaptive"),
        ("crh", "none"),
        ("mean", "adaptive"),
        ("mean", "none"),
    ]
    array = rows(trueup.compare(x, ["mean", "crh"], truth))
    for name in WITH_TRUTH[:-1]:
        assert found[name] == (
            pytest.approx(array[name]) if name not in ("method", "shrink", "auto") else array[name]
        )


def test_all_methods_are_compared_by_default() -> None:
    x, _ = problem()
    board = trueup.compare(x)
    assert list(board.columns) == COLUMNS
    assert sorted(board["method"]) == sorted(2 * METHODS)
    assert (board["seconds"] > 0).all()
    assert board.loc[board["auto"], "method"].tolist() == 2 * [trueup.estimate(x).diagnosis.method]


def test_the_best_comes_first_and_the_others_say_how_far_behind_they_are() -> None:
    x, _ = problem(1, n=9, m=30)
    board = trueup.compare(x)
    assert board["held_out"].is_monotonic_increasing
    np.testing.assert_allclose(board["behind"], board["held_out"] - board["held_out"][0])
    assert board["behind"][0] == 0
    assert board["behind_se"][0] == 0
    assert (board["behind_se"][1:] >= 0).all()
    assert (board["held_out_se"] > 0).all()
    # Paired differences are surer than the losses themselves.
    assert (board["behind_se"] < board["held_out_se"]).all()


def plain_board(x: Floats, method: str, rule: Any, seed: int) -> tuple[float, float]:
    """Held-out error and its standard error by a loop over folds, workers and questions."""
    fold = folds(Answers.of(x), FOLDS, seed=seed).of_worker
    tame = plain.winsorised(x)
    losses, counts = np.zeros(x.shape[1]), np.zeros(x.shape[1])
    for number in sorted(set(fold.tolist())):
        train = x[fold != number]
        asked = np.flatnonzero(~np.isnan(train).all(axis=0))
        here = ~np.isnan(train).all(axis=1)
        answers = Answers.of(train[np.ix_(here, asked)])
        moved = second_step(answers, run(find(method), answers), rule, seed=seed)
        for i in np.flatnonzero(fold == number):
            for j, t in zip(asked, moved.posterior.mean, strict=True):
                if not np.isnan(x[i, j]):
                    losses[j] += (t - tame[i, j]) ** 2
                    counts[j] += 1
    mean = losses.sum() / counts.sum()
    return float(mean), float(np.sqrt(np.sum((losses - mean * counts) ** 2)) / counts.sum())


@pytest.mark.parametrize("seed", [0, 4])
@pytest.mark.parametrize("method", ["mean", "native"])
def test_held_out_errors_are_those_of_a_plain_loop(method: str, seed: int) -> None:
    x, _ = problem(2, share=0.5)
    assert np.nanmax(np.abs(plain.winsorised(x) - x)) == 0
    board = trueup.compare(x, [method], shrink=Normal(), seed=seed).set_index("shrink")
    for name, rule in (("none", "none"), ("normal", Normal())):
        mean, error = plain_board(x, method, trueup.shrinkage.find(rule), seed)
        assert board.loc[name, "held_out"] == pytest.approx(mean, rel=1e-9)
        assert board.loc[name, "held_out_se"] == pytest.approx(error, rel=1e-9)


def test_without_a_second_step_losses_are_those_of_the_first_split_of_auto() -> None:
    x, _ = problem(3, n=8, m=20)
    board = trueup.compare(x, ["mean", "median"], shrink="none").set_index("method")
    choice = choose(Answers.of(x), ["mean", "median"], splits=1)
    answers = int((~np.isnan(x)).sum())
    for number, method in enumerate(("mean", "median")):
        assert board.loc[method, "held_out"] * answers == pytest.approx(choice.loss[number, 0])
    assert board["shrink"].tolist() == ["none", "none"]


def test_risk_is_the_error_of_the_full_step_against_the_truth() -> None:
    x, truth = problem(4, n=6, m=20)
    board = trueup.compare(x, ["mean", "crh"], truth).set_index(["method", "shrink"])
    for (method, shrink), row in board.iterrows():
        est = trueup.estimate(x, method, shrink, target="consensus")
        error = (est.estimate - truth) ** 2
        assert row["risk"] == pytest.approx(error.mean(), rel=1e-9)
        assert row["risk_se"] == pytest.approx(error.std(ddof=1) / np.sqrt(20), rel=1e-9)


def test_some_truths_are_enough() -> None:
    x, truth = problem(4)
    board = trueup.compare(table(x), ["mean"], {"q03": truth[3], "q05": truth[5]}, shrink="none")
    error = (np.nanmean(x, axis=0) - truth)[[3, 5]] ** 2
    assert board["risk"][0] == pytest.approx(error.mean())
    assert board["risk_se"][0] == pytest.approx(abs(error[0] - error[1]) / 2)
    one = trueup.compare(table(x), ["mean"], {"q03": truth[3]}, shrink="none")
    assert one["risk"][0] == pytest.approx(error[0])
    assert np.isnan(one["risk_se"][0])


def test_methods_and_second_steps_may_be_objects() -> None:
    x, _ = problem(5)
    board = trueup.compare(x, [CRH(scale="var"), "mean"], shrink=EBE(positive=True))
    assert set(board["method"]) == {"crh", "mean"}
    assert set(board["shrink"]) == {"none", "paper"}
    cautious, bold = (
        trueup.compare(x, ["mean"], shrink=Adaptive(caution)).set_index("shrink")
        for caution in (0.1, 1.0)
    )
    assert cautious.loc["none", "held_out"] == bold.loc["none", "held_out"]
    assert cautious.loc["adaptive", "held_out"] != bold.loc["adaptive", "held_out"]


def test_the_better_method_is_found() -> None:
    rng = np.random.default_rng(6)
    x = rng.normal(size=80) + np.array([0.1, 0.1, 3, 3, 3, 3, 3])[:, None] * rng.normal(
        size=(7, 80)
    )
    board = trueup.compare(x, ["mean", "native"])
    assert board["method"][0] == "native"
    worst = board[board["method"] == "mean"].iloc[-1]
    assert worst["behind"] > 2 * worst["behind_se"]


def test_order_of_rows_changes_nothing() -> None:
    x, _ = problem(7)
    straight = pd.DataFrame(table(x))
    first = trueup.compare(straight, ["mean", "crh"])
    mixed = trueup.compare(straight.sample(frac=1.0, random_state=1), ["mean", "crh"])
    assert first["method"].tolist() == mixed["method"].tolist()
    for name in COLUMNS[3:-1]:
        np.testing.assert_allclose(mixed[name], first[name], rtol=1e-9, atol=1e-12)


def test_units_and_other_names_of_columns() -> None:
    x, truth = problem(8)
    first = trueup.compare(x, ["mean", "native"], truth)
    scaled = trueup.compare(1e3 * x, ["mean", "native"], 1e3 * truth)
    for name in ("held_out", "held_out_se", "behind", "risk", "risk_se"):
        np.testing.assert_allclose(scaled[name], 1e6 * first[name], rtol=1e-7, atol=1e-9)
    columns = table(x)
    renamed = {"item": columns["question"], "judge": columns["worker"], "score": columns["answer"]}
    other = trueup.compare(
        renamed, ["mean", "native"], question="item", worker="judge", answer="score"
    )
    np.testing.assert_allclose(other["held_out"], first["held_out"], rtol=1e-9)


def test_a_transform_is_the_scale_of_all_errors() -> None:
    x, truth = problem(9)
    logs = trueup.compare(x, ["mean"], truth)
    values = trueup.compare(np.exp(x), ["mean"], np.exp(truth), transform="log")
    for name in ("held_out", "risk"):
        np.testing.assert_allclose(values[name], logs[name], rtol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"answers": np.ones((2, 4))}, "answers: 3 workers"),
        ({"answers": np.where(np.eye(4) > 0, 1.0, np.nan)}, "a question with two answers"),
        ({"methods": []}, "methods: found none"),
        ({"methods": ["best"]}, "best"),
        ({"shrink": "much"}, "shrink"),
        ({"truth": {"nobody asked": 1.0}}, "truth|gold"),
        ({"truth": [1.0, 2.0]}, "truth|gold"),
        ({"transform": "square"}, "transform"),
        ({"max_iter": -1}, "max_iter"),
    ],
)
def test_what_cannot_be_compared_is_said(arguments: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"answers": problem()[0], **arguments}
    with pytest.raises(TrueupError, match=message):
        trueup.compare(**given)


def test_a_wrong_truth_is_called_truth() -> None:
    with pytest.raises(TrueupError, match=r"^truth"):
        trueup.compare(problem()[0], truth=[1.0, 2.0])


def test_a_wrong_seed_is_named() -> None:
    with pytest.raises(TrueupError, match="seed"):
        trueup.compare(problem()[0], ["mean"], seed=-1)


def test_panels_are_compared_one_at_a_time() -> None:
    answers, truth = trueup.simulate(5, 10, panels=3, seed=1)
    with pytest.raises(TrueupError, match=r"answers\.panel\(b\)"):
        trueup.compare(answers)
    board = trueup.compare(answers.panel(1), ["mean"], truth[10:20])
    assert len(board) == 2


def test_two_versions_of_a_method_are_told_apart() -> None:
    answers, _ = trueup.simulate(workers=8, questions=30, seed=2)
    board = trueup.compare(answers, [CRH(), CRH(scale="var"), "mean"], shrink="none")
    assert sorted(board["method"]) == sorted([repr(CRH()), repr(CRH(scale="var")), "mean"])


@pytest.mark.parametrize("size", [1e77, 1e149])
def test_standard_errors_of_losses_without_a_square(size: float) -> None:
    """Found by fuzzing: squared losses of answers as large as these are no numbers."""
    x, truth = problem()
    usual = trueup.compare(x, ["mean"], truth, shrink="none").iloc[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        large = trueup.compare(size * x, ["mean"], size * truth, shrink="none").iloc[0]
    for name in ("held_out", "held_out_se", "risk", "risk_se"):
        assert large[name] / size / size == pytest.approx(usual[name])
