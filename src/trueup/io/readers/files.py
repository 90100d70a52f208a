"""Files, patterns of files, standard input and databases as a `Table`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trueup.errors import MOST_NAMES, AnswersError, listing, option, warn
from trueup.io.columns import Roles, choose
from trueup.io.formats import Format, find_format, list_endings, sniff_format
from trueup.io.paths import check_present, find_paths, is_pipe, names_of
from trueup.io.readers.answer_column import PLAIN_RULES, AnswerReader, AnswerRules
from trueup.io.readers.assemble import read_long
from trueup.io.readers.database import database_kind, no_query, open_query
from trueup.io.readers.delimited import Layout
from trueup.io.readers.join import join_sources
from trueup.io.readers.source import Source, label_of, labelled, read_head
from trueup.io.readers.streams import STDIN, TemporaryCopy, copy_pipe, copy_stdin
from trueup.io.readers.wide import NotWide, Wide, not_wide, numbers_of, plan, wide_table
from trueup.io.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike
    from pathlib import Path

OTHER_SHEETS = (".xls", ".xlsb", ".ods", ".numbers")


def read_file(
    path: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    question: str = "question",
    worker: str = "worker",
    answer: str = "answer",
    panel: str | None = None,
    numbers: Sequence[str] = (),
    rules: AnswerRules = PLAIN_RULES,
    sep: str | None = None,
    encoding: str | None = None,
    skip_lines: int | None = None,
    sheet: str | None = None,
    wide: bool | str | None = None,
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
    question, worker, answer, panel, numbers, rules
        As for `read_frame`.
    sep
        The character between two values of delimited text; by default found from its header.
    encoding
        Encoding of text, by default UTF-8 or what a byte order mark says.
    skip_lines
        Lines of delimited text, or rows of a sheet, above the one that names the columns.
    sheet
        The sheet of an Excel workbook with several.
    wide
        True or "questions": one row per question and one column per worker; "workers": one row per
        worker and one column per question; False: one row per answer. By default a table is wide
        if it has no column of workers or answers, a question in one row only (or no column of
        questions, but three others), and nothing but numbers in at least two other columns.
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
        path, sep=sep, encoding=encoding, skip_lines=skip_lines, sheet=sheet, sql=sql
    )
    asked: dict[str, Any] = {
        "question": question,
        "worker": worker,
        "answer": answer,
        "panel": panel,
        "numbers": numbers,
    }
    with source.named():
        layout = plan(wide, source.names, **asked)
    advice = NotWide("")
    if layout is not None:
        read = _read_wide(source, layout, rules)
        if isinstance(read, Table):
            return read
        advice = read
    with source.named():
        roles = _choose(source, asked, advice)
    return read_long(source, roles, rules)


def open_source(
    path: Any,
    *,
    sep: str | None = None,
    encoding: str | None = None,
    skip_lines: int | None = None,
    sheet: str | None = None,
    sql: str | None = None,
) -> Source:
    """Open what `read_file` reads: find the names of its columns, do not read its values yet."""
    layout = Layout.of(sep, encoding, skip_lines, sheet)
    paths, label = find_paths(path)
    if sql is not None:
        return _open_database(paths, sql, layout)
    names = names_of(paths)
    sources = [_open_one(each, layout, name) for each, name in zip(paths, names, strict=True)]
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


def _choose(source: Source, asked: dict[str, Any], not_wide: NotWide) -> Roles:
    """Find the columns of a table with one row per answer."""
    try:
        return choose(source.names, **asked)
    except AnswersError as error:
        if source.hint:
            error = error.advised(error.remedy, source.hint).mended_by(*source.fixes)
            raise error from error.__cause__
        advice = not_wide.reason or _advice(source, asked)
        error = error.advised(error.remedy, advice).mended_by(*(not_wide.fixes or error.fixes))
        raise error from error.__cause__


def _advice(source: Source, asked: dict[str, Any]) -> str:
    """Suggest another way to read the table."""
    if source.untyped and len(source.names) == 1:
        return "If another character is between the columns, pass " + option("sep", "...") + "."
    names = source.names
    if asked["worker"] in names and asked["answer"] not in names and asked["question"] not in names:
        wide = option("wide", "workers")
        return "To read one row per worker and one column per question, pass " + wide + "."
    return ""


def _read_wide(source: Source, layout: Wide, rules: AnswerRules) -> Table | NotWide:
    """Read a wide table; if it was only a guess that it is wide and it is not, return the reason."""
    if source.differs:
        if layout.guessed:
            return NotWide("")
        raise AnswersError(source.differs)
    columns = source.fetch(layout.names, layout.id_names)
    with source.named():
        # Whether a table is wide is decided by all it holds.
        reader = AnswerReader(AnswerRules(rules.writing) if layout.guessed else rules)
        cells, faults = numbers_of(columns, layout, reader)
        if layout.guessed and (refusal := not_wide(columns, faults, layout)) is not None:
            return refusal
        if reader.rules != rules:
            reader = AnswerReader(rules)
            cells, _ = numbers_of(columns, replace(layout, guessed=False), reader)
        table = wide_table(columns, cells, layout, source, reader)
    if layout.guessed and layout.ids is None:
        right = option("wide", True) + " if that is right, " + option("wide", False) + " if not."
        warn(
            f"{source.label}: read as {layout} ({listing(layout.cells, MOST_NAMES)}), as it has "
            "none of the columns question, worker and answer. Pass " + right
        )
    return table
