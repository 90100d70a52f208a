"""A fitted prior as what can be drawn and said: bells of true values, with names and shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trueup.report.names import distinct
from trueup.shrinkage import AdaptivePrior, LinearPrior
from trueup.shrinkage.groups import GroupMeans, GroupPriors
from trueup.shrinkage.location_mixture import LocationMixture
from trueup.shrinkage.regression import Regression
from trueup.shrinkage.scale_mixture import ScaleMixture

if TYPE_CHECKING:
    from trueup.core.arrays import Floats, Ints
    from trueup.result.estimate import Estimate
    from trueup.shrinkage import Prior

MANY = 400  # centres of a regression that stand for all


@dataclass(frozen=True)
class Bell:
    """A part of a prior: a share of the questions, normal with this mean and variance."""

    name: str
    share: float
    mean: float
    variance: float


@dataclass(frozen=True)
class Belief:
    """What was believed of the true values, on the scale on which answers were combined.

    Attributes
    ----------
    model : str
        "none", "normal", "mixture", "scale mixture", "groups", "group means", "regression", "linear" or "other".
    bells : tuple of Bell
        Its parts; none where it has no density to draw.
    """

    model: str
    bells: tuple[Bell, ...] = ()

    @property
    def mean(self) -> float:
        """Mean of the prior."""
        return float(sum(bell.share * bell.mean for bell in self.bells))

    @property
    def variance(self) -> float:
        """Variance of the prior."""
        apart = sum(
            bell.share * (bell.variance + (bell.mean - self.mean) ** 2) for bell in self.bells
        )
        return float(apart)

    def density(self, at: Floats, noise: Floats) -> Floats:
        """Return the density of true values, or of aggregates whose noise has these variances."""
        total = np.zeros(len(at))
        for bell in self.bells:
            total += bell.share * bell_density(bell, at, noise)
        return total


def bell_density(bell: Bell, at: Floats, noise: Floats) -> Floats:
    """Return the density of one part, averaged over the variances of the noise."""
    variance = np.maximum(bell.variance + noise, np.finfo(float).tiny)[:, None]
    each = np.exp(-0.5 * (at - bell.mean) ** 2 / variance) / np.sqrt(2.0 * np.pi * variance)
    density: Floats = each.mean(axis=0)
    return density


def believed(est: Estimate) -> Belief:
    """Read the prior of a single problem."""
    prior = est.second_step.prior
    models = est.second_step.models
    model = models[0] if models else ""
    if isinstance(prior, AdaptivePrior):
        for alternative in prior.alternatives:
            found = _alternative(est, alternative.prior, model)
            if found is not None:
                return found
        return _normal(prior.normal, model)
    if isinstance(prior, LinearPrior):
        return _linear(est, prior)
    return _normal(prior, model or "normal")


def _normal(prior: Prior | object, model: str) -> Belief:
    mu, tau2 = getattr(prior, "mu", None), getattr(prior, "tau2", None)
    if model == "none" or mu is None or tau2 is None or np.size(mu) != 1 or np.size(tau2) != 1:
        return Belief("none" if model == "none" else "other")
    mean, variance = float(np.ravel(mu)[0]), float(np.ravel(tau2)[0])
    if not np.isfinite([mean, variance]).all():
        return Belief("other")
    return Belief(model, (Bell("", 1.0, mean, variance),))


def _linear(est: Estimate, prior: LinearPrior) -> Belief:
    """Read equation (1) as a normal prior: `b = v / (v + tau2)`."""
    b, v = float(prior.b[0]), float(np.mean(est.second_step.certainty.v))
    if b <= 0:
        return Belief("none")
    if b >= 1 or not (np.isfinite(v) and v > 0):  # no prior pulls past its centre
        return Belief("linear")
    tau2 = v * (1.0 - b) / b
    return Belief("linear", (Bell("", 1.0, float(prior.centre[0]), tau2),))


def _alternative(est: Estimate, prior: object, model: str) -> Belief | None:
    """Read a prior with parts."""
    match prior:
        case LocationMixture():
            units, nodes = prior.grid.units, prior.grid.nodes
            mean = (nodes.weight[0][:, None] * prior.grid.beta[0]).sum(axis=0)
            mu = units.centre[0] + units.unit[0] * mean
            tau2 = np.full(len(mu), units.unit[0] ** 2 * nodes.tau2[0])
            return _parts(model, prior.pi[0], mu, tau2)
        case ScaleMixture():
            parts = prior.components
            centre, unit = float(prior.units.centre[0]), float(prior.units.unit[0])
            mu = np.full(parts.pi.shape[1], centre + unit * float(parts.mu[0, 0]))
            return _parts(model, parts.pi[0], mu, unit**2 * parts.tau2[0])
        case GroupPriors():
            names, share = _groups(est, prior.index.labels[prior.index.keys])
            return _parts(model, share, prior.prior.mu, prior.prior.tau2, names)
        case GroupMeans():
            names, share = _groups(est, prior.index.labels[prior.index.keys])
            units, nodes = prior.grid.units, prior.grid.nodes
            mu = units.centre[0] + units.unit[0] * (prior.grid.beta * nodes.weight[0]).sum(axis=1)
            tau2 = np.full(len(mu), units.unit[0] ** 2 * nodes.tau2[0])
            return _parts(model, share, mu, tau2, names)
        case Regression():
            unit = float(prior.grid.units.unit[0])
            return _around(est, unit**2 * float(prior.grid.nodes.tau2[0]))
    return None


def _parts(
    model: str, share: Floats, mu: Floats, tau2: Floats, names: list[str] | None = None
) -> Belief:
    order = np.argsort(mu, kind="stable")
    total = float(share.sum()) or 1.0
    bells = [
        Bell(
            names[k] if names else f"part {number}",
            float(share[k]) / total,
            float(mu[k]),
            float(tau2[k]),
        )
        for number, k in enumerate(order.tolist(), 1)
    ]
    return Belief(model, tuple(bells))


def _groups(est: Estimate, numbers: Ints) -> tuple[list[str], Floats]:
    """Return names and sizes of groups that have a prior."""
    assert est.groups is not None  # noqa: S101  the prior was fitted with them
    codes = est.groups.codes
    sizes = np.bincount(codes[codes >= 0], minlength=len(est.groups.ids)).astype(np.float64)
    return distinct(est.groups.ids.tolist(numbers), 40), sizes[numbers]


def _around(est: Estimate, tau2: float) -> Belief:
    """Read the centres of a regression from how the questions were moved."""
    x, posterior = est.aggregate.x, est.second_step.posterior
    pulled = np.flatnonzero(posterior.shrinkage > 1e-9)
    if len(pulled) == 0:
        return Belief("regression")
    at = pulled[np.linspace(0, len(pulled) - 1, min(len(pulled), MANY)).astype(np.int64)]
    centre = x[at] + (posterior.mean[at] - x[at]) / posterior.shrinkage[at]
    share = 1.0 / len(at)
    return Belief("regression", tuple(Bell("", share, mean, tau2) for mean in centre.tolist()))
