"""What `save` writes `load` reads, always: any valid answers, methods, rules, known data and ids."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trueup
from fuzz_strategies import (
    COVERED,
    METHODS,
    RIGHT,
    RULES,
    VARIANCES,
    attempt,
    examples,
    frame_of,
    matrices,
    sound,
    tables,
    write_covered,
)
from trueup.errors import TrueupError
from trueup.pipeline.solution import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trueup import Estimate

for needed in ("pandas", "polars", "pyarrow", "duckdb"):
    pytest.importorskip(needed, reason="needs the test dependencies")


@pytest.fixture(scope="module", autouse=True)
def count_what_was_covered() -> Iterator[None]:
    yield
    write_covered()


#: Keywords of an estimate, beside method and rules.
FURTHER = (
    "target", "kind", "transform", "bias", "caution", "level", "max_iter", "tol", "seed", "gold", "groups",
    "worker_variance", "duplicates",
)  # fmt: skip
PLANS = st.fixed_dictionaries(
    {"method": st.sampled_from(METHODS), "shrink": st.sampled_from(RULES)},
    optional={
        "variance": st.sampled_from(VARIANCES) | st.floats(1e-3, 10),
        **{name: RIGHT[name] for name in FURTHER},
    },
)


def same(again: Estimate, est: Estimate) -> None:
    """Check that two estimates have the same numbers, ids, tables and words."""
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(again, name), getattr(est, name), err_msg=name)
    for name, column in est.worker_columns.items():
        if name != "worker":
            np.testing.assert_array_equal(again.worker_columns[name], column, err_msg=name)
    for ids in ("question_ids", "worker_ids"):
        left, right = (getattr(each.answers, ids).tolist() for each in (again, est))
        # As text, so that NaN equals itself and 1 differs from 1.0.
        assert list(map(repr, left)) == list(map(repr, right))
    assert again.diagnosis == est.diagnosis
    assert str(again) == str(est)
    assert set(again.request.given) == set(est.request.given) - {"threads"}


def there_and_back(est: Estimate) -> Estimate:
    """Save and load an estimate, twice."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "state.trueup")
        saved = attempt("save", lambda: est.save(path))
        assert saved is not None
        again = attempt("load", lambda: trueup.load(path))
        assert again is not None, "what was saved could not be loaded"
        same(again, est)
        sound(again)
        again.save(path)
        same(trueup.load(path), est)
    return again


@examples(60)
@given(x=matrices(), how=PLANS, columns=st.booleans(), data=st.data())
def test_arrays_come_back(x: Any, how: dict[str, Any], columns: bool, data: st.DataObject) -> None:
    if columns:
        numbers = st.lists(st.floats(-5, 5), min_size=2 * x.shape[1], max_size=2 * x.shape[1])
        how = {**how, "covariates": np.array(data.draw(numbers)).reshape(x.shape[1], 2)}
    if data.draw(st.integers(0, 3)) == 0:
        how = {**how, "answer_variance": np.full(x.shape, data.draw(st.floats(0.1, 9)))}
    est = attempt("estimate to save", lambda: trueup.estimate(x, **how))
    if est is not None:
        COVERED[f"saved {est.diagnosis.method}, {how['shrink']}"] += 1
        there_and_back(est)


@examples(40)
@given(
    columns=tables(),
    kind=st.sampled_from(["dict", "pandas", "polars", "pyarrow"]),
    method=st.sampled_from(["mean", "auto", "native", "gtm"]),
)
def test_ids_of_any_type_come_back_or_are_refused(
    columns: dict[str, list[Any]], kind: str, method: str
) -> None:
    frame = frame_of(kind, columns)
    est = attempt("estimate to save", lambda: trueup.estimate(frame, method))
    if est is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = attempt("save any ids", lambda: est.save(Path(folder, "state.trueup")))
        if path is None:
            assert list(Path(folder).iterdir()) == []
        else:
            same(trueup.load(path), est)


@examples(25)
@given(columns=tables(tame=True), parts=st.integers(2, 3), how=PLANS)
def test_composite_ids_and_known_columns_come_back(
    columns: dict[str, list[Any]], parts: int, how: dict[str, Any]
) -> None:
    questions = columns["question"]
    known = {each: number / 3 for number, each in enumerate(dict.fromkeys(questions))}
    table = {
        **columns,
        **{f"part {k}": [f"{k}{str(each)[:k]}" for each in questions] for k in range(parts)},
        "truth": [known[each] for each in questions],
        "topic": [f"t{len(str(each)) % 2}" for each in questions],
    }
    names = ["question", *(f"part {k}" for k in range(parts))]
    how = {**how, "question": names, "gold": "truth", "groups": "topic", "duplicates": "mean"}
    how.pop("worker_variance", None)
    est = attempt("estimate to save", lambda: trueup.estimate(table, **how))
    if est is not None:
        there_and_back(est)


@examples(15)
@given(columns=tables(tame=True))
def test_workers_with_pseudonyms_are_refused(columns: dict[str, list[Any]]) -> None:
    est = attempt("estimate to save", lambda: trueup.estimate(columns, "mean", anonymous=True))
    if est is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        with pytest.raises(TrueupError, match="anonymous"):
            est.save(Path(folder, "state.trueup"))
        assert list(Path(folder).iterdir()) == []


@examples(15)
@given(x=matrices(), other=matrices(), how=PLANS)
def test_panels_are_refused_and_each_of_them_comes_back(
    x: Any, other: Any, how: dict[str, Any]
) -> None:
    shape = np.minimum(x.shape, other.shape)
    both = np.stack([each[: shape[0], : shape[1]] for each in (x, other)])
    for name in ("gold", "groups", "worker_variance"):
        how.pop(name, None)
    est = attempt("estimate to save", lambda: trueup.estimate(both, **how))
    if est is None:
        return
    sound(est)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "state.trueup")
        if est.answers.n_panels > 1:
            assert attempt("save panels", lambda: est.save(path)) is None
        one = attempt("estimate to save", lambda: trueup.estimate(est.answers.panel(0), **how))
    if one is not None:
        there_and_back(one)
