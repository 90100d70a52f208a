"""From columns as a file has them to rows that can be used: ids checked, numbers read, rows without an answer gone."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.answers.faults import bad_variances, two_variances
from trueup.core.libraries import need
from trueup.core.parameters import usable_variances
from trueup.engines.disk.buckets import in_order
from trueup.engines.disk.numbers import NO_ID, Cell, checked_numbers, read_numbers
from trueup.errors import MOST_ROWS, AnswersError, first_rows, marked_rows, quoted
from trueup.io.question_data.match import unusable
from trueup.io.readers.answer_column import LARGEST_ANSWER, AnswerRules
from trueup.io.readers.source import about

if TYPE_CHECKING:
    from trueup.core.arrays import Bools, Floats, Indices, Ints
    from trueup.engines.disk.buckets import Borders
    from trueup.io.number_text import Writing


class NotWholeNumbersError(Exception):
    """Ids that were all whole numbers so far have become text."""


@dataclass(frozen=True)
class RowPlan:
    """What is wanted of the files.

    Attributes
    ----------
    question, worker, answer
        Names of columns.
    answer_variance, worker_variance, group, gold
        The same, or None.
    covariates
        The same.
    rules
        What is taken for an answer, and how numbers are written.
    question_type, worker_type
        Types of the ids.
    whole
        Whether ids of questions that are text are taken for whole numbers.
    """

    question: str
    worker: str
    answer: str
    answer_variance: str | None
    worker_variance: str | None
    group: str | None
    covariates: tuple[str, ...]
    gold: str | None
    rules: AnswerRules
    question_type: Any
    worker_type: Any
    whole: bool

    @property
    def names(self) -> list[str]:
        """All columns, each once, the question first and the worker second."""
        others = (
            self.answer_variance,
            self.worker_variance,
            self.group,
            *self.covariates,
            self.gold,
        )
        wanted = [self.question, self.worker, self.answer, *(each for each in others if each)]
        return list(dict.fromkeys(wanted))

    @property
    def key_type(self) -> Any:
        """Type of the ids of questions while they are sorted."""
        pyarrow = need("pyarrow", "files")
        whole = self.whole or pyarrow.types.is_integer(self.question_type)
        return pyarrow.int64() if whole else self.question_type

    @property
    def schema(self) -> Any:
        """The columns of usable rows."""
        pyarrow = need("pyarrow", "files")
        fields = [("question", self.key_type), ("worker", pyarrow.int32())]
        fields.append(("value", pyarrow.float64()))
        if self.answer_variance:
            fields.append(("precision", pyarrow.float64()))
        if self.group:
            fields.append(("group", pyarrow.int32()))
        fields.extend((f"covariate-{k}", pyarrow.float64()) for k in range(len(self.covariates)))
        if self.gold:
            fields.append(("gold", pyarrow.float64()))
        return pyarrow.schema(fields)


@dataclass
class Rows:
    """Usable rows, bucket by bucket.

    Attributes
    ----------
    columns : dict
        Arrays of the columns, in the order of the buckets. Workers and groups by their number in `workers`, `groups`.
    counts : array
        Rows of each bucket.
    workers, groups : pyarrow array
        Distinct ids of this batch.
    known : array or None
        Known variance of each of `workers`, NaN where it is not.
    n_rows, n_missing, n_malformed : int
        Rows read, dropped because they have no answer, and dropped because they cannot be used.
    units : dict of Counter
        How often each unit stood beside the numbers of a column: of answers, covariates and truths.
    cells : list of Cell
        The first of the latter.
    """

    columns: dict[str, Any]
    counts: Ints
    workers: Any
    groups: Any
    known: Floats | None
    n_rows: int
    n_missing: int
    n_malformed: int
    units: dict[str, Counter[str]]
    cells: list[Cell] = field(default_factory=list)


def prepare(plan: RowPlan, batch: Any, first: int, borders: Borders) -> Rows:
    """Make rows of a batch that begins with row `first` of its file."""
    pyarrow = need("pyarrow", "files")
    columns = dict(zip(plan.names, batch.columns, strict=True))
    n_rows = len(batch)
    units: dict[str, Counter[str]] = {}
    answer, malformed, cells, units[plan.answer] = checked_numbers(
        plan.answer, columns[plan.answer], plan.rules, None
    )
    missing = np.isnan(answer) & ~malformed
    for name in (plan.question, plan.worker):
        without = ~_present(columns[name]) & ~(missing | malformed)
        malformed |= without
        cells += [
            Cell(row, name, None, NO_ID) for row in np.flatnonzero(without)[:MOST_ROWS].tolist()
        ]
    numbers = {}
    for name in filter(None, (plan.answer_variance, plan.worker_variance)):
        numbers[name], bad, more, _ = checked_numbers(
            name, columns[name], AnswerRules(plan.rules.writing), ~missing & ~malformed
        )
        malformed |= bad
        cells += more
    cells.sort()
    answered = ~(missing | malformed)
    # Rows without an answer may still tell what group, covariates or truth their question has.
    keep = answered
    if plan.group or plan.covariates or plan.gold:
        keep = answered | (missing & _present(columns[plan.question]))
    every = bool(keep.all())
    mask = None if every else pyarrow.array(keep)
    kept = {name: each if mask is None else each.filter(mask) for name, each in columns.items()}
    rows = first + (np.arange(n_rows) if every else np.flatnonzero(keep))
    real = answered if every else answered[keep]
    value = answer if every else answer[keep]
    question = _question_ids(plan, kept[plan.question])
    codes, workers = _distinct(kept[plan.worker], plan.worker_type)
    if not real.all():
        # Of rows without an answer, the worker does not count.
        codes, workers = _only(np.where(real, codes, -1), workers)
    out = {"question": question, "worker": codes}
    known = None
    out["value"] = value
    if plan.answer_variance:
        variance = numbers[plan.answer_variance][keep]
        out["precision"] = _precision(variance, rows, real)
    if plan.worker_variance:
        variance = numbers[plan.worker_variance][keep]
        known = _known(plan.worker_variance, variance, codes, len(workers), rows)
    groups = None
    if plan.group:
        out["group"], groups = _distinct(_labels(kept[plan.group]), None)
    for k, name in enumerate(plan.covariates):
        out[f"covariate-{k}"], units[name] = _numbers(
            "covariates", name, kept[name], plan.rules.writing, question
        )
    if plan.gold:
        out["gold"], units[plan.gold] = _numbers(
            "gold", plan.gold, kept[plan.gold], plan.rules.writing, question
        )
    names = plan.schema.names
    laid = pyarrow.record_batch([pyarrow.array(out[name]) for name in names], names=names)
    laid, counts = in_order(laid, borders)
    arrays = dict(zip(names, laid.columns, strict=True))
    return Rows(
        columns=arrays,
        counts=counts,
        workers=workers,
        groups=groups,
        known=known,
        n_rows=n_rows,
        n_missing=int(np.count_nonzero(missing)),
        n_malformed=int(np.count_nonzero(malformed)),
        units=units,
        cells=[cell._replace(row=first + cell.row) for cell in cells[:MOST_ROWS]],
    )


# -- variances and covariates ----------------------------------------------------------------------


def _precision(variance: Floats, rows: Ints, real: Bools) -> Floats:
    """Turn variances of answers into precisions."""
    bad = real & ~usable_variances(variance)
    if bad.any():
        places = f"first at {first_rows(bad, rows, variance)}"
        raise bad_variances(bad.sum(), len(bad), places, marked_rows(bad, rows))
    precision: Floats = 1.0 / np.where(real, variance, 1.0)
    return precision


def _known(column: str, variance: Floats, codes: Indices, n: int, rows: Ints) -> Floats:
    """Return the variance of each worker, NaN where it is not known."""
    known = np.full(n, np.nan)
    has = ~np.isnan(variance) & (codes >= 0)
    known[codes[has]] = variance[has]
    differs = np.zeros(len(has), dtype=bool)
    differs[has] = known[codes[has]] != variance[has]
    if differs.any():
        places = first_rows(differs, rows, variance)
        raise two_variances(
            column,
            f"a worker has two different variances, first at {places}",
            marked_rows(differs, rows),
        )
    return known


def _numbers(
    argument: str, name: str, series: Any, writing: Writing, question: Any
) -> tuple[Floats, Counter[str]]:
    """Return covariates or truths, NaN where there is none, and how often each unit was there."""
    numbers, bad, units = read_numbers(series, name, writing)
    wrong = ~(np.abs(numbers) <= LARGEST_ANSWER) & ~np.isnan(numbers)
    if bad is not None:
        wrong |= bad
    if wrong.any():
        row = int(np.argmax(wrong))
        with about(argument):
            raise unusable(question[row].as_py(), name, series[row].as_py(), argument)
    return numbers, units or Counter()


# -- ids -------------------------------------------------------------------------------------------


def _labels(series: Any) -> Any:
    """Return labels, null where there is none: NaN and blank text are none."""
    pyarrow, compute = need("pyarrow", "files"), need("pyarrow.compute", "files")
    types = pyarrow.types
    if types.is_dictionary(series.type):
        series = series.cast(series.type.value_type)
    if types.is_floating(series.type):
        none = compute.is_nan(series)
    elif types.is_string(series.type) or types.is_large_string(series.type):
        none = compute.equal(compute.utf8_length(compute.utf8_trim_whitespace(series)), 0)
    else:
        return series
    return compute.if_else(none, pyarrow.scalar(None, series.type), series)


def _present(ids: Any) -> Bools:
    """Tell which rows have an id."""
    present: Bools = ids.is_valid().to_numpy(zero_copy_only=False)
    return present


def _question_ids(plan: RowPlan, ids: Any) -> Any:
    """Return ids as they are sorted."""
    pyarrow, compute = need("pyarrow", "files"), need("pyarrow.compute", "files")
    if pyarrow.types.is_dictionary(ids.type):
        ids = ids.cast(ids.type.value_type)
    if not plan.whole:
        try:
            return ids.cast(plan.key_type)
        except pyarrow.ArrowInvalid as error:
            raise AnswersError(
                f"Column {quoted(plan.question)}: holds whole numbers beyond 64 bits. Turn them into text."
            ) from error
    try:
        whole = ids.cast(pyarrow.int64())
    except pyarrow.ArrowInvalid as error:
        raise NotWholeNumbersError from error
    # Without a leading zero, a plus or a space: the text such a number would be written as again.
    if not compute.all(compute.equal(whole.cast(ids.type), ids)).as_py():
        raise NotWholeNumbersError
    return whole


def _distinct(series: Any, kind: Any) -> tuple[Indices, Any]:
    """Return a code for each row, -1 where there is none, and the values the codes stand for."""
    pyarrow = need("pyarrow", "files")
    if pyarrow.types.is_dictionary(series.type) and series.dictionary.null_count:
        series = series.cast(series.type.value_type)
    if pyarrow.types.is_string_view(series.type):
        series = series.cast(pyarrow.string())
    coded = series if pyarrow.types.is_dictionary(series.type) else series.dictionary_encode()
    codes = coded.indices
    if codes.null_count:
        codes = codes.cast(pyarrow.int64()).fill_null(-1)
    values = coded.dictionary if kind is None else coded.dictionary.cast(kind)
    return _only(codes.to_numpy().astype(np.int32, copy=False), values)


def _only(codes: Indices, values: Any) -> tuple[Indices, Any]:
    """Leave out values that no row has."""
    used = np.bincount(codes + 1, minlength=len(values) + 1)[1:] > 0
    if used.all():
        return codes, values
    number = np.append(np.cumsum(used) - 1, -1).astype(np.int32)  # -1 finds the last
    return number[codes], values.take(np.flatnonzero(used))


class Registry:
    """Distinct values of all batches, numbered as they come."""

    def __init__(self) -> None:
        self.values: Any = None

    def __len__(self) -> int:
        return 0 if self.values is None else len(self.values)

    def numbers(self, distinct: Any) -> Indices:
        """Return the number of each of these values."""
        pyarrow, compute = need("pyarrow", "files"), need("pyarrow.compute", "files")
        if self.values is None:
            self.values = distinct.unique()
        found = compute.index_in(distinct, value_set=self.values)
        if found.null_count:
            new = distinct.filter(compute.is_null(found)).unique()
            self.values = pyarrow.concat_arrays([self.values, new])
            found = compute.index_in(distinct, value_set=self.values)
        numbers: Indices = found.to_numpy().astype(np.int32, copy=False)
        return numbers
