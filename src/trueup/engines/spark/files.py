"""Parquet files of answers as a Spark DataFrame: columns go by name, and types that several files have are unified.

What a file means is decided as for files in memory, by the parts of `trueup.io`; the rows are read by Spark, where its
executors are.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from functools import reduce
from typing import TYPE_CHECKING, Any

from trueup.core.libraries import need
from trueup.engines.disk.files import ParquetFile, check_stands, open_alike, unified_type
from trueup.errors import AnswersError
from trueup.io.formats import PARQUET, find_format
from trueup.io.readers.source import label_of, labelled, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import Column, DataFrame

ONLY_PARQUET = (
    "the engine on Spark reads Parquet files only. Convert the file, for example in DuckDB with COPY (FROM "
    "'answers.csv') TO 'answers.parquet', use --engine disk, or read it with spark.read.csv and call "
    "trueup.spark.estimate."
)


def open_files(given: str) -> list[ParquetFile]:
    """Open Parquet files; read only what they say about themselves."""
    return open_alike(given, _open)


def _open(path: Path, name: str) -> ParquetFile:
    check_stands(path)
    with labelled(label_of(name)):
        if path.name.startswith(("_", ".")):
            raise AnswersError(
                "Spark skips files whose names begin with an underscore or a point. Rename the file."
            )
        if find_format(path) is not PARQUET:
            raise AnswersError(ONLY_PARQUET)
        return ParquetFile(path, name)


def read_files(session: Any, files: Sequence[ParquetFile], names: Sequence[str]) -> DataFrame:
    """Return these columns of all files, each of which has them once.

    Numbers of several widths become the widest; a column of nulls takes the type of the other files.
    """
    from pyspark.sql import functions

    for name in names:
        unified_type(files, name)  # raises an error that names the files with no type in common
    groups: dict[tuple[Any, ...], list[ParquetFile]] = {}
    for file in files:
        groups.setdefault(tuple(map(file.kind, names)), []).append(file)
    parts: list[DataFrame] = []
    with _one_line_errors():
        for kinds, group in groups.items():
            columns = [
                functions.lit(None).alias(name)
                if str(kind) == "null" and len(groups) > 1
                else _column(name)
                for name, kind in zip(names, kinds, strict=True)
            ]
            parts.append(session.read.parquet(*map(_literal_path, group)).select(*columns))
        return reduce(lambda above, below: above.union(below), parts)


def _literal_path(file: ParquetFile) -> str:
    """Return the path with the characters escaped that Spark takes for a pattern."""
    return re.sub(r"([*?\[\]{}\\])", r"\\\1", str(file.path.absolute()))


def _column(name: str) -> Column:
    from pyspark.sql import functions

    return functions.col("`" + name.replace("`", "``") + "`")


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """Turn an error of Spark about a file into one line."""
    errors = (
        need("py4j.protocol", "spark").Py4JError,
        need("pyspark.errors", "spark").PySparkException,
    )
    try:
        yield
    except errors as error:
        lines = [
            each for each in str(error).splitlines() if not each.startswith("An error occurred")
        ]
        raise AnswersError(
            f"Files: Spark cannot read them ({one_line(chr(10).join(lines))})."
        ) from error
