"""The expected gain of the second step on one data set: a diagnostic, and the printed one, which is always positive.

Under the normal model with constant psi, `risk(X) - risk(EB) = (m-3)^2 psi (2 variance - psi) E[1/SS]`. The
variance must come from elsewhere. If psi itself takes its place, as the paper suggests, the result is
`(m-3)^2 psi^2/SS`, which is positive for every psi, even one that is a hundred times too large.

Reference: Ben Shabat, Meir and Azriel, arXiv 2206.04816, remark on estimating the gain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trueup.theory.guards import centred, count, number, numbers

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Gain:
    """Expected reduction of the risk by the second step.

    Attributes
    ----------
    value : float
        Estimate of `risk(X) - risk(EB)`, as a sum of squared errors. Positive: shrink.
    relative : float
        `value` as a share of `m variance`, the risk of the aggregates.
    shrinkage : float
        `(m-3) psi / SS` on these data.
    text : str
        How it was estimated.
    """

    value: float
    relative: float
    shrinkage: float
    text: str

    @property
    def shrink(self) -> bool:
        """Whether a gain is expected."""
        return self.value > 0

    def __str__(self) -> str:
        what = "gain" if self.shrink else "no gain"
        return (
            f"{what} expected: {self.value:.6g} ({self.relative:+.1%} of the risk) "
            f"at shrinkage {self.shrinkage:.3g}. {self.text}"
        )


def gain_estimate(x: ArrayLike, psi: float, variance: float, slope: float = 0.0) -> Gain:
    """Estimate the gain on one data set: `(m-3)^2 psi (2 variance - psi) / SS`.

    Parameters
    ----------
    x
        Aggregates, one per question, at least four.
    psi
        The variance that the shrinkage uses.
    variance
        Another estimate of the variance of an aggregate, from other answers or another method, such as a sandwich
        estimate. If it is computed in the same way as psi, the result is meaningless (`gain_by_psi_alone`).
    slope
        Slope of psi at x (see `normal_model.slope`), for a psi that depends on x. It adds `2 (m-3) variance slope`;
        leaving out a positive slope errs on the side of caution.

    Notes
    -----
    Unbiased for the gain if the normal model holds, `variance` is unbiased and independent of x and of psi, and the
    slope is given. It is a single noisy number: without a slope its sign is that of `2 variance - psi`, so it only
    compares the two estimates of the variance, in units of risk.

    Examples
    --------
    >>> print(gain_estimate([1.0, 2.0, 3.0, 4.0, 10.0], psi=1.0, variance=2.0))
    gain expected: 0.24 (+2.4% of the risk) at shrinkage 0.04. With a variance estimate other than psi.
    """
    squares, m = _spread(x)
    used = number("psi", psi, "not negative")
    noise = number("variance", variance, "positive")
    grows = number("slope", slope)
    size = m - 3.0
    gain = size * (size * used * (2.0 * noise - used) / squares + 2.0 * noise * grows)
    return Gain(
        gain,
        gain / (m * noise),
        size * used / squares,
        "With a variance estimate other than psi.",
    )


def gain_by_psi_alone(x: ArrayLike, psi: float) -> Gain:
    """Return the printed estimate, which replaces the variance by psi: `(m-3)^2 psi^2 / SS`.

    It predicts a gain for every psi above 0, and a larger gain for a larger psi. It exists to show that it is useless;
    use `gain_estimate`.

    Examples
    --------
    >>> x = [1.0, 2.0, 3.0, 4.0, 10.0]
    >>> [gain_by_psi_alone(x, psi).shrink for psi in (0.01, 1.0, 1000.0)]
    [True, True, True]
    """
    squares, m = _spread(x)
    used = number("psi", psi, "positive")
    gain = (m - 3.0) * (m - 3.0) * used * used / squares
    text = "By psi alone, which predicts a gain whatever psi is: no evidence."
    return Gain(gain, gain / (m * used), (m - 3.0) * used / squares, text)


def _spread(x: ArrayLike) -> tuple[float, int]:
    """Return SS and the number of questions."""
    values = numbers("x", x)
    m = count("x", len(values))
    _, squares = centred("x", values[None, :])
    return float(squares[0]), m
