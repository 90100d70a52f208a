"""The evidence for `trueup.rank`, reproducible: coverage of differences, error rates of verdicts and of the gate."""

from __future__ import annotations

from evidence.ranking.coverage import coverage
from evidence.ranking.families import families
from evidence.ranking.labels import labels
from evidence.ranking.several import several
from evidence.ranking.shrunk import bias
from evidence.second_step.context import Context
from evidence.study import EvidenceStudy

__all__ = ["PARTS", "STUDY", "run"]

STUDY = EvidenceStudy(
    title="Ranking systems put to the test",
    intro=(
        "How often intervals for the difference of two systems contain the true one, and how often a difference or a "
        "gate is wrong, on simulated panels: items N(0, 1), systems on items N(0, 0.5²), judges N(0, 0.5²) with noise "
        "of standard deviation 0.5 to 1.5, and judges who favour systems."
    ),
    parts=(coverage, bias, several, families, labels),
    context=Context,
    samples=600,
    short_samples=100,
    quick_samples=40,
)
PARTS, run = STUDY.parts, STUDY.run
