"""Columns of answers: read by the caller's rules, and what cannot be used is an error or set aside."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trueup.core.parameters import yes_or_no
from trueup.errors import MOST_ROWS, AnswersError, bad_rows, option, quoted
from trueup.io.number_text import DOUBTFUL_TEXTS, PLAIN, Writing, kind_of
from trueup.io.numbers import check_units, not_numbers, read_numbers, unit_of
from trueup.io.series import Series, dtype_name, take, to_list

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The square of a larger answer, and so every variance, would overflow.
LARGEST_ANSWER = 1e150
#: Types of columns without text.
_NUMERIC = ("int", "uint", "float", "double", "bool", "decimal")


@dataclass(frozen=True)
class AnswerRules:
    """What is taken for an answer.

    Attributes
    ----------
    writing
        How numbers are written.
    skip_bad
        Whether rows that cannot be used are set aside; otherwise they are an error.
    valid
        The smallest and the largest answer that can be meant, or None.
    """

    writing: Writing = PLAIN
    skip_bad: bool = False
    valid: tuple[float, float] | None = None

    @classmethod
    def of(
        cls,
        decimal: Any = None,
        thousands: Any = None,
        strip_units: Any = False,
        skip_bad: Any = False,
        valid: Any = None,
    ) -> AnswerRules:
        """Check the options of a caller."""
        yes_or_no("skip_bad", skip_bad)
        return cls(Writing.of(decimal, thousands, strip_units), bool(skip_bad), check_valid(valid))

    def outside(self, numbers: NDArray[np.float64]) -> NDArray[np.bool_] | None:
        """Tell which numbers are not valid; None where all are, missing ones included."""
        if self.valid is None:
            return None
        low, high = self.valid
        wrong: NDArray[np.bool_] = (numbers < low) | (numbers > high)
        return wrong if wrong.any() else None

    @property
    def range_in_words(self) -> str:
        """The valid range."""
        low, high = self.valid or (-np.inf, np.inf)
        return f"outside {low:g} to {high:g}"


PLAIN_RULES = AnswerRules()


def check_valid(valid: Any) -> tuple[float, float] | None:
    """Return the smallest and the largest valid answer as numbers; raise an error for anything else."""
    if valid is None:
        return None
    try:
        low, high = (float(each) for each in valid)
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    if not low < high:
        raise AnswersError(
            f"found {quoted(valid)}, must be two numbers, the smallest and the largest valid answer, such as (0, 100).",
            argument="valid",
        )
    return low, high


class SetAside(NamedTuple):
    """A value of a column that was set aside."""

    row: int
    column: str
    value: Any
    why: str


class AnswerReader:
    """Reads the columns of answers of one table.

    Attributes
    ----------
    aside
        What was set aside.
    doubtful
        How often each mark stood there that was taken for "no answer" and may have been meant otherwise.
    """

    def __init__(self, rules: AnswerRules) -> None:
        self.rules = rules
        self.aside: list[SetAside] = []
        self.doubtful: Counter[str] = Counter()
        self._units: Counter[str] = Counter()

    @property
    def unit(self) -> str:
        """The unit of the answers; empty where they have none."""
        return unit_of(self._units)

    def read(self, series: Series, column: str, *, argument: str = "") -> NDArray[np.float64]:
        """Read a column, NaN where there is no answer or one that was set aside."""
        rules = self.rules
        read = read_numbers(series, column, argument, rules.writing)
        answer = read.numbers
        if read.bad is not None and read.bad.any():
            rows = np.flatnonzero(read.bad)
            if not rules.skip_bad:
                raise not_numbers(
                    series,
                    column,
                    rows.tolist(),
                    argument=argument,
                    writing=rules.writing,
                    skips=True,
                )
            answer = self._set_aside(series, column, answer, rows, None)
        if read.units is not None:
            self._units += read.units
            check_units(column, self._units)
        if not _usable(answer):
            answer = self._check_size(series, column, answer)
        outside = rules.outside(answer)
        if outside is not None:
            rows = np.flatnonzero(outside)
            what = rules.range_in_words
            if not rules.skip_bad:
                raise self._refused(
                    column,
                    answer,
                    rows,
                    what,
                    "Fix them, pass another range as " + option("valid", None) + ", or pass ",
                )
            answer = self._set_aside(series, column, answer, rows, what)
        self._count_doubtful(series, answer)
        return answer

    def _check_size(
        self, series: Series, column: str, answer: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Refuse infinite answers, and those whose squares overflow."""
        infinite = "Remove these rows, leave the value empty where there is none, or pass "
        large = "Their squares overflow: remove these rows, give answers in a larger unit, or pass "
        endless = np.isinf(answer)
        for what, remedy, wrong in (
            ("infinite", infinite, endless),
            (f"beyond ±{LARGEST_ANSWER:g}", large, (np.abs(answer) > LARGEST_ANSWER) & ~endless),
        ):
            if wrong.any():
                rows = np.flatnonzero(wrong)
                if not self.rules.skip_bad:
                    raise self._refused(column, answer, rows, what, remedy)
                answer = self._set_aside(series, column, answer, rows, what)
        return answer

    def _refused(
        self,
        column: str,
        answer: NDArray[np.float64],
        rows: NDArray[np.int64],
        what: str,
        remedy: str,
    ) -> AnswersError:
        error = bad_rows(
            column,
            rows.tolist(),
            len(answer),
            (f"is {what}", f"are {what}"),
            remedy + option("skip_bad", True) + " to set them aside.",
            answer[rows[:MOST_ROWS]].tolist(),
        )
        few = 2 * len(rows) <= np.count_nonzero(~np.isnan(answer))
        return error.mended_by({"skip_bad": True}) if few else error

    def _set_aside(
        self,
        series: Series,
        column: str,
        answer: NDArray[np.float64],
        rows: NDArray[np.int64],
        why: str | None,
    ) -> NDArray[np.float64]:
        """Note these rows, and return the answers without them; without a reason the text itself tells it."""
        values = to_list(take(series, rows))
        for row, value in zip(rows.tolist(), values, strict=True):
            kind = why or (kind_of(value) if isinstance(value, str) else "no number")
            self.aside.append(SetAside(row, column, value, kind))
        answer = answer.copy()
        answer[rows] = np.nan
        return answer

    def _count_doubtful(self, series: Series, answer: NDArray[np.float64]) -> None:
        if dtype_name(series).lower().startswith(_NUMERIC):
            return
        missing = np.flatnonzero(np.isnan(answer))
        for value in to_list(take(series, missing)) if len(missing) else ():
            if isinstance(value, str) and (text := value.strip()) in DOUBTFUL_TEXTS:
                self.doubtful[text] += 1


def _usable(answer: NDArray[np.float64]) -> bool:
    """Tell, without a temporary array, whether all answers can be squared; with missing ones it cannot tell."""
    return not len(answer) or bool(max(-answer.min(), answer.max()) <= LARGEST_ANSWER)
