"""What must be set apart before the noise of workers can be seen: gross questions, and constant biases.

A question with one absurd answer would drown the noise of everybody who answered it. A worker who always says 5 too
much is not noisy: on a complete panel the bias shifts all questions alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from trueup.algorithms.survey import count
from trueup.arrays import rectangles, segment_max, segment_sum
from trueup.engines.protocol import Visit

if TYPE_CHECKING:
    from collections.abc import Collection

    from trueup.algorithms.contract import Facts
    from trueup.arrays import Bools, Floats
    from trueup.block import Block
    from trueup.engines.protocol import Engine

#: A question is gross if its variance exceeds this many times the mean of the quieter nine tenths.
GROSS = 100.0
#: Questions with two answers below which none is called gross.
FEWEST = 5
#: Share of the sum of squares that the other answers may have where one answer is to blame.
REST = 0.05
#: Biases whose variance is less than this share of the noise are rounding.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Apart:
    """The answers without gross questions and biases, and what was taken away.

    Attributes
    ----------
    engine : Engine
        Passes over the answers less the bias of their worker, gross questions aside.
    facts : Facts
        What is known of these answers; `pool` is their pooled variance.
    gross : array
        Whether each question was set aside.
    absurd : array
        Whether it is a single answer that made it gross.
    freedom : array
        `f_i = sum_j (1 - 1/k_j)` of each worker: the degrees of freedom of its residuals from the means.
    """

    engine: Engine
    facts: Facts
    gross: Bools
    absurd: Bools
    freedom: Floats

    @property
    def biased(self) -> Floats:
        """1 for panels with biases, else 0: the degree of freedom that a worker's bias takes."""
        assert self.facts.bias_variance is not None  # noqa: S101  set below
        return (self.facts.bias_variance > 0).astype(np.float64)


def set_apart(engine: Engine, facts: Facts, *, without: Collection[str] = ()) -> Apart:
    """Set gross questions and biases apart, in each panel; `without` "gross" or "biases" leaves them in."""
    gross, absurd = gross_questions(engine, facts)
    if "gross" in without:
        gross, absurd = np.zeros_like(gross), np.zeros_like(absurd)
    if gross.any():
        engine = engine.adjusted(None, gross)
        sums, (within, overlap) = count(engine)
        pool = np.divide(within, overlap, out=np.zeros(len(overlap)), where=overlap > 0)
        facts = replace(
            facts,
            n_informative=sums[1],
            precision=sums[2],
            precision_squared=sums[3],
            pool=pool,
            overlap=overlap,
        )
    return _take_biases(engine, facts, gross, absurd, keep="biases" not in without)


def gross_questions(engine: Engine, facts: Facts) -> tuple[Bools, Bools]:
    """Tell which questions have a variance more than 100 times that of the quieter nine tenths, and by one answer.

    Only in panels with at least five questions that have two answers. A question is gross by one answer if the others
    have less than a twentieth of its sum of squares: a large number on which all scatter widely is no error.
    """

    def visit(block: Block, kept: dict[str, Floats]) -> Visit:  # noqa: ARG001
        counts = block.counts
        variance = block.within / np.maximum(counts - 1.0, 1.0)
        farthest = segment_max(np.abs(block.residuals(block.mean)), block.indptr.astype(np.int64))
        # Without the farthest answer the sum of squares falls by d^2 k / (k - 1).
        one = farthest**2 * counts / np.maximum(counts - 1.0, 1.0)
        alone = np.where(counts == 2, True, one >= (1.0 - REST) * block.std**2 * counts)
        variance = np.where(block.informative > 0, variance, np.inf)
        return Visit(questions={"gross": variance, "alone": alone.astype(np.float64)})

    engine.sweep(visit)
    variance, borders = engine.kept("gross"), facts.panel_questions
    gross = np.zeros(len(variance), dtype=bool)
    filled = np.flatnonzero(borders[1:] > borders[:-1])
    for _, positions in rectangles(np.append(borders[filled], borders[-1])):
        here = variance[positions]
        known = np.isfinite(here).sum(axis=1)
        quiet = 9 * known // 10
        alone = len(here) == 1  # of one large panel the order of the quiet ones is not needed
        below = np.partition(here, max(int(quiet[0]) - 1, 0)) if alone else np.sort(here)
        counted = np.arange(here.shape[1]) < quiet[:, None]
        mean = np.sum(below, axis=1, where=counted) / np.maximum(quiet, 1)
        usable = (known >= FEWEST) & (mean > 0)
        limit = np.where(usable, GROSS * mean, np.inf)
        gross[positions] = (here > limit[:, None]) & np.isfinite(here)
    return gross, gross & (engine.kept("alone") > 0)


def _take_biases(engine: Engine, facts: Facts, gross: Bools, absurd: Bools, *, keep: bool) -> Apart:
    """Estimate the bias of each worker; take it off where biases are more than noise.

        b_i  = mean_j (x_ij - mean_j)
        s2   = sum (x_ij - mean_j - b_i)^2 / (df - nb)
        tb2  = ( sum_i K_i b_i^2 - s2 sum_i f_i / K_i ) / sum_i f_i

    over workers with at least two informative answers, of whom there are nb + 1. Biases are kept where tb2 > 0.
    """

    def first(block: Block, kept: dict[str, Floats]) -> Visit:  # noqa: ARG001
        weight, total = block.weigh(np.ones(block.n_workers))
        mean, inside = total / weight, block.informative
        deviation = block.by_worker(block.weighted, inside) - block.by_worker(
            block.precision, inside * mean
        )
        own = block.by_worker(block.precision, inside / weight)
        return Visit(sums=np.stack([deviation, own]), questions={"mean": mean})

    deviation, own = engine.sweep(first).sums
    freedom = np.maximum(facts.n_informative - own, 0.0)
    several = facts.n_informative >= 2
    bias = np.divide(deviation, facts.precision, out=np.zeros(len(own)), where=several)

    def second(block: Block, kept: dict[str, Floats]) -> Visit:
        rest = block.residuals(kept["mean"])
        np.subtract(rest, bias[block.worker_slice].take(block.workers), out=rest)
        np.multiply(rest, rest, out=rest)
        if block.precision is not None:
            np.multiply(rest, block.precision, out=rest)
        total = block.informative * block.by_question(rest)
        return Visit(panel_sums=segment_sum(total, block.panel_questions)[None])

    rest = engine.sweep(second).panel_sums[0]
    with_bias = facts.panel_sum(several.astype(np.float64)) - 1.0
    enough = (with_bias >= 1) & (facts.overlap > with_bias) & (facts.pool > 0)
    s2 = np.divide(rest, facts.overlap - with_bias, out=np.zeros(len(rest)), where=enough)
    share = np.divide(freedom, facts.n_informative, out=np.zeros(len(own)), where=several)
    below = facts.panel_sum(freedom * several)
    above = facts.panel_sum(facts.precision * bias**2) - s2 * facts.panel_sum(share)
    tb2 = np.divide(above, below, out=np.zeros(len(rest)), where=enough & (below > 0) & (s2 > 0))
    # What is left of two equal numbers by rounding is no bias.
    tb2 = np.where(keep & (tb2 > ROUNDING * s2), tb2, 0.0)
    bias = np.where(facts.spread(tb2) > 0, bias, 0.0)
    facts = replace(facts, pool=np.where(tb2 > 0, s2, facts.pool), bias=bias, bias_variance=tb2)
    if tb2.any():
        engine = engine.adjusted(bias, gross if gross.any() else None)
    return Apart(engine, facts, gross, absurd, freedom)
