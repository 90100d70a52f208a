"""The rule that decides by itself: a normal prior, and a bolder one where held-out workers show that it helps.

A mixture, groups or a regression gain much where what they assume holds, and do harm where answers are skewed or
spread more where they are larger. So each has to predict workers that it has not seen better than the normal prior
does (`earn`). Of those whose gain is beyond chance the one with the largest gain takes its place. Where that was seen
from nearly the same answers before it is told (`PriorChoice`), and fitted without another trial.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.core.arrays import expand, offsets
from trueup.shrinkage.adaptive_prior import AdaptivePrior, Part, check_groups
from trueup.shrinkage.contract import Panels, ShrinkRule
from trueup.shrinkage.groups import OwnMeans, OwnPriors
from trueup.shrinkage.holdout import HoldoutScore, HoldoutTrial
from trueup.shrinkage.mixture import ONE, SCALE, choose, named_mixtures
from trueup.shrinkage.normal import CAUTION, Normal, check_caution
from trueup.shrinkage.quadrature import interval_variance, per_panel
from trueup.shrinkage.regression import Regression, check_covariates

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.core.arrays import Bools, Floats, Ints
    from trueup.shrinkage.adaptive_prior import PriorChoice
    from trueup.shrinkage.contract import Halves
    from trueup.shrinkage.normal import QuadraturePrior

BEYOND_CHANCE = 1.5  # standard errors of the gain


@dataclass(frozen=True, eq=False)
class _Questions:
    """What is known of all questions."""

    x: Floats
    v: Floats
    v_interval: Floats | None
    panels: Ints
    nu: Floats | None
    groups: Ints | None
    covariates: Floats | None

    def of(self, rows: Ints) -> _Questions:
        """Return the questions of some panels."""
        sizes = np.diff(self.panels)[rows]
        at = expand(self.panels[rows], sizes)
        return _Questions(
            self.x[at],
            self.v[at],
            None if self.v_interval is None else self.v_interval[at],
            offsets(sizes),
            None if self.nu is None else self.nu[rows],
            None if self.groups is None else self.groups[at],
            None if self.covariates is None else self.covariates[at],
        )


@dataclass(frozen=True)
class Adaptive(ShrinkRule):
    """A normal prior, or a mixture, groups or a regression where they predict held-out workers better.

    Without `halves` it is the normal prior. Groups and covariates are tried where they are given.

    Parameters
    ----------
    caution : float
        Share of the step of the normal prior that is taken, see `Normal`. An alternative prior takes its full step.
    """

    caution: float = CAUTION

    name = "adaptive"
    variance = "moderated"
    needs_holdout = True

    def __post_init__(self) -> None:
        check_caution(self.caution)

    def fit(
        self, x: Floats, v: Floats, *, panels: Ints | None = None, **known: Any
    ) -> AdaptivePrior:
        by_panel, x, v = Panels.of(x, v, panels)
        normal = Normal(self.caution).fit(x, v, panels=by_panel.starts, **known)
        model = normal.model.astype("<U16")
        nothing = np.full(len(model), np.nan)
        before: PriorChoice | None = known.get("prior_choice")
        if before is not None:
            return _as_before(normal, _gather(x, v, by_panel.starts, known), before)
        halves: Halves | None = known.get("halves")
        if halves is None:
            return AdaptivePrior(normal, [], model, nothing, nothing)
        questions = _gather(x, v, by_panel.starts, known)
        gain, z, parts = nothing.copy(), nothing.copy(), []
        scores, fits = _try_all(questions, halves, normal.usable)
        if scores:
            gains = np.stack([score.gain for score in scores])
            zs = np.stack([score.z for score in scores])
            beyond = np.where(zs > BEYOND_CHANCE, gains, -np.inf)
            # Where none is beyond chance, report the one that came closest.
            best = np.where(
                np.isfinite(beyond).any(axis=0),
                beyond.argmax(axis=0),
                np.where(np.isnan(gains), -np.inf, gains).argmax(axis=0),
            )
            row = np.arange(len(model))
            gain, z = gains[best, row], zs[best, row]
            for number, fit in enumerate(fits):
                mine = np.flatnonzero((best == number) & (z > BEYOND_CHANCE) & (gain > 0))
                for name, part in fit(mine):
                    model[part.rows] = name
                    parts.append(part)
        return AdaptivePrior(normal, parts, model, gain, z, chosen=True)


def _as_before(
    normal: QuadraturePrior, questions: _Questions, choice: PriorChoice
) -> AdaptivePrior:
    """Fit the prior that was chosen before."""
    model, rows = normal.model.astype("<U16"), np.flatnonzero(normal.usable)
    found: list[tuple[str, Part]] = []
    if choice.model in ("mixture", "scale mixture"):
        here = (questions.x, questions.v, questions.panels)
        chosen = choose(*here, choice.components if choice.model == "mixture" else SCALE)
        found = named_mixtures(*here, chosen, rows, choice.log_tau2)
    elif choice.model in ("groups", "group means", "regression"):
        found = _fitter(questions, choice.model)(rows)
    for name, part in found:
        model[part.rows] = name
    gain, z = (np.full(len(model), each) for each in (choice.gain, choice.z))
    return AdaptivePrior(normal, [part for _, part in found], model, gain, z, chosen=True)


def _gather(x: Floats, v: Floats, panels: Ints, known: dict[str, Any]) -> _Questions:
    """Check what is known and bring it into one shape."""
    nu, groups, covariates = (known.get(name) for name in ("nu", "groups", "covariates"))
    v_interval = interval_variance(v, known.get("v_interval"))
    return _Questions(
        x,
        v,
        None if v_interval is v else v_interval,
        panels,
        None if nu is None else per_panel(nu, len(panels) - 1, "nu"),
        None if groups is None else check_groups(groups, len(x)),
        None if covariates is None else check_covariates(covariates, len(x)),
    )


def _try_all(
    questions: _Questions, halves: Halves, usable: Bools
) -> tuple[list[HoldoutScore], list[Callable[[Ints], list[tuple[str, Part]]]]]:
    """Return how each bolder prior did, and what fits it to all data of some panels."""
    chosen = choose(questions.x, questions.v, questions.panels)
    groups, covariates = questions.groups, questions.covariates
    more = groups is not None or covariates is not None
    rows = np.flatnonzero(usable & ((chosen.kind != ONE) | more))
    trial = HoldoutTrial.of(halves, questions.panels, rows) if len(rows) else None
    scores: list[HoldoutScore] = []
    fits: list[Callable[[Ints], list[tuple[str, Part]]]] = []
    if trial is None:
        return scores, fits
    if (chosen.kind[rows] != ONE).any():
        scores.append(trial.score(trial.mixtures(chosen)))
        here = (questions.x, questions.v, questions.panels)
        fits.append(lambda mine: named_mixtures(*here, chosen, mine))
    for name, kind in (("groups", OwnPriors), ("group means", OwnMeans)):
        if groups is None:
            break
        prior = kind.fit(trial.x, trial.v, trial.panels, groups[trial.question])
        if prior is not None:
            found = prior.posterior(
                trial.x,
                trial.v,
                panels=trial.panels,
                groups=groups[trial.question],
                common=trial.normal,
            )
            scores.append(trial.score(found.mean))
            fits.append(_fitter(questions, name))
    if covariates is not None:
        z = covariates[trial.question]
        plane = Regression.fit(trial.x, trial.v, trial.panels, z)
        if plane is not None:
            found = plane.posterior(trial.x, trial.v, panels=trial.panels, covariates=z)
            length = np.diff(trial.panels)
            fitted = np.repeat(plane.grid.scale.usable, length)
            scores.append(trial.score(np.where(fitted, found.mean, trial.normal.mean)))
            fits.append(_fitter(questions, "regression"))
    return scores, fits


def _fitter(questions: _Questions, name: str) -> Callable[[Ints], list[tuple[str, Part]]]:
    """Return what fits groups or a regression to all data of some panels."""

    def fit(mine: Ints) -> list[tuple[str, Part]]:
        if len(mine) == 0:
            return []
        some = questions.of(mine)
        here = (some.x, some.v, some.panels)
        prior: OwnPriors | OwnMeans | Regression | None = None
        if name == "regression" and some.covariates is not None:
            prior = Regression.fit(*here, some.covariates, nu=some.nu, v_interval=some.v_interval)
        elif some.groups is not None:
            kind = OwnPriors if name == "groups" else OwnMeans
            prior = kind.fit(*here, some.groups, nu=some.nu, v_interval=some.v_interval)
        return [] if prior is None else [(name, Part(mine, prior))]

    return fit
