"""Numbers whose squares are none are refused at the door, by the name of their argument."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import trueup
from trueup.errors import TrueupError

X = np.array([[1.0, 2.0, 4.0], [2.0, 4.0, 5.0], [9.0, 1.0, 3.0]])


@pytest.mark.parametrize("size", [1e-320, 1e-200, 1e-61, 1e61, 1e200])
@pytest.mark.parametrize("argument", ["variance", "worker_variance", "answer_variance"])
def test_variances_that_cannot_be_squared_are_refused(argument: str, size: float) -> None:
    one = np.where(np.eye(3) > 0, size, 1.0)
    value: Any = {"variance": size, "worker_variance": {0: size}, "answer_variance": one}[argument]
    with pytest.raises(TrueupError, match=f"^{argument}: .*from 1e-60 to 1e"):
        trueup.estimate(X, "mean", **{argument: value})


@pytest.mark.parametrize("size", [1e-320, 1e-161, 1e200, 1e299])
def test_a_target_that_cannot_be_squared_is_refused(size: float) -> None:
    found = trueup.diagnose_all(X, panels=0, target_se=size)
    assert found.answers_needed is None
    assert f"target_se: found {size}, must be a number from 1e-60 to 1e+60" in str(found)


@pytest.mark.parametrize("method", ["auto", "native", "gtm", "iptd", "blue", "median", "crh"])
def test_variances_at_the_ends_of_the_range_give_numbers(method: str) -> None:
    one = np.array([[1e-60, 1e60, 1.0], [1e60, 1e-60, 1e30], [1.0, 1e-30, 1e60]])
    est = trueup.estimate(X, method, answer_variance=one)
    assert np.isfinite(est.estimate).all()


def test_one_tiny_answer_among_plain_ones_is_no_distance() -> None:
    est = trueup.estimate([[3.0], [0.0], [1e-320]])
    assert est.findings.workers is not None
