"""A mixture of normal priors where the aggregates of a panel prefer one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.shrinkage.adaptive_prior import AdaptivePrior, Alternative
from trueup.shrinkage.contract import Panels
from trueup.shrinkage.location_mixture import LocationMixture
from trueup.shrinkage.mixture_search import SCALE_MIXTURE, choose
from trueup.shrinkage.normal import CautiousRule, Normal
from trueup.shrinkage.panel_data import PanelData
from trueup.shrinkage.scale_mixture import ScaleMixture

if TYPE_CHECKING:
    from trueup.core.arrays import Floats, Ints
    from trueup.shrinkage.mixture_search import PreferredMixtures


def fit_mixtures(
    data: PanelData, preferred: PreferredMixtures, panels: Ints, near: float | None = None
) -> list[Alternative]:
    """Fit the mixtures that some panels prefer, those of one kind together; see `LocationMixture.fit` for `near`."""
    mixtures = []
    for rows in preferred.by_kind(panels):
        units, components = preferred.of(rows)
        if preferred.kind[rows[0]] == SCALE_MIXTURE:
            mixtures.append(Alternative("scale mixture", rows, ScaleMixture(units, components)))
        else:
            prior = LocationMixture.fit(data.panels(rows), units, components, near)
            mixtures.append(Alternative("mixture", rows, prior))
    return mixtures


@dataclass(frozen=True)
class Mixture(CautiousRule):
    """A mixture where the criterion prefers one, the normal prior elsewhere.

    No workers are held out to check whether the mixture helps; `Adaptive` does that.

    Parameters
    ----------
    caution : float
        Share of the step of the normal prior that is taken, see `Normal`.
    """

    name = "mixture"
    variance = "moderated"

    def fit(
        self, x: Floats, v: Floats, *, panels: Ints | None = None, **extra: Any
    ) -> AdaptivePrior:
        by_panel, x, v = Panels.of(x, v, panels)
        normal = Normal(self.caution).fit(x, v, panels=by_panel.starts, **extra)
        data = PanelData.of(x, v, by_panel.starts, {})
        every = np.arange(len(normal.usable))
        mixtures = fit_mixtures(data, choose(data), every)
        untried = np.full(len(every), np.nan)
        return AdaptivePrior(normal, mixtures, untried, untried)
