"""The evidence for our first step, reproducible.

`run` writes one offline page: what the default costs where the plain mean is best, what it gains where workers are
unequal, biased or careless, when it chooses logarithms, and how much depends on the names of the workers.
"""

from __future__ import annotations

from evidence.first_step.emotions import emotions_folds
from evidence.first_step.proportional import errors_in_proportion
from evidence.first_step.real import real_sets
from evidence.first_step.renaming import renamed_workers
from evidence.first_step.requirements import figures, listed
from evidence.first_step.simulated import simulated_designs
from evidence.first_step.typo import one_typing_error
from evidence.second_step.context import Context
from evidence.study import EvidenceStudy

__all__ = ["PARTS", "STUDY", "run"]

STUDY = EvidenceStudy(
    title="The first step put to the test",
    intro=(
        "How the default first step does against the plain mean, on real and on simulated answers, without the second "
        "step unless said otherwise. A ratio is its mean squared error divided by that of the plain mean, as a ratio "
        "of means over panels: below 1 it is better. Standard errors (±) describe the variation between random sets "
        "of panels."
    ),
    # The last one collects figures from the others.
    parts=(
        real_sets,
        simulated_designs,
        emotions_folds,
        errors_in_proportion,
        one_typing_error,
        renamed_workers,
        figures,
    ),
    context=Context,
    quick_samples=3,
    first=figures,
    listed=listed,
    skipped=(real_sets, emotions_folds),
)
PARTS, run = STUDY.parts, STUDY.run
