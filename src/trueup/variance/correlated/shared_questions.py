"""The questions that two workers share: who shares enough of them to be looked at, and sums over them.

Both tests are made of sums over the questions that both workers of a pair answered, of all pairs at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.core.arrays import expand, offsets, rectangles
from trueup.core.sampling import id_order, sample_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trueup.answers.answers import Answers
    from trueup.core.arrays import Floats, Indices, Ints

    Sides = tuple[Floats | None, Floats | None]

#: Shared questions below which a pair is not looked at.
FEWEST = 8
#: Workers looked at, at most: those with most answers.
MOST_WORKERS = 2000
#: Pairs of answers that are looked at, at most; by products of whole arrays a pair costs so many times less.
MOST_WORK = 5e8
DENSE = 16.0
#: Entries of a piece.
PIECE = 1 << 22


@dataclass(frozen=True, eq=False)
class Flat:
    """The answers looked at, and the pairs of chosen workers who share enough questions.

    `indptr`, `worker`, `value` are the answers to the sampled `questions` (None: all of them); `chosen` the workers
    looked at, `mine` which of the answers are theirs, `rows` where those of each question begin and `columns` whose
    they are; `one`, `two` the places of each pair among the chosen, `shared` how many questions both answered.
    """

    data: Answers
    indptr: Ints
    worker: Ints
    value: Floats
    questions: Ints | None
    chosen: Ints
    mine: Ints
    rows: Ints
    columns: Ints
    notes: tuple[str, ...]
    one: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    two: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    shared: Floats = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def of(cls, data: Answers, seed: int) -> Flat:
        """Choose workers, a sample of the questions if all would take too long, and pairs who share enough."""
        notes: list[str] = []
        count = np.bincount(data.workers, minlength=data.n_workers)
        chosen = np.arange(data.n_workers)
        if data.n_workers > MOST_WORKERS:
            rank = np.empty(data.n_workers, dtype=np.int64)
            rank[id_order(data)] = np.arange(data.n_workers)
            chosen = np.sort(np.lexsort((rank, -count))[:MOST_WORKERS])
            notes.append(
                f"Only the {MOST_WORKERS:,} workers with most answers, of {data.n_workers:,}, were looked at."
            )
        column = np.full(data.n_workers, -1)
        column[chosen] = np.arange(len(chosen))
        looked = np.add.reduceat((column[data.workers] >= 0).astype(np.float64), data.indptr[:-1])
        work = min(float(np.sum(looked**2)), len(chosen) ** 2 * data.n_questions / DENSE)
        indptr, inside, questions = data.indptr, slice(None), None
        if work > MOST_WORK:
            questions = sample_of(data, seed, max(int(data.n_questions * MOST_WORK / work), FEWEST))
        where: Any = inside
        if questions is not None:
            notes.append(f"A sample of {len(questions):,} questions was looked at.")
            used = np.zeros(data.n_questions, dtype=bool)
            used[questions] = True
            where = np.flatnonzero(np.repeat(used, data.counts))
            indptr = offsets(data.counts[questions])
        worker = data.workers[where].astype(np.int64)
        mine = np.flatnonzero(column[worker] >= 0)
        rows = np.searchsorted(mine, indptr)
        flat = cls(
            data,
            indptr,
            worker,
            data.values[where],
            questions,
            chosen,
            mine,
            rows,
            column[worker[mine]],
            tuple(notes),
        )
        if len(chosen) < 2:
            return flat
        one, two = np.triu_indices(len(chosen), 1)
        (shared,) = replace(flat, one=one, two=two).pair_sums((None, None))
        enough = shared >= FEWEST
        return replace(flat, one=one[enough], two=two[enough], shared=shared[enough])

    @property
    def counts(self) -> Ints:
        """Answers of each question."""
        return np.diff(self.indptr)

    def spread(self, per_question: Floats) -> Floats:
        """Return the number of its question for each answer."""
        return np.repeat(per_question, self.counts)

    def sums(self, per_answer: Floats) -> Floats:
        """Return sums over the answers of each question."""
        total: Floats = np.add.reduceat(per_answer, self.indptr[:-1])
        return total

    def pair_sums(self, *wanted: Sides) -> list[Floats]:
        """Return for each pair sums over the questions that both answered, see `_pair_sums`."""
        place = np.full((len(self.chosen), len(self.chosen)), -1, dtype=np.int32)
        place[self.one, self.two] = np.arange(len(self.one), dtype=np.int32)
        return _pair_sums(self.rows, self.columns, place, len(self.one), wanted)


def _pair_sums(
    rows: Ints,
    columns: Ints,
    place: Indices,
    pairs: int,
    wanted: Sequence[Sides],
) -> list[Floats]:
    """Return sums over rows of `left of worker i times right of worker k`, for pairs i < k that are in a row together.

    `columns` are the workers of each row, in order, and `place` says which pair (or -1) two workers are; None stands
    for ones. Where most workers are in most rows by products of whole arrays, else pair by pair.
    """
    size = np.diff(rows)
    n, m = len(place), len(size)
    if float(np.sum(size.astype(np.float64) ** 2)) > n * n * m / DENSE:
        return _dense_sums(rows, columns, place, wanted)
    totals = [np.zeros(pairs) for _ in wanted]
    several = size >= 2
    if not several.all():  # an answer alone makes no pair
        inside = expand(rows[:-1][several], size[several])
        rows, columns = offsets(size[several]), columns[inside]
        wanted = [(_take(a, inside), _take(b, inside)) for a, b in wanted]
    for _, at in rectangles(rows, PIECE, square=True):
        left, right = np.triu_indices(at.shape[1], 1)
        i, k = at[:, left].ravel(), at[:, right].ravel()
        pair = place[columns[i], columns[k]]
        used = pair >= 0
        i, k, pair = i[used], k[used], pair[used]
        for total, (a, b) in zip(totals, wanted, strict=True):
            left_side, right_side = _take(a, i), _take(b, k)
            if left_side is None or right_side is None:
                weight = right_side if left_side is None else left_side
            else:
                weight = left_side * right_side
            np.add(total, np.bincount(pair, weight, minlength=pairs), out=total)
    return totals


def _take(values: Floats | None, at: Ints) -> Floats | None:
    return None if values is None else values[at]


def _dense_sums(rows: Ints, columns: Ints, place: Indices, wanted: Sequence[Sides]) -> list[Floats]:
    """Return the same by products of whole arrays, rows x workers, a piece at a time."""
    n, m = len(place), len(rows) - 1
    row = np.repeat(np.arange(m), np.diff(rows))
    one, two = np.nonzero(place >= 0)
    order = np.argsort(place[one, two], kind="stable")
    one, two = one[order], two[order]
    step = max(1, PIECE // n)

    def table(a: Floats | None, b: Floats | None) -> Floats:
        total = np.zeros((n, n))
        for start in range(0, m, step):
            here = slice(int(rows[start]), int(rows[min(start + step, m)]))
            sides = []
            for each in (a,) if b is a else (a, b):
                side = np.zeros((min(step, m - start), n))
                side[row[here] - start, columns[here]] = 1.0 if each is None else each[here]
                sides.append(side)
            total += sides[0].T @ sides[-1]
        return total

    totals: list[Floats] = []
    last: tuple[Any, Any, Floats] | None = None
    for a, b in wanted:
        if last is not None and last[0] is b and last[1] is a:  # the pair the other way round
            totals.append(last[2][two, one])
            continue
        last = (a, b, table(a, b))
        totals.append(last[2][one, two])
    return totals
