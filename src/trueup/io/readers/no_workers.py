"""Columns of a wide table that are no workers: row numbers, titles, known truths, and sums or means of the others.

Such columns beside those that look like workers are an error that says what to pass. Where the caller said that the
table is wide, they are read, and told. A column or row that is called a mean or sum, and is that of the others, is an
error in any case: it would agree with the estimates and count as the best worker.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from trueup.errors import MOST_NAMES, AnswersError, listing, option, options, quoted, warn
from trueup.io.columns import GOLD_NAMES, plain_name
from trueup.io.readers.evidence import ID_NAMES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

#: Words in names of columns that sum up the others; "max" is a given name, too.
SUMMARIES = frozenset(
    re.findall(
        r"\w+",
        """
        mean average avg median total sum sd std stdev stddev se sem minimum maximum consensus overall aggregate rank
        """,
    )
)
#: Words in names of columns that say something about a question.
FEATURES = frozenset(["age", "price", "difficulty"])
#: Names of known truths, besides those of `trueup.io.columns`.
TRUTHS = frozenset([*GOLD_NAMES, "answerkey", "truevalue", "goldstandard", "correct", "ref"])
#: Others and cases in which a mean or sum must agree, and most digits that it may be rounded to.
FEWEST_OTHERS, FEWEST_CASES, MOST_DIGITS = 3, 5, 6
#: Relative rounding error of a sum.
ROUNDING = 1e-9


def is_unnamed(name: object) -> bool:
    """Tell whether a column has no name, as the row numbers that pandas writes."""
    return isinstance(name, str) and plain_name(name).replace(":", "") in ("", "unnamed0")


def describes(name: object) -> bool:
    """Tell whether a name speaks of the questions, or of the other columns, rather than of a worker."""
    return sums_up(name) or bool(_words(name) & FEATURES) or plain_name(name) in TRUTHS


def sums_up(name: object) -> bool:
    """Tell whether a name is that of a mean, a sum or the like."""
    return bool(_words(name) & SUMMARIES)


def _words(name: object) -> set[str]:
    return set(re.findall(r"[^\W\d_]+", name.casefold())) if isinstance(name, str) else set()


def beside_workers(
    workers: Sequence[str],
    question: Sequence[str],
    numbers: Sequence[str],
    damaged: Sequence[str] = (),
    *,
    sure: bool,
) -> AnswersError:
    """Build the error about a table whose columns look like workers, but for some.

    Parameters
    ----------
    workers, numbers
        Columns of numbers that look like workers, and those that do not.
    question
        Columns that name the questions.
    damaged
        Those of the workers in which some values are no numbers.
    sure
        Whether all of the first look alike.
    """
    beside = listing([*question, *numbers], MOST_NAMES)
    says = f"the columns {listing(workers, MOST_NAMES)} look like one per worker, beside {beside}."
    sums = list(filter(sums_up, numbers))
    if sums:
        names = listing(sums, MOST_NAMES)
        one = "it is a worker" if len(sums) == 1 else "they are workers"
        return AnswersError(
            says, remedy=f"Leave out {names}, or pass " + option("wide", True) + f" if {one}."
        )
    keys = question[0] if len(question) == 1 else list(question)
    fix: dict[str, object] = {"question": keys, "wide": True}
    if damaged:
        says += f" Column {quoted(damaged[0])} holds values that are not numbers."
        fix["skip_bad"] = True
    gold = [name for name in numbers if plain_name(name) in TRUTHS]
    others = [name for name in numbers if name not in gold[:1]]
    if gold:
        fix["gold"] = gold[0]
    if others:
        fix["covariates"] = others[0] if len(others) == 1 else others
    error = AnswersError(says, remedy="Pass " + options(fix) + " if that is right.")
    return error.mended_by(fix) if sure else error


def tell_apart(cells: Sequence[str]) -> None:
    """Warn of columns that are read as workers and may be none."""
    odd = [name for name in cells if describes(name) or plain_name(name) in {*ID_NAMES, "id"}]
    if odd:
        names, one = listing(odd, MOST_NAMES), len(odd) == 1
        warn(
            f"{'column' if one else 'columns'} {names}: read as {'a worker' if one else 'workers'}, as the table has "
            "one column per worker. Leave out what is none."
        )


def check_sums(names: Sequence[str], matrix: NDArray[np.float64]) -> None:
    """Look for columns that are the mean or sum of the others in every row: an error if the name says so, else told.

    Only where there are three others and five rows in which not all answers are equal.
    """
    sums = np.array([sums_up(name) for name in names])
    given = ~np.isnan(matrix)
    others = given & ~sums
    total, count = np.where(others, matrix, 0.0).sum(axis=1), others.sum(axis=1)
    largest = np.where(others, matrix, -np.inf).max(axis=1, initial=-np.inf)
    differs = largest > np.where(others, matrix, np.inf).min(axis=1, initial=np.inf)
    for name, is_sum, own, known in zip(names, sums, matrix.T, given.T, strict=True):
        beside = count - (0 if is_sum else known)
        here = differs & (beside >= FEWEST_OTHERS) & known
        if np.count_nonzero(here) < FEWEST_CASES:
            continue
        rest = total[here] if is_sum else total[here] - own[here]
        what = _summed(own[here], rest, beside[here])
        says = (
            f"Column {quoted(name)}: is the {what} of the other columns in every row. Leave it out"
        )
        if what and is_sum:
            raise AnswersError(says + ".")
        if what:
            warn(says + " if it is no worker.")


def check_last_row(name: object, matrix: NDArray[np.float64]) -> None:
    """Check that the last row, if its name says so, is not the mean or sum of those above."""
    if not sums_up(name) or len(matrix) < FEWEST_CASES:
        return
    above, own = matrix[:-1], matrix[-1]
    given = ~np.isnan(above)
    total, count = np.where(given, above, 0.0).sum(axis=0), given.sum(axis=0)
    here = ~np.isnan(own) & (count > 1)
    if not here.any():
        return
    what = _summed(own[here], total[here], count[here], rounded=True)
    if what:
        raise AnswersError(
            f"the last row, {quoted(name)}, is the {what} of the rows above in every column, and no question. "
            "Leave it out."
        )


def _summed(
    own: NDArray[np.float64],
    total: NDArray[np.float64],
    count: NDArray[np.int64],
    *,
    rounded: bool = False,
) -> str:
    """Return "mean" or "sum" where all numbers are those, perhaps rounded; whole ones only where `rounded`."""
    size = np.abs(own) + np.abs(total)
    for what, expected in (("mean", total / count), ("sum", total)):
        slack = ROUNDING * size
        for digits in range(0 if rounded else 1, MOST_DIGITS + 1):
            if np.array_equal(np.round(own, digits), own):
                if digits or rounded:
                    slack = slack + 0.5 * 10.0**-digits
                break
        if (np.abs(own - expected) <= slack).all():
            return what
    return ""
