"""Simulated panels of judges who score systems: complete or with gaps, unequal, and partial to systems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trueup.algorithms import Native
from trueup.algorithms.driver import run
from trueup.answers.answers import Answers
from trueup.ranking.scores import Scores
from trueup.ranking.standings import balanced
from trueup.variance.bias import estimate_biases

if TYPE_CHECKING:
    from trueup.core.arrays import Floats, Ints

#: Standard deviations between items, of systems on items, and between judges.
ITEM, ITEM_BY_SYSTEM, JUDGE = 1.0, 0.5, 0.5
#: Standard deviation of the noise of the best and of the worst judge.
BEST, WORST = 0.5, 1.5


@dataclass(frozen=True)
class Design:
    """A panel to draw.

    Attributes
    ----------
    judges, items : int
        How many there are.
    partial : float
        Standard deviation of how judges favour systems.
    missing : float
        Share of the scores that are missing.
    systems : int
        Number of systems.
    gap : float
        How much better the first system is than the others, which are equal.
    """

    judges: int
    items: int
    partial: float
    missing: float = 0.0
    systems: int = 2
    gap: float = 0.0

    @property
    def name(self) -> str:
        """The design in words."""
        gaps = f"{self.missing:.0%} missing" if self.missing else "complete"
        return f"{self.judges} judges, {self.items} items, partial {self.partial:g}, {gaps}"


@dataclass(frozen=True, eq=False)
class Draw:
    """A panel.

    Attributes
    ----------
    y : array
        Scores, systems x items x judges, NaN where there is none.
    these : array
        What these judges say of each system on average over infinitely many items, by judge.
    """

    y: Floats
    these: Floats


def draw(design: Design, rng: np.random.Generator, family: int = 0, shared: float = 0.0) -> Draw:
    """Draw a panel.

    Parameters
    ----------
    design : Design
    rng : Generator
    family : int
        Number of judges, from the first on, of one family.
    shared : float
        Correlation of the errors of a family: of the noise, and of how they favour systems.
    """
    s, p, j = design.systems, design.items, design.judges
    noise = np.linspace(BEST, WORST, j)[rng.permutation(j)]
    if family:
        noise = np.full(j, 1.0)

    def errors(*shape: int) -> Floats:
        values = rng.normal(size=(*shape, j))
        if family:
            common = rng.normal(size=(*shape, 1))
            members = values[..., :family]
            values[..., :family] = shared**0.5 * common + (1 - shared) ** 0.5 * members
        return values

    favours = design.partial * errors(s)
    y = (
        ITEM * rng.normal(size=(1, p, 1))
        + ITEM_BY_SYSTEM * rng.normal(size=(s, p, 1))
        + JUDGE * rng.normal(size=j)
        + favours[:, None, :]
        + noise * errors(s, p)
    )
    y[0] += design.gap
    if design.missing:
        gone = rng.random(y.shape) < design.missing
        gone[..., 0] &= ~gone.all(axis=2)  # somebody scored everything
        y[gone] = np.nan
    favours[0] += design.gap
    return Draw(y, favours)


def weighted(draws: list[Draw]) -> tuple[Floats, Floats]:
    """Return weights and biases of the judges of panels of one size, by the first step over all panels at once."""
    matrices = np.stack([each.y.reshape(-1, each.y.shape[2]).T for each in draws])
    answers = Answers.from_matrix(matrices)
    shape = (len(draws), matrices.shape[1])
    return run(Native(), answers).weight.reshape(shape), estimate_biases(answers).value.reshape(
        shape
    )


def scores_of(each: Draw, weight: Floats, bias: Floats) -> Scores:
    """Return the scores of a panel; nobody is pooled."""
    system, item, judge = np.nonzero(~np.isnan(each.y))
    group: Ints = np.arange(each.y.shape[2])
    value = each.y[system, item, judge]
    scores = Scores.of(system, item, judge, value, group=group, weight=weight, bias=bias)
    return balanced(scores)


def frame_of(each: Draw) -> dict[str, Floats | Ints]:
    """Return a panel as a table."""
    system, item, judge = np.nonzero(~np.isnan(each.y))
    return {"item": item, "system": system, "judge": judge, "score": each.y[system, item, judge]}
