"""Files of answers for the tests of the engine on disk, and what its folder should hold."""

from __future__ import annotations

import hashlib
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from trueup.core.sampling import id_hashes
from trueup.engines.disk import intake
from trueup.io.question_data import QuestionColumns
from trueup.io.read_options import ReadOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trueup import Answers
    from trueup.engines.disk.blocks import StoredAnswers


def table(
    rows: int = 400, *, seed: int = 0, ids: str = "q{}", repeats: int = 0, questions: int = 60
) -> pa.Table:
    """Return answers in random order, each worker once on each question, and some of them repeated."""
    rng = np.random.default_rng(seed)
    pairs = rng.permutation(questions * 30)[:rows]
    pairs = np.concatenate([pairs, rng.choice(pairs, repeats)])
    question, worker = pairs // 30, pairs % 30
    return pa.table(
        {
            "worker": [f"w{each}" for each in worker],
            "question": [ids.format(each) for each in question],
            "answer": pa.array(np.round(rng.gamma(2.0, 3.0, len(pairs)) + question + 0.5, 3)),
            "variance": pa.array(rng.gamma(2.0, 1.0, len(pairs)) + 0.1),
            "of_worker": pa.array(1.0 + worker),
            "group": [("even", "odd")[each % 2] for each in question],
            "size": pa.array(question * 0.5),
        }
    )


def write(data: pa.Table, path: Path) -> Path:
    """Write a table in the format that the name of the file ends in."""
    if path.suffix == ".parquet":
        pq.write_table(data, path, row_group_size=97)
        return path
    options = pyarrow.csv.WriteOptions(delimiter="\t" if ".tsv" in path.name else ",")
    with pa.output_stream(path, compression="detect") as file:
        pyarrow.csv.write_csv(data, file, options)
    return path


def ingest(paths: Any, folder: Any = None, **options: Any) -> StoredAnswers:
    """Read files into a working folder, with the options of `trueup.disk.estimate`."""
    names = {each.name for each in fields(ReadOptions)}
    read = ReadOptions(**{name: options.pop(name) for name in names & options.keys()})
    covariates = options.pop("covariates", ())
    columns = QuestionColumns(
        options.pop("groups", None),
        (covariates,) if isinstance(covariates, str) else tuple(covariates),
        options.pop("gold", None),
    )
    return intake.ingest(paths, folder, read, columns, **options)


def laid_out(answers: Answers) -> dict[str, Any]:
    """Return answers in memory as they should be on disk: everything in the order of the ids."""
    questions, workers = answers.question_ids.sort_order(), answers.worker_ids.sort_order()
    rank = np.argsort(workers)
    found: dict[str, list[Any]] = {name: [] for name in ("workers", "values", "precision")}
    for j in questions:
        here = slice(*answers.indptr[j : j + 2])
        order = np.argsort(rank[answers.workers[here]])
        found["workers"].append(rank[answers.workers[here]][order])
        found["values"].append(answers.values[here][order])
        if answers.precision is not None:
            found["precision"].append(answers.precision[here][order])
    known = answers.worker_variance
    return {
        **{name: np.concatenate(parts) if parts else None for name, parts in found.items()},
        "centre": answers.centre[questions],
        "counts": answers.counts[questions],
        "question_ids": answers.question_ids.take(questions).tolist(),
        "worker_ids": answers.worker_ids.take(workers).tolist(),
        "worker_variance": None if known is None else known[workers],
        "hashes": id_hashes(answers.question_ids.take(questions).values),
    }


def read_back(stored: StoredAnswers) -> dict[str, Any]:
    """Return all that a folder holds."""
    blocks = [stored.block(i) for i in range(stored.n_blocks)]
    known = [block.precision for block in blocks if block.precision is not None]
    return {
        "workers": np.concatenate([block.workers for block in blocks]),
        "values": np.concatenate([block.values for block in blocks]),
        "precision": np.concatenate(known) if known else None,
        "centre": np.concatenate([block.centre for block in blocks]),
        "counts": np.concatenate([block.counts for block in blocks]),
        "question_ids": [
            q for i in range(stored.n_blocks) for q in stored.block_ids(i).to_pylist()
        ],
        "worker_ids": stored.worker_ids.tolist(),
        "worker_variance": stored.worker_variance,
        "hashes": np.concatenate([stored.hashes(i) for i in range(stored.n_blocks)]),
    }


def assert_same(stored: StoredAnswers, answers: Answers) -> None:
    """Compare a folder with answers in memory."""
    found, expected = read_back(stored), laid_out(answers)
    for name, array in expected.items():
        if name == "precision" and array is not None:
            np.testing.assert_allclose(found[name], array, rtol=1e-14)
        elif isinstance(array, np.ndarray):
            np.testing.assert_array_equal(found[name], array, err_msg=name)
        else:
            assert found[name] == array, name
    assert (stored.n_questions, stored.n_workers) == (answers.n_questions, answers.n_workers)
    assert stored.n_answers == answers.n_answers
    np.testing.assert_allclose(stored.answer_variance, answers.answer_variance, rtol=1e-14)
    origin = answers.origin
    assert (stored.n_rows, stored.n_missing) == (origin.n_rows, origin.n_missing)
    assert stored.n_duplicates == origin.n_duplicates


def digest(folder: Path) -> dict[str, str]:
    """Return a checksum of each file that holds answers."""
    files = sorted(path for path in (folder / "answers").iterdir() if path.name != "meta.json")
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(autouse=True)
def no_files_left_open() -> Iterator[None]:
    """See that a test closes what it opens."""
    handles = Path("/proc/self/fd")
    before = len(list(handles.iterdir())) if handles.exists() else 0
    yield
    assert not before or len(list(handles.iterdir())) <= before + 8
