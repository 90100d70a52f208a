"""Simulated answers have the distribution they are asked to have."""

from __future__ import annotations

import math
import tracemalloc
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from trueup import TrueupError, simulate

if TYPE_CHECKING:
    from trueup import Answers
    from trueup.core.arrays import Floats
    from trueup.datasets.simulate import Noise

MANY = 100_000
NEAR = 5.0  # standard errors


def answer_values(answers: Answers) -> Floats:
    return answers.values + np.repeat(answers.centre, answers.counts)


def assert_mean(values: Any, expected: float) -> None:
    """Compare a mean with what is expected, in standard errors."""
    error = np.std(values) / math.sqrt(np.size(values))
    assert abs(np.mean(values) - expected) <= NEAR * error + 1e-12


def assert_moments(values: Floats, mean: float, variance: float) -> None:
    assert_mean(values, mean)
    assert_mean((values - mean) ** 2, variance)


# -- truths ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "mean", "variance"),
    [
        ("constant", 0.0, 0.0),
        ("normal", 0.0, 1.0),
        ("uniform", 0.0, 1.0),
        ("exponential", 1.0, 1.0),
        ("clustered", 40 / 3, 1400 / 9 + 0.3**2),
    ],
)
@pytest.mark.parametrize(("shift", "scale"), [(0.0, 1.0), (7.0, 3.0)])
def test_truths_have_the_mean_and_variance_asked_for(
    name: str, mean: float, variance: float, shift: float, scale: float
) -> None:
    _, truth = simulate(1, MANY, truth=name, truth_mean=shift, truth_scale=scale)

    assert_moments(truth, shift + scale * mean, scale**2 * variance)


@pytest.mark.parametrize(
    ("name", "marks"),
    [
        ("normal", {1.0: math.erf(math.sqrt(0.5))}),
        ("uniform", {1.0: 1 / math.sqrt(3), 1.7320509: 1.0}),
        ("exponential", {0.0: 0.0, 1.0: 1 - math.exp(-1)}),
        # P(|t| < x) with 2 degrees of freedom is x / sqrt(2 + x^2)
        ("heavy", {x: x / math.sqrt(2 + x * x) for x in (0.5, 2.0, 50.0)}),
        ("clustered", {5.0: 1 / 3, 20.0: 2 / 3, 33.0: 1.0}),
    ],
)
def test_truths_have_the_shape_asked_for(name: str, marks: dict[float, float]) -> None:
    _, truth = simulate(1, MANY, truth=name, truth_mean=-2.0, truth_scale=4.0)

    for mark, share in marks.items():
        assert_mean(np.abs(truth + 2.0) <= 4.0 * mark, share)


def test_truths_can_be_given_for_all_panels_alike_or_for_each() -> None:
    alike = simulate(2, 3, panels=2, truth=[1, 2, 3])
    each = simulate(2, 3, panels=2, truth=[[1, 2, 3], [4, 5, 6]])

    assert alike.truth.tolist() == [1, 2, 3, 1, 2, 3]
    assert each.truth.tolist() == [1, 2, 3, 4, 5, 6]


# -- workers ---------------------------------------------------------------------------------------

DENSITY_AT_2 = math.exp(-2) / math.sqrt(2 * math.pi)
RATIO = DENSITY_AT_2 / (0.5 + 0.5 * math.erf(math.sqrt(2)))
# A normal with mean 1 and standard deviation 0.5 that is above 0.
TRUNCATED = (1 + 0.5 * RATIO, 0.25 * (1 - 2 * RATIO - RATIO**2))


@pytest.mark.parametrize("as_std", [False, True])
@pytest.mark.parametrize(
    ("name", "power", "mean", "variance"),
    [
        ("fixed", 1, 1.0, 0.0),
        ("normal", 1, *TRUNCATED),
        # One over it is half a gamma variable of shape 3.
        ("inverse_gamma", -1, 1.5, 0.75),
    ],
)
def test_worker_variances_have_the_distribution_asked_for(
    name: str, power: int, mean: float, variance: float, as_std: bool
) -> None:
    drawn = simulate(MANY, 1, variance=name, variance_scale=2.0, as_std=as_std).worker_variance

    described = (np.sqrt(drawn) if as_std else drawn) / 2.0
    assert (drawn > 0).all()
    assert_moments(described**power, mean, variance)
    if name == "inverse_gamma":
        assert_mean(described, 1.0)


def test_square_variances_are_the_squares_in_every_panel() -> None:
    drawn = simulate(3, 2, panels=2, variance="square", variance_scale=2.0).worker_variance

    assert drawn.tolist() == [2.0, 8.0, 18.0] * 2


def test_the_answers_of_each_worker_have_its_variance() -> None:
    variance = np.array([0.0, 0.5, 4.0])
    answers, truth = simulate(3, MANY, variance=variance)

    for row, expected in zip(answers.to_matrix(), variance, strict=True):
        assert_moments(row - truth, 0.0, expected)


def test_biases_have_the_standard_deviation_asked_for_and_move_the_answers() -> None:
    many = simulate(MANY, 1, bias=3.0)
    few = simulate(4, 5, bias=3.0, variance=np.zeros(4))

    assert_moments(many.bias, 0.0, 9.0)
    np.testing.assert_allclose(
        few.answers.to_matrix(), few.truth + few.bias[:, None], rtol=0, atol=1e-12
    )
    assert not simulate(4, 5).bias.any()


def test_spammers_are_as_many_as_asked_for() -> None:
    assert_mean(simulate(MANY, 1, spammers=0.3).spammer, 0.3)
    assert not simulate(50, 1).spammer.any()
    assert simulate(50, 1, spammers=1.0).spammer.all()


def test_spammers_answer_for_a_random_question_of_their_own_panel() -> None:
    truth = np.concatenate([np.arange(300.0), np.arange(1000.0, 1300.0)])
    drawn = simulate(100, 300, panels=2, truth=truth, variance=np.zeros(100), spammers=0.5)

    for b, low in enumerate((0.0, 1000.0)):
        matrix = drawn.answers.panel(b).to_matrix()
        here = truth[300 * b : 300 * b + 300]
        spammer = drawn.spammer[100 * b : 100 * b + 100]
        assert (matrix[~spammer] == here).all()
        said = matrix[spammer]
        assert set(np.unique(said)) <= set(here)
        product = (said - low - 149.5) * (here - low - 149.5)
        assert_mean(product, 0.0)


# -- noise -----------------------------------------------------------------------------------------

# Mean size of the error, and the share of errors smaller than 1, all with variance 1.
NOISES: dict[Noise, tuple[float, float]] = {
    "normal": (math.sqrt(2 / math.pi), math.erf(math.sqrt(0.5))),
    "laplace": (math.sqrt(0.5), 1 - math.exp(-math.sqrt(2))),
    "student": (math.sqrt(0.5), 2 * 0.375 * math.sqrt(2 / 1.5) * (1 - 2 / 18)),
    "exponential": (2 / math.e, 1 - math.exp(-2)),
}


@pytest.mark.parametrize("noise", NOISES)
def test_errors_have_the_shape_and_the_variance_asked_for(noise: Noise) -> None:
    answers, truth = simulate(1, MANY, noise=noise, variance=[4.0], truth="uniform")
    error = (answers.to_matrix()[0] - truth) / 2.0
    size, share = NOISES[noise]

    assert_mean(error, 0.0)
    assert_mean(np.abs(error), size)
    assert_mean(np.abs(error) < 1.0, share)
    if noise != "student":  # its fourth moment does not exist
        assert_mean(error**2, 1.0)


@pytest.mark.parametrize("correlation", [0.0, 0.4])
def test_exponential_errors_can_keep_their_mean(correlation: float) -> None:
    answers, truth = simulate(
        1, MANY, noise="exponential", centred=False, variance=[9.0], correlation=correlation
    )

    assert_moments(answers.to_matrix()[0] - truth, 3.0, 9.0)


@pytest.mark.parametrize("noise", ["normal", "laplace", "exponential"])
@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.8])
def test_errors_of_two_workers_are_correlated_as_asked(noise: Noise, correlation: float) -> None:
    answers, truth = simulate(
        2, MANY, noise=noise, correlation=correlation, variance=[1.0, 9.0], truth="constant"
    )
    error = (answers.to_matrix() - truth) / np.array([[1.0], [3.0]])

    assert_mean(error[0] * error[1], correlation)
    assert_mean(error[1] ** 2, 1.0)


def test_with_correlation_1_all_workers_err_alike() -> None:
    answers, truth = simulate(3, 50, correlation=1.0, variance="fixed")
    error = answers.to_matrix() - truth

    np.testing.assert_allclose(error, np.broadcast_to(error[0], error.shape), atol=1e-12)
    assert error.std() > 0.5


# -- who answers what ------------------------------------------------------------------------------


@pytest.mark.parametrize("density", [0.0, 0.02, 0.3, 0.9, 1.0])
def test_answers_are_as_dense_as_asked_for_and_every_question_has_one(density: float) -> None:
    answers, _ = simulate(12, 5000, density=density)

    assert answers.counts.min() >= 1
    assert_mean(answers.counts, 12 * density + (1 - density) ** 12)
    assert_each_worker_alike(answers)


@pytest.mark.parametrize("each", [1, 2, 5, 6, 20, 29, 30])
def test_every_question_gets_so_many_different_workers(
    each: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, _ = simulate(30, 2000, answers_per_question=each, density=0.1)

    workers = answers.workers.reshape(2000, each)
    assert answers.counts.tolist() == [each] * 2000
    assert (np.diff(workers, axis=1) > 0).all()
    assert_each_worker_alike(answers)
    monkeypatch.setattr(import_module("trueup.datasets.simulate"), "TABLE", 100)
    again, _ = simulate(30, 2000, answers_per_question=each, density=0.1)
    assert again.workers.tolist() == answers.workers.tolist()


def assert_each_worker_alike(answers: Answers) -> None:
    """Compare the number of answers of the workers: no further apart than by chance."""
    n, m = answers.n_workers, answers.n_questions
    counts = np.bincount(answers.workers, minlength=n)
    share = answers.n_answers / (n * m)
    assert np.abs(counts - share * m).max() <= NEAR * math.sqrt(m * share * (1 - share)) + 1e-9


def test_many_questions_and_workers_take_little_memory() -> None:
    tracemalloc.start()
    try:
        answers, truth = simulate(5000, 200_000, answers_per_question=10)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert repr(answers) == "Answers(200,000 questions, 5,000 workers, 2,000,000 answers)"
    assert len(truth) == 200_000
    assert peak < 200 * answers.n_answers  # bytes: a table of all pairs would have 4,000 each


# -- panels and seeds ------------------------------------------------------------------------------

EVERYTHING: dict[str, Any] = {
    "bias": 1.0,
    "spammers": 0.3,
    "correlation": 0.2,
    "density": 0.6,
    "noise": "laplace",
}


def test_panels_are_separate_problems_of_the_same_size() -> None:
    drawn = simulate(4, 6, panels=3, **EVERYTHING)
    answers = drawn.answers

    assert np.diff(answers.panel_questions).tolist() == [6] * 3
    assert np.diff(answers.panel_workers).tolist() == [4] * 3
    assert (answers.worker_panel[answers.workers]
            == np.repeat(answers.question_panel, answers.counts)).all()  # fmt: skip
    assert answers.question_ids.tolist() == list(range(6)) * 3
    assert answers.worker_ids.tolist() == list(range(4)) * 3
    for name in ("truth", "worker_variance", "bias"):
        parts = np.split(getattr(drawn, name), 3)
        assert not (parts[1] == parts[0]).any()
        assert not (parts[2] == parts[1]).any()
    assert not np.isin(answers.panel(1).to_matrix(), answers.panel(0).to_matrix()).any()


def test_panels_do_not_depend_on_each_other() -> None:
    answers, truth = simulate(1, 2, panels=MANY // 2, correlation=0.9, variance="fixed")
    error = (answer_values(answers) - truth).reshape(-1, 2)

    assert_mean(error[1:] * error[:-1], 0.0)
    assert_mean(error[:, 0] * error[:, 1], 0.0)


def test_what_is_no_seed_is_refused_in_a_line() -> None:
    answers = simulate(5, 8).answers
    for seed in (-1, "x" * 5000, 1.5, None):
        wrong: Any = {"seed": seed}
        with pytest.raises(TrueupError, match=r"^seed: found .* must be a whole number") as told:
            simulate(5, 8, **wrong)
        assert len(str(told.value)) < 200
        with pytest.raises(TrueupError, match=r"^seed: "):
            answers.sample(2, workers=2, questions=2, **wrong)
        with pytest.raises(TrueupError, match=r"^seed: "):
            answers.bootstrap(2, **wrong)


@pytest.mark.parametrize("options", [{}, EVERYTHING, {"answers_per_question": 2}])
def test_the_seed_decides_everything(options: dict[str, Any]) -> None:
    one, again, other = (simulate(5, 8, seed=seed, **options) for seed in (1, 1, 2))

    assert (answer_values(one.answers) == answer_values(again.answers)).all()
    assert one.answers.workers.tolist() == again.answers.workers.tolist()
    assert (one.truth == again.truth).all()
    assert (one.truth != other.truth).all()
    assert not np.isin(answer_values(one.answers), answer_values(other.answers)).any()


def test_a_simulation_unpacks_to_answers_and_truth() -> None:
    drawn = simulate(3, 4)

    answers, truth = drawn

    assert answers is drawn.answers
    assert truth is drawn.truth
    assert (answers.n_workers, answers.n_questions, answers.n_answers) == (3, 4, 12)


# -- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("workers", 0),
        ("workers", 2.5),
        ("questions", -1),
        ("questions", "5"),
        ("panels", 0),
        ("density", -0.1),
        ("density", 1.1),
        ("density", np.nan),
        ("spammers", 2),
        ("correlation", -0.5),
        ("correlation", "much"),
        ("answers_per_question", 0),
        ("answers_per_question", 11),
        ("answers_per_question", 1.5),
        ("truth", "gamma"),
        ("truth", [1.0, 2.0]),
        ("truth", [np.nan] * 50),
        ("truth", ["a"] * 50),
        ("truth_mean", np.inf),
        ("truth_scale", -1.0),
        ("variance", "gamma"),
        ("variance", [1.0, 2.0]),
        ("variance", [-1.0] * 10),
        ("variance", [np.inf] * 10),
        ("variance_scale", -1.0),
        ("variance_scale", None),
        ("bias", -1.0),
        ("bias", np.nan),
        ("noise", "cauchy"),
        ("noise", np.arange(3.0)),
        ("truth_mean", 1e200),
        ("truth_scale", 1e307),
        ("variance_scale", 1e308),
        ("bias", 1e308),
        ("truth", [1e300] * 50),
        ("variance", [10**400] * 10),
    ],
)
def test_a_bad_argument_is_named(argument: str, value: object) -> None:
    options: dict[str, Any] = {argument: value}

    with pytest.raises(TrueupError, match=rf"^{argument}: "):
        simulate(**options)


def test_a_scale_of_minus_zero_is_zero() -> None:
    drawn = simulate(4, 6, truth_scale=-0.0, bias=-0.0)
    np.testing.assert_array_equal(drawn.truth, drawn.truth[0])
