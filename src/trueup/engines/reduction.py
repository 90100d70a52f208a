"""Adding up what visits bring back, block after block."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trueup.engines.protocol import Sweep

if TYPE_CHECKING:
    from trueup.answers.block import Block
    from trueup.core.arrays import Floats
    from trueup.engines.protocol import Visit


class Reduction:
    """The sums of a pass, as far as it has come.

    Parameters
    ----------
    workers, panels : int
        Their number in the whole problem.
    """

    def __init__(self, workers: int, panels: int) -> None:
        self._sums, self._panel_sums = np.zeros((0, workers)), np.zeros((0, panels))
        self._peaks = np.zeros(panels)
        self._rows: dict[str, list[Floats]] = {}

    def add(self, block: Block, visit: Visit) -> None:
        """Take in what a visit to a block brought; blocks must come in order."""
        if visit.sums is not None:
            self._sums = _added(self._sums, visit.sums, block.worker_slice)
        if visit.panel_sums is not None:
            self._panel_sums = _added(self._panel_sums, visit.panel_sums, block.panel_slice)
        if visit.panel_peaks is not None:
            here = self._peaks[block.panel_slice]
            np.maximum(here, visit.panel_peaks, out=here)
        for name, values in (visit.rows or {}).items():
            self._rows.setdefault(name, []).append(values)

    def result(self) -> Sweep:
        """Return the sums of all blocks."""
        rows = {name: np.concatenate(parts) for name, parts in self._rows.items()}
        return Sweep(self._sums, self._panel_sums, self._peaks, rows)


def _added(total: Floats, part: Floats, where: slice) -> Floats:
    if len(total) == 0:
        total = np.zeros((len(part), total.shape[1]))
    total[:, where] += part
    return total
