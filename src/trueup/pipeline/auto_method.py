"""Which first step? Held-out workers decide.

The workers are split into folds; a first step sees the answers of all folds but one and predicts those of the workers
left out. What it is off by is the noise of the held-out answer plus its own error, and the noise is the same for every
first step. Held-out answers are drawn in to five robust standard deviations, so that single absurd ones do not decide.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trueup.algorithms.driver import MAX_ITER, TOLERANCE, run
from trueup.algorithms.registry import find
from trueup.answers.panels import Folds, folds
from trueup.core.arrays import segment_max, segment_median, segment_sum
from trueup.core.sampling import MAX_QUESTIONS
from trueup.engines.memory import engine_of
from trueup.engines.question_sample import MAX_ANSWERS, MIN_QUESTIONS, sample_questions
from trueup.engines.threads import check_threads, load_libraries
from trueup.errors import TrueupError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trueup.algorithms.contract import Algorithm
    from trueup.answers.answers import Answers
    from trueup.core.arrays import Floats, Ints
    from trueup.engines.protocol import Engine

#: First steps that `method="auto"` chooses among; the first one stays unless another is clearly better.
CANDIDATES: tuple[str, ...] = ("native", "mean", "median", "crh", "gtm", "iptd")
FOLDS = 5
#: Workers below which nothing can be held out.
FEWEST_WORKERS = 3
#: A candidate is clearly better beyond this many standard errors, or beyond one and this share of the loss.
CLEAR = 2.0
LARGE = 0.1
#: Held-out answers further than this from the median of their question are drawn in, in robust standard deviations.
WINSOR = 5.0
#: A move of a truth, in pooled standard deviations, that no held-out answer can notice.
ROUGH = 1e-3
#: A share of the loss that is no difference.
ROUNDING = 1e-9
#: Questions of a large problem that are compared: so many that workers have fifty answers, within these limits.
MOST, LEAST, ANSWERS_EACH = MAX_QUESTIONS, 10_000, 50
NORMAL = 1.4826


@dataclass(frozen=True, eq=False)
class Choice:
    """How the candidates did.

    Attributes
    ----------
    candidates : tuple of str
        Names of the first steps; the first is the default.
    chosen : array
        Number of the candidate chosen, for each panel.
    loss : array, candidates x panels
        Sum of squared held-out errors.
    error : array, candidates x panels
        Standard error of the difference to the default.
    """

    candidates: tuple[str, ...]
    chosen: Ints
    loss: Floats
    error: Floats

    @property
    def reason(self) -> str:
        """Why the first step of the first panel was chosen, in words."""
        best, loss = int(self.chosen[0]), self.loss[:, 0]
        if loss[0] == 0:
            return "all held-out workers agree with the others"
        if np.isnan(loss).any():
            return "too few answers to compare first steps on held-out workers"
        if best == 0:
            return "no other first step predicts held-out workers clearly better"
        less = 1.0 - loss[best] / loss[0]
        return f"predicts held-out workers better than {self.candidates[0]}, with {less:.1%} less squared error"


def choose(
    answers: Answers | Engine,
    candidates: Sequence[str | Algorithm] = CANDIDATES,
    *,
    max_iter: int = MAX_ITER,
    tol: float = TOLERANCE,
    threads: int | None = None,
    seed: int = 0,
    each: Callable[[str], object] | None = None,
) -> Choice:
    """Choose the first step of each panel by held-out workers.

    With g_j the held-out loss of the default minus that of a candidate on question j, a candidate qualifies if
    `sum g > 2 sqrt(sum g^2)`, or if `sum g > sqrt(sum g^2)` and it is more than a tenth of the default's loss. Of those
    that qualify the one with the smallest loss is chosen. `each` is called with the name of every candidate tried.
    """
    check_threads(threads)
    algorithms = [find(each) for each in candidates]
    names = tuple(each.name or type(each).__name__ for each in algorithms)
    answers = comparable(engine_of(answers), seed)
    panels = answers.n_panels
    workers = np.diff(answers.panel_workers)
    losses = np.zeros((len(algorithms), panels))
    errors = np.zeros((len(algorithms), panels))
    if (workers < FEWEST_WORKERS).all() or (answers.counts < 2).all():
        nothing = np.full((len(algorithms), panels), np.nan)
        return Choice(names, np.zeros(panels, dtype=np.int64), nothing, nothing)
    split = folds(answers, FOLDS, seed=seed)
    target = winsorised(answers)

    # In units of the largest answer squared, so that squares of losses stay numbers.
    unit = segment_max(np.abs(answers.values), answers.indptr[answers.panel_questions]) ** 2
    unit = np.where(unit > 0, unit, 1.0)
    each_unit = unit[answers.question_panel]

    def loss_of(algorithm: Algorithm) -> Floats:
        rough = max(tol, ROUGH)
        try:
            aggregate = run(algorithm, split.training, max_iter=max_iter, tol=rough, threads=1)
        except TrueupError:
            return np.full(answers.n_questions, np.inf)  # a candidate that cannot be run is none
        return held_out(answers, split, aggregate.offset, target) / each_unit

    load_libraries()
    # The products leave the interpreter: candidates run side by side where there are processors for it.
    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        default = None
        for number, loss in enumerate(pool.map(loss_of, algorithms)):
            default = loss if default is None else default
            losses[number] = segment_sum(loss, answers.panel_questions)
            gap = np.where(np.isfinite(loss), default - loss, 0.0)
            errors[number] = np.sqrt(segment_sum(gap**2, answers.panel_questions))
            if each is not None:
                each(f"held-out workers: {names[number]}")
    gain = losses[0] - losses
    # A gain on one question equals its error, one on four alike is twice that: rounding must not decide.
    beyond = (1.0 + ROUNDING) * errors
    clear = (gain > CLEAR * beyond) | ((gain > beyond) & (gain > LARGE * losses[0]))
    # First steps that agree differ by rounding alone, which is no reason to prefer one.
    clear &= (gain > ROUNDING * losses[0]) & (workers >= FEWEST_WORKERS)
    clear[0] = True
    chosen = np.argmin(np.where(clear, losses, np.inf), axis=0)
    return Choice(names, chosen.astype(np.int64), losses * unit, errors * unit)


def comparable(engine: Engine, seed: int) -> Answers:
    """Return the answers to as many questions as a comparison needs; a single large problem is sampled."""
    problem = engine.problem
    if problem.n_panels > 1:
        return engine.gather()
    per_question = max(problem.n_answers / problem.n_questions, 1.0)
    wanted = max(ANSWERS_EACH * problem.n_workers / per_question, LEAST)
    most = max(MAX_ANSWERS / per_question, MIN_QUESTIONS)
    sample = sample_questions(engine, seed, int(min(wanted, MOST, most)))
    return engine.gather(None if sample.limit is None else sample.inside, sample.reads)


def winsorised(answers: Answers) -> Floats:
    """Return the answers relative to their centre, drawn in to five robust standard deviations from their median."""
    blocks = answers.blocks()
    median = np.concatenate([block.median for block in blocks])
    median = np.repeat(median, answers.counts)
    distance = np.abs(answers.values - median)
    several = np.repeat((answers.counts >= 2).astype(np.float64), answers.counts)
    borders = answers.indptr[answers.panel_questions]
    scale = NORMAL * segment_median(distance, several, borders)
    freedom = segment_sum((answers.counts - 1).astype(np.float64), answers.panel_questions)
    within = np.concatenate([block.within for block in blocks])
    pooled = np.sqrt(segment_sum(within, answers.panel_questions) / np.maximum(freedom, 1.0))
    limit = WINSOR * np.repeat(np.where(scale > 0, scale, pooled), np.diff(borders))
    return np.clip(answers.values, median - limit, median + limit)


def held_out(answers: Answers, split: Folds, x: Floats, target: Floats) -> Floats:
    """Return for each question the sum of squared errors of its held-out answers.

    `x` are truths of the training questions relative to their centre; answers that no other fold can predict do not
    count.
    """
    m = answers.n_questions
    predicted = np.full((int(split.of_worker.max(initial=0)) + 1, m), np.nan)
    inside = split.fold < len(predicted)
    predicted[split.fold[inside], split.question[inside]] = x[inside]
    question = np.repeat(np.arange(m), answers.counts)
    error = predicted[split.of_worker[answers.workers], question] - target
    error = np.where(np.isnan(error), 0.0, error)
    return np.bincount(question, error * error, minlength=m).astype(np.float64, copy=False)
