"""The default rule: a normal prior, or an alternative where held-out workers show that it helps.

A mixture, groups or a regression gain much where their assumptions hold, and do harm where answers are skewed or spread
more where they are larger. So each has to predict workers that it has not seen better than the normal prior does
(`HoldoutTrial`). Of those whose gain is beyond chance the one with the largest gain is taken. A choice that was made
before from nearly the same answers (`PriorChoice`) is fitted without another trial.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.shrinkage.adaptive_prior import AdaptivePrior, Alternative
from trueup.shrinkage.condense import MANY
from trueup.shrinkage.contract import Panels
from trueup.shrinkage.groups import GroupMeans, GroupPriors
from trueup.shrinkage.holdout import HoldoutTrial
from trueup.shrinkage.mixture import fit_mixtures
from trueup.shrinkage.mixture_search import ONE_NORMAL, SCALE_MIXTURE, choose
from trueup.shrinkage.normal import CautiousRule, Normal
from trueup.shrinkage.panel_data import PanelData
from trueup.shrinkage.regression import Regression

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.core.arrays import Bools, Floats, Ints
    from trueup.shrinkage.adaptive_prior import PriorChoice
    from trueup.shrinkage.contract import Halves
    from trueup.shrinkage.holdout import HoldoutScore

BEYOND_CHANCE = 1.5  # standard errors of the gain
#: Of many questions of one panel so many splits are tried first; they decide alone where the gain exceeds so many
#: standard errors.
FIRST_SPLITS, DECISIVE = 2, 6.0
#: Alternatives besides mixtures, in the order in which they are tried.
ALTERNATIVES: dict[str, type[GroupPriors | GroupMeans | Regression]] = {
    "groups": GroupPriors,
    "group means": GroupMeans,
    "regression": Regression,
}


@dataclass(frozen=True)
class Adaptive(CautiousRule):
    """A normal prior, or a mixture, groups or a regression where they predict held-out workers better.

    Without `halves` it is the normal prior. Groups and covariates are tried where they are given.

    Parameters
    ----------
    caution : float
        Share of the step of the normal prior that is taken, see `Normal`. An alternative takes its full step.
    """

    name = "adaptive"
    variance = "moderated"
    needs_holdout = True

    def fit(
        self, x: Floats, v: Floats, *, panels: Ints | None = None, **extra: Any
    ) -> AdaptivePrior:
        by_panel, x, v = Panels.of(x, v, panels)
        normal = Normal(self.caution).fit(x, v, panels=by_panel.starts, **extra)
        choice: PriorChoice | None = extra.get("prior_choice")
        halves: Halves | None = extra.get("halves")
        gain = z = np.full(len(normal.usable), np.nan)
        if choice is None and halves is None:
            return AdaptivePrior(normal, [], gain, z)
        data = PanelData.of(x, v, by_panel.starts, extra)
        alternatives: list[Alternative] = []
        if choice is not None:
            gain, z = (np.full(len(gain), number) for number in (choice.gain, choice.z))
            alternatives = _fit_choice(data, choice, np.flatnonzero(normal.usable))
        elif halves is not None and (candidates := _try_all(data, halves, normal.usable)):
            gains = np.stack([score.gain for score, _ in candidates])
            zs = np.stack([score.z for score, _ in candidates])
            beyond = np.where(zs > BEYOND_CHANCE, gains, -np.inf)
            # Where none is beyond chance, report the one that came closest.
            best = np.where(
                np.isfinite(beyond).any(axis=0),
                beyond.argmax(axis=0),
                np.where(np.isnan(gains), -np.inf, gains).argmax(axis=0),
            )
            every = np.arange(len(best))
            gain, z = gains[best, every], zs[best, every]
            taken = (z > BEYOND_CHANCE) & (gain > 0)
            for number, (_, fit) in enumerate(candidates):
                alternatives += fit(np.flatnonzero((best == number) & taken))
        return AdaptivePrior(normal, alternatives, gain, z, chosen=True)


def _fit_choice(data: PanelData, choice: PriorChoice, panels: Ints) -> list[Alternative]:
    """Fit the prior that was chosen before."""
    if choice.model in ("mixture", "scale mixture"):
        kind = choice.components if choice.model == "mixture" else SCALE_MIXTURE
        return fit_mixtures(data, choose(data, kind), panels, choice.log_tau2)
    return _fit(data, choice.model, panels) if choice.model in ALTERNATIVES else []


def _try_all(
    data: PanelData, halves: Halves, usable: Bools
) -> list[tuple[HoldoutScore, Callable[[Ints], list[Alternative]]]]:
    """Return how each alternative did on held-out workers, and a function that fits it to all data of some panels."""
    preferred = choose(data)
    more = data.groups is not None or data.covariates is not None
    panels = np.flatnonzero(usable & ((preferred.kind != ONE_NORMAL) | more))
    candidates: list[tuple[HoldoutScore, Callable[[Ints], list[Alternative]]]] = []
    if len(panels) == len(usable) == 1 and not more and len(data.x) >= MANY:
        trial = HoldoutTrial.of(halves.first(FIRST_SPLITS), data, panels)
        if trial is not None:
            score = trial.score(trial.mixtures(preferred))
            if (np.abs(score.z[panels]) > DECISIVE).all():
                return [(score, partial(fit_mixtures, data, preferred))]
    trial = HoldoutTrial.of(halves, data, panels) if len(panels) else None
    if trial is None:
        return candidates
    if (preferred.kind[panels] != ONE_NORMAL).any():
        score = trial.score(trial.mixtures(preferred))
        candidates.append((score, partial(fit_mixtures, data, preferred)))
    for model, kind in ALTERNATIVES.items():
        prior = kind.fit(trial.data)
        if prior is not None:
            predicted = trial.data.posterior(prior, trial.normal).mean
            candidates.append((trial.score(predicted), partial(_fit, data, model)))
    return candidates


def _fit(data: PanelData, model: str, panels: Ints) -> list[Alternative]:
    """Fit groups or a regression to all data of some panels."""
    prior = ALTERNATIVES[model].fit(data.panels(panels)) if len(panels) else None
    return [] if prior is None else [Alternative(model, panels, prior)]
