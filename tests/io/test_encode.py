"""Ids become codes, and codes ids again, in every library."""

from __future__ import annotations

import datetime as dt
import sys
import tracemalloc
import uuid
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from trueup.errors import AnswersError
from trueup.io.encode import encode
from trueup.io.series import library, take, to_list
from trueup.io.table import Ids

if TYPE_CHECKING:
    from collections.abc import Callable

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

Column = Any


def objects(values: list[object]) -> Column:
    return np.fromiter(values, dtype=object, count=len(values))


def chunked(values: list[object]) -> Column:
    """Two chunks, so that nothing relies on there being one."""
    kind = pa.array(values).type
    half = len(values) // 2
    return pa.chunked_array([pa.array(values[:half], kind), pa.array(values[half:], kind)])


LIBRARIES: dict[str, Callable[[list[object]], Column]] = {
    "numpy": objects,
    "pandas": pd.Series,
    "pandas-object": lambda values: pd.Series(values, dtype=object),
    "pandas-pyarrow": lambda values: pd.Series(pd.arrays.ArrowExtensionArray(chunked(values))),
    "polars": pl.Series,
    "pyarrow": chunked,
}


@pytest.fixture(params=LIBRARIES)
def column(request: pytest.FixtureRequest) -> Callable[[list[object]], Column]:
    return LIBRARIES[request.param]


NOON = dt.datetime(2024, 5, 1, 12, tzinfo=dt.UTC)
SAMPLES: dict[str, list[object]] = {
    "text": ["b", "a", "b", "", "ä", "a\0", "a"],
    "integers near": [5, -3, 5, 4, -3],
    "integers far": [2**62, -5, 2**62, 0, -5],
    "whole floats": [2.0, 1.0, 2.0, -7.0],
    "floats": [0.5, 1e300, 0.5, -2.25],
    "bools": [True, False, True],
    "dates": [dt.date(2024, 1, 2), dt.date(1970, 1, 1), dt.date(2024, 1, 2)],
    "times": [NOON, NOON + dt.timedelta(seconds=1), NOON],
    "decimals": [Decimal("1.5"), Decimal("-2.5"), Decimal("1.5")],
    "bytes": [b"\xff\x00", b"", b"\xff\x00"],
}


@pytest.mark.parametrize("sample", SAMPLES)
def test_codes_stand_for_the_values_in_order_of_first_appearance(
    column: Callable[[list[object]], Column], sample: str
) -> None:
    values = SAMPLES[sample]
    series = column(values)

    codes, n, first_rows = encode(series)

    distinct = list(dict.fromkeys(values))
    assert codes.dtype == np.int32  # half the memory, while the rows can be counted in it
    assert codes.tolist() == [distinct.index(value) for value in values]
    assert n == len(distinct)
    assert first_rows.tolist() == [values.index(value) for value in distinct]
    assert to_list(take(series, first_rows)) == distinct


@pytest.mark.parametrize("sample", SAMPLES)
def test_missing_values_get_minus_one(
    column: Callable[[list[object]], Column], sample: str
) -> None:
    values = [SAMPLES[sample][0], None, SAMPLES[sample][1], None]

    codes, n, _ = encode(column(values))

    assert codes.tolist() == [0, -1, 1, -1]
    assert n == 2


@pytest.mark.parametrize("sample", SAMPLES)
def test_by_id_codes_follow_the_sorted_ids(
    column: Callable[[list[object]], Column], sample: str
) -> None:
    values = SAMPLES[sample]
    series = column(values)

    codes, _, first_rows = encode(series, by_id=True)

    distinct = sorted(set(values))  # type: ignore[type-var]
    assert codes.tolist() == [distinct.index(value) for value in values]
    assert to_list(take(series, first_rows)) == distinct


def test_rows_not_kept_have_no_part_in_the_codes(
    column: Callable[[list[object]], Column],
) -> None:
    keep = np.array([False, True, True, False, True])

    codes, n, first_rows = encode(column(["x", "b", "a", None, "b"]), keep=keep)

    assert codes.tolist() == [0, 1, 0]
    assert n == 2
    assert first_rows.tolist() == [1, 2]


def test_both_zeros_are_one_id(column: Callable[[list[object]], Column]) -> None:
    assert encode(column([0.0, -0.0, 0.5])).codes.tolist() == [0, 0, 1]


@pytest.mark.parametrize("name", ["numpy", "pandas", "polars", "pyarrow"])
def test_not_a_number_is_a_missing_id(name: str) -> None:
    array = np.array([1.5, np.nan, 2.5])
    series = {"numpy": lambda x: x, "pandas": pd.Series, "polars": pl.Series, "pyarrow": pa.array}

    assert encode(series[name](array)).codes.tolist() == [0, -1, 1]


def test_an_empty_column_has_no_ids() -> None:
    for empty in (
        np.array([], dtype=np.int64),
        np.array([], dtype=object),
        pd.Series([], dtype="str"),
        pl.Series([], dtype=pl.String),
        pa.chunked_array([], pa.string()),
    ):
        codes, n, first_rows = encode(empty)
        assert (len(codes), n, len(first_rows)) == (0, 0, 0)
        assert to_list(take(empty, first_rows)) == []


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64, np.float16, np.float32])
def test_the_ends_of_a_number_type_are_ids_like_others(dtype: Any) -> None:
    ends = np.iinfo(dtype) if issubclass(dtype, np.integer) else np.finfo(dtype)
    values = np.array([ends.max, ends.min, ends.max], dtype=dtype)

    for series in (values, pd.Series(values), pl.Series(values), pa.array(values)):
        assert encode(series).codes.tolist() == [0, 1, 0]


@pytest.mark.parametrize("hidden", [(), ("pyarrow",), ("pyarrow", "pandas")])
def test_far_apart_integers_need_no_other_library(
    hidden: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in hidden:
        monkeypatch.delitem(sys.modules, name)
    values = np.array([10**15, 7, -(10**15), 7])

    codes, n, first_rows = encode(values)

    assert codes.tolist() == [0, 1, 2, 1]
    assert n == 3
    assert first_rows.tolist() == [0, 1, 2]


def test_pandas_types_come_back_as_they_were() -> None:
    columns = [
        pd.Series(pd.Categorical(["b", "a", "b"], categories=["c", "a", "b"], ordered=True)),
        pd.Series([3, 1, 3], dtype="Int64"),
        pd.Series(["x", "y", "x"], dtype="string"),
        pd.Series(pd.to_datetime(["2024-01-01", "2023-01-01", "2024-01-01"])),
        pd.Series(pd.to_datetime(["2024-01-01", "2023-01-01", "2024-01-01"]).tz_localize("UTC")),
        pd.Series(pd.period_range("2024-01", periods=2, freq="M").take([0, 1, 0])),
    ]
    for series in columns:
        series.index = [7, 7, 7]
        codes, _, first_rows = encode(series)
        ids = take(series, first_rows)
        assert codes.tolist() == [0, 1, 0]
        assert ids.dtype == series.dtype
        assert ids.tolist() == series.tolist()[:2]
        assert ids.index.tolist() == [0, 1]


def test_polars_types_come_back_as_they_were() -> None:
    columns = [
        pl.Series(["b", "a", "b"], dtype=pl.Categorical),
        pl.Series(["b", "a", "b"], dtype=pl.Enum(["c", "a", "b"])),
        pl.Series([3, 1, 3], dtype=pl.UInt8),
        pl.Series([3, 1, 3], dtype=pl.Int128),
        pl.Series([NOON, NOON + dt.timedelta(1), NOON]),
        pl.Series([(1, 2), "x", (1, 2)], dtype=pl.Object),
    ]
    for series in columns:
        codes, _, first_rows = encode(series)
        ids = take(series, first_rows)
        assert codes.tolist() == [0, 1, 0]
        assert ids.dtype == series.dtype
        assert ids.to_list() == series.to_list()[:2]


def test_polars_text_is_encoded_without_private_categories(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(pl, "Categories", raising=False)

    assert encode(pl.Series(["b", None, "a", "b"])).codes.tolist() == [0, -1, 1, 0]


def test_arrow_types_come_back_as_they_were() -> None:
    first, second = pa.array(["b", "a"]), pa.array(["a", "b"])
    columns = [
        pa.chunked_array([first.dictionary_encode(), second.dictionary_encode()]),
        pa.chunked_array([first.cast(pa.string_view()), second.cast(pa.string_view())]),
        pa.chunked_array([first.cast(pa.large_string()), second.cast(pa.large_string())]),
        pa.chunked_array([pa.array([2, 1], pa.date32()), pa.array([1, 2], pa.date32())]),
    ]
    for series in columns:
        codes, _, first_rows = encode(series)
        ids = take(series, first_rows)
        assert codes.tolist() == [0, 1, 1, 0]
        assert ids.type == series.type
        assert ids.to_pylist() == series.to_pylist()[:2]


def test_arrow_uuids_are_ids() -> None:
    one, two = uuid.UUID(int=1), uuid.UUID(int=2)
    series = pa.array([two.bytes, one.bytes, two.bytes], pa.binary(16)).cast(pa.uuid())

    codes, _, first_rows = encode(series)

    assert codes.tolist() == [0, 1, 0]
    assert take(series, first_rows).to_pylist() == [two, one]


def test_a_dictionary_may_hold_nulls_and_repeat_itself() -> None:
    dictionary = pa.array(["a", None, "a", "unused", "b"])

    for kind in (pa.int8(), pa.uint8()):
        indices = pa.array([4, 2, 0, 1, None], kind)
        codes, n, first_rows = encode(pa.DictionaryArray.from_arrays(indices, dictionary))

        assert codes.tolist() == [0, 1, 1, -1, -1]
        assert n == 2
        assert first_rows.tolist() == [0, 1]


def test_arrow_rows_are_taken_in_the_order_asked_for() -> None:
    series = pa.chunked_array([["a", "b"], [], ["c"], ["d", "e"]], pa.string())

    assert take(series, np.array([4, 0, 2, 2, 1])).to_pylist() == ["e", "a", "c", "c", "b"]


def test_numpy_times_are_ids() -> None:
    series = np.array(["2024-01-02", "NaT", "2024-01-01", "2024-01-02"], dtype="datetime64[ns]")

    codes, _, first_rows = encode(series)

    assert codes.tolist() == [0, -1, 1, 0]
    assert to_list(take(series, first_rows)) == [series[0], series[2]]


def test_all_marks_of_a_missing_object_are_missing() -> None:
    values = ["a", None, float("nan"), pd.NA, pd.NaT, np.float64("nan"), (1, 2), "a"]

    for series in (objects(values), pd.Series(values, dtype=object)):
        assert encode(series).codes.tolist() == [0, -1, -1, -1, -1, -1, 1, 0]


@pytest.mark.parametrize(
    "series",
    [
        objects([[1], [2]]),
        pd.Series([[1], [2]]),
        pl.Series([[1], [2]]),
        pa.array([[1], [2]]),
        pa.array([{"a": 1}]),
    ],
    ids=library,
)
def test_lists_and_structs_cannot_be_ids(series: Column) -> None:
    with pytest.raises(AnswersError, match=r'^Column "who": holds .* Turn them into text'):
        encode(series, column="who")


def test_encoding_stays_within_forty_bytes_a_row() -> None:
    n_rows = 1_000_000
    ids = np.random.default_rng(1).integers(0, 4 * n_rows, n_rows)
    tracemalloc.start()
    codes, _, first_rows = encode(ids)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak - codes.nbytes - first_rows.nbytes <= 40 * n_rows


def test_ids_are_looked_up_by_value() -> None:
    ids = Ids(np.array([3, 1]))

    assert ids.index_of([1, np.int64(3), "1", 2, None]).tolist() == [1, 0, -1, -1, -1]
    for others in (Ids(pl.Series([3, 9])), pa.array([3, 9]), np.array([3, 9]), (3, 9)):
        assert ids.index_of(others).tolist() == [0, -1]
    assert Ids(pa.array(["1", "x"])).index_of([1, "1", np.str_("x")]).tolist() == [-1, 0, 1]


def test_ids_know_their_length_and_values(column: Callable[[list[object]], Column]) -> None:
    ids = Ids(column(["b", "c", "a"]))

    assert len(ids) == 3
    assert ids.tolist() == ["b", "c", "a"]
    assert ids.tolist(np.array([2, 0])) == ["a", "b"]
    assert ids.take(np.array([1])).tolist() == ["c"]
    assert ids.sort_order().tolist() == [2, 0, 1]
    assert library(ids.take(np.array([1])).values) == library(ids.values)
    assert repr(ids).startswith("Ids(3 of ")


def test_categories_sort_by_what_they_say() -> None:
    wanted = [1, 0]
    assert Ids(pl.Series(["b", "a"], dtype=pl.Categorical)).sort_order().tolist() == wanted
    assert Ids(pl.Series(["b", "a"], dtype=pl.Enum(["b", "a"]))).sort_order().tolist() == wanted
    assert Ids(pa.array(["b", "a"]).dictionary_encode()).sort_order().tolist() == wanted
    assert Ids(pd.Series(["b", "a"], dtype="category")).sort_order().tolist() == wanted


def test_mixed_ids_sort_by_type_then_text() -> None:
    ids = Ids(objects(["b", 10, (1,), "a", 9]))

    assert [ids.tolist()[code] for code in ids.sort_order()] == [10, 9, "a", "b", (1,)]
