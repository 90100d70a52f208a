"""Where intervals are rough: so few answers that nothing but a guess of the noise is possible."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trueup.errors import counted

if TYPE_CHECKING:
    from trueup.algorithms.facts import Facts
    from trueup.pipeline.shrunk import SecondStepResult

#: Answers beyond the first of each question from which intervals are more than a guess.
ENOUGH = 3


def rough_in_words(moved: SecondStepResult, facts: Facts) -> str:
    """Say that intervals are rough and why; "" where they are not, or where variances are known."""
    spare = np.round(facts.overlap).astype(np.int64)
    rough = (spare > 0) & (spare < ENOUGH) & np.isfinite(moved.certainty.interval_nu)
    if not rough.any():
        return ""
    if len(rough) > 1:
        return (
            f"in {rough.sum()} of {len(rough)} panels the intervals rest on one or two answers beyond the first of "
            "each question: they are rough and very wide"
        )
    workers = counted(int(facts.panel_sum(facts.informative)[0]), "worker")
    questions = counted(int(np.diff(facts.panel_questions)[0]), "question")
    return (
        f"{workers} answered {questions}; the intervals rest on {counted(int(spare[0]), 'answer')} beyond the first of "
        "each question: they are rough and very wide"
    )
