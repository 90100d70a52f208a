"""How commands run the library: read with warnings shown, on the engine that was asked for."""

from __future__ import annotations

import os
import shlex
import sys
import warnings
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from trueup.cli.wording import as_options
from trueup.core.keywords import flag_of
from trueup.core.libraries import need
from trueup.core.malloc import keep_memory
from trueup.errors import TrueupError, TrueupWarning, quoted
from trueup.io.leftovers import own_path, remove

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from trueup.answers.answers import Answers
    from trueup.cli.engine_options import EngineOptions
    from trueup.io.question_data import QuestionDataRequest
    from trueup.request import Request
    from trueup.result.estimate import Estimate


@contextmanager
def shown_warnings(more: str = "") -> Iterator[None]:
    """Print warnings as lines of their own: how a file was understood must be seen, whatever else is kept quiet."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", TrueupWarning)
        warnings.showwarning = lambda message, *_, **__: print(
            f"trueup: {as_options(message.args[0])}{more}", file=sys.stderr
        )
        yield


def read(file: str, request: Request) -> Answers:
    """Read the answers of a command into memory; tables made of them are those of pyarrow."""
    from trueup._estimate import read_answers

    with shown_warnings():
        answers = read_answers(file, request)
    return replace(answers, origin=replace(answers.origin, kind="pyarrow"))


class Ran(NamedTuple):
    """An estimate, and where it is not in memory: what writes its table, and where Spark has it meanwhile."""

    est: Estimate
    write: Callable[[Path], object] | None = None
    stored: Path | None = None

    @contextmanager
    def finished(self) -> Iterator[None]:
        """Write files, and free what the estimate takes; a run on disk that fails can be continued."""
        try:
            with self._done():
                yield
        finally:
            self.est.close()
            if self.stored is not None:
                remove(self.stored)

    def _done(self) -> AbstractContextManager[object]:
        """Mark a run on disk as done, so that its working folder is not kept to go on from."""
        if self.write is None or self.stored:
            return nullcontext()
        from trueup import disk

        return disk.finished(self.est)


def run_estimate(
    engine: str, file: str, request: Request, where: EngineOptions, out: Path | None
) -> Ran:
    """Estimate in memory, on disk or on a cluster."""
    keep_memory()
    if engine == "memory":
        return Ran(_in_memory(file, request))
    if out is None or out.suffix.lower() != ".parquet":
        kind = (
            "a .parquet file" if engine == "disk" else "a folder of Parquet files, named .parquet"
        )
        raise TrueupError(f"--out: with --engine {engine} the estimates go to {kind}. Name one.")
    check_reading(engine, request)
    keywords = {name: value for name, value in request.given.items() if name != "wide"}
    if engine == "disk":
        from trueup import disk
        from trueup.engines.disk.setup import WorkingFolder
        from trueup.result.stream import write_questions

        wanted = disk.request_of(file, **keywords)
        est = disk.solved(file, wanted, out, WorkingFolder(**where.folder), progress=True)
        return Ran(est, partial(write_questions, est.solution.root))
    return _on_spark(file, request, where, out, keywords)


def check_reading(engine: str, request: Request) -> None:
    """Check that no option was given that only answers in memory have."""
    options = [flag_of(name) for name in request.read.only_in_memory]
    if engine != "memory" and options:
        raise TrueupError(
            f"--engine {engine}: reads files with one answer per row, and does not take {options[0]}. Leave it out, or "
            "use --engine memory."
        )


def check_rejects(engine: str) -> None:
    """Check that rows can be set aside at all."""
    if engine != "memory":
        raise TrueupError(
            f"--rejects: does not work with --engine {engine}. Leave it out, or use --engine memory."
        )


def _in_memory(file: str, request: Request) -> Estimate:
    from trueup._estimate import estimate_in_memory
    from trueup.core.progress import Progress
    from trueup.pipeline.auto_method import CANDIDATES

    with Progress("estimate", 3 + len(CANDIDATES), shown=True) as bar:
        data = read(file, request)
        with shown_warnings():
            question_data = request.question_data.read(data, file)
        bar.step("answers read")
        return estimate_in_memory(data, request, question_data, bar)


def _on_spark(
    file: str, request: Request, where: EngineOptions, out: Path, keywords: dict[str, Any]
) -> Ran:
    need("pyspark", "spark")
    from trueup import spark
    from trueup.cli.on_spark import answers_frame, session_at
    from trueup.engines.spark.files import open_files

    if out.exists():
        raise TrueupError(
            f"--out: {quoted(str(out))} exists already. Remove it, or choose another name."
        )
    open_files(file)  # what cannot be read is said before a cluster is asked for
    frame = answers_frame(session_at(where.master), file, request.read, request.question_data)
    est = spark.estimate(frame, progress=True, **keywords)
    stored = own_path(Path(os.path.realpath(out)).parent)
    try:
        est.questions.write.parquet(str(stored))
    except BaseException:
        est.close()
        remove(stored)
        raise
    return Ran(est, stored.replace, stored)


def inputs(file: str, *requests: QuestionDataRequest) -> list[Path]:
    """Return the files that must not be overwritten: those of the answers, and others that are read."""
    from trueup.io.paths import find_paths

    others = [path for request in requests for path in request.files]
    return [*([] if file == "-" else find_paths(file).paths), *others]


def check_report_texts(report: Path | None, title: str | None, unit: str | None) -> None:
    """Check that texts for a report come with a report."""
    for name, text in (("--title", title), ("--unit", unit)):
        if text is not None and report is None:
            raise TrueupError(
                f"{name}: found {quoted(text)}, but no report is written. Add --report report.html."
            )


def command_line() -> str:
    """Return the command line as it was typed."""
    return shlex.join(["trueup", *sys.argv[1:]])
