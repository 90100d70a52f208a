"""A worker who decides nearly alone: its noise is what the others say about it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

import trueup
from trueup.algorithms import find
from trueup.algorithms.driver import run
from trueup.answers.answers import Answers
from trueup.engines.memory import MemoryEngine
from trueup.variance import moderated, worker_noise
from trueup.variance.leading_worker import EXACT, RATIOS, with_leading_worker

if TYPE_CHECKING:
    from trueup.core.arrays import Floats

pytestmark = pytest.mark.filterwarnings("ignore::trueup.errors.TrueupWarning")


def beside_others(rng: np.random.Generator, own: float, workers: int, questions: int) -> Floats:
    """Make answers without truths: errors of one worker with its own deviation, and of others with deviation 1."""
    deviation = np.array([own, *[1.0] * (workers - 1)])
    errors: Floats = rng.normal(size=(workers, questions)) * deviation[:, None]
    return errors


def plain_variance(x: Floats, s: Floats, precision: Floats) -> float:
    """Return the posterior mean of the variance of the first worker in plain loops."""
    others = range(1, len(s))
    counts = [sum(not math.isnan(value) for value in x[k]) for k in others]
    unit = sum(counts) / sum(n / s[k] for n, k in zip(counts, others, strict=True))
    distances, rest, free = [], 0.0, 0
    for j in range(x.shape[1]):
        weight = {k: unit / s[k] * precision[k, j] for k in others if not math.isnan(x[k, j])}
        if math.isnan(x[0, j]) or len(weight) < 2:
            continue
        total = sum(weight.values())
        mean = sum(w * x[k, j] for k, w in weight.items()) / total
        rest += sum(w * (x[k, j] - mean) ** 2 for k, w in weight.items())
        free += len(weight)
        distances.append((x[0, j] - mean, 1.0 / precision[0, j], 1.0 / total))
    terms = []
    for number, rho in enumerate(RATIOS.tolist()):
        prior = EXACT if number == 0 else (1.0 - EXACT) / (len(RATIOS) - 1)
        squares = sum(d * d / (rho * own + c) for d, own, c in distances) + rest
        log = math.log(prior) - 0.5 * sum(math.log(rho * own + c) for _, own, c in distances)
        terms.append((log - 0.5 * free * math.log(squares), rho * squares / free))
    most = max(log for log, _ in terms)
    weights = [math.exp(log - most) for log, _ in terms]
    return float(np.average([variance for _, variance in terms], weights=weights))


@pytest.mark.parametrize("known", [False, True], ids=["alike answers", "known variances"])
@pytest.mark.parametrize("own", [0.0, 0.2, 0.6])
def test_the_variance_is_that_of_the_plain_loop(own: float, known: bool) -> None:
    rng = np.random.default_rng(1)
    given = rng.uniform(0.5, 2.0, (5, 30)) if known else np.ones((5, 30))
    x = np.sqrt(given) * beside_others(rng, own, 5, 30) + rng.normal(size=30)
    x[1:][rng.random((4, 30)) < 0.3] = np.nan
    x[0, :2] = np.nan
    noise = worker_noise(Answers.from_matrix(x, answer_variance=given if known else None))
    facts = noise.screening.facts
    assert facts.bias is not None
    precision = facts.answer_variance / given if known else given
    judged = plain_variance(x - facts.bias[:, None], noise.variance, precision)
    assert own > 0 or judged < 0.5 * noise.variance[0]
    expected = min(judged, noise.variance[0])
    found = with_leading_worker(noise, np.array([20.0, 2.0, 2.0, 2.0, 2.0]))
    assert found[0] == pytest.approx(expected, rel=1e-9)
    # The pooled variance stays as it is, and so do the others relative to each other.
    freedom = noise.screening.freedom
    assert freedom @ found == pytest.approx(freedom @ noise.variance)
    assert np.ptp(found[1:] / noise.variance[1:]) < 1e-12


def test_nothing_changes_where_nobody_leads_or_others_say_little() -> None:
    rng = np.random.default_rng(2)
    noise = worker_noise(Answers.from_matrix(beside_others(rng, 0.0, 5, 30)))
    np.testing.assert_array_equal(with_leading_worker(noise, np.ones(5)), noise.variance)
    leading = np.array([9.0, 1.0, 1.0, 1.0, 1.0])
    for workers, questions in ((2, 30), (5, 4)):
        few = worker_noise(Answers.from_matrix(beside_others(rng, 0.0, workers, questions)))
        found = with_leading_worker(few, leading[:workers])
        np.testing.assert_allclose(found, few.variance, rtol=1e-12)


def test_panels_scales_and_blocks_change_nothing() -> None:
    rng = np.random.default_rng(3)
    panels = [beside_others(rng, own, 6, 40) for own in (0.0, 1.0)]
    apart = [moderated(None, run(find("student_t"), Answers.from_matrix(x))).v for x in panels]
    together = Answers.from_matrix(np.stack(panels))
    found = moderated(None, run(find("student_t"), together)).v
    np.testing.assert_allclose(found, np.concatenate(apart), rtol=1e-9)
    engine = MemoryEngine(together, block_answers=50)
    in_blocks = moderated(None, run(find("student_t"), engine)).v
    np.testing.assert_allclose(in_blocks, found, rtol=1e-9)
    large = moderated(None, run(find("student_t"), Answers.from_matrix(1e6 * panels[0] + 1e9))).v
    np.testing.assert_allclose(large, 1e12 * apart[0], rtol=1e-6)


@pytest.mark.parametrize(("workers", "questions"), [(5, 30), (5, 100), (10, 40)])
def test_student_t_beside_an_exact_worker_is_left_alone(workers: int, questions: int) -> None:
    """The second step raised its squared error by 80%, 1000% and 10%."""
    rng = np.random.default_rng(5)
    truth = rng.normal(size=(60, questions))
    errors = np.stack([beside_others(rng, 0.0, workers, questions) for _ in truth])
    answers = Answers.from_matrix(truth[:, None] + errors)
    est = trueup.estimate(answers, "student_t", target="consensus", transform="none")
    before, after = (np.mean((x - truth.ravel()) ** 2) for x in (est.base, est.estimate))
    assert after < 1.2 * before


def test_a_worker_who_leads_by_luck_is_found_out() -> None:
    """Of three alike workers student_t nearly follows one, and the second step mends that."""
    rng = np.random.default_rng(6)
    truth = rng.normal(size=(60, 100))
    answers = Answers.from_matrix(truth[:, None] + rng.normal(size=(60, 3, 100)))
    est = trueup.estimate(answers, "student_t", target="consensus", transform="none")
    before, after = (np.mean((x - truth.ravel()) ** 2) for x in (est.base, est.estimate))
    assert before > 0.5
    assert after < 0.65 * before
