"""What the native first step says about the workers: weights of its models, and biases."""

from __future__ import annotations

import re

import numpy as np
import pytest

import trueup
from trueup.pipeline.first_step import VERSIONS


def models(x: object, **options: object) -> str:
    """Return what an estimate says about the models."""
    return str(trueup.estimate(x, "native", **options).diagnosis.models)  # type: ignore[arg-type]


def normal(workers: int, questions: int, seed: int) -> np.ndarray:
    """Return answers of equal normal workers."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(0.0, 3.0, questions)
    return np.asarray(truth + rng.normal(size=(workers, questions)))


def test_all_three_models_are_named_the_heaviest_first() -> None:
    text = models(normal(6, 40, 1))
    assert text.startswith("weights of the three models: ")
    assert all(words in text for words in VERSIONS.values())
    assert text.index("all workers alike") < text.index("unequal workers")
    assert "0% " not in re.sub(r"[1-9]0% ", "", text)


def test_a_typing_error_speaks_for_answers_far_off() -> None:
    x = normal(6, 40, 1)
    x[2, 5] = 400.0
    assert "above 99% unequal workers with some answers far off, below 1%" in models(x)


def test_biases_are_mentioned_where_they_were_removed() -> None:
    x = normal(6, 40, 1)
    assert "biases" not in models(x)
    x += np.array([2.0, -2.0, 0.0, 1.0, -1.0, 0.0])[:, None]
    assert models(x).endswith("; biases of the workers were found and removed")
    assert "biases" not in models(x, bias=False)


@pytest.mark.parametrize("method", ["mean", "student_t"])
def test_other_methods_have_no_models(method: str) -> None:
    assert trueup.estimate(normal(4, 10, 1), method).diagnosis.models == ""
