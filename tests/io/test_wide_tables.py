"""Tables with a column per worker, or per question, are told from long ones."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import trueup
from input_files import WIDE, message_of, parquet, read, rows_of
from trueup.errors import TrueupWarning
from trueup.io.readers.files import read_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


WIDE_ROWS = [("q1", "ann", 1.0), ("q1", "007", 2.0), ("q3", "007", 4.0), ("q3", "bob", 5.0)]


def test_a_column_per_worker_is_recognised(written: Callable[..., Path]) -> None:
    table = read_file(written(WIDE))

    assert rows_of(table) == WIDE_ROWS
    assert table.row is not None
    assert table.row.tolist() == [0, 0, 2, 2]
    assert (table.kind, table.n_rows, table.n_missing) == ("file", 4, 0)
    assert rows_of(read_file(written(WIDE), wide=True)) == WIDE_ROWS
    assert rows_of(read_file(written(WIDE), wide="questions")) == WIDE_ROWS
    assert rows_of(read_file(written(WIDE.replace("question", "task")))) == WIDE_ROWS
    item = written(WIDE.replace("question", "item"))
    assert rows_of(read_file(item, question="item")) == WIDE_ROWS
    assert trueup.estimate(item, "mean", "none", question="item").questions[
        "n_answers"
    ].tolist() == [2, 2, 0]


def test_wide_tables_may_be_of_any_format(written: Callable[..., Path], tmp_path: Path) -> None:
    columns = {"question": ["q1", "q2"], "1": [1.0, None], "2": [2, 3]}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    wanted = [("q1", "1", 1.0), ("q1", "2", 2.0), ("q2", "2", 3.0)]

    assert rows_of(read_file(parquet(tmp_path / "a.pq", columns))) == wanted
    assert rows_of(read_file(written(json.dumps(rows), "a.json"))) == wanted
    text = "question;1;2\nq1;1,0;2\nq2;;3\n"
    numbers = [(q, int(w), a) for q, w, a in wanted]  # in text, whole numbers are numbers
    assert rows_of(read(written(text), decimal=",")) == numbers


def test_a_column_per_question_is_read_when_asked_for(written: Callable[..., Path]) -> None:
    path = written(WIDE.replace("question", "worker"))

    table = read_file(path, wide="workers")

    assert rows_of(table) == [(q, w, a) for w, q, a in WIDE_ROWS]
    assert 'pass wide="workers"' in message_of(path)
    assert rows_of(read_file(written(WIDE), wide="workers", worker="question")) == rows_of(table)


def test_rows_without_ids_are_numbered(written: Callable[..., Path]) -> None:
    path = written("ann,bob,cyd\n1,2,\n,,\n3,,\n")
    wanted = [(0, "ann", 1.0), (0, "bob", 2.0), (2, "ann", 3.0)]

    with pytest.warns(TrueupWarning, match='one column per worker \\("ann", "bob", "cyd"\\)'):
        assert rows_of(read_file(path)) == wanted
    assert rows_of(read_file(path, wide=True)) == wanted
    assert rows_of(read_file(path, wide="workers")) == [(w, q, a) for q, w, a in wanted]


@pytest.mark.parametrize(
    "content",
    [
        "item,score,mark\n1,2,3\n1,3,4\n",
        "question,rater,mark\n1,2,3\n2,3,4\n",
        "userId,movieId,x\n1,2,3\n",
        "user_id,b,c\n1,2,3\n",
        "when,what\n1,2\n",
        "question,evaluador,nota\n1,2,3\n1,3,4\n",
        "3.5,4\n3,4\n",
        "question,ann\n1,2\n",
    ],
)
def test_a_long_table_under_other_names_is_not_taken_for_a_wide_one(
    written: Callable[..., Path], content: str
) -> None:
    message = message_of(written(content))
    assert ": not found. " in message
    assert "The columns are " in message


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (
            "name of it,red,remark,blue\na,1,x,2\n",
            {},
            (
                "It was not read as one row per question and one column per worker, since column "
                '"name of it" does not hold numbers only: leave it out and pass wide=True, or '
                'question="name of it" if it names the questions.'
            ),
        ),
        (
            "question,ann,bob\na,1,2\na,2,3\n",
            {},
            ("since a question is in more than one row: pass wide=True if that is intended."),
        ),
        (
            "question;a;b;c\nq;1,5;2;3,5\n",
            {},
            ('for values in column "a". To read them pass decimal=",".'),
        ),
        (
            "question;a\nq;1,5\n",
            {"wide": True},
            'It has a decimal comma. To read them pass decimal=",".',
        ),
        (WIDE, {"wide": False}, 'Column "worker": not found.'),
        (WIDE, {"wide": True, "question": "item"}, 'Column "item": not found.'),
        (WIDE, {"wide": True, "panel": "p"}, 'Column "p": not found.'),
        (WIDE, {"wide": True, "numbers": ("ann",)}, "has no further number for each answer."),
        (WIDE, {"wide": True, "panel": "question"}, "asked for as question and as panel."),
        ("question,a,a\nq,1,2\n", {"wide": True}, "there are several columns of this name"),
        ("question\nq\n", {"wide": True}, "there is no column of answers besides"),
        ("question,a,b\nq,,\n", {}, "no answers, all 2 cells are empty."),
        ("question,a,b\n", {}, "no answers, all 0 cells are empty."),
        ("question,a,b\n,1,2\n", {}, 'Column "question": 1 of 1 value is missing, at row 0.'),
        ("question,a,b\nq,1,1e200\n", {"wide": True}, "is beyond ±1e+150"),
        (
            "question,a,b\nq,1,x\n",
            {"wide": True},
            (
                'Column "b": 1 of 1 value is not a number, at row 0 ("x"). Remove or mend these '
                "rows, or pass skip_bad=True to set them aside. The table was read as one row per "
                "question and one column per worker; "
                "wide=False reads one row per answer. "
                "Rows are counted from 0, without the header; row 0 is line 2."
            ),
        ),
    ],
)
def test_errors_say_how_a_table_was_read(
    written: Callable[..., Path], content: str, options: dict[str, Any], message: str
) -> None:
    assert message in message_of(written(content), **options)


def test_wide_files_need_the_same_workers(written: Callable[..., Path]) -> None:
    one = written("question,a,b\nq,1.5,2\n", "1.csv")
    two = written("b,question,a\n3,r,4\n", "2.csv")
    three = written("question,a,b,c\ns,1,2,3\n", "3.csv")

    assert rows_of(read_file([one, two])) == [
        ("q", "a", 1.5),
        ("q", "b", 2.0),
        ("r", "a", 4.0),
        ("r", "b", 3.0),
    ]
    assert message_of([one, three], wide=True) == (
        'File "3.csv": has the columns "c", unlike "1.csv". Give all files the same columns.'
    )
    assert message_of([three, one], wide=True).startswith('File "1.csv": lacks the columns "c"')


def test_panels_of_a_wide_table(written: Callable[..., Path]) -> None:
    table = read_file(written("p,question,a,b\nx,q,1.5,2\ny,q,3,4\n"), panel="p")

    assert table.panel is not None
    assert table.panel_ids is not None
    assert table.panel_ids.tolist(np.asarray(table.panel)) == ["x", "x", "y", "y"]


def test_many_columns_of_workers(written: Callable[..., Path]) -> None:
    names = [f"worker_{i:05d}" for i in range(2_000)]
    content = (
        "question,"
        + ",".join(names)
        + "\n"
        + "".join(f"q{j}," + ",".join(["3.5"] * 1_999 + [""]) + "\n" for j in range(3))
    )

    table = read_file(written(content))

    assert (len(table.answer), len(table.worker_ids)) == (3 * 1_999, 1_999)
