"""Tables and sentences about cells, worst first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from evidence.second_step.rules import OURS
from trueup.report.page import PageTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from trueup.study.harness import StudyCell

#: Number of worst cells in a table; all cells are in the files.
SHOWN = 25
Key = tuple[str, int, int, str]


def mean(values: Iterable[float]) -> float:
    """Return the mean of the finite values, NaN if there are none."""
    finite = [value for value in values if np.isfinite(value)]
    return float(np.mean(finite)) if finite else float("nan")


def errors_above(cell: StudyCell, limit: float = 1.0) -> float:
    """Return the number of standard errors by which the ratio of a cell is above a limit."""
    if not cell.ratio_se > 0:
        return 0.0 if cell.ratio <= limit else float("inf")
    return (cell.ratio - limit) / cell.ratio_se


def clearly_above(
    cells: Iterable[StudyCell], limit: float = 1.0, errors: float = 2.0
) -> list[StudyCell]:
    """Return the cells that are above a limit by more than some standard errors, worst first."""
    above = [cell for cell in cells if errors_above(cell, limit) > errors]
    return sorted(above, key=lambda cell: -cell.ratio)


def group_by(cells: Iterable[StudyCell], *names: str) -> dict[tuple[Any, ...], list[StudyCell]]:
    """Group cells by some of their columns, in order of first appearance."""

    def key(cell: StudyCell) -> tuple[Any, ...]:
        return tuple(getattr(cell, name) for name in names)

    groups: dict[tuple[Any, ...], list[StudyCell]] = {}
    for cell in cells:
        groups.setdefault(key(cell), []).append(cell)
    return groups


def averages(
    cells: Iterable[StudyCell], *names: str, value: str = "ratio", of: Callable[..., float] = mean
) -> list[dict[str, Any]]:
    """Average a column over groups of cells; return rows for a chart."""
    return [
        dict(zip(names, key, strict=True)) | {value: of([getattr(cell, value) for cell in members])}
        for key, members in group_by(cells, *names).items()
    ]


def median(values: Iterable[float]) -> float:
    """Return the median."""
    return float(np.median(list(values)))


def worst_cells(cells: Sequence[StudyCell], steps: Sequence[str], title: str = "") -> PageTable:
    """Return a table of the cells in which ours does worst, with the other second steps."""
    groups: dict[Key, dict[str, StudyCell]] = {}
    for cell in cells:
        groups.setdefault((cell.source, cell.n, cell.m, cell.method), {})[cell.step] = cell
    worst = sorted(
        (by_step for by_step in groups.values() if OURS in by_step),
        key=lambda by_step: -by_step[OURS].ratio,
    )
    others = [step for step in steps if step != OURS]
    rows = []
    for by_step in worst[:SHOWN]:
        ours = by_step[OURS]
        rows.append(
            [
                ours.source, ours.method, ours.n, ours.m, round(ours.ratio, 3), round(ours.ratio_se, 3),
                round(errors_above(ours), 1), *(round(by_step[step].ratio, 3) for step in others),
                round(ours.oracle, 3), round(ours.oracle_b, 3), round(ours.coverage, 3),
            ]
        )  # fmt: skip
    heads = ["data", "first step", "n", "m", OURS, "±", "errors above 1"]
    heads += [*others, "best linear", "its B", "coverage"]
    return PageTable(title or f"The {len(rows)} worst of {len(worst)} cells for ours", heads, rows)


def first_few(values: Sequence[str], most: int = 4) -> str:
    """Join the first few texts for a sentence."""
    if not values:
        return "none"
    rest = len(values) - most
    return "; ".join(values[:most]) + (f"; and {rest} more" if rest > 0 else "")


def cell_label(cell: StudyCell) -> str:
    """Return a text with a cell and its ratio."""
    return (
        f"{cell.source} {cell.method} n={cell.n} m={cell.m}: {cell.ratio:.2f} ± {cell.ratio_se:.2f}"
    )
