"""Answers whose workers have pseudonyms: numbered anew, in random order, so that nothing tells who is who."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from trueup.core.arrays import narrow
from trueup.io.table import pseudonyms_of

if TYPE_CHECKING:
    from trueup.answers.answers import Answers
    from trueup.core.arrays import Ints


def with_pseudonyms(answers: Answers) -> tuple[Answers, Ints]:
    """Return the answers of one problem with pseudonyms for the workers, and the new number of each worker."""
    names, code = pseudonyms_of(answers.worker_ids)
    worker = code[answers.workers]
    question = np.repeat(np.arange(answers.n_questions), answers.counts)
    order = np.lexsort((worker, question))
    variance = answers.worker_variance
    renamed = replace(
        answers,
        workers=narrow(worker[order], answers.n_workers),
        values=answers.values[order],
        given=None if answers.given is None else answers.given[order],
        precision=None if answers.precision is None else answers.precision[order],
        worker_variance=None if variance is None else variance[np.argsort(code)],
        worker_source=None,
        origin=replace(answers.origin, worker_ids=names),
    )
    return renamed, code
