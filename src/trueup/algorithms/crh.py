"""CRH and PM: weights that are logarithms of each worker's share of the total loss.

Li et al., Resolving conflicts in heterogeneous data by truth discovery and source reliability estimation,
SIGMOD 2014:

    d_i = (1/k_i) sum_j loss(x_ij, t_j) / std_j
    CRH: w_i = -log(d_i / sum d)        PM: w_i = -log(d_i / max d)

Squared loss gives weighted means, absolute loss weighted medians. As published, the squared loss is divided by
the standard deviation and not by the variance, so questions in larger units count more; `scale="var"` corrects that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from trueup.algorithms.contract import Algorithm, State
from trueup.core.parameters import one_of, yes_or_no

if TYPE_CHECKING:
    from trueup.algorithms.contract import Kind
    from trueup.answers.block import Block, Scaling
    from trueup.core.arrays import Floats

SMALLEST_SHARE = 1e-8
# Weight of a worker who has all of the loss: positive, for questions that nobody else answered.
SMALLEST_WEIGHT = 1e-12
# Losses that differ by a smaller share are equal.
TIED = 1e-9
SCALINGS: dict[str, Scaling] = {
    "std": "inverse_std",
    "var": "inverse_variance",
    "none": "informative",
}


@dataclass(frozen=True)
class CRH(Algorithm):
    """Conflict resolution on heterogeneous data, for numbers.

    Parameters
    ----------
    loss : {"squared", "absolute"}
    scale : {"std", "var", "none"}
        What the loss of a question is divided by.
    per_count : bool
        Use the mean loss per answer. False: use the sum, which favours workers with few answers.
    """

    loss: Literal["squared", "absolute"] = "squared"
    scale: Literal["std", "var", "none"] = "std"
    per_count: bool = True

    name = "crh"
    shares_by_worker = True

    def __post_init__(self) -> None:
        one_of("loss", self.loss, ("squared", "absolute"))
        one_of("scale", self.scale, ("std", "var", "none"))
        yes_or_no("per_count", self.per_count)

    @property
    def kind(self) -> Kind:
        return "linear" if self.loss == "squared" else "robust"

    def truths(self, block: Block, state: State) -> Floats:
        if self.loss == "squared":
            return super().truths(block, state)
        if state.step == 0 and block.precision is None:
            return block.median
        weight = state["weight"].take(block.workers)
        if block.precision is not None:
            weight *= np.sqrt(block.precision)  # precision counts for absolute errors, too
        return block.weighted_median(weight)

    def tally(self, block: Block, state: State, x: Floats) -> Floats:
        scaling = SCALINGS[self.scale]
        if self.loss == "squared":
            return block.squared_distances(x, scaling)[None]
        return block.by_worker(np.sqrt(block.squares(x)), getattr(block, scaling))[None]

    def update(self, state: State, sums: Floats) -> State:
        facts = state.facts
        distance = sums[0] * facts.informative
        if self.per_count:
            distance = distance / np.maximum(facts.n_informative, 1.0)
        reference = facts.spread(self.reference(state, distance))
        share = np.divide(distance, reference, out=np.ones(len(distance)), where=reference > 0)
        weight = self.reward(np.maximum(share, SMALLEST_SHARE))
        # If nobody differs from the truths, all weights are equal.
        none = facts.spread(facts.panel_sum(weight * facts.informative)) <= 0
        return state.replace(weight=facts.weigh(np.where(none, 1.0, weight)))

    def reference(self, state: State, distance: Floats) -> Floats:
        """Return the reference for the distances of each panel: their sum."""
        return state.facts.panel_sum(distance)

    def reward(self, share: Floats) -> Floats:
        """Return the weight of a worker with this share of the loss."""
        return np.maximum(-np.log(share), SMALLEST_WEIGHT)


@dataclass(frozen=True)
class PM(CRH):
    """CRH with the largest distance as reference: the worst worker gets almost no weight.

    Aydin et al., Crowdsourcing for multiple-choice question answering, AAAI 2014, applied to numbers.
    """

    name = "pm"

    def reference(self, state: State, distance: Floats) -> Floats:
        return state.facts.panel_max(distance)

    def reward(self, share: Floats) -> Floats:
        # Who is the worst is not for rounding to decide: from a tie the weights would drift to one side or the other.
        return -np.log(np.where(share > 1.0 - TIED, 1.0, share)) + 1e-7
