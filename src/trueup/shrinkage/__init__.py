"""Second steps: rules that move the aggregates of a first step toward each other.

Each takes aggregates and their variances and returns a posterior, see `ShrinkRule`. `find` knows them by name.
"""

from __future__ import annotations

from trueup.errors import TrueupError, quoted
from trueup.shrinkage.adaptive import Adaptive
from trueup.shrinkage.check import check_shrink_rule
from trueup.shrinkage.contract import Halves, Posterior, Prior, ShrinkRule
from trueup.shrinkage.ebe import EBE, MEBE, Identity, LinearPrior, Stein
from trueup.shrinkage.mixture import Mixture
from trueup.shrinkage.normal import Normal, QuadraturePrior
from trueup.shrinkage.panel_priors import BolderPrior
from trueup.shrinkage.unequal_variances import Morris, NormalPrior, Sure

__all__ = [
    "EBE",
    "MEBE",
    "Adaptive",
    "BolderPrior",
    "Halves",
    "Identity",
    "LinearPrior",
    "Mixture",
    "Morris",
    "Normal",
    "NormalPrior",
    "Posterior",
    "Prior",
    "QuadraturePrior",
    "ShrinkRule",
    "Stein",
    "Sure",
    "check_shrink_rule",
    "find",
    "names",
]

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
    raise TrueupError(f"shrink: {quoted(shrink)} is not known. Known: {', '.join(names())}.")
