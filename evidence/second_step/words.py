"""Tables and sentences out of cells, the worst first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from evidence.second_step.rules import OURS
from trueup.report.page import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from trueup.study.harness import StudyCell

#: Rows of the worst cells that are shown; all are in the files.
SHOWN = 25
Key = tuple[str, int, int, str]


def mean(values: Iterable[float]) -> float:
    """Return the mean of what is a number, NaN if nothing is."""
    finite = [value for value in values if np.isfinite(value)]
    return float(np.mean(finite)) if finite else float("nan")


def errors_above(cell: StudyCell, limit: float = 1.0) -> float:
    """Return by how many standard errors the ratio of a cell is above a limit."""
    if not cell.ratio_se > 0:
        return 0.0 if cell.ratio <= limit else float("inf")
    return (cell.ratio - limit) / cell.ratio_se


def beyond(cells: Iterable[StudyCell], limit: float = 1.0, errors: float = 2.0) -> list[StudyCell]:
    """Return the cells that are above a limit beyond chance, the worst first."""
    found = [cell for cell in cells if errors_above(cell, limit) > errors]
    return sorted(found, key=lambda cell: -cell.ratio)


def by(cells: Iterable[StudyCell], *names: str) -> dict[tuple[Any, ...], list[StudyCell]]:
    """Group cells by some of their columns, in the order in which they come."""

    def key(cell: StudyCell) -> tuple[Any, ...]:
        return tuple(getattr(cell, name) for name in names)

    found: dict[tuple[Any, ...], list[StudyCell]] = {}
    for cell in cells:
        found.setdefault(key(cell), []).append(cell)
    return found


def averages(
    cells: Iterable[StudyCell], *names: str, value: str = "ratio", of: Callable[..., float] = mean
) -> list[dict[str, Any]]:
    """Average a column over the cells that agree in some others, as rows for a chart."""
    return [
        dict(zip(names, key, strict=True)) | {value: of([getattr(cell, value) for cell in members])}
        for key, members in by(cells, *names).items()
    ]


def median(values: Iterable[float]) -> float:
    """Return the median."""
    return float(np.median(list(values)))


def worst_cells(cells: Sequence[StudyCell], steps: Sequence[str], title: str = "") -> Table:
    """List the cells in which ours does worst, with the other second steps beside it."""
    found: dict[Key, dict[str, StudyCell]] = {}
    for cell in cells:
        found.setdefault((cell.source, cell.n, cell.m, cell.method), {})[cell.step] = cell
    mine = sorted(
        (each for each in found.values() if OURS in each), key=lambda each: -each[OURS].ratio
    )
    others = [step for step in steps if step != OURS]
    rows = []
    for each in mine[:SHOWN]:
        ours = each[OURS]
        rows.append(
            [
                ours.source, ours.method, ours.n, ours.m, round(ours.ratio, 3), round(ours.ratio_se, 3),
                round(errors_above(ours), 1), *(round(each[step].ratio, 3) for step in others),
                round(ours.oracle, 3), round(ours.oracle_b, 3), round(ours.coverage, 3),
            ]
        )  # fmt: skip
    heads = ["data", "first step", "n", "m", OURS, "±", "errors above 1"]
    heads += [*others, "best linear", "its B", "coverage"]
    return Table(title or f"The {len(rows)} worst of {len(mine)} cells for ours", heads, rows)


def several(values: Sequence[str], most: int = 4) -> str:
    """List things in a sentence, the first few of them."""
    if not values:
        return "none"
    rest = len(values) - most
    return "; ".join(values[:most]) + (f"; and {rest} more" if rest > 0 else "")


def named(cell: StudyCell) -> str:
    """Name a cell and its ratio."""
    return (
        f"{cell.source} {cell.method} n={cell.n} m={cell.m}: {cell.ratio:.2f} ± {cell.ratio_se:.2f}"
    )
