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
    return SparkEngine(
        frame,
        question=read.question,
        worker=read.worker,
        answer=read.answer,
        duplicates=read.duplicates,
        answer_variance=read.answer_variance,
        worker_variance=read.worker_variance,
        partitions=partitions,
        question_data=data,
    )
