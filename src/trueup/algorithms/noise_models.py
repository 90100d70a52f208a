"""Two models of the noise of workers, for one block of questions: normal errors and heavy-tailed ones.

    x_ij = theta_j + b_i + e_ij,    e_ij ~ sqrt(s_i) N(0, 1)  or  sqrt(s_i) t_6

Values of a block are in units of the typical spread and relative to the median of their question (`in_units`). With
`y' = y - b_i` and weights `u_ij = 1` for normal errors, `u_ij = 7 / (6 + ((y' - t_j)^2 + v_j) / s_i)` for heavy-tailed
ones, the truth of a question and its variance are

    v_j = 1 / sum_i u_ij / s_i,    t_j = v_j sum_i u_ij y'_ij / s_i

With heavy tails they are iterated, beginning at the median; `v_j` inside `u` keeps two discordant answers a mean.
With known variances of answers every `s_i` is divided by the relative precision of the answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from trueup.answers.block import Block
    from trueup.core.arrays import Floats

#: Degrees of freedom of heavy-tailed errors.
FREEDOM = 6.0
#: Steps inside a question with heavy-tailed errors, from the median on.
INNER_STEPS = 4
#: Farthest that an answer may lie from the median of its question, in units.
FARTHEST = 1e60
#: The posterior of a truth with heavy-tailed errors is summed over nodes up to this many standard errors away.
REACH = 7
#: Logarithm of a product that is still a number.
LARGEST_LOG = 700.0


def in_units(block: Block, median: Floats, unit: Floats) -> Block:
    """Return a block with values relative to the median of their question, in the unit of the question."""
    values = block.residuals(median)
    with np.errstate(over="ignore"):  # far answers are drawn in below
        values /= block.spread(unit)
    np.clip(values, -FARTHEST, FARTHEST, out=values)
    return replace(block, values=values, centre=np.zeros(block.n_questions), given=None)


@dataclass(frozen=True, eq=False)
class Fit:
    """Truths of the questions of a block in one of the models, given the workers.

    Attributes
    ----------
    t, v : arrays
        Truth of each question and its variance.
    weight : array or None
        `u_ij / s_i` of each answer times its precision; None: it is that of the worker, `1/s_i`.
    scaled : array or None
        `((y' - t_j)^2 + v_j) / s_i` of each answer times its precision, where the weight depends on it.
    """

    t: Floats
    v: Floats
    weight: Floats | None = None
    scaled: Floats | None = None


@dataclass(frozen=True, eq=False)
class NoiseModel:
    """One of the two models, with what is known about the workers of a block.

    Attributes
    ----------
    heavy : bool
        Whether the errors are heavy-tailed.
    variance, bias : arrays
        `s_i` and `b_i` of each worker.
    """

    heavy: bool
    variance: Floats
    bias: Floats

    def fit(self, block: Block) -> Fit:
        """Return the truths of the questions, given the workers."""
        return self._heavy(block) if self.heavy else self._normal(block)

    def _normal(self, block: Block) -> Fit:
        precision = 1.0 / self.variance
        total = block.total_weight(precision)
        values = block.weighted_values(precision)
        if self.bias.any():
            values = values - block.total_weight(precision * self.bias)
        return Fit(values / total, 1.0 / total)

    def _heavy(self, block: Block) -> Fit:
        precision, values = self._precision(block), self.unbiased(block)
        v = 1.0 / block.by_question(precision)
        # Values are relative to the median, which biases move.
        moved = replace(block, values=values) if self.bias.any() else None
        t = np.zeros(block.n_questions) if moved is None else moved.median
        # u_ij / s_i = 7 / (6 s_i + (y' - t_j)^2 + v_j); the factor 7 cancels in the truth.
        own = FREEDOM / precision
        for _ in range(INNER_STEPS):
            weight = block.spread(t)
            np.subtract(values, weight, out=weight)
            weight *= weight
            weight += block.spread(v)
            weight += own
            np.reciprocal(weight, out=weight)
            total = block.by_question(weight)
            weight *= values
            t = block.by_question(weight) / total
            v = 1.0 / ((FREEDOM + 1.0) * total)
        scaled = _scaled(block, values, precision, t, v)
        weight = scaled + FREEDOM
        np.divide(precision, weight, out=weight)
        weight *= FREEDOM + 1.0
        return Fit(t, v, weight, scaled)

    def unbiased(self, block: Block) -> Floats:
        """Return each answer minus the bias of its worker."""
        return block.values - self.bias.take(block.workers) if self.bias.any() else block.values

    def _precision(self, block: Block) -> Floats:
        precision = (1.0 / self.variance).take(block.workers)
        if block.precision is not None:
            precision *= block.precision
        return precision

    def shares(self, block: Block, fit: Fit) -> Floats:
        """Return the share `p_ij = u_ij v_j / s_i` of each answer in the truth of its question."""
        weight = self._precision(block) if fit.weight is None else fit.weight
        return weight * block.spread(fit.v)

    def tally(self, block: Block, fit: Fit) -> Floats:
        """Return five sums for each worker, over questions with two answers, with `a_ij = u_ij / s_i`.

        sum a,   sum a p,   sum a (y - t),   sum u ((y' - t)^2 + v),   sum p
        """
        t, v, inside = fit.t, fit.v, block.informative
        columns = np.column_stack([inside, inside * v, inside * t])
        s, b = self.variance, self.bias
        if fit.weight is None or fit.scaled is None:
            count, slack, level = block.by_worker(block.precision, columns).T
            squared = slack
            if block.precision is not None:
                squared = block.by_worker(block.precision * block.precision, inside * v)
            rest = block.by_worker(block.weighted, inside) - level
            q = block.squared_distances(t) - 2.0 * b * rest + b * b * count + slack
            rows = [count / s, squared / s**2, rest / s, np.maximum(q, 0.0), slack / s]
            return np.stack(rows)
        weight = fit.weight
        total, own, level = block.by_worker(weight, columns).T
        squared = block.by_worker(weight * weight, inside * v)
        rest = block.by_worker(weight * block.values, inside) - level
        # u ((y' - t)^2 + v) = s_i u times the scaled square, where precisions of answers cancel.
        u_scaled = fit.scaled * ((FREEDOM + 1.0) / (FREEDOM + fit.scaled))
        return np.stack([total, squared, rest, s * block.by_worker(u_scaled, inside), own])

    def evidence(self, block: Block, fit: Fit) -> tuple[Fit, Floats]:
        """Return truths that are posterior means, and the log marginal likelihood of each question.

        For heavy-tailed errors both are sums over 15 nodes, `t_j + g sqrt(v_j)` with g = -7 .. 7.
        """
        from scipy.special import gammaln

        values, precision = self.unbiased(block), self._precision(block)
        level: Floats = -0.5 * block.by_question(np.log(self.variance).take(block.workers))
        if not self.heavy:
            level -= 0.5 * block.counts * np.log(2.0 * np.pi)
            rest = values - block.spread(fit.t)
            level -= 0.5 * block.by_question(rest * rest * precision)
            return fit, level + 0.5 * np.log(2.0 * np.pi * fit.v)
        constant = gammaln(0.5 * (FREEDOM + 1.0)) - gammaln(0.5 * FREEDOM)
        level += block.counts * (constant - 0.5 * np.log(FREEDOM * np.pi))
        step = np.sqrt(fit.v)
        root = np.sqrt(precision / FREEDOM)
        rest = (values - block.spread(fit.t)) * root
        root *= block.spread(step)
        nodes = np.arange(-REACH, REACH + 1.0)
        logs = np.empty((len(nodes), block.n_questions))
        farthest = np.abs(rest).max(initial=0.0) + REACH * root.max(initial=0.0)
        # The logarithm of a product is quicker than a sum of logarithms, where the product is a number.
        short = block.counts.max(initial=1) * np.log1p(farthest**2) < LARGEST_LOG
        for row, node in zip(logs, nodes, strict=True):
            far = rest - node * root
            far *= far
            if short:
                far += 1.0
                np.log(np.multiply.reduceat(far, block.indptr[:-1]), out=row)
            else:
                row[:] = block.by_question(np.log1p(far, out=far))
        logs *= -0.5 * (FREEDOM + 1.0)
        peak = logs.max(axis=0)
        mass = np.exp(logs - peak)
        total = mass.sum(axis=0)
        mass /= total
        mean = nodes @ mass
        spread = (mass * (nodes[:, None] - mean) ** 2).sum(axis=0)
        level = level + peak + np.log(total * step)
        fit = replace(fit, t=fit.t + mean * step, v=spread * fit.v)
        return fit, level


def _scaled(block: Block, values: Floats, precision: Floats, t: Floats, v: Floats) -> Floats:
    """Return `((y' - t_j)^2 + v_j) / s_i` of each answer."""
    scaled = block.spread(t)
    np.subtract(values, scaled, out=scaled)
    scaled *= scaled
    scaled += block.spread(v)
    scaled *= precision
    return scaled


def mean_model(block: Block, pool: Floats) -> tuple[Fit, Floats]:
    """Return the plain means and their log marginal likelihood, all workers having the pooled variance."""
    weight, total = block.weigh(np.ones(block.n_workers))
    t = total / weight
    rest = block.by_question(block.squares(t))
    level: Floats = (block.counts - 1.0) * np.log(2.0 * np.pi * pool) + np.log(weight) + rest / pool
    return Fit(t, pool / weight), -0.5 * level
