"""Workers who err together: false alarms, power, and sums against plain loops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import trueup
from trueup.findings.correlated import CorrelatedWorkers
from trueup.variance.correlated import find_pairs, sample, shared_questions

if TYPE_CHECKING:
    from trueup.core.arrays import Floats
    from trueup.variance.correlated import CorrelatedPairs


def panel(
    seed: int,
    n: int = 10,
    m: int = 50,
    *,
    pairs: tuple[tuple[int, int], ...] = (),
    rho: float = 0.0,
    copied: float = 0.0,
    hard: float = 0.0,
    step: float = 0.0,
) -> Floats:
    """Answers in which the second of each pair errs with the first, or copies some of its answers."""
    rng = np.random.default_rng(seed)
    error = rng.normal(size=(n, m))
    for a, b in pairs:
        error[b] = rho * error[a] + np.sqrt(1 - rho**2) * error[b]
    x: Floats = rng.normal(size=m) + error * np.exp(rng.normal(0.0, hard, m) if hard else 0.0)
    if step:
        x = np.round(x / step) * step
    for a, b in pairs:
        x[b] = np.where(rng.random(m) < copied, x[a], x[b])
    return x


def together(x: Any) -> CorrelatedPairs:
    return find_pairs(trueup.Answers.of(x))


def in_words(x: Any) -> CorrelatedWorkers:
    answers = trueup.Answers.of(x)
    return CorrelatedWorkers(find_pairs(answers), answers.worker_ids, "pandas")


def found(result: CorrelatedPairs) -> set[tuple[int, int]]:
    return set(zip(result.first.tolist(), result.second.tolist(), strict=True))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n": 5},
        {"n": 20, "m": 30},
        {"hard": 0.7},
        {"step": 1.0},
    ],
    ids=["plain", "few", "many", "hard", "coarse"],
)
def test_independent_workers_are_left_alone(options: dict[str, float]) -> None:
    """At most about 5% of panels have a pair flagged."""
    panels = 60
    alarms = sum(len(together(panel(seed, **options))) > 0 for seed in range(panels))  # type: ignore[arg-type]
    assert alarms <= 0.05 * panels + 2 * np.sqrt(0.05 * 0.95 * panels)


@pytest.mark.parametrize(
    "options",
    [
        {"bias": 1.0},
        {"noise": "student"},
        {"variance": "square"},
        {"spammers": 0.3},
        {"answers_per_question": 4, "workers": 20, "questions": 150},
    ],
    ids=["biased", "tails", "unequal", "spammers", "sparse"],
)
def test_other_oddities_are_not_taken_for_it(options: dict[str, object]) -> None:
    panels = 40
    settings: dict[str, object] = {"workers": 10, "questions": 50, **options}
    alarms = sum(
        len(together(trueup.simulate(seed=seed, **settings).answers)) > 0  # type: ignore[arg-type]
        for seed in range(panels)
    )
    assert alarms <= 0.05 * panels + 2.5 * np.sqrt(0.05 * 0.95 * panels)


@pytest.mark.parametrize(
    ("options", "least"),
    [
        ({"rho": 0.7}, 0.9),
        ({"rho": 0.5, "m": 200}, 0.95),
        ({"rho": 0.9, "n": 5, "m": 100}, 0.9),
        ({"copied": 0.5}, 0.95),
        ({"copied": 0.5, "step": 1.0}, 0.75),
    ],
)
def test_pairs_are_found_and_their_neighbours_are_not(
    options: dict[str, float], least: float
) -> None:
    panels, hits, others = 25, 0, 0
    for seed in range(panels):
        pairs = found(together(panel(seed, pairs=((0, 1),), **options)))  # type: ignore[arg-type]
        hits += (0, 1) in pairs
        others += len(pairs - {(0, 1)}) > 0
    assert hits >= least * panels
    assert others <= 0.05 * panels + 2 * np.sqrt(0.05 * 0.95 * panels)


def test_a_ring_is_found_whole_and_nobody_else() -> None:
    x = panel(3, n=14, m=400, rho=0.9, pairs=((0, 1), (0, 2), (0, 3), (7, 8)))
    result = together(x)
    ring = {(a, b) for a in range(4) for b in range(a + 1, 4)} | {(7, 8)}
    assert found(result) == ring
    # The mean of four who are nearly one, two who are nearly one and eight others: 14^2 / (16 + 4 + 8) = 7.
    assert 7.0 < result.effective < 7.8
    assert set(result.partner[[0, 7, 8]].tolist()) <= {0, 1, 2, 3, 7, 8}
    assert result.partner[7] == 8
    assert result.partner[12] == -1


def test_the_correlation_is_that_of_the_errors() -> None:
    """The part that both have in the truth is taken off: residuals of five correlate -0.25 of themselves."""
    for n in (5, 8, 20):
        values = [
            together(panel(seed, n=n, m=2000, rho=0.6, pairs=((0, 1),))).correlation[0]
            for seed in range(3)
        ]
        assert np.mean(values) == pytest.approx(0.6, abs=0.08)


def test_sums_over_pairs_are_those_of_a_plain_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    x = panel(1, n=7, m=40)
    x[rng.random(x.shape) < 0.4] = np.nan
    x = x[:, ~np.isnan(x).all(axis=0)]
    data = trueup.Answers.of(x)
    sums = {}
    for dense in (1e-9, 1e9):
        monkeypatch.setattr(shared_questions, "DENSE", dense)
        flat = shared_questions.Flat.of(data, 0)
        a, b = flat.value[flat.mine], flat.value[flat.mine] ** 2
        sums[dense] = flat.pair_sums((None, None), (a, a), (a, b), (b, a), (a, None), (None, a))
    here = ~np.isnan(x)
    y = np.where(here, x - data.centre, 0.0)
    for number, (i, k) in enumerate(zip(flat.one.tolist(), flat.two.tolist(), strict=True)):
        both = here[i] & here[k]
        u, v = y[i, both], y[k, both]
        expected = [both.sum(), u @ v, u @ v**2, u**2 @ v, u.sum(), v.sum()]
        for result in sums.values():
            assert [each[number] for each in result] == pytest.approx(expected)
    assert flat.shared == pytest.approx(sums[1e9][0])


def test_identical_answers_are_counted() -> None:
    x = panel(1, n=8, m=60, step=1.0)
    x[6] = x[1]
    result = together(x)
    assert (1, 6) in found(result)
    assert result.identical[0] == 1.0
    assert result.copies[0]
    assert 0.1 < result.expected[0] < 0.5
    assert result.copier.tolist() == [i in (1, 6) for i in range(8)]
    assert "1 and 6: " in in_words(x).describe(0)
    assert "100% of answers identical" in str(in_words(x))


def test_order_of_rows_and_units_change_nothing() -> None:
    x = panel(5, rho=0.8, pairs=((2, 5),), step=0.1)
    worker, question = np.nonzero(~np.isnan(x))
    order = np.random.default_rng(1).permutation(len(worker))
    columns = {"worker": worker, "question": question, "answer": x[worker, question]}
    mixed = trueup.Answers.of({name: value[order] for name, value in columns.items()})
    rows, ids = together(mixed), mixed.worker_ids.tolist()
    plain, moved = together(x), together(30.0 - 4.0 * x)
    assert [{ids[rows.first[0]], ids[rows.second[0]]}] == [{2, 5}]
    for other in (rows, moved):
        assert other.z == pytest.approx(plain.z, rel=1e-6)
        assert other.effective == pytest.approx(plain.effective, rel=1e-9)


def test_the_most_active_workers_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_questions, "MOST_WORKERS", 6)
    monkeypatch.setattr(shared_questions, "MOST_WORK", 225.0)
    x = panel(1, n=12, m=200, rho=0.95, pairs=((0, 1),))
    x[6:, ::2] = np.nan
    result = together(x)
    assert result.n_workers == 6
    assert result.n_questions < 200
    assert found(result) == {(0, 1)}
    assert "Only the 6 workers with most answers, of 12, were looked at." in str(in_words(x))
    assert "A sample of " in str(in_words(x))


def test_of_very_many_answers_a_sample_of_questions_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = panel(1, n=12, m=400, rho=0.95, pairs=((3, 10),))
    x[0, 1:] = np.nan
    whole = together(x)
    monkeypatch.setattr(sample, "MANY", 4000)
    monkeypatch.setattr(sample, "ENOUGH", 2000)
    result = together(x)
    assert found(result) == found(whole) == {(3, 10)}
    assert whole.n_questions == 400
    assert result.n_questions == 400 * 2000 // 4401
    assert result.partner[10] == 3
    assert len(result.partner) == 12
    assert result.notes[-1] == "Based on a sample of 181 of 400 questions."
    assert "a sample of" not in " ".join(whole.notes)


def test_the_noise_that_an_estimate_has_is_the_one_that_would_be_found() -> None:
    x = panel(3, n=12, m=120, rho=0.9, pairs=((3, 10),))
    several: tuple[dict[str, Any], ...] = (
        {"method": "crh"},
        {"method": "native", "shrink": "normal"},
        {"bias": True},
    )
    for options in several:
        est = trueup.estimate(x, **options)
        correlated = est.findings.correlated
        assert correlated is not None
        assert correlated.found.z == pytest.approx(together(x).z, rel=1e-12)


@pytest.mark.parametrize(
    "x",
    [
        [[1.0, 2.0, 3.0]] * 3,
        [[5.0]],
        np.ones((5, 20)),
        np.arange(20.0) + np.arange(5.0)[:, None],
        np.tile(np.arange(20.0), (5, 1)),
        np.concatenate([np.tile(np.arange(20.0), (4, 1)), np.full((2, 20), 3.0)]),
        1e140 * panel(1),
        1e-140 * panel(1),
        1e9 + panel(1),
    ],
    ids=["short", "one", "constant", "shifted", "agree", "two levels", "huge", "tiny", "far"],
)
def test_any_answers_give_finite_words(x: object) -> None:
    result = together(x)
    assert np.isfinite(result.effective)
    assert np.isfinite(result.p_value).all()
    assert "cannot be detected" in str(in_words(x))


def test_what_three_workers_cannot_show_is_said() -> None:
    result = in_words(panel(1, n=3))
    assert "cannot be detected: that takes four workers" in str(result)
    assert "identical answers more often than ties explain" in result.summary
    copied = panel(1, n=3)
    copied[1] = copied[0]
    assert found(together(copied)) == {(0, 1)}
    assert np.isnan(together(copied).correlation).all()


def test_panels_have_none() -> None:
    est = trueup.estimate(trueup.simulate(panels=2).answers, method="mean")
    assert est.findings.correlated is None
    assert "these are panels" in est.findings.missing[0]


def test_an_estimate_can_be_given() -> None:
    x = panel(4, rho=0.9, pairs=((0, 1),))
    est = trueup.estimate(x, method="mean")
    correlated = est.findings.correlated
    assert correlated is not None
    assert found(correlated.found) == found(together(x))
    assert len(correlated.pairs["worker"]) == 1
