"""The noise variance of each worker, estimated independently of the weights of the first step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from trueup.algorithms.contract import Training
from trueup.algorithms.facts import gather_facts
from trueup.algorithms.moderated import Moderated
from trueup.algorithms.screening import Screening, screen
from trueup.algorithms.worker_fit import fit_workers
from trueup.engines import vectors
from trueup.engines.memory import engine_of
from trueup.variance.contract import Certainty
from trueup.variance.interval_noise import interval_noise

if TYPE_CHECKING:
    from collections.abc import Collection

    from trueup.algorithms.driver import Aggregate
    from trueup.algorithms.facts import Facts
    from trueup.answers.answers import Answers
    from trueup.answers.block import Block
    from trueup.core.arrays import Floats
    from trueup.engines.protocol import Engine, Kept
    from trueup.variance.interval_noise import IntervalNoise

ROUNDS = 12


@dataclass(frozen=True, eq=False)
class WorkerNoise:
    """Size of the random errors of each worker.

    Attributes
    ----------
    screening : Screening
        The answers without gross questions and biases.
    variance : array
        Variance of each worker; its average over answers is the pooled variance.
    freedom : array
        Degrees of freedom of the residuals of each worker.
    """

    screening: Screening
    variance: Floats
    freedom: Floats

    @property
    def n_informative(self) -> Floats:
        """Number of informative answers of each worker."""
        return self.screening.facts.n_informative

    @property
    def pool(self) -> Floats:
        """Pooled variance of each worker's panel."""
        return self.screening.facts.pool_of_worker

    @property
    def shift_freedom(self) -> Floats:
        """Degrees of freedom of the variance of the biases of each panel."""
        facts = self.screening.facts
        workers = facts.panel_sum((facts.n_informative >= 2).astype(np.float64))
        return np.maximum(workers - 1.0, 1.0)

    def certainty(
        self, engine: Engine, nu: Floats, interval_nu: Floats, shift: Floats, shift_nu: Floats
    ) -> Certainty:
        """Return the certainty of the `vectors.VARIANCE` and `INTERVAL_VARIANCE` that an engine keeps."""
        marks = np.broadcast_to(0.0, (engine.problem.n_questions,))
        if self.screening.n_gross:
            marks = self.screening.marks[vectors.GROSS]
        return Certainty(
            engine.kept(vectors.VARIANCE),
            engine.kept(vectors.INTERVAL_VARIANCE),
            nu,
            interval_nu,
            shift,
            shift_nu,
            marks,
            interval=vectors.INTERVAL_VARIANCE,
            aside=vectors.GROSS if self.screening.n_gross else "",
        )

    @cached_property
    def for_intervals(self) -> IntervalNoise:
        """The same for intervals."""
        return interval_noise(self.screening, self.variance)

    @property
    def bias_variance(self) -> Floats:
        """Variance of the biases of each panel."""
        variance = self.screening.facts.bias_variance
        assert variance is not None  # noqa: S101  set with the biases
        return variance


def worker_noise(
    answers: Answers | Engine,
    *,
    bias: Floats | None = None,
    facts: Facts | None = None,
    skip: Collection[str] = (),
) -> WorkerNoise:
    """Estimate the variance of each worker, after screening out biases and gross questions.

    Parameters
    ----------
    answers : Answers or Engine
    bias : array, optional
        Bias of each worker that the first step has already estimated; it is subtracted first.
    facts : Facts, optional
        Facts about the answers, where they are already known.
    skip : collection of str
        Pieces of the recipe to leave out, see `trueup.variance.moderated.PIECES`.
    """
    engine = engine_of(answers)
    if bias is not None:
        engine, facts = subtract_bias(engine, bias), None
    screening = screen(engine, facts or gather_facts(engine), skip=skip)
    facts = screening.facts
    algorithm = Moderated(toward="mean" if "median level" in skip else "median")
    training = Training(screening.engine, facts)
    state = fit_workers(algorithm, training, max_iter=ROUNDS, tol=0.0, watched=False).state
    variance = state["variance"]
    # Scale the variances of each panel so that their level is the pooled variance, which is unbiased.
    total = facts.panel_sum(screening.freedom * variance)
    level = facts.pool * facts.panel_sum(screening.freedom)
    factor = np.divide(level, total, out=np.ones(len(total)), where=total > 0)
    if "unbiased level" in skip:
        factor = np.ones(len(total))
    return WorkerNoise(
        screening,
        variance * facts.spread(factor),
        np.maximum(screening.freedom - facts.spread(screening.biased), 0.0),
    )


def noise_behind(aggregate: Aggregate, skip: Collection[str] = ()) -> WorkerNoise:
    """Estimate the variance of each worker as far as it matters for an aggregate.

    Where an algorithm hardly counts answers that are far from the truth, they are moved to the distance where that
    begins. Of two answers nobody can say which one is far off: they stay.
    """
    engine, algorithm, facts = aggregate.engine, aggregate.algorithm, aggregate.facts
    limit = algorithm.farthest(aggregate.state)
    if limit is None:
        return worker_noise(engine, facts=facts, skip=skip)

    def draw_in(block: Block, kept: Kept) -> Block:
        far = limit[block.worker_slice].take(block.workers)
        if block.precision is not None:
            far = far / np.sqrt(block.precision)
        far = np.where(block.spread(block.counts.astype(np.float64)) > 2, far, np.inf)
        values = np.clip(block.residuals(kept[vectors.OFFSET]), -far, far)
        values += block.spread(kept[vectors.OFFSET])
        return replace(block, values=values, given=None)

    return worker_noise(engine.changed(draw_in, reads=(vectors.OFFSET,)), skip=skip)


def subtract_bias(engine: Engine, bias: Floats) -> Engine:
    """Return an engine over the answers minus the bias of their worker."""

    def change(block: Block, kept: Kept) -> Block:  # noqa: ARG001
        return block.adjusted(bias[block.worker_slice], None)

    return engine.changed(change)
