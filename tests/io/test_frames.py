"""Frames of every kind become the same table, and results come back as that kind of frame."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trueup.errors import AnswersError, first_rows, places, quoted
from trueup.io.frames_out import make_frame
from trueup.io.readers.frames import open_with_narwhals, read_frame
from trueup.io.series import to_list
from trueup.io.table import Ids

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trueup.io.frames_out import Column
    from trueup.io.table import Table

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
duckdb = pytest.importorskip("duckdb")

Frame = Any
Constructor: TypeAlias = "Callable[[Mapping[str, list[object]]], Frame]"


def arrow(columns: Mapping[str, list[object]]) -> Frame:
    return pa.table({name: pa.array(values) for name, values in columns.items()})


CONSTRUCTORS: dict[str, Constructor] = {
    "pandas": pd.DataFrame,
    "pandas-pyarrow": lambda columns: arrow(columns).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.DataFrame,
    "polars-lazy": pl.LazyFrame,
    "pyarrow": arrow,
    "duckdb": lambda columns: duckdb.from_arrow(arrow(columns)),
    "dict": dict,
}
KINDS = {"pandas-pyarrow": "pandas", "polars-lazy": "polars", "dict": "array"}
UNORDERED = ("polars-lazy", "duckdb")


@pytest.fixture(params=CONSTRUCTORS)
def constructor(request: pytest.FixtureRequest) -> Constructor:
    return CONSTRUCTORS[request.param]


@pytest.fixture
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.node.callspec.params["constructor"]
    return KINDS.get(name, name)


@pytest.fixture
def ordered(request: pytest.FixtureRequest) -> bool:
    return request.node.callspec.params["constructor"] not in UNORDERED


def small(**changed: list[object]) -> dict[str, list[object]]:
    columns: dict[str, list[object]] = {
        "question": ["q2", "q2", "q1"],
        "worker": [30, 10, 30],
        "answer": [1.5, 2.0, -3.0],
    }
    return columns | changed


def rows_of(table: Table) -> list[tuple[object, object, float]]:
    """Decode a table into (question id, worker id, answer)."""
    questions, workers = table.question_ids.tolist(), table.worker_ids.tolist()
    return [
        (questions[q], workers[w], a)
        for q, w, a in zip(table.question, table.worker, table.answer.tolist(), strict=True)
    ]


def values_of(frame: Frame) -> dict[str, list[object]]:
    """Read a result frame of any kind, null (in pandas: NaN) as None."""
    if isinstance(frame, pd.DataFrame):
        plain = frame.astype(object).where(frame.notna(), None)
        return {name: plain[name].tolist() for name in frame.columns}
    if isinstance(frame, pl.DataFrame):
        return frame.to_dict(as_series=False)  # type: ignore[no-any-return]
    if isinstance(frame, dict):
        return {name: values.tolist() for name, values in frame.items()}
    table = frame if isinstance(frame, pa.Table) else frame.to_arrow_table()
    return table.to_pydict()  # type: ignore[no-any-return]


# -- reading ---------------------------------------------------------------------------------------


def test_a_frame_becomes_codes_ids_and_numbers(
    constructor: Constructor, kind: str, ordered: bool
) -> None:
    table = read_frame(constructor(small()))

    assert rows_of(table) == [("q2", 30, 1.5), ("q2", 10, 2.0), ("q1", 30, -3.0)]
    assert table.question.tolist() == ([0, 0, 1] if ordered else [1, 1, 0])
    assert table.worker.tolist() == ([0, 1, 0] if ordered else [1, 0, 1])
    assert table.question.dtype == table.worker.dtype == np.int32
    assert table.answer.dtype == np.float64
    assert (table.row, table.panel, table.panel_ids, table.numbers) == (None, None, None, {})
    assert (table.n_rows, table.n_missing) == (3, 0)
    assert (table.kind, table.ordered) == (kind, ordered)


def test_one_row_is_enough(constructor: Constructor) -> None:
    frame = constructor({"question": ["a"], "worker": ["b"], "answer": [4]})

    assert rows_of(read_frame(frame)) == [("a", "b", 4.0)]


def test_rows_without_an_answer_are_dropped_before_codes_are_given(
    constructor: Constructor,
) -> None:
    columns = small(
        question=["gone", "q2", "q2", None], worker=[99, 30, 10, 5], answer=[None, 1.0, 2.0, None]
    )

    table = read_frame(constructor(columns))

    assert rows_of(table) == [("q2", 30, 1.0), ("q2", 10, 2.0)]
    assert table.row is not None
    assert table.row.tolist() == [1, 2]
    assert (table.n_rows, table.n_missing) == (4, 2)
    assert len(table.question_ids) == 1
    assert len(table.worker_ids) == 2


def test_panels_and_further_numbers_are_read(constructor: Constructor) -> None:
    columns = small(
        answer=[1.0, None, 3.0],
        p=["x", "y", "x"],
        weight=[2, None, None],
        text=["1.5", "junk in a dropped row", " -2 "],
    )

    table = read_frame(constructor(columns), panel="p", numbers=("weight", "text", "weight"))

    assert table.panel is not None
    assert table.panel_ids is not None
    assert table.panel.tolist() == [0, 0]
    assert table.panel_ids.tolist() == ["x"]
    assert list(table.numbers) == ["weight", "text"]
    np.testing.assert_array_equal(table.numbers["weight"], [2.0, np.nan])
    np.testing.assert_array_equal(table.numbers["text"], [1.5, -2.0])


@pytest.mark.parametrize(
    ("answers", "numbers"),
    [
        ([1, 2, 3], [1, 2, 3]),
        ([True, False, None], [1, 0]),
        ([1, None, 3], [1, 3]),
        ([1.5, float("nan"), 3.0], [1.5, 3.0]),
        ([Decimal("1.50"), None, Decimal("-2.25")], [1.5, -2.25]),
        (["1.5", " +2e1\t", "-.5"], [1.5, 20.0, -0.5]),
        (["7.", "", "NA"], [7.0]),
        (["NaN", "Null", " 1e-3 "], [1e-3]),
        ([2**53 + 1, 0, -5], [2.0**53, 0, -5]),
    ],
)
def test_answers_of_every_sort_become_numbers(
    constructor: Constructor, answers: list[object], numbers: list[float]
) -> None:
    table = read_frame(constructor(small(answer=answers)))

    assert table.answer.tolist() == numbers
    assert table.n_missing == 3 - len(numbers)


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (
            ["abc", "1", "none"],
            (
                'Column "answer": 2 of 3 values are not numbers, first at rows 0 ("abc"), '
                '2 ("none"). Remove or mend these rows, pass skip_bad=True to set them aside, or '
                'pass answer="other_column".'
            ),
        ),
        (
            ["1", "0x10", "2"],
            (
                'Column "answer": 1 of 3 values is not a number, at row 1 ("0x10"). '
                "Remove or mend these rows, pass skip_bad=True to set them aside, or pass "
                'answer="other_column".'
            ),
        ),
        (
            ["3,5", "1", "2"],
            (
                'Column "answer": 1 of 3 values is not a number, at row 0 ("3,5"). '
                'It has a decimal comma. To read them pass decimal=",".'
            ),
        ),
        (
            [1.0, float("inf"), float("-inf")],
            (
                'Column "answer": 2 of 3 values are infinite, first at rows 1 (inf), 2 (-inf). '
                "Remove these rows, leave the value empty where there is none, or pass "
                "skip_bad=True to set them aside."
            ),
        ),
        (
            ["1", "-Infinity", "1e999"],
            (
                'Column "answer": 2 of 3 values are infinite, first at rows 1 (-inf), 2 (inf). '
                "Remove these rows, leave the value empty where there is none, or pass "
                "skip_bad=True to set them aside."
            ),
        ),
        (
            [1.0, 1e151, 2.0],
            (
                'Column "answer": 1 of 3 values is beyond ±1e+150, at row 1 (1e+151). '
                "Their squares overflow: remove these rows, give answers in a larger unit, or "
                "pass skip_bad=True to set them aside."
            ),
        ),
        (
            [None, float("nan"), None],
            'Column "answer": no answers, all 3 values are missing. Give at least one answer.',
        ),
        (
            ["nan(x)", "1_000", "１"],
            (
                'Column "answer": 3 of 3 values are not numbers, first at rows 0 ("nan(x)"), '
                '1 ("1_000"), 2 ("１"). Remove or mend these rows, pass skip_bad=True to set them '
                'aside, or pass answer="other_column".'
            ),
        ),
    ],
)
def test_answers_that_are_no_use_are_named(
    constructor: Constructor, answers: list[object], message: str
) -> None:
    with pytest.raises(AnswersError) as caught:
        read_frame(constructor(small(answer=answers)))

    assert str(caught.value) == message


@pytest.mark.parametrize(
    "answers",
    [
        [dt.date(2024, 1, 1)] * 3,
        [dt.datetime(2024, 1, 1, tzinfo=dt.UTC)] * 3,
        [dt.timedelta(1)] * 3,
        [[1.0]] * 3,
        [{"a": 1.0}] * 3,
        [b"1"] * 3,
    ],
    ids=["date", "datetime", "duration", "list", "struct", "bytes"],
)
def test_answers_of_another_type_are_refused(
    constructor: Constructor, answers: list[object]
) -> None:
    with pytest.raises(AnswersError, match=r'^Column "answer": .*not numbers') as caught:
        read_frame(constructor(small(answer=answers)))

    assert "\n" not in str(caught.value)


def test_complex_answers_are_refused() -> None:
    for frame in (
        pd.DataFrame(small(answer=[1j, 2.0, 3.0])),
        small(answer=[1j, 2.0, 3.0]),
        small(answer=np.array([1j, 2.0, 3.0])),  # type: ignore[arg-type]
    ):
        with pytest.raises(AnswersError, match=r'^Column "answer": .*not a? ?number'):
            read_frame(frame)


def test_missing_ids_are_named(constructor: Constructor) -> None:
    with pytest.raises(AnswersError) as caught:
        read_frame(constructor(small(worker=["a", None, None])))

    assert str(caught.value) == (
        'Column "worker": 2 of 3 values are missing, first at rows 1, 2. '
        "Every answer needs an id here: fill it in, remove these rows, or pass skip_bad=True to "
        "set them aside."
    )


def test_rows_of_missing_ids_are_counted_in_the_input(constructor: Constructor) -> None:
    columns = small(question=["a", "b", None], answer=[None, 1.0, 2.0])

    with pytest.raises(AnswersError, match=r'"question": 1 of 3 values is missing, at row 2\.'):
        read_frame(constructor(columns))


def test_no_rows_are_no_answers(constructor: Constructor) -> None:
    empty = {"question": pa.array([], "string"), "worker": pa.array([], "string")}
    table = pa.table(empty | {"answer": pa.array([], pa.float64())})
    frame = constructor(small())
    if isinstance(frame, pl.DataFrame | pl.LazyFrame):
        nothing: Frame = frame.head(0)
    elif isinstance(frame, pd.DataFrame):
        nothing = frame.head(0)
    elif isinstance(frame, dict):
        nothing = {name: [] for name in frame}
    else:
        nothing = table if isinstance(frame, pa.Table) else duckdb.from_arrow(table)

    with pytest.raises(AnswersError, match="no answers, the table has 0 rows"):
        read_frame(nothing)


# -- columns ---------------------------------------------------------------------------------------


def test_the_names_task_and_label_are_recognised(constructor: Constructor) -> None:
    columns = small()
    columns["task"] = columns.pop("question")
    only_task = constructor(columns)
    columns["label"] = columns.pop("answer")

    for frame in (only_task, constructor(columns)):
        assert rows_of(read_frame(frame))[0] == ("q2", 30, 1.5)


def test_the_default_name_comes_before_its_substitute(constructor: Constructor) -> None:
    frame = constructor(small(task=["no", "no", "no"], label=[0, 0, 0]))

    assert rows_of(read_frame(frame))[0] == ("q2", 30, 1.5)


@pytest.mark.parametrize("name", ['say "hi"', "^a$", "*", "a.b", "ü\n", "select", "c d"])
def test_any_name_of_a_column_will_do(constructor: Constructor, name: str) -> None:
    columns = small()
    columns[name] = columns.pop("worker")

    assert rows_of(read_frame(constructor(columns), worker=name))[1] == ("q2", 10, 2.0)


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (
            {"Questoin": ["a"], "worker": ["b"], "answer": [1]},
            {},
            (
                'Column "question": not found. The columns are "Questoin", "worker", "answer". '
                'Did you mean question="Questoin"?'
            ),
        ),
        (
            {"question": ["a"], "worker": ["b"], "text": ["x"]},
            {},
            (
                'Column "answer": not found. The columns are "question", "worker", "text". '
                'Name the column that holds it: answer="...".'
            ),
        ),
        (
            {"question": ["a"], "worker": ["b"], "answer": [1], "weight": [1]},
            {"numbers": ("wieght",)},
            (
                'Column "wieght": not found. The columns are "question", "worker", "answer", '
                '"weight". Did you mean "weight"?'
            ),
        ),
        (
            {"question": ["a"], "worker": ["b"], "answer": [1]},
            {"numbers": ("xyz",)},
            (
                'Column "xyz": not found. The columns are "question", "worker", "answer". '
                "Name a column that is there."
            ),
        ),
        (
            {"task": ["a"], "worker": ["b"], "answer": [1]},
            {"question": np.ones(2)},
            (
                'Column array([1., 1.]): not found. The columns are "task", "worker", "answer". '
                'Name the column that holds it: question="...".'
            ),
        ),
        (
            {"question": ["a"], "worker": ["b"], "answer": [1]},
            {"worker": "question"},
            'Column "question": asked for as question and as worker. Give each its own column.',
        ),
        (
            {"question": ["a"], "worker": ["b"], "answer": [1]},
            {"numbers": ("answer",)},
            (
                'Column "answer": asked for as answer and as further numbers. '
                "Give each its own column."
            ),
        ),
    ],
)
def test_columns_that_cannot_be_chosen_are_named(
    constructor: Constructor,
    columns: dict[str, list[object]],
    options: dict[str, Any],
    message: str,
) -> None:
    with pytest.raises(AnswersError) as caught:
        read_frame(constructor(columns), **options)

    assert str(caught.value) == message


def test_at_most_ten_columns_are_listed() -> None:
    columns: dict[str, list[object]] = {f"c{i}": ["x"] for i in range(12)}

    with pytest.raises(AnswersError, match=r'"c8", "c9" and 2 more\. Did you mean question="c0"'):
        read_frame(columns)
    with pytest.raises(AnswersError, match=r"There are no columns\."):
        read_frame({})


def test_two_columns_of_one_name_are_refused() -> None:
    frame = pd.DataFrame([[1, 2, 3.0, 4.0]], columns=["question", "worker", "answer", "answer"])

    for twice in (frame, pa.Table.from_arrays([pa.array([1])] * 4, names=list(frame.columns))):
        with pytest.raises(AnswersError, match=r'"answer": there are 2 columns of this name'):
            read_frame(twice)


# -- kinds of frame --------------------------------------------------------------------------------


def test_only_the_columns_needed_are_collected() -> None:
    def fail(_: object) -> object:
        raise AssertionError

    lazy = pl.LazyFrame(small()).with_columns(
        boom=pl.col("answer").map_elements(fail, return_dtype=pl.Float64)
    )

    assert read_frame(lazy).n_rows == 3


def test_record_batches_are_read() -> None:
    batch = pa.RecordBatch.from_pydict(small())

    table = read_frame(batch)

    assert rows_of(table)[2] == ("q1", 30, -3.0)
    assert table.kind == "pyarrow"


def test_a_frame_in_a_narwhals_wrapper_is_unwrapped() -> None:
    narwhals = pytest.importorskip("narwhals")

    assert read_frame(narwhals.from_native(pl.DataFrame(small()))).kind == "polars"


@pytest.mark.parametrize("name", ["pandas", "polars", "duckdb"])
def test_frames_of_other_libraries_go_through_narwhals(name: str) -> None:
    opened = open_with_narwhals(CONSTRUCTORS[name](small()))

    columns = opened.fetch(["worker", "answer"])

    assert list(opened.names) == ["question", "worker", "answer"]
    assert {key: to_list(column) for key, column in columns.items()} == {
        "worker": [30, 10, 30],
        "answer": [1.5, 2.0, -3.0],
    }
    assert opened.kind == "other"
    assert opened.ordered == (name != "duckdb")


@pytest.mark.parametrize("frame", [7, "answers.csv", None, np.zeros((2, 2)), [1, 2]])
def test_what_is_no_frame_is_refused(frame: object) -> None:
    with pytest.raises(AnswersError, match=r"^Frame: found .*no data frame\. Give a pandas"):
        read_frame(frame)


def test_a_dict_may_hold_columns_of_any_library() -> None:
    columns = {
        "question": pd.Categorical(["b", "a"]),
        "worker": pl.Series(["x", "y"]),
        "answer": pa.array([1, 2]),
        "weight": pd.Index([3, 4]),
    }

    table = read_frame(columns, numbers=("weight",))

    assert rows_of(table) == [("b", "x", 1.0), ("a", "y", 2.0)]
    assert table.numbers["weight"].tolist() == [3.0, 4.0]
    assert table.question_ids.values.dtype == "category"


def test_what_a_masked_array_hides_is_missing() -> None:
    hidden = np.ma.masked_array([1, 2, 3], mask=[False, True, False])

    assert read_frame(small(answer=hidden)).answer.tolist() == [1.0, 3.0]  # type: ignore[arg-type]
    with pytest.raises(AnswersError, match=r'"worker": 1 of 3 values is missing, at row 1\.'):
        read_frame(small(worker=hidden))  # type: ignore[arg-type]


def test_columns_of_a_dict_must_be_columns_of_one_length() -> None:
    with pytest.raises(AnswersError, match=r'"worker" has 3, "answer" has 2'):
        read_frame(small(answer=[1, 2]))
    with pytest.raises(AnswersError, match=r'^Column "answer": found an array of 2 dimensions'):
        read_frame(small(answer=np.zeros((3, 1))))  # type: ignore[arg-type]
    with pytest.raises(AnswersError, match=r'^Column "worker": found a single "str"'):
        read_frame(small(worker="abc"))  # type: ignore[arg-type]


def test_a_list_keeps_numbers_and_texts_apart() -> None:
    table = read_frame(small(worker=[1, "1", 1], question=["a\0", "a", "a"]))

    assert table.worker_ids.tolist() == [1, "1"]
    assert table.question_ids.tolist() == ["a\0", "a"]


@pytest.mark.parametrize("ids", [[-1, 2**64 - 1, 2**64 - 2], [1, 2**63, -(2**63)], [1, 2**70, 2]])
def test_a_list_keeps_all_digits_of_whole_numbers(ids: list[object]) -> None:
    """No integer type of numpy holds all of these, and fractions would round two of the first to the same."""
    table = read_frame(small(question=ids))

    assert table.question_ids.tolist() == ids
    assert list(map(type, table.question_ids.tolist())) == [int, int, int]
    assert table.question_ids.index_of(ids).tolist() == [0, 1, 2]


def test_pandas_answers_of_extension_types_are_read() -> None:
    for answers in (
        pd.array([1, None, 3], dtype="Int64"),
        pd.array([1.0, None, 3.0], dtype="Float64"),
        pd.array(["1", None, "3"], dtype="string"),
        pd.array(["1", None, "3"], dtype=pd.StringDtype("python")),
        pd.Categorical(["1", None, "3"]),
        pd.Categorical([1, None, 3]),
        pd.arrays.SparseArray([1.0, np.nan, 3.0]),
        pd.Series([1, pd.NA, np.float32(3)], dtype=object),
    ):
        frame = pd.DataFrame(small()).assign(answer=answers)
        assert read_frame(frame).answer.tolist() == [1.0, 3.0]
    with pytest.raises(AnswersError, match=r'^Column "answer": holds "period\[M\]" values'):
        read_frame(
            pd.DataFrame(small()).assign(answer=pd.period_range("2024", periods=3, freq="M"))
        )


def test_categories_are_read_as_the_numbers_they_spell() -> None:
    for frame in (
        pl.DataFrame(small(answer=["1", None, "3"])).cast({"answer": pl.Categorical}),
        pl.DataFrame(small()).with_columns(pl.Series("answer", [1, None, "3"], dtype=pl.Object)),
        pa.table(small(answer=pa.array(["1", None, "3"]).dictionary_encode())),
        pa.table(small(answer=pa.array([" 1", None, "3"], pa.string_view()))),
    ):
        assert read_frame(frame).answer.tolist() == [1.0, 3.0]


def test_objects_that_are_numbers_are_read_and_others_named() -> None:
    good = [np.int8(1), Decimal(2), np.bool_(True), 10**400, "4"]
    columns: dict[str, list[object]] = {"question": [*"abcde"], "worker": [*"abcde"]}

    with pytest.raises(AnswersError, match=r"1 of 5 values is infinite, at row 3 \(inf\)"):
        read_frame(columns | {"answer": good})
    with pytest.raises(AnswersError, match=r"2 of 5 values are not numbers, first at rows 0 \("):
        read_frame(
            columns | {"answer": [np.timedelta64(1, "s"), 2, dt.date(2024, 1, 1), "4", None]}
        )
    good[3] = 3
    assert read_frame(columns | {"answer": good}).answer.tolist() == [1, 2, 1, 3, 4]


def test_the_callers_numbers_cannot_be_overwritten_through_the_table() -> None:
    answers = np.array([1.0, 2.0, 3.0])

    table = read_frame(small(answer=answers))  # type: ignore[arg-type]

    with pytest.raises(ValueError, match="read-only"):
        table.answer[0] = 9.0
    assert answers.flags.writeable


def test_infinite_further_numbers_are_refused() -> None:
    with pytest.raises(AnswersError, match=r'^Column "w": 1 of 3 values is infinite, at row 2'):
        read_frame(small(w=[-1.0, None, float("inf")]), numbers=("w",))


# -- results ---------------------------------------------------------------------------------------


def test_results_come_back_as_the_kind_of_frame_that_came_in(
    constructor: Constructor, kind: str
) -> None:
    table = read_frame(constructor(small()))

    frame = make_frame(
        table.kind,
        {
            "question": table.question_ids,
            "truth": np.array([1.0, np.nan]),
            "count": np.array([2, 1]),
            "sure": np.array([True, False]),
            "note": ["é", None],
            "none": [None, None],
        },
        null_columns={"truth"},
    )

    wanted = {
        "pandas": pd.DataFrame,
        "polars": pl.DataFrame,
        "pyarrow": pa.Table,
        "duckdb": duckdb.DuckDBPyRelation,
        "array": pd.DataFrame,
    }
    assert isinstance(frame, wanted[kind])
    assert values_of(frame) == {
        "question": table.question_ids.tolist(),
        "truth": [1.0, None],
        "count": [2, 1],
        "sure": [True, False],
        "note": ["é", None],
        "none": [None, None],
    }


def test_not_a_number_stays_where_it_does_not_mean_missing() -> None:
    nan = {"x": np.array([np.nan])}

    assert make_frame("polars", nan)["x"].is_nan().to_list() == [True]
    assert make_frame("polars", nan, null_columns={"x"})["x"].null_count() == 1
    assert make_frame("pyarrow", nan)["x"].null_count == 0
    assert make_frame("pyarrow", nan, null_columns={"x"})["x"].null_count == 1
    assert make_frame("pandas", nan, null_columns={"x"})["x"].dtype == np.float64


@pytest.mark.parametrize("kind", ["array", "file", "other"])
def test_without_a_frame_the_result_is_what_is_installed(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns: dict[str, Column] = {
        "id": Ids(np.array(["a", "b"], dtype=object)),
        "other": Ids(pl.Series([1, 2])),
        "text": [None, "x"],
        "x": np.array([0.5, 1.5]),
    }
    plain = {"id": ["a", "b"], "other": [1, 2], "text": [None, "x"], "x": [0.5, 1.5]}

    first = make_frame(kind, columns)
    monkeypatch.setitem(sys.modules, "pandas", None)
    second = make_frame(kind, columns)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    third = make_frame(kind, columns)
    monkeypatch.undo()

    assert (type(first), type(second), type(third)) == (pd.DataFrame, pa.Table, dict)
    assert [values_of(frame) for frame in (first, second, third)] == [plain] * 3


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("source", ["numpy", "pandas", "polars", "pyarrow"])
def test_ids_may_come_from_another_library(kind: str, source: str) -> None:
    make = {"numpy": np.array, "pandas": pd.Series, "polars": pl.Series, "pyarrow": pa.array}

    frame = make_frame(kind, {"id": Ids(make[source]([5, 3]))})

    assert values_of(frame) == {"id": [5, 3]}


def test_types_of_ids_survive_the_way_through() -> None:
    ids = pd.DataFrame(
        {
            "question": pd.Categorical(["x", "y"], categories=["z", "y", "x"]),
            "worker": pd.to_datetime(["2024-01-01", "2023-01-01"]),
            "answer": [1, 2],
        },
        index=[9, 9],
    )

    table = read_frame(ids)
    frame = make_frame(table.kind, {"question": table.question_ids, "worker": table.worker_ids})

    pd.testing.assert_frame_equal(frame, ids[["question", "worker"]].reset_index(drop=True))


texts = st.lists(st.text(), min_size=1, max_size=30)
integers = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=30)


@pytest.mark.parametrize("name", CONSTRUCTORS)
@given(ids=texts | integers)
def test_ids_come_back_as_they_went_in(name: str, ids: list[object]) -> None:
    rows: list[object] = list(range(len(ids)))
    table = read_frame(CONSTRUCTORS[name]({"question": rows, "worker": ids, "answer": rows}))

    frame = make_frame(table.kind, {"worker": table.worker_ids.take(table.worker)})

    assert values_of(frame) == {"worker": ids}
    assert table.worker_ids.index_of(ids).tolist() == table.worker.tolist()
    assert len(table.worker_ids) == len(set(ids))
    if not table.ordered:
        assert table.worker_ids.tolist() == sorted(set(ids))  # type: ignore[type-var]


# -- the voice of errors ---------------------------------------------------------------------------


@given(st.text() | st.binary() | st.integers() | st.lists(st.text()))
def test_a_quoted_value_is_short_and_on_one_line(value: object) -> None:
    shown = quoted(value)

    assert shown.isprintable()
    assert len(shown.splitlines()) <= 1
    assert len(shown) <= 40 * len("\\U0001f600") + 2


def test_at_most_five_rows_are_named() -> None:
    bad = np.ones(9, dtype=np.bool_)

    assert first_rows(bad) == "rows 0, 1, 2, 3, 4"
    assert first_rows(bad[:1], np.array([7]), np.array([0.5])) == "row 7 (0.5)"
    assert places([3, 4], ["a", 'say "b"']) == r'rows 3 ("a"), 4 ("say \"b\"")'


def test_importing_loads_no_frame_library() -> None:
    code = (
        "import sys, trueup.io; "
        "print([n for n in ('pandas', 'polars', 'pyarrow', 'duckdb') if n in sys.modules])"
    )

    done = subprocess.run(  # noqa: S603 - our own interpreter and text
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "[]"
