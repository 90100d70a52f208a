"""The plain mean: every worker counts alike. What everybody does, and the yardstick for the rest."""

from __future__ import annotations

from dataclasses import dataclass

from trueup.algorithms.contract import Algorithm


@dataclass(frozen=True)
class Mean(Algorithm):
    """Average of the answers to each question.

    With known answer variances each answer counts with its precision.
    """

    name = "mean"
