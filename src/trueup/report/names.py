"""Names that people typed, as they can be shown: on one line, short, told apart, and in their own direction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trueup.errors import cut

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST = 80
# Joiners are not printable by themselves but hold emoji and Persian words together.
KEPT = frozenset("\u200c\u200d")
SIGNS = {"\n": "⏎", "\r": "␍", "\t": "⇥"}


def shown(name: object, longest: int = LONGEST) -> str:
    r"""Write a name on one line, with its middle left out where it is long; nothing in it stays invisible.

    Examples
    --------
    >>> shown("two\nlines"), shown("x" * 500, longest=30), shown("half \ud83d pair")
    ('two⏎lines', 'xxxxxxxxxxxxxxxxxxx…xxxxxxxxxx', 'half \\ud83d pair')
    >>> shown("  ")
    '"  "'
    """
    text = "".join(map(_sign, cut(str(name), longest)))
    return text if text.strip() else f'"{text}"'


def _sign(letter: str) -> str:
    if letter.isprintable() or letter in KEPT:
        return letter
    return SIGNS.get(letter) or letter.encode("unicode_escape").decode()


def distinct(names: Iterable[object], longest: int = LONGEST) -> list[str]:
    """Write names so that no two look alike.

    Examples
    --------
    >>> distinct([1, "1", "b"])
    ['1', '1 (2)', 'b']
    """
    taken: set[str] = set()
    result = []
    for name in names:
        text = base = shown(name, longest)
        again = 1
        while text in taken:
            again += 1
            text = f"{base} ({again})"
        taken.add(text)
        result.append(text)
    return result
