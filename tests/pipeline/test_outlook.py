"""How far the truth may be, and what more known truths would bring."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import plain_crowd
import trueup
from small_panels import NAN, sparse
from trueup.pipeline.crowd_prior import NOTHING, KnownTruths, believe, expected_narrowing
from trueup.pipeline.outlook import Outlook

if TYPE_CHECKING:
    from pathlib import Path

    from trueup import Estimate
    from trueup.core.arrays import Floats

NONE = plain_crowd.Gold(*np.zeros((3, 0)))


def guesses(m: int = 20, n: int = 6, seed: int = 1) -> tuple[Floats, Floats]:
    """Return answers of a crowd that understates differences, and the truths."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(20.0, 4.0, m)
    said = 20.0 + 0.7 * (truth - 20.0) + rng.normal(0, 0.8, m)
    return said + rng.normal(0.0, 2.0, (n, m)), truth


def typical(est: Estimate, x: Floats, level: float) -> float:
    """Half the interval of a question at the centre, by the plain program."""
    step, s = est.second_step, plain_crowd.scatter(x)
    e, v = step.posterior.mean, step.posterior.variance
    reliability = np.log1p(s**2 / (e.var() + v.mean()))
    found = plain_crowd.posterior(float(reliability), float(step.certainty.shift[0]) / s**2, NONE)
    u = float(np.median(v)) / s**2
    deviation = np.sqrt(found.mean(found.om**2 + found.va + np.exp(2 * found.lam) * u))
    return float(s * plain_crowd.quantile(found, u, level) * deviation)


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_distances_are_those_of_the_plain_program(level: float) -> None:
    x, _ = guesses()
    est = trueup.estimate(x, "mean", transform="none", level=level)
    outlook = est.solution.outlook
    assert outlook.is_known
    assert not outlook.relative
    assert outlook.n_gold == 0
    assert outlook.scatter == pytest.approx(plain_crowd.scatter(x))
    assert outlook.half_width == pytest.approx(typical(est, x, level), rel=1e-8)
    assert outlook.distance == pytest.approx(typical(est, x, 0.5), rel=1e-8)
    assert f"typically off by {outlook.distance:.3g}" in est.diagnosis.target


def test_the_next_known_truths_are_worth_less_and_less() -> None:
    x, truth = guesses(m=40)
    reach = []
    for count in (0, 1, 4, 7):
        gold = dict(enumerate(truth[:count].tolist())) or None
        est = trueup.estimate(x, "mean", transform="none", kind="judgment", gold=gold)
        outlook = est.solution.outlook
        assert outlook.n_gold == count
        assert outlook.next_half_width < outlook.half_width
        reach.append(outlook.half_width)
        more = "more known truths" if count else "known truths"
        text = (
            f"10 {more} would narrow the interval for the truth from ± {outlook.half_width:.3g} to about "
            f"± {outlook.next_half_width:.3g}"
        )
        assert outlook.next_gold == text
        assert (text in est.diagnosis.gold) == (count > 0)
    assert reach[0] > reach[-1]


@pytest.mark.parametrize("kind", [None, "perception"])
def test_the_narrowing_is_that_of_crowds_drawn_at_random(kind: str | None) -> None:
    """Sixteen chosen crowds stand for 200 random ones: to about 5%."""
    rng, x, u, tau = np.random.default_rng(2), 0.5, 0.05, 1.2
    crowd = believe(x, 0.0, NOTHING, kind)
    widths = []
    for node in rng.choice(len(crowd.weight), 200, p=crowd.weight):
        a = rng.normal() * np.sqrt(crowd.offset_variance[node])
        z = rng.normal(0, tau, 10)
        noise = rng.normal(size=10) * np.sqrt(crowd.spread[node] ** 2 + crowd.slope[node] ** 2 * u)
        told = KnownTruths(z, np.full(10, u), a + crowd.slope[node] * z + noise)
        widths.append(believe(x, 0.0, told, kind).deviation(u))
    found = expected_narrowing(10, x, 0.0, u, tau, NOTHING, kind)
    expected = np.mean(widths) / crowd.deviation(u)
    error = np.std(widths) / np.sqrt(200) / crowd.deviation(u)
    assert found == pytest.approx(expected, abs=3 * error + 0.03)
    assert found < 1


def test_logarithms_have_factors() -> None:
    x, truth = guesses()
    plain = trueup.estimate(x / 5, "mean", transform="none").solution.outlook
    est = trueup.estimate(np.exp(x / 5), "mean", transform="log")
    outlook = est.solution.outlook
    assert outlook.relative
    for name in ("scatter", "distance", "half_width", "next_half_width"):
        assert getattr(outlook, name) == pytest.approx(np.exp(getattr(plain, name)), rel=1e-8)
    factors = f"from a factor of {outlook.half_width:.3g} to about a factor of "
    assert factors in outlook.next_gold
    assert f"off by a factor of {outlook.distance:.3g}" in est.diagnosis.target
    told = trueup.estimate(
        np.exp(x / 5), "mean", transform="log", gold={0: float(np.exp(truth[0] / 5))}
    )
    assert "10 more known truths" in told.diagnosis.gold


def test_other_scales_are_carried_back_at_the_centre() -> None:
    x = 1 / (1 + np.exp(-sparse(2)))
    est = trueup.estimate(x, "mean", transform="logit", bounds=(0.0, 1.0))
    outlook = est.solution.outlook
    assert not outlook.relative
    assert 0 < outlook.distance < outlook.half_width < 0.5
    middle = np.abs(est.estimate - 0.5).argmin()
    half = 0.5 * (est.truth_upper - est.truth_lower)[middle]
    assert outlook.half_width == pytest.approx(half, rel=0.15)


def test_panels_have_no_outlook() -> None:
    answers, _ = trueup.simulate(5, 10, panels=2, seed=1)
    est = trueup.estimate(answers, "mean")
    assert not est.solution.outlook.is_known
    assert est.solution.outlook.next_gold == ""
    assert "typically off" not in est.diagnosis.target


@pytest.mark.parametrize("count", [0, 2])
def test_what_is_unknown_promises_nothing(count: int) -> None:
    x = np.where(np.eye(6) > 0, np.arange(6.0), NAN)
    est = trueup.estimate(x, gold=dict.fromkeys(range(count), 3.5) or None)
    outlook = est.solution.outlook
    assert not outlook.is_known
    assert (outlook.n_gold, outlook.next_gold) == (count, "")


def test_a_calibration_has_an_outlook_of_its_own() -> None:
    rng = np.random.default_rng(3)
    truth = rng.normal(50, 10, 60)
    x = 10 + 0.5 * truth + rng.normal(0, 3, (6, 60))
    est = trueup.estimate(x, "mean", gold=dict(enumerate(truth[:15].tolist())))
    assert est.calibration is not None
    outlook = est.solution.outlook
    width = 0.5 * (est.truth_upper - est.truth_lower)[15:]
    assert outlook.half_width == pytest.approx(width.min(), rel=0.1)
    assert outlook.distance < outlook.half_width
    assert outlook.n_gold == 15
    assert outlook.next_gold == ""


@pytest.mark.parametrize("count", [0, 3, 15])
@pytest.mark.parametrize("target", ["truth", "consensus"])
def test_a_saved_estimate_has_the_same_outlook(count: int, target: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    truth = rng.normal(50, 10, 40)
    x = 10 + 0.5 * truth + rng.normal(0, 3, (6, 40))
    gold = dict(enumerate(truth[:count].tolist())) or None
    est = trueup.estimate(x, "mean", target=target, kind="judgment", gold=gold)
    assert (est.calibration is not None) == (count == 15)
    found = trueup.load(est.save(tmp_path / "state.trueup"))
    np.testing.assert_equal(vars(found.solution.outlook), vars(est.solution.outlook))
    assert found.solution.target == est.solution.target == target
    assert found.diagnosis == est.diagnosis
    assert str(found) == str(est)
    for name in ("estimate", "lower", "upper", "truth_lower", "truth_upper", "std_error"):
        np.testing.assert_array_equal(getattr(found, name), getattr(est, name))


@pytest.mark.parametrize(
    "options", [{}, {"gold": 5}, {"gold": 12}, {"target": "consensus"}, {"kind": "forecast"}]
)
def test_an_update_is_a_run_with_all_answers(options: dict[str, Any], tmp_path: Path) -> None:
    x, truth = guesses(m=24, seed=5)
    rows = [(f"q{j}", f"w{i}", float(x[i, j])) for j in range(24) for i in range(6)]
    columns = [dict(zip(("question", "worker", "answer"), zip(*part, strict=True), strict=True))
               for part in (rows[:100], rows[100:], rows)]  # fmt: skip
    first, rest, both = ({name: list(each) for name, each in part.items()} for part in columns)
    count = options.get("gold", 0)
    gold = {f"q{j}": float(truth[j]) for j in range(count)} or None
    options = {**options, "gold": gold, "tol": 1e-12, "max_iter": 2000}
    path = trueup.estimate(first, "native", **options).save(tmp_path / "state.trueup")
    found, full = trueup.update(path, rest), trueup.estimate(both, "native", **options)
    for name in ("estimate", "lower", "upper", "truth_lower", "truth_upper", "std_error"):
        np.testing.assert_allclose(getattr(found, name), getattr(full, name), rtol=1e-7)
    assert found.solution.target == full.solution.target
    assert found.solution.outlook.half_width == pytest.approx(full.solution.outlook.half_width)


def test_an_outlook_that_is_not_known_is_the_default() -> None:
    assert not Outlook().is_known
    assert Outlook().in_words(2.0) == "2"
    assert Outlook(relative=True).in_words(2.0) == "a factor of 2"
