"""Sources of panels for studies: a simulator, or real answers with known truth."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from trueup.answers.panels import sample_blocks
from trueup.datasets.simulate import simulate
from trueup.errors import TrueupError

if TYPE_CHECKING:
    from trueup.answers.answers import Answers
    from trueup.core.arrays import Floats, Ints


class Drawn(NamedTuple):
    """Panels and the truth of each of their questions."""

    answers: Answers
    truth: Floats


class PanelSource(Protocol):
    """A source that panels can be drawn from."""

    @property
    def name(self) -> str:
        """Name of the source in tables."""
        ...

    def fits(self, n: int, m: int) -> bool:
        """Return whether panels of n workers (or answers per question) and m questions can be drawn."""
        ...

    def draw(self, panels: int, n: int, m: int, seed: int) -> Drawn:
        """Draw panels."""
        ...


@dataclass(frozen=True)
class Synthetic:
    """Panels from `trueup.simulate` with the given options."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)

    def fits(self, n: int, m: int) -> bool:
        """Return whether the size is positive: any such panel can be simulated."""
        return n >= 1 and m >= 1

    def draw(self, panels: int, n: int, m: int, seed: int) -> Drawn:
        """Simulate panels."""
        answers, truth = simulate(workers=n, questions=m, panels=panels, seed=seed, **self.options)
        return Drawn(answers, truth)


@dataclass(frozen=True, eq=False)
class Sampled:
    """Random sub-panels of real answers.

    Parameters
    ----------
    name : str
    answers : Answers
        A single problem; only questions with a truth.
    truth : array or None
        Truth of each question. None, for data sets without truth: the mean of all answers outside the sub-panel.
    sparse : bool
        Draw n random answers to each question, for data sets in which few workers share many questions. False: draw n
        workers and all their answers.
    blocks : array, optional
        Block number of each question, if the same workers answered all questions of a block. Panels are then drawn
        within blocks.
    """

    name: str
    answers: Answers
    truth: Floats | None
    sparse: bool = False
    blocks: Ints | None = None

    def __post_init__(self) -> None:
        if self.truth is None:
            return
        if len(self.truth) != self.answers.n_questions or not np.isfinite(self.truth).all():
            raise TrueupError(
                f"{self.name} needs one finite number for each question.", argument="truth"
            )

    def fits(self, n: int, m: int) -> bool:
        """Return whether there are enough workers and questions."""
        if self.sparse:
            return int((self.answers.counts >= n).sum()) >= m
        if self.blocks is not None:
            counts = self.answers.counts
            return bool((counts >= n).all()) and int(np.bincount(self.blocks).min()) >= m
        others = 1 if self.truth is None else 0
        return self.answers.n_workers >= n + others and self.answers.n_questions >= m

    def draw(self, panels: int, n: int, m: int, seed: int) -> Drawn:
        """Draw sub-panels without replacement."""
        if self.sparse:
            drawn = self.answers.sample_answers(panels, answers_each=n, questions=m, seed=seed)
        elif self.blocks is not None:
            drawn = sample_blocks(
                self.answers, panels, self.blocks, workers=n, questions=m, seed=seed
            )
        else:
            drawn = self.answers.sample(panels, workers=n, questions=m, seed=seed)
        # Number the questions within this source, which may be part of a larger data set.
        own = self.answers.question_source
        source = drawn.question_source
        assert source is not None  # noqa: S101  set for panels
        if own is not None:
            order = np.argsort(own)
            source = order[np.searchsorted(own[order], source)]
        if self.truth is not None:
            return Drawn(drawn, self.truth[source])
        return Drawn(drawn, drawn.centre + self._mean_of_others(drawn, source))

    def _mean_of_others(self, drawn: Answers, source: Ints) -> Floats:
        """Return the mean of the answers outside the sub-panel, relative to the centre of the question."""
        total = np.add.reduceat(self.answers.values, self.answers.indptr[:-1])[source]
        rest = total - np.add.reduceat(drawn.values, drawn.indptr[:-1])
        mean: Floats = rest / np.maximum(self.answers.counts[source] - drawn.counts, 1)
        return mean
