"""What the parts of the study share: how much to sample, where the data are, which methods run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.algorithms import CATD, DTD, Algorithm
from trueup.datasets import load
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
    """Sizes and places of one run.

    Attributes
    ----------
    samples : int
        Panels of a cell; KDEm has a fifth of it.
    repeats : int
        Samples of the figures that have a closed form.
    """

    out: Path
    samples: int = 1000
    repeats: int = 100_000
    quick: bool = False
    data: str | None = None
    seed: int = 0
    progress: bool = True
    cells: list[StudyCell] = field(default_factory=list)

    @property
    def workers(self) -> tuple[int, ...]:
        """The numbers of workers that are swept."""
        return (3, 10) if self.quick else WORKERS

    @property
    def questions(self) -> tuple[int, ...]:
        """The numbers of questions that are swept."""
        return (10, 20) if self.quick else QUESTIONS

    def cells_of(
        self,
        name: str,
        sources: Sequence[PanelSource],
        *,
        steps: Sequence[SecondStep] = PAPER_STEPS,
        sizes: Sequence[tuple[int, int]] | None = None,
    ) -> list[StudyCell]:
        """Run all methods on some sources, all sizes, and remember the cells."""
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

    def real(self, name: str, *, sparse: bool = False, **options: Any) -> Sampled:
        """Load a data set, and keep the questions whose truth is known."""
        dataset = load(name, data=self.data, **options)
        truth = dataset.answers.scale.forward(dataset.truth_array)
        known = np.flatnonzero(np.isfinite(truth))
        return Sampled(name, dataset.answers.subset(known), truth[known], sparse=sparse)
