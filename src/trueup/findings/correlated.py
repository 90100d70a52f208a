"""Workers who err together, in words: the pairs that were found and what they mean for the intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import counted, quoted
from trueup.io.columns import PLAIN_NAMES, IdNames
from trueup.io.frames_out import make_frame
from trueup.variance.correlated.discoveries import MATTERS
from trueup.variance.correlated.pairs import NO_ERRORS
from trueup.variance.correlated.shared_questions import FEWEST

if TYPE_CHECKING:
    from trueup.io.table import Ids
    from trueup.variance.correlated import CorrelatedPairs

SHOWN = 10
UNSEEN = "Errors that all workers share cannot be detected from the answers."


@dataclass(frozen=True, eq=False)
class CorrelatedWorkers:
    """Pairs of workers whose errors correlate or whose answers are identical, with their ids.

    Attributes
    ----------
    found : CorrelatedPairs
        The pairs by number of worker, the clearest first, with correlations and p-values.
    worker_ids : Ids
        The ids of all workers.
    kind : str
        Library of the frame `pairs`.
    names : IdNames
        What the caller calls questions and workers.
    """

    found: CorrelatedPairs
    worker_ids: Ids
    kind: str
    names: IdNames = PLAIN_NAMES

    def __len__(self) -> int:
        return len(self.found)

    @property
    def pairs(self) -> Any:
        """Frame with a row per pair found."""
        found = self.found
        columns: dict[str, Any] = {
            "worker": self.worker_ids.take(found.first),
            "other": self.worker_ids.take(found.second),
            "shared": found.shared,
            "correlation": found.correlation,
            "z": found.z,
            "identical": found.identical,
            "identical_expected": found.expected,
            "p_value": found.p_value,
        }
        unknown = ("correlation", "z", "p_value")
        return make_frame(self.kind, columns, null_columns=unknown, names=self.names)

    @property
    def summary(self) -> str:
        """What was found, in one sentence."""
        found = self.found
        if found.n_pairs == 0:
            return f"No two workers share {FEWEST} questions: correlated errors cannot be detected."
        compared = (
            f"{counted(found.n_pairs, 'pair')} of {counted(found.n_workers, 'worker')} compared"
        )
        if len(found) == 0:
            if NO_ERRORS in found.notes:
                return f"No two workers give identical answers more often than ties explain ({compared})."
            return f"No two workers err together or copy each other ({compared})."
        verb = "errs" if len(found) == 1 else "err"
        gives = "gives" if len(found) == 1 else "give"
        return (
            f"{counted(len(found), 'pair')} of workers {verb} together or {gives} identical answers ({compared}): "
            f"{counted(found.n_workers, 'worker')} are worth {found.effective:.1f} independent ones."
        )

    def describe(self, number: int) -> str:
        """Return a sentence about one of the pairs."""
        found = self.found
        one, other = (
            quoted(str(self.worker_ids.tolist(side[number : number + 1])[0])).strip('"')
            for side in (found.first, found.second)
        )
        parts = []
        if not np.isnan(found.correlation[number]) and found.correlation[number] >= MATTERS:
            parts.append(f"errors correlate {found.correlation[number]:.2f}")
        if found.copies[number]:
            parts.append(
                f"{found.identical[number]:.0%} of answers identical, {found.expected[number]:.0%} expected"
            )
        return f"{one} and {other}: {'; '.join(parts)} ({counted(int(found.shared[number]), 'shared question')})"

    def __str__(self) -> str:
        return "\n".join(self.lines(SHOWN))

    def lines(self, most: int) -> list[str]:
        """Return the findings in words, with at most this many pairs."""
        lines = [self.summary]
        lines += [f"  {self.describe(number)}" for number in range(min(most, len(self)))]
        if len(self) > most:
            lines.append(f"  ... and {len(self) - most:,} more")
        return [*lines, *self.found.notes, UNSEEN]
