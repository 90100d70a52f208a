"""What an engine keeps of the questions besides their answers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from trueup.core.arrays import Floats, Ints
    from trueup.engines.protocol import Engine, Kept

DRAW = "draw"


@dataclass(frozen=True)
class Beside:
    """What is known of the questions besides their answers, kept by the engine.

    Attributes
    ----------
    groups : bool
        Whether there are groups, kept as "group" with -1 for none.
    covariates : int
        How many numbers are known of each question: "covariate-0", "covariate-1", ...
    """

    groups: bool = False
    covariates: int = 0

    @classmethod
    def of(cls, engine: Engine, groups: Ints | None, covariates: Floats | None) -> Beside:
        """Let the engine keep what is given; a problem may say that it has something already."""
        held: Beside = getattr(engine.problem, "beside", cls())
        if groups is not None:
            engine.keep("group", groups.astype(np.float64))
            held = replace(held, groups=True)
        if covariates is not None:
            for number, column in enumerate(np.asarray(covariates, dtype=np.float64).T):
                engine.keep(f"covariate-{number}", column)
            held = replace(held, covariates=covariates.shape[1])
        return held

    @property
    def reads(self) -> tuple[str, ...]:
        """The vectors."""
        columns = tuple(f"covariate-{number}" for number in range(self.covariates))
        return (*columns, "group") if self.groups else columns

    def known(self, kept: Kept) -> dict[str, Any]:
        """Return what a shrink rule is told."""
        columns = [kept[f"covariate-{number}"] for number in range(self.covariates)]
        return {
            "groups": kept["group"].astype(np.int64) if self.groups else None,
            "covariates": np.column_stack(columns) if columns else None,
        }
