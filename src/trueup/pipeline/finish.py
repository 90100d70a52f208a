"""The numbers to report, in the units of the answers: from both steps, the target, and what known truths taught."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trueup.core.arrays import segment_sum
from trueup.engines import vectors
from trueup.engines.protocol import Visit
from trueup.errors import TrueupError, option
from trueup.pipeline.truths import TOO_FAR
from trueup.variance.intervals import student_quantile

if TYPE_CHECKING:
    from trueup.answers.block import Block
    from trueup.answers.scale import PanelScales
    from trueup.core.arrays import Floats
    from trueup.engines.protocol import Engine, Kept
    from trueup.pipeline.calibration import Calibration
    from trueup.pipeline.shrunk import SecondStepResult
    from trueup.pipeline.target import Target
    from trueup.pipeline.truths import TruthModels
    from trueup.request import Plan

READS = (
    vectors.POSTERIOR_MEAN,
    vectors.POSTERIOR_VARIANCE,
    vectors.UNKNOWN,
    vectors.SHRINKAGE,
    vectors.AGGREGATE,
    vectors.AGGREGATE_VARIANCE,
)


@dataclass(frozen=True, eq=False)
class Finish:
    """What the final numbers follow from.

    Attributes
    ----------
    plan : Plan
        Level and caution.
    moved : SecondStepResult
        The outcome of the second step, in full.
    scales : PanelScales
        The way back to the answers.
    target : Target
        What is estimated.
    models : TruthModels
        What crowds like this one say about truths.
    calibration : Calibration or None
        The correction by known truths, where it is better than the model.
    gold : bool
        Whether some truths are known.
    """

    plan: Plan
    moved: SecondStepResult
    scales: PanelScales
    target: Target
    models: TruthModels
    calibration: Calibration | None
    gold: bool

    @property
    def holds_truth(self) -> bool:
        """Whether `lower` and `upper` are made to hold the truth: where known truths show how far it may be."""
        if not self.target.applies:
            return self.calibration is not None
        learned = self.calibration is not None or bool(self.models.known.all())
        return self.gold and learned and bool(self.target.truth.all())

    def keep_in(self, engine: Engine) -> tuple[float, float]:
        """Let the engine keep the numbers to report.

        Returns
        -------
        moved, change : float
            How far estimates were moved on average, as a share of the way, and by how much the other target would
            change them, in answer units (NaN where it would be as it is).
        """
        reads = (*READS, vectors.SCALED_GOLD) if self.gold else READS
        sums = engine.sweep(self._visit, reads=reads, answers=False).panel_sums.sum(axis=1)
        wrong, too_large, moved, change = sums.tolist()
        if wrong:
            raise TrueupError(TOO_FAR, argument="gold")
        if too_large:
            raise TrueupError(
                "an estimate or interval end is too large for a number when carried back.",
                argument="transform",
                remedy="Give " + option("bounds") + ", or combine the answers on another scale.",
            )
        count = engine.problem.n_questions
        return float(moved) / count, float(change) / count

    def _visit(self, block: Block, kept: Kept) -> Visit:
        scales, found = self.scales, self._on_scale(block, kept)
        reported = {
            vectors.ESTIMATE: scales.backward(block, found["mean"]),
            vectors.LOWER: scales.backward(block, found["lower"]),
            vectors.UPPER: scales.backward(block, found["upper"]),
            vectors.TRUTH_LOWER: scales.backward(block, found["truth_lower"]),
            vectors.TRUTH_UPPER: scales.backward(block, found["truth_upper"]),
            vectors.STD_ERROR: found["std_error"] * scales.slope(block, found["mean"]),
            vectors.FIRST: scales.backward(block, kept[vectors.AGGREGATE]),
            vectors.FIRST_STD_ERROR: found["base_error"]
            * scales.slope(block, kept[vectors.AGGREGATE]),
            vectors.MOVED: found["shrinkage"],
        }
        ends = (vectors.ESTIMATE, vectors.UPPER, vectors.TRUTH_UPPER)
        too_large = np.any([np.isinf(reported[name]) for name in ends], axis=0)
        wrong = ~np.isfinite(found["mean"])
        other = np.abs(reported[vectors.ESTIMATE] - scales.backward(block, found["other"]))
        rows = [
            wrong.astype(float),
            (too_large & ~wrong).astype(float),
            found["shrinkage"],
            np.where(np.isfinite(other), other, 0.0),
        ]
        sums = [segment_sum(row, block.panel_questions) for row in rows]
        return Visit(panel_sums=np.stack(sums), questions=reported)

    def _on_scale(self, block: Block, kept: Kept) -> dict[str, Floats]:
        """Return the numbers to report on the scale on which answers were combined."""
        plan, moved = self.plan, self.moved
        aggregate, consensus, variance, shrinkage = (
            kept[vectors.AGGREGATE],
            kept[vectors.POSTERIOR_MEAN],
            kept[vectors.POSTERIOR_VARIANCE],
            kept[vectors.SHRINKAGE],
        )
        unknown = kept[vectors.UNKNOWN] > 0
        shared = block.of_panel(moved.certainty.shift)
        error = np.sqrt(np.where(unknown, np.nan, variance + shared))
        quantile = moved.width(plan.level).quantile(variance, block.of_panel, shrinkage)
        half = quantile * error
        mean, other, taken, truth_mean, truth_half = self._truths(block, kept)
        found = {
            "mean": mean,
            "other": other,
            "lower": np.minimum(consensus - half, mean),
            "upper": np.maximum(consensus + half, mean),
            "truth_lower": np.minimum(truth_mean - truth_half, mean),
            "truth_upper": np.maximum(truth_mean + truth_half, mean),
            "std_error": error,
            "base_error": np.sqrt(
                np.where(unknown, np.nan, kept[vectors.AGGREGATE_VARIANCE]) + shared
            ),
            "shrinkage": taken * shrinkage,
        }
        if self.gold:
            found = self._with_gold(found, kept, truth_half)
        return found | {"aggregate": aggregate}

    def _truths(self, block: Block, kept: Kept) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Return estimates, those of the other target, the share of the second step that is taken, and the truth.

        The truth is told by the centre and the half width of its interval.
        """
        aggregate, consensus, shrinkage = (
            kept[vectors.AGGREGATE],
            kept[vectors.POSTERIOR_MEAN],
            kept[vectors.SHRINKAGE],
        )
        variance = np.where(kept[vectors.UNKNOWN] > 0, np.nan, kept[vectors.POSTERIOR_VARIANCE])
        caution = 1.0 if self.plan.caution is None else float(self.plan.caution)
        full = aggregate + caution * (consensus - aggregate)
        nothing, whole = np.full(len(full), np.nan), np.ones(len(full))
        if self.calibration is not None:
            centre, square, freedom = self.calibration.apply(consensus, np.nan_to_num(variance))
            half = student_quantile(0.5 + 0.5 * self.plan.level, freedom) * np.sqrt(square)
            if not self.target.applies:
                return centre, nothing, whole, centre, half
            estimate, share, known = centre, whole, np.ones(len(full), dtype=bool)
        elif self.target.applies:
            model = self.models.of(block)
            centre, deviation = model.predict(
                consensus, np.where(np.isnan(variance), model.typical, variance)
            )
            half = model.quantile * deviation
            estimate = model.estimate(aggregate, consensus, shrinkage, caution)
            share, known = caution * model.step(shrinkage), ~np.isnan(model.unit)
        else:
            return consensus, nothing, whole, nothing, nothing
        is_truth = block.of_panel(self.target.truth) & known
        return (
            np.where(is_truth, estimate, full),
            np.where(known, np.where(is_truth, full, estimate), np.nan),
            np.where(is_truth, share, caution),
            np.where(known, centre, np.nan),
            np.where(known, half, np.nan),
        )

    def _with_gold(
        self, found: dict[str, Floats], kept: Kept, truth_half: Floats
    ) -> dict[str, Floats]:
        """Return the numbers with known truths in their place; with gold the interval is that for the truth."""
        truth = kept[vectors.SCALED_GOLD]
        is_gold = ~np.isnan(truth)
        if self.holds_truth:
            normal = student_quantile(0.5 + 0.5 * self.plan.level, np.array([np.inf]))[0]
            found["lower"], found["upper"] = found["truth_lower"], found["truth_upper"]
            found["std_error"] = truth_half / normal
        if not self.target.applies:
            nothing = np.full(len(truth), np.nan)
            found["truth_lower"], found["truth_upper"] = nothing, nothing
        for name in ("mean", "other", "lower", "upper", "truth_lower", "truth_upper"):
            found[name] = np.where(is_gold, truth, found[name])
        for name in ("std_error", "shrinkage"):
            found[name] = np.where(is_gold, 0.0, found[name])
        return found
