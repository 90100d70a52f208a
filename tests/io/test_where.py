"""where keeps rows of any table before anything else is read; what cannot be meant is an error that shows what can."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import trueup
from input_files import message_of, parquet, rows_of
from trueup.errors import AnswersError
from trueup.io.readers.files import read_file
from trueup.io.readers.frames import read_frame
from trueup.io.readers.row_filter import check_where

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
duckdb = pytest.importorskip("duckdb")

FRAMES: list[Callable[[dict[str, Any]], Any]] = [
    dict, pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table, lambda columns: duckdb.from_arrow(pa.table(columns)),
]  # fmt: skip
TEXT = """question,worker,answer,model,level,code
q1,ann,1,a,0.50,007
q1,bob,2,a,0.5,7
q2,ann,x,b,1,07
q2,bob,4,b,1.0,
q3,ann,5,c=d,.5,7
"""


def kept(path: Any, where: Any, **options: Any) -> list[float]:
    """Return the answers of the rows that are kept."""
    return sorted(answer for _, _, answer in rows_of(read_file(path, where=where, **options)))


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"model": "a"}, [1, 2]),
        (["model=a"], [1, 2]),
        ("model=a", [1, 2]),
        ({"model": ["a", "c=d"]}, [1, 2, 5]),
        (["model=a", "model=c=d"], [1, 2, 5]),
        ({"model": "a", "worker": "bob"}, [2]),
        ({"level": 0.5}, [1, 2]),
        ({"level": "0.50"}, [1, 2]),
        ({"level": ".5"}, [5]),
        ({"code": 7}, [2, 5]),
        ({"code": "007"}, [1]),
        ({"code": None, "worker": "bob"}, [4]),
        ({"answer": 5}, [5]),
        ({"level": 1, "worker": "bob"}, [4]),
    ],
)
def test_rows_of_text_are_kept_by_value(
    written: Callable[..., Path], where: Any, expected: list[float]
) -> None:
    assert kept(written(TEXT), where) == expected


def test_rows_that_are_not_kept_are_not_read(written: Callable[..., Path]) -> None:
    path = written(TEXT)
    assert "is not a number" in message_of(path)
    table = read_file(path, where={"model": "a"})
    assert (table.n_rows, len(table.rejects)) == (2, 0)
    said = message_of(path, where={"model": ["a", "b"]})
    assert said.endswith(
        "Rows are counted from 0, without the header, among those that are kept; row 2 is line 4."
    )
    aside = trueup.Answers.of(path, where={"model": ["a", "b"]}, skip_bad=True).rejects
    assert [(each.place, each.answer) for each in aside.rows] == [("line 4", "x")]


def test_values_with_types(tmp_path: Path) -> None:
    day = dt.date(2024, 5, 1)
    path = parquet(
        tmp_path / "a.parquet",
        {
            "question": [1, 2, 3],
            "worker": ["a", "a", "a"],
            "answer": [1.0, 2.0, 3.0],
            "day": [day, day, dt.date(2024, 5, 2)],
            "level": [0.5, 1.0, None],
            "done": [True, False, True],
        },
    )
    assert kept(path, {"day": "2024-05-01"}) == kept(path, {"day": day}) == [1, 2]
    assert kept(path, {"level": "1"}) == [2]
    assert kept(path, {"level": None}) == [3]
    assert kept(path, {"done": True}) == kept(path, "done=true") == [1, 3]
    assert read_file(path, where={"question": 2}).question_ids.tolist() == [2]


@pytest.mark.parametrize("constructor", FRAMES)
def test_rows_of_frames_are_kept(constructor: Callable[[dict[str, Any]], Any]) -> None:
    frame = constructor(
        {
            "question": ["q1", "q1", "q2", "q2"],
            "worker": ["a", "b", "a", "b"],
            "answer": [1.0, 2.0, 3.0, 4.0],
            "run": [1, 2, 2, 2],
        }
    )
    table = read_frame(frame, where={"run": 2})
    assert sorted(rows_of(table), key=str) == [("q1", "b", 2.0), ("q2", "a", 3.0), ("q2", "b", 4.0)]
    with pytest.raises(AnswersError, match=r'Column "Run": not found.*Did you mean "run"'):
        read_frame(frame, where={"Run": 2})


def test_wide_tables_and_columns_about_questions(written: Callable[..., Path]) -> None:
    wide = written("question,ann,bob,cat,set\nq1,1,2,3,x\nq2,4,5,6,y\nq3,7,8,9,y\n", "wide.csv")
    table = read_file(wide, where={"set": "y"}, wide=True, question_data=["set"])
    assert sorted(table.answer.tolist()) == [4, 5, 6, 7, 8, 9]
    rows = "question,worker,answer,kind,part\n"
    rows += "".join(f"q{q},w{w},{q + w},k{q % 2},main\n" for q in range(12) for w in range(4))
    rows += "q0,w0,99,k9,other\n"
    path = written(rows)
    est = trueup.estimate(path, groups="kind", where={"part": "main"})
    assert est.partition is None or len(est.partition) > 0
    frame = pd.read_csv(path)
    again = trueup.estimate(frame, groups="kind", where={"part": "main"})
    assert np.allclose(again.estimate, est.estimate)
    with pytest.raises(AnswersError, match="duplicates"):
        trueup.estimate(path, groups="kind")


def test_one_file_per_judge(tmp_path: Path) -> None:
    for judge, shift in (("gpt-4.1", 0), ("claude", 1)):
        rows = "".join(
            f"{q},0,d{d},{q + d + shift},{'dev' if q else 'test'}\n"
            for q in range(3)
            for d in range(2)
        )
        (tmp_path / f"{judge}.csv").write_text("qid,zero,docid,label,part\n" + rows)
    table = read_file(
        tmp_path / "*.csv", worker_from="file", where={"part": "dev"}, question=["qid", "docid"]
    )
    assert (len(table.answer), table.worker_ids.tolist()) == (8, ["claude", "gpt-4.1"])
    one = read_file(
        tmp_path / "*.csv",
        worker_from="file",
        where={"worker": "claude"},
        question=["qid", "docid"],
    )
    assert one.worker_ids.tolist() == ["claude"]
    said = message_of(tmp_path / "*.csv", worker_from="file", where={"worker": "x"})
    assert said.endswith(
        'column "worker" is "x" in no row that is left. The values there are "claude", "gpt-4.1".'
    )


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ({"modle": "a"}, 'where: Column "modle": not found.'),
        ("modle=a", 'Did you mean "model"?'),
        (
            {"model": "z"},
            'where: column "model" is "z" in no row that is left. The values there are "a", "b", "c=d".',
        ),
        (
            {"worker": "bob", "model": "c=d"},
            'where: column "model" is "c=d" in no row that is left. The values there are "a", "b".',
        ),
        ("model", "where: found"),
        ({}, "where: found"),
        ([], "where: found"),
        (7, "where: found 7, must be a column"),
        ({"model": [["a"]]}, "where: found"),
        ({7: "a"}, "where: found"),
    ],
)
def test_conditions_that_cannot_be_met(written: Callable[..., Path], where: Any, said: str) -> None:
    assert said in message_of(written(TEXT), where=where)


def test_arrays_have_no_columns() -> None:
    with pytest.raises(AnswersError, match="where: is for tables, and this is an array"):
        trueup.estimate([[1.0, 2.0], [2.0, 3.0]], where={"a": 1})


def test_conditions_come_back_as_they_were() -> None:
    given = {"kind": "film", "year": [2020, 2021.5], "seen": True, "note": None}
    texts = ("kind=film", "year=2020", "year=2021.5", "seen=true", "note=")
    assert check_where(given) == check_where(list(texts)) == texts


@pytest.mark.parametrize("coded", [True, False])
def test_rows_of_parquet_texts_however_they_are_stored(tmp_path: Path, coded: bool) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"question": list("abcabc"), "worker": list("uuuvvv"), "kind": list("xxyxyx")}
    path = tmp_path / "answers.parquet"
    table = pa.table({**columns, "answer": np.arange(6.0)})
    pq.write_table(table, path, use_dictionary=coded, row_group_size=2)
    kept = [("a", "u", 0.0), ("b", "u", 1.0), ("a", "v", 3.0), ("c", "v", 5.0)]
    assert rows_of(read_file(path, where={"kind": "x"})) == kept
