"""Parquet files that Spark reads mean what they mean in memory; other files, and faults, are errors of one line."""

from __future__ import annotations

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


def read(path: Path, **options: Any) -> Any:
    """Return the rows of files, in order."""
    from trueup.cli.on_spark import answers_frame
    from trueup.request import Request

    request = Request.of(**options)
    frame = answers_frame(session(), str(path), request.read, request.question_data)
    return sorted(map(tuple, frame.collect()), key=str)


def parquet(path: Path, **columns: Any) -> None:
    """Write a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), path)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv.gz", "a.jsonl", "a.xlsx"])
def test_only_parquet_is_read(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("question,worker,answer\nq1,ann,1\n")
    with pytest.raises(TrueupError) as caught:
        read(tmp_path / name)
    message = str(caught.value)
    assert message.startswith(f'File "{name}": the engine on Spark reads Parquet files only.')
    for remedy in ("COPY (FROM", "--engine disk", "spark.read.csv", "trueup.spark.estimate"):
        assert remedy in message


def test_columns_go_by_name(tmp_path: Path) -> None:
    """A column more, another order, names with points and quotes: each file has its own columns."""
    parquet(
        tmp_path / "a.parquet", question=["q1"], worker=["ann"], answer=[1.0], **{"k.`i": ["x"]}
    )
    parquet(
        tmp_path / "b[1]{c}.parquet",
        note=["n"],
        answer=[3.0],
        **{"k.`i": ["y"]},
        worker=["bob"],
        question=["q2"],
    )
    expected = [("q1", "ann", 1.0), ("q2", "bob", 3.0)]
    assert read(tmp_path / "*.parquet") == expected
    assert read(tmp_path / "*.parquet", groups="k.`i") == [(*expected[0], "x"), (*expected[1], "y")]


def test_the_file_with_the_fault_is_named(tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet", question=["q1"], worker=["ann"], answer=[1.0])
    parquet(tmp_path / "c.parquet", question=["q1"], worker=["ann"], label=[1.0])
    pattern = tmp_path / "*.parquet"
    with pytest.raises(TrueupError, match=r'File "c.parquet": has no column "answer", unlike "a'):
        read(pattern)
    (tmp_path / "c.parquet").rename(tmp_path / "_c.parquet")
    with pytest.raises(TrueupError, match=r'"_c.parquet": Spark skips files whose names'):
        read(pattern)
    (tmp_path / "_c.parquet").unlink()
    (tmp_path / "b.parquet").write_bytes(b"PAR1")
    with pytest.raises(TrueupError, match=r'"b.parquet": cannot be read as Parquet'):
        read(pattern)
    with pytest.raises(TrueupError, match=r'groups: File "a.parquet": Column "kind": not found'):
        read(tmp_path / "a.parquet", groups="kind")


def test_parquet_files_are_joined_by_a_common_type_or_refused(tmp_path: Path) -> None:
    import pyarrow as pa

    empty = pa.nulls(1)
    parquet(
        tmp_path / "a.parquet",
        question=pa.array([1, 2], pa.int32()),
        worker=["u", "v"],
        answer=[1, 2],
    )
    parquet(
        tmp_path / "b.parquet",
        answer=[0.5],
        worker=pa.array(["u"]).dictionary_encode(),
        question=[1 << 40],
    )
    parquet(tmp_path / "c.parquet", answer=empty, worker=["w"], question=[3])
    expected = [(1, "u", 1.0), (1 << 40, "u", 0.5), (2, "v", 2.0), (3, "w", None)]
    assert read(tmp_path / "*.parquet") == expected
    parquet(tmp_path / "d.parquet", answer=[0.5], worker=["u"], question=["4"])
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
    assert foo.startswith('--master: "foo" is not a Spark master. Give one such as local[4]')
    assert local.startswith('--master: "local[x]" is not a Spark master')
    assert "there is no java in JAVA_HOME" in java
    assert 'Check that Java 17 or newer is installed, and the master "local[2]".' in java
