"""The contract of a first step: how an algorithm says what it does, and what it is told.

An algorithm never sees all answers. It sees a block of questions at a time (`trueup.answers.block.Block`), the state
of the workers, and sums per worker over all blocks:

    state = start(facts)
    repeat:  x     = truths(block, state)        for every block
             sums += tally(block, state, x)      added up over blocks
             state = update(state, sums)

so that one implementation serves memory, disk, clusters and batches of panels. The loop itself is in
`trueup.algorithms.driver`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from trueup.core.arrays import offsets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trueup.answers.block import Block
    from trueup.core.arrays import Floats, Ints
    from trueup.engines.protocol import Engine

Kind = Literal["linear", "robust"]

# No worker's variance falls below this share of the pooled one.
VARIANCE_FLOOR = 1e-6
# Numbers above this have squares.
SQUARABLE = 1e-150


@dataclass(frozen=True, eq=False)
class Facts:
    """What is known before the first iteration.

    Attributes
    ----------
    worker_panel : array
        Panel of each worker.
    panel_questions : array
        Where the questions of each panel begin.
    most_answers : array
        Answers of the question of each panel that has most.
    n_answers, n_informative : arrays
        Answers of each worker; those to questions that somebody else answered as well.
    precision, precision_squared : arrays
        Sum over the informative answers of each worker of their relative precision, and of its square. Both equal
        `n_informative` where answer variances are not known.
    pool : array
        Pooled within-question variance of each panel,
        `sum_j sum_i (x_ij - mean_j)^2 / sum_j (k_j - 1)`: the natural scale. 0 where all agree.
    overlap : array
        `sum_j (k_j - 1)` of each panel; 0 where no question has two answers.
    worker_variance : array or None
        Variance of each worker where the caller knows it, else NaN.
    answer_variance : float
        Variance of an answer of precision 1, where answer variances are known, else NaN.
    bias : array or None
        Bias of each worker that was taken off its answers, see `trueup.algorithms.screening`.
    bias_variance : array or None
        Variance of the biases of each panel, 0 where there are none.
    """

    worker_panel: Ints
    panel_questions: Ints
    n_panels: int
    most_answers: Floats
    n_answers: Floats
    n_informative: Floats
    precision: Floats
    precision_squared: Floats
    pool: Floats
    overlap: Floats
    worker_variance: Floats | None = None
    answer_variance: float = np.nan
    bias: Floats | None = None
    bias_variance: Floats | None = None

    @property
    def n_workers(self) -> int:
        """Number of workers, over all panels."""
        return len(self.worker_panel)

    @cached_property
    def informative(self) -> Floats:
        """1 for workers who share a question with somebody, else 0."""
        return (self.n_informative > 0).astype(np.float64)

    @cached_property
    def panel_workers(self) -> Ints:
        """Where the workers of each panel begin."""
        return offsets(np.bincount(self.worker_panel, minlength=self.n_panels))

    @cached_property
    def pool_of_worker(self) -> Floats:
        """Pooled variance of the panel of each worker."""
        return self.spread(self.pool)

    def panel_sum(self, per_worker: Floats) -> Floats:
        """Sum over the workers of each panel."""
        total = np.bincount(self.worker_panel, weights=per_worker, minlength=self.n_panels)
        return total.astype(np.float64, copy=False)

    def panel_max(self, per_worker: Floats) -> Floats:
        """Largest value among the workers of each panel (values are not negative)."""
        result = np.zeros(self.n_panels)
        np.maximum.at(result, self.worker_panel, per_worker)
        return result

    def spread(self, per_panel: Floats) -> Floats:
        """Number of its panel for each worker."""
        return per_panel[self.worker_panel]

    def mean_of_informative(self, per_worker: Floats) -> Floats:
        """Mean over the informative workers of each panel, 1 where there are none."""
        count = self.panel_sum(self.informative)
        total = self.panel_sum(per_worker * self.informative)
        return np.divide(total, count, out=np.ones(self.n_panels), where=count > 0)

    def weigh(self, weight: Floats) -> Floats:
        """Finish a vector of weights: uninformative workers get the mean weight of the others.

        Their weight cannot change any truth, since they always answer alone.
        """
        return np.where(self.informative > 0, weight, self.spread(self.mean_of_informative(weight)))

    def variance(self, ss: Floats, divisor: Floats) -> Floats:
        """Return `ss / divisor`, at least the floor; the pooled variance for uninformative workers.

        Where all agree the variance is 0: whatever `ss` says then is rounding.
        """
        pool = self.pool_of_worker
        learned = (self.informative > 0) & (divisor > 0) & (pool > 0)
        variance = np.divide(ss, divisor, out=pool.copy(), where=learned)
        return np.maximum(variance, VARIANCE_FLOOR * pool)


@dataclass(frozen=True, eq=False)
class State:
    """What an algorithm believes of the workers: named vectors with one number per worker.

    `step` counts the updates that led here; at 0 nothing has been learned yet.
    """

    facts: Facts
    values: Mapping[str, Floats]
    step: int = field(default=0)

    def __post_init__(self) -> None:
        for value in self.values.values():
            value.flags.writeable = (
                False  # sums over a block are remembered by the weights they are of
            )

    def __getitem__(self, name: str) -> Floats:
        return self.values[name]

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def now(self, **values: Floats) -> State:
        """Return a state with some vectors replaced."""
        return State(self.facts, {**self.values, **values}, self.step)

    def joined(self, n_workers: int) -> dict[str, Floats]:
        """Return the vectors for so many workers: those who join are like the median of those known."""
        return {
            name: np.append(value, np.full(n_workers - len(value), np.median(value)))
            for name, value in self.values.items()
        }

    def of(self, block: Block) -> State:
        """Return the part that concerns the workers of a block."""
        if block.n_workers == self.facts.n_workers:
            return self
        here = block.worker_slice
        return State(
            self.facts, {name: value[here] for name, value in self.values.items()}, self.step
        )


class Algorithm:
    """A first step. Subclass it as a frozen dataclass of parameters.

    Only `truths` is asked for; an algorithm that learns about workers has `tally` and `update` as well. `weights`
    opens the way to variances of its truths; without it ask for `variance="jackknife"` or `"bootstrap"`.

    Blocks and states speak of values relative to the centre of their question, which is as good as absolute for any
    algorithm that moves with its answers. Arrays of a state are read-only: `update` makes new ones.

    Examples
    --------
    A mean that trusts a worker less the larger its mean absolute distance from the truths:

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Distance(Algorithm):
    ...     name = "distance"
    ...     def tally(self, block, state, x):
    ...         return block.by_worker(np.abs(block.residuals(x)), block.informative)[None]
    ...     def update(self, state, sums):
    ...         facts = state.facts
    ...         mean = (sums[0] + facts.pool_of_worker**0.5) / (facts.n_informative + 1)
    ...         return state.now(weight=facts.weigh(1 / mean))
    >>> from trueup.algorithms import check_algorithm
    >>> len(check_algorithm(Distance()))
    10
    """

    name: ClassVar[str] = ""
    #: Updates after which the algorithm ends by definition, or None.
    max_updates: ClassVar[int | None] = None
    #: The state does not depend on the truths, so that they are needed only at the end.
    truth_free: ClassVar[bool] = False
    #: Nothing can be done without known worker (or answer) variances.
    needs_variance: ClassVar[bool] = False
    #: Known worker variances make a difference.
    uses_variance: ClassVar[bool] = False
    #: Truths are overridden, but answers still count by one weight per worker (times precision).
    shares_by_worker: ClassVar[bool] = False
    #: Whether `finish` wants the sums at the final truths.
    finishes: ClassVar[bool] = False

    @property
    def kind(self) -> Kind:
        """`linear`: truths are weighted means of the answers; `robust`: they are not."""
        return "linear"

    def start(self, facts: Facts) -> State:
        """Return the state before the first iteration: all workers alike."""
        return State(facts, {"weight": np.ones(facts.n_workers)})

    def prepare(self, engine: Engine, facts: Facts) -> tuple[Engine, Facts]:
        """Return what to learn the workers from, and what is known of it: as a rule the answers as they are."""
        return engine, facts

    def truths(self, block: Block, state: State) -> Floats:
        """Return the truth of each question, relative to its centre, from the state of its workers."""
        weight, total = block.weigh(state["weight"])
        return total / weight

    def tally(self, block: Block, state: State, x: Floats) -> Floats:
        """Return sums per worker over the questions of a block, as rows of a matrix."""
        raise NotImplementedError(f"{type(self).__name__} does not iterate")

    def update(self, state: State, sums: Floats) -> State:
        """Return the next state from the sums over all questions."""
        raise NotImplementedError(f"{type(self).__name__} does not iterate")

    def weights(self, block: Block, state: State, x: Floats) -> Floats | None:
        """Return the share of each answer in the truth of its question (they sum to 1 there).

        None if unknown, as it is for an algorithm that has its own `truths` and does not say more.
        """
        return block.answer_weights(state["weight"]) if self._by_worker else None

    def own_share(self, block: Block, state: State, x: Floats) -> Floats:
        """Return for each worker the sum of its shares `p_ij` over the informative questions of a block."""
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
        """Whether shares follow from one weight per worker: then sums of them are plain products."""
        mine = type(self)
        inherited = mine.truths is Algorithm.truths or mine.shares_by_worker
        return mine.weights is Algorithm.weights and inherited

    def finish(self, state: State, sums: Floats) -> State:
        """Return the final state, given the tally at the final truths (if `finishes`)."""
        return state

    def final_truths(self, block: Block, state: State, x: Floats) -> Floats:
        """Return the truths to report."""
        return x

    def noise(self, state: State, ss: Floats, freedom: Floats) -> Floats:
        """Return the variance of each worker around the truths.

        `ss` is the sum of squared residuals of a worker and `freedom` the sum of `1 - p_ij`, both over
        informative questions: with inverse-variance weights `E r_ij^2 = sigma_i^2 (1 - p_ij)`.
        """
        return state.facts.variance(ss, freedom)

    def uncertainty(self, block: Block, state: State, x: Floats, noise: Floats) -> Floats | None:
        """Return the variance of each truth: `sum_i p_ij^2 sigma_i^2`, weights taken as fixed."""
        if self._by_worker:
            weight = state["weight"] / state["weight"].max()  # squares of 1e-200 would be none
            total = block.total_weight(weight)
            if (
                total.min(initial=1.0) > SQUARABLE
            ):  # one panel may have weights far below those of another
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
