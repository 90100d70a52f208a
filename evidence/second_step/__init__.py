"""The evidence for our second step, reproducible.

`run` writes one offline page: where the second step helps, where it harms, how often its intervals contain the truth,
and what each of its pieces contributes; plus tidy tables of all cells and a summary in Markdown. Add a rule with one
line in `rules`.
"""

from __future__ import annotations

from evidence.second_step.ablation import ablation
from evidence.second_step.both_targets import both_targets
from evidence.second_step.context import Context
from evidence.second_step.gain_share import share_of_gain
from evidence.second_step.gold import gold_questions
from evidence.second_step.method_choice import first_step_choice
from evidence.second_step.priors import known_variance
from evidence.second_step.real import real_data
from evidence.second_step.special import special_designs
from evidence.second_step.synthetic import synthetic_grid
from evidence.second_step.targets import figures_to_reach, listed
from evidence.second_step.worker_biases import biases
from evidence.study import EvidenceStudy

__all__ = ["PARTS", "STUDY", "run"]

STUDY = EvidenceStudy(
    title="The second step put to the test",
    intro=(
        "What our second step does to the estimates of many first steps, on simulated and on real answers. A ratio is "
        "the mean squared error after the second step divided by that before it: below 1 it helps. Every table starts "
        "with the rows where ours does worst. Standard errors (±) describe the variation between random sets of "
        "panels."
    ),
    # The last one collects figures from the others.
    parts=(
        synthetic_grid,
        real_data,
        both_targets,
        special_designs,
        first_step_choice,
        gold_questions,
        biases,
        share_of_gain,
        known_variance,
        ablation,
        figures_to_reach,
    ),
    context=Context,
    short_samples=30,
    first=figures_to_reach,
    listed=listed,
    skipped=(real_data, both_targets),
)
PARTS, run = STUDY.parts, STUDY.run
