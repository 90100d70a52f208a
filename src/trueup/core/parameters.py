"""Checks of parameters of algorithms and rules: one of some words, a number within limits, a boolean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import TrueupError, quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trueup.core.arrays import Bools, Floats

#: Largest and smallest size of a parameter, so that its fourth power neither overflows nor underflows.
LARGEST = 1e60
SMALLEST = 1e-60
#: How far a level is from 0 and from 1.
EDGE = 1e-9


def usable_variances(variance: Floats) -> Bools:
    """Tell which variances can be used: ratios of any two of them, and squares of these, must be numbers.

    >>> usable_variances(np.array([1.0, 0.0, 1e-320, 1e200, np.nan])).tolist()
    [True, False, False, False, False]
    """
    usable: Bools = (variance >= SMALLEST) & (variance <= LARGEST)
    return usable


def check_level(value: Any) -> None:
    """Check the level of intervals: their quantiles must be numbers, and not 0."""
    is_number = isinstance(value, int | float | np.integer | np.floating)
    if not is_number or not EDGE <= plain(value) <= 1.0 - EDGE:
        raise TrueupError(
            f"found {quoted(value)}, must be a number between 0 and 1, at least {EDGE:g} away from both.",
            argument="level",
        )


def one_of(name: str, value: Any, words: Sequence[str]) -> None:
    """Check that `value` is one of some words."""
    if not isinstance(value, str) or value not in words:
        *some, last = (f'"{word}"' for word in words)
        raise TrueupError(f"{quoted(value)} is not {', '.join(some)} or {last}.", argument=name)


def plain(value: Any) -> Any:
    """Return a numpy float as a Python float, so that comparing it does not round the other number."""
    return float(value) if isinstance(value, np.floating) else value


def number(name: str, value: Any, least: float = 0.0, most: float = LARGEST) -> None:
    """Check that `value` is a number from `least` to `most`."""
    is_number = isinstance(value, int | float | np.integer | np.floating)
    if not is_number or not least <= plain(value) <= most:
        raise TrueupError(
            f"found {quoted(value)}, must be a number from {least:g} to {most:g}.", argument=name
        )


def yes_or_no(name: str, value: Any) -> None:
    """Check that `value` is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TrueupError(f"found {quoted(value)}, must be True or False.", argument=name)
