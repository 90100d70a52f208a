"""trueup: the best estimate of the truth from the numeric answers of many imperfect sources.

>>> import trueup
>>> est = trueup.estimate({
...     "question": ["height", "height", "height", "age", "age", "age"],
...     "worker": ["ann", "bob", "eve", "ann", "bob", "eve"],
...     "answer": [172, 175, 190, 34, 36, 20],
... })
>>> print(est.answers)
Answers(2 questions, 3 workers, 6 answers)
"""

from trueup import algorithms, datasets, shrinkage, theory, variance
from trueup.algorithms import Algorithm
from trueup.answers import Answers
from trueup.datasets import simulate
from trueup.diagnose import SecondStepDiagnosis, diagnose
from trueup.errors import AnswersError, MissingExtra, TrueupError, TrueupWarning
from trueup.estimate import estimate
from trueup.result import Diagnosis, Estimate

__all__ = [
    "Algorithm",
    "Answers",
    "AnswersError",
    "Diagnosis",
    "Estimate",
    "MissingExtra",
    "SecondStepDiagnosis",
    "TrueupError",
    "TrueupWarning",
    "__version__",
    "algorithms",
    "datasets",
    "diagnose",
    "estimate",
    "shrinkage",
    "simulate",
    "theory",
    "variance",
]

__version__ = "0.1.0"
