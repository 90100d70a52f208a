"""A block: the answers to a run of questions, and the sums every algorithm is made of.

A block is a sparse matrix, questions x workers, stored question by question. All that algorithms do with
it is one of four moves, each a single pass over its answers in compiled code:

=================  ==========================================================
`weigh(w)`         sums over the answers of each question, weighted by worker
`residuals(x)`     answer minus truth, one number per answer
`by_worker(a)`     sums of a number per answer over the answers of each worker
`by_question(a)`   the same over the answers of each question
=================  ==========================================================

What leaves a block is either a number per question or a sum per worker; the latter add up over blocks, so
that the same algorithm runs on one block in memory, on many, or on those of another machine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from trueup.core.arrays import (
    Bools,
    Floats,
    Indices,
    Ints,
    equal_segments,
    expand,
    offsets,
    rectangles,
    segment_max,
    segment_sum,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

Number = TypeVar("Number", bound=np.generic)
# What squared residuals are multiplied with, for each question.
Scaling = Literal["informative", "inverse_std", "inverse_variance"]

# Spreads below this share of the largest deviation from the centre are rounding, not disagreement.
ROUNDING = 1e-12
# Answers that differ by less agree: the square of such a difference is hardly a number.
SMALLEST_STD = 1e-150

# Answers from which on numbers are spread without np.repeat, which other threads have to wait for.
SERIAL = 1 << 14

_ones: Floats = np.ones(0)


def _ones_of(length: int) -> Floats:
    """Return a shared read-only vector of ones: blocks of the same run reuse one that stays in the cache."""
    global _ones  # noqa: PLW0603  a cache, grown at most a few times
    ones = _ones  # another thread may put another in its place
    if len(ones) < length:
        ones = np.ones(length)
        ones.flags.writeable = False
        _ones = ones
    return ones[:length]


@dataclass(frozen=True, eq=False)
class Block:
    """The answers to the questions `start .. stop`, values relative to the centre of their question.

    Workers are numbered from 0 inside the block; `first_worker` is the number of the first of them in the
    whole (other than 0 only with panels, where a block needs the workers of its own panels alone). Questions marked
    in `aside` teach nothing about workers.

    What an algorithm does with a block is made of four moves: `weigh(weight)`, sums over the answers of each question,
    weighted by worker; `residuals(x)`, answer minus truth for each answer; `by_worker(a, factor)` and `by_question(a)`,
    sums of a number per answer over the answers of each worker and of each question. Arrays are not to be written to.

    Attributes
    ----------
    indptr : array
        The answers to question j of the block are at positions `indptr[j] .. indptr[j+1]`.
    workers : array
        Number of the worker of each answer, inside the block.
    values : array
        Each answer minus the centre of its question.
    precision : array or None
        How precise each answer is relative to the others, where variances of answers are known.
    n_workers : int
        Number of workers.
    start, first_worker, first_panel : int
        Numbers of the first question, worker and panel among all.
    panel_questions : array
        Panel b of the block has the questions from entry b up to entry b+1.
    aside : array or None
        Questions that teach nothing about workers.
    centre : array
        What the values of each question are relative to.
    given : array or None
        The answers as given, where `values + centre` loses digits of them; None: it does not, or they were changed.

    Examples
    --------
    Two workers, two questions, three answers:

    >>> from trueup import Answers
    >>> (block,) = Answers.from_matrix([[1.0, 5.0], [3.0, np.nan]]).blocks()
    >>> block.answers.tolist(), block.workers.tolist(), block.indptr.tolist()
    ([1.0, 3.0, 5.0], [0, 1, 0], [0, 2, 3])
    >>> weight, total = block.weigh(np.array([1.0, 3.0]))
    >>> (block.centre + total / weight).tolist()
    [2.5, 5.0]
    >>> block.by_worker(block.residuals(total / weight) ** 2, block.informative).tolist()
    [2.25, 0.25]
    """

    indptr: Indices
    workers: Indices
    values: Floats
    precision: Floats | None
    n_workers: int
    start: int
    first_worker: int
    panel_questions: Ints
    first_panel: int
    centre: Floats
    aside: Bools | None = None
    given: Floats | None = None

    @property
    def n_questions(self) -> int:
        """Number of questions."""
        return len(self.indptr) - 1

    @property
    def stop(self) -> int:
        """Number of the first question after this block."""
        return self.start + self.n_questions

    @property
    def worker_slice(self) -> slice:
        """Where the workers of this block are among all workers."""
        return slice(self.first_worker, self.first_worker + self.n_workers)

    @property
    def panel_slice(self) -> slice:
        """Where the panels of this block are among all panels."""
        return slice(self.first_panel, self.first_panel + len(self.panel_questions) - 1)

    def of_panel(self, per_panel: NDArray[Number]) -> NDArray[Number]:
        """Return for each question the number of its panel, given one for every panel of the whole."""
        mine = per_panel[self.panel_slice]
        return np.repeat(mine, np.diff(self.panel_questions))

    # -- facts about answers and questions ---------------------------------------------------

    @property
    def answers(self) -> Floats:
        """Each answer itself, not relative to the centre."""
        return self.values + self.spread(self.centre) if self.given is None else self.given

    @cached_property
    def weighted(self) -> Floats:
        """Each value times its precision."""
        return self.values if self.precision is None else self.values * self.precision

    @cached_property
    def weighted_squares(self) -> Floats:
        """Each value squared times its precision; kept, at the price of 8 bytes an answer."""
        return self.weighted * self.values

    @cached_property
    def counts(self) -> Ints:
        """Number of answers of each question."""
        return np.diff(self.indptr).astype(np.int64)

    @cached_property
    def width(self) -> int:
        """Number of answers of every question, if it is the same for all, else 0."""
        first = int(self.counts[0]) if len(self.counts) else 0
        return first if (self.counts == first).all() else 0

    @cached_property
    def informative(self) -> Floats:
        """1 for questions with two answers or more, else 0: a lone answer says nothing of its author."""
        several = self.counts >= 2
        return (several if self.aside is None else several & ~self.aside).astype(np.float64)

    @cached_property
    def mean(self) -> Floats:
        """Plain mean of each question."""
        return self.by_question(self.values) / self.counts

    @cached_property
    def std(self) -> Floats:
        """Standard deviation of each question (divisor k), exactly 0 where all answers agree."""
        deviation = self.residuals(self.mean)
        np.multiply(deviation, deviation, out=deviation)
        std = np.sqrt(self.by_question(deviation) / self.counts)
        # No value is further from 0 than the root of the sum of all squares; few questions are as close as that.
        farthest = np.sqrt(self.counts) * np.hypot(self.mean, std)
        close = std <= np.maximum(2.0 * ROUNDING * farthest, SMALLEST_STD)
        if close.any():
            part = self.part(close)
            largest = segment_max(np.abs(part.values), part.indptr.astype(np.int64))
            std[close] *= std[close] > np.maximum(ROUNDING * largest, SMALLEST_STD)
        return std

    @cached_property
    def within(self) -> Floats:
        """Sum of squares of each question around its mean, every answer with its precision."""
        if self.precision is None:
            return self.std**2 * self.counts
        weight, total = self.weigh(np.ones(self.n_workers))
        return self.by_question(self.squares(total / weight)) * (self.std > 0)

    @cached_property
    def inverse_std(self) -> Floats:
        """One over the standard deviation of each question, 0 where all answers agree."""
        return np.divide(1.0, self.std, out=np.zeros(self.n_questions), where=self.std > 0)

    @cached_property
    def inverse_variance(self) -> Floats:
        """One over the variance of each question, 0 where all answers agree."""
        return self.inverse_std**2

    @cached_property
    def median(self) -> Floats:
        """Median of each question, the midpoint of the two middle answers for an even number."""
        median = np.empty(self.n_questions)
        for rows, values in equal_segments(self.values, self.indptr):
            k = values.shape[1]
            low, high = (k - 1) // 2, k // 2
            part = np.partition(values, (low, high), axis=1)
            # a + (b - a)/2, not (a + b)/2: equal middle answers come back exactly
            median[rows] = part[:, low] + 0.5 * (part[:, high] - part[:, low])
        return median

    def adjusted(self, bias: Floats | None, aside: Bools | None, *, recentre: bool = True) -> Block:
        """Return the block without the bias of each worker in its answers, and with some questions set aside.

        Values are relative to the mean of what is left, so that large biases cost no digits; where biases are known to
        be small this can be left out.
        """
        values, centre = self.values, self.centre
        if bias is not None:
            values = values - bias.take(self.workers)
        if bias is not None and recentre:
            mean = self.by_question(values) / self.counts
            np.subtract(values, self.spread(mean), out=values)
            centre = centre + mean
        given = self.given if bias is None else None
        return replace(self, values=values, centre=centre, aside=aside, given=given)

    def part(self, questions: Bools) -> Block:
        """Return a block with the questions that are marked, numbered from 0."""
        if questions.all():
            return self
        counts = self.counts[questions]
        at = expand(self.indptr[:-1][questions].astype(np.int64), counts)
        inside = segment_sum(questions.astype(np.float64), self.panel_questions)
        return Block(
            indptr=offsets(counts).astype(self.indptr.dtype),
            workers=self.workers[at],
            values=self.values[at],
            precision=None if self.precision is None else self.precision[at],
            n_workers=self.n_workers,
            start=0,
            first_worker=self.first_worker,
            panel_questions=offsets(inside.astype(np.int64)),
            first_panel=self.first_panel,
            centre=self.centre[questions],
            aside=None if self.aside is None else self.aside[questions],
            given=None if self.given is None else self.given[at],
        )

    # -- the four moves ---------------------------------------------------------------------------------

    def weigh(self, weight: Floats) -> tuple[Floats, Floats]:
        """Return for each question the sum of the weights and of weight times value.

        With known answer variances every answer counts with its relative precision as well.
        """
        return self.total_weight(weight), self.weighted_values(weight)

    def total_weight(self, weight: Floats) -> Floats:
        """Return the sum of the weights (times precision) of the answers of each question."""
        # Truths and tally of one iteration ask for the same sums: those asked for last are kept.
        if self._latest[0] is not weight:
            self._latest[:] = weight, self._weight_matrix @ weight
        total: Floats = self._latest[1]
        return total

    def weighted_values(self, weight: Floats) -> Floats:
        """Return the sum of weight (times precision) times value over the answers of each question."""
        total: Floats = self._value_matrix @ weight
        return total

    def residuals(self, x: Floats) -> Floats:
        """Return answer minus truth, for each answer."""
        residuals = self.spread(x)
        np.subtract(self.values, residuals, out=residuals)
        return residuals

    def squares(self, x: Floats) -> Floats:
        """Return the squared residual of each answer, times its relative precision."""
        squares = self.residuals(x)
        np.multiply(squares, squares, out=squares)
        if self.precision is not None:
            np.multiply(squares, self.precision, out=squares)
        return squares

    def squared_distances(
        self, x: Floats, per: Scaling = "informative", *, slack: Floats | None = None
    ) -> Floats:
        """Return for each worker the sum of its squared residuals (times precision), scaled per question.

        `slack` of a question is added to each of its squared residuals.

        By expanding the square: `sum y^2`, which is kept, minus `2 sum y x` plus `sum x^2`, two products over the
        answers without writing down a residual. Values are relative to an answer of their question, so that what is
        lost is the last digit relative to the spread of the answers.
        """
        factor: Floats = getattr(self, per)
        if per not in self._energy:
            self._energy[per] = self.by_worker(self.weighted * self.values, factor)
        scaled = factor * x
        cross = self.by_worker(self.weighted, scaled)
        scaled *= x
        if slack is not None:
            scaled += factor * slack
        total = self._energy[per] - 2.0 * cross + self.by_worker(self.precision, scaled)
        return np.maximum(total, 0.0)

    def by_worker(self, per_answer: Floats | None, factor: Floats) -> Floats:
        """Return for each worker the sum over its answers of `per_answer * factor of the question`.

        `per_answer` None stands for ones; `factor` may have several columns, then the result has, too.
        """
        matrix = self._turned
        matrix.data = _ones_of(len(self.workers)) if per_answer is None else per_answer
        total: Floats = matrix @ factor
        matrix.data = _ones_of(0)  # lets go of the numbers of this call
        return total

    def by_question(self, per_answer: Floats, factor: Floats | None = None) -> Floats:
        """Return for each question the sum over its answers of `per_answer * factor of the worker`.

        `factor` may have several columns, then the result has, too.
        """
        matrix = self._straight
        matrix.data = per_answer
        total: Floats = matrix @ (_ones_of(self.n_workers) if factor is None else factor)
        matrix.data = _ones_of(0)
        return total

    def spread(self, per_question: Floats) -> Floats:
        """Return the number of its question for each answer."""
        if not self.width or len(self.workers) < SERIAL:
            return np.repeat(per_question, self.width or self.counts)
        spread = np.empty(len(self.workers), dtype=per_question.dtype)
        spread.reshape(-1, self.width)[:] = per_question[:, None]
        return spread

    def answer_weights(self, weight: Floats) -> Floats:
        """Return the share of each answer in its question, `w_i h_ij / sum of the same`."""
        share = weight.take(self.workers)
        if self.precision is not None:
            np.multiply(share, self.precision, out=share)
        np.divide(share, self.spread(self.total_weight(weight)), out=share)
        return share

    def weighted_median(self, per_answer: Floats) -> Floats:
        """Return the minimiser of `sum w |value - t|` for each question.

        Where it is an interval its midpoint is taken, so that equal weights give the median.
        """
        result = np.empty(self.n_questions)
        for rows, positions in rectangles(self.indptr):
            values = self.values[positions]
            order = np.argsort(values, axis=1, kind="stable")
            values = np.take_along_axis(values, order, axis=1)
            running = np.cumsum(np.take_along_axis(per_answer[positions], order, axis=1), axis=1)
            half = 0.5 * running[:, -1:]
            first = np.argmax(running >= half * (1 - ROUNDING), axis=1)[:, None]
            last = np.argmax(running > half * (1 + ROUNDING), axis=1)[:, None]
            low, high = (np.take_along_axis(values, end, axis=1)[:, 0] for end in (first, last))
            result[rows] = low + 0.5 * (high - low)
        return result

    # -- matrices over the same answers, made once ------------------------------------------------

    @cached_property
    def _weight_matrix(self) -> Any:
        return self._rows(_ones_of(len(self.workers)) if self.precision is None else self.precision)

    @cached_property
    def _value_matrix(self) -> Any:
        return self._rows(self.weighted)

    @cached_property
    def _latest(self) -> list[Any]:
        """The weights `total_weight` was last asked for, and its answer."""
        return [None, None]

    @cached_property
    def _energy(self) -> dict[str, Floats]:
        """Sums of squared values per worker, by scaling; filled when first asked for."""
        return {}

    def _rows(self, data: Floats) -> Any:
        # Attributes are set one by one because the constructor copies slices of larger arrays.
        from scipy.sparse import csr_array

        matrix: Any = csr_array((self.n_questions, self.n_workers))
        matrix.indptr, matrix.indices, matrix.data = self.indptr, self.workers, data
        return matrix

    @cached_property
    def _straight(self) -> Any:
        """Questions x workers; `by_question` lays its numbers in before each product."""
        return self._rows(_ones_of(0))

    @cached_property
    def _turned(self) -> Any:
        """Workers x questions; `by_worker` lays its numbers in before each product."""
        from scipy.sparse import csc_array

        matrix: Any = csc_array((self.n_workers, self.n_questions))
        matrix.indptr, matrix.indices = self.indptr, self.workers
        return matrix
