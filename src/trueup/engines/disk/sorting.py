"""From buckets of rows to the files of a working folder: sorted bucket by bucket, and written as they come."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.answers.block import Block
from trueup.answers.build import Sort, centred_values, merge_repeated, variance_by_id
from trueup.answers.faults import listed_answers, repeated_answers
from trueup.core.arrays import narrow
from trueup.core.libraries import need
from trueup.core.sampling import id_hashes
from trueup.engines.disk.buckets import small_enough
from trueup.engines.disk.folder import ANSWERS
from trueup.engines.threads import in_turn
from trueup.errors import AnswersError, quoted
from trueup.io.numbers import unit_of
from trueup.io.question_data.match import (
    missing_covariates,
    one_label,
    one_number,
    two_values,
)
from trueup.io.readers.delimited import whole_number_ids, without_nul
from trueup.io.readers.source import about
from trueup.io.series import sort_order
from trueup.io.table import Ids, pseudonyms_of

if TYPE_CHECKING:
    from pathlib import Path

    from trueup.answers.build import Centred
    from trueup.core.arrays import Floats, Indices, Ints
    from trueup.engines.disk.buckets import Bucket
    from trueup.engines.disk.folder import Folder
    from trueup.engines.disk.reading import IntakeOptions, Read
    from trueup.engines.disk.rows import RowPlan
    from trueup.io.read_options import Duplicates

# Answers that a message about repeated ones names.
NAMED = 3


@dataclass
class _Part:
    """The answers to some questions, sorted."""

    ids: Any
    counts: Ints
    workers: Indices
    answers: Floats
    centre: Floats
    std: Floats
    precision: Floats | None
    group: Indices | None
    covariates: list[Floats]
    gold: Floats | None
    n_duplicates: int
    repeated: list[tuple[object, int]]


def sort(
    read: Read, plan: RowPlan, folder: Folder, options: IntakeOptions, *, text: bool
) -> dict[str, Any]:
    """Sort bucket after bucket and write what comes out."""
    pyarrow, parquet = need("pyarrow", "files"), need("pyarrow.parquet", "files")
    ids = without_nul(plan.worker, read.workers.values) if text else read.workers.values
    ids = whole_number_ids(ids) if text else ids
    order, names = sort_order(ids), {}
    if options.read.anonymous:
        pseudonyms, code = pseudonyms_of(Ids(ids))
        order = np.argsort(code)
        names = {"worker": pseudonyms.values, "rank": pseudonyms.rank}
    rank = np.empty(len(order) + 1, dtype=np.int32)
    rank[order], rank[-1] = np.arange(len(order)), -1
    workers = pyarrow.table(names or {"worker": ids.take(order)})
    shown = Ids(workers.column("worker").combine_chunks())
    known = _variances(read, rank, Ids(ids.take(order)), shown, options)
    total = sum(bucket.rows for bucket in read.buckets)
    kind = pyarrow.int64() if plan.whole else plan.question_type
    done = n_duplicates = 0
    repeated: list[tuple[object, int]] = []

    def go(bucket: Bucket) -> tuple[Bucket, _Part]:
        try:
            part = _settled(bucket.table(), plan, rank, options.read.duplicates, kind)
        except _TwoLabelsError as error:
            question, *codes = error.args
            first, second = (read.groups.values[code].as_py() for code in codes)
            with about("groups"):
                raise two_values(question, "labels", (first, second)) from None
        if text and pyarrow.types.is_string(kind):
            without_nul(plan.question, part.ids)
        return bucket, part

    cut = (part for bucket in read.buckets for part in small_enough(bucket))
    threads = options.limits.threads
    with _Writer(folder.answers, plan, kind) as writer:
        for bucket, part in in_turn(go, cut, threads, ahead=1):
            n_duplicates += part.n_duplicates
            repeated += part.repeated[: NAMED - len(repeated)]
            if not (n_duplicates and options.read.duplicates == "error"):
                writer.add(part)
            bucket.path.unlink()
            done += bucket.rows
            options.progress("sorting", done / total)
        if n_duplicates and options.read.duplicates == "error":
            raise _repeated(n_duplicates, repeated, workers.column("worker"))
        if known is not None:
            known.tofile(folder.answers / "worker_variance.f64")
        parquet.write_table(workers, folder.answers / "worker_ids.parquet")
        meta = writer.finish()
    if plan.group:
        _finish_groups(folder.answers, read.groups.values, text=text)
    _check_covariates(folder.answers, plan)
    ours = sorted(path for name in ANSWERS for path in folder.answers.glob(name))
    sizes = {path.name: path.stat().st_size for path in ours}
    return {
        **meta,
        "n_workers": len(order),
        "n_rows": read.n_rows,
        "n_missing": read.n_missing,
        "unit": unit_of(read.units[plan.answer]),
        "n_duplicates": n_duplicates,
        "malformed": {"count": read.malformed.count, "examples": read.malformed.examples},
        "columns": {"question": plan.question, "worker": plan.worker, "answer": plan.answer},
        "covariates": list(plan.covariates),
        "sizes": sizes,
    }


def _settled(table: Any, plan: RowPlan, rank: Indices, duplicates: Duplicates, kind: Any) -> _Part:
    """Sort the rows of a bucket by question and worker, settle repeated answers, centre."""
    column = {name: table.column(name).combine_chunks() for name in table.column_names}
    coded = column["question"].dictionary_encode()
    order = sort_order(coded.dictionary)
    ids = coded.dictionary.take(order)
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order))
    question = place[coded.indices.to_numpy()]
    worker = rank[column["worker"].to_numpy()]
    group, covariates, gold = None, [], None
    if plan.group:
        group = _one_group(column["group"].to_numpy(), question, ids)
    for k, name in enumerate(plan.covariates):
        number = column[f"covariate-{k}"].to_numpy()
        covariates.append(_one_number("covariates", number, question, ids, name))
    if plan.gold:
        gold = _one_number("gold", column["gold"].to_numpy(), question, ids, plan.gold)
    numbers = [column[name].to_numpy() for name in ("value", "precision") if name in column]
    if worker.min(initial=0) < 0:
        # Some rows have no answer and told only of their question; some questions have no other rows.
        real = worker >= 0
        question, worker = question[real], worker[real]
        numbers = [each[real] for each in numbers]
        answered = np.zeros(len(ids), dtype=bool)
        answered[question] = True
        question = (np.cumsum(answered) - 1)[question].astype(np.int32)
        ids = ids.take(np.flatnonzero(answered))
        group = None if group is None else group[answered]
        covariates = [each[answered] for each in covariates]
        gold = None if gold is None else gold[answered]
    sort = Sort.of(question, worker, len(ids), len(rank))
    indptr, worker = sort.indptr, sort.worker
    ordered = [sort.follow(each) for each in numbers]
    values, precision = ordered[0], ordered[1] if len(ordered) > 1 else None
    n_duplicates = int(np.count_nonzero(sort.again))
    repeated: list[tuple[object, int]] = []
    if n_duplicates and duplicates == "error":
        at = np.flatnonzero(sort.again & ~np.append(False, sort.again[:-1]))[:NAMED]
        row = np.searchsorted(indptr, at, side="right") - 1
        repeated = list(zip(ids.take(row).to_pylist(), worker[at].tolist(), strict=True))
    elif n_duplicates:
        first = np.flatnonzero(np.concatenate([[True], ~sort.again]))
        values, precision = merge_repeated(values, precision, first, duplicates)
        worker, indptr = worker[first], np.searchsorted(first, indptr)
    centred = centred_values(values, indptr)
    return _Part(
        ids=ids.cast(kind),
        counts=np.diff(indptr),
        workers=worker.astype(np.int32, copy=False),
        answers=values,
        centre=centred.centre,
        std=_std(indptr, worker, centred),
        precision=precision,
        group=group,
        covariates=covariates,
        gold=gold,
        n_duplicates=n_duplicates,
        repeated=repeated,
    )


def _std(indptr: Ints, workers: Indices, centred: Centred) -> Floats:
    """Return the standard deviation of each question, which takes long to find at each pass."""
    most = int(workers.max(initial=0)) + 1
    largest = max(len(workers), most)
    block = Block(
        indptr=narrow(indptr, largest),
        workers=narrow(workers, largest),
        values=centred.values,
        precision=None,
        n_workers=most,
        start=0,
        first_worker=0,
        panel_questions=np.array([0, len(centred.centre)]),
        first_panel=0,
        centre=centred.centre,
    )
    return block.std


def _one_group(codes: Indices, question: Indices, ids: Any) -> Indices:
    """Return the group of each question, -1 where it has none."""
    group, row = one_label(codes, question, len(ids))
    if row is not None:
        options = int(question[row])
        raise _TwoLabelsError(ids[options].as_py(), int(codes[row]), int(group[options]))
    return group.astype(np.int32)


class _TwoLabelsError(Exception):
    """A question has two labels, given by number."""


def _one_number(argument: str, values: Floats, question: Indices, ids: Any, name: str) -> Floats:
    """Return the number of each question, NaN where none is given."""
    number, row = one_number(values, question, len(ids))
    if row is not None:
        asked = int(question[row])
        pair = (float(values[row]), float(number[asked]))
        with about(argument):
            raise two_values(ids[asked].as_py(), f"values of {quoted(name)}", pair)
    return number


def _repeated(count: int, repeated: list[tuple[object, int]], workers: Any) -> AnswersError:
    questions, rows = zip(*repeated, strict=True)
    pairs = listed_answers((workers[row].as_py() for row in rows), questions)
    return repeated_answers(count, f"first {pairs}")


def _variances(
    read: Read, rank: Indices, ids: Ids, shown: Ids, options: IntakeOptions
) -> Floats | None:
    """Return the known variance of each worker in their order; messages name them as they are shown."""
    given = options.read.worker_variance
    if given is None:
        return None
    if isinstance(given, str):
        here = np.flatnonzero(~np.isnan(read.known))
        # The mapping of the known ones is checked like one of a caller.
        given = dict(zip(shown.tolist(rank[here]), read.known[here].tolist(), strict=True))
        ids = shown
        if not given:
            return np.full(len(ids), np.nan)
    return variance_by_id(ids, given)


class _Writer:
    """The files of the folder, written as the questions come."""

    def __init__(self, folder: Path, plan: RowPlan, kind: Any) -> None:
        pyarrow, parquet = need("pyarrow", "files"), need("pyarrow.parquet", "files")
        names = ["indptr.i64", "workers.i32", "values.f64", "centre.f64", "std.f64", "hash.u64"]
        names += ["precision.f64"] if plan.answer_variance else []
        names += ["group.i32"] if plan.group else []
        names += [f"covariate-{k}.f64" for k in range(len(plan.covariates))]
        names += ["gold.f64"] if plan.gold else []
        self._stack = ExitStack()
        self._files = {
            name: self._stack.enter_context((folder / name).open("wb")) for name in names
        }
        self._schema = pyarrow.schema([("question", kind)])
        # Each id is there once: dictionaries of them are of no use.
        ids = parquet.ParquetWriter(
            folder / "question_ids.parquet", self._schema, use_dictionary=False
        )
        self._ids = self._stack.enter_context(ids)
        self._put("indptr.i64", np.zeros(1, dtype=np.int64))
        self._questions = self._answers = 0
        self._precision = 0.0

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *about: object) -> None:
        self._stack.close()

    def _put(self, name: str, array: Any) -> None:
        self._files[name].write(np.ascontiguousarray(array).data)

    def add(self, part: _Part) -> None:
        """Append questions."""
        if not len(part.ids):
            return
        self._put("indptr.i64", self._answers + np.cumsum(part.counts, dtype=np.int64))
        self._put("workers.i32", part.workers)
        self._put("values.f64", part.answers)
        self._put("centre.f64", part.centre)
        self._put("std.f64", part.std)
        self._put("hash.u64", id_hashes(part.ids))
        if part.precision is not None:
            self._put("precision.f64", part.precision)
            self._precision += float(part.precision.sum())
        if part.group is not None:
            self._put("group.i32", part.group)
        for k, numbers in enumerate(part.covariates):
            self._put(f"covariate-{k}.f64", numbers)
        if part.gold is not None:
            self._put("gold.f64", part.gold)
        pyarrow = need("pyarrow", "files")
        self._ids.write_batch(pyarrow.record_batch([part.ids], schema=self._schema))
        self._questions += len(part.ids)
        self._answers += len(part.answers)

    def finish(self) -> dict[str, Any]:
        """Bring everything to the disk, and tell what there is."""
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
        self._stack.close()
        known = "precision.f64" in self._files
        return {
            "n_questions": self._questions,
            "n_answers": self._answers,
            "mean_precision": self._precision / self._answers if known else None,
        }


def _finish_groups(folder: Path, labels: Any, *, text: bool) -> None:
    """Number groups in the order in which questions first have them."""
    pyarrow, parquet = need("pyarrow", "files"), need("pyarrow.parquet", "files")
    codes = np.fromfile(folder / "group.i32", dtype=np.int32)
    used, first = np.unique(codes[codes >= 0], return_index=True)
    used = used[np.argsort(first)]
    number = np.full((0 if labels is None else len(labels)) + 1, -1, dtype=np.int32)
    number[used] = np.arange(len(used))
    (folder / "group.i32").write_bytes(number[codes].tobytes())
    ids = pyarrow.array([], pyarrow.string()) if labels is None else labels.take(used)
    ids = whole_number_ids(ids) if text and len(ids) else ids
    parquet.write_table(pyarrow.table({"group": ids}), folder / "group_labels.parquet")


def _check_covariates(folder: Path, plan: RowPlan) -> None:
    """Check that every question has a value of each covariate."""
    for k, name in enumerate(plan.covariates):
        missing = np.isnan(np.fromfile(folder / f"covariate-{k}.f64"))
        if missing.any():
            ids = need("pyarrow.parquet", "files").read_table(folder / "question_ids.parquet")
            first = ids.column(0)[int(np.argmax(missing))].as_py()
            with about("covariates"):
                raise missing_covariates(int(missing.sum()), name, first)
