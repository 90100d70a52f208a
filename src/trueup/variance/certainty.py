"""How sure a first step is of each question, and how sure that is itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from trueup.answers import Answers
    from trueup.arrays import Bools, Floats


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
    gross : array
        Questions that were set aside for their variance.
    """

    v: Floats
    v_interval: Floats
    nu: Floats
    shift: Floats
    shift_nu: Floats
    gross: Bools

    @classmethod
    def plain(cls, v: Floats, answers: Answers) -> Certainty:
        """Take variances as known."""
        panels = answers.n_panels
        return cls(
            v,
            v,
            np.full(panels, np.inf),
            np.zeros(panels),
            np.full(panels, np.inf),
            np.zeros(len(v), dtype=bool),
        )
