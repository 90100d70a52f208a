"""Intervals for the consensus hold what they say: one test for each thing that had made them too narrow or too wide."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import trueup
from evidence.intervals.consensus import PanelDesign, inside
from trueup.algorithms import find
from trueup.algorithms.driver import run
from trueup.answers.answers import Answers
from trueup.variance import moderated, worker_noise
from trueup.variance.intervals import Width

if TYPE_CHECKING:
    from trueup.core.arrays import Floats

pytestmark = pytest.mark.filterwarnings("ignore::trueup.errors.TrueupWarning")


def holds(design: PanelDesign, method: str, panels: int, seed: int = 1) -> bool:
    """Whether 93% to 97.5% of the intervals hold the truth, within three standard errors over panels."""
    share, _ = inside(*design.draw(panels, seed), method)
    error = 3.0 * share.std(ddof=1) / np.sqrt(panels)
    return bool(0.93 - error <= share.mean() <= 0.975 + error)


@pytest.mark.parametrize("method", ["native", "mean", "subject_bias"])
@pytest.mark.parametrize("size", [(2, 1), (3, 1)])
def test_two_workers_and_one_question_have_one_degree_of_freedom(
    method: str, size: tuple[int, int]
) -> None:
    """They had at least three, and 75% of the intervals held the truth."""
    assert holds(PanelDesign(*size), method, 300)


@pytest.mark.parametrize("design", [PanelDesign(5, 5), PanelDesign(10, 40, each=2)], ids=str)
def test_biases_that_are_removed_cost_degrees_of_freedom(design: PanelDesign) -> None:
    """The residuals from them are too small: 85% of the intervals held the truth."""
    assert holds(design, "subject_bias", 150)


def test_the_mean_of_biases_that_are_removed_stays_in_the_interval() -> None:
    assert holds(PanelDesign(3, 20, bias=1.0), "subject_bias", 200)


def test_the_location_of_a_removed_bias_is_that_of_the_average_worker() -> None:
    """Spammers move it, however little they count in the truths."""
    assert holds(PanelDesign(20, 5, spam="ten times"), "subject_bias", 200)


@pytest.mark.parametrize("workers", [3, 10])
def test_the_common_shift_of_native_is_that_of_heavy_tailed_biases(workers: int) -> None:
    """Their scale is no variance, and their centre was estimated: 91% of the intervals held the truth."""
    assert holds(PanelDesign(workers, 20, bias=1.0), "native", 400)


@pytest.mark.parametrize("method", ["median", "student_t", "crh"])
def test_spammers_do_not_widen_what_they_hardly_change(method: str) -> None:
    """99.5% of the intervals held the truth."""
    assert holds(PanelDesign(20, 20, spam="ten times"), method, 100)
    assert holds(PanelDesign(10, 20, unequal=1.0), method, 150)


def test_student_t_believes_its_own_weights() -> None:
    """Of three workers it nearly follows one, and had the variance of three."""
    assert holds(PanelDesign(3, 40, spread=3.0), "student_t", 150)


def test_student_t_beside_an_exact_worker_hardly_moves() -> None:
    """The second step raised its squared error by half, because the others counted in its variance."""
    rng = np.random.default_rng(3)
    before, after = [], []
    for _ in range(40):
        truth = rng.normal(size=40)
        x = truth + rng.normal(size=(10, 40)) * np.array([0.01, *[1.0] * 9])[:, None]
        est = trueup.estimate(x, "student_t", target="consensus", transform="none")
        before.append(np.mean((est.base - truth) ** 2))
        after.append(np.mean((est.estimate - truth) ** 2))
    assert np.mean(after) < 1.25 * np.mean(before)


def test_gross_answers_do_not_shrink_student_t() -> None:
    """They hardly count in its truths, and so not in its variances."""
    rng = np.random.default_rng(5)
    noise = rng.normal(size=(8, 60))
    noise[rng.random(noise.shape) < 0.05] *= 30.0
    answers = Answers.from_matrix(rng.normal(size=60) + noise)
    plain = moderated(answers, run(find("mean"), answers)).v.mean()
    assert moderated(answers, run(find("student_t"), answers)).v.mean() < 0.2 * plain


def test_of_two_answers_neither_is_taken_for_far_off() -> None:
    """Gross answers were drawn in and went unnoticed: the second step left 0.4 of the squared error."""
    rng = np.random.default_rng(4)
    before, after = [], []
    for _ in range(20):
        truth = rng.normal(size=60)
        x = truth + rng.normal(size=(10, 60)) * np.where(rng.random((10, 60)) < 0.05, 30.0, 1.0)
        x[rng.permuted(np.tile(np.arange(10), (60, 1)), axis=1).T >= 2] = np.nan
        est = trueup.estimate(x, "student_t", target="consensus", transform="none")
        before.append(np.mean((est.base - truth) ** 2))
        after.append(np.mean((est.estimate - truth) ** 2))
    assert np.mean(after) < 0.15 * np.mean(before)


def test_questions_that_are_moved_have_more_degrees_of_freedom() -> None:
    width = Width(0.95, np.array([2.0]), np.zeros(1), np.ones(1))

    def quantile(shrinkage: float) -> float:
        found = width.quantile(np.ones(1), lambda each: each, np.array([shrinkage]))
        return float(found[0])

    assert quantile(0.0) == pytest.approx(4.302653)
    assert quantile(0.5) == pytest.approx(2.306004)  # 2 / 0.5^2 = 8
    assert quantile(1.0) == pytest.approx(1.959964)


def noise_of(x: Floats) -> tuple[Answers, Floats]:
    answers = Answers.from_matrix(x)
    return answers, worker_noise(answers).for_intervals.variance


def test_alike_workers_share_a_variance_and_unequal_ones_do_not() -> None:
    rng = np.random.default_rng(8)
    errors = rng.normal(size=(12, 30))
    _, alike = noise_of(errors)
    assert alike.max() < 2.0 * alike.min()
    _, unequal = noise_of(errors * np.repeat([0.2, 1.0, 5.0], 4)[:, None])
    assert unequal[8:].min() > 100 * unequal[:4].max()


def test_noise_of_spammers_is_no_bias() -> None:
    """The mean of five answers of a spammer is far from 0 by chance alone."""
    rng = np.random.default_rng(2)
    errors = rng.normal(size=(300, 10, 5))
    errors[:, :2] *= 10.0
    noise = worker_noise(Answers.from_matrix(errors))
    careful = noise.for_intervals.bias_variance
    assert careful.mean() < 0.5 * noise.bias_variance.mean()


def test_weights_that_do_not_follow_the_residuals_need_no_inflation() -> None:
    rng = np.random.default_rng(4)
    noise = worker_noise(Answers.from_matrix(rng.normal(size=(5, 6)))).for_intervals
    np.testing.assert_array_equal(noise.steepness(np.full(5, 0.2)), 0.0)
    np.testing.assert_allclose(noise.steepness(1.0 / noise.mean), 1.0)
    np.testing.assert_allclose(noise.steepness(noise.mean**-0.5), 0.5)
    assert noise.inflation(1.0 / noise.mean)[0] > 1.05


@pytest.mark.parametrize(
    ("workers", "questions", "spare"),
    [(2, 1, "1 answer"), (2, 2, "2 answers"), (3, 1, "2 answers")],
)
def test_one_or_two_spare_answers_make_rough_intervals(
    workers: int, questions: int, spare: str
) -> None:
    x = np.random.default_rng(1).normal(size=(workers, questions))
    for method in ("auto", "median", "crh"):
        diagnosis = trueup.estimate(x, method).diagnosis
        assert f"{workers} workers answered {questions} question" in diagnosis.rough
        assert f"rest on {spare} beyond" in diagnosis.rough
        assert f"rough: {diagnosis.rough}" in str(diagnosis)


def test_three_spare_answers_and_known_variances_are_not_rough() -> None:
    rng = np.random.default_rng(1)
    for shape in ((2, 3), (4, 1), (3, 5), (10, 40)):
        diagnosis = trueup.estimate(rng.normal(size=shape), "mean").diagnosis
        assert not diagnosis.rough
        assert "rough" not in str(diagnosis)
    assert not trueup.estimate([[1.0], [2.0]], "mean", variance=0.1).diagnosis.rough
    assert not trueup.estimate([[1.0, 3.0]], "mean").diagnosis.rough  # there are no intervals


def test_rough_panels_are_counted() -> None:
    x = np.random.default_rng(2).normal(size=(4, 2, 3))
    x[:3, :, 1:] = np.nan
    rows = np.argwhere(np.isfinite(x))
    answers = Answers.from_frame(
        {
            "panel": rows[:, 0],
            "worker": [f"{b}-{i}" for b, i, _ in rows],
            "question": [f"{b}-{j}" for b, _, j in rows],
            "answer": x[np.isfinite(x)],
        },
        panel="panel",
    )
    said = trueup.estimate(answers, "mean").diagnosis.rough
    assert said.startswith("in 3 of 4 panels the intervals rest on one or two answers")


def test_saved_estimates_stay_rough(tmp_path: object) -> None:
    est = trueup.estimate([[1.0], [2.0]], "mean")
    path = f"{tmp_path}/rough.zip"
    est.save(path)
    assert trueup.load(path).diagnosis.rough == est.diagnosis.rough != ""


def test_medians_of_workers_who_agree_have_no_width() -> None:
    """Workers without noise divided by zero, which numpy said aloud; warnings are errors here."""
    est = trueup.estimate(np.tile([3.0, 1.0, 4.0, 1.0, 5.0], (3, 1)), "median")
    assert np.array_equal(est.lower, est.estimate)
    assert np.array_equal(est.upper, est.estimate)
