"""The Spark engine gives the numbers of the one in memory, whatever becomes of partitions and executors."""

from __future__ import annotations

import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from repository import TESTS
from spark_session import PORT, Fetched, session, sparse
from trueup import Answers, TrueupError
from trueup.algorithms import find, names, run
from trueup.answers.scale import PanelScales, Scale
from trueup.core.arrays import segment_sum
from trueup.core.progress import Progress
from trueup.engines import vectors
from trueup.engines.memory import MemoryEngine
from trueup.engines.protocol import Visit
from trueup.engines.spark.batches import ROWS_PER_BATCH, one_row_at_a_time
from trueup.engines.vectors import QuestionVectors
from trueup.errors import AnswersError
from trueup.io.question_data import QuestionDataRequest
from trueup.io.read_options import ReadOptions
from trueup.pipeline.scaling import on_scale
from trueup.pipeline.solution import COLUMNS
from trueup.pipeline.solve import solve
from trueup.request import Plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trueup.answers.block import Block
    from trueup.engines.protocol import Kept
    from trueup.engines.spark import SparkEngine
    from trueup.pipeline.solution import Solution

pytest.importorskip("pyspark", reason="needs pyspark")
pytestmark = pytest.mark.needs("java")

METHODS = [name for name in names() if name != "blue"]
RULES = ("adaptive", "normal", "mixture", "paper", "stein", "mebe", "morris", "sure", "none")


def on_spark(frame: Any, **options: Any) -> SparkEngine:
    from trueup.engines.spark import SparkEngine

    known = {
        name: options.pop(name) for name in ("groups", "covariates", "gold") if name in options
    }
    names = ("question", "worker", "answer", "duplicates", "worker_variance", "answer_variance")
    options["read"] = ReadOptions(**{name: options.pop(name) for name in names if name in options})
    options["question_data"] = QuestionDataRequest(**known)
    rows = session().createDataFrame(frame)
    return SparkEngine(rows, **{"partitions": 2, "block_answers": 60, **options})


def in_memory(frame: Any, **options: Any) -> MemoryEngine:
    """Number questions and workers by id, as Spark does."""
    return MemoryEngine(Answers.from_frame(frame.sort_values(["worker", "question"]), **options))


def by_question(engine: Any, *names: str) -> np.ndarray[Any, Any]:
    """Return what an engine keeps of questions, in the order of their ids."""
    if isinstance(engine, MemoryEngine):
        order = engine.problem.question_ids.sort_order()
        return np.stack([engine.kept(name)[order] for name in names])

    def visit(_: Block, kept: Kept) -> Visit:
        return Visit(questions={name: kept[name] for name in names})

    frame = engine.frame(visit, names, columns=dict.fromkeys(names, "double"))
    table = frame.orderBy("question").toArrow()
    return np.stack([table[name].to_numpy().astype(np.float64) for name in names])


def by_worker(engine: MemoryEngine, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return values[engine.problem.worker_ids.sort_order()]


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.fixture(scope="module", params=[1, 2, 7])
def engines(request: pytest.FixtureRequest) -> Iterator[tuple[SparkEngine, MemoryEngine]]:
    frame = sparse()
    engine = on_spark(frame, partitions=request.param)
    yield engine, in_memory(frame)
    engine.close()


def first_steps_agree(there: SparkEngine, here: MemoryEngine, method: str) -> None:
    found, expected = (run(find(method), each, max_iter=2, tol=0.0) for each in (there, here))
    close(found.weight, by_worker(here, expected.weight))
    close(found.noise, by_worker(here, expected.noise))
    close(found.moved, expected.moved)
    close(by_question(there, "base", "variance"), by_question(here, "base", "variance"))


def both_steps_agree(
    there: SparkEngine, here: MemoryEngine, shrink: str, method: str = "crh"
) -> Solution:
    """Compare what is known of questions and workers; return what Spark found."""
    plan = Plan(method, shrink, max_iter=1, tol=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, expected = (
            solve(each, plan, Progress("", 1, shown=False)) for each in (there, here)
        )
    columns = COLUMNS.values()
    close(by_question(found.engine, *columns), by_question(expected.engine, *columns))
    close(found.aggregate.weight, by_worker(here, expected.aggregate.weight))
    assert found.diagnosis == expected.diagnosis
    return found


@pytest.mark.parametrize("method", METHODS)
def test_first_steps_agree_with_memory(
    engines: tuple[SparkEngine, MemoryEngine], method: str
) -> None:
    first_steps_agree(Fetched.of(engines[0]), engines[1], method)


@pytest.mark.parametrize("shrink", RULES)
def test_second_steps_agree_with_memory(
    engines: tuple[SparkEngine, MemoryEngine], shrink: str
) -> None:
    both_steps_agree(Fetched.of(engines[0]), engines[1], shrink)


def test_jobs_on_spark_agree_with_memory(engines: tuple[SparkEngine, MemoryEngine]) -> None:
    """A few for all numbers of partitions: every job costs the start of its tasks. Both steps: see the public ones."""
    first_steps_agree(*engines, "median")
    if engines[0]._stored.parts == 2:
        first_steps_agree(*engines, "gtm")


def told(questions: int = 120) -> Any:
    """Return answers with what is known of the questions; of some only rows without an answer know it."""
    frame = sparse(questions, 14)
    number = frame["question"].str[1:].astype(int)
    rng = np.random.default_rng(4)
    part, size = rng.integers(0, 4, questions), rng.integers(0, 9, questions)
    frame["kind"] = np.array(["film", "book", " ", None], dtype=object)[part][number]
    frame["size"] = size[number].astype(float)
    frame["answer"] += (2.0 * part + size)[number] + 3.0 * rng.normal(size=len(frame))
    silent = number % 10 == 7
    rest = frame[silent].drop_duplicates("question")
    nobody = rest[:1].assign(question="nobody", kind="no such", size=99.0)
    frame.loc[silent, "kind"], frame.loc[silent, "size"] = None, np.nan
    whole = _joined(rest, nobody, frame)
    whole.loc[: len(rest), "worker"], whole.loc[: len(rest), "answer"] = None, np.nan
    return whole


def truths(frame: Any, count: int = 40) -> dict[str, float]:
    """Return truths of some questions, far from what workers say."""
    some = sorted(set(frame["question"]) - {"nobody"})[:count]
    return dict(zip(some, np.random.default_rng(6).normal(9.0, 4.0, count), strict=True))


@pytest.fixture(scope="module")
def told_there() -> Iterator[SparkEngine]:
    frame = told()
    known = {"groups": "kind", "covariates": ["size"], "gold": truths(frame)}
    engine = on_spark(frame, **known)
    yield engine
    engine.close()


@pytest.mark.filterwarnings("ignore::trueup.TrueupWarning")
@pytest.mark.parametrize(
    ("known", "method", "shrink", "model"),
    [
        (("groups",), "mean", "adaptive", "group means"),
        (("covariates",), "mean", "adaptive", "regression"),
        (("gold",), "crh", "adaptive", None),
        (("groups", "covariates", "gold"), "crh", "adaptive", None),
        (("groups", "covariates", "gold"), "gtm", "normal", "normal"),
    ],
)
def test_what_is_known_of_questions_agrees_with_memory(
    told_there: SparkEngine, known: tuple[str, ...], method: str, shrink: str, model: str | None
) -> None:
    import trueup

    frame = told()
    given: dict[str, Any] = {"groups": "kind", "covariates": ["size"], "gold": truths(frame)}
    options = {name: given[name] for name in known}
    engine = Fetched.of(told_there)
    engine.question_vectors = QuestionVectors("groups" in known, int("covariates" in known))
    plan = Plan(method, shrink, max_iter=3, tol=0.0)
    found = solve(engine, plan, Progress("", 1, shown=False), gold="gold" in known)
    expected = trueup.estimate(frame, method, shrink, max_iter=3, tol=0.0, **options)
    order = expected.answers.question_ids.sort_order()
    theirs = [getattr(expected, name)[order] for name in COLUMNS]
    close(by_question(found.engine, *COLUMNS.values()), np.stack(theirs))
    assert found.diagnosis == expected.diagnosis
    assert ("known truths" in found.diagnosis.gold) == ("gold" in known)
    if model is not None:
        assert found.second_step.models == [model]


@pytest.mark.parametrize("ids", ["text", "whole", "fraction", "date"])
def test_tables_mean_what_they_mean_in_memory(ids: str, tmp_path: Path) -> None:
    """Mappings, frames and files; some of their questions nobody answered, and not all questions have a value."""
    import datetime as dt

    import pandas as pd

    def of(j: int) -> Any:
        if ids == "date":
            return dt.date(2024, 1, 1) + dt.timedelta(j)
        return f"q{j}" if ids == "text" else j / 4 if ids == "fraction" else j

    frame = sparse(40, 8)
    number = frame["question"].str[1:].astype(int)
    frame["question"] = [of(j) for j in number]
    frame["size"] = number % 5 + 0.5
    some = [j for j in range(50) if j % 3]
    age = pd.DataFrame({"question": [of(j) for j in range(50)], "age": np.arange(50) % 7 / 3})
    known: dict[str, Any] = {
        "groups": {of(j): j % 4 for j in some},
        "covariates": age,
        "gold": pd.Series({of(j): float(j) for j in some}),
    }
    if ids in ("text", "whole"):
        path = tmp_path / "sizes.csv"
        age.to_csv(path, index=False)
        known["covariates"] = ["size", path]
    engine = on_spark(frame, **known)
    expected = QuestionDataRequest(**known).read(Answers.from_frame(frame), frame)
    assert expected.groups is not None
    assert expected.covariates is not None
    order = Answers.from_frame(frame).question_ids.sort_order()
    n_covariates = len(expected.covariates.names)
    assert engine.question_vectors == QuestionVectors(True, n_covariates)
    names = [*map(vectors.covariate, range(n_covariates)), vectors.GOLD, vectors.GROUP]
    *covariates, gold, group = by_question(engine, *names)
    np.testing.assert_array_equal(np.array(covariates).T, expected.covariates.values[order])
    np.testing.assert_array_equal(gold, expected.gold[order])  # type: ignore[index]
    # Groups are numbered in any order, from -1 for none.
    pairs = set(zip(group.tolist(), expected.groups.codes[order].tolist(), strict=True))
    assert len(pairs) == len(set(group)) == len(expected.groups.ids) + 1
    assert (-1.0, -1) in pairs
    engine.close()


def test_blocks_hold_the_answers(engines: tuple[SparkEngine, MemoryEngine]) -> None:
    there, here = engines
    found, expected = there.gather(), here.gather()
    np.testing.assert_array_equal(found.to_matrix(), _ordered(expected))
    assert found.question_ids.tolist() == sorted(map(str, expected.question_ids.tolist()))


def _ordered(answers: Answers) -> np.ndarray[Any, Any]:
    rows, columns = answers.worker_ids.sort_order(), answers.question_ids.sort_order()
    return answers.to_matrix()[np.ix_(rows, columns)]


def test_spread_of_questions_is_stored_as_a_visit_would_find_it(
    engines: tuple[SparkEngine, MemoryEngine],
) -> None:
    def visit(block: Block, _: Kept) -> Visit:
        other = (block.std != replace(block).std).sum()  # a copy looks at the answers
        return Visit(panel_sums=np.array([[float("std" in vars(block))], [float(other)]]))

    here, other = Fetched.of(engines[0]).sweep(visit).panel_sums.ravel()
    assert here >= 1
    assert other == 0


@pytest.mark.parametrize("before", [None, "500", "1"])
def test_a_pass_leaves_the_options_of_the_session_alone(before: str | None) -> None:
    conf = session().conf
    if before is not None:
        conf.set(ROWS_PER_BATCH, before)
    try:
        with one_row_at_a_time(session()), one_row_at_a_time(session()):
            assert conf.get(ROWS_PER_BATCH) == "1"
        assert conf.get(ROWS_PER_BATCH, None) == before
        with pytest.raises(ZeroDivisionError), one_row_at_a_time(session()):
            1 / 0  # noqa: B018
        assert conf.get(ROWS_PER_BATCH, None) == before
    finally:
        conf.unset(ROWS_PER_BATCH)


def test_a_cluster_that_refuses_options_is_used_as_it_is() -> None:
    class Refusing:
        @property
        def conf(self) -> Any:
            raise RuntimeError("not allowed")

    passes = []
    with one_row_at_a_time(Refusing()):
        passes.append("done")
    assert passes == ["done"]


def test_draws_follow_from_ids(engines: tuple[SparkEngine, MemoryEngine]) -> None:
    for engine in engines:
        engine.draw(7)
    there, here = engines
    np.testing.assert_array_equal(by_question(there, "draw"), by_question(here, "draw"))
    found, expected = (
        engine.gather(lambda _, kept: kept["draw"] < 5e18, ("draw",)) for engine in engines
    )
    assert 0 < found.n_questions < here.problem.n_questions
    np.testing.assert_array_equal(found.to_matrix(), _ordered(expected))


def _mean(block: Block, kept: Kept) -> Visit:
    """Write the mean, and say how far it is from what was written before."""
    mean = block.mean + block.centre
    moved = np.abs(mean - kept["mean"]) if "mean" in kept else np.zeros(len(mean))
    sums = segment_sum(mean, block.panel_questions)[None]
    return Visit(panel_sums=sums, panel_peaks=moved.max(keepdims=True), questions={"mean": mean})


def _lower(shift: float) -> Callable[[Block, Kept], Block]:
    """Return a change that takes `shift` times what is kept as "half" off every answer."""

    def change(block: Block, kept: Kept) -> Block:
        return block.adjusted(np.full(block.n_workers, shift * kept["half"][0]), None)

    return change


def _gap(block: Block, kept: Kept) -> Visit:
    """Add up how far the means are below what was kept of them."""
    gap = kept["mean"] - block.mean - block.centre
    return Visit(panel_sums=np.array([[gap.sum()]]), rows={"one": np.ones((1, 2))})


def test_vectors_belong_to_the_blocks_they_were_written_of(
    engines: tuple[SparkEngine, MemoryEngine],
) -> None:
    totals = []
    for engine in engines:
        engine.keep("half", 0.5)
        first = engine.sweep(_mean, ("mean",))
        low = engine.changed(_lower(3.0), ("half",))
        second = low.sweep(_mean, ("mean",))
        close(second.panel_peaks, 1.5)  # the means of the blocks before the change were handed over
        third = low.changed(_lower(6.0), ("half",)).sweep(_gap, ("mean",))
        close(third.panel_sums, 3.0 * engine.problem.n_questions)
        assert third.sums.shape == (0, engine.n_workers)
        assert third.rows["one"].shape[1] == 2
        totals.append([first.panel_sums, second.panel_sums, third.panel_sums])
    close(totals[0], totals[1])


def test_shares_of_very_many_workers_are_added_on_the_cluster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = on_spark(sparse(), partitions=3)

    def visit(block: Block, _: Kept) -> Visit:
        return Visit(
            sums=block.by_worker(block.values, block.informative)[None],
            panel_sums=np.ones((1, 1)),
            questions={"mean": block.mean},
        )

    expected = engine.sweep(visit)
    monkeypatch.setattr("trueup.engines.spark.engine.COLLECTED", 0)
    monkeypatch.setattr("trueup.engines.spark.engine.SHARE", 5)
    found = engine.sweep(visit)
    np.testing.assert_array_equal(found.sums, expected.sums)
    np.testing.assert_array_equal(found.panel_sums, expected.panel_sums)
    engine.close()


def test_one_question_may_have_nearly_all_answers() -> None:
    import pandas as pd

    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"question": 7, "worker": np.arange(500), "answer": rng.normal(size=500)})
    few = pd.DataFrame({"question": [1, 2, 2], "worker": [3, 3, 4], "answer": [1.0, 2.0, 3.0]})
    frame = pd.concat([frame, few])
    there, here = on_spark(frame, partitions=7, block_answers=10), in_memory(frame)
    first_steps_agree(Fetched.of(there), here, "crh")
    there.close()


def test_missing_and_repeated_answers_are_counted() -> None:
    frame = sparse()
    frame["answer"] = frame["answer"].astype(str)
    frame.loc[:2, "answer"] = ["", " NA ", "null"]
    frame.loc[3, "answer"] = " 1e1 "
    again = frame.iloc[3:6].assign(answer="2.5")
    frame = _joined(frame, again)
    there = on_spark(frame, duplicates="mean")
    here = in_memory(frame, duplicates="mean")
    problem = there.problem
    assert (problem.n_missing, problem.n_duplicates) == (3, 3)
    assert problem.n_rows == len(frame)
    np.testing.assert_allclose(there.gather().to_matrix(), _ordered(here.gather()), rtol=1e-14)
    there.close()


def _joined(*frames: Any) -> Any:
    import pandas as pd

    return pd.concat(frames, ignore_index=True)


def test_known_variances_and_scales_are_taken() -> None:
    frame = sparse()
    rng = np.random.default_rng(2)
    frame["answer"] = np.exp(0.1 * frame["answer"])
    frame["var"] = rng.uniform(0.5, 2.0, len(frame))
    options, log = {"answer_variance": "var"}, PanelScales((Scale("log"),))
    there, here = on_spark(frame, **options), in_memory(frame, **options)
    scaled: Any = on_scale(there, log)
    expected: Any = on_scale(here, log)
    close(scaled.answer_variance, expected.answer_variance)
    fetched = Fetched.of(scaled)
    for method in ("mean", "gtm"):
        first_steps_agree(fetched, expected, method)
    there.close()


@pytest.mark.parametrize("given", ["column", "mapping"])
def test_known_variances_of_workers_are_taken(given: str) -> None:
    frame = sparse()
    known = {f"w{i}": 0.5 + 0.1 * i for i in range(8)}
    frame["known"] = frame["worker"].map(known)
    option = known if given == "mapping" else "known"
    there = on_spark(frame, worker_variance=option)
    here = in_memory(frame, worker_variance=option)
    expected = here.problem.worker_variance
    assert expected is not None
    np.testing.assert_array_equal(there.problem.worker_variance, by_worker(here, expected))
    first_steps_agree(Fetched.of(there), here, "blue")
    there.close()


FAULTS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"answer": ["1", "x", "3"]}, {}, r'Column "answer": 1 of 3 values is not a number, such as "x"'),
    ({"answer": [1.0, np.inf, 2.0]}, {}, "1 of 3 values is infinite"),
    ({"answer": [1.0, 1e200, 2.0]}, {}, "1 of 3 values is beyond"),
    ({"answer": [None, None, np.nan]}, {}, "no answers, all 3 values are missing"),
    ({"worker": ["a", None, "c"]}, {}, 'Column "worker": 1 of 3 values is missing'),
    ({"question": ["a", None, None]}, {}, 'Column "question": 2 of 3 values are missing'),
    ({"question": ["a", "a", "a"], "worker": ["u", "u", "v"]}, {}, 'worker "u" on question "a"'),
    ({}, {"duplicates": "first"}, "rows of a Spark DataFrame have none"),
    ({}, {"duplicates": "last"}, 'is not "error" or "mean"'),
    ({}, {"duplicates": np.ones(2)}, 'is not "error" or "mean"'),
    ({"v": [1.0, 0.0, None]}, {"answer_variance": "v"}, "2 of 3 values are not positive"),
    ({"worker": ["a", "a", "b"], "v": [1.0, 2.0, 1.0]}, {"worker_variance": "v"}, "two different"),
    ({}, {"answer": "score"}, 'Column "score": not found'),
    ({"g": ["x", "y", "y"], "question": ["a", "a", "b"]}, {"groups": "g"}, '"a" has two labels, "x" and "y"'),
    ({"z": [1.0, 2.0, 2.0], "question": ["a", "a", "b"]}, {"covariates": "z"}, '"a" has two values of "z"'),
    ({"z": [1.0, None, None]}, {"covariates": ["z"]}, '2 questions without a value of "z", first "b"'),
    ({"z": ["1", "many", "2"]}, {"covariates": "z"}, '^covariates: question "b" has the "z" "many", which is not a us'),
    ({"z": [1.0, 2.0, 1e200]}, {"gold": "z"}, '^gold: question "c" has the "z" 1e.200, which is not a usable number'),
    ({"t": [np.nan] * 3}, {"gold": "t"}, "^gold: found no truth, all are empty"),
    ({}, {"groups": "knd"}, '^groups: Column "knd": not found'),
    ({}, {"groups": "question"}, "^groups: .*holds the questions themselves"),
    ({}, {"groups": "none.csv"}, '^groups: File "none.csv": not found'),
    ({}, {"groups": ["x", "y", "y"]}, "^groups: found values without question ids"),
    ({}, {"covariates": [np.zeros(3)]}, "^covariates: found values without question ids"),
    ({}, {"covariates": {"a": 1.0, "b": None}}, '^covariates: 2 questions without a value of "covariate", first "b"'),
    ({}, {"gold": {1: 1.0}}, '^gold: found no question that is in the answers. It has 1, the answers have "a", "b"'),
    ({}, {"gold": {"A": 1.0}}, "They differ in spaces or capitals"),
    ({}, {"gold": {"question": ["a", "a"], "truth": [1.0, 2.0]}}, '"a" has two values of "truth", 1.0 and 2.0'),
    ({"t": [1.0, 2.0, 2.0], "question": ["a", "a", "b"]}, {"gold": "t"}, 'gold: question "a" has two values of "t"'),
    ({}, {"gold": [1.0, 2.0, 3.0]}, "^gold: found values without question ids"),
    ({"answer": [[1.0], [2.0], [3.0]]}, {}, 'holds "array<double>" values, not numbers'),
    ({"worker": [[1.0], [2.0], [3.0]]}, {}, "cannot be told apart as ids"),
]  # fmt: skip


@pytest.mark.parametrize(("columns", "options", "message"), FAULTS)
def test_what_cannot_be_used_is_told(
    columns: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    import pandas as pd

    plain = {"question": ["a", "b", "c"], "worker": ["u", "v", "w"], "answer": [1.0, 2.0, 3.0]}
    with pytest.raises(TrueupError, match=message):
        on_spark(pd.DataFrame({**plain, **columns}), **options)


def test_very_many_labels_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trueup.engines.spark.intake.MOST_LABELS", 2)
    with pytest.raises(AnswersError, match='column "worker 2" has more than 2 labels'):
        on_spark(sparse().assign(**{"worker 2": sparse()["worker"]}), groups="worker 2")


def test_errors_of_visits_come_back_and_vectors_stay() -> None:
    engine = on_spark(sparse())

    def visit(*_: Any) -> Visit:
        raise TrueupError("what: is wrong.")

    with pytest.raises(TrueupError, match=r"^what: is wrong\.$"):
        engine.sweep(visit)
    vector = engine.kept("x")
    with pytest.raises(TrueupError, match="stays on the cluster"):
        np.asarray(vector)
    with pytest.raises(TrueupError, match="have no order"):
        engine.keep("x", np.zeros(3))
    engine.close()


def runs_well(script: str, *arguments: str) -> None:
    """Run a script of this folder in a process of its own."""
    path = TESTS / script
    done = subprocess.run(  # noqa: S603
        [sys.executable, path, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert "same numbers" in done.stdout


def test_a_lost_executor_changes_nothing() -> None:
    if not Path("/proc/self/stat").exists():
        pytest.skip("needs Linux (/proc)")
    runs_well("spark_lost_executor.py")


def test_spark_connect_gives_the_same_numbers() -> None:
    """A process of its own: one that has a session uses no other kind."""
    pytest.importorskip("grpc", reason="needs grpc (Spark Connect)")
    runs_well("spark_connect.py", f"sc://127.0.0.1:{session().conf.get(PORT)}")


@pytest.mark.filterwarnings("ignore::trueup.TrueupWarning")
def test_the_public_estimate_and_its_frames() -> None:
    import trueup
    import trueup.spark

    frame = told(40)
    frame["truth"] = frame["question"].map(truths(frame, 10))
    n_missing = int(frame["answer"].isna().sum())
    known = {"groups": "kind", "covariates": "size", "gold": "truth"}
    rows = session().createDataFrame(frame)
    options: dict[str, Any] = {**known, "max_iter": 2}
    with trueup.spark.estimate(rows, "crh", "normal", partitions=2, **options) as est:
        questions = est.questions.toPandas().set_index("question").sort_index()
        verdicts = est.findings.workers
        workers = est.workers.toPandas().set_index("worker").sort_index()
        assert str(est).startswith(f"{len(frame) - n_missing} answers from 14 workers to 40 ")
        assert f"{n_missing} of {len(frame)} rows dropped: no answer" in str(est)
    expected = trueup.estimate(frame, "crh", "normal", **options)
    theirs = expected.questions.set_index("question").sort_index()
    np.testing.assert_allclose(questions, theirs[questions.columns], rtol=1e-9, atol=1e-12)
    theirs = expected.workers.set_index("worker").sort_index()
    np.testing.assert_allclose(workers["weight"], theirs["weight"], rtol=1e-9)
    assert est.diagnosis == expected.diagnosis
    judged = expected.findings.workers
    order = judged.worker_ids.sort_order().tolist()
    assert verdicts.worker_ids.tolist() == [judged.worker_ids.tolist()[i] for i in order]
    assert verdicts.flags == tuple(judged.flags[i] for i in order)
    np.testing.assert_allclose(verdicts.bias, judged.bias[order], rtol=1e-9, atol=1e-12)
    with pytest.raises(TrueupError, match="needs all answers in memory"):
        trueup.spark.estimate(rows, "crh", "normal", "jackknife", max_iter=1, partitions=1)


def test_files_of_answers_and_beside_them_are_taken_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import pyarrow.parquet as pq

    import trueup
    from trueup.cli.app import app

    session()  # the one that is there is taken
    frame = sparse(40, 8)
    frame["question"] = frame["question"].str[1:].astype(int)
    frame["size"] = frame["question"] % 5
    half = len(frame) // 2
    frame[:half].to_parquet(tmp_path / "answers1.parquet", index=False)
    other_order = frame[half:][["worker", "size", "answer", "question"]]
    other_order.to_parquet(tmp_path / "answers2.parquet", index=False)
    lines = [f"{j},{'film' if j % 2 else 'book'}" for j in range(45)] + ["1,film", "2,"]
    (tmp_path / "kinds.csv").write_text("\n".join(["question,group", *lines]))
    lines = [*(f"{j},{j + 0.5}" for j in range(12)), "3,3.5", "30,"]
    (tmp_path / "gold.csv").write_text("\n".join(["question,truth", *lines]))
    known = ["--groups", "kinds.csv", "--covariates", "size", "--gold", "gold.csv"]
    paths = [str(tmp_path / each) if each.endswith(".csv") else each for each in known]
    named = ["estimate", str(tmp_path / "answers?.parquet"), "--engine", "spark"]
    chosen = ["--method", "mean", "--shrink", "normal", "--out", str(tmp_path / "out.parquet")]
    (tmp_path / "others.csv").write_text("question,group\nx,film\ny,book")
    with pytest.raises(TrueupError, match="groups: found no question that is in the answers"):
        app([*named, "--groups", str(tmp_path / "others.csv"), *chosen])
    app([*named, *paths, *chosen], result_action="return_value")
    assert "12 known truths" in capsys.readouterr().out
    expected = trueup.estimate(
        frame,
        "mean",
        "normal",
        groups={j: "film" if j % 2 else "book" for j in range(40)},
        covariates="size",
        gold={j: j + 0.5 for j in range(12)},
    )
    found = pq.read_table(tmp_path / "out.parquet").sort_by("question").to_pandas()
    theirs = expected.questions.sort_values("question")
    assert found["question"].tolist() == theirs["question"].tolist()
    close(found[list(COLUMNS)], theirs[list(COLUMNS)])
    written = sorted(path.name for path in (tmp_path / "out.parquet").iterdir())
    with pytest.raises(TrueupError, match=r"--out: .*out\.parquet"):  # Spark would delete it first
        app([*named, *chosen], result_action="return_value")
    assert sorted(path.name for path in (tmp_path / "out.parquet").iterdir()) == written


def test_workers_who_err_together_are_heard_as_one() -> None:
    import pandas as pd

    from small_panels import judges, long_table

    frame = pd.DataFrame(long_table(judges(2)[1]))
    there, here = on_spark(frame), in_memory(frame)
    found = both_steps_agree(Fetched.of(there), here, "adaptive", "auto")
    assert found.diagnosis.pooling != ""
    there.close()


def test_names_people_use_are_recognised_and_kept() -> None:
    import pandas as pd

    import trueup
    import trueup.spark

    columns = {"Clip": list("aabb"), "Rater": list("xyxy"), "MOS": [1.0, 2.0, 4.0, 5.0]}
    frame = session().createDataFrame(pd.DataFrame(columns))
    memory = trueup.estimate(columns)
    gold = {"clip name": ["a"], "truth": [1.0]}
    with trueup.spark.estimate(frame) as est:
        found = est.questions.orderBy("Clip").toPandas()
        assert found["Clip"].tolist() == ["a", "b"]
        assert found["estimate"].tolist() == pytest.approx(memory.estimate.tolist(), abs=1e-9)
        assert est.workers.toPandas()["Rater"].tolist() == ["x", "y"]
    known = {"Clip": ["a"], "truth": [1.0]}
    with trueup.spark.estimate(frame, "mean", "none", gold=known) as est:
        assert est.questions.count() == 2
    with pytest.raises(AnswersError, match='a dict of columns of which one is "Clip"'):
        trueup.spark.estimate(frame, gold=gold)
    with pytest.raises(AnswersError, match="several are for answers in memory") as caught:
        trueup.spark.estimate(frame.withColumn("kind", frame["Clip"]), question=["Clip", "kind"])
    assert caught.value.argument == "question"
    strange = frame.toDF("film", "critic", "stars")
    with pytest.raises(AnswersError, match=r'question="film", worker="critic", answer="stars"\?'):
        trueup.spark.estimate(strange)
