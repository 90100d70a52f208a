"""Files, patterns of files, folders of evaluations, standard input and databases as a `Table`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from trueup.errors import AnswersError, quoted
from trueup.io.formats import EXCEL, JSON, TEXT, Format, find_format, list_endings, sniff_format
from trueup.io.paths import Paths, check_present, find_paths, is_pipe, names_of
from trueup.io.readers.answer_column import PLAIN_RULES, AnswerRules
from trueup.io.readers.database import database_kind, no_query, open_query
from trueup.io.readers.delimited import Layout
from trueup.io.readers.evaluations.folders import ARCHIVE, open_folders
from trueup.io.readers.evaluations.formats import find_evaluation, read_evaluation, recognise
from trueup.io.readers.evaluations.hubverse import MODEL, OUTPUT, hub_source, is_hub
from trueup.io.readers.evaluations.judgments import ENDINGS, is_judgments, open_judgments
from trueup.io.readers.evaluations.names import HUBVERSE, TABLE, check_format
from trueup.io.readers.join import join_sources
from trueup.io.readers.one_worker import WORKER, check_worker_from, with_worker, worker_of
from trueup.io.readers.row_filter import check_where, keep_where
from trueup.io.readers.shape import read_table
from trueup.io.readers.source import Source, label_of, labelled, read_head
from trueup.io.readers.streams import STDIN, TemporaryCopy, copy_pipe, copy_stdin

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike
    from pathlib import Path

    from trueup.io.readers.evaluations.formats import Evaluation
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
    from_format: str | None = None,
    where: Any = None,
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
    from_format
        Name of the format of a file that an evaluation left, see `trueup.io.readers.evaluations`; "table" for a table.
    where
        Column -> value, or several: only rows with one of them are read.
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
        from_format=from_format,
        where=where,
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
    from_format: str | None = None,
    where: Any = None,
    sql: str | None = None,
) -> Source:
    """Open what `read_file` reads: find the names of its columns, do not read values of tables yet."""
    layout = Layout.of(sep, encoding, skip_lines, sheet)
    check_format(from_format)
    conditions = check_where(where)
    paths, label = find_paths(path)
    if worker_from is not None:
        check_worker_from(worker_from, paths, sql)
    if sql is not None:
        if from_format is not None:
            raise AnswersError(
                "is for files, and sql for a database.",
                argument="from_format",
                remedy="Leave one out.",
            )
        return keep_where(_open_database(paths, sql, layout), conditions)
    if from_format != TABLE:
        paths, label = open_folders(Paths(paths, label), from_format, encoding)
    names = names_of(paths)
    located = [_locate(each, name) for each, name in zip(paths, names, strict=True)]
    evaluation = None if from_format == TABLE else _evaluation(located, from_format, layout)
    if evaluation is not None:
        return keep_where(
            _open_evaluation(evaluation, located, label, layout, worker_from), conditions
        )
    judgments = from_format is None and all(_holds_judgments(each, layout) for each in located)
    if judgments:
        sources = [_open_judgments(each, layout) for each in located]
        worker_from = worker_from or "file"
    else:
        sources = [_open_one(each, layout) for each in located]
    return _tables(sources, paths, label, conditions, from_format, worker_from)


def _tables(
    sources: list[Source],
    paths: Sequence[Path],
    label: str,
    conditions: Sequence[str] | None,
    from_format: str | None,
    worker_from: str | None,
) -> Source:
    """Join tables, and name their workers where files or folders do."""
    hub = from_format == HUBVERSE or (
        from_format is None
        and worker_from is None
        and all(is_hub(source.names) and WORKER not in source.names for source in sources)
        and (all(MODEL in source.names for source in sources) or str(paths[0]) != STDIN)
    )
    if hub:
        _check_hub(sources, paths, worker_from)
        worker_from = None if MODEL in sources[0].names else "folder"
    if worker_from is not None:
        sources = [
            with_worker(source, worker_of(each, worker_from))
            for source, each in zip(sources, paths, strict=True)
        ]
    source = sources[0] if len(sources) == 1 else join_sources(sources, label)
    source = keep_where(source, conditions)
    return hub_source(source, MODEL if MODEL in source.names else WORKER) if hub else source


def _check_hub(sources: Sequence[Source], paths: Sequence[Path], worker_from: str | None) -> None:
    """Check that files can be forecasts of a hub."""
    for source in sources:
        missing = [name for name in OUTPUT if name not in source.names]
        if missing:
            raise AnswersError(
                f"{source.label}: is not of the format {quoted(HUBVERSE)}, it has no column {quoted(missing[0])}.",
                argument="from_format",
                remedy="Leave it out, or name another format.",
            )
    if worker_from is not None:
        raise AnswersError(
            "does not go with the format hubverse, in which folders name the workers.",
            argument="worker_from",
            remedy="Leave it out.",
        )
    if str(paths[0]) == STDIN and MODEL not in sources[0].names:
        raise AnswersError("Standard input: has no folder that names the model. Name the files.")


class _Located(NamedTuple):
    """A file that can be read: where it is, what messages call it, and its format if that is known."""

    path: Path
    label: str
    name: str
    format: Format | None
    copy: TemporaryCopy | None = None
    sniffed: bool = False


def _locate(path: Path, name: str) -> _Located:
    """Find a file; what can be read only once is copied."""
    if str(path) == STDIN:
        with labelled("Standard input"):
            copied = copy_stdin()
            return _Located(copied, "Standard input", "", None, sniffed=True)
    label = label_of(name)
    check_present(path)
    with labelled(label):
        if is_pipe(path):
            copy = copy_pipe(path)
            return _Located(copy.path, label, name, None, copy, sniffed=True)
    return _Located(path, label, name, find_format(path))


def _evaluation(
    located: Sequence[_Located], from_format: str | None, layout: Layout
) -> Evaluation | None:
    """Return the format of an evaluation that was asked for, or that the first file is of."""
    if from_format == HUBVERSE:
        return None
    if from_format is not None:
        return find_evaluation(from_format)
    first = located[0]
    with labelled(first.label):
        kind = sniff_format(first.path, layout.encoding) if first.sniffed else first.format
        archive = first.path.suffix.lower() == ARCHIVE or (first.sniffed and kind is EXCEL)
        if archive or kind is JSON:
            return recognise(first.path, layout.encoding)
    return None


def _open_evaluation(
    evaluation: Evaluation,
    located: Sequence[_Located],
    label: str,
    layout: Layout,
    worker_from: str | None,
) -> Source:
    label = label or located[0].label
    with labelled(label):
        JSON.check_options(layout)
        if worker_from is not None:
            raise AnswersError(
                f"does not go with the format {evaluation.name}, which names its workers.",
                argument="worker_from",
                remedy="Leave it out.",
            )
    source = read_evaluation(
        evaluation, [(each.path, each.label, each.name) for each in located], label, layout.encoding
    )
    return replace(source, label=label)


def _holds_judgments(located: _Located, layout: Layout) -> bool:
    """Tell whether a file is one of judgments without a header; options of tables say that it is a table."""
    if located.sniffed or set(layout.given) - {"encoding"}:
        return False
    if located.format is not TEXT and located.path.suffix.lower() not in ENDINGS:
        return False
    with labelled(located.label):
        return is_judgments(located.path, layout.encoding)


def _open_judgments(located: _Located, layout: Layout) -> Source:
    with labelled(located.label):
        return replace(open_judgments(located.path, layout.encoding), label=located.label)


def _open_one(located: _Located, layout: Layout) -> Source:
    with labelled(located.label):
        if located.sniffed:
            file_format = sniff_format(located.path, layout.encoding)
        else:
            file_format = located.format or _format_of(located.path)
        file_format.check_options(layout)
        opened = file_format.open(located.path, layout, located.name)
    return replace(opened, label=located.label, kept=located.copy)


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
