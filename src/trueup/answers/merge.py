"""New answers folded into old ones: one sorted whole, without sorting the old ones again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from trueup.answers.build import NAMED, centred_values
from trueup.core.arrays import expand, narrow, offsets
from trueup.errors import AnswersError, option, quoted
from trueup.io.plain_ids import joined

if TYPE_CHECKING:
    from trueup.answers.answers import Answers
    from trueup.core.arrays import Bools, Floats, Ints
    from trueup.io.table import Ids

Repeated: TypeAlias = Literal["error", "mean", "mean-all", "first", "replace"]
#: Frames that come back as they were, if their library is there.
FRAMES = ("pandas", "polars", "pyarrow", "duckdb")
REPEATED = ("error", "mean", "mean-all", "first", "replace")


class Merged(NamedTuple):
    """All answers, and what the new ones were.

    Attributes
    ----------
    question
        Number of each question of the new answers among all.
    added, repeated, replaced, questions, workers
        How many answers were added, how many were repeated (and dropped, or put in the place of old ones), how many old
        ones were replaced, how many questions and workers are new.
    """

    answers: Answers
    question: Ints
    added: int
    repeated: int
    replaced: int
    questions: int
    workers: int


def merge(
    old: Answers, new: Answers, duplicates: Repeated = "error", *, anonymous: bool = False
) -> Merged:
    """Fold new answers into old ones; what is new comes last, in the order of first appearance.

    With `anonymous`, messages name no worker.
    """
    if old.unit and new.unit and old.unit != new.unit:
        raise AnswersError(
            f"the new answers are in {quoted(new.unit)}, the old ones in {quoted(old.unit)}.",
            remedy="Convert the new ones.",
        )
    question, question_ids = joined(old.question_ids, new.question_ids, "question")
    worker, worker_ids = joined(old.worker_ids, new.worker_ids, "worker")
    m, n = len(question_ids), len(worker_ids)
    # Answers lie by question, then worker.
    new_key = question[np.repeat(np.arange(new.n_questions), new.counts)] * n + worker[new.workers]
    order = np.argsort(new_key, kind="stable")
    new_key = new_key[order]
    new_question, new_worker = np.divmod(new_key, n)
    place, again = _places(old, new_key, new_question, n)
    keep_old, keep_new = None, np.ones(len(again), dtype=bool)
    if again.any():
        if duplicates in ("error", "mean", "mean-all"):
            named = None if anonymous else worker_ids
            raise _repeated(question_ids, named, new_key[again], n)
        if duplicates == "first":
            keep_new = ~again
        else:
            keep_old = np.delete(np.arange(old.n_answers), place[again])
            # Each place moves by the answers before it that are gone.
            place = place - (np.cumsum(again) - again)
    # Where each answer comes from: first the old ones, then the new ones.
    came = np.arange(old.n_answers) if keep_old is None else keep_old
    came = np.insert(came, place[keep_new], old.n_answers + np.arange(new.n_answers)[keep_new])

    def join(mine: Any, more: Any) -> Any:
        return np.concatenate([mine, more])[came]

    counts = np.zeros(m, dtype=np.int64)
    counts[: old.n_questions] = old.counts
    gone = again if keep_old is not None else np.zeros(len(again), dtype=bool)
    counts += np.bincount(new_question[keep_new], minlength=m)
    counts -= np.bincount(new_question[gone], minlength=m)
    centred = centred_values(join(old.answers, new.answers[order]), offsets(counts))
    precision, mean_variance = _precision(old, new, order), np.nan
    if precision is not None:
        every = join(*precision)
        mean_variance = 1.0 / float(every.mean())
        precision = every * mean_variance
    repeated = int(again.sum())
    answers = replace(
        old,
        indptr=offsets(counts),
        workers=join(narrow(old.workers, n), narrow(new_worker, n)),
        values=centred.values,
        centre=centred.centre,
        given=centred.given,
        panel_questions=np.array([0, m]),
        panel_workers=np.array([0, n]),
        precision=precision,
        answer_variance=mean_variance,
        worker_variance=_worker_variance(old, new, worker, n),
        question_source=None,
        worker_source=None,
        origin=replace(
            old.origin,
            question_ids=question_ids,
            worker_ids=worker_ids,
            panel_ids=None,
            kind=new.origin.kind if new.origin.kind in FRAMES else old.origin.kind,
            n_rows=old.origin.n_rows + new.origin.n_rows,
            n_missing=old.origin.n_missing + new.origin.n_missing,
            n_duplicates=old.origin.n_duplicates + new.origin.n_duplicates,
            unanswered=_unanswered(question_ids, old.origin.unanswered, new.origin.unanswered),
            rejects=old.origin.rejects + new.origin.rejects,
            unit=old.unit or new.unit,
        ),
    )
    return Merged(
        answers,
        question,
        new.n_answers - repeated,
        repeated,
        int(gone.sum()),
        m - old.n_questions,
        n - old.n_workers,
    )


def _places(old: Answers, keys: Ints, question: Ints, n: int) -> tuple[Ints, Bools]:
    """Return before which of the old answers each new one belongs, and whether that is by the same worker.

    Only the answers of the questions that have new ones are looked at; keys rise.
    """
    known = question < old.n_questions
    mine = np.unique(question[known])
    at = expand(old.indptr[mine], old.counts[mine])
    old_keys = np.repeat(mine, old.counts[mine]) * n + old.workers[at]
    inside = np.searchsorted(old_keys, keys[known])
    again = np.zeros(len(keys), dtype=bool)
    place = np.full(len(keys), old.n_answers)
    if len(at):
        again[known] = old_keys[np.minimum(inside, len(at) - 1)] == keys[known]
        # Behind the last answer of its own question is where another question begins.
        ends = offsets(old.counts[mine])[1:]
        own = np.searchsorted(mine, question[known])
        last = inside == ends[own]
        place[known] = np.where(
            last, old.indptr[mine[own] + 1], at[np.minimum(inside, len(at) - 1)]
        )
    return place, again


def _unanswered(answered: Ids, *parts: Ids | None) -> Ids | None:
    """Return the questions that still nobody answered."""
    found: Ids | None = None
    for ids in parts:
        if ids is None:
            continue
        found = ids if found is None else joined(found, ids, "question")[1]
    if found is None:
        return None
    still = np.flatnonzero(answered.index_of(found) < 0)
    return found.take(still) if len(still) else None


def _repeated(questions: Ids, workers: Ids | None, keys: Ints, n: int) -> AnswersError:
    first = keys[:NAMED]
    names = [f"question {quoted(name)}" for name in questions.tolist(first // n)]
    if workers is not None:
        who = workers.tolist(first % n)
        names = [f"worker {quoted(w)} on {q}" for w, q in zip(who, names, strict=True)]
    named = ", ".join(names)
    return AnswersError(
        f"{len(keys):,} of the new answers were given before, first {named}.",
        argument="duplicates",
        remedy="Pass "
        + option("duplicates", "replace")
        + " to put the new ones in their place, or "
        + option("duplicates", "first")
        + " to keep those before.",
    )


def _precision(old: Answers, new: Answers, order: Ints) -> Any:
    """Return the precisions of old and new answers in the same unit, or None."""
    if old.precision is None and new.precision is None:
        return None
    if old.precision is None or new.precision is None:
        has, lacks = ("new", "old") if old.precision is None else ("old", "new")
        raise AnswersError(
            f"the {has} answers have one, the {lacks} ones do not.",
            argument="answer_variance",
            remedy="Give it for all or for none.",
        )
    return old.precision / old.answer_variance, new.precision[order] / new.answer_variance


def _worker_variance(old: Answers, new: Answers, worker: Ints, n: int) -> Floats | None:
    """Return the known variances of all workers, NaN where unknown."""
    if old.worker_variance is None and new.worker_variance is None:
        return None
    known = np.full(n, np.nan)
    if old.worker_variance is not None:
        known[: old.n_workers] = old.worker_variance
    if new.worker_variance is not None:
        has = ~np.isnan(new.worker_variance)
        known[worker[has]] = new.worker_variance[has]
    return known
