"""Groups, covariates and gold come in many forms and always mean the same."""

from __future__ import annotations

import datetime as dt
import gzip
import subprocess
import sys
from typing import TYPE_CHECKING, Any, TypeAlias

import narwhals as nw
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import trueup
from trueup.answers.answers import Answers
from trueup.errors import AnswersError, MissingExtra, TrueupError, TrueupWarning
from trueup.io.question_data import Covariates, Labels, QuestionDataRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
duckdb = pytest.importorskip("duckdb")

Frame = Any
Columns: TypeAlias = "dict[str, list[Any]]"
Constructor: TypeAlias = "Callable[[Mapping[str, list[Any]]], Frame]"

# Questions in this order, which is not that of their ids.
QUESTIONS = ["q3", "q1", "q2"]
LONG: Columns = {
    "question": ["q3", "q3", "q1", "q2", "q1"],
    "worker": [1, 2, 1, 2, 2],
    "answer": [1.0, 2.0, 5.0, 7.0, 6.0],
    "genre": ["film", "film", "book", None, "book"],
    "size": [3, 3, 1, 2, 1],
    "share": [0.3, 0.3, 0.1, 0.2, 0.1],
    "known": [None, 1.5, None, None, None],
}


def arrow(columns: Mapping[str, list[Any]]) -> Frame:
    return pa.table({name: pa.array(values) for name, values in columns.items()})


CONSTRUCTORS: dict[str, Constructor] = {
    "pandas": pd.DataFrame,
    "pandas-pyarrow": lambda columns: arrow(columns).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.DataFrame,
    "polars-lazy": pl.LazyFrame,
    "pyarrow": arrow,
    "duckdb": lambda columns: duckdb.from_arrow(arrow(columns)),
    "dict": dict,
    "narwhals": lambda columns: nw.from_native(pl.DataFrame(columns)),
}


@pytest.fixture(params=CONSTRUCTORS)
def constructor(request: pytest.FixtureRequest) -> Constructor:
    return CONSTRUCTORS[request.param]


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write columns to a file under this name."""

    def write(columns: Columns, name: str) -> Path:
        path = tmp_path / name
        if name.endswith(".parquet"):
            pq.write_table(arrow(columns), path)
        else:
            rows = [list(columns), *zip(*columns.values(), strict=True)]
            texts = [",".join("" if v is None else str(v) for v in row) for row in rows]
            path.write_text("\n".join(texts) + "\n")
        return path

    return write


def answers(questions: list[Any] = QUESTIONS, **options: Any) -> Answers:
    """Make answers of one worker to these questions, in this order."""
    n = len(questions)
    columns = {"question": questions, "worker": [1] * n, "answer": [2.0] * n}
    return Answers.of(columns, **options)


def read_groups(groups: Any, of: Answers, data: Any = None, **options: Any) -> Labels | None:
    return QuestionDataRequest(groups=groups, **options).read(of, data).groups


def read_covariates(
    covariates: Any, of: Answers, data: Any = None, **options: Any
) -> Covariates | None:
    return QuestionDataRequest(covariates=covariates, **options).read(of, data).covariates


def read_gold(gold: Any, of: Answers, data: Any = None, **options: Any) -> Any:
    return QuestionDataRequest(gold=gold, **options).read(of, data).gold


def labels(groups: Any, of: Answers | None = None, data: Any = None, **options: Any) -> list[Any]:
    """Read groups as one label per question."""
    found = read_groups(groups, of or answers(), data, **options)
    assert found is not None
    assert found.codes.dtype == np.int64
    firsts = [int(np.argmax(found.codes == code)) for code in range(len(found.ids))]
    assert firsts == sorted(firsts)
    assert set(found.codes.tolist()) - {-1} == set(range(len(found.ids)))
    ids = [*found.ids.tolist(), None]
    return [ids[code] for code in found.codes.tolist()]


def covariates(
    covariates: Any, of: Answers | None = None, data: Any = None, **options: Any
) -> dict[str, list[float]]:
    """Read covariates as one list per name."""
    found = read_covariates(covariates, of or answers(), data, **options)
    assert found is not None
    assert found.values.dtype == np.float64
    return dict(zip(found.names, found.values.T.tolist(), strict=True))


def gold(gold: Any, of: Answers | None = None, data: Any = None, **options: Any) -> list[Any]:
    """Read gold as one number or None per question."""
    found = read_gold(gold, of or answers(), data, **options)
    assert found is not None
    assert found.dtype == np.float64
    return [None if np.isnan(truth) else truth for truth in found.tolist()]


def message(read: Callable[..., Any], *arguments: Any, **options: Any) -> str:
    """Return the one line that a call ends with."""
    with pytest.raises(AnswersError) as caught:
        read(*arguments, **options)
    assert isinstance(caught.value, TrueupError)
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith(f"{read.__name__.removeprefix('read_')}: ")
    return text


def test_nothing_given_is_nothing_read() -> None:
    assert read_groups(None, answers(), None) is None
    assert read_covariates(None, answers(), None) is None
    assert read_gold(None, answers(), None) is None


# -- columns of the answers ------------------------------------------------------------------------


def test_columns_of_the_answers(constructor: Constructor) -> None:
    data = constructor(LONG)
    of = Answers.of(data)
    order = of.question_ids.tolist()
    want = {
        "q3": ("film", 3.0, 0.3, 1.5),
        "q1": ("book", 1.0, 0.1, None),
        "q2": (None, 2, 0.2, None),
    }
    assert labels("genre", of, data) == [want[str(q)][0] for q in order]
    both = covariates(["size", "share", "size"], of, data)
    assert both == {
        "size": [want[str(q)][1] for q in order],
        "share": [want[str(q)][2] for q in order],
    }
    assert covariates("share", of, data) == {"share": both["share"]}
    assert gold("known", of, data) == [want[str(q)][3] for q in order]


@pytest.mark.parametrize("name", ["answers.csv", "answers.parquet", "answers.txt"])
@pytest.mark.parametrize("as_text", [False, True])
def test_columns_of_a_file(write: Callable[..., Path], name: str, as_text: bool) -> None:
    path = write(LONG, name)
    data = str(path) if as_text else path
    of = Answers.of(data)
    assert labels("genre", of, data) == ["film", "book", None]
    assert covariates(("size", "share"), of, data) == {"size": [3, 1, 2], "share": [0.3, 0.1, 0.2]}
    assert gold("known", of, data) == [1.5, None, None]


def test_names_may_come_as_an_index_or_array() -> None:
    data = pd.DataFrame(LONG)
    want = {"size": [3, 1, 2], "share": [0.3, 0.1, 0.2]}
    assert covariates(data.columns[4:6], answers(), data) == want
    assert covariates(np.array(["size", "share"]), answers(), data) == want


def test_the_question_column_has_other_names() -> None:
    for name, option in (("task", "question"), ("item", "item")):
        data = {name if old == "question" else old: values for old, values in LONG.items()}
        of = Answers.of(data, question=option)
        assert labels("genre", of, data, question=option) == ["film", "book", None]
        for own in (name, "question", "task"):
            frame = {own: ["q2", "q3"], "truth": [4.0, 5.0]}
            assert gold(frame, of, data, question=option) == [5.0, None, 4.0]


def test_a_question_may_have_its_label_in_some_rows_only() -> None:
    data = LONG | {"genre": [None, "film", "book", "", "book"], "size": [None, 3, 1, 2, None]}
    assert labels("genre", answers(), data) == ["film", "book", None]
    assert covariates("size", answers(), data) == {"size": [3, 1, 2]}


def test_rows_without_a_question_or_an_answer_do_not_matter() -> None:
    data = {
        "question": ["q3", None, "q9", "q1", "q2"],
        "worker": [1, 1, 1, 1, 1],
        "answer": [1.0, None, None, 2.0, 3.0],
        "x": ["1", "a", "b", "3", "4"],
    }
    of = Answers.of(data)
    assert covariates("x", of, data) == {"x": [1, 3, 4]}
    assert labels("x", of, data) == ["1", "3", "4"]


# -- frames and files by question ------------------------------------------------------------------

BY_QUESTION: Columns = {"question": ["q1", "q2", "q3"], "size": [1, 2, 3], "share": [0.1, 0.2, 0.3]}


def test_frames_by_question(constructor: Constructor) -> None:
    genre = constructor({"question": ["q1", "q9", "q3"], "any": ["book", "map", "film"]})
    assert labels(genre) == ["film", "book", None]
    assert covariates(constructor(BY_QUESTION)) == {"size": [3, 1, 2], "share": [0.3, 0.1, 0.2]}
    truth = constructor({"question": ["q1", "q9", "q3"], "truth": [5.0, 9.0, None]})
    assert gold(truth) == [None, 5.0, None]


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.csv.gz", "a.TSV"])
@pytest.mark.parametrize("as_text", [False, True])
def test_files_by_question(write: Callable[..., Path], name: str, as_text: bool) -> None:
    def file(columns: Columns) -> Any:
        if name.endswith(".gz"):
            path = write(columns, "a.csv")
            path = path.rename(path.with_name("plain.csv"))
            path.with_name(name).write_bytes(gzip.compress(path.read_bytes()))
            path = path.with_name(name)
        else:
            path = write(columns, name)
            if name.endswith("TSV"):
                path.write_text(path.read_text().replace(",", "\t"))
        return str(path) if as_text else path

    assert labels(file({"task": ["q1", "q3"], "any": ["book", "film"]})) == ["film", "book", None]
    assert covariates(file(BY_QUESTION)) == {"size": [3, 1, 2], "share": [0.3, 0.1, 0.2]}
    assert gold(file({"question": ["q1", "q3"], "truth": [5.0, None]})) == [None, 5.0, None]
    data = pd.DataFrame(LONG)  # having columns to look in changes nothing
    assert gold(file({"question": ["q1", "q3"], "truth": [5.0, None]}), None, data)[1] == 5.0


@pytest.mark.parametrize(
    "text", ["question;size\nq1;1,5\nq2;2\nq3;3\n", "task,size\nq1,1.5\nq2,2\nq3,3\n"]
)
def test_files_are_read_like_the_answers_or_plainly(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    how = {"sep": ";", "decimal": ",", "encoding": None, "sql": None}
    assert covariates(path, file_options=how) == {"size": [3, 1.5, 2]}
    assert gold(path, file_options=how) == [3, 1.5, 2]


def test_of_two_ways_to_read_a_file_the_one_that_knows_more_questions_is_taken(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("question,truth\nq1,1\nqé,2\n", encoding="utf-8")
    of = answers(["qé", "q1"])
    assert gold(path, of, file_options={"encoding": "latin-1"}) == [2, 1]
    path.write_text("question,truth\nq1,1\nqé,2\n", encoding="latin-1")
    assert gold(path, of, file_options={"encoding": "latin-1"}) == [2, 1]


def test_columns_of_the_answers_are_read_like_them(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("question;worker;answer;size\nq3;a;1;0,5\nq1;a;1;1,5\nq2;a;1;2\n")
    how = {"sep": ";", "decimal": ","}
    assert covariates("size", answers(), path, file_options=how) == {"size": [0.5, 1.5, 2]}
    assert labels("size", answers(), path, file_options=how) == ["0,5", "1,5", "2"]


@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_json_by_question(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text('{"question": "q1", "truth": 5.5}\n{"question": "q3", "truth": null}\n')
    assert gold(str(path)) == [None, 5.5, None]
    assert gold(str(path), file_options={"sep": ";", "decimal": ","}) == [None, 5.5, None]


def test_a_column_named_like_a_file_is_a_column() -> None:
    data = LONG | {"genre.csv": LONG["genre"]}
    assert labels("genre.csv", answers(), data) == ["film", "book", None]


@pytest.mark.parametrize("name", ["truth", "gold", "answer", "value", "other"])
def test_names_of_the_truth(name: str) -> None:
    assert gold({"question": ["q1"], name: [4]}) == [None, 4, None]
    if name != "other":
        assert gold({"note": ["x"], name: [4], "question": ["q1"]}) == [None, 4, None]
    assert gold({"question": ["q1"], "value": [3], "truth": [4]}) == [None, 4, None]


def test_of_several_columns_group_has_the_labels() -> None:
    frame = {"question": ["q1"], "group": ["g"], "size": [4]}
    assert labels(frame) == [None, "g", None]


def test_pandas_frames_may_have_the_questions_as_index() -> None:
    frame = pd.DataFrame(BY_QUESTION).set_index("question")
    assert covariates(frame) == {"size": [3, 1, 2], "share": [0.3, 0.1, 0.2]}
    assert gold(frame[["size"]]) == [3, 1, 2]
    assert labels(frame[["size"]].rename_axis("item"), question="item") == [3, 1, 2]


def test_row_numbers_are_no_covariates(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    pd.DataFrame(BY_QUESTION).to_csv(path)
    assert list(covariates(path)) == ["size", "share"]
    assert list(covariates(pd.read_csv(path))) == ["size", "share"]
    path = tmp_path / "c.parquet"
    pd.DataFrame(BY_QUESTION, index=[7, 8, 9]).to_parquet(path)
    assert list(covariates(path)) == ["size", "share"]


def test_a_frame_may_name_questions_again_and_agree() -> None:
    frame = {"question": ["q1", "q1", "q1"], "truth": [4.0, None, 4.0]}
    assert gold(frame) == [None, 4.0, None]
    assert labels(frame) == [None, 4.0, None]


# -- mappings --------------------------------------------------------------------------------------


def test_mappings() -> None:
    assert labels({"q1": "b", "q3": "a", "q9": "c", "q2": None}) == ["a", "b", None]
    assert covariates({"q1": 1, "q2": 2, "q3": 3}) == {"covariate": [3, 1, 2]}
    assert gold({"q1": 4, "q2": None, "q9": 1}) == [None, 4, None]
    assert gold({"q1": "4.5", "q2": np.nan, "q3": np.float32(2)}) == [2, 4.5, None]
    # A question may be called like the column.
    assert labels({"question": "a"}, answers(["question"])) == ["a"]


@pytest.mark.parametrize("dtype", [object, "string[pyarrow]", "category"])
def test_series_indexed_by_question(dtype: Any) -> None:
    assert labels(pd.Series(["b", "a"], index=["q1", "q3"], dtype=dtype)) == ["a", "b", None]
    index = pd.Index(["q1", "q9"], dtype=dtype)
    assert gold(pd.Series([4.0, 1.0], index=index)) == [None, 4, None]
    grouped = pd.DataFrame(LONG).groupby("question")["size"].first()
    assert covariates(grouped) == {"size": [3, 1, 2]}
    assert covariates(grouped.rename(None)) == {"covariate": [3, 1, 2]}


def test_an_empty_mapping_knows_nothing() -> None:
    assert gold({}) == [None, None, None]
    assert labels({}) == [None, None, None]
    assert gold({"question": [], "truth": []}) == [None, None, None]
    assert "q3" in message(read_covariates, {}, answers())


# -- one per question ------------------------------------------------------------------------------

SEQUENCES: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "numpy": np.array,
    "numpy objects": lambda values: np.array(values, dtype=object),
    "polars": pl.Series,
    "pyarrow": pa.array,
    "chunked": lambda values: pa.chunked_array([values[:1], values[1:]]),
    "pandas index": pd.Index,
    "pandas array": pd.array,
    "narwhals": lambda values: nw.from_native(pl.Series(values), series_only=True),
}


@pytest.mark.parametrize("kind", SEQUENCES)
def test_one_per_question(kind: str) -> None:
    make = SEQUENCES[kind]
    assert labels(make(["a", "b", "a"])) == ["a", "b", "a"]
    assert labels(make([2, 1, 2])) == [2, 1, 2]
    assert gold(make([1.0, np.nan, 3.0])) == [1, None, 3]
    assert covariates(make([3, 1, 2])) == {"covariate": [3, 1, 2]}


def test_one_row_per_question() -> None:
    want = {"covariate_0": [3, 1, 2], "covariate_1": [6, 4, 5]}
    rows = [[3, 6], [1, 4], [2, 5]]
    assert covariates(rows) == want
    assert covariates(tuple(map(tuple, rows))) == want
    assert covariates([np.array(row) for row in rows]) == want
    assert covariates(np.array(rows)) == want
    assert covariates(np.array(rows, dtype=np.float32, order="F")) == want
    assert covariates(np.ma.array(rows)) == want
    assert covariates(np.array(rows)[:, :1]) == {"covariate_0": [3, 1, 2]}


def test_masked_entries_are_missing() -> None:
    mask = [False, True, False]
    assert gold(np.ma.array([1.0, 2.0, 3.0], mask=mask)) == [1, None, 3]
    assert labels(np.ma.array([1, 2, 3], mask=mask)) == [1, None, 3]
    assert '"q1"' in message(read_covariates, np.ma.array([[1], [2], [3]], mask=mask), answers())


@pytest.mark.parametrize("make", [np.array, csr_array, np.ndarray.tolist])
def test_arrays_of_answers_have_one_per_column_or_question(make: Callable[..., Any]) -> None:
    matrix = np.array([[1.0, np.nan, 3.0, 4.0], [2.0, np.nan, 1.0, 0.0]])
    data = make(matrix)
    of = Answers.of(data)
    assert of.question_ids.tolist() == [0, 2, 3]
    for form in (["a", "b", "c", "b"], ["a", "c", "b"], {0: "a", 2: "c", 3: "b"}):
        assert labels(form, of, data) == ["a", "c", "b"]
    assert gold([5.0, np.nan, np.nan, 8.0], of, data) == [5, None, 8]
    assert covariates(np.arange(8).reshape(4, 2), of, data) == {
        "covariate_0": [0, 4, 6],
        "covariate_1": [1, 5, 7],
    }
    text = message(read_gold, [1.0, 2.0], of, data)
    assert "found 2, expected one for each of 3 questions with answers, or for each of 4" in text
    # Answers alone do not say how many columns there were.
    assert "each of 3 questions. " in message(read_groups, list("abcd"), of, of)


# -- labels ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("none", [None, np.nan, "", "  ", pd.NA, pd.NaT, float("nan")])
def test_no_label(none: object) -> None:
    assert labels({"q1": "a", "q3": none}) == [None, "a", None]
    assert labels([none, "a", none]) == [None, "a", None]
    assert labels([none] * 3) == [None] * 3
    assert labels(pd.Series([none, "a"], index=["q3", "q1"], dtype=object)) == [None, "a", None]


def test_labels_keep_their_type(write: Callable[..., Path]) -> None:
    day = dt.date(2024, 1, 1)
    assert labels({"q3": 1, "q1": "1", "q2": (1, 2)}) == [1, "1", (1, 2)]
    assert labels([1.5, 2, 1.5]) == [1.5, 2, 1.5]
    assert labels([True, False, None]) == [True, False, None]
    assert labels(pl.Series([day, None, day])) == [day, None, day]
    assert labels(pl.Series(["b", "a", "b"], dtype=pl.Categorical)) == ["b", "a", "b"]
    assert labels(pd.Categorical(["b", "a", "b"], categories=["z", "a", "b"])) == ["b", "a", "b"]
    # As ids of a text file: whole numbers if all of them are.
    assert labels(write({"question": QUESTIONS, "g": [7, 5, None]}, "a.csv")) == [7, 5, None]
    assert labels(write({"question": QUESTIONS, "g": ["07", 5, None]}, "a.csv")) == [
        "07",
        "5",
        None,
    ]


# -- ids -------------------------------------------------------------------------------------------


def test_whole_numbers_are_found_in_every_form(
    write: Callable[..., Path], constructor: Constructor
) -> None:
    columns: Columns = {"question": [2, 10, 1], "truth": [2.5, 10.5, 1.5]}
    want = [10.5, 1.5, 2.5]
    csv, parquet = write(columns, "a.csv"), write(columns, "a.parquet")
    long: Columns = {"question": [10, 1, 2], "worker": [1, 1, 1], "answer": [1.0, 2.0, 3.0]}
    for data in (constructor(long), write(long, "l.csv"), write(long, "l.parquet")):
        of = Answers.of(data)
        here = want if of.question_ids.tolist() == [10, 1, 2] else [1.5, 2.5, 10.5]
        for form in (
            constructor(columns),
            csv,
            parquet,
            dict(zip(*columns.values(), strict=True)),
        ):
            assert gold(form, of, data) == here


def test_text_files_match_ids_of_either_type(write: Callable[..., Path]) -> None:
    columns: Columns = {"question": ["1", "2", "x", "007"], "truth": [1.5, 2.5, 3.5, 4.5]}
    path = write(columns, "a.csv")
    with pytest.warns(TrueupWarning, match='^gold: 1 id is .* "007" is not 7 .str, int.'):
        assert gold(path, answers([2, 1, 7])) == [2.5, 1.5, None]
    assert gold(path, answers(["2", "1", "7", "007"])) == [2.5, 1.5, None, 4.5]
    assert gold(path, answers([2.0, 1.5])) == [2.5, None]
    whole = write({"question": ["1", "2"], "truth": [1.5, 2.5]}, "b.csv")
    assert gold(whole, answers(["1", "a"])) == [1.5, None]
    assert gold(write({"question": ["-3", "-0"], "truth": [1, 2]}, "c.csv"), answers([-3, 0])) == [
        1,
        None,
    ]


@pytest.mark.parametrize("options", [{"thousands": "."}, {"thousands": ".", "decimal": ","}])
def test_numbers_of_one_column_are_read_in_one_way(
    write: Callable[..., Path], tmp_path: Path, options: dict[str, Any]
) -> None:
    """ "956.125" is read as 956125 only if all of its column can be written so."""
    own = tmp_path / "answers.csv"
    own.write_text("question;worker;answer\n1;a;1.050,5\n1;b;1.051,5\n2;a;950,5\n2;b;951,5\n")
    truths = write({"question": ["1", "2"], "truth": ["1053.125", "956.125"]}, "plain.csv")
    est = trueup.estimate(own, sep=";", gold=truths, **options)
    assert est.question_data.gold is not None
    assert est.question_data.gold.tolist() == [1053.125, 956.125]
    like = tmp_path / "like.csv"
    like.write_text("question;truth\n1;1.053\n2;956,125\n")
    est = trueup.estimate(own, sep=";", gold=like, **options)
    assert est.question_data.gold is not None
    assert est.question_data.gold.tolist() == [1053.0, 956.125]
    mixed = tmp_path / "mixed.csv"
    mixed.write_text("question;truth\n1;1053.125\n2;956,125\n")
    with pytest.raises(AnswersError, match="gold"):
        trueup.estimate(own, sep=";", gold=mixed, **options)


@pytest.mark.parametrize("where", ["file", "column"])
def test_truths_have_the_unit_of_the_answers(tmp_path: Path, where: str) -> None:
    rows = [(f"q{i}", f"w{j}", f"{10 * i + j} kg", f"{10 * i} g") for i in range(4) for j in (1, 2)]
    own = tmp_path / "answers.csv"
    own.write_text("question,worker,answer,truth\n" + "".join(",".join(row) + "\n" for row in rows))
    truths = tmp_path / "truths.csv"
    truths.write_text("question,truth\nq1,1100 g\n")
    gold = str(truths) if where == "file" else "truth"
    with pytest.raises(AnswersError, match='"truth": is in "g", the answers in "kg"'):
        trueup.estimate(own, strip_units=True, gold=gold)
    own.write_text(own.read_text().replace(" g\n", "\n"))
    truths.write_text("question,truth\nq1,11\n")
    est = trueup.estimate(own, strip_units=True, gold=gold)
    assert est.question_data.gold is not None
    assert est.question_data.gold[1] == (11.0 if where == "file" else 10.0)


def test_truths_that_may_separate_thousands_are_refused(tmp_path: Path) -> None:
    own, truths = tmp_path / "answers.csv", tmp_path / "truths.csv"
    own.write_text("question;worker;answer\nq1;a;1000,5\nq1;b;1001,5\nq2;a;2000,5\nq2;b;2001\n")
    truths.write_text("question;truth\nq1;1.100\n")
    with pytest.raises(AnswersError, match=r'"1\.100" is not written like the answers, and may'):
        trueup.estimate(own, sep=";", decimal=",", gold=truths)
    truths.write_text("question;truth\nq1;1100.25\n")
    est = trueup.estimate(own, sep=";", decimal=",", gold=truths)
    assert est.question_data.gold is not None
    assert est.question_data.gold[0] == 1100.25


def test_panels_share_what_is_known_of_a_question() -> None:
    columns = {
        "question": ["a", "b", "b", "c"],
        "worker": [1, 1, 1, 1],
        "answer": [1.0, 2.0, 3.0, 4.0],
        "panel": ["x", "x", "y", "y"],
    }
    of = Answers.of(columns, panel="panel")
    assert labels({"a": 5, "b": 6, "c": 7}, of) == [5, 6, 6, 7]
    assert labels([1, 2, 3, 4], of) == [1, 2, 3, 4]
    assert gold({"b": 6}, of) == [None, 6, 6, None]
    second = of.panel(1)
    assert labels({"a": 5, "b": 6, "c": 7}, second) == [6, 7]
    assert covariates({"b": 6, "c": 7}, second) == {"covariate": [6, 7]}
    assert covariates([1, 2], second) == {"covariate": [1, 2]}
    assert "no question that is in" in message(read_gold, {"a": 5}, second)


@given(
    st.lists(
        st.one_of(st.integers(-5, 5), st.text("ab1", max_size=2)),
        min_size=1,
        max_size=8,
        unique=True,
    ),
    st.data(),
)
def test_all_forms_agree(questions: list[Any], data: st.DataObject) -> None:
    of = answers(questions)
    n = len(questions)
    shuffled = data.draw(st.permutations(range(n)))
    group = data.draw(st.lists(st.sampled_from(["x", "y", None]), min_size=n, max_size=n))
    number = data.draw(st.lists(st.floats(-1e9, 1e9), min_size=n, max_size=n))
    known = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    truth = [x if k else None for x, k in zip(number, known, strict=True)]

    def forms(values: list[Any]) -> list[Any]:
        mapping = {questions[i]: values[i] for i in shuffled}
        columns = {"question": list(mapping), "value": list(mapping.values())}
        index = pd.Index(list(mapping), dtype=object)
        made = [values, mapping, columns, pd.Series(columns["value"], index=index, dtype=object)]
        if len(set(map(type, questions))) == 1:
            made += [pl.DataFrame(columns, strict=False), arrow(columns)]
        return made

    assert all(labels(form, of) == group for form in forms(group))
    assert all(gold(form, of) == truth for form in forms(truth))
    assert all([*covariates(form, of).values()] == [number] for form in forms(number))


# -- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("read", [read_groups, read_covariates, read_gold])
@pytest.mark.parametrize(
    "other", [3, 2.5, {"q1", "q3"}, object(), b"q1", (q for q in "ab"), answers()]
)
def test_unknown_forms(read: Callable[..., Any], other: object) -> None:
    text = message(read, other, answers(), LONG)
    assert f'found "{type(other).__name__}". Give the name of a column, ' in text


@pytest.mark.parametrize("read", [read_groups, read_covariates, read_gold])
@pytest.mark.parametrize(
    "data", [None, np.ones((1, 3)), [[1.0] * 3], csr_array(np.ones((1, 3))), answers()]
)
def test_there_are_no_columns(read: Callable[..., Any], data: Any) -> None:
    assert 'found "genre", but these answers have no columns' in message(
        read, "genre", answers(), data
    )


@pytest.mark.parametrize("read", [read_groups, read_covariates, read_gold])
def test_columns_that_cannot_be_used(
    read: Callable[..., Any], constructor: Constructor, write: Callable[..., Path]
) -> None:
    data = constructor(LONG)
    text = message(read, "gerne", answers(), data)
    assert 'Column "gerne": not found' in text
    assert '="genre"?' in text
    assert "questions themselves" in message(read, "question", answers(), data)
    assert 'Column "question": not found' in message(
        read, constructor({"name": ["q1"], "x": [1]}), answers()
    ) or (constructor is dict)
    assert "no column besides" in message(read, constructor({"task": ["q1"]}), answers())
    path = write(LONG, "a.csv")
    assert 'File "a.csv": Column "gerne": not found' in message(read, "gerne", answers(), path)


def test_covariates_by_name_must_all_be_there() -> None:
    assert 'Column "sise": not found' in message(
        read_covariates, ["share", "sise"], answers(), LONG
    )


@pytest.mark.parametrize("read", [read_groups, read_covariates, read_gold])
def test_columns_of_one_name(read: Callable[..., Any]) -> None:
    data = pd.DataFrame([["q1", 1, 2.0, 3, 3]], columns=["question", "worker", "answer", "x", "x"])
    assert 'Column "x": there are 2 columns' in message(read, "x", answers(), data)


@pytest.mark.parametrize("read", [read_groups, read_gold])
def test_several_columns(read: Callable[..., Any]) -> None:
    text = message(read, {"question": ["q1"], "a": [1], "b": [2]}, answers())
    assert 'found the columns "a", "b" besides that of the questions. Give one' in text


@pytest.mark.parametrize("read", [read_groups, read_covariates, read_gold])
def test_files_that_cannot_be_read(read: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "gold.csv").write_text("question,truth\nq1,1\n")
    assert 'Did you mean "gold.csv"?' in message(read, tmp_path / "golt.csv", answers())
    (tmp_path / "gold.odd").write_text("question,truth\nq1,1\n")
    assert "cannot tell its format" in message(read, tmp_path / "gold.odd", answers())
    (tmp_path / "b.parquet").write_text("no")
    assert 'File "b.parquet": cannot be read as Parquet' in message(
        read, tmp_path / "b.parquet", answers()
    )
    (tmp_path / "c.csv").write_text("")
    assert 'File "c.csv": is empty' in message(read, str(tmp_path / "c.csv"), answers())


@pytest.mark.parametrize("lacks", ["pyarrow", "duckdb"])
def test_files_need_an_extra(
    write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, lacks: str
) -> None:
    path, of = write(BY_QUESTION, "a.csv"), answers()
    monkeypatch.setitem(sys.modules, lacks, None)
    with pytest.raises(MissingExtra, match=r"trueup\[files\]"):
        read_covariates(path, of)


@pytest.mark.parametrize("read", [read_groups, read_covariates, read_gold])
def test_no_question_in_common(read: Callable[..., Any], constructor: Constructor) -> None:
    text = message(read, constructor({"question": ["1", "2"], "x": [1, 2]}), answers([2, 1, 3, 4]))
    assert "found no question that is in the answers" in text
    assert 'It has "1", "2", the answers have 1, 2, 3' in text
    assert 'The number 1 and the text "1" are different ids' in text
    assert "different ids" in message(read, {1: 2}, answers(["1"]))
    assert "spaces or capitals" in message(read, {"Q1 ": 2}, answers())
    assert "Use the ids of the question column" in message(read, pd.Series([1, 2]), answers())


@pytest.mark.parametrize("read", [read_groups, read_covariates, read_gold])
def test_mappings_to_columns(read: Callable[..., Any]) -> None:
    for value in ([1, 2], np.array([1, 2]), pl.Series([1, 2]), {"a": 1}):
        text = message(read, {"id": value, "x": value}, answers(), question="item")
        assert f'found a mapping to "{type(value).__name__}" values' in text
        assert 'of which one is "item"' in text


@pytest.mark.parametrize("read", [read_groups, read_covariates, read_gold])
def test_wrong_lengths(read: Callable[..., Any]) -> None:
    text = message(read, [1, 2, 3, 4], answers())
    assert "found 4, expected one for each of 3 questions. Give them in the order" in text
    if read is not read_covariates:  # an empty list of columns
        assert "found 0, expected one" in message(read, [], answers())
    assert "found 0, expected one" in message(read, np.zeros(0), answers())
    assert "differ in length" in message(read, {"question": ["q1"], "x": [1, 2]}, answers())


def test_shapes() -> None:
    assert "2 dimensions" in message(read_groups, np.ones((3, 1)), answers())
    assert "2 dimensions" in message(read_gold, np.ones((3, 1)), answers())
    assert "3 dimensions" in message(read_covariates, np.ones((3, 1, 1)), answers())
    assert "0 dimensions" in message(read_covariates, np.array(3), answers())
    assert "rows of different length" in message(read_covariates, [[1], [1, 2], [1]], answers())
    assert "rows of different length" in message(read_covariates, [[1], 2, [1]], answers())
    assert "rows without numbers" in message(read_covariates, np.ones((3, 0)), answers())


def test_two_labels(constructor: Constructor) -> None:
    data = constructor(LONG | {"genre": ["film", "film", "book", "map", "atlas"]})
    text = message(read_groups, "genre", Answers.of(data), data)
    assert 'question "q1" has two labels, "atlas" and "book"' in text


def test_two_truths(constructor: Constructor) -> None:
    frame = constructor({"question": ["q9", "q9", "q1", "q1"], "truth": [1.0, 2.0, 3.0, 4.0]})
    assert 'question "q1" has two values of "truth", 3.0 and 4.0' in message(
        read_gold, frame, answers()
    )


def test_covariates_that_vary(constructor: Constructor) -> None:
    data = constructor(LONG)
    text = message(read_covariates, ["size", "answer"], Answers.of(data), data)
    assert 'has two values of "answer", ' in text


@pytest.mark.parametrize("bad", ["abc", float("inf"), 1e200, "-inf", 10**400])
def test_values_that_are_no_numbers(bad: Any) -> None:
    for read, name in ((read_gold, "truth"), (read_covariates, "covariate")):
        text = message(read, {"q2": 1, "q1": bad, "q3": 2}, answers())
        assert f'question "q1" has the "{name}" ' in text
        assert str(bad)[:10] in text or "inf" in text or "1e+200" in text
        assert "not a usable number" in text
    many = [f"q{i}" for i in range(1000)]
    at = 617
    values: list[Any] = [str(i) for i in range(1000)]
    values[at] = values[at + 5] = str(bad) if bad != 10**400 else "1e400"
    for series in (values, pl.Series(values), pa.array(values), pd.array(values)):
        assert f'"q{at}"' in message(read_gold, series, answers(many))


def test_numbers_of_another_kind() -> None:
    days = [dt.date(2024, 1, 1)] * 3
    for read in (read_gold, read_covariates):
        assert "not numbers" in message(read, pl.Series(days), answers())
        assert '"q3"' in message(read, days, answers())
        assert '"q3"' in message(read, [1 + 2j, 0, 1], answers())
        assert '"q1"' in message(read, [1, "a", 1], answers())
    assert "groups=" in message(read_covariates, "genre", answers(), LONG)


def test_labels_that_are_none() -> None:
    assert "cannot be told apart" in message(read_groups, [[1], [2], [1]], answers())


@pytest.mark.parametrize("missing", [None, np.nan, ""])
def test_every_question_needs_covariates(missing: object) -> None:
    for form in ({"q3": 1, "q1": missing, "q2": missing}, {"q3": 1}, [1, missing, missing]):
        text = message(read_covariates, form, answers())
        assert '2 questions without a value of "covariate", first "q1"' in text
    frame = BY_QUESTION | {"share": [0.1, missing, 0.3]}
    text = message(read_covariates, frame, answers())
    assert '1 question without a value of "share", first "q2"' in text


def test_what_is_given_stays_as_it_was() -> None:
    values = np.array([1.0, 2.0, 3.0])
    found = read_gold(values, answers(), None)
    assert found is not None
    found[0] = 9.0
    assert values.tolist() == [1, 2, 3]


def test_no_frame_library_is_loaded() -> None:
    code = (
        "import sys; from trueup.answers.answers import Answers; "
        "from trueup.io.question_data import QuestionDataRequest as Q; "
        "a = Answers.from_matrix([[1.0, 2.0]]); Q(['a', 'b'], [[1.0], [2.0]], {0: 1.0}).read(a); "
        "Q({'question': [0], 'g': ['a']}).read(a); "
        "print([n for n in ('pandas', 'polars', 'pyarrow', 'duckdb') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip() == "[]"
