"""Biases of workers as random effects: shrunk, with standard errors, subtracted from the answers before the first step.

    x_ij = theta_j + b_i + e_ij,   b_i ~ N(0, tb2),   e_ij ~ N(0, s_i)

Given the noise s_i (`trueup.variance.worker_noise`), truths and biases solve Henderson's mixed model equations, and tb2
is the EM estimate. They are updated alternately:

    t_j = sum_i (x_ij - b_i)/s_i / sum_i 1/s_i,    b_i = sum_j (x_ij - t_j)/s_i / (K_i/s_i + 1/tb2)
    tb2 = mean of b_i^2 + its squared standard error

Then the noise is estimated again without these biases. The bias of a worker with few answers is shrunk to nearly 0.
A constant could be added to all biases and subtracted from all truths; it is chosen so that the mean of all answers
stays the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trueup.algorithms.screening import without_gross_questions
from trueup.engines import vectors
from trueup.engines.memory import engine_of
from trueup.engines.protocol import Visit
from trueup.variance.worker_noise import subtract_bias, worker_noise

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.answers.answers import Answers
    from trueup.answers.block import Block
    from trueup.core.arrays import Floats
    from trueup.engines.protocol import Engine, Kept
    from trueup.variance.worker_noise import WorkerNoise

#: Workers up to which one pass over the answers serves all updates.
FEW_WORKERS = 100
#: Number of estimates of the worker noise, and largest number of updates with each.
PASSES = 3
ROUNDS = 50
#: The updates end when no bias moves by more than this share of the standard deviation of an answer.
TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Biases:
    """The bias of each worker.

    Attributes
    ----------
    value, std_error : arrays
        Shrunk bias and its standard error, on the scale on which the answers are combined; 0 where no bias shows.
    variance : array
        Variance of the biases of each panel.
    shift, shift_nu : arrays
        Variance of the mean bias of the workers of each panel, which remains in the answers, and its degrees of
        freedom. Biases and their standard errors are relative to that mean.
    """

    value: Floats
    std_error: Floats
    variance: Floats
    shift: Floats
    shift_nu: Floats

    def remove(self, engine: Engine) -> Engine:
        """Return an engine over the answers minus the bias of their worker."""
        return subtract_bias(engine, self.value) if self.value.any() else engine


def estimate_biases(answers: Answers | Engine, *, noise: WorkerNoise | None = None) -> Biases:
    """Estimate the bias of each worker, in each panel.

    Parameters
    ----------
    answers : Answers or Engine
    noise : WorkerNoise, optional
        `worker_noise(answers)`, where it is already known. An engine must still keep the marks of its gross questions.
    """
    engine = engine_of(answers)
    if noise is None:
        noise = worker_noise(engine)
    elif engine is not answers:
        noise.screening.keep_in(engine)
    no_bias, no_shift = np.zeros(engine.n_workers), np.zeros(engine.problem.n_panels)
    biases = Biases(no_bias, no_bias, noise.bias_variance, no_shift, noise.shift_freedom)
    for number in range(PASSES):
        if not biases.variance.any():
            break
        if number:
            noise = worker_noise(engine, bias=biases.value)
        biases = _solve(engine, noise, biases)
    return biases


def _residuals(engine: Engine, weight: Floats) -> Callable[[Floats], tuple[Floats, Floats]]:
    """Return the function from weighted biases `w_i b_i` to the sums of each worker's residuals and shares.

    Residuals are linear in the biases, `r + C (w b)` with `C_ik = sum_j p_ij p_kj / sum_l p_lj w_l`. With few workers
    one pass computes r and C, and an update needs no pass over the answers; with many, C would be too large.
    """

    def begin(block: Block, kept: Kept) -> Visit:  # noqa: ARG001
        """Sum residuals and shares without biases; with few workers C, too."""
        workers, inside = block.worker_slice, block.informative
        total = block.total_weight(weight[workers])
        t = block.weighted_values(weight[workers])
        rest = block.by_worker(block.weighted, inside)
        rest -= block.by_worker(block.precision, inside * t / total)
        sums = np.stack([rest, block.by_worker(block.precision, inside / total)])
        if not few:
            return Visit(sums=sums)
        precision = np.ones(len(block.values)) if block.precision is None else block.precision
        shape = (block.n_questions, block.n_workers)
        given = csr_array((precision, block.workers, block.indptr), shape=shape)
        scaled = csr_array(
            (precision * block.spread(inside / total), block.workers, block.indptr), shape=shape
        )
        return Visit(sums=np.vstack([sums, (given.T @ scaled).toarray()]))

    from scipy.sparse import csr_array

    few = engine.problem.n_panels == 1 and engine.n_workers <= FEW_WORKERS
    start, own, *coupling = engine.sweep(begin).sums
    if few:
        matrix = np.array(coupling)
        return lambda shifted: (start + shifted @ matrix, own)

    def turn(shifted: Floats) -> tuple[Floats, Floats]:
        def visit(block: Block, kept: Kept) -> Visit:  # noqa: ARG001
            workers = block.worker_slice
            lower = block.total_weight(shifted[workers]) / block.total_weight(weight[workers])
            return Visit(sums=block.by_worker(block.precision, block.informative * lower)[None])

        return start + engine.sweep(visit).sums[0], own

    return turn


def _solve(engine: Engine, noise: WorkerNoise, before: Biases) -> Biases:
    """Solve for truths, biases and their variance, given the noise of the workers."""
    facts = noise.screening.facts
    if noise.screening.n_gross:
        engine = engine.changed(without_gross_questions, reads=(vectors.GROSS,))
    weight = 1.0 / np.where(noise.variance > 0, noise.variance, 1.0)
    unit = np.sqrt(np.where(facts.pool > 0, facts.pool, 1.0))
    tb2, bias = before.variance, before.value
    biased = tb2 > 0
    count = np.maximum(facts.panel_sum(facts.informative), 1.0)
    residuals = _residuals(engine, weight)
    for _ in range(ROUNDS):
        rest, own = residuals(weight * bias)
        prior = facts.spread(np.divide(1.0, tb2, out=np.full(len(tb2), np.inf), where=biased))
        # Truths are estimates: an answer with share p in its truth carries only 1 - p about its worker.
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
