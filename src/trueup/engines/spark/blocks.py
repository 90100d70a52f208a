"""Blocks as rows of a Spark DataFrame: how a block becomes a row of compact binary columns, and how it is read again.

Blocks are made and read on the executors, inside `mapInArrow`. What is wrong with answers is written into the row, and
the driver says so (`check_faults`): an error on an executor would be tried again, and be told as a long story.
"""

from __future__ import annotations

import json
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trueup.answers.block import Block
from trueup.answers.build import NAMED, centred_values
from trueup.answers.build import merge_repeated as merge
from trueup.answers.dense_block import CompleteBlock
from trueup.answers.faults import bad_variances, listed_answers, repeated_answers
from trueup.core.parameters import usable_variances
from trueup.core.sampling import id_hashes
from trueup.engines.spark.question_data import SparkQuestionData, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from trueup.core.arrays import Floats, Indices

#: The columns of the cached DataFrame, a row for each block.
STORED = (
    "part int, number int, questions bigint, answers bigint, faults string, total double, indptr binary, "
    "workers binary, values binary, precision binary, centre binary, std binary, hashes binary, ids binary, "
    "known binary, truths bigint"
)
#: Those that say what is in a block, and those that a visit needs.
ABOUT = ("part", "number", "questions", "answers", "faults", "total", "truths")
VISITED = (
    *("part", "number", "indptr", "workers", "values", "precision", "centre", "std", "hashes"),
    "known",
)


class BlockPlan(NamedTuple):
    """How blocks are made.

    Attributes
    ----------
    worker_ids : pyarrow array
        The ids of all workers, in order.
    size : int
        Answers of a block, unless a single question has more.
    question_data : SparkQuestionData
        What is known about the questions.
    """

    worker_ids: Any
    size: int
    question_data: SparkQuestionData = SparkQuestionData()

    def maker(self) -> Callable[[Iterable[Any]], Iterator[Any]]:
        """Return what turns the rows of a partition, sorted by question, worker and answer, into blocks."""
        plan = self

        def make(batches: Iterable[Any]) -> Iterator[Any]:
            from pyspark import TaskContext

            context = TaskContext.get()
            part = 0 if context is None else context.partitionId()
            for number, rows in enumerate(_whole_questions(batches, plan.size)):
                block = _store(plan, part, number, rows)
                if block is not None:
                    yield block

        return make


def _whole_questions(batches: Iterable[Any], size: int) -> Iterator[Any]:
    """Cut sorted rows between questions, into tables of about `size` rows or one question."""
    import pyarrow as pa
    import pyarrow.compute as pc

    waiting: list[Any] = []
    count, enough = 0, size
    for batch in batches:
        if not batch.num_rows:
            continue
        waiting.append(batch)
        count += batch.num_rows
        if count < enough:
            continue
        table = pa.Table.from_batches(waiting)
        last = pc.index(table["question"], table["question"][-1]).as_py()
        if last:
            yield table.slice(0, last)
            waiting = table.slice(last).to_batches()
            count -= last
        # A question of which there are more rows than that is looked at again when they have doubled.
        enough = max(size, 2 * count)
    if waiting:
        yield pa.Table.from_batches(waiting)


def _store(plan: BlockPlan, part: int, number: int, rows: Any) -> Any:
    """Make the row of a block; None if no question of it has an answer."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = rows.combine_chunks()
    question, fresh = _questions(rows)
    answered = pc.is_valid(rows["answer"]).to_numpy()
    starts = np.flatnonzero(fresh)
    has_answer = np.logical_or.reduceat(answered, starts)
    if not has_answer.any():
        return None
    ids = question.take(pa.array(starts[has_answer]))
    known = plan.question_data.read(rows, starts, has_answer, ids)
    if not answered.all():
        rows = rows.filter(pa.array(answered)).combine_chunks()
        question, fresh = _questions(rows)
        starts = np.flatnonzero(fresh)
    worker = rows["worker"].combine_chunks()
    code = pc.index_in(worker, value_set=plan.worker_ids.cast(worker.type)).to_numpy()
    answers = rows["answer"].to_numpy()
    faults = known.faults
    precision = None
    if "variance" in rows.column_names:
        variance = rows["variance"].to_numpy()
        bad = ~usable_variances(variance)
        if bad.any():
            faults["variance"] = [int(bad.sum()), variance[bad][:NAMED].tolist()]
        precision = 1.0 / np.where(bad, 1.0, variance)
    indptr = np.append(starts, len(answers))
    again = ~fresh & np.append(False, code[1:] == code[:-1])
    if again.any():
        at = np.flatnonzero(again & ~np.append(False, again[:-1]))[:NAMED]
        named = [worker.take(pa.array(at)).to_pylist(), question.take(pa.array(at)).to_pylist()]
        pairs = [[plain(each) for each in pair] for pair in zip(*named, strict=True)]
        faults["repeated"] = [int(again.sum()), pairs]
        first = np.flatnonzero(~again)
        answers, precision = merge(answers, precision, first, "mean")
        code, indptr = code[first], np.searchsorted(first, indptr)
    indptr, code = indptr.astype(np.int32), code.astype(np.int32)
    centre = centred_values(answers, indptr).centre
    block = _block(indptr, code, answers, precision, centre, len(plan.worker_ids))
    row = {
        "part": part,
        "number": number,
        "questions": len(ids),
        "answers": len(answers),
        "faults": json.dumps(faults) if faults else None,
        "total": float(len(answers) if precision is None else precision.sum()),
        "indptr": _bytes(indptr),
        "workers": _bytes(code),
        "values": _bytes(answers),
        "precision": None if precision is None else _bytes(precision),
        "centre": _bytes(centre),
        "std": _bytes(block.std),  # takes long to find at each pass
        "hashes": _bytes(id_hashes(ids)),
        "ids": write_ids(ids),
        "known": _bytes(known.vectors) if len(known.vectors) else None,
        "truths": known.n_truths,
    }
    return one_row(row, STORED)


def _questions(rows: Any) -> tuple[Any, Any]:
    """Return the question of each row, and whether it is another one than that of the row before."""
    import pyarrow.compute as pc

    question = rows["question"].combine_chunks()
    other = pc.not_equal(question[1:], question[:-1]).to_numpy(zero_copy_only=False)
    return question, np.append(True, other)


def one_row(row: Mapping[str, Any], schema: str) -> Any:
    """Return a record batch with one row, given the columns as Spark writes them."""
    import pyarrow as pa

    kinds = {
        "int": pa.int32(), "bigint": pa.int64(), "double": pa.float64(),
        "string": pa.string(), "binary": pa.binary(),
    }  # fmt: skip
    names = [each.split() for each in schema.split(", ")]
    arrays = [pa.array([row[name]], type=kinds[kind]) for name, kind in names]
    return pa.RecordBatch.from_arrays(arrays, names=[name for name, _ in names])


def _bytes(array: NDArray[Any]) -> bytes:
    """Return the bytes of an array, and as many more as keep the next row aligned to 8."""
    data = np.ascontiguousarray(array).tobytes()
    return data + bytes(-len(data) % 8)


def _array(buffer: Any, dtype: Any, count: int) -> NDArray[Any]:
    array = np.frombuffer(buffer, dtype=dtype, count=count)
    return array if array.flags.aligned else array.copy()


def write_ids(ids: Any) -> bytes:
    """Return ids as the bytes of an Arrow stream."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    batch = pa.RecordBatch.from_arrays([ids], names=["id"])
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def read_ids(data: Any) -> Any:
    """Return the ids that `write_ids` wrote."""
    import pyarrow as pa

    return pa.ipc.open_stream(data).read_all()["id"].combine_chunks()


class Row(NamedTuple):
    """A row as a visit finds it."""

    part: int
    number: int
    block: Block
    hashes: NDArray[np.uint64]
    known: dict[str, NDArray[np.float64]]
    ids: Any


class Reader(NamedTuple):
    """How stored blocks are read.

    Attributes
    ----------
    n_workers : int
        Number of workers.
    unit : float
        Mean precision of all answers, where precisions are known.
    names : tuple of str
        The vectors that are stored with the questions.
    """

    n_workers: int
    unit: float
    names: tuple[str, ...] = ()

    def rows(self, batches: Iterable[Any]) -> Iterator[Row]:
        """Read the blocks of a partition one by one."""
        for batch in batches:
            columns = {name: batch.column(i) for i, name in enumerate(batch.schema.names)}
            for i in range(batch.num_rows):
                yield _read({name: column[i] for name, column in columns.items()}, self)


def _read(row: Mapping[str, Any], reader: Reader) -> Row:
    centre = row["centre"].as_buffer()
    questions = centre.size // 8
    indptr = _array(row["indptr"].as_buffer(), np.int32, questions + 1)
    answers = int(indptr[-1])
    precision = None
    if row["precision"].is_valid:
        precision = _array(row["precision"].as_buffer(), np.float64, answers) / reader.unit
    block = _block(
        indptr,
        _array(row["workers"].as_buffer(), np.int32, answers),
        _array(row["values"].as_buffer(), np.float64, answers),
        precision,
        _array(centre, np.float64, questions),
        reader.n_workers,
    )
    block.__dict__["std"] = _array(row["std"].as_buffer(), np.float64, questions)
    hashes = _array(row["hashes"].as_buffer(), np.uint64, questions)
    known = {}
    if reader.names:
        vectors = _array(row["known"].as_buffer(), np.float64, len(reader.names) * questions)
        known = dict(zip(reader.names, vectors.reshape(-1, questions), strict=True))
    ids = row["ids"].as_buffer() if "ids" in row else None
    return Row(row["part"].as_py(), row["number"].as_py(), block, hashes, known, ids)


def _block(
    indptr: Indices,
    workers: Indices,
    given: Floats,
    precision: Floats | None,
    centre: Floats,
    n_workers: int,
) -> Block:
    questions = len(centre)
    block = Block(
        indptr=indptr,
        workers=workers,
        values=given - np.repeat(centre, np.diff(indptr)),
        precision=precision,
        n_workers=n_workers,
        start=0,
        first_worker=0,
        panel_questions=np.array([0, questions]),
        first_panel=0,
        centre=centre,
        given=given,
    )
    return CompleteBlock.if_complete(block)


def pack(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return named arrays as bytes: data, never code."""
    objects = [name for name, array in arrays.items() if np.asarray(array).dtype.hasobject]
    if objects:
        raise TypeError(f"{objects[0]}: Python objects are not data.")
    sink = BytesIO()
    # Not allow_pickle=False: numpy 2.0 would take it for the name of an array.
    np.savez(sink, **dict(arrays))  # type: ignore[arg-type]
    return sink.getvalue()


def unpack(data: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays that `pack` packed."""
    with np.load(BytesIO(data), allow_pickle=False) as arrays:
        return dict(arrays)


def check_faults(about: list[Any], n_answers: int, plan: BlockPlan, duplicates: str) -> int:
    """Refuse answers that the blocks could not take; return how many were repeated."""
    found: dict[str, tuple[int, list[Any]]] = {}
    for row in about:
        for kind, (count, some) in json.loads(row["faults"] or "{}").items():
            before = found.get(kind, (0, []))
            found[kind] = before[0] + count, before[1] + some
    plan.question_data.check(found, sum(row["truths"] for row in about))
    if "variance" in found:
        count, some = found["variance"]
        shown = ", ".join(str(value) for value in sorted(some)[:NAMED])
        raise bad_variances(count, n_answers, f"such as {shown}")
    count, some = found.get("repeated", (0, []))
    if count and duplicates == "error":
        pairs = sorted(some, key=lambda pair: (str(pair[1]), str(pair[0])))[:NAMED]
        raise repeated_answers(
            count, f"such as {listed_answers(*zip(*pairs, strict=True))}", ordered=False
        )
    return count
