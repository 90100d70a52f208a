"""check_algorithm: the tests that every algorithm must pass, built in or your own.

Each check is a function that raises `CheckFailed` with what was expected. The data are small and generated here: for
most algorithms all checks together take well below a second.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from trueup.algorithms.contract import Algorithm
from trueup.algorithms.driver import run
from trueup.answers.answers import Answers
from trueup.engines.memory import MemoryEngine
from trueup.errors import TrueupError, quoted

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.algorithms.driver import Aggregate
    from trueup.core.arrays import Floats

SAME = 1e-9  # relative to the spread of the answers
PANELS_SAME = 1e-12


class CheckFailed(AssertionError):  # noqa: N818  the name says what happened
    """An algorithm violates the contract."""


def check_algorithm(algorithm: Algorithm, *, max_iter: int = 5) -> list[str]:
    """Run all checks on an algorithm; return the names of the checks it passed.

    Parameters
    ----------
    algorithm : Algorithm
    max_iter : int
        Number of iterations of each run. Keep it small: near a singularity an algorithm magnifies rounding errors.

    Raises
    ------
    CheckFailed
        If a check fails, with what was expected and what was found.

    Examples
    --------
    >>> from trueup.algorithms import CRH
    >>> len(check_algorithm(CRH())) > 8
    True
    """
    if not isinstance(algorithm, Algorithm):
        raise TrueupError(
            f"algorithm: found {quoted(algorithm)}, expected an Algorithm such as CRH()."
        )
    battery = _AlgorithmBattery(algorithm, max_iter)
    passed = []
    for check in CHECKS:
        name = check.__name__.strip("_")
        try:
            check(battery)
        except TrueupError as error:
            raise CheckFailed(f"{algorithm}: check {name}: {error}") from error
        passed.append(name)
    return passed


class _AlgorithmBattery:
    """An algorithm, how to run it, and the answers to test it on."""

    def __init__(self, algorithm: Algorithm, max_iter: int) -> None:
        self.algorithm = algorithm
        self.max_iter = max_iter
        rng = np.random.default_rng(2)
        truth = rng.normal(10.0, 3.0, 40)
        sd = rng.uniform(0.3, 2.0, 9)
        self.matrix = truth + sd[:, None] * rng.standard_normal((9, 40))
        self.matrix[rng.random(self.matrix.shape) < 0.5] = np.nan
        self.matrix[:, 7] = np.nan
        self.matrix[3, 7] = 4.0  # one answer
        self.matrix[:3, 9] = 6.0  # all agree
        self.matrix[3:, 9] = np.nan
        self.variance = sd**2

    def answers(self, matrix: Floats, variance: Floats | None = None) -> Answers:
        if variance is None:
            variance = np.resize(self.variance, matrix.shape[-2])
        by_worker = dict(enumerate(variance.tolist())) if self.algorithm.needs_variance else None
        return Answers.from_matrix(matrix, worker_variance=by_worker)

    def run(self, answers: Answers | MemoryEngine) -> Aggregate:
        return run(self.algorithm, answers, max_iter=self.max_iter, tol=0.0)

    def expect(self, holds: bool, what: str) -> None:
        if not holds:
            raise CheckFailed(f"{self.algorithm}: {what}")

    def same(self, found: Floats, expected: Floats, what: str, tolerance: float = SAME) -> None:
        scale = float(np.abs(expected - np.median(expected)).max())
        if scale <= SAME * float(np.abs(expected).max()):
            scale = max(float(np.abs(expected).max()), 1e-300)
        gap = float(np.abs(found - expected).max()) / scale
        self.expect(gap <= tolerance, f"{what}: differs by {gap:.2g} of the spread")


def _finite(battery: _AlgorithmBattery) -> None:
    """Check that ordinary, sparse and degenerate answers give finite truths, weights and variances."""
    matrix = battery.matrix
    shapes: dict[str, Floats] = {
        "sparse answers": matrix,
        "complete answers": np.where(np.isnan(matrix), 3.0, matrix),
        "one worker": matrix[3:4],
        "one question": matrix[:, :1],
        "one answer": np.array([[2.5]]),
        "two workers": np.array([[1.0, 2.0, 3.0], [1.5, 2.0, 5.0]]),
        "equal answers": np.full((3, 4), 7.1),
        "workers who share no question": np.array([[1.0, 2.0, np.nan], [np.nan, np.nan, 5.0]]),
        "a dissenter who is sometimes alone": np.array(
            [[0, 1, 0, 1, 42], [1, 2, 1, 2, np.nan], [1, 2, 1, 2, np.nan]]
        ),
        "an absurd answer": np.array([[1.0, 2.0, 3.0], [1.5, 2.0, 1e15], [1.2, 2.5, 3.5]]),
    }
    for name, shape in shapes.items():
        result = run(battery.algorithm, battery.answers(shape), max_iter=max(14, battery.max_iter))
        for attribute in ("x", "weight", "noise"):
            values = getattr(result, attribute)
            battery.expect(bool(np.isfinite(values).all()), f"{attribute} of {name} is not finite")
        battery.expect(bool((result.noise >= 0).all()), f"a variance of {name} is negative")
        battery.expect(bool((result.weight >= 0).all()), f"a weight of {name} is negative")
        known = result.variance[~np.isnan(result.variance)]
        battery.expect(
            bool((known >= 0).all() and np.isfinite(known).all()), f"variance of a truth, {name}"
        )


def _unanimous(battery: _AlgorithmBattery) -> None:
    """Check that unanimous answers are the truth."""
    agreed = np.array([1.1, -2.7, 3.3, 0.0])
    result = battery.run(battery.answers(np.tile(agreed, (4, 1))))
    battery.expect(bool((result.x == agreed).all()), "unanimous answers are not the truth")


def _weights_sum_to_one(battery: _AlgorithmBattery) -> None:
    """Check that the worker weights of each panel sum to 1."""
    answers = battery.answers(np.stack([battery.matrix, battery.matrix[:, ::-1]]))
    weight = battery.run(answers).weight
    total = np.bincount(answers.worker_panel, weight).astype(np.float64)
    battery.same(total, np.ones(2), "sum of the worker weights of a panel")


def _shares(battery: _AlgorithmBattery) -> None:
    """Check that the shares of the answers to each question sum to 1."""
    answers = battery.answers(battery.matrix)
    result = battery.run(answers)
    for block in answers.blocks():
        local = result.state.of(block)
        x = battery.algorithm.truths(block, local)
        share = battery.algorithm.weights(block, local, x)
        if share is None:
            return
        battery.same(block.by_question(share), np.ones(block.n_questions), "sum of shares")


def _affine(battery: _AlgorithmBattery) -> None:
    """Check that shifting and scaling the answers shifts and scales the truths."""
    base = battery.run(battery.answers(battery.matrix))
    for factor, shift in ((1.0, 1e3), (1e-6, 0.0), (1e6, -5e6), (-2.0, 1.0)):
        variance = battery.variance * factor**2
        moved = battery.run(battery.answers(factor * battery.matrix + shift, variance))
        battery.same(
            moved.x, factor * base.x + shift, f"truths of {factor:g} y + {shift:g}", tolerance=1e-7
        )


def _order(battery: _AlgorithmBattery) -> None:
    """Check that the order of workers and questions changes only the order of the results."""
    base = battery.run(battery.answers(battery.matrix))
    rng = np.random.default_rng(3)
    workers, questions = rng.permutation(9), rng.permutation(40)
    shuffled = battery.matrix[workers][:, questions]
    moved = battery.run(battery.answers(shuffled, battery.variance[workers]))
    battery.same(moved.x, base.x[questions], "truths after reordering")
    battery.same(moved.weight, base.weight[workers], "weights after reordering")


def _blocks(battery: _AlgorithmBattery) -> None:
    """Check that the size of blocks and the number of threads do not matter."""
    answers = battery.answers(battery.matrix)
    base = battery.run(answers)
    for size in (1, 30):
        for threads in (1, 3):
            engine = MemoryEngine(answers, block_answers=size, threads=threads)
            result = battery.run(engine)
            battery.same(result.x, base.x, f"truths with blocks of {size} answers")
            battery.same(result.noise, base.noise, f"variances with blocks of {size} answers")


def _panels(battery: _AlgorithmBattery) -> None:
    """Check that a batch of panels gives the same as running its panels one by one."""
    other = battery.matrix * 100.0 + 3.0
    other[:, :5] = 1.0
    batch = battery.answers(np.stack([battery.matrix, other, np.full(other.shape, 2.0)]))
    for tolerance in (0.0, 1e-3):
        together = run(battery.algorithm, batch, max_iter=battery.max_iter, tol=tolerance)
        for number in range(batch.n_panels):
            alone = run(
                battery.algorithm, batch.panel(number), max_iter=battery.max_iter, tol=tolerance
            )
            questions = batch.question_panel == number
            workers = batch.worker_panel == number
            battery.same(together.x[questions], alone.x, "truths of a panel", PANELS_SAME)
            battery.same(together.weight[workers], alone.weight, "weights of a panel", PANELS_SAME)
            battery.expect(
                together.iterations[number] == alone.iterations[0], "iterations of a panel"
            )


def _lone_answer(battery: _AlgorithmBattery) -> None:
    """Check that a question with one answer changes no other truth."""
    base = battery.run(battery.answers(battery.matrix))
    lone = np.full((9, 1), np.nan)
    lone[2] = 1e3
    more = battery.run(battery.answers(np.hstack([battery.matrix, lone])))
    battery.same(more.x[:-1], base.x, "truths after adding a question with one answer")
    battery.same(more.weight, base.weight, "weights after adding a question with one answer")


def _precision(battery: _AlgorithmBattery) -> None:
    """Check that equal answer variances change nothing, and that unequal ones give finite truths."""
    if battery.algorithm.needs_variance:
        return
    answers = battery.answers(battery.matrix)
    equal = replace(answers, precision=np.ones(answers.n_answers), answer_variance=0.3)
    battery.same(battery.run(equal).x, battery.run(answers).x, "truths with equal answer variances")
    unequal = np.random.default_rng(4).uniform(0.2, 2.0, answers.n_answers)
    result = battery.run(replace(answers, precision=unequal, answer_variance=0.3))
    battery.expect(bool(np.isfinite(result.x).all()), "truths with answer variances")


CHECKS: tuple[Callable[[_AlgorithmBattery], None], ...] = (
    _finite,
    _unanimous,
    _weights_sum_to_one,
    _shares,
    _affine,
    _order,
    _blocks,
    _panels,
    _lone_answer,
    _precision,
)
