"""rank(): closed forms, what cannot be known, labels, frames of every library, and odd input."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.special import stdtr, stdtrit

import trueup
from frames_by_library import FRAMES, rows
from trueup.ranking.text import both_intervals

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from trueup.ranking.ranking import Ranking

SYSTEMS = ("old", "new", "big")


def panel(
    items: int = 30,
    judges: int = 4,
    gaps: Sequence[float] = (0.0, 0.1, 1.0),
    noise: float = 0.5,
    partial: float = 0.0,
    seed: int = 0,
) -> np.ndarray:
    """Scores, systems x items x judges."""
    rng = np.random.default_rng(seed)
    shape = (len(gaps), items, judges)
    return (
        np.array(gaps)[:, None, None]
        + rng.normal(size=(1, items, 1))
        + 0.3 * rng.normal(size=judges)
        + partial * rng.normal(size=(len(gaps), 1, judges))
        + noise * rng.normal(size=shape)
    )


def table(y: np.ndarray, systems: Sequence[Any] = SYSTEMS) -> dict[str, list[Any]]:
    """The same, one score per row; NaN means no row."""
    columns: dict[str, list[Any]] = {"sample_id": [], "model": [], "judge": [], "score": []}
    for s, p, i in np.argwhere(~np.isnan(y)).tolist():
        row = (f"item {p}", systems[s], f"judge {i}", float(y[s, p, i]))
        for column, value in zip(columns.values(), row, strict=True):
            column.append(value)
    return columns


def rank(y: np.ndarray, systems: Sequence[Any] = SYSTEMS, **options: Any) -> Ranking:
    return trueup.rank(table(y, systems), by="model", item="sample_id", **options)


def difference(ranking: Ranking, first: str, second: str) -> dict[str, Any]:
    """The row of a pair, whichever comes first in it."""
    columns = rows(ranking.differences)
    for k, pair in enumerate(zip(columns["first"], columns["second"], strict=True)):
        if pair == (first, second):
            return {name: values[k] for name, values in columns.items()}
    raise AssertionError((first, second))


# -- numbers -----------------------------------------------------------------------------------------


def test_these_judges_is_the_paired_t_test_of_the_means() -> None:
    y = panel()
    ranking = rank(y, method="mean", judges="fixed")
    found = difference(ranking, "big", "old")
    d = (y[2] - y[0]).mean(axis=1)
    error = d.std(ddof=1) / np.sqrt(30)
    assert found["difference"] == pytest.approx(d.mean())
    assert found["std_error"] == pytest.approx(error)
    assert found["lower"] == pytest.approx(d.mean() - stdtrit(29, 0.975) * error)
    assert found["p_value"] == pytest.approx(2 * stdtr(29, -abs(d.mean() / error)))
    assert found["basis"] == "these judges"


def test_judges_like_these_is_the_two_way_table_where_judges_count_alike() -> None:
    y = panel(partial=0.4, seed=3)
    found = difference(rank(y, method="mean"), "big", "old")
    d = y[2] - y[0]
    effect = (d - d.mean(axis=1, keepdims=True)).mean(axis=0)
    left = d - d.mean(axis=1, keepdims=True)
    # Effects of judges by their spread, less what noise adds to it.
    k = 1 / (1 - 1 / 4)
    between = k * max((effect**2).sum() / 16 - (left**2).sum() / (4 * 30) ** 2, 0.0)
    items = d.mean(axis=1).var(ddof=1) / 30
    assert found["std_error"] == pytest.approx(np.sqrt(items + between * 4 / 3 / k))
    assert found["basis"] == "judges like these"


def test_means_are_over_judges_and_items() -> None:
    y = panel()
    found = rows(rank(y, method="mean").systems)
    assert found["system"] == ["big", "new", "old"]
    assert found["estimate"] == pytest.approx([y[2].mean(), y[1].mean(), y[0].mean()])
    assert found["n_items"] == [30, 30, 30]
    assert found["n_answers"] == [120, 120, 120]
    assert (found["rank_low"], found["rank_high"]) == ([1, 2, 2], [1, 3, 3])


def test_differences_are_not_shrunk_and_biases_cancel() -> None:
    y = panel(items=200, gaps=(0.0, 1.0), noise=0.2)
    y[:, ::2, 0] = np.nan  # a judge with a bias who scored every second item
    y[:, :, 0] += 50
    found = rows(rank(y, ("a", "b")).systems)
    assert found["estimate"][0] - found["estimate"][1] == pytest.approx(1.0, abs=0.05)


def test_p_values_are_adjusted_by_holm_over_all_pairs() -> None:
    found = rows(rank(panel(gaps=(0.0, 0.1, 0.3, 0.5)), "abcd").differences)
    order = np.argsort(found["p_value"])
    expected = np.maximum.accumulate(np.array(found["p_value"])[order] * np.arange(6, 0, -1))
    assert np.array(found["adjusted_p"])[order] == pytest.approx(np.minimum(expected, 1))
    for p, verdict in zip(found["adjusted_p"], found["verdict"], strict=True):
        assert verdict == ("better" if p <= 0.05 else "not clear")


def test_what_other_judges_might_say_does_not_depend_on_whom_the_intervals_are_about() -> None:
    given = np.random.default_rng(3).random((3, 12, 4)) > 0.35
    y = np.where(given, panel(12, gaps=(0.0, 0.2, 0.4), partial=0.6), np.nan)
    said = [both_intervals(rank(y, judges=judges)) for judges in ("sample", "fixed")]
    assert "might say otherwise" in said[0][0]
    assert said[0] == said[1]


def test_low_scores_may_be_good() -> None:
    y = panel(gaps=(0.0, 0.2, 1.0), partial=0.2)
    up, down = rank(y), rank(-y, higher_is_better=False)
    high, low = rows(up.systems), rows(down.systems)
    for name in ("system", "rank_low", "rank_high"):
        assert high[name] == low[name]
    assert low["estimate"] == pytest.approx([-value for value in high["estimate"]])
    assert rows(up.differences)["verdict"] == rows(down.differences)["verdict"]
    for fail_if in ("worse", "not-better"):
        one, two = (each.gate("new", 0.1, fail_if) for each in (up, down))
        assert (one.decision, one.failing) == (two.decision, two.failing)


def test_runs_are_averaged_and_their_variance_is_kept() -> None:
    y = panel(items=60)
    rng = np.random.default_rng(9)
    one, two = (table(y + 0.4 * rng.normal(size=y.shape)) for _ in range(2))
    both = {name: one[name] + two[name] for name in one}
    both["epoch"] = [1] * len(one["score"]) + [2] * len(two["score"])
    by_run = trueup.rank(both, by="model", item="sample_id", run="epoch")
    merged = trueup.rank(both, by="model", item="sample_id", duplicates="mean")
    pairs = zip(one["score"], two["score"], strict=True)
    assert by_run.components.runs == pytest.approx(np.mean([(a - b) ** 2 / 2 for a, b in pairs]))
    assert by_run.components == merged.components
    assert rows(by_run.systems) == rows(merged.systems)
    assert by_run.standings.runs == 2
    assert "three runs for each one" in str(by_run)
    with pytest.raises(trueup.AnswersError, match="duplicates"):
        trueup.rank(
            {**both, "epoch": [1] * len(both["score"])}, by="model", item="sample_id", run="epoch"
        )


def test_judges_who_err_together_count_as_one() -> None:
    y = panel(items=100, judges=5)
    y[..., 1] = y[..., 0] + 0.01 * np.random.default_rng(1).normal(size=y.shape[:2])
    for method in ("auto", "mean"):
        ranking = rank(y, method=method)
        assert ranking.standings.scores.effective_judges <= 4.0 + 1e-9
        assert "judges who err together count as one: judge 0, judge 1" in str(ranking)
        weight = dict(
            zip(rows(ranking.judges)["judge"], rows(ranking.judges)["weight"], strict=True)
        )
        assert weight["judge 0"] == weight["judge 1"]
        d = y[2] - y[0]
        pooled = np.column_stack([d[:, :2].mean(axis=1), d[:, 2:]])
        if method == "mean":
            share = ranking.weights.weight
            expected = float((pooled @ share).mean())
            assert difference(ranking, "big", "old")["difference"] == pytest.approx(expected)


def test_weights_are_nearly_equal_where_judges_are_partial_and_items_many() -> None:
    rng = np.random.default_rng(2)
    for partial, largest in ((0.0, 2.0), (1.0, 1.2)):
        y = panel(items=300, judges=6, partial=partial, noise=0.0, seed=4)
        y += np.array([0.2, 0.2, 0.2, 1.0, 1.0, 1.0]) * rng.normal(size=y.shape)
        weight = rank(y, method="native").weights.weight
        ratio = weight.max() / weight.min()
        assert ratio > largest if partial == 0 else ratio < largest


def test_items_of_one_cluster_vary_together() -> None:
    y = np.repeat(panel(items=10, noise=0.3), 4, axis=1)
    scores = table(y)
    scores["document"] = [f"d{int(name.split()[1]) // 4}" for name in scores["sample_id"]]
    plain = trueup.rank(scores, by="model", item="sample_id", judges="fixed")
    clustered = trueup.rank(
        scores, by="model", item="sample_id", judges="fixed", cluster="document"
    )
    one, two = (difference(each, "big", "old")["std_error"] for each in (plain, clustered))
    assert two == pytest.approx(one * np.sqrt(4 * 39 / 36))
    scores["document"][0] = "another"
    with pytest.raises(trueup.AnswersError, match="cluster"):
        trueup.rank(scores, by="model", item="sample_id", cluster="document")


def test_items_of_one_cluster_alone_compare_nothing() -> None:
    scores = table(panel())
    scores["doc"] = ["a"] * len(scores["score"])
    found = trueup.rank(scores, by="model", item="sample_id", cluster="doc")
    assert "no two share two clusters of items" in str(found)
    gate = found.gate("old")
    assert gate.decision == "undecided"
    assert gate.said.endswith("fewer than two shared clusters of items.")


def test_components_of_a_known_panel() -> None:
    rng = np.random.default_rng(8)
    s, p, j = 6, 200, 12
    y = (
        1.0 * rng.normal(size=(1, p, 1)) + 0.5 * rng.normal(size=(s, p, 1)) + 0.7 * rng.normal(size=(1, 1, j))
        + 0.3 * rng.normal(size=(s, 1, j)) + 0.4 * rng.normal(size=(1, p, j)) + 0.6 * rng.normal(size=(s, p, j))
    )  # fmt: skip
    ranking = rank(y, "abcdef", method="mean")
    found = ranking.components.as_dict()
    wanted = {"items": 1.0, "items_by_systems": 0.25, "judges": 0.49, "judges_by_systems": 0.09}
    wanted |= {"judges_by_items": 0.16, "rest": 0.36, "runs": 0.0}
    for name, value in wanted.items():
        assert found[name] == pytest.approx(value, rel=0.45), name
    now = ranking.plan(items=200)
    assert now**2 == pytest.approx(
        2
        * (
            found["items_by_systems"] / 200 + found["judges_by_systems"] / 12 + found["rest"] / 2400
        ),
        rel=1e-6,
    )
    assert ranking.plan(items=2000) < now < ranking.plan(judges=6)
    ways = rows(ranking.plan(cost_item=1.0, cost_answer=0.01))
    assert ways["change"] == ["as it is", "twice the items", "one more judge"]
    assert ways["cost"] == pytest.approx([0.0, 200 * (1 + 0.01 * 72), 0.01 * 200 * 6])


def test_a_judge_who_favours_a_system_is_named() -> None:
    y = panel(items=80, judges=5, gaps=(0.0, 0.0, 0.0))
    y[1, :, 2] += 1.0
    ranking = rank(y)
    text = str(ranking)
    assert 'Judge "judge 2" favours new by' in text
    assert text.count("favours") == 1
    assert "marks down" not in text
    judges = rows(ranking.judges)
    out = [k for k, flag in enumerate(judges["stands_out"]) if flag]
    assert [(judges["judge"][k], judges["system"][k]) for k in out] == [("judge 2", "new")]
    assert "marks down new" in str(rank(-y))
    assert "favours" not in str(rank(panel(items=80, judges=5)))


# -- what cannot be known ----------------------------------------------------------------------------


def test_one_judge_is_only_this_judge() -> None:
    ranking = rank(panel(judges=1))
    assert set(rows(ranking.differences)["basis"]) == {"these judges"}
    assert "another one may say otherwise" in str(ranking)
    assert "with this judge" in str(ranking)
    assert np.isnan(ranking.components.judges_by_systems)
    assert np.isnan(ranking.plan(items=10))


def test_judges_who_never_score_the_same_item_say_nothing_about_others() -> None:
    y = panel(judges=2)
    y[:, ::2, 0] = y[:, 1::2, 1] = np.nan
    ranking = rank(y)
    assert set(rows(ranking.differences)["basis"]) == {"these judges"}
    assert "nothing is known about others" in str(ranking)


def test_systems_without_shared_items_cannot_be_compared() -> None:
    y = panel(gaps=(0.0, 5.0, 0.0))
    y[1, :15] = np.nan
    y[2, 15:] = np.nan
    ranking = rank(y)
    found = difference(ranking, "new", "big")
    assert found["verdict"] == "cannot be compared"
    for name in ("difference", "lower", "std_error", "p_value", "adjusted_p"):
        assert np.isnan(found[name])
    systems = rows(ranking.systems)
    assert dict(zip(systems["system"], systems["rank_low"], strict=True))["big"] == 1
    assert "1 pair of systems cannot be compared" in str(ranking)
    gate = ranking.gate("big", fail_if="worse")
    assert (gate.decision, gate.passed, gate.unknown) == ("undecided", False, ("new",))
    assert gate.candidates[1]["difference"] is None
    arrow = trueup.rank(FRAMES["pyarrow"][0](table(y)), by="model", item="sample_id")
    assert None in rows(arrow.differences)["p_value"]


def test_one_shared_item_is_not_enough() -> None:
    ranking = rank(panel(items=1), judges="fixed")
    found = rows(ranking.differences)
    assert set(found["verdict"]) == {"cannot be compared"}
    assert not np.isnan(found["difference"]).any()
    assert "No two systems can be compared" in str(ranking)
    assert {ranking.gate("old", fail_if=how).decision for how in ("worse", "not-better")} == {
        "undecided"
    }


def test_scores_without_variance() -> None:
    y = np.zeros((3, 5, 3))
    y[2] = 1.0
    ranking = rank(y)
    assert difference(ranking, "big", "old")["p_value"] == 0.0
    assert difference(ranking, "old", "new")["p_value"] == 1.0
    assert "big leads; old and new" in str(ranking)
    assert ranking.gate("big").decision == "failed"
    assert ranking.gate("old").decision == "passed"


def test_missing_scores_are_told() -> None:
    scores = table(panel())
    scores["score"][3] = None
    assert "1 of 360 rows dropped" in str(trueup.rank(scores, by="model", item="sample_id"))


def test_one_system() -> None:
    ranking = rank(panel(gaps=(0.0,)))
    assert rows(ranking.differences)["first"] == []
    assert "nothing to compare it with" in str(ranking)
    with pytest.raises(trueup.TrueupError, match="no other system"):
        ranking.gate("old")


def test_many_systems_are_compared_with_their_neighbours() -> None:
    names = [f"s{k}" for k in range(51)]
    ranking = rank(panel(items=5, judges=2, gaps=[0.1 * k for k in range(51)]), names)
    assert len(rows(ranking.differences)["first"]) == 50
    assert set(rows(ranking.systems)["rank_low"]) == {None}
    assert "only neighbours" in str(ranking)
    assert len(ranking.gate("s0").candidates) == 50


# -- the gate ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("baseline", "margin", "fail_if", "decision", "failing"),
    [
        ("old", 0.0, "worse", "passed", ()),
        ("old", 0.0, "not-better", "failed", ("new",)),
        ("big", 0.0, "worse", "failed", ("old", "new")),
        ("big", 0.95, "worse", "passed", ()),
        ("new", 0.5, "not-better", "failed", ("old",)),
    ],
)
def test_gate(
    baseline: str, margin: float, fail_if: str, decision: str, failing: tuple[str, ...]
) -> None:
    gate = rank(panel(gaps=(0.0, 0.0, 1.0))).gate(baseline, margin, fail_if)
    assert (gate.decision, gate.failing) == (decision, failing)
    assert str(gate).startswith(f"Gate {decision}: ")


def test_the_gate_tests_on_one_side_with_holm_over_candidates() -> None:
    y = panel(gaps=(0.0, 0.2, 0.3))
    gate = rank(y, method="mean", judges="fixed").gate("big", 0.05, "worse")
    p = []
    for s in (0, 1):
        d = (y[s] - y[2]).mean(axis=1)
        p.append(float(stdtr(29, (d.mean() + 0.05) / (d.std(ddof=1) / np.sqrt(30)))))
    low, high = sorted(p)
    adjusted = {low: min(2 * low, 1), high: min(max(high, 2 * low), 1)}
    found = [row["adjusted_p"] for row in gate.candidates]
    assert found == pytest.approx([adjusted[each] for each in p])


def test_the_gate_tests_at_half_of_one_minus_the_level() -> None:
    """A single candidate is worse with a one-sided p-value of .035: clear at a level of .9, not at .95."""
    off = np.arange(10.0) - 4.5
    error = off.std(ddof=1) / np.sqrt(10)
    y = np.zeros((2, 10, 2))
    y[1] = (off + stdtrit(9, 0.035) * error)[:, None]
    for level, decision in ((0.95, "passed"), (0.9, "failed")):
        gate = rank(y, ("a", "b"), method="mean", judges="fixed", level=level).gate("a")
        assert gate.candidates[0]["adjusted_p"] == pytest.approx(0.035)
        assert gate.decision == decision


def test_what_a_gate_does_not_take() -> None:
    ranking = rank(panel())
    for wrong, name in (({"margin": -1}, "margin"), ({"fail_if": "bad"}, "fail_if")):
        with pytest.raises(trueup.TrueupError, match=name):
            ranking.gate("old", **wrong)
    with pytest.raises(trueup.TrueupError, match="none of the systems"):
        ranking.gate("nobody")
    assert rank(panel(), (1, 2, 3)).gate("1").baseline == 1


# -- labels ------------------------------------------------------------------------------------------


def labels(y: np.ndarray, systems: Sequence[int], count: int = 10) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {"sample_id": [], "model": [], "truth": []}
    for s in systems:
        for p in range(count):
            columns["sample_id"].append(f"item {p}")
            columns["model"].append(SYSTEMS[s])
            columns["truth"].append(float(y[s, p].mean()))
    return columns


def test_labels_set_the_scale() -> None:
    y = panel(items=60)
    ranking = rank(y, gold=labels(y + 10, (0, 1, 2), 60))
    found = rows(ranking.systems)
    assert set(found["basis"]) == {"labels"}
    assert found["estimate"] == pytest.approx([y[s].mean() + 10 for s in (2, 1, 0)])
    few = rank(y, gold=labels(y + 10, (0, 1, 2), 12))
    assert rows(few.systems)["estimate"] == pytest.approx(
        [y[s].mean() + 10 for s in (2, 1, 0)], abs=0.5
    )
    assert "random sample" in str(few)
    assert "What the labels are worth" in str(few)
    assert "By the judges alone, a difference of two systems is known to" in str(few)


def test_labels_of_one_system_are_not_subtracted_from_scores_of_another() -> None:
    y = panel(items=60)
    ranking = rank(y, gold=labels(y + 10, (0, 1), 12))
    assert difference(ranking, "big", "old")["basis"] == "judges like these"
    assert difference(ranking, "big", "old")["difference"] == pytest.approx(1.0, abs=0.3)
    assert difference(ranking, "new", "old")["basis"] == "labels"
    assert rows(ranking.systems)["system"] == ["big", "new", "old"]
    text = str(ranking)
    assert "big has fewer than three labels" in text
    assert "2 pairs without three items labelled for both systems" in text


def test_labels_that_are_too_few_are_told() -> None:
    known = {(f"item {p}", system): 1.0 for p in (0, 1) for system in SYSTEMS}
    text = str(rank(panel(), gold=known))
    assert "6 labels for 3 systems: not used, since no system has three." in text
    assert "random sample" not in text


def test_judges_and_labels_that_disagree_about_the_order_are_told_first() -> None:
    y = panel(items=60, gaps=(0.0, 0.0, 1.0))
    people = y.copy()
    people[2] -= 3.0
    ranking = rank(y, gold=labels(people, (0, 1, 2), 20))
    assert str(ranking).startswith("Judges and labels disagree about the order of ")
    assert "disagree" not in str(rank(y, gold=labels(y, (0, 1, 2), 20)))


# -- forms of input ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FRAMES)
def test_tables_are_of_the_kind_of_the_scores(kind: str) -> None:
    make, result = FRAMES[kind]
    y = panel()
    ranking = trueup.rank(make(table(y)), by="model", item="sample_id")
    expected = rank(y)
    for name in ("systems", "differences", "judges"):
        frame = getattr(ranking, name)
        assert isinstance(frame, result)
        one, two = rows(frame), rows(getattr(expected, name))
        assert list(one) == list(two)
    assert isinstance(ranking.plan(), result)
    assert rows(ranking.systems)["system"] == ["big", "new", "old"]


def test_mappings_from_question_say_system_and_item() -> None:
    y = panel()
    scores = table(y)
    both = zip(scores["sample_id"], scores["model"], strict=True)
    plain = {"q": [f"{a}|{b}" for a, b in both], "judge": scores["judge"], "score": scores["score"]}
    system = {q: q.split("|")[1] for q in plain["q"]}
    item = {q: q.split("|")[0] for q in plain["q"]}
    ranking = trueup.rank(plain, by=system, item=item, question="q")
    assert rows(ranking.systems) == rows(rank(y).systems)
    named = {"question": plain["q"], **{name: plain[name] for name in ("judge", "score")}}
    nothing: dict[str, Any] = {"question": None}
    ranking = trueup.rank(named, by=system, item=item, **nothing)
    assert rows(ranking.systems) == rows(rank(y).systems)
    with_column = {**plain, "model": scores["model"]}
    ranking = trueup.rank(with_column, by="model", item=item, question="q")
    assert rows(ranking.systems) == rows(rank(y).systems)
    del system[plain["q"][0]]
    with pytest.raises(trueup.AnswersError, match="by: 1 question without one"):
        trueup.rank(plain, by=system, item=item, question="q")
    same = dict.fromkeys(item, "all")
    with pytest.raises(trueup.AnswersError, match="same system on the same item"):
        trueup.rank(plain, by=dict.fromkeys(item, "a"), item=same, question="q")


def test_a_column_per_judge() -> None:
    y = panel()
    wide: dict[str, list[Any]] = {"sample_id": [], "model": []} | {
        f"judge {i}": [] for i in range(4)
    }
    for s in range(3):
        for p in range(30):
            wide["sample_id"].append(f"item {p}")
            wide["model"].append(SYSTEMS[s])
            for i in range(4):
                wide[f"judge {i}"].append(float(y[s, p, i]))
    ranking = trueup.rank(wide, by="model", item="sample_id", wide=True)
    assert rows(ranking.systems)["estimate"] == pytest.approx(rows(rank(y).systems)["estimate"])


def test_order_of_rows_changes_nothing() -> None:
    scores = table(panel())
    order = np.random.default_rng(0).permutation(len(scores["score"]))
    mixed = {name: [values[k] for k in order] for name, values in scores.items()}
    one, two = (trueup.rank(each, by="model", item="sample_id") for each in (scores, mixed))
    assert rows(one.systems)["system"] == rows(two.systems)["system"]
    for name in ("difference", "std_error", "adjusted_p"):
        assert rows(one.differences)[name] == pytest.approx(rows(two.differences)[name])


def test_answers_that_were_read_before() -> None:
    y = panel()
    answers = trueup.Answers.of(table(y), question=["sample_id", "model"])
    ranking = trueup.rank(answers, by="model", item="sample_id")
    assert rows(ranking.systems) == rows(rank(y).systems)
    with pytest.raises(trueup.AnswersError, match='by="model"'):
        trueup.rank(answers, by="modle", item="sample_id")


@pytest.mark.parametrize("factor", [1e-50, 1e50])
def test_any_unit(factor: float) -> None:
    y = panel(partial=0.2)
    one, two = rank(y, method="mean"), rank(factor * y, method="mean")
    assert rows(two.differences)["p_value"] == pytest.approx(rows(one.differences)["p_value"])
    assert str(two)
    with pytest.raises(trueup.AnswersError, match="another unit"):
        rank(factor**2 * y)


HOSTILE = ("<script>alert(1)</script>", "=1+1", "two\nlines \x1b[31m")


def test_hostile_names_are_data() -> None:
    y = panel()
    ranking = rank(y, HOSTILE)
    text = str(ranking)
    assert "\x1b" not in text
    assert "two\nlines" not in text
    assert "<script>" not in ranking._repr_html_()
    assert set(rows(ranking.systems)["system"]) == set(HOSTILE)
    gate = ranking.gate(HOSTILE[2], fail_if="not-better")
    assert "\n" not in str(gate)
    scores = table(y)
    renamed = {
        "system": scores["model"],
        "first": scores["sample_id"],
        "stands_out": scores["judge"],
        "score": scores["score"],
    }
    odd = trueup.rank(renamed, by="system", item="first", worker="stands_out")
    assert rows(odd.judges)["system"][:3] == ["big", "new", "old"]
    assert rows(odd.judges)["worker"][0] == "judge 0"


def test_pseudonyms() -> None:
    ranking = rank(panel(), anonymous=True)
    assert "judge 1" not in str(rows(ranking.judges))
    assert set(rows(ranking.judges)["judge"]) == {f"worker {k}" for k in range(1, 5)}


def test_keywords_of_the_second_step_are_not_known() -> None:
    options: dict[str, Any] = {"shrink": "none"}
    with pytest.raises(TypeError, match="shrink"):
        trueup.rank(table(panel()), by="model", item="sample_id", **options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"by": "modle"}, 'Did you mean by="model"'),
        ({"item": "sample"}, 'item="sample_id"'),
        ({"by": None}, "by: found None"),
        ({"by": "sample_id"}, "own column"),
        ({"by": {}, "item": {}, "question": 5}, "Column 5: not found"),
        ({"by": {}, "item": {}, "question": 5, "run": "model"}, "Column 5: not found"),
        ({"by": {}, "item": {}, "question": []}, "question: found no column"),
        ({"by": np.arange(3.0), "item": None, "question": "sample_id"}, "duplicates: "),
        ({"by": {}, "item": {}, "question": np.arange(3.0), "run": "model"}, "not found"),
        (
            {"by": np.arange(3.0), "item": None, "question": ["sample_id", "model"]},
            "found 2 columns",
        ),
        ({"run": "nothing"}, "not found"),
        ({"run": True}, "run: found True"),
        ({"run": ["run", "epoch"]}, "run: found"),
        ({"judges": "all"}, "judges"),
        ({"higher_is_better": 1}, "higher_is_better"),
        ({"level": 2}, "level"),
        ({"method": "nothing"}, "method"),
        ({"gold": {"a": 1.0}}, "gold"),
        ({"cluster": "nothing"}, "cluster"),
        ({"duplicates": "often"}, "duplicates"),
    ],
)
def test_what_cannot_be_used(options: dict[str, Any], said: str) -> None:
    with pytest.raises(trueup.TrueupError, match=said):
        trueup.rank(table(panel()), **{"by": "model", "item": "sample_id", **options})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"by": "system", "item": "sample_id"}, 'Did you mean by="model"?'),
        ({"by": "system", "item": "item"}, 'Did you mean item="sample_id", by="model"?'),
        ({"by": "model"}, 'Did you mean item="sample_id"?'),
        ({"by": "model", "item": "sample_id,epoch"}, 'Column "epoch": not found'),
        ({"by": "model", "item": "sample_id", "worker": "jugde"}, 'Did you mean worker="judge"?'),
        ({"by": "modle", "item": "sample_id", "worker": "jugde"}, 'by="model", worker="judge"?'),
        ({"by": "arm"}, 'item="sample_id"? Name the column that holds it: by='),
    ],
)
def test_columns_that_may_be_meant(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    path = tmp_path / "scores.json"
    columns = table(panel(items=3))
    lines = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if options["by"] == "arm":
        lines = [{"length": each.pop("model"), **each} for each in lines]
    path.write_text(json.dumps(lines))
    with pytest.raises(trueup.TrueupError) as error:
        trueup.rank(path, **options)
    assert said in str(error.value)


def test_runs_are_recognised_and_advised() -> None:
    y = panel(items=6)
    scores = table(y)
    twice = {name: values * 2 for name, values in scores.items()}
    twice["epoch"] = [1] * len(scores["score"]) + [2] * len(scores["score"])
    with pytest.raises(trueup.AnswersError, match='Pass run="epoch" to average them') as error:
        trueup.rank(twice, by="model", item="sample_id")
    (fix,) = error.value.fixes
    assert trueup.rank(twice, by="model", item="sample_id", **fix).standings.runs == 2


def test_several_columns_may_name_an_item() -> None:
    """What is graded by several metrics has an item for each of them; documents keep them together."""
    y = panel(items=20)
    scores = table(y)
    numbers = [int(name.split()[1]) for name in scores.pop("sample_id")]
    scores |= {
        "doc": [p // 2 for p in numbers],
        "metric": ["tone" if p % 2 else "facts" for p in numbers],
    }
    with pytest.raises(
        trueup.AnswersError, match=r"Pass item=\['doc', 'metric'\] if each"
    ) as error:
        trueup.rank(scores, by="model", item="doc")
    assert 'where="metric=..."' in str(error.value)
    expected = rank(y)
    for item in (["doc", "metric"], ("metric", "doc"), "doc, metric"):
        found = trueup.rank(scores, by="model", item=item)
        assert found.standings.scores.n_items == 20
        assert difference(found, "big", "old") == pytest.approx(difference(expected, "big", "old"))
    together = trueup.rank(scores, by="model", item=["doc", "metric"], cluster="doc")
    assert together.standings.difference(0, 1).judged.units == 10
    one = trueup.rank(scores, by="model", item="doc", where="metric=tone")
    assert one.standings.scores.n_items == 10
    with pytest.raises(trueup.TrueupError, match="item: found 2 columns"):
        trueup.rank(scores, by={1: "old"}, item=["doc", "metric"])


def test_more_never_makes_an_interval_wider() -> None:
    """Fewer degrees of freedom can outweigh a smaller variance, by which nobody would plan."""
    for seed in range(20):
        now, *others = rank(panel(items=25, partial=0.6, judges=3, seed=seed)).improvements()
        for way in others:
            assert way.std_error <= now.std_error
            assert way.half_width <= now.half_width
