"""Text, numbers and tables as HTML. Everything that comes in is data: it is escaped here."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from html import escape
from numbers import Integral, Real
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

NOTHING = "–"
MOST_DECIMALS = 9
LARGEST = 1e12


@dataclass(frozen=True, slots=True)
class Name:
    """What somebody called a thing: it keeps its own direction of writing; `full` where `text` leaves out a part."""

    text: str
    full: str = ""


@dataclass(frozen=True, slots=True)
class Rounded:
    """A number with as many decimals as the others of its column; None: four significant digits."""

    value: float
    decimals: int | None

    def __str__(self) -> str:
        if self.decimals is None or not np.isfinite(self.value):
            return number(self.value)
        return f"{self.value:z,.{self.decimals}f}"  # no minus before nothing


@dataclass(frozen=True, slots=True)
class Marked:
    """A number with a mark, as text: it ends at the right as numbers do."""

    text: str

    def __str__(self) -> str:
        return self.text


def decimals(error: float, largest: float) -> int | None:
    """Return the decimals that show two digits of an error, None where numbers are too large or small for that.

    Examples
    --------
    >>> decimals(0.034, 12.0), decimals(25.0, 990.0), decimals(1e-12, 1.0)
    (3, 0, None)
    """
    if not (np.isfinite(error) and error > 0 and np.isfinite(largest)) or largest >= LARGEST:
        return None
    count = max(0, 1 - int(np.floor(np.log10(error))))
    return count if count <= MOST_DECIMALS else None


def number(value: float) -> str:
    """Write a number with four significant digits, and no more zeros than it needs.

    Examples
    --------
    >>> [number(value) for value in (1234567, 12345.678, 0.123456, 2.0, 1.5e-7, float("nan"))]
    ['1,234,567', '12,346', '0.1235', '2', '1.5e-07', '–']
    """
    if isinstance(value, Integral):
        return f"{value:,}"
    if not np.isfinite(value):
        return NOTHING if np.isnan(value) else f"{value:+g}".replace("inf", "∞")
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"


def is_number(value: object) -> bool:
    """Say whether a cell is a number (true and false are words)."""
    if isinstance(value, Rounded | Marked):
        return True
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def cell(value: object) -> str:
    """Write what stands in a table."""
    if value is None:
        return NOTHING
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, Real):
        return number(int(value) if isinstance(value, Integral) else float(value))
    if isinstance(value, Name):
        whole = value.full if value.full != value.text else ""
        title = f' title="{escape(whole, quote=True)}"' if whole else ""
        return f"<bdi{title}>{escape(value.text)}</bdi>"
    return escape(str(value))


def paragraphs(text: str) -> str:
    """Write text with a paragraph for every block between empty lines."""
    blocks = re.split(r"\n\s*\n", text.strip())
    return "\n".join(f"<p>{escape(block.strip())}</p>" for block in blocks if block.strip())


def table(
    columns: Sequence[str], rows: Sequence[Sequence[object]], *, compact: bool = False
) -> str:
    """Write a table; the first column names the rows, columns of numbers end at the right.

    A compact table, for many rows, takes fewer letters: it marks the columns of text instead of the numbers.
    """
    numeric = [
        column > 0 and any(is_number(row[column]) for row in rows) for column in range(len(columns))
    ]
    head = "".join(
        f'<th scope="col"{_right(right)}>{escape(str(name))}</th>'
        for name, right in zip(columns, numeric, strict=True)
    )
    lines = [f"<thead><tr>{head}</tr></thead>", "<tbody>"]
    for first, *others in rows:
        cells = "".join(
            f"<td{'' if right else ' class=t'}>{cell(value)}"
            if compact
            else f"<td{_right(is_number(value))}>{cell(value)}</td>"
            for value, right in zip(others, numeric[1:], strict=True)
        )
        lines.append(f'<tr><th scope="row">{cell(first)}</th>{cells}</tr>')
    lines.append("</tbody>")
    return "<table>" + "\n".join(lines) + "</table>"


def _right(yes: bool) -> str:
    return ' class="number"' if yes else ""


def anchors(titles: Sequence[str]) -> list[str]:
    """Make a distinct, readable id for each title.

    Examples
    --------
    >>> anchors(["Does it hurt?", "Does it hurt!", "Ärger", "?"])
    ['does-it-hurt', 'does-it-hurt-2', 'arger', 'section-4']
    """
    taken: dict[str, None] = {}  # a set with an order
    for position, title in enumerate(titles, 1):
        plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
        name = base = "-".join(re.findall(r"[a-z0-9]+", plain))[:60] or f"section-{position}"
        again = 1
        while name in taken:
            again += 1
            name = f"{base}-{again}"
        taken[name] = None
    return list(taken)
