"""What both steps found, on any engine; the numbers of each question stay with the engine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from trueup.engines import vectors

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.algorithms.driver import Aggregate
    from trueup.answers.scale import PanelScales, Scale
    from trueup.core.arrays import Floats
    from trueup.engines.protocol import Engine
    from trueup.pipeline.calibration import Calibration
    from trueup.pipeline.diagnosis import Diagnosis
    from trueup.pipeline.outlook import Outlook
    from trueup.pipeline.pooling import Pooling
    from trueup.pipeline.shrunk import SecondStepResult
    from trueup.request import Plan
    from trueup.shrinkage.adaptive_prior import PriorChoice
    from trueup.variance.bias import Biases

#: The columns of the result, and the name under which an engine keeps each.
COLUMNS = {
    "estimate": vectors.ESTIMATE,
    "lower": vectors.LOWER,
    "upper": vectors.UPPER,
    "truth_lower": vectors.TRUTH_LOWER,
    "truth_upper": vectors.TRUTH_UPPER,
    "std_error": vectors.STD_ERROR,
    "base": vectors.FIRST,
    "base_std_error": vectors.FIRST_STD_ERROR,
    "shrinkage": vectors.MOVED,
}
#: Columns that may be unknown.
UNKNOWN = ("lower", "upper", "truth_lower", "truth_upper", "std_error", "base_std_error")


@dataclass(frozen=True, eq=False)
class Solution:
    """What both steps found.

    Attributes
    ----------
    plan : Plan
        What was asked for.
    root, scaled, engine : Engine
        The answers as given; on the scale on which they are combined; and as they were combined: without the biases,
        where these were removed, and with one answer for workers who were pooled.
    scales : PanelScales
        The scale on which the answers of each panel are combined.
    aggregate : Aggregate
        The outcome of the first step.
    shrunk : callable
        Returns the outcome of the second step; it is asked once.
    target : str
        What is estimated: "truth", "consensus" or, where panels differ, "both"; empty for second steps that know no
        target.
    look_ahead : callable
        Returns how far the truth may be; it is asked once.
    prior_choice : PriorChoice or None
        The prior that held-out workers chose, now or before.
    biases, calibration, pooling : optional
        The biases of the workers, where they were removed before the first step or by the native one; the error all
        workers share; workers who count as one.
    diagnosis : Diagnosis
        All of it in words.
    is_plain : bool
        Whether the aggregate is that of the answers as they are on the scale: no biases removed, nobody pooled, no
        known truths used.
    """

    plan: Plan
    root: Engine
    scaled: Engine
    engine: Engine
    scales: PanelScales
    aggregate: Aggregate
    shrunk: Callable[[], SecondStepResult]
    target: str
    look_ahead: Callable[[], Outlook]
    prior_choice: PriorChoice | None
    biases: Biases | None
    calibration: Calibration | None
    pooling: Pooling | None
    diagnosis: Diagnosis
    is_plain: bool

    @property
    def scale(self) -> Scale:
        """The scale of a single problem, or of the first panel."""
        return self.scales.first

    @cached_property
    def second_step(self) -> SecondStepResult:
        """The outcome of the second step: certainty, prior and posterior."""
        return self.shrunk()

    @cached_property
    def outlook(self) -> Outlook:
        """How far the truth may be, and what more known truths would bring; unknown for panels."""
        return self.look_ahead()

    def column(self, name: str) -> Floats:
        """Return one number per question, in answer units; see `COLUMNS`."""
        return self.engine.kept(COLUMNS[name])
