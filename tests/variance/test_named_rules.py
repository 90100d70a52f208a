"""Intervals by the rules with a name contain what they say, with few workers and with sparse answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import trueup
from evidence.intervals.rules import coverage
from trueup.algorithms import find
from trueup.algorithms.driver import run
from trueup.answers.answers import Answers
from trueup.variance import bootstrap, certainty, jackknife, plugin
from trueup.variance.pooling import pool

if TYPE_CHECKING:
    from trueup.core.arrays import Floats

FEW: dict[str, Any] = {"workers": 3, "questions": 5}
THREE: dict[str, Any] = {"workers": 3, "questions": 40}
SPARSE: dict[str, Any] = {"workers": 10, "questions": 40, "answers_per_question": 2}


def covered(answers: Answers, truth: Floats, method: str, rule: str) -> tuple[float, float]:
    """Return the share of 95% intervals of the first step that hold the truth, and mean variance over mean error."""
    inside, variance, error = coverage(answers, truth, method, "none", rule).mean(axis=1)
    return float(inside), float(variance / error)


@pytest.mark.parametrize(
    ("rule", "method", "design"),
    [
        ("jackknife", "mean", FEW),
        ("jackknife", "mean", THREE),
        ("jackknife", "crh", THREE),
        ("jackknife", "mean", SPARSE),
        ("jackknife", "crh", SPARSE),
        ("plugin", "mean", FEW),
        ("plugin", "crh", FEW),
        ("plugin", "crh", THREE),
        ("plugin", "median", SPARSE),
        ("sandwich", "crh", FEW),
        ("sandwich", "crh", THREE),
    ],
)
def test_intervals_of_few_workers_hold(rule: str, method: str, design: dict[str, Any]) -> None:
    """At 95%, within two points below and three above; the variance is no more than a third too large or small."""
    simulation = trueup.simulate(panels=400, seed=3, **design)
    share, ratio = covered(simulation.answers, simulation.truth, method, rule)
    assert 0.93 < share < 0.98
    assert 0.75 < ratio < 1.33


@pytest.mark.parametrize("method", ["mean", "crh"])
@pytest.mark.parametrize("design", [THREE, SPARSE], ids=["three workers", "sparse"])
def test_intervals_of_the_bootstrap_hold(method: str, design: dict[str, Any]) -> None:
    shares, ratios = [], []
    for seed in range(25):
        simulation = trueup.simulate(seed=seed, **design)
        share, ratio = covered(simulation.answers, simulation.truth, method, "bootstrap")
        shares.append(share)
        ratios.append(ratio)
    assert 0.925 < np.mean(shares) < 0.985
    assert 0.75 < np.median(ratios) < 1.4


@pytest.mark.parametrize("rule", ["jackknife", "plugin", "sandwich"])
def test_biases_of_three_workers_have_two_degrees_of_freedom(rule: str) -> None:
    simulation = trueup.simulate(panels=400, seed=4, bias=2.0, **THREE)
    share, _ = covered(simulation.answers, simulation.truth, "mean", rule)
    assert 0.92 < share < 0.98


def test_resampling_is_unbiased_however_uneven_the_answers() -> None:
    """Questions with one to five answers of alike workers; those with one take the level of the others."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(12, 600))
    place = rng.random(x.shape).argsort(axis=0).argsort(axis=0)
    x[place >= 1 + np.arange(600) % 5] = np.nan
    answers = Answers.from_matrix(x)
    mean = run(find("mean"), answers)
    for sure in (
        jackknife(answers, mean),
        jackknife(answers, mean, groups=4),
        bootstrap(answers, mean),
    ):
        total = sure.v + sure.shift[0]
        for k in range(1, 6):
            assert total[answers.counts == k].mean() == pytest.approx(1.0 / k, rel=0.15)


def test_a_worker_drawn_twice_does_not_agree_with_a_twin() -> None:
    answers = trueup.simulate(workers=4, questions=9, seed=1).answers
    drawn = trueup.answers.panels.bootstrap(answers, 50, seed=2, once=True)
    twins = trueup.answers.panels.bootstrap(answers, 50, seed=2)
    for panel in range(50):
        people, doubled = (each.panel(panel).worker_source for each in (drawn, twins))
        assert people is not None
        assert doubled is not None
        assert people.tolist() == sorted(set(doubled.tolist()))


def test_estimates_follow_the_rule_as_it_is() -> None:
    """Only the interval is wider than the plug-in says; the step is the plug-in's."""
    answers = trueup.simulate(workers=3, questions=8, seed=2).answers
    aggregate = run(find("crh"), answers)
    printed = plugin(answers, aggregate).copy()
    sure = certainty("plugin", answers, aggregate)
    np.testing.assert_array_equal(sure.v, printed)
    assert (sure.v_interval + sure.shift[0] >= printed * (1 - 1e-12)).all()
    assert np.isfinite(sure.nu).all()


def test_pooled_variances_of_alike_questions_are_their_mean() -> None:
    rng = np.random.default_rng(6)
    freedom = np.tile([1.0, 2.0, 4.0, 0.0], 500)
    chi = np.where(freedom > 0, rng.chisquare(np.maximum(freedom, 1.0)), 0.0)
    s = 3.0 * chi / np.maximum(freedom, 1.0)
    starts = np.array([0, len(s)])
    alike = pool(s, freedom, starts, fully=False)
    assert alike.variance.mean() == pytest.approx(3.0, rel=0.05)
    assert alike.variance.std() < 0.15 * alike.variance.mean()
    assert alike.nu[0] == pytest.approx(freedom.sum(), rel=0.2)
    # Questions that do differ keep more of their own.
    true = np.where(np.arange(len(s)) % 8 < 4, 1.0, 9.0)
    unlike = pool(true * s / 3.0, freedom, starts, fully=False)
    own = freedom == 4.0
    assert (
        unlike.variance[own & (true == 9.0)].mean()
        > 2.0 * unlike.variance[own & (true == 1.0)].mean()
    )
    whole = pool(true * s / 3.0, freedom, starts, fully=True)
    assert np.ptp(whole.variance) == 0


def test_panels_without_freedom_have_no_level() -> None:
    found = pool(
        np.array([2.0, 4.0, 1.0]), np.array([1.0, 1.0, 0.0]), np.array([0, 2, 3]), fully=False
    )
    np.testing.assert_allclose(found.variance[:2].sum(), 6.0)
    assert np.isnan(found.variance[2])
