"""What to do about values that are not numbers: their kinds, and the options that read them.

An option is named only if it reads the whole column, so that whoever takes the advice is not told off again. Where two
options read it and give different numbers, both are shown.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trueup.errors import Message, counted, option, quoted
from trueup.io.encode import is_missing
from trueup.io.number_text import KINDS, MISSING_TEXTS, WAYS, Parsed, Writing, kind_of, shape_of

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Kinds that no option reads, though some could be taken for numbers with a unit.
NEVER = ("feet and inches", "date", "time", "multiple", "range", "bound", "fraction")
#: Units that are named.
MOST_UNITS = 5


class Advice(NamedTuple):
    """What was found and what to do about it.

    Attributes
    ----------
    kinds
        How many values there are of each kind, with examples; empty where all are text.
    remedy
        What to do; empty where no option reads any of them.
    fixes
        Keywords that read the column, for each way of reading it.
    notation
        Whether one way of writing numbers reads all values.
    """

    kinds: str
    remedy: str
    fixes: tuple[dict[str, Any], ...]
    notation: bool


def advise(
    values: Sequence[object], rows: Sequence[int], writing: Writing, *, skips: bool
) -> Advice:
    """Say what the values in these rows of a column are, and how the column can be read.

    Parameters
    ----------
    values
        The whole column.
    rows
        The rows with values that are not numbers.
    writing
        How numbers are said to be written.
    skips
        Whether rows may be set aside.
    """
    marked = set(rows)
    bad: Counter[str] = Counter()
    good: Counter[str] = Counter()
    for row, value in enumerate(values):
        if isinstance(value, str):
            if row in marked:
                bad[value] += 1
            elif value.strip().lower() not in MISSING_TEXTS:
                good[value] += 1
        elif row in marked:
            bad[quoted(value)] += 1
        elif not is_missing(value):
            good[_digits(value)] += 1
    kind = {shape: kind_of(shape) for shape in map(shape_of, bad)}
    # By shape, since only their number may be large.
    hopeless = {
        shape
        for shape, which in kind.items()
        if which in NEVER or not any(way.parse(shape) for way in WAYS)
    }
    readable = {text: count for text, count in bad.items() if shape_of(text) not in hopeless}
    lost = sum(bad.values()) - sum(readable.values())
    may_skip = skips and 2 * lost <= sum(bad.values()) + sum(good.values())
    kinds = _listed(bad, kind)
    if not readable:
        return Advice(kinds, "", ({"skip_bad": True},) if may_skip else (), notation=False)
    ways = _ways(good, readable, writing)
    aside: dict[str, Any] = {"skip_bad": True} if lost and may_skip else {}
    fixes = tuple({**_changes(way, writing), **aside} for way in ways)
    if not ways:
        return Advice(kinds, _no_way(good, readable), (), notation=False)
    if lost and not may_skip:
        fixes = ()
    remedy = _said(ways, writing, good, readable)
    if lost and skips:
        others = "it" if lost == 1 else "them"
        remedy = (
            remedy
            + f" No option reads the other {counted(lost, 'value') if lost > 1 else 'one'}: mend {others}, or pass "
            + option("skip_bad", True)
            + f" to set {others} aside."
        )
    return Advice(kinds, remedy, fixes, notation=not lost)


def _digits(value: Any) -> str:
    """Return about how large a number is, as text that every way of writing reads."""
    try:
        return str(abs(int(value)))
    except (TypeError, ValueError, OverflowError):
        return "0"


def _listed(bad: Counter[str], kind: dict[str, str]) -> str:
    """Count values by kind, with an example of each."""
    counts: Counter[str] = Counter()
    example: dict[str, str] = {}
    for text, count in bad.items():
        which = kind[shape_of(text)]
        counts[which] += count
        example.setdefault(which, text)
    if set(counts) == {"text"}:
        return ""
    parts = [
        f"{count:,} {KINDS[which][count > 1]} ({quoted(example[which])})"
        for which, count in counts.most_common()
    ]
    if sum(counts.values()) == 1:
        (which,) = counts
        return f"It {KINDS[which][0]}."
    return f"Of these {', '.join(parts)}."


def _ways(good: Counter[str], readable: dict[str, int], writing: Writing) -> list[Writing]:
    """Return the ways of writing with the fewest changes that read all values; one of those that read the same."""
    shapes: Counter[str] = Counter()
    for text, count in (*good.items(), *readable.items()):
        shapes[shape_of(text)] += count
    reading: list[Writing] = []
    for each in WAYS:
        same_mark = writing.decimal is not None and each.point == writing.decimal
        way = replace(each, decimal=writing.decimal) if same_mark else each
        units = _units(way, shapes)
        if way != writing and units is not None and _agree(units):
            reading.append(way)
    # What was said stays, if possible.
    kept = [way for way in reading if writing.given.items() <= way.given.items()]
    found = [(len(way.given), way) for way in kept or reading]
    fewest = min((options for options, _ in found), default=0)
    ways: dict[tuple[float, ...], Writing] = {}
    for options, way in found:
        if options == fewest:
            ways.setdefault(tuple(_numbers(way, readable)), way)
    best = list(ways.values())
    if len(best) > 1 and _likely_grouped(good, best, readable):
        best.sort(key=lambda way: way.thousands is None)
    return best


def _units(way: Writing, shapes: Counter[str]) -> Counter[str] | None:
    """Count the units of all values as a way reads them; None if it does not read all."""
    units: Counter[str] = Counter()
    for shape, count in shapes.items():
        read = way.parse(shape)
        if read is None:
            return None
        units[read.unit] += count
    return units


def _agree(units: Counter[str]) -> bool:
    named = [unit for unit in units if unit]
    return len(named) <= 1 and not ("%" in named and units[""])


def _numbers(way: Writing, texts: dict[str, int]) -> list[float]:
    return [_parsed(way, text).number for text in texts]


def _parsed(way: Writing, text: str) -> Parsed:
    return way.parse(text.strip()) or Parsed(np.nan)


def _likely_grouped(good: Counter[str], ways: list[Writing], readable: dict[str, int]) -> str:
    """Return a number that all ways read alike, if such are about as large as 1031 where "1,031" may be 1.031 too."""
    grouped = next((way for way in ways if way.thousands), None)
    if grouped is None:
        return ""
    alike: dict[str, float] = {}
    unlike: list[float] = []
    for text in (*good, *readable):
        numbers = {abs(_parsed(way, text).number) for way in ways}
        if len(numbers) > 1:
            unlike.append(abs(_parsed(grouped, text).number))
        elif (number := numbers.pop()) > 0 and np.isfinite(number):
            alike[text] = number
    if not alike or not unlike:
        return ""
    away = float(np.median(np.log([*alike.values()])) - np.median(np.log(unlike)))
    return next(iter(alike)) if abs(away) < abs(away + np.log(1000)) else ""


def _changes(way: Writing, writing: Writing) -> dict[str, Any]:
    """Return the keywords by which a way differs from what was said; None takes one back."""
    names = ("decimal", "thousands", "strip_units")
    both = {name: (getattr(way, name), getattr(writing, name)) for name in names}
    return {name: new or None for name, (new, old) in both.items() if new != old}


def _said(
    ways: list[Writing], writing: Writing, good: Counter[str], readable: dict[str, int]
) -> Message:
    """Say what to pass; of several ways, what each makes of the same text."""
    if len(ways) == 1:
        return Message("To read them ", _named(_changes(ways[0], writing)), ".")
    one, two = ways[:2]
    text = next(text for text in readable if _parsed(one, text).number != _parsed(two, text).number)
    beside = _likely_grouped(good, ways, readable)
    likely = f" Beside {quoted(beside)} the former is likely." if beside else ""
    return Message(
        f"{quoted(text)} can be read in two ways: for {_parsed(one, text).number:.15g} ",
        _named(_changes(one, writing)),
        f"; for {_parsed(two, text).number:.15g} ",
        _named(_changes(two, writing)),
        "." + likely,
    )


def _named(changes: dict[str, Any]) -> Message:
    """Name keywords to pass and to leave out."""
    given = [option(name, value) for name, value in changes.items() if value is not None]
    left = [option(name, None) for name, value in changes.items() if value is None]
    parts = []
    if left:
        parts.append(Message("leave out ", Message(" and ").join(left)))
    if given:
        parts.append(Message("pass ", Message(" and ").join(given)))
    return Message(" and ").join(parts)


def _no_way(good: Counter[str], readable: dict[str, int]) -> str:
    """Say why no option reads all values."""
    for way in WAYS:
        shapes: Counter[str] = Counter()
        for text, count in (*good.items(), *readable.items()):
            shapes[shape_of(text)] += count
        units = _units(way, shapes) if way.strip_units else None
        if units is not None:
            named = [f"{quoted(unit)} ({count:,})" for unit, count in units.most_common() if unit]
            if len(named) == 1:
                plain = f"{units['']:,} {'has' if units[''] == 1 else 'have'} none"
                return f"Besides {units['%']:,} with a percent sign {plain}: write all in per cent, or none."
            more = f" and {len(named) - MOST_UNITS} more" if len(named) > MOST_UNITS else ""
            return f"The units are {', '.join(named[:MOST_UNITS])}{more}: convert all to one."
    return (
        "They are written in several ways, of which no option reads all: write all numbers alike."
    )
