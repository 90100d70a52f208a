"""What engines that know no panels say of them: all questions and workers are in one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from trueup.core.arrays import Ints


class OnePanel:
    """A problem of one panel whose workers are numbered in the order of their ids; see `protocol.Problem`."""

    # ruff: noqa: D102  they are described there
    n_panels = 1

    if TYPE_CHECKING:  # a property would be taken for the default of a field

        @property
        def n_questions(self) -> int: ...
        @property
        def n_workers(self) -> int: ...

    @property
    def panel_questions(self) -> Ints:
        """Where the questions of the one panel begin and end."""
        return np.array([0, self.n_questions])

    @property
    def panel_workers(self) -> Ints:
        """Where the workers of the one panel begin and end."""
        return np.array([0, self.n_workers])

    @property
    def worker_panel(self) -> Ints:
        """Panel of each worker."""
        return np.zeros(self.n_workers, dtype=np.int64)

    @property
    def worker_rank(self) -> Ints:
        """Place of each worker among all ids in order: they are numbered so."""
        return np.arange(self.n_workers)
