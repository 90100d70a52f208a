"""A table is read as wide only where it cannot be long; where both are possible an error shows both."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import trueup
from frames_by_library import FRAMES, rows
from input_files import message_of, rows_of
from trueup.errors import AnswersError, Mention, TrueupWarning
from trueup.io.readers.files import read_file
from trueup.io.readers.frames import read_frame

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PLAYERS = {"player": [1, 1, 2, 2], "scout": [1, 2, 1, 2], "mark": [3, 4, 5, 6]}
FILMS = {"film": ["a", "b", "c"], "ann": [1, 2, None], "bob": [2, 2, None], "cyd": [3, 5, None]}


def as_text(columns: dict[str, Any]) -> str:
    cells = [["" if value is None else str(value) for value in each] for each in columns.values()]
    lines = [",".join(row) for row in [tuple(columns), *zip(*cells, strict=True)]]
    return "\n".join(lines) + "\n"


def ways(error: AnswersError) -> list[dict[str, Any]]:
    """Return both ways to read a table that an error offers."""
    found: list[dict[str, Any]] = [{}]
    for part in error.message.parts:
        if isinstance(part, Mention):
            found[-1][part.name] = part.value
        elif ", or that " in part:
            found.append({})
    return found


@pytest.mark.parametrize(
    "columns",
    [
        PLAYERS,
        {**PLAYERS, "player": [1, 2, 3, 4]},
        {**PLAYERS, "player": [11, 25, 17, 4]},
        {**PLAYERS, "round": [1, 1, 1, 2]},
        {"": [0, 1, 2, 3], **PLAYERS},
        {"id": [0, 1, 2, 3], **PLAYERS},
        {"player": ["u", "v", "w"], "scout": [1, 2, 3], "mark": [4, 5, 5]},
        {"question": ["u", "v", "w"], "scout": [1, 2, 3], "mark": [4, 5, 5]},
        {"a": [5, 2, 4], "b": [1, 2, 3], "c": [2, 2, 1], "d": [3, 3, 3]},
    ],
)
def test_a_table_that_may_be_long_or_wide_is_an_error_that_shows_both(
    columns: dict[str, Any], written: Callable[..., Path]
) -> None:
    path = written(as_text(columns))
    for read in (partial(read_file, path), partial(read_frame, columns)):
        with pytest.raises(AnswersError, match="may be one answer or all answers") as caught:
            read()
        text = str(caught.value)
        assert "The first row says either that worker " in text
        long, wide = ways(caught.value)
        assert {"worker", "answer"} <= long.keys() <= {"question", "worker", "answer"}
        assert len(read(**long).answer) == len(next(iter(columns.values())))
        assert wide["wide"] is True
        assert len(read(**wide).answer) > len(next(iter(columns.values())))


def test_the_error_shows_a_row_of_the_table(written: Callable[..., Path]) -> None:
    assert message_of(written(as_text(PLAYERS))) == (
        'File "answers.csv": a row may be one answer or all answers to a question. The first row says either that '
        'worker 1 answered 3 to question 1 (pass question="player", worker="scout", answer="mark"), or that '
        'question 0 was answered 1 by worker "player", 1 by worker "scout", 3 by worker "mark" (pass wide=True).'
    )


@pytest.mark.parametrize(
    ("columns", "ids"),
    [
        (FILMS, ["a", "b"]),
        (
            {"nummer": [101, 205, 102], "a": [1, 2, 3], "b": [1, 3, 3], "c": [2, 2, 4]},
            [101, 205, 102],
        ),
        ({"item": ["a", "b"], "x": [1.5, 2], "y": [2, 3]}, ["a", "b"]),
        ({"item": ["a", "b"], "rater 1": [1, 2], "rater 2": [2, 3]}, ["a", "b"]),
        ({"item": ["a", "b"], "ann": [1, 2], "bob": [2, 3]}, ["a", "b"]),
        ({"case": ["a", "b"], "x@u.org": [1, 2], "y@u.org": [2, 3]}, ["a", "b"]),
        ({"nr": [1, 2], "w1": [1, 2], "w2": [2, 3]}, [1, 2]),
        (
            {"movie": [*range(3, 33, 3)], **{f"critic {c}": [1, 2, 3, 4, 5] * 2 for c in "abc"}},
            [*range(3, 33, 3)],
        ),
        ({"date": ["2024-01-05", "2024-01-06"], "a": [1, 2], "b": [1, 3], "c": [2, 2]}, None),
    ],
)
def test_wide_tables_with_ids_in_the_first_column(
    columns: dict[str, Any], ids: list[Any] | None, written: Callable[..., Path]
) -> None:
    name = next(iter(columns))
    for make in [FRAMES[library][0] for library in FRAMES]:
        table = read_frame(make(columns))
        found = table.question_ids.tolist()  # where rows have no order, in that of the ids
        assert sorted(map(str, found)) == sorted(map(str, ids or columns[name]))
        assert table.ordered is False or found == (ids or columns[name])
        assert table.worker_ids.tolist() == [*columns][1:]
        assert table.names.question == (name,)
    assert read_file(written(as_text(columns))).question_ids.tolist() == (ids or columns[name])


@pytest.mark.parametrize("library", FRAMES)
def test_wide_frames_come_out_as_they_came_in(library: str) -> None:
    make, kind = FRAMES[library]
    for options in ({}, {"wide": True}, {"wide": "questions", "question": "film"}):
        est = trueup.estimate(make(FILMS), "mean", "none", **options)
        assert isinstance(est.questions, kind)
        found = rows(est.questions)
        assert found["film"] == ["a", "b", "c"]
        assert found["n_answers"] == [3, 3, 0]
        assert found["estimate"][:2] == [2.0, 3.0]
        assert found["estimate"][2] is None or np.isnan(found["estimate"][2])
        assert rows(est.workers)["worker"] == ["ann", "bob", "cyd"]
    other = trueup.estimate(make(FILMS), "mean", "none", wide="workers", worker="film")
    assert rows(other.questions)["question"] == ["ann", "bob", "cyd"]
    assert rows(other.workers)["film"] == ["a", "b"]


def test_questions_that_nobody_answered_stay_in_the_result(
    written: Callable[..., Path], tmp_path: Path
) -> None:
    path = written("question,w1,w2,w3\n1,3,4,5\n2,,,\n3,1,2,3\n4,,,\n")
    est = trueup.estimate(path, "mean", "none")
    assert est.estimate.tolist() == [4.0, 2.0]
    assert rows(est.questions)["question"] == [1, 3, 2, 4]
    assert est.questions["n_answers"].tolist() == [3, 3, 0, 0]
    assert any("2 questions without any answer" in text for text in est.diagnosis.warnings)

    saved = trueup.load(est.save(tmp_path / "s.trueup"))
    assert rows(saved.questions)["question"] == [1, 3, 2, 4]
    assert saved.diagnosis.warnings == est.diagnosis.warnings
    new = {"question": [4, 4], "worker": ["w1", "w2"], "answer": [7.0, 8.0]}
    after = trueup.update(tmp_path / "s.trueup", new)
    assert rows(after.questions)["question"] == [1, 3, 4, 2]
    assert rows(trueup.load(tmp_path / "s.trueup").questions)["n_answers"] == [3, 3, 2, 0]
    by_worker = written("worker,w1,w2,w3\na,1,,2\nb,2,,3\n")
    turned = trueup.estimate(by_worker, "mean", "none", wide="workers")
    assert rows(turned.questions)["question"] == ["w1", "w3", "w2"]
    text = written("question,w1,w2,w3\n1,3,4,5\nx,,,\n")
    assert rows(trueup.estimate(text).questions)["question"] == ["1", "x"]


@pytest.mark.parametrize(
    "index",
    [
        pd.Index(["u", "v", "w"]),
        pd.Index([4, 9, 7], name="film"),
        pd.Index(["u", "v", "w"], name="clip"),
    ],
)
def test_the_index_of_a_pandas_frame_may_hold_the_ids(index: pd.Index[Any]) -> None:
    frame = pd.DataFrame({"a": [1, 2, 3], "b": [2, 2, 5], "c": [2, 3, 4]}, index=index)
    est = trueup.estimate(frame, "mean", "none")
    assert est.questions[index.name or "question"].tolist() == index.tolist()
    assert est.workers["worker"].tolist() == ["a", "b", "c"]


def test_levels_of_an_index_are_columns_of_a_long_frame() -> None:
    frame = pd.DataFrame({**PLAYERS, "judge": [1, 2, 1, 2]}).drop(columns="scout")
    long = frame.rename(columns={"player": "item", "mark": "score"})
    plain = read_frame(long)
    assert rows_of(read_frame(long.set_index("item"))) == rows_of(plain)
    assert rows_of(read_frame(long.set_index(["item", "judge"]))) == rows_of(plain)


def test_row_labels_left_by_a_filter_are_no_ids_of_a_long_frame() -> None:
    frame = pd.DataFrame(PLAYERS)
    with pytest.raises(AnswersError, match="may be one answer or all answers"):
        read_frame(frame[frame["mark"] != 4])


def test_columns_without_names_or_with_those_of_questions_may_be_questions() -> None:
    matrix = pd.DataFrame([[1, 2, 3], [2, 3, 4.5]])
    quiz = {"name": ["x", "y"], "q1": [1, 2], "q2": [2, 3], "q3": [3, 4]}
    for frame in (matrix, quiz):
        with pytest.raises(AnswersError, match="a row may be a question or a worker"):
            read_frame(frame)
        assert len(read_frame(frame, wide="workers").question_ids) == 3


def test_many_columns_on_one_scale_are_wide(written: Callable[..., Path]) -> None:
    rng = np.random.default_rng(0)
    columns = {name: rng.integers(1, 6, 30).tolist() for name in "abcdefgh"}
    with pytest.warns(TrueupWarning, match="read as one row per question"):
        assert len(read_file(written(as_text(columns))).worker_ids) == 8
    with pytest.raises(AnswersError, match="may be one answer or all answers"):
        read_frame({name: columns[name] for name in "abcde"})


def test_arrays_are_never_wide() -> None:
    with pytest.raises(AnswersError, match="is for tables") as caught:
        trueup.estimate(np.ones((2, 3)), wide=True)
    assert caught.value.argument == "wide"


def test_columns_about_questions_are_no_workers(written: Callable[..., Path]) -> None:
    columns = {
        **FILMS,
        "genre": ["k", "l", "k"],
        "truth": [2.5, 3.5, 1.0],
        "year": [1979, 1985, 1997],
    }
    asked: dict[str, Any] = {"gold": "truth", "groups": "genre", "covariates": "year"}
    for source in (columns, pd.DataFrame(columns), written(as_text(columns))):
        for wide in (None, True):
            est = trueup.estimate(source, wide=wide, **asked)
            assert rows(est.workers)["worker"] == ["ann", "bob", "cyd"]
            assert est.question_data.gold is not None
            assert est.question_data.gold.tolist() == [2.5, 3.5]
