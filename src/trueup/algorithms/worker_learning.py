"""What a noise model learns about the workers: their variances and biases, both shrunk by empirical Bayes.

Biases have a prior `b_i ~ sqrt(tb2) t_6`, variances a scaled inverse chi-squared one with d0 degrees of freedom and the
level s0 (Smyth, Statistical Applications in Genetics and Molecular Biology 2004). Both priors are learned from all
workers of a panel: similar workers give a large d0 and nearly the plain mean, different workers keep weights of their
own. Biases are learned only if they are larger than noise explains.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from trueup.algorithms.noise_models import FREEDOM
from trueup.core.arrays import segment_median

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from trueup.algorithms.facts import Facts
    from trueup.core.arrays import Bools, Floats

#: Number of pseudo-answers as long as the spread of the worker variances is unknown.
PSEUDO_ANSWERS = 4.0
#: Largest number of pseudo-answers; workers are then practically equal.
ALIKE = 1000.0
#: Largest number of informative workers from which the spread of their variances cannot be estimated.
FEW_WORKERS = 3
#: What small samples add to 1/d0, times the number of workers.
ASSUMED = 0.75
#: Updates before biases are looked for, and before the spread of the worker variances is estimated.
BIASES_AFTER, SPREAD_AFTER = 1, 2
#: Smallest mean square that enters a logarithm, and smallest variance, as shares of the variance at the start.
SMALLEST, FLOOR = 1e-4, 1e-6
#: Biases with a variance below this share of what one worker's answers can show are rounding error.
ROUNDING = 1e-9
#: Relative size of a difference that rounding can make in a comparison with a limit.
TIED = 1e-9
#: Bernoulli numbers B2, B4, ...
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)
#: Degrees of freedom that an answer with heavy-tailed errors counts for.
HEAVY_FREEDOM = 2.0 / 3.0


@dataclass(frozen=True, eq=False)
class Learned:
    """What is known about each worker in one model; numbers of a panel are repeated for all of its workers.

    Attributes
    ----------
    variance, bias, bias_error : arrays
        `s_i`, `b_i` and the variance of `b_i`.
    bias_variance : array
        `tb2`, the variance of biases in the panel; 0 where there are none.
    level, strength : arrays
        s0 and d0 of the panel.
    start : array
        Variance of all workers at the start.
    known, own : arrays
        Precision with which the answers of a worker show its bias, and the sum of its shares, in the last update.
    """

    variance: Floats
    bias: Floats
    bias_error: Floats
    bias_variance: Floats
    level: Floats
    strength: Floats
    start: Floats
    known: Floats
    own: Floats

    @classmethod
    def begin(cls, start: Floats) -> Self:
        """Return the state before the first update: all workers alike."""
        zeros = np.zeros(len(start))
        strength = np.full(len(start), PSEUDO_ANSWERS)
        return cls(start, zeros, zeros, zeros, start, strength, start, zeros, zeros)

    @classmethod
    def from_vectors(cls, values: Mapping[str, Floats], prefix: str) -> Self:
        """Return what vectors of a state say whose names begin with a prefix."""
        return cls(**{each.name: values[prefix + each.name] for each in fields(cls)})

    def vectors(self, prefix: str) -> dict[str, Floats]:
        """Return all of it as vectors of a state, whose names begin with a prefix."""
        return {prefix + each.name: getattr(self, each.name) for each in fields(self)}


@dataclass(frozen=True, eq=False)
class WorkerLearning:
    """The update of one model.

    Attributes
    ----------
    facts : Facts
        Counts of the answers.
    heavy : bool
        Whether the errors are heavy-tailed.
    biases : bool
        Whether workers may have biases.
    """

    facts: Facts
    heavy: bool
    biases: bool = True

    def update(self, learned: Learned, sums: Floats, step: int) -> Learned:
        """Return what is known after a pass; `sums` are those of `NoiseModel.tally`, `step` counts updates."""
        total, overlap, rest, squares, own = sums
        # With heavy tails shares may be above 1; a worker's answers are worth no less than nothing.
        own = np.minimum(own, self.facts.n_informative)
        learned = replace(learned, known=np.maximum(total - overlap, 0.0), own=own)
        if self.biases and step == BIASES_AFTER:
            learned = replace(learned, bias_variance=self._first_bias_variance(learned, rest))
        if learned.bias_variance.any():
            learned = self._update_biases(learned, total, rest)
        return self._update_variances(learned, squares, step)

    def _first_bias_variance(self, learned: Learned, rest: Floats) -> Floats:
        """Return the variance of biases if they are larger than noise explains, else 0.

            excess = sum_i (G_i^2 / known_i - 1) > sqrt(2 n),    tb2 = excess / sum_i known_i

        over the n workers with two informative answers.
        """
        facts, known = self.facts, learned.known
        several = (facts.n_informative >= 2).astype(np.float64)
        square = np.divide(rest**2, known, out=np.ones(len(rest)), where=known > 0)
        excess, size = facts.panel_sum(several * (square - 1.0)), facts.panel_sum(several)
        below = facts.panel_sum(several * known)
        # Two workers a constant apart on two questions are right at the limit, where rounding must not decide.
        clear = (size >= 2) & (excess > np.sqrt(2.0 * size) * (1.0 + TIED)) & (below > 0)
        return facts.spread(np.divide(excess, below, out=np.zeros(len(size)), where=clear))

    def _update_biases(self, learned: Learned, total: Floats, rest: Floats) -> Learned:
        """Return biases and their variance after an EM step, in panels that have biases.

        w_i = 7 / (6 + b_i^2/tb2) / tb2,    b_i = G_i / (A_i + w_i) - the w-weighted mean of the same
        e_i = 1 / (known_i + w_i),          tb2 = mean_i 7 / (6 + b_i^2/tb2) (b_i^2 + e_i)
        """
        facts = self.facts
        biased, inside = learned.bias_variance > 0, facts.informative
        tb2 = np.where(biased, learned.bias_variance, 1.0)
        weight = _discount(learned.bias, tb2) / tb2 * inside
        bias = np.divide(rest, total + weight, out=np.zeros(len(rest)), where=inside > 0)
        centre = facts.panel_sum(weight * bias) / np.maximum(facts.panel_sum(weight), 1e-300)
        bias = (bias - facts.spread(centre)) * inside
        error = np.divide(1.0, learned.known + weight, out=np.zeros(len(rest)), where=inside > 0)
        spread = facts.mean_of_informative(_discount(bias, tb2) * (bias**2 + error))
        median = segment_median(total, inside, facts.panel_workers)
        kept = biased & (facts.spread(spread * median) >= ROUNDING)
        new = np.where(kept, facts.spread(spread), 0.0)
        error = np.where(inside > 0, error, FREEDOM / (FREEDOM + 1.0) * new)
        return replace(
            learned,
            bias=np.where(kept, bias, 0.0),
            bias_error=np.where(kept, error, 0.0),
            bias_variance=new,
        )

    def _update_variances(self, learned: Learned, squares: Floats, step: int) -> Learned:
        """Return variances pulled toward the level of their panel, then all times one factor.

            s_i = (q_i + d0 s0) / (K_i - [tb2 > 0] + d0),    factor (1/N) sum_i q_i / s_i

        Without the factor the level is overstated where workers have one to three answers.
        """
        facts = self.facts
        count, inside = facts.n_informative, facts.informative > 0
        biased = (learned.bias_variance > 0).astype(np.float64)
        mean = squares / np.maximum(count, 1.0)
        level = facts.spread(segment_median(mean, count, facts.panel_workers))
        strength = np.full(len(level), PSEUDO_ANSWERS)
        if step >= SPREAD_AFTER:
            level, strength = self._prior(learned, mean, level, strength)
        freedom = np.where(count >= 2, count - biased, count)
        variance = (squares + strength * level) / (freedom + strength)
        variance = np.where(inside, np.maximum(variance, FLOOR * learned.start), level)
        variance = np.where(variance > 0, variance, 1.0)  # a panel in which nobody can be compared
        ratio = np.where(inside, squares / variance, 0.0)
        answers = facts.panel_sum(count)
        factor = np.divide(
            facts.panel_sum(ratio), answers, out=np.ones(len(answers)), where=answers > 0
        )
        factor = facts.spread(np.where(factor > 0, factor, 1.0))
        return replace(learned, variance=variance * factor, level=level * factor, strength=strength)

    def _prior(
        self, learned: Learned, mean: Floats, level: Floats, strength: Floats
    ) -> tuple[Floats, Floats]:
        """Return s0 and d0 of each panel."""
        floor = SMALLEST * learned.start
        return variance_prior(
            self.facts, np.maximum(mean, floor), self._freedom(learned), level, strength
        )

    def _freedom(self, learned: Learned) -> Floats:
        """Return the degrees of freedom behind the variance of each worker."""
        freedom = self.facts.n_informative - learned.own - (learned.bias_variance > 0)
        return freedom * HEAVY_FREEDOM if self.heavy else freedom

    def price(self, learned: Learned) -> Floats:
        """Return what learning about workers costs each panel in log likelihood (Laplace), as a negative number."""
        from scipy.special import gammaln

        facts, s = self.facts, learned.variance
        inside: Bools = facts.informative > 0
        tb2 = learned.bias_variance
        safe = np.where(tb2 > 0, tb2, 1.0)
        biases = -0.5 * learned.bias**2 / safe - 0.5 * np.log1p(tb2 * learned.known)
        half = 0.5 * learned.strength
        share = half * learned.level / s
        freedom = facts.n_informative - learned.own
        if self.heavy:
            freedom = freedom * HEAVY_FREEDOM
        variances = half * np.log(np.where(share > 0, share, 1.0)) - gammaln(half) - share
        variances += 0.5 * np.log(2.0 * np.pi) - 0.5 * np.log(half + 0.5 * freedom)
        return facts.panel_sum(np.where(inside, biases + variances, 0.0))

    def shift(self, learned: Learned) -> Floats:
        """Return the variance of the common shift of each panel: that of a mean of the biases of its n workers.

            (n / (n - 1)) (9/7) tb2 sum_i (w_i / sum w)^2

        `tb2` is the mean square around a centre that was estimated, and 9/7 the large-sample variance of the location
        of t_6 with scale 1 (Lange, Little and Taylor, JASA 1989).
        """
        facts, tb2 = self.facts, learned.bias_variance
        weight = _discount(learned.bias, np.where(tb2 > 0, tb2, 1.0)) * facts.informative
        total = facts.spread(np.maximum(facts.panel_sum(weight), 1e-300))
        size = facts.panel_sum(facts.informative)
        factor = (FREEDOM + 3.0) / (FREEDOM + 1.0) * size / np.maximum(size - 1.0, 1.0)
        return factor * facts.panel_sum(tb2 * (weight / total) ** 2)


def variance_prior(
    facts: Facts, mean: Floats, freedom: Floats, level: Floats, strength: Floats
) -> tuple[Floats, Floats]:
    """Return s0 and d0 from the spread of `log m_i` beyond what the degrees of freedom explain.

    With L workers `1/d0 = (L-3)/L / d1 + 3/(4 L)`, a correction for small samples; `level` and `strength` are kept with
    too few workers.
    """
    from scipy.special import digamma

    workers = facts.panel_sum(facts.informative)
    if (workers <= FEW_WORKERS).all():
        return level, strength
    freedom = 0.5 * np.maximum(freedom, 0.5)
    mean = np.where(mean > 0, mean, 1.0)
    z = np.log(mean) - digamma(freedom) + np.log(freedom)
    centre = facts.mean_of_informative(z)
    rest = facts.informative * (z - facts.spread(centre)) ** 2
    spread = facts.panel_sum(rest) / np.maximum(workers - 1.0, 1.0)
    excess = spread - facts.mean_of_informative(_trigamma(freedom))
    d1 = np.full(len(excess), ALIKE)
    np.divide(2.0, excess, out=d1, where=excess > 2.0 / ALIKE)
    d1 = np.minimum(d1 + (excess > 2.0 / ALIKE), ALIKE)
    size = np.maximum(workers, 1.0)
    d0 = 1.0 / ((size - 3.0) / size / d1 + ASSUMED / size)
    enough = facts.spread(workers) > FEW_WORKERS
    return (
        np.where(enough, facts.spread(np.exp(centre)), level),
        np.where(enough, facts.spread(d0), strength),
    )


def _trigamma(x: Floats) -> Floats:
    """Return the derivative of digamma for positive numbers, a tenth of the time that a general zeta function takes.

    `1/x^2` is split off until x is above 8, from where on the asymptotic series is exact to the last digits
    (Abramowitz and Stegun, Handbook of Mathematical Functions, 6.4.6 and 6.4.11).
    """
    result, x = np.zeros(len(x)), np.array(x)
    for _ in range(8):
        result += 1.0 / (x * x)
        x += 1.0
    inverse = 1.0 / x
    square = inverse * inverse
    tail = np.zeros(len(x))
    for bernoulli in reversed(BERNOULLI):
        tail += bernoulli
        tail *= square
    return result + inverse * (1.0 + 0.5 * inverse + tail)


def _discount(bias: Floats, tb2: Floats) -> Floats:
    """Return how much the bias of each worker counts under heavy tails, `7 / (6 + b^2/tb2)`."""
    discount: Floats = (FREEDOM + 1.0) / (FREEDOM + bias**2 / tb2)
    return discount
