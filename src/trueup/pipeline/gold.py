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
    from trueup.engines.protocol import Engine, Kept
    from trueup.pipeline.calibration import Calibration
    from trueup.request import Plan

TOO_FEW = f"at least {FEWEST} are needed to see the error that all workers share"


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


def calibrate_on_gold(engine: Engine) -> tuple[Calibration | None, str]:
    """Learn the error that all workers share from the gold questions; say what was found.

    What cannot be known without gold is part of the spread that gold shows; a shift that all questions share through
    the biases of the workers is part of the offset.
    """

    def known(block: Block, kept: Kept) -> Visit:  # noqa: ARG001
        has = ~np.isnan(kept[vectors.SCALED_GOLD])
        variance = np.where(kept[vectors.UNKNOWN] > 0, 0.0, kept[vectors.POSTERIOR_VARIANCE])
        variance = np.where(np.isnan(variance), 0.0, variance)
        return Visit(
            rows={
                vectors.POSTERIOR_MEAN: kept[vectors.POSTERIOR_MEAN][has],
                vectors.POSTERIOR_VARIANCE: variance[has],
                vectors.SCALED_GOLD: kept[vectors.SCALED_GOLD][has],
            }
        )

    reads = (
        vectors.SCALED_GOLD,
        vectors.POSTERIOR_MEAN,
        vectors.POSTERIOR_VARIANCE,
        vectors.UNKNOWN,
    )
    rows = engine.sweep(known, reads=reads, answers=False).rows
    calibration = calibrate(
        rows[vectors.POSTERIOR_MEAN], rows[vectors.POSTERIOR_VARIANCE], rows[vectors.SCALED_GOLD]
    )
    if calibration is None:
        return None, f"{counted(len(rows[vectors.SCALED_GOLD]), 'known truth')}: {TOO_FEW}"
    return calibration, str(calibration)
