"""Variance of any first step by running it again with fewer workers.

The resamples are panels of one block-diagonal problem, so that the first step runs on all of them in one call. Number
of iterations and tolerance are those of `run` unless given.

A mean of `k_j` answers changes by a known amount when only `k_jr` of them are left, `var(x_jr - x_j) = s (1/k_jr -
1/k_j)` with s the variance of an answer. This is the unit in which the change of any first step is measured:

    s_j = sum_r (x_jr - mean_r x_jr)^2 / sum_r (1/k_jr - 1/k_j),     v_j = s_j / k_j

which is unbiased for means, however few or uneven the answers. With one worker left out at a time from a complete
panel of n it is the jackknife, `(n-1)/n sum_r (x_jr - mean)^2`. The `s_j` of a single question has few degrees of
freedom, so it is pooled over the questions, see `trueup.variance.pooling`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.algorithms.driver import run
from trueup.answers.panels import bootstrap as draw_workers
from trueup.answers.panels import folds
from trueup.core.arrays import segment_sum
from trueup.engines import vectors
from trueup.errors import TrueupError, option
from trueup.variance.contract import Certainty
from trueup.variance.pooling import pool
from trueup.variance.worker_noise import worker_noise

if TYPE_CHECKING:
    from trueup.algorithms.driver import Aggregate
    from trueup.answers.answers import Answers
    from trueup.core.arrays import Floats, Ints

GROUPS = 20
PANELS = 200
#: Largest share of the variance that counts as common to all questions.
MOST_SHARED = 0.95


def jackknife(
    answers: Answers | None,
    aggregate: Aggregate,
    *,
    groups: int = GROUPS,
    seed: int = 0,
    **options: Any,
) -> Certainty:
    """Return variances from leaving out `groups` random groups of workers in turn.

    A question has no value in a panel that leaves out all its workers. The jackknife of a median is known to be
    inconsistent (Efron, The Jackknife, the Bootstrap and Other Resampling Plans, 1982, section 3.4): the variances of a
    robust first step are off by a factor of up to 2, mostly too large.
    """
    answers = _in_memory(answers, "jackknife")
    if (np.diff(answers.panel_workers) < 2).all():
        raise TrueupError("the jackknife needs at least two workers.", argument="variance")
    split = folds(answers, groups, seed=seed)
    x = run(aggregate.algorithm, split.training, **options).offset
    return _certainty(answers, aggregate, split.training, split.question, x)


def bootstrap(
    answers: Answers | None,
    aggregate: Aggregate,
    *,
    panels: int = PANELS,
    seed: int = 0,
    **options: Any,
) -> Certainty:
    """Return variances over panels of workers drawn with replacement, each counted once.

    A worker who is drawn twice does not count twice: first steps that learn weights would find a worker who agrees
    perfectly with another, and trust both.
    """
    answers = _in_memory(answers, "bootstrap")
    drawn = draw_workers(answers, panels, seed=seed, once=True)
    source = drawn.question_source
    if source is None or answers.question_source is not None:
        raise TrueupError(
            "draw workers from a single problem, not from panels.", argument="variance"
        )
    x = run(aggregate.algorithm, drawn, **options).offset
    return _certainty(answers, aggregate, drawn, source, x)


def _in_memory(answers: Answers | None, rule: str) -> Answers:
    if answers is None:
        raise TrueupError(
            f'"{rule}" runs the first step again with other workers, which needs all answers in memory.',
            argument="variance",
            remedy="Use " + option("engine", "memory") + ", or another rule.",
        )
    return answers


def _certainty(
    answers: Answers, aggregate: Aggregate, resamples: Answers, question: Ints, x: Floats
) -> Certainty:
    """Return the certainty of aggregates that were `x` in the resamples of their questions."""
    m = answers.n_questions
    size = np.bincount(question, minlength=m).astype(np.float64)
    mean = np.bincount(question, x, minlength=m) / np.maximum(size, 1.0)
    ss = np.bincount(question, (x - mean[question]) ** 2, minlength=m)
    weight, left = _weight(answers), _weight(resamples)
    # Where nothing was lost, rounding leaves next to nothing.
    lost = np.maximum(1.0 / left - 1.0 / weight[question], 0.0)
    lost[resamples.counts == answers.counts[question]] = 0.0
    loss = np.bincount(question, lost, minlength=m)
    known = (loss > 0) & (size >= 2)
    if not known.any():
        raise TrueupError(
            "no question can be estimated without some of its workers; more answers are needed.",
            argument="variance",
        )
    s = np.divide(ss, loss, out=np.zeros(m), where=known)
    pieces = np.minimum(answers.counts, np.bincount(question, lost > 0, minlength=m))
    freedom = np.where(known, np.maximum(pieces - 1.0, 0.5), 0.0)
    pooled = pool(s, freedom, answers.panel_questions, fully=aggregate.kind == "robust")
    # A panel in which nothing can be left out has the variance of the others.
    typical = float(np.nanmean(pooled.variance))
    variance = np.where(np.isnan(pooled.variance), typical, pooled.variance) / weight
    return _without_shift(answers, aggregate, variance, pooled.nu)


def _without_shift(
    answers: Answers, aggregate: Aggregate, variance: Floats, nu: Floats
) -> Certainty:
    """Take what all questions share through the biases of the workers out of the variances.

    It is the same for all questions, so it has as many degrees of freedom as there are workers, less one.
    """
    engine, starts = aggregate.engine, answers.panel_questions
    size = np.diff(starts)
    noise = worker_noise(engine, bias=aggregate.bias, facts=aggregate.facts)
    part = 1.0 / (answers.counts * size[answers.question_panel])
    mean_share = np.bincount(
        answers.workers, np.repeat(part, answers.counts), minlength=answers.n_workers
    )
    shift = noise.bias_variance * segment_sum(np.square(mean_share), answers.panel_workers)
    level = segment_sum(variance, starts) / np.maximum(size, 1)
    share = np.divide(shift, level, out=np.zeros(len(level)), where=level > 0)
    share = np.minimum(share, MOST_SHARED)
    engine.keep(vectors.VARIANCE, variance * np.repeat(1.0 - share, size))
    return replace(
        Certainty.of_known(engine),
        nu=nu,
        interval_nu=nu,
        shift=share * level,
        shift_nu=noise.shift_freedom,
    )


def _weight(answers: Answers) -> Floats:
    """Return the number of answers to each question, weighted by their precision where they have one."""
    if answers.precision is None:
        return answers.counts.astype(np.float64)
    weight: Floats = np.add.reduceat(answers.precision, answers.indptr[:-1])
    return weight
