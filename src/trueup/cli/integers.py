"""Whole numbers on the command line: 1.5 is none, and is not rounded to one."""

from collections.abc import Sequence
from typing import Annotated, Any

from cyclopts import Parameter

from trueup.errors import quoted


def _whole(_type: type, tokens: Sequence[Any]) -> int:
    text = tokens[0].value
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"found {quoted(text)}, must be a whole number.") from None


Whole = Annotated[int, Parameter(converter=_whole)]
