"""What Spark is asked to do with blocks, visit them, gather some, write columns, and how the driver joins the outcome.

The functions returned here run on the executors, inside `mapInArrow`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.answers.answers import Answers
from trueup.answers.origin import Origin
from trueup.core.arrays import expand, offsets
from trueup.engines.gathering import answer_fields, chosen_arrays, joined_arrays
from trueup.engines.protocol import Sweep
from trueup.engines.reduction import Reduction
from trueup.engines.spark.blocks import one_row, pack, read_ids, unpack, write_ids
from trueup.engines.spark.vectors import BlockVectors
from trueup.errors import TrueupError
from trueup.io.table import Ids

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import TypeAlias

    from numpy.typing import NDArray

    from trueup.answers.block import Block
    from trueup.core.arrays import Floats
    from trueup.engines.protocol import Kept
    from trueup.engines.spark.blocks import Reader
    from trueup.engines.spark.engine import SparkEngine
    from trueup.engines.spark.vectors import Layer, Recipe, Step

    #: What `mapInArrow` takes: record batches of a partition in, others out.
    Task: TypeAlias = Callable[[Iterable[Any]], Iterator[Any]]

#: What partitions send: the share of the workers (-1: all that is not about workers) and named arrays.
SENT = "share int, part int, data binary"


# -- on the executors ----------------------------------------------------------------------------


def visitor(step: Step, reader: Reader, n_workers: int, shares: list[int]) -> Task:
    """Return what visits the blocks of a partition and adds up what they bring."""

    def visit(batches: Iterable[Any]) -> Iterator[Any]:
        reduction, part, written = Reduction(n_workers, 1), -1, set()
        try:
            for row in reader.rows(batches):
                part = row.part
                made = BlockVectors(row.block, row.hashes, row.known)
                found = made.visit(step)
                reduction.add(made.block(step.layer), found)
                written |= set(found.questions or ())
        except TrueupError as error:
            yield one_row(
                {"share": -1, "part": part, "data": pack({"error": np.array(str(error))})}, SENT
            )
            return
        if part < 0:
            return
        sweep = reduction.result()
        rest: dict[str, NDArray[Any]] = {f"rows {name}": each for name, each in sweep.rows.items()}
        if len(sweep.panel_sums):
            rest["panel_sums"] = sweep.panel_sums
        rest["panel_peaks"] = sweep.panel_peaks
        rest["written"] = np.array(sorted(written), dtype=np.str_)
        if len(shares) == 2:
            rest["sums"] = sweep.sums
        yield one_row({"share": -1, "part": part, "data": pack(rest)}, SENT)
        if len(shares) > 2 and len(sweep.sums):
            for share in range(len(shares) - 1):
                mine = sweep.sums[:, shares[share] : shares[share + 1]]
                yield one_row({"share": share, "part": part, "data": pack({"sums": mine})}, SENT)

    return visit


def add_shares(batches: Iterable[Any]) -> Iterator[Any]:
    """Add up the sums of each share, in the order of the partitions they come from."""
    now, total = -1, np.zeros((0, 0))
    for batch in batches:
        for row in batch.to_pylist():
            share = row["share"]
            if share < 0:
                yield one_row(row, SENT)
                continue
            sums = unpack(row["data"])["sums"]
            if share == now:
                total += sums
                continue
            if now >= 0:
                yield one_row({"share": now, "part": 0, "data": pack({"sums": total})}, SENT)
            now, total = share, sums
    if now >= 0:
        yield one_row({"share": now, "part": 0, "data": pack({"sums": total})}, SENT)


#: What `gather` sends: a row per block.
GATHERED = "part int, number int, data binary, ids binary"


def gatherer(
    inside: Callable[[Block, Kept], Any] | None,
    reads: Mapping[str, Recipe],
    layer: Layer,
    reader: Reader,
) -> Task:
    """Return what picks the chosen questions of a partition."""

    def gather(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for row in reader.rows(batches):
            made = BlockVectors(row.block, row.hashes, row.known)
            block = made.block(layer)
            questions = np.arange(block.n_questions)
            if inside is not None:
                questions = np.flatnonzero(inside(block, made.kept(reads)))
            if not len(questions):
                continue
            arrays = chosen_arrays(block, questions)
            ids = write_ids(read_ids(row.ids).take(pa.array(questions)))
            sent = {"part": row.part, "number": row.number, "data": pack(arrays), "ids": ids}
            yield one_row(sent, GATHERED)

    return gather


def writer(step: Step, reader: Reader, columns: dict[str, str]) -> Task:
    """Return what writes the ids of questions and the columns that a visit brings of them."""

    def write(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        kinds = {"double": pa.float64(), "long": pa.int64(), "boolean": pa.bool_()}
        for row in reader.rows(batches):
            found = BlockVectors(row.block, row.hashes, row.known).visit(step).questions or {}
            arrays = [read_ids(row.ids)]
            for name, kind in columns.items():
                values = np.asarray(found[name])
                if kind != "double":
                    values = values.astype(np.int64 if kind == "long" else np.bool_)
                arrays.append(pa.array(values, type=kinds[kind], from_pandas=True))
            yield pa.RecordBatch.from_arrays(arrays, names=["question", *columns])

    return write


# -- on the driver -------------------------------------------------------------------------------


def joined(rows: list[Any], n_workers: int) -> tuple[Sweep, set[str]]:
    """Join what the partitions sent, in their order; return it and the names of the vectors written."""
    sums, panel_sums, peaks = np.zeros((0, n_workers)), np.zeros((0, 1)), np.zeros(1)
    parts: dict[str, list[Floats]] = {}
    written: set[str] = set()
    shares = []
    for row in sorted(rows, key=lambda row: (row["share"], row["part"])):
        arrays = unpack(row["data"])
        if "error" in arrays:
            raise TrueupError(str(arrays["error"]))
        if row["share"] >= 0:
            shares.append(arrays["sums"])
            continue
        if len(arrays.get("sums", ())):
            sums = sums + arrays["sums"] if len(sums) else arrays["sums"]
        if "panel_sums" in arrays:
            panel_sums = (
                panel_sums + arrays["panel_sums"] if len(panel_sums) else arrays["panel_sums"]
            )
        peaks = np.maximum(peaks, arrays["panel_peaks"])
        written |= set(arrays["written"].tolist())
        for name, values in arrays.items():
            if name.startswith("rows "):
                parts.setdefault(name.removeprefix("rows "), []).append(values)
    if shares:
        sums = np.concatenate(shares, axis=1)
    joined = {name: np.concatenate(each) for name, each in parts.items()}
    return Sweep(sums, panel_sums, peaks, joined), written


def gathered(rows: list[Any], engine: SparkEngine) -> Answers:
    """Make Answers of gathered blocks, in the order of the ids of the questions."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not rows:
        raise TrueupError("gather: no question was chosen.")
    rows = sorted(rows, key=lambda row: (row["part"], row["number"]))
    arrays = joined_arrays([unpack(row["data"]) for row in rows])
    ids = pa.concat_arrays([read_ids(row["ids"]) for row in rows])
    order = np.asarray(pc.sort_indices(ids)).astype(np.int64)
    counts = arrays["counts"][order]
    answers = expand(offsets(arrays["counts"])[:-1][order], counts)
    of_questions = ("counts", "centre")
    ordered = {
        name: array[order if name in of_questions else answers] for name, array in arrays.items()
    }
    fields, present = answer_fields(ordered, engine)
    problem = engine.problem
    origin = Origin(
        Ids(ids.take(pa.array(order))),
        problem.worker_ids,
        None,
        "pyarrow",
        problem.n_rows,
        problem.n_missing,
        problem.n_duplicates,
        problem.names,
    )
    return Answers(**fields, worker_source=present, origin=origin)
