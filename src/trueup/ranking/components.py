"""Where the variance of scores comes from, and what other numbers of items, judges and runs would bring.

A score of system s on item p by judge i in run r is

    y_psir = mu + item_p + system_s + (item x system)_ps + judge_i + (judge x system)_is + (judge x item)_pi
             + rest_psi + run_psir

In the difference of two systems items, judges and judges x items cancel, and what is left is a crossed table, items by
judges, with components `2 v_is`, `2 v_js` and `2 v_rest`. They are estimated from the differences of every pair of
systems by Henderson's method 1, which needs sums alone and takes unbalanced tables: the sums of squares of raw means by
judge, by item, of everything and of single entries have expectations that are linear in the components. The components
of items, judges and judges x items follow likewise from the means over systems. Estimates below zero become zero.

For P items, J judges who count alike and R runs the variance of a difference is

    2 v_is/P + 2 v_js/J + 2 v_rest/(P J) + 2 v_run/(P J R).

Reference: Searle, Casella, McCulloch, "Variance components" (1992), chapter 5.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from trueup.ranking.pair import numbered, squares

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

    from trueup.core.arrays import Floats, Ints


@dataclass(frozen=True)
class Components:
    """Variances of one score, by where they come from; NaN where the scores do not tell.

    Attributes
    ----------
    items, items_by_systems, judges, judges_by_systems, judges_by_items : float
        Variance between items, of systems on items, between judges, of judges who favour systems, of judges on items.
    rest : float
        What is left of one judge's score of one system on one item.
    runs : float
        Variance between runs of the same judge; 0 where there was one run each.
    """

    items: float
    items_by_systems: float
    judges: float
    judges_by_systems: float
    judges_by_items: float
    rest: float
    runs: float

    def as_dict(self) -> dict[str, float]:
        """Return the components by name."""
        return asdict(self)

    def variance(self, items: float, judges: float, runs: float = 1.0) -> float:
        """Return the variance of a difference of two systems for other numbers of items, judges and runs."""
        each = items * judges
        return 2 * (
            self.items_by_systems / items
            + self.judges_by_systems / judges
            + self.rest / each
            + self.runs / (each * runs)
        )


@dataclass(frozen=True, eq=False)
class Crossed:
    """A table of rows and columns with gaps, without its values: many pairs of systems have the same one.

    Attributes
    ----------
    row, column : arrays
        Place of the row and of the column of each entry.
    in_row, in_column : arrays
        Number of entries in each row, and in each column.
    """

    row: Ints
    column: Ints
    in_row: Ints
    in_column: Ints

    @classmethod
    def of(cls, row: Ints, column: Ints) -> Self:
        """Number the rows and columns of a table."""
        places = [numbered(codes)[1] for codes in (row, column)]
        return cls(*places, *map(np.bincount, places))

    @cached_property
    def expected(self) -> Floats | None:
        """What the three components add to the expected sums of squares; None where these do not tell them apart."""
        count, rows, columns = len(self.row), len(self.in_row), len(self.in_column)
        overall = [squares(self.in_row) / max(count, 1), squares(self.in_column) / max(count, 1), 1]
        parts = [[count, count, count], [count, rows, rows], [columns, count, columns]]
        matrix = np.array(parts, dtype=float) - overall
        return None if count < 4 or np.linalg.matrix_rank(matrix) < 3 else matrix

    def components(self, value: Floats) -> tuple[float, float, float] | None:
        """Return the variance components of rows, columns and the rest, by Henderson's method 1.

        None where the table does not tell them apart: fewer than two rows or columns, or no row with two entries.
        """
        if self.expected is None:
            return None
        value = value - value.mean()
        sums = [
            squares(value),
            float((np.bincount(self.row, value) ** 2 / self.in_row).sum()),
            float((np.bincount(self.column, value) ** 2 / self.in_column).sum()),
        ]
        found = np.linalg.solve(self.expected, sums)
        return float(found[0]), float(found[1]), float(found[2])


def pool(parts: Iterable[tuple[float, float, float] | None], sizes: Iterable[int]) -> Floats:
    """Average components of several tables, weighted by their sizes; NaN where there is none."""
    known = [(part, size) for part, size in zip(parts, sizes, strict=True) if part is not None]
    if not known:
        return np.full(3, np.nan)
    values, weights = zip(*known, strict=True)
    mean: Floats = np.average(np.array(values), axis=0, weights=np.array(weights, dtype=float))
    return mean
