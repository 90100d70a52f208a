"""Rows of answers brought near one another: cut into buckets by the order of their questions.

Rows come in any order and may be more than fit into memory. They are written into bucket files, each with a range of
question ids, so that a bucket can be sorted by itself and the buckets in turn give the whole in order. A bucket that
has become too large is cut again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from trueup.core.libraries import need
from trueup.core.sampling import letters_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from trueup.core.arrays import Ints

Item = TypeVar("Item")
Result = TypeVar("Result")

# Rows of a bucket that is aimed at, and rows beyond which it is cut again: both are sorted in memory.
ROWS, MOST_ROWS = 3 << 18, 1 << 21
# Files that are written at a time: systems allow a process no more than a few hundred.
MOST_FILES = 128
# Ids that the borders between buckets are chosen by.
SAMPLE = 1 << 17
# How often a bucket is cut at most.
DEEPEST = 8

# The first k bytes of a word of eight, highest first.
_FIRST = np.array([0, *((1 << 64) - (1 << (64 - 8 * k)) for k in range(1, 9))], dtype=np.uint64)


class Borders:
    """Numbers for ids that rise with them: buckets.

    Parameters
    ----------
    sample : pyarrow array
        Some of the ids, text or 64-bit integers. How well it stands for the others decides how even the buckets are,
        nothing else.
    pieces : int
        Number of buckets, at most; fewer where many ids are alike.
    """

    def __init__(self, sample: Any, pieces: int) -> None:
        self._prefix: bytes | None = None
        if not need("pyarrow", "files").types.is_integer(sample.type):
            self._prefix = _common(sample)
        keys = np.sort(self._keys(sample))
        at = (np.arange(1, pieces) * len(keys)) // pieces
        inner = np.unique(keys[at]) if len(keys) else keys
        # A border at the lowest key would have nothing below it.
        self._borders = inner[inner > keys[0]] if len(keys) else inner

    def __len__(self) -> int:
        """Return the number of buckets."""
        return len(self._borders) + 1

    def bucket(self, ids: Any) -> NDArray[np.uint8]:
        """Return the bucket of each id."""
        found = np.searchsorted(self._borders, self._keys(ids), side="right")
        return found.astype(np.uint8)

    def _keys(self, ids: Any) -> NDArray[Any]:
        """Return a number for each id that never falls when the id rises."""
        if self._prefix is None:
            whole: NDArray[Any] = np.asarray(ids)
            return whole
        side_by_side = letters_of(ids)
        if side_by_side is None:
            raise TypeError(f"ids: found {ids.type}, must be text.")
        return _after(*side_by_side, self._prefix)


def _common(sample: Any) -> bytes:
    """Return what all texts of a sample begin with."""
    compute = need("pyarrow.compute", "files")
    ends = compute.min_max(sample)
    low, high = ((ends[name].as_py() or "").encode() for name in ("min", "max"))
    length = next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), len(low))
    return bytes(low[:length])


def _after(letters: NDArray[np.uint8], ends: Ints, prefix: bytes) -> NDArray[np.uint64]:
    """Return the eight bytes behind the prefix as a number: 0 for texts below it, the largest for those above."""
    used = letters[ends[0] : ends[-1]]
    padded = np.concatenate([used, np.zeros(8, dtype=np.uint8)])
    # A number may begin at every byte: the highest byte first, so that numbers compare as texts do.
    words: NDArray[Any] = np.ndarray(len(padded) - 7, dtype=">u8", buffer=padded.data, strides=(1,))
    starts, left = ends[:-1] - ends[0], np.diff(ends)

    def word(at: int) -> NDArray[np.uint64]:
        found: NDArray[np.uint64] = words[np.minimum(starts + at, len(used))].astype(np.uint64)
        masked: NDArray[np.uint64] = found & _FIRST[np.clip(left - at, 0, 8)]
        return masked

    key: NDArray[np.uint64] = word(len(prefix))
    below = above = np.zeros(len(key), dtype=bool)
    for at in range(0, len(prefix), 8):
        part = prefix[at : at + 8]
        mine = word(at) & _FIRST[len(part)]
        theirs = np.uint64(int.from_bytes(part.ljust(8, b"\0"), "big"))
        undecided = ~(below | above)
        below, above = below | (undecided & (mine < theirs)), above | (undecided & (mine > theirs))
    key[below] = 0
    key[above] = _FIRST[8]
    return key


@dataclass(frozen=True)
class Bucket:
    """A file with rows of some questions, in the order in which they came."""

    path: Path
    rows: int

    def batches(self) -> Iterator[Any]:
        """Yield the rows, many at a time."""
        pyarrow, ipc = need("pyarrow", "files"), need("pyarrow.ipc", "files")
        waiting: list[Any] = []
        with pyarrow.OSFile(str(self.path), "rb") as file, ipc.open_stream(file) as stream:
            for batch in stream:
                waiting.append(batch)
                if sum(map(len, waiting)) >= ROWS:
                    yield pyarrow.concat_batches(waiting)
                    waiting = []
        if waiting:
            yield pyarrow.concat_batches(waiting)

    def table(self) -> Any:
        """Return all rows."""
        pyarrow, ipc = need("pyarrow", "files"), need("pyarrow.ipc", "files")
        with pyarrow.OSFile(str(self.path), "rb") as file, ipc.open_stream(file) as stream:
            return stream.read_all()

    def sample(self) -> Any:
        """Return some ids, from all over the file."""
        step = max(1, self.rows // SAMPLE)
        parts = [batch.column(0).take(np.arange(0, len(batch), step)) for batch in self.batches()]
        return need("pyarrow", "files").concat_arrays(parts)


class Spool:
    """Bucket files that are being written.

    Parameters
    ----------
    folder : Path
    name : str
        What their names begin with.
    schema : pyarrow schema
        Of the rows; the question comes first.
    buckets : int
        Their number.
    """

    def __init__(self, folder: Path, name: str, schema: Any, buckets: int) -> None:
        self._paths = [folder / f"bucket-{name}{i:03d}.arrow" for i in range(buckets)]
        self._schema = schema
        self._open: dict[int, tuple[Any, Any]] = {}
        self._rows = np.zeros(buckets, dtype=np.int64)

    def write(self, batch: Any, counts: Ints) -> None:
        """Write rows that lie bucket by bucket, so many of each."""
        ends = np.cumsum(counts)
        for i in np.flatnonzero(counts).tolist():
            part = batch.slice(int(ends[i] - counts[i]), int(counts[i]))
            self._stream(i).write_batch(part)
        self._rows[: len(counts)] += counts

    def _stream(self, i: int) -> Any:
        if i not in self._open:
            pyarrow, ipc = need("pyarrow", "files"), need("pyarrow.ipc", "files")
            file = pyarrow.OSFile(str(self._paths[i]), "wb")
            self._open[i] = ipc.new_stream(file, self._schema), file
        return self._open[i][0]

    def close(self) -> list[Bucket]:
        """Finish writing; those without rows are left out."""
        for stream, file in self._open.values():
            stream.close()
            file.close()
        return [Bucket(self._paths[i], int(self._rows[i])) for i in sorted(self._open)]


def in_order(batch: Any, borders: Borders) -> tuple[Any, Ints]:
    """Bring the rows of a batch into the order of their buckets, and count those of each."""
    bucket = borders.bucket(batch.column(0))
    counts = np.bincount(bucket, minlength=len(borders))
    if len(borders) == 1:
        return batch, counts
    # Short numbers are sorted digit by digit, in linear time.
    return batch.take(np.argsort(bucket, kind="stable")), counts


def small_enough(bucket: Bucket, most: int = MOST_ROWS, depth: int = 0) -> Iterator[Bucket]:
    """Cut a bucket until each can be sorted in memory, unless it is all about one question."""
    if bucket.rows <= most or depth == DEEPEST:
        yield bucket
        return
    borders = Borders(bucket.sample(), min(MOST_FILES, 1 + 2 * bucket.rows // most))
    if len(borders) == 1:
        yield bucket
        return
    spool = None
    for batch in bucket.batches():
        if spool is None:
            name = bucket.path.stem.removeprefix("bucket-") + "-"
            spool = Spool(bucket.path.parent, name, batch.schema, len(borders))
        spool.write(*in_order(batch, borders))
    bucket.path.unlink()
    for part in spool.close() if spool is not None else []:
        yield from small_enough(part, most, depth + 1)
