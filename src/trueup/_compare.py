"""compare(): a leaderboard of first steps, with and without the second.

Getting the answers to compare is one thing, and depends on where they are; comparing them is another, and happens in
memory: `Contest` knows nothing of engines.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from trueup._estimate import read_answers
from trueup.algorithms.driver import run
from trueup.algorithms.registry import find
from trueup.answers.panels import folds
from trueup.answers.scale import PanelScales, check_truths
from trueup.core.keywords import check_names, signature_with
from trueup.core.progress import Progress
from trueup.engines import vectors
from trueup.engines.memory import MemoryEngine
from trueup.engines.question_sample import sample_questions
from trueup.errors import AnswersError, TrueupError
from trueup.io.frames_out import make_frame
from trueup.io.question_data import QuestionDataRequest
from trueup.pipeline.auto_method import FEWEST_WORKERS, FOLDS, choose, held_out, winsorised
from trueup.pipeline.scale_choice import choose_scale, with_average_worker
from trueup.pipeline.scaling import on_scale
from trueup.pipeline.shrink import second_step
from trueup.request import KEYWORDS, Request
from trueup.shrinkage import Identity

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from trueup.algorithms.contract import Algorithm
    from trueup.algorithms.registry import Method
    from trueup.answers.answers import Answers
    from trueup.answers.panels import Folds
    from trueup.answers.scale import Scale
    from trueup.core.arrays import Floats, Ints
    from trueup.engines.protocol import Engine
    from trueup.engines.question_sample import QuestionSample
    from trueup.request import CompareKeywords, Plan
    from trueup.shrinkage import ShrinkRule

#: First steps that are compared by default.
METHODS = (
    "native", "mean", "median", "student_t", "subject_bias", "crh", "catd", "gtm", "kdem", "iptd", "dtd",
)  # fmt: skip
#: Keywords that are those of `trueup.estimate`.
COMPARED = (
    "transform", "bounds", "max_iter", "tol", "seed", "threads", "worker_variance", "answer_variance", "duplicates",
    "question", "worker", "answer", "anonymous", "decimal", "thousands", "strip_units", "skip_bad", "valid", "sep",
    "encoding", "skip_lines", "sheet", "worker_from", "from_format", "where", "wide", "sql",
)  # fmt: skip


@signature_with(KEYWORDS, COMPARED)
def compare(
    answers: Any,
    methods: Sequence[Method] | None = None,
    truth: Any = None,
    *,
    shrink: str | ShrinkRule = "adaptive",
    progress: bool = False,
    **keywords: Unpack[CompareKeywords],
) -> Any:
    """Compare first steps, each with and without a second step, on workers they have not seen.

    The workers are split into five folds, and the answers of each fold are predicted from those of the others; held-out
    answers are drawn in to five robust standard deviations from the median of their question. A held-out error is the
    noise of the answer plus the error of the estimate, so that differences between rows count, not ratios. Of more
    than 50,000 questions, or about five million answers, a sample of questions is compared; which ones follows from
    their ids and the seed.

    Parameters
    ----------
    answers, transform, bounds, worker_variance, answer_variance, duplicates, question, worker, answer, options of files
        As for `trueup.estimate`. Errors are on the scale on which the answers are combined.
    methods : sequence of str or Algorithm, optional
        First steps; default: all that need no known variances and are not versions of another.
    truth : mapping, frame or array, optional
        Known truths of some or all questions: then the error against them is shown as well.
    shrink : str or ShrinkRule
        The second step, which is taken in full: held-out workers show the consensus, see `target` of
        `trueup.estimate`.
    max_iter, tol, seed, progress, threads
        As for `trueup.estimate`.

    Returns
    -------
    frame of the caller's kind, the best first
        `method`, `shrink`; `auto`, whether `method="auto"` takes this first step; `held_out` and `held_out_se`, mean
        squared error on held-out answers and its standard error; `behind` and `behind_se`, how much more that is than
        for the best row; with truth `risk` and `risk_se`, mean squared error against it; `seconds`.

    Examples
    --------
    >>> import trueup
    >>> answers, truth = trueup.simulate(workers=8, questions=40, seed=3)
    >>> board = trueup.compare(answers, ["mean", "native"], truth)
    >>> sorted(set(board["method"]))
    ['mean', 'native']
    """
    check_names("compare", keywords, COMPARED)
    request = Request.of("compare", answers, shrink=shrink, **keywords)
    contest = Contest.of(methods, request)
    data = read_answers(answers, request)
    if data.n_panels > 1:
        raise TrueupError(
            "these are panels; compare on one of them, `answers.panel(b)`.", argument="answers"
        )
    known = truth_request(truth, request).read(data, answers).gold
    engine, scale = contest.on_scale(MemoryEngine(data, threads=request.plan.threads))
    drawn = sample_questions(engine, request.plan.seed)
    sample = _gathered(engine, drawn)
    if known is not None and drawn.limit is not None:
        known = known[engine.kept(vectors.DRAW) < drawn.limit]
    with Progress("compare", len(contest.algorithms), shown=progress) as bar:
        return make_frame(data.origin.kind, contest.board(sample, scale, known, bar))


def truth_request(truth: Any, request: Request) -> QuestionDataRequest:
    """Return the request for known truths that estimates are compared with."""
    return QuestionDataRequest(
        gold=truth,
        question=request.read.question,
        file_options=request.question_data.file_options,
        gold_argument="truth",
    )


def compare_on(engine: Engine, contest: Contest, truth: QuestionDataRequest, bar: Progress) -> Any:
    """Compare on answers that are not in memory: a sample of them is brought here.

    Returns
    -------
    pyarrow table
        As for `compare`.
    """
    engine, scale = contest.on_scale(engine)
    drawn = sample_questions(engine, contest.seed)
    sample = _gathered(engine, drawn)
    try:
        known = truth.read(sample).gold
    except AnswersError as error:
        if drawn.limit is None:
            raise
        asked = f"{sample.n_questions:,} of {engine.problem.n_questions:,} questions"
        raise error.advised(error.remedy, f"These are a sample of {asked}.") from error
    bar.step("answers gathered")
    return make_frame("pyarrow", contest.board(sample, scale, known, bar))


def _gathered(engine: Engine, drawn: QuestionSample) -> Answers:
    return engine.gather(None if drawn.limit is None else drawn.inside, drawn.reads)


@dataclass(frozen=True, eq=False)
class Contest:
    """What is compared, and how.

    Attributes
    ----------
    algorithms, rules : sequences
        First and second steps; every one of the first is joined with every one of the second.
    plan : Plan
        Scale, limits, seed.
    """

    algorithms: Sequence[Algorithm]
    rules: Sequence[ShrinkRule]
    plan: Plan

    @classmethod
    def of(cls, methods: Sequence[Method] | None, request: Request) -> Self:
        """Check which methods are compared, before answers are read."""
        try:
            algorithms = [find(method) for method in (METHODS if methods is None else methods)]
        except TrueupError as error:
            raise error.renamed("methods") from error.__cause__
        if not algorithms:
            raise TrueupError("found none, name at least one first step.", argument="methods")
        rule = request.plan.rule
        rules = [rule] if isinstance(rule, Identity) else [Identity(), rule]
        plan = request.plan
        return cls(algorithms, rules, plan)

    @property
    def seed(self) -> int:
        """The seed of the sample of questions and of the folds of workers."""
        return self.plan.seed

    @property
    def limits(self) -> dict[str, Any]:
        """The limits of every run of a first step."""
        return self.plan.limits

    def on_scale(self, engine: Engine) -> tuple[Engine, Scale]:
        """Return the engine over the answers on the scale on which they are combined, and the scale."""
        scales = choose_scale(engine, self.plan).scales
        return on_scale(engine, scales), scales.first

    @property
    def labels(self) -> list[str]:
        """Name of each first step; two versions of one are told apart by their parameters."""
        names = [each.name for each in self.algorithms]
        return [
            name if names.count(name) == 1 else repr(each)
            for name, each in zip(names, self.algorithms, strict=True)
        ]

    def board(
        self, data: Answers, scale: Scale, known: Floats | None, bar: Progress
    ) -> dict[str, Any]:
        """Compare on these answers, which are on a scale; return the columns of the table.

        `known` are truths of their questions, in the unit of the answers and NaN where unknown.
        """
        if data.n_workers < FEWEST_WORKERS or (data.counts < 2).all():
            raise TrueupError(
                f"{FEWEST_WORKERS} workers and a question with two answers are needed to hold some out.",
                argument="answers",
            )
        if known is not None:
            if np.isnan(known).all():
                raise TrueupError(
                    f"found none for the {data.n_questions:,} questions that are compared.",
                    argument="truth",
                    remedy="Leave it out.",
                )
            check_truths(known, scale, data.question_ids.name, "truth")
            if scale.transform == "proportional":
                average = run(find("mean"), data)
                scale = with_average_worker(average.engine, PanelScales((scale,))).first
            known = scale.forward_truths(known)
        split, target = folds(data, FOLDS, seed=self.seed), winsorised(data)
        rows: list[dict[str, Any]] = []
        losses: list[Floats] = []
        for label, algorithm in zip(self.labels, self.algorithms, strict=True):
            for row, loss in self._rows(data, label, algorithm, split, target, known):
                rows.append(row)
                losses.append(loss)
            bar.step(algorithm.name)
        choice = choose(data, seed=self.seed, **self.limits)
        chosen = choice.candidates[int(choice.chosen[0])]
        return _table(rows, losses, _predicted(data, split), chosen)

    def _rows(
        self,
        data: Answers,
        label: str,
        algorithm: Algorithm,
        split: Folds,
        target: Floats,
        truth: Floats | None,
    ) -> list[tuple[dict[str, Any], Floats]]:
        """Run one first step with every second step; return rows, and losses by question."""
        start = time.perf_counter()
        training = run(algorithm, split.training, **self.limits)
        whole = run(algorithm, data, **self.limits) if truth is not None else None
        first = time.perf_counter() - start
        found = []
        for rule in self.rules:
            start = time.perf_counter()
            moved = second_step(split.training, training, rule, seed=self.seed)
            away = moved.posterior.mean - split.training.centre
            row: dict[str, Any] = {"method": label, "shrink": rule.name}
            if whole is not None and truth is not None:
                mean = second_step(data, whole, rule, seed=self.seed).posterior.mean
                error = (mean - truth) ** 2
                error = error[np.isfinite(error)]
                row["risk"] = float(error.mean())
                degrees = len(error) * (len(error) - 1)
                row["risk_se"] = _length(error - error.mean()) / degrees**0.5 if degrees else np.nan
            row["seconds"] = first + time.perf_counter() - start
            found.append((row, held_out(data, split, away, target)))
        return found


def _predicted(data: Answers, split: Folds) -> Ints:
    """Return how many answers of each question were held out and could be predicted."""
    trained = np.zeros((FOLDS, data.n_questions), dtype=bool)
    trained[split.fold, split.question] = True
    asked = np.repeat(np.arange(data.n_questions), data.counts)
    usable = trained[split.of_worker[data.workers], asked]
    return np.bincount(asked, usable, minlength=data.n_questions).astype(np.int64)


def _length(values: Floats) -> float:
    """Return the root of the sum of squares, also of numbers that are squares themselves and have none."""
    largest = float(np.abs(values).max(initial=0.0))
    return largest * float(np.sqrt(np.sum((values / largest) ** 2))) if largest > 0 else 0.0


def _table(
    rows: list[dict[str, Any]], losses: list[Floats], predicted: Ints, chosen: str
) -> dict[str, Any]:
    """Return the columns, best row first; `chosen` is what "auto" takes."""
    total = max(int(predicted.sum()), 1)
    sums = np.array([loss.sum() for loss in losses])
    order = np.argsort(sums, kind="stable")
    best = losses[int(order[0])]

    def error(each: Floats) -> float:
        """Standard error of a mean over answers, questions being independent."""
        rest = each - each.sum() / total * predicted
        return _length(rest) / total

    table: dict[str, Any] = {
        "method": np.array([rows[i]["method"] for i in order], dtype=object),
        "shrink": np.array([rows[i]["shrink"] for i in order], dtype=object),
        "auto": np.array([rows[i]["method"] == chosen for i in order]),
        "held_out": sums[order] / total,
        "held_out_se": np.array([error(losses[i]) for i in order]),
        "behind": (sums[order] - sums[order[0]]) / total,
        "behind_se": np.array([error(losses[i] - best) for i in order]),
    }
    for name in ("risk", "risk_se", "seconds"):
        if name in rows[0]:
            table[name] = np.array([rows[i][name] for i in order])
    return table
