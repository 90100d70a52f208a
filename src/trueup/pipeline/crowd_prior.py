"""How crowds err: a prior for the error that all workers share, learned from public crowds with known truths.

Workers share errors. With the consensus `e_j` of infinitely many such workers, the scatter s of a single answer and
the mean m of the consensus,

    (truth_j - m)/s = a + exp(lam) (e_j - m)/s + r_j,    r_j ~ N(0, om^2)

Most crowds avoid extremes (`lam > 0`), the more so the less reliable a single answer is: `lam` is about 0.37 x with
`x = log(1 + s^2/tau^2)`, where tau is the spread of the truths (54 public crowds, see evidence/crowds). The prior is

    lam ~ .85 [.37 x + .14 Student_4] + .15 N(.37 x, .6^2),    log om ~ N(.04, .8^2),
    a ~ N(0, .74^2) with probability .5, else 0,    and with probability .2 no shared error at all

Known truths of some questions update it. All integrals are sums over nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from trueup.core.arrays import Floats

#: Compression per unit of x, and spread of log slopes around it: Student's scale and degrees of freedom.
COMPRESSION, SLOPE_SCALE, SLOPE_FREEDOM = 0.37, 0.14, 4.0
#: Share and standard deviation of the crowds that are unlike the others.
WIDE_SHARE, WIDE_SCALE = 0.15, 0.6
#: Mean and standard deviation of the logarithm of the spread, for any crowd and for those of one kind.
SPREADS: dict[str | None, tuple[float, float]] = {
    None: (0.04, 0.80),
    "perception": (-0.77, 0.50),
    "judgment": (0.14, 0.50),
    "forecast": (0.92, 0.50),
}
#: Standard deviation of the offset, and the probability that there is one.
OFFSET_SCALE, OFFSET_SHARE = 0.74, 0.5
#: Probability that workers share no error.
INDEPENDENT = 0.2
#: Known truths count with at least this share of their likelihood: they are not a random sample of the questions.
DISCOUNT = 0.7
#: Known truths from which on they are believed in full.
FULL = 10.0
#: Nodes of the log slope and of the log spread.
SLOPES = np.linspace(-1.6, 2.4, 51)
LOG_SPREADS = np.linspace(-4.0, 4.0, 41)
#: Nodes of the log slope are laid anew, up to this often, while its posterior is narrower than their distance; they
#: then reach this many posterior standard deviations to either side.
REFINEMENTS, REACH = 6, 6.0
SMALLEST = 1e-12
MOST_X = 5.0
#: No interval reaches further than this many predictive standard deviations.
MOST_DEVIATIONS = 50.0
#: Relative precision of its width, and steps at most.
PRECISION, STEPS = 1e-13, 100
ROOT = float(np.sqrt(2.0 * np.pi))
#: Crowds that are drawn to see what more known truths would bring.
DRAWS = 16


@dataclass(frozen=True, eq=False)
class KnownTruths:
    """Questions whose truth is known, in units of s around m.

    Attributes
    ----------
    z, u, g : arrays
        Consensus, its variance, and truth.
    """

    z: Floats
    u: Floats
    g: Floats

    @property
    def weight(self) -> float:
        """Power of the likelihood, 1 without known truths."""
        count = len(self.g)
        return max(DISCOUNT, 1.0 - 2.0 / count) if count else 1.0


NOTHING = KnownTruths(np.zeros(0), np.zeros(0), np.zeros(0))


@dataclass(frozen=True, eq=False)
class Crowd:
    """What is believed of a crowd: weights of the nodes, and what the offset is expected to be at each.

    Attributes
    ----------
    weight : array
        Weight of each node; the last one is that without shared error.
    log_slope, spread : arrays
        `lam` and `om` of each node.
    offset, offset_variance : arrays
        Posterior mean and variance of the offset at each node.
    """

    weight: Floats
    log_slope: Floats
    spread: Floats
    offset: Floats
    offset_variance: Floats

    def mean(self, values: Floats) -> float:
        """Return the expectation of something that has a value at each node."""
        return float(self.weight @ values)

    @property
    def slope(self) -> Floats:
        """Slope at each node."""
        return np.exp(self.log_slope)

    @property
    def slope_uncertainty(self) -> float:
        """Variance of the log slope."""
        return self.mean(self.log_slope**2) - self.mean(self.log_slope) ** 2

    @property
    def independent(self) -> float:
        """Probability that workers share no error."""
        return float(self.weight[-1])

    def deviation(self, u: float) -> float:
        """Return the predictive standard deviation of a truth at z = 0, with the variance u of the consensus."""
        own = self.mean(self.spread**2 + self.offset_variance + self.offset**2 + self.slope**2 * u)
        return float(np.sqrt(max(own - self.mean(self.offset) ** 2, 0.0)))

    def half_width(self, u: float, level: float) -> float:
        """Return half the width of the symmetric interval at z = 0 that holds a truth with the given probability."""
        from scipy.special import ndtr, ndtri

        own = np.sqrt(self.spread**2 + self.offset_variance + self.slope**2 * u)
        own = np.maximum(own, SMALLEST)
        away = self.offset - self.mean(self.offset)

        def lacking(half: float) -> tuple[float, float]:
            above, below = (half - away) / own, (half + away) / own
            density = (np.exp(-0.5 * above**2) + np.exp(-0.5 * below**2)) / own
            return level - self.mean(ndtr(above) - ndtr(-below)), self.mean(density) / ROOT

        deviation = self.deviation(u)
        low, high = 0.0, MOST_DEVIATIONS * deviation + SMALLEST
        if lacking(high)[0] >= 0:
            return high
        # Newton's method between bounds, as scipy.optimize takes longer to import than all of this.
        half = min(float(ndtri(0.5 + 0.5 * level)) * deviation, high)
        for _ in range(STEPS):
            missing, density = lacking(half)
            low, high = (half, high) if missing > 0 else (low, half)
            step = missing / density if density > 0 else np.inf
            before, half = half, half + step
            if not low < half < high:
                half = (low + high) / 2
            if abs(half - before) <= PRECISION * before:
                break
        return half


def reliability(s: float, tau2: float, questions: int) -> float:
    """Return `x = log(1 + s^2/tau^2)`, at most 5; 0 with fewer than four questions."""
    if questions < 4 or s <= 0:
        return 0.0
    return min(float(np.log1p(s * s / tau2)), MOST_X) if tau2 > 0 else MOST_X


def believe(
    x: float, shift: float = 0.0, known: KnownTruths = NOTHING, kind: str | None = None
) -> Crowd:
    """Return what is believed of a crowd with reliability x.

    Parameters
    ----------
    x : float
        See `reliability`.
    shift : float
        Variance of the error that the biases of the workers leave in all questions, in units of s^2.
    known : KnownTruths
        Known truths.
    kind : str, optional
        Kind of the questions, see `SPREADS`.
    """
    crowd = _on_nodes(shift, known, kind, SLOPES, _normalised(x, SLOPES))
    spacing = float(SLOPES[1] - SLOPES[0])
    for _ in range(REFINEMENTS):
        deviation = float(np.sqrt(max(crowd.slope_uncertainty, 0.0)))
        if not len(known.g) or deviation >= spacing:
            break
        # A posterior between two nodes has no width on them.
        reach = max(REACH * deviation, 2.0 * spacing)
        centre = crowd.mean(crowd.log_slope)
        nodes = np.linspace(centre - reach, centre + reach, len(SLOPES))
        spacing = float(nodes[1] - nodes[0])
        crowd = _on_nodes(shift, known, kind, nodes, _density(x, nodes) * spacing)
    return crowd


def _shapes(x: float, nodes: Floats) -> tuple[Floats, Floats]:
    """Return the densities of usual and of unlike crowds at some log slopes, without their constants."""
    away = nodes - COMPRESSION * x
    usual = (1.0 + (away / SLOPE_SCALE) ** 2 / SLOPE_FREEDOM) ** (-0.5 * (SLOPE_FREEDOM + 1.0))
    return usual, np.exp(-0.5 * (away / WIDE_SCALE) ** 2)


def _normalised(x: float, nodes: Floats) -> Floats:
    """Return prior weights of log slopes, each of the two parts summing to its share."""
    usual, unlike = _shapes(x, nodes)
    weight: Floats = (1.0 - WIDE_SHARE) * usual / usual.sum() + WIDE_SHARE * unlike / unlike.sum()
    return weight


def _density(x: float, nodes: Floats) -> Floats:
    """Return the prior density of log slopes."""
    from scipy.special import gamma

    usual, unlike = _shapes(x, nodes)
    half = 0.5 * SLOPE_FREEDOM
    constant = gamma(half + 0.5) / gamma(half) / np.sqrt(SLOPE_FREEDOM * np.pi) / SLOPE_SCALE
    wide = 1.0 / (WIDE_SCALE * np.sqrt(2.0 * np.pi))
    density: Floats = (1.0 - WIDE_SHARE) * constant * usual + WIDE_SHARE * wide * unlike
    return density


def _on_nodes(
    shift: float,
    known: KnownTruths,
    kind: str | None,
    nodes: Floats,
    slope_weight: Floats,
) -> Crowd:
    """Return the posterior on nodes of the log slope with these prior weights.

    With `D = om^2 + b^2 U`, `W = eta/D`, `r = g - b z`, `S = sum W`, `T = sum W r` and the prior variance A2 of the
    offset, its posterior has the variance `va = A2/(1 + A2 S)` and the mean `va T`, and

        log w = log prior - eta/2 sum log D - 1/2 sum W r^2 - 1/2 log(1 + A2 S) + 1/2 va T^2
    """
    mean, deviation = SPREADS[kind]
    spread_weight = np.exp(-0.5 * ((LOG_SPREADS - mean) / deviation) ** 2)
    spread_weight /= spread_weight.sum()
    offsets = np.array([0.0, OFFSET_SCALE**2])
    shares = np.array([1.0 - OFFSET_SHARE, OFFSET_SHARE])
    shared = 1.0 - INDEPENDENT
    prior = shared * np.einsum("i,j,k->ijk", slope_weight, spread_weight, shares).ravel()
    sides = np.meshgrid(nodes, np.exp(LOG_SPREADS), offsets, indexing="ij")
    log_slope, spread, a2 = (np.append(side.ravel(), 0.0) for side in sides)
    prior, a2, slope = np.append(prior, INDEPENDENT), a2 + shift, np.exp(log_slope)
    eta = known.weight
    log_weight = np.log(np.maximum(prior, np.finfo(float).tiny))
    total, rest = np.zeros((2, len(slope)))
    for z, u, g in zip(known.z, known.u, known.g, strict=True):
        d = np.maximum(spread**2 + slope**2 * u, SMALLEST)
        r = g - slope * z
        log_weight -= 0.5 * eta * (np.log(d) + r * r / d)
        total += eta / d
        rest += eta * r / d
    variance = a2 / (1.0 + a2 * total)
    log_weight += 0.5 * variance * rest**2 - 0.5 * np.log1p(a2 * total)
    weight = np.exp(log_weight - log_weight.max())
    return Crowd(weight / weight.sum(), log_slope, spread, variance * rest, variance)


@dataclass(frozen=True, eq=False)
class TruthModel:
    """What crowds say about the truth of questions, given their consensus: numbers of a panel, or one per question.

    Attributes
    ----------
    centre, unit : arrays
        m and s.
    offset, slope : array
        Expected offset and slope, both in units of s.
    constant, slope_square, cross : array
        Expectations of `om^2 + va + ah^2`, of `b^2` and of `ah b`.
    quantile : array
        Half width of the interval in predictive standard deviations.
    distance : array
        Typical distance of the truth from what is predicted: half of the truths are nearer.
    compression : array
        By what factor the distances from the centre are expected to be too small, for the step of the estimate.
    told : array
        How far known truths have told the rest: 0 not at all, 1 all of it.
    spread : array
        Root mean square of the error of a single question, in units of s.
    independent : array
        Probability that workers share no error.
    typical : array
        Typical variance of the consensus.
    """

    centre: Floats
    unit: Floats
    offset: Floats
    slope: Floats
    constant: Floats
    slope_square: Floats
    cross: Floats
    quantile: Floats
    distance: Floats
    compression: Floats
    told: Floats
    spread: Floats
    independent: Floats
    typical: Floats

    @property
    def half_width(self) -> Floats:
        """Half the width of the interval for the truth of a typical question at the centre."""
        return self.quantile * self.predict(self.centre, self.typical)[1]

    def predict(self, consensus: Floats, variance: Floats) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of the truth of each question."""
        z, u = (consensus - self.centre) / self.unit, variance / self.unit**2
        mean = self.offset + self.slope * z
        square = self.constant + self.slope_square * (u + z * z) + 2.0 * self.cross * z - mean**2
        deviation = np.sqrt(np.maximum(square, 0.0))
        return self.centre + self.unit * mean, self.unit * deviation

    def estimate(
        self, aggregate: Floats, consensus: Floats, shrinkage: Floats, caution: float = 1.0
    ) -> Floats:
        """Return the estimate of the truth.

        The second step is taken as far as the crowd has not shrunk its answers already,
        `f = clip((1 - (1 - B) c)/B, 0, 1)`, and known truths correct the rest.
        """
        step = caution * self.step(shrinkage) * (consensus - aggregate)
        careful = aggregate + step + self.unit * self.offset
        mean = self.centre + self.unit * self.offset + self.slope * (consensus - self.centre)
        return (1.0 - self.told) * careful + self.told * mean

    def step(self, shrinkage: Floats) -> Floats:
        """Return the share of the second step that is taken, `f`; 0 where nothing is moved."""
        above = 1.0 - (1.0 - shrinkage) * self.compression
        share = np.divide(above, shrinkage, out=np.zeros(len(shrinkage)), where=shrinkage > 0)
        return np.clip(share, 0.0, 1.0)


def truth_model(
    *,
    centre: float,
    unit: float,
    x: float,
    shift: float,
    typical_variance: float,
    level: float,
    known: KnownTruths = NOTHING,
    kind: str | None = None,
) -> TruthModel:
    """Return what a crowd says about truths; `typical_variance` is the median of the variances of the consensus.

    `shift` and `typical_variance` are on the scale on which answers are combined, `known` is in units of s.
    """
    shift, u = shift / unit**2, typical_variance / unit**2
    crowd = believe(x, shift, known, kind)
    before = crowd if not len(known.g) else believe(x, shift, NOTHING, kind)
    offset, slope = crowd.mean(crowd.offset), crowd.mean(crowd.slope)
    prior_slope = before.mean(before.slope)
    told = 0.0
    if len(known.g):
        learned = 1.0 - crowd.slope_uncertainty / before.slope_uncertainty
        told = max(learned, min(1.0, len(known.g) / FULL), 0.0) ** 2
    constant = crowd.mean(crowd.spread**2 + crowd.offset_variance + crowd.offset**2)
    square = crowd.mean(crowd.slope**2)
    deviation = crowd.deviation(u)
    numbers = {
        "centre": centre,
        "unit": unit,
        "offset": offset,
        "slope": slope,
        "constant": constant,
        "slope_square": square,
        "cross": crowd.mean(crowd.offset * crowd.slope),
        "quantile": crowd.half_width(u, level) / deviation if deviation > 0 else 0.0,
        "distance": unit * crowd.half_width(u, 0.5),
        "compression": float(np.exp(COMPRESSION * x)) * slope / prior_slope,
        "told": told,
        "spread": float(np.sqrt(crowd.mean(crowd.spread**2))),
        "independent": crowd.independent,
        "typical": typical_variance,
    }
    return TruthModel(**{name: np.asarray(value) for name, value in numbers.items()})


def expected_narrowing(
    more: int, x: float, shift: float, u: float, tau: float, known: KnownTruths, kind: str | None
) -> float:
    """Return the factor by which more known truths are expected to change the width of the interval for a truth.

    Crowds are drawn from what is believed of this one, at quantiles of the spread, which matters most, and known
    truths from these crowds, for questions whose consensus lies at quantiles of N(0, tau^2); everything is in units
    of s.
    """
    from scipy.special import ndtri

    crowd, random = believe(x, shift, known, kind), np.random.default_rng(0)
    order = np.argsort(crowd.spread, kind="stable")
    reached = np.cumsum(crowd.weight[order])
    nodes = order[np.searchsorted(reached, reached[-1] * (np.arange(DRAWS) + 0.5) / DRAWS)]
    z = tau * ndtri((np.arange(more) + 0.5) / more)
    widths = []
    for node in nodes:
        slope, spread = crowd.slope[node], crowd.spread[node]
        offset = crowd.offset[node] + random.normal() * np.sqrt(crowd.offset_variance[node])
        noise = random.normal(size=more) * np.sqrt(spread**2 + slope**2 * u)
        told = KnownTruths(
            np.append(known.z, z),
            np.append(known.u, np.full(more, u)),
            np.append(known.g, offset + slope * z + noise),
        )
        widths.append(believe(x, shift, told, kind).deviation(u))
    now = crowd.deviation(u)
    return float(np.mean(widths)) / now if now > 0 else 1.0  # nothing is left to narrow
