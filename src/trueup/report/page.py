"""One HTML file that says what was claimed, what was found, and shows it.

The file needs nothing else: no network, no other file. Its own security policy forbids the browser to fetch anything
or to run any script but those that are written here.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from trueup.errors import TrueupError, quoted
from trueup.io.atomic import errors_name
from trueup.io.output_set import output_set
from trueup.io.outputs import MADE_BY, check_page
from trueup.report import markup, theme
from trueup.report.bundle import bundle
from trueup.report.parts import part_html
from trueup.report.vega_specs import script_json, spec_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from os import PathLike

    from trueup.report.parts import Part

#: How a finding stands to its claim; None: it holds in part.
Holds: TypeAlias = bool | Literal["not run"] | None
# How that is shown: a sign and a word, so that nobody needs to see the colour.
MARKS: dict[Holds, tuple[str, str, str]] = {
    True: ("yes", "✓", "holds"),
    False: ("no", "✗", "does not hold"),
    None: ("partly", "◐", "holds in part"),
    "not run": ("open", "–", "not run"),
}
NO_SCRIPT = "Charts need JavaScript; the numbers behind them are in the tables."


@dataclass(frozen=True)
class PageTable:
    """Numbers and words in rows.

    Attributes
    ----------
    title : str
        May be empty.
    columns : sequence of str
    rows : sequence of rows
        The first cell names the row. Numbers are shown with four significant digits, None and NaN as a dash.
    search : str
        What a reader may look for, such as "a question": the table can be searched and sorted then, and long ones
        scroll in a box of their own.
    note : str
        What is to be known before reading it.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    search: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        wrong = [at for at, row in enumerate(self.rows) if len(row) != len(self.columns)]
        if wrong or not self.columns:
            where = (
                f"row {wrong[0]} has {len(self.rows[wrong[0]])} cells" if wrong else "no columns"
            )
            raise TrueupError(
                f"Table {quoted(self.title)}: {where}. "
                f"Give every row as many cells as there are columns ({len(self.columns)})."
            )


@dataclass(frozen=True)
class Figure:
    """A chart and what it shows.

    Attributes
    ----------
    title : str
        The finding, as a sentence.
    chart : altair chart or dict
        A dict is a Vega-Lite spec. Its width is that of the page, whatever the chart says; colours are those of
        `trueup.report.theme` unless the chart sets its own.
    note : str
        How to read it.
    table : PageTable, optional
        The numbers behind it, folded away.
    about : str
        What is drawn, of how many, and the level of intervals: together with the title a caption to quote.
    """

    title: str
    chart: Any
    note: str = ""
    table: PageTable | None = None
    about: str = ""


@dataclass(frozen=True)
class Section:
    """A claim, what was found, and what shows it.

    Attributes
    ----------
    title, text : str
        An empty line in the text begins a new paragraph.
    claim, verdict : str
        What the paper says, and what we find.
    holds : bool, None or "not run"
        Whether the claim holds; None with a verdict: in part; "not run": nobody looked.
    parts : sequence
        Cards, lists and the like, see `trueup.report.parts`; they come before figures and tables.
    figures, tables : sequences
    closing : sequence
        Parts that come after figures and tables.
    fold : str
        What a reader opens to see it all; empty: it is open.
    """

    title: str
    claim: str = ""
    verdict: str = ""
    holds: Holds = None
    text: str = ""
    figures: Sequence[Figure] = ()
    tables: Sequence[PageTable] = ()
    parts: Sequence[Part] = ()
    closing: Sequence[Part] = ()
    fold: str = ""


def write_page(
    path: str | PathLike[str],
    *,
    title: str,
    intro: str,
    sections: Sequence[Section],
    footer: str = "",
    opening: int = 0,
    force: bool = False,
) -> Path:
    """Write a page to an HTML file, whole or not at all.

    Parameters
    ----------
    path
        Where to; a page of trueup there is replaced.
    title, intro, footer
        Plain text. An empty line begins a new paragraph.
    sections
        In the order of the table of contents.
    opening
        How many of them come before the table of contents, because everybody should read them.

    force
        Replace a file that is no page of trueup, too.

    Raises
    ------
    MissingExtra
        When vl-convert-python (or altair, for its charts) is not installed.
    TrueupError
        When a chart cannot be drawn offline.
    """
    from trueup import __version__

    path = Path(path)
    if not force:
        check_page(path)
    charts = any(section.figures for section in sections)
    scripts = [bundle(), _resource("page.js")] if charts else []
    if any(table.search for section in sections for table in section.tables):
        scripts.append(_resource("table.js"))
    ids = markup.anchors([section.title for section in sections])
    numbers = count(1)
    written = [_section(section, id_, numbers) for section, id_ in zip(sections, ids, strict=True)]
    body = [
        f"<header><h1>{escape(title)}</h1>\n{markup.paragraphs(intro)}</header>",
        "" if opening else _contents(sections, ids),
        "<main>",
        *written[:opening],
        _contents(sections[opening:], ids[opening:]) if opening else "",
        *written[opening:],
        "</main>",
        f"<footer>{markup.paragraphs(footer)}</footer>" if footer else "",
        f'<script type="application/json" id="chart.config">{script_json(theme.chart_config())}</script>',
        *(f"<script>{script}</script>" for script in scripts),
    ]
    page = f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
{MADE_BY} {__version__}">
<meta http-equiv="Content-Security-Policy" content="{_policy(scripts)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<style>
{theme.variables()}{_resource("page.css")}</style>
</head>
<body>
{chr(10).join(part for part in body if part)}
</body>
</html>
"""
    with errors_name(path), output_set([path]) as names:
        # Text that is no Unicode (half a surrogate pair in an id) is shown as "?".
        names[path].write_text(page, encoding="utf-8", errors="replace", newline="\n")
    return path


def _resource(name: str) -> str:
    return files("trueup.report").joinpath(name).read_text(encoding="utf-8")


def _policy(scripts: Sequence[str]) -> str:
    """Allow these scripts, styles and drawn images; forbid everything else."""
    hashes = [b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts]
    allowed = " ".join(f"'sha256-{value}'" for value in hashes) or "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _mark(section: Section) -> str:
    if not section.verdict:
        return ""
    kind, sign, words = MARKS[section.holds]
    return f'<span class="mark {kind}"><span aria-hidden="true">{sign}</span> {words}</span>'


def _contents(sections: Sequence[Section], ids: Sequence[str]) -> str:
    lines = [
        f'<li><a href="#{id_}">{escape(section.title)}</a> {_mark(section)}</li>'
        for section, id_ in zip(sections, ids, strict=True)
    ]
    return f'<nav aria-label="Contents"><h2>Contents</h2>\n<ol>{"".join(lines)}</ol></nav>'


def _section(section: Section, id_: str, numbers: Iterator[int]) -> str:
    parts = [f'<section id="{id_}"><h2>{escape(section.title)}</h2>']
    says = [
        f"<div><dt>{who}</dt><dd>{mark}{escape(words)}</dd></div>"
        for who, words, mark in (
            ("The paper says:", section.claim, ""),
            ("We find:", section.verdict, _mark(section)),
        )
        if words
    ]
    if says:
        parts.append(f'<dl class="claim">{"".join(says)}</dl>')
    if section.fold:
        parts.append(f'<details class="fold"><summary>{escape(section.fold)}</summary>')
    parts.append(markup.paragraphs(section.text))
    parts += [part_html(part) for part in section.parts]
    parts += [_figure(figure, next(numbers)) for figure in section.figures]
    parts += [_table(table) for table in section.tables]
    parts += [part_html(part) for part in section.closing]
    end = "</details></section>" if section.fold else "</section>"
    return "\n".join(part for part in (*parts, end) if part)


def _figure(figure: Figure, number: int) -> str:
    spec = script_json(spec_of(figure.chart, figure.title))
    about = f' <span class="about">{escape(figure.about)}</span>' if figure.about else ""
    label = escape(f"{figure.title} {figure.about}".strip(), quote=True)
    parts = [
        f'<figure id="figure.{number}">',
        f"<figcaption><b>Figure {number}.</b> {escape(figure.title)}{about}</figcaption>",
        f'<div class="chart" role="img" aria-label="{label}" data-spec="spec.{number}">',
        f"<noscript>{NO_SCRIPT}</noscript></div>",
        f'<script type="application/json" id="spec.{number}">{spec}</script>',
        f'<div class="note">{markup.paragraphs(figure.note)}</div>' if figure.note else "",
    ]
    if figure.table is not None:
        summary = escape(figure.table.title or "Numbers")
        parts.append(f"<details><summary>{summary}</summary>{_rows(figure.table)}</details>")
    return "\n".join(part for part in (*parts, "</figure>") if part)


def _table(table: PageTable) -> str:
    title = f"<h3>{escape(table.title)}</h3>\n" if table.title else ""
    note = f'<div class="note">{markup.paragraphs(table.note)}</div>' if table.note else ""
    return f"{title}{note}{_rows(table)}"


def _rows(table: PageTable) -> str:
    """Write the rows in a box that scrolls sideways, by keyboard too, where they are too wide."""
    label = escape(table.title or "Table", quote=True)
    if table.search:
        rows = markup.table(table.columns, table.rows, compact=True)
        box = f'<div class="wide tall" tabindex="0" role="region" aria-label="{label}">{rows}</div>'
        return f'<div class="data" data-search="{escape(table.search, quote=True)}">{box}</div>'
    rows = markup.table(table.columns, table.rows)
    return f'<div class="wide" tabindex="0" role="region" aria-label="{label}">{rows}</div>'
