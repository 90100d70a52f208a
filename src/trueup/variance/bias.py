"""Biases of workers as random effects: shrunk, with standard errors, and taken off before anything else.

    x_ij = theta_j + b_i + e_ij,   b_i ~ N(0, tb2),   e_ij ~ N(0, s_i)

With the noise s_i at hand (`trueup.variance.worker_noise`), truths and biases are the solution of Henderson's mixed
model equations and tb2 is that of the EM algorithm, found by turns:

    t_j = sum_i (x_ij - b_i)/s_i / sum_i 1/s_i,    b_i = sum_j (x_ij - t_j)/s_i / (K_i/s_i + 1/tb2)
    tb2 = mean of b_i^2 + its squared standard error

then the noise is estimated again without these biases. A worker with few answers is believed to have hardly any bias.
All biases could be larger by the same amount and all truths smaller: the location is fixed by leaving the mean of all
answers where it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trueup.algorithms.screening import set_aside
from trueup.engines import vectors
from trueup.engines.memory import engine_of
from trueup.engines.protocol import Visit
from trueup.variance.worker_noise import less_bias, worker_noise

if TYPE_CHECKING:
    from trueup.answers.answers import Answers
    from trueup.answers.block import Block
    from trueup.core.arrays import Floats
    from trueup.engines.protocol import Engine, Kept
    from trueup.variance.worker_noise import WorkerNoise

#: How often the noise of the workers is estimated, and turns in each.
PASSES = 3
ROUNDS = 50
#: The turns end when no bias moves by more than this share of the standard deviation of an answer.
TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Biases:
    """The bias of each worker.

    Attributes
    ----------
    value, std_error : arrays
        Shrunk bias and its standard error, on the scale on which the answers are combined; 0 where none show.
    variance : array
        Variance of the biases of each panel.
    shift, shift_nu : arrays
        Variance of the mean bias of the workers of each panel, which stays in the answers, and its degrees of freedom.
        Biases and their standard errors are relative to that mean.
    """

    value: Floats
    std_error: Floats
    variance: Floats
    shift: Floats
    shift_nu: Floats

    def remove(self, engine: Engine) -> Engine:
        """Return an engine over the answers less the bias of their worker."""
        return less_bias(engine, self.value) if self.value.any() else engine


def estimate_biases(answers: Answers | Engine) -> Biases:
    """Estimate the bias of each worker, in each panel."""
    engine = engine_of(answers)
    noise = worker_noise(engine)
    nothing, none = np.zeros(engine.n_workers), np.zeros(engine.problem.n_panels)
    biases = Biases(nothing, nothing, noise.bias_variance, none, noise.shift_freedom)
    for again in range(PASSES):
        if not biases.variance.any():
            break
        if again:
            noise = worker_noise(engine, bias=biases.value)
        biases = _by_turns(engine, noise, biases)
    return biases


def _by_turns(engine: Engine, noise: WorkerNoise, before: Biases) -> Biases:
    """Solve for truths, biases and their variance, the noise of the workers given."""
    facts = noise.apart.facts
    if noise.apart.n_gross:
        engine = engine.changed(set_aside, reads=(vectors.GROSS,))
    weight = 1.0 / np.where(noise.variance > 0, noise.variance, 1.0)
    unit = np.sqrt(np.where(facts.pool > 0, facts.pool, 1.0))
    tb2, bias = before.variance, before.value
    biased = tb2 > 0
    count = np.maximum(facts.panel_sum(facts.informative), 1.0)
    for _ in range(ROUNDS):
        shifted = weight * bias

        def visit(block: Block, kept: Kept, shifted: Floats = shifted) -> Visit:  # noqa: ARG001
            mine = block.worker_slice
            total = block.total_weight(weight[mine])
            t = block.weighted_values(weight[mine]) - block.total_weight(shifted[mine])
            inside = block.informative
            rest = block.by_worker(block.weighted, inside)
            rest -= block.by_worker(block.precision, inside * t / total)
            return Visit(sums=np.stack([rest, block.by_worker(block.precision, inside / total)]))

        rest, own = engine.sweep(visit).sums
        prior = facts.spread(np.divide(1.0, tb2, out=np.full(len(tb2), np.inf), where=biased))
        # The truths are estimates, too: an answer that made up the share p of one says 1 - p of its author.
        known = weight * np.maximum(facts.precision - weight * own, 0.0)
        error = 1.0 / (known + prior)
        new = weight * rest / (weight * facts.precision + prior)
        moved = facts.panel_max(np.abs(new - bias)) / unit
        bias = new
        if (moved <= TOLERANCE).all():
            break
        tb2 = np.where(biased, facts.panel_sum(facts.informative * (bias**2 + error)) / count, 0.0)
    shift = facts.panel_sum(facts.n_answers * bias) / np.maximum(
        facts.panel_sum(facts.n_answers), 1.0
    )
    value = np.where(facts.spread(tb2) > 0, bias - facts.spread(shift), 0.0)
    answered = facts.n_answers / np.maximum(facts.spread(facts.panel_sum(facts.n_answers)), 1.0)
    return Biases(
        value, np.sqrt(error), tb2, tb2 * facts.panel_sum(answered**2), noise.shift_freedom
    )
