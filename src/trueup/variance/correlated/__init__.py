"""Which workers err together, or copy one another: residual correlations, and identical answers.

`together` looks for them, `Together` is what it found. Two tests look at all pairs of workers who share enough
questions (`shared`): whether their errors are correlated (`correlation`) and whether more of their answers are
identical than ties explain (`identical`); `discoveries` says when a pair is found. Of a very large problem a sample of
the questions is looked at (`sample`).
"""

from __future__ import annotations

from trueup.variance.correlated.correlation import FEWEST_WORKERS
from trueup.variance.correlated.pairs import Together
from trueup.variance.correlated.sample import Looked
from trueup.variance.correlated.search import noise_of, together

__all__ = ["FEWEST_WORKERS", "Looked", "Together", "noise_of", "together"]
