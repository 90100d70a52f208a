"""Run a first step on an executor, kill it on the way, and compare with memory; see test_spark.py.

A new one takes its place, which has to make anew all that the first one kept.

In the end the session is stopped, which is told to whoever goes on, and makes closing no error.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np

from spark_session import builder, sparse
from trueup import Answers
from trueup.algorithms import find, run
from trueup.engines.memory import MemoryEngine
from trueup.engines.spark import SparkEngine
from trueup.errors import TrueupError


def executors(process: int) -> list[int]:
    """Return the executors among the descendants of a process, lowest number first."""
    parent, found = {}, []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            # The name of a process is in brackets and may hold anything; its state and parent follow.
            parent[int(folder.name)] = int(
                (folder / "stat").read_text().rpartition(")")[2].split()[1]
            )
            if b"CoarseGrainedExecutorBackend" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:  # it has ended meanwhile
            continue

    def is_ours(one: int) -> bool:
        while one in parent and one != process:
            one = parent[one]
        return one == process

    return sorted(filter(is_ours, found))


def main() -> None:
    """Kill an executor after the second iteration."""
    frame = sparse()
    spark = builder(
        "local-cluster[1,1,1024]",
        **{"spark.executor.memory": "512m", "spark.task.maxFailures": "4"},
    ).getOrCreate()
    answers = spark.createDataFrame(frame)
    engine = SparkEngine(answers, partitions=4, block_answers=60)
    killed: list[int] = []

    def kill(iteration: int, _: float) -> None:
        if iteration == 2 and not killed:
            killed.append(executors(os.getpid())[0])
            os.kill(killed[0], signal.SIGKILL)

    memory = MemoryEngine(Answers.from_frame(frame))
    found = run(find("crh"), engine, max_iter=4, tol=0.0, callback=kill)
    expected = run(find("crh"), memory, max_iter=4, tol=0.0)
    order = memory.problem.worker_ids.sort_order()
    assert killed
    np.testing.assert_allclose(found.weight, expected.weight[order], rtol=1e-12)
    np.testing.assert_allclose(found.noise, expected.noise[order], rtol=1e-12)
    spark.stop()
    engine.close()
    try:
        SparkEngine(answers)
    except TrueupError as error:
        assert "its Spark session has been stopped" in str(error)  # noqa: PT017
    else:
        raise AssertionError("a stopped session was taken")
    print(f"same numbers without executor {killed[0]}")  # noqa: T201


if __name__ == "__main__":
    main()
