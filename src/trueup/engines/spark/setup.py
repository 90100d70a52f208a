"""From a request to an engine on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trueup.engines.spark.engine import SparkEngine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from trueup.io.question_data import QuestionDataRequest
    from trueup.io.read_options import ReadOptions


def open_engine(
    frame: DataFrame,
    read: ReadOptions,
    data: QuestionDataRequest | None,
    *,
    partitions: int | None,
) -> SparkEngine:
    """Cut the answers of a Spark DataFrame into blocks on the cluster."""
    return SparkEngine(frame, read, question_data=data, partitions=partitions)
