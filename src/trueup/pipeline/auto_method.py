"""Which first step? The native one, unless held-out workers clearly prefer the plain mean.

The workers are split into folds; a first step sees the answers of all folds but one and predicts those of the workers
left out. What it is off by is the noise of the held-out answer plus its own error, and the noise is the same for every
first step. Held-out answers are drawn in to five robust standard deviations, so that single absurd ones do not decide,
and count only where at least three other answers to the question are left: from two, every first step is a mean.

The choice must not depend on the luck of one split, nor on how the workers are numbered: several splits are drawn over
the sorted ids, and with d the mean over splits of the difference in loss and se that of its standard error (questions
being independent), the mean takes over where d > se/2. Of a large problem one fold is enough where |d| is clear: beyond
five standard errors with questions as independent, and beyond three with workers as independent, who are the fewer.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trueup.algorithms.driver import run
from trueup.algorithms.registry import find
from trueup.algorithms.worker_fit import MAX_ITER, TOLERANCE
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
CANDIDATES: tuple[str, ...] = ("native", "mean")
FOLDS = 5
#: Random splits of the workers into folds, and those of a large problem, where the draw hardly matters.
SPLITS, FEW_SPLITS = 4, 2
#: Of a large problem so many folds are tried first; they decide where all differences exceed so many standard errors,
#: those over questions and those over workers.
FIRST_FOLDS, DECISIVE = 1, (5.0, 3.0)
#: Workers below which nothing can be held out, and answers to a question that must be left for it to count.
FEWEST_WORKERS, FEWEST_LEFT = 3, 3
#: A candidate is clearly better beyond this many standard errors.
CLEAR = 0.5
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
        Sum of squared held-out errors, the mean over splits.
    error : array, candidates x panels
        Standard error of the difference to the default, the mean over splits.
    """

    candidates: tuple[str, ...]
    chosen: Ints
    loss: Floats
    error: Floats

    @property
    def reason(self) -> str:
        """Why the first step of the first panel was chosen, in words."""
        best, loss, default = int(self.chosen[0]), self.loss[:, 0], self.candidates[0]
        if np.isnan(loss).any():
            return (
                "too few answers per question to compare it with the plain mean on held-out workers"
            )
        if loss[0] == 0:
            return "all held-out workers agree with the others"
        if best:
            less = 1.0 - loss[best] / loss[0]
            if less < 0.001:
                return f"it predicts held-out workers as well as {default} and is simpler"
            return f"it predicts held-out workers better than {default}, with {less:.1%} less squared error"
        if self.candidates[1:] == ("mean",):
            return "the plain mean does not predict held-out workers clearly better"
        return "no other first step predicts held-out workers clearly better"


def choose(
    answers: Answers | Engine,
    candidates: Sequence[str | Algorithm] = CANDIDATES,
    *,
    max_iter: int = MAX_ITER,
    tol: float = TOLERANCE,
    threads: int | None = None,
    seed: int = 0,
    splits: int = SPLITS,
    each: Callable[[str], object] | None = None,
) -> Choice:
    """Choose the first step of each panel by held-out workers.

    With g_j the held-out loss of the default minus that of a candidate on question j, a candidate qualifies if
    `sum g > sqrt(sum g^2) / 2`, both averaged over the splits. Of those that qualify the one with the smallest loss is
    chosen. `each` is called with the name of every candidate tried.
    """
    check_threads(threads)
    algorithms = [find(each) for each in candidates]
    names = tuple(each.name or type(each).__name__ for each in algorithms)
    answers = comparable(engine_of(answers), seed)
    panels = answers.n_panels
    workers = np.diff(answers.panel_workers)
    if (workers < FEWEST_WORKERS).all() or (answers.counts <= FEWEST_LEFT).all():
        nothing = np.full((len(algorithms), panels), np.nan)
        return Choice(names, np.zeros(panels, dtype=np.int64), nothing, nothing)
    is_large = panels == 1 and answers.n_questions >= LEAST
    if is_large:
        splits = min(splits, FEW_SPLITS)
    target = winsorised(answers)
    # In units of the largest answer squared, so that squares of losses stay numbers.
    unit = segment_max(np.abs(answers.values), answers.indptr[answers.panel_questions]) ** 2
    unit = np.where(unit > 0, unit, 1.0)
    question = np.repeat(np.arange(answers.n_questions), answers.counts)
    each_unit = unit[answers.question_panel][question]
    load_libraries()

    def losses_of(draw: int, threads: int | None = 1, most: int | None = None) -> list[Floats]:
        """Return the loss of each candidate on each answer, for one split or some of its folds."""
        split, losses = folds(answers, FOLDS, seed=seed, draw=draw, most=most), []
        for algorithm in algorithms:
            rough = max(tol, ROUGH)
            try:
                aggregate = run(
                    algorithm, split.training, max_iter=max_iter, tol=rough, threads=threads
                )
            except TrueupError:
                losses.append(np.full(answers.n_answers, np.inf))  # it cannot be run
                continue
            loss = squared_errors(answers, split, aggregate.offset, target, FEWEST_LEFT)
            losses.append(loss / each_unit)
        return losses

    losses, errors = np.zeros((2, len(algorithms), panels))

    def add(found: list[Floats]) -> None:
        by_question = [_sums(question, each, answers.n_questions) for each in found]
        for candidate, loss in enumerate(by_question):
            losses[candidate] += segment_sum(loss, answers.panel_questions)
            gap = np.where(np.isfinite(loss), by_question[0] - loss, 0.0)
            errors[candidate] += np.sqrt(segment_sum(gap**2, answers.panel_questions))

    def is_decisive(first: list[Floats]) -> bool:
        for other in first[1:]:
            for clusters, most in zip((question, answers.workers), DECISIVE, strict=True):
                gap = np.bincount(clusters, first[0] - other)
                if not abs(gap.sum()) > most * np.sqrt((gap**2).sum()):
                    return False
        return True

    first = losses_of(0, threads, FIRST_FOLDS) if is_large else []
    if is_large and is_decisive(first):
        splits = 1
        add(first)
    else:
        # The products leave the interpreter: splits run side by side where there are processors for it.
        with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
            for number, found in enumerate(pool.map(losses_of, range(splits)), start=1):
                add(found)
                if each is not None:
                    each(f"held-out workers, split {number} of {splits}")
    losses, errors = losses / splits, errors / splits
    gain = losses[0] - losses
    # A gain on one question equals its error: rounding must not decide.
    clear = gain > CLEAR * (1.0 + ROUNDING) * errors
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


def held_out(
    answers: Answers, split: Folds, x: Floats, target: Floats, fewest_left: int = 1
) -> Floats:
    """Return for each question the sum of squared errors of its held-out answers, see `squared_errors`."""
    question = np.repeat(np.arange(answers.n_questions), answers.counts)
    errors = squared_errors(answers, split, x, target, fewest_left)
    return _sums(question, errors, answers.n_questions)


def _sums(group: Ints, values: Floats, n_groups: int) -> Floats:
    # Without any answer `bincount` gives whole numbers.
    return np.bincount(group, values, n_groups).astype(np.float64, copy=False)


def squared_errors(
    answers: Answers, split: Folds, x: Floats, target: Floats, fewest_left: int = 1
) -> Floats:
    """Return the squared error of each held-out answer, 0 for those that do not count.

    `x` are truths of the training questions relative to their centre; answers count only where at least `fewest_left`
    others of their question are outside their fold.
    """
    m = answers.n_questions
    predicted = np.full((int(split.of_worker.max(initial=0)) + 1, m), np.nan)
    inside = (split.fold < len(predicted)) & (split.training.counts >= fewest_left)
    predicted[split.fold[inside], split.question[inside]] = x[inside]
    question = np.repeat(np.arange(m), answers.counts)
    error = predicted[split.of_worker[answers.workers], question] - target
    error = np.where(np.isnan(error), 0.0, error)
    return error * error
