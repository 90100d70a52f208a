"""How far the truth may be: the typical error of crowds like this one, and what more known truths would bring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trueup.answers.scale import LOGARITHMS
from trueup.errors import option
from trueup.variance.intervals import student_quantile

if TYPE_CHECKING:
    from trueup.answers.scale import Scale
    from trueup.pipeline.calibration import Calibration
    from trueup.pipeline.crowd_prior import TruthModel
    from trueup.pipeline.target import Target
    from trueup.pipeline.truths import CrowdNumbers, GoldQuestions
    from trueup.request import Plan

#: More known truths whose benefit is told.
MORE = 10


@dataclass(frozen=True)
class Outlook:
    """How far the truth may be from the estimate of a typical question; NaN where that is unknown.

    Distances are in answer units. Where logarithms were combined they are factors: 1.2 is a fifth more.

    Attributes
    ----------
    scatter : float
        Standard deviation of a single answer.
    distance : float
        Typical distance of the truth: half of the truths are expected to be nearer.
    half_width : float
        Half the width of the interval for the truth.
    next_half_width : float
        The same with `MORE` more known truths.
    n_gold : int
        Known truths so far.
    change : float
        How far the other target would move estimates on average, in answer units.
    relative : bool
        Whether distances are factors.
    """

    scatter: float = np.nan
    distance: float = np.nan
    half_width: float = np.nan
    next_half_width: float = np.nan
    n_gold: int = 0
    change: float = np.nan
    relative: bool = False

    @property
    def is_known(self) -> bool:
        """Whether anything can be said about the truth."""
        return bool(np.isfinite(self.distance))

    def in_words(self, distance: float) -> str:
        """Write a distance."""
        size = f"{float(f'{distance:.3g}'):,.10g}"
        return f"a factor of {size}" if self.relative else size

    @property
    def next_gold(self) -> str:
        """What more known truths would bring, in words; empty where that is unknown."""
        if not np.isfinite(self.next_half_width):
            return ""
        more = "more known truths" if self.n_gold else "known truths"
        sign = "" if self.relative else "± "
        now, then = self.in_words(self.half_width), self.in_words(self.next_half_width)
        if now == then:
            return f"{MORE} {more} would hardly narrow the interval for the truth"
        return (
            f"{MORE} {more} would narrow the interval for the truth from {sign}{now} to about "
            f"{sign}{then}"
        )


def look_ahead(
    plan: Plan,
    scale: Scale,
    numbers: CrowdNumbers,
    model: TruthModel | None,
    gold: GoldQuestions | None,
    calibration: Calibration | None,
    change: float,
    *,
    more: int = MORE,
) -> Outlook:
    """Return how far the truth may be in a single problem; what more known truths would bring takes a while."""
    relative = scale.transform in LOGARITHMS
    n_gold = 0 if gold is None else len(gold.truth)
    if calibration is not None:
        centre = calibration.centre
        _, variance, freedom = calibration.apply(
            np.array([centre]), np.array([numbers.usual_variance])
        )
        half, distance = (
            float((student_quantile(0.5 + 0.5 * level, freedom) * np.sqrt(variance))[0])
            for level in (plan.level, 0.5)
        )
        factor = np.nan
    elif model is not None:
        centre, half, distance = (
            float(each) for each in (model.centre, model.half_width, model.distance)
        )
        factor = numbers.narrowing(more, gold, plan.kind) if more else np.nan
    else:
        return Outlook(n_gold=n_gold, change=change, relative=relative)

    def carried(distance: float) -> float:
        if relative:
            return float(np.exp(min(distance, 700.0)))
        if scale.transform is None:
            return distance
        ends = scale.inverse(centre + distance * np.array([-1.0, 1.0]))
        return float(0.5 * (ends[1] - ends[0]))

    return Outlook(
        scatter=np.nan if model is None else carried(float(model.unit)),
        distance=carried(distance),
        half_width=carried(half),
        next_half_width=carried(half * factor),
        n_gold=n_gold,
        change=change,
        relative=relative,
    )


def target_in_words(target: Target, plan: Plan, found: Outlook | None, *, alone: bool) -> str:
    """Say which target was used and why, how far crowds like this one are from the truth, and what the other would do.

    `found` is None for panels; `alone` tells whether no question has two answers.
    """
    if not target.applies:
        return (
            f"shrink {plan.rule.name} takes no target: estimates are as it gives them, and truth_lower and "
            "truth_upper are unknown"
        )
    text: str = f"target {target.name}" + (f" ({target.why})" if target.why else "")
    if target.name == "consensus":
        text += ": what infinitely many such workers would say"
        if plan.kind is not None:
            text += "; " + option("kind", plan.kind) + " changes nothing for it"
    elif found is not None and found.is_known:
        text += (
            f": crowds like this one are typically off by {found.in_words(found.distance)}, which truth_lower and "
            "truth_upper allow for"
        )
    elif found is not None:
        reason = "no question has two answers" if alone else "all answers to a question agree"
        text += f": truth_lower and truth_upper are unknown, because {reason}"
    if found is not None and np.isfinite(found.change):
        other = "truth" if target.name == "consensus" else "consensus"
        text += (
            "; "
            + option("target", other)
            + f" would move estimates by {found.change:.3g} on average"
        )
    return text
