"""Memory for temporary arrays that is used again: allocating large ones each time costs more than the arithmetic."""

from __future__ import annotations

import threading
from math import prod
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from trueup.core.arrays import Floats

LARGEST = 1 << 18  # most numbers that an array is kept for


class Scratch(threading.local):
    """Named arrays with arbitrary contents, separate for each thread.

    An array is valid until the same name is asked for again.
    """

    def __init__(self) -> None:
        self._kept: dict[str, Floats] = {}

    def __call__(self, name: str, *shape: int) -> Floats:
        """Return an uninitialised array of the given shape."""
        size = prod(shape)
        if size > LARGEST:
            return np.empty(shape)
        kept = self._kept.get(name)
        if kept is None or len(kept) < size:
            kept = self._kept[name] = np.empty(size)
        return kept[:size].reshape(shape)
