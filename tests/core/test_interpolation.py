"""Polynomials in place of functions that are asked for very often."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2, norm, t

from trueup.core.interpolation import Interpolant
from trueup.shrinkage.quadrature import INTERPOLATED as PANELS
from trueup.shrinkage.quadrature import LEVELS, levels
from trueup.variance.intervals import INTERPOLATED, MANY, student_quantile


def test_a_polynomial_of_its_degree_is_met_exactly() -> None:
    x = np.linspace(-3.0, 5.0, 41)

    def both(x: np.ndarray) -> np.ndarray:
        return np.column_stack([2.0 - x + 0.5 * x**3, x**2])

    found = Interpolant.of(both, -3.0, 5.0, 3)(x)
    assert found == pytest.approx(both(x), abs=1e-12)


@pytest.mark.parametrize("p", [0.75, 0.975, 0.9995])
def test_quantiles_of_student_whether_few_or_many(p: float) -> None:
    freedom = np.concatenate([np.geomspace(1.0, 2 * MANY, 2 * INTERPOLATED), [0.5, np.inf]])
    exact = np.where(freedom < MANY, t.ppf(p, np.maximum(freedom, 1.0)), norm.ppf(p))
    assert student_quantile(p, freedom) == pytest.approx(exact, rel=1e-11)
    assert student_quantile(p, freedom[:9]) == pytest.approx(exact[:9], rel=1e-11)


def test_the_quantile_in_the_middle_is_zero() -> None:
    assert not student_quantile(0.5, np.full(2 * INTERPOLATED, 3.0)).any()


@pytest.mark.parametrize("smallest", [1.0, 0.3])
def test_values_of_an_unknown_level_whether_of_few_panels_or_many(smallest: float) -> None:
    nu = np.append(np.geomspace(smallest, 299.0, 2 * PANELS), 301.0)
    middle = (np.arange(LEVELS) + 0.5) / LEVELS
    # c is nu / chi2 with nu + 4 degrees of freedom: its quantiles, the smallest chi2 first.
    exact = nu[:, None] / chi2.ppf(middle, nu[:, None] + 4.0)
    exact[-1] = 1.0
    assert levels(nu) == pytest.approx(exact, rel=1e-11)
    assert levels(nu[:3]) == pytest.approx(exact[:3], rel=1e-11)
