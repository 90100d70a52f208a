"""Settings that the parts of the study share: sample sizes, location of the data, methods."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.algorithms import CATD, DTD, Algorithm
from trueup.answers.scale import Scale
from trueup.datasets import load
from trueup.pipeline.scaling import answers_on_scale
from trueup.study.harness import PAPER_STEPS, SecondStep, StudyCell, StudyGrid, study
from trueup.study.sources import Sampled

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from trueup.study.sources import PanelSource

#: The first steps of the paper, as published, and the two baselines.
METHODS: tuple[str | Algorithm, ...] = (
    "mean",
    "median",
    "gtm",
    CATD(preset="paper"),
    "kdem",
    "iptd",
    DTD(preset="paper"),
    "crh",
)
WORKERS = (2, 3, 5, 10, 20)
QUESTIONS = (5, 10, 20, 50)
ITERATIONS = 14


@dataclass
class Context:
    """Settings and results of one run.

    Attributes
    ----------
    samples : int
        Number of panels of a cell; a fifth of that for KDEm.
    repeats : int
        Number of samples for figures with a closed form.
    without_data : bool
        Whether to leave out what needs the real data sets.
    """

    out: Path
    samples: int = 1000
    repeats: int = 100_000
    quick: bool = False
    data: str | None = None
    without_data: bool = False
    seed: int = 0
    progress: bool = True
    cells: list[StudyCell] = field(default_factory=list)

    @property
    def workers(self) -> tuple[int, ...]:
        """The numbers of workers to try."""
        return (3, 10) if self.quick else WORKERS

    @property
    def questions(self) -> tuple[int, ...]:
        """The numbers of questions to try."""
        return (10, 20) if self.quick else QUESTIONS

    def cells_of(
        self,
        name: str,
        sources: Sequence[PanelSource],
        *,
        steps: Sequence[SecondStep] = PAPER_STEPS,
        sizes: Sequence[tuple[int, int]] | None = None,
    ) -> list[StudyCell]:
        """Run all methods and sizes on some sources; keep and return the cells."""
        grid = StudyGrid(
            sources=sources,
            sizes=sizes or [(n, m) for n in self.workers for m in self.questions],
            methods=METHODS,
            steps=steps,
            samples=self.samples,
            fewer={"kdem": max(self.samples // 5, 10)},
            max_iter=ITERATIONS,
            seed=self.seed,
        )
        cells = study(grid, out=self.out, name=name, progress=self.progress)
        self.cells += cells
        return cells

    def real(
        self, name: str, *, sparse: bool = False, transform: str | None = None, **options: Any
    ) -> Sampled:
        """Return a data set on a scale, restricted to the questions with known truth."""
        dataset, scale = load(name, data=self.data, **options), Scale(transform)
        truth = scale.forward(dataset.truth_array)
        known = np.flatnonzero(np.isfinite(truth))
        answers = answers_on_scale(dataset.answers, scale).subset(known)
        return Sampled(name, answers, truth[known], sparse=sparse)
