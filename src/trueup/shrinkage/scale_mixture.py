"""Scale mixtures: most true values close together and some far out.

    theta_j ~ pi_1 N(mu, tau2_1) + pi_2 N(mu, tau2_2)

taken as fitted, without averaging over their parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.shrinkage.expectation import scale_responsibilities
from trueup.shrinkage.quadrature import read_posterior
from trueup.shrinkage.tiles import CELLS

if TYPE_CHECKING:
    from trueup.core.arrays import Floats, Ints
    from trueup.shrinkage.contract import Posterior
    from trueup.shrinkage.expectation import Components
    from trueup.shrinkage.quadrature import Moved
    from trueup.shrinkage.tiles import Positions
    from trueup.shrinkage.units import PanelUnits


@dataclass(frozen=True, eq=False)
class ScaleMixture:
    """Scale mixtures as fitted: a common mean and two variances."""

    units: PanelUnits
    components: Components

    def posterior(
        self, x: Floats, v: Floats, *, panels: Ints | None = None, **extra: Any
    ) -> Posterior:
        entries = CELLS // int(self.components.pi.shape[1])
        return read_posterior(
            ScaleMixture.read, (self, self), self.units, x, v, panels, extra, entries=entries
        )

    def read(self, rows: Ints, positions: Positions, x: Floats, v: Floats) -> Moved:
        """Return mean, variance and shrinkage of questions, panels x questions."""
        t, u = self.units.standardise(rows, x, v)
        mean, variance, shrinkage = scale_posterior(t, u, self.components.rows(rows))
        return *self.units.restore(rows, mean, variance), shrinkage

    def membership(self, rows: Ints, x: Floats, v: Floats) -> Floats:
        """Return the soft partition, panels x components x questions."""
        some = self.components.rows(rows)
        t, u = self.units.standardise(rows, x, v)
        return scale_responsibilities(t, u, some.pi, some.mu, some.tau2)[0]


def scale_posterior(t: Floats, u: Floats, components: Components) -> Moved:
    """Return mean, variance and shrinkage of questions, in units of the panels."""
    tau2 = components.tau2
    r, w, _ = scale_responsibilities(t, u, components.pi, components.mu, tau2)
    b = u[:, None, :] * w
    keep = tau2[:, :, None] * w
    e = keep * t[:, None, :] + b * components.mu[:, :1, None]
    mean = (r * e).sum(axis=1)
    variance = (r * (u[:, None, :] * keep + (e - mean[:, None, :]) ** 2)).sum(axis=1)
    return mean, variance, np.minimum((r * b).sum(axis=1), 1.0)
