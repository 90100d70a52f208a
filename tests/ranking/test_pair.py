"""Two systems on the same items: closed forms, a plain loop, and what cannot be known."""

from __future__ import annotations

import numpy as np
import pytest

from trueup.ranking.pair import holm, mean_over_items
from trueup.ranking.scores import Scores
from trueup.ranking.standings import Standings


def plain(y: np.ndarray, w: np.ndarray) -> tuple[float, float, float, float, float]:
    """The formulas, one number at a time; NaN where a judge did not score an item."""
    n, judges = y.shape
    share = np.zeros((n, judges))
    d = np.zeros(n)
    for p in range(n):
        total = sum(w[i] for i in range(judges) if not np.isnan(y[p, i]))
        for i in range(judges):
            if not np.isnan(y[p, i]):
                share[p, i] = w[i] / total
                d[p] += share[p, i] * y[p, i]
    mean = d.sum() / n
    items = n / (n - 1) * sum(((d[p] - mean) / n) ** 2 for p in range(n))
    h = share.mean(axis=0)
    c = np.diag(h) - sum(np.outer(share[p], share[p]) for p in range(n)) / n
    b = np.where(share > 0, share * (np.nan_to_num(y) - d[:, None]) / n, 0.0)
    k = (h**2).sum() / (c**2).sum()
    noise = k * (b.sum(axis=0) ** 2).sum()
    freedom = (c**2).sum() ** 2 / ((c @ c) ** 2).sum()
    return mean, items, max(noise - k * (b**2).sum(), 0.0), noise, freedom


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_the_formulas_by_a_plain_loop(missing: float) -> None:
    rng = np.random.default_rng(5)
    y = rng.normal(size=(12, 4)) + rng.normal(size=4)
    y[rng.random(y.shape) < missing] = np.nan
    w = np.array([1.0, 2.0, 0.5, 3.0])
    p, i = np.nonzero(~np.isnan(y))
    order = rng.permutation(len(p))
    found = mean_over_items(p[order] * 3 + 1, i[order], y[p, i][order], w)
    y = y[~np.isnan(y).all(axis=1)]
    assert (
        found.value, found.item_variance, found.judge_variance, found.judge_noise, found.judge_df
    ) == pytest.approx(plain(y, w))  # fmt: skip


def test_the_formulas_where_most_scores_are_missing() -> None:
    """Each of many judges scored a few items: the table is not kept in full."""
    rng = np.random.default_rng(6)
    n, judges = 60, 30
    y = np.full((n, judges), np.nan)
    for row in y:
        who = rng.choice(judges, 3, replace=False)
        row[who] = rng.normal(size=3) + who / 9
    w = rng.uniform(0.5, 3.0, judges)
    p, i = np.nonzero(~np.isnan(y))
    assert len(np.unique(i)) == judges
    found = mean_over_items(p, i, y[p, i], w)
    assert (
        found.value, found.item_variance, found.judge_variance, found.judge_noise, found.judge_df
    ) == pytest.approx(plain(y, w))  # fmt: skip


def test_degrees_of_freedom_are_those_of_satterthwaite() -> None:
    rng = np.random.default_rng(7)
    y = rng.normal(size=(15, 4)) + rng.normal(size=4)
    p, i = np.indices(y.shape).reshape(2, -1)
    found = mean_over_items(p, i, y.ravel(), np.ones(4))
    assert found.judge_df == pytest.approx(3.0)  # 1/sum h^2 - 1
    of_items, noise = found.item_variance, found.judge_noise
    expected = found.variance(fixed=False) ** 2 / (of_items**2 / 14 + noise**2 / 3)
    assert found.degrees(fixed=False) == pytest.approx(expected)
    assert found.degrees(fixed=True) == 14
    # Judges of unequal weight have fewer, down to those of the few that count.
    unequal = mean_over_items(p, i, y.ravel(), np.array([8.0, 8.0, 0.1, 0.1]))
    assert 1.0 < unequal.judge_df < 1.1


def test_one_judge_says_nothing_about_other_judges() -> None:
    found = mean_over_items(np.arange(4), np.zeros(4, int), np.array([1.0, 2, 3, 4]), np.ones(1))
    assert not found.knows_judges
    assert np.isnan(found.std_error(fixed=False))
    assert found.std_error(fixed=True) == pytest.approx(np.sqrt(5 / 3 / 4))


def test_unknown_and_certain_differences() -> None:
    none = np.array([], int)
    nothing = mean_over_items(none, none, np.array([]), np.ones(2))
    assert np.isnan(nothing.value)
    assert np.isnan(nothing.p_value(fixed=True))
    item, judge = np.repeat(np.arange(3), 2), np.tile(np.arange(2), 3)
    equal = mean_over_items(item, judge, np.zeros(6), np.ones(2))
    assert [equal.p_value(fixed=f) for f in (True, False)] == [1.0, 1.0]
    sure = mean_over_items(item, judge, np.full(6, 0.5), np.ones(2))
    assert sure.interval(0.95, fixed=False) == (0.5, 0.5)
    assert (sure.p_value(fixed=False), sure.p_value(fixed=False, side=-1)) == (0.0, 1.0)
    one_item = mean_over_items(np.zeros(2, int), np.arange(2), np.array([1.0, 2.0]), np.ones(2))
    assert np.isnan(one_item.p_value(fixed=True))


def test_items_of_one_document_count_once() -> None:
    rng = np.random.default_rng(1)
    y = np.repeat(rng.normal(size=20), 5)  # five items of a document agree
    item, judge = np.arange(100), np.zeros(100, int)
    alone = mean_over_items(item, judge, y, np.ones(1))
    together = mean_over_items(item, judge, y, np.ones(1), cluster=item // 5)
    assert together.units == 20
    assert together.std_error(fixed=True) == pytest.approx(y[::5].std(ddof=1) / np.sqrt(20))
    assert together.std_error(fixed=True) > 2 * alone.std_error(fixed=True)


def test_judges_without_weight_do_not_count() -> None:
    item, judge = np.repeat(np.arange(3), 2), np.tile(np.arange(2), 3)
    y = np.array([1.0, 9, 2, 9, 3, 9])
    found = mean_over_items(item, judge, y, np.array([1.0, 0.0]))
    assert (found.value, found.judges) == (2.0, 1)


def test_holm() -> None:
    p = np.array([0.01, np.nan, 0.04, 0.03, 0.005])
    assert holm(p) == pytest.approx([0.03, np.nan, 0.06, 0.06, 0.02], nan_ok=True)
    assert holm(np.array([0.9, 0.8])).max() == 1.0


def test_no_pair_is_surer_of_its_judges_than_pairs_are_on_average() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=(4, 20, 3)) + 0.5 * rng.normal(size=(4, 1, 3))
    system, item, judge = np.nonzero(y)
    scores = Scores.of(
        system, item, judge, y[system, item, judge],
        group=np.arange(3), weight=np.ones(3), bias=np.zeros(3),
    )  # fmt: skip
    standings = Standings(scores, 0.95, fixed=False, sign=1, run_variance=0.0, runs=1.0)
    own = [scores.difference(*pair) for pair in standings.pairs]
    mean = np.mean([each.judge_variance for each in own])
    for pair, each in zip(standings.pairs, own, strict=True):
        used = standings.difference(*pair).judged
        assert used.judge_variance == pytest.approx(max(each.judge_variance, mean))
        assert used.judge_df == pytest.approx(2.0 if each.judge_variance >= mean else 6.0)


@pytest.mark.parametrize("missing", [0.0, 0.4, 0.95])
@pytest.mark.parametrize("pools", [False, True])
def test_the_scores_that_two_systems_share(missing: float, pools: bool) -> None:
    """Complete panels, panels with gaps and panels of hardly anything are joined in ways of their own."""
    rng = np.random.default_rng(3)
    y = rng.normal(size=(3, 60, 4))
    y[rng.random(y.shape) < missing] = np.nan
    system, item, judge = np.nonzero(~np.isnan(y))
    mixed = rng.permutation(len(system))
    system, item, judge = system[mixed], item[mixed], judge[mixed]
    group = np.array([0, 1, 1, 2]) if pools else np.arange(4)
    scores = Scores.of(
        system, item, judge, y[system, item, judge],
        group=group, weight=np.ones(group.max() + 1), bias=np.zeros(4),
    )  # fmt: skip
    for first, second in ((0, 1), (2, 0)):
        expected: dict[tuple[int, int], list[float]] = {}
        for p in range(60):
            for i in range(4):
                difference = y[first, p, i] - y[second, p, i]
                if not np.isnan(difference):
                    expected.setdefault((p, int(group[i])), []).append(difference)
        places, value = scores.of_pair(first, second)
        found = dict(
            zip(zip(places.item.tolist(), places.group.tolist(), strict=True), value, strict=True)
        )
        assert found == pytest.approx({key: np.mean(each) for key, each in expected.items()})
        own = mean_over_items(places.item, places.group, value, scores.weight)
        assert scores.difference(first, second).value == pytest.approx(own.value, nan_ok=True)
