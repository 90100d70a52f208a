"""Monte-Carlo studies: risk and improvement ratios on many panels, and the tables and figures of the paper."""

from trueup.study.harness import PAPER_STEPS, Cell, Grid, SecondStep, ratio_interval, study
from trueup.study.sources import Drawn, Sampled, Source, Synthetic
from trueup.study.tables import write_table

__all__ = [
    "PAPER_STEPS",
    "Cell",
    "Drawn",
    "Grid",
    "Sampled",
    "SecondStep",
    "Source",
    "Synthetic",
    "ratio_interval",
    "study",
    "write_table",
]
