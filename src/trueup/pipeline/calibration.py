"""Known truths of some questions: the error that all workers share, and what it does to the others.

Answers show how far workers differ from each other, never how far all of them are from the truth. With the truths
`theta_j` of at least 8 questions, estimates `e_j` and their variances `u_j` for independent errors,

    theta_j = e_j + a + c (e_j - m) + r_j,    var r_j = omega² + (1 + c)² u_j,    m: weighted mean of the e_j

separates three shared errors: an offset `a`, compression of differences (`c > 0`) and a spread `omega²` that is new
for every question. `calibrate` estimates them, `Calibration.apply` carries them to the other questions, and
`consensus` says what a crowd with these errors would have answered to a question of known truth.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trueup.answers.block import SMALLEST_STD, Block
from trueup.answers.scale import Scale
from trueup.core.arrays import offsets
from trueup.engines import vectors
from trueup.errors import TrueupError

if TYPE_CHECKING:
    from trueup.core.arrays import Floats
    from trueup.engines.protocol import Engine, Kept

# With fewer known truths nothing is corrected: a spread and two parameters leave too little to learn from.
FEWEST = 8
# Known truths from which on they also help to judge the workers: with fewer they add more noise than they tell.
MANY = 20
# A correction is believed in full far above its error, and not at all below the square root of this many errors.
DOUBT = 2.0
# Freedom that the offset, the slope and the spread cost (a flat prior on the standard deviation costs one).
COST = 3
# Most rounds of the two iterations, which end by themselves, and relative size of what counts as nothing.
ROUNDS, STEPS = 20, 100
NOTHING = 1e-12
# No variance is below this share of the squared unit: squares of its inverse are numbers.
SMALLEST = 1e-100
MOST_FREEDOM = 1e6
# Of a value, and of a variance.
LARGEST = (1e150, 1e300)


@dataclass(frozen=True)
class Calibration:
    """The error that all workers share, as learned from questions of known truth.

    Attributes
    ----------
    offset, slope : float
        The correction `estimate + offset + (slope - 1) (estimate - centre)`. An offset of 0 and a slope of 1 leave
        everything as it is.
    centre : float
        Where the offset is measured: the mean of the estimates of the known questions, by their certainty.
    spread : float
        Variance of what remains wrong with a question after the correction, however many workers answer it.
    offset_error, slope_error : float
        Standard errors of offset and slope before they were shortened.
    offset_trust, slope_trust : float
        By which factor they were shortened, `max(0, 1 - 2 error² / value²)`: 0 no correction, 1 all of it.
    freedom : float
        Degrees of freedom behind the spread.
    n_gold : int
        Number of known truths.
    """

    offset: float
    slope: float
    centre: float
    spread: float
    offset_error: float
    slope_error: float
    offset_trust: float
    slope_trust: float
    freedom: float
    n_gold: int

    @property
    def corrected(self) -> str:
        """What is corrected: "nothing", "offset", "slope" or "offset and slope"."""
        parts = [
            name
            for name, trust in (("offset", self.offset_trust), ("slope", self.slope_trust))
            if trust > 0
        ]
        return " and ".join(parts) or "nothing"

    def apply(self, mean: Floats, variance: Floats) -> tuple[Floats, Floats, Floats]:
        """Correct the estimates of questions whose truth is not known.

        Parameters
        ----------
        mean, variance : arrays
            Estimates and their variances for independent errors.

        Returns
        -------
        mean, variance, freedom : arrays
            An interval for the truth is the mean and, on each side, the standard deviation times a Student quantile.
            The variance is `omega² + slope² u + trust_a error_a² + trust_c error_c² (e - centre)²`; its degrees of
            freedom are those of the spread where the shared error dominates, and grow with the part `slope² u` that
            is known without gold.
        """
        mean = np.asarray(mean, dtype=np.float64)
        away = mean - self.centre
        learned = (
            self.spread
            + self.offset_trust * self.offset_error**2
            + self.slope_trust * (self.slope_error * away) ** 2
        )
        total = learned + self.slope**2 * np.asarray(variance, dtype=np.float64)
        known = np.divide(learned, total, out=np.ones_like(total), where=total > 0)
        freedom = np.minimum(self.freedom / np.maximum(known, 1e-6) ** 2, MOST_FREEDOM)
        return mean + self.offset + (self.slope - 1.0) * away, total, freedom

    def __str__(self) -> str:
        return self.in_words(Scale())

    def in_words(self, scale: Scale) -> str:
        """Say what the known truths showed; the errors are distances on the scale on which answers were combined."""
        errors = []
        if self.offset_trust > 0:
            side = "low" if self.offset > 0 else "high"
            error = scale.distance_in_words(abs(self.offset))
            errors.append(f"were too {side} by {error} on average")
        if self.slope_trust > 0:
            errors.append(self._slope_error)
        finding = f"{' and '.join(errors)}; corrected" if errors else "show no clear shared error"
        rest = (
            f"Remaining typical error: {scale.distance_in_words(sqrt(self.spread))} (included in the intervals)."
            if self.spread > 0
            else "The remaining error is no larger than the disagreement of the workers explains."
        )
        return f"Compared with {self.n_gold} known truths, the estimates {finding}. {rest}"

    @property
    def _slope_error(self) -> str:
        """What the slope says about differences between estimates, in words."""
        if self.slope <= 0:
            return f"did not rise with the truth (slope {self.slope:.3g})"
        change = abs(1.0 / self.slope - 1.0)
        word = "overstated" if self.slope < 1 else "understated"
        return f"{word} differences by about {change:.{0 if change >= 0.0995 else 1}%}"


def calibrate(mean: Any, variance: Any, truth: Any, *, fewest: int = FEWEST) -> Calibration | None:
    """Learn the error that all workers share from questions of known truth.

    Offset and slope are fitted by least squares with weights `1 / (omega² + slope² u_j)`. Their standard errors are
    the larger of the usual ones and those of leaving out one question at a time, so that no single known truth, however
    wrong, can make a correction look certain. Each is then shortened by `max(0, 1 - 2 error² / value²)`. The spread
    `omega² >= 0` solves `sum (truth - corrected)² / (omega² + slope² u_j) = G - 3` for G known truths.

    Parameters
    ----------
    mean, variance : arrays
        Estimates of the questions with known truth, and their variances for independent errors. Where the latter
        are unknown, because no two workers answered the same question, zeros: the spread then has them.
    truth : array
        Their true values.
    fewest : int
        Known truths that are needed; one less suffices where each is left out in turn.

    Returns
    -------
    Calibration or None
        None with fewer known truths: nothing can be said of a shared error.

    Examples
    --------
    >>> estimates = np.arange(10.0)
    >>> truth = 5.0 + 2.0 * estimates + np.tile([0.1, -0.1], 5)
    >>> found = calibrate(estimates, np.zeros(10), truth)
    >>> found.corrected, round(found.slope, 2), found.apply(np.array([3.0]), np.zeros(1))[0].round(1).tolist()
    ('offset and slope', 1.99, [11.0])
    """
    mean, variance, truth = _checked(mean, variance, truth, "mean")
    count = len(truth)
    if count < fewest:
        return None
    unit = _unit(mean, variance, truth)
    at, v, error = (mean - mean[0]) / unit, variance / unit**2, (truth - mean) / unit
    line, slope, trust = _line(at, v, error), 1.0, (0.0, 0.0)
    for _ in range(ROUNDS):
        trust = _trust(line.offset, line.offset_error), _trust(line.slope, line.slope_error)
        before, slope = slope, 1.0 + trust[1] * line.slope
        if abs(slope - before) <= 1e-9 * abs(slope):
            break
        line = _line(at, slope**2 * v, error)
    offset = trust[0] * line.offset
    rest = error - offset - (slope - 1.0) * (at - line.centre)
    return Calibration(
        offset=float(unit * offset),
        slope=float(slope),
        centre=float(mean[0] + unit * line.centre),
        spread=float(unit**2 * _spread(rest**2, slope**2 * v, count - COST)),
        offset_error=float(unit * line.offset_error),
        slope_error=line.slope_error,
        offset_trust=trust[0],
        slope_trust=trust[1],
        freedom=float(count - COST),
        n_gold=count,
    )


def consensus(aggregate: Any, variance: Any, truth: Any) -> tuple[Floats, Floats]:
    """Return what the crowd as a whole is expected to answer to questions of known truth, and its variance.

    A worker is judged by the distance from what the crowd would say, not from the truth: what all workers get wrong
    says nothing about any of them. So the aggregates `x_j` are regressed on the truths,

        x_j = theta_j + a + c (theta_j - m) + r_j,    var r_j = omega² + v_j

    and `theta_j + a + c (theta_j - m)`, with variance `omega² + error_a² + error_c² (theta_j - m)²`, counts as one
    more answer to question j while the variances of the workers are learned. It never enters an aggregate.

    Parameters
    ----------
    aggregate, variance : arrays
        Aggregates of the questions with known truth by the first step, and their variances.
    truth : array
        Their true values, at least 8.
    """
    aggregate, variance, truth = _checked(aggregate, variance, truth, "aggregate")
    if len(truth) < FEWEST:
        raise TrueupError(
            f"found {len(truth)} known truths, expected at least {FEWEST}.", argument="truth"
        )
    unit = _unit(aggregate, variance, truth)
    at = (truth - truth[0]) / unit
    line = _line(at, variance / unit**2, (aggregate - truth) / unit)
    away = at - line.centre
    errors = line.spread + line.offset_error**2 + (line.slope_error * away) ** 2
    return truth + unit * (line.offset + line.slope * away), unit**2 * errors


def one_more_worker(engine: Engine) -> Engine:
    """Return the answers of a single problem with one more worker, who says `vectors.EXPECTED` where known.

    For learning the workers only: with what the crowd is expected to say as one more answer, a worker who answers a
    question alone, or with one other, can be judged.
    """
    n = engine.n_workers

    def change(block: Block, kept: Kept) -> Block:
        said = ~np.isnan(kept[vectors.EXPECTED])
        at = block.indptr[1:][said]
        more = kept[vectors.EXPECTED][said] - block.centre[said]
        precision = block.precision
        return Block(
            indptr=offsets(block.counts + said).astype(block.indptr.dtype),
            workers=np.insert(block.workers, at, n),
            values=np.insert(block.values, at, more),
            precision=None if precision is None else np.insert(precision, at, 1.0),
            n_workers=n + 1,
            start=block.start,
            first_worker=0,
            panel_questions=block.panel_questions,
            first_panel=0,
            centre=block.centre,
        )

    return engine.changed(change, reads=(vectors.EXPECTED,), workers=n + 1)


class _Line(NamedTuple):
    """A fitted line `offset + slope (at - centre)`, the errors of both, and the spread around it."""

    offset: float
    slope: float
    centre: float
    offset_error: float
    slope_error: float
    spread: float


def _line(at: Floats, v: Floats, y: Floats) -> _Line:
    """Fit a line to values with known variances `v` and an unknown common spread.

    The spread solves `sum r² / (spread + v) = G - 3`, as in `_spread`, with residuals that change with it. Weights are
    at most `1 / NOTHING` times the typical one.
    """
    least = max(NOTHING * float(np.mean(v) + np.mean(y**2)) or 1.0, SMALLEST)
    freedom, spread = len(y) - COST, 0.0
    flat = np.ptp(at) <= NOTHING  # beside the errors of the estimates, they do not differ
    for _ in range(STEPS):
        w = 1.0 / np.maximum(spread + v, least)
        centre = np.sum(w * at) / w.sum()
        away = at - centre
        around = np.sum(w * away**2)
        offset = np.sum(w * y) / w.sum()
        slope = 0.0 if flat else np.sum(w * away * y) / around
        r = y - offset - slope * away
        excess = np.sum(w * r**2) - freedom
        if excess <= NOTHING * freedom:
            break
        spread += excess / np.sum((w * r) ** 2)
    steep = 0.0 if flat else 1.0 / around
    leverage = w * (1.0 / w.sum() + steep * away**2)
    left_out = (
        w * r / np.maximum(1.0 - leverage, NOTHING)
    )  # what the fit without it would be off by
    offset_error = max(1.0 / w.sum(), float(np.sum(left_out**2)) / w.sum() ** 2)
    slope_error = max(steep, float(np.sum((left_out * away * steep) ** 2)))
    return _Line(
        float(offset),
        float(slope),
        float(centre),
        float(np.sqrt(offset_error)),
        float(np.sqrt(slope_error)),
        float(spread),
    )


def _spread(squares: Floats, v: Floats, freedom: float) -> float:
    """Return the smallest spread with `sum squares / (spread + v) <= freedom`, by Newton steps from below."""
    least = max(NOTHING * float(np.mean(v) + np.mean(squares)) or 1.0, SMALLEST)
    spread = 0.0
    for _ in range(STEPS):
        w = 1.0 / np.maximum(spread + v, least)
        excess = np.sum(w * squares) - freedom
        if excess <= NOTHING * freedom:
            break
        spread += excess / np.sum(w**2 * squares)
    return float(spread)


def _trust(value: float, error: float) -> float:
    """Return how much of a correction to believe: `max(0, 1 - 2 error² / value²)`."""
    return max(0.0, 1.0 - DOUBT * (error / value) ** 2) if abs(value) > error else 0.0


def _unit(mean: Floats, variance: Floats, truth: Floats) -> float:
    """Return a length to measure in, so that no guard depends on the units of the answers."""
    spans = np.ptp(mean), np.abs(truth - mean).max(), np.sqrt(variance.max())
    largest = float(max(spans))
    return largest if largest > SMALLEST_STD else 1.0


def _checked(mean: Any, variance: Any, truth: Any, name: str) -> tuple[Floats, Floats, Floats]:
    """Return three finite arrays of equal length."""
    arrays: list[Floats] = []
    for label, values in ((name, mean), ("variance", variance), ("truth", truth)):
        try:
            array = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            raise TrueupError("expected one number per known truth.", argument=label) from None
        if array.ndim != 1 or (arrays and len(array) != len(arrays[0])):
            raise TrueupError(
                f"found shape {array.shape}, expected one number per known truth.", argument=label
            )
        if not (np.abs(array) <= LARGEST[label == "variance"]).all():
            raise TrueupError(
                f"must be finite and at most {LARGEST[label == 'variance']:g} in size.",
                argument=label,
            )
        arrays.append(array)
    if (arrays[1] < 0).any():
        raise TrueupError("must not be negative.", argument="variance")
    return arrays[0], arrays[1], arrays[2]
