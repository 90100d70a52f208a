"""Monte-Carlo studies: the risk of first and second steps on many panels.

A *cell* is one source of panels, one size n x m, one first step, one variance rule and one second step. Its risk is
the mean over panels of the mean squared error of the questions. Its improvement ratio is the average risk after the
second step divided by that before it, with a bootstrap interval over panels. The panels of a size are drawn once and
used by all cells, so that cells are compared on the same answers.
"""

from __future__ import annotations

import time
import zlib
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from trueup.algorithms.driver import run
from trueup.algorithms.registry import find as find_method
from trueup.algorithms.worker_fit import MAX_ITER, TOLERANCE
from trueup.answers.panels import span
from trueup.core.arrays import segment_sum
from trueup.core.progress import Progress
from trueup.engines.memory import MemoryEngine
from trueup.pipeline.shrink import moderate_once, second_step
from trueup.shrinkage import EBE, Normal, ShrinkRule
from trueup.shrinkage import find as find_rule
from trueup.study.sources import Drawn
from trueup.study.store import Store
from trueup.variance import worker_noise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from trueup.algorithms.contract import Algorithm
    from trueup.core.arrays import Floats, Ints
    from trueup.study.sources import PanelSource
    from trueup.variance import WorkerNoise

LEVEL = 0.95
RESAMPLES = 400


@runtime_checkable
class Informed(Protocol):
    """A source with groups or covariates of its questions."""

    def known(self, drawn: Drawn) -> dict[str, Any]:
        """Return the `groups` or `covariates` of the questions of these panels."""
        ...


@dataclass(frozen=True)
class SecondStep:
    """A variance rule and a shrink rule, with a name for the tables. Add one to evaluate a rule of your own.

    `variance` may be a callable, `(answers, aggregate) -> variances`; None is the default of the shrink rule.
    """

    name: str
    variance: str | Callable[..., Any] | None
    shrink: ShrinkRule | str


#: The second steps with which the claims of the paper are tested; the last is our own, with the normal prior only.
PAPER_STEPS = (
    SecondStep("psi_H", "psi_H", EBE()),
    SecondStep("psi_H positive", "psi_H", EBE(positive=True)),
    SecondStep("psi_H/n", "psi_H/n", EBE(positive=True)),
    SecondStep("plug-in", "plugin", EBE(positive=True)),
    SecondStep("trueup", None, Normal()),
)


@dataclass(frozen=True)
class StudyCell:
    """The result of one cell: a row of the table.

    `risk` and `base_risk` are mean squared errors per question after and before the second step, `_se` their
    Monte-Carlo standard errors; `ratio` is their ratio, between `ratio_low` and `ratio_high` with 95% confidence and
    with the standard error `ratio_se`. `coverage` is the share of truths inside the 95% intervals, `oracle` the ratio
    of the best common linear step in hindsight and `oracle_b` its shrinkage: below 0 every step does harm.
    """

    source: str
    n: int
    m: int
    method: str
    step: str
    samples: int
    base_risk: float
    base_se: float
    risk: float
    risk_se: float
    ratio: float
    ratio_low: float
    ratio_high: float
    seconds: float
    ratio_se: float = float("nan")
    coverage: float = float("nan")
    oracle: float = float("nan")
    oracle_b: float = float("nan")

    def row(self) -> dict[str, Any]:
        """Return the cell as a row of a table."""
        return asdict(self)


@dataclass(frozen=True)
class StudyGrid:
    """The cells of a study: every source x size x method x second step.

    Parameters
    ----------
    sources : sequence of PanelSource
    sizes : sequence of (n, m)
        Sizes that a source is too small for are left out.
    methods : sequence of str or Algorithm
    steps : sequence of SecondStep
    samples : int
        Number of panels of a cell; `fewer` gives smaller numbers for slow methods, by name.
    """

    sources: Sequence[PanelSource]
    sizes: Sequence[tuple[int, int]]
    methods: Sequence[str | Algorithm]
    steps: Sequence[SecondStep] = PAPER_STEPS
    samples: int = 1000
    fewer: dict[str, int] | None = None
    max_iter: int = MAX_ITER
    tol: float = TOLERANCE
    seed: int = 0

    def tasks(self) -> Iterator[tuple[PanelSource, int, int, Algorithm]]:
        """Yield source, size and method; all second steps of such a task run together."""
        for source in self.sources:
            for n, m in self.sizes:
                if source.fits(n, m):
                    for method in self.methods:
                        yield source, n, m, find_method(method)

    def samples_of(self, algorithm: Algorithm) -> int:
        """Return the number of panels for a method."""
        return min(self.samples, (self.fewer or {}).get(algorithm.name, self.samples))


def study(
    grid: StudyGrid, *, out: str | Path | None = None, name: str = "study", progress: bool = False
) -> list[StudyCell]:
    """Run all cells of a grid and return them.

    Parameters
    ----------
    grid : StudyGrid
    out : path, optional
        Folder that stores finished cells. A run that was stopped resumes from them.
    name : str
        Name of the study in that folder.
    progress : bool
        Show a progress bar, if standard error is a terminal.
    """
    store = Store(out, name)
    tasks = list(grid.tasks())
    cells: list[StudyCell] = []
    panels: dict[int, _Panels] = {}
    drawn_for: tuple[str, int, int] | None = None
    with Progress(name, len(tasks), shown=progress) as bar:
        for source, n, m, algorithm in tasks:
            key = _key(grid, source, n, m, algorithm)
            rows = store.find(key)
            if rows is None:
                if drawn_for != (source.name, n, m):
                    seed = seed_of(grid.seed, source, n, m)
                    drawn_for = source.name, n, m
                    panels = {
                        grid.samples: _Panels.of(source, source.draw(grid.samples, n, m, seed))
                    }
                samples = grid.samples_of(algorithm)
                if samples not in panels:
                    panels[samples] = panels[grid.samples].first(source, samples)
                new = _run(grid, source, n, m, algorithm, panels[samples])
                store.keep(key, [cell.row() for cell in new])
            else:
                new = [StudyCell(**row) for row in rows]
            cells += new
            bar.step(f"{source.name} {n}x{m} {algorithm.name}")
    return cells


def seed_of(seed: int, source: PanelSource, n: int, m: int) -> int:
    """Return the seed of the panels of a source and size; it does not depend on the rest of the grid."""
    return zlib.crc32(f"{seed}/{source.name}/{n}/{m}".encode())


def _key(grid: StudyGrid, source: PanelSource, n: int, m: int, algorithm: Algorithm) -> str:
    """Return a text with everything that the result depends on."""
    samples = grid.samples_of(algorithm)
    limits = f"{samples} samples, {grid.max_iter} iterations, tol {grid.tol:g}, seed {grid.seed}"
    return f"{source.name} {n}x{m} {algorithm!r} [{', '.join(map(repr, grid.steps))}] {limits}"


@dataclass(frozen=True, eq=False)
class _Panels:
    """Panels of a size, and what does not depend on the first step: all methods share it."""

    drawn: Drawn
    engine: MemoryEngine
    question_data: dict[str, Any]

    @classmethod
    def of(cls, source: PanelSource, drawn: Drawn) -> _Panels:
        question_data = source.known(drawn) if isinstance(source, Informed) else {}
        return cls(drawn, MemoryEngine(drawn.answers, threads=1), question_data)

    def first(self, source: PanelSource, samples: int) -> _Panels:
        """Return the first of these panels."""
        answers = span(self.drawn.answers, 0, samples)
        return _Panels.of(source, Drawn(answers, self.drawn.truth[: answers.n_questions]))

    @cached_property
    def noise(self) -> WorkerNoise:
        """The noise of the workers."""
        return worker_noise(self.engine)


def _run(
    grid: StudyGrid, source: PanelSource, n: int, m: int, algorithm: Algorithm, drawn: _Panels
) -> list[StudyCell]:
    start = time.perf_counter()
    answers, truth = drawn.drawn
    aggregate = run(algorithm, drawn.engine, max_iter=grid.max_iter, tol=grid.tol)
    panels = answers.panel_questions
    base = losses_of(panels, aggregate.x, truth)
    oracle, oracle_b = linear_oracle(panels, aggregate.x, truth)
    usual = aggregate.facts.overlap.any() and not algorithm.concludes
    noise = drawn.noise if usual else None
    moderate = moderate_once(aggregate, noise) if noise is not None else None
    results: list[tuple[str, Floats, float]] = []
    for step in grid.steps:
        rule = find_rule(step.shrink)
        moved = second_step(
            answers,
            aggregate,
            rule,
            step.variance or rule.variance,
            noise=noise,
            moderate=moderate,
            seed=grid.seed,
            **drawn.question_data,
        )
        width = moved.half_width(answers, LEVEL)
        has_interval = ~np.isnan(width)
        inside = np.abs(moved.posterior.mean - truth)[has_interval] <= width[has_interval]
        coverage = float(inside.mean()) if has_interval.any() else float("nan")
        results.append((step.name, losses_of(panels, moved.posterior.mean, truth), coverage))
    seconds = (time.perf_counter() - start) / len(grid.steps)

    def cell(step: str, losses: Floats, coverage: float) -> StudyCell:
        low, high = ratio_interval(losses, base)
        return StudyCell(
            source=source.name,
            n=n,
            m=m,
            method=algorithm.name or type(algorithm).__name__,
            step=step,
            samples=len(base),
            base_risk=float(base.mean()),
            base_se=mean_error(base),
            risk=float(losses.mean()),
            risk_se=mean_error(losses),
            ratio=_ratio(float(losses.mean()), float(base.mean())),
            ratio_low=low,
            ratio_high=high,
            seconds=seconds,
            ratio_se=ratio_error(losses, base),
            coverage=coverage,
            oracle=oracle,
            oracle_b=oracle_b,
        )

    return [cell(*result) for result in results]


def linear_oracle(panels: Ints, x: Floats, truth: Floats) -> tuple[float, float]:
    """Return ratio and B of the best step `x - B (x - mean)` with one B for all panels, in hindsight."""
    mean = segment_sum(x, panels) / np.maximum(np.diff(panels), 1)
    deviation, error = x - np.repeat(mean, np.diff(panels)), x - truth
    product, spread, loss = (
        float(deviation @ error),
        float(deviation @ deviation),
        float(error @ error),
    )
    if spread == 0 or loss == 0:
        return 1.0, 0.0
    return 1.0 - product**2 / (spread * loss), product / spread


def losses_of(panels: Ints, x: Floats, truth: Floats) -> Floats:
    """Return the mean squared error of each panel."""
    return segment_sum((x - truth) ** 2, panels) / np.maximum(np.diff(panels), 1)


def mean_error(losses: Floats) -> float:
    """Return the standard error of the mean loss, NaN for a single panel."""
    samples = len(losses)
    return float(losses.std(ddof=1) / np.sqrt(samples)) if samples > 1 else float("nan")


def ratio_error(above: Floats, below: Floats) -> float:
    """Return the standard error of the ratio of the means of paired losses, by the delta method."""
    mean = float(below.mean())
    if len(above) < 2 or mean == 0:
        return float("nan")
    rest = above - _ratio(float(above.mean()), mean) * below
    return float(rest.std(ddof=1) / np.sqrt(len(above)) / mean)


def _ratio(above: float, below: float) -> float:
    return above / below if below > 0 else (1.0 if above == 0 else float("inf"))


@lru_cache(maxsize=4)
def _draws(samples: int, resamples: int, seed: int) -> Floats:
    """Return how often each sample occurs in each resample; drawn once for all cells of that size."""
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(samples, np.full(samples, 1.0 / samples), size=resamples)
    return drawn.astype(np.float64)


def ratio_interval(
    above: Floats, below: Floats, *, level: float = LEVEL, resamples: int = RESAMPLES, seed: int = 0
) -> tuple[float, float]:
    """Return a bootstrap interval for the ratio of the means of paired losses."""
    weights = _draws(len(above), resamples, seed)
    top, bottom = weights @ above, weights @ below
    ratios = np.divide(top, bottom, out=np.ones(resamples), where=bottom > 0)
    low, high = np.quantile(ratios, [0.5 - 0.5 * level, 0.5 + 0.5 * level])
    return float(low), float(high)
