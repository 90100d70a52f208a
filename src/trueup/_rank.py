"""rank(): is one system better than another? Systems compared by a panel of judges."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from trueup._estimate import read_answers
from trueup.answers.answers import Answers
from trueup.answers.build import build
from trueup.core.keywords import check_names, signature_with
from trueup.core.parameters import LARGEST, one_of, yes_or_no
from trueup.core.progress import Progress
from trueup.engines.memory import MemoryEngine
from trueup.errors import (
    AnswersError,
    TrueupError,
    counted,
    missing_column,
    option,
    quoted,
)
from trueup.io.columns import IdNames
from trueup.io.question_data import QuestionDataRequest
from trueup.io.table import CompositeIds, Ids, Table
from trueup.ranking.judges import judge_weights
from trueup.ranking.layout import Layout
from trueup.ranking.ranking import Ranking
from trueup.ranking.scores import Scores
from trueup.ranking.standings import Standings, balanced
from trueup.request import KEYWORDS, Request

if TYPE_CHECKING:
    from trueup.algorithms.registry import Method
    from trueup.core.arrays import Ints
    from trueup.request import RankKeywords

#: Keywords that are those of `trueup.estimate`.
RANKED = (
    "level", "max_iter", "tol", "seed", "threads", "duplicates", "question", "worker", "answer", "anonymous", "decimal",
    "thousands", "strip_units", "skip_bad", "valid", "sep", "encoding", "skip_lines", "sheet", "worker_from",
    "from_format", "where", "wide", "sql",
)  # fmt: skip
JUDGES = ("sample", "fixed")


@signature_with(KEYWORDS, RANKED)
def rank(
    scores: Any,
    by: Any,
    item: Any = None,
    *,
    run: str | None = None,
    gold: Any = None,
    cluster: Any = None,
    method: Method = "auto",
    judges: str = "sample",
    higher_is_better: bool = True,
    progress: bool = False,
    **keywords: Unpack[RankKeywords],
) -> Ranking:
    """Compare systems by the scores that a panel of judges gave them on the same items.

    Parameters
    ----------
    scores : data frame, path or Answers
        One score per row, with columns for item, system, judge and score; see `estimate` for all forms.
    by : str or mapping
        Column of the systems (models, policies, variants); or a mapping from question to system.
    item : str, list of str or mapping, optional
        Column of the items that the systems were tried on, or several columns that name them together; or a mapping
        from question to item. By default the column of the questions.
    run : str, optional
        Column that numbers the runs of one judge. They are averaged, and the variance between them is kept for
        `components`; so it is with `duplicates="mean"`.
    gold : str, mapping, frame or file, optional
        Known values of some systems on some items, such as human labels, by item and system. From three labels of a
        system on, its mean is on the scale of the labels. Labelled items must be a random sample of all.
    cluster : str or mapping, optional
        Column of what items belong to (documents, conversations); items of one cluster vary together.
    method : str or Algorithm
        The first step, from which the judges get their weights; see `estimate`.
    judges : {"sample", "fixed"}
        Whether intervals are about judges like these, or about these very judges.
    higher_is_better : bool
        Whether high scores are good.
    level : float
        Level of the intervals; a difference is clear if its adjusted p-value is at most one minus it.
    progress : bool
        Show a bar on the error output, if that is a terminal.
    all other keywords
        As for `estimate`.

    Returns
    -------
    Ranking
        `systems`, `differences`, `judges`, `components`, `plan()` and `gate()`; print it to read it.

    Examples
    --------
    >>> import trueup
    >>> scores = {"item": [], "model": [], "judge": [], "score": []}
    >>> for item in range(8):
    ...     for model, level in (("old", 2.0), ("new", 3.0)):
    ...         for judge in range(3):
    ...             row = (item, model, judge, level + (item * 7 + judge * 5) % 4 / 4 + (item + judge) % 2 * level / 9)
    ...             for column, value in zip(scores.values(), row):
    ...                 column.append(value)
    >>> ranking = trueup.rank(scores, by="model", item="item")
    >>> ranking.system_names[ranking.standings.order[0]]
    'new'
    """
    check_names("rank", keywords, RANKED)
    one_of("judges", judges, JUDGES)
    yes_or_no("higher_is_better", higher_is_better)
    question = keywords.get("question")
    layout = Layout.of(scores, by, item, run, "question" if question is None else question)
    given: dict[str, Any] = {**keywords, "question": layout.columns}
    request = Request.of("rank", scores, method=method, shrink="none", transform="none", **given)
    with Progress("rank", 3, shown=progress) as bar:
        with layout.advice():
            data = read_answers(scores, request)
        bar.step("scores read")
        return rank_answers(
            data, scores, layout, request,
            gold=gold, cluster=cluster, fixed=judges == "fixed", sign=1 if higher_is_better else -1, bar=bar,
        )  # fmt: skip


def rank_answers(
    data: Answers,
    source: Any,
    layout: Layout,
    request: Request,
    *,
    gold: Any,
    cluster: Any,
    fixed: bool,
    sign: int,
    bar: Progress,
) -> Ranking:
    """Rank systems by scores that were read; `source` is what they were read from, for further columns."""
    if data.n_panels > 1:
        raise TrueupError(
            "these are panels; rank one of them, `answers.panel(b)`.", argument="scores"
        )
    if data.precision is not None or data.worker_variance is not None:
        raise TrueupError("scores with known variances cannot be ranked.", argument="scores")
    _check_spread(data)
    notes = list(data.origin.account)
    if data.n_missing:
        notes.insert(
            0, f"{data.n_missing:,} of {counted(data.n_rows, 'row')} dropped: no score in them"
        )
    if layout.run is not None:
        data = average_runs(data)
    origin = data.origin
    run_variance = origin.repeat_squares / origin.repeat_degrees if origin.repeat_degrees else 0.0
    runs = 1.0 + origin.repeat_degrees / data.n_answers
    if origin.repeat_degrees:
        notes.append(f"Runs averaged: {runs:.2g} scores of a judge per system and item")
    system, systems = _codes(data, source, layout, "by", request)
    item, _ = _codes(data, source, layout, "item", request)
    _check_once(data, system, item, layout)
    clusters = None
    if cluster is not None:
        clusters = _clusters(_labels(data, source, cluster, "cluster", request)[0], item)
    labels = None
    if gold is not None:
        labels = _gold(data, source, gold, request)
    weights = judge_weights(MemoryEngine(data, threads=request.plan.threads), request.plan, bar)
    bar.step("judges weighed")
    question = np.repeat(np.arange(data.n_questions), data.counts)
    known = None
    if labels is not None:
        some = np.flatnonzero(~np.isnan(labels))
        known = (system[some], item[some], labels[some])
    table = Scores.of(
        system[question],
        item[question],
        np.asarray(data.workers, dtype=np.int64),
        data.answers,
        group=weights.group,
        weight=weights.weight,
        bias=weights.bias,
        cluster=clusters,
        labels=known,
    )
    table = balanced(table)
    weights = replace(weights, weight=table.weight / max(float(table.weight.sum()), 1e-300))
    standings = Standings(table, request.plan.level, fixed, sign, run_variance, runs)
    return Ranking(
        standings, systems, data.worker_ids, weights, tuple(notes), origin.kind, data.names
    )


def _check_spread(data: Answers) -> None:
    """Check that the fourth power of a difference of scores is a number."""
    values = data.answers
    spread = float(values.max() - values.min())
    if spread and not 1 / LARGEST <= spread <= LARGEST:
        raise AnswersError(
            f"they vary by {spread:.2g}, and squares of squares of that are no numbers.",
            argument="scores",
            remedy="Give them in another unit.",
        )


def average_runs(data: Answers) -> Answers:
    """Average over the last column of the question, which numbers runs."""
    ids = data.question_ids
    if not isinstance(ids, CompositeIds):
        raise TrueupError("the scores have no such column.", argument="run")
    codes = [np.asarray(each, dtype=np.int64) for each in ids.codes[:-1]]
    key = codes[0]
    for each in codes[1:]:
        key = key * (int(each.max(initial=0)) + 1) + each
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    kept = first[order]
    columns = [Ids(each.values) for each in ids.columns[:-1]]
    names: Ids = (
        CompositeIds(columns, [each[kept] for each in codes])
        if len(columns) > 1
        else columns[0].take(codes[0][kept])
    )
    origin = data.origin
    table = Table(
        question=place[number][np.repeat(np.arange(data.n_questions), data.counts)],
        worker=np.asarray(data.workers, dtype=np.int64),
        answer=data.answers,
        question_ids=names,
        worker_ids=data.worker_ids,
        n_rows=data.n_rows,
        kind=origin.kind,
        n_missing=data.n_missing,
        names=IdNames(data.names.question[:-1], data.names.worker),
        rejects=data.rejects,
    )
    merged = Answers(**build(table, "mean-all", None, None))
    repeated = origin.repeat_squares, origin.repeat_degrees
    squares, degrees = (
        one + more
        for one, more in zip(
            repeated, (merged.origin.repeat_squares, merged.origin.repeat_degrees), strict=True
        )
    )
    return replace(
        merged, origin=replace(merged.origin, repeat_squares=squares, repeat_degrees=int(degrees))
    )


def _codes(
    data: Answers, source: Any, layout: Layout, argument: str, request: Request
) -> tuple[Ints, Ids]:
    """Return the number of the system or item of each question, and their names, those of the first column."""
    given = getattr(layout, argument)
    ids = data.question_ids
    if not layout.names_question or not isinstance(ids, CompositeIds):
        return _labels(data, source, given, argument, request)
    titles = list(data.names.question)
    asked = (given,) if argument == "by" else given
    for name in asked:
        if name not in titles:  # of answers that were read before
            raise missing_column(name, titles, argument)
    places = [titles.index(name) for name in asked]
    number = np.asarray(ids.codes[places[0]], dtype=np.int64)
    used, number = np.unique(number, return_inverse=True)
    for place in places[1:]:
        codes = np.asarray(ids.codes[place], dtype=np.int64)
        number = np.unique(number * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1]
    return number, ids.columns[places[0]].take(used)


def _labels(
    data: Answers, source: Any, given: Any, argument: str, request: Request
) -> tuple[Ints, Ids]:
    """Return the number of the label of each question, and the labels; every question must have one."""
    asked = QuestionDataRequest(
        groups=given,
        question=data.names.question if len(data.names.question) > 1 else data.names.question[0],
        file_options=request.read.file_options,
        groups_argument=argument,
    )
    labels = asked.read(data, source).groups
    if labels is None:
        raise TrueupError("found none.", argument=argument)
    missing = np.flatnonzero(labels.codes < 0)
    if len(missing):
        first = quoted(str(data.question_ids.name(int(missing[0]))))
        raise AnswersError(
            f"{counted(len(missing), 'question')} without one, first {first}.", argument=argument
        )
    return labels.codes, labels.ids


def _gold(data: Answers, source: Any, gold: Any, request: Request) -> Any:
    """Return the known value of each question, NaN where there is none."""
    asked = QuestionDataRequest(
        gold=gold,
        question=data.names.question if len(data.names.question) > 1 else data.names.question[0],
        file_options=request.read.file_options,
    )
    return asked.read(data, source).gold


def _check_once(data: Answers, system: Ints, item: Ints, layout: Layout) -> None:
    """Check that no two questions are the same system on the same item."""
    key = item * (int(system.max(initial=0)) + 1) + system
    _, first, count = np.unique(key, return_index=True, return_counts=True)
    if (count > 1).any():
        name = quoted(str(data.question_ids.name(int(first[count > 1][0]))))
        advice = "Number them as runs with " + option("run") if layout.names_question else ""
        raise AnswersError(
            f"several questions are the same system on the same item, first {name}.",
            argument="item",
            remedy=advice or "Give each item of a system its own name.",
        )


def _clusters(of_question: Ints, item: Ints) -> Ints:
    """Return the cluster of each item, which must be one."""
    cluster = np.zeros(int(item.max(initial=-1)) + 1, dtype=np.int64)
    cluster[item] = of_question
    if (cluster[item] != of_question).any():
        raise AnswersError("an item belongs to two clusters.", argument="cluster")
    return cluster
