"""Answers in a working folder: plain binary files question by question, read block by block.

==========================  =============================================================================
`meta.json`                 how many there are, sizes of all files, what they were made of; written last
`indptr.i64`                where the answers of each question begin, one entry more than questions
`workers.i32`               number of the worker of each answer
`values.f64`                each answer as given
`precision.f64`             one over the variance of each answer, where known
`centre.f64`, `std.f64`     lower median and standard deviation of each question
`hash.u64`                  hash of the id of each question
`question_ids.parquet`      ids in their order, and so for `worker_ids.parquet`
`worker_variance.f64`       where known
`group.i32`                 number of the label of each question in `group_labels.parquet`
`covariate-K.f64`           one number per question
`gold.f64`                  known truth of each question, NaN where unknown
==========================  =============================================================================
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.answers.block import Block
from trueup.answers.cut import BLOCK_ANSWERS
from trueup.answers.dense_block import CompleteBlock
from trueup.core.arrays import narrow
from trueup.core.libraries import need
from trueup.engines.disk.files import Malformed
from trueup.engines.disk.folder import META, Folder, shown
from trueup.engines.disk.question_data import StoredIds
from trueup.engines.one_panel import OnePanel
from trueup.errors import TrueupError
from trueup.io.columns import IdNames
from trueup.io.question_data import Covariates, Labels, QuestionData
from trueup.io.readers.source import one_line
from trueup.io.table import Ids, Pseudonyms

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

    from numpy.typing import NDArray

    from trueup.core.arrays import Floats, Ints

#: Changes whenever what the files mean does.
FORMAT = 3
# What reading a damaged folder can raise.
_DAMAGED = (OSError, ValueError, KeyError, TypeError)


@dataclass(frozen=True, eq=False)
class StoredAnswers(OnePanel):
    """Answers on disk; see `trueup.engines.protocol.Problem`.

    Attributes
    ----------
    folder : Folder
        Where they are; held until this is closed.
    n_questions, n_workers, n_answers : int
        How many there are.
    n_rows, n_missing, n_duplicates : int
        Rows read, rows without an answer, answers that repeat a worker on a question.
    unit : str
        The unit that was stripped from the answers; empty where they have none.
    malformed : Malformed
        Rows that could not be used: how many, and the first of them.
    columns : dict
        Names of the columns of question, worker and answer.
    starts : array
        First question of each block, and one more entry.
    """

    folder: Folder
    n_questions: int
    n_workers: int
    n_answers: int
    n_rows: int
    n_missing: int
    n_duplicates: int
    unit: str
    malformed: Malformed
    columns: dict[str, str]
    mean_precision: float | None
    covariate_names: tuple[str, ...]
    starts: Ints = field(repr=False)
    ends: Ints = field(repr=False)

    @property
    def names(self) -> IdNames:
        """What questions and workers are called: the columns that hold their ids."""
        return IdNames((self.columns["question"],), self.columns["worker"])

    @classmethod
    def open(cls, folder: Folder, block_answers: int = BLOCK_ANSWERS) -> Self:
        """Open a finished ingest.

        Raises
        ------
        TrueupError
            When it is not finished, or damaged.
        """
        try:
            meta = json.loads((folder.answers / META).read_bytes())
            if meta["format"] != FORMAT:
                raise ValueError(f"format {meta['format']}")
            for name, size in meta["sizes"].items():
                found = (folder.answers / name).stat().st_size
                if found != size:
                    raise ValueError(f"{name} has {found} bytes, not {size}")
            return cls._of(folder, meta, block_answers)
        except _DAMAGED as error:
            raise damaged(folder.path, error) from error

    @classmethod
    def find(cls, folder: Folder, mark: dict[str, Any]) -> Self | None:
        """Return what is in a folder, if that is a finished ingest of the same files with the same options."""
        try:
            meta = json.loads((folder.answers / META).read_bytes())
            same = meta["mark"] == json.loads(json.dumps(mark))
            return cls.open(folder) if same else None
        except (*_DAMAGED, TrueupError):
            return None

    @classmethod
    def _of(cls, folder: Folder, meta: dict[str, Any], block_answers: int) -> Self:
        m, answers = int(meta["n_questions"]), int(meta["n_answers"])
        expected = {
            "indptr.i64": 8 * (m + 1),
            "workers.i32": 4 * answers,
            "values.f64": 8 * answers,
        }
        expected |= dict.fromkeys(("centre.f64", "std.f64", "hash.u64"), 8 * m)
        for name, size in expected.items():
            if meta["sizes"][name] != size:
                raise ValueError(f"{name} has {meta['sizes'][name]} bytes, not {size}")
        size = max(
            block_answers, int(meta["n_workers"])
        )  # sums per worker must not outweigh the answers
        starts, ends = _cut(folder.answers / "indptr.i64", m, size)
        if ends[-1] != answers:
            raise ValueError("indptr.i64 ends elsewhere")
        return cls(
            folder=folder,
            n_questions=m,
            n_workers=int(meta["n_workers"]),
            n_answers=answers,
            n_rows=int(meta["n_rows"]),
            n_missing=int(meta["n_missing"]),
            n_duplicates=int(meta["n_duplicates"]),
            unit=str(meta["unit"]),
            malformed=Malformed(**meta["malformed"]),
            columns=dict(meta["columns"]),
            mean_precision=meta["mean_precision"],
            covariate_names=tuple(meta["covariates"]),
            starts=starts,
            ends=ends,
        )

    def cut(self, block_answers: int) -> Self:
        """Return the same answers in blocks of another size."""
        return type(self).open(self.folder, block_answers)

    def close(self) -> None:
        """Give the folder back; a temporary one is removed."""
        self.folder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *about: object) -> None:
        self.close()

    # -- what is known without looking at the answers ----------------------------------------------

    @cached_property
    def question_ids(self) -> StoredIds:
        """Ids of all questions, read when they are options for."""
        return StoredIds(self)

    @property
    def counts(self) -> Ints:
        """Number of answers of each question."""
        indptr: Ints = self._read("indptr.i64", np.int64, 0, self.n_questions + 1)
        return np.diff(indptr)

    def counts_of(self, questions: Ints) -> Ints:
        """Return the number of answers of some questions."""
        borders = [self._read("indptr.i64", np.int64, each, 2) for each in questions.tolist()]
        return np.diff(np.array(borders, dtype=np.int64).reshape(-1, 2), axis=1)[:, 0]

    @cached_property
    def worker_ids(self) -> Ids:
        """Id of each worker, in their order; or a pseudonym, in random order."""
        names = self._table("worker_ids.parquet", self.n_workers)
        rank = self._table("worker_ids.parquet", self.n_workers, "rank")
        return Ids(names) if rank is None else Pseudonyms(names, rank.to_numpy())

    @property
    def worker_rank(self) -> Ints:
        """Place of each worker among all ids in order."""
        ids = self.worker_ids
        return ids.rank if isinstance(ids, Pseudonyms) else np.arange(self.n_workers)

    @cached_property
    def worker_variance(self) -> Floats | None:
        """Known variance of each worker, NaN where unknown."""
        if not (self.folder.answers / "worker_variance.f64").exists():
            return None
        return self._read("worker_variance.f64", np.float64, 0, self.n_workers)

    @property
    def answer_variance(self) -> float:
        """The mean variance of answers, where those of single answers are known."""
        return np.nan if self.mean_precision is None else 1.0 / self.mean_precision

    @property
    def question_data(self) -> QuestionData:
        """Groups, covariates and gold truths from columns of the answers, where they were options for."""
        groups = covariates = gold = None
        if (self.folder.answers / "group.i32").exists():
            codes = self._read("group.i32", np.int32, 0, self.n_questions).astype(np.int64)
            groups = Labels(codes, Ids(self._table("group_labels.parquet", None)))
        if self.covariate_names:
            columns = [
                self._read(f"covariate-{k}.f64", np.float64, 0, self.n_questions)
                for k in range(len(self.covariate_names))
            ]
            covariates = Covariates(np.column_stack(columns), self.covariate_names)
        if (self.folder.answers / "gold.f64").exists():
            gold = self._read("gold.f64", np.float64, 0, self.n_questions)
        return QuestionData(groups, covariates, gold)

    # -- blocks ------------------------------------------------------------------------------------

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self.starts) - 1

    def block(self, i: int, *, answers: bool = True) -> Block:
        """Read a block; without its answers, only their number and the centres are known."""
        start, stop = self.starts[i : i + 2].tolist()
        first, last = self.ends[i : i + 2].tolist()
        indptr = self._read("indptr.i64", np.int64, start, stop - start + 1)
        if indptr[0] != first or indptr[-1] != last or (np.diff(indptr) < 1).any():
            raise damaged(self.folder.path, "indptr.i64")
        largest = max(last - first, self.n_workers)
        here = (first, last - first) if answers else (first, 0)
        workers = self._read("workers.i32", np.int32, *here)
        if len(workers) and not 0 <= workers.min() <= workers.max() < self.n_workers:
            raise damaged(self.folder.path, "workers.i32")
        precision = None
        if self.mean_precision is not None:
            precision = self._read("precision.f64", np.float64, *here) / self.mean_precision
        given = self._read("values.f64", np.float64, *here)
        centre = self._read("centre.f64", np.float64, start, stop - start)
        values = given - np.repeat(centre, np.diff(indptr)) if answers else given
        block = Block(
            indptr=narrow(indptr - first, largest),
            workers=narrow(workers, largest),
            values=values,
            precision=precision,
            n_workers=self.n_workers,
            start=start,
            first_worker=0,
            panel_questions=np.array([0, stop - start]),
            first_panel=0,
            centre=centre,
            given=given,
        )
        block = CompleteBlock.if_complete(block) if answers else block
        # What the property would find, and keep in this place.
        block.__dict__["std"] = self._read("std.f64", np.float64, start, stop - start)
        return block

    def hashes(self, i: int) -> NDArray[np.uint64]:
        """Return the hash of the id of each question of a block."""
        start, stop = self.starts[i : i + 2].tolist()
        return self._read("hash.u64", np.uint64, start, stop - start)

    def block_ids(self, i: int) -> Any:
        """Return the ids of the questions of a block, a pyarrow array."""
        parquet, pyarrow = need("pyarrow.parquet", "files"), need("pyarrow", "files")
        start, stop = self.starts[i : i + 2].tolist()
        groups = np.flatnonzero((self._id_borders[1:] > start) & (self._id_borders[:-1] < stop))
        try:
            path = self.folder.answers / "question_ids.parquet"
            with parquet.ParquetFile(path, metadata=self._id_metadata) as file:
                column = file.read_row_groups(groups.tolist()).column(0)
        except (pyarrow.ArrowException, *_DAMAGED) as error:
            raise damaged(self.folder.path, error) from error
        return pyarrow.concat_arrays(column.chunks).slice(
            start - int(self._id_borders[groups[0]]), stop - start
        )

    def question_id(self, number: int) -> object:
        """Return the id of one question."""
        i = int(np.searchsorted(self.starts, number, side="right")) - 1
        return self.block_ids(i)[number - int(self.starts[i])].as_py()

    @cached_property
    def _id_metadata(self) -> Any:
        parquet, pyarrow = need("pyarrow.parquet", "files"), need("pyarrow", "files")
        try:
            return parquet.read_metadata(self.folder.answers / "question_ids.parquet")
        except (pyarrow.ArrowException, *_DAMAGED) as error:
            raise damaged(self.folder.path, error) from error

    @cached_property
    def _id_borders(self) -> Ints:
        """First question of each row group of the ids."""
        about = self._id_metadata
        counts = [about.row_group(g).num_rows for g in range(about.num_row_groups)]
        borders = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        if borders[-1] != self.n_questions:
            raise damaged(self.folder.path, "question_ids.parquet")
        return borders

    def _table(self, name: str, length: int | None, column_name: str | None = None) -> Any:
        """Read the first column of a table, or a named one, None where it has none of that name."""
        parquet, pyarrow = need("pyarrow.parquet", "files"), need("pyarrow", "files")
        try:
            table = parquet.read_table(self.folder.answers / name)
        except (pyarrow.ArrowException, *_DAMAGED) as error:
            raise damaged(self.folder.path, error) from error
        if length is not None and len(table) != length:
            raise damaged(self.folder.path, name)
        if column_name is not None and column_name not in table.column_names:
            return None
        return table.column(column_name or 0).combine_chunks()

    def _read(self, name: str, kind: Any, first: int, count: int) -> NDArray[Any]:
        # Not mapped into memory: pages would count as ours, and a file cut short would end the process.
        size = np.dtype(kind).itemsize
        try:
            array = np.fromfile(self.folder.answers / name, kind, count, offset=first * size)
        except _DAMAGED as error:
            raise damaged(self.folder.path, error) from error
        if len(array) != count:
            raise damaged(self.folder.path, name)
        return array


def _cut(path: Path, m: int, size: int) -> tuple[Ints, Ints]:
    """Cut questions into blocks of at most so many answers, or of one question; the cuts depend on answers alone."""
    # Mapped, as only a few pages are looked at; its size is known to be right.
    indptr = np.memmap(path, dtype=np.int64, mode="r", shape=(m + 1,))
    starts = [0]
    while starts[-1] < m:
        target = int(indptr[starts[-1]]) + size
        stop = max(int(np.searchsorted(indptr, target, side="right")) - 1, starts[-1] + 1)
        starts.append(min(stop, m))
    return np.array(starts), np.array(indptr[starts])


def damaged(folder: Path, about: object) -> TrueupError:
    """Say that a folder does not hold what it should."""
    return TrueupError(
        f"Folder {shown(folder)}: what an earlier run left there is damaged ({one_line(about)}). Run again with "
        'another folder, or remove "answers" in it.'
    )
