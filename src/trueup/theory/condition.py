"""The general condition under which the second step improves the first, measured on repeated samples.

For aggregates X of any first step, with `SS = sum_j (X_j - Xbar)^2`, any estimate psi of their variance and
`Z_j = psi (X_j - Xbar) / SS`, the estimate `X_j - alpha Z_j` has

    risk(X) - risk(X - alpha Z) = 2 alpha sum_j Cov(X_j, Z_j) - alpha^2 E[psi^2 / SS].

It improves on X if and only if `0 < alpha < 2 alpha*`. The best is `alpha* = sum_j Cov(X_j, Z_j) / E[psi^2 / SS]`.
The empirical Bayes estimate has alpha = m - 3.

Assumptions: `E[X_j] = mu_j + beta` with the same beta for all questions. A common bias cancels, because the Z_j sum to
0; this is weaker than unbiased aggregates. Neither normal errors nor equal variances nor independent questions are
needed. The moments must exist: for nearly normal aggregates and constant psi the standard errors need m > 5.

The expectations are over repeated data with the same truths. They can be computed in a simulation, but not from one
data set: see `condition_from_bootstrap` for the closest approximation.

Reference: Ben Shabat, Meir and Azriel, arXiv 2206.04816, theorem on the general model and the remark on alpha*. The
paper requires the condition "for all mu"; it depends on mu, and should be read for each mu separately.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trueup.errors import TrueupError
from trueup.theory.guards import centred, numbers, per_sample, repeated, strength
from trueup.theory.results import Measured

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from trueup.core.arrays import Floats

# A gain of fewer standard errors than this is not distinguishable from 0.
CLEAR = 2.0

ONE_DATA_SET = (
    (
        "from resampled workers of one data set: the observed aggregates stand in for the truths, so the noise is in "
        "SS twice and the gain comes out too small (conservative)"
    ),
    "the standard errors count the resamples, not the workers: another set of workers may give another verdict",
    "errors that all workers share are not in it, nor is the bias of the first step",
)


@dataclass(frozen=True)
class Condition:
    """Measurement of the general condition.

    Attributes
    ----------
    m, n_samples : int
        Numbers of questions and samples.
    covariance : Measured
        `sum_j Cov(X_j, Z_j)`.
    spread : Measured
        `E[psi^2 / SS]`.
    alpha_star : Measured
        The constant of the shrinkage with the largest gain.
    gain : Measured
        `risk(X) - risk(EB)` at alpha = m - 3, in sums of squared errors.
    joint : float
        Covariance of the errors of `covariance` and `spread`.
    notes : tuple of str
        Caveats of the measurement.
    """

    m: int
    n_samples: int
    covariance: Measured
    spread: Measured
    alpha_star: Measured
    gain: Measured
    joint: float
    notes: tuple[str, ...] = ()

    @property
    def improves(self) -> bool:
        """Whether the empirical Bayes estimate (alpha = m - 3) has the smaller measured risk."""
        return self.gain.value > 0

    @property
    def clear(self) -> bool:
        """Whether the gain or loss exceeds two Monte Carlo standard errors."""
        return abs(self.gain.value) > CLEAR * self.gain.std_error

    def risk_difference(self, alpha: float | None = None) -> Measured:
        """Return `risk(X) - risk(X - alpha Z)`, positive if the second step helps; default alpha is m - 3."""
        size = strength(alpha, self.m)
        value = size * (2.0 * self.covariance.value - size * self.spread.value)
        first, second = 2.0 * self.covariance.std_error, size * self.spread.std_error
        variance = first * first + second * second - 4.0 * size * self.joint
        return Measured(value, size * max(variance, 0.0) ** 0.5)

    def __str__(self) -> str:
        verb = "improves on" if self.improves else "does not improve on"
        way = "lower" if self.improves else "higher"
        clear = "" if self.clear else ", within the noise of this many samples"
        size = Measured(abs(self.gain.value), self.gain.std_error)
        lines = [
            (
                f"EB^(m-3) {verb} the first step{clear}: risk {way} by {size} "
                f"(m = {self.m}, {self.n_samples} samples)"
            ),
            f"best constant alpha* = {self.alpha_star}, against m - 3 = {self.m - 3}",
            f"sum_j Cov(X_j, Z_j) = {self.covariance}, E[psi^2/SS] = {self.spread}",
        ]
        return "\n".join([*lines, *(f"note: {text}" for text in self.notes)])


def general_condition(
    samples: ArrayLike, psi: ArrayLike, truth: ArrayLike | None = None
) -> Condition:
    """Measure the general condition on repeated samples.

    Parameters
    ----------
    samples
        Aggregates of independent repetitions with the same truths, shape (samples, questions).
    psi
        Variance estimate of each repetition, or one number for all.
    truth
        The true values, if known. The covariance is then taken around them instead of around the means of the
        samples, and the gain is the exact difference in risk even if biases differ between questions.

    Returns
    -------
    Condition
        Standard errors are first-order (delta method) over samples.

    Examples
    --------
    Ten questions, aggregates of variance 1 and psi = 1: alpha* is m - 3 = 7.

    >>> rng = np.random.default_rng(1)
    >>> measured = general_condition(rng.normal(np.arange(10) / 3, 1.0, size=(20_000, 10)), psi=1.0)
    >>> abs(measured.alpha_star.value - 7) < 4 * measured.alpha_star.std_error
    True
    >>> measured.improves and measured.clear
    True
    """
    return _measure(samples, psi, truth, ())


def condition_from_bootstrap(aggregates: ArrayLike, psi: ArrayLike) -> Condition:
    """Measure the general condition on resamples of the workers of one data set.

    Parameters
    ----------
    aggregates
        Result of the first step on each resample of the workers, shape (resamples, questions).
    psi
        Variance estimate on each resample, or one number.

    Notes
    -----
    What it can show: whether psi has the right size for the noise between workers, because `alpha*` does not depend on
    the truths if aggregates are nearly normal and psi hardly varies (it is about `(m-3) Var(X) / psi`).

    What it cannot show: the gain at the actual truths. Resampled aggregates scatter around the observed ones, which
    scatter around the truths. SS therefore contains the noise twice, `E SS = SS(mu) + 2 (m-1) Var(X)`, and the gain,
    which is inversely proportional to it, comes out too small. Also, with n workers the scatter of resamples is
    (n-1)/n of what it should be. Both err on the side of caution. Errors that workers share, and biases that differ
    between questions, are the same in each resample and invisible. The standard errors shrink with the number of
    resamples; the uncertainty due to a small number of workers does not.

    The condition cannot be verified from the observations alone, contrary to a remark in the paper; this is only the
    closest approximation.
    """
    return _measure(aggregates, psi, None, ONE_DATA_SET, name="aggregates")


def _measure(
    samples: ArrayLike,
    psi: ArrayLike,
    truth: ArrayLike | None,
    notes: tuple[str, ...],
    name: str = "samples",
) -> Condition:
    x = repeated(samples, name=name)
    n_samples, m = x.shape
    value = per_sample("psi", psi, n_samples)
    deviations, squares = centred(name, x)
    step = deviations * (value / squares)[:, None]
    products = _products(x, step, truth)
    ratios = value * value / squares
    covariance, spread = Measured.mean(products), Measured.mean(ratios)
    if spread.value == 0:
        raise TrueupError(
            "psi: 0 in all samples. Nothing is shrunk, so there is nothing to compare."
        )
    joint = float(
        (products - covariance.value) @ (ratios - spread.value) / (n_samples - 1) / n_samples
    )
    best = covariance.value / spread.value
    best_error = Measured.mean(products - best * ratios).std_error / spread.value
    size = m - 3.0
    return Condition(
        m,
        n_samples,
        covariance,
        spread,
        Measured(best, best_error),
        Measured.mean(2.0 * size * products - size * size * ratios),
        joint,
        notes,
    )


def _products(x: Floats, step: Floats, truth: ArrayLike | None) -> Floats:
    """Return one number per sample; their mean estimates `sum_j Cov(X_j, Z_j)`."""
    n_samples, m = x.shape
    if truth is not None:
        known = numbers("truth", truth)
        if len(known) != m:
            raise TrueupError(f"found {len(known)} values for {m} questions.", argument="truth")
        around: Floats = np.einsum("ij,ij->i", x - known, step)
        return around
    products: Floats = np.einsum("ij,ij->i", x - x.mean(axis=0), step - step.mean(axis=0))
    products *= n_samples / (n_samples - 1)
    return products
