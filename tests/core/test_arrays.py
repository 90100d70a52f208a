"""Segment operations, each against a plain loop."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from trueup.core.arrays import (
    LONG,
    SMALL_INDEX,
    compact,
    expand,
    group_order,
    index_type,
    narrow,
    offsets,
    rectangles,
    segment_max,
    segment_median,
    segment_sum,
    sort_in_place,
)

if TYPE_CHECKING:
    from trueup.core.arrays import Floats, Ints

COUNTS = st.lists(st.integers(0, 6), max_size=12)


def ints(values: list[int]) -> Ints:
    return np.array(values, dtype=np.int64)


def numbers(count: int) -> Floats:
    return np.random.default_rng(count).exponential(size=count)


@pytest.mark.parametrize(
    ("largest", "kind"), [(0, np.int32), (SMALL_INDEX, np.int32), (SMALL_INDEX + 1, np.int64)]
)
def test_the_index_type_is_the_narrowest_that_holds_the_largest(largest: int, kind: type) -> None:
    array = ints([0, 3])

    assert index_type(largest) is kind
    assert narrow(array, largest).dtype == kind
    assert narrow(array, largest).tolist() == [0, 3]


@given(COUNTS)
def test_offsets_are_running_totals(counts: list[int]) -> None:
    assert offsets(ints(counts)).tolist() == [sum(counts[:at]) for at in range(len(counts) + 1)]


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 5)), max_size=12))
def test_expand_lists_every_position_of_every_segment(segments: list[tuple[int, int]]) -> None:
    starts, counts = ints([start for start, _ in segments]), ints([n for _, n in segments])

    assert expand(starts, counts).tolist() == [
        start + step for start, count in segments for step in range(count)
    ]


@given(st.lists(st.integers(0, 8), max_size=40), st.integers(9, 12))
def test_group_order_is_the_stable_order(keys: list[int], groups: int) -> None:
    given_keys = ints(keys)

    assert group_order(given_keys, groups).tolist() == sorted(
        range(len(keys)), key=keys.__getitem__
    )
    assert given_keys.tolist() == keys


@given(st.lists(st.integers(0, 30), max_size=40), st.sampled_from([31, 100_000]))
def test_compact_numbers_the_labels_in_use_in_order(labels: list[int], size: int) -> None:
    new, old = compact(ints(labels), size)

    assert old.tolist() == sorted(set(labels))
    assert old[new].tolist() == labels
    assert new.dtype == old.dtype == np.int64


@given(
    st.lists(st.integers(1, 6), max_size=12),
    st.integers(1, 40),
    st.booleans(),
    st.sampled_from([np.int32, np.int64]),
)
def test_rectangles_visit_every_entry_once_and_stay_small(
    counts: list[int], batch: int, square: bool, kind: type
) -> None:
    indptr = offsets(ints(counts))
    seen = {}

    for rows, positions in rectangles(indptr.astype(kind), batch, square=square):
        k = positions.shape[1]
        assert len(rows) == 1 or positions.size * (k if square else 1) <= batch
        for row, where in zip(rows.tolist(), positions.tolist(), strict=True):
            assert row not in seen
            seen[row] = where

    assert seen == {j: list(range(indptr[j], indptr[j + 1])) for j in range(len(counts))}


@given(COUNTS)
def test_sums_and_maxima_of_segments_are_those_of_a_loop(counts: list[int]) -> None:
    indptr = offsets(ints(counts))
    values = numbers(sum(counts))
    segments = [values[a:b].tolist() for a, b in pairwise(indptr)]

    assert segment_sum(values, indptr).tolist() == pytest.approx([sum(part) for part in segments])
    assert segment_max(values, indptr).tolist() == [max(part, default=0.0) for part in segments]


@pytest.mark.parametrize("weight", [1.0, 0.1])
@pytest.mark.parametrize("size", [LONG + 1, LONG + 2])
def test_median_of_a_long_segment_is_found_with_and_without_sorting(
    size: int, weight: float
) -> None:
    rng = np.random.default_rng(size)
    values = rng.normal(size=size).round(2)
    weights = np.where(rng.random(size) < 0.5, weight, 0.0)
    ends = np.array([0, size])
    used = np.sort(values[weights > 0])
    assert segment_median(values, weights, ends)[0] == used[(len(used) - 1) // 2]
    weights[values > 0] *= 3.0  # not equal: sorted
    order = np.argsort(values)
    running = np.cumsum(weights[order])
    expected = values[order][np.argmax(running >= 0.5 * running[-1] * (1 - 1e-12))]
    assert segment_median(values, weights, ends)[0] == expected
    assert segment_median(values, np.zeros(size), ends).tolist() == [0.0]


@pytest.mark.parametrize("length", [0, 1, 7, 8, 40, 41])
def test_numbers_are_sorted_in_parts(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    numbers = np.random.default_rng(length).integers(-9, 9, length)
    expected = sorted(numbers.tolist())
    sort_in_place(numbers, piece=3)
    assert numbers.tolist() == expected
