"""The one loop that runs every algorithm: truths, tallies, update, until nothing moves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from trueup.algorithms.checkpoint import Diary, Entry
from trueup.algorithms.contract import Algorithm, Facts, State
from trueup.algorithms.facts import survey
from trueup.core.arrays import segment_max, segment_sum
from trueup.core.parameters import LARGEST, plain
from trueup.engines import vectors
from trueup.engines.memory import engine_of
from trueup.engines.protocol import Visit
from trueup.errors import TrueupError, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trueup.answers.answers import Answers
    from trueup.answers.block import Block
    from trueup.core.arrays import Bools, Floats, Ints
    from trueup.engines.protocol import Engine, Kept

MAX_ITER = 14
TOLERANCE = 1e-6


class Believed(Protocol):
    """What is believed of some workers: named vectors and the updates that led there. A `State` is that, and more."""

    @property
    def values(self) -> Mapping[str, Floats]: ...

    @property
    def step(self) -> int: ...


@dataclass(frozen=True, eq=False)
class Aggregate:
    """The outcome of a first step.

    Attributes
    ----------
    engine : Engine
        What the answers were looked at with. It keeps the vectors below as
        `vectors.AGGREGATE`, `vectors.OFFSET` and `vectors.MODEL_VARIANCE`.
    x : array
        Truth of each question, on the scale on which the answers were combined.
    offset : array
        The same relative to the centre of the question.
    variance : array
        Variance of each truth, seen as a weighted mean with fixed weights; NaN where the algorithm has no
        weights.
    weight : array
        Weight of each worker; the weights of a panel sum to 1.
    noise : array
        Variance of each worker around the truths, in units of the answers squared.
    bias : array or None
        Bias of each worker, where the algorithm has one.
    state : State
        What the algorithm believes of the workers, as it is used inside.
    iterations : array
        Updates used, for each panel.
    settled : array
        Whether the truths of a panel came to rest.
    moved : array
        Largest last move of a truth, in pooled standard deviations, for each panel.
    has_variance : bool
        Whether the variance of every truth is known: the algorithm says how much each answer counts.
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
    learn_from: Engine | None = None,
    start: Believed | None = None,
    callback: Callable[[int, float], None] | None = None,
) -> Aggregate:
    """Run an algorithm over answers.

    Parameters
    ----------
    algorithm : Algorithm
    answers : Answers or Engine
        In memory, or wherever an engine has them. Panels are run together; each stops by its own tolerance, as if it
        were alone.
    max_iter : int
        Largest number of updates of the worker state.
    tol : float
        Stop when no truth moves by more than this many pooled standard deviations; 0 runs all iterations.
    threads : int, optional
        Threads over blocks of questions; the result does not depend on it.
    learn_from : Engine, optional
        Answers from which the workers are learned instead, see `trueup.pipeline.calibration`; its first workers are
        those of `answers`.
    start : State, optional
        What is believed of the workers already, or of the first of them; default: nothing, all are alike. An
        algorithm that ends after a number of updates by definition always starts from nothing.
    callback : callable, optional
        Called after each iteration with its number and the largest move of a truth, in pooled standard
        deviations.
    """
    check_limits(max_iter, tol)
    engine = engine_of(answers, threads)
    if engine.problem.n_questions == 0:
        raise TrueupError("answers: there are none to run on; this panel has no questions.")
    facts = survey(engine)
    school, known = engine, facts
    if learn_from is not None:
        school, known = learn_from, survey(learn_from)
    lesson, known = algorithm.prepare(school, known)
    outcome = learn(
        algorithm, lesson, known, max_iter=max_iter, tol=tol, start=start, callback=callback
    )
    return _conclude(algorithm, engine, facts, outcome, tol)


def check_limits(max_iter: object, tol: object) -> None:
    """Refuse what are no limits of an iteration."""
    if not isinstance(max_iter, int | np.integer) or max_iter < 0:
        raise TrueupError(
            f"max_iter: found {quoted(max_iter)}, must be a whole number, not negative."
        )
    is_number = isinstance(tol, int | float | np.integer | np.floating)
    if not is_number or not 0 <= plain(tol) <= LARGEST:
        raise TrueupError(f"tol: found {quoted(tol)}, must be a number, not negative.")


@dataclass(frozen=True, eq=False)
class Learned:
    """Where the loop ended: the state of the workers, and for each panel how it got there."""

    engine: Engine
    state: State
    iterations: Ints
    moved: Floats
    active: Bools


def learn(
    algorithm: Algorithm,
    engine: Engine,
    facts: Facts,
    *,
    max_iter: int = MAX_ITER,
    tol: float = TOLERANCE,
    start: Believed | None = None,
    callback: Callable[[int, float], None] | None = None,
) -> Learned:
    """Repeat truths, tallies and update, each panel until its own truths rest."""
    state = algorithm.start(facts)
    limit = max_iter if algorithm.iterates else 0
    if algorithm.max_updates is not None:
        limit = min(limit, algorithm.max_updates)
    elif start is not None and limit:
        believed = State(facts, start.values, start.step).joined(facts.n_workers)
        state = State(facts, {**state.values, **believed}, max(start.step, 1))
        limit += state.step

    active = (facts.pool > 0) & (limit > 0)
    iterations = np.zeros(facts.n_panels, dtype=np.int64)
    moved = np.zeros(facts.n_panels)
    unit = _unit(facts)
    diary = Diary.of(engine, algorithm, facts, max_iter=max_iter, tol=tol)
    done = diary.read()
    compares = done is not None  # with the truths of the iteration before
    if done is not None:
        # The truths before the last update are found again, to compare with.
        state = State(facts, done.before, done.steps - 1)
        engine.sweep(_iteration(algorithm, state), reads=(vectors.ITERATE,))
        state = State(facts, done.after, done.steps)
        iterations, moved, active = done.iterations, done.moved, done.active
    for step in range(state.step, limit):
        if not active.any():
            break
        sweep = engine.sweep(_iteration(algorithm, state), reads=(vectors.ITERATE,))
        if compares and not algorithm.truth_free:
            moved = np.where(active, sweep.panel_peaks / unit, moved)
            active = active & ((moved > tol) | (tol == 0.0))
            if callback is not None:
                callback(step, float(moved.max()))
            if not active.any():
                break
        with np.errstate(
            divide="ignore", invalid="ignore"
        ):  # in panels at rest, whose update is not used
            new = algorithm.update(state, sweep.sums)
        if algorithm.truth_free:
            change = facts.panel_max(np.abs(new["weight"] - state["weight"]))
            size = facts.panel_max(np.abs(new["weight"]))
            moved = np.where(active, change / np.where(size > 0, size, 1.0), moved)
            if callback is not None:
                callback(step + 1, float(moved.max()))
        compares = True
        before, state = state, _freeze(state, new, active)
        iterations = iterations + active
        if algorithm.truth_free:
            active = active & ((moved > tol) | (tol == 0.0))
        diary.write(
            Entry(state.step, dict(before.values), dict(state.values), iterations, moved, active)
        )

    return Learned(engine, state, iterations, moved, active)


def _iteration(algorithm: Algorithm, state: State) -> Callable[[Block, Kept], Visit]:
    def visit(block: Block, kept: Kept) -> Visit:
        local = state.of(block)
        if algorithm.truth_free:
            return Visit(sums=algorithm.tally(block, local, np.empty(0)))
        x = algorithm.truths(block, local)
        peaks = None
        if state.step > 0 and vectors.ITERATE in kept:
            peaks = segment_max(np.abs(x - kept[vectors.ITERATE]), block.panel_questions)
        return Visit(
            sums=algorithm.tally(block, local, x), panel_peaks=peaks, questions={vectors.ITERATE: x}
        )

    return visit


def _unit(facts: Facts) -> Floats:
    """Return the pooled standard deviation of each panel, in which moves of truths are counted."""
    unit: Floats = np.sqrt(np.where(facts.pool > 0, facts.pool, 1.0))
    return unit


def _freeze(old: State, new: State, active: Bools) -> State:
    """Let panels that have come to rest keep their state."""
    values = new.values
    if not active.all():
        going = active[old.facts.worker_panel]
        values = {
            name: np.where(going, value, old.values[name]) if name in old else value
            for name, value in new.values.items()
        }
    return State(old.facts, values, old.step + 1)


def _conclude(
    algorithm: Algorithm,
    engine: Engine,
    facts: Facts,
    outcome: Learned,
    tol: float,
) -> Aggregate:
    """Find the final truths, then what is left over around them, then how sure they are."""
    values = {name: value[: facts.n_workers] for name, value in outcome.state.values.items()}
    state = State(facts, values, outcome.state.step)
    iterations, moved, active = outcome.iterations, outcome.moved, outcome.active

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
    # Truths of an adjusted view of the answers do not compare with those of the answers themselves.
    if not algorithm.truth_free and iterations.any() and outcome.engine is engine:
        moved = np.where(active, sweep.panel_peaks / _unit(facts), moved)
    ss, freedom = sweep.sums[0], facts.n_informative - sweep.sums[1]
    if algorithm.finishes:
        state = algorithm.finish(state, sweep.sums[2:])
    noise = algorithm.noise(state, ss, freedom)
    # Where all agree there is nothing to learn a variance from; known ones stay.
    agree = (facts.pool == 0) & (not algorithm.needs_variance)
    noise = np.where(agree[facts.worker_panel], 0.0, noise)

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
        wrong = np.stack([~np.isfinite(x), np.isnan(variance)]).astype(np.float64)
        return Visit(
            panel_sums=np.stack([segment_sum(row, block.panel_questions) for row in wrong]),
            questions={
                vectors.OFFSET: x,
                vectors.AGGREGATE: block.centre + x,
                vectors.MODEL_VARIANCE: variance,
            },
        )

    bad, unknown = engine.sweep(certainty, reads=(vectors.ITERATE,)).panel_sums.sum(axis=1)
    if bad:
        raise TrueupError(
            f"method: {algorithm.name or type(algorithm).__name__} gave no finite truth for {bad:.0f} of "
            f"{engine.problem.n_questions} questions. Check its parameters, or choose another method."
        )
    weight = state["weight"]
    total = facts.spread(facts.panel_sum(weight))
    return Aggregate(
        algorithm=algorithm,
        engine=engine,
        x=engine.kept(vectors.AGGREGATE),
        offset=engine.kept(vectors.OFFSET),
        variance=engine.kept(vectors.MODEL_VARIANCE),
        weight=weight / total,
        noise=noise,
        bias=state.values.get("bias"),
        state=state,
        iterations=iterations,
        settled=~active | (moved <= tol) | (iterations == algorithm.max_updates),
        moved=moved,
        has_variance=unknown == 0,
    )
