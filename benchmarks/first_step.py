"""Speed of the first step, as ratios measured in one run. Writes a section of benchmarks/results.md.

    python benchmarks/first_step.py            all parts, a few minutes
    python benchmarks/first_step.py --quick    a tenth of the size, to try the script

Times are the best of a few repetitions on the machine named in the table; a ratio compares two times of the same run on
the same data. The loops written with `np.bincount` are here, complete, and their results are compared with ours.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import resource
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from measure import machine, write_section

import trueup
from trueup.algorithms import CATD, CRH, DTD, GTM, IPTD, Algorithm, SubjectBias, run
from trueup.engines.memory import MemoryEngine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trueup.algorithms import Aggregate
    from trueup.core.arrays import Floats

ITERATIONS = 14
ALGORITHMS: tuple[Algorithm, ...] = (CRH(), DTD(), CATD(), GTM(), IPTD())


def best(call: Callable[[], object], repeat: int = 3) -> float:
    """Return the shortest time of a few calls, in seconds."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def in_turns(calls: Sequence[Callable[[], object]], repeat: int = 4) -> list[float]:
    """Return the shortest time of each call, taken in turns so that a slow moment of the machine hits all alike."""
    times = [[best(call, 1) for call in calls] for _ in range(repeat)]
    return [min(column) for column in zip(*times, strict=True)]


class Bincount:
    """The same iterations as anybody would write them, on flat arrays and np.bincount.

    What does not change is computed once, outside the loops. Questions with one answer need no care here: their
    residual is 0 and their standard deviation, too.
    """

    def __init__(self, answers: trueup.Answers) -> None:
        self.m, self.n = answers.n_questions, answers.n_workers
        self.question = np.repeat(np.arange(self.m), answers.counts)
        self.worker = answers.workers.astype(np.int64)
        self.y = answers.values
        counts = answers.counts
        self.count = self.by_worker((counts >= 2)[self.question].astype(float))
        mean = self.by_question(self.y) / counts
        within = self.by_question((self.y - mean[self.question]) ** 2)
        self.std = np.sqrt(within / counts)
        self.inverse = np.divide(1.0, self.std, out=np.zeros(self.m), where=self.std > 0)
        self.pool = within.sum() / (counts - 1).sum()
        self.median = np.concatenate([block.median for block in answers.blocks()])

    def by_question(self, values: Floats) -> Floats:
        return np.bincount(self.question, values, self.m).astype(float, copy=False)

    def by_worker(self, values: Floats) -> Floats:
        return np.bincount(self.worker, values, self.n).astype(float, copy=False)

    def truths(self, weight: Floats) -> tuple[Floats, Floats, Floats]:
        w = weight[self.worker]
        total = self.by_question(w)
        return w, total, self.by_question(w * self.y) / total

    def crh(self) -> Floats:
        weight = np.ones(self.n)
        for _ in range(ITERATIONS):
            x = self.truths(weight)[2]
            residual = self.y - x[self.question]
            loss = self.by_worker(residual * residual * self.inverse[self.question]) / self.count
            weight = -np.log(np.maximum(loss / loss.sum(), 1e-8))
        return self.truths(weight)[2]

    def dtd(self, reward: Floats | float = 1.0) -> Floats:
        weight = np.ones(self.n)
        for _ in range(ITERATIONS):
            w, total, x = self.truths(weight)
            residual = self.y - x[self.question]
            free = self.by_worker(1 - w / total[self.question])
            weight = reward * (free + 2) / (self.by_worker(residual * residual) + 2 * self.pool)
        return self.truths(weight)[2]

    def catd(self) -> Floats:
        return self.dtd(CATD().reward(self.count))

    def gtm(self) -> Floats:
        weight, prior = np.ones(self.n), 0.0
        z = (self.y - self.median[self.question]) * self.inverse[self.question]
        for step in range(ITERATIONS + 1):
            w = weight[self.worker]
            mu = self.by_question(w * z) / (prior + self.by_question(w))
            if step < ITERATIONS:
                residual = z - mu[self.question]
                weight = (22 + self.count) / (20 + self.by_worker(residual * residual))
                prior = 1.0
        return self.median + self.std * mu

    def iptd(self) -> Floats:
        weight = np.ones(self.n)
        for _ in range(ITERATIONS):
            w, total, x = self.truths(weight)
            squares = (self.y - x[self.question]) ** 2
            spread = self.by_question(w * squares) / total
            everybody = total[self.question]
            above = self.by_worker(everybody * (squares + spread[self.question]))
            below = self.by_worker(everybody - w)
            weight = below / above
            weight /= weight.sum()
        return self.truths(weight)[2]


def iterate(algorithm: Algorithm, engine: MemoryEngine) -> Aggregate:
    """Run all iterations."""
    return run(algorithm, engine, max_iter=ITERATIONS, tol=0.0)


def large(size: int) -> list[str]:
    """Ten million answers, a million questions, ten thousand workers."""
    answers = trueup.simulate(workers=10_000, questions=size // 10, density=0.001, seed=1).answers
    numbers = np.random.default_rng(0).random(answers.n_answers)
    plain_sum = best(numbers.sum, 9)
    loops = Bincount(answers)
    lines = [
        f"### {answers.n_answers:,} answers, {answers.n_questions:,} questions, {answers.n_workers:,} workers",
        "",
        f"{ITERATIONS} iterations, with all that `run` does before and after them.",
        f"`np.sum` over as many float64: {1e3 * plain_sum:.1f} ms; `bincount`: the loop written with `np.bincount`.",
        "Per answer and per `np.sum`: one iteration; ratio: the whole run with two threads / `bincount`.",
        "",
        "| algorithm | 1 thread, s | 2 threads, s | ns/answer | / `np.sum`, 2 (1) threads | `bincount`, s | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    for algorithm in ALGORITHMS:
        engines = {threads: MemoryEngine(answers, threads=threads) for threads in (1, 2)}
        if algorithm.name == "gtm":  # the pass over the medians is not part of an iteration
            for engine in engines.values():
                _ = [block.median for block in engine.blocks]
        loop: Callable[[], Floats] = getattr(loops, algorithm.name)
        calls = [partial(iterate, algorithm, engines[threads]) for threads in (1, 2)]
        times = dict(zip((1, 2, 0), in_turns([*calls, loop]), strict=True))
        plain = times[0]
        ours = run(algorithm, answers, max_iter=ITERATIONS, tol=0.0)
        np.testing.assert_allclose(ours.offset, loop(), rtol=1e-7, atol=1e-9)
        one, two = (times[t] / ITERATIONS / plain_sum for t in (1, 2))
        nanoseconds = 1e9 * times[2] / ITERATIONS / answers.n_answers
        lines.append(
            f"| {algorithm.name} | {times[1]:.2f} | {times[2]:.2f} | {nanoseconds:.1f} | {two:.1f} ({one:.1f}) | "
            f"{plain:.2f} | {times[2] / plain:.2f} |"
        )
        print(lines[-1], flush=True)
    return lines


def memory(size: int) -> list[str]:
    """Peak memory of building and running, in a fresh process each."""
    lines = [
        "### Memory",
        "",
        "Peak resident memory above the input (question, worker and answer, 8 bytes each), bytes per answer:",
        "of building the Answers, and of building them and running 14 iterations with two threads.",
        "",
        "| algorithm | building | building and running |",
        "|---|---|---|",
    ]
    for algorithm in ALGORITHMS:
        command = [sys.executable, __file__, "--memory-of", algorithm.name, "--size", str(size)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        figures = json.loads(done.stdout)
        lines.append(f"| {algorithm.name} | {figures['build']:.1f} | {figures['run']:.1f} |")
        print(lines[-1], flush=True)
    return lines


def memory_of(name: str, size: int) -> None:
    """Print the peak memory of one algorithm, bytes per answer above the input."""
    rng = np.random.default_rng(1)
    table = {
        "question": np.repeat(np.arange(size // 10), 10),
        "worker": (np.arange(size) * 7919 + rng.integers(0, 3, size)) % 10_000,
        "answer": rng.normal(size=size),
    }
    # What any use of the package costs, whatever the size.
    run(trueup.algorithms.find(name), trueup.simulate(seed=1).answers, threads=2)
    before = peak()
    answers = trueup.Answers.of(table, duplicates="first")
    built = peak()
    run(trueup.algorithms.find(name), answers, max_iter=ITERATIONS, tol=0.0, threads=2)
    figures = {"build": (built - before) / size, "run": (peak() - before) / size}
    print(json.dumps(figures))


def peak() -> int:
    """Return the peak resident memory of this process in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would count the peak of the process that started this one
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return 1024 * int(lines["VmHWM"].split()[0])
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else 1024 * used


def study_cell() -> list[str]:
    """A cell of a Monte-Carlo study: a thousand panels at once."""
    panels = trueup.simulate(panels=1000, workers=10, questions=50, seed=2).answers
    took = best(lambda: run(CRH(), panels, max_iter=ITERATIONS, tol=0.0), 15)
    return [
        "### A study cell",
        "",
        f"1,000 panels of 10 workers x 50 questions, {ITERATIONS} iterations of CRH in one call: {1e3 * took:.0f} ms.",
    ]


def against_sureal() -> list[str]:
    """The subject-bias model of sureal on a complete panel, with as many iterations as it takes there."""
    from sureal.subjective_model import SubjectMLEModelProjectionSolver

    matrix = trueup.simulate(workers=100, questions=5000, bias=0.5, seed=3).answers.to_matrix()
    answers = trueup.Answers.from_matrix(matrix)
    panel = SimpleNamespace(opinion_score_3darray=matrix.T[:, :, None])

    def theirs() -> Any:
        with contextlib.redirect_stdout(io.StringIO()):
            return SubjectMLEModelProjectionSolver._run_modeling(panel)  # noqa: SLF001

    result = theirs()
    iterations = int(result["num_iter"])

    def ours() -> Any:
        return run(SubjectBias(nu0=0.0, epsilon=1e-8), answers, max_iter=iterations, tol=0.0)

    them, us = best(theirs), best(ours)
    gap = float(np.abs(np.asarray(result["quality_scores"]) - ours().x).max())
    return [
        "### sureal",
        "",
        f"Subject bias and inconsistency on a complete panel of 5,000 x 100, {iterations} iterations:",
        f"sureal {1e3 * them:.0f} ms, trueup {1e3 * us:.0f} ms, {them / us:.1f} times faster;",
        f"largest difference of a truth {gap:.1e}.",
    ]


def from_parquet(size: int) -> list[str]:
    """Building Answers from a Parquet file with text worker ids, in no order."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(4)
    m, n = size // 10, 10_000
    order = rng.permutation(size)
    question = np.repeat(np.arange(m), 10)[order]
    worker = ((np.arange(size) * 7919) % n)[order]
    names: Any = pa.array([f"worker-{i:05d}" for i in range(n)])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers.parquet"
        columns: dict[str, Any] = {
            "question": question,
            "worker": names.take(pa.array(worker)),
            "answer": rng.normal(size=size),
        }
        table = pa.table(columns)
        pq.write_table(table, path)
        del table
        read = best(lambda: pq.read_table(path), 7)
        build = best(lambda: trueup.Answers.from_file(path), 7)
        megabytes = path.stat().st_size / 1e6
    return [
        "### From a Parquet file",
        "",
        f"{size:,} rows in random order, text worker ids ({megabytes:.0f} MB):",
        f"reading it with pyarrow {read:.2f} s, building Answers {build:.2f} s, {build / read:.1f} times as long.",
    ]


def main() -> None:
    """Run the parts asked for and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of the size; nothing is written"
    )
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    parser.add_argument("--size", type=int, default=10_000_000, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory_of:
        memory_of(options.memory_of, options.size)
        return
    size = options.size // 10 if options.quick else options.size
    sections = [
        ["## First step", "", f"`benchmarks/first_step.py`. {machine('numpy', 'scipy')}."],
        large(size),
        memory(size),
        study_cell(),
        against_sureal(),
        from_parquet(size),
    ]
    text = "\n\n".join("\n".join(section) for section in sections) + "\n"
    print(text)
    if not options.quick:
        write_section("first step", [text])


if __name__ == "__main__":
    main()
