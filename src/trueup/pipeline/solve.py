"""The two steps joined, on any engine: from blocks of answers to the numbers of each question and worker.

`trueup.estimate` runs it in memory, `trueup.disk` and `trueup.spark` elsewhere. The numbers of each question stay with
the engine; `trueup.pipeline.solution.COLUMNS` names the final ones.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from trueup.algorithms.driver import run
from trueup.core.arrays import segment_sum
from trueup.engines import vectors
from trueup.engines.memory import MemoryEngine
from trueup.engines.protocol import Visit
from trueup.errors import option, warn
from trueup.pipeline.diagnosis import Diagnosis
from trueup.pipeline.finish import Finish
from trueup.pipeline.first_step import biases_of, choose_first_step, models_in_words
from trueup.pipeline.gold import calibrate_on_gold, learn_from_gold, lesson_from_gold
from trueup.pipeline.outlook import Outlook, look_ahead, target_in_words
from trueup.pipeline.rough import rough_in_words
from trueup.pipeline.scale_choice import ScaleChoice, choose_scale, with_average_worker
from trueup.pipeline.scaling import check_bounds, keep_gold, on_scale
from trueup.pipeline.shrink import second_step
from trueup.pipeline.solution import Solution
from trueup.pipeline.target import choose_target
from trueup.pipeline.truths import GoldQuestions, TruthModels, answer_scatter, crowd_numbers

if TYPE_CHECKING:
    from trueup.algorithms.contract import Algorithm
    from trueup.algorithms.driver import Aggregate
    from trueup.algorithms.worker_fit import StartingPoint
    from trueup.answers.block import Block
    from trueup.answers.scale import Scale
    from trueup.core.progress import Progress
    from trueup.engines.protocol import Engine, Kept
    from trueup.io.question_data import QuestionData
    from trueup.pipeline.shrunk import SecondStepResult
    from trueup.request import Plan
    from trueup.shrinkage.adaptive_prior import PriorChoice

INTERVALS = (
    "lower and upper show how far an estimate may be from what infinitely many such workers would say on average; "
    "an error that all workers share is not included"
)
NO_OVERLAP = (
    "where no question has two answers the workers cannot be compared: intervals are unknown there"
)
POINT_ONLY = "this second step gives estimates without intervals; its positive part has them"
NO_WEIGHTS = "intervals are unknown: the method does not say how much each answer counts"
# A worker with more than this share of all weight decides nearly alone.
DICTATOR = 0.9
# Moves of a truth, in pooled standard deviations, that are worth a warning.
NOT_SETTLED = 1e-2


def solve(
    engine: Engine,
    plan: Plan,
    bar: Progress,
    data: QuestionData | None = None,
    *,
    gold: bool = False,
    algorithm: Algorithm | None = None,
    start: StartingPoint | None = None,
    prior_choice: PriorChoice | None = None,
    scale: Scale | None = None,
) -> Solution:
    """Run both steps.

    Parameters
    ----------
    engine : Engine
        The answers as given.
    plan : Plan
        What is to be done.
    bar : Progress
        Shows how far it is.
    data : QuestionData, optional
        Groups, covariates and known truths, unless the engine keeps them already.
    gold : bool
        Whether the engine keeps known truths already.
    algorithm : Algorithm, optional
        The first step that was chosen before, if it is not to be chosen again.
    start : StartingPoint, optional
        What an earlier run found out about the workers; the first step continues from there.
    prior_choice : PriorChoice, optional
        The prior that was chosen before, if it is not to be chosen again.
    scale : Scale, optional
        The scale that was chosen before, if it is not to be chosen again.
    """
    beyond = check_bounds(engine, plan)
    if data is not None and data.gold is not None:
        engine.keep(vectors.GOLD, data.gold)
        gold = True
    gold = gold and _knows_truths(engine)
    chosen = choose_scale(engine, plan, gold=gold) if scale is None else ScaleChoice.of(scale)
    scales, scaled = chosen.scales, on_scale(engine, chosen.scales)
    if gold:
        keep_gold(scaled, scales)
    first = choose_first_step(scaled, plan, bar, algorithm)
    algorithm, combined, pooling = first.algorithm, first.combined, first.pooling
    lesson = lesson_from_gold(combined, plan) if gold else None
    aggregate = None
    if combined is scaled and lesson is None:
        aggregate = chosen.first_step(algorithm, combined, plan.max_iter)
    if aggregate is None:
        aggregate = run(
            algorithm,
            combined,
            train_on=lesson,
            max_iter=plan.max_iter,
            tol=plan.tol,
            start=start,
            callback=partial(_note, bar, algorithm.name),
        )
    bar.step(f"first step: {algorithm.name}")
    scales = with_average_worker(scaled, scales)
    if gold:
        keep_gold(scaled, scales)
    warnings = _warnings(aggregate)
    for text in warnings:
        warn(text)
    own = aggregate.algorithm.concludes
    shrunk = second_step(
        combined.gather() if isinstance(combined, MemoryEngine) else None,
        aggregate,
        plan.rule,
        plan.variance,
        groups=None if data is None or data.groups is None else data.groups.codes,
        covariates=None if data is None or data.covariates is None else data.covariates.values,
        noise=first.noise if pooling is None and (own or aggregate.bias is None) else None,
        biases=first.biases,
        prior_choice=prior_choice,
        seed=plan.seed,
    )
    bar.step(f"second step: {plan.rule.name}")
    target = choose_target(engine, plan, gold=gold)
    kinds = [plan.kind if truth else None for truth in target.truth]
    numbers = crowd_numbers(
        combined, answer_scatter(scaled), shrunk.certainty.shift, shrunk.certainty.aside
    )
    known, calibration, gold_says = None, None, ""
    if gold and target.applies:
        known = GoldQuestions.of(combined)
        model, calibration, gold_says = learn_from_gold(
            known, numbers[0], plan.level, kinds[0], scales.first
        )
        models = TruthModels([model])
    elif gold:
        calibration, gold_says = calibrate_on_gold(GoldQuestions.of(combined), scales.first)
        models = TruthModels([None])
    else:
        each = zip(numbers, kinds, strict=True)
        models = TruthModels([panel.model(None, plan.level, kind) for panel, kind in each])
    finish = Finish(plan, shrunk, scales, target, models, calibration, gold)
    moved, change = finish.keep_in(combined)
    ahead = None
    if len(numbers) == 1 and target.applies:
        model = models.models[0]
        ahead = partial(
            look_ahead, plan, scales.first, numbers[0], model, known, calibration, change
        )
    diagnosis = Diagnosis(
        method=algorithm.name or type(algorithm).__name__,
        shrink=plan.rule.name or type(plan.rule).__name__,
        iterations=int(aggregate.iterations.max(initial=0)),
        settled=bool(aggregate.settled.all()),
        why=first.why,
        models=models_in_words(aggregate),
        transform=scales.first.transform or "none",
        scale=chosen.said,
        pooling="" if pooling is None else pooling.said,
        target=target_in_words(
            target, plan, None if ahead is None else ahead(more=0), alone=bool(shrunk.alone.all())
        ),
        second_step=shrunk.in_words(moved, independent=target.name == "consensus"),
        gold="; ".join(filter(None, (gold_says, ahead().next_gold if gold and ahead else ""))),
        assumptions=() if finish.holds_truth else _assumptions(shrunk),
        warnings=(*([beyond] if beyond else []), *warnings, *_reversed(shrunk)),
        rough=rough_in_words(shrunk, aggregate.facts),
    )
    if pooling is not None:
        aggregate = pooling.share(aggregate, shrunk.noise, first.unbiased)
        shrunk = replace(shrunk, noise=None)
    return Solution(
        plan=plan,
        root=engine,
        scaled=scaled,
        engine=combined,
        scales=scales,
        aggregate=aggregate,
        shrunk=lambda: shrunk,
        target=target.name if target.applies else "",
        look_ahead=Outlook if ahead is None else ahead,
        prior_choice=shrunk.prior_choice,
        biases=first.biases or biases_of(aggregate),
        calibration=calibration,
        pooling=pooling,
        diagnosis=diagnosis,
        is_plain=combined is scaled and not gold,
    )


def _note(bar: Progress, name: str, count: int, _move: float) -> None:
    bar.note(f"{name}, iteration {count}")


def _assumptions(moved: SecondStepResult) -> tuple[str, ...]:
    """Say what the numbers rest on; the first sentence is about the intervals."""
    if moved.alone.any():
        return INTERVALS, NO_OVERLAP
    if moved.totals.unknown.any():
        return INTERVALS, NO_WEIGHTS
    if moved.totals.pointless.any():
        return INTERVALS, POINT_ONLY
    return (INTERVALS,)


def _reversed(moved: SecondStepResult) -> tuple[str, ...]:
    """Warn where the second step moved questions past their centre."""
    there = moved.totals.past > 0
    if not there.any():
        return ()
    where = f" in {there.sum()} of {len(there)} panels" if len(there) > 1 else ""
    text = (
        f"the second step moved questions past their mean and so reversed their order{where} (shrinkage "
        f"{moved.totals.farthest.max():.3g}); the variance is too large for it, take "
        + option("variance", "plugin")
        + " or the positive part"
    )
    warn(text)
    return (text,)


def _warnings(aggregate: Aggregate) -> tuple[str, ...]:
    """Say what a user should know before trusting the numbers."""
    said: list[str] = []
    facts = aggregate.facts
    if facts.worker_variance is not None and not aggregate.algorithm.uses_variance:
        said.append(
            f"worker_variance is not used: {aggregate.algorithm.name} learns the variances of workers itself; use "
            + option("method", "blue")
            + " for known ones"
        )
    moving = ~aggregate.settled & (aggregate.moved > NOT_SETTLED)
    if moving.any():
        where = f" in {moving.sum()} of {len(moving)} panels" if len(moving) > 1 else ""
        said.append(
            f"the method had not converged{where} after {aggregate.iterations.max()} iterations (last move "
            f"{aggregate.moved.max():.2g} standard deviations of an answer); raise max_iter or choose another "
            "method"
        )
    if aggregate.algorithm.iterates:
        several = facts.panel_sum(facts.informative) > 1
        top = facts.panel_max(aggregate.weight * facts.informative)
        share = top / np.maximum(facts.panel_sum(aggregate.weight * facts.informative), 1e-300)
        ruled = several & (share > DICTATOR)
        if ruled.any():
            where = f" in {ruled.sum()} of {len(ruled)} panels" if len(ruled) > 1 else ""
            said.append(
                f"one worker has more than {DICTATOR:.0%} of the weight{where}: the truths are nearly that "
                "worker's answers"
            )
    return tuple(said)


def _knows_truths(engine: Engine) -> bool:
    """Tell whether any truth is known: a mapping may hold none."""

    def count(block: Block, kept: Kept) -> Visit:
        known = (~np.isnan(kept[vectors.GOLD])).astype(np.float64)
        return Visit(panel_sums=segment_sum(known, block.panel_questions)[None])

    return bool(engine.sweep(count, reads=(vectors.GOLD,), answers=False).panel_sums.any())
