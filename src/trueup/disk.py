"""Estimates from files that are larger than memory: the same two steps, block by block from a working folder.

The files are read once, sorted and encoded into the folder; every pass then reads block after block, and the estimates
are streamed to a Parquet file. A run that was killed continues after its last finished iteration if it is given the
same folder again.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from trueup._compare import COMPARED, Contest, compare_on, truth_request
from trueup.core.keywords import check_names, signature_with
from trueup.core.progress import Progress
from trueup.engines.disk.question_data import read_question_data
from trueup.engines.disk.setup import WorkingFolder, leave_folder, open_engine
from trueup.errors import TrueupError, counted, warn
from trueup.io.formats import PARQUET
from trueup.io.outputs import check_outputs
from trueup.io.paths import find_paths
from trueup.pipeline.auto_method import CANDIDATES
from trueup.pipeline.solve import solve
from trueup.request import KEYWORD_ONLY, KEYWORDS, Request
from trueup.result.estimate import Estimate
from trueup.result.stream import write_questions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from os import PathLike

    from trueup.algorithms.registry import Method
    from trueup.request import CompareOnDiskKeywords, DiskKeywords
    from trueup.shrinkage import ShrinkRule

    Source = str | PathLike[str] | Sequence[str | PathLike[str]]

#: Keywords of `trueup.estimate` that only answers in memory have.
IN_MEMORY = ("panel", "sheet", "worker_from", "from_format", "where", "wide", "sql")
OPTIONS = tuple(name for name in KEYWORD_ONLY if name not in IN_MEMORY)
COMPARE_OPTIONS = tuple(name for name in COMPARED if name not in IN_MEMORY)


@signature_with(KEYWORDS, OPTIONS)
def estimate(
    source: Source,
    out: str | PathLike[str],
    method: Method = "auto",
    shrink: str | ShrinkRule = "adaptive",
    variance: str | float | None = None,
    *,
    work_dir: str | PathLike[str] | None = None,
    keep: bool = False,
    memory_limit: str = "1GB",
    strict: bool = False,
    progress: bool = False,
    **keywords: Unpack[DiskKeywords],
) -> Estimate:
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
        folder again, a finished reading is used again if the files have not changed, and a run that was killed
        continues. What is in it stays until the estimate is closed, `with trueup.disk.estimate(...) as est:`, or no
        longer used.
    keep : bool
        Leave what was read in the working folder for the next run; needs `work_dir`.
    memory_limit : str
        What reading delimited text may use, such as "2GB". Reading Parquet, sorting and estimating work in pieces of a
        fixed size instead.
    strict : bool
        Stop at rows that cannot be used instead of leaving them out and telling about them.
    groups, covariates, gold : str, mapping, frame or path, optional
        Columns of the source, or tables by question, which must fit into memory: question -> value, or a frame or file
        as for `trueup.estimate`. A text that ends like the name of a file is one. Of covariates, several columns and
        files may be given in a list.
    method, shrink, variance, progress, and all other keywords
        As for `trueup.estimate`. Variances by "jackknife" or "bootstrap", functions and arrays need all answers in
        memory.
    """
    check_names("estimate", keywords, OPTIONS)
    request = request_of(source, method=method, shrink=shrink, variance=variance, **keywords)
    folder = WorkingFolder(work_dir, keep, memory_limit, strict)
    target = Path(out)
    inputs = [*find_paths(source).paths, *request.question_data.files]
    check_outputs({"out": (target, (PARQUET.written,))}, inputs)
    est = solved(source, request, target, folder, progress=progress)
    with finished(est):
        write_questions(est.solution.root, target)
    return est


def request_of(source: Source, **keywords: Any) -> Request:
    """Return what was asked for, checked."""
    request = Request.of("estimate", source, **keywords)
    if not isinstance(request.plan.variance, str | int | float | None):
        raise TrueupError("on disk it is a name or a number.", argument="variance")
    request.question_data.check_by_id()
    return request


def solved(
    source: Source, request: Request, target: Path, folder: WorkingFolder, *, progress: bool
) -> Estimate:
    """Return an estimate whose table is still to be written to `target`."""
    with Progress("estimate", 3 + len(CANDIDATES), shown=progress) as bar:
        engine = open_engine(
            source, request.read, folder, request.question_data, bar, threads=request.plan.threads
        )
        try:
            bar.step("answers read")
            data = read_question_data(request.question_data, engine.problem)
            solution = solve(engine, request.plan, bar, data)
        except BaseException:
            leave_folder(engine)
            raise
    return Estimate(request, data, solution, "pyarrow", target)


@contextmanager
def finished(est: Estimate) -> Iterator[None]:
    """Write what is to be written of an estimate; until then another run could continue from its working folder."""
    engine: Any = est.solution.root
    try:
        yield
    except BaseException:
        leave_folder(engine)
        raise
    engine.journal.clear()


@signature_with(KEYWORDS, COMPARE_OPTIONS)
def compare(
    source: Source,
    methods: Sequence[Method] | None = None,
    truth: Any = None,
    *,
    shrink: str | ShrinkRule = "adaptive",
    work_dir: str | PathLike[str] | None = None,
    keep: bool = False,
    memory_limit: str = "1GB",
    strict: bool = False,
    progress: bool = False,
    **keywords: Unpack[CompareOnDiskKeywords],
) -> Any:
    """Compare first steps on workers they have not seen, from files of any size; see `trueup.compare`.

    The answers to a sample of the questions are brought into memory and compared there; the table is that of
    `trueup.compare`, as a pyarrow table.

    Parameters
    ----------
    truth : mapping, frame or path, optional
        Known truths of some questions, by question id; those of the sample are used.
    source, work_dir, keep, memory_limit, strict
        As for `estimate`. Rows that cannot be used are left out with a warning.
    methods, shrink, progress, and all other keywords
        As for `trueup.compare`.
    """
    check_names("compare", keywords, COMPARE_OPTIONS)
    request = Request.of("compare", source, shrink=shrink, **keywords)
    contest = Contest.of(methods, request)
    truths = truth_request(truth, request)
    truths.check_by_id(columns=False)
    folder = WorkingFolder(work_dir, keep, memory_limit, strict)
    with Progress("compare", 2 + len(contest.algorithms), shown=progress) as bar:
        # The answers are read once or twice: none need stay in memory.
        engine = open_engine(
            source, request.read, folder, None, bar, threads=request.plan.threads, memory=0
        )
        try:
            stored = engine.problem
            bar.step("answers read")
            if stored.malformed.count:
                bad = f"{stored.malformed.count:,} of {counted(stored.n_rows, 'row')}"
                warn(
                    f"{bad} could not be used and were left out, first {stored.malformed.examples[0]}"
                )
            return compare_on(engine, contest, truths, bar)
        finally:
            engine.close()
