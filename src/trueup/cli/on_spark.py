"""Spark for commands: a session, and Parquet files as a frame of it."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup.core.libraries import need
from trueup.errors import TrueupError, quoted
from trueup.io.readers.source import LONGEST_PATH, one_line

if TYPE_CHECKING:
    from trueup.io.question_data import QuestionDataRequest
    from trueup.io.read_options import ReadOptions

#: What Spark takes for the address of a cluster.
MASTER = re.compile(r"local(\[(\d+|\*)(,\s*\d+)?\]|-cluster\[.+\])?|yarn|[a-z][a-z0-9+.-]*://.+")


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
    """Check what Spark needs to start, before its Java prints a page about it."""
    if master is not None and not MASTER.fullmatch(master):
        raise TrueupError(
            f"--master: {quoted(master)} is not a Spark master. Give one such as local[4], spark://host:7077, yarn or "
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


def answers_frame(
    session: Any, file: str, read: ReadOptions, question_data: QuestionDataRequest
) -> Any:
    """Return the answers of Parquet files as a Spark DataFrame, with the other columns that are asked for."""
    from trueup.engines.spark.files import open_files, read_files
    from trueup.io.columns import choose
    from trueup.io.readers.join import check_columns
    from trueup.io.readers.source import labelled

    files = open_files(file)
    for option in ("sep", "encoding", "skip_lines"):
        if getattr(read, option) is not None:
            raise TrueupError(f"{option}: is for text, and this is Parquet. Leave it out.")
    names = files[0].names
    variances = [
        name for name in (read.answer_variance, read.worker_variance) if isinstance(name, str)
    ]
    with labelled(files[0].label):
        roles = choose(
            names,
            question=read.question,
            worker=read.worker,
            answer=read.answer,
            panel=None,
            numbers=variances,
        )
    columns = question_data.columns(names)
    columns.check(names, roles.one_question, files[0].label)
    wanted = list(dict.fromkeys([*roles.names, *columns.names]))
    check_columns(files, wanted)
    return read_files(session, files, wanted)
