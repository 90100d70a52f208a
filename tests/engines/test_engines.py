"""The same numbers wherever the answers are: in one block, in many, on disk."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from trueup import Answers
from trueup.algorithms.registry import names as method_names
from trueup.core.progress import Progress
from trueup.engines import question_sample
from trueup.engines.memory import MemoryEngine
from trueup.errors import TrueupError
from trueup.io.question_data import Covariates, Labels, QuestionData
from trueup.io.table import Ids
from trueup.pipeline.solution import COLUMNS
from trueup.pipeline.solve import solve
from trueup.request import Plan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from trueup.core.arrays import Floats
    from trueup.engines.protocol import Engine

disk = pytest.importorskip("trueup.engines.disk")
ingest = pytest.importorskip("trueup.engines.disk.intake").ingest

METHODS = [name for name in method_names() if name != "blue"]
SHRINK = ["adaptive", "normal", "mixture", "paper", "stein", "mebe", "morris", "sure", "none"]
VARIANCES = ["moderated", "paper", "psi_H/n", "plugin", "sandwich", "blue", 0.3]
# Places where a problem can be: blocks in memory, and on disk.
PLACES = ["two blocks", "many blocks", "disk", "disk in many blocks"]


def table(seed: int, *, questions: int = 90, workers: int = 14) -> dict[str, list[Any]]:
    """Make sparse answers in random order, with biases, unequal workers, lone answers and a gross error."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(20.0, 3.0, questions) + np.where(rng.random(questions) < 0.4, 9.0, 0.0)
    spread, bias = rng.uniform(0.3, 3.0, workers), rng.normal(0.0, 1.0, workers)
    rows = []
    for j in range(questions):
        count = int(rng.integers(1, 8))
        rows += [
            (f"q{j}", f"w{i}", truth[j] + bias[i] + spread[i] * rng.normal())
            for i in rng.choice(workers, count, replace=False).tolist()
        ]
    rows[3] = (*rows[3][:2], 500.0)
    rng.shuffle(rows)
    question, worker, answer = zip(*rows, strict=True)
    return {
        "question": list(question),
        "worker": list(worker),
        "answer": [float(each) for each in answer],
    }


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the answers to a file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path_factory.mktemp("engines") / "answers.parquet"
    pq.write_table(pa.table(table(1)), path)
    return path


@pytest.fixture(scope="module")
def stored(source: Path) -> Iterator[Any]:
    """Read them into a working folder."""
    with ingest(source, source.parent / "work") as found:
        yield found


def engine_at(place: str, source: Path, stored: Any) -> Engine:
    """Put the answers somewhere."""
    if place.startswith("disk"):
        return disk.DiskEngine(stored.cut(60) if "many" in place else stored)  # type: ignore[no-any-return]
    answers = Answers.from_file(source)
    size = {"one block": None, "two blocks": answers.n_answers // 2 + 1, "many blocks": 50}[place]
    return MemoryEngine(answers, block_answers=size)


def found_at(engine: Engine, **options: Any) -> tuple[dict[str, Floats], dict[str, Any]]:
    """Solve, and return the numbers of the questions and of the workers in the order of their ids."""
    groups, covariates = options.pop("groups", None), options.pop("covariates", None)
    data = QuestionData(
        None if groups is None else Labels(groups, Ids(np.unique(groups))),
        None if covariates is None else Covariates(covariates, ("size",) * covariates.shape[1]),
    )
    plan = Plan(**{"method": "crh", "max_iter": 6, "seed": 3, **options})
    with Progress("", 1, shown=False) as bar:
        solution = solve(engine, plan, bar, data)
    order = np.argsort(np.array(question_ids(engine), dtype=str))
    rank = np.argsort(engine.problem.worker_rank)
    questions = {
        name: np.asarray(solution.engine.kept(kept))[order] for name, kept in COLUMNS.items()
    }
    aggregate, noise = solution.aggregate, solution.second_step.noise
    workers = {
        "weight": aggregate.weight[rank],
        "noise": aggregate.noise[rank],
        "said": solution.diagnosis,
    }
    # The native method needs no other noise of the workers, but in memory it may be at hand.
    if noise is not None and not aggregate.algorithm.concludes:
        workers["variance"] = noise.variance[rank]
    return questions, workers


def question_ids(engine: Engine) -> list[object]:
    """Return the ids in the order of the engine."""
    problem = engine.problem
    if isinstance(problem, Answers):
        return problem.question_ids.tolist()
    assert isinstance(problem, disk.StoredAnswers)
    return [each for i in range(problem.n_blocks) for each in problem.block_ids(i).to_pylist()]


@functools.cache
def in_one_block(source: Path, _enough: int, **options: Any) -> Any:
    """Solve in memory, once for all places that are compared with it (and once for each size of samples)."""
    return found_at(engine_at("one block", source, None), **options)


def check(source: Path, stored: Any, place: str, **options: Any) -> None:
    """Compare a place with one block in memory."""
    expected, of_workers = in_one_block(source, vars(question_sample)["MAX_QUESTIONS"], **options)
    found, by_worker = found_at(engine_at(place, source, stored), **options)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-9, atol=1e-11, err_msg=name)
    assert by_worker["said"] == of_workers["said"]
    for name in of_workers.keys() - {"said"}:
        values = of_workers[name]
        np.testing.assert_allclose(by_worker[name], values, rtol=1e-9, atol=1e-14, err_msg=name)


@pytest.mark.filterwarnings("ignore::trueup.TrueupWarning")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("method", METHODS)
def test_every_method(source: Path, stored: Any, place: str, method: str) -> None:
    check(source, stored, place, method=method)


@pytest.mark.filterwarnings("ignore::trueup.TrueupWarning")
@pytest.mark.parametrize("place", PLACES[1:])
@pytest.mark.parametrize("shrink", SHRINK)
def test_every_second_step(source: Path, stored: Any, place: str, shrink: str) -> None:
    check(source, stored, place, shrink=shrink)


@pytest.mark.filterwarnings("ignore::trueup.TrueupWarning")
@pytest.mark.parametrize("place", PLACES[1:])
@pytest.mark.parametrize("variance", VARIANCES)
def test_every_variance(source: Path, stored: Any, place: str, variance: str | float) -> None:
    check(source, stored, place, shrink="normal", variance=variance)


@pytest.mark.filterwarnings("ignore::trueup.TrueupWarning")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("method", ["auto", "native", "median"])
def test_biases_taken_off(source: Path, stored: Any, place: str, method: str) -> None:
    check(source, stored, place, method=method, bias=True)


@pytest.mark.filterwarnings("ignore::trueup.TrueupWarning")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("method", ["auto", "median", "crh"])
def test_a_sample_of_the_questions(
    source: Path, stored: Any, place: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with more questions than priors and limits are fitted on: every place draws the same."""
    monkeypatch.setattr(question_sample, "MAX_QUESTIONS", 40)
    check(source, stored, place, method=method)


@pytest.mark.filterwarnings("ignore::trueup.TrueupWarning")
def test_a_run_goes_on_after_its_last_finished_iteration(
    source: Path, stored: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is stopped in the middle and one that is not end with the same numbers."""
    sweep, passes = disk.DiskEngine.sweep, 0

    def counting(engine: Any, *args: Any, **more: Any) -> Any:
        nonlocal passes
        passes += 1
        if passes == stop:
            raise KeyboardInterrupt
        return sweep(engine, *args, **more)

    def run(*, clear: bool) -> tuple[dict[str, Floats], int]:
        nonlocal passes
        passes = 0
        engine = engine_at("disk", source, stored)
        if clear:
            engine.journal.clear()  # type: ignore[union-attr]
        return found_at(engine, max_iter=14, tol=0.0)[0], passes

    monkeypatch.setattr(disk.DiskEngine, "sweep", counting)
    stop = -1
    expected, whole = run(clear=True)
    for at in (9, 15, 30):
        stop = at
        with pytest.raises(KeyboardInterrupt):
            run(clear=True)
        stop = -1
        found, again = run(clear=False)
        assert again < whole
        for name, values in expected.items():
            np.testing.assert_array_equal(found[name], values, err_msg=name)


@pytest.mark.parametrize("variance", ["jackknife", "bootstrap"])
def test_what_needs_memory_says_so(source: Path, stored: Any, variance: str) -> None:
    with pytest.raises(TrueupError, match=r'needs all answers in memory\. Use engine="memory"'):
        found_at(engine_at("disk", source, stored), shrink="normal", variance=variance)
