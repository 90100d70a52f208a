"""The answers of a saved state, and what is known of their questions; everything is checked."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.answers.answers import Answers
from trueup.answers.build import centred_values
from trueup.answers.merge import FRAMES
from trueup.answers.origin import Origin
from trueup.core.arrays import narrow, offsets
from trueup.core.parameters import LARGEST, SMALLEST
from trueup.io.archive import check, printable, texts, vector, whole
from trueup.io.columns import IdNames, check_titles, is_sql_type
from trueup.io.plain_ids import unpack, unpack_types
from trueup.io.question_data import Covariates, Labels, QuestionData
from trueup.io.readers.answer_column import LARGEST_ANSWER
from trueup.io.table import CompositeIds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from trueup.answers.scale import Scale
    from trueup.io.table import Ids

    Arrays = Mapping[str, NDArray[Any]]

#: How far the mean of relative precisions may be from 1, as they were rounded.
ROUNDED = 1e-6
#: What else answers may have come from.
OTHERS = ("array", "matrix", "file", "other")


def read_answers(about: dict[str, Any], arrays: Arrays, scale: Scale) -> Answers:
    """Put the answers together again; whatever cannot be true of answers is damage."""
    types = about.get("types") or {}
    questions, workers = (
        unpack_types(part, types.get(part), unpack(part, arrays), arrays)
        for part in ("question", "worker")
    )
    m, n = len(questions), len(workers)
    check(m > 0 and n > 0, "there are no answers")
    counts, worker = arrays["counts"], arrays["workers"]
    check(counts.dtype == np.int64 and len(counts) == m and (counts > 0).all(), "its answers")
    check(worker.dtype.kind in "iu" and counts.max() <= n, "its answers")
    indptr = offsets(counts)
    check(indptr[-1] == len(worker) and worker.min() >= 0 and worker.max() < n, "its answers")
    rising = worker[1:] > worker[:-1]
    rising[indptr[1:-1] - 1] = True
    check(rising.all(), "its answers")
    check((np.bincount(worker, minlength=n) > 0).all(), "its answers")
    given = vector(arrays, "answers", len(worker))
    check(max(given.max(), -given.min()) <= LARGEST_ANSWER, "its answers")
    check(not scale.outside(given).any(), "its answers")
    precision, mean = None, float(about["answer_variance"])
    if "precision" in arrays:
        precision = vector(arrays, "precision", len(worker))
        check((precision > 0).all() and abs(precision.mean() - 1) < ROUNDED, "its variances")
        check(SMALLEST <= mean <= LARGEST, "its variances")
    variance = None
    if "worker_variance" in arrays:
        variance = vector(arrays, "worker_variance", n, unknown=True)
        fits = (variance >= SMALLEST) & (variance <= LARGEST)
        check((fits | np.isnan(variance)).all(), "its variances")
    rows, missing, duplicates = (whole(about[name]) for name in ("rows", "missing", "duplicates"))
    check(max(len(given), missing, duplicates) <= rows, "its counts")
    kind = about["kind"]
    check(kind in (*FRAMES, *OTHERS), "what the answers were")
    centred = centred_values(given, indptr)
    return Answers(
        indptr=indptr,
        workers=narrow(worker, n),
        values=centred.values,
        centre=centred.centre,
        given=centred.given,
        panel_questions=np.array([0, m]),
        panel_workers=np.array([0, n]),
        precision=precision,
        answer_variance=mean if precision is not None else np.nan,
        worker_variance=variance,
        origin=Origin(
            questions,
            workers,
            kind=kind if _installed(kind) else "array",
            n_rows=rows,
            n_missing=missing,
            n_duplicates=duplicates,
            told=tuple(map(printable, texts(about.get("account") or []))),
            unit=printable(about.get("unit") or ""),
            names=_names(about, questions),
            unanswered=_unanswered(arrays, questions, types.get("question")),
        ),
    )


def _names(about: Any, questions: Ids) -> IdNames:
    """Return what questions and workers are called; states of older versions do not say."""
    names, given, types = IdNames(), about.get("names"), about.get("sql_types") or {}
    check(all(map(is_sql_type, types.values())), "the types of its ids")
    if given is not None:
        titles = tuple(texts(given["question"])), printable(given["worker"])
        names = IdNames(*titles, sql_types=tuple(types.items()))
    columns = len(questions.columns) if isinstance(questions, CompositeIds) else 1
    check(len(names.question) == columns, "the names of its columns")
    check_titles(names)
    return names


def _unanswered(arrays: Arrays, questions: Ids, types: Any) -> Ids | None:
    if not any(name.startswith("unanswered") for name in arrays):
        return None
    ids = unpack_types("question", types, unpack("unanswered", arrays), arrays)
    check(bool((questions.index_of(ids) < 0).all()), "the questions without answers")
    return ids


def _installed(kind: str) -> bool:
    needed = {"duckdb": ("duckdb", "pyarrow")}.get(kind, (kind,))
    return kind not in FRAMES or all(find_spec(each) is not None for each in needed)


def read_question_data(
    covariate_names: list[str] | None, arrays: Arrays, answers: Answers
) -> QuestionData:
    """Put together what is known of the questions."""
    m = answers.n_questions
    gold = vector(arrays, "gold", m, unknown=True) if "gold" in arrays else None
    check(gold is None or not (np.abs(gold) > LARGEST_ANSWER).any(), "its known truths")
    groups = covariates = None
    if "group_of" in arrays:
        ids, codes = unpack("group", arrays), arrays["group_of"]
        check(codes.dtype == np.int64 and len(codes) == m, "its groups")
        check((codes >= -1).all() and (codes < len(ids)).all(), "its groups")
        groups = Labels(codes, ids)
    if covariate_names is not None:
        names = tuple(texts(covariate_names))
        columns = [vector(arrays, f"covariate.{number}", m) for number in range(len(names))]
        check(all(np.abs(each).max() <= LARGEST_ANSWER for each in columns), "its covariates")
        covariates = Covariates(np.column_stack(columns), names)
    return QuestionData(groups, covariates, gold)
