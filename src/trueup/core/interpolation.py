"""A smooth function of one variable from its values at few points, where it is asked for very often.

On [-1, 1] the polynomial of degree n through the Chebyshev nodes comes within a small factor of the best one of that
degree; for analytic functions the error falls geometrically with n (Trefethen, *Approximation Theory and Approximation
Practice*, 2013).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.core.arrays import Floats


@dataclass(frozen=True, eq=False)
class Interpolant:
    """A polynomial on `low .. high`, by its coefficients for Chebyshev polynomials; several, one for each column.

    >>> exp = Interpolant.of(np.exp, 0.0, 1.0, 12)
    >>> bool(np.abs(exp(np.array([0.0, 0.3, 1.0])) - np.exp([0.0, 0.3, 1.0])).max() < 1e-14)
    True
    """

    low: float
    high: float
    coefficients: Floats

    @classmethod
    def of(
        cls, function: Callable[[Floats], Floats], low: float, high: float, degree: int
    ) -> Interpolant:
        """Interpolate; for n points the function returns n values, or n rows."""
        angle = (np.arange(degree + 1) + 0.5) * np.pi / (degree + 1)
        values = function(low + (high - low) * (0.5 + 0.5 * np.cos(angle)))
        weights = np.cos(np.outer(np.arange(degree + 1), angle)) * 2.0 / (degree + 1)
        weights[0] *= 0.5
        return cls(low, high, weights @ values)

    def __call__(self, x: Floats) -> Floats:
        """Return the value at each point, or a row of values; by Clenshaw's recurrence."""
        y = (2.0 * x - (self.low + self.high)) / (self.high - self.low)
        if self.coefficients.ndim > 1:
            y = y[:, None]
        twice = 2.0 * y
        shape = np.broadcast_shapes(y.shape, self.coefficients.shape[1:])
        after, value = np.zeros(shape), np.zeros(shape)
        for each in self.coefficients[:0:-1]:
            # The next value is `each + twice * value - after`; it takes the place of `after`.
            np.subtract(each, after, out=after)
            after += twice * value
            after, value = value, after
        result: Floats = self.coefficients[0] + y * value - after
        return result
