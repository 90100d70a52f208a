"""The random draws behind the second step: halves and folds of workers, and a sample of questions.

All follow from ids and a seed, never from the order of rows: workers are drawn in the order of their ids, questions by
a hash of theirs. Every panel is drawn as if it were alone. `trueup.engines.question_sample` draws questions of an
engine, which may not have them in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.core.arrays import in_pieces, offsets
from trueup.core.libraries import loaded
from trueup.errors import TrueupError, quoted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.answers.answers import Answers
    from trueup.core.arrays import Bools, Floats, Ints
    from trueup.engines.protocol import Problem

#: Largest number of questions that a prior is fitted on: more would not improve it.
MAX_QUESTIONS = 50_000


def check_seed(seed: object) -> None:
    """Check that `seed` is a whole number, not negative."""
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise TrueupError(
            f"found {quoted(seed)}, must be a whole number, not negative.", argument="seed"
        )


def generator(seed: int) -> np.random.Generator:
    """Return a random number generator with this seed."""
    check_seed(seed)
    return np.random.default_rng(seed)


def id_order(answers: Problem) -> Ints:
    """Return the workers panel by panel, in the order of their ids."""
    return np.lexsort((answers.worker_rank, answers.worker_panel))


def places(answers: Problem, seed: int, draw: int = 0) -> Ints:
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


def halves_of(answers: Problem, splits: int, seed: int) -> Bools:
    """Return for each split whether a worker is in the first half of its panel: workers x splits."""
    size = np.diff(answers.panel_workers)[answers.worker_panel]
    return np.column_stack([places(answers, seed, draw) < size // 2 for draw in range(splits)])


def sample_of(answers: Answers, seed: int, size: int = MAX_QUESTIONS) -> Ints | None:
    """Return the questions with the smallest hashes, at most `size` of each panel, or None if that is all of them."""
    sizes = np.diff(answers.panel_questions)
    if sizes.max(initial=0) <= size:
        return None
    code = question_draws(answers, seed)
    if answers.n_panels == 1:
        return np.sort(np.argpartition(code, size)[:size])
    order = np.lexsort((code, answers.question_panel))
    inside = np.arange(len(code)) - np.repeat(offsets(sizes)[:-1], sizes)
    return np.sort(order[inside < size])


def question_draws(answers: Answers, seed: int) -> Floats:
    """Return a number for each question that looks random and follows from its id and the seed."""
    return drawn(id_hashes(answers.question_ids.values), seed)


def id_hashes(values: Any) -> NDArray[np.uint64]:
    """Return a number for each id that is the same in every run: whole numbers as they are, else a hash of the text.

    The hash is FNV-1a with 64 bits over the bytes of the text in UTF-8.

    >>> [hex(each) for each in id_hashes(["", "a"]).tolist()]
    ['0xcbf29ce484222325', '0xaf63dc4c8601ec8c']
    """
    side_by_side = letters_of(values)
    if side_by_side is not None:
        return _fnv(*side_by_side)
    plain = np.asarray(values) if hasattr(values, "__array__") else np.array(values)
    if plain.dtype.kind in "iu":
        return plain.astype(np.int64).view(np.uint64)
    texts = [str(each).encode("utf-8", "surrogatepass") for each in plain.tolist()]
    lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    letters = np.frombuffer(b"".join(texts), dtype=np.uint8)
    return _fnv(letters, offsets(lengths))


def letters_of(values: Any) -> tuple[NDArray[np.uint8], Ints] | None:
    """Return the letters of all texts and where each begins, if they lie one behind another as pyarrow has them."""
    pyarrow = loaded("pyarrow")
    if pyarrow is None or not isinstance(values, pyarrow.Array | pyarrow.ChunkedArray):
        return None
    if isinstance(values, pyarrow.ChunkedArray):
        values = values.combine_chunks()
    if not (pyarrow.types.is_string(values.type) or pyarrow.types.is_large_string(values.type)):
        return None
    values = values.cast(pyarrow.large_string())
    _, borders, letters = values.buffers()
    ends = np.frombuffer(borders, dtype=np.int64)[values.offset : values.offset + len(values) + 1]
    return np.frombuffer(letters or b"", dtype=np.uint8), ends


def _fnv(letters: NDArray[np.uint8], borders: Ints) -> NDArray[np.uint64]:
    """Hash texts that lie one behind another."""
    code = np.full(len(borders) - 1, 0xCBF29CE484222325, dtype=np.uint64)

    def hash_some(here: slice) -> None:
        _hash_letters(code[here], letters, borders[here.start : here.stop + 1])

    in_pieces(hash_some, len(code))
    return code


def _hash_letters(code: NDArray[np.uint64], letters: NDArray[np.uint8], borders: Ints) -> None:
    """Let the letters of each text change its code: letter by letter, all texts at once."""
    # Longest texts first: those that still have a letter are the first so many.
    lengths = np.diff(borders)
    order = np.argsort(-lengths, kind="stable")
    starts, left, sorted_code = borders[:-1][order], -lengths[order], code[order]
    for place in range(int(lengths.max(initial=0))):
        going = int(np.searchsorted(left, -place, side="left"))
        part = sorted_code[:going]
        part ^= letters[starts[:going] + place]
        part *= np.uint64(0x100000001B3)
    code[order] = sorted_code


def drawn(hashes: NDArray[np.uint64], seed: int) -> Floats:
    """Return a number for each hash that looks random.

    By the finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014).
    """
    z = hashes + np.uint64((seed + 1) * 0x9E3779B97F4A7C15 % (1 << 64))
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))).astype(np.float64)
