"""Workers whose errors correlate, or who copy one another: residual correlations and identical answers.

`find_pairs` looks for them and returns `CorrelatedPairs`. Two tests look at all pairs of workers who share enough
questions (`shared_questions`): whether their errors are correlated (`correlation`), and whether more of their answers
are identical than ties explain (`identical`); `discoveries` decides which pairs are found. In a very large problem a
sample of the questions is used (`sample`).
"""

from __future__ import annotations

from trueup.variance.correlated.correlation import FEWEST_WORKERS
from trueup.variance.correlated.pairs import CorrelatedPairs
from trueup.variance.correlated.sample import AnswerSample, sample_answers
from trueup.variance.correlated.search import find_pairs

__all__ = ["FEWEST_WORKERS", "AnswerSample", "CorrelatedPairs", "find_pairs", "sample_answers"]
