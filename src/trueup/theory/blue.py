"""The best linear unbiased estimate (BLUE) of workers of known variance.

`X_j = sum_i w_i x_ij` with `sum_i w_i = 1` is unbiased for all truths. Its variance `sum_i w_i^2 sigma_i^2` is smallest
for weights proportional to `1 / sigma_i^2`, and is then `1 / sum_i 1/sigma_i^2`. For normal answers BLUE is also
sufficient: given BLUE, the distribution of the single answers does not depend on the truth.

References: A. C. Aitken, On least squares and linear combination of observations, Proc. R. Soc. Edinburgh 55 (1935);
Ben Shabat, Meir and Azriel, arXiv 2206.04816, section on known competence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, SupportsIndex

import numpy as np

from trueup.errors import TrueupError
from trueup.theory.guards import count, numbers

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from trueup.core.arrays import Floats

# Largest difference between 1 and the sum of the weights of an unbiased estimate, relative to their size.
UNBIASED = 1e-9


def linear_variance(weights: ArrayLike, variances: ArrayLike) -> float:
    """Return `sum_i w_i^2 sigma_i^2`, the variance of a linear unbiased estimate.

    Parameters
    ----------
    weights
        One per worker, of any sign, with sum 1.
    variances
        Variance of the answers of each worker around the truth.

    Notes
    -----
    Assumptions: unbiased workers with independent errors; no normality. Over m questions the risk is m times this.

    Examples
    --------
    >>> linear_variance([0.5, 0.5], [1.0, 3.0])
    1.0
    """
    noise = numbers("variances", variances, "positive")
    weight = numbers("weights", weights)
    if len(weight) != len(noise):
        raise TrueupError(f"weights: found {len(weight)} for {len(noise)} variances.")
    total = float(weight.sum())
    if abs(total - 1.0) > UNBIASED * max(1.0, float(np.abs(weight).sum())):
        raise TrueupError(f"weights: their sum is {total:.9g}. An unbiased estimate needs 1.")
    return float((weight * weight) @ noise)


def blue_weights(variances: ArrayLike) -> Floats:
    """Return the weights of BLUE, `(1/sigma_i^2) / sum_l 1/sigma_l^2`.

    Assumptions: those of `linear_variance`, variances known. Aitken's theorem: no other weights with sum 1 have a
    smaller variance.

    Examples
    --------
    >>> blue_weights([1.0, 3.0]).tolist()
    [0.75, 0.25]
    """
    precision = 1.0 / numbers("variances", variances, "positive")
    weights: Floats = precision / precision.sum()
    return weights


def blue_variance(variances: ArrayLike) -> float:
    """Return `1 / sum_i 1/sigma_i^2`, the variance of BLUE for one question.

    Examples
    --------
    >>> blue_variance([1.0, 3.0])
    0.75
    """
    return float(1.0 / (1.0 / numbers("variances", variances, "positive")).sum())


def blue_risk(m: SupportsIndex, variances: ArrayLike) -> float:
    """Return `m / sum_i 1/sigma_i^2`, the expected sum of squared errors of BLUE over m questions.

    It is the same for all truths. Assumptions: those of `blue_weights`.
    """
    return count("m", m, least=1) * blue_variance(variances)
