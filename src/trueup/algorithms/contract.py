"""The contract of a first step: the methods an algorithm implements, and what each receives.

An algorithm never sees all answers at once. It sees one block of questions at a time (`trueup.algorithms.Block`), the
state of the workers, and sums per worker over all blocks:

    state = start(facts)
    repeat:  x     = truths(block, state)        for every block
             sums += tally(block, state, x)      added up over blocks
             state = update(state, sums)

One implementation therefore serves memory, disk, clusters and batches of panels. The loop itself is in
`trueup.algorithms.driver`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trueup.algorithms.facts import Facts
    from trueup.answers.block import Block
    from trueup.core.arrays import Floats
    from trueup.engines.protocol import Engine
    from trueup.engines.question_sample import QuestionSample

Kind = Literal["linear", "robust"]

# Squares of numbers above this do not underflow.
SQUARABLE = 1e-150


@dataclass(frozen=True, eq=False)
class State:
    """What an algorithm has learned about the workers: named vectors with one number per worker.

    `step` is the number of updates so far; at 0 nothing has been learned yet.
    """

    facts: Facts
    values: Mapping[str, Floats]
    step: int = field(default=0)

    def __post_init__(self) -> None:
        for value in self.values.values():
            value.flags.writeable = False  # blocks cache sums under the identity of their weights

    def __getitem__(self, name: str) -> Floats:
        return self.values[name]

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def replace(self, **values: Floats) -> State:
        """Return a state in which these vectors are replaced or added."""
        return State(self.facts, {**self.values, **values}, self.step)

    def extended(self, n_workers: int) -> dict[str, Floats]:
        """Return the vectors for `n_workers` workers; new workers get the median of the known ones."""
        return {
            name: np.append(value, np.full(n_workers - len(value), np.median(value)))
            for name, value in self.values.items()
        }

    def of(self, block: Block) -> State:
        """Return the part of the state that belongs to the workers of a block."""
        if block.n_workers == self.facts.n_workers:
            return self
        workers = block.worker_slice
        return State(
            self.facts, {name: value[workers] for name, value in self.values.items()}, self.step
        )


@dataclass(frozen=True, eq=False)
class Training:
    """What an algorithm learns the workers from.

    Attributes
    ----------
    engine, facts : Engine, Facts
        The answers, and what is known about them before the first iteration.
    sample, sampled : QuestionSample and Facts, optional
        Questions that suffice for all but the last updates of a large problem, and facts about their answers.
    """

    engine: Engine
    facts: Facts
    sample: QuestionSample | None = None
    sampled: Facts | None = None


class Algorithm:
    """A first step. Subclass it as a frozen dataclass of parameters.

    Only `truths` is required; an algorithm that learns about workers also has `tally` and `update`. With `weights` the
    variances of its truths can be computed; without it use `variance="jackknife"` or `"bootstrap"`.

    Values in blocks and states are relative to the centre of their question. For any algorithm whose truths move with
    the answers that is the same as absolute values. Arrays of a state are read-only: `update` makes new ones.

    Examples
    --------
    A mean in which the weight of a worker falls with its mean absolute distance from the truths:

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Distance(Algorithm):
    ...     name = "distance"
    ...     def tally(self, block, state, x):
    ...         return block.by_worker(np.abs(block.residuals(x)), block.informative)[None]
    ...     def update(self, state, sums):
    ...         facts = state.facts
    ...         mean = (sums[0] + facts.pool_of_worker**0.5) / (facts.n_informative + 1)
    ...         return state.replace(weight=facts.weigh(1 / mean))
    >>> from trueup.algorithms import check_algorithm
    >>> len(check_algorithm(Distance()))
    10
    """

    name: ClassVar[str] = ""
    #: Number of updates that are part of the definition of the algorithm, or None.
    max_updates: ClassVar[int | None] = None
    #: Number of these, at the end, that must see all answers, where `prepare` gives a sample for the others.
    full_updates: ClassVar[int] = 7
    #: The state does not depend on the truths, so they are computed only at the end.
    truth_free: ClassVar[bool] = False
    #: The algorithm cannot run without known worker (or answer) variances.
    needs_variance: ClassVar[bool] = False
    #: Known worker variances change the result.
    uses_variance: ClassVar[bool] = False
    #: An update continues from what was learned before; False where that may end elsewhere than a full run.
    continues: ClassVar[bool] = True
    #: `truths` is overridden, but every answer still counts by its worker's weight (times its precision).
    shares_by_worker: ClassVar[bool] = False
    #: `finish` needs the sums at the final truths.
    finishes: ClassVar[bool] = False
    #: `conclude` computes truths, variances and noise at the end, and the variances are those for the second step.
    concludes: ClassVar[bool] = False

    @property
    def kind(self) -> Kind:
        """`linear`: truths are weighted means of the answers; `robust`: they are not."""
        return "linear"

    def start(self, facts: Facts) -> State:
        """Return the state before the first iteration: equal weights."""
        return State(facts, {"weight": np.ones(facts.n_workers)})

    def prepare(self, engine: Engine, facts: Facts) -> Training:
        """Return what the workers are learned from. The default: the answers as they are."""
        return Training(engine, facts)

    def truths(self, block: Block, state: State) -> Floats:
        """Return the truth of each question, relative to its centre, given the state of its workers."""
        weight, total = block.weigh(state["weight"])
        return total / weight

    def tally(self, block: Block, state: State, x: Floats) -> Floats:
        """Return sums per worker over the questions of a block, as rows of a matrix."""
        raise NotImplementedError(f"{type(self).__name__} does not iterate")

    def update(self, state: State, sums: Floats) -> State:
        """Return the next state from the sums over all questions."""
        raise NotImplementedError(f"{type(self).__name__} does not iterate")

    def iterate(self, block: Block, state: State) -> tuple[Floats, Floats]:
        """Return the truths of a block and the sums per worker: what one iteration computes in one pass."""
        x = self.truths(block, state)
        return x, self.tally(block, state, x)

    def weights(self, block: Block, state: State, x: Floats) -> Floats | None:
        """Return the share of each answer in the truth of its question (they sum to 1 there).

        None if unknown: the default for an algorithm that overrides `truths` alone.
        """
        return block.answer_weights(state["weight"]) if self._by_worker else None

    def own_share(self, block: Block, state: State, x: Floats) -> Floats:
        """Return the sum of each worker's shares `p_ij` over the informative questions of a block."""
        if self._by_worker:
            weight = state["weight"]
            share = block.informative / block.total_weight(weight)
            return weight * block.by_worker(block.precision, share)
        shares = self.weights(block, state, x)
        if shares is None:
            return np.zeros(block.n_workers)
        return block.by_worker(shares, block.informative)

    @property
    def _by_worker(self) -> bool:
        """Whether shares follow from one weight per worker, so that sums of them are matrix products."""
        cls = type(self)
        inherited = cls.truths is Algorithm.truths or cls.shares_by_worker
        return cls.weights is Algorithm.weights and inherited

    def finish(self, state: State, sums: Floats) -> State:
        """Return the final state, given the tally at the final truths (if `finishes`)."""
        return state

    def conclude(self, engine: Engine, state: State) -> State:
        """Let an engine keep the truths and their variances, and return the final state (if `concludes`).

        They are `vectors.OFFSET`, `AGGREGATE` and `MODEL_VARIANCE`. The state then has the variance of each worker as
        "variance", and that of an error which all questions of a panel share as "shift".
        """
        raise NotImplementedError(f"{type(self).__name__} does not conclude")

    def final_truths(self, block: Block, state: State, x: Floats) -> Floats:
        """Return the truths to report, given those of the last iteration."""
        return x

    def noise(self, state: State, ss: Floats, freedom: Floats) -> Floats:
        """Return the variance of each worker around the truths.

        `ss` is the sum of a worker's squared residuals and `freedom` the sum of `1 - p_ij`, both over
        informative questions: with inverse-variance weights `E r_ij^2 = sigma_i^2 (1 - p_ij)`.
        """
        return state.facts.variance(ss, freedom)

    def farthest(self, state: State) -> Floats | None:
        """Return how far from the truth an answer of each worker may be before it hardly counts; None: no limit."""
        return None

    def uncertainty(self, block: Block, state: State, x: Floats, noise: Floats) -> Floats | None:
        """Return the variance of each truth for fixed weights, `sum_i p_ij^2 sigma_i^2`; None if unknown."""
        if self._by_worker:
            weight = state["weight"] / state["weight"].max()  # squares of 1e-200 would underflow
            total = block.total_weight(weight)
            # The weights of one panel may be far below those of another.
            if total.min(initial=1.0) > SQUARABLE:
                variance: Floats = block.total_weight(weight**2 * noise) / total**2
                return variance
        share = self.weights(block, state, x)
        if share is None:
            return None
        np.multiply(share, share, out=share)
        np.multiply(share, noise.take(block.workers), out=share)
        if block.precision is not None:
            np.divide(share, block.precision, out=share)
        return block.by_question(share)

    @property
    def iterates(self) -> bool:
        """Whether the algorithm learns from its own truths."""
        return type(self).update is not Algorithm.update
