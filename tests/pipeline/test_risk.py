"""Simulations that a wrong constant fails: risks, coverage and variances against their formulas.

Seeds are fixed; a tolerance is said where it stands, most often four or five standard errors of the simulation. What
`tools/mutations.toml` changes for the worse must fail here or elsewhere.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import trueup
from trueup import Answers, shrinkage, theory, variance
from trueup.algorithms import KDEm, StudentT, find, run
from trueup.algorithms.answer_spread import panel_spreads
from trueup.core.sampling import drawn, id_hashes
from trueup.engines.memory import MemoryEngine
from trueup.engines.protocol import Visit
from trueup.engines.question_sample import sample_questions
from trueup.findings.agreement import agreement
from trueup.variance.bias import estimate_biases
from trueup.variance.intervals import Width, student_quantile

if TYPE_CHECKING:
    from trueup.answers.block import Block
    from trueup.core.arrays import Floats
    from trueup.engines.protocol import Kept

PANELS = 4_000


def within(values: Floats, expected: float, errors: float = 4.5) -> None:
    """Check that a mean of simulated numbers is as expected, up to some standard errors."""
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    assert abs(float(np.mean(values)) - expected) < errors * error, (
        np.mean(values),
        expected,
        error,
    )


def aggregates(
    m: int, v: float, tau2: float, seed: int, mean: float = 3.0
) -> tuple[Floats, Floats]:
    """Draw truths and aggregates of many panels: panels x questions."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(mean, math.sqrt(tau2), (PANELS, m))
    return truth, truth + rng.normal(0.0, math.sqrt(v), (PANELS, m))


def shrunk(rule: shrinkage.ShrinkRule, x: Floats, v: Any) -> tuple[Floats, Floats]:
    """Return mean and variance of many panels by a rule."""
    panels = np.arange(len(x) + 1) * x.shape[1]
    each = np.broadcast_to(v, x.shape).ravel()
    found = rule.fit(x.ravel(), each, panels=panels).posterior(x.ravel(), each, panels=panels)
    return found.mean.reshape(x.shape), found.variance.reshape(x.shape)


# -- risks of second steps -------------------------------------------------------------------------


@pytest.mark.parametrize("m", [6, 12])
def test_risk_of_equation_one_is_the_closed_form(m: int) -> None:
    truth, x = aggregates(m, v=1.0, tau2=0.7, seed=1)
    loss = np.sum((shrunk(shrinkage.EBE(), x, 1.0)[0] - truth) ** 2, axis=1)
    within(loss, theory.risk_under_prior(m, 1.0, 0.7))
    # With m - 1 instead of m - 3 the loss would be away by more than the tolerance.
    assert theory.risk_under_prior(m, 1.0, 0.7, alpha=m - 1) > theory.risk_under_prior(m, 1.0, 0.7)
    wrong = np.sum((shrunk(shrinkage.EBE(alpha=m - 1), x, 1.0)[0] - truth) ** 2, axis=1)
    within(wrong, theory.risk_under_prior(m, 1.0, 0.7, alpha=m - 1))
    assert np.mean(wrong - loss) > 4 * np.std(wrong - loss) / math.sqrt(PANELS)


def test_risk_of_james_and_stein_is_the_closed_form() -> None:
    # Toward 0, truths N(0, t): m v - (m - 2) v^2 / (v + t).
    m, v, t = 8, 1.0, 0.5
    truth, x = aggregates(m, v, t, seed=2, mean=0.0)
    loss = np.sum((shrunk(shrinkage.Stein(), x, v)[0] - truth) ** 2, axis=1)
    within(loss, m * v - (m - 2) * v * v / (v + t))


def test_risk_of_mebe_is_that_of_its_constant() -> None:
    # Far apart truths: the positive part never acts, and MEBE is EB^m.
    m, v, t = 8, 1.0, 60.0
    truth, x = aggregates(m, v, t, seed=3)
    gain = np.sum((x - truth) ** 2 - (shrunk(shrinkage.MEBE(), x, v)[0] - truth) ** 2, axis=1)
    within(gain, m * v - theory.risk_under_prior(m, v, t, alpha=m))


def test_morris_is_equation_one_on_average_and_its_variance_is_the_squared_error() -> None:
    m, v, t = 10, 1.0, 1.5
    truth, x = aggregates(m, v, t, seed=4)
    mean, spread = shrunk(shrinkage.Morris(), x, v)
    loss = (mean - truth) ** 2
    # Positive part: a little better than equation (1), by less than 3 %.
    ratio = loss.sum(axis=1).mean() / theory.risk_under_prior(m, v, t)
    assert 0.965 < ratio < 1.0
    assert spread.mean() == pytest.approx(loss.mean(), rel=0.03)


@pytest.mark.parametrize("rule", [shrinkage.Morris(), shrinkage.Sure()], ids=lambda each: each.name)
def test_unequal_variances_are_near_the_best_that_is_possible(rule: shrinkage.ShrinkRule) -> None:
    m, t = 40, 0.6
    rng = np.random.default_rng(5)
    v = rng.uniform(0.2, 2.0, m)
    truth = rng.normal(2.0, math.sqrt(t), (1_000, m))
    x = truth + rng.normal(size=truth.shape) * np.sqrt(v)
    risk = np.mean((shrunk(rule, x, v)[0] - truth) ** 2)
    best = np.mean(v * t / (v + t))
    # The price of having learned the prior: with equal variances 3/m of the shrinkage, less where tau2 = 0 was found.
    price = 3 / m * np.mean(v**2 / (v + t))
    assert 0.5 < (risk - best) / price < 1.0


def test_sure_is_unbiased_for_the_risk() -> None:
    m, t = 12, 0.8
    rng = np.random.default_rng(6)
    v = rng.uniform(0.2, 2.0, m)
    truth = rng.normal(0.0, math.sqrt(t), (PANELS, m))
    x = truth + rng.normal(size=truth.shape) * np.sqrt(v)
    b, centre = v / (v + t), x.mean(axis=1, keepdims=True)
    risk = np.sum((x - b * (x - centre) - truth) ** 2, axis=1)
    sure = np.sum(b**2 * (x - centre) ** 2 + v * (1.0 - 2.0 * (1.0 - 1.0 / m) * b), axis=1)
    within(risk - sure, 0.0)
    # The rule minimises that sum: at its own tau2 no other one is smaller.
    prior = shrinkage.Sure().fit(x[0], v)

    def estimate(tau2: float) -> float:
        c = v / (v + tau2)
        return float(np.sum(c**2 * (x[0] - x[0].mean()) ** 2 + v * (1 - 2 * (1 - 1 / m) * c)))

    assert all(
        estimate(float(prior.tau2[0])) <= estimate(t) + 1e-9 for t in np.linspace(0, 20, 2001)
    )


@pytest.mark.parametrize("m", [4, 5, 20])
def test_the_normal_rule_is_minimax_and_gains_what_it_should(m: int) -> None:
    v = 1.0
    for tau2, most in ((0.2, 1.0), (4.0, 1.0), (100.0, 1.003)):
        truth, x = aggregates(m, v, tau2, seed=7)
        mean, spread = shrunk(shrinkage.Normal(caution=1.0), x, v)
        ratio = np.sum((mean - truth) ** 2) / np.sum((x - truth) ** 2)
        assert ratio < most
        if m == 20:
            # Between the risk of a known prior and that of equation (1), which may move too far.
            plain = 1 - (m - 3) / m * v / (v + tau2)
            assert tau2 / (v + tau2) < ratio < plain + 0.008
            assert ratio > plain - 0.05
            # Where the truths hardly differ their spread cannot be known, and the variance is on the safe side.
            error = np.mean((mean - truth) ** 2)
            assert (0.99 if tau2 < 1 else 0.97) * error < spread.mean()
            assert spread.mean() < (1.6 if tau2 < 1 else 1.03) * error


# -- variances of first steps ----------------------------------------------------------------------


def answers_of(n: int, m: int, sigma2: Floats, panels: int, seed: int) -> tuple[Answers, Floats]:
    found = trueup.simulate(
        n, m, panels=panels, variance=sigma2, truth="constant", truth_scale=1.0, seed=seed
    )
    return found.answers, found.truth


def test_variances_of_a_mean_are_those_of_the_simulation() -> None:
    n, m, panels = 5, 12, 1_500
    sigma2 = np.array([0.5, 1.0, 1.0, 2.0, 3.0])
    data, truth = answers_of(n, m, sigma2, panels, seed=8)
    mean = run(find("mean"), data)
    true = float(sigma2.sum()) / n**2
    assert np.mean((mean.x - truth) ** 2) == pytest.approx(true, rel=0.03)
    by_panel = {
        name: variance.variances(name, data, mean).reshape(panels, m).mean(axis=1)
        for name in ("plugin", "sandwich", "moderated", "psi_H", "psi_H/n")
    }
    within(by_panel["plugin"], true)
    within(by_panel["sandwich"], true)
    assert by_panel["moderated"].mean() == pytest.approx(true, rel=0.05)
    # As printed: sum_j (x_ij - t_j)^2 / (m - 1), a worker's variance less what it has in the mean.
    printed = float(np.mean(sigma2 * (1 - 2 / n) + true)) * m / (m - 1)
    within(by_panel["psi_H"], printed)
    within(by_panel["psi_H/n"], printed / n)


def test_the_jackknife_and_the_bootstrap_of_a_mean_have_their_constants() -> None:
    n, m = 6, 400
    data, _ = answers_of(n, m, np.ones(n), 1, seed=9)
    mean = run(find("mean"), data)
    own = float(np.mean(np.var(data.to_matrix(), axis=0, ddof=1))) / n
    # Leaving out each worker in turn, the jackknife of a mean is its usual variance, exactly.
    left_out = variance.jackknife(data, mean, groups=n)
    assert left_out.v.mean() + left_out.shift[0] == pytest.approx(own, rel=1e-9)
    drawn_again = variance.bootstrap(data, mean, panels=800)
    assert drawn_again.v.mean() + drawn_again.shift[0] == pytest.approx(own, rel=0.02)


def test_known_variances_give_blue_and_its_variance() -> None:
    n, m = 4, 3_000
    sigma2 = np.array([1.0, 4.0, 0.25, 9.0])
    found = trueup.simulate(n, m, variance=sigma2, seed=10)
    data = Answers.of(found.answers.to_matrix(), worker_variance=dict(enumerate(sigma2.tolist())))
    best = run(find("blue"), data)
    error = (best.x - found.truth) ** 2
    within(error, theory.blue_variance(sigma2))
    np.testing.assert_allclose(variance.variances("blue", data, best), theory.blue_variance(sigma2))


def test_a_median_varies_as_its_formula_says() -> None:
    n, m = 41, 4_000
    data, truth = answers_of(n, m, np.ones(n), 1, seed=11)
    median = run(find("median"), data)
    within((median.x - truth) ** 2, float(np.mean(median.variance)), errors=6.0)
    assert np.mean(median.variance) == pytest.approx(math.pi / 2 / n, rel=0.03)


def test_the_robust_scale_of_normal_answers_is_their_standard_deviation() -> None:
    data, _ = answers_of(25, 3_000, np.full(25, 4.0), 1, seed=12)
    engine = MemoryEngine(data)
    scale = panel_spreads(engine, sample_questions(engine, 0), np.zeros(1))
    assert float(scale[0]) == pytest.approx(2.0, rel=0.03)


@pytest.mark.parametrize("errors", ["student", "huber"])
def test_robust_scales_of_normal_errors(errors: Any) -> None:
    # Fisher consistency: E[u r^2] = s^2 of Huber; of Student with nu = 4 the fixed point by quadrature.
    n, m = 30, 2_000
    data, _ = answers_of(n, m, np.full(n, 2.25), 1, seed=13)
    found = run(StudentT(errors=errors, nu0=0.0), data, max_iter=60, tol=1e-10)
    z, weight = np.polynomial.hermite_e.hermegauss(80)
    weight = weight / weight.sum()
    s2 = 1.0
    for _ in range(500):
        scaled = z**2 / s2
        u = 5.0 / (4.0 + scaled)
        s2 = float(np.sum(weight * u * z**2))
    expected = 2.25 * (s2 if errors == "student" else 1.0)
    assert found.state["variance"].mean() == pytest.approx(expected, rel=0.05)


def test_the_huber_constant_is_95_percent_efficient() -> None:
    n, m = 40, 6_000
    data, truth = answers_of(n, m, np.ones(n), 1, seed=14)
    huber = run(StudentT(errors="huber", nu0=1e6), data, max_iter=10)
    efficiency = np.mean((run(find("mean"), data).x - truth) ** 2) / np.mean((huber.x - truth) ** 2)
    assert efficiency == pytest.approx(0.95, abs=0.012)


def test_the_two_kernels_differ_by_the_root_of_two() -> None:
    rng = np.random.default_rng(15)
    z = np.sort(rng.normal(size=9))
    x = np.tile(z[:, None], (1, 2))
    authors, gaussian = (
        run(KDEm(kernel=each), Answers.of(x), max_iter=0) for each in ("authors", "gaussian")
    )
    unit = (z - z.mean()) / z.std(ddof=0)
    h = np.median(np.abs(unit - np.median(unit)))

    def mode(width: float) -> float:
        grid = np.linspace(unit.min(), unit.max(), 200_001)
        return float(
            grid[np.argmax(np.sum(np.exp(-(((grid[:, None] - unit) / width) ** 2)), axis=1))]
        )

    spread = float(MemoryEngine(Answers.of(x)).blocks[0].std[0])
    unit = (z - z.mean()) / spread
    h = np.median(np.abs(unit - np.median(unit)))
    assert authors.x[0] == pytest.approx(z.mean() + spread * mode(h), abs=1e-4)
    assert gaussian.x[0] == pytest.approx(z.mean() + spread * mode(h * math.sqrt(2.0)), abs=1e-4)


# -- intervals -------------------------------------------------------------------------------------


def test_quantiles_are_two_sided_and_students() -> None:
    from scipy.stats import norm, t

    def same(values: Floats) -> Floats:
        return np.repeat(values, 3)

    for level in (0.5, 0.8, 0.95, 0.99):
        few = Width(level, np.array([7.0]), np.zeros(1), np.full(1, np.inf))
        np.testing.assert_allclose(
            few.quantile(np.ones(3), same), t.ppf(0.5 + level / 2, 7), rtol=1e-9
        )
        many = Width(level, np.array([np.inf]), np.zeros(1), np.full(1, np.inf))
        np.testing.assert_allclose(
            many.quantile(np.ones(3), same), norm.ppf(0.5 + level / 2), rtol=1e-9
        )
    # Satterthwaite: noise and shift of equal variance with 6 and 2 degrees of freedom have 6.
    both = Width(0.9, np.array([6.0]), np.ones(1), np.array([2.0]))
    np.testing.assert_allclose(
        both.quantile(np.ones(3), same), t.ppf(0.95, 1 / (0.25 / 6 + 0.25 / 2)), rtol=1e-9
    )
    np.testing.assert_allclose(student_quantile(0.975, np.array([1e9])), norm.ppf(0.975))


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
def test_intervals_cover_at_their_level(level: float) -> None:
    inside, after, before = [], 0.0, 0.0
    for seed in range(60):
        answers, truth = trueup.simulate(8, 40, truth_scale=0.5, seed=100 + seed)
        est = trueup.estimate(answers, "mean", "normal", level=level, target="consensus")
        inside.append(np.mean((est.lower <= truth) & (truth <= est.upper)))
        after, before = (
            after + np.sum((est.estimate - truth) ** 2),
            before + np.sum((est.base - truth) ** 2),
        )
    # A little on the safe side by design (intervals use the more careful variance), never below by 2 %.
    assert level - 0.02 < np.mean(inside) < level + 0.06
    v = 1.0 / 8
    assert after / before == pytest.approx(1 - 37 / 40 * v / (v + 0.25), abs=0.04)


def test_intervals_with_gold_cover_at_their_level() -> None:
    inside = []
    for seed in range(50):
        answers, truth = trueup.simulate(6, 60, correlation=0.3, truth_scale=2.0, seed=200 + seed)
        gold = dict(enumerate((truth[:20]).tolist()))
        est = trueup.estimate(answers, "mean", gold=gold, level=0.8)
        inside.append(np.mean((est.lower <= truth)[20:] & (truth <= est.upper)[20:]))
    # On the safe side, as without gold; 0.63 with the quantile of a one-sided interval.
    assert 0.78 < np.mean(inside) < 0.87


def test_standard_errors_of_biases_are_right() -> None:
    squares = []
    for seed in range(30):
        found = trueup.simulate(
            10, 40, bias=1.0, answers_per_question=4, variance="fixed", seed=300 + seed
        )
        biases = estimate_biases(found.answers)
        shared = np.average(found.bias, weights=np.bincount(found.answers.workers, minlength=10))
        squares.append(np.mean((biases.value - found.bias + shared) ** 2 / biases.std_error**2))
    # Without the share that an answer has in its own truth, a quarter here, it would be 1.35.
    assert np.mean(squares) == pytest.approx(1.0, abs=0.2)


# -- conditions and agreement ----------------------------------------------------------------------


def test_alpha_star_and_the_gain_are_those_of_the_simulation() -> None:
    m, v = 9, 2.0
    rng = np.random.default_rng(16)
    truth = rng.normal(0.0, 1.0, m)
    x = truth + rng.normal(0.0, math.sqrt(v), (40_000, m))
    psi = v * rng.chisquare(20, len(x)) / 20
    found = theory.general_condition(x, psi, truth)
    away = x - x.mean(axis=1, keepdims=True)
    ss = np.sum(away**2, axis=1)

    def gain(alpha: float) -> Floats:
        moved = x - alpha * (psi / ss)[:, None] * away
        gained: Floats = np.sum((x - truth) ** 2 - (moved - truth) ** 2, axis=1)
        return gained

    assert found.gain.value == pytest.approx(float(gain(m - 3).mean()), rel=1e-9)
    # The best constant of an independent psi is (m - 3) v E[psi] / E[psi^2] = (m - 3) 20 / 22.
    assert found.alpha_star.value == pytest.approx(
        (m - 3) * 20 / 22, abs=5 * found.alpha_star.std_error
    )
    best = found.alpha_star.value
    assert gain(best).mean() >= max(gain(best - 0.5).mean(), gain(best + 0.5).mean())


def test_the_expected_ratio_of_a_diagnosis_is_that_of_the_simulation() -> None:
    m, ratios, said = 60, [], []
    for seed in range(40):
        answers, truth = trueup.simulate(10, m, truth_scale=0.3, variance="fixed", seed=400 + seed)
        found = trueup.diagnose(answers, panels=0)
        aggregate = run(find("mean"), answers)
        known = np.full(m, 0.1)
        prior = shrinkage.EBE(positive=True).fit(aggregate.x, known)
        moved = prior.posterior(aggregate.x, known).mean
        ratios.append((np.sum((moved - truth) ** 2), np.sum((aggregate.x - truth) ** 2)))
        said.append(found.expected_ratio)
        assert found.expected_ratio == pytest.approx(1 - (m - 3) / m * found.uniformity, rel=1e-12)
    after, before = np.sum(ratios, axis=0)
    assert np.mean(said) == pytest.approx(after / before, abs=0.05)


def test_agreement_is_that_of_plain_loops() -> None:
    rng = np.random.default_rng(17)
    x = rng.normal(size=(1, 12)) + 0.8 * rng.normal(size=(5, 12))
    x[rng.random(x.shape) < 0.3] = np.nan
    x[:2] = np.where(np.isnan(x[:2]), 0.3, x[:2])
    found = agreement(x)
    columns = [column[~np.isnan(column)] for column in x.T]
    k = np.array([len(column) for column in columns], dtype=float)
    every = np.concatenate(columns)
    within_ss = sum(float(np.sum((column - column.mean()) ** 2)) for column in columns)
    between_ss = sum(len(c) * (c.mean() - every.mean()) ** 2 for c in columns)
    m, total = len(columns), len(every)
    k0 = (total - np.sum(k**2) / total) / (m - 1)
    msb, msw = between_ss / (m - 1), within_ss / (total - m)
    assert found.one.value == pytest.approx((msb - msw) / (msb + (k0 - 1) * msw), rel=1e-9)
    observed = (
        sum(
            sum((a - b) ** 2 for a in column for b in column) / (len(column) - 1)
            for column in columns
        )
        / total
    )
    expected = sum((a - b) ** 2 for a in every for b in every) / (total * (total - 1))
    assert found.alpha.value == pytest.approx(1 - observed / expected, rel=1e-9)


# -- draws and passes ------------------------------------------------------------------------------


def splitmix64(state: int) -> int:
    """One step of the generator of Steele, Lea and Flood, in whole numbers."""
    mask = (1 << 64) - 1
    z = (state + 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def test_draws_are_splitmix64_and_the_same_for_ever() -> None:
    ids = np.array([0, 1, 2, 1234567], dtype=np.int64)
    expected = [float(splitmix64(int(each))) for each in ids]
    assert drawn(id_hashes(ids), 0).tolist() == expected
    # The first number of the generator seeded with 0, as published.
    assert splitmix64(0) == 0xE220A8397B1DCDAF


@pytest.mark.parametrize("block_answers", [None, 900])
def test_a_sample_has_as_many_questions_as_were_asked_for(block_answers: int | None) -> None:
    data = trueup.simulate(3, 2_000, seed=18).answers
    engine = MemoryEngine(data, block_answers=block_answers)
    sample = sample_questions(engine, 5, 150)

    def visit(block: Block, kept: Kept) -> Visit:
        return Visit(rows={"inside": sample.inside(block, kept).astype(np.float64)})

    assert engine.sweep(visit, reads=sample.reads).rows["inside"].sum() == 150


def test_the_largest_move_is_that_of_all_blocks() -> None:
    data = trueup.simulate(4, 600, truth_scale=3.0, seed=19).answers
    moves: list[list[float]] = []
    for block_answers in (None, 300):
        engine = MemoryEngine(data, block_answers=block_answers)
        seen: dict[int, float] = {}
        run(find("crh"), engine, tol=0.0, max_iter=6, callback=seen.__setitem__)
        moves.append(list(seen.values()))
    np.testing.assert_allclose(moves[0], moves[1], rtol=1e-9)
