"""How close must psi be to the variance? The corollaries in epsilon, delta and B.

If psi is within epsilon of the variance, and epsilon is below it, psi lies between 0 and twice the variance, and
the second step helps. If psi is that close only with probability delta and otherwise at most B, the rare large values
cost something: psi^2 - 2 variance psi is at most `epsilon^2 - variance^2` when psi is close and at most
`max(0, B (B - 2 variance))` when it is not.

Assumptions of all functions: the normal model (see `normal_model`), m > 3, psi >= 0 independent of X.

Reference: Ben Shabat, Meir and Azriel, arXiv 2206.04816, last corollaries to the theorem on the normal model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from trueup.core.parameters import one_of
from trueup.errors import TrueupError
from trueup.theory.guards import number, share
from trueup.theory.results import Verdict

if TYPE_CHECKING:
    from trueup.core.arrays import Floats


@dataclass(frozen=True)
class TwoPoint:
    """A psi with two values, and the constants that describe it.

    Attributes
    ----------
    variance : float
        True variance of an aggregate.
    near, far : float
        Values of psi, the first with probability `delta`.
    epsilon, delta, bound : float
        `|near - variance| <= epsilon`, and both values are at most `bound`.
    """

    variance: float
    near: float
    far: float
    epsilon: float
    delta: float
    bound: float

    @property
    def values(self) -> Floats:
        """Both values of psi."""
        return np.array([self.near, self.far])

    @property
    def probabilities(self) -> Floats:
        """Their probabilities."""
        return np.array([self.delta, 1.0 - self.delta])


# Satisfies the printed corollary, although E[psi^2] = 5.0e7 is far above 2 variance E[psi] = 1.0e6.
COUNTEREXAMPLE = TwoPoint(
    variance=100.0, near=100.0, far=9998.0, epsilon=0.5, delta=0.5, bound=9999.0
)


def within_epsilon(epsilon: float, variance: float) -> Verdict:
    """Check `epsilon < variance`: sufficient if `|psi - variance| <= epsilon` always.

    It cannot be weakened: `epsilon = variance` allows psi = 0, which does nothing.

    Assumptions: see the module. Here psi may also depend on X if it grows with its spread (`mean_adjusted_psi`),
    since psi < 2 variance at every X.

    Examples
    --------
    >>> within_epsilon(0.9, variance=1.0).holds, within_epsilon(1.0, variance=1.0).holds
    (True, False)
    """
    distance = number("epsilon", epsilon, "not negative")
    noise = number("variance", variance, "positive")
    text = "A psi that is always within epsilon of the variance helps if epsilon is below the variance."
    return Verdict(distance < noise, distance, noise, "<", False, text)


def mostly_within_epsilon(
    epsilon: float,
    delta: float,
    bound: float,
    variance: float,
    version: Literal["tight", "squared", "printed"] = "tight",
) -> Verdict:
    """Check a psi that is within epsilon of the variance with probability at least delta, and never above a bound.

    Parameters
    ----------
    epsilon, delta, bound
        `P(|psi - variance| <= epsilon) >= delta`, `0 <= psi <= bound`.
    variance
        True variance s of an aggregate.
    version
        - "tight": `epsilon^2 < s^2 - (1-delta)/delta max(0, B (B - 2 s))`. Sufficient, and the weakest such
          condition: if it fails, some psi with these constants does not help (see `worst_psi`).
        - "squared": `epsilon^2 < s^2 - (1-delta)/delta B^2`. Sufficient, but stronger than necessary.
        - "printed": `epsilon^2 < s^2 - (1-delta)/delta B`, the statement of the paper as we read it. It mixes units
          and is false, see `COUNTEREXAMPLE`. For comparison only.

    Examples
    --------
    >>> mostly_within_epsilon(50.0, delta=0.9, bound=300.0, variance=100.0).holds
    True
    >>> case = COUNTEREXAMPLE
    >>> for version in ("printed", "squared", "tight"):
    ...     verdict = mostly_within_epsilon(case.epsilon, case.delta, case.bound, case.variance, version)
    ...     print(version, verdict.holds)
    printed True
    squared False
    tight False
    """
    one_of("version", version, ("tight", "squared", "printed"))
    distance, chance, largest, noise = _constants(epsilon, delta, bound, variance)
    if version == "tight":
        cost = max(0.0, largest * (largest - 2.0 * noise))
        text = "A psi that is often enough within epsilon of the variance helps; the weakest sufficient condition."
    elif version == "squared":
        cost = largest * largest
        text = "A psi that is often enough within epsilon of the variance helps; sufficient, not necessary."
    else:
        cost = largest
        text = (
            "The printed condition, which is false: it uses the bound where its square is needed."
        )
    left, right = distance * distance, noise * noise - (1.0 - chance) / chance * cost
    return Verdict(left < right, left, right, "<", False, text)


def worst_psi(epsilon: float, delta: float, bound: float, variance: float) -> TwoPoint:
    """Return the psi that helps least among those within epsilon of the variance with probability delta.

    It is `max(variance - epsilon, 0)` with probability delta, otherwise `bound` if that is above twice the
    variance, else 0. It helps if and only if the tight version of `mostly_within_epsilon` holds.
    """
    distance, chance, largest, noise = _constants(epsilon, delta, bound, variance)
    far = largest if largest > 2.0 * noise else 0.0
    return TwoPoint(noise, max(noise - distance, 0.0), far, distance, chance, largest)


def _constants(
    epsilon: float, delta: float, bound: float, variance: float
) -> tuple[float, float, float, float]:
    """Check the constants, and that some psi has them."""
    distance = number("epsilon", epsilon, "not negative")
    chance = share("delta", delta)
    largest = number("bound", bound, "not negative")
    noise = number("variance", variance, "positive")
    if largest < noise - distance:
        raise TrueupError(
            f"bound: found {largest:.6g}. No psi up to it is within {distance:.6g} of the variance {noise:.6g}."
        )
    return distance, chance, largest, noise
