"""From files of any size to a working folder: read once, cut into buckets, sorted bucket by bucket.

Everything is streamed. Rows are read in their order and cut into buckets by question id; each bucket is sorted in
memory, repeated answers are settled, values centred, and the outcome appended to plain binary files. So the time grows
with the number of rows and the memory does not. Questions and workers are numbered in the order of their ids.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from trueup.core.parameters import yes_or_no
from trueup.engines.disk.blocks import FORMAT, StoredAnswers
from trueup.engines.disk.files import (
    Limits,
    ParquetFile,
    check_memory_limit,
    check_stands,
    open_alike,
)
from trueup.engines.disk.folder import META, Folder, as_one, folder_errors, not_writable
from trueup.engines.disk.reading import (
    IntakeOptions,
    check_merging,
    make_plan,
    read_all,
    refuse,
)
from trueup.engines.disk.rows import NotWholeNumbersError
from trueup.engines.disk.sorting import sort
from trueup.engines.disk.text_files import TextFile
from trueup.engines.threads import check_threads
from trueup.errors import AnswersError, TrueupError, quoted
from trueup.io.formats import PACKINGS, PARQUET, find_format, list_endings
from trueup.io.paths import find_paths
from trueup.io.question_data import QuestionColumns
from trueup.io.read_options import ReadOptions, check_reading
from trueup.io.readers.delimited import Layout
from trueup.io.readers.source import label_of, labelled

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike
    from pathlib import Path

    from trueup.engines.disk.files import File
    from trueup.engines.disk.reading import Progress


def ingest(
    paths: str | PathLike[str] | Sequence[str | PathLike[str]],
    folder: str | PathLike[str] | None = None,
    read: ReadOptions | None = None,
    columns: QuestionColumns | None = None,
    *,
    strict: bool = False,
    memory_limit: str = "1GB",
    threads: int | None = None,
    progress: Progress | None = None,
) -> StoredAnswers:
    """Read files of any size into a working folder, sorted and encoded; one that is there already is used again.

    Parameters
    ----------
    paths : path or list of paths
        Parquet (.parquet, .pq) or delimited text (.csv, .tsv, .txt, also with .gz or .zst behind); patterns too. Rows
        in any order, ids text or whole numbers. They come out as from `Answers.from_file`, but numbered in their order.
    folder : path, optional
        The working folder. By default a temporary one, which goes when what is returned is closed.
    read : ReadOptions, optional
        Columns, repeated answers, known variances, and how text is written, as for `Answers.from_file`.
    columns : QuestionColumns, optional
        Columns with the group, the covariates and the known truth of each question.
    strict : bool
        Stop at rows that cannot be used. Otherwise they are left out, counted and named in
        `StoredAnswers.malformed`, unless they are more than half of all.
    memory_limit : str
        What reading delimited text may use, such as "2GB". Reading Parquet, sorting and estimating are not bound by it:
        they work in pieces of a fixed size.
    threads : int, optional
        Default: the number of processors. It changes the time, not the result.
    progress : callable, optional
        Called with what is being done and how much of it is done, from 0 to 1.

    Raises
    ------
    AnswersError
        When the files do not hold usable answers, with file, column, what was found, and what to do.
    TrueupError
        When the folder cannot be used: not writable, disk full, used by another run. Nothing half-written stays.
    """
    check_threads(threads)
    check_memory_limit(memory_limit)
    yes_or_no("strict", strict)
    read = read or ReadOptions()
    check_reading(read.duplicates, read.answer_variance, read.worker_variance)
    if strict and read.skip_bad:
        raise AnswersError(
            "stops at rows that skip_bad sets aside. Leave one of them out.", argument="strict"
        )
    if not isinstance(read.answer_variance, str | None):
        raise AnswersError(
            f"found {quoted(read.answer_variance)}, on disk it is the name of a column.",
            argument="answer_variance",
        )
    options = IntakeOptions(
        read=read,
        columns=columns or QuestionColumns(),
        layout=Layout.of(read.sep, read.encoding, read.skip_lines),
        strict=strict or (read.valid is not None and not read.skip_bad),
        limits=Limits(memory_limit, threads or os.cpu_count() or 1),
        progress=progress or (lambda _what, _share: None),
    )
    held = Folder(folder)
    try:
        return _ingest(paths, held, options)
    except BaseException:
        held.close()
        raise


def open_files(
    paths: str | PathLike[str] | Sequence[str | PathLike[str]], layout: Layout, folder: Folder
) -> list[File]:
    """Open files of one kind, Parquet or delimited text; only what they say about themselves is read."""
    return open_alike(paths, lambda path, name: _open(path, name, layout, folder))


def _open(path: Path, name: str, layout: Layout, folder: Folder) -> File:
    with labelled(label_of(name)):
        file_format = find_format(path, packings=PACKINGS, streamed=True)
        if file_format is None:
            raise AnswersError(
                "cannot be read by the engine on disk. It takes files ending in "
                f"{list_endings(packings=PACKINGS, streamed=True)}: write the answers in one of these formats."
            )
        file_format.check_options(layout)
        if file_format is PARQUET:
            return ParquetFile(path, name)
        return TextFile(path, name, layout, folder)


def _ingest(paths: Any, folder: Folder, options: IntakeOptions) -> StoredAnswers:
    found = find_paths(paths).paths
    for path in found:
        check_stands(path)
    stamps = _stamps(found)
    mark = {"sources": stamps, "options": options.mark, "byteorder": sys.byteorder}
    stored = StoredAnswers.find(folder, mark)
    if stored is not None:
        refuse(stored.malformed, stored.n_rows, strict=options.strict, rules=options.read.rules)
        return stored
    folder.clear()
    folder.make()
    try:
        with folder_errors(folder.path):
            meta = _write(found, folder, options)
            _check_unchanged(stamps, _stamps(found))
            with as_one(folder.answers / META) as file:
                file.write(json.dumps({**meta, "format": FORMAT, "mark": mark}).encode())
                file.flush()
                os.fsync(file.fileno())
        folder.clear_spool()
        folder.make()
    except BaseException as error:
        with suppress(TrueupError):
            folder.clear()
        if type(error).__module__.partition(".")[0] == "pyarrow":
            raise not_writable(folder.path, cast("Exception", error)) from error
        raise
    return StoredAnswers.open(folder)


def _stamps(paths: Sequence[Path]) -> list[list[Any]]:
    """Tell what files are like, so that a change of one shows."""
    stamps = []
    for path in paths:
        try:
            about = path.stat()
        except OSError:
            stamps.append([str(path.absolute()), -1, -1])
        else:
            stamps.append([str(path.absolute()), about.st_size, about.st_mtime_ns])
    return stamps


def _check_unchanged(before: list[list[Any]], after: list[list[Any]]) -> None:
    for old, new in zip(before, after, strict=True):
        if old != new:
            raise AnswersError(
                f"{label_of(new[0])}: has changed while it was read. Run again when nothing writes to it."
            )


def _write(paths: list[Path], folder: Folder, options: IntakeOptions) -> dict[str, Any]:
    """Read, sort and write; return what is to be known of the outcome."""
    files = open_files(paths, options.layout, folder)
    plan = make_plan(files, options)
    if options.read.duplicates == "mean":
        check_merging(files[0], plan, options.limits)
    try:
        read = read_all(files, plan, folder, options)
    except NotWholeNumbersError:
        # Ids that looked like whole numbers have become text: they are sorted as text from the start.
        folder.clear_spool()
        folder.make()
        plan = replace(plan, whole=False)
        files = open_files(paths, options.layout, folder)
        read = read_all(files, plan, folder, options)
    return sort(read, plan, folder, options, text=files[0].untyped)
