"""Files on disk become the same table as the frames they were written from."""

from __future__ import annotations

import gzip
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import input_files
from input_files import rows_of
from trueup.core.libraries import need
from trueup.errors import AnswersError, MissingExtra, TrueupError
from trueup.io.frames_out import make_frame
from trueup.io.readers import parquet as parquet_reader
from trueup.io.readers.files import read_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("duckdb")

message_of = partial(input_files.message_of, error=AnswersError)
TEXT = "question,worker,answer\nq2,007,1.5\nq2,x,NA\nq1,007, -3\n"


# -- delimited text --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", TEXT.encode()),
        ("A.CSV", TEXT.encode()),
        ("a.txt", TEXT.encode()),
        ("a.csv", TEXT.replace(",", ";").encode()),
        ("a.csv", TEXT.replace(",", "|").encode()),
        ("a.tsv", TEXT.replace(",", "\t").encode()),
        ("a.txt", TEXT.replace(",", "\t").encode()),
        ("a.csv", TEXT.replace("\n", "\r\n").encode()),
        ("a.csv", TEXT.encode("utf-8-sig")),
        ("a.csv", TEXT.encode("utf-16")),
        ("a.csv", TEXT.replace("\n", "\r").encode()),
        ("a.csv", gzip.compress(TEXT.encode(), mtime=0)),
        ("a.csv", TEXT.rstrip().encode()),
        ("a.csv.gz", gzip.compress(TEXT.encode(), mtime=0)),
        ("a.tsv.gz", gzip.compress(TEXT.replace(",", "\t").encode(), mtime=0)),
    ],
)
def test_delimited_text_is_read(written: Callable[..., Path], name: str, content: bytes) -> None:
    table = read_file(written(content, name))

    assert rows_of(table) == [("q2", "007", 1.5), ("q1", "007", -3.0)]
    assert table.row is not None
    assert table.row.tolist() == [0, 2]
    assert (table.n_rows, table.n_missing, table.kind, table.ordered) == (3, 1, "file", True)
    assert table.question.tolist() == [0, 1]


@pytest.mark.parametrize("name", ["a*b[1].csv", 'it\'s "x".csv', "~a?.csv", "{a,b}.csv", "ü 1.csv"])
def test_a_file_name_is_only_a_name(written: Callable[..., Path], name: str) -> None:
    written(TEXT.replace("q1", "wrong"), "axb1.csv")
    path = written(TEXT, name)

    assert rows_of(read_file(str(path)))[1] == ("q1", "007", -3.0)


def test_a_relative_path_is_read(
    written: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(written(TEXT).parent)

    assert read_file("answers.csv").n_rows == 3


@pytest.mark.parametrize(
    ("ids", "wanted"),
    [
        (["1", "-20", "0"], [1, -20, 0]),
        (["9223372036854775807", "-9223372036854775808", "5"], [2**63 - 1, -(2**63), 5]),
        (["9223372036854775808", "1", "2"], ["9223372036854775808", "1", "2"]),
        (["01", "1", "2"], ["01", "1", "2"]),
        (["+1", "2", "3"], ["+1", "2", "3"]),
        ([" 1", "2", "3"], [" 1", "2", "3"]),
        (["-0", "2", "3"], ["-0", "2", "3"]),
        (["1.0", "2", "3"], ["1.0", "2", "3"]),
        (["1", "2", "x"], ["1", "2", "x"]),
        (["1\n", "2", "3"], ["1\n", "2", "3"]),
    ],
)
def test_ids_are_integers_only_when_every_one_is_written_as_such(
    written: Callable[..., Path], ids: list[str], wanted: list[object]
) -> None:
    lines = "".join(f'q,"{i}",{row}\n' for row, i in enumerate(ids))

    table = read_file(written("question,worker,answer\n" + lines))

    assert table.worker_ids.tolist() == wanted
    assert table.question_ids.tolist() == ["q"]


def test_quoted_text_may_hold_anything(written: Callable[..., Path]) -> None:
    content = 'question,worker,answer,note\n"a,""b""\nc",é😀,1,\n"# x",NULL,2,"y\r\n"\n'

    table = read_file(written(content))

    assert rows_of(table) == [('a,"b"\nc', "é😀", 1.0), ("# x", "NULL", 2.0)]


def test_options_are_those_of_frames(written: Callable[..., Path]) -> None:
    path = written("w,task,label,p,v,V\n1,a,5,x,0.5,9\n2,a,6,y,,9\n")

    table = read_file(path, worker="w", panel="p", numbers=("v",))

    assert rows_of(table) == [("a", 1, 5.0), ("a", 2, 6.0)]
    assert table.panel_ids is not None
    assert table.panel_ids.tolist() == ["x", "y"]
    np.testing.assert_array_equal(table.numbers["v"], [0.5, np.nan])


def test_results_of_a_file_are_a_frame(written: Callable[..., Path]) -> None:
    pd = pytest.importorskip("pandas")

    table = read_file(written(TEXT))
    frame = make_frame(table.kind, {"question": table.question_ids})

    pd.testing.assert_frame_equal(frame, pd.DataFrame({"question": ["q2", "q1"]}))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "question,worker,answer\nq,w,abc\nq,v,1\n",
            (
                'Column "answer": 1 of 2 values is not a number, at row 0 ("abc"). '
                "Remove or mend these rows, pass skip_bad=True to set them aside, or pass "
                'answer="other_column". '
                "Rows are counted from 0, without the header; row 0 is line 2."
            ),
        ),
        (
            "question;worker;answer\nq;w;3,5\n",
            (
                'Column "answer": 1 of 1 value is not a number, at row 0 ("3,5"). '
                'It has a decimal comma. To read them pass decimal=",". '
                "Rows are counted from 0, without the header; row 0 is line 2."
            ),
        ),
        (
            "question,worker,answer\nq,,1\n",
            (
                'Column "worker": 1 of 1 value is missing, at row 0. '
                "Every answer needs an id here: fill it in, remove these rows, or pass "
                "skip_bad=True to set them aside. "
                "Rows are counted from 0, without the header; row 0 is line 2."
            ),
        ),
        (
            "q1,w1,3\nq2,w2,4\n",
            (
                'Column "question": not found. Column "worker": not found. Column "answer": not found. '
                'The columns are "q1", "w1", "3". Did you mean question="q1", worker="w1", answer="3"? '
                "If its first line is an answer and names no columns, write one above it that does."
            ),
        ),
        (
            "question,worker,answer,answer\nq,w,1,2\n",
            ('Column "answer": there are 2 columns of this name. Rename all but one.'),
        ),
        (
            "",
            "is empty or has no header. Its first line must name the columns.",
        ),
        (
            "question,worker,answer\n",
            ('Column "answer": no answers, the table has 0 rows. Give at least one answer.'),
        ),
        (
            "question,worker,answer\nq,w,1\nq,w\n",
            "line 3 has 2 fields, the header has 3. Fix that line.",
        ),
        (
            "question,worker,answer\nq,w,1,9\n",
            (
                "line 2 has 4 fields, the header has 3. Fix that line. "
                'If "1,9" is one number, put it in quotes or separate columns by semicolons, '
                'and pass decimal=",".'
            ),
        ),
        (
            "question,worker,answer\nq,w,1,9,8\n",
            "line 2 has 5 fields, the header has 3. Fix that line.",
        ),
        (
            'question,worker,answer\nq,"w,1\n',
            (
                "a quote that opens in line 2 is never closed, or text follows where it closes. "
                "Fix that line; a quote within quotes is written twice."
            ),
        ),
        (
            "question,worker,answer\nq,é,1\n".encode("latin-1"),
            (
                "line 2 is not UTF-8 text (byte 0xe9). It looks like latin-1, in which that line "
                'reads "q,é,1": pass encoding="latin-1", or save the file as UTF-8.'
            ),
        ),
        (
            "question,worker,answer\nq,5€,1\n".encode("cp1252"),
            (
                "line 2 is not UTF-8 text (byte 0x80). It looks like cp1252, in which that line "
                'reads "q,5€,1": pass encoding="cp1252", or save the file as UTF-8.'
            ),
        ),
        (
            "question,worker,answer\nq,w,1\n".encode("utf-16-le"),
            'line 1 holds a NUL byte. It looks like utf-16-le: pass encoding="utf-16-le".',
        ),
        (
            b"question,worker,answer\nq,\0,1\n",
            ("line 2 holds a NUL byte. It is damaged, or no text at all: write it again as text."),
        ),
        (
            b"question,worker,answer\n" + b"q,w,1\n" * 20_000 + b"q,\xe9,1\n",
            (
                "line 20002 is not UTF-8 text (byte 0xe9). It looks like latin-1, in which that "
                'line reads "q,é,1": pass encoding="latin-1", or save the file as UTF-8.'
            ),
        ),
        (
            "question:worker:answer\nq:w:1\n",
            (
                'Column "question": not found. Column "worker": not found. Column "answer": not found. '
                'The columns are "question:worker:answer". Name the columns that hold them: '
                'question="...", worker="...", answer="...". '
                'If another character is between the columns, pass sep="...".'
            ),
        ),
    ],
)
def test_text_that_cannot_be_used_is_explained(
    written: Callable[..., Path], content: str | bytes, message: str
) -> None:
    assert message_of(written(content)) == f'File "answers.csv": {message}'


def test_a_broken_archive_is_explained(written: Callable[..., Path]) -> None:
    whole = gzip.compress(TEXT.encode(), mtime=0)

    for content in (b"no archive", whole[: len(whole) // 2]):
        message = message_of(written(content, "a.csv.gz"))
        assert message.startswith('File "a.csv.gz": cannot be read (')


def test_a_large_file_keeps_its_order(written: Callable[..., Path]) -> None:
    n_rows = 300_000
    rng = np.random.default_rng(3)
    workers, answers = rng.integers(0, 500, n_rows), rng.normal(size=n_rows).round(6)
    lines = [
        f"q{row // 3},w{w},{a}\n"
        for row, (w, a) in enumerate(zip(workers.tolist(), answers.tolist(), strict=True))
    ]

    table = read_file(written("question,worker,answer\n" + "".join(lines)))

    assert table.question.tolist() == [row // 3 for row in range(n_rows)]
    np.testing.assert_array_equal(table.answer, answers)
    assert table.worker_ids.tolist(table.worker[-2:]) == [f"w{w}" for w in workers[-2:]]


# -- Parquet ---------------------------------------------------------------------------------------


def parquet(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    pq.write_table(pa.table(columns), path, **options)
    return path


@pytest.mark.parametrize("name", ["a.parquet", "a.pq", "A.PARQUET", "a*b[1].parquet", "k=v.pq"])
def test_parquet_is_read(tmp_path: Path, name: str) -> None:
    columns = {
        "question": ["b", "a", "b", "c"],
        "worker": [2**40, 1, 1, 1],
        "answer": [1.5, 2.5, None, 4.0],
        "unused": [[1], [2], [3], [4]],
    }

    table = read_file(parquet(tmp_path / name, columns, row_group_size=2))

    assert rows_of(table) == [("b", 2**40, 1.5), ("a", 1, 2.5), ("c", 1, 4.0)]
    assert (table.n_rows, table.n_missing, table.kind, table.ordered) == (4, 1, "file", True)
    assert table.question_ids.values.type == pa.string()


def test_types_of_parquet_ids_are_kept(tmp_path: Path) -> None:
    columns = {
        "question": pa.array(["x", "y", "x"]).dictionary_encode(),
        "worker": pa.array(["x", "y", "x"], pa.large_string()),
        "a.b": pa.array([3, 2, 3], pa.int16()),
        "answer": pa.array([1, 2, 3], pa.decimal128(5, 2)),
    }

    table = read_file(parquet(tmp_path / "a.parquet", columns), panel="a.b")

    assert table.panel_ids is not None
    assert table.question_ids.values.type == pa.dictionary(pa.int32(), pa.string())
    assert table.worker_ids.values.type == pa.large_string()
    assert table.panel_ids.values.type == pa.int16()
    assert table.answer.tolist() == [1.0, 2.0, 3.0]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(ids=st.lists(st.text(), min_size=1, max_size=20))
def test_text_ids_come_back_from_parquet_as_they_went_in(tmp_path: Path, ids: list[str]) -> None:
    columns = {"question": [0] * len(ids), "worker": ids, "answer": [1.0] * len(ids)}

    table = read_file(parquet(tmp_path / "ids.parquet", columns, row_group_size=3))

    assert table.worker_ids.tolist(table.worker) == ids
    assert len(table.worker_ids) == len(set(ids))


def test_broken_parquet_is_explained_in_a_line(tmp_path: Path) -> None:
    good = parquet(tmp_path / "good.parquet", {"question": ["a"], "worker": ["b"], "answer": [1]})
    whole = good.read_bytes()
    broken = tmp_path / "a.parquet"

    for content in (
        b"",
        b"question,worker,answer\n",
        whole[:-20],
        b"PAR1" + b"\xff" * 60 + b"PAR1",
    ):
        broken.write_bytes(content)
        message = message_of(broken)
        assert message.startswith('File "a.parquet": cannot be read as Parquet ("')
        assert message.endswith("or check that it is a Parquet file.")


def test_bad_values_in_parquet_are_named(tmp_path: Path) -> None:
    columns = {"question": ["a", "b"], "worker": ["b", None], "answer": [1, 2]}

    assert message_of(parquet(tmp_path / "a.pq", columns)) == (
        'File "a.pq": Column "worker": 1 of 2 values is missing, at row 1. '
        "Every answer needs an id here: fill it in, remove these rows, or pass skip_bad=True to set them aside."
    )
    assert message_of(tmp_path / "a.pq", worker="who").startswith(
        'File "a.pq": Column "who": not found. The columns are "question", "worker", "answer".'
    )


# -- paths and packages ----------------------------------------------------------------------------


def test_a_file_that_is_not_there_is_named(tmp_path: Path, written: Callable[..., Path]) -> None:
    written(TEXT)

    shown = str(tmp_path / "anwsers.csv")
    assert message_of(tmp_path / "anwsers.csv") == (
        f'File "{shown}": not found. Did you mean "answers.csv"?'
    )
    assert message_of(tmp_path / "zzz.parquet").endswith("Check the name and the folder.")
    assert message_of(tmp_path / "nowhere" / "a.csv").endswith(
        f'not found, there is no folder "{tmp_path / "nowhere"}".'
    )


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    folder = tmp_path / "a.parquet"
    folder.mkdir()

    assert message_of(folder).endswith(
        "is a folder. Name one file in it, or all of them by a pattern such as "
        f'"{folder / "*.csv"}".'
    )


@pytest.mark.parametrize("name", ["a.xlsx.gz", "a", "a.parquet.gz", "a.gz", ".csv"])
def test_other_endings_are_refused(written: Callable[..., Path], name: str) -> None:
    assert message_of(written(TEXT, name)) == (
        f'File "{name}": cannot tell its format from its ending. It must be one of '
        ".csv, .tsv, .txt, .parquet, .pq, .jsonl, .ndjson, .json, .xlsx, .xlsm "
        "(text and JSON also with .gz behind)."
    )


@pytest.mark.parametrize(
    ("name", "package", "module"),
    [
        ("a.csv", "duckdb", "duckdb"),
        ("a.csv", "pyarrow", "pyarrow"),
        ("a.parquet", "pyarrow", "pyarrow.parquet"),
    ],
)
def test_missing_packages_are_named_with_the_command_that_installs_them(
    written: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    package: str,
    module: str,
) -> None:
    path = written(TEXT, name)
    monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(MissingExtra) as caught:
        read_file(path)

    assert (
        str(caught.value) == f'Package {package}: not installed. Run: pip install "trueup[files]"'
    )
    assert isinstance(caught.value, TrueupError)
    assert isinstance(caught.value, ImportError)


def test_a_package_that_is_there_is_imported() -> None:
    assert need("pyarrow.parquet", "files") is pq


@pytest.mark.parametrize("coded", [True, False], ids=["dictionaries in the file", "plain text"])
@pytest.mark.parametrize("empty", ["first", "last", "none"])
def test_columns_of_a_large_parquet_file_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, coded: bool, empty: str
) -> None:
    """Large files are read on two threads; groups of rows may be empty."""
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "question": [f"q{i}" for i in rng.integers(0, 20, 100)],
            "worker": [f"w{i}" for i in range(100)],
            "answer": rng.normal(size=100),
        }
    )
    path = tmp_path / "answers.parquet"
    with pq.ParquetWriter(path, table.schema, use_dictionary=coded) as writer:
        for part in ("first", "rows", "last"):
            if part == "rows":
                writer.write_table(table, row_group_size=7)
            elif part == empty:
                for _ in range(20):
                    writer.write_table(table.slice(0, 0))
    expected = read_file(path)
    monkeypatch.setattr(parquet_reader, "MANY", 10)
    found = read_file(path)
    for part in ("question", "worker", "answer"):
        np.testing.assert_array_equal(getattr(found, part), getattr(expected, part))
    assert found.question_ids.tolist() == expected.question_ids.tolist()
    assert found.question_ids.tolist() == list(dict.fromkeys(table["question"].to_pylist()))
    assert found.worker_ids.tolist() == expected.worker_ids.tolist()
