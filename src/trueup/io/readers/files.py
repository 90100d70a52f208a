"""Files, patterns of files, standard input and databases as a `Table`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trueup.errors import AnswersError
from trueup.io.formats import Format, find_format, list_endings, sniff_format
from trueup.io.paths import check_present, find_paths, is_pipe, names_of
from trueup.io.readers.answer_column import PLAIN_RULES, AnswerRules
from trueup.io.readers.database import database_kind, no_query, open_query
from trueup.io.readers.delimited import Layout
from trueup.io.readers.join import join_sources
from trueup.io.readers.one_worker import check_worker_from, with_worker, worker_of
from trueup.io.readers.shape import read_table
from trueup.io.readers.source import Source, label_of, labelled, read_head
from trueup.io.readers.streams import STDIN, TemporaryCopy, copy_pipe, copy_stdin

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike
    from pathlib import Path

    from trueup.io.table import Table

OTHER_SHEETS = (".xls", ".xlsb", ".ods", ".numbers")


def read_file(
    path: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    question: str | Sequence[str] = "question",
    worker: str = "worker",
    answer: str = "answer",
    panel: str | None = None,
    numbers: Sequence[str] = (),
    rules: AnswerRules = PLAIN_RULES,
    sep: str | None = None,
    encoding: str | None = None,
    skip_lines: int | None = None,
    sheet: str | None = None,
    worker_from: str | None = None,
    wide: bool | str | None = None,
    question_data: Sequence[str] = (),
    sql: str | None = None,
) -> Table:
    """Read the answers in a file, several files, standard input or a database.

    Ids in delimited text stay text, "007" too, unless those of every answer are plain whole
    numbers. Elsewhere values carry types, and ids keep theirs; ids of several types in one column
    of JSON, Excel or SQLite become text.

    Parameters
    ----------
    path
        A file ending in .parquet or .pq, in .csv, .tsv or .txt, in .jsonl, .ndjson or .json, or in
        .xlsx; text and JSON also with .gz behind. A pattern such as "answers/*.csv" or a list of
        paths is read as one table, in sorted order or that of the list. "-" is standard input,
        whose format is found from its content. With `sql`, a DuckDB or SQLite database.
        The first line of delimited text, and the first row of a sheet, names the columns.
    question, worker, answer, panel, numbers, rules, wide, question_data
        As for `read_frame`.
    sep
        The character between two values of delimited text; by default found from its header.
    encoding
        Encoding of text, by default UTF-8 or what a byte order mark says.
    skip_lines
        Lines of delimited text, or rows of a sheet, above the one that names the columns.
    sheet
        The sheet of an Excel workbook with several.
    worker_from
        "file" or "folder": the name of a file without its ending, or of its folder, is the worker of all answers in it.
    sql
        A query that gives the table.

    Raises
    ------
    AnswersError
        When there is no such file, or it does not hold usable answers.
    MissingExtra
        When a package that reads it is not installed.
    """
    source = open_source(
        path,
        sep=sep,
        encoding=encoding,
        skip_lines=skip_lines,
        sheet=sheet,
        worker_from=worker_from,
        sql=sql,
    )
    return read_table(
        source,
        question=question,
        worker=worker,
        answer=answer,
        panel=panel,
        numbers=numbers,
        rules=rules,
        wide=wide,
        question_data=question_data,
    )


def open_source(
    path: Any,
    *,
    sep: str | None = None,
    encoding: str | None = None,
    skip_lines: int | None = None,
    sheet: str | None = None,
    worker_from: str | None = None,
    sql: str | None = None,
) -> Source:
    """Open what `read_file` reads: find the names of its columns, do not read its values yet."""
    layout = Layout.of(sep, encoding, skip_lines, sheet)
    paths, label = find_paths(path)
    if worker_from is not None:
        check_worker_from(worker_from, paths, sql)
    if sql is not None:
        return _open_database(paths, sql, layout)
    names = names_of(paths)
    sources = [_open_one(each, layout, name) for each, name in zip(paths, names, strict=True)]
    if worker_from is not None:
        sources = [
            with_worker(source, worker_of(each, worker_from))
            for source, each in zip(sources, paths, strict=True)
        ]
    return sources[0] if len(sources) == 1 else join_sources(sources, label)


def _open_one(path: Path, layout: Layout, name: str) -> Source:
    copy: TemporaryCopy | None = None
    if str(path) == STDIN:
        label, name = "Standard input", ""
    else:
        label = label_of(name)
        check_present(path)
    with labelled(label):
        if not name:
            path = copy_stdin()
            file_format = sniff_format(path, layout.encoding)
        elif is_pipe(path):
            copy = copy_pipe(path)
            path = copy.path
            file_format = sniff_format(path, layout.encoding)
        else:
            file_format = _format_of(path)
        file_format.check_options(layout)
        opened = file_format.open(path, layout, name)
    return replace(opened, label=label, kept=copy)


def _format_of(path: Path) -> Format:
    """Return the format of a file by its ending; raise an error if there is none."""
    file_format = find_format(path)
    if file_format is not None:
        return file_format
    ending = path.suffix.lower()
    if ending in OTHER_SHEETS:
        raise AnswersError(f"cannot read {ending}. Save the sheet as .xlsx or .csv (CSV UTF-8).")
    head = read_head(path)
    if database_kind(head):
        raise no_query(path, head)
    raise AnswersError(
        f"cannot tell its format from its ending. It must be one of {list_endings()}."
    )


def _open_database(paths: Sequence[Path], sql: str, layout: Layout) -> Source:
    if len(paths) > 1 or str(paths[0]) == STDIN:
        raise AnswersError("needs one database file.", argument="sql", remedy="Name it.")
    if layout.given:
        raise AnswersError(
            "is for files of text or sheets, and sql for a database.",
            argument=layout.given[0],
            remedy="Leave one out.",
        )
    (path,) = paths
    check_present(path)
    label = label_of(path.name)
    with labelled(label):
        return replace(open_query(path, read_head(path), sql), label=label)
