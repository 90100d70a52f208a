"""The designs of the study of second steps are what they say, and their best rules are the best."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from evidence.second_step import designs
from evidence.second_step.context import Context
from evidence.second_step.designs import Design
from evidence.second_step.gain_share import bayes_ratio, share_of_gain
from evidence.second_step.method_choice import CANDIDATES, first_step_choice
from evidence.second_step.special import special_designs
from trueup.study import Synthetic

if TYPE_CHECKING:
    from pathlib import Path

PANELS, N, M = 300, 10, 20
RULES = {
    "uneven": designs.uneven(1.0),
    "grouped": designs.grouped,
    "sloped": designs.sloped,
    "plain": designs.plain,
}


@pytest.mark.parametrize("name", RULES)
def test_no_other_constant_beats_the_bayes_rule(name: str) -> None:
    made = RULES[name](np.random.default_rng(1), PANELS, N, M)
    assert made.bayes is not None
    x, best = np.nanmean(made.answers, axis=1), made.bayes.reshape(PANELS, M)

    def risk(share: float) -> float:
        """Of the way from the mean to the Bayes rule, and beyond it."""
        return float(np.mean((x + share * (best - x) - made.truth) ** 2))

    assert risk(1.0) < min(risk(0.0), risk(0.7), risk(1.3))
    ratio, error = Design(name, RULES[name]).bayes_ratio(PANELS, N, M, 1)
    assert ratio == pytest.approx(risk(1.0) / risk(0.0), abs=5 * error)


def test_errors_are_as_described() -> None:
    rng = np.random.default_rng(2)
    heavy, gross, spam = (
        made(rng, PANELS, N, M) for made in (designs.heavy_noise, designs.gross, designs.spammers)
    )
    # Mean worker variance 1.0, N(1, 0.5^2) cut off at 0.05, up to the Monte Carlo error of heavy tails.
    errors = [made.answers - made.truth[:, None, :] for made in (heavy, gross)]
    assert np.var(errors[0]) == pytest.approx(1.0, rel=0.15)
    assert np.var(errors[1]) == pytest.approx(1.0 + 0.05 * (225 - 1), rel=0.1)
    # Spam is uniform from -10 to 10, with variance 100/3, whatever the truth is.
    error = np.mean((spam.answers - spam.truth[:, None, :]) ** 2)
    assert error == pytest.approx(0.7 * 1.0 + 0.3 * (100 / 3 + 1.0), rel=0.1)
    counts = (~np.isnan(designs.uneven(1.0)(rng, 50, 100, M).answers)).sum(axis=1)
    assert (counts.min(), counts.max()) == (1, pytest.approx(100, abs=3))
    assert np.isnan(Design("x", designs.gross).bayes_ratio(2, 3, 4, 1)).all()


def test_the_attainable_gain_of_a_normal_prior_is_the_closed_form(tmp_path: Path) -> None:
    context = Context(out=tmp_path, samples=400, quick=True, progress=False)
    source = next(each for each in context.synthetic(["N(0, 1)"], bias=0.0))
    assert isinstance(source, Synthetic)
    ratio, error = bayes_ratio(source, 10, 20, 400, 1)
    # t / (v + t) with t = 1 and v = 1/10 on average.
    assert ratio == pytest.approx(1 / 1.1, abs=5 * error)


def test_parts_of_the_study_come_with_sections(tmp_path: Path) -> None:
    context = Context(out=tmp_path, samples=6, quick=True, progress=False)
    section = share_of_gain(context)
    assert "Share of the attainable gain" in section.title
    rows = context.rows["share_of_gain_bayes"]
    assert {row["truth"] for row in rows} >= {"constant", "N(0, 1)"}
    assert all(0 <= row["bayes"] <= 1.1 for row in rows)
    assert special_designs(context).title


def test_the_choice_is_compared_with_the_best_in_hindsight(tmp_path: Path) -> None:
    context = Context(out=tmp_path, samples=4, quick=True, progress=False)
    section = first_step_choice(context)
    assert "above the best choice in hindsight" in section.title
    for row in context.rows["first_step_choice"]:
        risks = {name: row[name] for name in CANDIDATES}
        assert min(risks.values()) == 1.0 == risks[row["best"]]
        assert row["auto"] >= 0.0
    assert any("worst cell" in point.what for point in context.points)
