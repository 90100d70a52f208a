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

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from trueup import algorithms, shrinkage, variance
from trueup.algorithms import Algorithm
from trueup.answers import Answers
from trueup.errors import AnswersError, MissingExtra, TrueupError, TrueupWarning
from trueup.estimate import estimate
from trueup.result import Diagnosis, Estimate

if TYPE_CHECKING:
    from trueup import datasets, study, theory
    from trueup.compare import compare
    from trueup.datasets.simulate import simulate
    from trueup.diagnosis import SecondStepDiagnosis, diagnose

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
    "compare",
    "datasets",
    "diagnose",
    "estimate",
    "shrinkage",
    "simulate",
    "study",
    "theory",
    "variance",
]

__version__ = "0.1.0"

# Loaded when first asked for: an import for `estimate` alone need not wait for them.
_LATER = {
    "datasets": ("trueup.datasets", None),
    "study": ("trueup.study", None),
    "theory": ("trueup.theory", None),
    "compare": ("trueup.compare", "compare"),
    "simulate": ("trueup.datasets", "simulate"),
    "diagnose": ("trueup.diagnosis", "diagnose"),
    "SecondStepDiagnosis": ("trueup.diagnosis", "SecondStepDiagnosis"),
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'trueup' has no attribute {name!r}")
    home, attribute = _LATER[name]
    module = import_module(home)
    value = module if attribute is None else getattr(module, attribute)
    globals()[name] = value
    return value
