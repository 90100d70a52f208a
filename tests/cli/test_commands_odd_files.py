"""The commands on files with odd names and broken content: harmless, and explained in one line."""

from __future__ import annotations

import gzip
import io
import json
import os
import tempfile
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import hypothesis.strategies as st
import pytest

from commands import ON_FILES, Done, need_cli, one_line, printed, refusal, rows, run, table, write

if TYPE_CHECKING:
    from collections.abc import Iterator

need_cli()

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

HOSTILE = (
    "<script>alert(1)</script>",
    '=HYPERLINK("x")',
    "\"quoted\" 'single' & </td>",
    "two\nlines\r\nof it",
    "emoji 👩‍👩‍👧 🎉",
    "עברית מימין לשמאל",
    "\u202egnirts desrever",
    "back\\slash\ttab",
    "\x1b[31mred",
    "'; DROP TABLE answers; --",
)
quick = hypothesis.settings(
    max_examples=12,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)

pytestmark = pytest.mark.usefixtures("folder_of_answers")


# -- odd names -------------------------------------------------------------------------------------


def hostile() -> list[dict[str, Any]]:
    return [
        {"question": question, "worker": worker, "answer": 10 * j + (i * j + i) % 5}
        for j, question in enumerate(HOSTILE)
        for i, worker in enumerate(HOSTILE)
        if (i + j) % 4
    ]


def test_hostile_ids_come_back_byte_for_byte() -> None:
    write("answers.csv", hostile())
    printed("estimate", "answers.csv", "-o", "out.parquet", "--workers", "workers.json")
    names = parquet.read_table("out.parquet").column("question").to_pylist()
    assert names == list(HOSTILE)
    written = json.loads(Path("workers.json").read_text(encoding="utf-8"))["workers"]
    assert {row["worker"] for row in written} == set(HOSTILE)
    document = json.loads(printed("estimate", "answers.csv", "--format", "json"))
    assert [row["question"] for row in document["questions"]] == list(HOSTILE)


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_rows_of_csv_end_with_a_line_feed_and_odd_line_ends_stay_inside_their_text(
    engine: str,
) -> None:
    names = ["plain", "two\r\nlines", "lone\rreturn", "lone\nfeed"]
    rows = [
        {"question": name, "worker": who, "answer": 10 * j + (i * j + i) % 3}
        for j, name in enumerate(names)
        for i, who in enumerate(names)
    ]
    parquet.write_table(pyarrow.Table.from_pylist(rows), "answers.parquet")
    out = "out.parquet" if engine == "disk" else "out.csv"
    tables = ("-o", out, "--workers", "workers.csv", "--engine", engine)
    printed("estimate", "answers.parquet", *tables)
    for path, column in {"out.csv": "question", "workers.csv": "worker"}.items():
        if not Path(path).exists():
            continue
        assert {row[column] for row in table(path)} == set(names)
        text = Path(path).read_bytes()
        assert text.count(b"\r") == 2
        assert b"\r\n" not in text.replace(b"two\r\nlines", b"")
        assert text.endswith(b"\n")


def test_hostile_ids_are_harmless_in_a_spreadsheet_and_a_report() -> None:
    write("answers.csv", hostile())
    printed("estimate", "answers.csv", "-o", "out.csv", "--report", "page.html")
    names = [row["question"] for row in table("out.csv")]
    assert names == [f"'{name}" if name.startswith("=") else name for name in HOSTILE]
    page = Path("page.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert '</td>"' not in page
    assert "<script>alert(1)</script>" in unescape(page)


def test_hostile_ids_cannot_touch_the_terminal() -> None:
    write("answers.csv", hostile())
    for command in ON_FILES:
        text = printed(command, "answers.csv")
        assert all(each.isprintable() for each in text.splitlines()), command
    one = [{**row, "answer": "\x1b[31m\nno"} for row in hostile()]
    write("answers.csv", one)
    assert refusal("estimate", "answers.csv").strip().isprintable()


def test_a_quote_at_the_end_of_an_id_is_shown() -> None:
    Path("answers.csv").write_text(
        'question,worker,answer\n"12""",u,1\n"12""",v,2\n', encoding="utf-8"
    )
    assert r"  12\"  " in printed("estimate", "answers.csv")


# -- broken files ----------------------------------------------------------------------------------


def ends_well(command: str, path: str) -> Done:
    """Run a command on whatever it is: it can be done, or one line says why not."""
    done = run(command, path)
    assert done.code in (0, 1)
    if done.code:
        # The doctor says what it tried before.
        assert done.out == "" or (command == "doctor" and done.out.startswith("To settle first"))
        one_line(done.err)
    else:
        assert done.out
        assert all(line.startswith("trueup: ") for line in done.err.splitlines())
    return done


def parquet_bytes() -> bytes:
    columns = {name: [row[name] for row in rows()] for name in rows()[0]}
    sink = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), sink)
    return sink.getvalue()


HEADER = b"question,worker,answer\n"
BROKEN = {
    "header.csv": HEADER,
    "empty.csv": b"",
    "blank.csv": b"\n\n\n",
    "nul.csv": HEADER + b"q\0,u,1\nq,v,2\n",
    "all-nul.csv": b"\0" * 1000,
    "quote.csv": HEADER + b'"q,u,1\nq,v,2\n',
    "short.csv": HEADER + b"q,u\n",
    "long.csv": HEADER + b"q,u,1,2,3\n",
    "utf-16.csv": (HEADER + b"q,u,1\n").decode().encode("utf-16"),
    "latin.csv": HEADER + b"q\xe9,u,1\n",
    "infinite.csv": HEADER + b"q,u,inf\nq,v,1\n",
    "huge.csv": HEADER + b"q,u,1e300\nq,v,-1e300\n",
    "half.csv.gz": gzip.compress(HEADER + b"q,u,1\n" * 1000, mtime=0)[:30],
    "none.csv.gz": b"not packed",
    "bad.json": b'{"question": ',
    "list.json": b"[1, 2, 3]",
    "bad.xlsx": b"PK\x03\x04 and nothing",
    "empty.parquet": b"",
    "text.parquet": b"question,worker,answer",
    "old.xls": b"\xd0\xcf\x11\xe0",
    "thing": b"question,worker,answer\nq,u,1\n",
}


#: Doctor names the options that read these.
READ_BY_OPTIONS = ("utf-16.csv", "latin.csv", "infinite.csv")


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_explained(name: str) -> None:
    Path(name).write_bytes(BROKEN[name])
    for command in ON_FILES:
        done = ends_well(command, name)
        if done.code:
            assert f'"{name}"' in done.err or command == "compare"
        if command == "doctor":
            assert done.code == (name not in READ_BY_OPTIONS)


def test_a_byte_order_mark_and_quotes_are_no_error() -> None:
    text = '"question","worker","answer"\n"q, 1","u","1.5"\n"q, 1","v","2"\n'
    Path("marked.csv").write_text(text, encoding="utf-8-sig")
    printed("estimate", "marked.csv", "-o", "out.csv", "--quiet")
    assert [row["question"] for row in table("out.csv")] == ["q, 1"]


def test_very_many_columns() -> None:
    names = ",".join(f"c{n}" for n in range(1000))
    Path("many.csv").write_text(f"{names}\n{names}\n", encoding="utf-8")
    line = refusal("doctor", "many.csv")
    assert len(line) < 2000
    numbers = ",".join("1" for _ in range(1000))
    Path("wide.csv").write_text(f"question,{names}\nx,{numbers}\ny,{numbers}\n", encoding="utf-8")
    assert "1,000 workers" in printed("doctor", "wide.csv", "--wide", "questions")


def test_a_file_that_may_not_be_read() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        path = folder / "secret.csv"
        path.write_text(Path("answers.csv").read_text(encoding="utf-8"), encoding="utf-8")
        path.chmod(0)
        printed("doctor", "answers.csv")  # everything is loaded
        with somebody_else():
            for command in ON_FILES:
                line = refusal(command, path)
                assert "secret.csv" in line
                assert "permission" in line


@contextmanager
def somebody_else() -> Iterator[None]:
    """Give up the right to read everything, if there is one."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@quick
@hypothesis.given(
    content=st.one_of(
        st.binary(max_size=200),
        st.binary(max_size=80).map(lambda tail: HEADER + tail),
        st.lists(
            st.tuples(
                st.text(max_size=3),
                st.sampled_from(["u", "v", "w", ""]),
                st.one_of(st.floats().map(str), st.integers().map(str), st.sampled_from(["", "x"])),
            ),
            max_size=12,
        ).map(
            lambda found: (
                HEADER + "".join(f"{','.join(each)}\n" for each in found).encode("utf-8", "replace")
            )
        ),
    ),
    ending=st.sampled_from([".csv", ".tsv", ".csv.gz", ".json", ".parquet", ".xlsx"]),
    command=st.sampled_from(ON_FILES),
)
def test_any_bytes_end_well(content: bytes, ending: str, command: str) -> None:
    Path(f"any{ending}").write_bytes(content)
    ends_well(command, f"any{ending}")


@quick
@hypothesis.given(
    changes=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=4),
    length=st.floats(0, 1),
    kind=st.sampled_from(["csv", "parquet"]),
    command=st.sampled_from(ON_FILES),
)
def test_damaged_files_end_well(
    changes: list[tuple[float, int]], length: float, kind: str, command: str
) -> None:
    content = bytearray(parquet_bytes() if kind == "parquet" else Path("answers.csv").read_bytes())
    for place, byte in changes:
        content[int(place * (len(content) - 1))] = byte
    keep = len(content) if length > 0.5 else int(2 * length * len(content))
    Path(f"damaged.{kind}").write_bytes(content[:keep])
    ends_well(command, f"damaged.{kind}")
