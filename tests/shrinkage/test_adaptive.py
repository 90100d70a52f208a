"""Alternatives to the normal prior, tried on held-out workers."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from trueup import TrueupError
from trueup.shrinkage import Adaptive, Halves, Mixture, Normal, find, names
from trueup.shrinkage.expectation import fit_location
from trueup.shrinkage.holdout import HoldoutTrial
from trueup.shrinkage.location_mixture import location_means
from trueup.shrinkage.mixture_search import choose
from trueup.shrinkage.panel_data import PanelData

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

V = 0.2
SPLITS = 8


def panel(
    theta: Floats, seed: int, *, workers: int = 10, v: float = V
) -> tuple[Floats, Floats, Halves]:
    """Means of complete answers by equal workers, and those of random halves."""
    rng = np.random.default_rng(seed)
    answers = theta + rng.normal(0.0, np.sqrt(v * workers), (workers, len(theta)))
    halves = np.empty((SPLITS, 2, len(theta)))
    for split in halves:
        order = rng.permutation(workers)
        split[0] = answers[order[: workers // 2]].mean(axis=0)
        split[1] = answers[order[workers // 2 :]].mean(axis=0)
    return (
        answers.mean(axis=0),
        np.full(len(theta), v),
        Halves(halves, np.full(halves.shape, 2 * v)),
    )


def clusters(seed: int, m: int = 40) -> Floats:
    rng = np.random.default_rng(seed)
    return rng.choice([0.0, 10.0, 30.0], m) + rng.normal(0.0, 0.3, m)


def test_names() -> None:
    assert {"normal", "mixture", "adaptive"} <= set(names())
    assert find("adaptive") == Adaptive(caution=1.0)
    with pytest.raises(TrueupError, match="caution"):
        Adaptive(0.0)


def test_without_halves_it_is_the_normal_prior() -> None:
    x, v, _ = panel(clusters(1), 1)
    prior = Adaptive().fit(x, v, nu=7.0, groups=np.zeros(40, dtype=int))
    found, normal = prior.posterior(x, v), Normal().fit(x, v, nu=7.0).posterior(x, v)
    np.testing.assert_array_equal(found.mean, normal.mean)
    np.testing.assert_array_equal(found.variance, normal.variance)
    assert prior.model.tolist() == ["normal"]
    assert prior.partition(x, v) == [None]
    assert np.isnan(prior.gain).all()


def test_clusters_earn_their_place() -> None:
    theta = clusters(2)
    x, v, halves = panel(theta, 2)
    prior = Adaptive().fit(x, v, halves=halves)
    assert prior.model.tolist() == ["mixture"]
    assert prior.z[0] > 1.5
    assert prior.gain[0] > 0
    found = prior.posterior(x, v)
    assert np.sum((found.mean - theta) ** 2) < 0.7 * np.sum((x - theta) ** 2)
    (parts,) = prior.partition(x, v)
    assert parts is not None
    assert parts.shape == (40, 3)
    np.testing.assert_allclose(parts.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(parts.argmax(axis=1), np.searchsorted([5.0, 20.0], theta))
    # New questions belong to the nearest cluster as well.
    (new,) = prior.partition(np.array([0.1, 29.0]), np.array([V, V]))
    assert new is not None
    np.testing.assert_array_equal(new.argmax(axis=1), [0, 2])


def test_clusters_that_halves_do_not_show_are_not_believed() -> None:
    """Aggregates that look clustered, while halves of the workers say that the truth is a smooth crowd."""
    rng = np.random.default_rng(3)
    theta = rng.normal(0.0, 1.0, 40)
    _, v, halves = panel(theta, 3)
    x = np.where(theta > 0, 1.5, -1.5) + rng.normal(0.0, 0.1, 40)
    assert Mixture().fit(x, v).model.tolist() == ["mixture"]
    prior = Adaptive().fit(x, v, halves=halves)
    assert prior.model.tolist() == ["normal"]
    assert prior.z[0] <= 1.5
    np.testing.assert_array_equal(
        prior.posterior(x, v).mean, Normal().fit(x, v).posterior(x, v).mean
    )


def test_normal_truth_stays_normal() -> None:
    rng = np.random.default_rng(4)
    models = []
    for seed in range(20):
        x, v, halves = panel(rng.normal(0.0, 1.0, 30), seed)
        models += Adaptive().fit(x, v, halves=halves).model.tolist()
    assert models.count("normal") >= 18


@pytest.mark.parametrize(("apart", "splits"), [(3.0, 2), (0.0, 8)])
def test_two_splits_decide_about_many_questions_where_they_are_clear(
    monkeypatch: pytest.MonkeyPatch, apart: float, splits: int
) -> None:
    """The prior is the one that all splits would have chosen."""
    rng = np.random.default_rng(5)
    m = 10_000
    # Skewed truths, which two components describe a little better than one, or two clusters.
    theta = rng.choice([0.0, apart], m) + rng.normal(0.0, 0.3, m)
    theta = theta if apart else theta + 0.045 * rng.exponential(1.0, m) ** 2
    x, v, halves = panel(theta, 5)
    tried: list[int] = []
    fit = HoldoutTrial.of.__func__  # type: ignore[attr-defined]

    def counted(cls: type, halves: Halves, *rest: Any) -> HoldoutTrial | None:
        tried.append(len(halves.x))
        found: HoldoutTrial | None = fit(cls, halves, *rest)
        return found

    monkeypatch.setattr(HoldoutTrial, "of", classmethod(counted))
    prior = Adaptive().fit(x, v, halves=halves)
    assert tried[0] == 2
    assert tried[-1] == splits
    monkeypatch.setattr("trueup.shrinkage.adaptive.MANY", m + 1)
    full = Adaptive().fit(x, v, halves=halves)
    assert tried[-1] == 8
    assert prior.model.tolist() == full.model.tolist()
    np.testing.assert_array_equal(prior.posterior(x, v).mean, full.posterior(x, v).mean)
    monkeypatch.setattr("trueup.shrinkage.adaptive.MANY", m)
    # Groups and covariates compete with a mixture: then all splits are used at once.
    Adaptive().fit(x, v, halves=halves, groups=np.arange(m) % 2)
    assert tried[-1] == 8
    assert tried.count(2) == 1


def test_a_panel_beside_a_large_one_is_tried_as_if_it_were_alone() -> None:
    rng = np.random.default_rng(5)
    small = panel(rng.choice([-4.0, 4.0], 400) + 0.1 * rng.normal(size=400), 5)
    large = panel(rng.normal(size=10_000), 5)
    alone = Adaptive().fit(small[0], small[1], halves=small[2])
    x, v = (np.append(one, other) for one, other in zip(small[:2], large[:2], strict=True))
    halves = Halves(
        np.append(small[2].x, large[2].x, axis=2), np.append(small[2].v, large[2].v, axis=2)
    )
    both = Adaptive().fit(x, v, panels=np.array([0, 400, 10_400]), halves=halves)
    assert both.gain[0] == pytest.approx(alone.gain[0], rel=1e-9)
    assert both.z[0] == pytest.approx(alone.z[0], rel=1e-9)


def plain_score(halves: Halves, chosen_on: tuple[Floats, Floats]) -> tuple[float, float]:
    """Gain and z of the mixture in loops over splits and directions."""
    x_all, v_all = chosen_on
    m = len(x_all)
    chosen = choose(PanelData.of(x_all, v_all, np.array([0, m]), {}))
    row = np.array([0])
    units, start = chosen.of(row)
    each = np.zeros(m)
    for x_split, v_split in zip(halves.x, halves.v, strict=True):
        both = np.flatnonzero(np.isfinite(x_split).all(axis=0))
        if len(both) < 8:
            continue
        for here, there in ((0, 1), (1, 0)):
            x, v = x_split[here, both], v_split[here, both]
            y, u = x_split[there, both], 1 / (v_split[there, both] + v.mean())
            y = y - np.sum(u * (y - x)) / np.sum(u)
            normal = Normal(1.0).fit(x, v).posterior(x, v).mean
            t, s = units.standardise(row, x, v)
            mixture = location_means(t, s, fit_location(t, s, start))[0]
            mixture = units.centre[0] + units.unit[0] * mixture
            each[both] += u * ((normal - y) ** 2 - (mixture - y) ** 2) / (2 * len(halves.x))
    gain = float(each.sum())
    return gain, gain / float(np.sqrt(np.sum(each**2)))


def test_the_score_is_the_plain_loop() -> None:
    """With answers missing in some halves, and one split without enough of them."""
    rng = np.random.default_rng(5)
    theta = rng.choice(np.array([0.0, 2.5]), 30)
    x, v, halves = panel(theta, 5)
    halves.x[rng.random(halves.x.shape) < 0.15] = np.nan
    halves.x[2, 0, :23] = np.nan
    data = PanelData.of(x, v, np.array([0, 30]), {})
    chosen = choose(data)
    assert chosen.kind.tolist() == [2]
    trial = HoldoutTrial.of(halves, data, np.array([0]))
    assert trial is not None
    score = trial.score(trial.mixtures(chosen))
    gain, z = plain_score(halves, (x, v))
    assert score.gain[0] == pytest.approx(gain, rel=1e-8)
    assert score.z[0] == pytest.approx(z, rel=1e-8)


def test_a_step_twice_as_far_as_right_gains_nothing() -> None:
    """The score by hand: one question in eight is moved by 2 where 1 would have been right."""
    m = 8
    x = np.tile(np.arange(m, dtype=float), (1, 2, 1))
    v = np.full(x.shape, 1e-12)
    data = PanelData.of(x[0, 0], v[0, 0], np.array([0, m]), {})
    trial = HoldoutTrial.of(Halves(x, v), data, np.array([0]))
    assert trial is not None
    normal = trial.normal.mean
    away = np.where(trial.question == 3, 2.0, 0.0)
    object.__setattr__(trial, "target", normal + away / 2)
    assert trial.score(normal + away).gain[0] == pytest.approx(0.0, abs=1e-6 * 1e12)
    object.__setattr__(trial, "target", normal + away)
    # Both directions of the one split gain 2^2 at precision 1 / 2e-12.
    assert trial.score(normal + away).gain[0] == pytest.approx(4 / 2e-12, rel=1e-6)
    assert trial.score(normal).gain[0] == 0.0


def grouped(seed: int, *, useful: bool) -> tuple[Floats, NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(5), 10)
    theta = rng.normal(0, 2, 5)[groups] + rng.normal(0, 0.3, 50) if useful else rng.normal(0, 1, 50)
    return theta, groups


def test_useful_groups_earn_their_place() -> None:
    theta, groups = grouped(6, useful=True)
    x, v, halves = panel(theta, 6)
    prior = Adaptive().fit(x, v, halves=halves, groups=groups)
    assert prior.model[0] in ("groups", "group means")
    found = prior.posterior(x, v, groups=groups)
    assert np.sum((found.mean - theta) ** 2) < 0.8 * np.sum((x - theta) ** 2)
    (parts,) = prior.partition(x, v, groups=groups)
    np.testing.assert_array_equal(parts, groups[:, None] == np.arange(5))
    # Questions without a group, or of an unknown one, have the common prior.
    common = Normal().fit(x, v).posterior(x, v)
    for unknown in ({}, {"groups": np.full(50, -1)}, {"groups": np.full(50, 77)}):
        np.testing.assert_allclose(prior.posterior(x, v, **unknown).mean, common.mean, rtol=1e-12)


def test_useless_groups_do_not() -> None:
    kept = 0
    for seed in range(10):
        theta, groups = grouped(seed, useful=False)
        x, v, halves = panel(theta, seed)
        kept += not Adaptive().fit(x, v, halves=halves, groups=groups).model[0].startswith("group")
    assert kept >= 9


def test_a_regression_earns_its_place() -> None:
    rng = np.random.default_rng(7)
    z = rng.normal(size=(50, 2))
    theta = z @ [1.0, 2.0] + rng.normal(0, 0.3, 50)
    x, v, halves = panel(theta, 7)
    prior = Adaptive().fit(x, v, halves=halves, covariates=z)
    assert prior.model.tolist() == ["regression"]
    found = prior.posterior(x, v, covariates=z)
    assert np.sum((found.mean - theta) ** 2) < 0.6 * np.sum((x - theta) ** 2)
    assert prior.partition(x, v, covariates=z) == [None]
    with pytest.raises(TrueupError, match="covariates"):
        prior.posterior(x, v)
    useless = Adaptive().fit(x, v, halves=halves, covariates=rng.normal(size=(50, 2)))
    assert useless.model[0] != "regression"


def test_too_few_questions_in_both_halves() -> None:
    x, v, halves = panel(clusters(8), 8)
    halves.x[:, 0, 7:] = np.nan
    prior = Adaptive().fit(x, v, halves=halves)
    assert prior.model.tolist() == ["normal"]


def test_panels_are_fitted_one_by_one() -> None:
    rng = np.random.default_rng(9)
    many = []
    for seed, m in enumerate([40, 6, 25, 40, 3, 25]):
        theta = clusters(seed, m) if seed % 3 == 0 else rng.normal(0, 2, m)
        many.append(panel(theta, seed))
    for one in many:
        one[2].x[rng.random(one[2].x.shape) < 0.05] = np.nan
    panels = np.cumsum([0] + [len(one[0]) for one in many])
    x, v = (np.concatenate([one[k] for one in many]) for k in (0, 1))
    halves = Halves(
        np.concatenate([one[2].x for one in many], axis=2),
        np.concatenate([one[2].v for one in many], axis=2),
    )
    groups, z = rng.integers(0, 3, len(x)), rng.normal(size=(len(x), 1))
    known: dict[str, Any] = {"groups": groups, "covariates": z}
    prior = Adaptive().fit(x, v, panels=panels, halves=halves, nu=np.full(6, 50.0), **known)
    found = prior.posterior(x, v, panels=panels, **known)
    assert len(set(prior.model)) > 2
    for b, here in enumerate(itertools.starmap(slice, itertools.pairwise(panels.tolist()))):
        part = {name: value[here] for name, value in known.items()}
        one_prior = Adaptive().fit(x[here], v[here], halves=halves.of(here), nu=50.0, **part)
        alone = one_prior.posterior(x[here], v[here], **part)
        assert prior.model[b] == one_prior.model[0]
        np.testing.assert_allclose(found.mean[here], alone.mean, rtol=1e-9)
        np.testing.assert_allclose(found.variance[here], alone.variance, rtol=1e-9)


@pytest.mark.parametrize(("a", "b"), [(1e12, 0.0), (1e-12, 0.0), (2.0, -50.0)])
def test_units_change_nothing(a: float, b: float) -> None:
    x, v, halves = panel(clusters(10), 10)
    first = Adaptive().fit(x, v, halves=halves)
    other = Adaptive().fit(a * x + b, a * a * v, halves=Halves(a * halves.x + b, a * a * halves.v))
    np.testing.assert_allclose(other.gain, first.gain, rtol=1e-7)
    mean = other.posterior(a * x + b, a * a * v).mean
    np.testing.assert_allclose((mean - b) / a, first.posterior(x, v).mean, rtol=1e-9, atol=1e-9)


def test_what_is_known_is_checked() -> None:
    x, v, halves = panel(clusters(11), 11)
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("halves", {"halves": Halves(halves.x[:, :1], halves.v)}),
        ("halves", {"halves": Halves(halves.x, halves.v[1:])}),
        ("groups", {"halves": halves, "groups": np.zeros(3, dtype=int)}),
        ("groups", {"halves": halves, "groups": np.zeros(40)}),
        ("covariates", {"halves": halves, "covariates": np.zeros((3, 1))}),
        ("covariates", {"halves": halves, "covariates": np.full((40, 1), np.nan)}),
    ]
    for name, known in wrong:
        with pytest.raises(TrueupError, match=name):
            Adaptive().fit(x, v, **known)
