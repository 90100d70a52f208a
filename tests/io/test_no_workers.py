"""Columns and rows of wide tables that are no workers and no questions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import trueup
from input_files import message_of, read, rows_of
from trueup.errors import AnswersError, TrueupWarning

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NAMES = ("ann", "bob", "eve", "tim")


def films(m: int = 12) -> list[tuple[str, ...]]:
    """Return rows of a wide table: a film and four answers."""
    answers = np.random.default_rng(1).integers(20, 80, (m, 4))
    return [(f"film{i}", *map(str, row)) for i, row in enumerate(answers.tolist())]


def content(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    return "".join(",".join(row) + "\n" for row in (head, *rows))


def mean(row: tuple[str, ...], digits: int = 2) -> str:
    return f"{np.mean([float(cell) for cell in row[1:]]):.{digits}f}"


@pytest.mark.parametrize(
    ("head", "add", "options"),
    [
        (("film", *NAMES, "gold"), lambda i, row: (*row, str(i)), {"gold": "gold"}),
        (("film", "year", *NAMES), lambda i, row: (row[0], str(1990 + i), *row[1:]), {"covariates": "year"}),
        (("film", *NAMES, "age"), lambda i, row: (*row, str(i)), {"covariates": "age"}),
        (("id", "title", *NAMES), lambda i, row: (str(i), *row), {"question": ["id", "title"]}),
        (("", "film", *NAMES), lambda i, row: (str(i), *row), {}),
        (("Unnamed: 0", "film", *NAMES), lambda i, row: (str(i), *row), {}),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else "",
)  # fmt: skip
def test_columns_beside_those_of_the_workers_are_asked_about(
    written: Callable[..., Path],
    head: tuple[str, ...],
    add: Callable[[int, tuple[str, ...]], tuple[str, ...]],
    options: dict[str, Any],
) -> None:
    path = written(content(head, [add(i, row) for i, row in enumerate(films())]))
    with pytest.raises(AnswersError, match="look like one per worker, beside") as caught:
        trueup.estimate(path)
    (fix,) = caught.value.fixes
    assert fix == {"question": "film", "wide": True, **options}
    est = trueup.estimate(path, **fix)
    assert set(est.answers.worker_ids.tolist()) == {*NAMES}
    assert len(est.estimate) == 12


@pytest.mark.parametrize("name", ["mean", "Average", "score_avg", "total", "sd"])
def test_a_column_that_sums_up_the_others_is_no_worker(
    written: Callable[..., Path], name: str
) -> None:
    rows = [(*row, "7") for row in films()]
    message = message_of(written(content(("film", *NAMES, name), rows)))
    assert f'Leave out "{name}", or pass wide=True' in message


@pytest.mark.parametrize("digits", [0, 1, 2, 6])
def test_the_mean_of_the_others_is_told(written: Callable[..., Path], digits: int) -> None:
    rows = [(*row, mean(row, digits)) for row in films()]
    path = written(content(("film", *NAMES, "mean"), rows))
    if digits:
        assert '"mean": is the mean of the other columns' in message_of(path, wide=True)
    else:  # whole numbers may be answers
        with pytest.warns(TrueupWarning, match='column "mean": read as a worker'):
            read(path, wide=True)
    other = written(content(("film", *NAMES, "kim"), rows), "other.csv")
    if digits:
        with pytest.warns(TrueupWarning, match='"kim": is the mean of the other columns'):
            read(other)
    else:
        read(other)


def test_a_mean_in_four_rows_may_be_luck(written: Callable[..., Path]) -> None:
    rows = [(*row, mean(row)) for row in films(4)]
    assert len(read(written(content(("film", *NAMES, "kim"), rows))).worker_ids) == 5


@pytest.mark.parametrize(("name", "refused"), [("Average", True), ("film99", False)])
def test_a_last_row_that_sums_up_is_no_question(
    written: Callable[..., Path], name: str, refused: bool
) -> None:
    rows = films()
    below = (name, *(mean(("", *column), 0) for column in list(zip(*rows, strict=True))[1:]))
    path = written(content(("film", *NAMES), [*rows, below]))
    if refused:
        assert 'the last row, "Average", is the mean of the rows above' in message_of(path)
    else:
        assert len(read(path).question_ids) == 13


def test_a_column_without_a_name_that_numbers_no_rows_is_refused(
    written: Callable[..., Path],
) -> None:
    rows = [(row[1], *row) for row in films()]
    path = written(content(("", "film", *NAMES), rows))
    assert "has no name" in message_of(path, question="film", wide=True)
    numbered = written(
        content(("", "film", *NAMES), [(str(i), *row) for i, row in enumerate(films())])
    )
    assert {worker for _, worker, _ in rows_of(read(numbered, question="film", wide=True))} == {
        *NAMES
    }


def test_a_number_of_rows_beside_named_questions_is_told(written: Callable[..., Path]) -> None:
    rows = [(str(i), *row) for i, row in enumerate(films())]
    with pytest.warns(TrueupWarning, match='column "id": read as a worker'):
        read(written(content(("id", "film", *NAMES), rows)), question="film", wide=True)


def test_a_worker_with_a_word_is_a_worker(written: Callable[..., Path]) -> None:
    rows = [*films(), ("film12", "40", "41", "too dark", "44")]
    path = written(content(("film", *NAMES), rows))
    with pytest.raises(
        AnswersError, match='Column "eve" holds values that are not numbers'
    ) as caught:
        trueup.estimate(path)
    (fix,) = caught.value.fixes
    assert fix == {"question": "film", "wide": True, "skip_bad": True}
    assert trueup.estimate(path, **fix).answers.n_answers == 51


def test_a_title_may_come_last(written: Callable[..., Path]) -> None:
    path = written(content((*NAMES, "title"), [(*row[1:], row[0]) for row in films()]))
    with pytest.raises(AnswersError, match="Pass question=") as caught:
        trueup.estimate(path)
    (fix,) = caught.value.fixes
    assert trueup.estimate(path, **fix).answers.question_ids.tolist() == [row[0] for row in films()]


def test_numbers_of_rows_may_be_all_that_names_them(written: Callable[..., Path]) -> None:
    rows = [(str(i), *row[1:], str(i)) for i, row in enumerate(films())]
    path = written(content(("", *NAMES, "truth"), rows))
    with pytest.raises(AnswersError, match='beside "", "truth"') as caught:
        trueup.estimate(path)
    (fix,) = caught.value.fixes
    assert fix == {"question": "", "wide": True, "gold": "truth"}
    assert trueup.estimate(path, **fix).answers.n_answers == 48


def test_names_that_are_not_alike_are_no_command_to_run(written: Callable[..., Path]) -> None:
    rows = [(row[0], str(1990 + i), str(90 + i), *row[1:]) for i, row in enumerate(films())]
    with pytest.raises(AnswersError, match='"length", "ann"') as caught:
        trueup.estimate(written(content(("film", "year", "length", *NAMES), rows)))
    assert caught.value.fixes == ()


def test_sums_beside_each_other_are_no_workers(written: Callable[..., Path]) -> None:
    rows = [(*row, str(sum(map(int, row[1:]))), mean(row)) for row in films()]
    message = message_of(
        written(content(("film", "w", "x", "y", "z", "sum", "mean"), rows)), wide=True
    )
    assert '"sum": is the sum of the other columns' in message


def test_columns_that_are_questions_are_asked_about(written: Callable[..., Path]) -> None:
    head = ("Timestamp", *(f"How tall is person {i}?" for i in range(4)))
    message = message_of(written(content(head, films(5))))
    assert "a row may be a question or a worker" in message


def test_short_names_of_questions_are_no_numbers_with_a_unit(written: Callable[..., Path]) -> None:
    table = read(
        written(content(("movie", *NAMES), [(f"m{i}", *row[1:]) for i, row in enumerate(films())]))
    )
    assert table.question_ids.tolist() == [f"m{i}" for i in range(12)]
