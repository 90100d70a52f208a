"""Algorithms by name: built-in ones, those registered at run time, and those of installed packages.

A new built-in one is a file beside this one, and its class in the list below.

A package offers its own under the entry point group `trueup.algorithms`:

    [project.entry-points."trueup.algorithms"]
    my_method = "my_package:MyAlgorithm"
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trueup.algorithms.contract import Algorithm
from trueup.algorithms.crh import CRH, PM
from trueup.algorithms.gtm import GTM
from trueup.algorithms.inverse_variance import CATD, DTD, Blue
from trueup.algorithms.iptd import IPTD, PTD
from trueup.algorithms.kdem import KDEm
from trueup.algorithms.mean import Mean
from trueup.algorithms.median import Median, WeightedMedian
from trueup.algorithms.native import Native
from trueup.algorithms.student_t import StudentT
from trueup.algorithms.subject_bias import SubjectBias
from trueup.errors import TrueupError, nearest, quoted

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

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


def find(method: str | Algorithm | type[Algorithm]) -> Algorithm:
    """Return the algorithm for a name, a class, or an algorithm itself.

    >>> find("crh")
    CRH(loss='squared', scale='std', per_count=True)
    """
    if isinstance(method, Algorithm):
        return method
    if isinstance(method, type) and issubclass(method, Algorithm):
        return method()
    if not isinstance(method, str):
        raise TrueupError(
            f"found {type(method).__name__}, expected a name or an Algorithm.", argument="method"
        )
    if method in _registered:
        return _registered[method]()
    for point in _installed():
        if point.name == method:
            loaded = point.load()
            if not (isinstance(loaded, type) and issubclass(loaded, Algorithm)):
                raise TrueupError(
                    f"the entry point {method!r} is not an Algorithm class.", argument="method"
                )
            return loaded()
    near = nearest(method, names())
    hint = f' Did you mean "{near}"?' if near else ""
    raise TrueupError(
        f"{quoted(method)} is not known.{hint} Known: {', '.join(names())}.", argument="method"
    )
