"""Labels made sharper by judges: agreement with ppi_py, intervals, and judges that are no help."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.special import stdtrit

from trueup.ranking.labels import labelled_mean

VECTORS = json.loads(Path(__file__).with_name("ppi_vectors.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", VECTORS["cases"])
def test_mean_and_power_are_those_of_ppi_py(case: dict[str, list[float]]) -> None:
    labels = np.append(case["labels"], np.full(len(case["unlabelled"]), np.nan))
    found = labelled_mean(labels, np.append(case["scores"], case["unlabelled"]))
    assert found is not None
    assert found.power == pytest.approx(case["power"], abs=1e-8)
    assert found.value == pytest.approx(case["mean"], abs=1e-8)


def test_variance_by_a_plain_loop() -> None:
    rng = np.random.default_rng(3)
    h, other = rng.normal(5, 1, 8), rng.normal(5, 1, 30)
    t = h + rng.normal(0, 0.4, 8)
    found = labelled_mean(np.append(h, np.full(30, np.nan)), np.append(t, other))
    assert found is not None
    left = [a - found.power * b for a, b in zip(h, t, strict=True)]
    spread = sum((a - sum(left) / 8) ** 2 for a in left) / 7 / 8
    spread += found.power**2 * sum((a - sum(other) / 30) ** 2 for a in other) / 29 / 30
    assert found.variance == pytest.approx(spread)
    low, high = found.interval(0.95)
    assert high - low == pytest.approx(2 * stdtrit(6, 0.975) * spread**0.5)


def test_edges() -> None:
    nan = np.nan
    assert labelled_mean(np.array([1.0, 2.0, nan]), np.ones(3)) is None
    alone = labelled_mean(np.array([1.0, 2.0, 4.0]), np.array([1.0, 2.0, 3.0]))
    assert alone is not None
    assert alone.power == 0.0
    assert alone.value == pytest.approx(7 / 3)
    flat = labelled_mean(np.array([1.0, 2.0, 4.0, nan, nan]), np.ones(5))
    assert flat is not None
    assert flat.power == 0.0
    same = labelled_mean(np.ones(4), np.ones(4))
    assert same is not None
    assert (same.p_value(margin=1.0), same.p_value(), same.p_value(side=-1)) == (1.0, 0.0, 1.0)


@pytest.mark.parametrize("quality", [0.0, 0.5, 0.9])
def test_intervals_cover_and_are_no_wider_than_those_of_the_labels_alone(quality: float) -> None:
    rng = np.random.default_rng(0)
    labels, items, draws = 10, 100, 2000
    inside = width = alone = 0.0
    for _ in range(draws):
        truth = rng.normal(size=items)
        score = quality * truth + np.sqrt(1 - quality**2) * rng.normal(size=items)
        found = labelled_mean(np.where(np.arange(items) < labels, truth, np.nan), score)
        assert found is not None
        low, high = found.interval(0.95)
        inside += low <= 0 <= high
        width += high - low
        alone += 2 * stdtrit(labels - 1, 0.975) * found.alone**0.5
    assert 0.935 < inside / draws < 0.97
    assert width < 1.05 * alone
