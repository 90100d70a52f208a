"""Small panels as matrices of workers by questions, and what holds for every estimate from one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    import trueup
    from trueup.core.arrays import Floats

NAN = np.nan


def sparse(seed: int, n: int = 8, m: int = 14, *, share: float = 0.7, bias: float = 0.5) -> Floats:
    """Unlike workers with biases; every question has an answer, some a single one."""
    rng = np.random.default_rng(seed)
    noise = np.exp(rng.normal(0, 0.5, n))
    x = rng.normal(0, 2, m) + rng.normal(0, bias, (n, 1)) + noise[:, None] * rng.normal(size=(n, m))
    rank = rng.random((n, m)).argsort(axis=0).argsort(axis=0)
    x[(rng.random((n, m)) > share) & (rank > 0)] = NAN
    return x[~np.isnan(x).all(axis=1)]


def clustered(seed: int, n: int = 6, m: int = 45) -> tuple[Floats, Floats]:
    """Answers about truths in three clusters, and the truths."""
    rng = np.random.default_rng(seed)
    truth = rng.choice([0.0, 10.0, 30.0], m) + rng.normal(0, 0.3, m)
    return truth + rng.normal(size=(n, m)), truth


def grouped(seed: int, n: int = 5) -> tuple[Floats, list[str]]:
    """Answers about five groups of questions, and the groups."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(rng.normal(0, 5, 5), 10) + rng.normal(0, 0.3, 50)
    return truth + rng.normal(size=(n, 50)), np.repeat(list("abcde"), 10).tolist()


def table(x: Floats) -> pd.DataFrame:
    """The answers as a long frame."""
    worker, question = np.nonzero(~np.isnan(x))
    return pd.DataFrame(
        {
            "question": [f"q{j:03d}" for j in question],
            "worker": [f"w{i:03d}" for i in worker],
            "answer": x[worker, question],
        }
    )


def columns_of(x: Floats) -> dict[str, Any]:
    """The same as a dict of lists."""
    return {str(name): column.tolist() for name, column in table(x).items()}


def sound(est: trueup.Estimate) -> None:
    """Finite numbers, or unknown intervals with a reason."""
    assert np.isfinite(est.estimate).all()
    assert np.isfinite(est.base).all()
    assert (est.shrinkage >= 0).all()
    assert (est.shrinkage <= 1).all()
    unknown = np.isnan(est.lower)
    np.testing.assert_array_equal(unknown, np.isnan(est.upper))
    np.testing.assert_array_equal(unknown, np.isnan(est.std_error))
    if unknown.any():
        assert any("unknown" in text for text in est.diagnosis.assumptions)
    assert (est.lower <= est.estimate)[~unknown].all()
    assert (est.estimate <= est.upper)[~unknown].all()
    unknown = np.isnan(est.truth_lower)
    np.testing.assert_array_equal(unknown, np.isnan(est.truth_upper))
    if unknown.any():
        assert "truth_lower and truth_upper are unknown" in est.diagnosis.target
    assert (est.truth_lower <= est.estimate)[~unknown].all()
    assert (est.estimate <= est.truth_upper)[~unknown].all()


def agree(found: trueup.Estimate, first: trueup.Estimate, a: float = 1.0, b: float = 0.0) -> None:
    """To 1e-9 of the spread of the answers."""
    unit = float(np.ptp(first.base)) + float(np.nanmax(first.std_error))
    for name, scale, shift in (
        ("estimate", a, b),
        ("lower", a, b),
        ("upper", a, b),
        ("truth_lower", a, b),
        ("truth_upper", a, b),
        ("base", a, b),
        ("std_error", a, 0.0),
        ("shrinkage", 1.0, 0.0),
    ):
        before, after = getattr(first, name), getattr(found, name)
        size = 1.0 if name == "shrinkage" else unit
        np.testing.assert_allclose((after - shift) / scale, before, rtol=1e-9, atol=1e-9 * size)


def judges(
    *groups: int, workers: int = 6, questions: int = 100, rho: float = 0.9, seed: int = 1
) -> tuple[Floats, Floats]:
    """Return truths and answers, workers x questions; the first workers err together in groups."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(0.0, 1.5, questions)
    error = rng.normal(size=(workers, questions))
    first = 0
    for size in groups:
        here = slice(first, first + size)
        error[here] = np.sqrt(rho) * rng.normal(size=questions) + np.sqrt(1 - rho) * error[here]
        first += size
    noise = np.array([0.9, 1.1, 1.0, 1.4, 1.8, 0.8] + [1.0] * workers)[:workers]
    return truth, truth + noise[:, None] * error


def long_table(x: Floats) -> dict[str, Any]:
    worker, question = np.nonzero(~np.isnan(x))
    return {
        "question": [f"q{each:03d}" for each in question],
        "worker": [f"w{each}" for each in worker],
        "answer": x[worker, question],
    }
