"""Estimates of simulated panels through the public interface, one panel at a time."""

from __future__ import annotations

import warnings
import zlib
from typing import TYPE_CHECKING, Any

import trueup
from trueup.errors import TrueupWarning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trueup import Answers, Estimate


def estimate_of(answers: Answers, **options: Any) -> Estimate:
    """Return an estimate from one thread, without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrueupWarning)
        return trueup.estimate(answers, threads=1, **options)


def panels_of(answers: Answers) -> Iterator[Answers]:
    """Yield the panels one at a time."""
    for number in range(answers.n_panels):
        yield answers.panel(number)


def seed_for(seed: int, *what: object) -> int:
    """Return the seed of what is drawn; it does not depend on what else is drawn."""
    return zlib.crc32("/".join(map(str, (seed, *what))).encode())
