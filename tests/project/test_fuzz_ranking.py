"""Any scores, keywords, plans and gates of `rank`: sound tables, or one line that says why not."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trueup
from fuzz_strategies import (
    ANSWERS,
    COVERED,
    FRAMES,
    METHODS,
    RIGHT,
    WRONG,
    attempt,
    close,
    examples,
    frame_of,
    keywords,
    write_covered,
)
from trueup._rank import JUDGES, RANKED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trueup.ranking.ranking import Ranking

for needed in ("pandas", "polars", "pyarrow", "duckdb"):
    pytest.importorskip(needed, reason="needs the test dependencies")


@pytest.fixture(scope="module", autouse=True)
def count_what_was_covered() -> Iterator[None]:
    yield
    write_covered()


# -- scores ----------------------------------------------------------------------------------------


@st.composite
def scores(draw: st.DrawFn, *, tame: bool = False) -> dict[str, list[Any]]:
    """Columns of scores with items, systems, judges, runs, clusters and labels; with holes, and few or many ties."""
    items, systems, judges = (draw(st.integers(1, most)) for most in (8, 4, 4))
    runs = draw(st.sampled_from([1, 1, 2]))
    kinds = ("plain", "tied", "ordinary") if tame else tuple(ANSWERS)
    answer = ANSWERS[draw(st.sampled_from(("plain", "tied", "ordinary", *kinds)))]
    cells = [
        (p, s, i, r)
        for p in range(items)
        for s in range(systems)
        for i in range(judges)
        for r in range(runs)
    ]
    holes = draw(st.lists(st.sampled_from(cells), max_size=len(cells) // 2, unique=True))
    cells = [cell for cell in cells if cell not in holes] or cells[:1]
    values = draw(st.lists(answer, min_size=len(cells), max_size=len(cells)))
    cluster = draw(st.lists(st.sampled_from("abc"), min_size=items, max_size=items))
    label = {
        (p, s): draw(st.one_of(st.none(), st.floats(-50, 50)))
        for p in range(items)
        for s in range(systems)
    }
    return {
        "item": [f"item {p}" for p, *_ in cells],
        "model": [f"system {s}" for _, s, *_ in cells],
        "judge": [f"judge {i}" for *_, i, _ in cells],
        "run": [r for *_, r in cells],
        "document": [cluster[p] for p, *_ in cells],
        "human": [label[p, s] for p, s, *_ in cells],
        "score": values,
    }


OF_RANK: dict[str, st.SearchStrategy[Any]] = {
    "by": st.just("model"),
    "item": st.sampled_from(["item", None]),
    "run": st.just("run"),
    "gold": st.sampled_from(["human", "human", "item"]),
    "cluster": st.sampled_from(["document", "document", "judge"]),
    "method": st.sampled_from([each for each in METHODS if each != "blue"]),
    "judges": st.sampled_from(JUDGES),
    "higher_is_better": st.booleans(),
    "progress": st.booleans(),
}


@st.composite
def asked(draw: st.DrawFn) -> dict[str, Any]:
    """Draw keywords of `rank`, most of them with values that they take."""
    often = {name: st.one_of(right, right, right, right, WRONG) for name, right in OF_RANK.items()}
    columns = {"by": "model", "item": "item", "worker": "judge", "answer": "score"}
    if draw(st.booleans()):
        columns |= {"run": "run"}
    return {
        **columns,
        **draw(st.fixed_dictionaries({}, optional=often)),
        **draw(keywords(tuple(each for each in RANKED if each in RIGHT), most=2)),
    }


# -- what must hold --------------------------------------------------------------------------------


def in_order(lower: Any, middle: Any, upper: Any) -> None:
    """Check the ends of intervals: unknown both, or around the middle."""
    low, value, high = (np.asarray(each, dtype=float) for each in (lower, middle, upper))
    unknown = np.isnan(low)
    np.testing.assert_array_equal(unknown, np.isnan(high))
    assert not np.isinf(low).any()
    assert not np.isinf(high).any()
    assert (unknown | (low <= value)).all(), (low, value)
    assert (unknown | (value <= high)).all(), (value, high)


def shares(p: Any) -> None:
    """Check probabilities, of which some may be unknown."""
    values = np.asarray(p, dtype=float)
    assert (np.isnan(values) | ((values >= 0) & (values <= 1))).all(), values


def sound_ranking(ranking: Ranking) -> None:
    """Check all tables of a ranking."""
    systems, pairs, judges = (
        ranking.system_columns,
        ranking.difference_columns,
        ranking.judge_columns,
    )
    count = len(systems["estimate"])
    in_order(systems["lower"], systems["estimate"], systems["upper"])
    low, high = (np.asarray(systems[name]) for name in ("rank_low", "rank_high"))
    assert ((low >= 1) & (low <= high) & (high <= count)).all(), (low, high)
    in_order(pairs["lower"], pairs["difference"], pairs["upper"])
    p, adjusted = (np.asarray(pairs[name]) for name in ("p_value", "adjusted_p"))
    shares(p)
    np.testing.assert_array_equal(np.isnan(p), np.isnan(adjusted))
    assert (np.isnan(p) | ((adjusted >= p) & (adjusted <= 1))).all()
    for columns in (systems, pairs):
        error = np.asarray(columns["std_error"], dtype=float)
        assert not np.isinf(error).any()
        assert (np.isnan(error) | (error >= 0)).all()
    weight = np.asarray(judges["weight"])
    assert np.isfinite(weight).all()
    assert (weight >= 0).all()
    shares(judges["adjusted_p"])
    for name in ("variance", "bias", "favours", "favours_std_error"):
        assert not np.isinf(np.asarray(judges[name], dtype=float)).any(), name
    for name, value in ranking.components.as_dict().items():
        assert math.isnan(value) or (math.isfinite(value) and value >= 0), (name, value)
    for table in (ranking.systems, ranking.differences, ranking.judges):
        assert table is not None
    assert len(str(ranking)) > 0
    assert "<table" in ranking._repr_html_()


def ranked(data: Any, **how: Any) -> Ranking | None:
    found: Ranking | None = attempt("rank", lambda: trueup.rank(data, **how))
    if found is not None:
        attempt("rank: tables", lambda: sound_ranking(found))
    return found


# -- any scores and keywords -----------------------------------------------------------------------


@examples(60)
@given(columns=scores(), how=asked(), kind=st.sampled_from(FRAMES))
def test_any_scores_and_keywords(
    columns: dict[str, list[Any]], how: dict[str, Any], kind: str
) -> None:
    found = ranked(frame_of(kind, columns), **how)
    if found is not None:
        COVERED[f"rank by {how.get('method', 'auto')}"] += 1


PLAN = ("items", "judges", "runs", "cost_item", "cost_answer")
NUMBER = st.one_of(st.integers(1, 9), st.floats(0, 1e6), st.floats(), WRONG)


@examples(40)
@given(
    columns=scores(tame=True),
    fixed=st.booleans(),
    labelled=st.booleans(),
    data=st.data(),
    design=st.fixed_dictionaries({}, optional=dict.fromkeys(PLAN, NUMBER)),
)
def test_any_gate_plan_and_report(
    columns: dict[str, list[Any]],
    fixed: bool,
    labelled: bool,
    data: st.DataObject,
    design: dict[str, Any],
) -> None:
    how: dict[str, Any] = {"gold": "human"} if labelled else {}
    found = ranked(
        columns,
        by="model",
        item="item",
        run="run",
        worker="judge",
        answer="score",
        judges="fixed" if fixed else "sample",
        **how,
    )
    if found is None:
        return
    baseline = data.draw(st.one_of(st.sampled_from(found.system_names), WRONG), label="baseline")
    margin = data.draw(st.one_of(st.just(0.0), st.floats(0, 9), st.floats(), WRONG), label="margin")
    fail_if: Any = data.draw(
        st.sampled_from(["worse", "not-better", "worse", "x", None]), label="fail"
    )
    gate = attempt("gate", lambda: found.gate(baseline, margin, fail_if))
    if gate is not None:
        assert gate.decision in ("passed", "failed", "undecided")
        assert gate.passed == (not gate.failing and not gate.unknown)
        assert "\n" not in str(gate)
    plan = attempt("plan", lambda: found.plan(**design))
    if isinstance(plan, float):
        assert math.isnan(plan) or (math.isfinite(plan) and plan >= 0), plan
    if data.draw(st.integers(0, 3), label="report") == 0:
        with tempfile.TemporaryDirectory() as folder:
            page = attempt("report a ranking", lambda: found.report(Path(folder, "rank.html")))
            assert page is not None
            assert "</html>" in page.read_text("utf-8")
        assert attempt("plot a ranking", found.plot) is not None


# -- invariances -----------------------------------------------------------------------------------


def differences(ranking: Ranking) -> dict[tuple[str, str], float]:
    """Return the differences of all pairs, in both directions."""
    columns = ranking.difference_columns
    first, second = (columns[name].tolist() for name in ("first", "second"))
    values = columns["difference"].tolist()
    one = dict(zip(zip(first, second, strict=True), values, strict=True))
    return one | {(b, a): -value for (a, b), value in one.items()}


@examples(25)
@given(
    columns=scores(tame=True),
    method=st.sampled_from(["mean", "median", "gtm", "native", "auto"]),
    shuffle=st.randoms(use_true_random=False),
    scale=st.sampled_from([0.25, 1024.0, -1.0]),
)
def test_order_of_rows_and_units_change_no_difference(
    columns: dict[str, list[Any]], method: str, shuffle: Any, scale: float
) -> None:
    order = list(range(len(columns["score"])))
    shuffle.shuffle(order)
    mixed = {name: [column[i] for i in order] for name, column in columns.items()}
    scaled = {**columns, "score": [scale * each for each in columns["score"]]}
    how: dict[str, Any] = {"by": "model", "item": "item", "run": "run", "worker": "judge"}
    how |= {"answer": "score", "method": method}
    first, second, third = (ranked(each, **how) for each in (columns, mixed, scaled))
    assert (first is None) == (second is None) == (third is None)
    if first is None or second is None or third is None:
        return
    size = max(abs(each) for each in columns["score"])
    left, right, other = differences(first), differences(second), differences(third)
    for pair, value in left.items():
        close(right[pair], value, size)
        close(other[pair], scale * value, abs(scale) * size)
