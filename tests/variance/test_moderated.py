"""The moderated variance, against plain loops, closed forms and known answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plain_noise
import trueup
from plain_noise import Floats
from trueup.algorithms import Native, run, screening
from trueup.algorithms.facts import gather_facts
from trueup.algorithms.registry import find
from trueup.algorithms.screening import mark_gross_questions, screen
from trueup.engines import vectors
from trueup.engines.memory import MemoryEngine
from trueup.variance import certainty, moderated, worker_noise

LINEAR = ("mean", "crh", "catd", "gtm", "iptd", "native")
ROBUST = ("median", "kdem")


def sparse(seed: int, n: int = 7, m: int = 14, share: float = 0.6, *, bias: float = 0.5) -> Floats:
    """A random matrix in which every question has an answer, some a single one, and workers differ."""
    rng = np.random.default_rng(seed)
    noise = np.exp(rng.normal(0, 0.7, n))
    x = (
        rng.normal(0, 2, m)
        + rng.normal(0, bias, n)[:, None]
        + noise[:, None] * rng.normal(size=(n, m))
    )
    x[rng.random((n, m)) > share] = np.nan
    for j in np.flatnonzero(np.isnan(x).all(axis=0)):
        x[rng.integers(n), j] = rng.normal()
    return x[~np.isnan(x).all(axis=1)]


def with_gross(seed: int) -> Floats:
    x = sparse(seed, n=8, m=18, share=0.8)
    many = np.flatnonzero((~np.isnan(x)).sum(axis=0) >= 3)
    j = many[0]
    x[np.flatnonzero(~np.isnan(x[:, j]))[0], j] = 1e4
    return x


CASES = [sparse(seed) for seed in range(4)] + [
    sparse(5, share=1.0),
    sparse(6, share=1.0, bias=0.0),
    sparse(7, n=3, m=6, share=0.7),
    with_gross(8),
    with_gross(9),
    sparse(10, n=40, m=12, share=0.15),
]


@pytest.mark.parametrize("x", CASES, ids=range(len(CASES)))
def test_answers_without_biases_may_be_centred_anew_or_not(
    x: Floats, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = trueup.Answers.of(x)
    as_they_are = worker_noise(answers)
    monkeypatch.setattr(screening, "LARGE_BIAS", 0.0)
    anew = worker_noise(answers)
    assert as_they_are.variance == pytest.approx(anew.variance, rel=1e-10)
    if anew.bias_variance.any():
        engines: list[Any] = [noise.screening.engine for noise in (as_they_are, anew)]
        blocks = [engine.blocks[0] for engine in engines]
        assert (blocks[0].centre == answers.centre).all()
        assert (blocks[1].centre != answers.centre).any()
        assert blocks[0].answers == pytest.approx(blocks[1].answers, rel=1e-12)


def test_truths_of_the_noise_are_nobody_elses() -> None:
    """The engine keeps the truths of the first step, and not those that the noise was learned from."""
    engine = MemoryEngine(trueup.Answers.of(sparse(2)))
    run(find("crh"), engine)
    before = engine.kept(vectors.ITERATE)
    worker_noise(engine)
    assert engine.kept(vectors.ITERATE) is before


@pytest.mark.parametrize("x", CASES, ids=range(len(CASES)))
def test_noise_of_the_workers_is_that_of_the_plain_loop(x: Floats) -> None:
    expected = plain_noise.worker_noise(x)
    noise = worker_noise(trueup.Answers.of(x))
    facts = noise.screening.facts
    assert facts.bias is not None
    assert facts.bias_variance is not None
    np.testing.assert_array_equal(noise.screening.gross, expected["gross"])
    np.testing.assert_allclose(facts.bias, expected["bias"], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(facts.bias_variance, expected["tb2"], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(facts.pool, expected["pool"], rtol=1e-9)
    np.testing.assert_allclose(noise.variance, expected["s"], rtol=1e-8)
    np.testing.assert_allclose(noise.freedom, expected["d"], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("method", LINEAR + ROBUST)
@pytest.mark.parametrize("x", CASES, ids=range(len(CASES)))
def test_variances_are_those_of_the_plain_loop(x: Floats, method: str) -> None:
    answers = trueup.Answers.of(x)
    # The plain loop knows of no biases that a first step has removed.
    algorithm = Native(biases=False) if method == "native" else find(method)
    aggregate = run(algorithm, answers)
    share = np.zeros_like(x)
    for block in answers.blocks():
        at = np.repeat(np.arange(block.n_questions), block.counts)
        p = aggregate.algorithm.weights(block, aggregate.state.of(block), aggregate.offset)
        share[block.workers, at] = p
    expected = plain_noise.aggregate_variance(
        x,
        share,
        aggregate.x,
        aggregate.weight,
        robust=method in ROBUST,
        plain=method == "median",
    )
    found = moderated(answers, aggregate)
    np.testing.assert_allclose(found.v, expected["v"], rtol=1e-7)
    np.testing.assert_allclose(found.v_interval, expected["vi"], rtol=1e-7)
    np.testing.assert_allclose(found.nu, expected["nu"], rtol=1e-7)
    np.testing.assert_allclose(found.interval_nu, expected["interval_nu"], rtol=1e-7)
    np.testing.assert_allclose(found.shift_nu, expected["shift_nu"], rtol=1e-6)
    if method in LINEAR:
        np.testing.assert_allclose(found.shift, expected["shift"], rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("method", ["mean", "crh", "native", "median", "kdem", "subject_bias"])
def test_panels_are_as_if_each_were_alone(method: str) -> None:
    frames = [trueup.Answers.of(x) for x in CASES]
    rows: dict[str, list[Any]] = {"panel": [], "question": [], "worker": [], "answer": []}
    for b, x in enumerate(CASES):
        for i, j in np.argwhere(~np.isnan(x)):
            for name, value in zip(rows, (b, f"{b}-{j}", f"{b}-{i:02d}", x[i, j]), strict=True):
                rows[name].append(value)
    together = trueup.Answers.from_frame(rows, panel="panel")
    found = certainty("moderated", together, run(find(method), together))
    for b, alone in enumerate(frames):
        one = certainty("moderated", alone, run(find(method), alone))
        here = [together.question_ids.tolist().index(f"{b}-{j}") for j in range(alone.n_questions)]
        np.testing.assert_allclose(found.v[here], one.v, rtol=1e-9)
        np.testing.assert_allclose(found.v_interval[here], one.v_interval, rtol=1e-9)
        np.testing.assert_allclose(found.nu[b], one.nu[0], rtol=1e-9)
        np.testing.assert_allclose(found.shift[b], one.shift[0], rtol=1e-9, atol=1e-15)


def test_of_a_plain_mean_it_is_the_usual_unbiased_variance() -> None:
    x = sparse(3, n=6, m=40, share=1.0)
    answers = trueup.Answers.of(x)
    found = moderated(answers, run(find("mean"), answers))
    clean = x - (x - x.mean(axis=0)).mean(axis=1, keepdims=True)
    pool = ((clean - clean.mean(axis=0)) ** 2).sum() / (39 * 5)
    # The two views of the weights differ a little, by chance; never upward.
    np.testing.assert_allclose(found.v, pool / 6, rtol=0.01)
    assert (found.v <= pool / 6 * (1 + 1e-12)).all()


def test_variances_are_right_on_average_where_workers_differ() -> None:
    """Mean over 400 panels, six first steps: within 15% of the true squared error beyond the common shift."""
    answers, truth = trueup.simulate(workers=8, questions=30, panels=400, seed=5)
    for method in ("mean", "crh", "native", "gtm"):
        aggregate = run(find(method), answers)
        error = np.mean((aggregate.x - truth) ** 2)
        assert np.mean(moderated(answers, aggregate).v) == pytest.approx(error, rel=0.15)


def test_large_biases_cost_no_digits() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5, 30))
    shifted = x + np.array([0.0, 1e7, -3e7, 2e7, 5e6])[:, None]
    a, b = (
        worker_noise(trueup.Answers.of(each)).variance
        for each in (x + 5 * rng.normal(size=(5, 1)), shifted)
    )
    np.testing.assert_allclose(b, a, rtol=1e-6)


def test_one_absurd_answer_is_set_apart() -> None:
    x = np.random.default_rng(1).normal(size=(5, 12))
    x[2, 7] = 1e15
    answers = trueup.Answers.of(x)
    engine = MemoryEngine(answers)
    count = mark_gross_questions(engine)
    gross, absurd = engine.kept("gross") > 0, engine.kept("absurd") > 0
    assert count == gross.sum()
    assert gross.tolist() == absurd.tolist() == [j == 7 for j in range(12)]
    rest = screen(engine, gather_facts(engine)).facts.pool[0]
    assert rest == pytest.approx(1.0, abs=0.5)


def test_a_large_question_on_which_all_scatter_is_not_pulled_in() -> None:
    """Its variance is a hundred times that of the others, but no single answer is to blame."""
    rng = np.random.default_rng(4)
    x = np.exp(rng.normal(3, 1, 30) + 0.3 * rng.normal(size=(5, 30)))
    x[:, 0] = [984, 688, 636, 825, 1237]
    answers = trueup.Answers.of(x)
    screening = worker_noise(answers).screening
    assert screening.gross[0]
    assert not screening.absurd[0]
    for method in ("mean", "native", "median"):
        est = trueup.estimate(x, method=method)
        assert 636 < est.estimate[0] < 1237
        assert est.upper[0] - est.lower[0] > 200


def test_fewer_than_five_questions_are_never_gross() -> None:
    x = np.random.default_rng(1).normal(size=(5, 4))
    x[2, 3] = 1e9
    assert not worker_noise(trueup.Answers.of(x)).screening.gross.any()


def test_known_answer_variances_enter_as_precisions() -> None:
    """Doubling precision of a worker's answers halves what their share adds, and equal ones change nothing."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(6, 25))
    plain_answers = trueup.Answers.of(x)
    equal = trueup.Answers.of(x, answer_variance=np.full(x.shape, 0.25))
    for method in ("mean", "native"):
        a = moderated(plain_answers, run(find(method), plain_answers))
        b = moderated(equal, run(find(method), equal))
        np.testing.assert_allclose(a.v, b.v, rtol=1e-9)
    # Truly unequal: the first 12 questions have answers of a quarter of the variance of the others.
    spread = np.where(np.arange(400) < 200, 0.25, 1.0)
    truth = rng.normal(size=400)
    x = truth + np.sqrt(spread) * rng.normal(size=(6, 400))
    answers = trueup.Answers.of(x, answer_variance=np.broadcast_to(spread, x.shape).copy())
    found = moderated(answers, run(find("mean"), answers)).v
    assert found[:200].mean() == pytest.approx(0.25 / 6, rel=0.1)
    assert found[200:].mean() == pytest.approx(1 / 6, rel=0.1)


def test_the_variance_of_the_biases_has_one_degree_of_freedom_less_than_there_are_workers() -> None:
    x = np.arange(28.0).reshape(4, 7) % 5
    x[3, 1:] = np.nan  # one answer tells nothing of a bias
    assert worker_noise(trueup.Answers.of(x)).shift_freedom.tolist() == [2.0]
    # Nobody to compare with: one, since none would be no number to divide by.
    assert worker_noise(trueup.Answers.of(x[:1])).shift_freedom.tolist() == [1.0]


@pytest.mark.parametrize("scale", [1.0, 3.0, -0.1])
def test_where_biases_explain_all_units_change_nothing(scale: float) -> None:
    """Found by fuzzing: what was left was 0 in some units and 1e-33 in others, and so were the biases."""
    x = scale * np.array([[1.0, 1.0, 1.0], [2.0, 2.0, 2.0], [2.0, 2.0, 2.0]])
    est = trueup.estimate(x, "mean")
    assert not est.second_step.certainty.shift.any()
    np.testing.assert_allclose(est.second_step.certainty.v, scale**2 / 9)


def test_units_do_not_decide_what_is_rounding() -> None:
    """A residual that is 0 but for rounding is 0, in whatever unit answers are given."""
    x = np.array([[np.nan, 0.0], [0.0, 0.0], [0.25, 0.25]])
    expected = trueup.estimate(x, "median").std_error
    for unit in (3.0, 1e40, 1.1e40, 1e-30):
        found = trueup.estimate(x * unit, "median").std_error
        np.testing.assert_allclose(found, unit * expected, rtol=1e-9)
