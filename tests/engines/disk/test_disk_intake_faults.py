"""The larger-than-memory ingest: rows and files that cannot be used, damaged folders, full disks, killed processes."""

from __future__ import annotations

import gzip
import json
import os
import signal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from answers_on_disk import (
    assert_same,
    digest,
    ingest,
    no_files_left_open,  # noqa: F401  for all tests
    table,
    write,
)
from commands import full_disk
from processes import begin
from trueup import Answers
from trueup.engines.disk import intake as ingest_module
from trueup.engines.disk import sorting
from trueup.engines.disk.blocks import StoredAnswers
from trueup.engines.disk.folder import Folder
from trueup.errors import AnswersError, TrueupError

if TYPE_CHECKING:
    from pathlib import Path


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


ENDS = ("\n", "\r\n", "\r")
NEVER_CLOSED: list[dict[int, str]] = [
    {52: '"q50,w1,3'},
    {52: 'q50,w1,"3'},
    {3000: 'q50,"w1,3'},  # only one more line follows
    {52: 'q50,"w1,3', 2000: 'q1,w1,3"'},  # closed far below: a row of two fields
]


# Every one with every end of a line; packed in one way or the other, or not.
@pytest.mark.parametrize(
    ("changed", "end", "ending"),
    [
        (changed, end, (".csv", ".csv.gz", ".csv.zst")[(i + j) % 3])
        for i, changed in enumerate(NEVER_CLOSED)
        for j, end in enumerate(ENDS)
    ],
)
def test_a_quote_that_does_not_close_stops_as_lines_behind_it_cannot_be_counted(
    tmp_path: Path, changed: dict[int, str], end: str, ending: str
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


def with_a_value_of_several_lines(first: int, note: str) -> bytes:
    """Return 205,000 lines of 41 bytes, 300 of them within quotes."""
    lines = [f"{i:07d},w1,{i:014d},{i:014d}" for i in range(205_000)]
    lines[first] = f'{first:07d},w1,1,"{note}'
    lines[first + 300] += '"'
    return "\n".join(["question,worker,answer,note", *lines, ""]).encode()


def test_a_value_of_several_lines_that_look_like_rows_is_not_read_as_rows(tmp_path: Path) -> None:
    # Several threads begin to read 8,000,000 bytes apart, here in the middle of the value.
    content = with_a_value_of_several_lines(8_000_000 // 41 - 150, "note")
    plain, packed = tmp_path / "a.csv", tmp_path / "a.csv.gz"
    plain.write_bytes(content)
    packed.write_bytes(gzip.compress(content, 1))
    for path, strict in ((plain, False), (plain, True), (packed, False)):
        with pytest.raises(AnswersError, match=r"^File .*: cannot be read"):
            ingest(path, tmp_path / "work", strict=strict)
    # Elsewhere it is just a value.
    plain.write_bytes(with_a_value_of_several_lines(100, ""))
    with ingest(plain, tmp_path / "work") as stored:
        assert (stored.n_rows, stored.n_answers) == (204_700, 204_700)


@pytest.mark.parametrize(
    ("column", "ending"),
    [
        ("question", ".csv"),
        ("worker", ".csv"),
        ("question", ".parquet"),
        ("worker", "-coded.parquet"),
        ("question", "-coded.parquet"),
    ],
)
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
        ("question,worker,punkte\nq,a,1\n", r'Column "answer": not found.*answer='),
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


# -- folders and disks -----------------------------------------------------------------------------


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
        StoredAnswers.open(folder)
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


def test_a_full_disk(tmp_path: Path) -> None:
    path, work = write(table(20_000, questions=1000), tmp_path / "a.parquet"), tmp_path / "work"
    for limit in (100, 5_000, 60_000, 130_000):
        with (
            full_disk(limit),
            pytest.raises(TrueupError, match=r"^Folder .*the disk is full") as found,
        ):
            ingest(path, work)
        assert "\n" not in str(found.value)
        left = [each for each in work.rglob("*") if each.is_file() and each.name != "trueup.lock"]
        assert not left
    with ingest(path, work) as stored:
        assert stored.n_answers == 20_000


def test_killed_at_any_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path, work = write(table(2000), tmp_path / "a.csv"), tmp_path / "work"
    ingest(path, work).close()
    expected = digest(work)
    moments = range(2, 60, 5)
    codes = []
    for moment in moments:
        path.touch()  # the finished ingest is no longer one of this file
        codes.append(begin(ingest, path, work, killed_at=moment).end().code)
    # The last moments come after the end.
    killed = codes.count(-signal.SIGKILL)
    assert killed >= 7
    assert codes == [-signal.SIGKILL] * killed + [0] * (len(codes) - killed)
    path.touch()
    ingest(path, work).close()
    assert digest(work) == expected
