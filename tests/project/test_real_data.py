"""Real answers with known truth: published figures come out, and every algorithm copes."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

import trueup
from trueup import TrueupWarning
from trueup.algorithms import names

if TYPE_CHECKING:
    from pathlib import Path

# Mean squared error of the mean and of the median of all answers, as the data sets are described.
FIGURES = {
    "emotions": (318.1, 452.2),
    "calories": (1.758e5, 1.906e5),
    "groceries": (79.22, 83.42),
    "population": (9.914e33, 1.577e10),
    "dots": (194.6, 225.2),
    "pies": (6.362, 4.011),
}


def errors(folder: Path, method: str) -> pd.Series:
    est = trueup.estimate(folder / "answers.csv", method=method, shrink="none")
    truth = pd.read_csv(folder / "truth.csv").astype({"question": str})
    found = est.questions.astype({"question": str})
    joined = truth.merge(found, on="question", validate="one_to_one")
    assert len(joined) == len(truth)
    return joined["estimate"] - joined["truth"]


@pytest.mark.parametrize("name", FIGURES)
def test_errors_of_mean_and_median_are_those_published(name: str, data_folder: Path) -> None:
    for method, expected in zip(("mean", "median"), FIGURES[name], strict=True):
        risk = float((errors(data_folder / name, method) ** 2).mean())
        assert risk == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("name", [*FIGURES, "nflx_public"])
def test_every_algorithm_gives_finite_results(name: str, data_folder: Path) -> None:
    answers = trueup.Answers.of(data_folder / name / "answers.csv")
    low = answers.centre + np.minimum.reduceat(answers.values, answers.indptr[:-1])
    high = answers.centre + np.maximum.reduceat(answers.values, answers.indptr[:-1])
    for method in set(names()) - {"blue"}:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TrueupWarning)
            est = trueup.estimate(answers, method=method, shrink="none")
        assert np.isfinite(est.estimate).all(), method
        assert np.isfinite(est.upper).all(), method
        assert np.isfinite(est.aggregate.noise).all(), method
        # These move answers by the bias of their author.
        if method not in ("subject_bias", "native"):
            slack = 1e-9 * (high - low) + 1e-12 * np.abs(high)
            assert (est.estimate >= low - slack).all(), method
            assert (est.estimate <= high + slack).all(), method


def test_medians_weighted_by_worker_survive_absurd_claims(data_folder: Path) -> None:
    """Populations claimed in an encyclopedia: up to 6.6e18 people in a city, most claims exact."""
    plain, weighted = (
        errors(data_folder / "population", method).abs() for method in ("median", "weighted_median")
    )
    assert (weighted < 1000).mean() > (plain < 1000).mean() > 0.7


def test_sub_panels_of_real_answers_keep_their_truth(data_folder: Path) -> None:
    answers = trueup.Answers.of(data_folder / "pies" / "answers.csv")
    panels = answers.sample(200, workers=5, questions=20, seed=1)
    matrix = answers.to_matrix()
    found = trueup.estimate(panels, method="mean", shrink="none")
    assert panels.question_source is not None
    assert panels.worker_source is not None
    for number in (0, 57, 199):
        here = panels.question_panel == number
        who = panels.worker_source[panels.worker_panel == number]
        expected = np.nanmean(matrix[np.ix_(who, panels.question_source[here])], axis=0)
        np.testing.assert_allclose(found.estimate[here], expected, rtol=1e-9)
