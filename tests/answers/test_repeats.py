"""Repeated answers: runs are averaged, but not what another column tells apart."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

import trueup
from trueup.answers.answers import Answers
from trueup.cli.wording import as_options
from trueup.errors import AnswersError

ITEMS, JUDGES = ("i1", "i2", "i3", "i4"), ("ann", "bob")


def table(**more: list[Any]) -> dict[str, list[Any]]:
    """All items by all judges, once for each combination of other values."""
    rows = list(product(ITEMS, JUDGES, *more.values()))
    columns = [list(column) for column in zip(*rows, strict=True)]
    named = dict(zip(("question", "worker", *more), columns, strict=True))
    return {**named, "answer": [float(at % 7) for at in range(len(rows))]}


def error_of(rows: dict[str, list[Any]], **options: Any) -> AnswersError:
    with pytest.raises(AnswersError) as caught:
        Answers.of(rows, **options)
    return caught.value


@pytest.mark.parametrize("rule", ["error", "mean"])
def test_models_are_not_merged(rule: str) -> None:
    error = error_of(table(model=["a", "b", "c"]), duplicates=rule)
    assert '16 answers repeat a worker on the same question, first worker "ann"' in str(error)
    assert 'They differ in column "model"' in str(error)
    assert "--question question,model" in as_options(error.message)
    assert error.fixes[-1] == {"duplicates": "mean-all"}
    merged = Answers.of(table(model=["a", "b", "c"]), duplicates="mean-all")
    assert (merged.n_answers, merged.n_duplicates) == (8, 16)


def test_two_columns_together() -> None:
    error = error_of(table(model=["a", "b"], aspect=["x", "y"]), duplicates="mean")
    assert 'differ in columns "model", "aspect"' in str(error)


def test_runs_are_merged() -> None:
    for name in ("run", "epoch", "Repeat", "trial_id", "seed"):
        rows = table(**{name: [1, 2, 3]})
        assert Answers.of(rows, duplicates="mean").n_answers == 8
        assert f'differ in column "{name}", which seems to number runs' in str(error_of(rows))
    assert 'column "model"' in str(error_of(table(run=[1, 2], model=["a", "b"]), duplicates="mean"))


@pytest.mark.parametrize(
    "values",
    [[f"2024-05-01 10:00:{i:02}" for i in range(24)], list(range(24)), ["same"] * 24],
    ids=["timestamps", "many", "one"],
)
def test_other_columns_stop_nothing(values: list[Any]) -> None:
    rows = {**table(take=[1, 2, 3]), "note": values}
    del rows["take"]
    assert Answers.of(rows, duplicates="mean").n_answers == 8
    error = error_of(rows)
    assert "note" not in str(error)
    assert error.fixes == ({"duplicates": "mean"},)


def test_a_single_repeat_that_differs_by_chance_is_merged() -> None:
    rows = table(confidence=[1])
    rows["confidence"] = [1, 2, 3, 1, 2, 3, 1, 2]
    for name, value in (("question", "i1"), ("worker", "ann"), ("answer", 5.0), ("confidence", 3)):
        rows[name].append(value)
    assert trueup.estimate(rows, duplicates="mean").problem.n_duplicates == 1
