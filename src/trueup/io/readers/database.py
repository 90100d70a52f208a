"""Queries on a DuckDB or SQLite file, which is only read.

The query is the caller's own text. Nothing is ever inserted into it, least of all an id.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

from trueup.core.libraries import need
from trueup.errors import MOST_NAMES, AnswersError, listing, option, quoted
from trueup.io.readers.delimited import DUCKDB_OFFLINE
from trueup.io.readers.python_values import listed_source
from trueup.io.readers.source import Source, one_line, unreadable
from trueup.io.series import to_list

if TYPE_CHECKING:
    from pathlib import Path

SQLITE = b"SQLite format 3\0"
DUCKDB = b"DUCK"
DUCKDB_AT = 8
EXAMPLE = option("sql", "SELECT question, worker, answer FROM ...")
# What a query that only reads needs to do.
READING = (
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
)
# DuckDB has a table of this name, too.
TABLES = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"


def database_kind(head: bytes) -> str | None:
    """Recognise a database by the first bytes of its file."""
    if head.startswith(SQLITE):
        return "SQLite"
    return "DuckDB" if head[DUCKDB_AT:].startswith(DUCKDB) else None


def open_query(path: Path, head: bytes, query: Any) -> Source:
    """Run a query; its result is the table."""
    kind = database_kind(head)
    if kind is None:
        raise AnswersError(
            "is for a DuckDB or SQLite database, and this file is neither.",
            argument="sql",
            remedy="Leave sql out.",
        )
    if not isinstance(query, str) or not query.strip() or "\0" in query:
        raise AnswersError(
            f"found {quoted(query)}, must be a query such as SELECT ...", argument="sql"
        )
    return _RUN[kind](path, query)


def no_query(path: Path, head: bytes) -> AnswersError:
    """Build the error for a database without a query; it names the tables there are."""
    kind = database_kind(head) or ""
    try:
        tables = to_list(_RUN[kind](path, TABLES).fetch(["name"])["name"])
    except (AnswersError, ImportError):
        tables = []
    there = f" It holds {listing(tables, MOST_NAMES)}." if tables else ""
    remedy = "Say what to read from it: " + EXAMPLE + "."
    return AnswersError(f"is a {kind} database.{there}", remedy=remedy)


def _run_sqlite(path: Path, query: str) -> Source:
    try:
        # Not immutable: changes in the log of a program that has the file open are read, too.
        uri = f"{path.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
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
        raise _query_fails("SQLite", error) from error
    except OSError as error:
        raise unreadable(error) from error
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    by_name = {names[i]: list(columns[i]) for i in reversed(range(len(names)))}
    return listed_source("SQL", by_name, names=names, ordered=False)


def _run_duckdb(path: Path, query: str) -> Source:
    duckdb = need("duckdb", "files")
    need("pyarrow", "files")
    # The query sees its own database and nothing else: no other file, no variable of a program.
    config = {
        **DUCKDB_OFFLINE,
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
        raise _query_fails("DuckDB", error) from error
    return Source(
        names=table.schema.names,
        load=lambda names, _ids: {name: table.column(name) for name in names},
        family="SQL",
        ordered=False,
    )


_RUN = {"SQLite": _run_sqlite, "DuckDB": _run_duckdb}


def _no_table() -> AnswersError:
    return AnswersError(
        "the query gives no table.", argument="sql", remedy="Write one that begins with SELECT."
    )


def _query_fails(kind: str, error: Exception) -> AnswersError:
    return AnswersError(
        f"{kind} refuses the query ({one_line(error)}).",
        argument="sql",
        remedy="Only reading this file is allowed.",
    )
