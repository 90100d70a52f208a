"""The choice of the first step by held-out workers, against plain loops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import plain_first_step as plain
import trueup
from trueup import Answers
from trueup.algorithms import CRH, run
from trueup.algorithms.registry import find
from trueup.answers.panels import folds
from trueup.pipeline.auto_method import (
    CANDIDATES,
    FOLDS,
    LEAST,
    SPLITS,
    choose,
    held_out,
    winsorised,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.core.arrays import Floats

EXACT = ("mean", "median")


def panel(
    seed: int, n: int = 7, m: int = 16, *, share: float = 0.7, kind: str = "normal"
) -> Floats:
    """Sparse answers; "unlike" workers differ much, "wild" ones give absurd answers now and then."""
    rng = np.random.default_rng(seed)
    scale = np.exp(rng.normal(0.0, 1.5 if kind == "unlike" else 0.3, n))
    x = rng.normal(0, 3, m) + scale[:, None] * rng.normal(size=(n, m))
    if kind == "wild":
        x += (rng.random((n, m)) < 0.1) * rng.normal(0.0, 300.0, (n, m))
    x[rng.random((n, m)) > share] = np.nan
    for j in np.flatnonzero(np.isnan(x).all(axis=0)):
        x[rng.integers(n), j] = rng.normal()
    return x[~np.isnan(x).all(axis=1)]


def fit(name: str) -> Callable[[Floats], Floats]:
    """A first step on the answers of some workers, NaN for questions without any."""

    def aggregate(train: Floats) -> Floats:
        here, asked = ~np.isnan(train).all(axis=1), ~np.isnan(train).all(axis=0)
        x = np.full(train.shape[1], np.nan)
        x[asked] = run(find(name), Answers.of(train[np.ix_(here, asked)])).x
        return x

    return aggregate


def expected(
    x: Floats, seed: int = 0, names: tuple[str, ...] = ("mean",), splits: int = SPLITS
) -> dict[str, Any]:
    answers = Answers.of(x)
    drawn = [
        folds(answers, FOLDS, seed=seed, draw=draw).of_worker.tolist() for draw in range(splits)
    ]
    return plain.auto_choice(x, {name: fit(name) for name in names}, drawn)


def piled_up() -> Floats:
    """Answers that pile up at 0: the truth is a mean, and robust estimates are too low."""
    rng = np.random.default_rng(2)
    share = rng.uniform(0.1, 0.5, 60)
    return (rng.random((25, 60)) < share) * rng.uniform(20.0, 100.0, (25, 60))


CASES = [
    piled_up(),
    panel(0),
    panel(1, share=1.0),
    panel(2, n=4, m=10),
    panel(3, n=12, kind="unlike"),
    panel(4, n=12, kind="wild", share=0.9),
    panel(5, n=9, m=25, kind="wild", share=0.5),
    panel(6, n=6, m=30, kind="unlike", share=1.0),
]


@pytest.mark.parametrize("seed", [0, 5])
@pytest.mark.parametrize("x", CASES, ids=range(len(CASES)))
def test_losses_and_choice_are_those_of_the_plain_loop(x: Floats, seed: int) -> None:
    found, loop = choose(Answers.of(x), seed=seed), expected(x, seed)
    assert found.candidates == CANDIDATES
    assert CANDIDATES[int(found.chosen[0])] == loop["choice"]
    for number, name in enumerate(CANDIDATES):
        # Of an even number of distances the scale of absurd answers is the lower middle one.
        assert found.loss[number, 0] == pytest.approx(loop["loss"][name], rel=0.03)
        error = loop["error"][name]
        assert found.error[number, 0] == pytest.approx(
            error, rel=0.1, abs=0.01 * loop["loss"]["native"]
        )


@pytest.mark.parametrize("seed", range(3))
def test_losses_of_tame_answers_are_exactly_those_of_the_plain_loop(seed: int) -> None:
    x = panel(seed, n=8, share=0.6)
    found, loop = choose(Answers.of(x)), expected(x)
    for number, name in enumerate(CANDIDATES):
        assert found.loss[number, 0] == pytest.approx(loop["loss"][name], rel=1e-8)
    assert found.error[1, 0] == pytest.approx(loop["error"]["mean"], rel=1e-6)
    assert found.error[0, 0] == 0.0


def test_the_cases_are_not_all_decided_alike() -> None:
    chosen = [CANDIDATES[int(choose(Answers.of(x)).chosen[0])] for x in CASES]
    assert len(set(chosen)) >= 2
    assert "native" in chosen


@pytest.mark.parametrize("x", [CASES[0], CASES[4]], ids=["tame", "wild"])
def test_absurd_answers_are_drawn_in(x: Floats) -> None:
    answers = Answers.of(x)
    matrix = np.full_like(x, np.nan)
    question = np.repeat(np.arange(answers.n_questions), answers.counts)
    matrix[answers.workers, question] = winsorised(answers) + answers.centre[question]
    loop = plain.winsorised(x)
    wide = np.nanmax(np.abs(loop - x))
    np.testing.assert_allclose(matrix, loop, rtol=1e-9, atol=0.05 * wide)
    middle = np.nanmedian(x, axis=0)
    # Nothing changes sides, and nothing moves outward.
    assert (np.sign(matrix - middle) * np.sign(x - middle) >= 0)[~np.isnan(x)].all()
    assert (np.abs(matrix - middle) <= np.abs(x - middle) + 1e-12)[~np.isnan(x)].all()


def test_where_most_answers_agree_the_pooled_deviation_is_the_scale() -> None:
    x = np.zeros((5, 6))
    x[0, 0], x[1, 1] = 1.0, 100.0
    answers = Answers.of(x)
    pooled = np.sqrt((0.8 + 8000.0) / 24)
    assert winsorised(answers).max() == pytest.approx(5 * pooled)


def test_held_out_answers_that_nobody_else_can_predict_do_not_count() -> None:
    x = np.array([[1.0, 5.0], [2.0, np.nan], [4.0, np.nan]])
    answers = Answers.of(x)
    split = folds(answers, FOLDS)
    loss = held_out(answers, split, run(find("mean"), split.training).offset, answers.values)
    np.testing.assert_allclose(loss, [(1 - 3) ** 2 + (2 - 2.5) ** 2 + (4 - 1.5) ** 2, 0.0])


def test_a_batch_is_as_if_each_panel_were_alone() -> None:
    few = panel(8, n=2, m=6, share=1.0)
    matrices = [*CASES, few]
    rows: list[pd.DataFrame] = []
    for number, x in enumerate(matrices):
        worker, question = np.nonzero(~np.isnan(x))
        columns = {"question": question, "worker": worker, "answer": x[worker, question]}
        rows.append(pd.DataFrame(columns).assign(panel=number))
    together = choose(Answers.from_frame(pd.concat(rows), panel="panel"), seed=3)
    for number, x in enumerate(CASES):
        alone = choose(Answers.of(x), seed=3)
        assert together.chosen[number] == alone.chosen[0]
        np.testing.assert_allclose(together.loss[:, number], alone.loss[:, 0], rtol=1e-9)
        np.testing.assert_allclose(
            together.error[:, number], alone.error[:, 0], rtol=1e-6, atol=1e-9
        )
    assert together.chosen[-1] == 0


@pytest.mark.parametrize(
    "x",
    [
        np.ones((1, 5)),
        np.random.default_rng(1).normal(size=(2, 9)),
        np.where(np.eye(6) > 0, 3.0, np.nan),
    ],
    ids=["one worker", "two workers", "disjoint workers"],
)
def test_too_few_answers_leave_the_default(x: Floats) -> None:
    found = choose(Answers.of(x))
    assert found.chosen.tolist() == [0]
    assert np.isnan(found.loss).all()
    assert "too few answers" in found.reason
    est = trueup.estimate(x)
    assert est.diagnosis.method == "native"
    assert "too few answers" in str(est)


def test_full_agreement_leaves_the_default() -> None:
    found = choose(Answers.of(np.tile(np.arange(6.0), (5, 1))))
    assert found.chosen.tolist() == [0]
    assert "agree with the others" in found.reason


def test_reasons_say_by_how_much() -> None:
    kept = choose(Answers.of(panel(6, n=6, m=30, kind="unlike", share=1.0)))
    assert kept.chosen[0] == 0
    assert kept.reason == "the plain mean does not predict held-out workers clearly better"
    x = piled_up()
    found = choose(Answers.of(x))
    best = int(found.chosen[0])
    assert CANDIDATES[best] == "mean"
    less = 1 - found.loss[best, 0] / found.loss[0, 0]
    assert less > 0.01
    assert (
        found.reason
        == f"it predicts held-out workers better than native, with {less:.1%} less squared error"
    )
    est = trueup.estimate(x)
    assert est.diagnosis.method == "mean"
    assert est.diagnosis.why == found.reason
    assert found.reason in str(est)


def test_order_of_rows_does_not_matter() -> None:
    x = panel(9, n=13, kind="unlike")
    worker, question = np.nonzero(~np.isnan(x))
    table = pd.DataFrame(
        {
            "question": [f"q{j}" for j in question],
            "worker": [f"w{i}" for i in worker],
            "answer": x[worker, question],
        }
    )
    first = choose(Answers.of(table))
    for shuffle in range(3):
        mixed = choose(Answers.of(table.sample(frac=1.0, random_state=shuffle)))
        np.testing.assert_allclose(mixed.loss, first.loss, rtol=1e-9)
        assert mixed.chosen == first.chosen


def test_the_seed_changes_the_split_only() -> None:
    x = panel(11, n=12, share=0.6)
    answers = Answers.of(x)
    first, again, other = (choose(answers, EXACT, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.loss, again.loss)
    assert (first.loss != other.loss).any()
    loop = expected(x, seed=1, names=EXACT)
    assert other.loss[0, 0] == pytest.approx(loop["loss"]["mean"], rel=1e-9)
    # As many folds as workers: all splits are alike.
    complete = Answers.of(panel(11, n=5, share=1.0))
    one, two = (choose(complete, EXACT, seed=seed) for seed in (0, 1))
    np.testing.assert_allclose(one.loss, two.loss, rtol=1e-12)


@pytest.mark.parametrize(("a", "b"), [(1e9, 0.0), (1e-9, 0.0), (1.0, 1e4)])
def test_units_change_no_choice(a: float, b: float) -> None:
    for x in CASES:
        first, other = choose(Answers.of(x)), choose(Answers.of(a * x + b))
        assert first.chosen == other.chosen
        np.testing.assert_allclose(other.loss, a * a * first.loss, rtol=1e-7)


def test_the_number_of_threads_changes_nothing() -> None:
    answers = Answers.of(CASES[3])
    one, four = (choose(answers, threads=threads) for threads in (1, 4))
    np.testing.assert_array_equal(one.loss, four.loss)


def test_candidates_may_be_algorithms_and_every_split_is_told_of() -> None:
    told: list[str] = []
    answers = Answers.of(CASES[4])
    found = choose(answers, ["mean", CRH(scale="var"), "native"], each=told.append)
    assert found.candidates == ("mean", "crh", "native")
    assert told == [f"held-out workers, split {number} of {SPLITS}" for number in range(1, 5)]
    # The first is the default: now another one has to be better than the mean.
    assert found.error[0, 0] == 0.0
    assert found.loss[2, 0] < found.loss[0, 0]
    assert "better than mean" in found.reason


ROUNDED = np.array([[-0.8, -1.3, -0.2], [0.4, 1.1, 0.1], [-0.6, -0.8, 0.7]])


def test_where_only_two_answers_are_left_nothing_is_compared() -> None:
    """From two answers every first step is a mean; with one question of four something is left."""
    assert np.isnan(choose(Answers.of(ROUNDED)).loss).all()
    more = np.vstack([ROUNDED, [0.3, np.nan, np.nan]])
    found = choose(Answers.of(more))
    mean = held_out_by_hand(more[:, 0])
    assert found.loss[1, 0] == pytest.approx(mean, rel=1e-12)


def held_out_by_hand(values: Floats) -> float:
    """The loss of the mean where every worker is a fold of its own, and answers are not drawn in."""
    total, n = float(values.sum()), len(values)
    return float(np.sum((values - (total - values) / (n - 1)) ** 2))


def test_a_shift_of_all_answers_changes_no_choice_among_equals() -> None:
    methods = {trueup.estimate(ROUNDED + shift).diagnosis.method for shift in (0.0, 1.0, 2.0)}
    assert len(methods) == 1


def test_rounding_does_not_decide_whether_a_gain_on_one_question_is_clear() -> None:
    """Found by fuzzing: such a gain equals its error, and sums in another order chose another method."""
    rows = [
        ("a", -1, 0.0), ("b", -1, 0.0), ("b", 2, 0.0), ("c", 2, 0.0), ("d", 0, 542449.0),
        ("a", 1, 0.0), ("e", 2, 0.0), ("c", 0, 905322.0), ("d", 2, 0.0), ("c", 1, 0.0),
    ]  # fmt: skip
    methods = set()
    for order in (rows, sorted(rows), rows[::-1], sorted(rows, key=lambda row: row[1])):
        columns = dict(zip(("question", "worker", "answer"), zip(*order, strict=True), strict=True))
        methods.add(trueup.estimate(columns, bias=True).diagnosis.method)
    assert methods == {"native"}


def many_questions(sd: Floats, shared: Floats, each: int) -> Answers:
    """Answers of workers with these standard deviations, of whose error variance a share is the same for all."""
    rng = np.random.default_rng(2)
    m, n = LEAST, len(sd)
    theta, common = rng.normal(0.0, 3.0, m), rng.normal(size=m)
    question, worker = np.repeat(np.arange(m), each), np.tile(np.arange(each), m)
    worker = (worker * (n // each) + question) % n
    error = np.sqrt(shared)[worker] * common[question]
    error += np.sqrt(1.0 - shared[worker]) * rng.normal(size=m * each)
    answer = theta[question] + sd[worker] * error
    return Answers.of({"question": question, "worker": worker, "answer": answer})


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return where the number of folds of every comparison to come is noted."""
    tried: list[int] = []

    def noting(answers: Answers, *rest: Any, **more: Any) -> Any:
        split = folds(answers, *rest, **more)
        tried.append(split.training.n_panels)
        return split

    monkeypatch.setattr("trueup.pipeline.auto_method.folds", noting)
    return tried


def test_one_fold_of_many_workers_decides_about_many_questions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sd = np.exp(np.random.default_rng(1).normal(0.0, 0.7, 200))
    answers = many_questions(sd, np.zeros(200), 5)
    tried = counted(monkeypatch)
    found = choose(answers)
    assert tried == [1]
    assert CANDIDATES[int(found.chosen[0])] == "native"
    monkeypatch.setattr("trueup.pipeline.auto_method.DECISIVE", (5.0, np.inf))
    assert choose(answers).chosen == found.chosen
    assert sorted(tried) == [1, 1, FOLDS, FOLDS]


def test_a_fold_of_few_workers_does_not_decide_however_many_questions_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two of five workers err together: the fold with one of them prefers the mean, all folds together do not."""
    chosen = set()
    for order in ([0, 1, 2, 3, 4], [0, 1, 3, 2, 4], [3, 0, 1, 2, 4]):
        sd = np.array([0.5, 0.5, 0.5, 1.6, 1.6])[order]
        answers = many_questions(sd, np.array([0, 0, 0, 0.45, 0.45])[order], 5)
        tried = counted(monkeypatch)
        chosen.add(CANDIDATES[int(choose(answers).chosen[0])])
        assert sorted(tried) == [1, FOLDS, FOLDS]
    assert chosen == {"native"}
