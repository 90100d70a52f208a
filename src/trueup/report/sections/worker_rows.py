"""The workers of an estimate in the form in which they are shown."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from trueup.answers.scale import LOGARITHMS
from trueup.report.names import shown

if TYPE_CHECKING:
    from trueup.core.arrays import Bools, Floats, Ints
    from trueup.findings.worker_table import WorkerTable
    from trueup.result.estimate import Estimate

DOMINANT = 0.5  # share of the weight above which a worker decides nearly alone
CLEAR = 1.96  # standard errors from which on a bias is clear
MOST_LOG_VARIANCE = 100.0  # of logarithms; what is larger cannot be shown as a share


@dataclass(frozen=True, eq=False)
class WorkerRows:
    """The workers of an estimate, on the scale on which answers were combined; of logarithms errors are per cent.

    Attributes
    ----------
    est : Estimate
    table : WorkerTable or None
        What stands out about them; None for several panels.
    """

    est: Estimate
    table: WorkerTable | None

    @property
    def weight(self) -> Floats:
        """Share of the weight of each worker."""
        return self.est.aggregate.weight

    @cached_property
    def count(self) -> Ints:
        """Answers of each worker."""
        counts: Ints = self.est.aggregate.facts.n_answers.astype(np.int64)
        return counts

    @cached_property
    def variance(self) -> Floats:
        """Variance of the errors on the scale on which answers were combined, NaN where unknown."""
        variance: Floats = self.est.worker_columns["variance"]
        if self.table is None or self.table.n_suspicious is None:
            return variance
        # Of those who slipped: without the slips, as far as the first step has not left them out itself.
        return np.where(
            self.table.n_suspicious > 0, np.fmin(variance, self.table.variance), variance
        )

    @property
    def in_logarithms(self) -> bool:
        """Whether logarithms were combined: errors are shown as shares of the value."""
        return self.est.solution.scale.transform in LOGARITHMS

    def shown_deviation(self, variance: Floats) -> Floats:
        """Return standard deviations as they are shown: those of logarithms as shares of the value, in per cent.

        A factor whose logarithm has the variance s has the standard deviation `sqrt(exp(s) - 1)`, relative to its mean.
        """
        if not self.in_logarithms:
            return np.sqrt(variance)
        return 100.0 * np.sqrt(np.expm1(np.minimum(variance, MOST_LOG_VARIANCE)))

    @cached_property
    def deviation(self) -> Floats:
        """Standard deviation of the errors, NaN where unknown."""
        return self.shown_deviation(self.variance)

    @property
    def low(self) -> Floats:
        """Lower end of its interval."""
        return self._ends[0]

    @property
    def high(self) -> Floats:
        """Upper end of its interval."""
        return self._ends[1]

    @cached_property
    def _ends(self) -> tuple[Floats, Floats]:
        """Interval of the standard deviation, NaN where it is known."""
        table, unknown = self.table, np.full(len(self.weight), np.nan)
        if table is None or self.est.aggregate.algorithm.needs_variance:
            return unknown, unknown
        low, high = (
            np.divide(end, table.variance, out=unknown.copy(), where=table.variance > 0)
            for end in (table.variance_lower, table.variance_upper)
        )
        return self.shown_deviation(self.variance * low), self.shown_deviation(self.variance * high)

    @property
    def biases_removed(self) -> bool:
        """Whether biases were removed from the answers."""
        return self.est.biases is not None or self.est.aggregate.bias is not None

    @cached_property
    def bias(self) -> Floats:
        """Bias of each worker, NaN where unknown."""
        if self.biases_removed or self.table is None:
            bias: Floats = self.est.worker_columns["bias"]
            return bias
        return self.table.bias

    @cached_property
    def bias_error(self) -> Floats:
        """Standard error of the biases, NaN where unknown."""
        if self.est.biases is not None:
            return self.est.biases.std_error
        if self.biases_removed or self.table is None:
            return np.full(len(self.weight), np.nan)
        return self.table.bias_std_error

    @cached_property
    def typical(self) -> float:
        """Standard deviation of the median worker."""
        known = self.deviation[np.isfinite(self.deviation)]
        return float(np.median(known)) if len(known) else float("nan")

    @cached_property
    def dominant(self) -> Bools:
        """Workers with most of the weight, among three or more."""
        return (self.weight > DOMINANT) & (len(self.weight) > 2)

    @cached_property
    def remarks(self) -> list[list[str]]:
        """What stands out about each worker, in words; nothing for most."""
        if self.table is None:
            remarks = [[] if flag is None else [flag] for flag in self.est.findings.flags]
        else:
            remarks = [self.table.remarks(i, isolated) for i in range(len(self.weight))]
        for i in np.flatnonzero(self.dominant).tolist():
            remarks[i].append(f"has {self.weight[i]:.0%} of the weight and decides nearly alone")
        return remarks

    @cached_property
    def to_look_at(self) -> Ints:
        """Workers there is a reason to look at, those to do something about first."""
        if self.table is None:
            workers = np.array([i for i, texts in enumerate(self.remarks) if texts], dtype=np.int64)
        else:
            table = self.table.remarkable
            dominant = np.flatnonzero(self.dominant)
            return np.concatenate([dominant[~np.isin(dominant, table)], table])
        order: Ints = workers[np.argsort(-self.count[workers], kind="stable")].astype(np.int64)
        return order

    @cached_property
    def by_noise(self) -> Ints:
        """Workers, the noisiest first and those of unknown noise last."""
        key = np.where(np.isnan(self.deviation), -np.inf, self.deviation)
        return np.argsort(-key, kind="stable")


def isolated(name: object) -> str:
    """Write an id so that its writing direction does not affect the words around it."""
    return f"\u2068{shown(name, 40)}\u2069"
