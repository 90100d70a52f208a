"""Memory that is used again: large temporary arrays that are new each time cost more time than the arithmetic."""

from __future__ import annotations

import threading
from math import prod
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from trueup.core.arrays import Floats

LARGEST = 1 << 18  # numbers that are kept at most


class Scratch(threading.local):
    """Named arrays without a value, those of each thread its own.

    An array is good until the same name is asked for again.
    """

    def __init__(self) -> None:
        self._kept: dict[str, Floats] = {}

    def __call__(self, name: str, *shape: int) -> Floats:
        """Return an array of a shape; what is in it is of no meaning."""
        size = prod(shape)
        if size > LARGEST:
            return np.empty(shape)
        kept = self._kept.get(name)
        if kept is None or len(kept) < size:
            kept = self._kept[name] = np.empty(size)
        return kept[:size].reshape(shape)
