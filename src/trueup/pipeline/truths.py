"""From the consensus to the truth, on any engine: the numbers that the prior over crowds needs, and what it says.

`trueup.pipeline.crowd_prior` has the model. It needs the scatter s of a single answer, the mean m and the spread tau of
the consensus, the typical variance of the consensus, and the known truths.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from trueup.algorithms.answer_spread import medians
from trueup.core.arrays import segment_sum
from trueup.engines import vectors
from trueup.engines.protocol import Visit
from trueup.engines.question_sample import sample_questions
from trueup.errors import TrueupError
from trueup.pipeline.crowd_prior import (
    NOTHING,
    KnownTruths,
    TruthModel,
    expected_narrowing,
    reliability,
    truth_model,
)

if TYPE_CHECKING:
    from trueup.answers.block import Block
    from trueup.core.arrays import Bools, Floats
    from trueup.engines.protocol import Engine, Kept

#: Distances below this share of the typical one are agreement.
AGREEMENT = 1e-9
#: Distances count with at most this many times their mean.
CLIP = 3.0
#: A smaller scatter is agreement: its square is hardly a number.
SMALLEST = 1e-150
#: So is one below this share of the differences between questions; and no truth is further away than its inverse.
NEGLIGIBLE = 1e-60
TOO_FAR = "a known truth is too far from all answers to learn from it."
#: Known truths from which on they show the scatter where the answers do not.
FEWEST_GOLD = 3
#: Seed of the sample of questions of a large problem, and the most questions that show the scatter.
SEED, ENOUGH = 0, 20_000


@dataclass(frozen=True, eq=False)
class TruthModels:
    """The model of each panel; fields of panels of which nothing can be known are NaN.

    Attributes
    ----------
    models : list of TruthModel or None
        One for each panel.
    """

    models: list[TruthModel | None]

    @property
    def known(self) -> Bools:
        """Whether there is a model, for each panel."""
        return np.array([model is not None for model in self.models])

    def of(self, block: Block) -> TruthModel:
        """Return the model with a number for each question of a block."""
        names = [each.name for each in fields(TruthModel)]
        columns = {
            name: np.array(
                [np.nan if model is None else getattr(model, name) for model in self.models]
            )
            for name in names
        }
        return TruthModel(**{name: block.of_panel(values) for name, values in columns.items()})


def answer_scatter(engine: Engine) -> Floats:
    """Return the scatter s of a single answer in each panel, 0 where it is unknown.

    With `r_ij = |x_ij - median_j| sqrt(k_j/(k_j - 1))` over questions with two answers, `phi` the share of r that is
    not agreement, and M the fixed point of `M = mean(min(r, 3 M))` over those, `s = sqrt(pi/2) phi M`.
    """
    sample = sample_questions(engine, SEED, ENOUGH)

    def visit(block: Block, kept: Kept) -> Visit:
        chosen = sample.inside(block, kept) & (block.informative > 0)
        part = block.part(chosen)
        distance = np.abs(part.residuals(part.median))
        distance *= part.spread(np.sqrt(part.counts / np.maximum(part.counts - 1.0, 1.0)))
        size = segment_sum(np.where(chosen, block.counts, 0.0), block.panel_questions)
        return Visit(panel_sums=size[None], rows={"distance": distance})

    sweep = engine.sweep(visit, reads=sample.reads)
    borders = np.append(0, np.cumsum(sweep.panel_sums[0].astype(np.int64)))
    distances = sweep.rows["distance"]
    return np.array([scatter(distances[begin:end]) for begin, end in pairwise(borders)])


def scatter(distances: Floats) -> float:
    """Return s from the distances of the answers of one panel.

    The fixed point is `M = sum_{r <= 3 M} r / (n - 3 #{r > 3 M})`, the largest solution.
    """
    positive = np.sort(distances[distances > 0])
    if not len(positive):
        return 0.0
    r = positive[positive > AGREEMENT * np.median(positive)]
    n, below = len(r), np.cumsum(r)
    share = n / len(distances)
    # With the first c distances below 3 M: M = below[c-1] / (n - 3 (n - c)), if r[c-1] <= 3 M < r[c].
    count = np.arange(1, n + 1)
    divisor = n - CLIP * (n - count)
    mean = np.divide(below, divisor, out=np.zeros(n), where=divisor > 0)
    following = np.append(r[1:], np.inf)
    fixed = (divisor > 0) & (r <= CLIP * mean * (1 + 1e-12)) & (CLIP * mean < following)
    found = float(np.sqrt(0.5 * np.pi) * share * mean[fixed].max(initial=0.0))
    return found if found > SMALLEST else 0.0


@dataclass(frozen=True, eq=False)
class CrowdNumbers:
    """What the model of one panel is made of.

    Attributes
    ----------
    s, mean, tau2 : float
        Scatter of an answer; mean and spread of the consensus.
    questions : int
        Number of questions whose variance is known.
    shift, typical : float
        Variance of a shift that all questions share, and typical variance of the consensus (NaN: unknown).
    """

    s: float
    mean: float
    tau2: float
    questions: int
    shift: float
    typical: float

    @property
    def x(self) -> float:
        """`log(1 + s^2/tau^2)`."""
        return reliability(self.s, self.tau2, self.questions)

    def known(self, gold: GoldQuestions | None) -> tuple[float, float, KnownTruths]:
        """Return s, x and the known truths in units of s; they tell s where the answers do not."""
        s, x = self._noticeable(self.s), self.x
        if gold is None or not len(
            gold.truth
        ):  # none of them is about a question that was answered
            return s, x, NOTHING
        if s <= 0 and len(gold.truth) >= FEWEST_GOLD:
            off = float(np.sqrt(np.mean((gold.truth - gold.aggregate) ** 2)))
            s, x = self._noticeable(off), 0.0
        if s <= 0:
            return s, x, NOTHING
        if np.abs(gold.truth - self.mean).max() > s / NEGLIGIBLE:
            raise TrueupError(TOO_FAR, argument="gold")
        variance = np.where(np.isnan(gold.variance), self.usual_variance, gold.variance)
        away = gold.consensus - self.mean, gold.truth - self.mean
        return s, x, KnownTruths(away[0] / s, variance / s**2, away[1] / s)

    def _noticeable(self, s: float) -> float:
        """Return a scatter, 0 if it is next to nothing beside the differences between questions."""
        return s if s > max(SMALLEST, NEGLIGIBLE * np.sqrt(self.tau2)) else 0.0

    @property
    def usual_variance(self) -> float:
        """The typical variance of the consensus, 0 where none is known."""
        return 0.0 if np.isnan(self.typical) else self.typical

    def model(
        self, gold: GoldQuestions | None, level: float, kind: str | None
    ) -> TruthModel | None:
        """Return what the crowd says about truths, None where its scatter is unknown."""
        s, x, known = self.known(gold)
        if s <= 0:
            return None
        return truth_model(
            centre=self.mean,
            unit=s,
            x=x,
            shift=self.shift,
            typical_variance=self.usual_variance,
            level=level,
            known=known,
            kind=kind,
        )

    def narrowing(self, more: int, gold: GoldQuestions | None, kind: str | None) -> float:
        """Return the factor by which more known truths would change the width of the interval for the truth."""
        s, x, known = self.known(gold)
        shift, u, tau = self.shift / s**2, self.usual_variance / s**2, np.sqrt(self.tau2) / s
        return expected_narrowing(more, x, shift, u, float(tau), known, kind)


@dataclass(frozen=True, eq=False)
class GoldQuestions:
    """Questions with known truth: aggregate, consensus, its variance (NaN: unknown), shrinkage and truth of each."""

    aggregate: Floats
    consensus: Floats
    variance: Floats
    shrinkage: Floats
    truth: Floats

    def without(self, number: int) -> GoldQuestions:
        """Return all but one of them."""
        return GoldQuestions(
            **{each.name: np.delete(getattr(self, each.name), number) for each in fields(self)}
        )

    @classmethod
    def of(cls, engine: Engine) -> GoldQuestions:
        """Bring them here; known truths are kept on the scale."""
        names = {
            "aggregate": vectors.AGGREGATE,
            "consensus": vectors.POSTERIOR_MEAN,
            "variance": vectors.POSTERIOR_VARIANCE,
            "shrinkage": vectors.SHRINKAGE,
            "truth": vectors.SCALED_GOLD,
        }

        def visit(block: Block, kept: Kept) -> Visit:  # noqa: ARG001
            has = ~np.isnan(kept[vectors.SCALED_GOLD])
            rows = {name: kept[vector][has] for name, vector in names.items()}
            unknown = kept[vectors.UNKNOWN][has] > 0
            rows["variance"] = np.where(unknown, np.nan, rows["variance"])
            return Visit(rows=rows)

        reads = (*names.values(), vectors.UNKNOWN)
        return cls(**engine.sweep(visit, reads=reads, answers=False).rows)


def crowd_numbers(
    engine: Engine, scatters: Floats, shift: Floats, aside: str = ""
) -> list[CrowdNumbers]:
    """Return what the models of the panels are made of; the engine keeps the outcome of both steps.

    Questions that were set aside for their wild answers, which the vector `aside` marks, do not count: one absurd
    answer says nothing about the spread of the truths.
    """
    counts, means, tau2 = _sums(engine, aside)
    typical = _typical_variance(engine, aside)
    return [
        CrowdNumbers(
            float(scatters[panel]),
            float(means[panel]),
            float(tau2[panel]),
            int(counts[panel]),
            float(shift[panel]),
            float(typical[panel]),
        )
        for panel in range(len(scatters))
    ]


def _usable(kept: Kept, aside: str) -> Bools:
    """Return the questions whose variance is known and that were not set aside."""
    usable: Bools = (kept[vectors.UNKNOWN] == 0) & ~np.isnan(kept[vectors.POSTERIOR_VARIANCE])
    return usable & (kept[aside] == 0) if aside else usable


READS = (vectors.POSTERIOR_MEAN, vectors.POSTERIOR_VARIANCE, vectors.UNKNOWN)


def _sums(engine: Engine, aside: str) -> tuple[Floats, Floats, Floats]:
    """Return number, mean, and variance (plus mean own variance) of the consensus of each panel."""
    reads = (*READS, *filter(None, (aside,)))

    def first(block: Block, kept: Kept) -> Visit:
        e, usable = kept[vectors.POSTERIOR_MEAN], _usable(kept, aside)
        rows = [usable.astype(np.float64), np.where(usable, e, 0.0), np.ones(len(e)), e]
        return Visit(panel_sums=np.stack([segment_sum(row, block.panel_questions) for row in rows]))

    count, total, every, whole = engine.sweep(first, reads=reads, answers=False).panel_sums
    # Where no variance is known the mean is that of all questions.
    mean = np.where(count > 0, total / np.maximum(count, 1.0), whole / np.maximum(every, 1.0))

    def second(block: Block, kept: Kept) -> Visit:
        away = kept[vectors.POSTERIOR_MEAN] - block.of_panel(mean)
        usable = _usable(kept, aside)
        square = np.where(usable, away**2 + kept[vectors.POSTERIOR_VARIANCE], 0.0)
        return Visit(panel_sums=segment_sum(square, block.panel_questions)[None])

    square = engine.sweep(second, reads=reads, answers=False).panel_sums[0]
    return count, mean, square / np.maximum(count, 1.0)


def _typical_variance(engine: Engine, aside: str) -> Floats:
    """Return the median of the variances of the consensus of each panel, NaN where none is known."""
    sample = sample_questions(engine, SEED)
    reads = (*READS, *filter(None, (aside,)), *sample.reads)

    def visit(block: Block, kept: Kept) -> Visit:
        inside = sample.inside(block, kept) & _usable(kept, aside)
        size = segment_sum(inside.astype(np.float64), block.panel_questions)
        return Visit(panel_sums=size[None], rows={"v": kept[vectors.POSTERIOR_VARIANCE][inside]})

    sweep = engine.sweep(visit, reads=reads, answers=False)
    sizes = sweep.panel_sums[0]
    return np.where(sizes > 0, medians(sweep.rows["v"], sizes), np.nan)
