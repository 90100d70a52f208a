"""Priors with a mean for each group, and around a regression, against integrals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from plain_quadrature import QUADRATURE, PlainPosterior, agree, data, panel_data, plain
from trueup import TrueupError
from trueup.shrinkage import Normal, Posterior, regression
from trueup.shrinkage.groups import GroupMeans, GroupPriors
from trueup.shrinkage.regression import Regression

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


def common(x: Floats, v: Floats) -> Posterior:
    return Normal().fit(x, v).posterior(x, v)


def test_own_priors_are_normal_priors_of_the_groups() -> None:
    rng = np.random.default_rng(28)
    x, v = data(28, 40)
    groups = rng.permutation(np.repeat([7, 3, 5, -1], [20, 9, 7, 4]))
    prior = GroupPriors.fit(
        panel_data(x, v, np.array([0, 40]), groups=groups, nu=np.array([9.0]), v_interval=2 * v)
    )
    assert prior is not None
    rest = common(x, v)
    found = prior.posterior(x, v, groups=groups, common=rest, v_interval=2 * v)
    for label in (7, 3):
        here = groups == label
        own = Normal(1.0).fit(x[here], v[here], nu=9.0, v_interval=2 * v[here])
        alone = own.posterior(x[here], v[here], v_interval=2 * v[here])
        np.testing.assert_allclose(found.mean[here], alone.mean, rtol=1e-12)
        np.testing.assert_allclose(found.variance[here], alone.variance, rtol=1e-12)
    here = (groups == 5) | (groups == -1)
    np.testing.assert_array_equal(found.mean[here], rest.mean[here])
    new = prior.posterior(x, v, groups=np.full(40, 4), common=rest)
    np.testing.assert_array_equal(new.mean, rest.mean)
    assert GroupPriors.fit(panel_data(x, v, np.array([0, 40]), groups=np.arange(40))) is None


def test_group_means_are_the_integral() -> None:
    rng = np.random.default_rng(29)
    groups = np.array([4, 4, 4, 9, 9, 2, 2, 2, 2, 6])
    v = rng.uniform(0.1, 1.0, 10)
    x = rng.normal(0, 5, 10)[groups] + np.sqrt(v + 0.5) * rng.normal(size=10)
    z = (groups[:, None] == np.unique(groups)).astype(float)
    panels = np.array([0, 3, 13])
    first = np.array([0.0, 1.0, 2.0])
    all_x, all_v = np.append(first, x), np.append(np.ones(3), v)
    all_groups = np.append([4, 4, 4], groups)
    prior = GroupMeans.fit(panel_data(all_x, all_v, panels, groups=all_groups))
    assert prior is not None
    assert prior.grid.units.usable.nonzero()[0].tolist() == [1]  # the other has one group only
    rest = Normal().fit(all_x, all_v, panels=panels).posterior(all_x, all_v, panels=panels)
    found = prior.posterior(all_x, all_v, panels=panels, groups=all_groups, common=rest)
    np.testing.assert_array_equal(found.mean[:3], rest.mean[:3])
    own = Posterior(found.mean[3:], found.variance[3:], found.shrinkage[3:])
    agree(own, plain(x, v, z), v)
    assert found.mean[-1] == pytest.approx(x[-1], abs=1e-12)  # alone in its group


def test_group_means_with_estimated_variances() -> None:
    x, v = data(30, 12)
    groups = np.repeat([0, 1, 2], 4)
    z = (groups[:, None] == np.arange(3)).astype(float)
    prior = GroupMeans.fit(
        panel_data(x, v, np.array([0, 12]), groups=groups, nu=np.array([6.0]), v_interval=1.5 * v)
    )
    assert prior is not None
    found = prior.posterior(x, v, groups=groups, common=common(x, v), v_interval=1.5 * v)
    estimate, careful = plain(x, v, z, nu=6.0), plain(x, 1.5 * v, z)
    known = careful.variance + (estimate.mean - careful.mean) ** 2
    agree(found, PlainPosterior(estimate.mean, known, estimate.shrinkage), v, 5 * QUADRATURE)
    assert GroupMeans.fit(panel_data(x, v, np.array([0, 12]), groups=np.arange(12))) is None


def test_regression_is_the_integral() -> None:
    rng = np.random.default_rng(31)
    z = rng.normal(3.0, 2.0, (15, 2))
    v = rng.uniform(0.1, 1.0, 15)
    x = 1.0 + z @ [2.0, -1.0] + np.sqrt(v + 0.3) * rng.normal(size=15)
    prior = Regression.fit(panel_data(x, v, np.array([0, 15]), covariates=z, nu=np.array([8.0])))
    assert prior is not None
    found = prior.posterior(x, v, covariates=z)
    full = np.column_stack([np.ones(15), z])
    estimate, careful = plain(x, v, full, nu=8.0), plain(x, v, full)
    known = careful.variance + (estimate.mean - careful.mean) ** 2
    agree(found, PlainPosterior(estimate.mean, known, estimate.shrinkage), v, 5 * QUADRATURE)
    with pytest.raises(TrueupError, match="covariates"):
        prior.posterior(x, v)


def test_what_covariates_span_is_all_that_counts() -> None:
    rng = np.random.default_rng(32)
    z = rng.normal(3.0, 2.0, (20, 2))
    x, v = data(32, 20)
    x += z[:, 0]
    panels = np.array([0, 20])
    plain_prior = Regression.fit(panel_data(x, v, panels, covariates=z))
    assert plain_prior is not None
    first = plain_prior.posterior(x, v, covariates=z)
    ways = [
        np.column_stack([z[:, 1] * 1e9 + 5e9, z[:, 0] * 1e-9]),
        np.column_stack([z, z[:, 0] - 2 * z[:, 1], np.full(20, 7.1)]),
    ]
    for other in ways:
        prior = Regression.fit(panel_data(x, v, panels, covariates=other))
        assert prior is not None
        found = prior.posterior(x, v, covariates=other)
        np.testing.assert_allclose(found.mean, first.mean, rtol=1e-6)
        np.testing.assert_allclose(found.variance, first.variance, rtol=1e-6)
    assert (
        Regression.fit(panel_data(x, v, panels, covariates=np.full((20, 1), 0.1))) is None
    )  # says nothing
    assert (
        Regression.fit(panel_data(x[:6], v[:6], np.array([0, 6]), covariates=z[:6])) is None
    )  # too few questions


def test_a_regression_of_few_precise_questions_stays_finite() -> None:
    rng = np.random.default_rng(33)
    z = rng.normal(size=(12, 3))
    x, v = data(33, 12)
    v[[2, 5]] = [1e-30, 0.0]
    prior = Regression.fit(panel_data(x, v, np.array([0, 12]), covariates=z))
    assert prior is not None
    found = prior.posterior(x, v, covariates=z)
    assert np.isfinite([found.mean, found.variance, found.shrinkage]).all()
    np.testing.assert_allclose(found.mean[[2, 5]], x[[2, 5]], atol=1e-3)


def test_products_over_blocks_are_those_over_all_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(8)
    z = np.column_stack([rng.normal(size=(2 * 61, 4)), np.full(2 * 61, 3.0)])
    z[:61, 3] = z[:61, 0] - z[:61, 1]
    x, v = z[:, 1] + rng.normal(size=2 * 61), rng.gamma(2.0, 0.2, 2 * 61)
    given = panel_data(x, v, np.array([0, 61, 122]), covariates=z)

    def posterior() -> tuple[Regression, Posterior]:
        prior = Regression.fit(given)
        assert prior is not None
        return prior, prior.posterior(x, v, panels=given.starts, covariates=z)

    prior, whole = posterior()
    monkeypatch.setattr(regression, "ALONE", 7 * 6 * 6)  # seven questions
    assert len(regression._blocks(x[:61].reshape(1, -1), 7)[0]) == 9
    other, blocks = posterior()
    assert prior.basis.rank.tolist() == other.basis.rank.tolist() == [4, 5]
    for name in ("mean", "variance", "shrinkage"):
        np.testing.assert_allclose(getattr(blocks, name), getattr(whole, name), rtol=1e-9)


def test_blocks_of_questions_have_the_singular_values_of_all() -> None:
    z = np.random.default_rng(9).normal(size=(2, 101, 4)) * [1.0, 10.0, 1e-3, 1.0]
    z[1, :, 3] = z[1, :, 0]
    small = regression._triangle(z)
    assert small.shape[1] <= 4
    np.testing.assert_allclose(
        np.swapaxes(small, 1, 2) @ small, np.swapaxes(z, 1, 2) @ z, rtol=1e-12, atol=1e-12
    )
