"""A normal prior for every panel, or an alternative in its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from trueup.shrinkage.contract import Panels, Prior
from trueup.shrinkage.panel_data import PanelData

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.core.arrays import Floats, Ints
    from trueup.shrinkage.contract import Posterior
    from trueup.shrinkage.normal import QuadraturePrior


@runtime_checkable
class MixturePrior(Prior, Protocol):
    """A prior with components that a question belongs to with some probability."""

    def membership(self, rows: Ints, x: Floats, v: Floats) -> Floats:
        """Return the probabilities, panels x components x questions."""
        ...


@dataclass(frozen=True, eq=False)
class Alternative:
    """A prior that takes the place of the normal one in some panels.

    Its `posterior` gets a keyword `common`, the posterior by the normal prior.
    """

    model: str
    panels: Ints
    prior: Prior


@dataclass(frozen=True)
class PriorChoice:
    """Which prior held-out workers chose for a single problem, so that it need not be chosen again soon.

    Attributes
    ----------
    model : str
        See `AdaptivePrior`.
    components : int
        Components of a location mixture, otherwise 0.
    log_tau2 : float or None
        Where the variance of such a mixture was found, see `LocationMixture`.
    gain, z : float
        See `AdaptivePrior`.
    answers, changed : int
        Number of answers when it was chosen, and how many were added or replaced since.
    """

    model: str
    components: int
    log_tau2: float | None
    gain: float
    z: float
    answers: int
    changed: int = 0

    @classmethod
    def of(cls, prior: object, answers: int) -> PriorChoice | None:
        """Read it from the prior of a single problem with so many answers; None if there was no such choice."""
        if not isinstance(prior, AdaptivePrior) or not prior.chosen or len(prior.model) != 1:
            return None
        model, components, log_tau2 = str(prior.model[0]), 0, None
        if model == "mixture":
            mixture: Any = prior.alternatives[0].prior
            components, log_tau2 = int(mixture.pi.shape[1]), mixture.log_tau2
        return cls(model, components, log_tau2, float(prior.gain[0]), float(prior.z[0]), answers)


@dataclass(frozen=True, eq=False)
class AdaptivePrior:
    """A normal prior, or an alternative that took its place.

    Attributes
    ----------
    normal : QuadraturePrior
        The normal prior of each panel.
    alternatives : list of Alternative
        The priors in its place; no panel has two.
    gain, z : arrays
        Gain of the best alternative on held-out workers, and how many standard errors that is. NaN where none was
        tried.
    chosen : bool
        Whether held-out workers chose, by a rule that accepts their earlier choice (`PriorChoice`).
    """

    normal: QuadraturePrior
    alternatives: list[Alternative]
    gain: Floats
    z: Floats
    chosen: bool = False

    @property
    def model(self) -> NDArray[np.str_]:
        """The prior of each panel.

        "none", "normal", "mixture", "scale mixture", "groups", "group means" or "regression".
        """
        model = self.normal.model.astype("<U16")
        for alternative in self.alternatives:
            model[alternative.panels] = alternative.model
        return model

    def posterior(
        self, x: Floats, v: Floats, *, panels: Ints | None = None, **extra: Any
    ) -> Posterior:
        """Move the aggregates of each panel by its prior."""
        by_panel, x, v = Panels.of(x, v, panels)
        starts, priors = by_panel.starts, [part.prior for part in self.alternatives]
        if len(priors) == len(starts) - 1 == 1 and isinstance(priors[0], MixturePrior):
            # A mixture of the only panel has no use for the normal posterior.
            return priors[0].posterior(x, v, panels=starts, **extra)
        common = self.normal.posterior(x, v, panels=starts, **extra)
        if not priors:
            return common
        data = PanelData.of(x, v, starts, extra)
        for alternative in self.alternatives:
            positions = data.positions(alternative.panels)
            some = data.panels(alternative.panels)
            moved = some.posterior(alternative.prior, common.take(positions))
            common = common.replaced(positions, moved)
        return common

    def partition(
        self, x: Floats, v: Floats, *, panels: Ints | None = None, **extra: Any
    ) -> list[Floats | None]:
        """Return the soft partition of the questions of each panel, questions x parts.

        None for panels with neither a mixture nor groups. For groups the parts are the labels in ascending order; a
        question without a group belongs to no part.
        """
        by_panel, x, v = Panels.of(x, v, panels)
        result: list[Floats | None] = [None] * len(by_panel.sizes)
        for alternative in self.alternatives:
            for number, row in enumerate(alternative.panels.tolist()):
                here = slice(int(by_panel.starts[row]), int(by_panel.starts[row + 1]))
                if isinstance(alternative.prior, MixturePrior):
                    parts = alternative.prior.membership(np.array([number]), x[here], v[here])
                    result[row] = parts[0].T
                elif alternative.model.startswith("group"):
                    labels = np.asarray(extra["groups"], dtype=np.int64)[here]
                    result[row] = (labels[:, None] == np.unique(labels[labels >= 0])).astype(float)
        return result
