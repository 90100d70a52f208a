"""The second step on the outcome of any first step: variances, halves, prior, posterior."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.algorithms.native import FREEDOM_SHARE
from trueup.core.arrays import offsets, segment_max, segment_sum
from trueup.engines import vectors
from trueup.engines.protocol import Visit
from trueup.engines.question_sample import sample_questions
from trueup.engines.vectors import QuestionVectors
from trueup.pipeline.shrunk import SecondStepResult, Totals
from trueup.pipeline.split_halves import halve
from trueup.shrinkage.adaptive_prior import PriorChoice
from trueup.shrinkage.contract import Posterior
from trueup.variance import Certainty, certainty
from trueup.variance.moderated import keep_bias_variance, moderated
from trueup.variance.worker_noise import noise_behind

if TYPE_CHECKING:
    from trueup.algorithms.driver import Aggregate
    from trueup.answers.answers import Answers
    from trueup.answers.block import Block
    from trueup.core.arrays import Bools, Floats, Ints
    from trueup.engines.protocol import Engine, Kept
    from trueup.engines.question_sample import QuestionSample
    from trueup.shrinkage import Prior, ShrinkRule
    from trueup.variance import WorkerNoise
    from trueup.variance.bias import Biases


#: What the engine keeps of questions that a single answer made gross.
OF_ABSURD = (vectors.OTHERS_LOWEST, vectors.OTHERS_HIGHEST)


def second_step(
    answers: Answers | None,
    aggregate: Aggregate,
    rule: ShrinkRule,
    variance: Any = None,
    *,
    groups: Ints | None = None,
    covariates: Floats | None = None,
    noise: WorkerNoise | None = None,
    biases: Biases | None = None,
    prior_choice: PriorChoice | None = None,
    moderate: Certainty | None = None,
    seed: int = 0,
) -> SecondStepResult:
    """Apply a shrink rule to the aggregates of a first step.

    Parameters
    ----------
    answers : Answers or None
        The answers, where they are in memory.
    variance : str, number, array or callable, optional
        The variance rule; default: the one that belongs to the shrink rule, or what is known.
    groups, covariates : arrays, optional
        What is known of the questions. An engine may keep them already, see `QuestionVectors`.
    noise : WorkerNoise, optional
        The noise of the workers, where it has been computed already.
    biases : Biases, optional
        Biases that were removed before: their uncertainty is added to the variances at the end.
    prior_choice : PriorChoice, optional
        The prior that held-out workers have chosen before; none is tried again.
    moderate : Certainty, optional
        The moderated variances of these aggregates, where they have been computed already, see `moderate_once`.
    seed : int
        Of the random halves of the workers, and of the sample of questions that priors are fitted on.
    """
    engine, facts = aggregate.engine, aggregate.facts
    if noise is not None and aggregate.algorithm.farthest(aggregate.state) is not None:
        noise = None
    if noise is not None:
        noise.screening.keep_in(engine)
    # Known variances need no second answer to a question.
    given = variance is not None and not isinstance(variance, str)
    alone = (facts.overlap == 0) & (not aggregate.algorithm.needs_variance) & (not given)
    own = variance is None and aggregate.algorithm.concludes
    if noise is None and rule.variance == "moderated" and not alone.all() and not own:
        noise = noise_behind(aggregate)
    sure = _certainty(answers, aggregate, rule, variance, alone, noise, moderate)
    beside = QuestionVectors.keep(engine, groups, covariates)
    sample = sample_questions(engine, seed)
    fit = _sampled(engine, sure, beside, alone, sample)
    halves = None
    if not rule.needs_holdout or fit.unknown or not aggregate.has_variance:
        prior_choice = None
    elif prior_choice is not None:
        fit.known["prior_choice"] = prior_choice
    else:
        if noise is None and not own:
            noise = noise_behind(aggregate)
        spread = aggregate.noise if own or noise is None else noise.variance
        if sample.limit is None or engine.problem.n_panels == 1:
            halves = halve(aggregate, sure, spread, sample=sample, seed=seed)
    prior = rule.fit(fit.x, fit.v, panels=fit.panels, nu=sure.nu, halves=halves, **fit.known)
    if halves is not None:
        prior_choice = PriorChoice.of(prior, engine.problem.n_answers)
    if biases is not None:
        keep_bias_variance(aggregate, biases.std_error**2)
        sure = replace(sure, shift=sure.shift + biases.shift, shift_nu=biases.shift_nu)
    totals = _move(engine, prior, sure, beside, alone, extra=biases is not None)
    posterior = Posterior(
        engine.kept(vectors.POSTERIOR_MEAN),
        engine.kept(vectors.POSTERIOR_VARIANCE),
        engine.kept(vectors.SHRINKAGE),
    )
    if biases is not None:
        sure = replace(sure, v_interval=engine.kept(vectors.AGGREGATE_VARIANCE))
    models = {str(model) for model in getattr(prior, "model", ())}
    tried = tuple(
        name
        for name, given, used in (
            ("groups", beside.groups, {"groups", "group means"}),
            ("covariates", beside.covariates > 0, {"regression"}),
        )
        if given and not models & used
    )
    return SecondStepResult(
        engine,
        posterior,
        prior,
        sure,
        engine.kept(vectors.UNKNOWN),
        alone,
        noise,
        totals,
        tried,
        prior_choice,
    )


@dataclass(frozen=True, eq=False)
class _Sample:
    """The questions that the prior is fitted on, and how many questions in all have no variance."""

    x: Floats
    v: Floats
    known: dict[str, Any]
    panels: Ints
    unknown: int


def _sampled(
    engine: Engine, sure: Certainty, beside: QuestionVectors, alone: Bools, sample: QuestionSample
) -> _Sample:
    """Bring the sampled questions together."""
    names = (vectors.AGGREGATE, vectors.VARIANCE, sure.interval)

    def visit(block: Block, kept: Kept) -> Visit:
        inside = sample.inside(block, kept)
        unknown = block.of_panel(alone) | np.isnan(kept[vectors.VARIANCE])
        counts = np.stack([inside, unknown]).astype(np.float64)
        rows = {name: kept[name][inside] for name in (*names, *beside.reads)}
        rows[vectors.UNKNOWN] = unknown[inside].astype(np.float64)
        return Visit(
            panel_sums=np.stack([segment_sum(row, block.panel_questions) for row in counts]),
            rows=rows,
        )

    reads = (*names, *beside.reads, *sample.reads)
    sweep = engine.sweep(visit, reads=reads, answers=False)
    rows, (size, unknown) = sweep.rows, sweep.panel_sums
    v, v_interval = (
        np.where(rows[vectors.UNKNOWN] > 0, 0.0, rows[name])
        for name in (vectors.VARIANCE, sure.interval)
    )
    known = {"v_interval": v_interval, **beside.arguments(rows)}
    return _Sample(
        rows[vectors.AGGREGATE], v, known, offsets(size.astype(np.int64)), int(unknown.sum())
    )


def _move(
    engine: Engine,
    prior: Prior,
    sure: Certainty,
    beside: QuestionVectors,
    alone: Bools,
    *,
    extra: bool,
) -> Totals:
    """Move all questions by the prior; the engine keeps where they came to lie."""
    names = [
        vectors.AGGREGATE,
        vectors.VARIANCE,
        sure.interval,
        *beside.reads,
        *([vectors.BIAS_VARIANCE] if extra else []),
        *([sure.aside, *OF_ABSURD] if sure.aside else []),
    ]

    def move(kept: Kept, lonely: Bools, panels: Ints) -> Kept:
        unknown = lonely | np.isnan(kept[vectors.VARIANCE])
        v, v_interval = (
            np.where(unknown, 0.0, kept[name]) for name in (vectors.VARIANCE, sure.interval)
        )
        x = kept[vectors.AGGREGATE]
        known = {"v_interval": v_interval, **beside.arguments(kept)}
        found = prior.posterior(x, v, panels=panels, **known)
        found = _held_back(found, x, v_interval, kept, sure.aside) if sure.aside else found
        # What is known exactly stays where it is.
        exact = (v_interval == 0) & ~unknown & (found.shrinkage < 1)
        variance = np.where(unknown, kept[vectors.VARIANCE], np.where(exact, 0.0, found.variance))
        before = kept[sure.interval]
        if extra:
            variance, before = (
                variance + kept[vectors.BIAS_VARIANCE],
                before + kept[vectors.BIAS_VARIANCE],
            )
        return {
            vectors.POSTERIOR_MEAN: np.where(exact, x, found.mean),
            vectors.POSTERIOR_VARIANCE: variance,
            vectors.AGGREGATE_VARIANCE: before,
            vectors.SHRINKAGE: np.where(exact, 0.0, found.shrinkage),
            vectors.UNKNOWN: unknown.astype(np.float64),
        }

    def sums(moved: Kept, panels: Ints) -> Floats:
        shrinkage = moved[vectors.SHRINKAGE]
        rows = (
            moved[vectors.UNKNOWN],
            np.isnan(moved[vectors.POSTERIOR_VARIANCE]).astype(np.float64),
            moved[vectors.AGGREGATE_VARIANCE],
            moved[vectors.POSTERIOR_VARIANCE],
            shrinkage,
            (shrinkage > 1).astype(np.float64),
        )
        return np.stack([segment_sum(row, panels) for row in rows])

    problem = engine.problem
    if problem.n_panels > 1:
        # A prior of many panels is asked about all of them at once.
        borders = problem.panel_questions
        kept = {name: engine.kept(name) for name in names}
        moved = move(kept, np.repeat(alone, np.diff(borders)), borders)
        for name, values in moved.items():
            engine.keep(name, values)
        peaks = segment_max(np.abs(moved[vectors.SHRINKAGE]), borders)
        return Totals.of(sums(moved, borders), peaks)

    def visit(block: Block, kept: Kept) -> Visit:
        moved = move(kept, block.of_panel(alone), block.panel_questions)
        return Visit(
            panel_sums=sums(moved, block.panel_questions),
            panel_peaks=segment_max(np.abs(moved[vectors.SHRINKAGE]), block.panel_questions),
            questions=moved,
        )

    sweep = engine.sweep(visit, reads=names, answers=False)
    return Totals.of(sweep.panel_sums, sweep.panel_peaks)


def _held_back(
    found: Posterior, x: Floats, v_interval: Floats, kept: Kept, aside: str
) -> Posterior:
    """Return a posterior in which gross questions stay where they are.

    Their answers scatter far more than those of others, often because their values are large: then the others say
    nothing about them. A question that a single answer made gross moves, but no further than its own other answers.
    """
    low, high = (kept[name] for name in OF_ABSURD)
    absurd = ~np.isnan(low)
    low, high = np.where(absurd, np.minimum(low, x), x), np.where(absurd, np.maximum(high, x), x)
    mean = np.clip(found.mean, low, high)
    held = (kept[aside] > 0) & (~absurd | (mean != found.mean))
    way = found.mean - x
    share = np.divide(mean - x, way, out=np.zeros(len(x)), where=held & (way != 0))
    return Posterior(
        np.where(held, mean, found.mean),
        np.where(held, v_interval, found.variance),
        np.where(held, share * found.shrinkage, found.shrinkage),
    )


def _certainty(
    answers: Answers | None,
    aggregate: Aggregate,
    rule: ShrinkRule,
    variance: Any,
    alone: Bools,
    noise: WorkerNoise | None,
    moderate: Certainty | None,
) -> Certainty:
    """Return the variances by the rule asked for, or that belongs to the second step."""
    algorithm, engine = aggregate.algorithm, aggregate.engine
    if variance is None and algorithm.needs_variance:
        return _as_reported(engine)
    if variance is None and algorithm.concludes and rule.variance in ("moderated", "plugin"):
        return _of_model(aggregate)
    if alone.all():
        engine.keep(vectors.VARIANCE, 0.0)
        return Certainty.of_known(engine)
    wanted = rule.variance if variance is None else variance
    if variance is None and wanted in ("moderated", "plugin") and not aggregate.has_variance:
        # A black box: it can only be asked again without some of its workers.
        if rule.name == "none":
            return _as_reported(engine)
        wanted = "jackknife"
    if isinstance(wanted, str) and wanted == "moderated":
        return moderate.again_in(engine) if moderate else moderated(answers, aggregate, noise=noise)
    return certainty(wanted, answers, aggregate, noise=noise, moderate=moderate)


def moderate_once(aggregate: Aggregate, noise: WorkerNoise) -> Certainty | None:
    """Return the moderated variances for several second steps on the same aggregates, None where they are no use."""
    algorithm, state = aggregate.algorithm, aggregate.state
    if (
        not aggregate.has_variance
        or algorithm.needs_variance
        or algorithm.farthest(state) is not None
    ):
        return None
    noise.screening.keep_in(aggregate.engine)
    return moderated(None, aggregate, noise=noise)


def _of_model(aggregate: Aggregate) -> Certainty:
    """Take the variances of a first step that knows how uncertain it is, also of the biases that it removed."""
    facts, values = aggregate.facts, aggregate.state.values
    between = np.maximum(facts.panel_sum(facts.informative) - 1.0, 1.0)
    if "bias_variance" in values:
        # Their variance is a difference of mean squares, see `trueup.variance.interval_noise.bias_variance`.
        tb2 = values["bias_variance"]
        known = np.divide(values["bias_error"], tb2, out=np.zeros(len(tb2)), where=tb2 > 0)
        kept = facts.mean_of_informative(np.clip(1.0 - known, 1e-4, 1.0) ** 2)
        between = between * kept
    return replace(
        _as_reported(aggregate.engine),
        nu=np.maximum(FREEDOM_SHARE * facts.overlap, 1.0),
        interval_nu=np.maximum(facts.overlap, 1.0),
        shift=facts.of_panels(aggregate.state["shift"]),
        shift_nu=between,
    )


def _as_reported(engine: Engine) -> Certainty:
    """Take the variances that the first step itself has given."""

    def visit(block: Block, kept: Kept) -> Visit:  # noqa: ARG001
        return Visit(questions={vectors.VARIANCE: kept[vectors.MODEL_VARIANCE]})

    engine.sweep(visit, reads=(vectors.MODEL_VARIANCE,), answers=False)
    return Certainty.of_known(engine)
