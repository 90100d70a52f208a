"""Parquet files that contradict themselves: every row is read, or one error says why not."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from trueup import TrueupError
from trueup.engines.disk.files import Limits, ParquetFile
from trueup.io.readers import parquet as parquet_reader
from trueup.io.readers.files import read_file

if TYPE_CHECKING:
    from pathlib import Path

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

N_ROWS = 120
#: What damage may do to a process is seen from outside. Memory is limited, so that no damage can fill this machine.
DAMAGE = """
import random, resource, sys
import pyarrow, pyarrow.parquet
from trueup import TrueupError
from trueup.engines.disk.files import Limits, ParquetFile
from trueup.io.readers import parquet
from trueup.io.readers.files import read_file
from pathlib import Path

path, many, n = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
parquet.MANY = many
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, resource.getrlimit(resource.RLIMIT_AS)[1]))
names = ["question", "worker", "answer"]
columns = ([f"q{i // 3}" for i in range(n)], [f"w{i % 7}" for i in range(n)], [0.1 * i for i in range(n)])
table = pyarrow.table(dict(zip(names, columns)))
whole = []
for how in ({}, {"use_dictionary": False, "row_group_size": 50}, {"data_page_version": "2.0"}):
    pyarrow.parquet.write_table(table, path, **how)
    whole.append(path.read_bytes())
read = 0
for seed in range(1000):
    rng = random.Random(seed)
    content = bytearray(rng.choice(whole))
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    for _ in range(rng.randint(1, 3)):
        content[rng.randrange(footer, len(content) - 8)] = rng.randrange(256)
    path.write_bytes(content)
    try:
        assert len(read_file(path).answer) >= n, seed
        file = ParquetFile(path, path.name)
        assert sum(map(len, file.batches(names, Limits("1GB", 1), None))) == n, seed
        read += 1
    except TrueupError:
        pass
assert 0 < read < 1000
"""


@pytest.mark.parametrize("many", [1, 10**6], ids=["large", "small"])
def test_a_damaged_footer_is_read_or_explained(tmp_path: Path, many: int) -> None:
    path = tmp_path / "answers.parquet"
    done = subprocess.run(  # noqa: S603 - our own interpreter and text
        [sys.executable, "-c", DAMAGE, str(path), str(many), str(N_ROWS)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-500:]


@pytest.mark.parametrize("many", [1, 10**6], ids=["large", "small"])
def test_a_wrong_number_of_rows_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    path = tmp_path / "answers.parquet"
    ids = {"question": [f"q{i // 3}" for i in range(N_ROWS)], "worker": ["u", "v"] * (N_ROWS // 2)}
    parquet.write_table(pyarrow.table({**ids, "answer": [0.5] * N_ROWS}), path)
    whole = path.read_bytes()
    monkeypatch.setattr(parquet_reader, "MANY", many)
    # The number stands in the footer: for the file, for its one group of rows and for every column; pages say it, too.
    told = 0
    for place in re.finditer(re.escape(varint(N_ROWS)), whole):
        content = bytearray(whole)
        content[slice(*place.span())] = varint(N_ROWS - 8)
        path.write_bytes(content)
        for read in (in_memory, on_disk):
            try:
                n_rows = read(path)
            except TrueupError as error:
                assert "cannot be read as Parquet" in str(error)  # noqa: PT017 - it need not be raised
                told += 1
            else:
                assert n_rows == N_ROWS, place
    assert told >= 5


def in_memory(path: Path) -> int:
    return len(read_file(path).answer)


def on_disk(path: Path) -> int:
    batches = ParquetFile(path, path.name).batches(
        ["question", "worker", "answer"], Limits("1GB", 1), None
    )
    return sum(map(len, batches))


def varint(number: int) -> bytes:
    """Return a positive number below 8192 as the footer holds it: zigzag, seven bits a byte."""
    doubled = 2 * number
    return bytes([doubled % 128 + 128, doubled // 128])
