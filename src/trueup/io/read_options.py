"""How answers are read: names of columns, how a file is written, repeated answers, known variances."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, get_args

from trueup.core.keywords import keyword
from trueup.core.parameters import yes_or_no
from trueup.errors import AnswersError, quoted
from trueup.io.readers.answer_column import AnswerRules
from trueup.io.readers.evaluations.names import check_format
from trueup.io.readers.row_filter import check_where

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Duplicates = Literal["error", "mean", "mean-all", "first"]
#: Options that only files have.
FILE_OPTIONS = ("sep", "encoding", "skip_lines", "sheet", "worker_from", "from_format", "sql")
#: Options of how numbers are written, in any table.
WRITING_OPTIONS = ("decimal", "thousands", "strip_units")
#: Options of what is taken for an answer.
ANSWER_OPTIONS = (*WRITING_OPTIONS, "skip_bad", "valid")


@dataclass(frozen=True, eq=False)
class ReadOptions:
    """How answers are read; see `trueup.Answers.from_frame` and `from_file`."""

    question: str | Sequence[str] = keyword(
        "question", "Column of the questions, or several columns with commas between.", str
    )
    worker: str = keyword("worker", "Column of the workers.", str)
    answer: str = keyword("answer", "Column of the answers.", str)
    panel: str | None = keyword(None, "Column of independent problems.", None)
    duplicates: Duplicates = keyword(
        "error",
        "What to do when a worker answered a question more than once. mean stops where the answers differ in another "
        "column of few values, such as the model that was judged; mean-all does not.",
        Literal["error", "mean", "mean-all", "first"],
    )
    worker_variance: str | Mapping[Any, float] | Any = keyword(
        None, "Column with the known variance of each worker.", str | None
    )
    answer_variance: str | Any = keyword(
        None, "Column with the known variance of each answer.", str | None
    )
    sep: str | None = keyword(
        None,
        "Character between the values of a text file; by default found from its header.",
        str | None,
    )
    decimal: str | None = keyword(
        None, "Decimal mark of numbers in text.", Literal[".", ","] | None
    )
    thousands: str | None = keyword(
        None,
        "What separates groups of three digits in text: a comma, point, apostrophe or space, or the word for it.",
        str | None,
    )
    strip_units: bool = keyword(
        False,
        "Take off the unit, currency or percent sign beside numbers: all have the same one or none.",
        bool,
    )
    skip_bad: bool = keyword(
        False,
        "Set rows aside whose answer is not a number or not valid, or that lack a question or worker, and count them.",
        bool,
    )
    valid: tuple[float, float] | None = keyword(
        None,
        "LOW and HIGH: answers outside are an error, or set aside with --skip-bad.",
        tuple[float, float] | None,
    )
    encoding: str | None = keyword(None, "Encoding of a text file, such as latin-1.", str | None)
    skip_lines: int | None = keyword(
        None,
        "Lines of a text file, or rows of a sheet, above the names of the columns.",
        int | None,
    )
    sheet: str | None = keyword(None, "Sheet of an Excel workbook with several.", str | None)
    worker_from: str | None = keyword(
        None,
        "Take the name of each file, or of its folder, for the worker who gave all answers in it.",
        Literal["file", "folder"] | None,
    )
    from_format: str | None = keyword(
        None,
        "Format of FILE where its content does not tell it; table reads it as a table whatever it looks like.",
        Literal[
            "inspect", "promptfoo", "promptfoo-all", "deepeval", "label-studio", "argilla", "hubverse", "table"
        ]
        | None,
    )  # fmt: skip
    where: Any = keyword(
        None,
        "COLUMN=VALUE: keep only rows with this value; may be given several times, for one column to keep any of them.",
        list[str] | None,
    )
    wide: bool | str | None = keyword(
        None,
        "One row per question and a column per worker, one row per worker and a column per question, or one row per "
        "answer; by default found from the columns.",
        Literal["questions", "workers", "long"] | None,
    )
    sql: str | None = keyword(
        None, "Query to run on FILE, a DuckDB or SQLite database, which is only read.", str | None
    )

    anonymous: bool = keyword(
        False,
        'Show pseudonyms for the workers ("worker 1", "worker 2", ..., in random order) instead of their ids.',
        bool,
    )

    def __post_init__(self) -> None:
        """Check what can be checked before anything is read."""
        yes_or_no("anonymous", self.anonymous)
        rules = self.rules
        check_format(self.from_format)
        object.__setattr__(self, "where", check_where(self.where))
        object.__setattr__(self, "thousands", rules.writing.thousands)
        object.__setattr__(self, "valid", rules.valid)

    @property
    def rules(self) -> AnswerRules:
        """What is taken for an answer."""
        return AnswerRules.of(**{name: getattr(self, name) for name in ANSWER_OPTIONS})

    @property
    def file_options(self) -> dict[str, Any]:
        """The options of files, of their rows and of numbers in them that were given."""
        values = {name: getattr(self, name) for name in (*FILE_OPTIONS, "where", *WRITING_OPTIONS)}
        return {
            name: value
            for name, value in values.items()
            if value is not None and value is not False
        }

    @property
    def only_in_memory(self) -> list[str]:
        """The options that were given and that only answers in memory have."""
        names = ("wide", "sql", "sheet", "worker_from", "from_format", "where")
        return [name for name in names if getattr(self, name) not in (None, False)]

    @property
    def given(self) -> dict[str, Any]:
        """All options that are not None; `anonymous` only where it is asked for."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        values["anonymous"] = self.anonymous or None
        return {name: value for name, value in values.items() if value is not None}


def check_reading(duplicates: Any, answer_variance: Any, worker_variance: Any) -> None:
    """Check the rule for repeated answers, and that variances are known of answers or of workers, not of both."""
    if not isinstance(duplicates, str) or duplicates not in get_args(Duplicates):
        raise AnswersError(
            f'{quoted(duplicates)} is not "error", "mean", "mean-all" or "first".',
            argument="duplicates",
        )
    if answer_variance is not None and worker_variance is not None:
        raise AnswersError(
            "worker_variance, answer_variance: give one of them. Add a worker's own variance to "
            "that of its answers if both are known."
        )
