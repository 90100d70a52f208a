"""Biases of workers as random effects, against Henderson's mixed model equations solved densely."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

import trueup
from trueup import Answers
from trueup.engines.memory import MemoryEngine
from trueup.variance import worker_noise
from trueup.variance.bias import Biases, _solve, estimate_biases

if TYPE_CHECKING:
    from trueup.core.arrays import Bools, Floats


def sparse(
    seed: int, n: int = 8, m: int = 25, *, share: float = 0.5, bias: float = 1.5
) -> tuple[Floats, Floats, Floats]:
    """Return answers, truths and biases; every question has an answer."""
    rng = np.random.default_rng(seed)
    truth, own = rng.normal(0.0, 1.0, m), rng.normal(0.0, bias, n)
    noise = np.exp(rng.normal(0.0, 0.3, n))
    x = truth + own[:, None] + noise[:, None] * rng.normal(size=(n, m))
    rank = rng.random((n, m)).argsort(axis=0).argsort(axis=0)
    x[(rng.random((n, m)) > share) & (rank > 0)] = np.nan
    here = ~np.isnan(x).all(axis=1)
    return x[here], truth, own[here]


def henderson(
    x: Floats, s: Floats, tb2: float, gross: Bools | None = None
) -> tuple[Floats, Floats]:
    """Biases at given variances, and the covariance of their errors, by the mixed model equations.

    The location is fixed so that the answers keep their mean.
    """
    used = x if gross is None else np.where(gross, np.nan, x)
    n, m = x.shape
    worker, question = np.nonzero(~np.isnan(used))
    y, precision = used[worker, question], 1.0 / s[worker]
    design = np.zeros((len(y), m + n))
    design[np.arange(len(y)), question] = 1.0
    design[np.arange(len(y)), m + worker] = 1.0
    left = design.T @ (precision[:, None] * design)
    left[m:, m:] += np.eye(n) / tb2
    some = np.concatenate([np.isin(np.arange(m), question), np.ones(n, dtype=bool)])
    solution = np.zeros(m + n)
    right = design.T @ (precision * y)
    solution[some] = np.linalg.solve(left[np.ix_(some, some)], right[some])
    cover = np.linalg.inv(left[np.ix_(some, some)])[-n:, -n:]
    bias = solution[m:]
    count = (~np.isnan(x)).sum(axis=1)
    return bias - (count * bias).sum() / count.sum(), cover


@pytest.mark.parametrize("seed", range(6))
def test_biases_solve_the_mixed_model_equations(seed: int) -> None:
    x, _, _ = sparse(seed)
    answers = Answers.of(x)
    noise = worker_noise(answers)
    assert noise.bias_variance[0] > 0
    start = Biases(np.zeros(len(x)), np.zeros(len(x)), noise.bias_variance, np.zeros(1), np.ones(1))
    found = _solve(MemoryEngine(answers), noise, start)
    expected, cover = henderson(x, noise.variance, float(found.variance[0]))
    # Up to a common amount, which the location fixes; standard errors leave out what biases share through the truths.
    centre = np.eye(len(x)) - np.full((len(x), len(x)), 1.0 / len(x))
    errors = np.sqrt(np.diag(centre @ cover @ centre.T))
    np.testing.assert_allclose((found.value - expected) / errors, 0.0, atol=0.02)
    np.testing.assert_allclose(found.std_error, errors, rtol=0.2)


def test_after_many_turns_they_solve_them_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trueup.variance.bias.ROUNDS", 1000)
    x, _, _ = sparse(3)
    answers = Answers.of(x)
    noise = worker_noise(answers)
    start = Biases(np.zeros(len(x)), np.zeros(len(x)), noise.bias_variance, np.zeros(1), np.ones(1))
    found = _solve(MemoryEngine(answers), noise, start)
    expected, _ = henderson(x, noise.variance, float(found.variance[0]))
    np.testing.assert_allclose(found.value, expected, rtol=0, atol=1e-5)


def test_a_chain_of_workers_passes_biases_on() -> None:
    """Each of 20 workers shares five questions with the next: a bias is known through all that come between."""
    rng = np.random.default_rng(0)
    n, own = 20, rng.normal(0.0, 2.0, 20)
    x = np.full((n, 5 * (n - 1)), np.nan)
    for i in range(n - 1):
        for worker in (i, i + 1):
            x[worker, 5 * i : 5 * i + 5] = own[worker] + rng.normal(size=5)
    answers = Answers.of(x)
    noise = worker_noise(answers)
    found = _solve(
        MemoryEngine(answers),
        noise,
        Biases(np.zeros(n), np.zeros(n), noise.bias_variance, np.zeros(1), np.ones(1)),
    )
    expected, cover = henderson(x, noise.variance, float(found.variance[0]))
    assert (np.abs(found.value - expected) < 0.1 * np.sqrt(np.diag(cover))).all()


@pytest.mark.parametrize("seed", range(4))
def test_the_variance_of_the_biases_is_that_of_expectation_and_maximisation(seed: int) -> None:
    """At rest it is the mean of the squared biases, before the location was fixed, and their squared errors."""
    x, _, _ = sparse(seed, n=12, m=40)
    answers = Answers.of(x)
    found = estimate_biases(answers)
    before = np.mean(found.value**2 + found.std_error**2)
    assert found.variance[0] == pytest.approx(before, rel=0.1)


def test_the_last_pass_is_at_rest() -> None:
    x, _, _ = sparse(3, n=10, m=60)
    answers = Answers.of(x)
    found = estimate_biases(answers)
    noise = worker_noise(answers, bias=found.value)
    expected, _ = henderson(x, noise.variance, float(found.variance[0]))
    np.testing.assert_allclose(found.value, expected, rtol=0, atol=0.02 * np.sqrt(noise.pool[0]))


def test_an_absurd_answer_is_no_bias() -> None:
    x, _, _ = sparse(4, n=8, m=40)
    wild = x.copy()
    i, j = np.argwhere(~np.isnan(x) & ((~np.isnan(x)).sum(axis=0) >= 4))[0]
    wild[i, j] = 1e9
    found, without = estimate_biases(Answers.of(wild)), estimate_biases(Answers.of(x))
    np.testing.assert_allclose(found.value, without.value, rtol=0, atol=0.3)


def test_standard_errors_are_calibrated() -> None:
    """40 panels of 12 workers: the standard deviation of the z-values has a standard error of about .04."""
    z = []
    for seed in range(40):
        x, _, own = sparse(100 + seed, n=12, m=40, share=0.3, bias=1.0)
        found = estimate_biases(Answers.of(x))
        if not found.variance[0]:
            continue
        count = (~np.isnan(x)).sum(axis=1)
        # Biases are told up to a common amount: both sides keep the mean of the answers.
        true = own - (count * own).sum() / count.sum()
        z += ((found.value - true) / found.std_error).tolist()
    assert len(z) > 350
    assert 0.8 < np.std(z) < 1.25
    assert abs(np.mean(z)) < 0.25


def test_of_a_complete_panel_the_means_stay() -> None:
    x, _, _ = sparse(5, share=1.0)
    answers = Answers.of(x)
    found = estimate_biases(answers)
    assert (np.abs(found.value) > 0.01).all()
    assert found.value.sum() == pytest.approx(0.0, abs=1e-12)
    clean = found.remove(MemoryEngine(answers)).gather().to_matrix()
    np.testing.assert_allclose(clean.mean(axis=0), x.mean(axis=0), rtol=0, atol=1e-12)
    np.testing.assert_allclose(clean, x - found.value[:, None], rtol=0, atol=1e-12)
    plain, moved = (trueup.estimate(x, "mean", "none", bias=bias) for bias in (False, True))
    np.testing.assert_allclose(moved.estimate, plain.estimate, rtol=0, atol=1e-12)


def test_the_mean_of_all_answers_stays() -> None:
    x, _, _ = sparse(6)
    answers = Answers.of(x)
    found = estimate_biases(answers)
    clean = found.remove(MemoryEngine(answers)).gather()
    assert np.nanmean(clean.to_matrix()) == pytest.approx(np.nanmean(x), abs=1e-12)


@pytest.mark.parametrize(
    "x",
    [
        np.random.default_rng(1).normal(size=(1, 6)),
        np.where(np.eye(5) > 0, 2.0, np.nan),
        np.tile(np.arange(7.0), (4, 1)),
        np.full((3, 3), 2.0),
        np.array([[1.0, np.nan], [2.0, 5.0]]),
    ],
    ids=["one worker", "disjoint", "all agree", "constant", "two workers"],
)
def test_where_none_can_be_seen_all_are_zero(x: Floats) -> None:
    answers = Answers.of(x)
    found = estimate_biases(answers)
    assert not found.value.any()
    assert not found.std_error.any()
    assert found.variance.tolist() == [0.0]
    assert found.remove(MemoryEngine(answers)).gather() is answers
    est = trueup.estimate(x, bias=True)
    np.testing.assert_array_equal(est.estimate, trueup.estimate(x).estimate)


def test_without_biases_most_panels_show_none_and_the_others_small_ones() -> None:
    largest = []
    for seed in range(20):
        x, _, _ = sparse(200 + seed, n=10, m=60, share=0.6, bias=0.0)
        found = estimate_biases(Answers.of(x))
        largest.append(np.abs(found.value).max())
    assert sum(value == 0 for value in largest) >= 5
    assert max(largest) < 0.5


@pytest.mark.parametrize("method", ["mean", "native", "auto"])
def test_taking_biases_off_lowers_the_error_on_sparse_answers(method: str) -> None:
    """10 panels, 30 workers with three answers to a question: the error falls by more than a third."""
    risk = np.zeros(2)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        answers, truth = trueup.simulate(
            30, 60, answers_per_question=3, bias=1.5, truth=rng.normal(0, 2, 60), seed=seed
        )
        for which in (0, 1):
            est = trueup.estimate(answers, method, bias=bool(which))
            off = est.estimate - truth
            risk[which] += np.mean((off - off.mean()) ** 2)  # a common shift cannot be seen
    assert risk[1] < 0.67 * risk[0]


def test_intervals_with_biases_taken_off_cover() -> None:
    """20 panels of 60 questions: 95% expected, up to the shift that all share; standard error about 1%."""
    inside, widths = [], np.zeros(2)
    for seed in range(20):
        answers, truth = trueup.simulate(
            30, 60, answers_per_question=4, bias=1.0, truth_scale=2.0, seed=seed
        )
        plain, est = (trueup.estimate(answers, "native", bias=bias) for bias in (False, True))
        widths += [np.mean(each.upper - each.lower) for each in (plain, est)]
        inside.append(np.mean((est.lower <= truth) & (truth <= est.upper)))
    assert 0.9 < np.mean(inside) <= 0.99
    assert widths[1] < widths[0]


def test_a_worker_with_few_answers_is_shrunk_more_and_known_less() -> None:
    """Two workers with the same bias, one with 2 answers and one with 30."""
    rng = np.random.default_rng(7)
    ratios = []
    for _ in range(10):
        x = rng.normal(size=(8, 30)) + rng.normal(0, 1, (8, 1)) + rng.normal(0, 2, 30)
        x[:2] += 3.0 - x[:2].mean(axis=1, keepdims=True) + np.nanmean(x)
        x[0, 2:] = np.nan
        found = estimate_biases(Answers.of(x))
        assert found.std_error[0] > 1.5 * found.std_error[1]
        ratios.append(found.value[0] / found.value[1])
    assert np.mean(ratios) < 0.95


def test_a_worker_who_shares_nothing_has_no_bias_but_the_common_shift() -> None:
    x, _, _ = sparse(8, n=7, m=20, share=0.8)
    alone = np.full((1, 22), np.nan)
    alone[0, 20:] = [50.0, 60.0]
    wide = np.concatenate([np.pad(x, ((0, 0), (0, 2)), constant_values=np.nan), alone])
    found = estimate_biases(Answers.of(wide))
    own = estimate_biases(Answers.of(x))
    np.testing.assert_allclose(np.diff(found.value[:-1]), np.diff(own.value), atol=1e-6)
    # As unsure as anybody's bias is before the first answer.
    assert found.std_error[-1] == pytest.approx(np.sqrt(found.variance[0]), rel=1e-6)


@pytest.mark.parametrize(("a", "b"), [(1e12, 0.0), (1e-12, 0.0), (-2.0, 100.0)])
def test_units_change_nothing(a: float, b: float) -> None:
    x, _, _ = sparse(9)
    first, other = estimate_biases(Answers.of(x)), estimate_biases(Answers.of(a * x + b))
    np.testing.assert_allclose(other.value, a * first.value, rtol=1e-7)
    np.testing.assert_allclose(other.std_error, abs(a) * first.std_error, rtol=1e-7)
    np.testing.assert_allclose(other.variance, a * a * first.variance, rtol=1e-7)


def test_a_constant_added_to_one_worker_is_found() -> None:
    rng = np.random.default_rng(10)
    x = rng.normal(size=(6, 80)) + rng.normal(0, 1, (6, 1))
    first = estimate_biases(Answers.of(x)).value
    x[2] += 5.0
    moved = estimate_biases(Answers.of(x)).value - first
    # Up to the common amount, 5/6, and to what a larger variance of the biases changes.
    np.testing.assert_allclose(moved, 5.0 * (np.arange(6) == 2) - 5.0 / 6, atol=0.15)


def test_panels_are_as_if_each_were_alone() -> None:
    matrices = [sparse(seed, bias=bias)[0] for seed, bias in ((1, 1.5), (2, 0.0), (3, 2.0))]
    rows = []
    for number, x in enumerate(matrices):
        worker, question = np.nonzero(~np.isnan(x))
        columns = {"question": question, "worker": worker, "answer": x[worker, question]}
        rows.append(pd.DataFrame(columns).assign(panel=number))
    answers = Answers.from_frame(pd.concat(rows), panel="panel")
    together = estimate_biases(answers)
    for number, x in enumerate(matrices):
        alone = Answers.of(x)
        own = estimate_biases(alone)
        first, last = answers.panel_workers[[number, number + 1]].tolist()
        at = np.array(answers.worker_ids.tolist(np.arange(first, last)), dtype=np.int64)
        np.testing.assert_allclose(together.variance[number], own.variance[0], rtol=1e-3)
        np.testing.assert_allclose(together.value[first:last], own.value[at], rtol=0, atol=1e-4)


def test_known_precisions_of_answers_count() -> None:
    """A worker's answers of a hundredth of the variance tell its bias as well as a hundred times as many."""
    x, _, _ = sparse(11, n=6, m=12, share=1.0)
    variance = np.ones_like(x)
    plain = estimate_biases(Answers.of(x, answer_variance=variance))
    np.testing.assert_allclose(plain.value, estimate_biases(Answers.of(x)).value, rtol=1e-9)
    variance[0] = 0.01
    sharp = estimate_biases(Answers.of(x, answer_variance=variance))
    assert np.isfinite(sharp.value).all()
    assert np.isfinite(sharp.std_error).all()


def test_noise_that_is_already_known_changes_no_number() -> None:
    x = np.random.default_rng(5).normal(size=(6, 40)) + np.arange(6.0)[:, None]
    x[0, 0] = 1e6  # a gross question, whose mark the engine of `biases` has to keep
    answers = Answers.of(x)
    engine = MemoryEngine(answers)
    noise = worker_noise(engine)
    assert noise.screening.n_gross == 1
    expected = estimate_biases(answers)
    for same in (answers, engine):
        biases = estimate_biases(same, noise=noise)
        np.testing.assert_array_equal(biases.value, expected.value)
        np.testing.assert_array_equal(biases.std_error, expected.std_error)
