"""Normal priors around any linear centre as sums over a fine grid: a slow reference for the quadrature."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.stats import chi2

from trueup.shrinkage.panel_data import PanelData

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.shrinkage import Posterior

    Floats = NDArray[np.float64]

QUADRATURE = 2e-4  # error that 40 points may leave, in standard errors


def data(seed: int, m: int, *, spread: float = 1.0) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    v = rng.uniform(0.1, 1.0, m)
    return rng.normal(2.0, spread, m) + np.sqrt(v) * rng.standard_normal(m), v


def panel_data(x: Floats, v: Floats, starts: NDArray[np.int64], **extra: Any) -> PanelData:
    return PanelData.of(x, v, starts, extra)


class PlainPosterior(NamedTuple):
    mean: Floats
    variance: Floats
    shrinkage: Floats


def plain(
    x: Floats,
    v: Floats,
    z: Floats | None = None,
    nu: float | None = None,
    ends: tuple[float, float] = (-25.0, 14.0),
    points: int = 1500,
) -> PlainPosterior:
    """Sum over a fine grid of tau2 for each c, with covariates z: an intercept, groups or a regression."""
    m = len(x)
    z = np.ones((m, 1)) if z is None else z
    v0, power = m / np.sum(1 / v), 0.5 if m == 4 else 1.0
    values = [1.0]
    if nu is not None:
        values = [nu / chi2.ppf((k - 0.5) / 7, nu + 4) for k in range(1, 8)]
    logs, means, within, shares = [], [], [], []
    for at, c in itertools.product(np.linspace(*ends, points), values):
        tau2 = np.exp(at)
        w = 1 / (c * v + tau2)
        inside = z.T @ (w[:, None] * z)
        cover = np.linalg.inv(inside)
        centre = z @ (cover @ (z.T @ (w * x)))
        b = c * v * w
        fit = 0.5 * np.sum(np.log(w)) - 0.5 * np.linalg.slogdet(inside)[1]
        fit -= 0.5 * np.sum(w * (x - centre) ** 2)
        logs.append(fit - power * np.log(tau2 + v0) + at)
        means.append(x - b * (x - centre))
        within.append(c * v * (1 - b) + b**2 * np.sum((z @ cover) * z, axis=1))
        shares.append(b)
    p = np.exp(np.array(logs) - max(logs))
    p /= p.sum()
    e, square = p @ np.array(means), p @ (np.array(means) ** 2 + np.array(within))
    return PlainPosterior(e, square - e**2, p @ np.array(shares))


def agree(found: Posterior, expected: PlainPosterior, v: Floats, atol: float = QUADRATURE) -> None:
    np.testing.assert_allclose((found.mean - expected.mean) / np.sqrt(v), 0.0, atol=atol)
    np.testing.assert_allclose(found.variance / expected.variance, 1.0, atol=10 * atol)
    np.testing.assert_allclose(found.shrinkage, expected.shrinkage, atol=atol)
