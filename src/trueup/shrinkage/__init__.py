"""Shrinkage (second step): rules that move the aggregates of a first step toward each other.

A rule takes aggregates and their variances and returns a posterior, see `ShrinkRule`; `find` looks one up by name.
"""

from __future__ import annotations

from trueup.shrinkage.adaptive import Adaptive
from trueup.shrinkage.adaptive_prior import AdaptivePrior
from trueup.shrinkage.check import check_shrink_rule
from trueup.shrinkage.contract import Halves, Posterior, Prior, ShrinkRule
from trueup.shrinkage.ebe import EBE, MEBE, Identity, LinearPrior, Stein
from trueup.shrinkage.mixture import Mixture
from trueup.shrinkage.normal import Normal, QuadraturePrior
from trueup.shrinkage.registry import find, names
from trueup.shrinkage.unequal_variances import Morris, NormalPrior, Sure

__all__ = [
    "EBE",
    "MEBE",
    "Adaptive",
    "AdaptivePrior",
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
