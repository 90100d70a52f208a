"""Agreement: published examples, slow plain loops, coverage of the intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import trueup
from trueup import Answers, TrueupError
from trueup.findings.agreement import agreement

if TYPE_CHECKING:
    from trueup.core.arrays import Floats

# Shrout and Fleiss 1979, table 2: four judges, six targets.
SHROUT_FLEISS = np.array(
    [[9, 6, 8, 7, 10, 6], [2, 1, 4, 1, 5, 2], [5, 3, 6, 2, 6, 4], [8, 2, 8, 6, 9, 7]], dtype=float
)
_ = np.nan
# Krippendorff 2011, section C: four observers, twelve units.
KRIPPENDORFF = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
        [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
    ]
)


@pytest.mark.parametrize(
    ("name", "value", "lower", "upper"),
    [
        ("ICC(1)", 0.17, -0.13, 0.72),
        ("ICC(2,1)", 0.29, 0.02, 0.76),
        ("ICC(3,1)", 0.71, 0.34, 0.95),
        ("ICC(1,k)", 0.44, -0.88, 0.91),
        ("ICC(2,k)", 0.62, 0.07, 0.93),
        ("ICC(3,k)", 0.91, 0.68, 0.99),
    ],
)
def test_the_example_of_shrout_and_fleiss(
    name: str, value: float, lower: float, upper: float
) -> None:
    found = agreement(SHROUT_FLEISS)[name]
    assert (found.value, found.lower, found.upper) == pytest.approx(
        (value, lower, upper), abs=0.0051
    )


def test_the_example_of_krippendorff() -> None:
    assert agreement(KRIPPENDORFF).alpha.value == pytest.approx(0.849, abs=0.0005)


def plain(x: Floats) -> tuple[float, float, float]:
    """ICC(1), ICC(1,k) and alpha by loops over answers and pairs of answers."""
    columns = [[v for v in column if not np.isnan(v)] for column in x.T]
    columns = [column for column in columns if column]
    everything = [v for column in columns for v in column]
    total, m = len(everything), len(columns)
    grand = sum(everything) / total
    between = sum(len(c) * (sum(c) / len(c) - grand) ** 2 for c in columns) / (m - 1)
    within = sum((v - sum(c) / len(c)) ** 2 for c in columns for v in c) / (total - m)
    k0 = (total - sum(len(c) ** 2 for c in columns) / total) / (m - 1)
    paired = [c for c in columns if len(c) > 1]
    values = [v for c in paired for v in c]
    n = len(values)
    observed = sum(sum((a - b) ** 2 for a in c for b in c) / (len(c) - 1) for c in paired) / n
    expected = sum((a - b) ** 2 for a in values for b in values) / (n * (n - 1))
    one = (between - within) / (between + (k0 - 1) * within)
    return one, (between - within) / between, 1 - observed / expected


@pytest.mark.parametrize("seed", range(5))
def test_sparse_answers_give_what_plain_loops_give(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=30) + rng.normal(size=(9, 30))
    x[rng.random(x.shape) < 0.6] = np.nan
    x = x[:, ~np.isnan(x).all(axis=0)]
    found = agreement(x)
    assert (found.one.value, found.mean.value, found.alpha.value) == pytest.approx(
        plain(x), rel=1e-9
    )
    assert not found.two_way


def test_units_order_and_names_change_nothing() -> None:
    x = trueup.simulate(workers=6, questions=30, density=0.6, seed=2).answers.to_matrix()
    worker, question = np.nonzero(~np.isnan(x))
    columns = {"worker": worker, "question": question, "answer": x[worker, question]}
    order = np.random.default_rng(1).permutation(len(worker))
    shuffled = {name: value[order] for name, value in columns.items()}
    first = agreement(Answers.of(columns))
    moved = agreement(7.0 + 1e3 * x)
    for other in (agreement(Answers.of(shuffled)), moved):
        for a, b in zip(
            (first.one, first.mean, first.alpha), (other.one, other.mean, other.alpha), strict=True
        ):
            assert (a.value, a.lower, a.upper) == pytest.approx(
                (b.value, b.lower, b.upper), rel=1e-9
            )


@pytest.mark.parametrize(("truth", "expected"), [(0.0, 0.0), (2.0, 0.8)])
def test_intervals_cover(truth: float, expected: float) -> None:
    """Wald's interval is exact for unequal numbers of answers; the bootstrap comes near with 60 questions."""
    one, alpha = [], []
    for seed in range(80):
        answers = trueup.simulate(
            workers=6, questions=60, truth_scale=truth, variance="fixed", density=0.5, seed=seed
        ).answers
        found = agreement(answers)
        one.append(found.one.lower <= expected <= found.one.upper)
        alpha.append(found.alpha.lower <= expected <= found.alpha.upper)
    assert 0.88 <= np.mean(one) <= 1.0
    assert 0.84 <= np.mean(alpha) <= 1.0


def test_many_questions_are_resampled_in_groups() -> None:
    answers = trueup.simulate(workers=4, questions=5000, variance="fixed", seed=1).answers
    found = agreement(answers).alpha
    assert found.lower < 0.5 < found.upper
    assert 0.02 < found.upper - found.lower < 0.06


def test_differences_of_level_are_pointed_out() -> None:
    assert "bias=True" in str(agreement(SHROUT_FLEISS))
    assert "bias=True" not in str(agreement(trueup.simulate(seed=1).answers))


def test_words() -> None:
    found = agreement(SHROUT_FLEISS)
    assert found.summary == (
        "The correlation of two answers to the same question is 0.17 (poor), that of two means of 4 answers 0.44 "
        "(poor)."
    )
    assert "ICC(3,k) = 0.91 (95% interval 0.68 to 0.99): excellent" in str(found)
    assert found["ICC(3,1)"].word == "moderate"
    with pytest.raises(KeyError):
        found["ICC(7)"]


def test_perfect_agreement_and_none() -> None:
    perfect = agreement([[1.0, 2.0, 3.0]] * 3)
    assert (perfect.one.value, perfect.alpha.value, perfect.two_way[0].value) == (1.0, 1.0, 1.0)
    shifted = agreement([[1.0, 2.0, 3.0], [2.0, 3.0, 4.0], [5.0, 6.0, 7.0]])
    assert shifted["ICC(3,1)"].value == 1.0
    assert shifted["ICC(2,1)"].value < 0.3
    opposite = agreement([[1.0, 2.0], [2.0, 1.0]])
    assert opposite.one.value == pytest.approx(-1.0)
    assert opposite.mean.value == -1.0
    assert all(np.isfinite([each.value for each in opposite.two_way]))


def test_answers_without_agreement_are_refused() -> None:
    with pytest.raises(TrueupError, match="all the same"):
        agreement([[1.0, 1.0], [1.0, 1.0]])
    with pytest.raises(TrueupError, match="two questions"):
        agreement([[1.0, 2.0]])
    with pytest.raises(TrueupError, match="got the same one"):
        agreement([[1.0, 1.0, 3.0], [1.0, 1.0, np.nan]])
    with pytest.raises(TrueupError, match="panels"):
        agreement(trueup.simulate(panels=2).answers)


def test_huge_and_tiny_answers_are_finite() -> None:
    x = trueup.simulate(workers=5, questions=20, seed=1).answers.to_matrix()
    usual = agreement(x)
    for unit in (1e140, 1e-140):
        assert agreement(x * unit).one.value == pytest.approx(usual.one.value, rel=1e-9)
