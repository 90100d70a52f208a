"""Panels of any size as rectangles that fit into the cache, handled side by side.

A *tile* is the numbers of some panels of equal size and the positions of their questions; it is shaped panels x
questions. A panel that is too long for one tile is cut into several.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from trueup.core.arrays import expand, offsets, rectangles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from trueup.core.arrays import Bools, Floats, Ints

CELLS = 1 << 17  # numbers in a temporary array: they stay in the cache
MANY_TILES = 32  # from which on starting threads pays off
MOST_THREADS = 4  # more of them wait for the interpreter

Positions: TypeAlias = "Ints | slice"
Tile: TypeAlias = "tuple[Ints, Positions]"


def tiles(starts: Ints, entries: int, usable: Bools | None = None) -> Iterator[Tile]:
    """Yield tiles of at most `entries` questions, without the panels that are not `usable`.

    Positions are a rectangle, or a slice for a panel that has more than `entries` questions.
    """
    sizes = np.diff(starts)
    if usable is not None:
        sizes = np.where(usable, sizes, 0)
    for row in np.flatnonzero(sizes > entries):
        for start in range(starts[row], starts[row + 1], entries):
            yield np.array([row]), slice(start, min(start + entries, int(starts[row + 1])))
    short = np.flatnonzero((sizes > 0) & (sizes <= entries))
    if len(short) == 0:
        return
    positions = None if len(short) == len(sizes) else expand(starts[short], sizes[short])
    for part, rectangle in rectangles(offsets(sizes[short]), entries):
        yield short[part], rectangle if positions is None else positions[rectangle]


def uncut_tiles(starts: Ints, entries: int, usable: Bools | None = None) -> Iterator[Tile]:
    """Yield tiles as `tiles` does, but never cut a panel."""
    return tiles(starts, max(entries, int(np.diff(starts).max(initial=0))), usable)


def alike(values: Floats, starts: Ints) -> Bools:
    """Tell of each panel whether all of its values are equal."""
    filled = starts[1:] > starts[:-1]
    same = np.ones(len(filled), dtype=bool)
    firsts = starts[:-1][filled]
    equal = values == np.repeat(values[firsts], np.diff(starts)[filled])
    same[filled] = np.logical_and.reduceat(equal, firsts) if len(firsts) else True
    return same


def side_by_side(do: Callable[[Tile], None], parts: Iterable[Tile], count: int) -> None:
    """Call `do` with every tile, on threads if there are many; `count` is about how many.

    Each call must write to a place of its own.
    """
    if count < MANY_TILES:
        for part in parts:
            do(part)
        return
    with ThreadPoolExecutor(processors()) as pool:
        list(pool.map(do, parts))


def processors() -> int:
    """Return the number of processors to use."""
    if hasattr(os, "sched_getaffinity"):
        return min(len(os.sched_getaffinity(0)), MOST_THREADS)
    return min(os.cpu_count() or 1, MOST_THREADS)
