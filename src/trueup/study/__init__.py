"""Monte-Carlo studies: risk and improvement ratios on many panels, and the tables and figures of the paper."""

from trueup.study.harness import (
    PAPER_STEPS,
    SecondStep,
    StudyCell,
    StudyGrid,
    ratio_interval,
    study,
)
from trueup.study.sources import Drawn, PanelSource, Sampled, Synthetic
from trueup.study.tables import write_table

__all__ = [
    "PAPER_STEPS",
    "Drawn",
    "PanelSource",
    "Sampled",
    "SecondStep",
    "StudyCell",
    "StudyGrid",
    "Synthetic",
    "ratio_interval",
    "study",
    "write_table",
]
