"""Figures that should be in a range, and what chance does to them where there are few panels."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt

from scipy.special import stdtr

#: Standard errors by which a figure from few panels may be outside of its range.
ALLOWED = 3.0


@dataclass(frozen=True)
class Point:
    """A figure, and the range it should be in.

    Attributes
    ----------
    number : int
        Of the group that it belongs to.
    what, found, wanted : str
        The figure in words, its value, and its range.
    reached : bool
        Whether it is in the range.
    near : bool
        Whether it is within `ALLOWED` standard errors of the range.
    """

    number: int
    what: str
    found: str
    wanted: str
    reached: bool
    near: bool = False


def near(value: float, error: float, low: float = -inf, high: float = inf) -> bool:
    """Return whether a value is within `ALLOWED` standard errors of a range."""
    return low - ALLOWED * error <= value <= high + ALLOWED * error


def share_error(share: float, count: float) -> float:
    """Return the standard error of a share of independent draws."""
    return sqrt(share * (1.0 - share) / count)


def near_none(count: int, of: int, panels: int, errors: float) -> bool:
    """Return whether so many cells can be beyond a limit by chance, though the truth of each is at that limit.

    A cell counts if it is beyond the limit by that number of its own estimated standard errors, which have panels - 1
    degrees of freedom.
    """
    expected = of * float(stdtr(panels - 1, -errors))
    return count <= expected + ALLOWED * sqrt(expected)
