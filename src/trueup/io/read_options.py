"""How answers are read: names of columns, how a file is written, repeated answers, known variances."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, get_args

from trueup.core.keywords import keyword
from trueup.core.parameters import yes_or_no
from trueup.errors import AnswersError, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Duplicates = Literal["error", "mean", "first"]
#: Options that only files have.
FILE_OPTIONS = ("sep", "decimal", "encoding", "sql")


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
        "What to do when a worker answered a question more than once.",
        Literal["error", "mean", "first"],
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
    decimal: str | None = keyword(None, "Decimal mark of a text file.", Literal[".", ","] | None)
    encoding: str | None = keyword(None, "Encoding of a text file, such as latin-1.", str | None)
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
        yes_or_no("anonymous", self.anonymous)

    @property
    def file_options(self) -> dict[str, Any]:
        """The options of files that were given."""
        return {
            name: getattr(self, name) for name in FILE_OPTIONS if getattr(self, name) is not None
        }

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
            f'{quoted(duplicates)} is not "error", "mean" or "first".', argument="duplicates"
        )
    if answer_variance is not None and worker_variance is not None:
        raise AnswersError(
            "worker_variance, answer_variance: give one of them. Add a worker's own variance to "
            "that of its answers if both are known."
        )
