"""Numbers as people write them: decimal marks, groups of thousands, units.

A text means a number by rules that the caller states, never by a guess. What no rule in force reads is told apart by
kind, so that a message can say what was found and name the option that reads it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

from trueup.core.parameters import yes_or_no
from trueup.errors import AnswersError, quoted

#: Texts that stand for no value, in lower case.
MISSING_TEXTS = (
    "", "na", "nan", "null", "n/a", "n.a.", "#n/a", "#na", "<na>", "-", "--", "–", "—", ".",
)  # fmt: skip
#: Those of them that could also be meant otherwise (a dash for zero, say): messages count them.
DOUBTFUL_TEXTS = ("-", "--", "–", "—", ".")
#: Separators of thousands by what the caller writes; each stands for the characters that people use alike.
THOUSANDS = {",": ",", ".": ".", " ": " \u00a0\u2009\u202f", "'": "'\u2019"}
#: Words for separators that are hard to type in a shell.
WORDS = {"space": " ", "apostrophe": "'", "comma": ",", "point": "."}

_EXPONENT = r"(?:e[+-]?[0-9]+)?"
_INFINITE = r"[+-]?inf(?:inity)?"
_CURRENCY = "$€£¥₹₩₽₺₫₴฿"
_WORD = r"[°º]?[^\W\d_]+\.?(?:[²³]|\^-?[0-9]|(?<=m)[23])?"
_UNIT = re.compile(
    rf"(?P<sign>[+-]?)\s*(?P<before>[^\W\d_]{{0,3}}[{_CURRENCY}]|[A-Z]{{3}})?\s*"
    r"(?P<number>[+-]?(?=[.,]?[0-9])[0-9.,'’ \u00a0\u2009\u202f]*[0-9][.,]?(?:[eE][+-]?[0-9]+(?![^\W\d_]))?)\s*"
    rf"(?P<after>[%‰{_CURRENCY}]|{_WORD}(?:[ /·*]{_WORD}){{0,3}})?"
)
_PERCENT = ("%", "percent", "per cent", "pct")
# Words and signs that multiply a number.
_MULTIPLE = (
    r"(?:[kKMB]|[kKM](?:€|\$|£|¥|EUR|USD|GBP|CHF|JPY)|[十百千万萬亿億]"
    r"|(?i:tsd|tausend|thousand|thou|th|mille|mil|tys|million|millionen|milione|billion|trillion|mio|mrd|mn|bn|bln|mld"
    r"|hundred|dozen|lakh|crore)s?\.?)"
)
# They, and what makes a time of day, must not be stripped as if they were units.
_NO_UNITS = re.compile(rf"{_MULTIPLE}|(?i:am|pm)\.?")


class Parsed(NamedTuple):
    """A number and its unit, which is empty for a plain number."""

    number: float
    unit: str = ""


@dataclass(frozen=True)
class Writing:
    """How numbers are written.

    Attributes
    ----------
    decimal
        The decimal mark; None: a point, or a comma where points separate thousands.
    thousands
        What separates groups of three digits, if anything does: a key of `THOUSANDS`.
    strip_units
        Whether a unit, a currency or a percent sign may stand beside a number.
    """

    decimal: str | None = None
    thousands: str | None = None
    strip_units: bool = False

    @classmethod
    def of(cls, decimal: Any = None, thousands: Any = None, strip_units: Any = False) -> Writing:
        """Check the options of a caller."""
        if decimal is not None and (not isinstance(decimal, str) or decimal not in (".", ",")):
            raise AnswersError(f'found {quoted(decimal)}, must be "." or ",".', argument="decimal")
        if isinstance(thousands, str):
            thousands = WORDS.get(thousands.lower(), thousands)
        if thousands is not None and (not isinstance(thousands, str) or thousands not in THOUSANDS):
            raise AnswersError(
                f'found {quoted(thousands)}, must be ",", ".", " " (or space) or "\'" (or apostrophe).',
                argument="thousands",
            )
        if thousands is not None and thousands == decimal:
            raise AnswersError(
                f"found {quoted(thousands)}, which is the decimal mark as well. Give two different characters.",
                argument="thousands",
            )
        yes_or_no("strip_units", strip_units)
        return cls(decimal, thousands, bool(strip_units))

    @property
    def point(self) -> str:
        """The decimal mark in force."""
        return self.decimal or ("," if self.thousands == "." else ".")

    @property
    def plain(self) -> bool:
        """Whether numbers are written as computers write them."""
        return self.point == "." and self.thousands is None and not self.strip_units

    @property
    def given(self) -> dict[str, Any]:
        """The options that are not their defaults."""
        return {
            each.name: getattr(self, each.name)
            for each in fields(self)
            if getattr(self, each.name) != each.default
        }

    @cached_property
    def separators(self) -> str:
        """Characters that separate thousands, as part of a regular expression."""
        return f"[{re.escape(THOUSANDS[self.thousands])}]" if self.thousands else ""

    @cached_property
    def pattern(self) -> str:
        """A number without a unit, as a regular expression for text in lower case."""
        mark, whole = re.escape(self.point), "[0-9]+"
        if self.thousands:
            whole = rf"(?:[1-9][0-9]{{0,2}}(?:{self.separators}[0-9]{{3}})+|[0-9]+)"
        return rf"(?:[+-]?(?:{whole}(?:{mark}[0-9]*)?|{mark}[0-9]+){_EXPONENT}|{_INFINITE})"

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern, re.IGNORECASE)

    def parse(self, text: str) -> Parsed | None:
        """Read a text, without spaces around it, that is not one of `MISSING_TEXTS`; None if it is no number."""
        if self._compiled.fullmatch(text):
            return Parsed(self._number(text))
        if not self.strip_units:
            return None
        found = _UNIT.fullmatch(text)
        if found is None or not (found["before"] or found["after"]):
            return None
        number = found["sign"] + found["number"].rstrip(" \u00a0\u2009\u202f")
        unit = _unit_of(found)
        if unit is None or not self._compiled.fullmatch(number):
            return None
        return Parsed(self._number(number), unit)

    def _number(self, text: str) -> float:
        if self.thousands:
            text = re.sub(self.separators, "", text)
        return float(text.replace(self.point, "."))


PLAIN = Writing()


def _unit_of(found: re.Match[str]) -> str | None:
    """Return the unit beside a number; None for what changes its value."""
    before, after = (found["before"] or "").strip(), (found["after"] or "").strip()
    if after and any(_NO_UNITS.fullmatch(word) for word in re.split(r"[ /·*]", after)):
        return None
    if after.lower() in _PERCENT:
        after = "%"
    return f"{before} … {after}" if before and after else before or after


# -- what stands there instead of a number ---------------------------------------------------------

#: What a value of each kind is said to do, in the singular and in the plural.
KINDS = {
    "decimal comma": ("has a decimal comma", "have a decimal comma"),
    "thousands": ("separates thousands", "separate thousands"),
    "comma": (
        "has a comma that may separate thousands or decimals",
        "have a comma that may separate thousands or decimals",
    ),
    "decimal point": ("has a decimal point", "have a decimal point"),
    "percent": ("has a percent sign", "have a percent sign"),
    "currency": ("has a currency", "have a currency"),
    "unit": ("has a unit", "have a unit"),
    "feet and inches": ("is in feet and inches", "are in feet and inches"),
    "multiple": ("is shortened by a word such as k or million", "are shortened by a word such as k or million"),
    "range": ("is a range", "are ranges"),
    "bound": ("is a bound or approximate", "are bounds or approximate"),
    "fraction": ("is a fraction", "are fractions"),
    "date": ("is a date", "are dates"),
    "time": ("is a time", "are times"),
    "formula error": ("is an error of a spreadsheet", "are errors of a spreadsheet"),
    "text": ("is text", "are text"),
}  # fmt: skip
_SHAPES = {
    "feet and inches": r"""[0-9]+\s*(?:'|′|ft\.?|feet)\s*[0-9]{1,2}(?:\.[0-9]+)?\s*(?:"|″|''|in\.?|inches)?"""
    r"""|[0-9.]+\s*['′"″]""",
    "multiple": rf"[$€£]?\s*[0-9.,]+\s*{_MULTIPLE}",
    "date": r"(?:[0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}|[0-9]{1,2}[-/.][0-9]{1,2}[-/.](?:[0-9]{4}|[0-9]{2}))"
    r"(?:[ T].*)?",
    "time": r"(?i:[0-9]{1,2}:[0-9]{2}(?::[0-9.]+)?(?:\s*[ap]m)?|[0-9]{1,2}\s*[ap]m)",
    "range": r"[0-9.,]+\s*(?:-|–|—|\bto\b|\.\.)\s*[0-9.,]+(?:\s*\w+)?",
    "bound": r"(?:[<>~≈≤≥]=?|ca\.?|about|approx\.?)\s*[0-9.,]+.*",
    "fraction": r"[0-9.,]+\s*(?:/|\bof\b|\bout of\b)\s*[0-9.,]+",
    "formula error": r"#(?:DIV/0!|REF!|VALUE!|NAME\?|NUM!|NULL!)",
}
_COMPILED = {kind: re.compile(shape) for kind, shape in _SHAPES.items()}
#: All ways of writing that are tried, those with the fewest options first.
WAYS = tuple(
    Writing(decimal, thousands, strip_units)
    for strip_units in (False, True)
    for decimal, thousands in (
        (None, None), (",", None), (None, ","), (None, " "), (None, "'"), (None, "."), (",", " "), (",", "'"),
    )
)  # fmt: skip


def kind_of(text: str) -> str:
    """Tell what kind of text stands where a number should be."""
    text = text.strip()
    for kind in ("feet and inches", "date", "time"):
        if _COMPILED[kind].fullmatch(text):
            return kind
    ways = [(way, read) for way in WAYS if (read := way.parse(text)) is not None]
    if not ways:
        return next((kind for kind, shape in _COMPILED.items() if shape.fullmatch(text)), "text")
    unit = ways[0][1].unit
    if unit == "%":
        return "percent"
    if unit:
        symbol = any(character in unit for character in _CURRENCY)
        return "currency" if symbol or re.fullmatch("[A-Z]{3}", unit) else "unit"
    if any(way.plain for way, _ in ways):
        return "decimal point"
    grouped = any(way.thousands and way.point == "." for way, _ in ways)
    if any(way.thousands is None for way, _ in ways):
        return "comma" if grouped else "decimal comma"
    return "thousands"


def shape_of(text: str) -> str:
    """Return the text with other digits: whether and how it can be read depends on its shape alone."""
    return re.sub(r"(?<![^\W\d_]|\^)[2-9]", "1", text.strip())
