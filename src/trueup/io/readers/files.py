"""Files, patterns of files, standard input and databases as a `Table`."""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from trueup.errors import MOST_NAMES, AnswersError, TrueupWarning, listing, quoted
from trueup.io.columns import Roles, choose
from trueup.io.paths import check_present, find_paths, is_pipe, names_of
from trueup.io.readers.assemble import assemble
from trueup.io.readers.database import database_kind, no_query, open_query
from trueup.io.readers.delimited import Layout, open_text
from trueup.io.readers.excel import open_excel
from trueup.io.readers.join import joined
from trueup.io.readers.json_lines import open_json
from trueup.io.readers.parquet import open_parquet
from trueup.io.readers.source import LONGEST_PATH, Source, label_of, labelled, unreadable
from trueup.io.readers.streams import STDIN, keep_pipe, keep_stdin, sniff
from trueup.io.readers.wide import Wide, not_wide, numbers_of, plan, wide_table
from trueup.io.table import Ids, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from os import PathLike

    from trueup.io.series import Series

__all__ = ["DELIMITED", "FORMATS", "LONGEST_PATH", "PARQUET", "open_source"]

HEAD = 32


class Format(NamedTuple):
    """A kind of file.

    Attributes
    ----------
    endings
        How the names of such files end.
    open
        Opens one, given its path, how text is written, and its name.
    options
        Options of text that it takes.
    packed
        Whether it is read with .gz behind the ending, too.
    """

    endings: tuple[str, ...]
    open: Callable[[Path, Layout, str], Source]
    options: tuple[str, ...] = ()
    packed: bool = False


FORMATS = {
    "Parquet": Format((".parquet", ".pq"), lambda path, _, name: open_parquet(path, name)),
    "text": Format(
        (".csv", ".tsv", ".txt"), open_text, options=("sep", "decimal", "encoding"), packed=True
    ),
    "JSON": Format(
        (".jsonl", ".ndjson", ".json"),
        lambda path, layout, name: open_json(path, layout.encoding, name),
        options=("encoding",),
        packed=True,
    ),
    "Excel": Format((".xlsx", ".xlsm"), lambda path, _, name: open_excel(path, name)),
}
PARQUET = FORMATS["Parquet"].endings
DELIMITED = FORMATS["text"].endings
OTHER_SHEETS = (".xls", ".xlsb", ".ods", ".numbers")


def read_file(
    path: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    question: str = "question",
    worker: str = "worker",
    answer: str = "answer",
    panel: str | None = None,
    numbers: Sequence[str] = (),
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
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
        whose format is told from its content. With `sql`, a DuckDB or SQLite database.
        The first line of delimited text, and the first row of a sheet, names the columns.
    question, worker, answer, panel, numbers
        As for `read_frame`.
    sep
        The character between two values of delimited text; by default found from its header.
    decimal
        The decimal mark of delimited text, "." or ",".
    encoding
        Encoding of text, by default UTF-8 or what a byte order mark says.
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
    source = open_source(path, sep=sep, decimal=decimal, encoding=encoding, sql=sql)
    asked: dict[str, Any] = {
        "question": question,
        "worker": worker,
        "answer": answer,
        "panel": panel,
        "numbers": numbers,
    }
    with source.named():
        layout = plan(wide, source.names, **asked)
    advice = ""
    if layout is not None:
        read = _read_wide(source, layout)
        if isinstance(read, Table):
            return read
        advice = read
    with source.named():
        roles = _choose(source, asked, advice)
    return _read_long(source, roles)


def open_source(
    path: Any,
    *,
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    sql: str | None = None,
) -> Source:
    """Open what `read_file` reads; the names of its columns are known, its values not yet read."""
    layout = Layout.of(sep, decimal, encoding)
    paths, label = find_paths(path)
    if sql is not None:
        return _open_database(paths, sql, layout)
    names = names_of(paths)
    sources = [_open_one(each, layout, name) for each, name in zip(paths, names, strict=True)]
    return sources[0] if len(sources) == 1 else joined(sources, label)


def _open_one(path: Path, layout: Layout, name: str) -> Source:
    if str(path) == STDIN:
        label, name, kept = "Standard input", "", None
        with labelled(label):
            path = keep_stdin()
            kind = sniff(path, layout.encoding)
    else:
        label, kept = label_of(name), None
        check_present(path)
        with labelled(label):
            if is_pipe(path):
                kept = keep_pipe(path)
                path = kept.path
            kind = _kind(path) if kept is None else sniff(path, layout.encoding)
    with labelled(label):
        for option in layout.given:
            if option not in FORMATS[kind].options:
                raise AnswersError(f"{option}: is for text, and this is {kind}. Leave it out.")
        opened = FORMATS[kind].open(path, layout, name)
    return _speaking(dataclasses.replace(opened, label=label, kept=kept))


def _speaking(source: Source) -> Source:
    """Let errors of fetching name the source."""

    def fetch(names: Sequence[str], ids: Collection[str]) -> dict[str, Series]:
        with source.named():
            return source.fetch(names, ids)

    return dataclasses.replace(source, fetch=fetch)


def _kind(path: Path) -> str:
    """Tell the format of a file from the ending of its name."""
    name = path.name.lower()
    ending = Path(name.removesuffix(".gz")).suffix
    for kind, each in FORMATS.items():
        if ending in each.endings and (each.packed or not name.endswith(".gz")):
            return kind
    if ending in OTHER_SHEETS:
        raise AnswersError(f"cannot read {ending}. Save the sheet as .xlsx or .csv (CSV UTF-8).")
    head = _head(path)
    if database_kind(head):
        raise no_query(path, head)
    endings = ", ".join(ending for each in FORMATS.values() for ending in each.endings)
    raise AnswersError(
        f"cannot tell its format from its ending. It must be one of {endings} "
        "(text and JSON also with .gz behind)."
    )


def _ending(path: Path) -> str:
    """Return the ending of a file that is Parquet or delimited text, and refuse others."""
    name = path.name.lower()
    ending = Path(name.removesuffix(".gz")).suffix
    if ending in DELIMITED or (ending in PARQUET and not name.endswith(".gz")):
        return ending
    raise AnswersError(
        f"File {quoted(path.name)}: cannot tell its format from its ending. It must be one of "
        f"{', '.join(PARQUET + DELIMITED)} (the last three also with .gz behind)."
    )


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(HEAD)
    except OSError as error:
        raise unreadable(error) from error


def _open_database(paths: Sequence[Path], sql: str, layout: Layout) -> Source:
    if len(paths) > 1 or str(paths[0]) == STDIN:
        raise AnswersError("sql: needs one database file. Name it.")
    if layout.given:
        raise AnswersError(
            f"{layout.given[0]}: is for text, and sql for a database. Leave one out."
        )
    check_present(paths[0])
    with labelled(label_of(paths[0].name)):
        return _speaking(open_query(paths[0], _head(paths[0]), sql))


def _choose(source: Source, asked: dict[str, Any], advice: str) -> Roles:
    """Find the columns of a table with one row per answer."""
    try:
        return choose(source.names, **asked)
    except AnswersError as error:
        advice = advice or _advice(source, asked)
        raise AnswersError(f"{error}{advice}") from error.__cause__


def _advice(source: Source, asked: dict[str, Any]) -> str:
    """Say how else the table could be read."""
    if source.untyped and len(source.names) == 1:
        return ' If another character is between the columns, pass sep="...".'
    names = source.names
    if asked["worker"] in names and asked["answer"] not in names and asked["question"] not in names:
        return ' To read one row per worker and one column per question, pass wide="workers".'
    return ""


def _read_long(source: Source, roles: Roles) -> Table:
    """Read a table with one row per answer."""
    ids = [name for name in (roles.question, roles.worker, roles.panel) if name is not None]
    columns = source.fetch(roles.names, ids)
    with source.named():
        for name in (roles.answer, *roles.numbers):
            columns[name] = source.number(name, columns[name])
        table = assemble(columns, roles, kind="file", ordered=source.ordered)
        return _with_ids(table, roles, source.settle)


def _read_wide(source: Source, layout: Wide) -> Table | str:
    """Read a wide table; of one that only might have been wide, and is not, say why."""
    if source.differs:
        if layout.guessed:
            return ""
        raise AnswersError(source.differs)
    columns = source.fetch(layout.names, layout.id_names)
    with source.named():
        cells, faults = numbers_of(columns, layout, source)
        if layout.guessed and (refusal := not_wide(columns, faults, layout)) is not None:
            return refusal
        table = wide_table(columns, cells, layout, source)
    if layout.guessed and layout.ids is None:
        warnings.warn(
            f"{source.label}: read as {layout} ({listing(layout.cells, MOST_NAMES)}), as it has "
            "none of the columns question, worker and answer. Pass wide=True if that is right, "
            "wide=False if not.",
            TrueupWarning,
            stacklevel=2,
        )
    return table


def _with_ids(table: Table, roles: Roles, convert: Callable[[str, Series], Series]) -> Table:
    """Change the type of the ids, not which of them are the same."""
    panel_ids = None
    if table.panel_ids is not None and roles.panel is not None:
        panel_ids = Ids(convert(roles.panel, table.panel_ids.values))
    return dataclasses.replace(
        table,
        question_ids=Ids(convert(roles.question, table.question_ids.values)),
        worker_ids=Ids(convert(roles.worker, table.worker_ids.values)),
        panel_ids=panel_ids,
    )
