"""The loop in which an algorithm learns about the workers: truths, tallies, update, until the truths stop moving."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from trueup.algorithms.checkpoint import Checkpoint, CheckpointStore
from trueup.algorithms.contract import State
from trueup.core.arrays import segment_max
from trueup.engines import vectors
from trueup.engines.protocol import Visit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trueup.algorithms.contract import Algorithm, Training
    from trueup.algorithms.facts import Facts
    from trueup.answers.block import Block
    from trueup.core.arrays import Bools, Floats, Ints
    from trueup.engines.protocol import Engine, Kept

MAX_ITER = 14
TOLERANCE = 1e-6


class StartingPoint(Protocol):
    """What an earlier run learned about the workers: named vectors, and the number of updates. A `State` is one."""

    @property
    def values(self) -> Mapping[str, Floats]: ...

    @property
    def step(self) -> int: ...


@dataclass(frozen=True, eq=False)
class WorkerFit:
    """Result of the loop: the state of the workers, and how each panel got there."""

    engine: Engine
    state: State
    iterations: Ints
    moved: Floats
    active: Bools


def fit_workers(
    algorithm: Algorithm,
    training: Training,
    *,
    max_iter: int = MAX_ITER,
    tol: float = TOLERANCE,
    start: StartingPoint | None = None,
    callback: Callable[[int, float], None] | None = None,
    watched: bool = True,
) -> WorkerFit:
    """Repeat truths, tallies and update, each panel until its own truths stop moving.

    Where it is not `watched` how far truths move, all iterations are run, and the engine keeps no truths.
    """
    engine, facts = training.engine, training.facts
    state = algorithm.start(facts)
    limit = max_iter if algorithm.iterates else 0
    if algorithm.max_updates is not None:
        limit, tol = min(limit, algorithm.max_updates), 0.0
    elif start is not None and limit and algorithm.continues:
        values = State(facts, start.values, start.step).extended(facts.n_workers)
        state = State(facts, {**state.values, **values}, max(start.step, 1))
        limit += state.step

    active = (facts.pool > 0) & (limit > 0)
    iterations = np.zeros(facts.n_panels, dtype=np.int64)
    moved = np.zeros(facts.n_panels)
    unit = move_unit(facts)
    checkpoints = CheckpointStore.of(engine, algorithm, facts, max_iter=max_iter, tol=tol)
    saved = checkpoints.load()
    # Whether the engine keeps the truths of the previous iteration.
    has_previous = watched and saved is not None
    if saved is not None:
        if watched:  # compute the truths before the last update again, for comparison
            state = State(facts, saved.before, saved.steps - 1)
            engine.sweep(_iteration(algorithm, state), reads=(vectors.ITERATE,))
        state = State(facts, saved.after, saved.steps)
        iterations, moved, active = saved.iterations, saved.moved, saved.active
    elif training.sampled is not None:
        state = _learn_from_sample(algorithm, training, state, limit - algorithm.full_updates)
        iterations = iterations + active * state.step
    for step in range(state.step, limit):
        if not active.any():
            break
        if watched:
            sweep = engine.sweep(_iteration(algorithm, state), reads=(vectors.ITERATE,))
        else:
            sweep = engine.sweep(_tallies(algorithm, state))
        if has_previous and not algorithm.truth_free:
            moved = np.where(active, sweep.panel_peaks / unit, moved)
            active = active & ((moved > tol) | (tol == 0.0))
            if callback is not None:
                callback(step, float(moved.max()))
            if not active.any():
                break
        # Panels that have converged may divide by 0 here; their update is not used.
        with np.errstate(divide="ignore", invalid="ignore"):
            new = algorithm.update(state, sweep.sums)
        if algorithm.truth_free:
            change = facts.panel_max(np.abs(new["weight"] - state["weight"]))
            size = facts.panel_max(np.abs(new["weight"]))
            moved = np.where(active, change / np.where(size > 0, size, 1.0), moved)
            if callback is not None:
                callback(step + 1, float(moved.max()))
        has_previous = watched
        before, state = state, _freeze(state, new, active)
        iterations = iterations + active
        if algorithm.truth_free:
            active = active & ((moved > tol) | (tol == 0.0))
        checkpoints.save(
            Checkpoint(
                state.step, dict(before.values), dict(state.values), iterations, moved, active
            )
        )

    return WorkerFit(engine, state, iterations, moved, active)


def _iteration(algorithm: Algorithm, state: State) -> Callable[[Block, Kept], Visit]:
    """Return the visit of one iteration: truths, their largest move, and tallies."""

    def visit(block: Block, kept: Kept) -> Visit:
        local = state.of(block)
        if algorithm.truth_free:
            return Visit(sums=algorithm.tally(block, local, np.empty(0)))
        x, sums = algorithm.iterate(block, local)
        peaks = None
        if state.step > 0 and vectors.ITERATE in kept:
            peaks = segment_max(np.abs(x - kept[vectors.ITERATE]), block.panel_questions)
        return Visit(sums=sums, panel_peaks=peaks, questions={vectors.ITERATE: x})

    return visit


def _tallies(algorithm: Algorithm, state: State) -> Callable[[Block, Kept], Visit]:
    """Return the visit of an iteration of which only the tallies are asked for."""

    def visit(block: Block, kept: Kept) -> Visit:  # noqa: ARG001
        return Visit(sums=algorithm.iterate(block, state.of(block))[1])

    return visit


def _learn_from_sample(
    algorithm: Algorithm, training: Training, state: State, updates: int
) -> State:
    """Return the state after some updates that look at a sample of the questions alone.

    Workers outside of the sample are taken for typical ones.
    """
    sample, facts = training.sample, training.sampled
    assert sample is not None and facts is not None  # noqa: S101, PT018  both or none
    for _ in range(updates):
        known = State(facts, state.values, state.step)

        def visit(block: Block, kept: Kept, known: State = known) -> Visit:
            part = block.part(sample.inside(block, kept))
            return Visit(sums=algorithm.iterate(part, known.of(part))[1])

        sums = training.engine.sweep(visit, reads=sample.reads).sums
        state = State(training.facts, algorithm.update(known, sums).values, state.step + 1)
    return state


def move_unit(facts: Facts) -> Floats:
    """Return the pooled standard deviation of each panel, the unit of moves of truths."""
    unit: Floats = np.sqrt(np.where(facts.pool > 0, facts.pool, 1.0))
    return unit


def _freeze(old: State, new: State, active: Bools) -> State:
    """Return the new state, in which panels that have converged keep their old values."""
    values = new.values
    if not active.all():
        is_active = active[old.facts.worker_panel]
        values = {
            name: np.where(is_active, value, old.values[name]) if name in old else value
            for name, value in new.values.items()
        }
    return State(old.facts, values, old.step + 1)
