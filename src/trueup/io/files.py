"""Files as a `Table`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from trueup.errors import AnswersError, BadRows, nearest, need, quoted
from trueup.io.assemble import assemble
from trueup.io.columns import Roles, choose
from trueup.io.delimited import open_delimited, whole_number_ids
from trueup.io.table import Ids, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from os import PathLike

    from trueup.io.native import Series

PARQUET = (".parquet", ".pq")
DELIMITED = (".csv", ".tsv", ".txt")
LONGEST_PATH = 200


def read_file(
    path: str | PathLike[str],
    *,
    question: str = "question",
    worker: str = "worker",
    answer: str = "answer",
    panel: str | None = None,
    numbers: Sequence[str] = (),
) -> Table:
    """Read the answers in a Parquet or delimited text file.

    Ids in text files stay text, "007" too, unless those of every answer are plain whole numbers.

    Parameters
    ----------
    path
        A file ending in .parquet or .pq, or in .csv, .tsv or .txt, these also with .gz behind.
        Text is UTF-8 and its first line names the columns.
    question, worker, answer, panel, numbers
        As for `read_frame`.

    Raises
    ------
    AnswersError
        When there is no such file, or it does not hold usable answers.
    MissingExtra
        When pyarrow or duckdb is not installed.
    """
    path = Path(path)
    ending = _ending(path)
    _check_present(path)

    def pick(found: Sequence[object]) -> Roles:
        return choose(
            found, question=question, worker=worker, answer=answer, panel=panel, numbers=numbers
        )

    read = _read_parquet if ending in PARQUET else _read_delimited
    try:
        return read(path, pick)
    except AnswersError as error:
        about_rows = isinstance(error, BadRows) and ending not in PARQUET
        counting = " Rows are counted from 0, without the header." if about_rows else ""
        raise type(error)(f"File {quoted(path.name)}: {error}{counting}") from error.__cause__


def _ending(path: Path) -> str:
    name = path.name.lower()
    ending = Path(name.removesuffix(".gz")).suffix
    if ending in DELIMITED or (ending in PARQUET and not name.endswith(".gz")):
        return ending
    raise AnswersError(
        f"File {quoted(path.name)}: cannot tell its format from its ending. It must be one of "
        f"{', '.join(PARQUET + DELIMITED)} (the last three also with .gz behind)."
    )


def _check_present(path: Path) -> None:
    shown = quoted(str(path), LONGEST_PATH)
    if path.is_dir():
        raise AnswersError(f"File {shown}: is a folder. Name one file in it.")
    if path.exists():
        return
    if not path.parent.is_dir():
        raise AnswersError(
            f"File {shown}: not found, there is no folder {quoted(str(path.parent), LONGEST_PATH)}."
        )
    near = nearest(path.name, [other.name for other in path.parent.iterdir()])
    advice = f"Did you mean {quoted(near)}?" if near else "Check the name and the folder."
    raise AnswersError(f"File {shown}: not found. {advice}")


def _read_parquet(path: Path, pick: Callable[[Sequence[object]], Roles]) -> Table:
    parquet = need("pyarrow.parquet", "files")
    pyarrow = need("pyarrow", "files")
    types = pyarrow.types
    try:
        with parquet.ParquetFile(path) as file:
            schema, metadata = file.schema_arrow, file.metadata
        roles = pick(schema.names)
        ids = [name for name in (roles.question, roles.worker, roles.panel) if name is not None]
        # Text ids come as dictionaries: the file has them so, and no text is copied per row.
        texts = [
            name
            for name in ids
            if types.is_string(schema.field(name).type)
            or types.is_large_string(schema.field(name).type)
        ]
        with parquet.ParquetFile(path, metadata=metadata, read_dictionary=texts) as file:
            read = file.read(columns=roles.names)
    except (pyarrow.ArrowException, OSError) as error:
        if isinstance(error, AnswersError):
            raise
        reason = str(error).partition("\n")[0]
        raise AnswersError(
            f"cannot be read as Parquet ({quoted(reason, LONGEST_PATH)}). "
            "Write the file again, or check that it is a Parquet file."
        ) from error
    columns = {name: read.column(name) for name in roles.names}
    table = assemble(columns, roles, kind="file", ordered=True)
    return _with_ids(table, roles, lambda name, ids: ids.cast(schema.field(name).type))


def _read_delimited(path: Path, pick: Callable[[Sequence[object]], Roles]) -> Table:
    roles, columns = open_delimited(path, pick)
    table = assemble(columns, roles, kind="file", ordered=True)
    return _with_ids(table, roles, lambda _, ids: whole_number_ids(ids))


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
