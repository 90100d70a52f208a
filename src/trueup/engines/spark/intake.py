"""What is in a Spark DataFrame of answers: who the workers are, and what is wrong with the rows, in one pass.

Text is read as a number by the same rule as in `trueup.io.numbers`. Rows of a Spark DataFrame have no order and no
number, so that messages give examples of what was found instead of places.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.answers.build import known_variance
from trueup.core.libraries import need
from trueup.engines import vectors
from trueup.engines.spark.question_data import SparkQuestionData
from trueup.errors import MOST_ROWS, AnswersError, listing, option, quoted
from trueup.io.columns import check_titles, choose
from trueup.io.encode import no_ids
from trueup.io.number_advice import advise
from trueup.io.number_text import MISSING_TEXTS
from trueup.io.numbers import or_other_column
from trueup.io.question_data.match import unusable
from trueup.io.read_options import check_reading
from trueup.io.readers.answer_column import LARGEST_ANSWER
from trueup.io.series import not_utf8
from trueup.io.table import Ids, Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

    from trueup.core.arrays import Floats
    from trueup.io.columns import IdNames, Roles
    from trueup.io.number_text import Writing
    from trueup.io.question_data import QuestionColumns
    from trueup.io.read_options import ReadOptions
    from trueup.io.readers.answer_column import AnswerRules

# Java reads these: i for either case, U for spaces of any script.
NUMBER_TEXT = r"(?iU)\A\s*({number})\s*\z"
MISSING_TEXT = rf"(?iU)\A\s*({'|'.join(map(re.escape, MISSING_TEXTS))})\s*\z"
# Distinct values that are looked at to find out how numbers are written.
LOOKED_AT = 1000
# Groups of which the driver can know the labels.
MOST_LABELS = 1 << 20
# How columns begin that tell of texts that are not UTF-8.
NO_TEXT = "no_text_"
# Columns of the table of answers; groups, covariates and truths have the names of their vectors.
QUESTION, WORKER, ANSWER, VARIANCE, KNOWN = "question", "worker", "answer", "variance", "known"


@dataclass(frozen=True, eq=False)
class CheckedRows:
    """A table of answers that have been looked at.

    Attributes
    ----------
    rows : DataFrame
        Question, worker, answer and, where it is known, its variance; none of them missing but the latter. With what
        is known of the questions there are also rows that tell only of that, without an answer.
    worker_ids : Ids
        All workers, in order of their ids.
    worker_variance : array or None
        Known variance of each worker, NaN where unknown.
    question_data : SparkQuestionData
        What the rows say about the questions.
    n_rows, n_missing, n_answers : int
        Rows, and how many of them have no answer or one.
    names : IdNames
        What questions and workers are called.
    """

    rows: DataFrame
    worker_ids: Ids
    worker_variance: Floats | None
    question_data: SparkQuestionData
    n_rows: int
    n_missing: int
    n_answers: int
    names: IdNames


def check_rows(frame: DataFrame, read: ReadOptions, columns: QuestionColumns) -> CheckedRows:
    """Look at all rows once: find the workers, count what is missing, refuse what cannot be used.

    The labels of groups take one more look at their column.
    """
    need("pyspark", "spark")
    answer_variance, worker_variance = read.answer_variance, read.worker_variance
    check_reading(read.duplicates, answer_variance, worker_variance)
    known = worker_variance if isinstance(worker_variance, str) else None
    rules = read.rules
    for name in ("strip_units", "skip_bad"):
        if getattr(read, name):
            raise AnswersError(
                "is not there on Spark, where all that is read is numbers.",
                argument=name,
                remedy="Leave it out and mend the column first, or estimate in memory or on disk.",
            )
    roles = choose(
        frame.columns,
        question=read.question,
        worker=read.worker,
        answer=read.answer,
        panel=None,
        numbers=[name for name in (answer_variance, known) if name is not None],
        is_number=partial(_is_number, frame),
    )
    check_titles(roles.id_titles)
    columns.check(frame.columns, roles.one_question)
    numbers = {ANSWER: roles.answer}
    if answer_variance is not None:
        numbers[VARIANCE] = answer_variance
    if known is not None:
        numbers[KNOWN] = known
    question_data = SparkQuestionData(columns)
    numbers |= {
        part: name for part, name in question_data.column_of.items() if part != vectors.GROUP
    }
    table = _table(frame, roles, numbers, columns.groups, rules.writing)
    counts = _count(table, numbers, rules.valid)
    for number, name in enumerate(_texts(frame, roles, numbers, columns.groups)):
        if any(counts[f"{NO_TEXT}{number}"].to_pylist()):
            raise not_utf8(name)
    _check(frame, roles, numbers, counts, rules)
    if columns.groups is not None:
        question_data = question_data._replace(labels=_labels(table, columns.groups))
    return _checked(table, counts, numbers, worker_variance, question_data, roles.id_titles)


def _is_number(frame: DataFrame, name: str) -> bool:
    """Tell whether a column can hold answers: numbers, or text that may write some."""
    from pyspark.sql import types

    return isinstance(_type_of(frame, name), types.NumericType)


def _table(
    frame: DataFrame,
    roles: Roles,
    numbers: Mapping[str, str],
    groups: str | None,
    writing: Writing,
) -> DataFrame:
    """Select ids, labels and numbers, whether what stands for a number is none, and whether texts are not UTF-8."""
    from pyspark.sql import functions

    columns = [
        _id(frame, roles.one_question).alias(QUESTION),
        _id(frame, roles.worker).alias(WORKER),
    ]
    for part, name in numbers.items():
        value, bad = _number(frame, name, part, writing)
        columns += [value.alias(part), bad.alias(f"bad_{part}")]
    if groups is not None:
        columns.append(_label(frame, groups).alias(vectors.GROUP))
    for number, name in enumerate(_texts(frame, roles, numbers, groups)):
        letters = _column(name).cast("string")
        columns.append((~functions.is_valid_utf8(letters)).alias(f"{NO_TEXT}{number}"))
    return frame.select(*columns)


def _texts(
    frame: DataFrame, roles: Roles, numbers: Mapping[str, str], groups: str | None
) -> list[str]:
    """Return the columns of text that are read."""
    from pyspark.sql import types

    names = dict.fromkeys([roles.one_question, roles.worker, *numbers.values(), groups])
    return [name for name in names if name and isinstance(_type_of(frame, name), types.StringType)]


def _column(name: str) -> Column:
    from pyspark.sql import functions

    return functions.col("`" + name.replace("`", "``") + "`")


def _type_of(frame: DataFrame, name: str) -> Any:
    return next(each.dataType for each in frame.schema.fields if each.name == name)


def _id(frame: DataFrame, name: str) -> Column:
    """Return a column of ids, null where there is none."""
    from pyspark.sql import functions, types

    kind = _type_of(frame, name)
    if isinstance(kind, types.StringType):
        return _column(name).cast("string")  # compared letter by letter, whatever its collation
    if isinstance(kind, types.FractionalType) and not isinstance(kind, types.DecimalType):
        # 0.0 and -0.0 are one id
        plain = _column(name).cast("double") + functions.lit(0.0)
        return functions.nullif(plain, functions.lit(float("nan")))
    times = (types.DateType, types.TimestampType, types.TimestampNTZType)
    plain_types = (types.NumericType, types.BooleanType, *times)
    if isinstance(kind, plain_types):
        return _column(name)
    raise no_ids(name, kind.simpleString())


def _label(frame: DataFrame, name: str) -> Column:
    """Return a column of labels, null where there is none: NaN and blank text are none."""
    from pyspark.sql import functions, types

    label = _id(frame, name)
    if isinstance(_type_of(frame, name), types.StringType):
        return functions.when(label.rlike(r"(?U)\S"), label)
    return label


def _labels(table: DataFrame, groups: str) -> Any:
    """Return all labels in order, a pyarrow array."""
    import pyarrow.compute as pc

    given = table.select(vectors.GROUP).where(table[vectors.GROUP].isNotNull())
    some = given.distinct().limit(MOST_LABELS + 1)
    labels = some.toArrow()[vectors.GROUP].combine_chunks()
    if len(labels) > MOST_LABELS:
        raise AnswersError(
            f"column {quoted(groups)} has more than {MOST_LABELS:,} labels.",
            argument="groups",
            remedy="Groups are of questions that are alike: give fewer, or a number as a covariate.",
        )
    return labels.take(pc.sort_indices(labels))


def _number(frame: DataFrame, name: str, part: str, writing: Writing) -> tuple[Column, Column]:
    """Return a column as numbers, null where there is none, and whether something else stands there."""
    from pyspark.sql import functions, types

    column, kind = _column(name), _type_of(frame, name)
    bad = functions.lit(False)
    if isinstance(kind, types.StringType):
        text = column.cast("string")
        number = functions.regexp_extract(text, NUMBER_TEXT.format(number=writing.pattern), 1)
        plain = number
        if writing.separators:
            plain = functions.regexp_replace(plain, writing.separators, "")
        if writing.point != ".":
            plain = functions.replace(plain, functions.lit(writing.point), functions.lit("."))
        value = plain.try_cast("double")
        missing = text.isNull() | text.rlike(MISSING_TEXT)
        bad = ~missing & (number == "")
    elif isinstance(kind, types.NumericType | types.BooleanType | types.NullType):
        value = column.cast("double")
    else:
        raise AnswersError(
            f"Column {quoted(name)}: holds {quoted(kind.simpleString())} values, not numbers.",
            remedy="Convert them first" + or_other_column("answer" if part == ANSWER else "") + ".",
        )
    return functions.nullif(value, functions.lit(float("nan"))), bad


def _count(table: DataFrame, numbers: Mapping[str, str], valid: tuple[float, float] | None) -> Any:
    """Count rows, answers and faults, worker by worker; return a pyarrow table."""
    from pyspark.sql import functions

    answered = table[ANSWER].isNotNull()
    counts = [
        functions.count("*").alias("rows"),
        functions.count(ANSWER).alias("answers"),
        functions.count_if(answered & table[QUESTION].isNull()).alias("no_question"),
    ]
    for part in numbers:
        if part not in (VARIANCE, KNOWN):
            large = functions.abs(table[part]) > LARGEST_ANSWER
            counts.append(functions.count_if(large).alias(f"large_{part}"))
        counts += [
            functions.count_if(table[f"bad_{part}"]).alias(f"bad_{part}"),
            functions.count_if(functions.abs(table[part]) == float("inf")).alias(f"inf_{part}"),
        ]
    no_texts = [name for name in table.columns if name.startswith(NO_TEXT)]
    counts += [functions.count_if(table[name]).alias(name) for name in no_texts]
    if valid is not None:
        outside = (table[ANSWER] < valid[0]) | (table[ANSWER] > valid[1])
        counts.append(functions.count_if(outside).alias("outside"))
    if KNOWN in numbers:
        here = functions.when(answered, table[KNOWN])
        counts += [functions.min(here).alias("least"), functions.max(here).alias("most")]
    return table.groupBy(WORKER).agg(*counts).toArrow()


def _check(
    frame: DataFrame,
    roles: Roles,
    numbers: Mapping[str, str],
    counts: Any,
    rules: AnswerRules,
) -> None:
    """Refuse rows that cannot be used."""
    import pyarrow.compute as pc

    n_rows = pc.sum(counts["rows"]).as_py() or 0

    def found(name: str) -> int:
        return pc.sum(counts[name]).as_py() or 0

    for part, name in numbers.items():
        if part not in (ANSWER, VARIANCE, KNOWN):
            if found(f"bad_{part}") or found(f"large_{part}"):
                raise _unusable(frame, roles, name, part, rules.writing)
            continue
        if count := found(f"bad_{part}"):
            bad = _number(frame, name, part, rules.writing)[1]
            raise fault(
                name,
                count,
                n_rows,
                ("is not a number", "are not numbers"),
                _examples(frame, name, bad),
                _advice(frame, name, bad, rules.writing)
                or "Remove or mend these rows"
                + or_other_column("answer" if part == ANSWER else "")
                + ".",
            )
        if count := found(f"inf_{part}"):
            raise fault(
                name,
                count,
                n_rows,
                ("is infinite", "are infinite"),
                "",
                "Remove these rows, or leave the value empty where there is none.",
            )
        if part not in (VARIANCE, KNOWN) and (count := found(f"large_{part}")):
            beyond = f"beyond ±{LARGEST_ANSWER:g}"
            raise fault(
                name,
                count,
                n_rows,
                (f"is {beyond}", f"are {beyond}"),
                "",
                "Their squares overflow: remove these rows, or give answers in a larger unit.",
            )
    if rules.valid is not None and (count := found("outside")):
        raise fault(
            roles.answer,
            count,
            n_rows,
            (f"is {rules.range_in_words}", f"are {rules.range_in_words}"),
            "",
            "Remove these rows, or pass another range as " + option("valid", None) + ".",
        )
    if not found("answers"):
        what = f"all {n_rows:,} values are missing" if n_rows else "the table has 0 rows"
        raise AnswersError(
            f"Column {quoted(roles.answer)}: no answers, {what}. Give at least one answer."
        )
    nobody = pc.sum(counts.filter(pc.is_null(counts[WORKER]))["answers"]).as_py() or 0
    for name, count in ((roles.one_question, found("no_question")), (roles.worker, nobody)):
        if count:
            raise fault(
                name,
                count,
                n_rows,
                ("is missing", "are missing"),
                "",
                "Every answer needs an id here: fill it in, or remove these rows.",
            )


def _unusable(
    frame: DataFrame, roles: Roles, name: str, part: str, writing: Writing
) -> AnswersError:
    """Build the error about the first covariate or truth, in order of the questions, that is not a usable number."""
    from pyspark.sql import functions

    value, bad = _number(frame, name, part, writing)
    rows = frame.where(bad | (functions.abs(value) > LARGEST_ANSWER)).select(
        _id(frame, roles.one_question).alias(QUESTION), _column(name).alias("value")
    )
    row = rows.orderBy(QUESTION).limit(1).collect()[0]
    argument = "gold" if part == vectors.GOLD else "covariates"
    return unusable(row[QUESTION], name, row["value"], argument).about(argument)


def _examples(frame: DataFrame, name: str, bad: Column) -> str:
    some = frame.where(bad).select(_column(name).alias("value")).distinct()
    rows = some.orderBy("value").limit(MOST_ROWS).collect()
    return f", such as {listing([row['value'] for row in rows], MOST_ROWS)}"


def _advice(frame: DataFrame, name: str, bad: Column, writing: Writing) -> str:
    """Name the option that reads all of many values, bad ones and others; nothing where there is none."""
    values: list[object] = []
    for which in (bad, ~bad):
        some = frame.where(which).select(_column(name).cast("string").alias("value")).distinct()
        values += [row["value"] for row in some.limit(LOOKED_AT).collect()]
        if which is bad:
            rows = range(len(values))
    told = advise(values, rows, writing, skips=False)
    # Spark does not strip units, so do not advise it.
    fits = told.notation and not any("strip_units" in fix for fix in told.fixes)
    return told.remedy if fits else ""


def fault(
    name: str, count: int, n_rows: int, what: tuple[str, str], examples: str, remedy: str
) -> AnswersError:
    """Say how many values of a column cannot be used, and why."""
    noun = "value" if n_rows == 1 else "values"
    return AnswersError(
        f"Column {quoted(name)}: {count:,} of {n_rows:,} {noun} {what[count > 1]}{examples}.",
        remedy=remedy,
    )


def _checked(
    table: DataFrame,
    counts: Any,
    numbers: Mapping[str, str],
    worker_variance: Any,
    question_data: SparkQuestionData,
    names: IdNames,
) -> CheckedRows:
    """Put the workers in order, and what is known of them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    n_rows, n_answers = (int(pc.sum(counts[name]).as_py()) for name in ("rows", "answers"))
    counts = counts.filter(pc.not_equal(counts["answers"], pa.scalar(0)))
    counts = counts.take(pc.sort_indices(counts[WORKER])).combine_chunks()
    ids = counts[WORKER].combine_chunks()
    needed = [QUESTION, WORKER, ANSWER] + ([VARIANCE] if VARIANCE in numbers else [])
    wanted = table[ANSWER].isNotNull()
    if question_data.column_of:
        wanted |= table[QUESTION].isNotNull()
    return CheckedRows(
        rows=table.where(wanted).select(*needed, *question_data.column_of),
        worker_ids=Ids(ids),
        worker_variance=_known(counts, Ids(ids), numbers, worker_variance),
        question_data=question_data,
        n_rows=n_rows,
        n_missing=n_rows - n_answers,
        n_answers=n_answers,
        names=names,
    )


def _known(
    counts: Any, ids: Ids, numbers: Mapping[str, str], worker_variance: Any
) -> Floats | None:
    """Return the known variance of each worker."""
    given = {}
    if KNOWN in numbers:
        least, most = (counts[name].to_numpy() for name in ("least", "most"))
        differs = np.flatnonzero(least < most)
        if len(differs):
            raise AnswersError(
                f"Column {quoted(numbers[KNOWN])}: a worker has two different variances, such as "
                f"worker {quoted(ids.tolist(differs[:1])[0])} ({least[differs[0]]}, {most[differs[0]]}). "
                "Give one variance per worker, or use answer_variance for variances of single answers."
            )
        given = {worker_variance: least.astype(np.float64)}
    workers = np.arange(len(ids))
    one_each = Table(
        question=workers,
        worker=workers,
        answer=np.zeros(len(ids)),
        question_ids=ids,
        worker_ids=ids,
        n_rows=len(ids),
        kind="",
        numbers=given,
        ordered=False,
    )
    return known_variance(one_each, worker_variance)
