"""Aggregation (first step): algorithms, a registry of them by name, and what you need to write your own."""

from __future__ import annotations

from trueup.algorithms.check import check_algorithm
from trueup.algorithms.contract import Algorithm, State
from trueup.algorithms.crh import CRH, PM
from trueup.algorithms.driver import Aggregate, run
from trueup.algorithms.facts import Facts
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
from trueup.answers.block import Block
from trueup.core.arrays import Floats

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
    "Block",
    "Blue",
    "Facts",
    "Floats",
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
