"""--method FILE.py:CLASS: an algorithm of the user's own, loaded from a file because the command line names it.

Nothing else loads code: not Python callers, who import their class, and not states, which hold data.
"""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup.algorithms.contract import Algorithm
from trueup.algorithms.registry import with_parameters
from trueup.errors import TrueupError, listing, quoted

if TYPE_CHECKING:
    from trueup.algorithms.registry import Method

LONGEST_PATH = 200
MOST_NAMES = 10


def is_own(method: str) -> bool:
    """Tell whether a method is a class in a file: FILE.py:CLASS, with or without parameters behind."""
    return ".py:" in method


def load_method(method: str) -> Method:
    """Return what `--method` names: a class in a file as an object of it, anything else as it is.

    `FILE.py:CLASS:key=value,key=value` sets parameters of the class.
    """
    if not is_own(method):
        return method
    path, _, rest = method.partition(".py:")
    path, (name, colon, parameters) = f"{path}.py", rest.partition(":")
    found = getattr(_module(path), name, None)
    if not (isinstance(found, type) and issubclass(found, Algorithm)):
        classes = _algorithms(sys.modules[path])
        there = listing(classes, MOST_NAMES) if classes else "none"
        raise TrueupError(
            f"there is no algorithm {quoted(name)} in {quoted(path, LONGEST_PATH)}. Subclasses of "
            f"trueup.algorithms.Algorithm there: {there}.",
            argument="method",
        )
    try:
        return with_parameters(found, parameters, name) if colon else found()
    except TypeError as error:
        raise TrueupError(
            f"{quoted(name)} cannot be made without parameters ({quoted(str(error), LONGEST_PATH)}).",
            argument="method",
            remedy="Give every parameter a default.",
        ) from error


def _module(path: str) -> Any:
    """Run a file once, under its path as name, which dataclasses look up."""
    if path in sys.modules:
        return sys.modules[path]
    if not Path(path).is_file():
        raise TrueupError(
            f"there is no file {quoted(path, LONGEST_PATH)}.",
            argument="method",
            remedy="Write FILE.py:CLASS with a file that is there.",
        )
    spec = spec_from_file_location(path, path)
    assert spec is not None  # noqa: S101  the name ends in .py
    assert spec.loader is not None  # noqa: S101
    module = module_from_spec(spec)
    sys.modules[path] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[path]
        text = f"{type(error).__name__}: {error}"
        raise TrueupError(
            f"{quoted(path, LONGEST_PATH)} cannot be run ({quoted(text, LONGEST_PATH)}).",
            argument="method",
            remedy="Mend the file.",
        ) from error
    return module


def _algorithms(module: Any) -> list[str]:
    return [
        name
        for name, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, Algorithm)
        and value.__module__ == module.__name__
    ]
