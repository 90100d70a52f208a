"""The search for correlated workers: a sample if need be, the questions that two share, and both tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trueup.engines.memory import MemoryEngine
from trueup.variance.correlated.correlation import correlated
from trueup.variance.correlated.identical import identical
from trueup.variance.correlated.pairs import NO_ERRORS, CorrelatedPairs
from trueup.variance.correlated.sample import sample_answers
from trueup.variance.correlated.shared_questions import Flat
from trueup.variance.worker_noise import worker_noise

if TYPE_CHECKING:
    from trueup.answers.answers import Answers
    from trueup.variance.correlated.correlation import Errors
    from trueup.variance.correlated.identical import Same
    from trueup.variance.worker_noise import WorkerNoise


def find_pairs(
    answers: Answers, *, noise: WorkerNoise | None = None, seed: int = 0
) -> CorrelatedPairs:
    """Find workers whose errors correlate, or who copy one another.

    The truths are estimated here, whatever the first step of an estimate was: the pull of a pair on its own truths must
    be known to be corrected.

    Parameters
    ----------
    answers : Answers
        The answers of one panel.
    noise : WorkerNoise, optional
        The noise of these answers, where it has been computed already. That of a sample is computed here.
    seed : int
        Seed of the sample of questions that is drawn where there are very many.
    """
    sample = sample_answers(MemoryEngine(answers), seed)
    if sample.answers is not answers:
        return find_pairs(sample.answers, seed=seed).in_all(sample)
    flat = Flat.of(answers, seed)
    if len(flat.one) == 0:
        return _no_pairs(flat)
    errors = correlated(flat, noise or worker_noise(answers))
    return _joined(flat, errors, identical(flat))


def _no_pairs(flat: Flat) -> CorrelatedPairs:
    """Return the outcome where no two workers share enough questions."""
    none, empty = np.zeros(0), np.zeros(0, dtype=np.int64)
    n, m = len(flat.chosen), len(flat.indptr) - 1
    return CorrelatedPairs(
        flat.data.n_workers, empty, empty, empty, none, none, none, none, none, empty > 0, n, 0, m,
        float(n), flat.notes,
    )  # fmt: skip


def _joined(flat: Flat, errors: Errors, same: Same) -> CorrelatedPairs:
    """Join the pairs that either test found."""
    pairs = np.flatnonzero(errors.found | same.found)
    p = np.minimum(errors.p, same.p)
    # The clearest first; where p-values are 0, the more identical, then the more correlated.
    order = np.lexsort(
        (flat.two[pairs], flat.one[pairs], -np.nan_to_num(errors.z[pairs]), p[pairs])
    )
    pairs = pairs[order]
    n = len(flat.chosen)
    tie = np.maximum(
        np.where(errors.found, np.nan_to_num(errors.correlation), 0.0),
        np.where(same.found, same.share, 0.0),
    )
    mean = 2.0 * float(tie.sum()) / (n * (n - 1.0))
    return CorrelatedPairs(
        n_all=flat.data.n_workers,
        first=flat.chosen[flat.one[pairs]],
        second=flat.chosen[flat.two[pairs]],
        shared=flat.shared[pairs].astype(np.int64),
        correlation=errors.correlation[pairs],
        z=errors.z[pairs],
        identical=same.share[pairs],
        expected=same.expected[pairs],
        p_value=p[pairs],
        copies=same.found[pairs],
        n_workers=n,
        n_pairs=len(flat.one),
        n_questions=len(flat.indptr) - 1,
        effective=n / (1.0 + (n - 1.0) * mean),
        notes=flat.notes + (NO_ERRORS,) * bool(np.isnan(errors.correlation).all()),
    )
