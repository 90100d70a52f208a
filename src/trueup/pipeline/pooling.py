"""One voice for workers who err together.

Weights are learned from agreement, and two judges of one model family agree with each other: they look better than they
are, get more weight than they deserve, and make intervals too short. Held-out workers do not show it, for each of the
two is predicted well by the other. So workers whose errors clearly correlate (`trueup.variance.correlated`) are pooled:
the mean of their answers to a question is one answer. Its noise is learned like that of anybody else, so that a group
of k with correlation rho gets about the weight of `k / (1 + (k - 1) rho)` workers, and all that follows (folds,
weights, variances, intervals) counts voices instead of workers.

Correlations below 0.7 change nothing: two workers with half of their errors in common are worth one and a third, and
the largest of many estimated correlations is larger than the true one. Groups are what pairs connect.

Of few workers it cannot be told who errs together: if two of four agree too well, either they share an error or the
other two do, and the answers look the same. Then mostly nobody is found, and nothing is changed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from trueup.algorithms.contract import State
from trueup.algorithms.facts import gather_facts
from trueup.answers.block import Block
from trueup.core.arrays import offsets
from trueup.engines import vectors
from trueup.engines.protocol import Visit
from trueup.errors import counted, quoted
from trueup.pipeline.auto_method import comparable
from trueup.variance.correlated import FEWEST_WORKERS, together

if TYPE_CHECKING:
    from trueup.algorithms.driver import Aggregate
    from trueup.core.arrays import Ints
    from trueup.engines.protocol import Engine, Kept, Problem
    from trueup.variance import WorkerNoise
    from trueup.variance.correlated import Together

#: Correlation of errors, or share of identical answers beyond ties, from which on two workers are one voice.
SAME = 0.7
#: Workers beyond which nobody is looked for: two of so many do little harm, and all pairs cost time.
MOST_WORKERS = 200
#: Groups that are named.
NAMED = 3


@dataclass(frozen=True, eq=False)
class Voices:
    """Who speaks for whom.

    Attributes
    ----------
    speaker : array
        Number of the worker who speaks for each worker: the first of its group by id, or the worker itself.
    said : str
        Who was found, in words.
    """

    speaker: Ints
    said: str = ""

    def hear(self, engine: Engine) -> Engine:
        """Return an engine in which the speakers give the mean of the answers of their group, and the others none.

        Numbers of workers stay as they are, and the number of answers to a question is kept as `vectors.ANSWERED`. With
        known variances of answers the mean is weighted by their inverse, and as precise as one of them.
        """
        speaker, n = self.speaker, len(self.speaker)

        def count(block: Block, kept: Kept) -> Visit:  # noqa: ARG001
            return Visit(questions={vectors.ANSWERED: block.counts.astype(np.float64)})

        engine.sweep(count, answers=False)

        def change(block: Block, kept: Kept) -> Block:  # noqa: ARG001
            question = np.repeat(np.arange(block.n_questions), block.counts)
            key, at = np.unique(question * n + speaker[block.workers], return_inverse=True)
            size, total = np.bincount(at), np.bincount(at, block.precision)
            counts = np.bincount(key // n, minlength=block.n_questions)
            return Block(
                indptr=offsets(counts).astype(block.indptr.dtype),
                workers=(key % n).astype(block.workers.dtype),
                values=np.bincount(at, block.weighted) / total,
                precision=None if block.precision is None else total / size,
                n_workers=block.n_workers,
                start=block.start,
                first_worker=block.first_worker,
                panel_questions=block.panel_questions,
                first_panel=block.first_panel,
                centre=block.centre,
                aside=block.aside,
            )

        return engine.changed(change)

    def tell(self, aggregate: Aggregate, noise: WorkerNoise | None, engine: Engine) -> Aggregate:
        """Return what was found of the voices as that of the workers whose answers are in an engine.

        The members of a group share its weight equally, and each has the noise of the voice.
        """
        of, facts = self.speaker, gather_facts(engine)
        values = {name: value[of] for name, value in aggregate.state.values.items()}
        values["weight"] = values["weight"] / np.bincount(of)[of]
        variance = aggregate.noise if noise is None else noise.variance
        return replace(
            aggregate,
            engine=engine,
            state=State(facts, values, aggregate.state.step),
            weight=values["weight"] / values["weight"].sum(),
            noise=variance[of],
            bias=None if aggregate.bias is None else aggregate.bias[of],
        )

    def ask(self, aggregate: Aggregate, engine: Engine) -> Aggregate:
        """Undo `tell`: return the aggregate of the voices, in the engine that hears them."""
        values = dict(aggregate.state.values)
        values["weight"] = values["weight"] * np.bincount(self.speaker)[self.speaker]
        state = State(gather_facts(engine), values, aggregate.state.step)
        return replace(aggregate, engine=engine, state=state)


def find_voices(engine: Engine, seed: int = 0) -> Voices | None:
    """Find workers who are to be heard as one; None where there are none, or all would be one."""
    problem = engine.problem
    if problem.n_panels > 1 or not FEWEST_WORKERS <= problem.n_workers <= MOST_WORKERS:
        return None
    found = together(comparable(engine, seed), seed=seed)
    number = _numbers(found, problem)
    beyond = (found.identical - found.expected) / np.maximum(1.0 - found.expected, 1e-9)
    alike = np.fmax(found.correlation, np.where(found.copies, beyond, 0.0)) >= SAME
    if number is None or not alike.any():
        return None
    # By rank, so that the order of rows does not decide who speaks.
    rank = problem.worker_rank
    first = rank.copy()
    for one, other in zip(number[found.first[alike]], number[found.second[alike]], strict=True):
        low, high = sorted((first[one], first[other]))
        first[first == high] = low
    if (first == first[0]).all():
        return None
    speaker = np.argsort(rank)[first]
    return Voices(speaker, _words(speaker, problem))


def _numbers(found: Together, problem: Problem) -> Ints | None:
    """Return which workers of the problem those of a sample are; None where ids do not tell."""
    if found.answers.n_workers == problem.n_workers:
        return np.arange(problem.n_workers)
    at = {each: number for number, each in enumerate(problem.worker_ids.tolist())}
    if len(at) < problem.n_workers:
        return None
    return np.array([at[each] for each in found.answers.worker_ids.tolist()])


def _words(speaker: Ints, problem: Problem) -> str:
    """Say who is heard as one."""
    ids = problem.worker_ids
    groups = [np.flatnonzero(speaker == each) for each in np.flatnonzero(np.bincount(speaker) > 1)]
    named = [
        ", ".join(quoted(str(each)).strip('"') for each in ids.tolist(group))
        for group in groups[:NAMED]
    ]
    if len(groups) > NAMED:
        named.append(f"{counted(len(groups) - NAMED, 'more group')}")
    return f"workers who err together count as one: {'; '.join(named)}"
