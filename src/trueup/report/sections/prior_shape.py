"""A fitted prior in the form in which it is drawn: normal components with names and shares."""

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

MOST_CENTRES = 400  # of a regression, which stand for all


@dataclass(frozen=True)
class NormalComponent:
    """A component of a prior: a share of the questions, normal with this mean and variance."""

    name: str
    share: float
    mean: float
    variance: float

    def density(self, values: Floats, noise: Floats) -> Floats:
        """Return the density at some values, averaged over the variances of the noise."""
        variance = np.maximum(self.variance + noise, np.finfo(float).tiny)[:, None]
        with np.errstate(over="ignore"):  # far from a narrow component the density is 0
            densities = np.exp(-0.5 * (values - self.mean) ** 2 / variance)
        mean: Floats = (densities / np.sqrt(2.0 * np.pi * variance)).mean(axis=0)
        return mean


@dataclass(frozen=True)
class PriorShape:
    """The prior distribution of the true values, on the scale on which answers were combined.

    Attributes
    ----------
    model : str
        "none", "normal", "mixture", "scale mixture", "groups", "group means", "regression", "linear" or "other".
    components : tuple of NormalComponent
        Its components; none where it has no density to chart_parts.
    """

    model: str
    components: tuple[NormalComponent, ...] = ()

    @property
    def mean(self) -> float:
        """Mean of the prior."""
        return float(sum(part.share * part.mean for part in self.components))

    @property
    def variance(self) -> float:
        """Variance of the prior."""
        mean = self.mean
        return float(
            sum(part.share * (part.variance + (part.mean - mean) ** 2) for part in self.components)
        )

    def density(self, values: Floats, noise: Floats) -> Floats:
        """Return the density of true values, or of aggregates whose noise has these variances."""
        total = np.zeros(len(values))
        for part in self.components:
            total += part.share * part.density(values, noise)
        return total


def prior_shape(est: Estimate) -> PriorShape:
    """Return the shape of the prior of a single problem."""
    prior = est.second_step.prior
    models = est.second_step.models
    model = models[0] if models else ""
    if isinstance(prior, AdaptivePrior):
        for alternative in prior.alternatives:
            shape = _components(est, alternative.prior, model)
            if shape is not None:
                return shape
        return _normal(prior.normal, model)
    if isinstance(prior, LinearPrior):
        return _linear(est, prior)
    return _normal(prior, model or "normal")


def _normal(prior: Prior | object, model: str) -> PriorShape:
    mu, tau2 = getattr(prior, "mu", None), getattr(prior, "tau2", None)
    if model == "none" or mu is None or tau2 is None or np.size(mu) != 1 or np.size(tau2) != 1:
        return PriorShape("none" if model == "none" else "other")
    mean, variance = float(np.ravel(mu)[0]), float(np.ravel(tau2)[0])
    if not np.isfinite([mean, variance]).all():
        return PriorShape("other")
    return PriorShape(model, (NormalComponent("", 1.0, mean, variance),))


def _linear(est: Estimate, prior: LinearPrior) -> PriorShape:
    """Read equation (1) as a normal prior: `b = v / (v + tau2)`."""
    b, v = float(prior.b[0]), float(np.mean(est.second_step.certainty.v))
    if b <= 0:
        return PriorShape("none")
    if b >= 1 or not (np.isfinite(v) and v > 0):  # no prior pulls past its centre
        return PriorShape("linear")
    tau2 = v * (1.0 - b) / b
    return PriorShape("linear", (NormalComponent("", 1.0, float(prior.centre[0]), tau2),))


def _components(est: Estimate, prior: object, model: str) -> PriorShape | None:
    """Return the shape of a prior with several components, None for any other."""
    match prior:
        case LocationMixture():
            units, nodes = prior.grid.units, prior.grid.nodes
            mean = (nodes.weight[0][:, None] * prior.grid.beta[0]).sum(axis=0)
            mu = units.centre[0] + units.unit[0] * mean
            tau2 = np.full(len(mu), units.unit[0] ** 2 * nodes.tau2[0])
            return _mixture(model, prior.pi[0], mu, tau2)
        case ScaleMixture():
            fitted = prior.components
            centre, unit = float(prior.units.centre[0]), float(prior.units.unit[0])
            mu = np.full(fitted.pi.shape[1], centre + unit * float(fitted.mu[0, 0]))
            return _mixture(model, fitted.pi[0], mu, unit**2 * fitted.tau2[0])
        case GroupPriors():
            names, share = _groups(est, prior.index.labels[prior.index.keys])
            return _mixture(model, share, prior.prior.mu, prior.prior.tau2, names)
        case GroupMeans():
            names, share = _groups(est, prior.index.labels[prior.index.keys])
            units, nodes = prior.grid.units, prior.grid.nodes
            mu = units.centre[0] + units.unit[0] * (prior.grid.beta * nodes.weight[0]).sum(axis=1)
            tau2 = np.full(len(mu), units.unit[0] ** 2 * nodes.tau2[0])
            return _mixture(model, share, mu, tau2, names)
        case Regression():
            unit = float(prior.grid.units.unit[0])
            return _regression(est, unit**2 * float(prior.grid.nodes.tau2[0]))
    return None


def _mixture(
    model: str, share: Floats, mu: Floats, tau2: Floats, names: list[str] | None = None
) -> PriorShape:
    order = np.argsort(mu, kind="stable")
    total = float(share.sum()) or 1.0
    components = [
        NormalComponent(
            names[k] if names else f"part {number}",
            float(share[k]) / total,
            float(mu[k]),
            float(tau2[k]),
        )
        for number, k in enumerate(order.tolist(), 1)
    ]
    return PriorShape(model, tuple(components))


def _groups(est: Estimate, numbers: Ints) -> tuple[list[str], Floats]:
    """Return names and sizes of groups that have a prior."""
    assert est.groups is not None  # noqa: S101  the prior was fitted with them
    codes = est.groups.codes
    sizes = np.bincount(codes[codes >= 0], minlength=len(est.groups.ids)).astype(np.float64)
    return distinct(est.groups.ids.tolist(numbers), 40), sizes[numbers]


def _regression(est: Estimate, tau2: float) -> PriorShape:
    """Return the shape of a regression; its centres follow from how the questions were moved."""
    x, posterior = est.aggregate.x, est.second_step.posterior
    pulled = np.flatnonzero(posterior.shrinkage > 1e-9)
    if len(pulled) == 0:
        return PriorShape("regression")
    count = min(len(pulled), MOST_CENTRES)
    chosen = pulled[np.linspace(0, len(pulled) - 1, count).astype(np.int64)]
    centre = x[chosen] + (posterior.mean[chosen] - x[chosen]) / posterior.shrinkage[chosen]
    components = (NormalComponent("", 1.0 / count, mean, tau2) for mean in centre.tolist())
    return PriorShape("regression", tuple(components))
