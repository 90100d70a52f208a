"""The noise of the workers, whatever the first step thought of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trueup.algorithms.driver import learn
from trueup.algorithms.facts import survey
from trueup.algorithms.native import Moderated
from trueup.algorithms.screening import Apart, set_apart
from trueup.engines import vectors
from trueup.engines.memory import engine_of
from trueup.variance.contract import Certainty

if TYPE_CHECKING:
    from collections.abc import Collection

    from trueup.algorithms.contract import Facts
    from trueup.answers.answers import Answers
    from trueup.answers.block import Block
    from trueup.core.arrays import Floats
    from trueup.engines.protocol import Engine, Kept

ROUNDS = 12


@dataclass(frozen=True, eq=False)
class WorkerNoise:
    """What is known of the errors of each worker.

    Attributes
    ----------
    apart : Apart
        The answers without gross questions and biases.
    variance : array
        Variance of each worker; on average over answers it is the pooled variance.
    freedom : array
        Degrees of freedom of the residuals of each worker.
    """

    apart: Apart
    variance: Floats
    freedom: Floats

    @property
    def count(self) -> Floats:
        """Informative answers of each worker."""
        return self.apart.facts.n_informative

    @property
    def pool(self) -> Floats:
        """Pooled variance of the panel of each worker."""
        return self.apart.facts.pool_of_worker

    @property
    def shift_freedom(self) -> Floats:
        """Degrees of freedom of the variance of the biases of each panel."""
        facts = self.apart.facts
        workers = facts.panel_sum((facts.n_informative >= 2).astype(np.float64))
        return np.maximum(workers - 1.0, 1.0)

    def certainty(self, engine: Engine, nu: Floats, shift: Floats) -> Certainty:
        """Say how sure the variances are that an engine keeps as `vectors.VARIANCE` and `INTERVAL_VARIANCE`."""
        marks = np.broadcast_to(0.0, (engine.problem.n_questions,))
        if self.apart.n_gross:
            marks = self.apart.marks[0]
        return Certainty(
            engine.kept(vectors.VARIANCE),
            engine.kept(vectors.INTERVAL_VARIANCE),
            nu,
            shift,
            self.shift_freedom,
            marks,
            interval=vectors.INTERVAL_VARIANCE,
            aside=vectors.GROSS if self.apart.n_gross else "",
        )

    @property
    def bias_variance(self) -> Floats:
        """Variance of the biases of each panel."""
        variance = self.apart.facts.bias_variance
        assert variance is not None  # noqa: S101  set with the biases
        return variance


def worker_noise(
    answers: Answers | Engine,
    *,
    bias: Floats | None = None,
    facts: Facts | None = None,
    without: Collection[str] = (),
) -> WorkerNoise:
    """Estimate the variance of each worker, biases and gross questions set apart.

    `bias` are biases that the first step has taken off already, `facts` what it knew of the answers; `without` leaves
    out pieces of the recipe, see `trueup.variance.moderated.PIECES`.
    """
    engine = engine_of(answers)
    if bias is not None:
        engine, facts = less_bias(engine, bias), None
    apart = set_apart(engine, facts or survey(engine), without=without)
    facts = apart.facts
    judge = Moderated(toward="mean" if "median level" in without else "median")
    state = learn(judge, apart.engine, facts, max_iter=ROUNDS, tol=0.0).state
    variance = state["variance"]
    # One factor for all workers of a panel, so that the level is the pooled variance, which is unbiased.
    total = facts.panel_sum(apart.freedom * variance)
    level = facts.pool * facts.panel_sum(apart.freedom)
    factor = np.divide(level, total, out=np.ones(len(total)), where=total > 0)
    if "unbiased level" in without:
        factor = np.ones(len(total))
    taken = facts.spread(apart.biased)
    return WorkerNoise(
        apart, variance * facts.spread(factor), np.maximum(apart.freedom - taken, 0.0)
    )


def less_bias(engine: Engine, bias: Floats) -> Engine:
    """Return an engine over the answers less the bias of their worker."""

    def change(block: Block, kept: Kept) -> Block:  # noqa: ARG001
        return block.adjusted(bias[block.worker_slice], None)

    return engine.changed(change)
