"""A Spark of the tests' own: quiet, on this machine alone, started when first asked for."""

from __future__ import annotations

import functools
import os
import socket
import sys
from typing import Any

import numpy as np

from repository import ROOT, TESTS

# Where Python processes of Spark find trueup, and functions of the tests.
SEARCHED = os.pathsep.join(
    [str(ROOT / "src"), str(TESTS), *(str(each) for each in TESTS.rglob("*") if each.is_dir())]
)

# Short jobs: what the JVM would gain by compiling for longer, or by checking Spark's own classes, never comes back.
QUICK_START = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    # By TCP, each job on small data waits 40 ms for an acknowledgement that the system holds back.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.executorEnv.PYTHONPATH": SEARCHED,
    "spark.driver.extraJavaOptions": QUICK_START,
    "spark.executor.extraJavaOptions": QUICK_START,
}
PORT = "spark.connect.grpc.binding.port"


def builder(master: str, **settings: str) -> Any:
    """Return the builder of a session whose Python processes are like this one."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = SEARCHED
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    found = SparkSession.builder.appName("trueup tests").master(master)
    for name, value in {**SETTINGS, **settings}.items():
        found = found.config(name, value)
    return found


@functools.cache
def session() -> Any:
    """Return the session that all tests of a process share; other processes reach it through Spark Connect."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        free = server.getsockname()[1]
    served = {
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        PORT: str(free),
    }
    return builder("local[2]", **served).getOrCreate()


def sparse(questions: int = 60, workers: int = 12, share: float = 0.4, seed: int = 1) -> Any:
    """Return a pandas frame of random answers: some questions have one answer, the rows have no order."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    question, worker = np.nonzero(rng.random((questions, workers)) < share)
    order = rng.permutation(len(question))
    question, worker = question[order], worker[order]
    truth, noise = rng.normal(5.0, 2.0, questions), rng.uniform(0.3, 2.0, workers)
    return pd.DataFrame(
        {
            "question": [f"q{each}" for each in question],
            "worker": [f"w{each}" for each in worker],
            "answer": truth[question] + noise[worker] * rng.standard_normal(len(question)),
        }
    )


class Fetched:
    """Blocks that Spark made, fetched and visited in this process: the tasks are the same, without their overhead.

    Functions are pickled and read again as on their way to an executor.
    """

    def __init__(self, parts: list[Any]) -> None:
        self.parts = parts

    @classmethod
    def of(cls, engine: Any) -> Any:
        """Return an engine with the blocks of another one in this process."""
        table = engine._stored.blocks.toArrow()
        numbers = table["part"].to_numpy()
        parts = [table.filter(numbers == number) for number in np.unique(numbers)]
        here = engine.changed(lambda block, _: block)
        here._stored = engine._stored._replace(blocks=cls(parts))
        here._layer, here._recipes = engine._layer, {}
        return here

    @property
    def sparkSession(self) -> Any:  # noqa: N802  as in Spark
        return session()

    def select(self, *names: str) -> Fetched:
        return Fetched([part.select(names) for part in self.parts])

    def mapInArrow(self, task: Any, _: Any) -> Fetched:  # noqa: N802  as in Spark
        import pyarrow as pa
        from pyspark import cloudpickle

        found = []
        sent = cloudpickle.dumps(task)  # type: ignore[no-untyped-call]
        for part in self.parts:
            batches = list(cloudpickle.loads(sent)(iter(part.to_batches())))
            found += [pa.Table.from_batches(batches)] if batches else []
        return Fetched(found)

    def orderBy(self, name: str) -> Fetched:  # noqa: N802  as in Spark
        return Fetched([self.toArrow().sort_by(name)])

    def toArrow(self) -> Any:  # noqa: N802  as in Spark
        import pyarrow as pa

        return pa.concat_tables(self.parts)

    def collect(self) -> list[Any]:
        return list(self.toArrow().to_pylist())
