"""Every algorithm against independently computed numbers, to the stated tolerance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from repository import vectors
from trueup.algorithms import (
    CATD,
    CRH,
    DTD,
    GTM,
    IPTD,
    PM,
    Algorithm,
    KDEm,
    Mean,
    Median,
    StudentT,
    SubjectBias,
    run,
)
from trueup.answers.answers import Answers
from trueup.variance import plugin, psi_h, sandwich

VECTORS = vectors()
ENTRIES = VECTORS["algorithms"]
# Entries in which one worker has taken over: their smallest variances are rounding of rounding.
COLLAPSED = {"dtd_T14", "catd_T14", "subject_bias_T14", "pm_absolute_T10", "crh_absolute_T14"}


def answers_of(name: str) -> Answers:
    data = VECTORS["datasets"][name]
    if "X" in data:
        return Answers.from_matrix(data["X"])
    matrix = np.full((max(data["worker"]) + 1, max(data["question"]) + 1), np.nan)
    matrix[data["worker"], data["question"]] = data["value"]
    return Answers.from_matrix(matrix)


def algorithm_of(entry: str, given: dict[str, Any]) -> Algorithm:
    """The parameters of an entry are complete: what it does not name is as published."""
    params = {name: value for name, value in given.items() if name not in ("T", "tol")}
    family = entry.split("_")[0]
    if family in ("dtd", "catd"):
        published = {"correction": "none", "nu0": 0.0}
        return (DTD if family == "dtd" else CATD)(**{**published, **params})
    if family in ("crh", "pm"):
        params.pop("init", None)  # absolute loss starts at the median
        kind = PM if params.pop("normaliser", "sum") == "max" else CRH
        if not params.pop("use_std", True):
            params["scale"] = "none"
        return kind(**params)
    if family == "kdem":
        return KDEm(kernel="gaussian" if "kern" in params else "authors")
    if family == "subject":
        return SubjectBias(nu0=params.get("nu0", 0.0), epsilon=1e-8)
    if family == "student":
        return StudentT(nu0=params.get("nu0", 0.0))
    return {"mean": Mean, "median": Median, "gtm": GTM, "iptd": IPTD}[family](**params)


def same(found: Any, expected: Any, tolerance: float) -> None:
    expected = np.array([np.nan if v is None else v for v in np.atleast_1d(expected)], dtype=float)
    known = ~np.isnan(expected)
    np.testing.assert_allclose(np.atleast_1d(found)[known], expected[known], rtol=tolerance)


@pytest.mark.parametrize("data", ["table1", "sparse"])
@pytest.mark.parametrize("entry", ENTRIES)
def test_published_numbers(entry: str, data: str) -> None:
    params, expected = ENTRIES[entry]["params"], ENTRIES[entry][data]
    answers = answers_of(data)
    found = run(algorithm_of(entry, params), answers, max_iter=params.get("T", 14), tol=0.0)
    tolerance = 1e-6 if entry.startswith("kdem") else 1e-8
    rough = 1e-4 if entry in COLLAPSED else tolerance
    # GTM is published with variances of standardised answers; we show them in answer units.
    noise = found.state["variance"] if entry.startswith("gtm") else found.noise
    same(found.x, expected["truth"], tolerance)
    same(found.weight, expected["weight"], rough)
    same(noise, expected["sigma2"], rough)
    same(found.variance, expected["var"], rough)
    same(plugin(answers, found).mean(), expected["psi_plugin"], rough)
    same(psi_h(answers, found)[0], expected["psi_H"], tolerance)
    if "psi_sandwich" in expected:
        same(np.nanmean(sandwich(answers, found)), expected["psi_sandwich"], rough)
    for name in ("proxy", "fault"):
        if name in expected:
            informative = found.facts.informative > 0
            same(found.state[name][informative], np.array(expected[name])[informative], tolerance)
    if "bias" in expected:
        assert found.bias is not None
        np.testing.assert_allclose(found.bias, expected["bias"], rtol=1e-8, atol=1e-12)


EDGES = [
    (case, entry)
    for case, entries in VECTORS["edge_cases"].items()
    for entry in entries
    if entry != "X"
]


@pytest.mark.parametrize(("case", "entry"), EDGES)
def test_edge_cases(case: str, entry: str) -> None:
    matrix = VECTORS["edge_cases"][case]["X"]
    expected = VECTORS["edge_cases"][case][entry]
    params = ENTRIES[entry]["params"]
    found = run(
        algorithm_of(entry, params),
        Answers.from_matrix(matrix),
        max_iter=params.get("T", 14),
        tol=0.0,
    )
    tolerance = 1e-6 if entry.startswith("kdem") else 1e-8
    same(found.x, expected["truth"], tolerance)
    same(found.weight, expected["weight"], 1e-4 if entry in COLLAPSED else tolerance)
    assert np.isfinite(found.noise).all()
    assert np.isfinite(found.variance).all()


def test_blue_with_known_competence() -> None:
    known = VECTORS["known_competence"]
    answers = Answers.from_matrix(
        VECTORS["datasets"]["table1"]["X"], worker_variance=known["sigma2"]
    )
    from trueup.algorithms import Blue

    found = run(Blue(), answers)
    same(found.x, known["blue"], 1e-12)
    same(found.variance, np.full(4, known["sigma_tilde2"]), 1e-12)
    loss = np.mean((found.x - np.array(VECTORS["datasets"]["table1"]["gt"])) ** 2)
    same(loss, known["loss_mean"]["blue"], 1e-12)
