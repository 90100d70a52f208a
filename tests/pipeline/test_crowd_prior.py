"""The prior over crowds: against recorded numbers, a plain sum over nodes, and what it promises."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

import plain_crowd
from trueup.pipeline.crowd_prior import (
    NOTHING,
    SPREADS,
    Crowd,
    KnownTruths,
    TruthModel,
    believe,
    reliability,
    truth_model,
)

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "crowd_prior_vectors.json").read_text()
)
CASES: dict[str, dict[str, Any]] = {case["name"]: case for case in VECTORS["cases"]}


def solved(case: dict[str, Any]) -> tuple[dict[str, Any], TruthModel]:
    """All numbers of a recorded case."""
    t, e, v, b = (np.array(case[name]) for name in "teVB")
    s, options = case["s2"] ** 0.5, case["options"]
    number = np.array([int(each) for each in case["gold"]], dtype=int)
    truth = np.array(list(case["gold"].values()))
    mean, x = float(e.mean()), reliability(s, float(e.var() + v.mean()), len(t))
    if s == 0:
        s, x = float(np.sqrt(np.mean((truth - t[number]) ** 2))), 0.0
    known = KnownTruths((e[number] - mean) / s, v[number] / s**2, (truth - mean) / s)
    model = truth_model(
        centre=mean,
        unit=s,
        x=x,
        shift=options.get("shift", 0.0),
        typical_variance=float(np.median(v)),
        level=0.95,
        known=known,
        kind=options.get("kind"),
    )
    estimate = model.estimate(t, e, b)
    middle, deviation = model.predict(e, v)
    half = model.quantile * deviation
    lower, upper = np.minimum(middle - half, estimate), np.maximum(middle + half, estimate)
    for values in (estimate, lower, upper):
        values[number] = truth
    numbers = {
        "mean": estimate,
        "lower": lower,
        "upper": upper,
        "x": x,
        "told": model.told,
        "offset": s * model.offset,
        "slope": model.slope,
        "spread": s * model.spread,
        "none": model.independent,
    }
    return numbers, model


@pytest.mark.parametrize("name", CASES)
def test_recorded_numbers(name: str) -> None:
    numbers, _ = solved(CASES[name])
    for key, value in numbers.items():
        np.testing.assert_allclose(value, CASES[name][key], rtol=1e-8, atol=1e-9, err_msg=key)


def test_the_constants_are_those_of_the_vectors() -> None:
    prior = VECTORS["prior"]
    assert SPREADS[None] == (prior["W0"], prior["SW"])
    assert {kind: list(SPREADS[kind]) for kind in VECTORS["kinds"]} == VECTORS["kinds"]


def plain_weights(x: float, shift: float, known: KnownTruths) -> dict[tuple[float, ...], float]:
    """Posterior weights of the nodes by loops, without the case of no shared error."""
    slopes, logs = np.linspace(-1.6, 2.4, 51), np.linspace(-4, 4, 41)
    usual = [(1 + ((lam - 0.37 * x) / 0.14) ** 2 / 4) ** -2.5 for lam in slopes]
    wide = [np.exp(-0.5 * ((lam - 0.37 * x) / 0.6) ** 2) for lam in slopes]
    spread = [np.exp(-0.5 * ((log - 0.04) / 0.8) ** 2) for log in logs]
    eta = max(0.7, 1 - 2 / len(known.g)) if len(known.g) else 1.0
    found: dict[tuple[float, ...], float] = {}
    for i, lam in enumerate(slopes):
        own = 0.85 * usual[i] / sum(usual) + 0.15 * wide[i] / sum(wide)
        for j, log in enumerate(logs):
            for a2, share in ((shift, 0.5), (0.74**2 + shift, 0.5)):
                weight = np.log(0.8 * own * spread[j] / sum(spread) * share)
                # The offset is integrated out: a normal vector with a common part of variance a2.
                d = np.exp(2 * log) + np.exp(2 * lam) * known.u
                r = known.g - np.exp(lam) * known.z
                total, rest = np.sum(eta / d), np.sum(eta * r / d)
                weight -= 0.5 * eta * np.sum(np.log(d)) + 0.5 * eta * np.sum(r * r / d)
                weight += 0.5 * a2 * rest**2 / (1 + a2 * total) - 0.5 * np.log(1 + a2 * total)
                found[lam, log, a2] = float(weight)
    return found


@pytest.mark.parametrize("count", [0, 1, 4])
def test_weights_are_those_of_a_plain_loop(count: int) -> None:
    rng = np.random.default_rng(count)
    known = KnownTruths(
        rng.normal(size=count), rng.uniform(0.05, 0.3, count), rng.normal(0, 1.5, count)
    )
    crowd = believe(0.5, 0.1, known)
    loop = np.array(list(plain_weights(0.5, 0.1, known).values()))
    expected = np.exp(loop - loop.max())
    np.testing.assert_allclose(
        crowd.weight[:-1] / crowd.weight[:-1].sum(), expected / expected.sum(), rtol=1e-9
    )


def test_without_known_truths_the_prior_stays() -> None:
    crowd = believe(1.2)
    assert crowd.independent == pytest.approx(0.2)
    assert crowd.mean(crowd.offset) == 0.0
    assert crowd.mean(crowd.slope) > 1.2


def test_many_known_truths_find_the_slope() -> None:
    """A slope of 2 with little noise: the nodes are laid anew, closer together."""
    rng = np.random.default_rng(1)
    z = rng.normal(0, 2, 200)
    known = KnownTruths(z, np.full(200, 0.01), 2.0 * z + rng.normal(0, 0.05, 200))
    crowd = believe(0.3, known=known)
    assert crowd.slope_uncertainty < 1e-3
    assert crowd.mean(crowd.slope) == pytest.approx(2.0, rel=0.01)
    assert len(np.unique(np.round(crowd.log_slope[crowd.weight > 1e-6], 9))) > 5


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_the_interval_has_its_level_under_the_mixture(level: float) -> None:
    crowd = believe(0.8, 0.05)
    model = truth_model(centre=0.0, unit=1.0, x=0.8, shift=0.05, typical_variance=0.1, level=level)
    middle, deviation = model.predict(np.zeros(1), np.full(1, 0.1))
    half = float((model.quantile * deviation)[0])
    own = np.sqrt(crowd.spread**2 + crowd.offset_variance + crowd.slope**2 * 0.1)
    inside = crowd.mean(ndtr(half / own) - ndtr(-half / own))
    assert middle[0] == 0.0
    assert inside == pytest.approx(level, abs=1e-9)


def test_units_move_with_the_answers() -> None:
    numbers, model = solved(CASES["three gold"])
    case = dict(CASES["three gold"])
    scaled = {name: (3.0 * np.array(case[name]) - 7.0).tolist() for name in "te"}
    scaled["V"] = (9.0 * np.array(case["V"])).tolist()
    gold = {name: 3.0 * value - 7.0 for name, value in case["gold"].items()}
    other, _ = solved({**case, **scaled, "gold": gold, "s2": 9.0 * case["s2"]})
    for name in ("mean", "lower", "upper"):
        np.testing.assert_allclose(other[name], 3.0 * numbers[name] - 7.0, rtol=1e-9)
    assert isinstance(model, TruthModel)


def test_the_step_is_never_past_the_full_one_and_never_expands() -> None:
    _, model = solved(CASES["no gold, equal v, low ICC"])
    share = model.step(np.array([0.0, 0.05, 0.5, 0.95, 1.0]))
    assert share[0] == 0.0
    assert ((share >= 0) & (share <= 1)).all()
    assert share[-1] == 1.0
    # The less is left of a question, the less of the step is kept back.
    assert (np.diff(share) >= 0).all()


def test_few_questions_and_no_scatter_say_nothing_about_reliability() -> None:
    assert reliability(1.0, 1.0, 3) == 0.0
    assert reliability(0.0, 1.0, 30) == 0.0
    assert reliability(1.0, 1.0, 30) == pytest.approx(np.log(2.0))
    assert reliability(1e9, 1e-9, 30) == 5.0
    assert isinstance(believe(0.1), Crowd)
    assert len(NOTHING.g) == 0


@pytest.mark.parametrize("kind", [None, "perception", "forecast"])
@pytest.mark.parametrize("count", [0, 1, 5, 12, 30])
def test_everything_is_that_of_a_plain_program(kind: str | None, count: int) -> None:
    """With many known truths and little noise the nodes are laid anew."""
    rng = np.random.default_rng(count)
    z = rng.normal(0, 2, count)
    known = KnownTruths(z, np.full(count, 0.05), 1.4 * z + rng.normal(0, 0.2, count))
    crowd = believe(0.6, 0.02, known, kind)
    plain = plain_crowd.posterior(0.6, 0.02, plain_crowd.Gold(known.z, known.u, known.g), kind)
    for ours, theirs in (
        (crowd.mean(crowd.slope), plain.mean(np.exp(plain.lam))),
        (crowd.mean(crowd.offset), plain.mean(plain.ah)),
        (crowd.mean(crowd.spread**2), plain.mean(plain.om**2)),
        (crowd.slope_uncertainty, plain.slope_variance),
        (crowd.independent, plain.w[-1]),
    ):
        assert ours == pytest.approx(theirs, rel=1e-8, abs=1e-12)
    deviation = crowd.deviation(0.05)
    for level in (0.5, 0.95):
        half = plain_crowd.quantile(plain, 0.05, level)
        assert crowd.half_width(0.05, level) / deviation == pytest.approx(half, rel=1e-8)


def test_nodes_that_are_laid_anew_have_the_prior_of_those_before() -> None:
    """Truths that are the consensus but for its noise: workers who share no error must stay as likely as they are."""
    rng = np.random.default_rng(0)
    z = rng.normal(0, 3, 60)
    known = KnownTruths(z, np.full(60, 0.5), z + rng.normal(0, 0.5**0.5, 60))
    crowd = believe(0.1, 0.0, known)
    plain = plain_crowd.posterior(0.1, 0.0, plain_crowd.Gold(known.z, known.u, known.g))
    assert np.ptp(crowd.log_slope[:-1]) < 2.0
    assert 0.05 < crowd.independent < 0.95
    assert crowd.independent == pytest.approx(plain.w[-1], rel=1e-8)


def test_an_error_in_a_known_truth_is_not_believed_over_all_others() -> None:
    """One of six known truths is off by 20 standard deviations of an answer."""
    rng = np.random.default_rng(3)
    z = rng.normal(0, 1.5, 6)
    g = 1.2 * z + rng.normal(0, 0.3, 6)
    wrong = g.copy()
    wrong[0] += 20.0
    before, after = (
        believe(0.4, 0.0, KnownTruths(z, np.full(6, 0.1), each)) for each in (g, wrong)
    )
    assert abs(after.mean(after.offset)) < 1.5
    assert after.deviation(0.1) > 2 * before.deviation(0.1)
