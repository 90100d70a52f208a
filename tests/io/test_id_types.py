"""Ids of every type come back as they went in, also through files and updates, or are refused in our own words."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
import zoneinfo
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import trueup
from commands import need_cli, printed
from trueup import TrueupError

if TYPE_CHECKING:
    from pathlib import Path

need_cli()

BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
D = decimal.Decimal
# The hour that is there twice.
TWICE = [
    dt.datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN),
    dt.datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=BERLIN),
    dt.datetime(2024, 5, 1, tzinfo=BERLIN),
]
NANOSECONDS = [10**18, 10**18 + 1, 10**18 + 2]
IDS: dict[str, Any] = {
    "polars 128 bits": pl.Series([2**100, -(2**90), 5], dtype=pl.Int128),
    "polars decimal": pl.Series([D("1.10"), D("2.5"), D("3")], dtype=pl.Decimal(20, 3)),
    "polars categorical": pl.Series(["a", "b", "c"], dtype=pl.Categorical),
    "polars enum": pl.Series(["a", "b", "c"], dtype=pl.Enum(["c", "b", "a", "z"])),
    "polars zone": pl.Series(TWICE[1:], dtype=pl.Datetime("ms", "Europe/Berlin")),
    "polars small": pl.Series([1, 2, 3], dtype=pl.UInt8),
    "polars float": pl.Series([0.1, 0.2, 0.3], dtype=pl.Float32),
    "polars bytes": pl.Series([b"a\xff", b"b", b"c"]),
    "polars date": pl.Series([dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(2024, 2, 29)]),
    "arrow decimal": pa.array([D(2**100), D(5), D(-7)], pa.decimal128(38, 0)),
    "arrow large decimal": pa.array([D(2**200), D(5), D(-7)], pa.decimal256(70, 0)),
    "arrow dictionary": pa.array(["a", "b", "c"]).dictionary_encode(),
    "arrow numbers": pa.array([5, 7, 9]).dictionary_encode(),
    "arrow fixed": pa.array([b"abcd", b"\xff\xfe\x00a", b"zzzz"], pa.binary(4)),
    "arrow nanoseconds": pa.array(NANOSECONDS, pa.timestamp("ns")),
    "arrow zone": pa.array(NANOSECONDS, pa.timestamp("ns", "Europe/Berlin")),
    "arrow seconds": pa.array([1, 2, 3], pa.timestamp("s")),
    "arrow date": pa.array([0, 86400000, 172800000], pa.date64()),
    "arrow half": pa.array(np.array([0.1, 0.2, 0.3], dtype=np.float16)),
    "arrow bool": pa.array([True, False]),
    "pandas category": pd.Series(["a", "b", "c"], dtype="category"),
    "pandas ordered": pd.Series(pd.Categorical(list("abc"), list("cbaz"), ordered=True)),
    "pandas category of numbers": pd.Series([5, 7, 9], dtype="category"),
    "pandas nullable": pd.Series([1, 2, 3], dtype="Int64"),
    "pandas text": pd.Series(["a", "b", "c"], dtype="string"),
    "pandas nanoseconds": pd.Series(pd.to_datetime(NANOSECONDS)),
    "pandas zone": pd.Series(pd.to_datetime(NANOSECONDS, utc=True)).dt.tz_convert(BERLIN),
    "pandas small": pd.Series([1, 2, 3], dtype="int8"),
    "pandas UUID": pd.Series([uuid.UUID(int=each) for each in (1, 2**127, 3)]),
    "pandas long": pd.Series([2**100, -(2**90), 5], dtype=object),
}
#: These a state does not keep; everything else does.
NOT_SAVED: dict[str, Any] = {
    "pandas interval": pd.Series(pd.interval_range(0, 3)),
    "pandas period": pd.Series(pd.period_range("2024-01", periods=3, freq="M")),
    "pandas duration": pd.Series(pd.to_timedelta([1, 2, 3], unit="s")),
    "polars time": pl.Series([dt.time(1), dt.time(2), dt.time(3)]),
    "arrow duration": pa.array([1, 2, 3], pa.duration("ns")),
    "arrow interval": pa.array([(1, 2, 3), (1, 2, 4)], pa.month_day_nano_interval()),
}
REFUSED: dict[str, Any] = {
    "arrow time": pa.array([1, 2, 3], pa.time64("ns")),
    "arrow far future": pa.array([1, 2, 10**12], pa.timestamp("s")),
    "arrow struct": pa.array([{"a": 1}, {"a": 2}, {"a": 3}]),
    "polars nanoseconds": pl.Series(NANOSECONDS).cast(pl.Datetime("ns")),
    "polars hour twice": pl.Series(TWICE, dtype=pl.Datetime("ms", "Europe/Berlin")),
    "numpy record": np.array([(1, 2), (3, 4)], dtype=[("a", "i4"), ("b", "i4")]),
}
OTHERS = {"question": "worker", "worker": "question"}


def frame_of(values: Any, column: str, first: int = 0) -> Any:
    """Make a frame of the library of the ids, in which four others meet each of them."""
    rows, other = np.repeat(np.arange(len(values)), 4), OTHERS[column]
    columns = {
        other: [f"x{first + k}" for k in range(4)] * len(values),
        "answer": (1.0 * rows + np.sin(np.arange(len(rows)))).tolist(),
    }
    if isinstance(values, pl.Series):
        return pl.DataFrame({column: values.gather(rows), **columns})
    if isinstance(values, pa.Array):
        return pa.table({column: values.take(rows), **columns})
    if isinstance(values, pd.Series):
        return pd.DataFrame({column: values.iloc[rows].reset_index(drop=True), **columns})
    return {column: values[rows], **columns}


def ids_in(est: trueup.Estimate, column: str) -> tuple[list[Any], str]:
    """Return the ids in a table of the result, and their type."""
    table = est.questions if column == "question" else est.workers
    if isinstance(table, pa.Table):
        values = table.column(column)
        return values.to_pylist(), str(values.type)
    return table[column].to_list(), str(table[column].dtype)


def expected(values: Any) -> tuple[list[Any], str]:
    plain = values.to_pylist() if isinstance(values, pa.Array) else values.to_list()
    return plain, str(values.type if isinstance(values, pa.Array) else values.dtype)


@pytest.mark.parametrize("column", OTHERS)
@pytest.mark.parametrize("kind", [*IDS, *NOT_SAVED])
def test_ids_come_back_as_they_went_in(kind: str, column: str, tmp_path: Path) -> None:
    values = {**IDS, **NOT_SAVED}[kind]
    est, wanted = trueup.estimate(frame_of(values, column)), expected(values)
    assert ids_in(est, column) == wanted
    assert est.findings.workers is not None
    updated = trueup.update(est, frame_of(values, column, first=2), duplicates="replace")
    assert ids_in(updated, column) == wanted
    if kind in NOT_SAVED:
        with pytest.raises(TrueupError, match=f"save: {column} ids of type .* Make them text"):
            est.save(tmp_path / "a.trueup")
        return
    path = est.save(tmp_path / "a.trueup")
    assert ids_in(trueup.load(path), column) == wanted
    assert ids_in(trueup.update(path, frame_of(values, column, first=4)), column) == wanted


@pytest.mark.parametrize("column", OTHERS)
@pytest.mark.parametrize("kind", REFUSED)
def test_ids_that_python_cannot_tell_apart_are_refused(kind: str, column: str) -> None:
    with pytest.raises(TrueupError, match=f'Column "{column}": holds .* Turn them into text'):
        trueup.estimate(frame_of(REFUSED[kind], column))


SQL = {
    "HUGEINT": "170141183460469231731687303715884105727::HUGEINT - i::HUGEINT",
    "UHUGEINT": "340282366920938463463374607431768211455::UHUGEINT - i::UHUGEINT",
    "UUID": "('00000000-0000-0000-0000-00000000000' || i)::UUID",
    "INTERVAL": "(i || ' days')::INTERVAL",
    "BIT": "('1' || repeat('0', i::INT))::BIT",
    "TIME WITH TIME ZONE": "('0' || i || ':00:00+02')::TIMETZ",
    "DECIMAL(38,2)": "(i / 4)::DECIMAL(38, 2)",
    "TIMESTAMP_NS": "make_timestamp_ns(i)",
    "BLOB": "('\\xFF' || i)::BLOB",
    "DATE": "DATE '2024-02-28' + i::INT",
    "ENUM('c''x', 'b', 'a')": "(['a', 'b', 'c''x'])[i + 1]::ENUM('c''x', 'b', 'a')",
}


@pytest.mark.parametrize("column", OTHERS)
@pytest.mark.parametrize("kind", SQL)
def test_ids_of_a_database_come_back(kind: str, column: str, tmp_path: Path) -> None:
    relation: Any = duckdb.sql(
        f"SELECT {SQL[kind]} AS {column}, 'x' || j AS {OTHERS[column]}, i + sin(i * 4 + j) AS answer "  # noqa: S608
        "FROM range(3) a(i), range(4) b(j)"
    )
    assert str(relation.types[0]) == kind
    wanted = sorted(map(str, relation.project(f"{column}::VARCHAR").distinct().fetchall()))
    est = trueup.estimate(relation)
    several = [est]
    if kind != "TIMESTAMP_NS":
        several += [trueup.load(est.save(tmp_path / "a.trueup"))]
        several += [trueup.update(tmp_path / "a.trueup", relation, duplicates="replace")]
    for each in several:
        table = each.questions if column == "question" else each.workers
        assert str(table.types[0]) == kind
        assert sorted(map(str, table.project(f"{column}::VARCHAR").fetchall())) == wanted


def test_zones_keep_their_names(tmp_path: Path) -> None:
    est = trueup.estimate(frame_of(np.array(TWICE[1:], dtype=object), "question"))
    again = trueup.load(est.save(tmp_path / "a.trueup")).answers.question_ids.tolist()
    assert again == TWICE[1:]
    assert [each.tzinfo for each in again] == [BERLIN] * 2  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", ["arrow decimal", "arrow zone", "arrow dictionary", "arrow fixed"])
def test_files_of_commands_have_the_ids_of_their_input(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(frame_of(IDS[kind], "question"), "a.parquet")
    before = pq.read_table("a.parquet")["question"].unique()
    printed("estimate", "a.parquet", "-o", "o.parquet", "--save", "a.trueup")
    after = pq.read_table("o.parquet")["question"]
    assert after.type == pq.read_table("a.parquet")["question"].type
    assert after.to_pylist() == before.to_pylist()
    for name in ("o.csv", "o.json"):
        printed("estimate", "a.parquet", "-o", name)
    assert str(before[0].as_py()) in (tmp_path / "o.csv").read_text("utf-8")


@pytest.mark.parametrize(
    "about",
    [
        7,
        ["pandas"],
        ["os", "system"],
        ["pandas", "object"],
        ["pandas", "datetime64[ns]"],
        ["polars", "__class__"],
        ["pyarrow", "timestamp[ns, tz=a'b]"],
    ],
)
def test_types_that_a_file_makes_up_are_refused(about: Any) -> None:
    from trueup.io.archive import Damage
    from trueup.io.id_types import retyped
    from trueup.io.table import Ids

    with pytest.raises(Damage, match="types of its ids"):
        retyped(Ids(np.array([1, 2])), about, None)
