"""The target: what infinitely many such workers would say (the consensus), or the truth that they guess at.

The mean opinion about a film is the truth about it; the mean guess of a weight is not. So ratings, answers on at most
11 different values with equal steps, are taken for opinions, and everything else for guesses at facts.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from trueup.engines.protocol import Visit
from trueup.shrinkage.ebe import Identity
from trueup.shrinkage.normal import CautiousRule

if TYPE_CHECKING:
    from trueup.answers.block import Block
    from trueup.core.arrays import Bools, Floats
    from trueup.engines.protocol import Engine, Kept
    from trueup.request import Plan

#: Most different values of a rating, and answers from which on they can be told.
MOST_VALUES, ENOUGH = 11, 30
#: Answers of a block that are looked at first.
FIRST = 1000
#: How far a step may be from a whole number of steps.
ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class Target:
    """What is estimated in each panel.

    Attributes
    ----------
    truth : array
        Whether it is the truth, for each panel.
    applies : bool
        Whether the second step is one that a target changes.
    why : str
        Why, in words; empty where it was asked for.
    """

    truth: Bools
    applies: bool
    why: str = ""

    @property
    def name(self) -> str:
        """Return "truth", "consensus", or "both" where panels differ."""
        if self.truth.all():
            return "truth"
        return "both" if self.truth.any() else "consensus"


def choose_target(engine: Engine, plan: Plan, *, gold: bool) -> Target:
    """Return what is to be estimated from answers as given."""
    panels = engine.problem.n_panels
    applies = isinstance(plan.rule, CautiousRule | Identity)
    if plan.target != "auto":
        return Target(np.full(panels, plan.target == "truth"), applies)
    if gold:
        return Target(np.ones(panels, dtype=bool), applies, "some truths are known")
    ratings = rating_steps(engine)
    truth = ratings == 0
    if truth.all():
        return Target(truth, applies, "the answers are not ratings on a few values")
    if len(ratings) > 1:
        return Target(truth, applies, f"{(~truth).sum():,} of {len(truth):,} panels are ratings")
    return Target(truth, applies, f"the answers are ratings on {ratings[0]:.0f} values")


def rating_steps(engine: Engine) -> Floats:
    """Return the number of values of the rating scale of each panel, 0 where the answers are no ratings."""

    def visit(block: Block, kept: Kept) -> Visit:  # noqa: ARG001
        values, panels = [], []
        answers, borders = block.answers, block.indptr[block.panel_questions]
        numbers = range(block.panel_slice.start, block.panel_slice.stop)
        for number, begin, end in zip(numbers, borders[:-1], borders[1:], strict=True):
            mine = answers[begin:end]
            few = np.unique(mine[:FIRST])
            if len(few) <= MOST_VALUES:
                few = np.unique(mine)
            values.append(few[: MOST_VALUES + 1])
            panels.append(np.full(len(values[-1]), float(number)))
        return Visit(rows={"value": np.concatenate(values), "panel": np.concatenate(panels)})

    rows = engine.sweep(visit).rows
    steps = np.zeros(engine.problem.n_panels)
    order = np.argsort(rows["panel"], kind="stable")
    panels, values = rows["panel"][order].astype(np.int64), rows["value"][order]
    borders = np.searchsorted(panels, np.arange(len(steps) + 1))
    for number, (begin, end) in enumerate(pairwise(borders)):
        steps[number] = _levels(np.unique(values[begin:end]))
    return np.where(_answers_per_panel(engine) >= ENOUGH, steps, 0.0)


def _answers_per_panel(engine: Engine) -> Floats:
    def visit(block: Block, kept: Kept) -> Visit:  # noqa: ARG001
        counts = np.diff(block.indptr[block.panel_questions]).astype(np.float64)
        return Visit(panel_sums=counts[None])

    total: Floats = engine.sweep(visit, answers=False).panel_sums[0]
    return total


def _levels(values: Floats) -> int:
    """Return the number of equal steps that hold these values, 0 if there are too many."""
    if not 2 <= len(values) <= MOST_VALUES:
        return 0
    smallest = np.diff(values).min()
    if values[-1] - values[0] > (MOST_VALUES - 1 + ROUNDING) * smallest:
        return 0
    steps = (values - values[0]) / smallest
    whole = np.round(steps)
    if np.abs(steps - whole).max() > ROUNDING:
        return 0
    return int(whole[-1]) + 1
