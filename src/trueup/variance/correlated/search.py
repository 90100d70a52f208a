"""The search for pairs: a sample if need be, the questions that two share, both tests, and what they found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.answers.answers import Answers
from trueup.errors import TrueupError
from trueup.result.estimate import Estimate
from trueup.variance.correlated.correlation import correlated
from trueup.variance.correlated.identical import identical
from trueup.variance.correlated.pairs import NO_ERRORS, Together
from trueup.variance.correlated.sample import Looked
from trueup.variance.correlated.shared_questions import Flat
from trueup.variance.worker_noise import worker_noise

if TYPE_CHECKING:
    from trueup.variance.correlated.correlation import Errors
    from trueup.variance.correlated.identical import Same
    from trueup.variance.worker_noise import WorkerNoise


def together(
    answers: Any, *, noise: WorkerNoise | None = None, seed: int = 0, **options: Any
) -> Together:
    """Find workers who err together or copy one another.

    Parameters
    ----------
    answers : Estimate, or what `trueup.estimate` takes
        `options` are those of `Answers.of`. The truths are made here, whatever the first step of an estimate was: the
        pull of a pair on its own truths must be known to be taken off.
    noise : WorkerNoise, optional
        Of these answers, where it has been computed already. That of a sample is computed here.
    seed : int
        Of the sample of questions that is looked at where there are very many.

    Examples
    --------
    >>> import trueup
    >>> x = trueup.simulate(workers=8, questions=60, seed=1).answers.to_matrix()
    >>> x[5] = x[2] + 0.1 * x[6]
    >>> print(together(x).describe(0))
    2 and 5: errors correlate 0.94 (60 shared questions)
    """
    data = answers.answers if isinstance(answers, Estimate) else Answers.of(answers, **options)
    if data.n_panels > 1:
        raise TrueupError("answers: these are panels; take one of them, `answers.panel(b)`.")
    looked = Looked.of(data, seed)
    if looked is not None:
        return together(looked.answers, seed=seed).among(looked)
    flat = Flat.of(data, seed)
    if len(flat.one) == 0:
        return _nothing(flat)
    if noise is None and isinstance(answers, Estimate):
        noise = noise_of(answers)
    noise = worker_noise(data) if noise is None else noise
    errors = correlated(flat, noise)
    same = identical(flat)
    return _gather(flat, errors, same)


def noise_of(estimate: Estimate) -> WorkerNoise | None:
    """Return the noise of the workers if the estimate has it already, of its answers as they were read."""
    taken = estimate.biases is not None or estimate.aggregate.bias is not None
    return None if taken or estimate.calibration is not None else estimate.second_step.noise


def _nothing(flat: Flat) -> Together:
    """Return what is known where no two workers share enough questions."""
    none, empty = np.zeros(0), np.zeros(0, dtype=np.int64)
    n, m = len(flat.chosen), len(flat.indptr) - 1
    return Together(
        flat.data, empty, empty, empty, none, none, none, none, none, empty > 0, n, 0, m, float(n),
        flat.notes,
    )  # fmt: skip


def _gather(flat: Flat, errors: Errors, same: Same) -> Together:
    """Put both tests together."""
    found = np.flatnonzero(errors.found | same.found)
    p = np.minimum(errors.p, same.p)
    # The clearest first; where p-values end, the more identical, then the more correlated.
    order = np.lexsort(
        (flat.two[found], flat.one[found], -np.nan_to_num(errors.z[found]), p[found])
    )
    found = found[order]
    n = len(flat.chosen)
    tie = np.maximum(
        np.where(errors.found, np.nan_to_num(errors.correlation), 0.0),
        np.where(same.found, same.share, 0.0),
    )
    mean = 2.0 * float(tie.sum()) / (n * (n - 1.0))
    return Together(
        answers=flat.data,
        first=flat.chosen[flat.one[found]],
        second=flat.chosen[flat.two[found]],
        shared=flat.shared[found].astype(np.int64),
        correlation=errors.correlation[found],
        z=errors.z[found],
        identical=same.share[found],
        expected=same.expected[found],
        p_value=p[found],
        copies=same.found[found],
        n_workers=n,
        n_pairs=len(flat.one),
        n_questions=len(flat.indptr) - 1,
        effective=n / (1.0 + (n - 1.0) * mean),
        notes=flat.notes + (NO_ERRORS,) * bool(np.isnan(errors.correlation).all()),
    )
