"""Queries against a DuckDB or SQLite file, which is never written to.

The query is the caller's own text. Nothing else becomes part of it, least of all an id.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

from trueup.core.libraries import need
from trueup.errors import MOST_NAMES, AnswersError, listing, quoted
from trueup.io.readers.python_values import listed_source
from trueup.io.readers.source import Source, label_of, one_line, unreadable

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from trueup.io.series import Series

SQLITE = b"SQLite format 3\0"
DUCKDB = b"DUCK"
DUCKDB_AT = 8
EXAMPLE = 'sql="SELECT question, worker, answer FROM ..."'
# What a query that only reads may do.
READING = (
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
)
TABLES = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"


def database_kind(head: bytes) -> str | None:
    """Tell a database by the first bytes of its file."""
    if head.startswith(SQLITE):
        return "SQLite"
    return "DuckDB" if head[DUCKDB_AT:].startswith(DUCKDB) else None


def open_query(path: Path, head: bytes, query: Any) -> Source:
    """Run a query; its result is the table."""
    kind = database_kind(head)
    if kind is None:
        raise AnswersError(
            "sql: is for a DuckDB or SQLite database, and this file is neither. Leave sql out."
        )
    if not isinstance(query, str) or not query.strip() or "\0" in query:
        raise AnswersError(f"sql: found {quoted(query)}, must be a query such as SELECT ...")
    return (_run_sqlite if kind == "SQLite" else _run_duckdb)(path, query)


def no_query(path: Path, head: bytes) -> AnswersError:
    """Say that a database needs a query, and what there is to ask for."""
    kind = database_kind(head)
    try:
        if kind == "SQLite":
            tables = _run_sqlite(path, TABLES).fetch(["name"], ())["name"].tolist()
        else:
            query = "SELECT table_name FROM information_schema.tables ORDER BY table_name"
            tables = _run_duckdb(path, query).fetch(["table_name"], ())["table_name"].to_pylist()
    except (AnswersError, ImportError):
        tables = []
    there = f" It holds {listing(tables, MOST_NAMES)}." if tables else ""
    return AnswersError(f"is a {kind} database.{there} Say what to read from it: {EXAMPLE}.")


def _run_sqlite(path: Path, query: str) -> Source:
    try:
        # A file in use by a program with a log of its own is read as it is.
        with closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        ) as connection:
            connection.set_authorizer(
                lambda action, *_: sqlite3.SQLITE_OK if action in READING else sqlite3.SQLITE_DENY
            )
            cursor = connection.execute(query)
            if cursor.description is None:
                raise _no_table()
            names = [column[0] for column in cursor.description]
            rows = cursor.fetchall()
    except AnswersError:
        raise
    except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
        raise _refused("SQLite", error) from error
    except OSError as error:
        raise unreadable(error) from error
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    by_name = {names[i]: list(columns[i]) for i in reversed(range(len(names)))}
    return listed_source(label_of(path.name), "SQL", by_name, names=names, ordered=False)


def _run_duckdb(path: Path, query: str) -> Source:
    duckdb = need("duckdb", "files")
    need("pyarrow", "files")
    # The query sees its own database and nothing else: no other file, no variable of a program.
    config = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "enable_external_access": False,
        "python_enable_replacements": False,
    }
    try:
        with duckdb.connect(str(path), read_only=True, config=config) as connection:
            relation = connection.sql(query)
            if relation is None:
                raise _no_table()
            table = relation.to_arrow_table()
    except AnswersError:
        raise
    except (duckdb.Error, ValueError) as error:
        raise _refused("DuckDB", error) from error
    return Source(
        label=label_of(path.name),
        names=table.schema.names,
        fetch=partial(_fetch_arrow, table),
        family="SQL",
        ordered=False,
    )


def _fetch_arrow(table: Any, names: Sequence[str], _ids: Collection[str]) -> dict[str, Series]:
    return {name: table.column(name) for name in names}


def _no_table() -> AnswersError:
    return AnswersError("sql: the query gives no table. Write one that begins with SELECT.")


def _refused(kind: str, error: Exception) -> AnswersError:
    return AnswersError(
        f"sql: {kind} refuses the query ({one_line(error)}). Only reading this file is allowed."
    )
