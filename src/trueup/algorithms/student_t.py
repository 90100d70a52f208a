"""Robust truths: the errors of each worker have a Student or Huber distribution with its own scale.

    u_ij  = (nu + 1) / (nu + r_ij^2 / s_i^2)              Student
          = min(1, c / |r_ij / s_i|)                      Huber
    s_i^2 = (sum_j u_ij r_ij^2 + nu0 s^2) / (k_i + nu0)
    t_j   = sum_i (u_ij/s_i^2) x_ij / sum_i (u_ij/s_i^2)

The truth of a question is iterated within the question, starting at its median, so that a single gross answer is
ignored instead of averaged in. Lange, Little and Taylor, Robust statistical modeling using the t distribution,
JASA 1989; Huber, Robust Statistics, 1981 (proposal 2 for the scale).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from trueup.algorithms.contract import Algorithm, State
from trueup.algorithms.facts import VARIANCE_FLOOR
from trueup.core.parameters import SMALLEST, number, one_of

if TYPE_CHECKING:
    from trueup.algorithms.facts import Facts
    from trueup.answers.block import Block
    from trueup.core.arrays import Floats

INNER_STEPS = 50
INNER_TOLERANCE = 1e-10  # of the standard error of a truth
FARTHEST = 4.0  # scales of a worker
HUBER_C = 1.345
HUBER_SCALE = 0.7101645  # E[min(|z|, c)^2] for a standard normal z and c = 1.345


@dataclass(frozen=True)
class StudentT(Algorithm):
    """Student errors for each worker: use it if some answers are grossly wrong.

    Parameters
    ----------
    nu : float
        Degrees of freedom of the errors.
    nu0 : float
        Number of pseudo-answers at the pooled variance.
    errors : {"student", "huber"}
        Distribution of the errors.
    """

    nu: float = 4.0
    nu0: float = 2.0
    errors: Literal["student", "huber"] = "student"

    name = "student_t"
    continues = False

    def __post_init__(self) -> None:
        number("nu", self.nu, SMALLEST)
        number("nu0", self.nu0)
        one_of("errors", self.errors, ("student", "huber"))

    def start(self, facts: Facts) -> State:
        variance = np.where(facts.pool_of_worker > 0, facts.pool_of_worker, 1.0)
        return State(facts, {"weight": np.ones(facts.n_workers), "variance": variance})

    def truths(self, block: Block, state: State) -> Floats:
        x = block.median
        if state.step == 0:
            return x
        precision = 1.0 / state["variance"]
        # Each question stops by itself, whatever block it is in.
        moving = np.ones(len(x), dtype=bool)
        tolerance = INNER_TOLERANCE / np.sqrt(block.total_weight(precision))
        for _ in range(INNER_STEPS):
            share = self.discount(block, state, x)
            if block.precision is not None:
                share *= block.precision
            total = block.by_question(share, precision)
            share *= block.values
            new = block.by_question(share, precision) / total
            moved = np.abs(new - x) > tolerance
            x = np.where(moving, new, x)
            moving &= moved
            if not moving.any():
                break
        return x

    def discount(self, block: Block, state: State, x: Floats) -> Floats:
        """Return u_ij, the factor by which each answer counts less for its distance from the truth."""
        scaled = block.squares(x)
        scaled *= (1.0 / state["variance"]).take(block.workers)
        if self.errors == "student":
            return (self.nu + 1.0) / (self.nu + scaled)
        return HUBER_C / np.maximum(np.sqrt(scaled), HUBER_C)

    def tally(self, block: Block, state: State, x: Floats) -> Floats:
        u = self.discount(block, state, x)
        if self.errors == "huber":
            u *= u / HUBER_SCALE
        u *= block.squares(x)
        return block.by_worker(u, block.informative)[None]

    def update(self, state: State, sums: Floats) -> State:
        facts = state.facts
        pool = facts.pool_of_worker
        variance = facts.variance(sums[0] + self.nu0 * pool, facts.n_informative + self.nu0)
        variance = np.where(variance > 0, variance, 1.0)
        return state.replace(weight=facts.weigh(1.0 / variance), variance=variance)

    def weights(self, block: Block, state: State, x: Floats) -> Floats:
        share = self.discount(block, state, x)
        share *= (1.0 / state["variance"]).take(block.workers)
        if block.precision is not None:
            share *= block.precision
        return share / block.spread(block.by_question(share))

    def farthest(self, state: State) -> Floats:
        """Return four times the scale of each worker: answers farther from the truth hardly count."""
        limit: Floats = FARTHEST * np.sqrt(state["variance"])
        return limit

    def noise(self, state: State, ss: Floats, freedom: Floats) -> Floats:
        return np.maximum(state["variance"], VARIANCE_FLOOR * state.facts.pool_of_worker)

    def uncertainty(self, block: Block, state: State, x: Floats, noise: Floats) -> Floats:
        """Return the large-sample variance of a location estimate with these errors."""
        total = block.total_weight(1.0 / state["variance"])
        factor = (self.nu + 3.0) / (self.nu + 1.0) if self.errors == "student" else 1.0 / 0.95
        return factor / total
