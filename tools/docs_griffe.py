"""An extension of griffe, which reads the docstrings for the reference: four things it would get wrong.

- `{"a", "b"}, optional`: the first choice is not the default; the signature has it.
- `max_iter, tol : int, float`: each of several parameters has its own type and default.
- `caution=CAUTION`: a reader wants the number.
- `**keywords`: functions whose keywords are declared in `trueup.request` show all of them, as `help` does.
"""  # noqa: INP001  a script

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any

import griffe

CHOICES = re.compile(r"^([ \t]*[\w, *]+ : )\{(.+?)\}", re.M)
SEVERAL = re.compile(r"^(\w+(?:, \w+)+) : (.+)\n((?:[ \t]+.+\n?|\n(?=[ \t]))*)", re.M)
SECTION = re.compile(r"^Parameters\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", re.M | re.S)


def mended(text: str) -> str:
    """Return a docstring that says the same in a form that is read rightly."""

    def listed(match: re.Match[str]) -> str:
        first, _, last = match[2].rpartition(", ")
        return f"{match[1]}{first} or {last}" if first else f"{match[1]}{last}"

    def apart(match: re.Match[str]) -> str:
        names, types = match[1].split(", "), match[2].split(", ")
        own = types if len(types) == len(names) else [match[2]] * len(names)
        body = match[3] if match[3].endswith("\n") or not match[3] else f"{match[3]}\n"
        return "".join(f"{name} : {kind}\n{body}" for name, kind in zip(names, own, strict=True))

    text = CHOICES.sub(listed, text)
    return SECTION.sub(lambda part: SEVERAL.sub(apart, part[0]), text)


class Mended(griffe.Extension):
    """Mends docstrings, and puts numbers in the place of the names of constants."""

    def on_package(self, *, pkg: Any, **_: Any) -> None:
        """Go through a package once all of it is loaded."""
        self._visit(pkg)

    def _visit(self, thing: Any) -> None:
        if thing.docstring is not None:
            thing.docstring.value = mended(thing.docstring.value)
        if thing.is_function and any(
            name.startswith("signature_with") for name in _decorators(thing)
        ):
            thing.parameters = _shown_parameters(thing)
        for parameter in getattr(thing, "parameters", None) or ():
            if isinstance(parameter.default, griffe.ExprName):
                parameter.default = _value(thing, parameter.default.name) or parameter.default
        if thing.is_attribute and isinstance(thing.value, griffe.ExprName):
            thing.value = _value(thing, thing.value.name) or thing.value  # a field of a dataclass
        for member in thing.members.values():
            if not member.is_alias:
                self._visit(member)


def _decorators(function: Any) -> list[str]:
    return [str(decorator.value) for decorator in function.decorators]


def _shown_parameters(function: Any) -> griffe.Parameters:
    """Return the parameters that the signature of a function shows when the program runs."""
    home, _, name = function.canonical_path.rpartition(".")
    signature = inspect.signature(getattr(importlib.import_module(home), name))
    return griffe.Parameters(
        *(
            griffe.Parameter(
                each.name,
                annotation=None if each.annotation is each.empty else str(each.annotation),
                kind=griffe.ParameterKind[each.kind.name.lower()],
                default=None if each.default is each.empty else repr(each.default),
            )
            for each in signature.parameters.values()
        )
    )


def _value(thing: Any, name: str) -> str | None:
    """Return what a constant of the module of a thing is, as it is written."""
    found = thing.module.members.get(name)
    for _ in range(5):
        if found is None or not found.is_alias:
            break
        try:
            found = found.target
        except (griffe.AliasResolutionError, griffe.CyclicAliasError):
            return None
    value = getattr(found, "value", None)
    return None if value is None or isinstance(value, griffe.ExprName) else str(value)
