"""Variance rules: how sure is a first step? Answers and aggregate in, a variance per question out."""

from trueup.variance.paper import psi_h
from trueup.variance.plugin import plugin
from trueup.variance.sandwich import sandwich

__all__ = ["plugin", "psi_h", "sandwich"]
