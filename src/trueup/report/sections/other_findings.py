"""What other parts of trueup find in the answers of an estimate, computed when a section asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from trueup.errors import TrueupError
from trueup.findings.agreement import agreement
from trueup.findings.answers_needed import needs
from trueup.findings.workers import worker_table
from trueup.variance.correlated import together

if TYPE_CHECKING:
    from trueup.findings.agreement import Agreement
    from trueup.findings.answers_needed import Needs
    from trueup.findings.workers import WorkerTable
    from trueup.result.estimate import Estimate
    from trueup.variance.correlated import Together


@dataclass(frozen=True, eq=False)
class Others:
    """Findings on a single problem; None where they cannot be had."""

    est: Estimate

    @cached_property
    def _together(self) -> Together:
        return together(self.est)

    @property
    def together(self) -> Together | None:
        """Workers who err together or copy one another."""
        if self.est.answers.n_panels > 1:
            return None
        return self._together if self._together.n_pairs else None

    @cached_property
    def verdicts(self) -> WorkerTable | None:
        """What stands out about each worker."""
        if self.est.answers.n_panels > 1:
            return None
        return worker_table(self.est, together=self._together)

    @cached_property
    def agreement(self) -> Agreement | None:
        """How well the workers agree."""
        if self.est.answers.n_panels > 1:
            return None
        try:
            found = agreement(self.est.answers)
        except TrueupError:  # too few answers
            return None
        return found if np.isfinite([found.one.value, found.mean.value]).all() else None

    @cached_property
    def needs(self) -> Needs | None:
        """How many answers are missing where."""
        if self.est.answers.n_panels > 1 or not np.isfinite(self.est.std_error).any():
            return None
        try:
            return needs(self.est)
        except TrueupError:
            return None
