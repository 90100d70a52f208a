"""Workers who err together count as one.

Weights are learned from agreement, and two judges of one model family agree with each other: they look better than they
are, get more weight than they deserve, and make intervals too short. Held-out workers do not show it, for each of the
two is predicted well by the other. So workers whose errors clearly correlate (`trueup.variance.correlated`) are pooled:
the mean of their answers to a question is one answer. Its noise is learned like that of any worker, so a group of k
with correlation rho gets about the weight of `k / (1 + (k - 1) rho)` workers, and everything that follows (folds,
weights, variances, intervals) counts groups instead of workers.

Correlations below 0.7 change nothing: two workers with half of their errors in common are worth one and a third, and
the largest of many estimated correlations is larger than the true one. Groups are the connected pairs.

With few workers it cannot be decided who errs together: if two of four agree too well, either they share an error or
the other two do, and the answers look the same. Then mostly nobody is pooled, and nothing changes.
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
from trueup.engines.memory import MemoryEngine
from trueup.engines.protocol import Visit
from trueup.errors import counted, quoted
from trueup.pipeline.auto_method import comparable
from trueup.variance.correlated import FEWEST_WORKERS, find_pairs
from trueup.variance.worker_noise import worker_noise

if TYPE_CHECKING:
    from trueup.algorithms.driver import Aggregate
    from trueup.answers.answers import Answers
    from trueup.core.arrays import Ints
    from trueup.engines.protocol import Engine, Kept, Problem
    from trueup.variance import WorkerNoise

#: Correlation of errors, or share of identical answers beyond ties, from which on two workers are pooled.
SAME = 0.7
#: Workers beyond which nobody is pooled: two of so many do little harm, and comparing all pairs takes time.
MOST_WORKERS = 200
#: Groups that are named.
NAMED = 3


@dataclass(frozen=True, eq=False)
class Pooling:
    """Groups of workers who count as one.

    Attributes
    ----------
    leader : array
        Number of the worker who stands for the group of each worker: the first of it by id, or the worker itself.
    said : str
        The groups, in words.
    """

    leader: Ints
    said: str = ""

    def pool(self, engine: Engine) -> Engine:
        """Return an engine in which the leaders give the mean of the answers of their group, and the others none.

        Numbers of workers stay as they are, and the number of answers of a question is kept as `vectors.ANSWERED`. With
        known variances of answers the mean is weighted by their inverse, and as precise as one of them.
        """
        leader, n = self.leader, len(self.leader)

        def count(block: Block, kept: Kept) -> Visit:  # noqa: ARG001
            return Visit(questions={vectors.ANSWERED: block.counts.astype(np.float64)})

        engine.sweep(count, answers=False)

        def change(block: Block, kept: Kept) -> Block:  # noqa: ARG001
            question = np.repeat(np.arange(block.n_questions), block.counts)
            key, at = np.unique(question * n + leader[block.workers], return_inverse=True)
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

    def share(self, aggregate: Aggregate, noise: WorkerNoise | None, engine: Engine) -> Aggregate:
        """Return the aggregate of the groups as that of the workers, whose answers are in an engine.

        The members of a group share its weight equally, and each has the noise of the group.
        """
        of, facts = self.leader, gather_facts(engine)
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

    def unshare(self, aggregate: Aggregate, engine: Engine) -> Aggregate:
        """Undo `share`: return the aggregate of the groups, in the engine that pools them."""
        values = dict(aggregate.state.values)
        values["weight"] = values["weight"] * np.bincount(self.leader)[self.leader]
        state = State(gather_facts(engine), values, aggregate.state.step)
        return replace(aggregate, engine=engine, state=state)


def find_pooling(engine: Engine, seed: int = 0) -> tuple[Pooling | None, WorkerNoise | None]:
    """Find workers who are to count as one.

    Returns
    -------
    Pooling or None
        None where there are none, or all would be one.
    WorkerNoise or None
        The noise of all workers, where it was computed on the way and can be used again.
    """
    problem = engine.problem
    if problem.n_panels > 1 or not FEWEST_WORKERS <= problem.n_workers <= MOST_WORKERS:
        return None, None
    sample = comparable(engine, seed)
    whole = isinstance(engine, MemoryEngine) and sample.n_questions == problem.n_questions
    noise = worker_noise(engine) if whole else None
    return _find_groups(engine, sample, noise, seed), noise


def _find_groups(
    engine: Engine, sample: Answers, noise: WorkerNoise | None, seed: int
) -> Pooling | None:
    problem = engine.problem
    pairs = find_pairs(sample, noise=noise, seed=seed)
    number = _numbers(sample, problem)
    beyond = (pairs.identical - pairs.expected) / np.maximum(1.0 - pairs.expected, 1e-9)
    alike = np.fmax(pairs.correlation, np.where(pairs.copies, beyond, 0.0)) >= SAME
    if number is None or not alike.any():
        return None
    # By rank, so that the order of rows does not decide who leads a group.
    order = np.argsort(problem.worker_rank)
    rank = np.argsort(order)  # of a part of the workers, ranks have gaps
    first = rank.copy()
    for one, other in zip(number[pairs.first[alike]], number[pairs.second[alike]], strict=True):
        low, high = sorted((first[one], first[other]))
        first[first == high] = low
    if (first == first[0]).all():
        return None
    leader = order[first]
    return Pooling(leader, _words(leader, problem))


def _numbers(sample: Answers, problem: Problem) -> Ints | None:
    """Return the numbers of the sampled workers in the problem; None where ids do not tell."""
    if sample.n_workers == problem.n_workers:
        return np.arange(problem.n_workers)
    number_of = {name: number for number, name in enumerate(problem.worker_ids.tolist())}
    if len(number_of) < problem.n_workers:
        return None
    return np.array([number_of[name] for name in sample.worker_ids.tolist()])


def _words(leader: Ints, problem: Problem) -> str:
    """Name the groups."""
    ids = problem.worker_ids
    groups = [np.flatnonzero(leader == one) for one in np.flatnonzero(np.bincount(leader) > 1)]
    named = [
        ", ".join(quoted(str(name)).strip('"') for name in ids.tolist(group))
        for group in groups[:NAMED]
    ]
    if len(groups) > NAMED:
        named.append(f"{counted(len(groups) - NAMED, 'more group')}")
    return f"workers who err together count as one: {'; '.join(named)}"
