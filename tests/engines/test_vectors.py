"""Every vector that a run keeps has its name and meaning in `trueup.engines.vectors`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import trueup
from trueup.algorithms.registry import names as method_names
from trueup.engines import vectors
from trueup.engines.memory import MemoryEngine

LISTED = [
    value for name, value in vars(vectors).items() if name.isupper() and isinstance(value, str)
]
NAMES = set(LISTED)
VARIANCES = ("moderated", "paper", "psi_H/n", "plugin", "sandwich", "blue", "jackknife", 0.3)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return the names of all vectors that engines keep, or visits ask for, during the test."""
    seen: set[str] = set()
    sweep, changed, keep = MemoryEngine.sweep, MemoryEngine.changed, MemoryEngine.keep

    def watched_sweep(self: Any, visit: Any, reads: Any = (), **more: Any) -> Any:
        def watched(block: Any, values: Any) -> Any:
            result = visit(block, values)
            seen.update(result.questions or ())
            return result

        seen.update(reads)
        return sweep(self, watched, reads, **more)

    def watched_changed(self: Any, change: Any, reads: Any = (), **more: Any) -> Any:
        seen.update(reads)
        return changed(self, change, reads, **more)

    def watched_keep(self: Any, name: str, values: Any) -> None:
        seen.add(name)
        keep(self, name, values)

    monkeypatch.setattr(MemoryEngine, "sweep", watched_sweep)
    monkeypatch.setattr(MemoryEngine, "changed", watched_changed)
    monkeypatch.setattr(MemoryEngine, "keep", watched_keep)
    return seen


def test_no_two_names_are_the_same() -> None:
    assert len(LISTED) == len(NAMES)


@pytest.mark.filterwarnings("ignore::trueup.TrueupWarning")
def test_all_vectors_of_all_methods_are_listed(kept: set[str]) -> None:
    answers, truth = trueup.simulate(workers=9, questions=60, density=0.6, seed=2)
    matrix = answers.to_matrix()
    worker = int(np.flatnonzero(~np.isnan(matrix[:, 5]))[0])
    matrix[worker, 5] = 1e6
    copied = np.vstack([matrix, matrix[0]])  # correlated workers are pooled
    known = {number: float(truth[number]) for number in range(0, 60, 2)}
    more: dict[str, Any] = {"groups": np.arange(60) % 3, "covariates": np.arange(60.0)[:, None]}
    for method in method_names():
        if method != "blue":
            trueup.estimate(matrix, method, bias=True, gold=known, **more)
    trueup.estimate(matrix, "blue", worker_variance=dict.fromkeys(range(9), 1.0))
    trueup.estimate(copied, "auto")
    for variance in VARIANCES:
        trueup.estimate(matrix, "crh", "normal", variance)
    trueup.compare(answers, ["mean", "median"])
    covariates = {name for name in kept if name.startswith(vectors.COVARIATE)}
    assert covariates == {vectors.covariate(0)}
    assert kept - covariates <= NAMES
    # Samples of very many questions, and the tables of agreement, are all that this run has not seen.
    unseen = {vectors.COVARIATE, vectors.DRAW, vectors.ANSWER_MEAN, vectors.SQUARES_WITHIN}
    assert NAMES - kept == unseen
