"""Screening: set gross questions aside and subtract constant biases before estimating the noise of workers.

One absurd answer would inflate the noise of everybody who answered the same question. A worker who always answers 5 too
high is not noisy: on a complete panel its bias shifts all questions alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from trueup.algorithms.facts import count_answers, pooled_variance
from trueup.core.arrays import offsets, rectangles, segment_max, segment_sum
from trueup.engines import vectors
from trueup.engines.protocol import Visit
from trueup.engines.question_sample import sample_questions

if TYPE_CHECKING:
    from collections.abc import Collection

    from trueup.algorithms.facts import Facts
    from trueup.answers.block import Block
    from trueup.core.arrays import Bools, Floats, Ints
    from trueup.engines.protocol import Engine, Kept

#: A question is gross if its variance exceeds this many times the mean of the nine tenths with the smallest variance.
GROSS = 100.0
#: A panel with fewer questions that have two answers has no gross questions.
FEWEST_QUESTIONS = 5
#: A single answer makes a question gross if the other answers have at most this share of its sum of squares.
REST_SHARE = 0.05
#: What the engine keeps of gross questions.
MARKS = (vectors.GROSS, vectors.ABSURD, vectors.OTHERS_LOWEST, vectors.OTHERS_HIGHEST)
#: Seed for the sample of questions of a very large problem.
SEED = 0
#: Biases whose variance is below this share of the noise are rounding error.
ROUNDING = 1e-9
#: Squares that biases reduce to less than this share would lose digits in a subtraction.
DIGITS_LEFT = 1e-3
#: Noise below this share of the pooled variance is rounding error: the biases explain everything.
EXACT = 1e-26
#: Biases above this many standard deviations of the noise would cost digits if answers were not centred anew.
LARGE_BIAS = 100.0


@dataclass(frozen=True, eq=False)
class Screening:
    """The answers without gross questions and biases, and a record of both.

    Attributes
    ----------
    engine : Engine
        Engine over the answers minus the bias of their worker, gross questions set aside.
    facts : Facts
        Facts about these answers; `pool` is their pooled variance.
    n_gross : int
        Number of gross questions.
    marks : dict of arrays
        What the engine keeps of gross questions: `vectors.GROSS`, `ABSURD`, `OTHERS_LOWEST` and `OTHERS_HIGHEST`.
    freedom : array
        `f_i = sum_j (1 - 1/k_j)` of each worker: degrees of freedom of its residuals from the means.
    """

    engine: Engine
    facts: Facts
    n_gross: int
    marks: dict[str, Floats]
    freedom: Floats

    @property
    def gross(self) -> Bools:
        """Whether each question is gross."""
        return self.marks[vectors.GROSS] > 0

    @property
    def absurd(self) -> Bools:
        """Whether a single answer made the question gross."""
        return self.marks[vectors.ABSURD] > 0

    def keep_in(self, engine: Engine) -> None:
        """Store the marks in an engine again, in case others have replaced them."""
        for name, mark in self.marks.items():
            engine.keep(name, mark)

    @property
    def biased(self) -> Floats:
        """1 for panels with biases, else 0: the degree of freedom that the bias of a worker uses up."""
        assert self.facts.bias_variance is not None  # noqa: S101  set by screen()
        return (self.facts.bias_variance > 0).astype(np.float64)


def screen(engine: Engine, facts: Facts, *, skip: Collection[str] = ()) -> Screening:
    """Set gross questions aside and subtract biases, in each panel; `skip` may name "gross" and "biases"."""
    if "gross" in skip:
        n_gross = 0
        engine.keep(vectors.GROSS, 0.0)
        engine.keep(vectors.ABSURD, 0.0)
        engine.keep(vectors.OTHERS_LOWEST, np.nan)
        engine.keep(vectors.OTHERS_HIGHEST, np.nan)
    else:
        n_gross = mark_gross_questions(engine)
    screened = engine
    if n_gross:
        screened = engine.changed(without_gross_questions, reads=(vectors.GROSS,))
        counts = count_answers(screened)
        within, overlap = counts.panel_sums
        facts = replace(
            facts,
            n_informative=counts.sums[1],
            precision=counts.sums[2],
            precision_squared=counts.sums[3],
            pool=pooled_variance(within, overlap),
            overlap=overlap,
        )
    facts, freedom = _find_biases(screened, facts, keep="biases" not in skip)
    bias = facts.bias
    assert bias is not None and facts.bias_variance is not None  # noqa: S101, PT018  just set
    if facts.bias_variance.any():
        large = bool((np.abs(bias) > LARGE_BIAS * np.sqrt(facts.pool_of_worker)).any())

        def adjust(block: Block, kept: Kept) -> Block:
            aside = kept[vectors.GROSS] > 0 if n_gross else None
            return block.adjusted(bias[block.worker_slice], aside, recentre=large)

        screened = engine.changed(adjust, reads=(vectors.GROSS,))
    marks = {name: engine.kept(name) for name in MARKS}
    return Screening(screened, facts, n_gross, marks, freedom)


def without_gross_questions(block: Block, kept: Kept) -> Block:
    """Return the block with gross questions set aside."""
    return block.adjusted(None, kept[vectors.GROSS] > 0)


def mark_gross_questions(engine: Engine) -> int:
    """Mark gross questions in the engine, as `vectors.GROSS` and `vectors.ABSURD`; return their number.

    A question is gross if its variance is more than 100 times the mean of the nine tenths with the smallest variance,
    in panels with at least five questions that have two answers. It is absurd if a single answer made it gross: the
    others have less than a twentieth of its sum of squares. Where all workers scatter widely around a large number, no
    answer is to blame. For a very large problem the nine tenths are those of a sample of questions.
    """
    sample = sample_questions(engine, SEED)

    def measure(block: Block, kept: Kept) -> Visit:
        variance = block.within / np.maximum(block.counts - 1.0, 1.0)
        variance = np.where(block.informative > 0, variance, np.inf)
        inside = sample.inside(block, kept)
        return Visit(
            panel_sums=segment_sum(inside.astype(np.float64), block.panel_questions)[None],
            questions={vectors.SCREENED_VARIANCE: variance},
            rows={vectors.SCREENED_VARIANCE: variance[inside]},
        )

    sweep = engine.sweep(measure, reads=sample.reads)
    limit = _limits(
        sweep.rows[vectors.SCREENED_VARIANCE], offsets(sweep.panel_sums[0].astype(np.int64))
    )

    def mark(block: Block, kept: Kept) -> Visit:
        variance = kept[vectors.SCREENED_VARIANCE]
        is_gross = (variance > block.of_panel(limit)) & np.isfinite(variance)
        gross = is_gross.astype(np.float64)
        return Visit(
            panel_sums=segment_sum(gross, block.panel_questions)[None],
            questions={vectors.GROSS: gross},
        )

    reads = (vectors.SCREENED_VARIANCE,)
    n_gross = int(engine.sweep(mark, reads=reads, answers=False).panel_sums.sum())
    if n_gross:
        engine.sweep(_look_at_gross_questions, reads=(vectors.GROSS,))
    else:
        engine.keep(vectors.ABSURD, 0.0)
        engine.keep(vectors.OTHERS_LOWEST, np.nan)
        engine.keep(vectors.OTHERS_HIGHEST, np.nan)
    return n_gross


def _look_at_gross_questions(block: Block, kept: Kept) -> Visit:
    """Mark absurd questions; keep the range of their answers without the farthest one (of two, neither is)."""
    gross = kept[vectors.GROSS] > 0
    part = block.part(gross)
    one = _has_single_outlier(part)
    low, high = np.empty((2, part.n_questions))
    for rows, positions in rectangles(part.indptr):
        ordered = np.sort(part.values[positions], axis=1)
        mean = ordered.mean(axis=1)
        too_high = ordered[:, -1] - mean > mean - ordered[:, 0]
        last = ordered.shape[1] - 1
        several = last >= 2
        low[rows] = np.where(several & ~too_high, ordered[:, min(1, last)], ordered[:, 0])
        high[rows] = np.where(several & too_high, ordered[:, max(last - 1, 0)], ordered[:, last])
    absurd = np.zeros(block.n_questions)
    lowest, highest = np.full((2, block.n_questions), np.nan)
    absurd[gross] = one
    lowest[gross] = np.where(one, part.centre + low, np.nan)
    highest[gross] = np.where(one, part.centre + high, np.nan)
    return Visit(
        questions={
            vectors.ABSURD: absurd,
            vectors.OTHERS_LOWEST: lowest,
            vectors.OTHERS_HIGHEST: highest,
        }
    )


def _has_single_outlier(block: Block) -> Bools:
    """Return whether a single answer to each question has nearly all of its sum of squares; one of two does."""
    counts = block.counts
    farthest = segment_max(np.abs(block.residuals(block.mean)), block.indptr.astype(np.int64))
    # Without the farthest answer the sum of squares falls by d^2 k / (k - 1).
    drop = farthest**2 * counts / np.maximum(counts - 1.0, 1.0)
    one: Bools = (counts == 2) | (drop >= (1.0 - REST_SHARE) * block.std**2 * counts)
    return one


def _limits(variance: Floats, borders: Ints) -> Floats:
    """Return the variance above which a question is gross, for each panel; infinite with too few questions.

    It is 100 times the mean of the nine tenths of the variances that are smallest.
    """
    limit = np.full(len(borders) - 1, np.inf)
    filled = np.flatnonzero(borders[1:] > borders[:-1])
    for rows, positions in rectangles(np.append(borders[filled], borders[-1])):
        panels = variance[positions]
        n_known = np.isfinite(panels).sum(axis=1)
        n_smallest = 9 * n_known // 10
        one_panel = len(panels) == 1  # then the order of the smallest is not needed
        last = max(int(n_smallest[0]) - 1, 0)
        ordered = np.partition(panels, last) if one_panel else np.sort(panels)
        is_smallest = np.arange(panels.shape[1]) < n_smallest[:, None]
        mean = np.sum(ordered, axis=1, where=is_smallest) / np.maximum(n_smallest, 1)
        usable = (n_known >= FEWEST_QUESTIONS) & (mean > 0)
        limit[filled[rows]] = np.where(usable, GROSS * mean, np.inf)
    return limit


def _find_biases(engine: Engine, facts: Facts, *, keep: bool) -> tuple[Facts, Floats]:
    """Estimate the bias of each worker; return facts that include it, and the degrees of freedom of each worker.

        b_i  = mean_j (x_ij - mean_j)
        s2   = sum (x_ij - mean_j - b_i)^2 / (df - nb)
        tb2  = ( sum_i K_i b_i^2 - s2 sum_i f_i / K_i ) / sum_i f_i

    over the nb + 1 workers with at least two informative answers. Biases are 0 in panels where tb2 <= 0, which means
    that they are no larger than the noise explains.
    """

    def sum_deviations(block: Block, kept: Kept) -> Visit:  # noqa: ARG001
        weight, total = block.weigh(np.ones(block.n_workers))
        mean, inside = total / weight, block.informative
        deviation = block.by_worker(block.weighted, inside) - block.by_worker(
            block.precision, inside * mean
        )
        own = block.by_worker(block.precision, inside / weight)
        return Visit(sums=np.stack([deviation, own]))

    deviation, own = engine.sweep(sum_deviations).sums
    freedom = np.maximum(facts.n_informative - own, 0.0)
    several = facts.n_informative >= 2
    bias = np.divide(deviation, facts.precision, out=np.zeros(len(own)), where=several)

    def sum_squares(block: Block, kept: Kept) -> Visit:  # noqa: ARG001
        weight, total = block.weigh(np.ones(block.n_workers))
        squares = block.residuals(total / weight)
        np.subtract(squares, bias[block.worker_slice].take(block.workers), out=squares)
        np.multiply(squares, squares, out=squares)
        if block.precision is not None:
            np.multiply(squares, block.precision, out=squares)
        total = block.informative * block.by_question(squares)
        return Visit(panel_sums=segment_sum(total, block.panel_questions)[None])

    # Each bias is the mean of its deviations, so that squares around it are those around 0 less its own.
    within = facts.pool * facts.overlap
    rest = within - facts.panel_sum(facts.precision * bias**2)
    few_digits = rest < DIGITS_LEFT * within  # the difference of nearly equal numbers
    if few_digits.any():
        rest = engine.sweep(sum_squares).panel_sums[0]
    with_bias = facts.panel_sum(several.astype(np.float64)) - 1.0
    enough = (with_bias >= 1) & (facts.overlap > with_bias) & (facts.pool > 0)
    s2 = np.divide(rest, facts.overlap - with_bias, out=np.zeros(len(rest)), where=enough)
    share = np.divide(freedom, facts.n_informative, out=np.zeros(len(own)), where=several)
    below = facts.panel_sum(freedom * several)
    above = facts.panel_sum(facts.precision * bias**2) - s2 * facts.panel_sum(share)
    noisy = s2 > EXACT * facts.pool
    tb2 = np.divide(above, below, out=np.zeros(len(rest)), where=enough & (below > 0) & noisy)
    # The difference of two equal numbers is rounding error, not bias.
    tb2 = np.where(keep & (tb2 > ROUNDING * s2), tb2, 0.0)
    bias = np.where(facts.spread(tb2) > 0, bias, 0.0)
    facts = replace(facts, pool=np.where(tb2 > 0, s2, facts.pool), bias=bias, bias_variance=tb2)
    return facts, freedom
