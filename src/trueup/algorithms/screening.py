"""What must be set apart before the noise of workers can be seen: gross questions, and constant biases.

A question with one absurd answer would drown the noise of everybody who answered it. A worker who always says 5 too
much is not noisy: on a complete panel the bias shifts all questions alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from trueup.algorithms.facts import count
from trueup.core.arrays import offsets, rectangles, segment_max, segment_sum
from trueup.engines import vectors
from trueup.engines.protocol import Visit
from trueup.engines.question_sample import sample_questions

if TYPE_CHECKING:
    from collections.abc import Collection

    from trueup.algorithms.contract import Facts
    from trueup.answers.block import Block
    from trueup.core.arrays import Bools, Floats, Ints
    from trueup.engines.protocol import Engine, Kept

#: A question is gross if its variance exceeds this many times the mean of the quieter nine tenths.
GROSS = 100.0
#: Questions with two answers below which none is called gross.
FEWEST = 5
#: Share of the sum of squares that the other answers may have where one answer is to blame.
REST = 0.05
#: Of the sample of questions of a very large problem; the same for everybody.
SEED = 0
#: Biases whose variance is less than this share of the noise are rounding.
ROUNDING = 1e-9
#: Noise below this share of the pooled variance is rounding: where biases explain all there is nothing to weigh.
EXACT = 1e-26


@dataclass(frozen=True, eq=False)
class Apart:
    """The answers without gross questions and biases, and what was taken away.

    Attributes
    ----------
    engine : Engine
        Passes over the answers less the bias of their worker, gross questions aside.
    facts : Facts
        What is known of these answers; `pool` is their pooled variance.
    n_gross : int
        How many questions were set aside.
    marks : pair of arrays
        Above 0 where a question was set aside, and where a single answer made it so. The engine keeps them as
        `vectors.GROSS` and `vectors.ABSURD`.
    freedom : array
        `f_i = sum_j (1 - 1/k_j)` of each worker: the degrees of freedom of its residuals from the means.
    """

    engine: Engine
    facts: Facts
    n_gross: int
    marks: tuple[Floats, Floats]
    freedom: Floats

    @property
    def gross(self) -> Bools:
        """Whether each question was set aside."""
        return self.marks[0] > 0

    @property
    def absurd(self) -> Bools:
        """Whether it is a single answer that made it gross."""
        return self.marks[1] > 0

    def keep_in(self, engine: Engine) -> None:
        """Let an engine keep the marks, in whose place others may have come."""
        for name, mark in zip((vectors.GROSS, vectors.ABSURD), self.marks, strict=True):
            engine.keep(name, mark)

    @property
    def biased(self) -> Floats:
        """1 for panels with biases, else 0: the degree of freedom that a worker's bias takes."""
        assert self.facts.bias_variance is not None  # noqa: S101  set below
        return (self.facts.bias_variance > 0).astype(np.float64)


def set_apart(engine: Engine, facts: Facts, *, without: Collection[str] = ()) -> Apart:
    """Set gross questions and biases apart, in each panel; `without` "gross" or "biases" leaves them in."""
    if "gross" in without:
        n_gross = 0
        engine.keep(vectors.GROSS, 0.0)
        engine.keep(vectors.ABSURD, 0.0)
    else:
        n_gross = gross_questions(engine)
    rest = engine
    if n_gross:
        rest = engine.changed(set_aside, reads=(vectors.GROSS,))
        found = count(rest)
        within, overlap = found.panel_sums
        pool = np.divide(within, overlap, out=np.zeros(len(overlap)), where=overlap > 0)
        facts = replace(
            facts,
            n_informative=found.sums[1],
            precision=found.sums[2],
            precision_squared=found.sums[3],
            pool=pool,
            overlap=overlap,
        )
    facts, freedom = _find_biases(rest, facts, keep="biases" not in without)
    bias = facts.bias
    assert bias is not None and facts.bias_variance is not None  # noqa: S101, PT018  just found
    if facts.bias_variance.any():

        def change(block: Block, kept: Kept) -> Block:
            aside = kept[vectors.GROSS] > 0 if n_gross else None
            return block.adjusted(bias[block.worker_slice], aside)

        rest = engine.changed(change, reads=(vectors.GROSS,))
    marks = engine.kept(vectors.GROSS), engine.kept(vectors.ABSURD)
    return Apart(rest, facts, n_gross, marks, freedom)


def set_aside(block: Block, kept: Kept) -> Block:
    """Return the block with gross questions set aside."""
    return block.adjusted(None, kept[vectors.GROSS] > 0)


def gross_questions(engine: Engine) -> int:
    """Find the questions with a variance more than 100 times that of the quieter nine tenths; return their number.

    Only in panels with at least five questions that have two answers. A question is gross by one answer, absurd, if the
    others have less than a twentieth of its sum of squares: a large number on which all scatter widely is no error.
    The engine keeps both. Of a very large problem the quieter nine tenths of a sample are taken.
    """
    sample = sample_questions(engine, SEED)

    def look(block: Block, kept: Kept) -> Visit:
        counts = block.counts
        variance = block.within / np.maximum(counts - 1.0, 1.0)
        farthest = segment_max(np.abs(block.residuals(block.mean)), block.indptr.astype(np.int64))
        # Without the farthest answer the sum of squares falls by d^2 k / (k - 1).
        one = farthest**2 * counts / np.maximum(counts - 1.0, 1.0)
        alone = np.where(counts == 2, True, one >= (1.0 - REST) * block.std**2 * counts)
        variance = np.where(block.informative > 0, variance, np.inf)
        inside = sample.inside(block, kept)
        return Visit(
            panel_sums=segment_sum(inside.astype(np.float64), block.panel_questions)[None],
            questions={
                vectors.SCREENED_VARIANCE: variance,
                vectors.SINGLE_OUTLIER: alone.astype(np.float64),
            },
            rows={vectors.SCREENED_VARIANCE: variance[inside]},
        )

    sweep = engine.sweep(look, reads=sample.reads)
    limit = _limits(
        sweep.rows[vectors.SCREENED_VARIANCE], offsets(sweep.panel_sums[0].astype(np.int64))
    )

    def mark(block: Block, kept: Kept) -> Visit:
        variance = kept[vectors.SCREENED_VARIANCE]
        gross = (variance > block.of_panel(limit)) & np.isfinite(variance)
        found = gross.astype(np.float64)
        return Visit(
            panel_sums=segment_sum(found, block.panel_questions)[None],
            questions={vectors.GROSS: found, vectors.ABSURD: found * kept[vectors.SINGLE_OUTLIER]},
        )

    return int(
        engine.sweep(
            mark, reads=(vectors.SCREENED_VARIANCE, vectors.SINGLE_OUTLIER), answers=False
        ).panel_sums.sum()
    )


def _limits(variance: Floats, borders: Ints) -> Floats:
    """Return 100 times the mean of the quieter nine tenths of the variances of each panel, infinite where too few."""
    limit = np.full(len(borders) - 1, np.inf)
    filled = np.flatnonzero(borders[1:] > borders[:-1])
    for rows, positions in rectangles(np.append(borders[filled], borders[-1])):
        here = variance[positions]
        known = np.isfinite(here).sum(axis=1)
        quiet = 9 * known // 10
        alone = len(here) == 1  # of one large panel the order of the quiet ones is not needed
        below = np.partition(here, max(int(quiet[0]) - 1, 0)) if alone else np.sort(here)
        counted = np.arange(here.shape[1]) < quiet[:, None]
        mean = np.sum(below, axis=1, where=counted) / np.maximum(quiet, 1)
        usable = (known >= FEWEST) & (mean > 0)
        limit[filled[rows]] = np.where(usable, GROSS * mean, np.inf)
    return limit


def _find_biases(engine: Engine, facts: Facts, *, keep: bool) -> tuple[Facts, Floats]:
    """Estimate the bias of each worker, where biases are more than noise; return it in the facts, and the freedom.

        b_i  = mean_j (x_ij - mean_j)
        s2   = sum (x_ij - mean_j - b_i)^2 / (df - nb)
        tb2  = ( sum_i K_i b_i^2 - s2 sum_i f_i / K_i ) / sum_i f_i

    over workers with at least two informative answers, of whom there are nb + 1. Biases are kept where tb2 > 0.
    """

    def first(block: Block, kept: Kept) -> Visit:  # noqa: ARG001
        weight, total = block.weigh(np.ones(block.n_workers))
        mean, inside = total / weight, block.informative
        deviation = block.by_worker(block.weighted, inside) - block.by_worker(
            block.precision, inside * mean
        )
        own = block.by_worker(block.precision, inside / weight)
        return Visit(sums=np.stack([deviation, own]), questions={vectors.ANSWER_MEAN: mean})

    deviation, own = engine.sweep(first).sums
    freedom = np.maximum(facts.n_informative - own, 0.0)
    several = facts.n_informative >= 2
    bias = np.divide(deviation, facts.precision, out=np.zeros(len(own)), where=several)

    def second(block: Block, kept: Kept) -> Visit:
        rest = block.residuals(kept[vectors.ANSWER_MEAN])
        np.subtract(rest, bias[block.worker_slice].take(block.workers), out=rest)
        np.multiply(rest, rest, out=rest)
        if block.precision is not None:
            np.multiply(rest, block.precision, out=rest)
        total = block.informative * block.by_question(rest)
        return Visit(panel_sums=segment_sum(total, block.panel_questions)[None])

    rest = engine.sweep(second, reads=(vectors.ANSWER_MEAN,)).panel_sums[0]
    with_bias = facts.panel_sum(several.astype(np.float64)) - 1.0
    enough = (with_bias >= 1) & (facts.overlap > with_bias) & (facts.pool > 0)
    s2 = np.divide(rest, facts.overlap - with_bias, out=np.zeros(len(rest)), where=enough)
    share = np.divide(freedom, facts.n_informative, out=np.zeros(len(own)), where=several)
    below = facts.panel_sum(freedom * several)
    above = facts.panel_sum(facts.precision * bias**2) - s2 * facts.panel_sum(share)
    noisy = s2 > EXACT * facts.pool
    tb2 = np.divide(above, below, out=np.zeros(len(rest)), where=enough & (below > 0) & noisy)
    # What is left of two equal numbers by rounding is no bias.
    tb2 = np.where(keep & (tb2 > ROUNDING * s2), tb2, 0.0)
    bias = np.where(facts.spread(tb2) > 0, bias, 0.0)
    facts = replace(facts, pool=np.where(tb2 > 0, s2, facts.pool), bias=bias, bias_variance=tb2)
    return facts, freedom
