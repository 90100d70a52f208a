"""Which scale? The answers as they are, or their logarithms: the likelihood of the native model decides.

Where answers are positive and errors grow in proportion to the value, equal error bars are wrong, and so is everything
that is built on them. The evidence for a scale is the log marginal likelihood of the native first step there. That of
logarithms is carried back to the answers by the Jacobian, with the prior of the truths kept flat on their own scale:

    evidence of logarithms = log likelihood - sum_ij log x_ij + sum_j (t_j + v_j/2),    over k_j >= 2

Logarithms are chosen where they are clearly better. What is estimated stays what the average worker would say: the way
back is `exp(t_j + s2/2)`, with s2 the variance of the logarithms of single answers around their truth.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from trueup.algorithms.answer_spread import NORMAL, medians
from trueup.algorithms.driver import run
from trueup.algorithms.native import Native
from trueup.answers.scale import PanelScales, Scale
from trueup.core.arrays import segment_sum
from trueup.engines import vectors
from trueup.engines.memory import MemoryEngine
from trueup.engines.protocol import Visit
from trueup.engines.question_sample import sample_questions
from trueup.errors import option
from trueup.pipeline.scaling import on_scale

if TYPE_CHECKING:
    from typing import Self

    from trueup.algorithms.contract import Algorithm
    from trueup.algorithms.driver import Aggregate
    from trueup.answers.block import Block
    from trueup.core.arrays import Bools, Floats
    from trueup.engines.protocol import Engine, Kept
    from trueup.request import Plan

#: Difference in log likelihood from which logarithms are chosen.
CLEAR = 10.0
#: Questions with two answers below which the answers stay as they are.
FEWEST_QUESTIONS = 8
#: Questions of a block that are looked at first for an answer of which there is no logarithm.
FIRST = 1000
#: Questions on which the scales are compared; of more a sample is taken.
MOST_QUESTIONS = 20_000
#: Logarithms are drawn in to this many robust standard deviations, and half their variance is at most this.
CLIP, MOST_SHIFT = 4.0, 0.4


@dataclass(frozen=True, eq=False)
class ScaleChoice:
    """The scale of each panel, and how clear the choice was.

    Attributes
    ----------
    scales : PanelScales
        The scale of each panel.
    gain : array or None
        How much larger the log likelihood of logarithms is, for each panel; NaN where it was not looked at; None: the
        scale was not chosen here.
    aggregate : Aggregate or None
        The outcome of the native first step on the scale that was chosen, if it looked at all answers in memory.
    """

    scales: PanelScales
    gain: Floats | None = None
    aggregate: Aggregate | None = None

    @classmethod
    def of(cls, scale: Scale) -> Self:
        """Return the choice of one scale for all panels."""
        return cls(PanelScales((scale,)))

    def first_step(self, algorithm: Algorithm, engine: Engine, rounds: int) -> Aggregate | None:
        """Return the outcome of a first step over an engine, where it has been computed for the comparison."""
        known = self.aggregate
        if known is None or algorithm != known.algorithm or rounds < (algorithm.max_updates or 0):
            return None
        for name, values in (
            (vectors.OFFSET, known.offset),
            (vectors.AGGREGATE, known.x),
            (vectors.MODEL_VARIANCE, known.variance),
        ):
            engine.keep(name, values)
        return replace(known, engine=engine)

    @property
    def said(self) -> str:
        """Which scale was used and why, in one sentence; empty if there is nothing to say."""
        return self._sentence("were")

    @property
    def announced(self) -> str:
        """The same before an estimate: which scale will be used."""
        return self._sentence("will be")

    def _sentence(self, verb: str) -> str:
        if self.gain is None or np.isnan(self.gain).all():
            return ""
        if len(self.gain) > 1:
            chosen = int((self.gain > CLEAR).sum())
            there = f"in {chosen:,} of {len(self.gain):,} panels"
            return f"answers {verb} combined as logarithms {there}" if chosen else ""
        gain = float(self.gain[0])
        if gain > CLEAR:
            text = (
                f"answers {verb} combined as logarithms because errors grow in proportion to the value (log likelihood "
                f"better by {gain:,.0f}); "
            )
            return text + option("transform", "none") + " combines them as they are"
        if gain > 0:
            text = (
                "errors may grow in proportion to the value, but this is not clear (log likelihood of logarithms "
                f"better by {min(gain, 9.9):.2g}, {CLEAR:g} needed); "
            )
            return text + option("transform", "proportional") + " combines logarithms"
        return ""


def choose_scale(engine: Engine, plan: Plan, *, gold: bool = False) -> ScaleChoice:
    """Return the scale of each panel: the one that was asked for, or the one that the answers speak for.

    With `gold` the engine keeps known truths; where one is not positive, logarithms are not considered.
    """
    if plan.scale is not None:
        return ScaleChoice.of(plan.scale)
    as_given = Scale(None, plan.bounds)
    if not plan.compares_scales or _has_known_variances(engine):
        return ScaleChoice.of(as_given)
    return compare_scales(engine, as_given, biases=plan.bias is not False, gold=gold)


def _has_known_variances(engine: Engine) -> bool:
    """Tell whether the caller gave variances: they are those of the answers as they are."""
    return engine.problem.worker_variance is not None or not np.isnan(engine.answer_variance)


def compare_scales(
    engine: Engine, as_given: Scale, *, biases: bool = True, gold: bool = False
) -> ScaleChoice:
    """Compare logarithms with the answers as they are, in panels where all answers are positive."""
    possible = _possible(engine, gold=gold)
    gain = np.full(len(possible), np.nan)
    logarithms = Scale("proportional", as_given.bounds)
    number, aggregate = possible.astype(np.int64), None
    if possible.any():
        sample = sample_questions(engine, 0, MOST_QUESTIONS)
        if sample.limit is not None:
            engine = MemoryEngine(engine.gather(sample.inside, sample.reads))
        algorithm = Native(biases=biases)
        scaled = run(algorithm, on_scale(engine, PanelScales((as_given, logarithms), number)))
        of_logarithms = _evidence(scaled) + _jacobian(scaled)
        plain = run(algorithm, engine)
        gain[possible] = (of_logarithms - _evidence(plain))[possible]
        if sample.limit is None and len(gain) == 1 and isinstance(engine, MemoryEngine):
            aggregate = scaled if gain[0] > CLEAR else plain
    with np.errstate(invalid="ignore"):
        chosen = gain > CLEAR
    if len(chosen) == 1:
        scale = logarithms if chosen[0] else as_given
        return ScaleChoice(PanelScales((scale,)), gain, aggregate)
    return ScaleChoice(PanelScales((as_given, logarithms), chosen.astype(np.int64)), gain)


def _possible(engine: Engine, *, gold: bool) -> Bools:
    """Return the panels in which all answers are positive, known truths too, and enough questions have several."""
    is_single = engine.problem.n_panels == 1

    def visit(block: Block, kept: Kept) -> Visit:
        # Where one answer is enough, it is mostly found among the first.
        if is_single and (_first_answers(block) <= 0).any():
            return Visit(panel_sums=np.array([[1.0], [0.0], [0.0]]))
        is_low = block.answers <= 0
        if is_single and is_low.any():
            return Visit(panel_sums=np.array([[1.0], [0.0], [0.0]]))
        low = block.by_question(is_low.astype(np.float64))
        if gold:
            low += kept[vectors.GOLD] <= 0
        rows = (low, block.informative * (block.std > 0), block.informative)
        return Visit(panel_sums=np.stack([segment_sum(row, block.panel_questions) for row in rows]))

    reads = (vectors.GOLD,) if gold else ()
    low, disagree, several = engine.sweep(visit, reads=reads).panel_sums
    possible: Bools = (low == 0) & (disagree > 0) & (several >= FEWEST_QUESTIONS)
    return possible


def _first_answers(block: Block) -> Floats:
    """Return the answers to the first questions of a block."""
    few = min(block.n_questions, FIRST)
    here = slice(int(block.indptr[few]))
    if block.given is not None:
        return block.given[here]
    values: Floats = block.values[here] + np.repeat(block.centre[:few], block.counts[:few])
    return values


def _evidence(aggregate: Aggregate) -> Floats:
    """Return the log of the summed likelihoods of each panel."""
    return aggregate.facts.of_panels(aggregate.state["evidence"])


def _jacobian(aggregate: Aggregate) -> Floats:
    """Return `sum_j (t_j + v_j/2) - sum_ij log x_ij` of each panel, over questions with two answers."""

    def visit(block: Block, kept: Kept) -> Visit:
        variance = np.nan_to_num(kept[vectors.MODEL_VARIANCE])
        own = kept[vectors.AGGREGATE] + 0.5 * variance - block.by_question(block.answers)
        return Visit(panel_sums=segment_sum(block.informative * own, block.panel_questions)[None])

    reads = (vectors.AGGREGATE, vectors.MODEL_VARIANCE)
    total: Floats = aggregate.engine.sweep(visit, reads=reads).panel_sums[0]
    return total


def with_average_worker(engine: Engine, scales: PanelScales) -> PanelScales:
    """Return the scales with the way back to what the average worker would say.

    `engine` has the answers on the scale, and keeps the outcome of the first step. The shift is s2/2 with

        r_ij = (log x_ij - t_j) sqrt(k_j/(k_j - 1)),    s2 = mean of clip(r, +-4 c)^2,    c = 1.4826 median |r|

    over questions with two answers, and at most 0.4.
    """
    if all(scale.transform != "proportional" for scale in scales.scales):
        return scales
    sample = sample_questions(engine, 0)

    def residuals(block: Block, kept: Kept) -> tuple[Floats, Bools]:
        counts = block.counts
        factor = np.sqrt(counts / np.maximum(counts - 1.0, 1.0))
        rest = np.abs(block.residuals(kept[vectors.AGGREGATE] - block.centre))
        return rest * block.spread(factor), block.spread(block.informative) > 0

    def distances(block: Block, kept: Kept) -> Visit:
        rest, several = residuals(block, kept)
        inside = sample.inside(block, kept)
        size = segment_sum(inside * block.informative * block.counts, block.panel_questions)
        return Visit(
            panel_sums=size[None],
            rows={"distance": rest[several & np.repeat(inside, block.counts)]},
        )

    sweep = engine.sweep(distances, reads=(vectors.AGGREGATE, *sample.reads))
    limit = CLIP * NORMAL * medians(sweep.rows["distance"], sweep.panel_sums[0])

    def squares(block: Block, kept: Kept) -> Visit:
        rest, _ = residuals(block, kept)
        rest = np.minimum(rest, block.spread(block.of_panel(limit)))
        rows = (block.by_question(rest * rest), block.counts.astype(np.float64))
        sums = [segment_sum(row * block.informative, block.panel_questions) for row in rows]
        return Visit(panel_sums=np.stack(sums))

    total, count = engine.sweep(squares, reads=(vectors.AGGREGATE,)).panel_sums
    s2 = np.divide(total, count, out=np.zeros(len(count)), where=count > 0)
    shift = np.minimum(0.5 * s2, MOST_SHIFT)
    number = np.zeros(len(shift), dtype=np.int64) if scales.number is None else scales.number
    proportional = np.array([scale.transform == "proportional" for scale in scales.scales])
    return scales.shifted(np.where(proportional[number], shift, 0.0))
