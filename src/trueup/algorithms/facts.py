"""What is known about the answers before the first iteration: counts and pooled variances, from one pass."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from trueup.core.arrays import offsets, segment_max, segment_sum
from trueup.engines.protocol import Visit

if TYPE_CHECKING:
    from trueup.answers.block import Block
    from trueup.core.arrays import Floats, Ints
    from trueup.engines.protocol import Engine, Kept, Sweep

#: Smallest variance of a worker, as a share of the pooled variance.
VARIANCE_FLOOR = 1e-6


@dataclass(frozen=True, eq=False)
class Facts:
    """Counts and variances of the answers, known before the first iteration.

    Attributes
    ----------
    worker_panel : array
        Panel of each worker.
    panel_questions : array
        Where the questions of each panel begin.
    most_answers : array
        Largest number of answers to a question of each panel.
    n_answers, n_informative : arrays
        Number of answers of each worker; number of those to questions that other workers answered as well.
    precision, precision_squared : arrays
        Sums of the relative precision of each worker's informative answers, and of its square. Both equal
        `n_informative` where answer variances are not known.
    pool : array
        Pooled within-question variance of each panel,
        `sum_j sum_i (x_ij - mean_j)^2 / sum_j (k_j - 1)`: the natural scale. 0 where all workers agree.
    overlap : array
        `sum_j (k_j - 1)` of each panel; 0 where no question has two answers.
    worker_variance : array or None
        Variance of each worker, where the caller gave it, else NaN.
    answer_variance : float
        Variance of an answer of precision 1, where answer variances are known, else NaN.
    bias : array or None
        Bias of each worker that was subtracted from its answers, see `trueup.algorithms.screening`.
    bias_variance : array or None
        Variance of the biases within each panel, 0 where no biases were found.
    unit : array or None
        What the answers of each panel were divided by, in the answers of `trueup.algorithms.native`.
    """

    worker_panel: Ints
    panel_questions: Ints
    n_panels: int
    most_answers: Floats
    n_answers: Floats
    n_informative: Floats
    precision: Floats
    precision_squared: Floats
    pool: Floats
    overlap: Floats
    worker_variance: Floats | None = None
    answer_variance: float = np.nan
    bias: Floats | None = None
    bias_variance: Floats | None = None
    unit: Floats | None = None

    @property
    def n_workers(self) -> int:
        """Number of workers in all panels."""
        return len(self.worker_panel)

    @cached_property
    def informative(self) -> Floats:
        """1 for workers who share a question with another worker, else 0."""
        return (self.n_informative > 0).astype(np.float64)

    @cached_property
    def panel_workers(self) -> Ints:
        """Where the workers of each panel begin."""
        return offsets(np.bincount(self.worker_panel, minlength=self.n_panels))

    @cached_property
    def pool_of_worker(self) -> Floats:
        """Pooled variance of each worker's panel."""
        return self.spread(self.pool)

    def panel_sum(self, per_worker: Floats) -> Floats:
        """Return the sum over the workers of each panel."""
        return segment_sum(per_worker, self.panel_workers)

    def panel_max(self, per_worker: Floats) -> Floats:
        """Return the largest value among the workers of each panel (values must not be negative)."""
        return segment_max(per_worker, self.panel_workers)

    def spread(self, per_panel: Floats) -> Floats:
        """Return for each worker the number that belongs to its panel."""
        return np.repeat(per_panel, np.diff(self.panel_workers))

    def of_panels(self, per_worker: Floats) -> Floats:
        """Undo `spread`: return the number that the workers of each panel have in common, 0 without workers."""
        result = np.zeros(self.n_panels)
        result[self.worker_panel] = per_worker
        return result

    def mean_of_informative(self, per_worker: Floats) -> Floats:
        """Return the mean over the informative workers of each panel, 1 where there are none."""
        count = self.panel_sum(self.informative)
        total = self.panel_sum(per_worker * self.informative)
        return np.divide(total, count, out=np.ones(self.n_panels), where=count > 0)

    def weigh(self, weight: Floats) -> Floats:
        """Return worker weights in which uninformative workers have the mean weight of the others.

        Their weight changes no truth, because nobody else answers their questions.
        """
        return np.where(self.informative > 0, weight, self.spread(self.mean_of_informative(weight)))

    def variance(self, ss: Floats, divisor: Floats) -> Floats:
        """Return `ss / divisor`, at least the floor; the pooled variance for uninformative workers.

        Where all workers agree the variance is 0, because `ss` is then rounding error.
        """
        pool = self.pool_of_worker
        estimable = (self.informative > 0) & (divisor > 0) & (pool > 0)
        variance = np.divide(ss, divisor, out=pool.copy(), where=estimable)
        return np.maximum(variance, VARIANCE_FLOOR * pool)


def gather_facts(engine: Engine) -> Facts:
    """Count the answers of each worker and compute the pooled variance of each panel."""
    counts, problem = count_answers(engine), engine.problem
    sums, (within, overlap) = counts.sums, counts.panel_sums
    worker_panel, worker_variance = problem.worker_panel, problem.worker_variance
    n_added = engine.n_workers - len(worker_panel)  # workers that this engine adds to the problem
    if n_added:
        worker_panel = np.append(worker_panel, np.zeros(n_added, dtype=np.int64))
        if worker_variance is not None:
            worker_variance = np.append(worker_variance, np.full(n_added, np.nan))
    return Facts(
        worker_panel=worker_panel,
        panel_questions=problem.panel_questions,
        n_panels=problem.n_panels,
        most_answers=counts.panel_peaks,
        n_answers=sums[0],
        n_informative=sums[1],
        precision=sums[2],
        precision_squared=sums[3],
        pool=pooled_variance(within, overlap),
        overlap=overlap,
        worker_variance=worker_variance,
        answer_variance=engine.answer_variance,
    )


def pooled_variance(within: Floats, overlap: Floats) -> Floats:
    """Return the pooled variance of each panel, 0 where no question has two answers."""
    variance: Floats = np.divide(within, overlap, out=np.zeros(len(overlap)), where=overlap > 0)
    return variance


def count_answers(engine: Engine) -> Sweep:
    """Return sums per worker and per panel.

    Per worker: number of answers, number of informative ones, the sum of their precision and of its square. Per panel:
    the sum of squares within questions, and `sum_j (k_j - 1)`; the peaks are the largest `k_j`.
    """

    def visit(block: Block, kept: Kept) -> Visit:  # noqa: ARG001
        ones = np.ones(block.n_questions)
        counts = block.by_worker(None, np.column_stack([ones, block.informative])).T
        if block.precision is None:
            precision = squared = counts[1]
        else:
            precision = block.by_worker(block.precision, block.informative)
            squared = block.by_worker(block.precision**2, block.informative)
        per_panel = block.informative * np.stack([block.within, block.counts - 1.0])
        totals = [segment_sum(row, block.panel_questions) for row in per_panel]
        return Visit(
            sums=np.stack([*counts, precision, squared]),
            panel_sums=np.stack(totals),
            panel_peaks=segment_max(block.counts.astype(np.float64), block.panel_questions),
        )

    return engine.sweep(visit)
