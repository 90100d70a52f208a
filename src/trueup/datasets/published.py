"""Small data sets copied from publications."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trueup.answers.answers import Answers
from trueup.datasets.dataset import Dataset

if TYPE_CHECKING:
    from trueup.core.arrays import Floats

PAPER = (
    "Ben Shabat, Meir and Azriel, Empirical Bayes approach to Truth Discovery problems, 2022, "
    "arXiv 2206.04816."
)
EFRON_MORRIS = (
    "Efron and Morris, Data Analysis Using Stein's Estimator and its Generalizations, "
    "Journal of the American Statistical Association 70, 1975, 311-319."
)

# Rows are workers, columns are questions.
_TABLE1 = ((20, 2, 3, 4), (10, 11, 18, 14), (8, 11, 23, 19), (6, 13, 7, 3))
_TABLE1_TRUTH = (10, 9, 12, 16)

# Player, hits in the first 45 at-bats of 1970, batting average over the rest of that season.
_AT_BATS = 45
_BATTING = (
    ("Clemente", 18, 0.346),
    ("F. Robinson", 17, 0.298),
    ("F. Howard", 16, 0.276),
    ("Johnstone", 15, 0.222),
    ("Berry", 14, 0.273),
    ("Spencer", 14, 0.270),
    ("Kessinger", 13, 0.263),
    ("L. Alvarado", 12, 0.210),
    ("Santo", 11, 0.269),
    ("Swoboda", 11, 0.230),
    ("Unser", 10, 0.264),
    ("Williams", 10, 0.256),
    ("Scott", 10, 0.303),
    ("Petrocelli", 10, 0.264),
    ("E. Rodriguez", 10, 0.226),
    ("Campaneris", 9, 0.285),
    ("Munson", 8, 0.316),
    ("Alvis", 7, 0.200),
)


def table1() -> Dataset:
    """Return the example of Ben Shabat, Meir and Azriel (2022, Table 1): 4 workers, 4 questions.

    Examples
    --------
    >>> table1().truth_array.tolist()
    [10.0, 9.0, 12.0, 16.0]
    """
    return Dataset(
        name="table1",
        answers=Answers.from_matrix(np.array(_TABLE1, dtype=np.float64)),
        truth=dict(enumerate(map(float, _TABLE1_TRUTH))),
        description="Answers of four workers to four questions, an example.",
        source="Table 1 of the paper cited",
        citation=PAPER,
    )


@dataclass(frozen=True, eq=False)
class Batting:
    """Batting averages: measurements with a known variance, and the values they estimate.

    Attributes
    ----------
    players : tuple of str
    x : array
        Share of hits in the first 45 at-bats.
    variance : array
        Binomial variance of `x` at the common mean, the same for all players.
    truth : array
        Average over the rest of the season.
    source, citation : str
    """

    players: tuple[str, ...]
    x: Floats
    variance: Floats
    truth: Floats
    source: str = "Table 1 of the paper cited"
    citation: str = EFRON_MORRIS


def batting() -> Batting:
    """Return the 18 batting averages of Efron and Morris (1975), baseball season of 1970.

    The three-digit averages are the ones commonly reprinted; `x` is exact: hits divided by 45. The value for Williams
    is as printed, although records of that season give him .330.

    Examples
    --------
    >>> data = batting()
    >>> print(data.players[0], data.x[0], data.truth[0], round(float(data.variance[0]) ** 0.5, 4))
    Clemente 0.4 0.346 0.0658
    """
    players, hits, rest = zip(*_BATTING, strict=True)
    x = np.array(hits, dtype=np.float64) / _AT_BATS
    mean = float(x.mean())
    return Batting(
        players=players,
        x=x,
        variance=np.full(len(x), mean * (1.0 - mean) / _AT_BATS),
        truth=np.array(rest),
    )
