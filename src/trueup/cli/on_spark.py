"""trueup estimate --engine spark: on a cluster."""

from __future__ import annotations

import math
import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup.cli.file_summary import tell
from trueup.core.libraries import need
from trueup.errors import TrueupError, quoted
from trueup.io.question_data.truths import UntypedTruths
from trueup.io.readers.source import LONGEST_PATH, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trueup.cli.engine_options import Where
    from trueup.cli.read_options import Reading
    from trueup.io.question_data.tables import TableColumns

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
    frame = answers_frame(session, file, reading, groups=groups, covariates=covariates, gold=gold)
    names: list[str] = []
    for each in covariates:
        frame, more = _beside(frame, each, "covariates", reading)
        names += more
    if groups is not None:
        frame, (groups,) = _beside(frame, groups, "groups", reading)
    with spark.estimate(
        frame,
        groups=groups,
        covariates=names,
        gold=gold if gold is None or gold in frame.columns else _read_gold(gold, reading),
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


def answers_frame(
    session: Any,
    file: str,
    reading: Reading,
    *,
    groups: str | None = None,
    covariates: Sequence[str] = (),
    gold: str | None = None,
) -> Any:
    """Return the answers of Parquet files as a Spark DataFrame, with the other columns that are asked for."""
    from trueup.engines.disk.files import check_alike
    from trueup.engines.spark.files import open_files, read_files
    from trueup.io.columns import choose
    from trueup.io.question_data.tables import choose_named
    from trueup.io.readers.source import labelled

    files = open_files(file)
    for option in ("sep", "decimal", "encoding"):
        if getattr(reading, option) is not None:
            raise TrueupError(f"{option}: is for text, and this is Parquet. Leave it out.")
    there = files[0].names
    variances = [name for name in (reading.answer_variance, reading.worker_variance) if name]
    with labelled(files[0].label):
        roles = choose(
            there,
            question=reading.question,
            worker=reading.worker,
            answer=reading.answer,
            panel=None,
            numbers=variances,
        )
    labels = [each for each in (groups,) if each is not None and _is_column(each, there)]
    numbers = [each for each in covariates if _is_column(each, there)]
    for argument, names in (("groups", labels), ("covariates", numbers)):
        if names:
            with labelled(argument), labelled(files[0].label):
                choose_named(there, names, roles.question, argument)
    numbers += [each for each in (gold,) if each is not None and each in there]
    wanted = list(dict.fromkeys([*roles.names, *numbers, *labels]))
    check_alike(files, wanted)
    return read_files(session, files, wanted)


def _is_column(given: str, there: Sequence[str]) -> bool:
    """Tell whether a column is meant, there or not, rather than a file."""
    from trueup.io.question_data.tables import is_file_name

    return given in there or not is_file_name(given)


def _read_beside(path: str, argument: str, reading: Reading) -> TableColumns:
    """Read a file that lies beside the answers: the questions, and what it says of them."""
    from trueup.io.question_data.tables import TableReader, _ways_to_read

    request: Any = reading.question_data()
    reader = TableReader(argument, argument, request, None, reading.question, {})
    way = _ways_to_read(Path(path), request.file_options)[0]
    return reader._from_file(path, reader._choose, way)  # noqa: SLF001


def _read_gold(path: str, reading: Reading) -> dict[Any, float]:
    """Read known truths from a file with the columns question and truth."""
    from trueup.io.series import to_list

    found = _read_beside(path, "gold", reading)
    given: list[Any] = to_list(next(iter(found.values.values())))
    try:
        truths = [math.nan if each in (None, "") else float(each) for each in given]
    except (TypeError, ValueError):
        raise TrueupError(f'--gold: a truth in "{path}" is not a number.') from None
    known: dict[Any, float] = UntypedTruths() if found.text else {}
    for name, truth in zip(to_list(found.question), truths, strict=True):
        if not math.isnan(truth) and known.setdefault(name, truth) != truth:
            raise TrueupError(
                f"--gold: question {quoted(name)} has two truths, {known[name]:g} and {truth:g}. Give one per question."
            )
    if not known:
        raise TrueupError("--gold: found no truth, all are empty. Fill in some, or leave it out.")
    return known


def _beside(frame: Any, given: str, argument: str, reading: Reading) -> tuple[Any, list[str]]:
    """Return the answers with what is asked for as columns, and their names: they are there, or come from a file."""
    from trueup.io.question_data.tables import _question_names as question_names
    from trueup.io.question_data.tables import is_file_name
    from trueup.io.series import to_list

    if given in frame.columns or not is_file_name(given):
        return frame, [given]
    functions = need("pyspark.sql.functions", "spark")
    question = next(
        (name for name in question_names(reading.question) if name in frame.columns), ""
    )
    if not question:
        return frame, [given]  # that it is not there is told when the answers are looked at
    found = _read_beside(given, argument, reading)
    nobody = TrueupError(
        f"--{argument}: found no question that is in the answers. Use the ids of the question column."
    )
    told = zip(to_list(found.question), *map(to_list, found.values.values()), strict=True)
    # In a text file "1" may mean a number as well as a text: ids are the same if they are written alike.
    lines = dict.fromkeys(
        (str(name), *rest)
        for name, *rest in told
        if name is not None and not all(map(_is_missing, rest))
    )
    if not lines:
        raise nobody
    key, names = f"question of {given}", [f"{argument} {name} of {given}" for name in found.values]
    columns = dict(zip([key, *names], map(list, zip(*lines, strict=True)), strict=True))
    table = frame.sparkSession.createDataFrame(need("pyarrow", "spark").table(columns))
    rows = functions.broadcast(table)
    same = functions.col(f"`{question}`").cast("string") == rows[f"`{key}`"]
    if frame.join(rows, same, "left_semi").isEmpty():
        raise nobody
    return frame.join(rows, same, "left").drop(key), names


def _is_missing(value: Any) -> bool:
    return value is None or value != value or not str(value).strip()
