"""What the theory refuses, and that everything else gives finite numbers."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from trueup import theory
from trueup.errors import TrueupError

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = np.random.default_rng(41).normal(size=(20, 6))
NUMBER = (
    st.floats(0.0, 10.0) | st.floats(0.0, 1e30) | st.floats(0.0, 1e-20) | st.floats()  # any at all
)
VECTOR = hnp.arrays(
    np.float64, st.integers(0, 8), elements=st.floats(1e-30, 1e30) | st.floats(0.1, 10.0)
) | hnp.arrays(np.float64, st.integers(0, 8), elements=NUMBER)
MATRIX = hnp.arrays(
    np.float64, (4, 5), elements=st.floats(-1e30, 1e30) | st.floats(-1, 1)
) | hnp.arrays(np.float64, st.tuples(st.integers(0, 5), st.integers(0, 8)), elements=NUMBER)
COUNT = st.integers(-5, 50)

# Every function with numbers in and out, and what it takes.
CALLS: dict[str, tuple[Callable[..., Any], tuple[st.SearchStrategy[Any], ...]]] = {
    "bayes_estimate": (theory.bayes_estimate, (VECTOR, NUMBER, NUMBER, NUMBER)),
    "bayes_risk": (theory.bayes_risk, (COUNT, NUMBER, NUMBER)),
    "biased_variance_risk": (theory.biased_variance_risk, (VECTOR, COUNT, NUMBER, NUMBER)),
    "blue_risk": (theory.blue_risk, (COUNT, VECTOR)),
    "blue_variance": (theory.blue_variance, (VECTOR,)),
    "blue_weights": (theory.blue_weights, (VECTOR,)),
    "casella_bound": (theory.casella_bound, (VECTOR, NUMBER)),
    "condition_from_bootstrap": (theory.condition_from_bootstrap, (MATRIX, NUMBER)),
    "constant_psi": (theory.constant_psi, (NUMBER, NUMBER)),
    "ebblue_risk": (theory.ebblue_risk, (COUNT, VECTOR, NUMBER)),
    "gain_by_psi_alone": (theory.gain_by_psi_alone, (VECTOR, NUMBER)),
    "gain_estimate": (theory.gain_estimate, (VECTOR, NUMBER, NUMBER, NUMBER)),
    "general_condition": (theory.general_condition, (MATRIX, NUMBER, st.none() | VECTOR)),
    "guessed_variances": (theory.guessed_variances, (VECTOR, VECTOR)),
    "independent_psi": (theory.independent_psi, (VECTOR, NUMBER)),
    "inverse_ss": (theory.inverse_ss, (VECTOR, NUMBER)),
    "inverse_ss_bounds": (theory.inverse_ss_bounds, (VECTOR, NUMBER)),
    "inverse_ss_under_prior": (theory.inverse_ss_under_prior, (COUNT, NUMBER, NUMBER)),
    "known_variance_risk": (theory.known_variance_risk, (MATRIX, NUMBER)),
    "largest_scale": (theory.largest_scale, (MATRIX, NUMBER)),
    "linear_variance": (theory.linear_variance, (VECTOR, VECTOR)),
    "marginal_identity": (theory.marginal_identity, (COUNT, NUMBER, NUMBER)),
    "mean_adjusted_psi": (theory.mean_adjusted_psi, (MATRIX, NUMBER, NUMBER)),
    "mostly_within_epsilon": (theory.mostly_within_epsilon, (NUMBER, NUMBER, NUMBER, NUMBER)),
    "normal_risk": (theory.normal_risk, (MATRIX, NUMBER, NUMBER, NUMBER, NUMBER)),
    "numerical_slope": (theory.numerical_slope, (st.just(theory.SpreadPsi()), MATRIX)),
    "risk_given_truth": (theory.risk_given_truth, (VECTOR, NUMBER, NUMBER, NUMBER)),
    "risk_under_prior": (theory.risk_under_prior, (COUNT, NUMBER, NUMBER, NUMBER, NUMBER)),
    "shrinkage_limit": (theory.shrinkage_limit, (NUMBER, NUMBER, NUMBER)),
    "shrinkage_moments": (theory.shrinkage_moments, (COUNT, NUMBER, NUMBER)),
    "slope": (theory.slope, (st.just(theory.SpreadPsi()), MATRIX)),
    "spread_psi": (theory.spread_psi, (NUMBER, COUNT, NUMBER, NUMBER)),
    "unbiased_risk": (theory.unbiased_risk, (MATRIX, NUMBER, NUMBER, NUMBER, NUMBER)),
    "within_epsilon": (theory.within_epsilon, (NUMBER, NUMBER)),
    "worst_psi": (theory.worst_psi, (NUMBER, NUMBER, NUMBER, NUMBER)),
}


def all_finite(result: Any) -> bool:
    if dataclasses.is_dataclass(result):
        return all(all_finite(getattr(result, f.name)) for f in dataclasses.fields(result))
    if isinstance(result, tuple):
        return all(map(all_finite, result))
    return result is None or isinstance(result, str) or bool(np.isfinite(result).all())


def test_every_public_function_is_tried() -> None:
    assert set(CALLS) == {name for name in theory.__all__ if name.islower()}


@pytest.mark.parametrize("name", CALLS)
@given(data=st.data())
def test_any_numbers_give_a_finite_result_or_an_error(name: str, data: st.DataObject) -> None:
    function, strategies = CALLS[name]
    arguments = [data.draw(strategy) for strategy in strategies]
    try:
        result = function(*arguments)
    except TrueupError as error:
        text = str(error)
        assert "\n" not in text
        assert text.partition(":")[0].isidentifier()
    else:
        assert all_finite(result)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.risk_under_prior(3, 1.0, 1.0), r"m: found 3\. This needs at least 4"),
        (lambda: theory.risk_under_prior(4.5, 1.0, 1.0), r"m: 4\.5 is not a whole number"),  # type: ignore[arg-type]
        (lambda: theory.shrinkage_moments(5, 1.0, 1.0), r"m: found 5\. This needs at least 6"),
        (lambda: theory.risk_given_truth([1.0, 2.0, 3.0], 1.0), "truth: found 3"),
        (
            lambda: theory.ebblue_risk(5, [1e-30, 1e-30], 1.0),
            "variances: the variance of BLUE is 5e-31",
        ),
        (lambda: theory.gain_estimate([1.0, 2.0, 3.0], 1.0, 1.0), "x: found 3"),
        (lambda: theory.gain_estimate([0.1] * 5, 1.0, 1.0), "x: SS = 0 in 1 of 1 samples"),
        (lambda: theory.general_condition(ROWS[:, :3], 1.0), "samples: found 3"),
        (lambda: theory.general_condition(ROWS[0], 1.0), r"samples: found shape \(6,\)"),
        (lambda: theory.general_condition(ROWS[:1], 1.0), "samples: found 1 rows"),
        (lambda: theory.general_condition(ROWS, [1.0, 2.0]), "psi: found 2 numbers for 20"),
        (lambda: theory.general_condition(ROWS, -1.0), r"psi: found -1\.0"),
        (lambda: theory.general_condition(ROWS, 0.0), "psi: 0 in all samples"),
        (lambda: theory.general_condition(ROWS, 1.0, [1.0]), "truth: found 1 values for 6"),
        (lambda: theory.general_condition(ROWS * np.nan, 1.0), "samples: found nan"),
        (lambda: theory.general_condition(ROWS, 1.0).risk_difference(-1.0), "alpha: found -1"),
        (lambda: theory.normal_risk(ROWS, 1.0, 0.0), r"variance: found 0\.0"),
        (lambda: theory.slope(lambda x: x, ROWS), r"psi: found shape \(20, 6\)"),
        (lambda: theory.slope(lambda x: x[:3, 0], ROWS), "psi: returned 3 numbers for 20"),
        (lambda: theory.linear_variance([0.5, 0.6], [1.0, 1.0]), r"weights: their sum is 1\.1"),
        (lambda: theory.linear_variance([1.0], [1.0, 1.0]), "weights: found 1 for 2"),
        (lambda: theory.blue_variance([]), "variances: empty"),
        (lambda: theory.blue_variance(["many"]), "variances: .* does not consist of numbers"),
        (lambda: theory.guessed_variances([1.0], [1.0, 2.0]), "guesses: found 1 for 2"),
        (lambda: theory.mostly_within_epsilon(1.0, 1.5, 9.0, 1.0), r"delta: found 1\.5"),
        (lambda: theory.mostly_within_epsilon(1.0, 0.5, 9.0, 1.0, "wrong"), 'version: "wrong"'),  # type: ignore[arg-type]
        (lambda: theory.spread_psi(1.0, 9, 1.0, 1.0, "wrong"), 'version: "wrong"'),  # type: ignore[arg-type]
        (lambda: theory.mostly_within_epsilon(1.0, 0.5, 9.0, 1.0, np.ones(2)), "version: array"),  # type: ignore[arg-type]
        (lambda: theory.spread_psi(1.0, 9, 1.0, 1.0, np.ones(2)), "version: array"),  # type: ignore[arg-type]
        (lambda: theory.independent_psi([1.0, 2.0], 1.0, [1.0]), "probabilities: found 1 for 2"),
    ],
)
def test_what_is_wrong_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(TrueupError, match=f"^{message}"):
        call()


def test_rounding_errors_are_no_spread() -> None:
    equal_but_for_rounding = 1e6 * np.array([0.1 + 0.2, 0.3, 0.3, 0.3, 0.3])
    assert np.ptp(equal_but_for_rounding) > 0
    with pytest.raises(TrueupError, match=r"^x: SS = 0"):
        theory.gain_estimate(equal_but_for_rounding, 1.0, 1.0)


def test_a_sample_without_spread_is_counted() -> None:
    rows = ROWS.copy()
    rows[[3, 7]] = 0.3
    with pytest.raises(TrueupError, match=r"^samples: SS = 0 in 2 of 20 samples"):
        theory.general_condition(rows, 1.0)
