"""Running an algorithm: learn about the workers, then compute the final truths, and how uncertain they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from trueup.algorithms.contract import Algorithm, State
from trueup.algorithms.facts import gather_facts
from trueup.algorithms.worker_fit import MAX_ITER, TOLERANCE, fit_workers, move_unit
from trueup.core.arrays import segment_max, segment_sum
from trueup.core.parameters import number
from trueup.engines import vectors
from trueup.engines.memory import engine_of
from trueup.engines.protocol import Visit
from trueup.errors import TrueupError, quoted

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.algorithms.facts import Facts
    from trueup.algorithms.worker_fit import StartingPoint, WorkerFit
    from trueup.answers.answers import Answers
    from trueup.answers.block import Block
    from trueup.core.arrays import Bools, Floats, Ints
    from trueup.engines.protocol import Engine, Kept


@dataclass(frozen=True, eq=False)
class Aggregate:
    """The outcome of a first step.

    Attributes
    ----------
    engine : Engine
        The engine over the answers. It keeps `x`, `offset` and `variance` as `vectors.AGGREGATE`, `vectors.OFFSET`
        and `vectors.MODEL_VARIANCE`.
    x : array
        Truth of each question, on the scale on which the answers were combined.
    offset : array
        Truth of each question relative to the centre of the question.
    variance : array
        Variance of each truth as a weighted mean with fixed weights; NaN if the algorithm has no weights.
    weight : array
        Weight of each worker; the weights of a panel sum to 1.
    noise : array
        Variance of each worker around the truths, in units of the answers squared.
    bias : array or None
        Bias of each worker, where the algorithm has one.
    state : State
        What the algorithm has learned about the workers.
    iterations : array
        Number of updates of each panel.
    settled : array
        Whether the truths of each panel converged.
    moved : array
        Largest move of a truth in the last iteration, in pooled standard deviations, for each panel.
    has_variance : bool
        Whether the variance of every truth is known, because the algorithm says how much each answer counts.
    """

    algorithm: Algorithm
    engine: Engine
    x: Floats
    offset: Floats
    variance: Floats
    weight: Floats
    noise: Floats
    bias: Floats | None
    state: State
    iterations: Ints
    settled: Bools
    moved: Floats
    has_variance: bool

    @property
    def facts(self) -> Facts:
        """What was known before the first iteration."""
        return self.state.facts

    @property
    def kind(self) -> Literal["linear", "robust"]:
        """Whether the truths are weighted means of the answers."""
        return self.algorithm.kind


def run(
    algorithm: Algorithm,
    answers: Answers | Engine,
    *,
    max_iter: int = MAX_ITER,
    tol: float = TOLERANCE,
    threads: int | None = None,
    train_on: Engine | None = None,
    start: StartingPoint | None = None,
    callback: Callable[[int, float], None] | None = None,
) -> Aggregate:
    """Run an algorithm over answers.

    Parameters
    ----------
    algorithm : Algorithm
    answers : Answers or Engine
        Answers in memory, or an engine over answers elsewhere. Panels run together; each stops at its own tolerance,
        as if it were alone.
    max_iter : int
        Largest number of updates of the worker state.
    tol : float
        Stop when no truth moves by more than this many pooled standard deviations; 0 runs all iterations.
    threads : int, optional
        Number of threads over blocks of questions; the result does not depend on it.
    train_on : Engine, optional
        Other answers to learn the workers from, see `trueup.pipeline.calibration`; its first workers are those of
        `answers`.
    start : State, optional
        What is already known about the workers, or about the first of them; default: all workers alike. An algorithm
        with a fixed number of updates ignores it.
    callback : callable, optional
        Called after each iteration with its number and the largest move of a truth, in pooled standard deviations.
    """
    check_limits(max_iter, tol)
    engine = engine_of(answers, threads)
    if engine.problem.n_questions == 0:
        raise TrueupError(
            "there are none to run on; this panel has no questions.", argument="answers"
        )
    facts = gather_facts(engine)
    if train_on is None:
        training = algorithm.prepare(engine, facts)
    else:
        training = algorithm.prepare(train_on, gather_facts(train_on))
    fit = fit_workers(
        algorithm,
        training,
        max_iter=max_iter,
        tol=tol,
        start=start,
        callback=callback,
    )
    return _aggregate(algorithm, engine, facts, fit, tol)


def check_limits(max_iter: object, tol: object) -> None:
    """Check that `max_iter` is an integer and `tol` a number, neither negative."""
    if not isinstance(max_iter, int | np.integer) or max_iter < 0:
        raise TrueupError(
            f"found {quoted(max_iter)}, must be a whole number, not negative.", argument="max_iter"
        )
    number("tol", tol)


def _aggregate(
    algorithm: Algorithm,
    engine: Engine,
    facts: Facts,
    fit: WorkerFit,
    tol: float,
) -> Aggregate:
    """Return the final truths, the noise of the workers around them, and the variance of each truth."""
    values = {name: value[: facts.n_workers] for name, value in fit.state.values.items()}
    state = State(facts, values, fit.state.step)
    if algorithm.concludes:
        state, noise, moved = algorithm.conclude(engine, state), None, fit.moved
    else:
        state, noise, moved = _conclude(algorithm, engine, state, fit)

    def count(block: Block, kept: Kept) -> Visit:
        truths, variances = kept[vectors.AGGREGATE], kept[vectors.MODEL_VARIANCE]
        # Where no variance can be known the algorithm is not to blame.
        unknown = np.isnan(variances) & ~block.of_panel(facts.pool == 0)
        flaws = np.stack([~np.isfinite(truths), unknown]).astype(np.float64)
        return Visit(
            panel_sums=np.stack([segment_sum(row, block.panel_questions) for row in flaws])
        )

    sweep = engine.sweep(count, reads=(vectors.AGGREGATE, vectors.MODEL_VARIANCE), answers=False)
    bad, unknown = sweep.panel_sums.sum(axis=1)
    if bad:
        raise TrueupError(
            f"{algorithm.name or type(algorithm).__name__} gave no finite truth for {bad:.0f} of "
            f"{engine.problem.n_questions} questions.",
            argument="method",
            remedy="Check its parameters, or choose another method.",
        )
    weight, iterations = state["weight"], fit.iterations
    total = facts.spread(facts.panel_sum(weight))
    return Aggregate(
        algorithm=algorithm,
        engine=engine,
        x=engine.kept(vectors.AGGREGATE),
        offset=engine.kept(vectors.OFFSET),
        variance=engine.kept(vectors.MODEL_VARIANCE),
        weight=weight / total,
        noise=_no_noise_where_all_agree(state["variance"], facts) if noise is None else noise,
        bias=state.values.get("bias"),
        state=state,
        iterations=iterations,
        settled=~fit.active | (moved <= tol) | (iterations == algorithm.max_updates),
        moved=moved,
        has_variance=unknown == 0,
    )


def _conclude(
    algorithm: Algorithm, engine: Engine, state: State, fit: WorkerFit
) -> tuple[State, Floats, Floats]:
    """Let the engine keep the final truths and their variances; return state, worker noise and last moves."""
    facts = state.facts

    def residuals(block: Block, kept: Kept) -> Visit:
        local = state.of(block)
        x = algorithm.truths(block, local)
        sums = [block.squared_distances(x)[None], algorithm.own_share(block, local, x)[None]]
        if algorithm.finishes:
            sums.append(algorithm.tally(block, local, x))
        peaks = None
        if vectors.ITERATE in kept and not algorithm.truth_free:
            peaks = segment_max(np.abs(x - kept[vectors.ITERATE]), block.panel_questions)
        return Visit(sums=np.concatenate(sums), panel_peaks=peaks, questions={vectors.ITERATE: x})

    sweep = engine.sweep(residuals, reads=(vectors.ITERATE,))
    moved = fit.moved
    # Truths of screened answers are not comparable with those of the answers themselves.
    if not algorithm.truth_free and fit.iterations.any() and fit.engine is engine:
        moved = np.where(fit.active, sweep.panel_peaks / move_unit(facts), moved)
    ss, freedom = sweep.sums[0], facts.n_informative - sweep.sums[1]
    if algorithm.finishes:
        state = algorithm.finish(state, sweep.sums[2:])
    noise = algorithm.noise(state, ss, freedom)
    agree = (facts.pool == 0) & (not algorithm.needs_variance)
    if not algorithm.needs_variance:
        noise = _no_noise_where_all_agree(noise, facts)

    def certainty(block: Block, kept: Kept) -> Visit:
        local = state.of(block)
        x = algorithm.final_truths(block, local, kept[vectors.ITERATE])
        variance = algorithm.uncertainty(
            block, local, kept[vectors.ITERATE], noise[block.worker_slice]
        )
        if variance is None:
            variance = np.full(block.n_questions, np.nan)
        if agree.any():
            variance = np.where(block.of_panel(agree), 0.0, variance)
        return Visit(
            questions={
                vectors.OFFSET: x,
                vectors.AGGREGATE: block.centre + x,
                vectors.MODEL_VARIANCE: variance,
            }
        )

    engine.sweep(certainty, reads=(vectors.ITERATE,))
    return state, noise, moved


def _no_noise_where_all_agree(noise: Floats, facts: Facts) -> Floats:
    """Return the variance of the workers, 0 in panels where all agree."""
    return np.where((facts.pool == 0)[facts.worker_panel], 0.0, noise)
