"""How sure a first step is of each question, and how sure that is itself."""

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
    """Variances of the aggregates, as a variance rule sees them.

    Attributes
    ----------
    v : array
        Variance of each aggregate.
    v_interval : array
        The same for intervals, where the more careful side is the larger one.
    nu : array
        Degrees of freedom behind the variances of each panel; infinite for known ones.
    shift : array
        Variance of an error that all questions of a panel share, from the biases of the workers.
    shift_nu : array
        Degrees of freedom behind the shift of each panel: one less than it has workers.
    marks : array
        Above 0 for questions that were set aside for their variance.
    interval, aside : str
        Under which names the engine keeps `v_interval` and `marks`; no name where none was set aside. `v` is
        `vectors.VARIANCE`.
    """

    v: Floats
    v_interval: Floats
    nu: Floats
    shift: Floats
    shift_nu: Floats
    marks: Floats
    interval: str = vectors.VARIANCE
    aside: str = ""

    @property
    def gross(self) -> Bools:
        """Questions that were set aside for their variance."""
        return self.marks > 0

    @classmethod
    def plain(cls, engine: Engine) -> Certainty:
        """Take the variances that an engine keeps as `vectors.VARIANCE` as known."""
        panels, v = engine.problem.n_panels, engine.kept(vectors.VARIANCE)
        return cls(
            v,
            v,
            np.full(panels, np.inf),
            np.zeros(panels),
            np.full(panels, np.inf),
            np.broadcast_to(0.0, (engine.problem.n_questions,)),
        )

    def keep_in(self, engine: Engine) -> Certainty:
        """Let an engine keep variances that came from elsewhere."""
        engine.keep(vectors.VARIANCE, self.v)
        engine.keep(vectors.INTERVAL_VARIANCE, self.v_interval)
        engine.keep(vectors.GROSS, self.marks)
        return replace(self, interval=vectors.INTERVAL_VARIANCE, aside=vectors.GROSS)
