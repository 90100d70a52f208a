"""A normal prior for every panel, or a bolder one in its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from trueup.core.arrays import expand, offsets
from trueup.errors import TrueupError
from trueup.shrinkage.contract import Panels, Posterior
from trueup.shrinkage.regression import check_covariates

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.core.arrays import Floats, Ints
    from trueup.shrinkage.normal import QuadraturePrior


class Bold(Protocol):
    """A prior of some panels. `known` has `common`, the posterior by the normal prior, besides what is usual."""

    def posterior(
        self, x: Floats, v: Floats, *, panels: Ints | None = None, **known: Any
    ) -> Posterior: ...


@runtime_checkable
class Soft(Protocol):
    """A prior with parts that a question belongs to with some probability."""

    def belongs(self, rows: Ints, x: Floats, v: Floats) -> Floats:
        """Return the probabilities, panels x parts x questions."""
        ...


@dataclass(frozen=True, eq=False)
class Part:
    """A bolder prior and the panels that have it."""

    rows: Ints
    prior: Bold


@dataclass(frozen=True)
class PriorChoice:
    """Which prior a single problem was given, so that it need not earn its place again after a few more answers.

    Attributes
    ----------
    model : str
        See `AdaptivePrior`.
    components : int
        Components of a mixture, 0 for all else.
    log_tau2 : float or None
        Where the variance of such a mixture was found, see `LocationMixture`.
    gain, z : float
        See `AdaptivePrior`.
    answers, changed : int
        Answers there were when it was chosen, and how many were added or replaced since.
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
        """Take it from the prior of a single problem with so many answers; None if there was no such choice."""
        if not isinstance(prior, AdaptivePrior) or not prior.chosen or len(prior.model) != 1:
            return None
        model, components, log_tau2 = str(prior.model[0]), 0, None
        if model == "mixture":
            mixture: Any = prior.parts[0].prior
            components, log_tau2 = int(mixture.pi.shape[1]), mixture.log_tau2
        return cls(model, components, log_tau2, float(prior.gain[0]), float(prior.z[0]), answers)


@dataclass(frozen=True, eq=False)
class AdaptivePrior:
    """A normal prior, or a bolder one that took its place.

    Attributes
    ----------
    normal : QuadraturePrior
        The normal prior of each panel.
    parts : list of Part
        The bolder priors; no panel has two.
    model : array of str
        For each panel "none", "normal", "mixture", "scale mixture", "groups", "group means" or "regression".
    gain, z : arrays
        What the best bolder prior gained on held-out workers, and how many standard errors that is. NaN where none was
        tried.
    chosen : bool
        Whether held-out workers had a say, by a rule that can be told of their choice (`PriorChoice`).
    """

    normal: QuadraturePrior
    parts: list[Part]
    model: NDArray[np.str_]
    gain: Floats
    z: Floats
    chosen: bool = False

    def posterior(
        self, x: Floats, v: Floats, *, panels: Ints | None = None, **known: Any
    ) -> Posterior:
        """Move the aggregates of each panel by the prior that it has."""
        by_panel, x, v = Panels.of(x, v, panels)
        if len(self.parts) == len(by_panel.sizes) == 1 and isinstance(self.parts[0].prior, Soft):
            # A mixture of the only panel does not ask what the normal prior would have said.
            return self.parts[0].prior.posterior(x, v, panels=by_panel.starts, **known)
        common = self.normal.posterior(x, v, panels=by_panel.starts, **known)
        if not self.parts:
            return common
        known = _per_question(known, len(x))
        for part in self.parts:
            sizes = np.diff(by_panel.starts)[part.rows]
            at = expand(by_panel.starts[part.rows], sizes)
            old = Posterior(common.mean[at], common.variance[at], common.shrinkage[at])
            here = {name: value[at] for name, value in known.items()}
            new = part.prior.posterior(x[at], v[at], panels=offsets(sizes), common=old, **here)
            common.mean[at], common.variance[at] = new.mean, new.variance
            common.shrinkage[at] = new.shrinkage
        return common

    def partition(
        self, x: Floats, v: Floats, *, panels: Ints | None = None, **known: Any
    ) -> list[Floats | None]:
        """Return the soft partition of the questions of each panel, questions x parts.

        None where no mixture and no groups have their place. Of groups the parts are the labels in ascending order; a
        question without a group belongs to no part.
        """
        by_panel, x, v = Panels.of(x, v, panels)
        result: list[Floats | None] = [None] * len(by_panel.sizes)
        for part in self.parts:
            for number, row in enumerate(part.rows.tolist()):
                here = slice(int(by_panel.starts[row]), int(by_panel.starts[row + 1]))
                if isinstance(part.prior, Soft):
                    one = np.array([number])
                    result[row] = part.prior.belongs(one, x[None, here], v[None, here])[0].T
                elif self.model[row].startswith("group"):
                    labels = np.asarray(known["groups"], dtype=np.int64)[here]
                    result[row] = (labels[:, None] == np.unique(labels[labels >= 0])).astype(float)
        return result


def _per_question(known: dict[str, Any], count: int) -> dict[str, Any]:
    """Return what is known of each question as arrays with one row per question."""
    result: dict[str, Any] = {}
    if known.get("v_interval") is not None:
        result["v_interval"] = np.broadcast_to(known["v_interval"], (count,))
    groups = known.get("groups")
    if groups is None:
        result["groups"] = np.full(count, -1)
    else:
        result["groups"] = check_groups(groups, count)
    if known.get("covariates") is not None:
        result["covariates"] = check_covariates(known["covariates"], count)
    return result


def check_groups(groups: object, questions: int) -> Ints:
    """Return the number of the group of each question."""
    labels = np.asarray(groups)
    if labels.shape != (questions,) or labels.dtype.kind not in "iu":
        raise TrueupError(f"groups: expected {questions} whole numbers, one for each question.")
    return labels.astype(np.int64, copy=False)
