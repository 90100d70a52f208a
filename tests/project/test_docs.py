"""The documentation is true: its code runs and prints what stands there, its numbers are those of today, its links lead
somewhere, and it speaks of everything public.

`make docs-figures` (`python tools/docs_figures.py`) renews what pages say; `tools/docs_blocks.py` tells how they run.
"""

from __future__ import annotations

import importlib
import re
import sys
from typing import TYPE_CHECKING, Any

import pytest

import trueup
from repository import ROOT

if TYPE_CHECKING:
    from pathlib import Path

DOCS = ROOT / "docs"
for needed in ("cyclopts", "duckdb", "altair", "vl_convert", "pandas"):
    pytest.importorskip(needed, reason=f"needs {needed}")


def tool(name: str) -> Any:
    """Import a script of the folder tools."""
    folder = str(ROOT / "tools")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module(name)


blocks, numbers, figures = map(tool, ("docs_blocks", "docs_numbers", "docs_figures"))
PAGES = {page.relative_to(DOCS).as_posix(): page for page in figures.pages()}
TEXTS = {name: page.read_text("utf-8") for name, page in PAGES.items()}
WITH_CODE = [
    name for name, text in TEXTS.items() if re.search(r"^```(python|console)$", text, re.M)
]
RENEW = "run `make docs-figures` and look at what changed"


ON_SPARK = {name for name in WITH_CODE if "import trueup.spark" in TEXTS[name]}


def assert_is_true(name: str) -> None:
    """Run the code of a page: it prints what stands there."""
    printed, _ = blocks.run_page(TEXTS[name], name)
    for each in printed:
        assert each.is_true, f"{each.code}\nprints\n{each.found}\nnot\n{each.wanted}\n{RENEW}"


@pytest.mark.parametrize("name", [name for name in WITH_CODE if name not in ON_SPARK])
def test_the_code_of_a_page_runs_and_prints_what_stands_there(name: str) -> None:
    assert_is_true(name)


@pytest.mark.needs("java")
@pytest.mark.parametrize("name", sorted(ON_SPARK))
def test_the_code_of_a_page_on_spark_runs_and_prints_what_stands_there(name: str) -> None:
    from spark_session import session

    session()  # which other tests of this process share
    assert_is_true(name)


def test_numbers_and_pictures_are_those_of_today() -> None:
    """One test for all of them: they share what is simulated."""
    found = {name: re.findall(figures.PLACE, text) for name, text in TEXTS.items()}
    places = [(page, *place) for page, here in found.items() for place in here]
    assert {name for _, name, _ in places} == set(numbers.NUMBERS), "each is shown somewhere"
    for page, name, kept in places:
        assert kept.strip(), f"{page}: {name} is empty; {RENEW}"
        if name not in numbers.SLOW:
            now = numbers.NUMBERS[name]()
            assert blocks.same(now, kept), f"{page}: {name} is now\n{now}\n{RENEW}"
    for name in figures.DRAW:
        svg = (DOCS / "pictures" / f"{name}.svg").read_text("utf-8")
        assert svg.startswith("<svg")
        assert len(svg) < 200_000
        assert any(f"pictures/{name}.svg)" in text for text in TEXTS.values())
        assert name in figures.SLOW_PICTURES or figures.is_current(name), f"{name}: {RENEW}"


def test_a_picture_can_be_drawn(tmp_path: Path) -> None:
    drawn = figures.draw("spread", tmp_path)
    assert "<!-- drawn from" in drawn.read_text("utf-8")
    assert [each.name for each in tmp_path.iterdir()] == ["spread.svg"]


def test_blocks_are_of_kinds_that_are_looked_after() -> None:
    for name, text in TEXTS.items():
        assert not re.search(r"^[ \t]+```", text, re.M), (
            f"{name}: a block that is indented does not run"
        )
        for block in blocks.blocks(text):
            assert block.kind in {"python", "console", "text", "sh", "toml", "yaml"}, name
            if block.kind == "sh":
                assert all(line.startswith(blocks.SHOWN_ONLY) for line in blocks.lines(block.body))
            waits = block.mark.removeprefix("later: ") if block.mark.startswith("later: ") else None
            assert waits is None or waits in blocks.LATER, f"{name}: {waits} is not in LATER"


def test_pages_are_compared_as_people_would() -> None:
    same = blocks.same
    assert same("error 0.123   x\n", "error 0.124 x")
    assert not same("error 0.12", "error 0.15")
    assert not same("3 workers", "4 workers")
    assert same("3.1 s", "9.7 s", digits=False)
    assert not same("3.1 s", "3.1 ms", digits=False)
    text = "```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n"
    printed, new = blocks.run_page(text)
    assert [each.is_true for each in printed] == [False]
    assert new == text.replace("3\n", "2\n")
    long = "3 rows\nand\nmore\n\nDone: 4\nnow\n"
    assert blocks.excerpt(long, "2 rows\n...\nDone: 5\nnow\n") == "3 rows\n...\nDone: 4\nnow\n"
    assert blocks.excerpt(long, "2 rows\n...\nDone: 5\n") == "3 rows\n...\nDone: 4\nnow\n"
    assert blocks.excerpt(long, "2 rows\n...\n") == "3 rows\n...\n"
    for absent in ("Written: x\n...\n", "more\n...\n", "2 rows\n...\nWritten: x\n"):
        assert blocks.excerpt(long, absent) == long
    for name in blocks.LATER:
        later = f"<!-- later: {name} -->\n```python\nraise ValueError\n```\n"
        assert blocks.run_page(later) == ([], later)


def test_every_page_is_in_the_menu_and_every_link_leads_somewhere() -> None:
    menu = re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text("utf-8"))
    assert len(menu) == len(set(menu))
    assert set(menu) == {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    for name, text in TEXTS.items():
        outside = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
        for target in re.findall(r"\]\(([^)#\s]+)", outside):
            assert not target.startswith("/"), f"{name}: {target}"
            if "://" not in target:
                assert (PAGES[name].parent / target).exists(), f"{name}: {target}"


def test_prose_is_not_too_wide() -> None:
    for name, text in TEXTS.items():
        kept = re.sub(r"^```(text|console)\n.*?^```$", "", text, flags=re.M | re.S)
        wide = [line for line in kept.splitlines() if len(line) > 120 and not line.startswith("|")]
        assert not wide, f"{name}: {wide}"


PUBLIC = ("", "algorithms", "shrinkage", "variance", "theory", "study", "datasets")


@pytest.mark.parametrize("module", PUBLIC)
def test_the_reference_has_every_public_name(module: str) -> None:
    home = importlib.import_module(f"trueup.{module}" if module else "trueup")
    parts = {"__version__", *PUBLIC}  # modules have pages of their own
    wanted = {f"{home.__name__}.{name}" for name in home.__all__ if module or name not in parts}
    page = TEXTS[f"reference/{module or 'trueup'}.md"]
    named = set(re.findall(r"^(?:::: |## `)(trueup[\w.]+)`?$", page, re.M))
    # A function may have the name of its module: `trueup.variance.plugin.plugin` is `trueup.variance.plugin`.
    listed = {each if each in wanted else re.sub(r"\.(\w+)\.\1$", r".\1", each) for each in named}
    assert listed == wanted


def test_every_first_and_second_step_has_a_page() -> None:
    ours = [name for name in numbers.METHODS if name != "auto"]
    assert set(ours) <= set(trueup.algorithms.names())
    first = {f"methods/{name.replace('_', '-')}.md" for name in ours}
    second = {f"methods/shrink/{name}.md" for name in trueup.shrinkage.names()}
    pages = set(TEXTS)
    assert first | second | {"methods/auto.md"} <= pages
    for name in pages:
        if name.startswith("methods/") and not name.endswith("index.md"):
            for title in ("Formula", "When to use it", "When not", "Reference"):
                assert f"\n## {title}\n" in TEXTS[name], f"{name}: {title}"


def test_nothing_is_loaded_from_the_network() -> None:
    sources = [*DOCS.rglob("*.css"), *DOCS.rglob("*.js"), *DOCS.rglob("*.svg"), ROOT / "mkdocs.yml"]
    for path in sources:
        for address in re.findall(r"\w+://[^\s\"')]+", path.read_text("utf-8")):
            assert address.startswith("http://www.w3.org/"), f"{path.name}: {address}"
