"""There and back between the scale of the answers and that on which they are combined."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from trueup.answers.scale import Scale
from trueup.errors import AnswersError

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.core.arrays import Floats

SCALES = {
    "none": Scale(),
    "log": Scale("log"),
    "log1p": Scale("log1p"),
    "logit": Scale("logit"),
    "logit of -3 to 40": Scale("logit", (-3.0, 40.0)),
}
# A share of the way through each domain, mapped to an answer inside it.
ANSWER: dict[str, Callable[[Floats], Floats]] = {
    "none": lambda u: np.tan(np.pi * (u - 0.5)),
    "log": lambda u: 10.0 ** (20.0 * (u - 0.5)),
    "log1p": lambda u: 10.0 ** (20.0 * (u - 0.5)) - 1.0 + 1e-9,
    "logit": lambda u: u,
    "logit of -3 to 40": lambda u: -3.0 + 43.0 * u,
}
SHARES = st.lists(st.floats(1e-6, 1 - 1e-6), min_size=1, max_size=20).map(np.array)


@pytest.mark.parametrize("name", SCALES)
@given(share=SHARES)
def test_backward_undoes_forward(name: str, share: Floats) -> None:
    scale, answers = SCALES[name], ANSWER[name](share)

    assert not scale.outside(answers).any()
    assert scale.backward(scale.forward(answers)) == pytest.approx(answers, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(
    ("transform", "formula"),
    [
        (None, lambda y: y),
        ("log", np.log),
        ("log1p", lambda y: np.log(1 + y)),
        ("logit", lambda y: np.log(y / (1 - y))),
    ],
)
def test_forward_is_the_transformation_of_that_name(
    transform: str | None, formula: Callable[[Floats], Floats]
) -> None:
    answers = np.array([0.1, 0.5, 0.8])

    assert Scale(transform).forward(answers) == pytest.approx(formula(answers))
    assert answers.tolist() == [0.1, 0.5, 0.8]


@pytest.mark.parametrize("name", SCALES)
@given(values=st.lists(st.floats(-12, 12), min_size=1, max_size=20).map(np.array))
def test_the_slope_is_the_derivative_of_the_way_back(name: str, values: Floats) -> None:
    scale, step = SCALES[name], 1e-5
    numeric = (scale.backward(values + step) - scale.backward(values - step)) / (2 * step)

    assert scale.slope(values) == pytest.approx(numeric, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("transform", [None, "log", "log1p", "logit"])
def test_bounds_hold_however_far_the_estimate_is_out(transform: str | None) -> None:
    scale = Scale(transform, (0.5, 2.0))

    far = scale.backward(np.array([-1e6, -800.0, 800.0, 1e6]))

    assert far.tolist() == [0.5, 0.5, 2.0, 2.0]


def test_an_open_bound_holds_one_side_only() -> None:
    assert Scale(bounds=(0, np.inf)).backward(np.array([-1.0, 1e9])).tolist() == [0.0, 1e9]


def test_the_inverse_does_not_clip() -> None:
    assert Scale(bounds=(0, 1)).inverse(np.array([-5.0, 7.0])).tolist() == [-5.0, 7.0]


def test_log_odds_far_out_have_a_slope_and_give_no_warning() -> None:
    slope = Scale("logit").slope(np.array([-800.0, -40.0, 40.0, 800.0]))

    assert slope == pytest.approx([0.0, np.exp(-40), np.exp(-40), 0.0], rel=1e-9)


def test_log_odds_between_bounds_of_any_size_are_finite() -> None:
    scale = Scale("logit", (0.0, 1e300))

    assert scale.forward(np.array([1e-150]))[0] == pytest.approx(-450 * np.log(10))


@pytest.mark.parametrize(
    ("scale", "answers", "expected"),
    [
        (Scale(), [-1.0, 0.0], [False, False]),
        (Scale("log"), [-1.0, 0.0, 1e-300], [True, True, False]),
        (Scale("log1p"), [-1.5, -1.0, -0.5], [True, True, False]),
        (Scale("logit"), [0.0, 0.5, 1.0], [True, False, True]),
        (Scale("logit", (1, 5)), [0.5, 1.0, 3.0, 5.0, 6.0], [True, True, False, True, True]),
    ],
)
def test_answers_outside_the_domain_are_found(
    scale: Scale, answers: list[float], expected: list[bool]
) -> None:
    assert scale.outside(np.array(answers)).tolist() == expected


@pytest.mark.parametrize(
    ("transform", "bounds", "argument"),
    [
        ("sqrt", None, "transform"),
        ("", None, "transform"),
        (None, (1, 0), "bounds"),
        (None, (2, 2), "bounds"),
        (None, (np.nan, 1), "bounds"),
        (None, (0, 1, 2), "bounds"),
        (None, 3, "bounds"),
        (None, ("low", "up"), "bounds"),
        ("logit", (0, np.inf), "bounds"),
        ("logit", (-1e308, 1e308), "bounds"),
    ],
)
def test_an_impossible_scale_is_refused(
    transform: str | None, bounds: object, argument: str
) -> None:
    with pytest.raises(AnswersError, match=rf"^{argument}: "):
        Scale(transform, cast("tuple[float, float]", bounds))
