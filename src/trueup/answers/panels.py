"""Panels: many small problems drawn from one, laid out as one block-diagonal Answers.

Monte-Carlo studies, bootstrap, jackknife and cross-validation over workers all ask for the result
of an algorithm on many variations of the same answers. Here each is a single call without a loop
over panels, and its result runs through the algorithms like any other Answers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.core.arrays import compact, expand, group_order, narrow, offsets
from trueup.core.sampling import check_seed, generator, id_order, places
from trueup.errors import AnswersError, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trueup.answers.answers import Answers
    from trueup.core.arrays import Bools, Indices, Ints

# Entries of a table panels x workers (or questions, or answers) that are held at a time.
TABLE = 1 << 22
# More panels than anybody draws.
MOST_PANELS = 10**9


def one(answers: Answers, number: int) -> Answers:
    """Return panel `number` as Answers of its own."""
    if not _is_whole(number) or not 0 <= number < answers.n_panels:
        raise AnswersError(
            f"found {quoted(number)}, there are panels 0 to {answers.n_panels - 1}.",
            argument="number",
        )
    return span(answers, number, number + 1)


def span(answers: Answers, first: int, last: int) -> Answers:
    """Return the panels from `first` up to `last`, which is not included."""
    q0, q1 = answers.panel_questions[[first, last]].tolist()
    w0, w1 = answers.panel_workers[[first, last]].tolist()
    here = slice(int(answers.indptr[q0]), int(answers.indptr[q1]))

    def cut(array: Ints | None, a: int, b: int) -> Ints:
        return np.arange(a, b) if array is None else array[a:b]

    known = answers.worker_variance
    return replace(
        answers,
        indptr=answers.indptr[q0 : q1 + 1] - here.start,
        workers=answers.workers[here] - w0,
        values=answers.values[here],
        centre=answers.centre[q0:q1],
        precision=None if answers.precision is None else answers.precision[here],
        given=None if answers.given is None else answers.given[here],
        worker_variance=None if known is None else known[w0:w1],
        question_source=cut(answers.question_source, q0, q1),
        worker_source=cut(answers.worker_source, w0, w1),
        panel_questions=answers.panel_questions[first : last + 1] - q0,
        panel_workers=answers.panel_workers[first : last + 1] - w0,
        origin=answers.origin
        if answers.origin.panel_ids is None
        else replace(
            answers.origin, panel_ids=answers.origin.panel_ids.take(np.arange(first, last))
        ),
    )


def subset(answers: Answers, questions: Ints) -> Answers:
    """Return the answers to some questions of a single problem, in the order given, as a problem of its own."""
    _single(answers, 1)
    last = answers.n_questions - 1
    chosen = np.asarray(questions)
    whole = chosen.ndim == 1 and (chosen.dtype.kind in "iu" or not len(chosen))
    if not whole or not ((chosen >= 0) & (chosen <= last)).all():
        raise AnswersError(
            f"found {quoted(questions)}, must be numbers of questions from 0 to {last}.",
            argument="questions",
        )
    chosen = chosen.astype(np.int64)
    if len(np.unique(chosen)) != len(chosen):
        raise AnswersError("a question may be asked for once.", argument="questions")
    _, _, position = _answers_of(answers, chosen, len(chosen))
    worker, workers = compact(answers.workers[position].astype(np.int64), answers.n_workers)
    known = answers.worker_variance
    source = answers.question_source
    return replace(
        answers,
        indptr=offsets(answers.counts[chosen]),
        workers=narrow(worker, len(workers)),
        values=answers.values[position],
        centre=answers.centre[chosen],
        precision=None if answers.precision is None else answers.precision[position],
        given=None if answers.given is None else answers.given[position],
        worker_variance=None if known is None else known[workers],
        question_source=chosen if source is None else source[chosen],
        worker_source=workers if answers.worker_source is None else answers.worker_source[workers],
        panel_questions=np.array([0, len(chosen)]),
        panel_workers=np.array([0, len(workers)]),
    )


def sample(
    answers: Answers, n_panels: int, *, workers: int, questions: int, seed: int = 0
) -> Answers:
    """Draw `n_panels` panels of `workers` workers and `questions` questions, without replacement.

    A panel holds the answers that its workers gave to its questions. Questions without an answer
    and workers who gave none are not part of it (on a complete set there are none such).
    """
    _single(answers, n_panels)
    _enough("workers", workers, answers.n_workers)
    _enough("questions", questions, answers.n_questions)
    worker_rng, question_rng = generator(seed).spawn(2)
    expected = questions * answers.n_answers // answers.n_questions
    parts = []
    for first, count in _chunks(n_panels, max(answers.n_workers, answers.n_questions, expected)):
        chosen_workers = _choose(worker_rng, count, answers.n_workers, workers)
        chosen_questions = _choose(question_rng, count, answers.n_questions, questions).ravel()
        is_chosen = np.zeros((count, answers.n_workers), dtype=bool)
        is_chosen[np.arange(count)[:, None], chosen_workers] = True
        panel, question, position = _answers_of(answers, chosen_questions, questions)
        keep = is_chosen[panel, answers.workers[position]]
        parts.append((panel[keep] + first, question[keep], position[keep]))
    panel, question, position = (np.concatenate(part) for part in zip(*parts, strict=True))
    return _lay_out(answers, n_panels, panel, question, position, answers.workers[position])


def sample_answers(
    answers: Answers, n_panels: int, *, answers_each: int, questions: int, seed: int = 0
) -> Answers:
    """Draw `n_panels` panels of `questions` questions with `answers_each` random answers each.

    For sparse sets, where few workers share many questions. Only questions with that many answers
    are drawn; every worker who gave one of the answers is in the panel.
    """
    _single(answers, n_panels)
    _enough("answers_each", answers_each, int(answers.counts.max(initial=0)))
    eligible = np.flatnonzero(answers.counts >= answers_each)
    _enough(f"questions (with {answers_each} answers)", questions, len(eligible))
    question_rng, answer_rng = generator(seed).spawn(2)
    expected = int(answers.counts[eligible].sum()) * questions // len(eligible)
    parts = []
    for first, count in _chunks(n_panels, max(len(eligible), expected)):
        chosen = eligible[_choose(question_rng, count, len(eligible), questions)].ravel()
        panel, question, position = _answers_of(answers, chosen, questions)
        # A random order inside each question: its number plus a random fraction, sorted.
        counts = answers.counts[chosen]
        segment = np.repeat(np.arange(len(chosen)), counts)
        order = np.argsort(segment + answer_rng.random(len(segment)))
        taken = order[expand(offsets(counts)[:-1], np.full(len(chosen), answers_each))]
        taken.sort()
        parts.append((panel[taken] + first, question[taken], position[taken]))
    panel, question, position = (np.concatenate(part) for part in zip(*parts, strict=True))
    return _lay_out(answers, n_panels, panel, question, position, answers.workers[position])


def sample_blocks(
    answers: Answers, n_panels: int, blocks: Ints, *, workers: int, questions: int, seed: int = 0
) -> Answers:
    """Draw panels inside blocks of questions that the same workers answered, each block equally often.

    `blocks` is the number of the block of each question.
    """
    _single(answers, n_panels)
    question = np.repeat(np.arange(answers.n_questions), answers.counts)
    rng = generator(seed)
    kinds = np.unique(blocks)
    of_block = {int(b): np.flatnonzero(blocks == b) for b in kinds}
    people = {int(b): np.unique(answers.workers[blocks[question] == b]) for b in kinds}
    parts = []
    for number in range(n_panels):
        b = int(kinds[number % len(kinds)])
        _enough("workers (in a block)", workers, len(people[b]))
        _enough("questions (in a block)", questions, len(of_block[b]))
        chosen = np.sort(rng.choice(of_block[b], questions, replace=False))
        who = rng.choice(people[b], workers, replace=False)
        _, asked, position = _answers_of(answers, chosen, questions)
        keep = np.isin(answers.workers[position], who)
        parts.append((np.full(int(keep.sum()), number), asked[keep], position[keep]))
    panel, question, position = (np.concatenate(part) for part in zip(*parts, strict=True))
    return _lay_out(answers, n_panels, panel, question, position, answers.workers[position])


def bootstrap(answers: Answers, n_panels: int, *, seed: int = 0, once: bool = False) -> Answers:
    """Draw `n_panels` panels of as many workers as there are, with replacement.

    A worker drawn twice is in the panel as two workers with the same answers, or `once`.
    """
    _single(answers, n_panels)
    n = answers.n_workers
    rng = generator(seed)
    drawn = id_order(answers)[rng.integers(0, n, size=(n_panels, n)).ravel()]
    if once:
        present = np.zeros((n_panels, n), dtype=bool)
        present[np.repeat(np.arange(n_panels), n), drawn] = True
        return _of_workers(answers, present)
    by_worker = group_order(answers.workers, n)
    start = offsets(np.bincount(answers.workers, minlength=n))
    counts = np.diff(start)[drawn]
    position = by_worker[expand(start[drawn], counts)].astype(np.int64)
    slot = np.repeat(np.arange(n_panels * n), counts)
    question = np.repeat(np.arange(answers.n_questions), answers.counts)[position]
    panel = slot // n
    order = group_order(panel * answers.n_questions + question, n_panels * answers.n_questions)
    return _lay_out(
        answers, n_panels, panel[order], question[order], position[order], slot[order] % n, drawn
    )


def _of_workers(answers: Answers, present: Bools) -> Answers:
    """Return a panel with the answers of the workers of each row of `present`, panels x workers."""
    panel, position = np.nonzero(present[:, answers.workers])
    question = np.repeat(np.arange(answers.n_questions), answers.counts)[position]
    return _lay_out(answers, len(present), panel, question, position, answers.workers[position])


def jackknife(answers: Answers, groups: int, *, seed: int = 0) -> Answers:
    """Split the workers into `groups` random groups and make a panel without each of them.

    With as many groups as workers this is the delete-one jackknife. Panels in which no question is left have no
    questions.
    """
    _single(answers)
    _enough("groups", groups, answers.n_workers, least=2)
    check_seed(seed)
    return folds(answers, groups, seed=seed).training


@dataclass(frozen=True, eq=False)
class Folds:
    """The training sides of cross-validation over workers.

    Attributes
    ----------
    training : Answers
        All panels without the workers of fold 0, then all without those of fold 1, and so on.
    question : array
        Number of each of its questions in the answers that were split.
    fold : array
        Fold in which each of its questions was trained.
    of_worker : array
        The fold of each worker of the answers that were split.
    """

    training: Answers
    question: Ints
    fold: Ints
    of_worker: Ints


def folds(
    answers: Answers, groups: int, *, seed: int = 0, draw: int = 0, most: int | None = None
) -> Folds:
    """Split the workers of every panel into at most `groups` random folds of nearly equal size.

    `draw` numbers different splits with one seed. With `most`, only the first so many folds are left out.
    """
    size = np.minimum(np.diff(answers.panel_workers), groups)[answers.worker_panel]
    fold = places(answers, seed, draw) % np.maximum(size, 1)
    groups = groups if most is None else min(groups, most)
    left_out = fold[answers.workers] != np.arange(groups)[:, None]
    left_out &= np.arange(groups)[:, None] < size[answers.workers]
    copy, position = np.nonzero(left_out)
    question = np.repeat(np.arange(answers.n_questions), answers.counts)[position]
    training = _lay_out(answers, groups, copy, question, position, answers.workers[position])
    key = _runs(copy * answers.n_questions + question)[1]
    m = answers.n_questions
    return Folds(training, key % m, key // m, fold)


def _single(answers: Answers, n_panels: int = 1) -> None:
    if answers.n_panels > 1:
        raise AnswersError("panels: these answers are panels already; draw from a single problem.")
    _enough("n_panels", n_panels, MOST_PANELS)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _enough(argument: str, wanted: int, available: int, least: int = 1) -> None:
    if not _is_whole(wanted) or not least <= wanted <= available:
        raise AnswersError(
            f"found {quoted(wanted)}, must be at least {least} and at most {available} here.",
            argument=argument,
        )


def _chunks(n_panels: int, width: int) -> Iterator[tuple[int, int]]:
    """Cut the panels into runs whose tables of `width` columns fit into memory."""
    most = max(1, TABLE // max(width, 1))
    for first in range(0, n_panels, most):
        yield first, min(most, n_panels - first)


def _choose(rng: np.random.Generator, rows: int, available: int, wanted: int) -> Ints:
    """Choose `wanted` of `available` without replacement in every row, sorted."""
    if wanted == available:
        return np.tile(np.arange(available), (rows, 1))
    chosen = np.argpartition(rng.random((rows, available)), wanted, axis=1)[:, :wanted]
    chosen.sort(axis=1)
    return chosen


def _answers_of(answers: Answers, chosen: Ints, per_panel: int) -> tuple[Ints, Ints, Ints]:
    """Return panel, question and position of all answers to the chosen questions."""
    counts = answers.counts[chosen]
    position = expand(answers.indptr[chosen], counts)
    row = np.repeat(np.arange(len(chosen)), counts)
    return row // per_panel, chosen[row], position


def _runs(keys: Ints) -> tuple[Ints, Ints]:
    """Return for sorted keys the number of the run of equal keys each is in, and the key of each run."""
    begins = np.ones(len(keys), dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=begins[1:])
    return np.cumsum(begins) - 1, keys[begins]


def _lay_out(
    answers: Answers,
    copies: int,
    copy: Ints,
    question: Ints,
    position: Ints,
    worker: Indices,
    source: Ints | None = None,
) -> Answers:
    """Make a block-diagonal Answers of answers listed by copy and question.

    `worker` tells the workers of a copy apart; `source[copy * n + worker]` is who they really are (default:
    themselves). The copies of all panels come one after another.
    """
    m, n, panels = answers.n_questions, answers.n_workers, answers.n_panels
    new_question, questions = _runs(copy * m + question)
    new_worker, workers = compact(copy * n + worker, copies * n)
    copy_of_question, question = np.divmod(questions, m)
    copy_of_worker, real = np.divmod(workers, n)
    if source is not None:
        real = source[workers]
    known = answers.worker_variance
    old_question = answers.question_source
    old_worker = answers.worker_source
    question_panel = copy_of_question * panels + answers.question_panel[question]
    worker_panel = copy_of_worker * panels + answers.worker_panel[real]
    return replace(
        answers,
        indptr=offsets(np.bincount(new_question, minlength=len(questions))),
        workers=narrow(new_worker, len(workers)),
        values=answers.values[position],
        centre=answers.centre[question],
        precision=None if answers.precision is None else answers.precision[position],
        given=None if answers.given is None else answers.given[position],
        worker_variance=None if known is None else known[real],
        question_source=question if old_question is None else old_question[question],
        worker_source=real if old_worker is None else old_worker[real],
        panel_questions=offsets(np.bincount(question_panel, minlength=copies * panels)),
        panel_workers=offsets(np.bincount(worker_panel, minlength=copies * panels)),
        origin=replace(answers.origin, panel_ids=None),
    )
