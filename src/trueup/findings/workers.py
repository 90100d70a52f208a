"""What is to be thought of each worker? Noise and bias with intervals, and in words what stands out.

**Noise.** s_i with nu_i = (d_i + 2) / (1 + kappa/2) degrees of freedom, those of its residuals and two pseudo-answers
(`trueup.variance.worker_noise`), fewer where the errors of all have the excess kurtosis kappa > 0 and so tell less,
has the interval of a variance,

    nu_i s_i / chi2(0.975, nu_i)  to  nu_i s_i / chi2(0.025, nu_i)

as moderated variances have (Smyth, Statistical Applications in Genetics and Molecular Biology 2004; for kappa Box,
Biometrika 1953). A worker is much noisier than others if all of it is above four times the median worker.

**Bias.** A random effect with its standard error (`trueup.variance.bias`), clear of 0 beyond 1.96 of them: a worker
with few answers is believed to have hardly any. Harsh or lenient is called who is clear of 0 by more than a fifth of a
standard deviation of a typical answer, a small effect (Cohen, Statistical Power Analysis 1988).

**Typical answers.** Workers are judged by their typical answers: suspicious ones (`trueup.findings.answers`) are set
aside first, so that one slip neither condemns a worker nor hides another. They do count as far off.

**Far off.** Answers further than five robust standard deviations (1.4826 times the median distance) from the median
of their question, without the bias of the worker; at least two of them and a tenth of its answers are pointed out.

Of a worker with fewer than five answers to questions that somebody else answered, nothing of this is said.

With very many answers biases, far answers and pairs are those of a sample of the questions
(`trueup.variance.correlated`), and so is the noise where the estimate does not have it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from trueup.answers.scale import LOGARITHMS
from trueup.core.arrays import group_order, offsets, segment_median
from trueup.engines.memory import MemoryEngine
from trueup.engines.protocol import Visit
from trueup.findings.worker_table import (
    CLEAR,
    COPIES,
    FAR_OFF,
    FEWEST,
    HARSH,
    LENIENT,
    NEARLY_SAME,
    NOISY,
    SAME_ANSWER,
    SHARES_NOTHING,
    TOGETHER,
    TOO_FEW,
    WorkerTable,
)
from trueup.variance.bias import estimate_biases
from trueup.variance.worker_noise import subtract_bias, worker_noise

if TYPE_CHECKING:
    from trueup.algorithms.facts import Facts
    from trueup.answers.answers import Answers
    from trueup.answers.block import Block
    from trueup.core.arrays import Floats, Ints
    from trueup.engines.protocol import Engine, Kept
    from trueup.findings.correlated import CorrelatedWorkers
    from trueup.pipeline.solution import Solution
    from trueup.variance.correlated import AnswerSample
    from trueup.variance.worker_noise import WorkerNoise

#: Degrees of freedom that the moderation of a variance is worth.
PSEUDO = 2.0
#: Share of a typical standard deviation from which on a bias matters.
MATTERS = 0.2
#: Multiple of the variance of the median worker from which on a worker is much noisier.
MUCH = 4.0
#: Robust standard deviations at which an answer is far off, and when that is pointed out.
FAR, FEWEST_FAR, SHARE_FAR = 5.0, 2, 0.1
NORMAL = 1.4826
MOST_KURTOSIS = 20.0
#: Answers from which on a worker who always gives the same answer is pointed out.
CONSTANT = 5
#: Distance from each other, relative to their size, up to which answers count as the same.
SAME = 1e-9
#: Other answers of a worker who nearly always gives the same one: most of them, and their largest share.
MOST_OTHERS, SHARE_OTHERS = 2, 0.1
#: Share of all answers from which on nearly always giving this answer is nothing special.
USUAL = 0.5


def judge_workers(
    solution: Solution,
    kind: str,
    *,
    flags: list[str | None],
    sample: AnswerSample,
    sample_noise: WorkerNoise,
    noise: WorkerNoise | None,
    correlated: CorrelatedWorkers,
    suspicious: Ints,
) -> WorkerTable:
    """Return the table of workers.

    Parameters
    ----------
    solution : Solution
        What both steps found.
    kind : str
        Library of the frames.
    flags : list of str or None
        What `constant_workers` says about each worker.
    sample, sample_noise : AnswerSample, WorkerNoise
        The answers that are examined closely, and the noise of their workers.
    noise : WorkerNoise or None
        The noise of all workers from all answers, where it is known.
    correlated : CorrelatedWorkers
        Pairs of workers who err together.
    suspicious : array
        Places of the suspicious answers in the sample.
    """
    facts, pairs = solution.aggregate.facts, correlated.found
    shared = facts.n_informative.astype(np.int64)
    slips, all_noise = len(suspicious) > 0, noise
    every = sample.answers
    if slips:
        sample = replace(sample, answers=_without(every, suspicious))
        sample_noise, noise = worker_noise(sample.answers), None
    kurtosis = _kurtosis(sample_noise)
    if noise is None:
        count = sample.for_all(sample_noise.n_informative, 0.0)
        variance, lower, upper = (
            sample.for_all(values, np.nan) for values in _noise(sample_noise, kurtosis)
        )
        if all_noise is not None:  # of workers without a typical answer in the sample
            count, variance, lower, upper = (
                np.where(np.isnan(variance), ours, theirs)
                for ours, theirs in zip(
                    (all_noise.n_informative, *_noise(all_noise, kurtosis)),
                    (count, variance, lower, upper),
                    strict=True,
                )
            )
    else:
        count = noise.n_informative
        variance, lower, upper = _noise(noise, kurtosis)
    if solution.biases is not None and not slips:
        bias, error = solution.biases.value, solution.biases.std_error
    else:
        biases = estimate_biases(sample.answers, noise=sample_noise)
        bias, error = (
            sample.for_all(values, np.nan) for values in (biases.value, biases.std_error)
        )
    bias, error = (np.where(count > 0, values, np.nan) for values in (bias, error))
    n_far, share_far = _far_off(sample_noise, every if slips else None)
    n_far, share_far = sample.for_all(n_far, 0.0), sample.for_all(share_far, np.nan)
    judged = shared >= FEWEST
    clear = judged & (np.abs(bias) > CLEAR * error)
    comparable = variance[judged & ~np.isnan(variance)]
    median = float(np.median(comparable)) if len(comparable) else np.nan
    partner, copier = pairs.partner, pairs.copier
    marks = {
        NOISY: judged & (lower > MUCH * median) & (median > 0),
        FAR_OFF: judged & (n_far >= FEWEST_FAR) & (share_far >= SHARE_FAR),
        HARSH: clear & (-bias - CLEAR * error > MATTERS * np.sqrt(median)),
        LENIENT: clear & (bias - CLEAR * error > MATTERS * np.sqrt(median)),
        COPIES: copier,
        TOGETHER: (partner >= 0) & ~copier,
    }
    texts: list[list[str]] = [[] if flag is None else [flag] for flag in flags]
    for text, mark in marks.items():
        for worker in np.flatnonzero(mark).tolist():
            constant = SAME_ANSWER in texts[worker] or NEARLY_SAME in texts[worker]
            if not constant or text in (COPIES, TOGETHER):
                texts[worker].append(text)
    for worker in np.flatnonzero(~judged).tolist():
        if SHARES_NOTHING not in texts[worker]:
            texts[worker].append(TOO_FEW)
    return WorkerTable(
        worker_ids=correlated.worker_ids,
        kind=kind,
        n_answers=facts.n_answers.astype(np.int64),
        n_shared=shared,
        weight=solution.aggregate.weight,
        variance=variance,
        variance_lower=lower,
        variance_upper=upper,
        bias=bias,
        bias_std_error=error,
        bias_clear=clear,
        far_off=share_far,
        partner=partner,
        flags=tuple(map(tuple, texts)),
        median_variance=median,
        correlated=correlated,
        note=sample.note,
        in_logarithms=solution.scale.transform in LOGARITHMS,
        corrected=solution.biases is not None or solution.aggregate.bias is not None,
        n_suspicious=sample.for_all(
            np.bincount(every.workers[suspicious], minlength=every.n_workers).astype(np.float64),
            0.0,
        ).astype(np.int64),
    )


def constant_workers(engine: Engine, facts: Facts, sample: AnswerSample) -> list[str | None]:
    """Return a text for each worker who (nearly) always gives the same answer or shares no question, else None.

    The median of a worker who nearly always gives the same answer is this answer, whatever the others are; `sample` has
    answers as they were given, from which it is taken.
    """
    worker, value = sample.answers.workers, sample.answers.answers
    order = group_order(worker, sample.answers.n_workers)
    count = np.bincount(worker, minlength=sample.answers.n_workers)
    usual = segment_median(value[order], np.ones(len(value)), offsets(count))
    median = sample.for_all(usual, np.nan)

    def differing(block: Block, kept: Kept) -> Visit:  # noqa: ARG001
        own = median[block.worker_slice].take(block.workers)
        rest = np.abs(block.values + block.spread(block.centre) - own)
        others = (~(rest <= SAME * np.abs(own))).astype(np.float64)
        return Visit(sums=block.by_worker(others, np.ones(block.n_questions))[None])

    others = engine.sweep(differing).sums[0]
    n = facts.n_answers
    constant = (n >= CONSTANT) & (others == 0)
    nearly = (others > 0) & (others <= MOST_OTHERS) & (others <= SHARE_OTHERS * n)
    for i in np.flatnonzero(
        nearly
    ).tolist():  # few: on some scales everybody mostly gives one answer
        nearly[i] = np.mean(np.abs(value - median[i]) <= SAME * abs(median[i])) < USUAL
    flags: list[str | None] = np.select(
        [facts.informative == 0, constant, nearly],
        [SHARES_NOTHING, SAME_ANSWER, NEARLY_SAME],
        default="",
    ).tolist()
    return [flag or None for flag in flags]


def _noise(noise: WorkerNoise, kurtosis: float) -> tuple[Floats, Floats, Floats]:
    """Return the variance of each worker and its 95% interval, NaN where there is nothing to learn it from."""
    from scipy.special import chdtri

    known = (noise.n_informative > 0) & (noise.pool > 0)
    freedom = (noise.freedom + PSEUDO) / (1.0 + 0.5 * kurtosis)
    variance = np.where(known, noise.variance, np.nan)
    # chdtri takes the probability above
    return (
        variance,
        variance * freedom / chdtri(freedom, 0.025),
        variance * freedom / chdtri(freedom, 0.975),
    )


def _kurtosis(noise: WorkerNoise) -> float:
    """Return the excess kurtosis of the errors, each in units of its worker, at least 0; gross questions aside.

    Residuals around a mean of k answers have about (1 - 1/k)^2 of it.
    """
    unit = np.divide(
        1.0, noise.variance, out=np.zeros(len(noise.variance)), where=noise.variance > 0
    )

    def visit(block: Block, kept: Kept) -> Visit:  # noqa: ARG001
        r = block.residuals(block.mean)
        own = 1.0 - 1.0 / np.maximum(block.counts, 2)
        square = r * r * unit[block.worker_slice].take(block.workers) / block.spread(own)
        inside = block.informative
        sums = [block.by_question(each) for each in (square, square * square)]
        rows = [
            inside * block.counts,
            inside * sums[0],
            inside * sums[1],
            inside * block.counts * own**2,
        ]
        return Visit(panel_sums=np.array([[row.sum()] for row in rows]))

    n, second, fourth, share = noise.screening.engine.sweep(visit).panel_sums[:, 0]
    if second <= 0:
        return 0.0
    return float(np.clip((n * fourth / second**2 - 3.0) * n / share, 0.0, MOST_KURTOSIS))


def _without(answers: Answers, places: Ints) -> Answers:
    """Return answers without those at some places; questions and workers stay."""
    kept = np.ones(answers.n_answers, dtype=bool)
    kept[places] = False
    question = np.repeat(np.arange(answers.n_questions), answers.counts)
    counts = np.bincount(question[kept], minlength=answers.n_questions)
    return replace(
        answers,
        indptr=offsets(counts).astype(answers.indptr.dtype),
        workers=answers.workers[kept],
        values=answers.values[kept],
        precision=None if answers.precision is None else answers.precision[kept],
        given=None if answers.given is None else answers.given[kept],
    )


def _far_off(noise: WorkerNoise, every: Answers | None) -> tuple[Floats, Floats]:
    """Return how many answers of each worker are far off, and their share; biases are removed.

    `every` are all answers, where suspicious ones were set aside before the noise was estimated.
    """
    engine, facts = noise.screening.engine, noise.screening.facts
    if every is not None:
        engine = MemoryEngine(every)
        engine = engine if facts.bias is None else subtract_bias(engine, facts.bias)
    n = facts.n_workers
    far = np.zeros(n)
    count = np.zeros(n)
    scale = _deviation_of_an_answer(noise)

    def visit(block: Block, kept: Kept) -> Visit:  # noqa: ARG001
        distance = np.abs(block.residuals(block.median))
        several = (block.counts >= 3).astype(np.float64)
        beyond = (distance > FAR * scale).astype(np.float64)
        return Visit(
            sums=np.stack([block.by_worker(beyond, several), block.by_worker(None, several)])
        )

    if scale > 0:
        far, count = engine.sweep(visit).sums
    share = np.divide(far, count, out=np.full(n, np.nan), where=count > 0)
    return far, share


def _deviation_of_an_answer(noise: WorkerNoise) -> float:
    """Return the robust standard deviation of an answer around the median of its question; the pooled one if it is 0.

    The mean over blocks of their median distances: one number, found in one pass.
    """

    def visit(block: Block, kept: Kept) -> Visit:  # noqa: ARG001
        several = block.spread((block.counts >= 3).astype(np.float64))
        distance = np.abs(block.residuals(block.median))
        middle = float(segment_median(distance, several, np.array([0, len(distance)]))[0])
        count = float(several.sum())
        return Visit(panel_sums=np.array([[middle * count], [count]]))

    total, count = noise.screening.engine.sweep(visit).panel_sums[:, 0]
    if count == 0:
        return 0.0
    middle = float(total / count)
    return NORMAL * middle if middle > 0 else float(np.sqrt(noise.screening.facts.pool.max()))
