"""How far the truth may be, in the words of a report: the typical distance first, then the interval."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from trueup.errors import counted
from trueup.pipeline.outlook import MORE
from trueup.report.sections.report_data import percent, sentence

if TYPE_CHECKING:
    from trueup.core.arrays import Bools
    from trueup.pipeline.outlook import Outlook
    from trueup.report.sections.report_data import ReportData

CONSENSUS = "what infinitely many such workers would say"
SMALL_FACTOR, NEAR = 2.0, 1.2


@dataclass(frozen=True, eq=False)
class TruthReach:
    """How far truths may be from the estimates of a report.

    Attributes
    ----------
    data : ReportData
    """

    data: ReportData

    @property
    def is_target(self) -> bool:
        """Whether the truth is what is estimated, in some panel at least."""
        return self.data.est.solution.target in ("truth", "both")

    @cached_property
    def outlook(self) -> Outlook:
        """How far the truth of a typical question may be, NaN for panels."""
        return self.data.est.solution.outlook

    @cached_property
    def known(self) -> Bools:
        """Questions with an interval for the truth, besides those whose truth was given."""
        return np.isfinite(self.data.est.truth_lower) & ~self.data.is_gold

    @property
    def is_known(self) -> bool:
        """Whether there is such a question."""
        return bool(self.known.any())

    @cached_property
    def merged(self) -> bool:
        """Whether lower and upper are the interval for the truth as well, as they mostly are with known truths."""
        est, known = self.data.est, self.known
        if not est.solution.target:
            return est.calibration is not None
        return (
            self.is_known
            and est.question_data.gold is not None
            and np.array_equal(est.lower[known], est.truth_lower[known])
            and np.array_equal(est.upper[known], est.truth_upper[known])
        )

    @cached_property
    def half_width(self) -> float:
        """Half the width of a typical interval for the truth, as a factor where logarithms were combined."""
        if np.isfinite(self.outlook.half_width):
            return self.outlook.half_width
        est, known = self.data.est, self.known
        low, high = est.truth_lower[known], est.truth_upper[known]
        if not self.data.in_logarithms:
            return float(np.median(0.5 * (high - low))) if len(low) else np.nan
        positive = low > 0
        return (
            float(np.median(np.sqrt(high[positive] / low[positive]))) if positive.any() else np.nan
        )

    # -- words -------------------------------------------------------------------------------------

    @property
    def distance_words(self) -> str:
        """The typical distance of the truth."""
        return self._say(self.outlook.distance)

    @property
    def reach_words(self) -> str:
        """Half the width of the interval for the truth."""
        sign = "" if self.data.in_logarithms and not self.is_percent(self.half_width) else "±"
        return f"{sign}{self._say(self.half_width)}"

    def _say(self, value: float) -> str:
        size = self.size(value)
        if self.is_percent(value):
            return size
        return f"a factor of {size}" if self.data.in_logarithms else self.data.with_unit(size)

    def size(self, value: float) -> str:
        """Write a distance in answer units, or a factor without that word; one near 1 is a percentage."""
        if self.is_percent(value):
            return percent(value - 1.0)
        small = self.data.in_logarithms and value < SMALL_FACTOR
        return f"{value:.3g}" if small else self.data.say_size(value)

    def is_percent(self, value: float) -> bool:
        """Whether a distance is a factor so near to 1 that a percentage is easier to read."""
        return self.data.in_logarithms and value < NEAR

    @property
    def scatter_words(self) -> str:
        """The scatter of a single answer."""
        return self._say(self.outlook.scatter)

    @property
    def how_far(self) -> str:
        """A sentence: the typical distance first, then the interval; why nothing is known where that is so."""
        if not self.is_known:
            return f"The interval for the truth is unknown: {self.why_unknown}."
        share = self.data.percent
        rate = f"which holds {share} of truths over crowds like the public ones"
        gold = self.outlook.n_gold
        if gold:
            rate = f"which should hold {share} of truths"
        reach = f"reaches {self.reach_words}" if np.isfinite(self.half_width) else "is known"
        if not self.outlook.is_known:
            return f"The interval for the truth, {rate}, typically {reach}."
        who = "Crowds of this kind have typically been"
        if gold:
            who = f"After {counted(gold, 'known truth')}, a typical estimate of this crowd is"
        return (
            f"{who} about {self.distance_words} off the truth; the interval for the truth, {rate}, "
            f"{reach}."
        )

    @property
    def why_unknown(self) -> str:
        """Why there is no interval for the truth."""
        est = self.data.est
        if not est.solution.target:
            return (
                f"the second step {est.diagnosis.shrink} stays as it was published, without shared errors; adaptive, "
                "normal, mixture and none have such an interval"
            )
        if self.data.is_gold.all():
            return "all truths were given"
        if int(self.data.problem.counts.max()) < 2:
            return "no question has two answers, so the scatter of an answer is unknown"
        return "all answers to a question agree, so the scatter of an answer is unknown"

    @property
    def next_gold(self) -> str:
        """What more known truths would bring, as a sentence; empty where that is unknown."""
        then = self.outlook.next_half_width
        if not (np.isfinite(then) and self.is_percent(self.half_width)):
            return sentence(self.outlook.next_gold).replace("± ", "±")
        now, later = self.size(self.half_width), self.size(then)
        more = "more known truths" if self.outlook.n_gold else "known truths"
        if now == later:
            return f"{MORE} {more} would hardly narrow the interval for the truth."
        return (
            f"{MORE} {more} would narrow the interval for the truth from ±{now} to about ±{later}."
        )
