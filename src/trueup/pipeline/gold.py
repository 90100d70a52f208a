"""Known truths: what they teach about the workers, and about the error that all workers share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trueup.algorithms.driver import run
from trueup.algorithms.registry import find
from trueup.engines import vectors
from trueup.engines.protocol import Visit
from trueup.errors import counted
from trueup.pipeline.calibration import FEWEST, MANY, calibrate, consensus, one_more_worker

if TYPE_CHECKING:
    from trueup.answers.block import Block
    from trueup.answers.scale import Scale
    from trueup.engines.protocol import Engine, Kept
    from trueup.pipeline.calibration import Calibration
    from trueup.pipeline.crowd_prior import TruthModel
    from trueup.pipeline.truths import CrowdNumbers, GoldQuestions
    from trueup.request import Plan

TOO_FEW = "at least 3 are needed where no question has two answers"
FEW_FOR_RULE = f"at least {FEWEST} are needed with this second step"
#: Most known truths that are left out in turn to compare the model with the calibration.
MOST_LEFT_OUT = 40


def lesson_from_gold(engine: Engine, plan: Plan) -> Engine | None:
    """Return answers to learn the workers from, where enough truths are known to help with that."""

    def known(block: Block, kept: Kept) -> Visit:  # noqa: ARG001
        has = ~np.isnan(kept[vectors.SCALED_GOLD])
        return Visit(rows={name: each[has] for name, each in kept.items()})

    if (
        len(
            engine.sweep(known, reads=(vectors.SCALED_GOLD,), answers=False).rows[
                vectors.SCALED_GOLD
            ]
        )
        < MANY
    ):
        return None
    run(find("mean"), engine, max_iter=plan.max_iter, tol=plan.tol)
    rows = engine.sweep(
        known, reads=(vectors.SCALED_GOLD, vectors.AGGREGATE, vectors.MODEL_VARIANCE), answers=False
    ).rows
    variance = np.where(np.isnan(rows[vectors.MODEL_VARIANCE]), 0.0, rows[vectors.MODEL_VARIANCE])
    expected, _ = consensus(rows[vectors.AGGREGATE], variance, rows[vectors.SCALED_GOLD])
    # Known truths and what the crowd is expected to say of them, in rising order of the truths.
    order = np.argsort(rows[vectors.SCALED_GOLD], kind="stable")
    truth, said = rows[vectors.SCALED_GOLD][order], expected[order]

    def tell(block: Block, kept: Kept) -> Visit:  # noqa: ARG001
        gold = kept[vectors.SCALED_GOLD]
        at = np.minimum(np.searchsorted(truth, gold), len(truth) - 1)
        return Visit(questions={vectors.EXPECTED: np.where(np.isnan(gold), np.nan, said[at])})

    engine.sweep(tell, reads=(vectors.SCALED_GOLD,), answers=False)
    return one_more_worker(engine)


def learn_from_gold(
    gold: GoldQuestions, numbers: CrowdNumbers, level: float, kind: str | None, scale: Scale
) -> tuple[TruthModel | None, Calibration | None, str]:
    """Return the model of the crowd with known truths, the calibration if that is better, and what was found.

    From eight known truths on both compete: each known truth is predicted from the others, and the calibration wins if
    its squared errors are smaller by more than a standard error.
    """
    model = numbers.model(gold, level, kind)
    calibration = _calibrated(gold)
    if calibration is not None and (model is None or _calibration_wins(gold, numbers, level, kind)):
        return model, calibration, calibration.in_words(scale)
    if model is None:
        return None, None, f"{counted(len(gold.truth), 'known truth')}: {TOO_FEW}"
    return model, None, _said(model, len(gold.truth), scale)


def calibrate_on_gold(gold: GoldQuestions, scale: Scale) -> tuple[Calibration | None, str]:
    """Return the calibration of a second step that knows no target, and what was found."""
    calibration = _calibrated(gold)
    if calibration is None:
        return None, f"{counted(len(gold.truth), 'known truth')}: {FEW_FOR_RULE}"
    return calibration, calibration.in_words(scale)


def _calibrated(gold: GoldQuestions, fewest: int = FEWEST) -> Calibration | None:
    """Calibrate; what is unknown without gold is part of the spread that gold shows."""
    variance = np.where(np.isnan(gold.variance), 0.0, gold.variance)
    return calibrate(gold.consensus, variance, gold.truth, fewest=fewest)


def _calibration_wins(
    gold: GoldQuestions, numbers: CrowdNumbers, level: float, kind: str | None
) -> bool:
    count = len(gold.truth)
    errors = []
    for number in np.unique(np.linspace(0, count - 1, min(count, MOST_LEFT_OUT)).astype(int)):
        others = gold.without(number)
        own = slice(number, number + 1)
        calibration = _calibrated(others, FEWEST - 1)
        model = numbers.model(others, level, kind)
        if calibration is None or model is None:
            return False
        mine = model.estimate(gold.aggregate[own], gold.consensus[own], gold.shrinkage[own])
        theirs, _, _ = calibration.apply(gold.consensus[own], np.nan_to_num(gold.variance[own]))
        errors.append([float(each[0] - gold.truth[number]) for each in (mine, theirs)])
    error = np.array(errors)
    # Squares of squares: in units of the largest error they are numbers.
    error /= np.abs(error).max() or 1.0
    gap = error[:, 0] ** 2 - error[:, 1] ** 2
    return bool(gap.mean() > gap.std(ddof=1) / np.sqrt(len(gap)))


def _said(model: TruthModel, count: int, scale: Scale) -> str:
    """Say what known truths showed."""
    slope = float(model.slope)
    words = "understate" if slope > 1 else "overstate"
    return (
        f"{counted(count, 'known truth')}: these workers {words} differences by about "
        f"{abs(1 - 1 / slope):.0%}, and single questions are off by about "
        f"{scale.distance_in_words(float(model.unit * model.spread))} beyond that"
    )
