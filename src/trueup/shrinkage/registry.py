"""Shrink rules by name: a new one is a file beside this one, and its class in `_RULES`."""

from __future__ import annotations

from trueup.errors import TrueupError, quoted
from trueup.shrinkage.adaptive import Adaptive
from trueup.shrinkage.contract import ShrinkRule
from trueup.shrinkage.ebe import EBE, MEBE, Identity, Stein
from trueup.shrinkage.mixture import Mixture
from trueup.shrinkage.normal import Normal
from trueup.shrinkage.unequal_variances import Morris, Sure

_RULES: tuple[type[ShrinkRule], ...] = (
    Identity, EBE, Stein, MEBE, Morris, Sure, Normal, Mixture, Adaptive,
)  # fmt: skip


def names() -> list[str]:
    """Return the names of all rules."""
    return [rule.name for rule in _RULES]


def find(shrink: str | ShrinkRule | type[ShrinkRule]) -> ShrinkRule:
    """Return the rule meant by a name, a class, or a rule itself.

    >>> find("paper")
    EBE(alpha=None, positive=False)
    """
    if isinstance(shrink, ShrinkRule):
        return shrink
    if isinstance(shrink, type) and issubclass(shrink, ShrinkRule):
        return shrink()
    for rule in _RULES:
        if isinstance(shrink, str) and rule.name == shrink:
            return rule()
    raise TrueupError(
        f"{quoted(shrink)} is not known.", argument="shrink", remedy=f"Known: {', '.join(names())}."
    )
