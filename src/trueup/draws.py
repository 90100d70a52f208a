"""The random draws behind the second step: halves and folds of workers, and a sample of questions.

All follow from ids and a seed, never from the order of rows: workers are drawn in the order of their ids, questions by
a hash of theirs. Every panel is drawn as if it were alone.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np

from trueup.arrays import offsets
from trueup.errors import TrueupError, quoted

if TYPE_CHECKING:
    from trueup.answers import Answers
    from trueup.arrays import Bools, Floats, Ints
    from trueup.io.table import Ids

#: Questions that a prior is fitted on at most: more would not make it better.
ENOUGH = 50_000


def check_seed(seed: object) -> None:
    """Refuse what is no seed."""
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise TrueupError(f"seed: found {quoted(seed)}, must be a whole number, not negative.")


def id_order(answers: Answers) -> Ints:
    """Return the workers panel by panel, in the order of their ids."""
    order = answers.origin.worker_ids.sort_order()
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    if answers.worker_source is not None:
        rank = rank[answers.worker_source]
    return np.lexsort((rank, answers.worker_panel))


def places(answers: Answers, seed: int, draw: int = 0) -> Ints:
    """Return the place of each worker in a random order of the workers of its panel."""
    borders = answers.panel_workers
    sizes = np.diff(borders)
    # The first n numbers of a stream are the same however many are drawn: panels do not depend on one another.
    key = np.random.default_rng([seed, draw]).random(int(sizes.max(initial=0)))
    inside = np.arange(answers.n_workers) - np.repeat(borders[:-1], sizes)
    shuffled = np.lexsort((key[inside], answers.worker_panel))
    place = np.empty(answers.n_workers, dtype=np.int64)
    place[id_order(answers)[shuffled]] = inside
    return place


def halves_of(answers: Answers, splits: int, seed: int) -> Bools:
    """Return for each split whether a worker is in the first half of its panel: workers x splits."""
    size = np.diff(answers.panel_workers)[answers.worker_panel]
    return np.column_stack([places(answers, seed, draw) < size // 2 for draw in range(splits)])


def sample_of(answers: Answers, seed: int, size: int = ENOUGH) -> Ints | None:
    """Return the questions with the smallest hashes, at most `size` of each panel, or None if that is all of them."""
    sizes = np.diff(answers.panel_questions)
    if sizes.max(initial=0) <= size:
        return None
    ids = answers.origin.question_ids
    code = _hashes(ids, seed)
    if answers.question_source is not None:
        code = code[answers.question_source]
    if answers.n_panels == 1:
        return np.sort(np.argpartition(code, size)[:size])
    order = np.lexsort((code, answers.question_panel))
    inside = np.arange(len(code)) - np.repeat(offsets(sizes)[:-1], sizes)
    return np.sort(order[inside < size])


def _hashes(ids: Ids, seed: int) -> Floats:
    """Return a number for each id that looks random, and is the same in every run."""
    values = np.asarray(ids.values) if hasattr(ids.values, "__array__") else np.array(ids.tolist())
    if values.dtype.kind in "iu":
        z = values.astype(np.int64).view(np.uint64)
    else:
        # Two checksums, since one of 32 bits is shared by some of a million ids.
        texts = (str(each).encode("utf-8", "surrogatepass") for each in ids.tolist())
        codes = ((zlib.crc32(text) << 32) | zlib.adler32(text) for text in texts)
        z = np.fromiter(codes, dtype=np.uint64, count=len(ids))
    # The finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014).
    z = z + np.uint64((seed + 1) * 0x9E3779B97F4A7C15 % (1 << 64))
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))).astype(np.float64)
