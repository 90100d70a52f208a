"""trueup estimate --engine spark: on a cluster."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from trueup.cli.elsewhere import Account, document, summary
from trueup.errors import TrueupError, need, quoted

if TYPE_CHECKING:
    from pathlib import Path

    from trueup.cli.reading import Reading
    from trueup.cli.where import Where

#: Questions that are shown, those least certain first.
SHOWN = 10
TEXT = (".csv", ".tsv", ".txt")


def estimate_on_spark(
    file: str,
    out: Path | None,
    workers: Path | None,
    reading: Reading,
    where: Where,
    *,
    as_json: bool,
    **options: Any,
) -> None:
    """Estimate on a Spark cluster, and print what came out."""
    need("pyspark", "spark")
    from trueup import spark
    from trueup.cli.tables import write_files

    if out is None or out.suffix.lower() != ".parquet":
        raise TrueupError(
            "--out: with --engine spark the estimates go to a folder of Parquet files, named .parquet. Name one."
        )
    if out.exists():
        raise TrueupError(f"--out: {quoted(str(out))} is there already. Name another folder.")
    if reading.wide not in (None, "long") or reading.sql is not None:
        raise TrueupError(
            "--engine spark: reads files with one answer per row, not --wide or --sql."
        )
    session = _session(where.master)
    with spark.estimate(
        _frame(session, file, reading),
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
        found = session.read.parquet(str(out))
        least = found.orderBy(found["std_error"].desc_nulls_first()).limit(SHOWN).toArrow()
    if workers is not None:
        as_rows = workers.suffix.lower() == ".json"
        write_files({workers: {"workers": rows.to_pylist()} if as_rows else rows})
    account = Account(
        diagnosis=est.diagnosis,
        level=est.level,
        n_questions=est.n_questions,
        n_workers=est.n_workers,
        n_answers=est.n_answers,
        n_rows=est.n_rows,
        n_missing=est.n_missing,
        n_duplicates=est.n_duplicates,
        n_malformed=0,
        malformed=(),
        least_certain=least.to_pydict(),
        workers=rows,
        path=out,
    )
    print(document(account) if as_json else summary(account))
    if not as_json:
        for path in (out, workers):
            if path is not None:
                print(f"Written: {path}")


def _session(master: str | None) -> Any:
    """Return the Spark session there is, or a quiet one of our own."""
    sql = need("pyspark.sql", "spark")
    # Executors on this machine have the Python that is running now, unless told otherwise.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = sql.SparkSession.builder.appName("trueup").config("spark.log.level", "ERROR")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    try:
        return (builder if master is None else builder.master(master)).getOrCreate()
    except Exception as error:
        first = str(error).strip().partition("\n")[0]
        raise TrueupError(f"--engine spark: no session could be started ({first}).") from error


def _frame(session: Any, file: str, reading: Reading) -> Any:
    """Return the answers of Parquet or delimited text as a Spark DataFrame."""
    from trueup.io.paths import check_present, find_paths

    paths = find_paths(file).paths
    for path in paths:
        check_present(path)
    names = [str(path.absolute()) for path in paths]
    kinds = {path.name.lower().removesuffix(".gz") for path in paths}
    if all(name.endswith((".parquet", ".pq")) for name in kinds):
        return session.read.parquet(*names)
    if not all(name.endswith(TEXT) for name in kinds):
        raise TrueupError("--engine spark: reads Parquet and delimited text. Convert the file.")
    tabs = all(name.endswith(".tsv") for name in kinds)
    return session.read.csv(
        names,
        header=True,
        sep=reading.sep or ("\t" if tabs else ","),
        encoding=reading.encoding or "UTF-8",
        escape='"',
        multiLine=True,
    )
