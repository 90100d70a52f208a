"""The engine on disk does what the engine in memory does, and forgets nothing that it should keep."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from answers_on_disk import ingest, laid_out, table, write
from processes import begin
from trueup import Answers
from trueup.algorithms import find, run
from trueup.answers.dense_block import CompleteBlock
from trueup.engines.disk import DiskEngine
from trueup.engines.disk.checkpoint import DiskJournal
from trueup.engines.memory import MemoryEngine
from trueup.engines.protocol import Visit
from trueup.errors import TrueupError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from trueup.answers.block import Block
    from trueup.engines.disk.blocks import StoredAnswers
    from trueup.engines.protocol import Kept

SIZES = [1, 37, 200, 1 << 19]


@pytest.fixture(params=[{}, {"answer_variance": "variance"}, {"worker_variance": "of_worker"}])
def options(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Say what is known of the answers."""
    found: dict[str, Any] = request.param
    return found


@pytest.fixture
def both(tmp_path: Path, options: dict[str, Any]) -> Iterator[tuple[StoredAnswers, Answers]]:
    """Return answers on disk, and the same in memory with ids in the same order."""
    path = write(table(900, questions=150), tmp_path / "a.parquet")
    with ingest(path, tmp_path / "work", **options) as stored:
        yield stored, sorted_answers(Answers.from_file(path, **options))


def sorted_answers(answers: Answers) -> Answers:
    """Number questions and workers in the order of their ids."""
    found = laid_out(answers)
    origin = replace(
        answers.origin,
        question_ids=answers.question_ids.take(answers.question_ids.sort_order()),
        worker_ids=answers.worker_ids.take(answers.worker_ids.sort_order()),
    )
    return replace(
        answers,
        indptr=np.concatenate([[0], np.cumsum(found["counts"])]),
        workers=found["workers"].astype(np.int32),
        values=found["values"],
        centre=found["centre"],
        precision=found["precision"],
        worker_variance=found["worker_variance"],
        origin=origin,
    )


def crh_like(block: Block, kept: Kept) -> Visit:
    """Make truths of the answers and sums of what is left, and remember the truths."""
    before = kept.get("x", np.zeros(block.n_questions))
    weight, total = block.weigh(np.linspace(1.0, 2.0, block.n_workers))
    x = total / weight
    distance = block.squared_distances(x, "inverse_variance")
    return Visit(
        sums=np.stack([distance, block.by_worker(None, x + block.centre)]),
        panel_sums=np.array([[float((x - before) @ block.counts)]]),
        panel_peaks=np.array([np.abs(x - before).max()]),
        questions={"x": x, "n": block.counts.astype(np.float64)},
        rows={"few": x[:1], "two": np.ones((2, 3))},
    )


def same_sweep(one: Any, other: Any) -> None:
    for name in ("sums", "panel_sums", "panel_peaks"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-12, atol=1e-12)
    assert one.rows.keys() == other.rows.keys()
    for name, values in other.rows.items():
        np.testing.assert_allclose(one.rows[name], values, rtol=1e-12, atol=1e-12)


def off_centre(block: Block, kept: Kept) -> Block:
    """Take something off the answers of each worker, more where a vector says so."""
    block = block.adjusted(np.linspace(-1, 1, block.n_workers), None)
    shift = kept["n"]
    return replace(block, values=block.values + block.spread(shift), centre=block.centre - shift)


def test_numbers_of_answers_of_some_questions(both: tuple[StoredAnswers, Answers]) -> None:
    stored, answers = both
    for some in ([0, 5, answers.n_questions - 1], [3, 3], []):
        places = np.array(some, dtype=np.int64)
        assert stored.counts_of(places).tolist() == answers.counts[places].tolist()
        assert answers.counts_of(places).tolist() == answers.counts[places].tolist()


def test_sweeps_as_in_memory(both: tuple[StoredAnswers, Answers]) -> None:
    whole, answers = both
    for size, memory, threads in (
        (1, 20_000, 1),
        (37, 0, 3),
        (37, 1 << 30, 1),
        (200, 20_000, 3),
        (200, 0, 1),
        (1 << 19, 1 << 30, 3),
    ):
        stored = whole.cut(size)
        disk = DiskEngine(stored, threads=threads, memory=memory)
        inside = MemoryEngine(answers, block_answers=size)
        assert stored.n_blocks == len(inside.blocks)
        for reads in ((), ("x",), ("x", "n", "never")):
            same_sweep(disk.sweep(crh_like, reads), inside.sweep(crh_like, reads))
            for name in ("x", "n"):
                np.testing.assert_allclose(
                    disk.kept(name), inside.kept(name), rtol=1e-12, atol=1e-12
                )
        other, theirs = (engine.changed(off_centre, ("n",)) for engine in (disk, inside))
        # What a change has read stays as it was.
        for engine in (disk, inside):
            engine.keep("n", 7.0)
        same_sweep(other.sweep(crh_like, ("x",)), theirs.sweep(crh_like, ("x",)))
        np.testing.assert_allclose(disk.kept("x"), inside.kept("x"), rtol=1e-12, atol=1e-12)
        assert (other.kept("n") == answers.counts).all()


def test_blocks_are_those_of_memory(both: tuple[StoredAnswers, Answers]) -> None:
    stored, answers = both
    for size in SIZES:
        cut = stored.cut(size)
        for i, block in enumerate(answers.blocks(size)):
            mine = cut.block(i)
            assert type(mine) is type(block)
            assert (mine.start, mine.stop, mine.n_workers) == (
                block.start,
                block.stop,
                block.n_workers,
            )
            for name in ("indptr", "workers", "values", "centre", "panel_questions"):
                np.testing.assert_array_equal(getattr(mine, name), getattr(block, name))
                assert getattr(mine, name).dtype == getattr(block, name).dtype


def test_a_complete_block(tmp_path: Path) -> None:
    with ingest(write(table(60 * 30), tmp_path / "a.parquet"), tmp_path / "work") as stored:
        assert isinstance(stored.block(0), CompleteBlock)


def test_without_answers(both: tuple[StoredAnswers, Answers]) -> None:
    stored, answers = both

    def visit(block: Block, kept: Kept) -> Visit:
        return Visit(
            questions={"level": block.centre + kept["shift"], "n": block.counts.astype(np.float64)}
        )

    for memory in (0, 1 << 30):
        engine = DiskEngine(stored.cut(100), memory=memory)
        engine.keep("shift", 2.0)
        engine.sweep(visit, ("shift",), answers=False)
        np.testing.assert_array_equal(engine.kept("level"), answers.centre + 2.0)
        np.testing.assert_array_equal(engine.kept("n"), answers.counts)


def test_keeping(both: tuple[StoredAnswers, Answers]) -> None:
    stored, answers = both
    engine = DiskEngine(stored.cut(100))
    engine.keep("one", 3.5)
    assert engine.kept("one").tolist() == [3.5] * answers.n_questions
    engine.keep("all", np.zeros(answers.n_questions))
    engine.keep("all", np.linspace(0.0, 1.0, answers.n_questions))
    kept = engine.kept("all")
    assert kept.tolist() == np.linspace(0.0, 1.0, answers.n_questions).tolist()
    assert not kept.flags.writeable
    with pytest.raises(TrueupError, match=r"short: found \(3,\) numbers, must be one for each"):
        engine.keep("short", np.zeros(3))
    with pytest.raises(TrueupError, match="no visit has kept"):
        engine.kept("none")
    with pytest.raises(TrueupError, match="name: found"):
        engine.keep("../x", np.zeros(answers.n_questions))


def test_draws(both: tuple[StoredAnswers, Answers]) -> None:
    stored, answers = both
    disk, inside = DiskEngine(stored.cut(100)), MemoryEngine(answers)
    for seed in (0, 7):
        for engine in (disk, inside):
            engine.draw(seed)
        np.testing.assert_array_equal(disk.kept("draw"), inside.kept("draw"))


def test_gathering(both: tuple[StoredAnswers, Answers]) -> None:
    stored, answers = both
    disk, inside = DiskEngine(stored.cut(100)), MemoryEngine(answers)
    for engine in (disk, inside):
        engine.draw(1)
    draws = np.sort(inside.kept("draw"))
    assert_same_answers(disk.gather(), answers)
    for few in (0, 1, 20, 1000):
        border = draws[min(few, answers.n_questions) - 1] if few else -1.0

        def small(_block: Block, kept: Kept, border: float = border) -> Any:
            return kept["draw"] <= border

        assert_same_answers(*(engine.gather(small, ("draw",)) for engine in (disk, inside)))


def assert_same_answers(found: Answers, expected: Answers) -> None:
    """The same numbers and ids in the same order."""
    for name in ("indptr", "workers", "values", "centre", "panel_workers", "worker_variance"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    if expected.precision is not None:
        assert found.precision is not None
        np.testing.assert_allclose(found.precision, expected.precision, rtol=1e-14)
    assert found.question_ids.tolist() == expected.question_ids.tolist()
    assert found.worker_ids.tolist() == expected.worker_ids.tolist()


# -- what survives ---------------------------------------------------------------------------------


def test_a_pass_that_fails_leaves_the_old_vectors(both: tuple[StoredAnswers, Answers]) -> None:
    stored, _ = both
    engine = DiskEngine(stored.cut(100), threads=2)
    engine.sweep(crh_like)
    before = engine.kept("x").copy()

    def fails(block: Block, _: Kept) -> Visit:
        if block.start > 50:
            raise ZeroDivisionError
        return Visit(questions={"x": np.zeros(block.n_questions)})

    with pytest.raises(ZeroDivisionError):
        engine.sweep(fails)
    np.testing.assert_array_equal(engine.kept("x"), before)

    def forgets(block: Block, _: Kept) -> Visit:
        return Visit(questions={"x": np.zeros(block.n_questions)} if block.start > 50 else None)

    with pytest.raises(TrueupError, match="All of a pass must, or none"):
        engine.sweep(forgets)
    np.testing.assert_array_equal(engine.kept("x"), before)
    assert {path.suffix for path in stored.folder.vectors.iterdir()} == {".f64"}


def test_vectors_of_an_earlier_run_are_not_seen(both: tuple[StoredAnswers, Answers]) -> None:
    stored, _ = both
    first = DiskEngine(stored)
    first.sweep(crh_like)
    assert first.journal is not None
    first.journal.save("key", {"weights": np.arange(3.0)})
    second = DiskEngine(stored)
    assert second.journal is not None
    assert second.journal.load("another key") is None
    found = second.journal.load("key")
    assert found is not None
    assert found["weights"].tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(TrueupError, match="no visit has kept"):
        second.kept("x")


def test_journal(tmp_path: Path) -> None:
    journal = DiskJournal(tmp_path)
    assert journal.load("a") is None
    journal.save("a", {"x": np.arange(4), "empty": np.zeros((0, 3)), "flag": np.array(True)})
    found = DiskJournal(tmp_path).load("a")
    assert found is not None
    assert found["x"].tolist() == [0, 1, 2, 3]
    assert found["empty"].shape == (0, 3)
    assert found["flag"].item() is True
    assert journal.load("b") is None
    journal.save("b", {"x": np.ones(1000)})
    assert journal.load("a") is not None
    journal.clear()
    journal.save("b", {"x": np.ones(1000)})
    (path,) = tmp_path.glob("journal-*.npz")
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for at in rng.integers(0, len(content), 20).tolist():
        path.write_bytes(content[:at])
        assert journal.load("b") is None
    path.write_bytes(b"")
    assert journal.load("b") is None
    with pytest.raises(TypeError, match="not data"):
        journal.save("c", {"x": np.array([{}])})
    journal.save("c", {})
    assert journal.load("c") == {}
    journal.clear()
    assert journal.load("c") is None
    assert not list(tmp_path.iterdir())


def test_journal_holds_no_code(tmp_path: Path) -> None:
    journal = DiskJournal(tmp_path)
    journal.save("a", {"x": np.ones(1)})
    (path,) = tmp_path.glob("journal-*.npz")
    np.savez(path, x=np.array([print], dtype=object))
    assert journal.load("a") is None


CHILD = """
import os, signal
import numpy as np
from trueup.engines.disk import DiskEngine
from trueup.engines.disk.intake import ingest
from trueup.engines.protocol import Visit
with ingest(source, work) as stored:
    engine = DiskEngine(stored.cut(10), threads=1)
    engine.sweep(lambda block, _: Visit(questions={"x": np.full(block.n_questions, 1.0)}))
    engine.journal.save("key", {})
    def dies(block, _):
        if block.start > 50:
            os.kill(os.getpid(), signal.SIGKILL)
        return Visit(questions={"x": np.full(block.n_questions, 2.0)})
    engine.sweep(dies)
"""


def test_a_pass_that_is_killed_leaves_the_old_vectors(tmp_path: Path) -> None:
    path, work = write(table(900, questions=150), tmp_path / "a.parquet"), tmp_path / "work"
    done = begin(exec, CHILD, {"source": path, "work": work}).end()
    assert done.code == -signal.SIGKILL, done
    with ingest(path, work) as stored:
        engine = DiskEngine(stored)
        assert engine.journal is not None
        assert engine.journal.load("key") == {}
        left = np.fromfile(stored.folder.vectors / "x.f64")
        assert (left == 1.0).all()
        engine.keep("x", np.zeros(stored.n_questions))
    assert not list(work.glob("vectors/*.new"))


ROUNDS = """
import os, signal
from trueup.algorithms import find, run
from trueup.engines.disk import DiskEngine
from trueup.engines.disk.intake import ingest
def dies(step, moved):
    if step == 4:
        os.kill(os.getpid(), signal.SIGKILL)
with ingest(source, work) as stored:
    run(find("crh"), DiskEngine(stored), tol=0.0, callback=dies)
"""


def test_rounds_that_another_process_finished_are_not_done_again(tmp_path: Path) -> None:
    path, work = write(table(900, questions=150), tmp_path / "a.parquet"), tmp_path / "work"
    done = begin(exec, ROUNDS, {"source": path, "work": work}).end()
    assert done.code == -signal.SIGKILL, done
    steps: list[int] = []
    with ingest(path, work) as stored:
        engine = DiskEngine(stored)
        found = run(find("crh"), engine, tol=0.0, callback=lambda step, _: steps.append(step))
        assert steps[0] == 4
        assert engine.journal is not None
        engine.journal.clear()
        expected = run(find("crh"), engine, tol=0.0)
    assert found.iterations.tolist() == expected.iterations.tolist() == [14]
    np.testing.assert_allclose(found.x, expected.x, rtol=1e-12)


def test_vectors_on_a_full_disk(
    both: tuple[StoredAnswers, Answers], monkeypatch: pytest.MonkeyPatch
) -> None:
    stored, _ = both
    engine = DiskEngine(stored.cut(100))
    engine.sweep(crh_like)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(np, "ascontiguousarray", full)
    with pytest.raises(TrueupError, match="the disk is full"):
        engine.sweep(crh_like)
