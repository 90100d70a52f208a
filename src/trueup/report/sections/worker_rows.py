"""What is known of each worker, in the form in which it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from trueup.findings.worker_table import COPIES, FAR_OFF, HARSH, LENIENT, NOISY, TOGETHER
from trueup.report.names import shown
from trueup.report.sections.context import brief

if TYPE_CHECKING:
    from trueup.core.arrays import Floats, Ints
    from trueup.findings.worker_table import WorkerTable
    from trueup.result.estimate import Estimate

RULES = 0.5  # share of the weight from which on a worker decides alone
CLEAR = 1.96  # standard errors from which on a bias is clear


@dataclass(frozen=True, eq=False)
class Judged:
    """The workers of an estimate, on the scale on which answers were combined.

    Attributes
    ----------
    est : Estimate
    verdicts : WorkerTable or None
        What stands out about them; None for many panels.
    """

    est: Estimate
    verdicts: WorkerTable | None

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
    def deviation(self) -> Floats:
        """Standard deviation of the errors, NaN where unknown."""
        variance: Floats = self.est.worker_columns["variance"]
        return np.sqrt(variance)

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
        """Interval of the standard deviation; none for a known one."""
        found, unknown = self.verdicts, np.full(len(self.weight), np.nan)
        if found is None or self.est.aggregate.algorithm.needs_variance:
            return unknown, unknown
        low, high = (
            np.divide(end, found.variance, out=unknown.copy(), where=found.variance > 0)
            for end in (found.variance_lower, found.variance_upper)
        )
        return self.deviation * np.sqrt(low), self.deviation * np.sqrt(high)

    @property
    def removed(self) -> bool:
        """Whether biases were taken off the answers."""
        return self.est.biases is not None or self.est.aggregate.bias is not None

    @cached_property
    def bias(self) -> Floats:
        """Bias of each worker, NaN where unknown."""
        if self.removed or self.verdicts is None:
            bias: Floats = self.est.worker_columns["bias"]
            return bias
        return self.verdicts.bias

    @cached_property
    def bias_error(self) -> Floats:
        """Standard error of the biases, NaN where unknown."""
        if self.est.biases is not None:
            return self.est.biases.std_error
        if self.removed or self.verdicts is None:
            return np.full(len(self.weight), np.nan)
        return self.verdicts.bias_std_error

    @cached_property
    def typical(self) -> float:
        """Standard deviation of the median worker."""
        known = self.deviation[np.isfinite(self.deviation)]
        return float(np.median(known)) if len(known) else float("nan")

    @cached_property
    def remarks(self) -> list[list[str]]:
        """What stands out about each worker, in words; nothing for most."""
        if self.verdicts is None:
            said = [[] if flag is None else [flag] for flag in self.est.findings.flags]
        else:
            said = [
                [self._words(self.verdicts, i, flag) for flag in flags]
                for i, flags in enumerate(self.verdicts.flags)
            ]
        if len(self.weight) > 2:
            for i in np.flatnonzero(self.weight > RULES).tolist():
                said[i].append(f"has {self.weight[i]:.0%} of the weight and decides nearly alone")
        return said

    @staticmethod
    def _words(found: WorkerTable, number: int, flag: str) -> str:
        """Return a remark with the number behind it."""
        if flag == NOISY:
            times = np.sqrt(found.variance[number] / found.median_variance)
            return f"{flag}: errs {times:.1f} times as much"
        if flag in (HARSH, LENIENT):
            return f"{flag}, by {brief(abs(float(found.bias[number])))} on average"
        if flag == FAR_OFF:
            return f"{flag}, {found.far_off[number]:.0%} of them"
        if flag in (COPIES, TOGETHER):
            other = found.worker_ids.tolist(found.partner[number : number + 1])[0]
            # Set apart from the words around it, whatever its direction.
            return f"{flag} with \u2068{shown(other, 40)}\u2069"
        return flag

    @cached_property
    def look_at(self) -> Ints:
        """Workers there is a reason to look at, those with most answers first."""
        if self.verdicts is None:
            found = np.array([i for i, each in enumerate(self.remarks) if each], dtype=np.int64)
        else:
            rules = (self.weight > RULES) & (len(self.weight) > 2)
            found = np.union1d(self.verdicts.remarkable, np.flatnonzero(rules)).astype(np.int64)
        order: Ints = found[np.argsort(-self.count[found], kind="stable")]
        return order

    @cached_property
    def by_noise(self) -> Ints:
        """Workers, the noisiest first and those of unknown noise last."""
        key = np.where(np.isnan(self.deviation), -np.inf, self.deviation)
        return np.argsort(-key, kind="stable")
