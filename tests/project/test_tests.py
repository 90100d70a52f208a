"""The tests themselves: each of them checks something, and the list of mutations is about the code as it is."""

from __future__ import annotations

import ast
import importlib.util
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from conftest import LONGEST, unit_of_work
from repository import ROOT, TESTS

if TYPE_CHECKING:
    from pathlib import Path

#: Functions of the library that raise where something does not hold.
CHECKS = {"check_algorithm", "check_shrink_rule", "fail", "raises", "warns", "deprecated_call"}
MUTATIONS = ROOT / "tools" / "mutations.py"
FEWEST = 40


@cache
def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """All functions of a file, those inside classes and functions too."""
    every = ast.walk(ast.parse(path.read_text("utf-8")))
    return [node for node in every if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def called(node: ast.AST) -> set[str]:
    """Return the names of what is called, or handed on to be called."""
    names = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            names.add(each.id)
        elif isinstance(each, ast.Attribute):
            names.add(each.attr)
    return names


def asserts(node: ast.AST) -> bool:
    """Tell whether something is checked right here."""
    return any(isinstance(each, ast.Assert) for each in ast.walk(node)) or any(
        name in CHECKS or name.startswith("assert_") for name in called(node)
    )


@cache
def helpers() -> frozenset[str]:
    """Return the names of functions in the folder of tests that check something, also by calling one that does."""
    every = [
        each
        for path in sorted(TESTS.rglob("*.py"))
        for each in functions(path)
        if not each.name.startswith("test_")
    ]
    found = {each.name for each in every if asserts(each)}
    calls = [(each.name, called(each)) for each in every]
    while True:
        more = {name for name, names in calls if names & found} - found
        if not more:
            return frozenset(found)
        found |= more


def idle(path: Path) -> list[str]:
    """Return the tests of a file that check nothing."""
    tests = (each for each in functions(path) if each.name.startswith("test_"))
    return [each.name for each in tests if not asserts(each) and not called(each) & helpers()]


@pytest.mark.parametrize("path", sorted(TESTS.rglob("test_*.py")), ids=lambda path: path.stem)
def test_every_test_checks_something(path: Path) -> None:
    assert idle(path) == []


def test_a_test_that_checks_nothing_is_found(tmp_path: Path) -> None:
    path = tmp_path / "test_x.py"
    path.write_text(
        "def test_a():\n    1 + 1\n\ndef test_b():\n    assert 1\n\n"
        "def test_c():\n    with pytest.raises(ValueError):\n        f()\n"
    )
    assert idle(path) == ["test_a"]


@cache
def mutation_tool() -> Any:
    spec = importlib.util.spec_from_file_location("trueup_mutations", MUTATIONS)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tool() -> Any:
    if not MUTATIONS.exists():
        pytest.skip("needs the tools folder")
    return mutation_tool()


def test_mutations_are_about_the_code_as_it_is(tool: Any) -> None:
    every = tool.mutations()
    lost = [f"{each}: there {each.found()} times" for each in every if not each.is_current()]
    assert lost == [], "mend tools/mutations.toml"
    assert len(every) >= FEWEST
    assert len({(each.file, each.old, each.new) for each in every}) == len(every)


def test_mutations_name_tests_that_are_there(tool: Any) -> None:
    for each in tool.mutations():
        assert each.why
        assert each.tests
        for test in each.tests:
            name, _, part = test.partition("::")
            path = ROOT / name
            assert path.exists(), f"{each}: {name}"
            found = {one.name for one in functions(path)} if part else set()
            assert not part or part.partition("[")[0] in found, f"{each}: {test}"


def test_a_mutation_whose_text_is_gone_is_told(tool: Any, tmp_path: Path) -> None:
    source = tmp_path / tool.SOURCE
    source.mkdir(parents=True)
    (source / "x.py").write_text("a = 1\nb = 1\n", "utf-8")
    gone, twice, once = (
        tool.Mutation("x.py", old, "c", "why", ("tests/test_x.py",)) for old in ("z", "1", "a = 1")
    )
    assert [each.is_current(tmp_path) for each in (gone, twice, once)] == [False, False, True]
    assert (
        tool.who_noticed("1 failed\nFAILED tests/a.py::test_b - assert 0\n") == "tests/a.py::test_b"
    )


def test_tests_of_a_file_and_tests_on_spark_run_in_one_process() -> None:
    assert unit_of_work("tests/test_a.py::test_b[x]") == "tests/test_a.py"
    on_spark = (
        "tests/engines/spark/test_spark_engine.py::test_a[1]",
        "tests/test_b.py::test_c[x-spark]",
    )
    assert {unit_of_work(each) for each in on_spark} == {LONGEST[0]}
    assert all((ROOT / each).exists() for each in LONGEST[1:])
