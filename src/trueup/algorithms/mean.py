"""The plain mean: all workers count alike. The most common method, and the baseline for the others."""

from __future__ import annotations

from dataclasses import dataclass

from trueup.algorithms.contract import Algorithm


@dataclass(frozen=True)
class Mean(Algorithm):
    """Average of the answers to each question.

    With known answer variances each answer is weighted by its precision.
    """

    name = "mean"
