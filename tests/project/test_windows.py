"""What only POSIX systems have is not needed: without it everything that can work works."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from commands import environment, need_cli

if TYPE_CHECKING:
    from pathlib import Path

need_cli()

#: Take away what Windows does not have, before anything is imported.
WITHOUT = """
import os, signal, sys
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
for module, names in ((os, ("fork", "geteuid", "getuid", "mkfifo", "pwrite", "chown", "O_NOFOLLOW")),
                      (signal, ("SIGALRM", "setitimer", "ITIMER_REAL"))):
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
from trueup.cli import main
main()
"""


def test_commands_run_without_what_windows_lacks(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    table = pa.table(
        {
            "question": np.repeat(np.arange(30), 4).tolist(),
            "worker": np.tile(np.arange(4), 30).tolist(),
            "answer": rng.normal(size=120).tolist(),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    common = ["--method", "crh", "-o", "out.parquet"]
    for more in (
        ["--engine", "memory", "--save", "s.trueup", "--report", "page.html"],
        ["--engine", "disk", "--work-dir", "work", "--workers", "w.csv"],
    ):
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-c", WITHOUT, "estimate", "a.parquet", *common, *more],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            env=environment(),
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert pq.read_table(tmp_path / "out.parquet").num_rows == 30
