"""The units of a panel, in which its prior is fitted, so that a change of the unit of the answers changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trueup.shrinkage.tiles import CELLS, uncut_tiles

if TYPE_CHECKING:
    from trueup.core.arrays import Bools, Floats, Ints

FLOOR = 1e-9  # smallest variance, relative to the median of the panel
FAR = 1e70  # standard errors between aggregates at which no digit of them would move


@dataclass(frozen=True, eq=False)
class PanelUnits:
    """The units of some panels, one number each: `t = (x - centre) / unit`, `u = max(v, floor) / unit^2`.

    `centre` is the median of the aggregates, `unit` the square root of `v0`, the harmonic mean of the variances.
    `usable` is False for panels that stay as they are: those with too few questions, without any variance, or with
    aggregates further apart than any variance reaches.
    """

    centre: Floats
    unit: Floats
    floor: Floats
    usable: Bools

    @classmethod
    def fit(
        cls, x: Floats, v: Floats, starts: Ints, *, least: int = 4, floor: float = FLOOR
    ) -> PanelUnits:
        """Find the units of panels of any size with at least `least` questions."""
        count = len(starts) - 1
        found = cls(np.zeros(count), np.ones(count), np.zeros(count), np.zeros(count, dtype=bool))
        for rows, positions in uncut_tiles(starts, CELLS):
            shape = len(rows), -1
            tile = cls.of_tile(
                x[positions].reshape(shape), v[positions].reshape(shape), least, floor
            )
            found.centre[rows], found.unit[rows] = tile.centre, tile.unit
            found.floor[rows], found.usable[rows] = tile.floor, tile.usable
        return found

    @classmethod
    def of_tile(cls, x: Floats, v: Floats, least: int = 4, floor: float = FLOOR) -> PanelUnits:
        """Find the units of panels x questions."""
        centre = np.median(x, axis=1)
        largest = v.max(axis=1)
        usable = (largest > 0) & (x.shape[1] >= least)
        # Relative to the largest, so that the reciprocals of tiny variances stay finite.
        relative = v / np.where(usable, largest, 1.0)[:, None]
        typical = np.median(relative, axis=1)
        for row in np.flatnonzero(usable & (typical == 0)):
            # More than half of the questions are known exactly; the others tell the size of a variance.
            typical[row] = np.median(relative[row][relative[row] > 0])
        lowest = np.where(usable, floor * typical, 1.0)
        lowest = np.maximum(lowest, np.finfo(float).tiny)
        v0 = 1.0 / np.mean(1.0 / np.maximum(relative, lowest[:, None]), axis=1)
        # Two roots, since the product of two small numbers may underflow.
        unit = np.where(usable, np.sqrt(v0) * np.sqrt(largest), 1.0)
        unit = np.maximum(unit, np.sqrt(np.finfo(float).tiny))
        with np.errstate(over="ignore"):
            away = np.abs((x - centre[:, None]) / unit[:, None]).max(axis=1)
        usable &= away < FAR
        return cls(centre, unit, lowest * np.where(usable, largest, 0.0), usable)

    def rows(self, rows: Ints) -> PanelUnits:
        """Return the units of some of the panels."""
        return PanelUnits(self.centre[rows], self.unit[rows], self.floor[rows], self.usable[rows])

    def standardise(self, rows: Ints, x: Floats, v: Floats) -> tuple[Floats, Floats]:
        """Return aggregates and variances of some panels in their units, panels x questions."""
        centre, unit, floor = (part[rows, None] for part in (self.centre, self.unit, self.floor))
        t = (x.reshape(len(rows), -1) - centre) / unit
        u = np.maximum(v.reshape(len(rows), -1), floor) / unit / unit
        return t, u

    def restore(self, rows: Ints, mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
        """Return means and variances of some panels in the unit of the answers, panels x questions."""
        centre, unit = self.centre[rows, None], self.unit[rows, None]
        return centre + unit * mean, variance * unit * unit
