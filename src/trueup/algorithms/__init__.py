"""First steps: algorithms that turn answers into truths, and the registry that knows them by name."""

from __future__ import annotations

from trueup.algorithms.check import check_algorithm
from trueup.algorithms.contract import Algorithm, Facts, State
from trueup.algorithms.crh import CRH, PM
from trueup.algorithms.driver import Aggregate, run
from trueup.algorithms.gtm import GTM
from trueup.algorithms.inverse_variance import CATD, DTD, Blue
from trueup.algorithms.iptd import IPTD, PTD
from trueup.algorithms.kdem import KDEm
from trueup.algorithms.mean import Mean
from trueup.algorithms.median import Median, WeightedMedian
from trueup.algorithms.native import Native
from trueup.algorithms.registry import find, names, register
from trueup.algorithms.student_t import StudentT
from trueup.algorithms.subject_bias import SubjectBias

__all__ = [
    "CATD",
    "CRH",
    "DTD",
    "GTM",
    "IPTD",
    "PM",
    "PTD",
    "Aggregate",
    "Algorithm",
    "Blue",
    "Facts",
    "KDEm",
    "Mean",
    "Median",
    "Native",
    "State",
    "StudentT",
    "SubjectBias",
    "WeightedMedian",
    "check_algorithm",
    "find",
    "names",
    "register",
    "run",
]
