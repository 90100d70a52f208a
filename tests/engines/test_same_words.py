"""One fault, one message: in memory, from a file, on disk and on Spark."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

import trueup
from trueup import TrueupError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
disk = pytest.importorskip("trueup.disk")

QUESTIONS, WORKERS = 12, 4
Table = dict[str, Any]


def table() -> Table:
    """Return answers with columns of groups, covariates, truths and variances."""
    rows = [(j, i) for j in range(QUESTIONS) for i in range(WORKERS)]
    return {
        "question": [f"q{j}" for j, _ in rows],
        "worker": [f"w{i}" for _, i in rows],
        "answer": [10.0 + 3 * j + (i - 1.5) * (1 + j % 3) / 2 for j, i in rows],
        "topic": ["ab"[j % 2] for j, _ in rows],
        "size": [float(j) for j, _ in rows],
        "truth": [10.0 + 3 * j for j, _ in rows],
        "var": [1.0 + i for _, i in rows],
    }


def without(name: str) -> Callable[[Table], Table]:
    return lambda rows: {column: values for column, values in rows.items() if column != name}


def having(name: str, *values: Any) -> Callable[[Table], Table]:
    """Put values into a column: into all rows, or into so many of the first question."""

    def change(rows: Table) -> Table:
        column = list(values) + rows[name][len(values) :]
        return {**rows, name: column if len(values) > 1 else list(values) * len(column)}

    return change


def whole(name: str, kind: Any) -> Callable[[Table], Table]:
    return lambda rows: {**rows, name: pa.array([None] * len(rows[name]), kind)}


def as_it_is(rows: Table) -> Table:
    return rows


def empty(rows: Table) -> Table:
    return {name: pa.array(values)[:0] for name, values in rows.items()}


def bytes_in(name: str) -> Callable[[Table], Table]:
    """Make a column text that is no UTF-8."""

    def change(rows: Table) -> Table:
        letters = pa.array([f"{value}".encode() + b"\xff" for value in rows[name]], pa.binary())
        text = pa.Array.from_buffers(pa.string(), len(letters), letters.buffers())
        return {**rows, name: text}

    return change


def with_units(**units: tuple[str, ...]) -> Callable[[Table], Table]:
    """Write these units in turn behind the numbers of columns, question by question."""

    def change(rows: Table) -> Table:
        written = {
            name: [
                f"{value} {each[row // WORKERS % len(each)]}"
                for row, value in enumerate(rows[name])
            ]
            for name, each in units.items()
        }
        return {**rows, **written}

    return change


INF, NAN = float("inf"), float("nan")
#: What is changed in the answers, and what is asked for. All messages are alike but for the name of the file.
FAULTS: dict[str, tuple[Callable[[Table], Table], dict[str, Any]]] = {
    "no answers column": (without("answer"), {}),
    "no question column": (without("question"), {}),
    "no worker column": (without("worker"), {}),
    "answers not there": (as_it_is, {"answer": "score"}),
    "questions not there": (as_it_is, {"question": "clip"}),
    "one column twice": (as_it_is, {"question": "worker"}),
    "no rows": (empty, {}),
    "all missing": (whole("answer", pa.float64()), {}),
    "bytes in questions": (bytes_in("question"), {}),
    "bytes in workers": (bytes_in("worker"), {}),
    "bytes in answers": (bytes_in("answer"), {}),
    "bytes in groups": (bytes_in("topic"), {"groups": "topic"}),
    "unknown groups": (as_it_is, {"groups": "kind"}),
    "unknown covariates": (as_it_is, {"covariates": "kind"}),
    "unknown gold": (as_it_is, {"gold": "kind"}),
    "unknown variances": (as_it_is, {"answer_variance": "kind"}),
    "gold of text": (having("truth", "x"), {"gold": "truth"}),
    "gold without truth": (whole("truth", pa.float64()), {"gold": "truth"}),
    "two truths": (having("truth", 99.0, 10.0), {"gold": "truth"}),
    "infinite truth": (having("truth", INF, INF, INF, INF), {"gold": "truth"}),
    "huge truth": (having("truth", *[1e300] * 4), {"gold": "truth"}),
    "truths of others": (as_it_is, {"gold": {"zzz": 1.0}}),
    "truths of numbers": (as_it_is, {"gold": {1: 1.0}}),
    "truth of text": (as_it_is, {"gold": {"q0": "x"}}),
    "truth outside": (as_it_is, {"gold": {"q0": -5.0}, "bounds": (0, 100)}),
    "truths outside": (having("truth", *[-5.0] * 4), {"gold": "truth", "bounds": (0, 100)}),
    "truth without logarithm": (as_it_is, {"gold": {"q0": -5.0}, "transform": "log"}),
    "truths in no file": (as_it_is, {"gold": "nothing.csv"}),
    "truths of no form": (as_it_is, {"gold": 7}),
    "answers without logarithm": (having("answer", -1.0, 2.0, 3.0), {"transform": "log"}),
    "covariates of text": (having("size", "x"), {"covariates": "size"}),
    "covariate missing": (having("size", *[NAN] * 4), {"covariates": "size"}),
    "two covariates": (having("size", 77.0, 0.0), {"covariates": "size"}),
    "two groups": (having("topic", "z", "a"), {"groups": "topic"}),
    "groups of others": (as_it_is, {"groups": {"zzz": "a"}}),
    "negative variances": (having("var", -1.0, 1.0), {"answer_variance": "var"}),
    "no variance": (having("var", NAN, 1.0), {"answer_variance": "var"}),
    "variance of zero": (having("var", 0.0, 1.0), {"answer_variance": "var"}),
    "negative variance of a worker": (as_it_is, {"worker_variance": {"w0": -1.0}}),
    "two variances of a worker": (having("var", 9.0, 2.0), {"worker_variance": "var"}),
    "variance of nobody": (as_it_is, {"worker_variance": {"zz": 1.0}}),
    "negative number": (as_it_is, {"variance": -1.0}),
    "unknown rule": (as_it_is, {"variance": "oops"}),
    "unknown method": (as_it_is, {"method": "oops"}),
    "unknown second step": (as_it_is, {"shrink": "oops"}),
    "valid the wrong way round": (as_it_is, {"valid": (20, 0)}),
    "level": (as_it_is, {"level": 2.0}),
    "target": (as_it_is, {"target": "oops"}),
    "answers twice": (having("question", "q1", "q0"), {}),
}  # fmt: skip
STRIP = {"strip_units": True}
#: The same where units are stripped, which Spark does not do.
UNITS: dict[str, tuple[Callable[[Table], Table], dict[str, Any]]] = {
    "answers in two units": (with_units(answer=("kg", "g")), STRIP),
    "truths in another unit": (
        with_units(answer=("kg",), truth=("g",)),
        {"gold": "truth", **STRIP},
    ),
    "truths in two units": (with_units(truth=("g", "kg")), {"gold": "truth", **STRIP}),
    "some truths in per cent": (with_units(truth=("%", "")), {"gold": "truth", **STRIP}),
    "covariates in two units": (with_units(size=("m", "cm")), {"covariates": "size", **STRIP}),
}
#: Rows that cannot be used: the column and this are said everywhere. On disk such rows stop a strict run.
ROWS: dict[str, tuple[Callable[[Table], Table], dict[str, Any], str]] = {
    "text": (having("answer", "high", "1"), {}, "is not a number"),
    "infinite": (having("answer", INF, 1.0), {}, "is infinite"),
    "huge": (having("answer", 1e300, 1.0), {}, "is beyond ±1e+150"),
    "no question": (having("question", None, "q0"), {}, "is missing"),
    "no worker": (having("worker", None, "w1"), {}, "is missing"),
    "infinite variance": (having("var", INF, 1.0), {"answer_variance": "var"}, "is infinite"),
    "not valid": (having("answer", -1.0, 1.0), {"valid": (0, 100)}, "is outside 0 to 100"),
}


def saved(rows: Table, folder: Path) -> Path:
    """Write rows to a file; a column of mixed values is text."""
    columns = {
        name: [None if value is None else str(value) for value in values]
        if isinstance(values, list) and any(isinstance(value, str) for value in values)
        else values
        for name, values in rows.items()
    }
    pq.write_table(pa.table(columns), folder / "a.parquet")
    return folder / "a.parquet"


@pytest.fixture(scope="module")
def spark() -> Any:
    """Return a session."""
    pytest.importorskip("pyspark")
    from spark_session import session

    return session()


def said(run: Callable[[], Any]) -> str:
    """Return the message of an error of ours, without the name of the file."""
    with pytest.raises(TrueupError) as caught:
        run()
    text = str(caught.value).replace('File "a.parquet": ', "")
    return text.replace('groups: Column "', 'Column "')  # in memory they are read by themselves


def alike(message: str) -> str:
    """Return what is said besides where it is: rows of a cluster have no number, nor a first one."""
    message = re.sub(r", (first|such as|at)( at)?( rows?)? [^.]*(\.\d[^.]*)*\.", ".", message)
    message = re.sub(r", (first|such as) (worker .*?)\. ", r", \2. ", message)
    return message.replace(', or duplicates="first" to keep the first', "")


@pytest.mark.parametrize("fault", [*FAULTS, *UNITS])
def test_a_fault_is_said_in_the_same_words_in_memory_and_on_disk(
    fault: str, tmp_path: Path
) -> None:
    change, options = (FAULTS | UNITS)[fault]
    path = saved(change(table()), tmp_path)
    frame = pq.read_table(path)
    in_memory = said(lambda: trueup.estimate(frame, **options))
    assert said(lambda: trueup.estimate(path, **options)) == in_memory
    assert said(lambda: disk.estimate(path, tmp_path / "o.parquet", **options)) == in_memory


@pytest.mark.parametrize("fault", ROWS)
def test_rows_that_cannot_be_used_are_told_of_in_the_same_words(fault: str, tmp_path: Path) -> None:
    change, options, words = ROWS[fault]
    path = saved(change(table()), tmp_path)
    in_memory = said(lambda: trueup.estimate(path, **options))
    assert f"1 of 48 values {words}" in in_memory
    column = in_memory.split('"')[1]
    on_disk = said(lambda: disk.estimate(path, tmp_path / "o.parquet", strict=True, **options))
    assert f'row 0: "{column}" {words}' in on_disk


@pytest.mark.needs("java")
def test_a_fault_is_said_in_the_same_words_on_spark(spark: Any, tmp_path: Path) -> None:
    import trueup.spark

    differing = {}
    every: dict[str, tuple[Any, ...]] = {**FAULTS, **ROWS}
    for fault, (change, options, *words) in every.items():
        path = saved(change(table()), tmp_path)

        def run(path: Path = path, options: dict[str, Any] = options) -> None:
            trueup.spark.estimate(spark.read.parquet(str(path)), **options).close()

        in_memory, found = said(lambda: trueup.estimate(path, **options)), said(run)  # noqa: B023
        short = (lambda text: text.split(words[0])[0]) if words else alike  # noqa: B023
        if short(found) != short(in_memory):
            differing[fault] = (found, in_memory)
    assert not differing, differing
