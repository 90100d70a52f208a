"""check_shrink_rule: the checks that every shrink rule has to pass, ours and anybody's.

Each check is a plain function that takes the rule and raises `CheckFailed` with what was expected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trueup.algorithms.check import CheckFailed
from trueup.errors import TrueupError, quoted
from trueup.shrinkage.contract import ShrinkRule

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.core.arrays import Floats
    from trueup.shrinkage.contract import Posterior

SAME = 1e-9  # relative to the spread of the aggregates


def check_shrink_rule(rule: ShrinkRule, *, moves_along: bool = True) -> list[str]:
    """Run the common checks on a shrink rule and return the names of those it passed.

    Parameters
    ----------
    rule : ShrinkRule
    moves_along : bool
        Whether adding a constant to all aggregates must add it to all estimates; False for a rule that moves toward 0.

    Raises
    ------
    CheckFailed
        If a check fails, with what was expected and what was found.

    Examples
    --------
    >>> from trueup.shrinkage import Normal
    >>> check_shrink_rule(Normal())[0]
    'finite'
    """
    if not isinstance(rule, ShrinkRule):
        raise TrueupError(f"rule: found {quoted(rule)}, expected a ShrinkRule such as Normal().")
    trial = _RuleTrial(rule)
    passed = []
    for check in CHECKS:
        if check is _moves_along and not moves_along:
            continue
        name = check.__name__.strip("_")
        try:
            check(trial)
        except TrueupError as error:
            raise CheckFailed(f"{rule}: check {name}: {error}") from error
        passed.append(name)
    return passed


class _RuleTrial:
    """A rule and aggregates to check it on: three panels, one of which is too small to shrink."""

    def __init__(self, rule: ShrinkRule) -> None:
        self.rule = rule
        rng = np.random.default_rng(3)
        self.panels = np.array([0, 12, 40, 42])
        self.v = rng.uniform(0.2, 1.5, 42)
        self.x = rng.normal(5.0, 1.0, 42) + np.sqrt(self.v) * rng.standard_normal(42)

    def posterior(self, x: Floats, v: Floats) -> Posterior:
        """Fit the rule to all panels and apply it."""
        return self.rule.fit(x, v, panels=self.panels).posterior(x, v, panels=self.panels)

    def expect(self, condition: object, what: str) -> None:
        if not condition:
            raise CheckFailed(f"{self.rule}: {what}")

    def same(self, found: Floats, expected: Floats, what: str, unit: float = 1.0) -> None:
        off = float(np.max(np.abs(found - expected))) / unit
        self.expect(off <= SAME * np.ptp(self.x), f"{what}; the difference is {off:.3g}")


def _finite(b: _RuleTrial) -> None:
    for x, v in (
        (b.x, b.v),
        (np.full(42, 7.0), b.v),
        (b.x, np.zeros(42)),
        (np.where(np.arange(42) == 3, 1e12, b.x), b.v),
        (b.x, np.where(np.arange(42) % 5 == 0, 0.0, b.v)),
    ):
        found = b.posterior(x, v)
        b.expect(np.isfinite(found.mean).all(), "estimates must be finite")
        b.expect(np.isfinite(found.shrinkage).all(), "shrinkage must be finite")
        b.expect(not (found.variance < 0).any(), "variances must not be negative")


def _one_number_for_each_question(b: _RuleTrial) -> None:
    found = b.posterior(b.x, b.v)
    for name in ("mean", "variance", "shrinkage"):
        b.expect(len(getattr(found, name)) == 42, f"{name}: expected one number for each question")


def _moves_along(b: _RuleTrial) -> None:
    plain, shifted = b.posterior(b.x, b.v).mean, b.posterior(b.x + 1000.0, b.v).mean
    expected = "adding a constant to all aggregates must add it to all estimates"
    b.same(shifted - 1000.0, plain, expected, 1e3)


def _scales_along(b: _RuleTrial) -> None:
    plain = b.posterior(b.x, b.v)
    for factor in (1e-9, 1e9):
        found = b.posterior(factor * b.x, factor**2 * b.v)
        expected = "another unit must give the same estimates in that unit"
        b.same(found.mean / factor, plain.mean, expected)
        b.same(found.shrinkage, plain.shrinkage, "another unit must not change the shrinkage")


def _panels_are_alone(b: _RuleTrial) -> None:
    together = b.posterior(b.x, b.v).mean
    for first, last in zip(b.panels[:-1], b.panels[1:], strict=True):
        here = slice(int(first), int(last))
        alone = b.rule.fit(b.x[here], b.v[here]).posterior(b.x[here], b.v[here]).mean
        b.same(together[here], alone, "a panel must get the same estimates as alone")


def _order_changes_nothing(b: _RuleTrial) -> None:
    here = slice(12, 40)
    order = np.random.default_rng(4).permutation(28)
    x, v = b.x[here], b.v[here]
    plain = b.rule.fit(x, v).posterior(x, v).mean
    mixed = b.rule.fit(x[order], v[order]).posterior(x[order], v[order]).mean
    b.same(mixed, plain[order], "the order of the questions must change nothing")


def _a_prior_can_be_used_again(b: _RuleTrial) -> None:
    here = slice(12, 40)
    x, v = b.x[here], b.v[here]
    prior = b.rule.fit(x, v)
    some, every = prior.posterior(x[:5], v[:5]).mean, prior.posterior(x, v).mean
    b.same(some, every[:5], "a prior must give the same estimates for some of its questions")


CHECKS: tuple[Callable[[_RuleTrial], None], ...] = (
    _finite,
    _one_number_for_each_question,
    _moves_along,
    _scales_along,
    _panels_are_alone,
    _order_changes_nothing,
    _a_prior_can_be_used_again,
)
