"""What SECURITY.md promises: no code from data, no network, limits on what a file may ask for."""

from __future__ import annotations

import ast
import gzip
import itertools
import json
import os
import re
import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import trueup
from repository import ROOT
from trueup import AnswersError
from trueup.io import limits
from trueup.io.readers import delimited, excel, json_lines
from trueup.io.readers.files import read_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EXTRA = 'needs pip install "trueup[files]"'
pyarrow = pytest.importorskip("pyarrow", reason=EXTRA)
parquet = pytest.importorskip("pyarrow.parquet", reason=EXTRA)
pytest.importorskip("duckdb", reason=EXTRA)

SOURCE = Path(trueup.__file__).parent
HEADER = "question,worker,answer\n"
ROWS = "a,u,1\na,v,2\nb,u,3\nb,v,4\nb,w,5\n"


# -- the source ------------------------------------------------------------------------------------

# Modules that run what they read, start programs or talk to others.
FORBIDDEN_IMPORTS = {
    "pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "yaml",
    "subprocess", "socket", "socketserver", "http", "urllib.request", "ftplib", "smtplib", "ssl",
    "asyncio", "xmlrpc", "webbrowser", "code", "pty", "ctypes", "multiprocessing.connection",
}  # fmt: skip
FORBIDDEN_CALLS = {
    "eval", "exec", "compile", "__import__", "os.system", "os.popen", "os.execv", "os.execvp",
    "os.spawnv", "os.fork", "np.load", "numpy.load", "np.save", "input",
}  # fmt: skip
# Where one of them is there all the same: file, what, and why it is harmless.
ALLOWED = {
    ("cli/exit_codes.py", "exec"): "of an empty text, so that Python forgets an interrupt",
    ("core/malloc.py", "ctypes"): "three settings of the C library that is loaded anyway",
    ("engines/disk/checkpoint.py", "np.load"): "allow_pickle=False; a file of the working folder",
    ("engines/spark/blocks.py", "np.load"): "allow_pickle=False; bytes that our own tasks made",
}


@cache
def sources() -> list[tuple[str, ast.Module]]:
    return [
        (path.relative_to(SOURCE).as_posix(), ast.parse(path.read_text("utf-8")))
        for path in sorted(SOURCE.rglob("*.py"))
    ]


def dotted(node: ast.expr) -> str:
    """Return a name such as `np.load`."""
    if isinstance(node, ast.Attribute):
        inner = dotted(node.value)
        return f"{inner}.{node.attr}" if inner else ""
    return node.id if isinstance(node, ast.Name) else ""


def offences(tree: ast.Module) -> Iterator[str]:
    """Name what in a file runs code, starts programs or opens connections."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in FORBIDDEN_IMPORTS)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
            yield from names & FORBIDDEN_IMPORTS
        elif isinstance(node, ast.Call):
            name = dotted(node.func)
            if name in FORBIDDEN_CALLS:
                yield name
            if name.rpartition(".")[2] in ("import_module", "need") and node.args:
                wanted = node.args[0]
                if isinstance(wanted, ast.Constant) and wanted.value in FORBIDDEN_IMPORTS:
                    yield str(wanted.value)
            for keyword in node.keywords:
                yes = not (isinstance(keyword.value, ast.Constant) and keyword.value.value is False)
                if keyword.arg in ("shell", "allow_pickle") and yes:
                    yield f"{keyword.arg}=True"


def test_the_source_runs_nothing_that_it_reads() -> None:
    found = {(name, what) for name, tree in sources() for what in offences(tree)}
    assert found - set(ALLOWED) == set()


def test_arrays_are_loaded_without_pickle() -> None:
    for name, tree in sources():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and dotted(node.func).endswith(("np.load", "np.savez")):
                safe = [
                    keyword.arg == "allow_pickle" and keyword.value.value is False
                    for keyword in node.keywords
                    if isinstance(keyword.value, ast.Constant)
                ]
                assert any(safe) or "savez" in dotted(node.func), name


def test_the_search_finds_what_it_looks_for() -> None:
    text = (
        "import pickle\nfrom urllib import request\neval(x)\nos.system(y)\nneed('socket', 'a')\n"
        "run(z, shell=True)\nnp.load(f, allow_pickle=True)\nnp.load(f, allow_pickle=False)\n"
        "ast.literal_eval(x)\nre.compile(x)\n"
    )
    assert list(offences(ast.parse(text))).count("np.load") == 2
    assert set(offences(ast.parse(text))) == {
        "pickle",
        "urllib.request",
        "eval",
        "os.system",
        "socket",
        "shell=True",
        "np.load",
        "allow_pickle=True",
    }


# -- no network ------------------------------------------------------------------------------------

NO_NETWORK = """
import socket, sys

class Forbidden(socket.socket):
    def __init__(self, *arguments, **options):
        raise AssertionError("a socket was opened")

socket.socket = Forbidden
socket.create_connection = socket.getaddrinfo = Forbidden
import trueup
print(trueup.estimate([[1., 2., 4.], [2., 4., 5.], [1., 3., 3.]]))
est = trueup.estimate("answers.csv")
est.questions
est.save("s.trueup")
trueup.load("s.trueup")
trueup.compare("answers.csv", ["mean", "crh"])
est.report("r.html")
from trueup.cli import main
main(["doctor", "answers.csv"])
"""


def test_no_socket_is_opened(tmp_path: Path) -> None:
    """By an import, an estimate, a file of answers or a state, a report, or a command."""
    for needed in ("cyclopts", "vl_convert"):
        pytest.importorskip(needed, reason='needs pip install "trueup[cli]"')
    (tmp_path / "answers.csv").write_text(HEADER + ROWS, "utf-8")
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", NO_NETWORK],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(SOURCE.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "5 answers" in done.stdout  # the last of them


# -- files that ask for too much -------------------------------------------------------------------


def refusal(path: Path) -> str:
    """Return the one line that refuses a file."""
    with pytest.raises(AnswersError) as caught:
        read_file(path)
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 700
    return text


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> int:
    """Let the machine have a megabyte."""
    monkeypatch.setattr(limits, "memory", lambda: 1_000_000)
    monkeypatch.setattr(delimited, "memory", limits.memory)
    return 1_000_000


def varint(number: int) -> bytes:
    """Write a number as Parquet's footer has it."""
    number, written = 2 * number, b""
    while number > 127:
        written += bytes([number & 127 | 128])
        number >>= 7
    return written + bytes([number])


def long_table(n: int) -> Any:
    return pyarrow.table(
        {
            "question": [f"q{i // 3}" for i in range(n)],
            "worker": [f"w{i % 3}" for i in range(n)],
            "answer": np.arange(n, dtype=np.float64),
        }
    )


def test_a_parquet_file_that_says_it_has_a_trillion_rows(tmp_path: Path) -> None:
    path, n = tmp_path / "bomb.parquet", 12_345
    parquet.write_table(long_table(n), path)
    content = path.read_bytes()
    size = int.from_bytes(content[-8:-4], "little")
    footer = content[-8 - size : -8]
    # 0x16 begins a 64-bit number: of rows of the file, of its one group, and of values of a column.
    assert footer.count(b"\x16" + varint(n)) >= 2
    footer = footer.replace(b"\x16" + varint(n), b"\x16" + varint(10**12))
    path.write_bytes(content[: -8 - size] + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    assert "says that it has 1,000,000,000,000 rows, which do not fit into memory" in refusal(path)


def test_rows_are_counted_before_they_are_read(tmp_path: Path, little_memory: int) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(long_table(little_memory // 24), path)
    assert read_file(path).n_rows == little_memory // 24
    parquet.write_table(long_table(little_memory // 24 + 1), path)
    assert "do not fit into memory" in refusal(path)


@pytest.mark.parametrize("schema", [True, False])
def test_a_long_text_in_every_row_is_not_copied(tmp_path: Path, schema: bool) -> None:
    """A file of some hundred kilobytes that would be twenty gigabytes of text."""
    path, n = tmp_path / "bomb.parquet", 20_000
    answers = pyarrow.DictionaryArray.from_arrays(
        pyarrow.array(np.zeros(n, dtype=np.int32)), pyarrow.array(["1" * 1_000_000])
    )
    table = long_table(n).set_column(2, "answer", answers)
    parquet.write_table(table, path, store_schema=schema)
    assert path.stat().st_size < 1_000_000
    assert "20000 of 20000 values are infinite" in refusal(path)


def test_text_in_dictionaries_is_read_as_numbers_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    columns = {
        "question": ["a", "a", "b", "b", "c"],
        "worker": ["u", "v", "u", "v", "u"],
        "answer": pyarrow.array(["1.5", " 2 ", None, "1.5", "NA"]).dictionary_encode(),
    }
    parquet.write_table(pyarrow.table(columns), path, row_group_size=2)
    assert np.allclose(read_file(path).answer, [1.5, 2.0, 1.5])
    columns["answer"] = pyarrow.array(["1.5", "two", None, "1.5", "two"]).dictionary_encode()
    parquet.write_table(pyarrow.table(columns), path)
    assert '2 of 5 values are not numbers, first at rows 1 ("two"), 4 ("two")' in refusal(path)


@pytest.mark.parametrize(
    ("packed", "end", "length"),
    [
        (False, "", 3_000_000),
        (False, "", 40_000_000),
        (False, "\n", 40_000_000),
        (False, "\nb,u,3\n", 3_000_000),
        (True, "", 40_000_000),
        (True, "\n", 3_000_000),
        (True, "\nb,u,3\n", 40_000_000),
    ],
)
def test_a_very_long_line_is_refused_wherever_it_is(
    tmp_path: Path, packed: bool, end: str, length: int
) -> None:
    """DuckDB by itself drops a last line of more than 32 MB, without a word."""
    content = (HEADER + ROWS + "b," + "x" * length + ",3" + end).encode()
    path = tmp_path / ("a.csv.gz" if packed else "a.csv")
    path.write_bytes(gzip.compress(content, 1) if packed else content)
    assert "is too long. Is a line end or a quote missing?" in refusal(path)


def test_a_line_that_never_ends_is_not_looked_for_its_end(tmp_path: Path) -> None:
    """A sparse file of 200 GB without a line end: the limit is met at once."""
    path = tmp_path / "a.csv"
    with path.open("wb") as file:
        file.write((HEADER + ROWS * 20_000).encode())
        file.truncate(200_000_000_000)
    text = refusal(path)
    assert "too long" in text or "too much for memory" in text


def test_long_lines_are_refused_on_disk_too(tmp_path: Path) -> None:
    from trueup import disk

    for name in ("a.csv", "a.csv.gz"):
        content = (HEADER + ROWS + "b," + "x" * 40_000_000 + ",3").encode()
        (tmp_path / name).write_bytes(gzip.compress(content, 1) if "gz" in name else content)
        with pytest.raises(AnswersError, match="a line is too long"):
            disk.estimate(tmp_path / name, tmp_path / "out.parquet")
        assert not (tmp_path / "out.parquet").exists()


def test_a_header_that_never_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "LONGEST_HEADER", 1000)
    path = tmp_path / "a.csv"
    path.write_text("x" * 2000, "utf-8")
    assert "its header does not end" in refusal(path)


def test_an_archive_unpacks_to_no_more_than_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress((HEADER + ROWS * 2_000_000).encode(), 1))
    most = 4 * delimited.LONGEST_LINE
    assert path.stat().st_size < most // 10
    monkeypatch.setattr(delimited, "memory", lambda: most)
    assert re.search(r"unpacks to [\d,]+ bytes or more, too much for memory", refusal(path))


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.json", "a.jsonl.gz", "a.json.gz"])
def test_text_larger_than_memory_is_refused(name: str, tmp_path: Path) -> None:
    row = json.dumps({"question": "q", "worker": "w", "answer": 1})
    content = {
        ".csv": HEADER + ROWS * 50_000,
        ".jsonl": f"{row}\n" * 30_000,
        ".json": "[" + ", ".join([row] * 30_000) + "]",
    }[Path(name.removesuffix(".gz")).suffix].encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert "too much for memory. Write it as Parquet or CSV" in refusal(path)


@pytest.mark.usefixtures("little_memory")
def test_a_pipe_that_never_ends_does_not_fill_the_disk() -> None:
    assert "too much for memory" in refusal(Path("/dev/zero"))


def test_a_long_line_of_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "LONGEST_LINE", 1000)
    path = tmp_path / "a.jsonl"
    row = '{"question": "q", "worker": "w", "answer": 1}\n'
    for long in ('{"question": "' + "x" * 2000, row.replace("q", "x" * 2000), "\r" * 2000):
        path.write_text(row + long, "utf-8", newline="")
        assert "line 2 is too long" in refusal(path)


@pytest.mark.parametrize("depth", [2_000, 200_000])
def test_deep_nesting_of_json(tmp_path: Path, depth: int) -> None:
    deep = "[" * depth + "]" * depth
    (tmp_path / "a.json").write_text(deep, "utf-8")
    assert "too deeply nested" in refusal(tmp_path / "a.json")
    line = f'{{"question": "q", "worker": "w", "answer": {deep}}}\n'
    (tmp_path / "a.jsonl").write_text(line, "utf-8")
    assert "too deeply nested" in refusal(tmp_path / "a.jsonl")


# -- workbooks -------------------------------------------------------------------------------------

SHEET = "xl/worksheets/sheet1.xml"


@pytest.fixture
def book(tmp_path: Path) -> Callable[[Callable[[bytes], bytes]], Path]:
    """Return what makes a workbook whose sheet was changed."""
    openpyxl = pytest.importorskip("openpyxl", reason='needs pip install "trueup[excel]"')
    whole = openpyxl.Workbook()
    for row in (("question", "worker", "answer"), ("a", "u", 1), ("a", "v", 2)):
        whole.active.append(row)
    whole.save(tmp_path / "whole.xlsx")

    def make(change: Callable[[bytes], bytes]) -> Path:
        path = tmp_path / "changed.xlsx"
        with (
            zipfile.ZipFile(tmp_path / "whole.xlsx") as old,
            zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new,
        ):
            for name in old.namelist():
                content = old.read(name)
                new.writestr(name, change(content) if name == SHEET else content)
        return path

    return make


def test_a_workbook_that_unpacks_to_too_much(
    book: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(excel, "MOST_UNPACKED", 1_000_000)
    path = book(lambda sheet: sheet.replace(b"<sheetData>", b"<sheetData>" + b" " * 2_000_000))
    assert path.stat().st_size < 20_000
    assert "more than the 1,000,000 that are read" in refusal(path)


def test_a_row_far_below_the_last(book: Callable[..., Path]) -> None:
    def change(sheet: bytes) -> bytes:
        return re.sub(rb'r="([A-C]?)3"', rb'r="\g<1>3000000000"', sheet)

    assert "has rows below row 1,048,576, the last of a sheet" in refusal(book(change))


@pytest.mark.parametrize("size", [b"A1", b"A1:C2", b"A1:XFD1048576"])
def test_the_size_that_a_sheet_claims_does_not_count(
    book: Callable[..., Path], size: bytes
) -> None:
    """Rows outside of it are answers all the same, and a large one costs nothing."""
    path = book(
        lambda sheet: re.sub(rb'<dimension ref="[^"]*"', b'<dimension ref="' + size + b'"', sheet)
    )
    assert read_file(path).answer.tolist() == [1.0, 2.0]


def test_a_billion_laughs(book: Callable[..., Path]) -> None:
    names = "abcdefghij"
    inner = "".join(
        f'<!ENTITY {name} "{f"&{before};" * 10}">' for before, name in itertools.pairwise(names)
    )
    laughs = f'<!DOCTYPE l [<!ENTITY a "{"ha" * 50}">{inner}]>'.encode()
    cell = b'<row r="1"><c t="inlineStr"><is><t>&j;</t></is></c></row>'

    def change(sheet: bytes) -> bytes:
        return laughs + sheet.replace(b"<sheetData>", b"<sheetData>" + cell)

    assert "cannot be read as a workbook of Excel" in refusal(book(change))


# -- words -----------------------------------------------------------------------------------------


def test_the_page_names_the_limits_as_they_are() -> None:
    page = (ROOT / "SECURITY.md").read_text("utf-8")
    for number in (
        delimited.LONGEST_LINE,
        delimited.LONGEST_HEADER,
        json_lines.LONGEST_LINE,
        excel.MOST_UNPACKED,
        excel.LAST_ROW,
    ):
        assert f"{number:,}" in page, f"{number:,}"
    assert all(len(line) <= 120 for line in page.splitlines() if not line.startswith("|"))
