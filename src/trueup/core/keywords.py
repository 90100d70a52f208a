"""Keywords of public functions as fields of dataclasses: one place says name, type, default and help of each.

A field made by `keyword` is an argument of the public functions and, unless it says otherwise, an option of the command
line. `signature_with` gives a function that takes `**keywords` the signature that a reader of its help expects.
"""

from __future__ import annotations

import difflib
import inspect
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Function = TypeVar("Function", bound=Callable[..., Any])

_KEYWORD = "keyword"
#: Options of the command line that are not called like their keywords.
_FLAGS = {"from_format": "--from", "methods": "--method"}


@dataclass(frozen=True)
class Keyword:
    """A keyword of the public functions.

    Attributes
    ----------
    name : str
        Its name.
    annotation : str
        Its type in Python.
    default : object
        Its default.
    option : type or None
        Its type on the command line; None: it is no option there.
    help : str
        What the help of the command line says.
    """

    name: str
    annotation: str
    default: Any
    option: Any
    help: str


def flag_of(name: str) -> str:
    """Return what the command line calls a keyword.

    >>> flag_of("skip_bad"), flag_of("from_format")
    ('--skip-bad', '--from')
    """
    return _FLAGS.get(name, f"--{name.replace('_', '-')}")


def keyword(default: Any, help: str, option: Any) -> Any:  # noqa: A002  the usual name
    """Return a dataclass field that is a keyword of the public functions.

    Parameters
    ----------
    default : object
        The default.
    help : str
        A sentence for the help of the command line.
    option : type or None
        Type on the command line; None: it is no option there.
    """
    return field(default=default, metadata={_KEYWORD: (help, option)})


def keywords_of(kind: type) -> dict[str, Keyword]:
    """Return the keywords among the fields of a dataclass, by name."""
    return {
        each.name: Keyword(each.name, str(each.type), each.default, *each.metadata[_KEYWORD][::-1])
        for each in fields(kind)
        if _KEYWORD in each.metadata
    }


def signature_with(
    keywords: Mapping[str, Keyword], names: Iterable[str]
) -> Callable[[Function], Function]:
    """Give a function with `**keywords` a signature that shows each of them with type and default."""

    def decorate(function: Function) -> Function:
        own = inspect.signature(function)
        kinds = inspect.Parameter
        shown = [each for each in own.parameters.values() if each.kind is not kinds.VAR_KEYWORD]
        for name in names:
            each = keywords[name]
            shown.append(
                inspect.Parameter(
                    name, kinds.KEYWORD_ONLY, default=each.default, annotation=each.annotation
                )
            )
        function.__signature__ = own.replace(parameters=shown)  # type: ignore[attr-defined]
        return function

    return decorate


def check_names(function: str, given: Iterable[str], allowed: Iterable[str]) -> None:
    """Raise the error of Python for a keyword that a function does not have."""
    strange = sorted(set(given) - set(allowed))
    if strange:
        near = difflib.get_close_matches(strange[0], list(allowed), n=1, cutoff=0.75)
        meant = f". Did you mean {near[0]!r}?" if near else ""
        raise TypeError(f"{function}() got an unexpected keyword argument {strange[0]!r}{meant}")
