"""Run a first step through Spark Connect, at the address that is given, and compare with memory; see test_spark.py."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

from spark_session import sparse
from trueup import Answers
from trueup.algorithms import find, run
from trueup.engines.memory import MemoryEngine
from trueup.engines.protocol import Visit
from trueup.engines.spark import SparkEngine


def main() -> None:
    """Compare the truths of all questions."""
    from pyspark.sql import SparkSession

    warnings.simplefilter("ignore")
    spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
    assert "connect" in type(spark).__module__
    frame = sparse()
    engine = SparkEngine(spark.createDataFrame(frame), partitions=2, block_answers=60)
    memory = MemoryEngine(Answers.from_frame(frame))
    found, expected = (run(find("crh"), each, max_iter=3, tol=0.0) for each in (engine, memory))
    order = memory.problem.worker_ids.sort_order()
    np.testing.assert_allclose(found.weight, expected.weight[order], rtol=1e-12)
    truths = engine.frame(
        lambda _, kept: Visit(questions={"base": kept["base"]}),
        ["base"],
        columns={"base": "double"},
    )
    table = truths.orderBy("question").toArrow()
    base = memory.kept("base")[memory.problem.question_ids.sort_order()]
    np.testing.assert_allclose(table["base"].to_numpy(), base, rtol=1e-12)
    blocks: Any = engine._stored.blocks
    plan = blocks.select("part")._explain_string()
    assert "InMemoryTableScan" in plan, plan  # the blocks are made once
    print("same numbers through", type(spark).__module__)  # noqa: T201
    spark.stop()


if __name__ == "__main__":
    main()
