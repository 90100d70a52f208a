"""Estimates from files that are larger than memory: the same two steps, block by block from a working folder.

The files are read once, sorted and encoded into the folder; every pass then reads block after block, and the estimates
are streamed to a Parquet file. A run that was killed is taken up after its last finished iteration if it is given the
same folder again.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup._compare import Contest, compare_on
from trueup._estimate import make_plan
from trueup.algorithms.driver import MAX_ITER, TOLERANCE
from trueup.answers.scale import check_truths
from trueup.core.libraries import need
from trueup.core.parameters import yes_or_no
from trueup.core.progress import Progress
from trueup.engines import vectors
from trueup.engines.disk import DiskEngine
from trueup.engines.disk.intake import ingest
from trueup.engines.disk.question_data import read_question_data
from trueup.engines.protocol import Visit
from trueup.errors import TrueupError, TrueupWarning, counted, quoted
from trueup.findings.workers import WorkerTable, worker_table_of
from trueup.io.atomic import atomic_write
from trueup.io.frames_out import make_frame
from trueup.io.outputs import check_outputs
from trueup.io.paths import find_paths
from trueup.io.question_data import QuestionDataRequest
from trueup.io.table import Ids
from trueup.pipeline.auto_method import CANDIDATES
from trueup.pipeline.solve import COLUMNS, UNKNOWN, solve
from trueup.result.estimate import UNKNOWN_OF_WORKERS, worker_columns, worker_flags
from trueup.result.outcome import Outcome
from trueup.shrinkage.normal import CAUTION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from trueup.algorithms.contract import Algorithm
    from trueup.answers.answers import Duplicates
    from trueup.answers.block import Block
    from trueup.engines.disk.blocks import Stored
    from trueup.engines.protocol import Kept
    from trueup.pipeline.solve import Solution
    from trueup.shrinkage import ShrinkRule

#: Questions that are shown, those least certain first.
SHOWN = 10


def estimate(
    source: str | PathLike[str] | Sequence[str | PathLike[str]],
    out: str | PathLike[str],
    method: str | Algorithm = "auto",
    shrink: str | ShrinkRule = "adaptive",
    variance: str | float | None = None,
    *,
    work_dir: str | PathLike[str] | None = None,
    keep: bool = False,
    memory_limit: str = "1GB",
    strict: bool = False,
    groups: Any = None,
    covariates: Any = (),
    gold: Any = None,
    bias: bool = False,
    caution: float = CAUTION,
    level: float = 0.95,
    max_iter: int = MAX_ITER,
    tol: float = TOLERANCE,
    seed: int = 0,
    threads: int | None = None,
    progress: bool = False,
    question: str = "question",
    worker: str = "worker",
    answer: str = "answer",
    duplicates: Duplicates = "error",
    transform: str | None = None,
    bounds: tuple[float, float] | None = None,
    worker_variance: str | Mapping[Any, float] | None = None,
    answer_variance: str | None = None,
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> DiskEstimate:
    """Estimate the true value of every question from files of any size, and write them to a Parquet file.

    Parameters
    ----------
    source : path or list of paths
        Parquet or delimited text, also packed; patterns such as "answers/*.parquet" too. Rows in any order.
    out : path
        The Parquet file for the estimates, with the columns of `Estimate.questions`, in the order of the question ids.
        It is there whole or not at all.
    work_dir : path, optional
        Working folder, on a disk with room for about 30 bytes an answer. By default a temporary one. Given the same
        folder again, a finished reading is used again if the files have not changed, and a run that was killed goes on.
    keep : bool
        Leave what was read in the working folder at the end; needs `work_dir`.
    memory_limit : str
        What reading delimited text may use, such as "2GB". Reading Parquet, sorting and estimating are not bound by it:
        they work in pieces of a fixed size.
    strict : bool
        Stop at rows that cannot be used instead of leaving them out and telling of them.
    groups, covariates : str, mapping, frame or path, optional
        Columns of the source, or tables by question, which must fit into memory: question -> value, or a frame or file
        as for `trueup.estimate`. A text that ends as the name of a file does is one. Of covariates, several columns and
        files may be given in a list.
    gold : str, mapping, frame or path, optional
        Known truths of some questions: a column of the source, or by question id, as for `trueup.estimate`.
    method, shrink, variance, bias, caution, level, max_iter, tol, seed, threads, progress
        As for `trueup.estimate`. Variances by "jackknife" or "bootstrap", functions and arrays need all answers in
        memory and are refused.
    question, worker, answer, duplicates, transform, bounds, worker_variance, answer_variance
        As for `trueup.estimate`.
    sep, decimal, encoding
        How text is written, as for `trueup.estimate`.
    """
    plan = make_plan(method, shrink, variance, bias, caution, level, max_iter, tol, seed, threads)
    if not isinstance(variance, str | int | float | None):
        raise TrueupError("variance: on disk it is a name or a number.")
    _check_keep(keep, work_dir)
    how: dict[str, Any] = {"sep": sep, "decimal": decimal, "encoding": encoding}
    request = QuestionDataRequest(groups, covariates, gold, question, how)
    request.check_by_id()
    columns = request.columns()
    target = Path(out)
    inputs = [*find_paths(source).paths, *request.files]
    check_outputs({"out": target}, (".parquet",), inputs=inputs)
    with Progress("estimate", 4 + len(CANDIDATES), shown=progress) as bar:
        stored = ingest(
            source,
            work_dir,
            question=question,
            worker=worker,
            answer=answer,
            duplicates=duplicates,
            transform=transform,
            bounds=bounds,
            answer_variance=answer_variance,
            worker_variance=worker_variance,
            groups=columns.groups,
            covariates=columns.covariates,
            gold=columns.gold,
            strict=strict,
            memory_limit=memory_limit,
            threads=threads,
            progress=lambda what, share: bar.note(f"{what}, {share:.0%}"),
            **how,
        )
        with stored:
            bar.step("answers read")
            engine = DiskEngine(stored, threads=threads)
            known = read_question_data(request, stored)
            if known.gold is not None:
                check_truths(known.gold, stored.scale, stored.question_id)
                engine.keep(vectors.GOLD, stored.scale.forward(known.gold))
            solution = solve(
                engine,
                plan,
                bar,
                groups=None if known.groups is None else known.groups.codes,
                covariates=None if known.covariates is None else known.covariates.values,
                gold=known.gold is not None,
            )
            found = DiskEstimate.of(stored, solution, target)
            _write(stored, engine, target)
            bar.step("estimates written")
            if keep:
                engine.journal.clear()
            else:
                stored.folder.clear()
    return found


def _check_keep(keep: bool, work_dir: str | PathLike[str] | None) -> None:
    yes_or_no("keep", keep)
    if keep and work_dir is None:
        raise TrueupError(
            "keep: a temporary folder does not stay. Pass work_dir=... with a folder that does."
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DiskEstimate(Outcome):
    """What came out of a run on disk; the estimates themselves are in a file.

    Attributes
    ----------
    path : Path
        The Parquet file with the estimates.
    diagnosis : Diagnosis
        What was chosen and why, what the second step did, warnings.
    level : float
        Level of the intervals.
    n_questions, n_workers, n_answers : int
        How many there are.
    n_rows, n_missing, n_duplicates, n_malformed : int
        Rows read, rows without an answer, answers that repeat a worker on a question, rows that could not be used.
    malformed : tuple of str
        The first rows that could not be used, and why.
    least_certain : dict of lists
        The ten questions with the widest intervals: question, estimate, lower, upper, std_error, n_answers.
    verdicts : WorkerTable
        What is to be thought of each worker, from a sample of the questions where there are very many.
    """

    verdicts: WorkerTable
    path: Path
    least_certain: dict[str, list[Any]]
    worker_columns: dict[str, Any]

    @classmethod
    def of(cls, stored: Stored, solution: Solution, path: Path) -> DiskEstimate:
        """Take what is small from a solution."""
        flags = worker_flags(solution.root, solution.aggregate.facts)
        return cls(
            **cls.told(solution),
            verdicts=worker_table_of(solution, flags),
            path=path,
            n_malformed=stored.malformed.count,
            malformed=tuple(stored.malformed.examples),
            least_certain=_least_certain(stored, solution),
            worker_columns=worker_columns(
                solution.aggregate, solution.moved, solution.biases, stored.worker_ids, flags
            ),
        )

    @cached_property
    def workers(self) -> Any:
        """A pyarrow table with a row per worker, in the order of their ids; see `Estimate.workers`."""
        return make_frame("pyarrow", self.worker_columns, null_columns=UNKNOWN_OF_WORKERS)

    def __str__(self) -> str:
        return f"{super().__str__()}\nestimates in {self.path}"


def _least_certain(stored: Stored, solution: Solution) -> dict[str, list[Any]]:
    """Return the questions with the largest standard errors."""
    names = (vectors.ESTIMATE, vectors.LOWER, vectors.UPPER, vectors.STD_ERROR)

    def visit(block: Block, kept: Kept) -> Visit:
        error = np.where(np.isnan(kept[vectors.STD_ERROR]), np.inf, kept[vectors.STD_ERROR])
        worst = np.argsort(-error, kind="stable")[:SHOWN]
        rows = {name: kept[name][worst] for name in names}
        rows["number"] = (block.start + worst).astype(np.float64)
        return Visit(rows=rows)

    rows = solution.engine.sweep(visit, reads=names, answers=False).rows
    error = np.where(np.isnan(rows[vectors.STD_ERROR]), np.inf, rows[vectors.STD_ERROR])
    worst = np.argsort(-error, kind="stable")[:SHOWN]
    numbers = rows.pop("number")[worst].astype(np.int64)
    found: dict[str, list[Any]] = {"question": [stored.question_id(j) for j in numbers.tolist()]}
    found |= {name: each[worst].tolist() for name, each in rows.items()}
    # Where workers err together, the engine of the solution has one answer for all of them.
    found["n_answers"] = [stored.count(j) for j in numbers.tolist()]
    return found


def _write(stored: Stored, engine: DiskEngine, path: Path) -> None:
    """Stream the estimates to a Parquet file."""
    pyarrow, parquet = need("pyarrow", "files"), need("pyarrow.parquet", "files")
    with atomic_write(path) as temporary:
        writer = None
        try:
            for i in range(stored.n_blocks):
                kept = engine.part(i, tuple(COLUMNS.values()))
                columns: dict[str, Any] = {"question": Ids(stored.question_ids(i))}
                columns |= {column: kept[name] for column, name in COLUMNS.items()}
                columns["n_answers"] = stored.block(i, answers=False).counts
                table = make_frame("pyarrow", columns, null_columns=UNKNOWN)
                writer = writer or parquet.ParquetWriter(temporary, table.schema)
                writer.write_table(table)
        except OSError as error:
            raise _unwritten(path, error) from error
        except pyarrow.ArrowException as error:
            raise TrueupError(f"out: {quoted(str(path))} cannot be written ({error}).") from error
        finally:
            if writer is not None:
                writer.close()


def _unwritten(path: Path, error: OSError) -> TrueupError:
    return TrueupError(f"out: {quoted(str(path))} cannot be written ({error.strerror or error}).")


def compare(
    source: str | PathLike[str] | Sequence[str | PathLike[str]],
    methods: Sequence[str | Algorithm] | None = None,
    truth: Any = None,
    *,
    shrink: str | ShrinkRule = "adaptive",
    work_dir: str | PathLike[str] | None = None,
    keep: bool = False,
    memory_limit: str = "1GB",
    strict: bool = False,
    max_iter: int = MAX_ITER,
    tol: float = TOLERANCE,
    seed: int = 0,
    threads: int | None = None,
    progress: bool = False,
    question: str = "question",
    worker: str = "worker",
    answer: str = "answer",
    duplicates: Duplicates = "error",
    transform: str | None = None,
    bounds: tuple[float, float] | None = None,
    worker_variance: str | Mapping[Any, float] | None = None,
    answer_variance: str | None = None,
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> Any:
    """Compare first steps on workers they have not seen, from files of any size; see `trueup.compare`.

    The answers to a sample of the questions are brought into memory and compared there; the table is that of
    `trueup.compare`, as a pyarrow table.

    Parameters
    ----------
    truth : mapping, frame or path, optional
        Known truths of some questions, by question id; those of the sample are used.
    methods, shrink, max_iter, tol, seed, threads, progress
        As for `trueup.compare`.
    source, work_dir, keep, memory_limit, strict
        As for `estimate`. Rows that cannot be used are left out with a warning.
    question, worker, answer, duplicates, transform, bounds, worker_variance, answer_variance, sep, decimal, encoding
        As for `estimate`.
    """
    contest = Contest.of(methods, shrink, max_iter=max_iter, tol=tol, seed=seed, threads=threads)
    how: dict[str, Any] = {"sep": sep, "decimal": decimal, "encoding": encoding}
    request = QuestionDataRequest(
        gold=truth, question=question, file_options=how, gold_argument="truth"
    )
    request.check_by_id(columns=False)
    _check_keep(keep, work_dir)
    with Progress("compare", 2 + len(contest.algorithms), shown=progress) as bar:
        stored = ingest(
            source,
            work_dir,
            question=question,
            worker=worker,
            answer=answer,
            duplicates=duplicates,
            transform=transform,
            bounds=bounds,
            answer_variance=answer_variance,
            worker_variance=worker_variance,
            strict=strict,
            memory_limit=memory_limit,
            threads=threads,
            progress=lambda what, share: bar.note(f"{what}, {share:.0%}"),
            **how,
        )
        with stored:
            bar.step("answers read")
            bad = stored.malformed
            if bad.count:
                text = f"{bad.count:,} of {counted(stored.n_rows, 'row')} could not be used"
                warnings.warn(
                    f"{text} and were left out, first {bad.examples[0]}",
                    TrueupWarning,
                    stacklevel=2,
                )
            # The answers are read once: none need stay in memory.
            engine = DiskEngine(stored, threads=threads, memory=0)
            found = compare_on(engine, contest, request, bar)
            if not keep:
                stored.folder.clear()
    return found
