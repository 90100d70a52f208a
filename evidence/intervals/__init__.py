"""The evidence for our intervals, reproducible: how often they hold what they should, and what more answers bring."""

from __future__ import annotations

from evidence.intervals.answers_needed import more_answers
from evidence.intervals.consensus import consensus_intervals
from evidence.intervals.rules import named_rules
from evidence.second_step.context import Context
from evidence.study import EvidenceStudy

__all__ = ["PARTS", "STUDY", "run"]

STUDY = EvidenceStudy(
    title="The intervals put to the test",
    intro=(
        "How often intervals contain what infinitely many such workers would say, on simulated answers. Standard "
        "errors (±) describe the variation between random sets of panels."
    ),
    parts=(consensus_intervals, named_rules, more_answers),
    context=Context,
    samples=100,
    short_samples=50,
    quick_samples=3,
)
PARTS, run = STUDY.parts, STUDY.run
