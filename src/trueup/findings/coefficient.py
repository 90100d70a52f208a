"""A coefficient of agreement: its value, its interval, and the word for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

Sort = Literal["icc", "alpha"]
#: From which value on a coefficient deserves a word: Koo and Li, Journal of Chiropractic Medicine 2016, for intraclass
#: correlations; Krippendorff, Content Analysis 2004, for alpha.
WORDS: dict[str, tuple[tuple[float, str], ...]] = {
    "icc": ((0.9, "excellent"), (0.75, "good"), (0.5, "moderate"), (-np.inf, "poor")),
    "alpha": (
        (0.8, "good enough to rely on"),
        (2 / 3, "enough for tentative conclusions"),
        (-np.inf, "too low to rely on single answers"),
    ),
}


@dataclass(frozen=True)
class Coefficient:
    """A coefficient of agreement with its 95% interval.

    Attributes
    ----------
    name, meaning : str
        Its usual name, and what it is about.
    value, lower, upper : float
        1 is perfect agreement, 0 none, and nothing is shown below -1; ends of the interval are NaN where it is unknown.
    sort : {"icc", "alpha"}
        Whose cut-offs give the word.
    """

    name: str
    meaning: str
    value: float
    lower: float
    upper: float
    sort: Sort = "icc"

    @property
    def word(self) -> str:
        """What the value is called."""
        return next(word for least, word in WORDS[self.sort] if self.value >= least)

    def __str__(self) -> str:
        interval = (
            "interval unknown"
            if np.isnan(self.lower)
            else f"95% interval {two_digits(self.lower)} to {two_digits(self.upper)}"
        )
        return f"{self.name} = {two_digits(self.value)} ({interval}): {self.word}; {self.meaning}"


def two_digits(value: float) -> str:
    """Write a coefficient with two digits, and 0 without a sign."""
    return f"{round(value, 2) + 0.0:.2f}"
