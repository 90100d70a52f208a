"""Answers: the one input of everything. Who said what about which question, as a sparse matrix.

The answers are kept question by question, the workers of a question in order, and each value
relative to the *centre* of its question, its lower median. The centre is itself an answer, so that
equal answers differ by exactly 0 and one absurd answer does not eat the digits of the others.

Many independent problems, *panels*, can live in one Answers: their questions and workers are
numbered one panel after another, so that the whole is one block-diagonal matrix and an algorithm
runs over all panels in the same few passes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.answers import panels
from trueup.answers.build import build
from trueup.answers.cut import cut_blocks
from trueup.core.libraries import release_unused
from trueup.errors import AnswersError
from trueup.io.read_options import ANSWER_OPTIONS, FILE_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike

    from trueup.answers.block import Block
    from trueup.answers.origin import Origin
    from trueup.core.arrays import Floats, Indices, Ints
    from trueup.io.columns import IdNames
    from trueup.io.read_options import Duplicates
    from trueup.io.rejects import Rejects
    from trueup.io.table import Ids, Table


@dataclass(frozen=True, eq=False, repr=False)
class Answers:
    """Numeric answers of workers to questions, ready for every algorithm.

    Make one with `from_frame`, `from_matrix`, `from_sparse`, `from_file` or `from_sql`; `Answers.of`
    takes any of their inputs.

    Attributes
    ----------
    indptr, workers, values : arrays
        The answers to question j are at positions `indptr[j] .. indptr[j+1]`: number of the worker,
        and answer minus `centre[j]`.
    given : array or None
        The answers as given, where `values + centre` loses digits of them; None: it does not.
    panel_questions, panel_workers : arrays
        Panel b has the questions and the workers from entry b up to entry b+1.
    precision : array or None
        `answer_variance / variance of this answer`, where the latter is known; its mean is 1.
    worker_variance : array or None
        Known variance of each worker, NaN where unknown.
    question_source, worker_source : array or None
        Number of the question (worker) in the Answers this one was sampled from; None: the same.
    """

    indptr: Ints
    workers: Indices
    values: Floats
    centre: Floats
    panel_questions: Ints
    panel_workers: Ints
    origin: Origin
    precision: Floats | None = None
    answer_variance: float = np.nan
    worker_variance: Floats | None = None
    question_source: Ints | None = None
    worker_source: Ints | None = None
    given: Floats | None = None

    # -- making ------------------------------------------------------------------------------------

    @classmethod
    def of(cls, data: Any, **options: Any) -> Answers:
        """Make Answers of whatever holds answers: a data frame, a path, an array, a sparse matrix.

        See `from_frame`, `from_file`, `from_matrix` and `from_sparse` for the options of each.
        """
        from trueup.io.paths import is_path

        given = {
            name
            for name, value in options.items()
            if value is not None and (value is not False or name == "wide")
        }
        if isinstance(data, Answers):
            too_late = given - {"question", "worker", "answer", "duplicates", "question_data"}
            if too_late:
                raise AnswersError(
                    f"{min(too_late)}: belongs where the Answers are made; pass it to Answers.of."
                )
            if not data.n_answers:  # such as a panel that nobody answered
                raise AnswersError("answers: found none. Give at least one answer.")
            return data
        if is_path(data):
            return cls.from_file(data, **options)
        for name in FILE_OPTIONS:
            options.pop(name, None)
            if name in given:
                raise AnswersError(
                    "is for files.", argument=name, remedy="Leave it out for data in memory."
                )
        is_sparse = hasattr(data, "tocoo") and hasattr(data, "nnz")
        if is_sparse or isinstance(data, (np.ndarray, list, tuple)):
            if "panel" in given:
                raise AnswersError(
                    "is a column, and an array has none.",
                    argument="panel",
                    remedy="Give an array of three dimensions: panels x workers x questions.",
                )
            if "wide" in given:
                raise AnswersError(
                    "is for tables, and this is an array.",
                    argument="wide",
                    remedy="Give workers x questions; transpose it if it is the other way round.",
                )
            for name in ("where", *ANSWER_OPTIONS):
                if name in given:
                    raise AnswersError(
                        "is for tables, and this is an array of numbers.",
                        argument=name,
                        remedy="Leave it out, and put NaN where there is no answer.",
                    )
            columns = ("question", "worker", "answer", "panel", "wide", "where", "question_data")
            for name in (*columns, *ANSWER_OPTIONS):
                options.pop(name, None)
            make = cls.from_sparse if is_sparse else cls.from_matrix
            return make(data, **options)
        return cls.from_frame(data, **options)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        question: str | Sequence[str] = "question",
        worker: str = "worker",
        answer: str = "answer",
        panel: str | None = None,
        wide: bool | str | None = None,
        where: Any = None,
        duplicates: Duplicates = "error",
        answer_variance: str | None = None,
        worker_variance: str | Mapping[Any, float] | None = None,
        anonymous: bool = False,
        question_data: Sequence[str] = (),
        decimal: str | None = None,
        thousands: str | None = None,
        strip_units: bool = False,
        skip_bad: bool = False,
        valid: tuple[float, float] | None = None,
        read: Callable[..., Table] | None = None,
    ) -> Answers:
        """Make Answers of a table: one answer per row, or one row per question and one column per worker.

        Parameters
        ----------
        frame : pandas, polars, pyarrow or duckdb frame, or a dict of columns
            Missing answers are dropped and counted.
        question, worker, answer : str
            Names of the columns; other names that people use, such as `task`, `rater` and `score`, are recognised.
            Several columns may name a question together: `question=["sample", "model"]`.
        panel : str, optional
            Column that tells independent problems apart.
        wide : bool or {"questions", "workers"}, optional
            True or "questions": one row per question and one column per worker; "workers": the other way round;
            False: one row per answer. By default found from names and values; where both are possible that is an
            error.
        where : mapping, optional
            Column -> value, or a list of values: only rows with one of them are read. Values are compared as text,
            numbers as numbers.
        duplicates : {"error", "mean", "mean-all", "first"}
            What to do when a worker answered a question more than once. "mean" stops where these answers differ in
            another column of few values, such as the model that was judged; "mean-all" does not.
        answer_variance : str, optional
            Column with the variance of each single answer, such as a sensor's own.
        worker_variance : str or mapping, optional
            Known variance of each worker (or of some): a column, or worker id -> variance.
        anonymous : bool
            Replace the ids of the workers by pseudonyms, in random order.
        question_data : sequence of str
            Columns that say something about the questions: in a wide table they are no workers.
        decimal, thousands : str, optional
            Decimal mark of numbers in text ("." or ","), and what separates groups of three digits, if anything does
            (",", ".", " " or "'").
        strip_units : bool
            Take off the unit, currency or percent sign beside numbers in text; all must have the same one or none.
            "45 %" is read as 45.
        skip_bad : bool
            Set rows aside whose answer is not a number or not valid, or that lack a question or worker. They are
            counted, and listed in `Answers.rejects`.
        valid : (low, high), optional
            Answers outside are an error, or set aside with `skip_bad`.
        read : callable, optional
            What turns `frame` into encoded columns; by default any data frame is understood.
        """
        from trueup.io.readers.answer_column import AnswerRules
        from trueup.io.readers.frames import read_frame

        table = (read or read_frame)(
            frame,
            question=question,
            worker=worker,
            answer=answer,
            panel=panel,
            wide=wide,
            where=where,
            question_data=question_data,
            numbers=_number_columns(answer_variance, worker_variance),
            rules=AnswerRules.of(decimal, thousands, strip_units, skip_bad, valid),
        )
        fields = build(table, duplicates, answer_variance, worker_variance, anonymous=anonymous)
        release_unused()
        return cls(**fields)

    @classmethod
    def from_file(
        cls,
        path: str | PathLike[str] | Sequence[str | PathLike[str]],
        *,
        sep: str | None = None,
        encoding: str | None = None,
        skip_lines: int | None = None,
        sheet: str | None = None,
        worker_from: str | None = None,
        from_format: str | None = None,
        sql: str | None = None,
        **options: Any,
    ) -> Answers:
        """Make Answers of a file, of several files, of standard input or of a database.

        Parameters
        ----------
        path : path or list of paths
            Delimited text (.csv, .tsv, .txt), JSON (.jsonl, .ndjson, .json), Parquet or .xlsx; text and JSON also
            with .gz behind. A pattern ("answers/*.csv") or a list is read as one table; "-" is standard input.
        sep, encoding : str, optional
            How delimited text is written: the character between values (found from the header), the encoding (UTF-8).
        skip_lines : int, optional
            Lines of text, or rows of a sheet, above the one that names the columns.
        sheet : str, optional
            The sheet of an Excel workbook with several.
        worker_from : {"file", "folder"}, optional
            Each file holds the answers of one worker, who is named by the file, without its ending, or by its folder.
        from_format : str, optional
            Format of a file that an evaluation left, where its content does not tell it: "inspect", "promptfoo"
            (grades of models; "promptfoo-all" takes all), "deepeval", "label-studio", "argilla" or "hubverse"; "table"
            reads any file as a table.
        sql : str, optional
            Query to run on `path`, a DuckDB or SQLite database, without changing it.
        options
            Those of `from_frame`.
        """
        from functools import partial

        from trueup.io.readers.files import read_file

        read = partial(
            read_file,
            sep=sep,
            encoding=encoding,
            skip_lines=skip_lines,
            sheet=sheet,
            worker_from=worker_from,
            from_format=from_format,
            sql=sql,
        )
        return cls.from_frame(path, **options, read=read)

    @classmethod
    def from_sql(cls, database: str | PathLike[str], query: str, **options: Any) -> Answers:
        """Make Answers of what a query gives, run on a DuckDB or SQLite file that is only read.

        The columns are those of `from_frame`, as are the options. Rows of a query have no order.
        """
        return cls.from_file(database, sql=query, **options)

    @classmethod
    def from_matrix(
        cls,
        matrix: Any,
        *,
        answer_variance: Any = None,
        worker_variance: Any = None,
        duplicates: Duplicates = "error",
        anonymous: bool = False,
    ) -> Answers:
        """Make Answers of an array, workers x questions, NaN where there is no answer.

        A three-dimensional array is panels x workers x questions. `answer_variance` is an array of
        the same shape; `worker_variance` one number per worker, or a mapping from its row number.
        Rows and columns without an answer are left out; ids are the numbers of the others.

        Examples
        --------
        >>> Answers.from_matrix([[1.0, 2.0], [3.0, np.nan]])
        Answers(2 questions, 2 workers, 3 answers)
        """
        from trueup.io.readers.matrix import matrix_table

        table = matrix_table(matrix, answer_variance, worker_variance)
        return _build_matrix(table, duplicates, worker_variance, anonymous=anonymous)

    @classmethod
    def from_sparse(
        cls,
        matrix: Any,
        *,
        answer_variance: Any = None,
        worker_variance: Any = None,
        duplicates: Duplicates = "error",
        anonymous: bool = False,
    ) -> Answers:
        """Make Answers of a `scipy.sparse` matrix, workers x questions.

        Stored entries are answers, also stored zeros; entries that are not stored are not.
        `answer_variance` is a second such matrix with the same entries; `worker_variance` one
        number per worker, or a mapping from its row number.
        """
        from trueup.io.readers.matrix import sparse_table

        table = sparse_table(matrix, answer_variance, worker_variance)
        return _build_matrix(table, duplicates, worker_variance, anonymous=anonymous)

    # -- looking -----------------------------------------------------------------------------------

    @property
    def n_questions(self) -> int:
        """Number of questions, over all panels."""
        return len(self.centre)

    @property
    def n_workers(self) -> int:
        """Number of workers, over all panels."""
        return int(self.panel_workers[-1])

    @property
    def n_answers(self) -> int:
        """Number of answers."""
        return len(self.values)

    @property
    def n_panels(self) -> int:
        """Number of independent problems."""
        return len(self.panel_questions) - 1

    @property
    def n_rows(self) -> int:
        """Number of rows read."""
        return self.origin.n_rows

    @property
    def n_missing(self) -> int:
        """Number of rows without an answer."""
        return self.origin.n_missing

    @property
    def n_duplicates(self) -> int:
        """Number of answers that repeat a worker on a question."""
        return self.origin.n_duplicates

    @property
    def names(self) -> IdNames:
        """What questions and workers are called: the columns that hold their ids."""
        return self.origin.names

    @property
    def unit(self) -> str:
        """The unit that was stripped from the answers; empty where they have none."""
        return self.origin.unit

    @property
    def rejects(self) -> Rejects:
        """Rows that were set aside because they cannot be used."""
        return self.origin.rejects

    @property
    def counts(self) -> Ints:
        """Number of answers of each question."""
        return np.diff(self.indptr)

    def counts_of(self, questions: Ints) -> Ints:
        """Return the number of answers of some questions."""
        counts: Ints = self.indptr[questions + 1] - self.indptr[questions]
        return counts

    @property
    def answers(self) -> Floats:
        """Each answer itself, not relative to the centre of its question."""
        if self.given is not None:
            return self.given
        return self.values + np.repeat(self.centre, self.counts)

    @property
    def question_panel(self) -> Ints:
        """Panel of each question."""
        return np.repeat(np.arange(self.n_panels), np.diff(self.panel_questions))

    @property
    def worker_panel(self) -> Ints:
        """Panel of each worker."""
        return np.repeat(np.arange(self.n_panels), np.diff(self.panel_workers))

    @property
    def worker_rank(self) -> Ints:
        """Place of each worker among all ids in order."""
        order = self.origin.worker_ids.sort_order()
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        return rank if self.worker_source is None else rank[self.worker_source]

    @property
    def question_ids(self) -> Ids:
        """Id of each question."""
        ids = self.origin.question_ids
        return ids if self.question_source is None else ids.take(self.question_source)

    @property
    def worker_ids(self) -> Ids:
        """Id of each worker."""
        ids = self.origin.worker_ids
        return ids if self.worker_source is None else ids.take(self.worker_source)

    def __repr__(self) -> str:
        panels = f", {self.n_panels:,} panels" if self.n_panels > 1 else ""
        return (
            f"Answers({self.n_questions:,} questions, {self.n_workers:,} workers, "
            f"{self.n_answers:,} answers{panels})"
        )

    def to_matrix(self) -> Floats:
        """Return the answers as an array, workers x questions, NaN where there is none.

        Meant for small data.
        """
        if self.n_panels > 1:
            raise AnswersError("to_matrix: these are panels; take one with `answers.panel(b)`.")
        matrix = np.full((self.n_workers, self.n_questions), np.nan)
        question = np.repeat(np.arange(self.n_questions), self.counts)
        matrix[self.workers, question] = self.answers
        return matrix

    def blocks(self, size: int | None = None) -> list[Block]:
        """Cut the questions into blocks of about `size` answers. See `trueup.answers.cut`."""
        return cut_blocks(self, size)

    # -- panels ------------------------------------------------------------------------------------

    def panel(self, number: int) -> Answers:
        """Return one panel as Answers of its own."""
        return panels.one(self, number)

    def subset(self, questions: Any) -> Answers:
        """Return the answers to some questions, by number, as a problem of its own. See `panels.subset`."""
        return panels.subset(self, questions)

    def sample(self, n_panels: int, *, workers: int, questions: int, seed: int = 0) -> Answers:
        """Draw panels of some workers and some questions. See `panels.sample`."""
        return panels.sample(self, n_panels, workers=workers, questions=questions, seed=seed)

    def sample_answers(
        self, n_panels: int, *, answers_each: int, questions: int, seed: int = 0
    ) -> Answers:
        """Draw panels of some answers to each of some questions. See `panels.sample_answers`."""
        return panels.sample_answers(
            self, n_panels, answers_each=answers_each, questions=questions, seed=seed
        )

    def bootstrap(self, n_panels: int, *, seed: int = 0) -> Answers:
        """Draw panels of as many workers, with replacement. See `panels.bootstrap`."""
        return panels.bootstrap(self, n_panels, seed=seed)

    def jackknife(self, groups: int, *, seed: int = 0) -> Answers:
        """Make panels that leave out one group of workers each. See `panels.jackknife`."""
        return panels.jackknife(self, groups, seed=seed)


def _number_columns(*arguments: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in arguments if isinstance(name, str)))


def _build_matrix(
    table: Table,
    duplicates: Duplicates,
    worker_variance: Any,
    *,
    anonymous: bool,
) -> Answers:
    """Build from a table that carries the variances given as arrays."""
    columns = [
        name if name in table.numbers else None for name in ("answer_variance", "worker_variance")
    ]
    known = columns[1] or worker_variance
    return Answers(**build(table, duplicates, columns[0], known, anonymous=anonymous))
