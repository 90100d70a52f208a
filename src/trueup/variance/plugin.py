"""Plug-in: the variance of a weighted mean with fixed weights, worker variances put in."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trueup.algorithms.driver import Aggregate
    from trueup.answers import Answers
    from trueup.arrays import Floats


def plugin(answers: Answers, aggregate: Aggregate) -> Floats:  # noqa: ARG001  every rule has both
    """Return `v_j = sum_i p_ij^2 s_i^2`, with `s_i^2 = sum_j (x_ij - t_j)^2 / sum_j (1 - p_ij)`.

    It takes the weights as given, so that it is somewhat too small where they were learned from few answers.
    Algorithms with a variance formula of their own (median, GTM, subject bias, Student, BLUE) use that.
    """
    return aggregate.variance
