"""compare(): a leaderboard of first steps, with and without the second."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.algorithms.driver import MAX_ITER, TOLERANCE, run
from trueup.algorithms.registry import find
from trueup.answers import Answers
from trueup.choose import CANDIDATES, FEWEST_WORKERS, FOLDS, held_out, winsorised
from trueup.draws import check_seed, sample_of
from trueup.engines.memory import check_threads
from trueup.errors import TrueupError
from trueup.io.attributes import read_gold
from trueup.io.results import make_frame
from trueup.panels import folds
from trueup.progress import Progress
from trueup.second_step import second_step
from trueup.shrinkage import Identity
from trueup.shrinkage import find as find_rule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trueup.algorithms.contract import Algorithm
    from trueup.answers import Duplicates
    from trueup.arrays import Floats, Ints
    from trueup.panels import Folds
    from trueup.shrinkage import ShrinkRule


def compare(
    answers: Any,
    methods: Sequence[str | Algorithm] | None = None,
    truth: Any = None,
    *,
    shrink: str | ShrinkRule = "adaptive",
    max_iter: int = MAX_ITER,
    tol: float = TOLERANCE,
    seed: int = 0,
    progress: bool = False,
    threads: int | None = None,
    transform: str | None = None,
    bounds: tuple[float, float] | None = None,
    worker_variance: Any = None,
    answer_variance: Any = None,
    duplicates: Duplicates = "error",
    question: str = "question",
    worker: str = "worker",
    answer: str = "answer",
) -> Any:
    """Compare first steps, each with and without a second step, on workers they have not seen.

    The workers are split into five folds, and the answers of each fold are predicted from those of the others; held-out
    answers are drawn in to five robust standard deviations from the median of their question. A held-out error is the
    noise of the answer plus the error of the estimate, so that differences between rows count, not ratios. With more
    than 50,000 questions a sample of them is compared.

    Parameters
    ----------
    answers, transform, bounds, worker_variance, answer_variance, duplicates, question, worker, answer
        As for `trueup.estimate`. Errors are on the scale on which the answers are combined.
    methods : sequence of str or Algorithm, optional
        First steps; default: those that `method="auto"` chooses among.
    truth : mapping, frame or array, optional
        Known truths of some or all questions: then the error against them is shown as well.
    shrink : str or ShrinkRule
        The second step.
    max_iter, tol, seed, progress, threads
        As for `trueup.estimate`.

    Returns
    -------
    frame of the caller's kind, the best first
        `method`, `shrink`; `held_out` and `held_out_se`, mean squared error on held-out answers and its standard error;
        `behind` and `behind_se`, how much more that is than for the best row; with truth `risk` and `risk_se`, mean
        squared error against it; `seconds`.

    Examples
    --------
    >>> import trueup
    >>> answers, truth = trueup.simulate(workers=8, questions=40, seed=3)
    >>> board = trueup.compare(answers, ["mean", "native"], truth)
    >>> sorted(set(board["method"]))
    ['mean', 'native']
    """
    check_threads(threads)
    data = Answers.of(
        answers,
        question=question,
        worker=worker,
        answer=answer,
        transform=transform,
        bounds=bounds,
        worker_variance=worker_variance,
        answer_variance=answer_variance,
        duplicates=duplicates,
    )
    if data.n_panels > 1:
        raise TrueupError("answers: these are panels; compare on one of them, `answers.panel(b)`.")
    if data.n_workers < FEWEST_WORKERS or (data.counts < 2).all():
        raise TrueupError(
            f"answers: {FEWEST_WORKERS} workers and a question with two answers are needed to hold some out."
        )
    check_seed(seed)
    known = read_gold(truth, data, answers, question=question, argument="truth")
    if known is not None:
        known = data.scale.forward(known)
    sample = sample_of(data, seed)
    if sample is not None:
        data, known = data.subset(sample), None if known is None else known[sample]
    algorithms = [find(each) for each in (CANDIDATES if methods is None else methods)]
    if not algorithms:
        raise TrueupError("methods: found none, name at least one first step.")
    limits: dict[str, Any] = {"max_iter": max_iter, "tol": tol, "threads": threads}
    rules = [Identity(), find_rule(shrink)]
    rules = rules[:1] if isinstance(rules[1], Identity) else rules
    split, target = folds(data, FOLDS, seed=seed), winsorised(data)
    rows: list[dict[str, Any]] = []
    losses: list[Floats] = []
    names = [each.name for each in algorithms]
    # Two versions of a method are told apart by their parameters.
    labels = [
        name if names.count(name) == 1 else repr(each)
        for name, each in zip(names, algorithms, strict=True)
    ]
    with Progress("compare", len(algorithms), shown=progress) as bar:
        for label, algorithm in zip(labels, algorithms, strict=True):
            rows_of = _rows(data, label, algorithm, rules, split, target, known, limits, seed)
            for row, loss in rows_of:
                rows.append(row)
                losses.append(loss)
            bar.step(algorithm.name)
    return make_frame(data.origin.kind, _table(rows, losses, _predicted(data, split)))


def _rows(
    data: Answers,
    label: str,
    algorithm: Algorithm,
    rules: Sequence[ShrinkRule],
    split: Folds,
    target: Floats,
    truth: Floats | None,
    limits: dict[str, Any],
    seed: int,
) -> list[tuple[dict[str, Any], Floats]]:
    """Run one first step with every second step; return rows, and losses by question."""
    start = time.perf_counter()
    training = run(algorithm, split.training, **limits)
    whole = run(algorithm, data, **limits) if truth is not None else None
    first = time.perf_counter() - start
    found = []
    for rule in rules:
        start = time.perf_counter()
        moved = second_step(split.training, training, rule, seed=seed)
        away = moved.posterior.mean - split.training.centre
        row: dict[str, Any] = {"method": label, "shrink": rule.name}
        if whole is not None and truth is not None:
            error = (second_step(data, whole, rule, seed=seed).posterior.mean - truth) ** 2
            error = error[np.isfinite(error)]
            row["risk"] = float(error.mean())
            row["risk_se"] = (
                float(error.std(ddof=1) / np.sqrt(len(error))) if len(error) > 1 else np.nan
            )
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


def _table(rows: list[dict[str, Any]], losses: list[Floats], predicted: Ints) -> dict[str, Any]:
    """Return the columns, best row first."""
    total = max(int(predicted.sum()), 1)
    sums = np.array([loss.sum() for loss in losses])
    order = np.argsort(sums, kind="stable")
    best = losses[int(order[0])]

    def error(each: Floats) -> float:
        """Standard error of a mean over answers, questions being independent."""
        rest = each - each.sum() / total * predicted
        return float(np.sqrt(np.sum(rest**2)) / total)

    table: dict[str, Any] = {
        "method": np.array([rows[i]["method"] for i in order], dtype=object),
        "shrink": np.array([rows[i]["shrink"] for i in order], dtype=object),
        "held_out": sums[order] / total,
        "held_out_se": np.array([error(losses[i]) for i in order]),
        "behind": (sums[order] - sums[order[0]]) / total,
        "behind_se": np.array([error(losses[i] - best) for i in order]),
    }
    for name in ("risk", "risk_se", "seconds"):
        if name in rows[0]:
            table[name] = np.array([rows[i][name] for i in order])
    return table
