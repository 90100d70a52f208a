"""How the answers are read: the options that all commands on a file have in common."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

if TYPE_CHECKING:
    from trueup.answers import Answers

LONG = "long"


@Parameter(name="*")
@dataclass(frozen=True)
class Reading:
    """Options of reading a file."""

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

        from trueup.answers import Answers
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

    def truth(self, given: str | None, answers: "Answers", file: str, argument: str) -> Any:
        """Read known truths, one number per question and NaN where unknown; None where none are given."""
        from trueup.io.attributes import read_gold

        return read_gold(given, answers, file, question=self.question, argument=argument)


def _show(message: Warning | str, *_: Any, **__: Any) -> None:
    import sys

    print(f"trueup: {message}", file=sys.stderr)


def inputs(file: str) -> list[Any]:
    """Return the files that must not be overwritten."""
    from trueup.io.paths import find_paths

    return [] if file == "-" else list(find_paths(file).paths)
