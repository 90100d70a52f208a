"""Variance rules: how certain is a first step? Answers and aggregate in, a variance per question out.

`psi_h` is the estimate of the paper as printed, `psi_h_per_answer` probably what was meant. `plugin`, `sandwich` and
`blue` use the weights of the first step. `jackknife` and `bootstrap` run any first step again with fewer workers.
`moderated` is our own rule; like these two it also returns how certain its variances are. `find` returns a rule
by name, `certainty` and `variances` apply one.
"""

from __future__ import annotations

from contextlib import suppress
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.core.parameters import LARGEST, SMALLEST, usable_variances
from trueup.engines import vectors
from trueup.errors import TrueupError, option, quoted
from trueup.variance.contract import Certainty
from trueup.variance.moderated import moderated
from trueup.variance.paper import psi_h, psi_h_per_answer
from trueup.variance.plugin import at_face_value, blue, plugin
from trueup.variance.resample import bootstrap, jackknife
from trueup.variance.sandwich import mean_sandwich, sandwich
from trueup.variance.worker_noise import WorkerNoise, worker_noise

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.algorithms.driver import Aggregate
    from trueup.answers.answers import Answers
    from trueup.core.arrays import Floats

__all__ = [
    "Certainty",
    "WorkerNoise",
    "blue",
    "bootstrap",
    "certainty",
    "find",
    "jackknife",
    "mean_sandwich",
    "moderated",
    "names",
    "plugin",
    "psi_h",
    "psi_h_per_answer",
    "sandwich",
    "variances",
    "worker_noise",
]

_RULES: dict[str, Callable[[Answers | None, Aggregate], Floats | Certainty]] = {
    "moderated": moderated,
    "paper": psi_h,
    "psi_H": psi_h,
    "psi_H/n": psi_h_per_answer,
    "plugin": plugin,
    "sandwich": mean_sandwich,
    "blue": blue,
    "jackknife": jackknife,
    "bootstrap": bootstrap,
}

#: Rules that take the weights as fixed; the intervals do not.
_AT_FACE_VALUE = ("plugin", "sandwich")


def names() -> list[str]:
    """Return the names of all rules."""
    return list(_RULES)


def find(name: str) -> Callable[[Answers | None, Aggregate], Floats | Certainty]:
    """Return a rule by name."""
    if name not in _RULES:
        known = ", ".join(f'"{rule}"' for rule in _RULES)
        raise TrueupError(
            f"{quoted(name)} is not known.",
            argument="variance",
            remedy=f"Known: {known}, a number or an array.",
        )
    return _RULES[name]


def check(rule: Any) -> None:
    """Check what can be checked of a rule before answers are read: its name, or that a number can be a variance."""
    if isinstance(rule, str):
        find(rule)
    elif isinstance(rule, Real):
        with suppress(OverflowError):  # told of where it is used
            _check_sizes(np.asarray(float(rule)))


def _check_sizes(values: Floats) -> None:
    bad = ~((values == 0) | usable_variances(values))
    if bad.any():
        raise TrueupError(
            f"found {values[bad].ravel()[0]:g}, must be 0 or from {SMALLEST:g} to {LARGEST:g}.",
            argument="variance",
        )


def variances(rule: Any, answers: Answers | None, aggregate: Aggregate) -> Floats:
    """Return the variance of each aggregate by a rule: a name, a number, one number per question, or a callable."""
    return certainty(rule, answers, aggregate).v


def certainty(
    rule: Any,
    answers: Answers | None,
    aggregate: Aggregate,
    *,
    noise: WorkerNoise | None = None,
    moderate: Certainty | None = None,
) -> Certainty:
    """Return variances and how certain they are; numbers that are given count as known.

    The engine of the aggregate keeps them. `answers` is None if the answers are not in memory; `noise` is the noise of
    the workers and `moderate` the moderated variances, where they are known already.
    """
    engine = aggregate.engine
    if isinstance(rule, str):
        if (
            rule in _AT_FACE_VALUE
            and aggregate.has_variance
            and not aggregate.algorithm.needs_variance
        ):
            return at_face_value(find(rule), answers, aggregate, noise, moderate)
        variance = find(rule)(answers, aggregate)
        if isinstance(variance, Certainty):
            return variance
        return Certainty.of_known(engine)
    if callable(rule):
        if answers is None:
            raise TrueupError(
                "a function needs all answers in memory.",
                argument="variance",
                remedy="Use " + option("engine", "memory") + ", or name a rule.",
            )
        rule = rule(answers, aggregate)
        if isinstance(rule, Certainty):
            return rule.keep_in(engine)
    count = engine.problem.n_questions
    try:
        values = np.asarray(rule, dtype=np.float64)
        np.broadcast_to(values, (count,))
    except (TypeError, ValueError, OverflowError):
        raise TrueupError(
            f"found {quoted(rule)}.",
            argument="variance",
            remedy=f"Give a name, a number, or one number for each of the {count} questions.",
        ) from None
    _check_sizes(values)
    engine.keep(vectors.VARIANCE, values if values.ndim else float(values))
    return Certainty.of_known(engine)
