"""The two steps joined: the paper's algorithms on its own table, and variance rules for any first step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import trueup
from repository import vectors
from trueup import Answers, TrueupError, TrueupWarning
from trueup.algorithms import Algorithm, Mean, names, run
from trueup.shrinkage import EBE
from trueup.variance import (
    blue,
    bootstrap,
    jackknife,
    mean_sandwich,
    plugin,
    psi_h,
    psi_h_per_answer,
)
from trueup.variance import names as variance_names

VECTORS = vectors()
TABLE1 = np.array(VECTORS["datasets"]["table1"]["X"])
TRUTH = np.array(VECTORS["datasets"]["table1"]["gt"])


def test_table_one_of_the_paper() -> None:
    known = VECTORS["known_competence"]
    variance = dict(enumerate(known["sigma2"]))
    np.testing.assert_allclose(((TABLE1 - TRUTH) ** 2).mean(axis=1), known["sigma2"])
    eb_blue = trueup.estimate(TABLE1, method="blue", shrink="paper", worker_variance=variance)
    np.testing.assert_allclose(eb_blue.base, known["blue"], rtol=1e-10)
    np.testing.assert_allclose(eb_blue.estimate, known["ebblue"], rtol=1e-10)
    np.testing.assert_allclose(eb_blue.shrinkage, known["shrink"], rtol=1e-10)
    mean = trueup.estimate(TABLE1, method="mean")
    for name, estimate in (
        ("avg", mean.base),
        ("blue", eb_blue.base),
        ("ebblue", eb_blue.estimate),
    ):
        assert np.mean((estimate - TRUTH) ** 2) == pytest.approx(known["loss_mean"][name])


def test_the_printed_variance_is_that_of_a_worker_and_reverses_the_order() -> None:
    answers, _ = trueup.simulate(workers=10, questions=10, truth_scale=0.3, seed=1)
    with pytest.warns(TrueupWarning, match="reversed their order"):
        printed = trueup.estimate(answers, method="mean", shrink="paper")
    assert (printed.shrinkage > 1).all()
    assert np.isnan(printed.lower).all()
    assert printed.diagnosis.warnings
    positive = trueup.estimate(answers, method="mean", shrink=EBE(positive=True))
    np.testing.assert_allclose(positive.estimate, positive.base.mean())
    assert (positive.lower < positive.estimate).all()


@pytest.mark.parametrize("shrink", ["paper", "stein", "mebe", "morris", "sure"])
@pytest.mark.parametrize("variance", ["plugin", "sandwich", "psi_H/n", 0.1])
def test_every_rule_with_every_variance(shrink: str, variance: Any) -> None:
    answers, _ = trueup.simulate(workers=10, questions=30, truth_mean=3.0, seed=2)
    est = trueup.estimate(answers, method="crh", shrink=shrink, variance=variance)
    assert ((est.shrinkage > 0) & (est.shrinkage < 0.6)).all()
    assert np.isfinite(est.estimate).all()
    assert (np.abs(est.estimate - est.base) <= est.shrinkage * np.abs(est.base) + 3.0).all()
    assert est.diagnosis.shrink == shrink
    assert est.questions["shrinkage"].tolist() == est.shrinkage.tolist()


@pytest.mark.parametrize("method", sorted(set(names()) - {"blue"}))
def test_the_second_step_takes_any_first_step(method: str) -> None:
    answers, _ = trueup.simulate(workers=8, questions=40, density=0.6, truth_scale=0.5, seed=3)
    est = trueup.estimate(answers, method=method, shrink="morris")
    assert np.isfinite(est.estimate).all()
    spread = est.estimate.std() / est.base.std()
    assert 0 < spread < 1


def test_a_correct_variance_gains_where_truths_are_alike() -> None:
    simulation = trueup.simulate(workers=5, questions=30, panels=300, truth_scale=0.5, seed=4)
    loss = {}
    for shrink, variance in (("none", None), ("morris", "plugin"), ("paper", "psi_H/n")):
        est = trueup.estimate(simulation.answers, method="mean", shrink=shrink, variance=variance)
        loss[shrink] = np.mean((est.estimate - simulation.truth) ** 2)
    # Bayes' risk with known variances is about 0.25/(0.25 + 0.21) = 0.55 of that of the mean.
    assert loss["morris"] < 0.65 * loss["none"]
    assert loss["paper"] < 0.65 * loss["none"]


def test_expectation_of_the_printed_variance() -> None:
    """For the mean, E psi_H = m/(m-1) (1 - 1/n) mean(sigma^2): about n times the variance of the mean."""
    n, m, panels = 6, 8, 4000
    variance = np.array([0.2, 0.5, 1.0, 1.0, 2.0, 3.0])
    simulation = trueup.simulate(workers=n, questions=m, panels=panels, variance=variance, seed=5)
    aggregate = run(Mean(), simulation.answers)
    psi = psi_h(simulation.answers, aggregate).reshape(panels, m)[:, 0]
    expected = m / (m - 1) * (1 - 1 / n) * variance.mean()
    assert abs(psi.mean() - expected) < 4 * psi.std() / np.sqrt(panels)


@pytest.mark.parametrize("rule", [plugin, mean_sandwich, psi_h_per_answer, blue])
def test_variance_rules_are_right_for_the_mean_of_alike_workers(rule: Any) -> None:
    panels, n, m = 2000, 8, 12
    simulation = trueup.simulate(workers=n, questions=m, panels=panels, variance="fixed", seed=6)
    v = rule(simulation.answers, run(Mean(), simulation.answers)).reshape(panels, m).mean(axis=1)
    # psi_H/n has the divisors of the paper, m/(m-1) (1 - 1/n) of the variance.
    factor = m / (m - 1) * (1 - 1 / n) if rule is psi_h_per_answer else 1.0
    if rule is blue:
        factor = 1.0 - 1.0 / m  # one over a noisy variance is biased
        assert v.mean() == pytest.approx(factor / n, rel=0.12)
        return
    assert abs(v.mean() - factor / n) < 4 * v.std() / np.sqrt(panels)


@pytest.mark.parametrize("rule", [jackknife, bootstrap])
def test_resampled_variance_of_the_mean_is_the_usual_one(rule: Any) -> None:
    matrix = np.random.default_rng(7).normal(0, 1, (12, 40))
    answers = Answers.from_matrix(matrix)
    found = rule(answers, run(Mean(), answers), **({"panels": 2000} if rule is bootstrap else {}))
    expected = matrix.var(axis=0, ddof=1) / 12
    # Leaving out one worker at a time: exact.
    precision = 1e-10 if rule is jackknife else 0.02
    assert found.v.mean() + found.shift[0] == pytest.approx(expected.mean(), rel=precision)
    # 40 questions with 11 degrees of freedom each.
    assert found.nu[0] == pytest.approx(440, rel=0.35)


class Midrange(Algorithm):
    """A black box: no weights."""

    def truths(self, block: Any, state: Any) -> Any:
        start = block.indptr[:-1]
        return 0.5 * (
            np.minimum.reduceat(block.values, start) + np.maximum.reduceat(block.values, start)
        )

    def weights(self, block: Any, state: Any, x: Any) -> None:
        return None


@pytest.mark.parametrize("variance", ["jackknife", "bootstrap"])
def test_a_black_box_gets_its_variance_by_resampling_workers(variance: str) -> None:
    answers, _ = trueup.simulate(workers=12, questions=60, density=0.8, truth_scale=0.5, seed=8)
    est = trueup.estimate(answers, method=Midrange(), shrink="morris", variance=variance)
    assert ((est.shrinkage > 0) & (est.shrinkage < 1)).all()
    assert (est.base_std_error > 0).all()
    with pytest.raises(TrueupError, match="jackknife"):
        trueup.estimate(answers, method=Midrange(), shrink="morris", variance="plugin")


def test_resampling_needs_workers_and_a_single_problem() -> None:
    single = Answers.from_matrix([[1.0, 2.0, 3.0]])
    with pytest.raises(TrueupError, match="two workers"):
        jackknife(single, run(Mean(), single))
    panels = trueup.simulate(panels=2).answers
    with pytest.raises(TrueupError, match="already"):
        bootstrap(panels, run(Mean(), panels))


def test_the_jackknife_of_panels_is_that_of_each() -> None:
    panels = trueup.simulate(workers=7, questions=9, panels=3, seed=2).answers
    together = jackknife(panels, run(Mean(), panels))
    for b in range(3):
        one = panels.panel(b)
        alone = jackknife(one, run(Mean(), one))
        np.testing.assert_allclose(together.v[9 * b : 9 * b + 9], alone.v)
        assert (together.nu[b], together.shift[b]) == pytest.approx((alone.nu[0], alone.shift[0]))


@pytest.mark.parametrize("variance", ["psi", -1.0, [1.0, 2.0], np.nan, "word"])
def test_a_wrong_variance_is_named(variance: Any) -> None:
    answers, _ = trueup.simulate(seed=1)
    with pytest.raises(TrueupError, match=r"^variance"):
        trueup.estimate(answers, shrink="morris", variance=variance)


def test_all_variance_rules_have_names() -> None:
    assert set(variance_names()) == {
        "paper", "psi_H", "psi_H/n", "plugin", "sandwich", "blue", "jackknife", "bootstrap",
        "moderated",
    }  # fmt: skip


def test_shrinkage_works_on_the_scale_of_the_transform() -> None:
    rng = np.random.default_rng(9)
    matrix = np.exp(rng.normal(2, 0.3, 30) + rng.normal(0, 0.5, (5, 30)))
    log = trueup.estimate(matrix, method="mean", shrink="morris", transform="log")
    by_hand = trueup.estimate(np.log(matrix), method="mean", shrink="morris")
    np.testing.assert_allclose(log.estimate, np.exp(by_hand.estimate), rtol=1e-10)
    np.testing.assert_allclose(log.lower, np.exp(by_hand.lower), rtol=1e-10)


def test_without_overlap_nothing_is_moved() -> None:
    est = trueup.estimate(
        {"question": [*"abcde"], "worker": [*"vwxyz"], "answer": [1.0, 2.0, 3.0, 4.0, 9.0]},
        shrink="morris",
    )
    assert est.estimate.tolist() == [1.0, 2.0, 3.0, 4.0, 9.0]
    assert (est.shrinkage == 0).all()
    assert np.isnan(est.lower).all()
    given = trueup.estimate(
        {"question": [*"abcde"], "worker": [*"vwxyz"], "answer": [1.0, 2.0, 3.0, 4.0, 9.0]},
        shrink="morris",
        variance=2.0,
    )
    assert (given.shrinkage > 0).all()
    assert np.isfinite(given.lower).all()


@pytest.mark.parametrize("method", ["mean", "median", "native"])
def test_without_a_second_step_an_absurd_answer_moves_nothing(method: str) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(0.0, 1.0, (6, 30))
    x[2, 7] = 900.0
    first = trueup.estimate(x, method, "none")
    assert first.shrinkage.tolist() == [0.0] * 30
    assert first.estimate.tolist() == first.base.tolist()
    if method == "mean":
        assert first.estimate == pytest.approx(x.mean(axis=0))
