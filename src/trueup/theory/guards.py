"""Checks of the arguments of the theory functions: finite numbers of reasonable size, in the right shape.

Sizes are limited so that fourth powers stay within the range of floating point. Arguments within the limits give finite
results; for others the error asks the caller to change the unit.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Literal, SupportsIndex, TypeAlias

import numpy as np

from trueup.errors import TrueupError, quoted

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from trueup.core.arrays import Floats

Sign: TypeAlias = Literal["any", "not negative", "positive"]

LARGEST = 1e30
SMALLEST = 1 / LARGEST
# Largest number of questions.
MOST_QUESTIONS = 10**12
# Differences of up to this many rounding errors count as 0.
ROUNDING_ERRORS = 8.0


def count(name: str, value: SupportsIndex, least: int = 4) -> int:
    """Check a number of questions.

    Raises
    ------
    TrueupError
        If it is not an integer, or too small or too large.
    """
    try:
        whole = operator.index(value)
    except TypeError:
        raise TrueupError(
            f"{quoted(value)} is not a whole number.",
            argument=name,
            remedy="Give the number of questions.",
        ) from None
    if whole < least:
        raise TrueupError(f"found {whole}. This needs at least {least} questions.", argument=name)
    if whole > MOST_QUESTIONS:
        raise TrueupError(
            f"found {whole}. At most {MOST_QUESTIONS} questions are possible.", argument=name
        )
    return whole


def numbers(name: str, values: ArrayLike, sign: Sign = "any", ndim: int = 1) -> Floats:
    """Check an array, and return it in double precision; where 0 is allowed, too small sizes become 0.

    Raises
    ------
    TrueupError
        If it has another number of dimensions, no entry, or an entry that is missing, of the wrong sign, or so large
        or small that its powers would overflow or underflow.
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise TrueupError(f"{quoted(values)} does not consist of numbers.", argument=name) from None
    if array.ndim != ndim:
        expected = ("one number", "one dimension", "shape (samples, questions)")[ndim]
        raise TrueupError(f"found shape {array.shape}.", argument=name, remedy=f"Give {expected}.")
    if array.size == 0:
        raise TrueupError("empty.", argument=name, remedy="Give at least one number.")
    size = np.abs(array)
    if not (size <= LARGEST).all():
        bad = array[~(size <= LARGEST)][0]
        raise TrueupError(
            f"found {bad}.",
            argument=name,
            remedy=f"Give finite numbers up to {LARGEST:g} (change the unit if necessary).",
        )
    if sign == "any":
        return array
    least = SMALLEST if sign == "positive" else 0.0
    if (array < least).any():
        raise TrueupError(
            f"found {array[array < least][0]}.",
            argument=name,
            remedy=f"Give numbers from {least:g} on.",
        )
    return np.where(size < SMALLEST, 0.0, array)


def number(name: str, value: ArrayLike, sign: Sign = "any") -> float:
    """Check one number, see `numbers`."""
    return float(numbers(name, value, sign, ndim=0))


def share(name: str, value: ArrayLike) -> float:
    """Check a probability above 0."""
    probability = number(name, value, "positive")
    if probability > 1:
        raise TrueupError(
            f"found {probability}.", argument=name, remedy="Give a probability above 0 and up to 1."
        )
    return probability


def repeated(samples: ArrayLike, least: int = 2, name: str = "samples") -> Floats:
    """Check repeated aggregates: a row per sample, a column per question, at least four columns."""
    array = numbers(name, samples, ndim=2)
    count(name, array.shape[1])
    if len(array) < least:
        raise TrueupError(
            f"found {len(array)} rows.", argument=name, remedy=f"Give at least {least} samples."
        )
    return array


def per_sample(name: str, values: ArrayLike, n_samples: int, sign: Sign = "not negative") -> Floats:
    """Check one number per sample; a single number is repeated for all samples."""
    if np.ndim(values) == 0:
        return np.full(n_samples, number(name, values, sign))
    array = numbers(name, values, sign)
    if len(array) != n_samples:
        raise TrueupError(f"found {len(array)} numbers for {n_samples} samples.", argument=name)
    return array


def centred(name: str, rows: Floats) -> tuple[Floats, Floats]:
    """Return the deviations from the mean of each row, and the sum of their squares SS.

    Raises
    ------
    TrueupError
        If SS is 0 up to rounding in a row: all its questions have the same value, and the shrinkage is undefined.
    """
    deviations = rows - rows.mean(axis=-1, keepdims=True)
    squares = np.einsum("...j,...j->...", deviations, deviations)
    rounding = ROUNDING_ERRORS * np.finfo(np.float64).eps * np.abs(rows).max(axis=-1)
    flat = squares <= np.maximum(rounding * rounding * rows.shape[-1], SMALLEST)
    if flat.any():
        raise TrueupError(
            f"SS = 0 in {int(flat.sum())} of {flat.size} samples: all questions have the same value there.",
            argument=name,
            remedy="Remove such samples, or change the unit if the values are tiny.",
        )
    return deviations, np.asarray(squares)


def strength(alpha: ArrayLike | None, m: int) -> float:
    """Return the constant of the shrinkage `alpha psi / SS`, m - 3 unless given."""
    return float(m - 3) if alpha is None else number("alpha", alpha, "not negative")
