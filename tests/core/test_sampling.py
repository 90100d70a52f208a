"""Random draws: from ids and a seed alone, each panel as if it were alone; halves and folds are what they say."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import plain_noise
import plain_second_step as plain
import trueup
from trueup import Answers
from trueup.algorithms import Native, run
from trueup.algorithms.registry import find
from trueup.answers.panels import folds
from trueup.core.sampling import (
    MAX_QUESTIONS,
    halves_of,
    id_order,
    places,
    question_draws,
    sample_of,
)
from trueup.engines.question_sample import QuestionSample, sample_questions
from trueup.pipeline.split_halves import SPLITS, halve
from trueup.variance import moderated, worker_noise

if TYPE_CHECKING:
    from trueup.core.arrays import Floats, Ints


def sparse(seed: int, n: int = 9, m: int = 14, *, least: int = 1) -> Floats:
    """A random matrix in which every question has at least `least` answers."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 2, m) + rng.normal(0, 0.5, (n, 1)) + rng.normal(size=(n, m))
    rank = rng.random((n, m)).argsort(axis=0).argsort(axis=0)
    x[(rng.random((n, m)) < 0.5) & (rank >= least)] = np.nan
    return x[~np.isnan(x).all(axis=1)]


def frame(x: Floats, *, text: bool = True, shuffle: int | None = None) -> pd.DataFrame:
    """A long table with ids that are text ("w10" comes before "w9") or numbers."""
    worker, question = np.nonzero(~np.isnan(x))
    table = pd.DataFrame({"question": question, "worker": worker, "answer": x[worker, question]})
    if text:
        table["question"] = "q" + table["question"].astype(str)
        table["worker"] = "w" + table["worker"].astype(str)
    return table if shuffle is None else table.sample(frac=1.0, random_state=shuffle)


def panels(matrices: list[Floats]) -> Answers:
    """Several problems side by side, whose workers and questions have the same names."""
    parts = [frame(x).assign(panel=number) for number, x in enumerate(matrices)]
    return Answers.from_frame(pd.concat(parts), panel="panel")


def by_id(answers: Answers, values: Any) -> dict[Any, Any]:
    return dict(zip(answers.worker_ids.tolist(), np.asarray(values).tolist(), strict=True))


def ids_of(answers: Answers, questions: Ints | None) -> set[Any]:
    assert questions is not None
    return set(answers.question_ids.tolist(questions))


# Orders of workers


def test_places_are_a_permutation_of_every_panel() -> None:
    answers = panels([sparse(seed, n=4 + seed) for seed in range(4)])
    place = places(answers, seed=0)
    for first, last in zip(answers.panel_workers, answers.panel_workers[1:], strict=False):
        assert sorted(place[first:last].tolist()) == list(range(last - first))


@pytest.mark.parametrize("draw", [0, 3])
def test_places_follow_ids_and_not_rows(draw: int) -> None:
    x = sparse(1, n=13)
    straight = Answers.of(frame(x))
    expected = by_id(straight, places(straight, 5, draw))
    for shuffle in range(3):
        mixed = Answers.of(frame(x, shuffle=shuffle))
        assert by_id(mixed, places(mixed, 5, draw)) == expected


def test_ids_are_sorted_as_what_they_are() -> None:
    text, number = (
        Answers.of(frame(sparse(1, n=13), text=kind, shuffle=1)) for kind in (True, False)
    )
    assert text.worker_ids.tolist(id_order(text)) == sorted(f"w{i}" for i in range(13))
    assert number.worker_ids.tolist(id_order(number)) == list(range(13))


def test_every_panel_is_drawn_as_if_it_were_alone() -> None:
    matrices = [sparse(seed, n=4 + 3 * seed) for seed in range(4)]
    together = panels(matrices)
    for draw in (0, 1):
        place = places(together, 7, draw)
        for number in range(4):
            first, last = together.panel_workers[[number, number + 1]].tolist()
            names = [f"w{i}" for i in range(last - first)]
            alone = Answers.of(frame(matrices[number]))
            expected = by_id(alone, places(alone, 7, draw))
            found = dict(
                zip(
                    together.worker_ids.tolist(np.arange(first, last)),
                    place[first:last].tolist(),
                    strict=True,
                )
            )
            assert set(found) == set(names)
            assert found == expected


def test_seed_and_draw_change_the_order_and_nothing_else_does() -> None:
    answers = Answers.of(sparse(2, n=12))
    drawn = {tuple(places(answers, seed, draw).tolist()) for seed in range(4) for draw in range(4)}
    assert len(drawn) == 16
    np.testing.assert_array_equal(places(answers, 3, 1), places(answers, 3, 1))


def test_all_orders_are_equally_likely() -> None:
    """Of three workers in 3,000 draws: 500 each expected, standard deviation 20."""
    answers = Answers.of(np.ones((3, 2)))
    drawn = [tuple(places(answers, seed).tolist()) for seed in range(3000)]
    counts = [drawn.count(each) for each in set(drawn)]
    assert len(counts) == 6
    assert min(counts) > 420
    assert max(counts) < 580


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_the_first_half_has_half_of_the_workers(n: int) -> None:
    answers = Answers.of(np.arange(4.0 * n).reshape(n, 4))
    first = halves_of(answers, 6, seed=0)
    assert first.shape == (n, 6)
    assert (first.sum(axis=0) == n // 2).all()
    for draw in range(6):
        np.testing.assert_array_equal(first[:, draw], places(answers, 0, draw) < n // 2)


# What halves of the workers say


@pytest.mark.parametrize("method", ["mean", "crh", "native", "median"])
@pytest.mark.parametrize("least", [1, 2])
@pytest.mark.parametrize("absurd", [False, True])
def test_halves_are_those_of_the_plain_loop(method: str, least: int, absurd: bool) -> None:
    x = sparse(3, n=10, m=16, least=least)
    if absurd:
        x[np.flatnonzero(~np.isnan(x[:, 4]))[0], 4] = 1e6
    answers = Answers.of(x)
    # The plain loop knows of no biases that a first step has removed.
    aggregate = run(Native(biases=False) if method == "native" else find(method), answers)
    sure, noise = moderated(answers, aggregate), worker_noise(answers)
    share = np.zeros_like(x)
    (block,) = answers.blocks()
    at = np.repeat(np.arange(block.n_questions), block.counts)
    p = aggregate.algorithm.weights(block, aggregate.state.of(block), aggregate.offset)
    share[block.workers, at] = 1.0 / block.counts[at] if method == "median" else p
    expected = plain_noise.aggregate_variance(
        x, share, aggregate.x, aggregate.weight, robust=method == "median"
    )
    assert expected["gross"].any() == absurd
    found = halve(aggregate, sure, noise.variance, seed=4)
    assert found.x.shape == (SPLITS, 2, 16)
    for draw in range(SPLITS):
        order = np.argsort(places(answers, 4, draw)).tolist()
        split = plain.halves(
            x, share, expected["s"], sure.v, expected["v1"], order, expected["gross"]
        )
        for side, name in enumerate("ab"):
            np.testing.assert_allclose(found.x[draw, side], split["x" + name], rtol=1e-7)
            # Levels are compared over questions with two answers; with single ones they differ a little.
            rtol = 1e-7 if least == 2 else 0.3
            np.testing.assert_allclose(found.v[draw, side], split["v" + name], rtol=rtol)


def test_halves_of_halves_make_up_the_whole() -> None:
    """Of a complete panel and plain means the two halves average to the mean of all."""
    x = np.random.default_rng(5).normal(size=(8, 20))
    answers = Answers.of(x)
    aggregate = run(find("mean"), answers)
    found = halve(aggregate, moderated(answers, aggregate), worker_noise(answers).variance)
    np.testing.assert_allclose(found.x.mean(axis=1), np.tile(aggregate.x, (SPLITS, 1)), rtol=1e-9)
    # Half as many workers: on average twice the variance.
    v = moderated(answers, aggregate).v
    np.testing.assert_allclose(found.v.mean(axis=1), np.tile(2 * v, (SPLITS, 1)), rtol=0.02)


@pytest.mark.parametrize("limited", [False, True])
def test_a_bold_prior_is_tried_on_some_of_very_many_questions(
    monkeypatch: pytest.MonkeyPatch, limited: bool
) -> None:
    """The halves of these are as ever, the others are not looked at; by ids, in a sample and without one."""
    x = np.random.default_rng(5).normal(size=(8, 400))
    answers = Answers.of(x)
    aggregate = run(find("mean"), answers)
    sure, noise = moderated(answers, aggregate), worker_noise(answers)
    sample = sample_questions(aggregate.engine, 3, 300) if limited else QuestionSample()
    whole = halve(aggregate, sure, noise.variance, sample=sample, seed=3)
    monkeypatch.setattr("trueup.pipeline.split_halves.TRIED", 100)
    found = halve(aggregate, sure, noise.variance, sample=sample, seed=3)
    draw = question_draws(answers, 3)
    tried = draw < 0.25 * 2.0**64
    assert 70 < tried.sum() < 130
    tried = tried[draw < (sample.limit[0] if sample.limit is not None else np.inf)]
    assert len(tried) == whole.x.shape[2]
    np.testing.assert_array_equal(found.x, np.where(tried, whole.x, np.nan))
    level = found.v[..., tried] / whole.v[..., tried]  # that of the questions looked at
    np.testing.assert_allclose(level, level[0, 0, 0], rtol=1e-12)
    assert np.isnan(found.v[..., ~tried]).all()


# Samples of questions


def many(m: int, *, text: bool, shuffle: int | None = None) -> Answers:
    return Answers.of(frame(np.arange(2.0 * m).reshape(2, m), text=text, shuffle=shuffle))


@pytest.mark.parametrize("text", [False, True])
def test_a_sample_follows_ids_and_not_rows(text: bool) -> None:
    straight = many(500, text=text)
    chosen = ids_of(straight, sample_of(straight, 0, 60))
    assert len(chosen) == 60
    for shuffle in range(3):
        mixed = many(500, text=text, shuffle=shuffle)
        assert ids_of(mixed, sample_of(mixed, 0, 60)) == chosen


@pytest.mark.parametrize("text", [False, True])
def test_a_larger_sample_has_the_smaller_one_in_it(text: bool) -> None:
    answers = many(300, text=text)
    small, large = (ids_of(answers, sample_of(answers, 0, size)) for size in (20, 100))
    assert small < large


@pytest.mark.parametrize("text", [False, True])
def test_a_sample_is_no_run_of_ids(text: bool) -> None:
    """400 of 4,000: about a quarter of them is in each quarter of the ids."""
    answers = many(4000, text=text)
    chosen = sample_of(answers, 0, 400)
    assert chosen is not None
    assert (np.diff(chosen) > 0).all()
    counts = np.bincount(chosen // 1000, minlength=4)
    assert counts.min() > 50
    assert counts.max() < 200


def test_few_questions_are_all_taken() -> None:
    answers = many(50, text=True)
    assert sample_of(answers, 0, 50) is None
    assert sample_of(answers, 0) is None


def test_whole_numbers_are_the_same_in_every_library_and_width() -> None:
    table = frame(np.arange(800.0).reshape(2, 400), text=False)
    expected = ids_of(Answers.of(table), sample_of(Answers.of(table), 0, 50))
    others = [
        pl.from_pandas(table),
        table.astype({"question": "int32"}),
        table.astype({"question": "uint64"}),
        pl.from_pandas(table).with_columns(pl.col("question").cast(pl.Int16)),
    ]
    for other in others:
        answers = Answers.of(other)
        assert ids_of(answers, sample_of(answers, 0, 50)) == expected


def test_more_than_fifty_thousand_questions_are_sampled() -> None:
    answers, _ = trueup.simulate(2, MAX_QUESTIONS + 100, seed=1)
    chosen = sample_of(answers, 0)
    assert chosen is not None
    assert len(chosen) == MAX_QUESTIONS
    assert len(np.unique(chosen)) == MAX_QUESTIONS


def test_panels_are_sampled_one_by_one() -> None:
    matrices = [np.arange(2.0 * m).reshape(2, m) for m in (30, 80, 50)]
    together = panels(matrices)
    chosen = sample_of(together, 0, 40)
    assert chosen is not None
    for number, x in enumerate(matrices):
        here = chosen[together.question_panel[chosen] == number]
        alone = Answers.of(frame(x))
        own = sample_of(alone, 0, 40)
        expected = set(alone.question_ids.tolist()) if own is None else ids_of(alone, own)
        assert ids_of(together, here) == expected


def test_the_seed_decides_the_sample() -> None:
    answers = many(500, text=True)
    drawn = {frozenset(ids_of(answers, sample_of(answers, seed, 50))) for seed in range(5)}
    assert len(drawn) == 5


def test_samples_of_two_seeds_have_as_much_in_common_as_by_chance() -> None:
    """Half of 1,000 ids of equal length: 250 in common expected, standard deviation 8."""
    x = np.arange(2000.0).reshape(2, 1000)
    table = frame(x, text=False).assign(question=lambda t: (t["question"] + 1000).astype(str))
    answers = Answers.of(table)
    first, *others = (ids_of(answers, sample_of(answers, seed, 500)) for seed in range(5))
    for other in others:
        assert 200 < len(first & other) < 300


def test_the_seed_decides_the_sample_of_whole_numbers() -> None:
    answers = many(500, text=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn = {frozenset(ids_of(answers, sample_of(answers, seed, 50))) for seed in range(5)}
    assert len(drawn) == 5


def test_any_seed_will_do() -> None:
    answers = many(500, text=False)
    assert len(ids_of(answers, sample_of(answers, 2**64, 50))) == 50


# Folds


@pytest.mark.parametrize(("n", "groups"), [(3, 5), (5, 5), (11, 5), (4, 2)])
def test_folds_share_the_workers_evenly(n: int, groups: int) -> None:
    answers = Answers.of(np.random.default_rng(n).normal(size=(n, 6)))
    split = folds(answers, groups, seed=1)
    sizes = np.bincount(split.of_worker)
    assert len(sizes) == min(n, groups)
    assert sizes.max() - sizes.min() <= 1
    assert sizes.sum() == n


@pytest.mark.parametrize("groups", [2, 5])
def test_every_fold_is_trained_on_the_answers_of_the_others(groups: int) -> None:
    x = sparse(6, n=7, m=10)
    answers = Answers.of(x)
    split = folds(answers, groups, seed=2)
    training = split.training
    assert training.n_panels == groups
    assert len(split.question) == len(split.fold) == training.n_questions
    np.testing.assert_array_equal(training.question_panel, split.fold)
    values = training.centre.repeat(training.counts) + training.values
    question = np.repeat(split.question, training.counts)
    assert training.worker_source is not None
    worker = training.worker_source[training.workers]
    fold = np.repeat(split.fold, training.counts)
    for number in range(groups):
        expected = np.where((split.of_worker != number)[:, None], x, np.nan)
        found = np.full_like(x, np.nan)
        here = fold == number
        found[worker[here], question[here]] = values[here]
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_folds_follow_ids_and_not_rows() -> None:
    x = sparse(7, n=12)
    straight, mixed = Answers.of(frame(x)), Answers.of(frame(x, shuffle=3))
    first, second = (by_id(each, folds(each, 5, seed=8).of_worker) for each in (straight, mixed))
    assert first == second
    other = by_id(straight, folds(straight, 5, seed=9).of_worker)
    assert other != first


def test_panels_of_few_workers_have_fewer_folds() -> None:
    together = panels([sparse(1, n=3), sparse(2, n=9)])
    split = folds(together, 5, seed=0)
    few = split.of_worker[: together.panel_workers[1]]
    assert sorted(few.tolist()) == [0, 1, 2]
    # Folds that a panel does not have are trained on nothing of it.
    own = split.question < together.panel_questions[1]
    assert set(split.fold[own].tolist()) == {0, 1, 2}
    assert set(split.fold[~own].tolist()) == {0, 1, 2, 3, 4}
