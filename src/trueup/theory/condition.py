"""Does the second step improve the first? The exact condition, measured on repeated samples.

For aggregates X of any first step, with `SS = sum_j (X_j - Xbar)^2`, any estimate psi of their variance and
`Z_j = psi (X_j - Xbar) / SS`, the estimate `X_j - alpha Z_j` has

    risk(X) - risk(X - alpha Z) = 2 alpha sum_j Cov(X_j, Z_j) - alpha^2 E[psi^2 / SS].

It improves on X if and only if `0 < alpha < 2 alpha*`, and most at `alpha* = sum_j Cov(X_j, Z_j) / E[psi^2 / SS]`.
The empirical Bayes estimate has alpha = m - 3.

Assumptions: `E[X_j] = mu_j + beta` with the same beta for all questions. A common bias drops out, because the Z_j
sum to 0; this is weaker than unbiased aggregates. Neither normal errors nor equal variances nor independent questions
are needed. The moments must exist: for nearly normal aggregates and constant psi the standard errors need m > 5.

The expectations are over repeated data with the same truths. They can be computed in a simulation, not from one data
set: see `condition_from_bootstrap` for what comes nearest.

Reference: Ben Shabat, Meir and Azriel, arXiv 2206.04816, theorem on the general model and the remark on alpha*. The
paper requires the condition "for all mu"; it depends on mu, and is to be read at each mu by itself.
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

# A gain of fewer standard errors than this is not told from none.
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
    """The general condition, measured.

    Attributes
    ----------
    m, n_samples : int
        Questions and samples.
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
        What to keep in mind when quoting this.
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
        """Whether the empirical Bayes estimate (alpha = m - 3) has the smaller risk, as far as measured."""
        return self.gain.value > 0

    @property
    def clear(self) -> bool:
        """Whether the gain or loss is beyond two Monte Carlo standard errors."""
        return abs(self.gain.value) > CLEAR * self.gain.std_error

    def risk_difference(self, alpha: float | None = None) -> Measured:
        """Return `risk(X) - risk(X - alpha Z)`, positive where the second step helps; alpha is m - 3 unless given."""
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
        The true values, where known. The covariance is then taken around them instead of around the means of the
        samples: the gain is the exact difference in risk also where biases differ between questions.

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
    What it can tell: whether psi is of the right size for the noise that workers differ by, since `alpha*` does not
    depend on the truths where aggregates are nearly normal and psi hardly varies (it is about `(m-3) Var(X) / psi`).

    What it cannot tell: the gain at the actual truths. Resampled aggregates scatter around the observed ones, which
    scatter around the truths: SS has the noise in it twice, `E SS = SS(mu) + 2 (m-1) Var(X)`, and the gain, which is
    inverse to it, comes out too small. With n workers the scatter of resamples is moreover (n-1)/n of what it should
    be. Both err on the side of caution. Errors that workers share, and biases that differ between questions, are
    the same in each resample and invisible. The standard errors shrink with the number of resamples, what is
    unknown because there are few workers does not.

    The condition cannot be verified on the observations alone, contrary to a remark in the paper; this is no more
    than the nearest thing to it.
    """
    return _measure(aggregates, psi, None, ONE_DATA_SET)


def _measure(
    samples: ArrayLike, psi: ArrayLike, truth: ArrayLike | None, notes: tuple[str, ...]
) -> Condition:
    x = repeated(samples)
    n_samples, m = x.shape
    value = per_sample("psi", psi, n_samples)
    deviations, squares = centred("samples", x)
    step = deviations * (value / squares)[:, None]
    products = _products(x, step, truth)
    ratios = value * value / squares
    covariance, spread = Measured.mean(products), Measured.mean(ratios)
    if spread.value == 0:
        raise TrueupError("psi: 0 in all samples. Nothing is shrunk, there is nothing to compare.")
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
    """Return per sample what has the mean `sum_j Cov(X_j, Z_j)`."""
    n_samples, m = x.shape
    if truth is not None:
        known = numbers("truth", truth)
        if len(known) != m:
            raise TrueupError(f"truth: found {len(known)} values for {m} questions.")
        around: Floats = np.einsum("ij,ij->i", x - known, step)
        return around
    products: Floats = np.einsum("ij,ij->i", x - x.mean(axis=0), step - step.mean(axis=0))
    products *= n_samples / (n_samples - 1)
    return products
