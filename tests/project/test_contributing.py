"""CONTRIBUTING.md is true: its code runs, and what it points at is there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import trueup
from repository import ROOT

PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)


def test_the_examples_run_one_after_another(tmp_path: Path) -> None:
    """In a process of their own, as they register a method."""
    assert len(BLOCKS) == 4
    # An import from the future comes first in a file, and there is one in the first block.
    script = tmp_path / "example.py"
    script.write_text("\n".join(BLOCKS), "utf-8")
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-W", "error", str(script)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(trueup.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"\[[-\d. ]+\]\n", done.stdout)


def test_the_example_is_really_tried() -> None:
    """With a wrong formula the examples fail: they compare with numbers of their own."""
    wrong = "\n".join(BLOCKS[:2]).replace("mean**-self.power", "mean**self.power")
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", wrong],
        env={**os.environ, "PYTHONPATH": str(Path(trueup.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "AssertionError" in done.stderr


def test_what_it_points_at_is_there() -> None:
    """Files, folders, targets, and every part of the package on the map."""
    package = ROOT / "src/trueup"
    table = PAGE.partition("| in `src/trueup` | what |")[2].partition("\n\n")[0]
    mapped = {
        name
        for row in table.splitlines()
        for name in re.findall(r"`([\w.]+/?)`", row.split("|")[1:2][0] if "|" in row else "")
    }
    assert all((package / name).exists() for name in mapped)
    parts = {path.name + ("/" if path.is_dir() else "") for path in package.iterdir()}
    parts = {part for part in parts if part.endswith((".py", "/")) and not part.startswith("__")}
    assert parts - mapped == set()
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in re.findall(r"make ([a-z][\w-]*)`", PAGE):
        assert f"\n{target}:" in makefile, target
    for path in re.findall(r"`((?:docs|tests|study|engines|shrinkage)/[\w/]+\.(?:py|md))`", PAGE):
        assert (ROOT / path).exists() or (package / path).exists() or "NAME" in path, path


def test_it_is_one_page() -> None:
    assert len(PAGE.split()) < 2000
    prose = re.sub(r"^```.*?^```$", "", PAGE, flags=re.M | re.S)
    assert all(len(line) <= 120 for line in prose.splitlines() if not line.startswith("|"))
