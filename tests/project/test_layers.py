"""Imports point down: the rooms of the package are in layers, and nothing reaches back up."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

import trueup

HOME = Path(trueup.__file__).parent
#: The lowest first; units of one line are in one layer.
LAYERS = (
    ("__init__", "errors", "core"),
    ("io",),
    ("answers",),
    ("engines",),
    ("theory", "algorithms", "variance", "shrinkage"),
    ("request", "request_text"),
    ("pipeline",),
    ("findings",),
    ("result",),
    ("_estimate", "_update", "_compare", "_diagnose", "_rank", "ranking"),
    ("datasets", "report"),
    ("study",),
    ("disk", "spark"),
    ("cli", "__main__"),
)
LEVEL = {unit: level for level, units in enumerate(LAYERS) for unit in units}
#: Methods of `Estimate` and `Ranking` that are there for convenience.
EXCEPTIONS = {
    ("result.estimate", "report.write"),
    ("result.estimate", "report.single_chart"),
    ("result.estimate", "report.card"),
    ("ranking.ranking", "report.ranking_page"),
    ("ranking.ranking", "report.ranking_card"),
}


def modules() -> dict[str, Path]:
    """Return all modules of the package by name, without the name of the package."""
    names = {}
    for path in HOME.rglob("*.py"):
        parts = path.relative_to(HOME).with_suffix("").parts
        names[".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)] = path
    return names


def imports(path: Path, known: set[str]) -> set[str]:
    """Return the modules of ours that a file imports, lazily or not; imports for types alone do not count."""
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                for part in child.orelse:
                    visit(part)
                continue
            if isinstance(child, ast.ImportFrom) and (child.module or "").startswith("trueup"):
                home = (child.module or "").removeprefix("trueup").removeprefix(".")
                for name in child.names:
                    full = f"{home}.{name.name}".lstrip(".")
                    found.add(full if full in known else home or "__init__")
            elif isinstance(child, ast.Import):
                found.update(
                    name.name.removeprefix("trueup.")
                    for name in child.names
                    if name.name.startswith("trueup.")
                )
            visit(child)

    visit(ast.parse(path.read_text("utf-8")))
    return found


@cache
def edges() -> list[tuple[str, str]]:
    """Return who imports whom."""
    paths = modules()
    return [
        (module, other)
        for module, path in sorted(paths.items())
        for other in sorted(imports(path, set(paths)))
        if other != module
    ]


def level(module: str) -> int:
    return LEVEL[module.partition(".")[0]]


def test_every_unit_has_a_layer() -> None:
    assert {module.partition(".")[0] for module in modules()} == set(LEVEL)


def test_imports_point_down() -> None:
    up = {(module, other) for module, other in edges() if level(other) > level(module)}
    assert up - EXCEPTIONS == set()
    assert up == EXCEPTIONS, "an exception that is no longer needed"


@pytest.mark.parametrize("units", LAYERS, ids=lambda units: units[0])
def test_units_of_a_layer_do_not_import_each_other_in_a_circle(units: tuple[str, ...]) -> None:
    below: dict[str, set[str]] = {unit: set() for unit in units}
    for module, other in edges():
        one, two = module.partition(".")[0], other.partition(".")[0]
        if one in below and two in below and one != two and module != "__init__":
            below[one].add(two)
    while True:
        free = [unit for unit, others in below.items() if not others & set(below)]
        if not free:
            break
        for unit in free:
            del below[unit]
    assert below == {}


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    below: dict[str, set[str]] = {module: set() for module in modules()}
    for module, other in edges():
        # The package itself loads what is asked for, when it is asked for.
        if other in below and module != "__init__" and (module, other) not in EXCEPTIONS:
            below[module].add(other)
    while True:
        free = [module for module, others in below.items() if not others & set(below)]
        if not free:
            break
        for module in free:
            del below[module]
    assert sorted(below) == []
