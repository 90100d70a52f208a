"""update(): new answers folded into an estimate, which goes on from what it believes of the workers.

The first step is a loop that ends where nothing moves. Where it begins decides how soon it ends, not where: it goes on
from the workers as they were known and needs a few iterations, after which the truths are those of a run over all
answers. Methods that end after a number of updates by definition, and those that do not learn, are run afresh.

The second step is run over all questions. Of a large problem, which prior it has is not tried again until its answers
have grown by a twentieth: it takes long, and held-out workers say of a few answers more what they said before.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup._estimate import read_question_data, solved
from trueup.answers.answers import FILE_OPTIONS, Answers
from trueup.answers.merge import REPEATED, Repeated, merge
from trueup.core.progress import Progress
from trueup.engines.memory import check_threads
from trueup.errors import TrueupError, quoted
from trueup.io.archive import shown
from trueup.io.question_data import QuestionDataRequest
from trueup.result.estimate import Estimate
from trueup.result.load import Saved, read_saved

if TYPE_CHECKING:
    from os import PathLike

    from trueup.answers.merge import Merged
    from trueup.io.question_data import QuestionData
    from trueup.shrinkage.adaptive_prior import PriorChoice

#: Answers from which on the choice of a prior takes long enough to be kept, and the share of them that may change.
LARGE, GROWN = 50_000, 0.05


def update(
    state: str | PathLike[str] | Estimate,
    answers: Any,
    *,
    duplicates: Repeated = "error",
    save: bool | str | PathLike[str] = True,
    groups: Any = None,
    covariates: Any = None,
    gold: Any = None,
    worker_variance: Any = None,
    answer_variance: Any = None,
    progress: bool = False,
    threads: int | None = None,
    question: str = "question",
    worker: str = "worker",
    answer: str = "answer",
    **reading: Any,
) -> Estimate:
    """Fold new answers into an estimate: answers to old and new questions, of old and new workers.

    All else, such as method, second step and transformation, stays as it was. The result is that of an estimate from
    all answers, up to the tolerance at which the first step ends; a method that was chosen by "auto" is not chosen
    anew, nor is the kind of prior of a problem with 50,000 answers or more, until a twentieth of them has changed.

    Parameters
    ----------
    state : path or Estimate
        What was saved with `est.save(path)`, or the estimate itself.
    answers : data frame, path, array, sparse matrix or Answers
        The new answers, in any form that `estimate` takes. Ids must be of the same type as before: 1 and "1" differ.
    duplicates : {"error", "mean", "first", "replace"}
        What to do when a worker answered a question again. "replace": the new answer takes the place of the one before;
        "first": that one stays; "mean": repeated new answers become one, but those before are not touched.
    save : bool or path
        Where the new state goes: True, to the file it came from, which stays whole if anything fails; False, nowhere;
        or another file. An Estimate is written only where a path is given.
    groups, covariates, gold
        What is known of new questions, as for `estimate`; questions in an order are those of the new answers for
        covariates and all questions for the others. Of old questions it takes the place of what was known.
    worker_variance, answer_variance
        Known variances, as for `estimate`; those of old workers take the place of what was known.
    progress, threads, question, worker, answer, reading
        As for `estimate`.

    Examples
    --------
    >>> from trueup import estimate
    >>> est = estimate([[10.0, 4.0, 7.0], [11.0, 5.0, 7.5], [16.0, 1.0, 3.0]], method="crh")
    >>> new = {"question": [0, 1, 3], "worker": [3, 3, 3], "answer": [10.4, 4.6, 2.0]}
    >>> update(est, new).answers
    Answers(4 questions, 4 workers, 12 answers)
    """
    strange = sorted(set(reading) - set(FILE_OPTIONS))
    if strange:
        raise TypeError(f"update() got an unexpected keyword argument {strange[0]!r}")
    check_threads(threads)
    if not isinstance(duplicates, str) or duplicates not in REPEATED:
        known = ", ".join(f'"{each}"' for each in REPEATED)
        raise TrueupError(f"duplicates: {quoted(duplicates)} is not one of {known}.")
    opened = Opened.of(state)
    with Progress("update", 3, shown=progress) as bar:
        new = read_new(
            opened.saved,
            answers,
            duplicates=duplicates,
            question=question,
            worker=worker,
            answer=answer,
            worker_variance=worker_variance,
            answer_variance=answer_variance,
            **reading,
        )
        merged = merge(opened.saved.answers, new, duplicates)
        file_options = {name: value for name, value in reading.items() if name != "wide"}
        request = QuestionDataRequest(groups, covariates, gold, question, file_options)
        question_data = merge_question_data(opened.saved, merged, new, request, answers)
        bar.step("answers read")
        est = go_on(opened.saved, merged, question_data, bar, threads=threads)
    if save is True:
        opened.write(est)
    elif save is not False:
        est.save(save)
    return est


# -- the state -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Opened:
    """A state, the file it came from, and how that looked."""

    saved: Saved
    path: str | PathLike[str] | None = None
    stamp: tuple[int, ...] = ()

    @classmethod
    def of(cls, state: Any) -> Opened:
        """Read a state from a file, or take it from an estimate."""
        if isinstance(state, Estimate):
            return cls(Saved.of(state))
        if not isinstance(state, str | os.PathLike):
            raise TrueupError(
                f"state: found {quoted(type(state).__name__)}. Give the file that est.save wrote, or an estimate."
            )
        stamp = _stamp(state)  # before reading: who writes meanwhile is noticed
        return cls(read_saved(state), state, stamp)

    def write(self, est: Estimate) -> None:
        """Write the new state where the old one came from."""
        if self.path is None:
            return
        self.check_unchanged()
        est.save(self.path)

    def check_unchanged(self) -> None:
        """Refuse to write over what somebody else has written since."""
        if self.path is not None and _stamp(self.path) != self.stamp:
            raise TrueupError(
                f"File {shown(self.path)}: was changed meanwhile, and nothing is written. Update it again."
            )


def _stamp(path: str | PathLike[str]) -> tuple[int, ...]:
    try:
        found = os.stat(path)  # noqa: PTH116  a path of either kind
    except (OSError, ValueError):
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns


# -- the answers ---------------------------------------------------------------------------------------------


def read_new(saved: Saved, answers: Any, *, duplicates: Repeated, **options: Any) -> Answers:
    """Read new answers on the scale of the old ones."""
    old = saved.answers.scale
    if isinstance(answers, Answers):
        new = Answers.of(answers, **options)
        if new.scale != old:
            raise TrueupError(
                "answers: transform or bounds are not those of the state. Make the new Answers with "
                f"transform={old.transform!r}, bounds={old.bounds!r}."
            )
        if new.n_panels > 1:
            raise TrueupError("answers: these are panels; take one with `answers.panel(b)`.")
        return new
    inside: Any = "error" if duplicates == "replace" else duplicates
    return Answers.of(
        answers, duplicates=inside, transform=old.transform, bounds=old.bounds, **options
    )


# -- groups, covariates and gold -----------------------------------------------------------------------------


def merge_question_data(
    saved: Saved, merged: Merged, new: Answers, request: QuestionDataRequest, source: Any
) -> QuestionData:
    """Read groups and gold of all questions and covariates of the new ones, and merge them with those of the state."""
    covariates = replace(request, groups=None, gold=None).read(new, source).covariates
    given = read_question_data(replace(request, covariates=None), merged.answers, source)
    return saved.question_data.merged(
        replace(given, covariates=covariates), merged.answers.n_questions, merged.question
    )


# -- both steps ----------------------------------------------------------------------------------------------


def go_on(
    saved: Saved,
    merged: Merged,
    question_data: QuestionData,
    bar: Progress,
    *,
    threads: int | None = None,
) -> Estimate:
    """Run both steps over all answers, from what is believed of the workers and the prior."""
    given = saved.plan.variance
    if isinstance(given, np.ndarray) and given.ndim and merged.questions:
        raise TrueupError(
            "variance: it was given for each question, and there are new ones. Estimate again from all answers."
        )
    plan = replace(saved.plan, method=saved.algorithm, threads=threads)
    prior_choice = _kept_prior_choice(saved, merged, question_data)
    est = solved(merged.answers, plan, question_data, bar, start=saved, prior_choice=prior_choice)
    return replace(est, plan=saved.plan, diagnosis=replace(est.diagnosis, why=saved.why))


def _kept_prior_choice(
    saved: Saved, merged: Merged, question_data: QuestionData
) -> PriorChoice | None:
    """Return the prior that was chosen before, unless there is reason to choose again."""
    prior_choice, before = saved.prior_choice, saved.question_data
    if prior_choice is None or prior_choice.answers < LARGE:
        return None
    changed = prior_choice.changed + merged.added + merged.replaced
    m = saved.answers.n_questions
    pairs = [
        (before.groups, question_data.groups, "codes"),
        (before.covariates, question_data.covariates, "values"),
    ]
    for old, new, numbers in pairs:
        if (old is None) != (new is None):
            return None
        if old is not None and not np.array_equal(getattr(old, numbers), getattr(new, numbers)[:m]):
            return None
    return (
        replace(prior_choice, changed=changed) if changed <= GROWN * prior_choice.answers else None
    )
