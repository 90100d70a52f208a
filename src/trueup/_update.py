"""update(): new answers folded into an estimate, which continues from what it knows about the workers.

The first step is a loop that ends where nothing moves. Where it begins decides how soon it ends, not where: it
continues from the workers as they were known and needs a few iterations, after which the truths are those of a run over
all answers. Methods that end after a number of updates by definition, and those that do not learn, start afresh.

The second step is run over all questions. In a large problem its prior is not chosen again until the answers have
grown by a twentieth: choosing takes long, and held-out workers say of a few more answers what they said before.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np

from trueup._estimate import estimate_in_memory
from trueup.algorithms.contract import State
from trueup.answers.answers import Answers
from trueup.answers.merge import REPEATED, Repeated, merge
from trueup.answers.pseudonyms import with_pseudonyms
from trueup.core.keywords import check_names, signature_with
from trueup.core.parameters import yes_or_no
from trueup.core.progress import Progress
from trueup.engines.threads import check_threads
from trueup.errors import MOST_NAMES, TrueupError, listing, quoted
from trueup.io.archive import shown
from trueup.io.columns import question_columns
from trueup.io.paths import is_path
from trueup.io.question_data import QuestionDataRequest
from trueup.io.question_data.tables import column_names
from trueup.io.read_options import FILE_OPTIONS, ReadOptions
from trueup.io.readers.files import open_source
from trueup.io.readers.streams import STDIN
from trueup.request import KEYWORDS
from trueup.result.estimate import Estimate
from trueup.result.load import read_state
from trueup.result.state import SavedState

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from trueup.algorithms.registry import Method
    from trueup.answers.merge import Merged
    from trueup.io.question_data import QuestionData
    from trueup.request import UpdateKeywords
    from trueup.shrinkage.adaptive_prior import PriorChoice

#: Number of answers from which on the choice of a prior is kept, and the share of them that may change.
LARGE, GROWN = 50_000, 0.05
#: Keywords that are those of `trueup.estimate`.
OPTIONS = (
    "groups", "covariates", "gold", "worker_variance", "answer_variance", "threads", "question", "worker", "answer",
    "anonymous", "decimal", "thousands", "strip_units", "skip_bad", "valid", "sep", "encoding", "skip_lines", "sheet",
    "worker_from", "from_format", "where", "wide", "sql",
)  # fmt: skip


@signature_with(KEYWORDS, OPTIONS)
def update(
    state: str | PathLike[str] | Estimate,
    answers: Any,
    *,
    duplicates: Repeated = "error",
    save: bool | str | PathLike[str] = True,
    method: Method | None = None,
    progress: bool = False,
    **keywords: Unpack[UpdateKeywords],
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
    duplicates : {"error", "mean", "mean-all", "first", "replace"}
        What to do when a worker answered a question again. "replace": the new answer takes the place of the one before;
        "first": that one stays; "mean": repeated new answers become one, but those before are not touched.
    save : bool or path
        Where the new state goes: True, to the file it came from, which stays whole if anything fails; False, nowhere;
        or another file. An Estimate is written only where a path is given.
    method : Algorithm or function, optional
        The method of a state that was made with a class or function of your own, which it does not hold.
    groups, covariates, gold
        What is known of new questions, as for `estimate`; questions in an order are those of the new answers for
        covariates and all questions for the others. Of old questions it takes the place of what was known.
    worker_variance, answer_variance
        Known variances, as for `estimate`; those of old workers take the place of what was known.
    anonymous : bool
        Return an estimate with pseudonyms for the workers; the state that is written keeps their ids.
    progress, threads, question, worker, answer, sep, decimal, encoding, wide, sql
        As for `estimate`.

    Examples
    --------
    >>> from trueup import estimate
    >>> est = estimate([[10.0, 4.0, 7.0], [11.0, 5.0, 7.5], [16.0, 1.0, 3.0]], method="crh")
    >>> new = {"question": [0, 1, 3], "worker": [3, 3, 3], "answer": [10.4, 4.6, 2.0]}
    >>> update(est, new).answers
    Answers(4 questions, 4 workers, 12 answers)
    """
    check_names("update", keywords, OPTIONS)
    check_threads(keywords.get("threads"))
    if not isinstance(duplicates, str) or duplicates not in REPEATED:
        known = ", ".join(f'"{word}"' for word in REPEATED)
        raise TrueupError(f"{quoted(duplicates)} is not one of {known}.", argument="duplicates")
    opened = OpenedState.of(state, method)
    found = updated(opened.saved, answers, duplicates, dict(keywords), progress=progress)
    if save is True:
        opened.write(found.est)
    elif save is not False:
        found.est.save(save)
    return found.shown


class Updated(NamedTuple):
    """The estimate from old and new answers, what was merged, and the estimate to show, which may have pseudonyms."""

    est: Estimate
    merged: Merged
    shown: Estimate


def updated(
    saved: SavedState,
    answers: Any,
    duplicates: Repeated,
    keywords: dict[str, Any],
    *,
    progress: bool,
) -> Updated:
    """Return the estimate from old and new answers, and what was merged."""
    threads, anonymous = keywords.pop("threads", None), keywords.pop("anonymous", False)
    yes_or_no("anonymous", anonymous)
    names = ("groups", "covariates", "gold")
    given = {name: keywords.pop(name) for name in names if name in keywords}
    inside: Any = "error" if duplicates == "replace" else duplicates
    read = ReadOptions(**(_known_names(saved, answers) | keywords), duplicates=inside)
    request = QuestionDataRequest(**given, question=read.question, file_options=read.file_options)
    with Progress("update", 3, shown=progress) as bar:
        new = _read_new(answers, read, request)
        _check_questions(saved.answers, new, read)
        merged = merge(saved.answers, new, duplicates, anonymous=anonymous)
        data = _merged_data(saved, request, merged, new, answers)
        bar.step("answers read")
        variance = saved.request.plan.variance
        if isinstance(variance, np.ndarray) and variance.ndim and merged.questions:
            raise TrueupError(
                "it was given for each question, and there are new ones.",
                argument="variance",
                remedy="Estimate again from all answers.",
            )
        # Logarithms that the answers chose before, and not the caller, cannot take what is not positive.
        chosen = saved.request.plan.scale is None
        anew = chosen and bool(saved.scale.outside(merged.answers.answers).any())
        whole = replace(saved.request, plan=replace(saved.request.plan, threads=threads))

        def estimated(answers: Answers, saved: SavedState) -> Estimate:
            choices = {} if anew else _kept_choices(saved, merged, data)
            try:
                est = estimate_in_memory(answers, whole, data, bar, **choices)
            except TrueupError as error:
                if error.argument != "transform":
                    raise
                # The caller passes new answers, and no scale.
                remedy = "Drop or mend these answers, or estimate again from all of them with another transform."
                raise error.renamed("answers").advised(remedy) from error.__cause__
            if anew:
                text = (
                    "new answers cannot be combined as logarithms, so everything was estimated anew"
                )
                diagnosis = replace(est.diagnosis, warnings=(*est.diagnosis.warnings, text))
            else:
                diagnosis = replace(est.diagnosis, why=saved.why, scale=saved.scale_why)
            return replace(est, solution=replace(est.solution, diagnosis=diagnosis))

        est = estimated(merged.answers, saved)
        if not anonymous:
            return Updated(est, merged, est)
        # Everything once more with pseudonyms: the state needs the ids, and what is shown must not have them.
        answers, code = with_pseudonyms(merged.answers)
        order = np.argsort(code)
        facts = est.aggregate.facts
        known = State(facts, saved.values, saved.step).extended(merged.answers.n_workers)
        renamed = replace(saved, values={name: value[order] for name, value in known.items()})
        whole = replace(whole, read=replace(whole.read, anonymous=True))
        return Updated(est, merged, estimated(answers, renamed))


# -- the state -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class OpenedState:
    """A state, the file it came from, and how that looked."""

    saved: SavedState
    path: str | PathLike[str] | None = None
    stamp: tuple[int, ...] = ()

    @classmethod
    def of(cls, state: Any, method: Method | None = None) -> OpenedState:
        """Read a state from a file, or take it from an estimate."""
        if isinstance(state, Estimate):
            if method is not None:
                raise TrueupError(
                    "an estimate knows its method, and continues with it.",
                    argument="method",
                    remedy="Leave it out.",
                )
            return cls(SavedState.of(state))
        if not isinstance(state, str | os.PathLike):
            raise TrueupError(
                f"state: found {quoted(type(state).__name__)}. Give the file that est.save wrote, or an estimate."
            )
        stamp = _stamp(state)  # before reading: who writes meanwhile is noticed
        return cls(read_state(state, method), state, stamp)

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


# -- the new answers -----------------------------------------------------------------------------------------


def _known_names(saved: SavedState, answers: Any) -> dict[str, Any]:
    """Return the names of columns that were passed before, where the new answers have the same columns."""
    before = saved.request.read
    passed = {
        name: getattr(before, name)
        for name in ("question", "worker", "answer")
        if getattr(before, name) != name
    }
    if is_path(answers) and answers != STDIN:
        plain = {
            name: before.file_options[name] for name in FILE_OPTIONS if name in before.file_options
        }
        try:
            found: Sequence[object] = open_source(answers, **plain).names
        except TrueupError:
            return {}  # reading says what is wrong
    else:
        found = column_names(answers)
    return {
        name: value
        for name, value in passed.items()
        if all(each in found for each in question_columns(value, found))
    }


def _read_new(answers: Any, read: ReadOptions, request: QuestionDataRequest) -> Answers:
    """Read new answers."""
    if isinstance(answers, Answers):
        new = Answers.of(answers, **read.given)
        if new.n_panels > 1:
            raise TrueupError(
                "these are panels; take one with `answers.panel(b)`.", argument="answers"
            )
        return new
    return Answers.of(answers, **read.given, question_data=request.columns().names)


def _check_questions(old: Answers, new: Answers, read: ReadOptions) -> None:
    """Check that several columns that name a question, and that nobody passed, are those of before."""
    before, now = old.names.question, new.names.question
    if (
        len(before) > 1
        and len(now) == len(before)
        and now != before
        and read.question == "question"
    ):
        raise TrueupError(
            f"questions were named by the columns {listing(before, MOST_NAMES)} before, and are by "
            f"{listing(now, MOST_NAMES)} in the new answers.",
            argument="question",
            remedy="Update with files of the same format, or pass the columns that are meant.",
        )


def _merged_data(
    saved: SavedState, request: QuestionDataRequest, merged: Merged, new: Answers, answers: Any
) -> QuestionData:
    """Join what is known about the questions, old and new; covariates are those of the new answers."""
    whole = replace(request, covariates=None).read(merged.answers, answers)
    more = replace(request, groups=None, gold=None).read(new, answers)
    found = replace(whole, covariates=more.covariates)
    return saved.data.merged(found, merged.answers.n_questions, merged.question)


def _kept_choices(saved: SavedState, merged: Merged, data: QuestionData) -> dict[str, Any]:
    """Return what is not chosen again: the first step and where it continues from, the scale, the prior."""
    return {
        "algorithm": saved.algorithm,
        "start": saved,
        "prior_choice": _kept_prior_choice(saved, merged, data),
        "scale": replace(saved.scale, shift=0.0),
    }


def _kept_prior_choice(saved: SavedState, merged: Merged, data: QuestionData) -> PriorChoice | None:
    """Return the prior that was chosen before, unless there is reason to choose again."""
    choice, before = saved.prior_choice, saved.data
    if choice is None or choice.answers < LARGE:
        return None
    changed = choice.changed + merged.added + merged.replaced
    m = saved.answers.n_questions
    pairs = [
        (before.groups, data.groups, "codes"),
        (before.covariates, data.covariates, "values"),
    ]
    for old, new, numbers in pairs:
        if (old is None) != (new is None):
            return None
        if old is not None and not np.array_equal(getattr(old, numbers), getattr(new, numbers)[:m]):
            return None
    return replace(choice, changed=changed) if changed <= GROWN * choice.answers else None
