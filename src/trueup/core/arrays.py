"""Array types, and the few segment operations that numpy and scipy do not name.

A *segment* is a run of consecutive entries: the answers of one question, the workers of one panel.
Segments are described as in a compressed sparse row matrix, by `indptr` with one entry more than
there are segments.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Floats: TypeAlias = NDArray[np.float64]
"""An array of double precision numbers."""
Ints: TypeAlias = NDArray[np.int64]
Indices: TypeAlias = NDArray[np.int32 | np.int64]
Bools: TypeAlias = NDArray[np.bool_]

# Number of entries processed at a time by an operation on single entries.
PIECE = 1 << 18
# Number of entries processed at a time by an operation on rectangles of entries.
BATCH = 1 << 20
# Entries of a segment from which on sorting takes longer than looking whether it can be avoided.
LONG = 1 << 12
SHORT = np.iinfo(np.uint16).max
SMALL_INDEX = np.iinfo(np.int32).max


def index_type(largest: int) -> type[np.int32] | type[np.int64]:
    """Return the narrowest integer type that can hold `largest`; int32 needs half the memory."""
    return np.int32 if largest <= SMALL_INDEX else np.int64


def narrow(array: NDArray[np.integer], largest: int) -> Indices:
    """Return the array in the narrowest integer type that can hold `largest`."""
    if index_type(largest) is np.int32:
        return array.astype(np.int32, copy=False)
    return array.astype(np.int64, copy=False)


def in_pieces(do: Callable[[slice], object], length: int, piece: int = PIECE) -> None:
    """Call `do` with slices that cover `length` entries, on all processors.

    For numpy operations on many entries, which release the interpreter lock. Temporary arrays of a piece stay in the
    cache, because allocating memory takes more time than arithmetic. Each call must write a part of its own.
    """
    slices = [slice(start, min(start + piece, length)) for start in range(0, length, piece)]
    if len(slices) < 2:
        for part in slices:
            do(part)
        return
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(do, slices))


def sort_in_place(numbers: Ints, piece: int = PIECE) -> None:
    """Sort numbers, with one processor for each part: partitioned first, then each part is sorted.

    >>> numbers = np.array([3, 1, 2, 0])
    >>> sort_in_place(numbers, piece=2)
    >>> numbers.tolist()
    [0, 1, 2, 3]
    """
    parts = min(os.cpu_count() or 1, len(numbers) // piece)
    if parts < 2:
        numbers.sort()
        return
    length = -(-len(numbers) // parts)
    numbers.partition(range(length, len(numbers), length))
    in_pieces(lambda here: numbers[here].sort(), len(numbers), length)


def offsets(counts: NDArray[np.integer]) -> Ints:
    """Return the `indptr` of segments with the given lengths."""
    indptr = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=indptr[1:])
    return indptr


def expand(starts: Ints, counts: Ints) -> Ints:
    """Return the positions `start .. start + count` of all segments, concatenated.

    >>> expand(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    shift = starts - offsets(counts)[:-1]
    return np.arange(int(counts.sum()), dtype=np.int64) + np.repeat(shift, counts)


def group_order(keys: NDArray[np.integer], groups: int) -> Indices:
    """Return the stable order that sorts small integer `keys`, in linear time.

    Converting a sparse matrix with one entry per row, at column `keys[row]`, from rows to columns lists its rows by
    column: a counting sort, several times faster than a comparison sort.
    """
    from scipy.sparse import csr_array

    entries = len(keys)
    largest = max(entries, groups)
    matrix = csr_array((entries, groups), dtype=np.int8)
    matrix.indptr = np.arange(entries + 1, dtype=index_type(largest))
    matrix.indices = keys.astype(index_type(largest), copy=False)
    matrix.data = np.ones(entries, dtype=np.int8)
    order: Indices = matrix.tocsc().indices
    return order


def rectangles(
    indptr: Indices, batch: int = BATCH, *, square: bool = False
) -> Iterator[tuple[Ints, Ints]]:
    """Yield segments of equal length together: their numbers, and a rectangle of positions.

    A rectangle has one row per segment and one column per entry, so that whole-array operations work on ragged data. It
    has at most `batch` entries (`square`: pairs of entries), unless a single segment has more. No segment may be empty.
    """
    counts = np.diff(indptr)
    if len(counts) and counts.max() < SHORT:
        counts = counts.astype(np.uint16)  # 16-bit integers have a radix sort, in linear time
    order = np.argsort(counts, kind="stable")
    ordered = counts[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)])
    for k, rows in zip(ordered[starts].tolist(), np.split(order, starts)[1:], strict=True):
        most = max(1, batch // (k * k if square else k))
        for start in range(0, len(rows), most):
            part = rows[start : start + most]
            yield part, indptr[part].astype(np.int64)[:, None] + np.arange(k)


def equal_segments(values: Floats, indptr: Indices) -> Iterator[tuple[Any, Floats]]:
    """Yield the values of segments of equal length together: the numbers of the segments, and a row for each.

    Rows may be a view of the values. No segment may be empty.
    """
    counts = np.diff(indptr)
    k = int(counts[0]) if len(counts) else 0
    if not (counts == k).all():
        for rows, positions in rectangles(indptr):
            yield rows, values[positions]
        return
    most = max(1, BATCH // max(k, 1))
    for start in range(0, len(counts), most):
        stop = min(start + most, len(counts))
        yield slice(start, stop), values[indptr[start] : indptr[stop]].reshape(stop - start, k)


def compact(labels: Ints, size: int) -> tuple[Ints, Ints]:
    """Return the labels renumbered from 0 without gaps, and the old label of each new one.

    >>> [part.tolist() for part in compact(np.array([7, 2, 7]), size=9)]
    [[1, 0, 1], [2, 7]]
    """
    # If a table of all labels would be large, sort those in use instead.
    if size > 4 * len(labels) + 1024:
        used, new = np.unique(labels, return_inverse=True)
        return new.astype(np.int64), used
    in_use = np.zeros(size, dtype=bool)
    in_use[labels] = True
    return (np.cumsum(in_use) - 1)[labels], np.flatnonzero(in_use)


def segment_max(values: Floats, indptr: Ints) -> Floats:
    """Return the largest value of each segment, 0 for an empty one (values must not be negative)."""
    result = np.zeros(len(indptr) - 1)
    filled = indptr[1:] > indptr[:-1]
    if filled.any():
        result[filled] = np.maximum.reduceat(values, indptr[:-1][filled])
    return result


def segment_sum(values: Floats, indptr: Ints) -> Floats:
    """Return the sum of each segment, 0 for an empty one."""
    filled = indptr[1:] > indptr[:-1]
    if len(filled) and filled.all():
        total: Floats = np.add.reduceat(values, indptr[:-1], dtype=np.float64)
        return total
    result = np.zeros(len(filled))
    if filled.any():
        result[filled] = np.add.reduceat(values, indptr[:-1][filled])
    return result


def segment_median(values: Floats, weights: Floats, indptr: Ints) -> Floats:
    """Return the weighted lower median of each segment, 0 for a segment that is empty or has no weight.

    >>> segment_median(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 3.0]), np.array([0, 3])).tolist()
    [2.0]
    """
    result = np.zeros(len(indptr) - 1)
    filled = np.flatnonzero(indptr[1:] > indptr[:-1])
    for rows, positions in rectangles(np.append(indptr[filled], indptr[-1])):
        if len(rows) == 1 and positions.size > LONG:
            weight = weights[positions[0]]
            equal = values[positions[0, weight > 0]]
            if len(equal) and weight.max() == weight[weight > 0].min():
                middle = (len(equal) - 1) // 2
                result[filled[rows]] = np.partition(equal, middle)[middle]
                continue
        order = np.argsort(values[positions], axis=1, kind="stable")
        sorted_positions = np.take_along_axis(positions, order, axis=1)
        running = np.cumsum(weights[sorted_positions], axis=1)
        half = 0.5 * running[:, -1:]
        # A sum that is below one half only by rounding has reached it.
        reached = np.argmax(running >= half * (1 - 1e-12), axis=1)[:, None]
        median = values[np.take_along_axis(sorted_positions, reached, axis=1)[:, 0]]
        result[filled[rows]] = np.where(half[:, 0] > 0, median, 0.0)
    return result
