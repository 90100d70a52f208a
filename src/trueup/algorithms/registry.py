"""Algorithms by name: built-in ones, those registered at run time, and those of installed packages.

A new built-in one is a file beside this one, and its class in the list below.

A package offers its own under the entry point group `trueup.algorithms`:

    [project.entry-points."trueup.algorithms"]
    my_method = "my_package:MyAlgorithm"
"""

from __future__ import annotations

from contextlib import suppress
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeAlias

from trueup.algorithms.contract import Algorithm
from trueup.algorithms.crh import CRH, PM
from trueup.algorithms.gtm import GTM
from trueup.algorithms.inverse_variance import CATD, DTD, Blue
from trueup.algorithms.iptd import IPTD, PTD
from trueup.algorithms.kdem import KDEm
from trueup.algorithms.mean import Mean
from trueup.algorithms.median import Median, WeightedMedian
from trueup.algorithms.native import Native
from trueup.algorithms.question_rule import QuestionRule
from trueup.algorithms.student_t import StudentT
from trueup.algorithms.subject_bias import SubjectBias
from trueup.errors import TrueupError, nearest, quoted

if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.metadata import EntryPoints

#: What names a first step.
Method: TypeAlias = "str | Algorithm | type[Algorithm] | Callable[[Any], Any]"
ENTRY_POINTS = "trueup.algorithms"

_builtin: tuple[type[Algorithm], ...] = (
    Native,
    Mean,
    Median,
    WeightedMedian,
    Blue,
    DTD,
    CATD,
    GTM,
    CRH,
    PM,
    PTD,
    IPTD,
    KDEm,
    SubjectBias,
    StudentT,
)
_registered: dict[str, type[Algorithm]] = {algorithm.name: algorithm for algorithm in _builtin}
_registered["lfc_n"] = DTD  # the numeric LFC of Raykar et al. is the same update


def register(algorithm: type[Algorithm], name: str | None = None) -> type[Algorithm]:
    """Register an algorithm under a name, so that `estimate(method=name)` finds it. Works as a decorator."""
    if not (isinstance(algorithm, type) and issubclass(algorithm, Algorithm)):
        raise TrueupError(
            f"algorithm: found {quoted(algorithm)}, expected a subclass of Algorithm."
        )
    name = name or algorithm.name
    if not name:
        raise TrueupError("give the class a `name` to register it by.", argument=algorithm.__name__)
    if _registered.get(name, algorithm) is not algorithm:
        raise TrueupError(
            f"the name {name!r} is taken; choose another.", argument=algorithm.__name__
        )
    _registered[name] = algorithm
    return algorithm


def _installed() -> EntryPoints:
    from importlib.metadata import entry_points  # slow to import, rarely needed

    return entry_points(group=ENTRY_POINTS)


def names() -> list[str]:
    """Return the names of all algorithms, built-in ones first."""
    others = [point.name for point in _installed()]
    return list(dict.fromkeys([*_registered, *others]))


def find(method: Method) -> Algorithm:
    """Return the algorithm for a name, a name with parameters, a class, a function, or an algorithm itself.

    >>> find("crh:scale=var")
    CRH(loss='squared', scale='var', per_count=True)
    """
    if isinstance(method, Algorithm):
        return method
    if isinstance(method, type) and issubclass(method, Algorithm):
        return method()
    if callable(method) and not isinstance(method, type):
        return QuestionRule(method)
    if not isinstance(method, str):
        raise TrueupError(
            f"found {type(method).__name__}, expected a name, an Algorithm or a function.",
            argument="method",
        )
    known = _by_name(method)
    if known is not None:
        return known()
    name, colon, parameters = method.partition(":")
    known = _by_name(name) if colon else None
    if known is not None:
        return with_parameters(known, parameters, name)
    if colon and name.endswith(".py"):
        raise TrueupError(
            f"{quoted(method)} names a file, and only the command line loads code.",
            argument="method",
            remedy="Import the class and pass it, or an object of it.",
        )
    near = nearest(name, names())
    hint = f' Did you mean "{near}"?' if near else ""
    raise TrueupError(
        f"{quoted(method)} is not known.{hint} Known: {', '.join(names())}.", argument="method"
    )


def _by_name(name: str) -> type[Algorithm] | None:
    """Return the class that is known by a name, if there is one."""
    if name in _registered:
        return _registered[name]
    for point in _installed():
        if point.name == name:
            loaded = point.load()
            if not (isinstance(loaded, type) and issubclass(loaded, Algorithm)):
                raise TrueupError(
                    f"the entry point {name!r} is not an Algorithm class.", argument="method"
                )
            return loaded
    return None


def with_parameters(algorithm: type[Algorithm], text: str, name: str) -> Algorithm:
    """Make an algorithm with parameters that are written as `key=value,key=value`."""
    defaults = {each.name: each.default for each in signature(algorithm).parameters.values()}
    parameters: dict[str, Any] = {}
    for part in text.split(","):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if key not in defaults or not equals or key in parameters:
            fault = "is given twice" if key in parameters else "is not a parameter with a value"
            raise TrueupError(
                f"{quoted(part)} {fault} of {quoted(name)}.",
                argument="method",
                remedy=_how_to_write(name, defaults),
            )
        parameters[key] = _cast(value, defaults[key], key, name)
    return algorithm(**parameters)


def _how_to_write(name: str, defaults: dict[str, Any]) -> str:
    if not defaults:
        return f"{name} has no parameters."
    listed = ", ".join(f"{key}={default}" for key, default in defaults.items())
    return f'Parameters of {name} and their defaults: {listed}. Write "{name}:{next(iter(defaults))}=VALUE".'


def _cast(text: str, default: Any, key: str, name: str) -> Any:
    """Read a value as what the default is; where that is None, as a number or else as text."""
    words = {"true": True, "false": False}
    match default:
        case bool():
            if text.lower() in words:
                return words[text.lower()]
            kind = "true or false"
        case str():
            return text
        case int() | float() | None:
            for cast in (int, float):
                with suppress(ValueError):
                    return cast(text)
            if default is None:
                return None if text.lower() == "none" else text
            kind = "a number"
        case _:
            kind = "a parameter that Python alone can set: pass an object of the class"
    raise TrueupError(f"{key} of {name} is {quoted(text)}, must be {kind}.", argument="method")
