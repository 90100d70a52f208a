"""What an engine must do: hand every block to a function, and add up what comes back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.arrays import Bools, Floats
    from trueup.block import Block


@dataclass(frozen=True)
class Visit:
    """What a visit to a block brings back.

    Attributes
    ----------
    sums : array or None
        Rows of sums per worker of the block; added up over blocks.
    panel_sums : array or None
        Rows of sums per panel of the block; added up over blocks.
    panel_peaks : array or None
        One number per panel of the block; the largest over blocks is kept.
    questions : dict
        Named vectors with one number per question; kept, and given back at the next visit.
    """

    sums: Floats | None = None
    panel_sums: Floats | None = None
    panel_peaks: Floats | None = None
    questions: dict[str, Floats] | None = None


@dataclass(frozen=True)
class Sweep:
    """The reduced result of a pass over all blocks; what no visit brought has no rows, or is 0."""

    sums: Floats
    panel_sums: Floats
    panel_peaks: Floats


class Engine(Protocol):
    """A place where blocks of questions are kept and visited."""

    n_workers: int
    n_panels: int

    def sweep(self, visit: Callable[[Block, dict[str, Floats]], Visit]) -> Sweep:
        """Visit every block, hand it what earlier visits kept for its questions, reduce the results.

        Sums are added in the order of the blocks, so that the number of threads changes nothing.
        """
        ...

    def adjusted(self, bias: Floats | None, aside: Bools | None) -> Engine:
        """Return an engine over the same answers less the bias of each worker, with some questions set aside."""
        ...

    def kept(self, name: str) -> Floats:
        """Return a vector over all questions that visits have kept."""
        ...
