"""Answers and known truths on the scale on which they are combined, on any engine.

Engines keep answers as given. What is combined is a view on their blocks (`trueup.answers.scale.PanelScales`), made
here after a pass that finds the answers which have no place on the scale.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from trueup.answers.build import NAMED
from trueup.answers.faults import listed_answers
from trueup.answers.scale import PanelScales, unfit_truth
from trueup.core.arrays import segment_sum
from trueup.engines import vectors
from trueup.engines.memory import MemoryEngine
from trueup.engines.protocol import Visit
from trueup.errors import AnswersError, TrueupError, counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.answers.answers import Answers
    from trueup.answers.block import Block
    from trueup.answers.scale import Scale
    from trueup.core.arrays import Bools, Floats
    from trueup.engines.protocol import Engine, Kept
    from trueup.request import Plan

#: Seed of the draw of the question that an error names; every engine names the same one.
SEED = 0


def on_scale(engine: Engine, scales: PanelScales) -> Engine:
    """Return an engine over the same answers on the scale of each panel.

    Precisions of answers are carried along to first order and keep their mean of 1.

    Raises
    ------
    AnswersError
        When a scale cannot take some answers: how many, and worker and question of a few.
    """
    if not scales.transforms:
        return engine

    def check(block: Block, kept: Kept) -> Visit:  # noqa: ARG001
        outside = scales.outside(block)
        precision = np.zeros(len(outside))
        if block.precision is not None:
            with np.errstate(all="ignore"):
                precision = block.precision * scales.precision_factor(block)
        unusable = (block.precision is not None) & ~((precision > 0) & np.isfinite(precision))
        per_answer = np.stack([outside, unusable & ~outside, np.where(unusable, 0.0, precision)])
        questions = [block.by_question(each.astype(np.float64)) for each in per_answer]
        return Visit(
            panel_sums=np.stack([segment_sum(each, block.panel_questions) for each in questions])
        )

    outside, unusable, total = engine.sweep(check).panel_sums.sum(axis=1).tolist()
    n_answers = engine.problem.n_answers
    if outside:
        raise _outside_error(engine, scales, int(outside))
    if unusable:
        raise AnswersError(
            f"{int(unusable):,} of {n_answers:,} variances are too small or too large for a number on "
            "the scale of the transform.",
            argument="answer_variance",
            remedy="Choose another transform.",
        )
    unit = total / n_answers or 1.0

    def view(block: Block, kept: Kept) -> Block:  # noqa: ARG001
        return scales.view(block, unit)

    return engine.changed(view, answer_variance=engine.answer_variance / unit)


def answers_on_scale(answers: Answers, scale: Scale) -> Answers:
    """Return answers in memory on a scale: values relative to the centre of their question there."""
    return on_scale(MemoryEngine(answers), PanelScales((scale,))).gather()


def keep_gold(engine: Engine, scales: PanelScales, argument: str = "gold") -> None:
    """Let the engine keep the known truths on the scale of each panel; check that they are possible there."""

    def carry(block: Block, kept: Kept) -> Visit:
        truths = kept[vectors.GOLD]
        unfit = scales.unfit_truths(block, truths)
        with np.errstate(all="ignore"):
            scaled = scales.forward_truths(block, truths)
        return Visit(
            panel_sums=segment_sum(unfit.astype(np.float64), block.panel_questions)[None],
            questions={vectors.SCALED_GOLD: scaled},
        )

    if engine.sweep(carry, reads=(vectors.GOLD,), answers=False).panel_sums.any():

        def unfit(block: Block, kept: Kept) -> Bools:
            return scales.unfit_truths(block, kept[vectors.GOLD])

        example = _example(engine, scales, unfit, vectors.GOLD)
        question = example.answers.question_ids.tolist()[0]
        raise unfit_truth(question, example.number, example.scale, argument)


def _outside_error(engine: Engine, scales: PanelScales, count: int) -> AnswersError:
    def has_outside(block: Block, kept: Kept) -> Bools:  # noqa: ARG001
        return block.by_question(scales.outside(block).astype(np.float64)) > 0

    answers, scale, _ = _example(engine, scales, has_outside)
    outside = np.flatnonzero(scale.outside(answers.answers))
    indices = outside[np.argsort(answers.worker_rank[answers.workers[outside]])[:NAMED]]
    workers = answers.worker_ids.tolist(answers.workers[indices])
    questions = answers.question_ids.tolist()[:1] * len(workers)
    named = listed_answers(workers, questions, answers.answers[indices].tolist())
    return AnswersError(
        f"{scale.transform} needs answers {scale.domain}; {count:,} of {engine.problem.n_answers:,} are "
        f"not, such as {named}.",
        argument="transform",
        remedy="Drop or mend these answers, or choose another transform.",
    )


class _Example(NamedTuple):
    """A question that an error names: its answers, its scale, and a number kept of it."""

    answers: Answers
    scale: Scale
    number: float


def _example(
    engine: Engine,
    scales: PanelScales,
    marked: Callable[[Block, Kept], Bools],
    kept_as: str = vectors.DRAW,
) -> _Example:
    """Bring one of the marked questions here, the same one from every engine."""
    engine.draw(SEED)

    def smallest(block: Block, kept: Kept) -> Visit:
        indices = np.flatnonzero(marked(block, kept))
        indices = indices[np.argsort(kept[vectors.DRAW][indices])[:1]]
        number = scales.number_of(block).astype(np.float64)
        columns: dict[str, Floats] = {"draw": kept[vectors.DRAW], "scale": number}
        columns["number"] = kept[kept_as]
        return Visit(rows={name: column[indices] for name, column in columns.items()})

    reads = tuple({vectors.DRAW, kept_as})
    rows = engine.sweep(smallest, reads=reads).rows
    first = int(np.argmin(rows["draw"]))
    draw = float(rows["draw"][first])
    answers = engine.gather(lambda block, kept: kept[vectors.DRAW] == draw, (vectors.DRAW,))  # noqa: ARG005
    return _Example(answers, scales.scales[int(rows["scale"][first])], float(rows["number"][first]))


def check_bounds(engine: Engine, plan: Plan) -> str:
    """Count the answers outside the bounds; return a warning, nothing where all are inside.

    Raises
    ------
    TrueupError
        When all answers are outside: then the bounds are those of another scale.
    """
    if plan.bounds is None:
        return ""
    low, high = map(float, plan.bounds)

    def count(block: Block, kept: Kept) -> Visit:  # noqa: ARG001
        values = block.answers
        outside = ((values < low) | (values > high)).astype(np.float64)
        questions = (block.by_question(outside), block.counts.astype(np.float64))
        return Visit(
            panel_sums=np.stack([segment_sum(each, block.panel_questions) for each in questions])
        )

    outside, total = (int(each) for each in engine.sweep(count).panel_sums.sum(axis=1))
    if not outside:
        return ""
    found = f"{outside:,} of {counted(total, 'answer')} are outside the bounds {low:g} to {high:g}"
    if outside == total:
        raise TrueupError(
            f"{found}.",
            argument="bounds",
            remedy="Give bounds on the scale of the answers, or leave them out.",
        )
    return f"{found}; estimates are kept inside all the same"
