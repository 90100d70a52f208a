"""The main tables as Markdown, for the documentation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trueup.io.atomic import atomic_write
from trueup.report.markup import NOTHING, is_number, number

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from trueup.report.page import PageTable, Section

#: Largest number of rows of a table; all of them are in the files next to the page.
ROWS = 40


def write_summary(path: Path, title: str, intro: str, sections: Sequence[Section]) -> Path:
    """Write verdicts and tables to a Markdown file atomically."""
    parts = [f"# {title}", intro]
    for section in sections:
        parts += [f"## {section.title}", section.verdict, section.text]
        parts += [_table(table) for table in section.tables]
    text = "\n\n".join(part.strip() for part in parts if part.strip())
    with atomic_write(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8", newline="\n")
    return path


def _table(table: PageTable) -> str:
    lines = [f"### {table.title}", ""] if table.title else []
    lines.append(_line(table.columns))
    aligned = ("---:" if any(is_number(row[at]) for row in table.rows) else "---"
               for at in range(len(table.columns)))  # fmt: skip
    lines.append(_line(list(aligned)))
    lines += [_line([_cell(value) for value in row]) for row in table.rows[:ROWS]]
    if len(table.rows) > ROWS:
        lines += ["", f"{len(table.rows) - ROWS} more rows are in the page."]
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(value: object) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if is_number(value):
        return number(value)  # type: ignore[arg-type]
    return str(value).replace("|", "\\|").replace("*", "\\*").replace("<", "\\<")
