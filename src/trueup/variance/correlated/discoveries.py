"""When a pair is found, in either test: by its p-value among all pairs, and if it is large enough to matter.

The false discovery rate of both tests together is held at 5% (Benjamini and Hochberg, Journal of the Royal Statistical
Society B 1995), and what is too small to matter is not reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from trueup.core.arrays import Bools, Floats

#: False discovery rate, half of it for each of the two tests.
RATE = 0.05
#: Correlation, and share of identical answers beyond ties, below which a pair is not worth a word.
MATTERS = 0.2
#: The smallest p-value, and the least to divide by.
TINY = 1e-300


def discoveries(p: Floats, tested: Bools) -> Bools:
    """Return which hypotheses are rejected by Benjamini and Hochberg."""
    here = np.flatnonzero(tested)
    found = np.zeros(len(p), dtype=bool)
    if len(here) == 0:
        return found
    order = here[np.argsort(p[here], kind="stable")]
    passed = np.flatnonzero(p[order] <= 0.5 * RATE * np.arange(1, len(here) + 1) / len(here))
    if len(passed):
        found[order[: passed[-1] + 1]] = True
    return found
