"""How certain the aggregates of a first step are, and how certain these variances are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from trueup.engines import vectors

if TYPE_CHECKING:
    from trueup.core.arrays import Bools, Floats
    from trueup.engines.protocol import Engine


@dataclass(frozen=True, eq=False)
class Certainty:
    """Variances of the aggregates, according to a variance rule.

    Attributes
    ----------
    v : array
        Variance of each aggregate.
    v_interval : array
        Variance of each aggregate for intervals: the weights were learned from the same answers.
    nu : array
        Degrees of freedom of the variances of each panel; infinite for known variances.
    interval_nu : array
        Degrees of freedom of the variances for intervals.
    shift : array
        Variance of the error that all questions of a panel share, from the biases of the workers.
    shift_nu : array
        Degrees of freedom of the shift of each panel: its number of workers minus 1.
    marks : array
        Above 0 for questions that were set aside because of their variance.
    interval, aside : str
        Names under which the engine keeps `v_interval` and `marks`; empty if no question was set aside. `v` is
        `vectors.VARIANCE`.
    """

    v: Floats
    v_interval: Floats
    nu: Floats
    interval_nu: Floats
    shift: Floats
    shift_nu: Floats
    marks: Floats
    interval: str = vectors.VARIANCE
    aside: str = ""

    @property
    def gross(self) -> Bools:
        """Whether each question was set aside because of its variance."""
        return self.marks > 0

    @classmethod
    def of_known(cls, engine: Engine) -> Certainty:
        """Return the certainty of known variances, which an engine keeps as `vectors.VARIANCE`."""
        panels, v = engine.problem.n_panels, engine.kept(vectors.VARIANCE)
        return cls(
            v,
            v,
            np.full(panels, np.inf),
            np.full(panels, np.inf),
            np.zeros(panels),
            np.full(panels, np.inf),
            np.broadcast_to(0.0, (engine.problem.n_questions,)),
        )

    def again_in(self, engine: Engine) -> Certainty:
        """Let an engine that has kept other variances since keep these again."""
        engine.keep(vectors.VARIANCE, self.v)
        engine.keep(self.interval, self.v_interval)
        return self

    def keep_in(self, engine: Engine) -> Certainty:
        """Store variances from elsewhere in an engine."""
        engine.keep(vectors.VARIANCE, self.v)
        engine.keep(vectors.INTERVAL_VARIANCE, self.v_interval)
        engine.keep(vectors.GROSS, self.marks)
        engine.keep(vectors.OTHERS_LOWEST, np.nan)  # no single answer is to blame
        engine.keep(vectors.OTHERS_HIGHEST, np.nan)
        return replace(self, interval=vectors.INTERVAL_VARIANCE, aside=vectors.GROSS)
