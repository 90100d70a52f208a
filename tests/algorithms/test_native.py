"""The native first step: against recorded numbers, against a plain program, and against what it promises."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import trueup
from plain_native import plain_native
from trueup import Answers
from trueup.algorithms import Aggregate, Native, find, run
from trueup.algorithms import native as module
from trueup.engines.memory import MemoryEngine

if TYPE_CHECKING:
    from trueup.core.arrays import Floats

VECTORS: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "first_step_vectors.json").read_text()
)
VERSIONS = ("mean_", "normal_", "heavy_")


def loner() -> dict[str, Any]:
    """Biased workers, and one who shares no question with anybody."""
    rng = np.random.default_rng(5)
    worker = np.concatenate([rng.choice(6, 3, replace=False) for _ in range(12)])
    question = np.repeat(np.arange(12), 3)
    answer = rng.normal(0, 3, 12)[question] + 2.0 * worker + rng.normal(size=36)
    return {
        "question": [*question.tolist(), 12, 13],
        "worker": [*worker.tolist(), 6, 0],
        "answer": [*answer.tolist(), 3.3, 1.1],
    }


def random_case(seed: int) -> dict[str, Any]:
    """Sparse answers of unequal workers, some biased, some now and then absurd, some tied."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 12)), int(rng.integers(1, 25))
    sd = np.exp(rng.normal(0, rng.choice([0.0, 1.0]), n))
    bias = rng.normal(0, rng.choice([0.0, 2.0]), n)
    inside = rng.random((m, n)) < rng.uniform(0.3, 1.0)
    inside[np.arange(m), rng.integers(n, size=m)] = True
    inside[rng.integers(m, size=n), np.arange(n)] = True
    question, worker = np.nonzero(inside)
    x = rng.normal(0, 4, m)[question] + bias[worker] + sd[worker] * rng.normal(size=len(question))
    x += (rng.random(len(x)) < rng.choice([0.0, 0.1])) * rng.normal(0, 50, len(x))
    if seed % 3 == 0:
        x = np.round(x)
    return {"question": question, "worker": worker, "answer": x}


def aggregate(case: dict[str, Any], **parameters: Any) -> Aggregate:
    columns = {name: case[name] for name in ("question", "worker", "answer")}
    return run(Native(**parameters), Answers.of(columns))


def found(outcome: Aggregate) -> dict[str, Any]:
    """The outcome in the order of the ids of questions and workers."""
    problem, state = outcome.engine.problem, outcome.state
    question = np.argsort(np.array(problem.question_ids.tolist()))
    worker = np.argsort(np.array(problem.worker_ids.tolist()))
    bias = np.zeros(problem.n_workers) if outcome.bias is None else outcome.bias
    return {
        "t": outcome.x[question],
        "v": outcome.variance[question],
        "s": outcome.noise[worker],
        "b": bias[worker],
        "weight": [state[name + "weight"][0] for name in VERSIONS],
        "evidence": state["evidence"][0],
        "shift": state["shift"][0],
        "d0": [state[name + "strength"][0] for name in VERSIONS[1:]],
    }


@pytest.mark.parametrize("name", VECTORS)
def test_recorded_numbers(name: str) -> None:
    case = VECTORS[name]
    got = found(aggregate(case))
    for key in ("t", "v", "s", "b", "weight", "d0"):
        np.testing.assert_allclose(got[key], case[key], rtol=1e-8, atol=1e-9, err_msg=key)


@pytest.mark.parametrize("name", VECTORS)
def test_the_plain_program_has_the_recorded_numbers(name: str) -> None:
    case = VECTORS[name]
    plain = plain_native(case["question"], case["worker"], case["answer"])
    for key in ("t", "v", "s", "b", "tb2", "weight", "t_gauss", "ml", "d0"):
        np.testing.assert_allclose(plain[key], case[key], rtol=1e-8, atol=1e-9, err_msg=key)


@pytest.mark.parametrize("biases", [True, False])
@pytest.mark.parametrize("seed", [*range(24), "loner"])
def test_all_is_that_of_the_plain_program(seed: int | str, biases: bool) -> None:
    case = loner() if seed == "loner" else random_case(int(seed))
    plain = plain_native(case["question"], case["worker"], case["answer"], biases=biases)
    got = found(aggregate(case, biases=biases))
    if plain["weight"] is None:  # nothing to compare
        np.testing.assert_allclose(got["t"], plain["t"])
        np.testing.assert_array_equal(got["v"], plain["v"])
        return
    scale = float(np.abs(case["answer"]).max())
    for key, value in got.items():
        unit = {"t": scale, "b": scale, "v": scale**2, "s": scale**2, "shift": scale**2}.get(key, 1)
        np.testing.assert_allclose(
            value, plain[key], rtol=1e-7, atol=1e-10 * unit, err_msg=f"{seed} {key}"
        )


def test_the_random_cases_show_all_three_versions_and_biases() -> None:
    weights = np.array([found(aggregate(random_case(s)))["weight"] for s in range(24)])
    assert (weights.max(axis=0) > 0.5).all()
    assert any(aggregate(random_case(seed)).bias is not None for seed in range(24))


def test_a_batch_of_panels_is_as_if_each_were_alone() -> None:
    cases = [random_case(seed) for seed in range(12)]
    frames = [pd.DataFrame(case).assign(panel=number) for number, case in enumerate(cases)]
    answers = Answers.from_frame(pd.concat(frames), panel="panel")
    together = run(Native(), answers)
    borders, workers = answers.panel_questions, answers.panel_workers
    for number, case in enumerate(cases):
        alone = aggregate(case)
        mine = slice(borders[number], borders[number + 1])
        np.testing.assert_allclose(together.x[mine], alone.x, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(together.variance[mine], alone.variance, rtol=1e-9)
        who = slice(workers[number], workers[number + 1])
        np.testing.assert_allclose(np.sort(together.noise[who]), np.sort(alone.noise), rtol=1e-9)
        np.testing.assert_allclose(
            together.state["evidence"][who], alone.state["evidence"], rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize("seed", [1, 2, 6])
def test_blocks_and_threads_change_nothing(seed: int) -> None:
    answers = Answers.of(random_case(seed))
    one = run(Native(), MemoryEngine(answers, threads=1))
    many = run(Native(), MemoryEngine(answers, threads=2, block_answers=7))
    np.testing.assert_allclose(many.x, one.x, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(many.variance, one.variance, rtol=1e-9)


@pytest.mark.parametrize("seed", [0, 1, 2, 5])
def test_truths_and_shares_can_be_asked_for_block_by_block(seed: int) -> None:
    outcome = aggregate(random_case(seed))
    answers, algorithm = outcome.engine.gather(), outcome.algorithm
    for block in answers.blocks():
        state = outcome.state.of(block)
        np.testing.assert_allclose(
            algorithm.truths(block, state), outcome.offset, rtol=1e-9, atol=1e-12
        )
        shares = algorithm.weights(block, state, outcome.offset)
        assert shares is not None
        assert (shares >= 0).all()
        np.testing.assert_allclose(block.by_question(shares), 1.0)


def test_known_variances_of_answers_count_as_more_or_fewer_answers() -> None:
    """An answer of four times the precision is worth what half the distance would be."""
    rng = np.random.default_rng(3)
    x = rng.normal(0, 3, 30) + rng.normal(size=(6, 30))
    frame = pd.DataFrame(
        {
            "question": np.tile(np.arange(30), 6),
            "worker": np.repeat(np.arange(6), 30),
            "answer": x.ravel(),
            "v": np.full(180, 2.5),
        }
    )
    plain = run(Native(), Answers.of(frame[["question", "worker", "answer"]]))
    same = run(Native(), Answers.of(frame, answer_variance="v"))
    np.testing.assert_allclose(same.x, plain.x, rtol=1e-9)
    frame.loc[frame["question"] < 15, "v"] = 1e6
    frame.loc[frame["worker"] == 0, "v"] = 2.5
    unequal = run(Native(), Answers.of(frame, answer_variance="v"))
    np.testing.assert_allclose(unequal.x[:15], x[0, :15], atol=0.05)


def test_alike_normal_workers_get_the_mean() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(0, 3, 400) + rng.normal(size=(8, 400))
    outcome = run(Native(), Answers.of(x))
    away = (outcome.x - x.mean(axis=0)) / np.sqrt(outcome.variance)
    assert np.sqrt(np.mean(away**2)) < 0.05


def test_two_discordant_answers_stay_a_mean() -> None:
    x = np.array([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.1, 1.9, 3.1, 4.2, 4.9, 600.0]])
    np.testing.assert_allclose(run(Native(), Answers.of(x)).x, x.mean(axis=0), rtol=1e-6)


def test_where_all_agree_a_lone_answer_is_of_unknown_variance() -> None:
    case = {"question": [0, 0, 1, 1, 2], "worker": [0, 1, 0, 1, 0], "answer": [1.0, 1, 5, 5, 7]}
    outcome = aggregate(case)
    np.testing.assert_array_equal(outcome.x, [1, 5, 7])
    np.testing.assert_array_equal(outcome.variance, [0, 0, np.nan])
    assert outcome.has_variance
    est = trueup.estimate(case)
    np.testing.assert_array_equal(est.estimate, [1, 5, 7])
    np.testing.assert_array_equal(est.std_error, [0, 0, np.nan])


@pytest.mark.parametrize(("a", "b"), [(-1.0, 0.0), (1e-6, 0.0), (1e9, 0.0), (1.0, 1e6)])
def test_units_move_with_the_answers(a: float, b: float) -> None:
    for seed in (0, 1, 2, 4):
        case = random_case(seed)
        first, other = aggregate(case), aggregate({**case, "answer": a * case["answer"] + b})
        scale = abs(a) * np.ptp(case["answer"])
        np.testing.assert_allclose(other.x, a * first.x + b, atol=1e-7 * scale)


def test_a_sample_serves_the_first_rounds_of_a_large_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Estimates move by less than a hundredth of a standard error."""
    answers = large()
    full = run(Native(), answers)
    monkeypatch.setattr(module, "SAMPLED", 1500)
    monkeypatch.setattr(module, "ANSWERS_EACH", 150)
    sampled = run(Native(), answers)
    assert (sampled.x != full.x).any()
    assert sampled.iterations.tolist() == full.iterations.tolist() == [10]
    moved = (sampled.x - full.x) / np.sqrt(full.variance)
    assert np.sqrt(np.mean(moved**2)) < 0.01


def test_an_absurd_answer_that_no_sample_shows_is_ignored() -> None:
    """Its worker's variance says hardly anything of it: only all answers tell that errors have heavy tails."""
    rng = np.random.default_rng(1)
    x = rng.normal(170, 3, (60_000, 1)) + rng.normal(size=(60_000, 5))
    assert len(x) > 2 * module.SAMPLED
    x[7, 0] += 150
    found = run(Native(), Answers.from_matrix(x.T))
    assert found.state["heavy_weight"][0] > 0.99
    assert found.x[7] == pytest.approx(x[7, 1:].mean(), abs=1.0)


def large() -> Answers:
    rng = np.random.default_rng(4)
    m, n, k = 5000, 40, 5
    worker = np.argsort(rng.random((m, n)), axis=1)[:, :k].ravel()
    question = np.repeat(np.arange(m), k)
    x: Floats = rng.normal(0, 3, m)[question] + rng.normal(0, 0.5, n)[worker]
    x += np.exp(rng.normal(0, 0.5, n))[worker] * rng.normal(size=m * k)
    return Answers.of({"question": question, "worker": worker, "answer": x})


def test_fewer_rounds_can_be_asked_for() -> None:
    case = random_case(2)
    answers = Answers.of(case)
    for rounds in (0, 1, 4):
        outcome = run(find("native"), answers, max_iter=rounds)
        assert outcome.iterations.tolist() == [rounds]
        assert np.isfinite(outcome.x).all()


def test_its_parameter_is_checked() -> None:
    with pytest.raises(trueup.TrueupError, match="biases"):
        Native(biases="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize("scale", [1.0, -1.0, 2.0, -3.0, 1e-30, 7e40])
def test_rounding_does_not_decide_whether_there_are_biases(scale: float) -> None:
    """Two workers a constant apart on two questions are right at the limit."""
    x = np.array([[0.0, 0.0], [0.75, 0.75]])
    one, other = (trueup.estimate(each, "native", "none") for each in (x, scale * x))
    np.testing.assert_allclose(other.std_error, abs(scale) * one.std_error, rtol=1e-9)


@pytest.mark.parametrize("seed", [4, 6])
def test_answers_over_many_orders_of_magnitude_have_a_likelihood(seed: int) -> None:
    """Heavy tails may give a worker more than a whole share of a question; what is left is not below nothing."""
    rng = np.random.default_rng(seed)
    x = np.exp(8 * (rng.normal(0, 2, 60)[None, :] + rng.normal(0, 1, (4, 60))))
    found = run(Native(), Answers.from_matrix(x))
    assert np.isfinite(found.state["evidence"]).all()
