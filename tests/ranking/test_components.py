"""Variance components and favours of judges by the closed forms of complete tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from trueup.ranking.components import Components, Crossed
from trueup.ranking.judges import favours
from trueup.ranking.scores import Scores


def test_a_complete_table_gives_the_components_of_the_analysis_of_variance() -> None:
    y = np.random.default_rng(2).normal(size=(7, 4)) + np.arange(4)
    rows, columns = y.shape
    left = y - y.mean(axis=1, keepdims=True) - y.mean(axis=0) + y.mean()
    rest = (left**2).sum() / ((rows - 1) * (columns - 1))
    of_rows = columns * y.mean(axis=1).var(ddof=1)
    of_columns = rows * y.mean(axis=0).var(ddof=1)
    row, column = np.indices(y.shape).reshape(2, -1)
    found = Crossed.of(row, column).components(y.ravel())
    assert found == pytest.approx(((of_rows - rest) / columns, (of_columns - rest) / rows, rest))


def test_what_other_designs_bring() -> None:
    parts = Components(9.0, 2.0, 9.0, 3.0, 9.0, 4.0, 5.0)
    expected = 2 * (2.0 / 10 + 3.0 / 4 + 4.0 / 40 + 5.0 / (40 * 3))
    assert parts.variance(10, 4, 3) == pytest.approx(expected)


def test_favours_of_a_complete_panel() -> None:
    rng = np.random.default_rng(4)
    y = rng.normal(size=(3, 12, 4)) + rng.normal(size=(3, 1, 4))
    system, item, judge = np.indices(y.shape).reshape(3, -1)
    equal: dict[str, Any] = {"group": np.arange(4), "weight": np.ones(4), "bias": np.zeros(4)}
    found = favours(Scores.of(system, item, judge, y.ravel(), **equal), 0.95)
    above = y - (y.sum(axis=2, keepdims=True) - y) / 3
    own = above - above.mean(axis=0)
    mean, error = own.mean(axis=1), own.std(axis=1, ddof=1) / np.sqrt(12)
    spread = (mean**2 - error**2).mean()
    share = spread / (spread + error**2)
    np.testing.assert_allclose(found.effect.T, mean * share)
    np.testing.assert_allclose(found.std_error.T, np.sqrt(share) * error)
