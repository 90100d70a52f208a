"""Parts of a section besides charts and tables: cards, answered questions, warnings, lists, folds, text to copy."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Literal, TypeAlias

from trueup.report.markup import Name, cell, paragraphs, table

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Words, and names that people typed.
Line: TypeAlias = "str | Sequence[str | Name]"


@dataclass(frozen=True)
class Paragraphs:
    """Text in paragraphs, larger where it leads into a section."""

    text: str
    lead: bool = False


@dataclass(frozen=True)
class Cards:
    """The numbers to remember: (number, what it is, a remark that may be empty)."""

    cards: Sequence[tuple[str, str, str]]


@dataclass(frozen=True)
class Points:
    """Questions and their answers."""

    points: Sequence[tuple[str, Line]]


@dataclass(frozen=True)
class Callout:
    """Something not to be overlooked."""

    title: str
    lines: Sequence[Line]
    kind: Literal["warning", "good", "note"] = "note"


@dataclass(frozen=True)
class Lists:
    """Short lists side by side: (title, entries); an entry is a name and words on it."""

    lists: Sequence[tuple[str, Sequence[tuple[Name | str, str]]]]


@dataclass(frozen=True)
class Copy:
    """Text to copy as it is."""

    title: str
    text: str


@dataclass(frozen=True)
class Fold:
    """A table with words before it, folded away under its title."""

    title: str
    text: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]


Part: TypeAlias = Paragraphs | Cards | Points | Callout | Lists | Copy | Fold


def part_html(part: Part) -> str:
    """Write a part."""
    match part:
        case Paragraphs(text, lead):
            return f'<div class="lead">{paragraphs(text)}</div>' if lead else paragraphs(text)
        case Cards(cards):
            return f'<ul class="cards">{"".join(_card(*card) for card in cards)}</ul>'
        case Points(points):
            lines = (f"<dt>{escape(ask)}</dt><dd>{_line(say)}</dd>" for ask, say in points)
            return f'<dl class="points">{"".join(lines)}</dl>'
        case Callout(title, lines, kind):
            body = "".join(f"<p>{_line(line)}</p>" for line in lines)
            return f'<div class="call {kind}"><h3>{escape(title)}</h3>{body}</div>'
        case Lists(lists):
            return f'<div class="lists">{"".join(_list(*entries) for entries in lists)}</div>'
        case Copy(title, text):
            code = f'<pre tabindex="0"><code>{escape(text)}</code></pre>'
            return f"<h3>{escape(title)}</h3>{code}"
        case Fold(title, text, columns, rows):
            content = (
                f'{paragraphs(text)}<div class="wide" tabindex="0" role="region" '
                f'aria-label="{escape(title, quote=True)}">{table(columns, rows)}</div>'
            )
            return f"<details><summary>{escape(title)}</summary>{content}</details>"


def _card(number: str, what: str, remark: str) -> str:
    small = f"<small>{escape(remark)}</small>" if remark else ""
    return f"<li><b>{escape(number)}</b> <span>{escape(what)}</span> {small}</li>"


def _list(title: str, entries: Sequence[tuple[Name | str, str]]) -> str:
    lines = "".join(
        f"<li><b>{cell(name)}</b> <span>{escape(say)}</span></li>" for name, say in entries
    )
    return f"<div><h3>{escape(title)}</h3><ol>{lines}</ol></div>"


def _line(line: Line) -> str:
    return escape(line) if isinstance(line, str) else "".join(cell(piece) for piece in line)
