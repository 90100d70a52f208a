"""A question may be several columns together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

import trueup
from frames_by_library import FRAMES, rows
from trueup.errors import AnswersError, TrueupError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LONG: dict[str, list[Any]] = {
    "sample_id": [1, 1, 2, 2, 1, 1, 2, 2],
    "model": ["m", "m", "m", "m", "n", "n", "n", "n"],
    "judge": ["x", "y", "x", "y", "x", "y", "x", "y"],
    "score": [1.0, 2.0, 4.0, 5.0, 7.0, 8.0, 2.0, 3.0],
    "kind": ["k", "k", "l", "l", "k", "k", "l", "l"],
}
KEYS = ["sample_id", "model"]
MEANS = [1.5, 4.5, 7.5, 2.5]


def csv_of(columns: dict[str, list[Any]]) -> str:
    lines = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    return "\n".join([",".join(columns), *lines]) + "\n"


@pytest.mark.parametrize("library", FRAMES)
@pytest.mark.parametrize("question", [KEYS, tuple(KEYS), "sample_id,model", "sample_id, model"])
def test_several_columns_name_a_question(library: str, question: Any) -> None:
    est = trueup.estimate(FRAMES[library][0](LONG), "mean", "none", question=question)
    found = rows(est.questions)
    assert [*found][:2] == KEYS
    by_key = dict(
        zip(zip(found["sample_id"], found["model"], strict=True), found["estimate"], strict=True)
    )
    assert by_key == {(1, "m"): 1.5, (2, "m"): 4.5, (1, "n"): 7.5, (2, "n"): 2.5}


def test_a_column_with_a_comma_in_its_name_is_one_column() -> None:
    columns = {**LONG, "sample_id,model": ["a"] * 8}
    est = trueup.estimate(columns, question="sample_id,model", duplicates="mean-all")
    assert rows(est.questions)["sample_id,model"] == ["a"]


def test_what_is_known_of_questions_goes_by_the_same_columns(
    written: Callable[..., Path],
) -> None:
    truth: dict[str, list[Any]] = {"sample_id": [1, 2], "model": ["m", "n"], "truth": [1.0, 3.0]}
    as_mapping = {(1, "m"): 1.0, (2, "n"): 3.0}
    series = pd.DataFrame(truth).set_index(KEYS)["truth"]
    answers, gold = written(csv_of(LONG), "a.csv"), written(csv_of(truth), "gold.csv")
    for source in (LONG, answers):
        for known in (
            truth,
            pd.DataFrame(truth),
            pd.DataFrame(truth).set_index(KEYS),
            as_mapping,
            series,
            gold,
        ):
            est = trueup.estimate(source, question=KEYS, gold=known)
            assert est.question_data.gold is not None
            assert est.question_data.gold[[0, 3]].tolist() == [1.0, 3.0]
        groups = trueup.estimate(source, question=KEYS, groups="kind").groups
        assert groups is not None
        assert groups.codes.tolist() == [0, 1, 0, 1]
    with pytest.raises(AnswersError, match='Column "model": not found'):
        trueup.estimate(LONG, question=KEYS, gold={"sample_id": [1], "truth": [1.0]})


def test_states_reports_and_calls_know_several_columns(
    tmp_path: Path, written: Callable[..., Path]
) -> None:
    path = written(csv_of(LONG))
    est = trueup.estimate(path, "mean", "none", question=KEYS)
    loaded = trueup.load(est.save(tmp_path / "s.trueup"))
    assert rows(loaded.questions) == rows(est.questions)
    assert loaded.request.read.question == KEYS
    assert "question=['sample_id', 'model']" in str(est.request.as_call())
    assert "--question sample_id,model" in str(est.request.as_command())
    new = {"sample_id": [1, 3], "model": ["m", "m"], "judge": ["z", "z"], "score": [3.0, 9.0]}
    after = trueup.update(tmp_path / "s.trueup", new)
    found = rows(after.questions)
    assert found["sample_id"] == [1, 2, 1, 2, 3]
    assert found["model"] == ["m", "m", "n", "n", "m"]
    assert found["estimate"] == [2.0, *MEANS[1:], 9.0]
    with pytest.raises(TrueupError, match="Give ids of the same type"):
        trueup.update(after, {**new, "sample_id": ["1", "3"]})
    assert "1, m" in str(est)
    report = est.report(tmp_path / "r.html").read_text("utf-8")
    assert "1, m" in report
    assert "sample_id, model" in est._repr_html_()


def test_columns_that_are_not_there_are_named() -> None:
    with pytest.raises(AnswersError, match='Column "modle": not found') as caught:
        trueup.estimate(LONG, question=["sample_id", "modle"])
    assert "question=['sample_id', 'model']" in str(caught.value)
    with pytest.raises(AnswersError, match="found no column") as caught:
        trueup.estimate(LONG, question=[])
    assert caught.value.argument == "question"
    with pytest.raises(AnswersError, match="asked for as question and as question"):
        trueup.estimate(LONG, question=["model", "model"])


def test_a_wide_table_may_have_several_columns_of_ids() -> None:
    wide = {"sample": ["a", "a", "b"], "model": ["m", "n", "m"], "x": [1, 2, 3], "y": [3, 4, None]}
    est = trueup.estimate(wide, "mean", "none", question=["sample", "model"], wide=True)
    assert rows(est.questions)["model"] == ["m", "n", "m"]
    assert est.estimate.tolist() == [2.0, 3.0, 3.0]
