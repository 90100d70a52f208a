"""trueup estimate --engine spark: on a cluster."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup.cli.file_summary import tell
from trueup.core.libraries import need
from trueup.errors import TrueupError, quoted
from trueup.io.readers.source import LONGEST_PATH, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trueup.cli.engine_options import Where
    from trueup.cli.read_options import Reading
    from trueup.io.question_data import QuestionDataRequest

#: Questions that are shown, those least certain first.
SHOWN = 10
#: What Spark takes for the address of a cluster.
MASTER = re.compile(r"local(\[(\d+|\*)(,\s*\d+)?\]|-cluster\[.+\])?|yarn|[a-z][a-z0-9+.-]*://.+")


def estimate_on_spark(
    file: str,
    out: Path | None,
    workers: Path | None,
    reading: Reading,
    where: Where,
    *,
    as_json: bool,
    groups: str | None,
    covariates: Sequence[str],
    gold: str | None,
    **options: Any,
) -> None:
    """Estimate on a Spark cluster, and print what came out."""
    need("pyspark", "spark")
    from trueup import spark

    if out is None or out.suffix.lower() != ".parquet":
        raise TrueupError(
            "--out: with --engine spark the estimates go to a folder of Parquet files, named .parquet. Name one."
        )
    if out.exists():
        raise TrueupError(
            f"--out: {quoted(str(out))} exists already. Remove it, or choose another name."
        )
    if reading.wide not in (None, "long") or reading.sql is not None:
        raise TrueupError(
            "--engine spark: reads files with one answer per row, not --wide or --sql."
        )
    session = session_at(where.master)
    request = reading.question_data(groups, covariates, gold)
    with spark.estimate(
        answers_frame(session, file, reading, request),
        groups=groups,
        covariates=covariates,
        gold=gold,
        progress=True,
        question=reading.question,
        worker=reading.worker,
        answer=reading.answer,
        duplicates=reading.duplicates,
        transform=reading.transform,
        bounds=reading.bounds,
        worker_variance=reading.worker_variance,
        answer_variance=reading.answer_variance,
        **options,
    ) as est:
        est.questions.write.parquet(str(out))
        rows: Any = est.workers.toArrow()
        verdicts = est.verdicts
        found = session.read.parquet(str(out))
        least = found.orderBy(found["std_error"].desc_nulls_first()).limit(SHOWN).toArrow()
    tell(est, verdicts, least.to_pydict(), rows, out, workers, as_json=as_json)


def session_at(master: str | None) -> Any:
    """Return the Spark session there is, or a quiet one of our own."""
    sql = need("pyspark.sql", "spark")
    # Executors on this machine have the Python that is running now, unless told otherwise.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = sql.SparkSession.builder.appName("trueup").config("spark.log.level", "ERROR")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    if sql.SparkSession.getActiveSession() is None and not os.environ.get("SPARK_REMOTE"):
        _check_start(master)
    try:
        return (builder if master is None else builder.master(master)).getOrCreate()
    except Exception as error:
        raise _no_session(one_line(error), master) from error


def _check_start(master: str | None) -> None:
    """Refuse what Spark cannot start with, before its Java prints a page about it."""
    if master is not None and not MASTER.fullmatch(master):
        raise TrueupError(
            f"--master: {quoted(master)} is no Spark master. Give one such as local[4], spark://host:7077, yarn or "
            "k8s://https://host:443."
        )
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home, "bin")) if home else None)
    if java is None:
        place = f"JAVA_HOME, {quoted(home, LONGEST_PATH)}" if home else "the PATH"
        raise _no_session(f"there is no java in {place}", master)


def _no_session(why: str, master: str | None) -> TrueupError:
    where = "" if master is None else f", and the master {quoted(master)}"
    return TrueupError(
        f"--engine spark: no session could be started ({why}). Check that Java 17 or newer is installed{where}."
    )


def answers_frame(session: Any, file: str, reading: Reading, request: QuestionDataRequest) -> Any:
    """Return the answers of Parquet files as a Spark DataFrame, with the other columns that are asked for."""
    from trueup.engines.spark.files import open_files, read_files
    from trueup.io.columns import choose
    from trueup.io.readers.join import check_columns
    from trueup.io.readers.source import labelled

    files = open_files(file)
    for option in ("sep", "decimal", "encoding"):
        if getattr(reading, option) is not None:
            raise TrueupError(f"{option}: is for text, and this is Parquet. Leave it out.")
    names = files[0].names
    variances = [name for name in (reading.answer_variance, reading.worker_variance) if name]
    with labelled(files[0].label):
        roles = choose(
            names,
            question=reading.question,
            worker=reading.worker,
            answer=reading.answer,
            panel=None,
            numbers=variances,
        )
    columns = request.columns(names)
    columns.check(names, roles.question, files[0].label)
    wanted = list(dict.fromkeys([*roles.names, *columns.names]))
    check_columns(files, wanted)
    return read_files(session, files, wanted)
