"""Known truths: the error that all workers share is found, corrected where it is clear, and put into the intervals."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from scipy.special import stdtrit

import trueup
from trueup.answers.scale import Scale
from trueup.errors import TrueupError
from trueup.pipeline.calibration import Calibration, calibrate, consensus
from trueup.pipeline.gold import learn_from_gold
from trueup.pipeline.truths import CrowdNumbers, GoldQuestions
from trueup.variance.intervals import student_quantile

if TYPE_CHECKING:
    from pathlib import Path

    from trueup.core.arrays import Floats


def some(
    seed: int, n: int, offset: float = 0.0, slope: float = 1.0, spread: float = 0.0
) -> tuple[Floats, Floats, Floats]:
    """Return estimates, their variances and truths by the model."""
    rng = np.random.default_rng(seed)
    mean = rng.normal(0.0, 3.0, n)
    variance = rng.choice(np.array([0.3, 1.0, 3.0]), n)
    crowd = mean + rng.normal(size=n) * np.sqrt(variance)
    return mean, variance, offset + slope * crowd + rng.normal(size=n) * np.sqrt(spread)


def learned(mean: Floats, variance: Floats, truth: Floats) -> Calibration:
    found = calibrate(mean, variance, truth)
    assert found is not None
    return found


def outcome(mean: Floats, variance: Floats, truth: Floats, known: int) -> tuple[float, float]:
    """Return coverage of the other truths, and the ratio of squared errors after and before."""
    found = learned(mean[:known], variance[:known], truth[:known])
    mean, variance, truth = mean[known:], variance[known:], truth[known:]
    centre, total, freedom = found.apply(mean, variance)
    off = np.abs(truth - centre)
    inside = off <= stdtrit(freedom, 0.975) * np.sqrt(total)
    return float(inside.mean()), float((off**2).mean() / ((truth - mean) ** 2).mean())


def outcomes(panels: list[tuple[Floats, Floats, Floats]], known: int) -> tuple[float, float]:
    """Return their means over panels."""
    each = np.array([outcome(*panel, known) for panel in panels])
    return float(each[:, 0].mean()), float(each[:, 1].mean())


def test_fewer_than_eight_known_truths_say_nothing() -> None:
    mean, variance, truth = some(1, 8, offset=100.0)
    assert calibrate(mean[:7], variance[:7], truth[:7]) is None
    assert learned(mean, variance, truth).corrected != "nothing"
    with pytest.raises(TrueupError, match="at least 8"):
        consensus(mean[:7], variance[:7], truth[:7])


def test_line_is_least_squares_with_its_closed_forms() -> None:
    """Without variances: ordinary least squares, errors by the usual formula or by leaving one out, G - 3 freedom."""
    mean, _, truth = some(2, 12, offset=30.0, slope=2.5, spread=1.0)
    found = learned(mean, np.zeros(12), truth)
    design = np.column_stack([np.ones(12), mean - mean.mean()])
    (offset, slope), *_ = np.linalg.lstsq(design, truth - mean, rcond=None)
    rest = truth - mean - design @ [offset, slope]
    errors = np.diag(np.linalg.inv(design.T @ design)) * (rest @ rest) / 9
    hat = np.einsum("ij,ij->i", design, design @ np.linalg.inv(design.T @ design))
    alone = (np.linalg.inv(design.T @ design) @ (design.T * rest / (1 - hat))) ** 2
    errors = np.maximum(errors, alone.sum(axis=1))
    trust = 1 - 2 * errors / np.array([offset, slope]) ** 2
    assert found.centre == pytest.approx(mean.mean(), abs=1e-12)
    assert found.offset_error == pytest.approx(np.sqrt(errors[0]), rel=1e-9)
    assert found.slope_error == pytest.approx(np.sqrt(errors[1]), rel=1e-9)
    assert found.offset == pytest.approx(trust[0] * offset, rel=1e-9)
    assert found.slope == pytest.approx(1 + trust[1] * slope, rel=1e-9)
    left = truth - found.apply(mean, np.zeros(12))[0]
    assert found.spread == pytest.approx(left @ left / 9, rel=1e-9)
    assert found.freedom == 9


def test_spread_solves_its_equation_with_unequal_variances() -> None:
    mean, variance, truth = some(3, 40, offset=5.0, slope=1.5, spread=4.0)
    found = learned(mean, variance, truth)
    assert found.spread > 0
    left = truth - found.apply(mean, variance)[0]
    total = found.spread + found.slope**2 * variance
    assert np.sum(left**2 / total) == pytest.approx(37, rel=1e-9)


def test_variance_and_freedom_of_another_question_are_those_stated() -> None:
    found = Calibration(2.0, 1.5, 10.0, 4.0, 0.5, 0.1, 0.8, 0.6, 9.0, 12)
    mean, variance, freedom = found.apply(np.array([10.0, 20.0]), np.array([0.0, 8.0]))
    np.testing.assert_allclose(mean, [12.0, 27.0])
    learnt = np.array([4.0 + 0.2, 4.0 + 0.2 + 0.6])
    np.testing.assert_allclose(variance, learnt + np.array([0.0, 18.0]))
    np.testing.assert_allclose(freedom, 9.0 * (variance / learnt) ** 2)


def test_many_known_truths_reveal_the_shared_error() -> None:
    """2,000 truths: within four standard errors."""
    found = learned(*some(4, 2000, offset=3.0, slope=1.4, spread=2.0))
    assert found.slope == pytest.approx(1.4, abs=4 * found.slope_error)
    at_zero = found.offset - (found.slope - 1) * found.centre
    assert at_zero == pytest.approx(3.0, abs=4 * found.offset_error)
    assert found.spread == pytest.approx(2.0, abs=0.8)
    assert found.slope_error < 0.03


@pytest.mark.parametrize(
    ("shared", "most"),
    [
        ({}, 1.03),
        ({"spread": 1.0}, 1.08),
        ({"offset": 3.0, "spread": 0.3}, 0.3),
        ({"slope": 1.8, "spread": 0.3}, 0.7),
        ({"offset": 3.0, "slope": 1.5, "spread": 1.0}, 0.5),
    ],
)
@pytest.mark.parametrize("known", [8, 20])
def test_intervals_cover_and_corrections_pay(
    shared: dict[str, float], most: float, known: int
) -> None:
    """80 panels: coverage within 93 to 98.5 % (standard error below 1 %), errors at most as stated (2 %)."""
    panels = [some(1000 + seed, known + 40, **shared) for seed in range(80)]
    coverage, ratio = outcomes(panels, known)
    assert 0.93 <= coverage <= 0.985
    assert ratio <= most


def test_without_a_correction_large_shared_errors_would_not_be_covered() -> None:
    """What the intervals for independent errors alone do: the reason to ask for known truths."""
    mean, variance, truth = some(5, 400, offset=3.0, spread=4.0)
    assert np.mean(np.abs(truth - mean) <= 1.96 * np.sqrt(variance)) < 0.6
    assert outcome(mean, variance, truth, 12)[0] > 0.9


@pytest.mark.parametrize(("factor", "shift"), [(1e-6, 0.0), (-3.0, 7.0), (1e9, -1e9)])
def test_units_change_nothing(factor: float, shift: float) -> None:
    mean, variance, truth = some(6, 15, offset=4.0, slope=1.5, spread=1.0)
    other = np.array([-9.0, 0.0, 4.0]), np.array([0.1, 1.0, 2.0])
    plain = learned(mean, variance, truth).apply(*other)
    scaled = learned(factor * mean + shift, factor**2 * variance, factor * truth + shift).apply(
        factor * other[0] + shift, factor**2 * other[1]
    )
    np.testing.assert_allclose(scaled[0], factor * plain[0] + shift, rtol=1e-9)
    np.testing.assert_allclose(scaled[1], factor**2 * plain[1], rtol=1e-7)
    np.testing.assert_allclose(scaled[2], plain[2], rtol=1e-7)


def test_order_of_the_known_questions_changes_nothing() -> None:
    mean, variance, truth = some(7, 20, offset=2.0, slope=1.3, spread=1.0)
    back = learned(mean[::-1], variance[::-1], truth[::-1])
    here = learned(mean, variance, truth)
    assert back.offset == pytest.approx(here.offset, rel=1e-9)
    assert back.slope == pytest.approx(here.slope, rel=1e-9)
    assert back.spread == pytest.approx(here.spread, rel=1e-9)


@pytest.mark.parametrize("size", [1e3, 1e9, 1e15])
@pytest.mark.parametrize("where", range(10))
def test_one_wrong_known_truth_moves_no_other_question(size: float, where: int) -> None:
    mean, variance, truth = some(8, 10)
    truth[where] += size
    found = learned(mean, variance, truth)
    assert found.corrected == "nothing"
    np.testing.assert_array_equal(found.apply(mean, variance)[0], mean)
    assert found.spread > 0


ALIKE = np.full(9, 4.0)
STEPS = np.arange(9.0)
NONE = np.zeros(9)


@pytest.mark.parametrize(
    ("mean", "variance", "truth"),
    [
        (ALIKE, NONE, ALIKE),
        (ALIKE, NONE, ALIKE + 3.0),
        (ALIKE, NONE + 1.0, STEPS),
        (STEPS, NONE, ALIKE),
        (STEPS, NONE, STEPS),
        (STEPS, NONE, 2.0 * STEPS + 1.0),
        (STEPS, np.where(STEPS == 0, 0.0, 1.0), STEPS**2),
        (1e150 * STEPS / 9, NONE, -1e150 * STEPS / 9),
        (1e-150 * STEPS, NONE, -1e-150 * STEPS),
        (STEPS * 1e-15, NONE + 1e-30, STEPS**2),
    ],
)
def test_degenerate_input_gives_finite_numbers(
    mean: Floats, variance: Floats, truth: Floats
) -> None:
    found = learned(mean, variance, truth)
    for values in (*found.apply(mean, variance), *consensus(mean, variance, truth)):
        assert np.isfinite(values).all()
    assert (found.apply(mean, variance)[1] >= 0).all()
    assert "9 known truths" in str(found)


def test_exact_line_is_followed_exactly() -> None:
    found = learned(STEPS, NONE, 2.0 * STEPS + 1.0)
    mean, variance, _ = found.apply(np.array([100.0]), np.zeros(1))
    assert mean == pytest.approx(201.0, rel=1e-6)
    assert variance < 1e-3


@pytest.mark.parametrize(
    ("mean", "variance", "truth", "named"),
    [
        (STEPS[:8], NONE, STEPS, "variance"),
        (STEPS, NONE, STEPS[:8], "truth"),
        (STEPS, NONE - 1.0, STEPS, "variance"),
        (STEPS, NONE, np.where(STEPS == 3, np.nan, STEPS), "truth"),
        (np.where(STEPS == 3, np.inf, STEPS), NONE, STEPS, "mean"),
        (STEPS, NONE, ["a"] * 9, "truth"),
        (STEPS[:, None], NONE, STEPS, "mean"),
    ],
)
def test_bad_input_is_named(mean: Floats, variance: Floats, truth: object, named: str) -> None:
    with pytest.raises(TrueupError, match=f"^{named}: "):
        calibrate(mean, variance, truth)


def test_words_say_what_was_done() -> None:
    mean, variance, truth = some(9, 30, spread=0.1)
    assert "no clear shared error" in str(learned(mean, variance, truth))
    assert "too low by" in str(learned(mean, variance, truth + 20.0))
    assert "too high by" in str(learned(mean, variance, truth - 20.0))
    assert "disagreement of the workers" in str(learned(mean, variance + 9.0, truth))
    assert "Remaining typical error: 1.28 (included in the intervals)" in str(
        learned(mean, NONE[:1].repeat(30), truth)
    )
    assert "understated differences by about" in str(learned(mean, variance, truth * 3.0))


def test_consensus_is_the_crowd_not_the_truth() -> None:
    """What all workers get wrong is in the expected answer; its variance is what is new in every question.

    300 questions: four standard errors are 0.35 in the middle and 1 at the ends.
    """
    rng = np.random.default_rng(10)
    truth = rng.normal(0.0, 5.0, 300)
    aggregate = 7.0 + 0.5 * truth + rng.normal(0.0, 1.5, 300)
    mean, variance = consensus(aggregate, np.full(300, 1.25), truth)
    np.testing.assert_allclose(mean, 7.0 + 0.5 * truth, atol=1.0, rtol=0)
    assert mean.mean() == pytest.approx(7.0 + 0.5 * truth.mean(), abs=0.35)
    assert variance.mean() == pytest.approx(1.0, abs=0.5)


def test_consensus_moves_with_offset_and_compression_of_the_crowd() -> None:
    mean, variance, truth = some(11, 25, spread=1.0)
    before, after = consensus(mean, variance, truth), consensus(mean, variance, 3.0 * truth - 8.0)
    np.testing.assert_allclose(after[0], before[0], rtol=1e-6)
    np.testing.assert_allclose(after[1], before[1], rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "known"),
    [("dots", 8), ("dots", 12), ("pies", 8), ("pies", 12), ("calories", 8), ("groceries", 8)],
)
def test_intervals_cover_real_truths(name: str, known: int, data_folder: Path) -> None:
    """200 random choices of known questions: 90 to 98 % of the others covered, smaller errors on average."""
    folder = data_folder / name
    est = trueup.estimate(folder / "answers.csv", "mean", "morris", "plugin", transform="none")
    truths = pd.read_csv(folder / "truth.csv").astype({"question": str})
    # What all questions share through the biases of the workers is part of the offset.
    questions = est.questions.assign(variance=est.second_step.posterior.variance)
    joined = questions.astype({"question": str}).merge(truths, on="question")
    mean, variance, truth = joined[["estimate", "variance", "truth"]].to_numpy(dtype=np.float64).T
    independent = np.abs(truth - mean) <= 1.96 * np.sqrt(variance)
    rng = np.random.default_rng(12)
    orders = [rng.permutation(len(truth)) for _ in range(200)]
    panels = [(mean[order], variance[order], truth[order]) for order in orders]
    coverage, ratio = outcomes(panels, known)
    assert independent.mean() < 0.85
    assert 0.9 <= coverage <= 0.98
    assert ratio < 0.95


# Which one is better: the calibration, or what other crowds teach


def crowd(seed: int, slope: float, spread: float) -> tuple[Floats, Floats]:
    """Return answers of six workers of a crowd that says `truth / slope`, and the truths."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(0, 6, 60)
    said = truth / slope + rng.normal(0, spread, 60)
    return said + rng.normal(0, 1, (6, 60)), truth


def competition(slope: float, spread: float) -> list[bool]:
    """Whether the calibration was better, of eight crowds with eight known truths."""
    wins = []
    for seed in range(8):
        x, truth = crowd(seed, slope, spread)
        gold = dict(enumerate(truth[:8].tolist()))
        est = trueup.estimate(x, "mean", transform="none", gold=gold)
        wins.append(est.calibration is not None)
        assert est.diagnosis.gold.startswith(
            "Compared with 8 known truths" if wins[-1] else "8 known truths: these workers"
        )
    return wins


def test_a_crowd_unlike_the_public_ones_is_calibrated() -> None:
    assert sum(competition(slope=2.0, spread=0.1)) >= 5


def test_a_crowd_like_the_public_ones_is_not() -> None:
    assert sum(competition(slope=1.1, spread=0.5)) <= 2


@pytest.mark.parametrize(
    ("seed", "count", "wins"),
    [(1, 7, False), (9, 7, False), (1, 8, False), (9, 8, True), (3, 11, True), (2, 45, True)],
)
def test_the_calibration_has_to_win_by_a_standard_error(seed: int, count: int, wins: bool) -> None:
    """Each known truth is predicted from the others; of more than 40, every so many."""
    rng = np.random.default_rng(seed)
    said = rng.normal(0, 2, count)
    slope = 1.0 + 0.15 * seed
    gold = GoldQuestions(
        said,
        0.98 * said,
        np.full(count, 0.2),
        np.full(count, 0.02),
        slope * said + rng.normal(size=count) * 0.3,
    )
    numbers = CrowdNumbers(1.0, 0.0, 4.0, 60, 0.0, 0.2)
    _, found, _ = learn_from_gold(gold, numbers, 0.95, None, Scale())
    gaps = []
    for out in sorted({int(each) for each in np.linspace(0, count - 1, min(count, 40))}):
        rest = np.arange(count) != out
        calibration = calibrate(
            gold.consensus[rest], gold.variance[rest], gold.truth[rest], fewest=6
        )
        model = numbers.model(gold.without(out), 0.95, None)
        assert calibration is not None
        assert model is not None
        one = slice(out, out + 1)
        theirs, _, _ = calibration.apply(gold.consensus[one], gold.variance[one])
        ours = model.estimate(gold.aggregate[one], gold.consensus[one], gold.shrinkage[one])
        gaps.append(float((ours - gold.truth[one])[0] ** 2 - (theirs - gold.truth[one])[0] ** 2))
    error = np.std(gaps, ddof=1) / np.sqrt(len(gaps))
    assert (found is not None) == (count >= 8 and np.mean(gaps) > error) == wins


@pytest.mark.parametrize(("gold", "rule"), [(3, "adaptive"), (12, "adaptive"), (12, "stein")])
def test_errors_between_logarithms_are_told_as_factors(gold: int, rule: str) -> None:
    """0.4 between logarithms is a factor of 1.49, and nothing in the unit of the answers."""
    x, truth = crowd(2, slope=1.0, spread=0.3)
    x = x + 1.0  # all say too much, by a factor of e
    known = dict(enumerate(np.exp(truth[:gold]).tolist()))
    said = trueup.estimate(np.exp(x), "mean", rule, transform="log", gold=known).diagnosis.gold
    plain = trueup.estimate(x, "mean", rule, gold=dict(enumerate(truth[:gold].tolist())))
    words = r"(?:off by about|too high by|typical error:) (a factor of )?([\d.]+\d)"
    factors, distances = re.findall(words, said), re.findall(words, plain.diagnosis.gold)
    assert len(factors) == len(distances) > 0
    for (of, factor), (none, distance) in zip(factors, distances, strict=True):
        assert (of, none) == ("a factor of ", "")
        assert float(factor) == pytest.approx(np.exp(float(distance)), rel=0.01)


def test_interval_and_estimate_are_those_of_the_calibration_where_it_wins() -> None:
    x, truth = crowd(2, slope=2.0, spread=0.1)
    est = trueup.estimate(x, "mean", transform="none", gold=dict(enumerate(truth[:8].tolist())))
    assert est.calibration is not None
    step = est.second_step.posterior
    centre, square, freedom = est.calibration.apply(step.mean, step.variance)
    half = student_quantile(0.975, freedom) * np.sqrt(square)
    np.testing.assert_allclose(est.estimate[8:], centre[8:], rtol=1e-12)
    for lower, upper in ((est.lower, est.upper), (est.truth_lower, est.truth_upper)):
        np.testing.assert_allclose(lower[8:], (centre - half)[8:], rtol=1e-9)
        np.testing.assert_allclose(upper[8:], (centre + half)[8:], rtol=1e-9)
    np.testing.assert_allclose(est.std_error[8:], half[8:] / 1.959963984540054, rtol=1e-9)
    np.testing.assert_allclose(est.shrinkage[8:], step.shrinkage[8:], rtol=1e-12)


@pytest.mark.parametrize("unit", [1e-140, 1e-60, 1.0, 1e70, 1e140])
def test_units_do_not_decide_which_one_is_better(unit: float) -> None:
    """Squares of squares of such errors are no numbers."""
    x, truth = crowd(2, slope=2.0, spread=0.1)
    est = trueup.estimate(
        unit * x, "mean", transform="none", gold=dict(enumerate((unit * truth[:8]).tolist()))
    )
    assert est.calibration is not None
    assert est.calibration.slope == pytest.approx(1.9, abs=0.2)
