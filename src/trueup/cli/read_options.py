"""How the answers are read: the options that all commands on a file have in common."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from trueup.answers.answers import Answers
    from trueup.io.question_data import QuestionDataRequest

LONG = "long"


@Parameter(name="*")
@dataclass(frozen=True)
class Form:
    """Options that say how a file is written."""

    question: str = "question"
    """Column of the questions."""
    worker: str = "worker"
    """Column of the workers."""
    answer: str = "answer"
    """Column of the answers."""
    wide: Literal["questions", "workers", "long"] | None = None
    """One row per question and a column per worker, one row per worker and a column per question, or one row per
    answer; by default found from the columns."""
    sep: str | None = None
    """Character between the values of a text file; by default found from its header."""
    decimal: Literal[".", ","] | None = None
    """Decimal mark of a text file."""
    encoding: str | None = None
    """Encoding of a text file, such as latin-1."""
    sql: str | None = None
    """Query to run on FILE, a DuckDB or SQLite database, which is only read."""


@Parameter(name="*")
@dataclass(frozen=True)
class Reading(Form):
    """Options of reading a file."""

    duplicates: Literal["error", "mean", "first"] = "error"
    """What to do when a worker answered a question more than once."""
    transform: Literal["log", "log1p", "logit"] | None = None
    """Scale on which answers are combined."""
    bounds: Annotated[tuple[float, float] | None, Parameter(negative=())] = None
    """LOW and HIGH: estimates and intervals stay inside."""
    worker_variance: str | None = None
    """Column with the known variance of each worker."""
    answer_variance: str | None = None
    """Column with the known variance of each answer."""

    def answers(self, file: str) -> "Answers":
        """Read the answers."""
        import warnings

        from trueup.answers.answers import Answers
        from trueup.errors import TrueupWarning

        with warnings.catch_warnings():
            # How a file was understood must be seen, whatever else is kept quiet.
            warnings.simplefilter("always", TrueupWarning)
            warnings.showwarning = _show
            return self._answers(Answers, file)

    def _answers(self, kind: Any, file: str) -> "Answers":
        answers: Answers = kind.from_file(
            file,
            sep=self.sep,
            decimal=self.decimal,
            encoding=self.encoding,
            wide=False if self.wide == LONG else self.wide,
            sql=self.sql,
            question=self.question,
            worker=self.worker,
            answer=self.answer,
            duplicates=self.duplicates,
            transform=self.transform,
            bounds=self.bounds,
            worker_variance=self.worker_variance,
            answer_variance=self.answer_variance,
        )
        return answers

    def question_data(
        self,
        groups: str | None = None,
        covariates: "Sequence[str] | None" = None,
        gold: str | None = None,
        gold_argument: str = "gold",
    ) -> "QuestionDataRequest":
        """Return the request for columns of the answers, and files that are read like them."""
        from trueup.io.question_data import QuestionDataRequest

        options = {name: getattr(self, name) for name in ("sep", "decimal", "encoding", "sql")}
        return QuestionDataRequest(groups, covariates, gold, self.question, options, gold_argument)

    def truth(self, given: str | None, answers: "Answers", file: str) -> Any:
        """Read known truths, one number per question and NaN where unknown; None where none are given."""
        from trueup._estimate import read_question_data

        request = self.question_data(gold=given, gold_argument="truth")
        return read_question_data(request, answers, file).gold


def _show(message: Warning | str, *_: Any, **__: Any) -> None:
    import sys

    from trueup.cli.wording import as_options

    print(f"trueup: {as_options(str(message))}", file=sys.stderr)


def inputs(file: str, *requests: "QuestionDataRequest") -> "list[Path]":
    """Return the files that must not be overwritten: those of the answers, and others that are read."""
    from trueup.io.paths import find_paths

    others = [path for request in requests for path in request.files]
    return [*([] if file == "-" else find_paths(file).paths), *others]
