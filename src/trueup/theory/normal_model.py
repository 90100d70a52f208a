"""Risk under normal errors, for a variance estimate psi that may depend on the aggregates.

For `X_j ~ N(mu_j, variance)` independent, and the estimate `X_j - alpha psi (X_j - Xbar)/SS`,

    risk = m variance + alpha^2 E[psi^2/SS]
           - 2 alpha variance { (m-3) E[psi/SS] + E[sum_j psi_j' (X_j - Xbar)/SS] },

where `psi_j'` is the derivative of psi with respect to X_j. It follows from Stein's lemma,
`E[(X_j - mu_j) g(X)] = variance E[g_j'(X)]`. The truths do not appear in it: without the expectations the expression is
an unbiased estimate of the risk from a single data set, if the variance is known.

Only one derivative is needed. The sum over j is the rate at which psi grows when all deviations from the mean are
stretched together, `d/dt psi(X + t (X - Xbar))` at t = 0; divided by SS it is called the *slope* here.

Assumptions: independent normal errors of one variance; psi continuous with a derivative almost everywhere, and with
finite moments. Other quantities that psi depends on, such as residuals of workers, must be independent of X.

References: C. Stein, Estimation of the mean of a multivariate normal distribution, Annals of Statistics 9 (1981); Ben
Shabat, Meir and Azriel, arXiv 2206.04816, theorem on the normal model (its S^2 in the proofs is SS).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from trueup.core.arrays import Floats
from trueup.errors import TrueupError
from trueup.theory.guards import centred, number, numbers, per_sample, repeated, strength
from trueup.theory.results import Measured

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

# A variance estimate: rows of aggregates in, a number per row out.
Psi: TypeAlias = Callable[[Floats], Floats]

# Relative step of the central difference, near the cube root of the rounding error.
STEP = 1e-5


@dataclass(frozen=True)
class ConstantPsi:
    """A variance that does not depend on the aggregates; its slope is 0."""

    value: float

    def __call__(self, samples: Floats) -> Floats:
        """Return the value once per row."""
        return np.full(len(samples), number("value", self.value, "not negative"))

    def slope(self, samples: Floats) -> Floats:
        """Return zeros."""
        return np.zeros(len(samples))


@dataclass(frozen=True)
class SpreadPsi:
    """`scale * S^2` with `S^2 = SS/(m-1)`; its slope is `2 scale / (m-1)`.

    It shrinks by a constant share, `alpha scale / (m-1)`.
    """

    scale: float = 1.0

    def __call__(self, samples: Floats) -> Floats:
        """Return the scaled sample variance of each row."""
        scale = number("scale", self.scale, "not negative")
        values: Floats = scale * samples.var(axis=1, ddof=1)
        return values

    def slope(self, samples: Floats) -> Floats:
        """Return the same constant for each row."""
        scale = number("scale", self.scale, "not negative")
        return np.full(len(samples), 2.0 * scale / (samples.shape[1] - 1))


def slope(psi: Psi, samples: ArrayLike) -> Floats:
    """Return `sum_j psi_j' (X_j - Xbar) / SS` of each sample.

    Parameters
    ----------
    psi
        Takes an array of shape (samples, questions), returns one number per sample. If it has a method `slope` (as
        `ConstantPsi` and `SpreadPsi` have) that is called, otherwise `numerical_slope` is used.
    samples
        Aggregates, shape (samples, questions).

    Examples
    --------
    >>> rows = np.array([[0.0, 1.0, 2.0, 5.0]])
    >>> slope(SpreadPsi(), rows).round(9).tolist(), numerical_slope(SpreadPsi(), rows).round(9).tolist()
    ([0.666666667], [0.666666667])
    """
    exact = getattr(psi, "slope", None)
    if exact is None:
        return numerical_slope(psi, samples)
    x = repeated(samples, least=1)
    return _answer("slope", exact(x), len(x))


def numerical_slope(psi: Psi, samples: ArrayLike) -> Floats:
    """Return the slope of psi by a central difference along the deviations.

    It calls psi twice, whatever the number of questions.

    Assumption: psi is smooth within a few 1e-5 of each sample; a kink there gives the mean of both sides.
    """
    x = repeated(samples, least=1)
    deviations, squares = centred("samples", x)
    ahead = _answer("psi", psi(x + STEP * deviations), len(x))
    behind = _answer("psi", psi(x - STEP * deviations), len(x))
    difference: Floats = (ahead - behind) / (2.0 * STEP) / squares
    return difference


def unbiased_risk(
    samples: ArrayLike,
    psi: ArrayLike,
    variance: float,
    slopes: ArrayLike = 0.0,
    alpha: float | None = None,
) -> Floats:
    """Return Stein's unbiased estimate of the risk, for each sample separately.

    Parameters
    ----------
    samples
        Aggregates, shape (samples, questions); one data set is one row.
    psi
        Variance estimate of each sample, or one number.
    variance
        The true variance of an aggregate (or an unbiased estimate of it that is independent of X and psi).
    slopes
        Slope of psi for each sample, see `slope`; 0 for a psi that does not depend on X.
    alpha
        Constant of the shrinkage; m - 3 unless given.

    Notes
    -----
    `m s + alpha^2 psi^2/SS - 2 alpha s ((m-3) psi/SS + slope)`. Its expectation is the risk; a single value is noisy
    and can be negative. Assumptions: see the module.

    Examples
    --------
    >>> unbiased_risk([[0.0, 1.0, 2.0, 3.0]], psi=1.0, variance=1.0).round(9).tolist()  # 4 - 1/SS, SS = 5
    [3.8]
    """
    x = repeated(samples, least=1)
    n_samples, m = x.shape
    noise = number("variance", variance, "positive")  # first, as a known variance is psi, too
    value = per_sample("psi", psi, n_samples)
    grows = per_sample("slopes", slopes, n_samples, "any")
    size = strength(alpha, m)
    _, squares = centred("samples", x)
    risk: Floats = (
        m * noise
        + size * size * value * value / squares
        - 2.0 * size * noise * ((m - 3) * value / squares + grows)
    )
    return risk


def normal_risk(
    samples: ArrayLike,
    psi: ArrayLike,
    variance: float,
    slopes: ArrayLike = 0.0,
    alpha: float | None = None,
) -> Measured:
    """Measure the risk over repeated samples by the identity of the normal model.

    This is the mean of `unbiased_risk`, with its standard error. The truths are not needed, and the samples may even
    come from different truths; the result is then the mean risk.
    """
    x = repeated(samples)
    return Measured.mean(unbiased_risk(x, psi, variance, slopes, alpha))


def known_variance_risk(samples: ArrayLike, variance: float) -> Measured:
    """Measure `m s - (m-3)^2 s^2 E[1/SS]`, the risk with psi = the known variance s.

    See `risk_given_truth` for the exact value if the truths are known.
    """
    return normal_risk(samples, variance, variance)


def _answer(name: str, values: object, n_samples: int) -> Floats:
    """Check the values that a function of the caller returned."""
    array = numbers(name, np.asarray(values))
    if len(array) != n_samples:
        raise TrueupError(f"returned {len(array)} numbers for {n_samples} samples.", argument=name)
    return array
