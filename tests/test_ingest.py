"""The larger-than-memory ingest: the same answers as in memory, whatever happens to files, rows and processes."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from trueup import Answers
from trueup.draws import id_hashes
from trueup.engines.disk import intake as ingest_module
from trueup.engines.disk import reading, sorting, spool, stream, textfile
from trueup.engines.disk.folder import Folder
from trueup.engines.disk.intake import ingest
from trueup.engines.disk.stored import Stored
from trueup.errors import AnswersError, TrueupError

if TYPE_CHECKING:
    from collections.abc import Iterator

QUESTIONS = ["q{}", "ö-{}", "a rather long prefix that all share {}", "{}", "07{}"]


def table(
    rows: int = 400, *, seed: int = 0, ids: str = "q{}", repeats: int = 0, questions: int = 60
) -> pa.Table:
    """Return answers in random order, each worker once on each question, and some of them repeated."""
    rng = np.random.default_rng(seed)
    pairs = rng.permutation(questions * 30)[:rows]
    pairs = np.concatenate([pairs, rng.choice(pairs, repeats)])
    question, worker = pairs // 30, pairs % 30
    return pa.table(
        {
            "worker": [f"w{each}" for each in worker],
            "question": [ids.format(each) for each in question],
            "answer": pa.array(np.round(rng.gamma(2.0, 3.0, len(pairs)) + question + 0.5, 3)),
            "variance": pa.array(rng.gamma(2.0, 1.0, len(pairs)) + 0.1),
            "of_worker": pa.array(1.0 + worker),
            "group": [("even", "odd")[each % 2] for each in question],
            "size": pa.array(question * 0.5),
        }
    )


def write(data: pa.Table, path: Path) -> Path:
    """Write a table in the format that the name of the file ends in."""
    if path.suffix == ".parquet":
        pq.write_table(data, path, row_group_size=97)
        return path
    options = pyarrow.csv.WriteOptions(delimiter="\t" if ".tsv" in path.name else ",")
    with pa.output_stream(path, compression="detect") as file:
        pyarrow.csv.write_csv(data, file, options)
    return path


def laid_out(answers: Answers) -> dict[str, Any]:
    """Return answers in memory as they should be on disk: everything in the order of the ids."""
    questions, workers = answers.question_ids.sort_order(), answers.worker_ids.sort_order()
    rank = np.argsort(workers)
    found: dict[str, list[Any]] = {name: [] for name in ("workers", "values", "precision")}
    for j in questions:
        here = slice(*answers.indptr[j : j + 2])
        order = np.argsort(rank[answers.workers[here]])
        found["workers"].append(rank[answers.workers[here]][order])
        found["values"].append(answers.values[here][order])
        if answers.precision is not None:
            found["precision"].append(answers.precision[here][order])
    known = answers.worker_variance
    return {
        **{name: np.concatenate(parts) if parts else None for name, parts in found.items()},
        "centre": answers.centre[questions],
        "counts": answers.counts[questions],
        "question_ids": answers.question_ids.take(questions).tolist(),
        "worker_ids": answers.worker_ids.take(workers).tolist(),
        "worker_variance": None if known is None else known[workers],
        "hashes": id_hashes(answers.question_ids.take(questions).values),
    }


def read_back(stored: Stored) -> dict[str, Any]:
    """Return all that a folder holds."""
    blocks = [stored.block(i) for i in range(stored.n_blocks)]
    known = [block.precision for block in blocks if block.precision is not None]
    return {
        "workers": np.concatenate([block.workers for block in blocks]),
        "values": np.concatenate([block.values for block in blocks]),
        "precision": np.concatenate(known) if known else None,
        "centre": np.concatenate([block.centre for block in blocks]),
        "counts": np.concatenate([block.counts for block in blocks]),
        "question_ids": [
            q for i in range(stored.n_blocks) for q in stored.question_ids(i).to_pylist()
        ],
        "worker_ids": stored.worker_ids.tolist(),
        "worker_variance": stored.worker_variance,
        "hashes": np.concatenate([stored.hashes(i) for i in range(stored.n_blocks)]),
    }


def assert_same(stored: Stored, answers: Answers) -> None:
    """Compare a folder with answers in memory."""
    found, expected = read_back(stored), laid_out(answers)
    for name, array in expected.items():
        if name == "precision" and array is not None:
            np.testing.assert_allclose(found[name], array, rtol=1e-14)
        elif isinstance(array, np.ndarray):
            np.testing.assert_array_equal(found[name], array, err_msg=name)
        else:
            assert found[name] == array, name
    assert (stored.n_questions, stored.n_workers) == (answers.n_questions, answers.n_workers)
    assert stored.n_answers == answers.n_answers
    np.testing.assert_allclose(stored.answer_variance, answers.answer_variance, rtol=1e-14)
    origin = answers.origin
    assert (stored.n_rows, stored.n_missing) == (origin.n_rows, origin.n_missing)
    assert stored.n_duplicates == origin.n_duplicates
    assert stored.scale == answers.scale


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make batches, buckets and buckets of buckets out of a few hundred rows."""
    for module in (stream, textfile):
        monkeypatch.setattr(module, "BATCH", 64)
        monkeypatch.setattr(module, "EACH", 16)
    for module in (spool, reading):
        monkeypatch.setattr(module, "ROWS", 50)
    monkeypatch.setattr(spool.small_enough, "__defaults__", (80, 0))


# -- the same answers as in memory -----------------------------------------------------------------


@pytest.mark.parametrize("ids", QUESTIONS)
@pytest.mark.parametrize("ending", [".parquet", ".csv", ".tsv", ".csv.gz"])
@pytest.mark.usefixtures("tiny")
def test_same_as_memory(tmp_path: Path, ending: str, ids: str) -> None:
    path = write(table(700, ids=ids), tmp_path / f"a{ending}")
    with ingest(path, tmp_path / "work") as stored:
        assert_same(stored, Answers.from_file(path))
        assert not list(stored.folder.spool.iterdir())


@pytest.mark.parametrize("rule", ["mean", "first"])
@pytest.mark.parametrize("ending", [".parquet", ".csv"])
@pytest.mark.usefixtures("tiny")
def test_duplicates(tmp_path: Path, ending: str, rule: Any) -> None:
    path = write(table(700, repeats=150), tmp_path / f"a{ending}")
    with ingest(path, tmp_path / "work", duplicates=rule) as stored:
        assert_same(stored, Answers.from_file(path, duplicates=rule))
        assert stored.n_duplicates == 150


@pytest.mark.usefixtures("tiny")
def test_duplicates_are_an_error(tmp_path: Path) -> None:
    path = write(table(700, repeats=9), tmp_path / "a.csv")
    with pytest.raises(AnswersError, match=r"duplicates: 9 answers repeat .*worker \"w") as found:
        ingest(path, tmp_path / "work")
    assert "\n" not in str(found.value)
    assert not list((tmp_path / "work").rglob("*.f64"))
    for wrong in ("median", np.array(["median", "mean"])):
        with pytest.raises(AnswersError, match="median"):
            ingest(path, tmp_path / "work", duplicates=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options",
    [
        {"transform": "log"},
        {"transform": "logit", "bounds": (-1.0, 500.0)},
        {"answer_variance": "variance"},
        {"answer_variance": "variance", "transform": "log1p", "duplicates": "mean"},
        {"worker_variance": "of_worker"},
        {"worker_variance": {"w1": 2.0, "w17": 0.5}},
        {"bounds": (0.0, 100.0)},
    ],
)
@pytest.mark.usefixtures("tiny")
def test_scales_and_variances(tmp_path: Path, options: dict[str, Any]) -> None:
    path = write(table(700, repeats=50 if "duplicates" in options else 0), tmp_path / "a.parquet")
    with ingest(path, tmp_path / "work", **options) as stored:
        assert_same(stored, Answers.from_file(path, **options))


@pytest.mark.usefixtures("tiny")
def test_several_files_and_types(tmp_path: Path) -> None:
    data = table(700, ids="{}")
    numbers = data.column("question").cast(pa.int64())
    whole = data.set_column(1, "question", numbers)
    first = whole.slice(0, 300).set_column(1, "question", numbers.slice(0, 300).cast(pa.int16()))
    write(first, tmp_path / "a.parquet")
    write(whole.slice(300).select(["answer", "question", "worker"]), tmp_path / "b.parquet")
    pattern = tmp_path / "*.parquet"
    with ingest(pattern, tmp_path / "work") as stored:
        assert_same(stored, Answers.from_file(pattern))
        assert stored.question_ids(0).type == pa.int64()
    paths = [
        write(data.slice(300), tmp_path / "z.csv"),
        write(data.slice(0, 300), tmp_path / "y.csv"),
    ]
    with ingest(paths, tmp_path / "work") as stored:
        assert_same(stored, Answers.from_file(paths))
        assert stored.question_ids(0).type == pa.int64()
    with pytest.raises(AnswersError, match=r"is text, while .* is Parquet"):
        ingest([tmp_path / "a.parquet", tmp_path / "y.csv"], tmp_path / "work")


def test_dictionaries_and_large_text(tmp_path: Path) -> None:
    data = table(300)
    data = data.set_column(1, "question", data.column("question").dictionary_encode())
    data = data.set_column(0, "worker", data.column("worker").cast(pa.large_string()))
    path = write(data, tmp_path / "a.parquet")
    with ingest(path, tmp_path / "work") as stored:
        assert_same(stored, Answers.from_file(path))
        assert stored.worker_ids.values.type == pa.large_string()


@pytest.mark.usefixtures("tiny")
def test_ids_that_stop_being_numbers(tmp_path: Path) -> None:
    """Whole numbers for most of the file, and then a text: all of them are text."""
    data = table(700, ids="{}")
    late = pa.table({"question": ["007", "x"], "worker": ["1", "2"], "answer": [1.0, 2.0]})
    both = pa.concat_tables([data.select(["question", "worker", "answer"]), late])
    path = write(both, tmp_path / "a.csv")
    with ingest(path, tmp_path / "work") as stored:
        assert_same(stored, Answers.from_file(path))
        assert stored.question_ids(0).type == pa.string()


def test_zstandard(tmp_path: Path) -> None:
    plain = write(table(300), tmp_path / "a.csv")
    packed = tmp_path / "a.csv.zst"
    with pa.output_stream(packed, compression="zstd") as file:
        file.write(plain.read_bytes())
    with ingest(packed, tmp_path / "work") as stored:
        assert_same(stored, Answers.from_file(plain))
        assert not list(stored.folder.spool.iterdir())
    packed.write_bytes(packed.read_bytes()[:-30])
    with pytest.raises(AnswersError, match=r'File "a.csv.zst": cannot be read: the archive'):
        ingest(packed, tmp_path / "work")


def test_other_ways_to_write_text(tmp_path: Path) -> None:
    text = "wer;was;wert\nä;q 1;1,5\nö;q 1;2\nä;q2;\n"
    path = tmp_path / "a.txt"
    path.write_text(text, encoding="latin-1")
    names: dict[str, Any] = {"worker": "wer", "question": "was", "answer": "wert"}
    options: dict[str, Any] = {**names, "decimal": ",", "encoding": "latin-1"}
    with ingest(path, tmp_path / "work", **options) as stored:
        assert_same(stored, Answers.from_file(path, **options))
        assert stored.n_missing == 1
    with pytest.raises(
        AnswersError, match=r'File "a.txt": line 2 is not UTF-8 .*encoding="latin-1"'
    ):
        ingest(path, tmp_path / "work", **names, decimal=",")


@given(
    st.lists(st.text(st.characters(codec="utf-8"), max_size=12), min_size=1, max_size=60),
    st.integers(1, 9),
)
def test_borders_follow_the_order_of_text(texts: list[str], pieces: int) -> None:
    ids = pa.array(texts)
    order = np.argsort(np.array([text.encode() for text in texts], dtype=object), kind="stable")
    for sample in (ids, ids.slice(len(ids) // 2)):
        borders = spool.Borders(sample, pieces)
        bucket = borders.bucket(ids)[order]
        assert (np.diff(bucket.astype(int)) >= 0).all()
        assert bucket.max() < len(borders) <= max(pieces, 1)


# -- groups and covariates -------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
@pytest.mark.usefixtures("tiny")
def test_groups_and_covariates(tmp_path: Path, ending: str) -> None:
    from trueup.io.attributes import read_covariates, read_groups

    data = table(500)
    # Some rows tell the group and have no answer; some the other way round.
    answer = [
        None if i % 9 == 0 else value for i, value in enumerate(data.column("answer").to_pylist())
    ]
    group = [
        None if i % 3 == 0 else value for i, value in enumerate(data.column("group").to_pylist())
    ]
    data = data.set_column(2, "answer", pa.array(answer)).set_column(5, "group", pa.array(group))
    path = write(data, tmp_path / f"a{ending}")
    answers = Answers.from_file(path)
    with ingest(path, tmp_path / "work", groups="group", covariates=["size"]) as stored:
        assert_same(stored, answers)
        labels, numbers = stored.groups, stored.covariates
        assert labels is not None
        assert numbers is not None
        order = answers.question_ids.sort_order()
        expected = read_groups("group", answers, path)
        assert expected is not None
        names = [
            None if code < 0 else expected.ids.tolist()[code] for code in expected.codes[order]
        ]
        assert [None if code < 0 else labels.ids.tolist()[code] for code in labels.codes] == names
        assert (np.unique(labels.codes[labels.codes >= 0], return_index=True)[1][0]) == 0
        other = read_covariates(["size"], answers, path)
        assert other is not None
        np.testing.assert_array_equal(numbers.values, other.values[order])
        assert numbers.names == ("size",)


def test_groups_that_contradict_themselves(tmp_path: Path) -> None:
    text = "question,worker,answer,group,size\nq1,a,1,x,1\nq1,b,2,y,1\nq2,a,3,x,{}\nq2,b,3,x,{}\n"
    path = tmp_path / "a.csv"
    path.write_text(text.format(3, 4))
    with pytest.raises(
        AnswersError, match=r'groups: question "q1" has two labels, "y" and "x"|"x" and "y"'
    ):
        ingest(path, tmp_path / "work", groups="group")
    with pytest.raises(AnswersError, match=r'covariates: question "q2" has two values of "size", '):
        ingest(path, tmp_path / "work", covariates="size")
    path.write_text(text.format("", ""))
    with pytest.raises(
        AnswersError, match=r'covariates: 1 question without a value of "size", first "q2"'
    ):
        ingest(path, tmp_path / "work", covariates="size")
    path.write_text(text.format("big", 1))
    with pytest.raises(AnswersError, match=r'covariates: question "q2" has the "size" "big"'):
        ingest(path, tmp_path / "work", covariates="size")


# -- rows that cannot be used ----------------------------------------------------------------------

BAD = """question,worker,answer
q1,w1,1
q1,w2,abc
q1,w3
q2,w1,3,4,5
q2,w2,NA
q2,w3,inf
q2,w4,2
q3,w1,1e200
q3,w2,4
q3,w3,7
q4,w1,
q4,w2,5
q4,w3,6
q5,w1,8
q5,w2, 9
"""


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_malformed_rows_are_counted(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a{ending}"
    path.write_bytes(gzip.compress(BAD.encode()) if ending.endswith("gz") else BAD.encode())
    with ingest(path, tmp_path / "work") as stored:
        assert stored.malformed.count == 5
        assert (stored.n_rows, stored.n_missing, stored.n_answers) == (15, 2, 8)
        said = "; ".join(stored.malformed.examples)
        for part in (
            'line 3: "answer" is not a number ("abc")',
            "line 4 has not 3 fields",
            "line 5 has not 3 fields",
        ):
            assert part in said
        assert 'line 7: "answer" is infinite ("inf")' in said
        assert "beyond ±1e+150" in said
        assert all(f'File "a{ending}"' in each for each in stored.malformed.examples)
    with pytest.raises(AnswersError, match=r"cannot be used|fields, the header has 3") as found:
        ingest(path, tmp_path / "work", strict=True)
    assert "\n" not in str(found.value)
    assert "a.csv" in str(found.value)


def test_malformed_rows_of_parquet(tmp_path: Path) -> None:
    data = pa.table(
        {
            "question": ["q"] * 6,
            "worker": list("abcdef"),
            "answer": [1.0, 2.0, np.inf, None, np.nan, 3],
        }
    )
    path = write(data, tmp_path / "a.parquet")
    with ingest(path, tmp_path / "work") as stored:
        assert (stored.malformed.count, stored.n_missing, stored.n_answers) == (1, 2, 3)
        assert stored.malformed.examples == ['File "a.parquet": row 2: "answer" is infinite (inf)']
    text = data.set_column(2, "answer", pa.array(["1", "two", "3", "", " nan", "0x1"]))
    path = write(text, tmp_path / "b.parquet")
    with ingest(path, tmp_path / "work") as stored:
        assert (stored.malformed.count, stored.n_missing, stored.n_answers) == (2, 2, 2)
    with pytest.raises(
        AnswersError, match=r'row 1: "answer" is not a number \("two"\).*leave strict out'
    ):
        ingest(path, tmp_path / "work", strict=True)


def test_too_many_malformed_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('question;worker;answer\nq1;a;"1,5"\nq1;b;"2,5"\nq2;a;3\n')
    with pytest.raises(
        AnswersError, match=r'2 of 3 rows cannot be used, first File "a.csv": line 2.*decimal=","'
    ):
        ingest(path, tmp_path / "work")
    path.write_text("question,worker,answer\nq1,a,x\nq1,b,y\nq2,a,3\n")
    with pytest.raises(AnswersError, match=r"more than half: check"):
        ingest(path, tmp_path / "work")


def lines_with(changed: dict[int, str], end: str = "\n", rows: int = 3000) -> bytes:
    """Return lines of answers, some of them others; the header is line 1."""
    lines = ["question,worker,answer", *(f"q{i},w1,{i}" for i in range(rows))]
    for number, line in changed.items():
        lines[number - 1] = line
    return end.join([*lines, ""]).encode()


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".csv.zst"])
@pytest.mark.parametrize(
    "changed",
    [
        {52: '"q50,w1,3'},
        {52: 'q50,w1,"3'},
        {3000: 'q50,"w1,3'},  # only one more line follows
        {52: 'q50,"w1,3', 2000: 'q1,w1,3"'},  # closed far below: a row of two fields
    ],
)
def test_a_quote_that_does_not_close_stops_as_lines_behind_it_cannot_be_counted(
    tmp_path: Path, changed: dict[int, str], ending: str, end: str
) -> None:
    path = tmp_path / f"a{ending}"
    content = lines_with(changed, end)
    if ending == ".csv.gz":
        content = gzip.compress(content)
    elif ending == ".csv.zst":
        content = pa.Codec("zstd").compress(content, asbytes=True)
    path.write_bytes(content)
    line = min(changed)
    with pytest.raises(AnswersError, match=f"a quote that opens in line {line} is never closed"):
        ingest(path, tmp_path / "work")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_that_cannot_be_read_are_counted_one_by_one(tmp_path: Path, end: str) -> None:
    path = tmp_path / "a.csv"
    changed = {52: 'q50,"w1"x,3', 53: 'q51,"w1"x,3', 200: "q1,w1", 3001: 'q2999,"w1,3'}
    path.write_bytes(lines_with(changed, end))
    with ingest(path, tmp_path / "work") as stored:
        assert stored.n_answers == 2996
        assert stored.malformed.count == 4
        assert stored.n_rows == 3000
        assert [each.partition(" has")[0] for each in stored.malformed.examples] == [
            f'File "a.csv": line {line}' for line in changed
        ]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_row_of_several_lines_without_all_fields_counts_as_its_lines(
    tmp_path: Path, end: str
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(lines_with({52: f'"q50{end}or 51",3'}, end))
    with ingest(path, tmp_path / "work") as stored:
        assert (stored.n_answers, stored.malformed.count) == (2999, 2)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_a_value_of_several_lines_that_look_like_rows_is_not_read_as_rows(
    tmp_path: Path, ending: str, strict: bool
) -> None:
    # Several threads begin to read 8,000,000 bytes apart, here in the middle of the value.
    rows, length = 205_000, 41
    first = 8_000_000 // length - 150
    lines = [f"{i:07d},w1,{i:014d},{i:014d}" for i in range(rows)]
    assert {len(line) + 1 for line in lines} == {length}
    lines[first] = f'{first:07d},w1,1,"note'
    lines[first + 300] += '"'
    content = "\n".join(["question,worker,answer,note", *lines, ""]).encode()
    path = tmp_path / f"a{ending}"
    path.write_bytes(gzip.compress(content, 1) if ending == ".csv.gz" else content)
    with pytest.raises(AnswersError, match=r"^File .*: cannot be read"):
        ingest(path, tmp_path / "work", strict=strict)
    # Elsewhere it is just a value.
    lines[first] = lines[first].replace("note", "")
    lines[first], lines[100] = lines[100], lines[first]
    lines[first + 300], lines[400] = lines[400], lines[first + 300]
    path.write_bytes("\n".join(["question,worker,answer,note", *lines, ""]).encode())
    with ingest(path.rename(tmp_path / "a.csv"), tmp_path / "work", strict=strict) as stored:
        assert (stored.n_rows, stored.n_answers) == (rows - 300, rows - 300)


@pytest.mark.parametrize("column", ["question", "worker"])
@pytest.mark.parametrize("ending", [".csv", ".parquet", "-coded.parquet"])
def test_a_row_without_an_id_cannot_be_used(tmp_path: Path, column: str, ending: str) -> None:
    rows: list[dict[str, object]] = [
        {"question": f"q{j}", "worker": f"w{i}", "answer": j + i}
        for j in range(9)
        for i in range(3)
    ]
    rows[4][column] = rows[20][column] = ""
    rows[7] = {"question": "", "worker": "w1", "answer": ""}  # without an answer it is just missing
    data = pa.table({name: [str(row[name]) or None for row in rows] for name in rows[0]})
    if ending == "-coded.parquet":
        codes = data.column(column).dictionary_encode()
        data = data.set_column(data.column_names.index(column), column, codes)
    path = tmp_path / f"a{ending}"
    if ending == ".csv":
        pyarrow.csv.write_csv(data, path)
    else:
        pq.write_table(data, path)
    with ingest(path, tmp_path / "work") as stored:
        assert (stored.n_rows, stored.n_answers, stored.n_missing) == (27, 24, 1)
        assert stored.malformed.count == 2
        place = "line 6" if ending == ".csv" else "row 4"
        assert stored.malformed.examples[0] == f'File "{path.name}": {place}: "{column}" is missing'
    with pytest.raises(
        AnswersError, match=rf'^2 of 27 rows cannot be used, first .*"{column}" is missing\.'
    ):
        ingest(path, tmp_path / "work", strict=True)


@pytest.mark.parametrize("size", ["abc", "-1GB", "0GB", "1", "50%", "", 5, None])
def test_what_is_no_size_of_memory_is_refused_before_reading(tmp_path: Path, size: Any) -> None:
    path = write(table(20), tmp_path / "a.parquet")
    with pytest.raises(TrueupError, match=r"^memory_limit: found .*such as \"2GB\"\.$"):
        ingest(path, tmp_path / "work", memory_limit=size)
    assert not (tmp_path / "work").exists()


def test_too_little_memory_is_not_said_of_the_folder(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(lines_with({52: "q50,w1"}))
    for limit in ("100KB", "200KB", "500KB", "1MB"):
        with pytest.raises(TrueupError, match=f"^memory_limit: {limit} is too little to read"):
            ingest(path, tmp_path / "work", memory_limit=limit)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "question,worker,answer\n,a,1\n,b,1\nq,a,1\n",
            r'2 of 3 rows cannot be used, first .*line 2: "question" is missing. That is more than half',
        ),
        ("question,worker,answer\n", "no answers, the table has 0 rows"),
        ("question,worker,answer\nq,a,\n", "no answers, all 1 value are missing"),
        ("question,worker,score\nq,a,1\n", r'Column "answer": not found.*answer='),
        ("", "is empty or has no header"),
    ],
)
def test_unusable_files(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(AnswersError, match=message) as found:
        ingest(path, tmp_path / "work")
    assert "\n" not in str(found.value)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("q,a,-1,1", {"transform": "log"}, "transform: log needs answers above 0"),
        ("q,a,1,1", {"answer_variance": "v", "worker_variance": "v"}, "give one of them"),
        ("q,a,1,1", {"memory_limit": "much"}, "memory_limit: found"),
        ("q,a,1,0\nq,b,1,1", {"answer_variance": "v"}, "answer_variance: 1 of 2 values are not"),
        ("q,a,1,1\np,a,1,2", {"worker_variance": "v"}, "a worker has two different variances"),
        ("q,a,1,-1", {"worker_variance": "v"}, "worker_variance: must be positive numbers"),
        ("q,a,1,1", {"worker_variance": {"b": 1.0}}, "none of its 1 workers is in the answers"),
        ("q,a,1,1", {"answer_variance": np.ones((2, 2))}, "on disk it is the name of a column"),
        ("q,a,1,1", {"strict": np.ones(2)}, "strict: found .*, must be True or False"),
        ("q,a,1,1", {"groups": "kind"}, 'Column "kind": not found'),
        ("q,a,1,1", {"threads": 0}, "threads: found 0"),
    ],
)
def test_unusable_options(tmp_path: Path, text: str, options: dict[str, Any], message: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"question,worker,answer,v\n{text}\n")
    with pytest.raises(TrueupError, match=message) as found:
        ingest(path, tmp_path / "work", **options)
    assert "\n" not in str(found.value)


def test_files_it_cannot_read(tmp_path: Path) -> None:
    other = tmp_path / "a.jsonl"
    other.write_text("{}")
    with pytest.raises(AnswersError, match="cannot be read by the engine on disk"):
        ingest(other, tmp_path / "work")
    with pytest.raises(AnswersError, match="not found"):
        ingest(tmp_path / "b.csv", tmp_path / "work")
    with pytest.raises(AnswersError, match="standard input"):
        ingest("-", tmp_path / "work")
    floats = pa.table({"question": [1.5], "worker": ["a"], "answer": [1.0]})
    path = write(floats, tmp_path / "f.parquet")
    with pytest.raises(AnswersError, match=r'"double" values. On disk, ids are text or whole num'):
        ingest(path, tmp_path / "work")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(AnswersError, match=r'File "f.parquet": cannot be read as Parquet'):
        ingest(path, tmp_path / "work")


# -- the folder ------------------------------------------------------------------------------------


def digest(folder: Path) -> dict[str, str]:
    """Return a checksum of each file that holds answers."""
    files = sorted(path for path in (folder / "answers").iterdir() if path.name != "meta.json")
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_a_finished_ingest_is_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, work = write(table(300), tmp_path / "a.csv"), tmp_path / "work"
    ingest(path, work).close()
    before = digest(work)

    def never(*_: object) -> None:
        raise AssertionError

    with monkeypatch.context() as patch:
        patch.setattr(ingest_module, "_write", never)
        ingest(path, work).close()
        with pytest.raises(AssertionError):
            ingest(path, work, transform="log").close()
    # That one failed, and left nothing.
    assert not (work / "answers" / "meta.json").exists()
    ingest(path, work).close()
    assert digest(work) == before
    write(table(301), path)
    with ingest(path, work) as stored:
        assert_same(stored, Answers.from_file(path))
    assert digest(work) != before


@pytest.mark.parametrize("damage", ["cut", "gone", "meta", "format", "longer"])
def test_a_damaged_folder_is_made_anew(tmp_path: Path, damage: str) -> None:
    path, work = write(table(300), tmp_path / "a.parquet"), tmp_path / "work"
    ingest(path, work).close()
    before = digest(work)
    values, meta = work / "answers" / "values.f64", work / "answers" / "meta.json"
    if damage == "cut":
        os.truncate(values, 16)
    elif damage == "gone":
        values.unlink()
    elif damage == "longer":
        values.write_bytes(values.read_bytes() + b"12345678")
    elif damage == "meta":
        meta.write_bytes(meta.read_bytes()[:-10])
    else:
        meta.write_text(json.dumps({**json.loads(meta.read_text()), "format": 99}))
    folder = Folder(work)
    with pytest.raises(TrueupError, match="damaged") as found:
        Stored.open(folder)
    folder.close()
    assert "\n" not in str(found.value)
    with ingest(path, work) as stored:
        assert_same(stored, Answers.from_file(path))
    assert digest(work) == before


def test_damage_while_in_use(tmp_path: Path) -> None:
    path, work = write(table(300), tmp_path / "a.parquet"), tmp_path / "work"
    with ingest(path, work) as stored:
        workers = work / "answers" / "workers.i32"
        content = workers.read_bytes()
        workers.write_bytes(b"\xff" * len(content))
        with pytest.raises(TrueupError, match=r"damaged .*workers.i32"):
            stored.block(0)
        os.truncate(workers, 8)
        with pytest.raises(TrueupError, match=r"damaged .*workers.i32"):
            stored.block(0)


def test_other_files_in_the_folder_stay(tmp_path: Path) -> None:
    """The sources may even lie where the answers go."""
    for name in ("answers", "spool", "vectors"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "notes.txt").write_text("mine")
    path = write(table(300), tmp_path / "answers" / "a.parquet")
    for transform in (None, "log"):
        ingest(path, tmp_path, transform=transform).close()
    assert path.exists()
    assert len(list(tmp_path.rglob("notes.txt"))) == 3


def test_a_temporary_folder_goes(tmp_path: Path) -> None:
    stored = ingest(write(table(100), tmp_path / "a.csv"))
    where = stored.folder.path
    assert stored.block(0).n_questions
    assert where.exists()
    stored.close()
    assert not where.exists()


def test_two_runs_at_once(tmp_path: Path) -> None:
    path, work = write(table(100), tmp_path / "a.csv"), tmp_path / "work"
    with (
        ingest(path, work),
        pytest.raises(TrueupError, match=rf"in use by another run \(process {os.getpid()}\)"),
    ):
        ingest(path, work)
    ingest(path, work).close()


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    path = write(table(100), tmp_path / "a.csv")
    with pytest.raises(
        TrueupError, match=r"Folder .*a.csv/work\": cannot be written \(\"Not a directory\"\)"
    ):
        ingest(path, path / "work")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "answers").write_text("a file where a folder should be")
    with pytest.raises(TrueupError, match=r"cannot be written") as found:
        ingest(path, tmp_path / "work")
    assert "\n" not in str(found.value)


def test_a_source_that_changes_underneath(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, work = write(table(300), tmp_path / "a.csv"), tmp_path / "work"
    real = sorting.sort

    def sort(*args: Any, **options: Any) -> dict[str, Any]:
        with path.open("a") as file:
            file.write("q1,w99,3\n")
        return real(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(ingest_module, "sort", sort)
        with pytest.raises(AnswersError, match=r"a.csv\": has changed while it was read"):
            ingest(path, work)
    assert not list(work.rglob("*.f64"))


CHILD = """
import sys, resource, signal
limit = int(sys.argv[3])
if limit:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
from trueup.engines.disk.intake import ingest
try:
    ingest(sys.argv[1], sys.argv[2]).close()
except ValueError as error:
    print(type(error).__name__, error)
    sys.exit(1)
"""


def child(path: Path, work: Path, limit: int = 0) -> subprocess.Popen[str]:
    """Start an ingest in a process of its own."""
    command = [sys.executable, "-c", CHILD, str(path), str(work), str(limit)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # noqa: S603


@pytest.mark.parametrize("limit", [100, 5_000, 60_000, 130_000])
def test_a_full_disk(tmp_path: Path, limit: int) -> None:
    """A limit on the size of files stands in for the end of the disk."""
    path, work = write(table(20_000, questions=1000), tmp_path / "a.parquet"), tmp_path / "work"
    process = child(path, work, limit)
    said, _ = process.communicate()
    assert process.returncode == 1, said
    assert said.startswith("TrueupError Folder ")
    assert "the disk is full" in said
    assert said.count("\n") == 1
    left = [each for each in work.rglob("*") if each.is_file() and each.name != "trueup.lock"]
    assert not left
    with ingest(path, work) as stored:
        assert stored.n_answers == 20_000


def test_killed_at_any_moment(tmp_path: Path) -> None:
    path, work = write(table(100_000, questions=4000), tmp_path / "a.csv"), tmp_path / "work"
    began = time.monotonic()
    with child(path, work) as process:
        assert process.wait() == 0
    took = time.monotonic() - began
    expected = digest(work)
    for share in (0.6, 0.75, 0.85, 0.95):
        path.touch()  # the finished ingest is no longer one of this file
        with child(path, work) as process:
            time.sleep(share * took)
            process.send_signal(signal.SIGKILL)
    path.touch()
    ingest(path, work).close()
    assert digest(work) == expected


def test_threads_change_nothing(tmp_path: Path) -> None:
    path = write(table(5000, questions=400, repeats=300), tmp_path / "a.csv")
    seen = []
    for threads in (1, 2, 5):
        shares: list[tuple[str, float]] = []
        work = tmp_path / f"work{threads}"
        ingest(
            path,
            work,
            threads=threads,
            duplicates="mean",
            progress=lambda *each, to=shares: to.append(each),
        ).close()
        seen.append(digest(work))
        assert {what for what, _ in shares} == {"reading", "sorting"}
        assert shares[-1] == ("sorting", 1.0)
    assert seen[0] == seen[1] == seen[2]


@pytest.fixture(autouse=True)
def _no_files_left_open() -> Iterator[None]:
    handles = Path("/proc/self/fd")
    before = len(list(handles.iterdir())) if handles.exists() else 0
    yield
    assert not before or len(list(handles.iterdir())) <= before + 8
