"""The engine in memory: blocks are views of one Answers, visited by threads."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from typing import TYPE_CHECKING

import numpy as np

from trueup.engines.protocol import Sweep, Visit
from trueup.errors import TrueupError, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trueup.answers import Answers
    from trueup.arrays import Bools, Floats
    from trueup.block import Block


class MemoryEngine:
    """Answers in memory, cut into blocks that threads visit: the sparse products release the lock.

    Parameters
    ----------
    answers : Answers
    threads : int, optional
        Default: the number of processors. It changes the time, not the result.
    block_answers : int, optional
        Answers per block.
    """

    def __init__(
        self, answers: Answers, *, threads: int | None = None, block_answers: int | None = None
    ) -> None:
        self.n_workers = answers.n_workers
        self.n_panels = answers.n_panels
        self.n_questions = answers.n_questions
        self.blocks = answers.blocks() if block_answers is None else answers.blocks(block_answers)
        check_threads(threads)
        self.threads = max(1, min(threads or os.cpu_count() or 1, len(self.blocks)))
        self._kept: dict[str, Floats] = {}

    def sweep(self, visit: Callable[[Block, dict[str, Floats]], Visit]) -> Sweep:
        """Visit every block; see `trueup.engines.protocol.Engine`."""
        sums, panel_sums = np.zeros((0, self.n_workers)), np.zeros((0, self.n_panels))
        peaks = np.zeros(self.n_panels)
        for block, result in zip(self.blocks, self._visits(visit), strict=True):
            if result.sums is not None:
                if len(sums) == 0:
                    sums = np.zeros((len(result.sums), self.n_workers))
                sums[:, block.worker_slice] += result.sums
            if result.panel_sums is not None:
                if len(panel_sums) == 0:
                    panel_sums = np.zeros((len(result.panel_sums), self.n_panels))
                panel_sums[:, block.panel_slice] += result.panel_sums
            if result.panel_peaks is not None:
                here = peaks[block.panel_slice]
                np.maximum(here, result.panel_peaks, out=here)
            for name, values in (result.questions or {}).items():
                if name not in self._kept:
                    self._kept[name] = np.empty(self.n_questions)
                self._kept[name][block.start : block.stop] = values
        return Sweep(sums, panel_sums, peaks)

    def adjusted(self, bias: Floats | None, aside: Bools | None) -> MemoryEngine:
        """Return an engine over adjusted answers; see `trueup.engines.protocol.Engine`."""
        if bias is None and aside is None:
            return self

        def adjust(block: Block) -> Block:
            return block.adjusted(
                None if bias is None else bias[block.worker_slice],
                None if aside is None else aside[block.start : block.stop],
            )

        engine = copy(self)
        engine._kept = {}  # noqa: SLF001  a copy of our own
        if self.threads == 1:
            engine.blocks = [adjust(block) for block in self.blocks]
        else:
            with ThreadPoolExecutor(self.threads) as pool:
                engine.blocks = list(pool.map(adjust, self.blocks))
        return engine

    def kept(self, name: str) -> Floats:
        """Return a vector over all questions that visits have kept."""
        return self._kept[name]

    def _visits(self, visit: Callable[[Block, dict[str, Floats]], Visit]) -> Iterator[Visit]:
        names = tuple(self._kept)

        def go(block: Block) -> Visit:
            here = slice(block.start, block.stop)
            return visit(block, {name: self._kept[name][here] for name in names})

        if self.threads == 1:
            yield from map(go, self.blocks)
            return
        load_libraries()
        with ThreadPoolExecutor(self.threads) as pool:
            # A window of blocks under way keeps what waits for its turn small.
            window = 2 * self.threads
            waiting = [pool.submit(go, block) for block in self.blocks[:window]]
            for block in [*self.blocks[window:], *[None] * len(waiting)]:
                result = waiting.pop(0).result()
                if block is not None:
                    waiting.append(pool.submit(go, block))
                yield result


def check_threads(threads: object) -> None:
    """Refuse what is no number of threads."""
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise TrueupError(f"threads: found {quoted(threads)}, must be a whole number from 1 on.")


def load_libraries() -> None:
    """Load what visits use before threads need it: an import that two threads wait for may never end."""
    import scipy.sparse
    import scipy.special  # noqa: F401
