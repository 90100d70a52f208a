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
#: Last column of the list of figures, which is never cut short: it is read again when a part is printed again.
FIGURES = "reached"


def write_summary(path: Path, title: str, intro: str, sections: Sequence[Section]) -> Path:
    """Write verdicts and tables to a Markdown file atomically."""
    text = "\n\n".join([f"# {title}", intro.strip(), *map(markdown_of, sections)])
    with atomic_write(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8", newline="\n")
    return path


def markdown_of(section: Section) -> str:
    """Return title, verdict, text and tables of a section."""
    parts = [f"## {section.title}", section.verdict, section.text]
    parts += [_table(table) for table in section.tables]
    return "\n\n".join(part.strip() for part in parts if part.strip())


def _table(table: PageTable) -> str:
    lines = [f"### {table.title}", ""] if table.title else []
    lines.append(_line(table.columns))
    aligned = ("---:" if any(is_number(row[at]) for row in table.rows) else "---"
               for at in range(len(table.columns)))  # fmt: skip
    lines.append(_line(list(aligned)))
    shown = len(table.rows) if table.columns[-1] == FIGURES else ROWS
    lines += [_line([_cell(value) for value in row]) for row in table.rows[:shown]]
    if len(table.rows) > shown:
        lines += ["", f"{len(table.rows) - shown} more rows are in the page."]
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
