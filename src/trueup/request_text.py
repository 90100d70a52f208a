"""A request as text that runs: a Python call, or a command.

What text cannot carry (a frame, a function, an object of the caller's own) is written as a placeholder, and the note
says which words stand for what was passed.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.algorithms.contract import Algorithm
from trueup.core.keywords import flag_of
from trueup.shrinkage.contract import ShrinkRule

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from trueup.core.keywords import Keyword

#: Entries up to which a mapping is written out in a Python call.
WRITTEN_OUT = 20
#: Words of the command line for values that Python writes otherwise.
WORDS: dict[tuple[str, bool | None], str] = {
    ("wide", True): "questions",
    ("wide", False): "long",
    ("bias", True): "on",
    ("bias", False): "off",
    ("transform", None): "none",
}


@dataclass(frozen=True)
class RunnableText:
    """A call or command, and what its placeholders stand for.

    Attributes
    ----------
    text : str
        What to run.
    placeholders : tuple of str
        Keywords (or "answers") whose values could not be written.
    """

    text: str
    placeholders: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        """Say what the placeholders stand for; empty without any."""
        if not self.placeholders:
            return ""
        verb = "stands" if len(self.placeholders) == 1 else "stand"
        names = ", ".join(self.placeholders)
        return f"{names} {verb} for what was passed, which text cannot carry"

    def __str__(self) -> str:
        return f"{self.text}\n# {self.note}" if self.note else self.text


def python_call(
    function: str, source: Any, given: Mapping[str, Any], extra: Mapping[str, Any] | None = None
) -> RunnableText:
    """Write a call of a public function.

    Parameters
    ----------
    function : str
        Its name, such as "trueup.estimate".
    source : object
        What holds the answers; a path is written, anything else is called `answers`.
    given : mapping
        Keywords whose values differ from their defaults.
    extra : mapping, optional
        More arguments, as Python text.
    """
    placeholders = []
    first = None if source is None else _python(source)
    if first is None:
        first = "answers"
        placeholders.append(first)
    arguments = [first]
    for name, value in given.items():
        text = _python(value)
        if text is None:
            text = name
            placeholders.append(name)
        arguments.append(f"{name}={text}")
    arguments += [f"{name}={text}" for name, text in (extra or {}).items()]
    return RunnableText(f"{function}({', '.join(arguments)})", tuple(placeholders))


def shell_command(
    command: str, source: Any, given: Mapping[str, Any], table: Mapping[str, Keyword]
) -> RunnableText:
    """Write a command of the command line; see `python_call`."""
    placeholders = []
    words = ["trueup", *command.split()]
    if isinstance(source, str | os.PathLike):
        words.append(str(source))
    else:
        words.append("answers.csv")
        placeholders.append("answers.csv")
    for name, value in given.items():
        option = flag_of(name)
        texts = None if table[name].option is None else _words(name, value)
        if texts is None:
            texts = [name.upper()]
            placeholders.append(name.upper())
        if value is True and (name, value) not in WORDS:
            words.append(option)
        elif isinstance(value, list | tuple) and name == "question":
            words += _joined(option, [",".join(texts)])
        elif isinstance(value, list | tuple) and name in ("covariates", "where"):
            words += [word for text in texts for word in _joined(option, [text])]
        else:
            words += _joined(option, texts)
    return RunnableText(shlex.join(words), tuple(placeholders))


def _joined(option: str, texts: list[str]) -> list[str]:
    """Return an option and its values as words; a value that looks like an option is tied to it."""
    if len(texts) == 1 and texts[0].startswith("-"):
        return [f"{option}={texts[0]}"]
    return [option, *texts]


def _words(name: str, value: Any) -> list[str] | None:
    """Return a value as words of the command line, None where that cannot be."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool):
        word = WORDS.get((name, value))
        return None if value is None and word is None else [word or ""]
    if isinstance(value, Algorithm | ShrinkRule):
        return [value.name] if _is_plain(value) else None
    if isinstance(value, str | os.PathLike):
        return [str(value)]
    if isinstance(value, int | float):
        return [repr(value)]
    if isinstance(value, list | tuple):
        parts = [_words(name, each) for each in value]
        if value and all(part is not None and len(part) == 1 for part in parts):
            return [part[0] for part in parts if part is not None]
    return None


def _is_plain(value: Algorithm | ShrinkRule) -> bool:
    """Return whether a name alone says which algorithm or rule it is."""
    from trueup.algorithms.registry import find as find_method
    from trueup.shrinkage.registry import find as find_rule
    from trueup.shrinkage.registry import names

    if isinstance(value, ShrinkRule):
        return value.name in names() and find_rule(value.name) == value
    return bool(value.name) and _known_class(value) is not None and find_method(value.name) == value


def _python(value: Any) -> str | None:
    """Return a value as Python text, None where that cannot be."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | bool | int | float):
        return _number(value) if isinstance(value, float) else repr(value)
    if isinstance(value, os.PathLike):
        return repr(os.fspath(value))
    if isinstance(value, Algorithm | ShrinkRule):
        return _object(value)
    if isinstance(value, list | tuple):
        parts = _all(map(_python, value))
        if parts is None:
            return None
        inside = ", ".join(parts)
        if isinstance(value, list):
            return f"[{inside}]"
        return f"({inside},)" if len(parts) == 1 else f"({inside})"
    if type(value) is dict and len(value) <= WRITTEN_OUT:
        keys, values = _all(map(_python, value)), _all(map(_python, value.values()))
        if keys is not None and values is not None:
            return f"{{{', '.join(f'{k}: {v}' for k, v in zip(keys, values, strict=True))}}}"
    return None


def _all(parts: Iterable[str | None]) -> list[str] | None:
    texts = list(parts)
    return (
        None
        if any(text is None for text in texts)
        else [text for text in texts if text is not None]
    )


def _number(value: float) -> str:
    return repr(value) if np.isfinite(value) else f'float("{value}")'


def _known_class(value: Algorithm | ShrinkRule) -> str | None:
    """Return where a class of ours can be found by a user."""
    from trueup import algorithms, shrinkage

    name = type(value).__name__
    for home in (algorithms, shrinkage):
        if getattr(home, name, None) is type(value):
            return f"{home.__name__}.{name}"
    return None


def _object(value: Algorithm | ShrinkRule) -> str | None:
    """Write an algorithm or rule of ours with the parameters that are not defaults."""
    name = _known_class(value)
    if name is None or not is_dataclass(value):
        return None
    parameters = []
    for each in fields(value):
        parameter = getattr(value, each.name)
        if each.init and parameter != each.default:
            text = _python(parameter)
            if text is None:
                return None
            parameters.append(f"{each.name}={text}")
    return f"{name}({', '.join(parameters)})"
