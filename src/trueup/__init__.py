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

from trueup.errors import AnswersError, MissingExtra, TrueupError, TrueupWarning

if TYPE_CHECKING:
    from trueup import algorithms, datasets, shrinkage, study, theory, variance
    from trueup._compare import compare
    from trueup._diagnose import diagnose, diagnose_all
    from trueup._estimate import estimate
    from trueup._rank import rank
    from trueup._update import update
    from trueup.algorithms import Algorithm
    from trueup.answers.answers import Answers
    from trueup.datasets.simulate import simulate
    from trueup.findings.collection import Findings
    from trueup.findings.second_step import SecondStepDiagnosis
    from trueup.pipeline.diagnosis import Diagnosis
    from trueup.ranking.ranking import Ranking
    from trueup.result.estimate import Estimate
    from trueup.result.load import load

__all__ = [
    "Algorithm",
    "Answers",
    "AnswersError",
    "Diagnosis",
    "Estimate",
    "Findings",
    "MissingExtra",
    "Ranking",
    "SecondStepDiagnosis",
    "TrueupError",
    "TrueupWarning",
    "__version__",
    "algorithms",
    "compare",
    "datasets",
    "diagnose",
    "diagnose_all",
    "estimate",
    "load",
    "rank",
    "shrinkage",
    "simulate",
    "study",
    "theory",
    "update",
    "variance",
]

__version__ = "0.2.0"

# Loaded when first asked for, so that the command line answers at once. No module has the name of a function.
_LATER = {
    "Algorithm": ("trueup.algorithms", "Algorithm"),
    "Answers": ("trueup.answers.answers", "Answers"),
    "Diagnosis": ("trueup.pipeline.diagnosis", "Diagnosis"),
    "Estimate": ("trueup.result.estimate", "Estimate"),
    "Ranking": ("trueup.ranking.ranking", "Ranking"),
    "Findings": ("trueup.findings.collection", "Findings"),
    "SecondStepDiagnosis": ("trueup.findings.second_step", "SecondStepDiagnosis"),
    "algorithms": ("trueup.algorithms", None),
    "compare": ("trueup._compare", "compare"),
    "datasets": ("trueup.datasets", None),
    "diagnose": ("trueup._diagnose", "diagnose"),
    "diagnose_all": ("trueup._diagnose", "diagnose_all"),
    "estimate": ("trueup._estimate", "estimate"),
    "load": ("trueup.result.load", "load"),
    "rank": ("trueup._rank", "rank"),
    "shrinkage": ("trueup.shrinkage", None),
    "simulate": ("trueup.datasets", "simulate"),
    "study": ("trueup.study", None),
    "theory": ("trueup.theory", None),
    "update": ("trueup._update", "update"),
    "variance": ("trueup.variance", None),
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'trueup' has no attribute {name!r}")
    home, attribute = _LATER[name]
    module = import_module(home)
    value = module if attribute is None else getattr(module, attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
