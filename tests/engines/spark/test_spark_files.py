"""Files that Spark reads mean what they mean in memory, and what is wrong with them is told in a line."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from spark_session import SEARCHED, session, sparse
from trueup import TrueupError

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("pyspark", reason="needs pyspark")
pytest.importorskip("cyclopts", reason='needs pip install "trueup[cli]"')
pytestmark = pytest.mark.needs("java")

HEADER = "question,worker,answer\n"
ROWS = "q1,ann,1\nq1,bob,2.5\nq2,ann,3\n"


def read(path: Path, **options: Any) -> Any:
    """Return the rows of files, in order."""
    from trueup.cli.on_spark import answers_frame
    from trueup.cli.read_options import Reading

    further = {name: options.pop(name) for name in ("groups", "covariates") if name in options}
    frame = answers_frame(session(), str(path), Reading(**options), **further)
    return sorted(map(tuple, frame.collect()), key=str)


def write(folder: Path, **contents: str | bytes) -> Path:
    """Write files of these names, and return the pattern of them all."""
    for name, content in contents.items():
        data = content.encode() if isinstance(content, str) else content
        (folder / f"{name}.csv").write_bytes(data)
    return folder / "*.csv"


def test_columns_go_by_name(tmp_path: Path) -> None:
    """A column more, another order, another separator: each file has its own header."""
    pattern = write(
        tmp_path,
        a="question,worker,answer,kind\n" + "q1,ann,1,x\nq1,bob,2.5,x\n",
        b="kind;worker;note;Answer;question;answer\nx;ann;n;9;q2;3\n",
        c="\ufeffworker|kind|answer|question\nbob|y|7|q2\n",
    )
    expected = [("q1", "ann", "1"), ("q1", "bob", "2.5"), ("q2", "ann", "3"), ("q2", "bob", "7")]
    assert read(pattern) == expected
    kinds = ("x", "x", "x", "y")
    assert read(pattern, groups="kind") == [
        (*row, kind) for row, kind in zip(expected, kinds, strict=True)
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (HEADER + ROWS + "q3,ann,5,7\n" + ROWS, '"a.csv": 1 of 7 rows has more .* such as "q3,ann,5,7"'),
        (HEADER + ROWS + "q3,ann\nq4\n", '2 of 5 rows have more or fewer fields .* "q3,ann", "q4"'),
        ("note," + HEADER + "n,q1,ann,1\nn,q2,ann\n", '1 of 2 rows has more or fewer .* "n,q2,ann"'),
        (HEADER + ROWS + '"q3,ann,5\n' + ROWS, "A quote is never closed, or far below"),
        # In the last column nothing is missing behind it: the rest of the file would be a worker.
        ("answer,question,worker\n1,q1,ann\n2,q2,\"bob\n3,q3,cat\n4,q4,cat\n", '"a.csv": a quote is never closed'),
        ("answer,question,worker\n1,q1,ann\n2,q2,\"bob\n3,q3,\"cat\n4,q4,cat\n", "never closed, or text follows"),
        (HEADER + ROWS + '"q3"x,ann,5\n', r'"a.csv": .* text follows where it closes \("q3"\)'),
    ],
)  # fmt: skip
def test_rows_that_are_written_wrongly_stop(
    tmp_path: Path, content: str, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    from trueup import Answers

    path = write(tmp_path, a=content)
    with pytest.raises(TrueupError, match=message) as caught:
        read(path)
    assert "\n" not in str(caught.value)
    assert "Exception" not in capfd.readouterr().err  # no stack of Java
    with pytest.raises(TrueupError):
        Answers.from_file(path)


def test_quotes_that_close_are_read(tmp_path: Path) -> None:
    text = 'answer,question,worker\n1,"q ""1"", x","ann\n 1"\n2,q2,"bob"\n,,\n\n3,q3,5"\n4,q4,6"\n'
    expected = [
        ('q "1", x', "ann\n 1", "1"),
        ("q2", "bob", "2"),
        ("q3", '5"', "3"),
        ("q4", '6"', "4"),
    ]
    write(tmp_path, a=text, b=text.encode("utf-16"))
    assert [row for row in read(tmp_path / "a.csv") if row[0]] == expected
    assert [row for row in read(tmp_path / "b.csv") if row[0]] == expected


def test_the_file_with_the_fault_is_named(tmp_path: Path) -> None:
    pattern = write(tmp_path, a=HEADER + ROWS, b=HEADER + "q1\n", c="worker," + HEADER)
    with pytest.raises(TrueupError, match=r'File "c.csv": has 2 columns "worker", unlike "a.csv"'):
        read(pattern)
    (tmp_path / "c.csv").write_text("question,worker,label\nq1,ann,4\n")
    with pytest.raises(TrueupError, match=r'File "c.csv": has no column "answer", unlike "a.csv"'):
        read(pattern)
    (tmp_path / "c.csv").unlink()
    with pytest.raises(TrueupError, match=r'File "b.csv": 1 of 4 rows'):
        read(pattern)
    (tmp_path / "b.csv").rename(tmp_path / "_b.csv")
    with pytest.raises(TrueupError, match=r'"_b.csv": Spark passes over'):
        read(pattern)
    (tmp_path / "_b.csv").unlink()
    (tmp_path / "b.parquet").write_bytes(b"PAR1")
    with pytest.raises(TrueupError, match=r'"b.parquet": cannot be read as Parquet'):
        read(tmp_path / "*")
    with pytest.raises(TrueupError, match=r'groups: File "a.csv": Column "kind": not found'):
        read(tmp_path / "a.csv", groups="kind")
    with pytest.raises(
        TrueupError, match=r'"a.csv": encoding: Spark cannot read "cp1252", only utf-8'
    ):
        read(tmp_path / "a.csv", encoding="cp1252")


def test_how_text_is_written_is_found_or_told(tmp_path: Path) -> None:
    """Separator, decimal mark, encoding, archive, and names that are patterns elsewhere."""
    expected = [("1", "ann", "-0.12"), ("10", "zoë", "5"), ("x", "ann", None)]
    text = "question;worker;answer\n1;ann;-0,12\n10;zoë;5\nx;ann;\n"
    write(tmp_path, latin=text.encode("latin-1"), **{"a[1]{b}": text})
    assert read(tmp_path / "a[1]{b}.csv", decimal=",") == expected
    assert read(tmp_path / "latin.csv", decimal=",", encoding="latin-1") == expected
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(text.replace(";", "\t").encode()))
    assert read(tmp_path / "a.tsv.gz", decimal=",", sep="tab") == expected
    whole = write(tmp_path, whole=text.replace("x;ann;\n", "")).with_name("whole.csv")
    assert [row[0] for row in read(whole, decimal=",")] == [1, 10]  # numbers, as elsewhere
    (tmp_path / "whole.csv").write_text(text.replace("5", "1.234"))
    with pytest.raises(TrueupError, match=r'"answer": 1 of 3 values has a point, such as "1.234"'):
        read(whole, decimal=",")


def test_parquet_files_are_joined_by_a_common_type_or_refused(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    def parquet(name: str, **columns: Any) -> None:
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")

    empty = pa.nulls(1)
    parquet("a", question=pa.array([1, 2], pa.int32()), worker=["u", "v"], answer=[1, 2])
    parquet("b", answer=[0.5], worker=pa.array(["u"]).dictionary_encode(), question=[1 << 40])
    parquet("c", answer=empty, worker=["w"], question=[3])
    expected = [(1, "u", 1.0), (1 << 40, "u", 0.5), (2, "v", 2.0), (3, "w", None)]
    assert read(tmp_path / "*.parquet") == expected
    parquet("d", answer=[0.5], worker=["u"], question=["4"])
    with pytest.raises(
        TrueupError,
        match=r'"d.parquet": Column "question": holds "string" values, in "a.parquet" "int64"',
    ):
        read(tmp_path / "*.parquet")
    with pytest.raises(TrueupError, match="sep: is for text, and this is Parquet"):
        read(tmp_path / "a.parquet", sep=";")


def test_what_is_no_spark_frame_is_refused() -> None:
    import trueup.spark

    frame: Any = sparse(4, 3)
    for call in (trueup.spark.estimate, trueup.spark.compare):
        with pytest.raises(
            TrueupError, match=r'"pandas.DataFrame", must be a Spark DataFrame.*create'
        ):
            call(frame)


def in_another_process(code: str, **environment: str) -> list[str]:
    """Return what the code prints, errors too."""
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
        env={**os.environ, "PYTHONPATH": SEARCHED, **environment},
    )
    return [line for line in (done.stdout + done.stderr).splitlines() if line]


def test_what_spark_cannot_start_with_is_told_in_a_line(tmp_path: Path) -> None:
    code = """
from trueup.cli.on_spark import session_at
for master in ("foo", "local[x]", "local[2]"):
    try:
        session_at(master)
    except ValueError as error:
        print(error)
"""
    foo, local, java = in_another_process(code, JAVA_HOME=str(tmp_path))
    assert foo.startswith('--master: "foo" is no Spark master. Give one such as local[4]')
    assert local.startswith('--master: "local[x]" is no Spark master')
    assert "there is no java in JAVA_HOME" in java
    assert 'Check that Java 17 or newer is installed, and the master "local[2]".' in java
