"""The best possible estimates: posterior means under the true prior, with known variances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trueup.datasets.simulate import CLUSTER_SD, CLUSTERS, REST_SD, TWO_POINTS, ZEROS

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.core.arrays import Floats


@dataclass(frozen=True)
class NormalMixture:
    """A prior of normal components; a component with standard deviation 0 is a point."""

    weights: tuple[float, ...]
    means: tuple[float, ...]
    sds: tuple[float, ...]

    def __call__(self, x: Floats, v: Floats) -> Floats:
        """Return the posterior means of aggregates `x` with variances `v`."""
        mu, tau2 = np.array(self.means)[:, None], np.array(self.sds)[:, None] ** 2
        total = v + tau2
        log = np.log(self.weights)[:, None] - 0.5 * (np.log(total) + (x - mu) ** 2 / total)
        probability = np.exp(log - log.max(axis=0))
        probability /= probability.sum(axis=0)
        means = mu + tau2 / total * (x - mu)
        result: Floats = (probability * means).sum(axis=0)
        return result


@dataclass(frozen=True)
class Exponential:
    """An exponential prior: the posterior is a normal distribution truncated at 0."""

    mean: float

    def __call__(self, x: Floats, v: Floats) -> Floats:
        """Return the posterior means of aggregates `x` with variances `v`."""
        from scipy.special import log_ndtr

        sd = np.sqrt(v)
        middle = x - v / self.mean
        z = middle / sd
        ratio = np.exp(-0.5 * z**2 - 0.5 * np.log(2.0 * np.pi) - log_ndtr(z))
        result: Floats = middle + sd * ratio
        return result


def normal(sd: float) -> NormalMixture:
    """Return the prior N(0, sd²)."""
    return NormalMixture((1.0,), (0.0,), (sd,))


#: The priors behind the simulated truths, by their names.
PRIORS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "constant": normal(0.0),
    "N(0, 0.09)": normal(0.3),
    "N(0, 1)": normal(1.0),
    "N(0, 25)": normal(5.0),
    "three clusters": NormalMixture((1 / 3,) * 3, CLUSTERS, (CLUSTER_SD,) * 3),
    "two points": NormalMixture((0.5, 0.5), TWO_POINTS, (0.0, 0.0)),
    "exponential": Exponential(2.0),
    "90% zero": NormalMixture((ZEROS, 1.0 - ZEROS), (0.0, 0.0), (0.0, REST_SD)),
}
