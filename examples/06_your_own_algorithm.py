"""Your own first step: workers who are usually close to the truth count more.

You have an idea how answers should be combined. Write it as a class with a few short methods, have it checked, and use
it by name like any other. Sparse data, threads, the second step and the intervals come with it.

The idea here: the closeness of an answer is 1 where it hits the truth, 1/2 at a typical distance and near 0 far away;
the weight of a worker grows with the mean closeness of its answers. One wild answer cannot ruin a good worker.
"""

from dataclasses import dataclass

import numpy as np

import trueup
from trueup.algorithms import (
    Algorithm,
    Block,
    Facts,
    Floats,
    State,
    check_algorithm,
    register,
)


@register  # from now on method="closeness" works
@dataclass(frozen=True)
class Closeness(Algorithm):
    """Weights that grow with the mean closeness of a worker's answers.

    Parameters
    ----------
    power : float
        How strongly good workers are preferred.
    """

    power: float = 2.0

    name = "closeness"

    # You do not write the loop. trueup asks you how to begin (`start`) and takes weighted means of the answers. Then it
    # asks you for sums per worker (`tally`) and for the weights that follow from them (`update`), until the truths stop
    # moving. `tally` and `update` are separate because answers come in blocks of questions.

    def start(self, facts: Facts) -> State:
        """Start with equal weights, and keep the typical squared distance between answers to a question."""
        typical = np.where(facts.pool_of_worker > 0, facts.pool_of_worker, 1.0)
        return State(facts, {"weight": np.ones(facts.n_workers), "typical": typical})

    def tally(self, block: Block, state: State, x: Floats) -> Floats:
        """Return the sum of the closeness of each worker's answers, given the current truths x."""
        distance = block.residuals(x) ** 2 / state["typical"][block.workers]
        return block.by_worker(1 / (1 + distance), block.informative)[None]

    def update(self, state: State, sums: Floats) -> State:
        """Return the new weights. `weigh` takes care of workers who share no question with others."""
        facts = state.facts
        mean = (sums[0] + 1) / (facts.n_informative + 2)  # few answers prove little
        return state.replace(weight=facts.weigh(mean**self.power))


# --- Is it sound? -----------------------------------------------------------------------------------------------------
# The checks run it on awkward answers (one worker, no disagreement, an absurd number, other units, another order) and
# say what is wrong, if anything is.
passed = check_algorithm(Closeness())
print(f"check_algorithm: {len(passed)} checks passed ({', '.join(passed)})")

# --- Is it any good? --------------------------------------------------------------------------------------------------
# One set of answers shows mostly luck, so we average over ten, simulated with good, bad and wild workers.
methods: tuple[str | Algorithm, ...] = ("mean", "closeness", Closeness(power=4), "auto")
n_sets = 10
print(f"\nMean squared error over {n_sets} sets of answers, first step alone and with the second:")
errors = np.zeros((len(methods), 2))
for seed in range(n_sets):
    answers, truth = trueup.simulate(
        workers=20, questions=60, density=0.3, variance="inverse_gamma", noise="student", seed=seed
    )
    for row, method in enumerate(methods):
        for column, shrink in enumerate(("none", "adaptive")):
            est = trueup.estimate(answers, method, shrink)
            errors[row, column] += np.mean((est.estimate - truth) ** 2) / n_sets
for method, (first, both) in zip(methods, errors, strict=True):
    print(f"  {method!s:22s} {first:.4f}  {both:.4f}")
