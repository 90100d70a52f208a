"""The loop: iterations, rest, panels, blocks, threads."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
import pytest

import trueup
from trueup import Answers, TrueupError, simulate
from trueup.algorithms import CRH, DTD, GTM, PTD, Algorithm, KDEm, Mean, StudentT, find, run
from trueup.answers.panels import folds
from trueup.engines.memory import MemoryEngine

if TYPE_CHECKING:
    from trueup.algorithms import State
    from trueup.answers.block import Block
    from trueup.core.arrays import Floats

ROBUST = [
    "mean",
    "median",
    "dtd",
    "catd",
    "gtm",
    "crh",
    "iptd",
    "kdem",
    "subject_bias",
    "student_t",
]


def test_iterations_end_when_nothing_moves() -> None:
    answers, _ = simulate(workers=8, questions=60, seed=3)
    rough = run(CRH(), answers, tol=1e-2, max_iter=100)
    fine = run(CRH(), answers, tol=1e-10, max_iter=100)
    assert 1 < rough.iterations[0] < fine.iterations[0] < 100
    assert rough.settled.all()
    assert fine.settled.all()
    assert fine.moved[0] <= 1e-10


def test_a_run_cut_short_says_so() -> None:
    answers, _ = simulate(workers=8, questions=60, seed=3)
    short = run(CRH(), answers, max_iter=2)
    assert short.iterations[0] == 2
    assert not short.settled[0]
    assert short.moved[0] > 1e-6


def test_a_single_iteration_by_definition_is_settled() -> None:
    answers, _ = simulate(seed=1)
    found = run(PTD(), answers)
    assert found.iterations[0] == 1
    assert found.settled[0]


@pytest.mark.parametrize("method", ["mean", "median"])
def test_methods_that_do_not_learn_do_not_iterate(method: str) -> None:
    answers, _ = simulate(seed=1)
    found = run(find(method), answers)
    assert found.iterations[0] == 0
    assert found.settled[0]


def test_all_agree_means_no_iteration_and_no_variance() -> None:
    found = run(DTD(), Answers.from_matrix(np.full((3, 4), 0.1)))
    assert found.iterations[0] == 0
    assert (found.x == 0.1).all()
    assert (found.noise == 0).all()
    assert (found.variance == 0).all()
    np.testing.assert_allclose(found.weight, 1 / 3)


@pytest.mark.parametrize("method", ROBUST)
def test_a_panel_in_which_all_but_agree_beside_one_in_which_they_do_not(method: str) -> None:
    """Found by fuzzing: one over the square of such a difference is no number."""
    x = np.zeros((3, 3))
    x[1:, 2] = 1.0, 6e-160
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        found = run(find(method), folds(Answers.of(x), 3).training)
    assert np.isfinite(found.weight).all()


@pytest.mark.parametrize("method", ROBUST)
def test_panels_of_different_speed_equal_single_runs(method: str) -> None:
    answers, _ = simulate(workers=6, questions=25, panels=12, density=0.7, seed=5)
    together = run(find(method), answers, tol=1e-3, max_iter=20)
    for number in range(12):
        alone = run(find(method), answers.panel(number), tol=1e-3, max_iter=20)
        here = answers.question_panel == number
        who = answers.worker_panel == number
        assert together.iterations[number] == alone.iterations[0]
        np.testing.assert_allclose(together.x[here], alone.x, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(together.weight[who], alone.weight, rtol=1e-10)
        np.testing.assert_allclose(together.variance[here], alone.variance, rtol=1e-10)
    if method in ("dtd", "crh"):
        assert len(set(together.iterations.tolist())) > 1  # they did stop at different times


@pytest.mark.parametrize("method", ROBUST)
def test_threads_change_nothing_at_all(method: str) -> None:
    answers, _ = simulate(workers=30, questions=300, density=0.3, seed=6)
    runs = [
        run(find(method), MemoryEngine(answers, block_answers=200, threads=threads))
        for threads in (1, 2, 5)
    ]
    for other in runs[1:]:
        np.testing.assert_array_equal(other.x, runs[0].x)
        np.testing.assert_array_equal(other.variance, runs[0].variance)
        np.testing.assert_array_equal(other.weight, runs[0].weight)


@pytest.mark.parametrize("method", ROBUST)
@pytest.mark.parametrize("size", [1, 77, 1 << 20])
def test_blocks_change_nothing_that_matters(method: str, size: int) -> None:
    answers, _ = simulate(workers=20, questions=150, density=0.4, seed=7)
    whole = run(find(method), answers)
    cut = run(find(method), MemoryEngine(answers, block_answers=size))
    np.testing.assert_allclose(cut.x, whole.x, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(cut.noise, whole.noise, rtol=1e-8)


def test_callback_hears_of_every_iteration() -> None:
    answers, _ = simulate(seed=2)
    heard: list[tuple[int, float]] = []
    found = run(CRH(), answers, callback=lambda step, moved: heard.append((step, moved)))
    assert [step for step, _ in heard] == list(range(1, len(heard) + 1))
    assert found.iterations[0] - 1 <= len(heard) <= found.iterations[0]
    assert heard[0][1] > heard[-1][1]


def test_a_panel_without_questions_is_said_to_be_one() -> None:
    empty = Answers.from_matrix(np.array([[[1.0]], [[np.nan]]])).panel(1)
    with pytest.raises(TrueupError, match="no questions"):
        run(Mean(), empty)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("max_iter", -1),
        ("max_iter", 2.5),
        ("tol", -1.0),
        ("tol", np.nan),
        ("tol", "a"),
        ("threads", 0),
    ],
)
def test_limits_are_checked(argument: str, value: float) -> None:
    answers, _ = simulate(seed=2)
    with pytest.raises(TrueupError, match=argument):
        run(Mean(), answers, **{argument: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: DTD(correction="some"), "correction"),  # type: ignore[arg-type]
        (lambda: DTD(nu0=-1.0), "nu0"),
        (lambda: DTD(preset="printed"), "preset"),  # type: ignore[arg-type]
        (lambda: CRH(loss="cubic"), "loss"),  # type: ignore[arg-type]
        (lambda: CRH(scale="mad"), "scale"),  # type: ignore[arg-type]
        (lambda: GTM(beta=0.0), "beta"),
        (lambda: KDEm(kernel="box"), "kernel"),  # type: ignore[arg-type]
        (lambda: StudentT(nu=0.0), "nu"),
        (lambda: StudentT(errors="cauchy"), "errors"),  # type: ignore[arg-type]
    ],
)
def test_parameters_are_checked(make: object, argument: str) -> None:
    assert callable(make)
    with pytest.raises(TrueupError, match=argument):
        make()


def test_known_variances_give_the_best_linear_unbiased_estimate() -> None:
    rng = np.random.default_rng(1)
    matrix = rng.normal(0, 1, (4, 6))
    matrix[0, 0] = np.nan
    variance = np.array([0.5, 1.0, 2.0, 4.0])
    found = run(find("blue"), Answers.from_matrix(matrix, worker_variance=variance))
    for j in range(6):
        who = ~np.isnan(matrix[:, j])
        weight = 1 / variance[who]
        assert found.x[j] == pytest.approx(np.average(matrix[who, j], weights=weight))
        assert found.variance[j] == pytest.approx(1 / weight.sum())
    np.testing.assert_allclose(found.noise, variance)


def test_partly_known_variances_leave_the_rest_to_be_learned() -> None:
    simulation = simulate(
        workers=6, questions=3000, variance=[0.25, 0.25, 1.0, 4.0, 1.0, 4.0], seed=4
    )
    matrix = simulation.answers.to_matrix()
    answers = Answers.from_matrix(matrix, worker_variance={0: 0.25, 3: 4.0})
    found = run(find("blue"), answers, max_iter=50)
    assert found.noise[0] == 0.25
    assert found.noise[3] == 4.0
    np.testing.assert_allclose(found.noise, simulation.worker_variance, rtol=0.15)


def test_panels_with_partly_known_variances_equal_single_runs() -> None:
    batch = Answers.from_matrix([[1.0, 2.0, 3.0]] * 3, worker_variance={0: 4.0}).jackknife(3)
    together = run(find("blue"), batch)
    assert np.isfinite(together.x).all()
    for number in range(3):
        here = batch.question_panel == number
        known = batch.panel(number).worker_variance
        if known is None or np.isnan(known).all():
            continue
        alone = run(find("blue"), batch.panel(number))
        np.testing.assert_allclose(together.x[here], alone.x)


def test_a_worker_of_whom_nothing_is_known_has_no_interval() -> None:
    matrix = [[1.0, np.nan], [np.nan, 4.0]]
    est = trueup.estimate(matrix, method="blue", worker_variance=[1.0, np.nan])
    assert est.std_error[0] == 1.0
    assert np.isnan(est.std_error[1])
    assert est.workers["variance"].tolist()[0] == 1.0


@pytest.mark.parametrize("algorithm", [CRH(), KDEm(), CRH(loss="absolute")], ids=str)
def test_a_dissenter_keeps_the_questions_it_answers_alone(algorithm: Algorithm) -> None:
    matrix = [[0.0, 42.0], [1.0, np.nan], [1.0, np.nan]]
    found = run(algorithm, Answers.from_matrix(matrix), max_iter=30)
    np.testing.assert_allclose(found.x, [1.0, 42.0], atol=1e-6)
    assert np.isfinite(found.variance).all()


def test_a_method_without_a_finite_result_says_so() -> None:
    class Lost(Algorithm):
        name = "lost"

        def truths(self, block: Block, state: State) -> Floats:
            return np.full(block.n_questions, np.nan)

    answers, _ = simulate(seed=1)
    with pytest.raises(TrueupError, match="lost gave no finite truth"):
        run(Lost(), answers)
    with pytest.raises(TrueupError, match="mu0: found nan, must be a number"):
        GTM(mu0=float("nan"))


@pytest.mark.parametrize("scale", [1e-100, 1e100])
@pytest.mark.parametrize("method", ["dtd", "catd", "crh", "iptd"])
def test_standard_errors_at_extreme_scales(method: str, scale: float) -> None:
    matrix = simulate(seed=1).answers.to_matrix()
    base = run(find(method), Answers.from_matrix(matrix)).variance
    scaled = run(find(method), Answers.from_matrix(scale * matrix)).variance
    np.testing.assert_allclose(scaled / scale / scale, base, rtol=1e-9)


def test_known_answer_variances_weigh_answers() -> None:
    matrix = np.array([[1.0, 5.0], [3.0, 6.0], [5.0, 9.0]])
    variance = np.array([[1.0, 2.0], [2.0, 2.0], [4.0, 1.0]])
    found = run(find("blue"), Answers.from_matrix(matrix, answer_variance=variance))
    for j in range(2):
        assert found.x[j] == pytest.approx(np.average(matrix[:, j], weights=1 / variance[:, j]))
        assert found.variance[j] == pytest.approx(1 / (1 / variance[:, j]).sum())
    mean = run(Mean(), Answers.from_matrix(matrix, answer_variance=variance))
    np.testing.assert_allclose(mean.x, found.x)


@pytest.mark.parametrize("algorithm", [DTD(), GTM(), CRH(), find("iptd"), StudentT()], ids=str)
def test_better_workers_get_more_weight_and_better_truths(algorithm: Algorithm) -> None:
    variance = np.array([0.1, 0.2, 0.5, 1, 1, 2, 3, 5, 8, 10])
    simulation = simulate(workers=10, questions=400, variance=variance, truth_scale=2.0, seed=9)
    found = run(algorithm, simulation.answers, max_iter=30)
    assert (np.diff(found.weight[[0, 2, 5, 9]]) < 0).all()
    mean = run(Mean(), simulation.answers)
    assert np.mean((found.x - simulation.truth) ** 2) < 0.8 * np.mean(
        (mean.x - simulation.truth) ** 2
    )
